//! Plans a file from names, dtypes and shapes, then streams it.

use super::{METADATA_KEY, NotedType, Notes, format_name, stored};
use m2m_record::DType;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The data begins at a multiple of this many bytes, and tensors whose sizes are multiples of it stay aligned to it.
pub const ALIGNMENT: u64 = 64;

/// Why a file cannot be planned or written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The sink or a source failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The same name twice.
    #[error("tensor {0:?} is given twice")]
    Duplicate(String),
    /// The size overflows 64 bits.
    #[error("tensor {0:?} of {1} {2:?} is too large")]
    TooLarge(String, DType, Vec<u64>),
    /// A source gave another number of bytes than its type needs.
    #[error("tensor {name:?} gave {found} bytes; its type takes {expected}")]
    WrongSize {
        /// The tensor.
        name: String,
        /// Bytes that came.
        found: u64,
        /// Bytes that its type takes.
        expected: u64,
    },
}

/// A tensor to be written.
#[derive(Clone, Debug)]
struct Planned {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
    bytes: u64,
}

/// What a file will hold.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    tensors: BTreeMap<String, Planned>,
    notes: Notes,
}

impl Plan {
    /// An empty file.
    pub fn new() -> Self {
        Plan::default()
    }

    /// Adds a tensor.
    pub fn tensor(&mut self, name: &str, dtype: DType, shape: &[u64]) -> Result<(), WriteError> {
        let too_large = || WriteError::TooLarge(name.to_owned(), dtype, shape.to_vec());
        let (as_dtype, as_shape) = stored(dtype, shape).ok_or_else(too_large)?;
        let count = as_shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).ok_or_else(too_large)?;
        let bytes = as_dtype.bytes_of(count).ok_or_else(too_large)?;
        if as_dtype != dtype {
            self.notes.types.insert(name.to_owned(), NotedType { dtype, shape: shape.to_vec() });
        }
        let planned = Planned { name: name.to_owned(), dtype: as_dtype, shape: as_shape, bytes };
        match self.tensors.insert(name.to_owned(), planned) {
            Some(_) => Err(WriteError::Duplicate(name.to_owned())),
            None => Ok(()),
        }
    }

    /// Adds another name of a tensor.
    pub fn alias(&mut self, alias: &str, name: &str) -> Result<(), WriteError> {
        if self.tensors.contains_key(alias) || self.notes.aliases.insert(alias.to_owned(), name.to_owned()).is_some() {
            return Err(WriteError::Duplicate(alias.to_owned()));
        }
        Ok(())
    }

    /// Tensors in file order: sizes that are multiples of [`ALIGNMENT`] first, then by falling element size, then by name.
    fn order(&self) -> Vec<&Planned> {
        let mut order: Vec<&Planned> = self.tensors.values().collect();
        order.sort_by_key(|t| (t.bytes % ALIGNMENT != 0, std::cmp::Reverse(t.dtype.bits()), &t.name));
        order
    }

    /// The header with its length field, padded so that data begins at a multiple of [`ALIGNMENT`].
    fn header(&self, order: &[&Planned]) -> Result<Vec<u8>, WriteError> {
        let mut json = vec![b'{'];
        if self.notes != Notes::default() {
            let notes = serde_json::to_string(&self.notes).map_err(io::Error::from)?;
            let metadata = serde_json::json!({ METADATA_KEY: notes });
            write!(json, "\"__metadata__\":{metadata},")?;
        }
        let mut offset = 0u64;
        for t in order {
            let end = offset
                .checked_add(t.bytes)
                .ok_or_else(|| WriteError::TooLarge(t.name.clone(), t.dtype, t.shape.clone()))?;
            let name = serde_json::to_string(&t.name).map_err(io::Error::from)?;
            let dtype = format_name(t.dtype).unwrap_or_default();
            let shape = serde_json::to_string(&t.shape).map_err(io::Error::from)?;
            write!(json, "{name}:{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":[{offset},{end}]}},")?;
            offset = end;
        }
        if json.last() == Some(&b',') {
            json.pop();
        }
        json.push(b'}');
        let padded = (8 + json.len() as u64).next_multiple_of(ALIGNMENT) - 8;
        json.resize(padded as usize, b' ');
        Ok([padded.to_le_bytes().as_slice(), &json].concat())
    }

    /// Writes the file. `fill` is called once for each tensor, in file order, with its name and a sink that takes
    /// exactly the tensor's bytes: row-major, little-endian.
    pub fn write<W: Write, E: From<WriteError>>(
        &self,
        out: &mut W,
        mut fill: impl FnMut(&str, &mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let order = self.order();
        out.write_all(&self.header(&order)?).map_err(WriteError::from)?;
        for t in order {
            let mut counted = Counted { out, count: 0 };
            fill(&t.name, &mut counted)?;
            if counted.count != t.bytes {
                let (found, expected) = (counted.count, t.bytes);
                return Err(WriteError::WrongSize { name: t.name.clone(), found, expected }.into());
            }
        }
        Ok(())
    }

    /// Size of the whole file.
    pub fn file_bytes(&self) -> Result<u64, WriteError> {
        let order = self.order();
        let data: u64 = order.iter().map(|t| t.bytes).sum();
        Ok(self.header(&order)?.len() as u64 + data)
    }
}

/// A sink that counts.
struct Counted<'a, W: Write> {
    out: &'a mut W,
    count: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
