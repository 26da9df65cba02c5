//! Tensors of a safetensors or npz file by name, in place.

use crate::error::Error;
use crate::npz;
use crate::plan::map;
use indexmap::IndexMap;
use m2m_record::{DType, Data};
use m2m_tensor::MappedFile;
use m2m_tensor::safetensors::{Entry, Header};
use std::borrow::Cow;
use std::path::Path;

/// A mapped file with its header.
pub struct TensorFile {
    map: MappedFile,
    tensors: IndexMap<String, Entry>,
    format: &'static str,
}

/// One tensor.
#[derive(Debug, Clone)]
pub struct TensorView<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: Cow<'a, [u64]>,
    /// Row-major little-endian elements.
    pub bytes: &'a [u8],
}

impl TensorFile {
    /// Maps and checks a file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let map = map(path)?;
        if npz::is_npz(map.bytes()) {
            let tensors = npz::read(map.bytes());
            let tensors = tensors.map_err(|message| Error::Npz { path: path.to_owned(), message })?;
            return Ok(Self { map, tensors, format: "npz" });
        }
        let header =
            Header::read(map.bytes()).map_err(|source| Error::Safetensors { path: path.to_owned(), source })?;
        Ok(Self { map, tensors: header.tensors, format: "safetensors" })
    }

    /// `safetensors` or `npz`.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Where a tensor is, for a record of this file.
    pub fn data(&self, file: &str, name: &str) -> Option<Data> {
        let entry = self.tensors.get(name)?;
        let (file, tensor) = (file.to_owned(), name.to_owned());
        Some(match self.format {
            "npz" => Data::Range {
                file,
                offset: entry.offset,
                bytes: entry.bytes,
                storage: None,
                strides: None,
                byteorder: m2m_record::ByteOrder::Little,
            },
            _ => Data::Tensor { file, tensor },
        })
    }

    /// Names, in file order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor by name.
    pub fn get(&self, name: &str) -> Option<TensorView<'_>> {
        let Entry { dtype, shape, offset, bytes } = self.tensors.get(name)?;
        let start = usize::try_from(*offset).ok()?;
        let end = start.checked_add(usize::try_from(*bytes).ok()?)?;
        Some(TensorView { dtype: *dtype, shape: shape.into(), bytes: self.map.bytes().get(start..end)? })
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
    /// Pairs of floats along a last axis of 2 as the complex numbers that they spell, where `dtype` wants those; others as
    /// they are.
    pub fn paired(self, dtype: DType) -> Self {
        match self.shape.split_last() {
            Some((2, dims)) if dtype.is_complex() && self.dtype == part_of(dtype) => {
                Self { dtype, shape: dims.to_vec().into(), bytes: self.bytes }
            }
            _ => self,
        }
    }

    /// The shape as signed sizes; the header's reader has checked that the bytes, and so the sizes, exist.
    pub fn dims(&self) -> Vec<i64> {
        self.shape.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect()
    }
}

/// The dtype of the two parts of a complex number; any other dtype itself.
pub fn part_of(dtype: DType) -> DType {
    match dtype {
        DType::C32 => DType::F16,
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_floats_are_complex_numbers_where_those_are_wanted() {
        let pairs = TensorView { dtype: DType::F32, shape: (&[3, 2][..]).into(), bytes: &[0; 24] };
        let read = pairs.clone().paired(DType::C64);
        assert_eq!((read.dtype, read.dims(), read.bytes.len()), (DType::C64, vec![3], 24));
        for dtype in [DType::F32, DType::C128] {
            assert_eq!(pairs.clone().paired(dtype).dims(), [3, 2]);
        }
        let triples = TensorView { dtype: DType::F32, shape: (&[2, 3][..]).into(), bytes: &[0; 24] };
        assert_eq!(triples.paired(DType::C64).dtype, DType::F32);
    }
}
