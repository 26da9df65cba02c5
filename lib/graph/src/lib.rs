//! Graphs in memory: collected from a stream, verified, and rewritten into the next stage.
//!
//! `Collector` keeps the bytes of the current graph while a stream passes and parses them at the end; `Program` is what
//! it gives. `Rewriter` derives a graph of a new stage and accounts for every node and input of the old one.

mod collect;
mod graph;
mod place;
mod prune;
mod rewrite;
mod verify;

pub use collect::{Collector, Error, Program};
pub use graph::Graph;
pub use place::Places;
pub use rewrite::{Accounting, Emit, Rewriter};
pub use verify::{Fault, verify};
