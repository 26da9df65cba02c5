//! Where a tensor's elements lie in the file, with all arithmetic on foreign numbers checked.

use std::collections::HashMap;

use m2m_record::{ByteOrder, DType, Data};
use m2m_tensor::layout;

/// A tensor that has been found in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Placed {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub sizes: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
    /// Position of the first element in the file.
    pub offset: u64,
    /// Bytes from the first element to the end of the last one.
    pub bytes: u64,
    /// The storage that it is a view of; none for empty tensors.
    pub storage: Option<u64>,
    /// Whether its numbers are big-endian.
    pub is_big_endian: bool,
}

impl Placed {
    /// A view inside a storage of `storage_bytes`, `offset` elements from its start.
    ///
    /// # Errors
    /// What does not fit, in words.
    pub fn new(dtype: DType, sizes: &[i64], strides: &[i64], offset: i64, storage_bytes: u64) -> Result<Self, String> {
        let size = dtype.size().ok_or_else(|| format!("{dtype} is packed and cannot be a tensor of a program"))?;
        if sizes.len() != strides.len() {
            return Err(format!(
                "{} sizes and {} strides; one stride a dimension is right",
                sizes.len(),
                strides.len()
            ));
        }
        if sizes.iter().chain(strides).any(|&n| n < 0) || offset < 0 {
            return Err(format!("negative size, stride or offset in {sizes:?}, {strides:?}, {offset}"));
        }
        let place = || {
            let bytes = layout::span(sizes, strides)?.checked_mul(size)?;
            let start = (offset as u64).checked_mul(size)?;
            Some((start, bytes, start.checked_add(bytes)?))
        };
        let (start, bytes, end) =
            place().ok_or_else(|| format!("{dtype} {sizes:?} with strides {strides:?} overflows 64 bits"))?;
        if layout::bytes(dtype, sizes).is_none() {
            return Err(format!("{dtype} {sizes:?} overflows 64 bits"));
        }
        if bytes > 0 && end > storage_bytes {
            return Err(format!(
                "{dtype} {sizes:?} with strides {strides:?} at element {offset} ends at byte {end} of a storage of {storage_bytes}"
            ));
        }
        let start = if bytes == 0 { 0 } else { start };
        let (sizes, strides) = (sizes.to_vec(), strides.to_vec());
        Ok(Self { dtype, sizes, strides, offset: start, bytes, storage: None, is_big_endian: false })
    }

    /// The same tensor once its storage is known to begin at `start` of the file.
    pub fn at(mut self, start: u64, storage: u64, is_big_endian: bool) -> Self {
        self.offset += start;
        self.storage = (self.bytes > 0).then_some(storage);
        self.is_big_endian = is_big_endian;
        self
    }

    /// The `data` field of a record.
    pub fn data(&self, file: &str) -> Data {
        let is_contiguous = layout::is_contiguous(&self.sizes, &self.strides);
        Data::Range {
            file: file.to_owned(),
            offset: self.offset,
            bytes: self.bytes,
            storage: self.storage,
            strides: (!is_contiguous).then(|| self.strides.clone()),
            byteorder: if self.is_big_endian { ByteOrder::Big } else { ByteOrder::Little },
        }
    }
}

/// Storages of the file in the order in which they are first seen.
#[derive(Debug, Default)]
pub struct Storages {
    by_start: HashMap<u64, u64>,
}

impl Storages {
    /// The number of the storage that begins at `start`. Empty ones share a start with others, so they have no number of
    /// their own, and callers drop it.
    pub fn id(&mut self, start: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let next = self.by_start.len() as u64;
        *self.by_start.entry(start).or_insert(next)
    }
}
