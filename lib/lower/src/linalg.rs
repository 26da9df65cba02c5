//! ATen to linalg on tensors.
//!
//! `table` lists every operator with its rule; `emit` makes a function of the graph, by the `walk` over its nodes and
//! those of the graphs that it calls (`control`); `cx` is what rules work with: values of the graph
//! as MLIR values, shapes over symbols as sizes, and the arithmetic of elements in PyTorch's types (`scalar`).

mod bits;
mod check;
mod complex;
mod control;
mod conv;
mod create;
mod cx;
mod elementwise;
mod emit;
pub(crate) mod entry;
mod index;
mod matmul;
mod opaque;
mod outline;
mod pad;
mod pool;
mod random;
mod reduce;
mod scalar;
mod scan;
mod scatter;
mod solve;
mod sort;
mod spatial;
mod symbols;
mod table;
mod upsample;
mod view;
mod walk;

pub use emit::{Emitted, Failure, Options, WeightBinding, emit};
pub(crate) use walk::{account, stashing};

pub use table::{Family, Row, TABLE, find, list_ops};
