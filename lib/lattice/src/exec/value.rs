//! What values are while a plan runs.
//!
//! Floats of every element type are held as f32, which holds f16 and bf16 exactly, and rounded to their own type by
//! whoever makes them, so that an operation computes in f32 and rounds once.

use super::coords::{Coord, Support, physical};
use half::{bf16, f16};
use m2m_record::DType;
use rayon::prelude::*;
use std::sync::Arc;

/// Most elements of one tensor that this engine makes: 4 GiB of f32. What asks for more is refused, not tried.
pub(super) const MAX_ELEMENTS: usize = 1 << 30;

/// Rows that are shared out to threads at a time.
pub(super) const ROWS: usize = 256;

/// A tensor that a caller gives: row-major and little-endian.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// f32, f16, bf16 or i32.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: &'a [u64],
    /// The elements.
    pub bytes: &'a [u8],
}

/// A tensor that a plan returns: row-major and little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The output's ABI name; of a sparse one with `.coords`, `.features`, `.active` or `.stride` behind it.
    pub name: String,
    /// f32, f16, bf16 or i32.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: Vec<u64>,
    /// The elements.
    pub bytes: Vec<u8>,
}

/// A float tensor.
#[derive(Clone, Debug)]
pub(super) struct Floats {
    /// What its values have been rounded to.
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// A tensor of 32-bit integers.
#[derive(Clone, Debug)]
pub(super) struct Ints {
    pub shape: Vec<usize>,
    pub values: Vec<i32>,
}

/// A sparse value: where its rows are, and what they hold.
#[derive(Clone, Debug)]
pub(super) struct Sparse {
    pub support: Arc<Support>,
    pub features: Arc<Floats>,
}

/// Any value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Floats(Arc<Floats>),
    Ints(Arc<Ints>),
    Sparse(Sparse),
    /// The operation of the plan that binds it.
    Weight(usize),
}

/// The nearest value of an element type, ties to even.
pub(super) fn round(x: f32, dtype: DType) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        DType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

