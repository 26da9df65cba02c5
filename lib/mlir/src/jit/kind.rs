//! The types of an entry's arguments and results, and how their values cross into compiled code and back.

#![allow(unsafe_code)]

use std::ffi::c_void;

use melior::ir::attribute::{StringAttribute, TypeAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::FunctionType;
use melior::ir::{Module, Type};

use crate::error::Error;
use crate::types::{self, DYNAMIC};

/// A tensor type: element type in MLIR's spelling, bytes of an element in memory, dimensions (`DYNAMIC` where unknown).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// `f32`, `i1`, `bf16`, `f8E4M3FN`, ….
    pub element: String,
    /// Bytes of one element; `i1` takes one.
    pub element_bytes: usize,
    /// Dimensions.
    pub dims: Vec<i64>,
}

/// The type of one argument or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A ranked tensor.
    Tensor(Shape),
    /// A scalar; its shape has no dimensions.
    Scalar(Shape),
}

/// A value to call with.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// Row-major contiguous elements, little-endian, at any address.
    Tensor {
        /// The elements.
        data: &'a [u8],
        /// The sizes of the axes.
        dims: &'a [i64],
    },
    /// For integer scalars, `index` and, where it fits, float scalars.
    Int(i64),
    /// For float scalars.
    Float(f64),
    /// For `i1`.
    Bool(bool),
}

/// One result, owned and contiguous; a scalar has no dims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The element type in MLIR's spelling.
    pub element: String,
    /// The sizes of the axes.
    pub dims: Vec<i64>,
    /// Row-major elements.
    pub data: Vec<u8>,
}

/// An argument as compiled code takes it.
pub(super) enum Cell {
    /// A memref descriptor, and the aligned copy it points to if one was needed.
    Descriptor { words: Vec<i64>, _copy: Option<Vec<u64>> },
    /// The bytes of a scalar.
    Scalar([u8; 8]),
}

impl Cell {
    pub(super) fn address(&mut self) -> *mut c_void {
        match self {
            Self::Descriptor { words, .. } => words.as_mut_ptr().cast(),
            Self::Scalar(bytes) => bytes.as_mut_ptr().cast(),
        }
    }

    pub(super) fn is_scalar(&self) -> bool {
        matches!(self, Self::Scalar(_))
    }
}

impl Kind {
    /// The element type, bytes and dimensions.
    pub fn shape(&self) -> &Shape {
        match self {
            Self::Tensor(shape) | Self::Scalar(shape) => shape,
        }
    }

    /// Words of the memref descriptor: allocated and aligned pointer, offset, sizes, strides.
    pub(super) fn descriptor_words(&self) -> usize {
        3 + 2 * self.shape().dims.len()
    }

    pub(super) fn cell(&self, argument: &Argument<'_>) -> Result<Cell, String> {
        match (self, argument) {
            (Self::Tensor(shape), Argument::Tensor { data, dims }) => shape.descriptor(data, dims),
            (Self::Scalar(shape), Argument::Int(value)) => shape.scalar(value.to_le_bytes(), *value as f64, argument),
            (Self::Scalar(shape), Argument::Bool(value)) => {
                shape.scalar(u64::from(*value).to_le_bytes(), f64::from(u8::from(*value)), argument)
            }
            (Self::Scalar(shape), Argument::Float(value)) if shape.element.starts_with('f') => {
                shape.scalar([0; 8], *value, argument)
            }
            (kind, argument) => Err(format!("expected {}; got {argument:?}", kind.shape().shown())),
        }
    }

    /// Copies a result out of compiled code's memory.
    ///
    /// # Safety
    ///
    /// The descriptor must be that of a live buffer of this kind.
    pub(super) unsafe fn read(&self, descriptor: &[i64]) -> Result<Output, Error> {
        let shape = self.shape();
        let rank = shape.dims.len();
        let dims = descriptor[3..3 + rank].to_vec();
        let strides = &descriptor[3 + rank..3 + 2 * rank];
        let total = byte_count(&dims, shape.element_bytes)
            .ok_or_else(|| Error::Execute(format!("a result has the impossible shape {dims:?}")))?;
        let mut data = Vec::with_capacity(total);
        if total > 0 {
            let width = shape.element_bytes;
            let base = (descriptor[1] as *const u8).wrapping_offset(descriptor[2] as isize * width as isize);
            // SAFETY: as the caller promises, the elements that sizes and strides describe are in the buffer.
            unsafe { gather(base, &dims, strides, width, &mut data) };
        }
        Ok(Output { element: shape.element.clone(), dims, data })
    }
}

/// Appends the elements of a strided view, row-major. Recursion is as deep as the rank.
unsafe fn gather(base: *const u8, dims: &[i64], strides: &[i64], width: usize, data: &mut Vec<u8>) {
    let (Some((&extent, dims)), Some((&stride, strides))) = (dims.split_first(), strides.split_first()) else {
        // SAFETY: the base of a view without axes is one element.
        data.extend_from_slice(unsafe { std::slice::from_raw_parts(base, width) });
        return;
    };
    if dims.is_empty() && stride == 1 {
        // SAFETY: a contiguous innermost axis.
        data.extend_from_slice(unsafe { std::slice::from_raw_parts(base, extent as usize * width) });
        return;
    }
    for index in 0..extent {
        let at = base.wrapping_offset((index * stride) as isize * width as isize);
        // SAFETY: one element of the axis, a smaller view.
        unsafe { gather(at, dims, strides, width, data) };
    }
}

