//! The record stream, the one contract between the tools.
//!
//! A stream is newline-delimited JSON. This crate holds the structs of every record (`framing`, `graph`, `outcome`, `plan`,
//! `profile`, `pte`, `raw`),
//! the values they are made of (`dtype`, `number`, `types`, `arg`, `data`), the reader and writer that keep the
//! digests of `seal` and `end`, the JSON Schema of all records, and jq predicates over them. It knows nothing about
//! what an operator means and never touches a tensor's bytes.

pub mod arg;
pub mod data;
pub mod dtype;
mod fields;
pub mod framing;
pub mod fuzz;
pub mod graph;
pub mod number;
pub mod outcome;
pub mod pipe;
pub mod plan;
pub mod profile;
pub mod pte;
pub mod raw;
pub mod reader;
pub mod schema;
pub mod select;
mod tagged;
pub mod types;
pub mod writer;

pub use arg::{Arg, Args, Kwargs};
pub use data::{ByteOrder, Data};
pub use dtype::DType;
pub use framing::{Begin, End, Status, Tool, ToolInput};
pub use graph::{
    Extra, File, Graph, Guard, Input, InputRole, ModuleCall, Node, NodePlace, Output, OutputItem, OutputRole, Pytree,
    Return, Seal, Source, Symbol, Tree, TypedValue,
};
pub use number::{Float, Integer, Scalar};
pub use outcome::{
    Argument, Diagnostic, Elimination, External, Golden, Histogram, Lowered, Module, ModuleResult, Observation,
    Percentile, Severity, Tensor,
};
pub use pipe::Pipe;
pub use plan::{PlanArgument, PlanOp, PlanOutput, PlanWeight};
pub use profile::{DelegateId, Metadata, TimeScale};
pub use reader::{Error, Line, Reader};
pub use types::{Dim, ScalarKind, TensorType, Type};
pub use writer::Writer;

/// The version that `begin` states; a reader refuses every other.
pub const SCHEMA: &str = "m2m.stream.v1";

/// A record: a struct with a declared field order and the word that its `record` field holds.
pub trait Body: serde::Serialize + serde::de::DeserializeOwned {
    /// The value of the `record` field.
    const KIND: &'static str;
}