/// Whether the engine computes in an element type.
pub(super) fn is_computed(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// Widens elements, which is exact; `None` for another element type.
pub(super) fn widen(dtype: DType, bytes: &[u8]) -> Option<Vec<f32>> {
    let pairs = || bytes.as_chunks::<2>().0.iter();
    Some(match dtype {
        DType::F32 => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        DType::F16 => pairs().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
        DType::BF16 => pairs().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        _ => return None,
    })
}

/// The product of sizes, if this engine makes a tensor so large.
pub(super) fn elements(shape: &[usize]) -> Result<usize, String> {
    let count = shape.iter().try_fold(1usize, |n, size| n.checked_mul(*size));
    count.filter(|count| *count <= MAX_ELEMENTS).ok_or_else(|| {
        format!("a tensor of {shape:?} has more than {MAX_ELEMENTS} elements, the most that the engine makes")
    })
}

impl Floats {
    /// A matrix, one row at a time in any order, each rounded to its element type.
    pub fn by_rows(
        dtype: DType,
        rows: usize,
        channels: usize,
        fill: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Result<Floats, String> {
        let mut values = vec![0.0f32; elements(&[rows, channels])?];
        if channels > 0 {
            values.par_chunks_mut(channels).with_min_len(ROWS).enumerate().for_each(|(row, out)| {
                fill(row, out);
                if dtype != DType::F32 {
                    out.iter_mut().for_each(|x| *x = round(*x, dtype));
                }
            });
        }
        Ok(Floats { dtype, shape: vec![rows, channels], values })
    }

    /// The same values, rounded to another element type.
    pub fn cast(self: &Arc<Self>, dtype: DType) -> Arc<Floats> {
        // Nothing is lost by calling an f16 an f32.
        let is_exact = dtype == DType::F32 || dtype == self.dtype;
        let values =
            if is_exact { self.values.clone() } else { self.values.iter().map(|x| round(*x, dtype)).collect() };
        if dtype == self.dtype { self.clone() } else { Arc::new(Floats { dtype, shape: self.shape.clone(), values }) }
    }

    /// Rows and channels of a matrix.
    pub fn matrix(&self) -> Result<(usize, usize), String> {
        match self.shape[..] {
            [rows, channels] => Ok((rows, channels)),
            _ => Err(format!("has shape {:?}; expected rows and channels", self.shape)),
        }
    }

    /// A row of a matrix of so many channels.
    pub fn row(&self, row: usize, channels: usize) -> &[f32] {
        self.values.get(row * channels..(row + 1) * channels).unwrap_or_default()
    }

    fn bytes(&self) -> Vec<u8> {
        match self.dtype {
            DType::F16 => self.values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
            DType::BF16 => self.values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
            _ => self.values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

impl Ints {
    /// The only element of a tensor of one.
    pub fn only(&self) -> Result<i32, String> {
        match (&self.shape[..], &self.values[..]) {
            ([1], [value]) => Ok(*value),
            _ => Err(format!("has shape {:?}; expected [1]", self.shape)),
        }
    }
}

impl Sparse {
    /// All rows, those that are not active included.
    pub fn rows(&self) -> usize {
        self.support.coords.len()
    }

    /// Channels of a row.
    pub fn channels(&self) -> usize {
        self.features.shape.get(1).copied().unwrap_or(0)
    }

    /// The features of a row.
    pub fn row(&self, row: usize) -> &[f32] {
        self.features.row(row, self.channels())
    }

    /// Its coordinates times its stride.
    pub fn physical(&self) -> Result<Ints, String> {
        let stride = self.support.stride;
        let rows = self.support.coords.iter().enumerate().map(|(row, coord)| {
            physical(*coord, stride)
                .ok_or_else(|| format!("row {row}: {} times the stride {stride:?} does not fit 32 bits", shown(coord)))
        });
        let rows = rows.collect::<Result<Vec<Coord>, String>>()?;
        Ok(Ints { shape: vec![rows.len(), 4], values: rows.into_iter().flatten().collect() })
    }

    /// Its row count as a tensor.
    pub fn active(&self) -> Ints {
        Ints { shape: vec![1], values: vec![i32::try_from(self.support.active).unwrap_or(i32::MAX)] }
    }
}

/// A coordinate as messages show it.
pub(super) fn shown([batch, x, y, z]: &Coord) -> String {
    format!("coordinate (batch {batch}, x {x}, y {y}, z {z})")
}

impl Value {
    /// What a caller gave, checked to be a whole tensor.
    pub fn of(given: &Given<'_>) -> Result<Value, String> {
        let shape = given.shape.iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect::<Vec<_>>();
        let count = elements(&shape)?;
        let expected = given.dtype.size().and_then(|size| count.checked_mul(usize::try_from(size).ok()?));
        if expected != Some(given.bytes.len()) {
            return Err(format!("{} {shape:?} has {} bytes", given.dtype, given.bytes.len()));
        }
        if let Some(values) = widen(given.dtype, given.bytes) {
            return Ok(Value::Floats(Arc::new(Floats { dtype: given.dtype, shape, values })));
        }
        if given.dtype != DType::I32 {
            return Err(format!("is {}; the engine lattice takes f32, f16, bf16 and i32", given.dtype));
        }
        let values = given.bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
        Ok(Value::Ints(Arc::new(Ints { shape, values })))
    }

    /// The tensors that a caller gets of it.
    pub fn returned(&self, name: &str) -> Result<Vec<Returned>, String> {
        let ints = |name: String, ints: &Ints| Returned {
            name,
            dtype: DType::I32,
            shape: ints.shape.iter().map(|n| *n as u64).collect(),
            bytes: ints.values.iter().flat_map(|n| n.to_le_bytes()).collect(),
        };
        let floats = |name: String, floats: &Floats| Returned {
            name,
            dtype: floats.dtype,
            shape: floats.shape.iter().map(|n| *n as u64).collect(),
            bytes: floats.bytes(),
        };
        Ok(match self {
            Value::Floats(tensor) => vec![floats(name.to_owned(), tensor)],
            Value::Ints(tensor) => vec![ints(name.to_owned(), tensor)],
            Value::Sparse(sparse) => {
                let stride = Ints { shape: vec![3], values: sparse.support.stride.to_vec() };
                vec![
                    ints(format!("{name}.coords"), &sparse.physical()?),
                    floats(format!("{name}.features"), &sparse.features),
                    ints(format!("{name}.active"), &sparse.active()),
                    ints(format!("{name}.stride"), &stride),
                ]
            }
            Value::Weight(_) => return Err("is a weight, which cannot be returned".to_owned()),
        })
    }
}
