//! Lowers the current graph to MLIR: a table of rules for each target.
//!
//! `prepare` comes first (in `m2m_aten`): it leaves only operators that the target's table has. `linalg::emit` then
//! makes one function of the graph, node by node, and records which operations each node became; `torch::emit` does the
//! same in the torch dialect, `lattice::emit` in the sparse one, without MLIR. `stream` is the whole
//! program, from a record stream to a record stream.

pub mod error;
pub mod lattice;
pub mod linalg;
mod packing;
mod projection;
pub mod stream;
pub mod torch;

pub use error::{Error, Refusal};
pub use m2m_aten::PackedFor;
pub use stream::{Options, Outcome, StreamError, Target};
