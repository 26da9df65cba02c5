//! Bundles: one folder with all that is needed to consume, check and reproduce a lowered model.
//!
//! | file | content |
//! |---|---|
//! | `model.mlir`, or `model.mlirbc`; `graph.mlir` in the dialect lattice | the module of the stream, byte for byte |
//! | `weights.safetensors` | the data of its arguments, contiguous, tied ones once |
//! | `manifest.json` | which argument takes which tensor, with digests |
//! | `trace.ndjson` | the stream, with the bundle's own records |
//! | `inputs/N.safetensors`, `goldens/N.safetensors` | the executions that the stream names |
//! | `meta.json` | what the model is and which tools made it |
//! | `receipt.json` | size and SHA-256 of every other file |
//!
//! All of it is a function of the stream and of the tensors that it names: the path of a file, which may differ from
//! machine to machine, is replaced in the trace by the file's name. JSON files are canonical and end with a newline.

mod error;
mod example;
mod folder;
mod manifest;
mod meta;
mod module;
mod story;
mod trace;
mod weights;
mod write;

pub use error::Error;
pub use manifest::{Argument, Example, MANIFEST_SCHEMA, Manifest, ModelFile, WeightsFile};
pub use meta::{META_SCHEMA, Meta};
pub use write::{Options, write};

/// A module of the dialect lattice. With the weights beside it, whose names are its storage keys, the folder is what the
/// dialect's contract calls a bundle.
pub const GRAPH_NAME: &str = "graph.mlir";
/// The stream.
pub const TRACE_NAME: &str = "trace.ndjson";
/// The data of the arguments.
pub const WEIGHTS_NAME: &str = "weights.safetensors";
/// Which argument takes which tensor.
pub const MANIFEST_NAME: &str = "manifest.json";
/// What the model is.
pub const META_NAME: &str = "meta.json";
