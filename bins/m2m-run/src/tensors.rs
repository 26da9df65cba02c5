//! Tensors of a safetensors file by name, in place.

use crate::error::Error;
use crate::plan::map;
use m2m_record::DType;
use m2m_tensor::MappedFile;
use m2m_tensor::safetensors::{Entry, Header};
use std::path::Path;

/// A mapped file with its header.
pub struct TensorFile {
    map: MappedFile,
    header: Header,
}

/// One tensor.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: &'a [u64],
    /// Row-major little-endian elements.
    pub bytes: &'a [u8],
}

impl TensorFile {
    /// Maps and checks a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let map = map(path)?;
        let header =
            Header::read(map.bytes()).map_err(|source| Error::Safetensors { path: path.to_owned(), source })?;
        Ok(Self { map, header })
    }

    /// Names, in file order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.header.tensors.keys().map(String::as_str)
    }

    /// A tensor by name.
    pub fn get(&self, name: &str) -> Option<TensorView<'_>> {
        let Entry { dtype, shape, offset, bytes } = self.header.tensors.get(name)?;
        let start = usize::try_from(*offset).ok()?;
        let end = start.checked_add(usize::try_from(*bytes).ok()?)?;
        Some(TensorView { dtype: *dtype, shape, bytes: self.map.bytes().get(start..end)? })
    }

    /// Size of the whole file.
    pub fn len_bytes(&self) -> u64 {
        self.map.bytes().len() as u64
    }

    /// The path as given.
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// All bytes, for a digest.
    pub fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }
}

impl TensorView<'_> {
    /// The shape as signed sizes; the header's reader has checked that the bytes, and so the sizes, exist.
    pub fn dims(&self) -> Vec<i64> {
        self.shape.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect()
    }
}
