//! The records that frame a stream: `begin`, `tool`, `end`.

use crate::arg::Kwargs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares that a struct is the record of a kind.
macro_rules! body {
    ($($name:ident = $kind:literal),* $(,)?) => {
        $(impl crate::Body for $name {
            const KIND: &'static str = $kind;
        })*
    };
}
pub(crate) use body;

/// Opens a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// [`crate::SCHEMA`].
    pub schema: String,
}

/// The first record that a tool appends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The program's name.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// Options that change the output; never a path.
    #[serde(default, deserialize_with = "crate::tagged::unique")]
    pub options: Kwargs,
    /// Files that it read besides the stream.
    #[serde(default)]
    pub inputs: Vec<ToolInput>,
}

/// A file that a tool read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolInput {
    /// Its name without folders.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of what identifies it; of an archive, its program and its directory.
    pub sha256: String,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every tool did its work.
    Ok,
    /// The last tool answered no; its diagnostics say why.
    Failed,
}

/// Closes a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// How it ended.
    pub status: Status,
    /// Lines before this one. A home-made stage may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// SHA-256 of all bytes before this line, newlines included. A home-made stage may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

body!(Begin = "begin", Tool = "tool", End = "end");
