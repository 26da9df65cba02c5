//! Where records say that state lies: in the archive, or in a safetensors file that is written beside the stream.
//!
//! The file holds every tensor of the archive's state once, contiguous and little-endian. Tied tensors (the same elements
//! of one storage) are written under the first of their names; the others are aliases in the file's metadata.

use std::collections::HashMap;
use std::io::Write;

use m2m_record::{Data, File};
use m2m_tensor::safetensors::{Plan, WriteError};
use m2m_tensor::source::Files;

use crate::Error;
use crate::place::Placed;
use crate::state::{Held, State};

/// Turns a placed tensor into the `data` of a record.
#[derive(Debug, Default)]
pub(crate) struct DataOf<'a> {
    /// Id of the archive's `file` record.
    pub archive: &'a str,
    /// Id of the weights file's record, and the name under which each tensor was written.
    pub weights: Option<(&'a str, &'a HashMap<String, String>)>,
}

impl DataOf<'_> {
    /// The data of a tensor of that name.
    pub fn of(&self, name: &str, placed: &Placed) -> Data {
        match self.weights.and_then(|(file, names)| Some((file, names.get(name)?))) {
            Some((file, tensor)) => Data::Tensor { file: file.to_owned(), tensor: tensor.clone() },
            None => placed.data(self.archive),
        }
    }
}

/// A planned weights file.
#[derive(Debug)]
pub struct Weights {
    plan: Plan,
    tensors: HashMap<String, Placed>,
    /// For every name, the one under which its elements are written.
    pub(crate) names: HashMap<String, String>,
}

impl Weights {
    /// Plans the file: every tensor of the state that has bytes.
    pub(crate) fn plan(state: &State) -> Result<Self, Error> {
        let mut weights = Weights { plan: Plan::new(), tensors: HashMap::new(), names: HashMap::new() };
        let mut first: HashMap<Placed, String> = HashMap::new();
        for (name, held) in state.all() {
            match held {
                Held::Tensor(placed) => weights.add(name, placed, &mut first)?,
                Held::Subclass { tensors, .. } => {
                    for (attribute, placed) in tensors {
                        weights.add(&format!("{name}.{attribute}"), placed, &mut first)?;
                    }
                }
                Held::Absent { .. } | Held::Object { .. } => {}
            }
        }
        Ok(weights)
    }

    fn add(&mut self, name: &str, placed: &Placed, first: &mut HashMap<Placed, String>) -> Result<(), Error> {
        if self.names.contains_key(name) {
            return Err(WriteError::Duplicate(name.to_owned()).into());
        }
        // Empty tensors have no elements to share, so they are never aliases.
        if placed.storage.is_some() {
            if let Some(owner) = first.get(placed) {
                self.plan.alias(name, owner)?;
                self.names.insert(name.to_owned(), owner.clone());
                return Ok(());
            }
            first.insert(placed.clone(), name.to_owned());
        }
        let sizes: Vec<u64> = placed.sizes.iter().map(|&n| n.unsigned_abs()).collect();
        self.plan.tensor(name, placed.dtype, &sizes)?;
        self.tensors.insert(name.to_owned(), placed.clone());
        self.names.insert(name.to_owned(), name.to_owned());
        Ok(())
    }

    /// Size of the file.
    ///
    /// # Errors
    /// A header that cannot be made.
    pub fn file_bytes(&self) -> Result<u64, Error> {
        Ok(self.plan.file_bytes()?)
    }

    /// Streams the file. `archive` is mapped again from its path, and each entry that is read is checked by its CRC.
    ///
    /// # Errors
    /// A damaged entry, or a failed write.
    pub fn write(&self, archive: &File, out: &mut impl Write) -> Result<(), Error> {
        write_placed(&self.plan, &self.tensors, archive, out)
    }
}

/// Streams a planned file whose tensors all lie in the archive.
pub(crate) fn write_placed(
    plan: &Plan,
    tensors: &HashMap<String, Placed>,
    archive: &File,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut files = Files::new();
    let fail = |name: &str, source| Error::Data { name: name.to_owned(), source };
    files.open(archive, None).map_err(|e| fail("", e))?;
    plan.write(out, |name, sink| {
        let placed = tensors.get(name).expect("the plan was made of these tensors");
        let data = placed.data(&archive.id);
        let view = files.view(&data, placed.dtype, &placed.sizes).map_err(|e| fail(name, e))?;
        view.write_contiguous(sink).map_err(|e| fail(name, e))?;
        files.forget(&data);
        Ok(())
    })
}
