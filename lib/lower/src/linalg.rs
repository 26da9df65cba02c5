//! ATen to linalg on tensors.
//!
//! `table` lists every operator with its rule; `emit` walks the graph; `cx` is what rules work with: values of the graph
//! as MLIR values, shapes over symbols as sizes, and the arithmetic of elements in PyTorch's types (`scalar`).

mod create;
mod cx;
mod elementwise;
mod emit;
mod entry;
mod matmul;
mod scalar;
mod symbols;
mod table;
mod view;

pub use emit::{Emitted, Options, WeightBinding, emit};
pub use table::{Family, Row, TABLE, find};