fn byte_count(dims: &[i64], element_bytes: usize) -> Option<usize> {
    dims.iter().try_fold(element_bytes, |bytes, &dim| bytes.checked_mul(usize::try_from(dim).ok()?))
}

impl Shape {
    /// `f32 [2, ?]`.
    pub fn shown(&self) -> String {
        let dims: Vec<String> =
            self.dims.iter().map(|&dim| if dim == DYNAMIC { "?".to_owned() } else { dim.to_string() }).collect();
        format!("{} [{}]", self.element, dims.join(", "))
    }

    fn descriptor(&self, data: &[u8], dims: &[i64]) -> Result<Cell, String> {
        let fits = dims.len() == self.dims.len()
            && dims.iter().zip(&self.dims).all(|(&dim, &want)| want == DYNAMIC || dim == want);
        if !fits {
            return Err(format!("expected {}; got shape {dims:?}", self.shown()));
        }
        if byte_count(dims, self.element_bytes) != Some(data.len()) {
            return Err(format!("{} bytes are not {} of shape {dims:?}", data.len(), self.element));
        }
        if self.element == "i1" && data.iter().any(|&byte| byte > 1) {
            return Err("a bool is neither 0 nor 1".to_owned());
        }
        // Compiled code assumes that elements are aligned to their own size.
        let copy = (!data.as_ptr().addr().is_multiple_of(self.element_bytes.min(8))).then(|| aligned(data));
        let address = copy.as_ref().map_or(data.as_ptr(), |copy| copy.as_ptr().cast()).expose_provenance();
        let mut words = vec![address as i64, address as i64, 0];
        words.extend_from_slice(dims);
        let mut strides = vec![1_i64; dims.len()];
        for axis in (1..dims.len()).rev() {
            strides[axis - 1] = strides[axis].checked_mul(dims[axis].max(1)).ok_or("its strides overflow")?;
        }
        words.extend(strides);
        Ok(Cell::Descriptor { words, _copy: copy })
    }

    fn scalar(&self, integer: [u8; 8], float: f64, argument: &Argument<'_>) -> Result<Cell, String> {
        let bytes = match self.element.as_str() {
            "f64" => float.to_le_bytes(),
            "f32" => u64::from((float as f32).to_bits()).to_le_bytes(),
            "i1" if integer[0] > 1 || integer[1..] != [0; 7] => {
                return Err(format!("expected a bool; got {argument:?}"));
            }
            element if element.starts_with('i') => integer,
            element => return Err(format!("scalars of type {element} cannot be passed")),
        };
        Ok(Cell::Scalar(bytes))
    }
}

fn aligned(data: &[u8]) -> Vec<u64> {
    data.chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect()
}

/// The kinds of the entry's arguments and results.
pub(super) fn signature(module: &Module<'_>, entry: &str) -> Result<(Vec<Kind>, Vec<Kind>), Error> {
    let mut found = None;
    crate::module::operations(module, |_, operation| {
        let name = operation.attribute("sym_name").ok().and_then(|name| StringAttribute::try_from(name).ok());
        let is_function = operation.name().as_string_ref().as_str() == Ok("func.func");
        if is_function && name.is_some_and(|name| name.value() == entry) {
            found = operation.attribute("function_type").ok().map(|attribute| kinds(attribute.to_string(), attribute));
        }
    });
    found.unwrap_or_else(|| Err(Error::Execute(format!("the module defines no function @{entry}"))))
}

fn kinds(shown: String, attribute: melior::ir::Attribute<'_>) -> Result<(Vec<Kind>, Vec<Kind>), Error> {
    let function = TypeAttribute::try_from(attribute)
        .ok()
        .and_then(|attribute| FunctionType::try_from(attribute.value()).ok())
        .ok_or_else(|| Error::Execute(format!("not a function type: {shown}")))?;
    let arguments = (0..function.input_count()).filter_map(|index| function.input(index).ok()).map(kind);
    let results = (0..function.result_count()).filter_map(|index| function.result(index).ok()).map(kind);
    Ok((arguments.collect::<Result<_, _>>()?, results.collect::<Result<_, _>>()?))
}

fn kind(r#type: Type<'_>) -> Result<Kind, Error> {
    let element = types::element(r#type).to_string();
    let element_bytes = match element.as_str() {
        "index" => 8,
        "i1" => 1,
        "complex<f16>" => 4,
        "complex<f32>" => 8,
        "complex<f64>" => 16,
        _ => types::bits(r#type)
            .filter(|bits| bits % 8 == 0)
            .map(|bits| bits as usize / 8)
            .ok_or_else(|| Error::Execute(format!("values of type {type} cannot cross into compiled code")))?,
    };
    let shape = Shape { element, element_bytes, dims: types::dims(r#type) };
    Ok(if types::ranked(r#type).is_some() { Kind::Tensor(shape) } else { Kind::Scalar(shape) })
}
