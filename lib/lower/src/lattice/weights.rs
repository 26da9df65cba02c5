//! Weights: what the model stores, as operations `weight`, as arguments of the module's record, and as a header that the
//! verifier holds the graph against.

use super::cx::shown;
use crate::error::{Error, Result};
use m2m_lattice::build::{self, Builder};
use m2m_lattice::ir::Value;
use m2m_lattice::schema::{Family, GROUP_SIZES, PackingKind};
use m2m_lattice::verify;
use m2m_record::{Argument, DType, Data, Input, TensorType};
use m2m_tensor::layout;
use m2m_tensor::safetensors::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A tensor that comes with the model, as it is stored or with its two axes exchanged.
#[derive(Clone, Debug)]
pub struct Stored {
    input: Rc<Input>,
    ty: TensorType,
    /// Whether it stands for its transposition.
    pub is_transposed: bool,
}

impl Stored {
    /// `None` for what is no tensor.
    pub fn new(input: &Input) -> Option<Self> {
        Some(Stored { input: Rc::new(input.clone()), ty: input.ty.as_tensor()?.clone(), is_transposed: false })
    }

    /// Its qualified name, or the value's where it has none.
    pub fn name(&self) -> &str {
        self.input.target.as_deref().unwrap_or(&self.input.value)
    }

    /// Its number of axes.
    pub fn rank(&self) -> usize {
        self.ty.shape.len()
    }
}

/// A weight of three stored tensors.
#[derive(Clone, Debug)]
pub struct Packed {
    key: String,
    parts: [Stored; 3],
    packing: build::Packed,
    /// Element of the features.
    dtype: DType,
}

/// The last components of the names of a packed weight's tensors.
pub const PARTS: [&str; 3] = ["weight", "scales", "biases"];

impl Packed {
    /// Checks what a graph calls a packed weight, for features of a type.
    pub fn new(parts: [Stored; 3], kind: &str, group_size: i64, dtype: DType) -> Result<Self> {
        let found = || parts.iter().map(Stored::name).collect::<Vec<_>>().join(", ");
        let prefix = |(part, end): (&Stored, &str)| Some(part.name().strip_suffix(end)?.strip_suffix('.')?.to_owned());
        let mut keys = parts.iter().zip(PARTS).map(prefix);
        let key = keys.next().flatten().filter(|key| !key.is_empty() && keys.all(|each| each.as_ref() == Some(key)));
        let key = key.ok_or_else(|| {
            let expected = PARTS.map(|part| format!("K.{part}")).join(", ");
            Error::unsupported(format!(
                "the tensors are called {}; expected {expected}, the keys of the contract",
                found()
            ))
        })?;
        let kind = PackingKind::parse(kind).filter(|kind| *kind != PackingKind::Dense);
        let kind = kind.ok_or_else(|| Error::unsupported("packing is no packed kind; expected int4 or int8"))?;
        let group_size = u32::try_from(group_size).ok().filter(|size| GROUP_SIZES.contains(size)).ok_or_else(|| {
            Error::unsupported(format!("group_size is {group_size}; expected one of {GROUP_SIZES:?}"))
        })?;
        let [words, scales, _] = &parts;
        if words.ty.dtype != DType::U32 {
            let found = shown(words.ty.dtype, &words.ty.shape);
            return Err(Error::unsupported(format!("{} is {found}; the contract packs into u32", words.name())));
        }
        let packing = build::Packed { kind, group_size, scale_dtype: scales.ty.dtype };
        Ok(Packed { key, packing, dtype, parts })
    }
}

/// The weights that are bound so far.
#[derive(Default)]
pub struct Weights {
    bound: HashMap<(String, Family, Option<DType>), Value>,
    symbols: HashSet<String>,
    /// What the module's record says of each stored tensor.
    pub arguments: Vec<Argument>,
    /// What the weights file will hold.
    pub file: verify::Weights,
}

impl Weights {
    /// Binds a tensor as it is stored.
    pub fn dense(&mut self, b: &mut Builder, stored: &Stored, family: Family) -> Result<Value> {
        let tied = |argument: &&Argument| {
            argument.data == stored.input.data && argument.ty == stored.input.ty && argument.data != Some(Data::Missing)
        };
        let key = match self.arguments.iter().find(tied).and_then(|argument| argument.global.clone()) {
            Some(key) => key,
            None => self.store(stored, self.free_key(stored)?)?,
        };
        self.bind(b, key, family, stored.ty.dtype, None)
    }

    /// Binds a packed weight.
    pub fn packed(&mut self, b: &mut Builder, packed: &Packed, family: Family) -> Result<Value> {
        for part in &packed.parts {
            if !self.file.header.tensors.contains_key(part.name()) {
                self.store(part, part.name().to_owned())?;
            }
        }
        self.bind(b, packed.key.clone(), family, packed.dtype, Some(packed.packing))
    }

    fn bind(
        &mut self,
        b: &mut Builder,
        key: String,
        family: Family,
        dtype: DType,
        packing: Option<build::Packed>,
    ) -> Result<Value> {
        let place = (key, family, packing.map(|_| dtype));
        if let Some(value) = self.bound.get(&place) {
            return Ok(*value);
        }
        let symbol = self.symbol(&place.0);
        let value = b.weight(&symbol, &place.0, family, dtype, packing);
        let value = value.map_err(|error| Error::unsupported(error.to_string()))?;
        self.bound.insert(place, value);
        Ok(value)
    }

    /// The tensor's name, or the value's where another tensor has it.
    fn free_key(&self, stored: &Stored) -> Result<String> {
        let names = [stored.name(), &stored.input.value];
        let free = names.into_iter().find(|name| !name.is_empty() && !self.file.header.tensors.contains_key(*name));
        free.map(str::to_owned)
            .ok_or_else(|| Error::Graph(format!("two stored tensors are called {:?}", stored.name())))
    }

    /// Adds a tensor to the weights file.
    fn store(&mut self, stored: &Stored, key: String) -> Result<String> {
        let dims = stored.ty.static_shape();
        let bytes = dims.as_ref().and_then(|dims| layout::bytes(stored.ty.dtype, dims));
        let (Some(dims), Some(bytes)) = (dims, bytes) else {
            let found = shown(stored.ty.dtype, &stored.ty.shape);
            return Err(Error::unsupported(format!("{} is {found}; expected static sizes", stored.name())));
        };
        let shape = dims.iter().map(|size| size.unsigned_abs()).collect();
        let entry = Entry { dtype: stored.ty.dtype, shape, offset: 0, bytes };
        self.file.header.tensors.insert(key.clone(), entry);
        self.arguments.push(Argument {
            value: stored.input.value.clone(),
            role: stored.input.role,
            target: stored.input.target.clone(),
            ty: stored.input.ty.clone(),
            data: stored.input.data.clone(),
            global: Some(key.clone()),
        });
        Ok(key)
    }

    /// A key as a bare identifier of MLIR that no other weight has.
    fn symbol(&mut self, key: &str) -> String {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
        let mut base: String = key.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, '_');
        }
        let names = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}_{n}") });
        let free = names.into_iter().find(|name| !self.symbols.contains(name)).unwrap_or_default();
        self.symbols.insert(free.clone());
        free
    }
}
