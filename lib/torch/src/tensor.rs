//! Handles of libtorch's tensors.

#![allow(unsafe_code, reason = "a foreign binding; every block says why it is sound")]

use crate::error::Error;
use crate::ffi::{Api, Info};
use m2m_record::DType;
use std::ffi::c_void;
use std::fmt;

/// PyTorch's numbers of dtypes.
const CODES: &[(DType, i32)] = &[
    (DType::U8, 0),
    (DType::I8, 1),
    (DType::I16, 2),
    (DType::I32, 3),
    (DType::I64, 4),
    (DType::F16, 5),
    (DType::F32, 6),
    (DType::F64, 7),
    (DType::C32, 8),
    (DType::C64, 9),
    (DType::C128, 10),
    (DType::Bool, 11),
    (DType::BF16, 15),
    (DType::F8E5M2, 23),
    (DType::F8E4M3FN, 24),
    (DType::F8E5M2FNUZ, 25),
    (DType::F8E4M3FNUZ, 26),
    (DType::U16, 27),
    (DType::U32, 28),
    (DType::U64, 29),
    (DType::U2, 31),
    (DType::U4, 33),
    (DType::I2, 38),
    (DType::I4, 40),
    (DType::F8E8M0FNU, 44),
];

/// PyTorch's number of a dtype.
pub fn code(dtype: DType) -> Result<i32, Error> {
    CODES.iter().find(|(known, _)| *known == dtype).map(|(_, code)| *code).ok_or(Error::DType(dtype))
}

/// A tensor. Cloning makes another handle of the same tensor: a write through one shows in the other.
pub struct Tensor {
    raw: *mut c_void,
    api: &'static Api,
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own.
        unsafe { (self.api.tensor_free)(self.raw) }
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        // SAFETY: the handle is valid; the new one is owned by the new value.
        Tensor { raw: unsafe { (self.api.tensor_clone)(self.raw) }, api: self.api }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.dtype(), self.shape()) {
            (Ok(dtype), Ok(shape)) => write!(f, "{dtype} {shape:?}"),
            _ => f.write_str("a tensor"),
        }
    }
}

impl Tensor {
    /// Takes over a handle that the shim returned; an error for null.
    pub(crate) fn owned(raw: *mut c_void, api: &'static Api) -> Result<Tensor, Error> {
        if raw.is_null() { Err(api.failure()) } else { Ok(Tensor { raw, api }) }
    }

    pub(crate) fn raw(&self) -> *const c_void {
        self.raw
    }

    /// A tensor over memory that it does not own.
    ///
    /// # Safety
    /// From `data` on there must be memory for all elements, readable and writable, at the dtype's alignment, for as
    /// long as any handle of the tensor or of a view of it lives.
    pub(crate) unsafe fn over(
        api: &'static Api,
        data: *mut u8,
        dtype: DType,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Tensor, Error> {
        if shape.len() != strides.len() {
            return Err(Error::value(format!("shape {shape:?} with strides {strides:?}")));
        }
        let code = code(dtype)?;
        // SAFETY: the caller vouches for the memory; the slices are as long as stated.
        Tensor::owned(
            unsafe { (api.tensor_over)(data.cast(), code, shape.len(), shape.as_ptr(), strides.as_ptr()) },
            api,
        )
    }

    /// A new tensor with these row-major little-endian elements.
    pub(crate) fn copied(api: &'static Api, dtype: DType, shape: &[i64], bytes: &[u8]) -> Result<Tensor, Error> {
        if m2m_tensor::layout::bytes(dtype, shape) != Some(bytes.len() as u64) {
            return Err(Error::value(format!("{} bytes for {dtype} {shape:?}", bytes.len())));
        }
        let code = code(dtype)?;
        // SAFETY: the slice is as long as stated.
        let tensor = Tensor::owned(unsafe { (api.tensor_empty)(code, shape.len(), shape.as_ptr()) }, api)?;
        let info = tensor.info()?;
        if !bytes.is_empty() {
            // SAFETY: the new tensor has as many bytes, at a place that nothing else knows yet.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), info.data.cast_mut().cast::<u8>(), bytes.len()) };
        }
        Ok(tensor)
    }

    pub(crate) fn info(&self) -> Result<Info, Error> {
        let mut info = std::mem::MaybeUninit::uninit();
        // SAFETY: the handle is valid, and the function fills the struct unless it fails.
        unsafe {
            if (self.api.tensor_info)(self.raw, info.as_mut_ptr()) != 0 {
                return Err(self.api.failure());
            }
            Ok(info.assume_init())
        }
    }

    /// Element type.
    pub fn dtype(&self) -> Result<DType, Error> {
        let code = self.info()?.dtype;
        let known = CODES.iter().find(|(_, known)| *known == code);
        known
            .map(|(dtype, _)| *dtype)
            .ok_or_else(|| Error::value(format!("a dtype of number {code}, which records lack")))
    }

    /// Sizes.
    pub fn shape(&self) -> Result<Vec<i64>, Error> {
        let info = self.info()?;
        if info.rank == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the sizes are the tensor's own and stay while it is not resized, which nothing does meanwhile.
        Ok(unsafe { std::slice::from_raw_parts(info.sizes, info.rank) }.to_vec())
    }

    /// How often it, or what it is a view of, was written in place.
    pub fn version(&self) -> Result<i64, Error> {
        Ok(self.info()?.version)
    }

    /// The range of addresses from the first to behind the last element; none when it has no elements of its own.
    pub(crate) fn range(&self) -> Result<Option<(usize, usize)>, Error> {
        let info = self.info()?;
        if info.is_dense == 0 || info.count == 0 {
            return Ok(None);
        }
        let shape = self.shape()?;
        // SAFETY: as for the sizes.
        let strides = if info.rank == 0 { &[] } else { unsafe { std::slice::from_raw_parts(info.strides, info.rank) } };
        let span = m2m_tensor::layout::span(&shape, strides).and_then(|n| self.dtype().ok()?.bytes_of(n));
        Ok(span.map(|bytes| (info.data as usize, info.data as usize + bytes as usize)))
    }

    /// The elements row-major and little-endian.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        // SAFETY: the handle is valid.
        let plain = Tensor::owned(unsafe { (self.api.tensor_plain)(self.raw) }, self.api)?;
        let info = plain.info()?;
        let bytes = m2m_tensor::layout::bytes(plain.dtype()?, &plain.shape()?);
        let length =
            bytes.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| Error::value("a tensor that is too large"))?;
        if length == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: a contiguous tensor on the CPU has so many bytes from its first element on.
        Ok(unsafe { std::slice::from_raw_parts(info.data.cast::<u8>(), length) }.to_vec())
    }
}
