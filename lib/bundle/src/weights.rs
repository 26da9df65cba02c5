//! The data of the module's arguments, written once each to `weights.safetensors`.

use crate::folder::Folder;
use crate::story::Story;
use crate::{Error, WEIGHTS_NAME};
use m2m_digest::{Digest, Hashed, Hasher};
use m2m_record::{ByteOrder, DType, Data, Module, Type};
use m2m_tensor::safetensors::Plan;
use m2m_tensor::source::{self, Files};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

/// A tensor to be written.
#[derive(Clone, Debug)]
pub(crate) struct Weight {
    pub(crate) data: Data,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<i64>,
}

/// Where tensors come from.
pub(crate) struct Sources<'a> {
    /// The open files.
    pub(crate) files: Files,
    /// What the stream says of them.
    pub(crate) story: &'a Story,
    /// Told how many more bytes are written.
    pub(crate) advance: &'a dyn Fn(u64),
}

/// Two arguments with the same key are the same bytes: tied.
type TieKey = (DType, Vec<i64>, Place);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A named tensor: where its bytes are mapped, since names may be aliases.
    Mapped(usize, usize),
    /// A range: file, offset, strides, whether the order is big.
    Range(String, u64, Option<Vec<i64>>, bool),
}

/// What the weights file will hold, and which argument takes which of its tensors.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    stored: BTreeMap<String, Weight>,
    aliases: Vec<(String, String)>,
    /// For each argument of the module, the name of its tensor.
    pub(crate) by_argument: Vec<Option<String>>,
    /// SHA-256 of each tensor's elements, row-major and little-endian, once written.
    pub(crate) digests: BTreeMap<String, Digest>,
}

impl Weights {
    /// How many tensors are stored; tied ones count once.
    pub(crate) fn count(&self) -> u64 {
        self.stored.len() as u64
    }

    /// The digest of a tensor by any of its names.
    pub(crate) fn digest(&self, name: &str) -> Option<Digest> {
        let stored = self.aliases.iter().find(|(alias, _)| alias == name).map_or(name, |(_, stored)| stored.as_str());
        self.digests.get(stored).copied()
    }

    /// Plans the file from the arguments that have data. Missing data is an error that names every such argument.
    pub(crate) fn plan(module: &Module, files: &Files) -> Result<Self, Error> {
        let mut weights = Weights::default();
        let mut ties: HashMap<TieKey, String> = HashMap::new();
        let mut taken = HashSet::new();
        require_data(module)?;
        for argument in &module.arguments {
            let Some(data) = &argument.data else {
                weights.by_argument.push(None);
                continue;
            };
            let weight = weight_of(&argument.value, data, &argument.ty)?;
            let name = unique_name(argument.target.as_deref(), &argument.value, &mut taken)?;
            let key = tie_key(&weight, files).map_err(|error| Error::Tensor { name: name.clone(), error })?;
            match key.as_ref().and_then(|key| ties.get(key)) {
                Some(first) => weights.aliases.push((name.clone(), first.clone())),
                None => {
                    weights.stored.insert(name.clone(), weight);
                    ties.extend(key.map(|key| (key, name.clone())));
                }
            }
            weights.by_argument.push(Some(name));
        }
        Ok(weights)
    }

    /// Writes the file.
    pub(crate) fn write(&mut self, folder: &mut Folder, sources: &Sources) -> Result<Hashed, Error> {
        let (hashed, digests) = write_tensors(folder, WEIGHTS_NAME, &self.stored, &self.aliases, sources)?;
        self.digests = digests;
        Ok(hashed)
    }

    /// Bytes of all stored tensors.
    pub(crate) fn bytes(&self) -> u64 {
        let sizes = self.stored.values().filter_map(|w| m2m_tensor::layout::bytes(w.dtype, &w.shape));
        sizes.fold(0, u64::saturating_add)
    }
}

