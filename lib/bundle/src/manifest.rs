//! `manifest.json`: how to call the module with the files of the bundle.

use crate::Error;
use m2m_record::{InputRole, ModuleResult, Type};
use serde::{Deserialize, Serialize};

/// The version of the layout, in the field `schema`.
pub const MANIFEST_SCHEMA: &str = "m2m.manifest.v1";

/// What the file says. Written as canonical JSON, so the order of fields here does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// The module.
    pub model: ModelFile,
    /// The file that holds the arguments' data.
    pub weights: WeightsFile,
    /// In the module record's order: those of the function by index, and globals.
    pub arguments: Vec<Argument>,
    /// In the order of the function's results; literals are not results.
    pub results: Vec<ModuleResult>,
    /// Executions to compare with.
    pub examples: Vec<Example>,
}

/// The module's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    /// Its name in the bundle.
    pub file: String,
    /// `linalg`, `tosa`, `torch`, `stablehlo`.
    pub dialect: String,
    /// `generic`, `pretty`, `bytecode`.
    pub form: String,
    /// The function to call, without `@`.
    pub entry: String,
    /// Its size.
    pub bytes: u64,
    /// Its digest.
    pub sha256: String,
}

/// The file of weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsFile {
    /// Its name in the bundle.
    pub file: String,
    /// How many tensors it stores; tied ones count once.
    pub tensors: u64,
    /// Its size.
    pub bytes: u64,
    /// Its digest.
    pub sha256: String,
}

/// One argument of the entry function, or one global of the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Its position; absent for a global.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The module global that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<String>,
    /// The graph value.
    pub value: String,
    /// What it is for.
    pub role: InputRole,
    /// The qualified name, for state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The tensor of the weights file that it takes; absent for what the caller gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
    /// SHA-256 of that tensor's elements, row-major and little-endian.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// One execution: tensors `in_0`, `in_1`, … of one file give `out_0`, `out_1`, … of the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What computed it: `torch`, `mlir`, ….
    pub engine: String,
    /// The file of inputs.
    pub inputs: String,
    /// The stream's names of `in_0`, `in_1`, ….
    pub input_names: Vec<String>,
    /// The file of outputs.
    pub goldens: String,
    /// The stream's names of `out_0`, `out_1`, ….
    pub golden_names: Vec<String>,
}

impl Manifest {
    /// Reads a manifest.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|error| Error::Manifest(format!("not a manifest: {error}")))?;
        if manifest.schema != MANIFEST_SCHEMA {
            let message = format!("manifest schema {:?}; this version reads {MANIFEST_SCHEMA}", manifest.schema);
            return Err(Error::Manifest(message));
        }
        Ok(manifest)
    }
}

/// Canonical JSON and a newline.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    let plain = serde_json::to_vec(value).map_err(|error| Error::Manifest(error.to_string()))?;
    Ok((m2m_digest::canonical_json(&plain)? + "\n").into_bytes())
}
