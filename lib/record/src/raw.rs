//! The records of files as they are stored, every field of them: for who must see what a reader saw.

use crate::framing::body;
use crate::number::{Float, Integer};
use crate::profile::Metadata;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One run of an event dump as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its position in the dump.
    pub run: u64,
    /// Its name.
    pub name: Option<String>,
    /// The bundled input that was run.
    pub bundled_input_index: i32,
    /// Names of allocators; null where they are not stored.
    pub allocators: Option<Vec<Option<String>>>,
    /// How many events follow; null where they are not stored.
    pub events: Option<u64>,
}

/// One event of an event dump as stored: a profile event, an allocation or a debug event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct RawEvent {
    /// Position of its run.
    pub run: u64,
    /// Its position in the run.
    pub position: u64,
    /// Set for a measured scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_event: Option<RawProfile>,
    /// Set for an allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_event: Option<RawAllocation>,
    /// Set for a logged value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug_event: Option<RawDebug>,
}

/// A measured scope as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the schema's own field names")]
pub struct RawProfile {
    pub name: Option<String>,
    pub chain_index: i32,
    pub instruction_id: i32,
    pub delegate_debug_id_int: i32,
    pub delegate_debug_id_str: Option<String>,
    pub delegate_debug_metadata: Option<Metadata>,
    pub start_time: Integer,
    pub end_time: Integer,
}

/// An allocation as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the schema's own field names")]
pub struct RawAllocation {
    pub allocator_id: i32,
    pub allocation_size: Integer,
}

/// A logged value as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the schema's own field names")]
pub struct RawDebug {
    pub name: Option<String>,
    pub chain_index: Integer,
    pub instruction_id: i32,
    pub delegate_debug_id_int: i32,
    pub delegate_debug_id_str: Option<String>,
    pub debug_entry: Option<RawValue>,
}

/// The value of a debug event as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the schema's own field names")]
pub struct RawValue {
    pub val: String,
    pub tensor: Option<RawTensor>,
    pub tensor_list: Option<Vec<RawTensor>>,
    pub int_value: Option<Integer>,
    pub float_value: Option<Float>,
    pub double_value: Option<Float>,
    pub bool_value: Option<bool>,
    pub output: Option<bool>,
}

/// A tensor of a debug event as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the schema's own field names")]
pub struct RawTensor {
    pub scalar_type: String,
    pub sizes: Vec<Integer>,
    pub strides: Vec<Integer>,
    pub offset: Integer,
}

/// One entry of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Compression method: 0 stored, 8 deflated.
    pub compress_type: u16,
    /// Unpacked size.
    pub bytes: u64,
    /// CRC-32 of the unpacked data, in hexadecimal.
    pub crc32: String,
    /// SHA-256 of the unpacked data.
    pub sha256: String,
}

body!(Run = "run", RawEvent = "raw_event", Entry = "entry");