/// Writes tensors to a safetensors file; gives its digest and that of each tensor.
pub(crate) fn write_tensors(
    folder: &mut Folder,
    file_name: &str,
    tensors: &BTreeMap<String, Weight>,
    aliases: &[(String, String)],
    sources: &Sources,
) -> Result<(Hashed, BTreeMap<String, Digest>), Error> {
    let mut plan = Plan::new();
    for (name, weight) in tensors {
        let shape: Option<Vec<u64>> = weight.shape.iter().map(|d| u64::try_from(*d).ok()).collect();
        let shape = shape.ok_or_else(|| Error::content(format!("{name}: shape {:?} is negative", weight.shape)))?;
        plan.tensor(name, weight.dtype, &shape)?;
    }
    for (alias, name) in aliases {
        plan.alias(alias, name)?;
    }
    let mut file = folder.create(file_name)?;
    let mut digests = BTreeMap::new();
    plan.write(&mut file, |name, sink| -> Result<(), Error> {
        let Some(weight) = tensors.get(name) else { return Ok(()) };
        let fail = |error| Error::Tensor { name: name.to_owned(), error };
        let mut tee = Tee { sink, hasher: Hasher::default(), advance: sources.advance };
        let view = sources.files.view(&weight.data, weight.dtype, &weight.shape).map_err(fail)?;
        view.write_contiguous(&mut tee).map_err(fail)?;
        let digest = tee.hasher.finish().digest;
        sources.story.verify(name, &weight.data, digest)?;
        digests.insert(name.to_owned(), digest);
        sources.files.forget(&weight.data);
        Ok(())
    })?;
    Ok((folder.close(file)?, digests))
}

/// Opens the files that some data is in, and no others: a stream may name files that are long gone.
pub(crate) fn open_files<'a>(
    story: &Story,
    data: impl Iterator<Item = &'a Data>,
    root: Option<&Path>,
) -> Result<Files, Error> {
    let mut files = Files::new();
    let mut opened = HashSet::new();
    for data in data {
        let (Data::Tensor { file: id, .. } | Data::Range { file: id, .. }) = data else { continue };
        if !opened.insert(id) {
            continue;
        }
        let record = story.files.get(id);
        let record =
            record.ok_or_else(|| Error::content(format!("data names file {id:?}, which no file record introduces")))?;
        files.open(record, root).map_err(|error| Error::Tensor { name: format!("file {id}"), error })?;
    }
    Ok(files)
}

/// The static tensor behind `data`.
pub(crate) fn weight_of(name: &str, data: &Data, ty: &Type) -> Result<Weight, Error> {
    let wrong = |what: String| Error::content(format!("{name} has data but {what}"));
    let tensor = ty.as_tensor().ok_or_else(|| wrong("is not a tensor".into()))?;
    let shape = tensor.static_shape().ok_or_else(|| wrong("its shape is not static".into()))?;
    Ok(Weight { data: data.clone(), dtype: tensor.dtype, shape })
}

fn require_data(module: &Module) -> Result<(), Error> {
    use m2m_record::InputRole::{Buffer, Parameter, TensorConstant};
    let lacks = |a: &&m2m_record::Argument| match &a.data {
        Some(data) => *data == Data::Missing,
        None => matches!(a.role, Parameter | Buffer | TensorConstant),
    };
    let names: Vec<&str> =
        module.arguments.iter().filter(lacks).map(|a| a.target.as_deref().unwrap_or(&a.value)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the program came without the data of {} ({} in all); a bundle needs it",
        names.join(", "),
        names.len()
    );
    Err(Error::content(message))
}

/// The qualified name, or the value's where that is taken.
fn unique_name(target: Option<&str>, value: &str, taken: &mut HashSet<String>) -> Result<String, Error> {
    for name in target.into_iter().chain([value]) {
        if taken.insert(name.to_owned()) {
            return Ok(name.to_owned());
        }
    }
    Err(Error::content(format!("two arguments of the module are both called {value:?}")))
}

/// Ranges are compared as they are stated, so that planning touches none of their bytes.
fn tie_key(weight: &Weight, files: &Files) -> Result<Option<TieKey>, source::Error> {
    let place = match &weight.data {
        Data::Range { file, offset, bytes, strides, byteorder, .. } if *bytes > 0 => {
            Place::Range(file.clone(), *offset, strides.clone(), *byteorder == ByteOrder::Big)
        }
        Data::Tensor { .. } => {
            let view = files.view(&weight.data, weight.dtype, &weight.shape)?;
            match view.as_contiguous() {
                Some(bytes) if !bytes.is_empty() => Place::Mapped(bytes.as_ptr() as usize, bytes.len()),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some((weight.dtype, weight.shape.clone(), place)))
}

/// Passes bytes on, hashing them.
struct Tee<'a> {
    sink: &'a mut dyn Write,
    hasher: Hasher,
    advance: &'a dyn Fn(u64),
}

impl Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A tensor comes as one slice; in blocks, its bytes are hashed while they are in the cache, and progress shows.
        const BLOCK_BYTES: usize = 256 * 1024;
        let block = bytes.get(..BLOCK_BYTES).unwrap_or(bytes);
        let count = self.sink.write(block)?;
        self.hasher.update(block.get(..count).unwrap_or_default());
        (self.advance)(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
