//! Where a tensor's bytes are: in a safetensors file, at an offset of any file, in the record, or nowhere.

use crate::number::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most elements that a record may carry itself.
pub const MAX_INLINE: usize = 64;

/// The order of bytes in a number; little unless stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the two orders need no words")]
pub enum ByteOrder {
    #[default]
    Little,
    Big,
}

/// The `data` field of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Fields", into = "Fields")]
#[schemars(with = "Fields")]
pub enum Data {
    /// A tensor of a safetensors file, by name.
    Tensor {
        /// The `file` record's id.
        file: String,
        /// The key in that file.
        tensor: String,
    },
    /// A range of any file.
    Range {
        /// The `file` record's id.
        file: String,
        /// Byte position of the first element.
        offset: u64,
        /// Bytes from the first element to the end of the last one, gaps of a strided view included.
        bytes: u64,
        /// Tensors of one storage alias; equal ranges of it are tied.
        storage: Option<u64>,
        /// In elements, where the bytes are not in row-major order without gaps.
        strides: Option<Vec<i64>>,
        /// Order of the bytes in the file.
        byteorder: ByteOrder,
    },
    /// The elements themselves, row-major, at most [`MAX_INLINE`].
    Inline(Vec<Scalar>),
    /// Every element is this one.
    Splat(Scalar),
    /// The program came without this tensor.
    Missing,
}

/// [`Data`] as it stands in JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    storage: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strides: Option<Vec<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    byteorder: Option<ByteOrder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inline: Option<Vec<Scalar>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    splat: Option<Scalar>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<bool>,
}

impl From<Data> for Fields {
    fn from(data: Data) -> Fields {
        match data {
            Data::Tensor { file, tensor } => Fields { file: Some(file), tensor: Some(tensor), ..Fields::default() },
            Data::Range { file, offset, bytes, storage, strides, byteorder } => Fields {
                file: Some(file),
                offset: Some(offset),
                bytes: Some(bytes),
                storage,
                strides,
                byteorder: (byteorder == ByteOrder::Big).then_some(byteorder),
                ..Fields::default()
            },
            Data::Inline(items) => Fields { inline: Some(items), ..Fields::default() },
            Data::Splat(x) => Fields { splat: Some(x), ..Fields::default() },
            Data::Missing => Fields { missing: Some(true), ..Fields::default() },
        }
    }
}

impl TryFrom<Fields> for Data {
    type Error = String;

    fn try_from(f: Fields) -> Result<Data, String> {
        match f {
            Fields {
                file: Some(file),
                tensor: Some(tensor),
                offset: None,
                bytes: None,
                storage: None,
                strides: None,
                byteorder: None,
                inline: None,
                splat: None,
                missing: None,
            } => Ok(Data::Tensor { file, tensor }),
            Fields {
                file: Some(file),
                tensor: None,
                offset: Some(offset),
                bytes: Some(bytes),
                storage,
                strides,
                byteorder,
                inline: None,
                splat: None,
                missing: None,
            } => Ok(Data::Range { file, offset, bytes, storage, strides, byteorder: byteorder.unwrap_or_default() }),
            Fields {
                file: None,
                tensor: None,
                offset: None,
                bytes: None,
                storage: None,
                strides: None,
                byteorder: None,
                ..
            } => alone(f.inline, f.splat, f.missing),
            _ => Err("data needs file and tensor; or file, offset and bytes; or one of inline, splat, missing".into()),
        }
    }
}

/// The kinds of data that need no file.
fn alone(inline: Option<Vec<Scalar>>, splat: Option<Scalar>, missing: Option<bool>) -> Result<Data, String> {
    match (inline, splat, missing) {
        (Some(items), None, None) if items.len() <= MAX_INLINE => Ok(Data::Inline(items)),
        (Some(items), None, None) => {
            Err(format!("inline data has {} elements; at most {MAX_INLINE} are allowed", items.len()))
        }
        (None, Some(x), None) => Ok(Data::Splat(x)),
        (None, None, Some(true)) => Ok(Data::Missing),
        _ => Err("data needs exactly one of inline, splat, missing:true".into()),
    }
}
