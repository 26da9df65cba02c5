//! ATen to the torch dialect of torch-mlir, for those who go on with torch-mlir or with IREE.
//!
//! The prepared graph as it is: one operation a node, in the operator's own name, on value tensors. The dialect is not
//! registered here, so that MLIR checks only the form; operands follow PyTorch's schemas (`args`), types their spelling in
//! torch-mlir (`types`), and `table` lists the operators. Sizes over symbols are arithmetic on `!torch.int`. Conditions on
//! inputs are not checked: the dialect leaves that to whoever calls.

mod args;
mod emit;
mod table;
mod types;

pub use emit::emit;
pub use table::{OPERATORS, has};
