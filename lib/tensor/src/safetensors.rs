//! The safetensors format: a strict reader of headers, and a writer that streams.
//!
//! The reader accepts what the format's definition accepts and nothing else: no holes, no overlaps, no duplicate
//! names, sizes that agree with dtype and shape. The writer puts every tensor at its natural alignment, the data at a
//! multiple of 64 bytes, and the same bytes for the same tensors whatever their order. dtypes that the format lacks
//! (c32, c128, sub-byte integers, f8e3m4 and kin) are stored as parts or packed bytes, and the one metadata key
//! `m2m` says so; it holds aliases of tied tensors as well.

mod read;
mod write;

pub use read::{Entry, Error, Header, MAX_HEADER_BYTES};
pub use write::{ALIGNMENT, Plan, WriteError};

use m2m_record::DType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The one key in `__metadata__` that we write.
pub const METADATA_KEY: &str = "m2m";

/// What the metadata key holds, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notes {
    /// Another name of a tensor in the file: alias to name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
    /// The real type of a tensor that is stored as another.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, NotedType>,
}

/// A dtype and shape that the format cannot state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotedType {
    /// The real element type.
    pub dtype: DType,
    /// The real shape.
    pub shape: Vec<u64>,
}

/// The format's name of a dtype, if it has one.
pub fn format_name(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "BOOL",
        DType::U8 => "U8",
        DType::I8 => "I8",
        DType::U16 => "U16",
        DType::I16 => "I16",
        DType::U32 => "U32",
        DType::I32 => "I32",
        DType::U64 => "U64",
        DType::I64 => "I64",
        DType::F16 => "F16",
        DType::BF16 => "BF16",
        DType::F32 => "F32",
        DType::F64 => "F64",
        DType::C64 => "C64",
        DType::F8E5M2 => "F8_E5M2",
        DType::F8E4M3FN => "F8_E4M3",
        DType::F8E5M2FNUZ => "F8_E5M2FNUZ",
        DType::F8E4M3FNUZ => "F8_E4M3FNUZ",
        DType::F8E8M0FNU => "F8_E8M0",
        _ => return None,
    })
}

/// The dtype of a format name.
fn from_format_name(name: &str) -> Option<DType> {
    DType::ALL.iter().copied().find(|d| format_name(*d) == Some(name))
}

/// How a tensor is stored: its own dtype and shape, or those of its parts or bytes.
fn stored(dtype: DType, shape: &[u64]) -> Option<(DType, Vec<u64>)> {
    let with_pair = |part| Some((part, [shape, &[2]].concat()));
    match dtype {
        d if format_name(d).is_some() => Some((d, shape.to_vec())),
        DType::C128 => with_pair(DType::F64),
        DType::C32 => with_pair(DType::F16),
        d if d.bits() == 8 => Some((DType::U8, shape.to_vec())),
        d => {
            let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
            Some((DType::U8, vec![d.bytes_of(count)?]))
        }
    }
}
