//! The program JSON as Rust structs: torch's export schema, versions 5.3 to 8.20.
//!
//! Missing and null optional fields are one thing, unknown fields are remembered by name where they carry data, a union is
//! an object with one key, and duplicate keys are refused. Strings are borrowed from the file. The field and key names are
//! the schema's own.

#[macro_use]
mod macros;
mod argument;
mod graph;
mod parse;
mod signature;
mod tensor;
mod text;

pub use argument::{
    Argument, Complex, CustomObjArgument, GraphArgument, OptionalTensor, SymBoolArgument, SymFloatArgument,
    SymIntArgument, TensorArgument,
};
pub use graph::{ExportedProgram, Graph, GraphModule, Metadata, NamedArgument, Node, RangeConstraint, SchemaVersion};
pub use parse::{Error, parse};
pub use signature::{ConstantValue, GraphSignature, InputSpec, ModuleCallEntry, ModuleCallSignature, OutputSpec};
pub use tensor::{Device, Payload, PayloadConfig, SymBool, SymExpr, SymFloat, SymHint, SymInt, TensorMeta};
pub use text::{Ignored, Pairs, Real, Text};

/// The newest schema whose every field and argument kind is known here.
pub const NEWEST: (i64, i64) = (8, 20);

/// The majors that are read.
pub const MAJORS: std::ops::RangeInclusive<i64> = 5..=8;
