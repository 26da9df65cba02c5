//! MLIR for the other crates: contexts, an emission layer, printing and, with the feature `jit`, execution.
//!
//! Everything that touches LLVM or MLIR goes through here. The emission half is `emit::Builder`, a thin layer over
//! melior that appends verified-later operations at a current place; the modules it makes are checked with `verify`
//! and written with `print`. Only operations that newer LLVMs still read are offered.

mod context;
mod error;
mod module;

pub mod attr;
pub mod emit;
#[cfg(feature = "jit")]
pub mod jit;
pub mod map;
pub mod types;

pub use context::{Diagnostics, Message, context, open_context};
pub use emit::{Builder, CmpF, CmpI, Iter, Size, Value};
pub use error::Error;
pub use map::{Expr, Map};
pub use melior::Context;
pub use melior::ir::{Attribute, Location, Module, Type};
pub use module::{Form, Locations, new_module, operations, parse, print, verify};
