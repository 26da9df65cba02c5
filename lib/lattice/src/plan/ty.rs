//! Types of a plan's values, and their canonical text.

use crate::schema::{Coord, Family, FeatureLayout, RANK};
use m2m_record::DType;
use std::fmt;

/// What a value of a plan is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// A sparse value: coordinates `[rows, 4]` of `batch, x, y, z`, features `[rows, channels]`, and a row count.
    Sparse {
        /// Element of the features.
        dtype: DType,
    },
    /// A stored tensor, or three of a packed one.
    Weight {
        /// What it is for.
        family: Family,
        /// Element that it stands for.
        dtype: DType,
    },
    /// A dense tensor; `None` is a size known only when it runs.
    Tensor {
        /// Sizes.
        shape: Vec<Option<u64>>,
        /// Element.
        dtype: DType,
    },
}

/// MLIR's names of element types, with the name that records have.
const ELEMENTS: &[(&str, DType)] = &[
    ("i1", DType::Bool),
    ("i4", DType::I4),
    ("i8", DType::I8),
    ("i16", DType::I16),
    ("i32", DType::I32),
    ("i64", DType::I64),
    ("ui8", DType::U8),
    ("ui16", DType::U16),
    ("ui32", DType::U32),
    ("ui64", DType::U64),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("f32", DType::F32),
    ("f64", DType::F64),
    ("f8E4M3", DType::F8E4M3),
    ("f8E3M4", DType::F8E3M4),
    ("f8E4M3FN", DType::F8E4M3FN),
    ("f8E5M2", DType::F8E5M2),
    ("f8E4M3FNUZ", DType::F8E4M3FNUZ),
    ("f8E5M2FNUZ", DType::F8E5M2FNUZ),
    ("f8E4M3B11FNUZ", DType::F8E4M3B11FNUZ),
    ("f8E8M0FNU", DType::F8E8M0FNU),
    ("f4E2M1FN", DType::F4E2M1FN),
];

/// The element that MLIR's name means.
pub fn element(name: &str) -> Option<DType> {
    ELEMENTS.iter().find(|(text, _)| *text == name).map(|(_, dtype)| *dtype)
}

/// MLIR's name of an element.
pub fn element_name(dtype: DType) -> &'static str {
    ELEMENTS.iter().find(|(_, each)| *each == dtype).map_or("none", |(text, _)| *text)
}

impl ValueType {
    /// Reads the canonical text of a type.
    pub fn parse(text: &str) -> Option<ValueType> {
        if let Some(rest) = text.strip_prefix("!lattice.sparse_tensor<") {
            let dtype = rest.strip_prefix(&sparse_head())?.strip_suffix('>')?;
            return Some(ValueType::Sparse { dtype: element(dtype)? });
        }
        if let Some(rest) = text.strip_prefix("!lattice.weight<") {
            let (family, dtype) = rest.strip_suffix('>')?.split_once(", ")?;
            return Some(ValueType::Weight { family: Family::parse(family)?, dtype: element(dtype)? });
        }
        let inside = text.strip_prefix("tensor<")?.strip_suffix('>')?;
        let mut shape = Vec::new();
        let mut rest = inside;
        while let Some((size, tail)) = rest.split_once('x') {
            match size {
                "?" => shape.push(None),
                digits if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                    shape.push(Some(digits.parse().ok()?));
                }
                _ => break,
            }
            rest = tail;
        }
        Some(ValueType::Tensor { shape, dtype: element(rest)? })
    }

    /// The element: of the features, of what a weight stands for, of the tensor.
    pub fn dtype(&self) -> DType {
        match self {
            ValueType::Sparse { dtype } | ValueType::Weight { dtype, .. } | ValueType::Tensor { dtype, .. } => *dtype,
        }
    }

    /// Whether it is a sparse value.
    pub fn is_sparse(&self) -> bool {
        matches!(self, ValueType::Sparse { .. })
    }
}

/// What every sparse type says before its element.
fn sparse_head() -> String {
    let (coord, feature) = (Coord::BatchXyz, FeatureLayout::RowChannel);
    format!("rank = {RANK}, coord = {coord}, feature = {feature}, dtype = ")
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = element_name(self.dtype());
        match self {
            ValueType::Sparse { .. } => write!(f, "!lattice.sparse_tensor<{}{element}>", sparse_head()),
            ValueType::Weight { family, .. } => write!(f, "!lattice.weight<{family}, {element}>"),
            ValueType::Tensor { shape, .. } => {
                f.write_str("tensor<")?;
                for size in shape {
                    match size {
                        Some(size) => write!(f, "{size}x")?,
                        None => f.write_str("?x")?,
                    }
                }
                write!(f, "{element}>")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_comes_back() {
        for text in [
            "!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f16>",
            "!lattice.weight<conv3d, i4>",
            "tensor<?x4xi32>",
            "tensor<f32>",
            "tensor<1x0xbf16>",
        ] {
            assert_eq!(ValueType::parse(text).map(|ty| ty.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "f32", "tensor<*xf32>", "tensor<?x4x>", "!lattice.weight<foo, f32>", "tensor<-1xf32>"] {
            assert_eq!(ValueType::parse(text), None, "{text}");
        }
    }
}
