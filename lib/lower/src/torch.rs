//! ATen to the torch dialect of torch-mlir, for those who go on with torch-mlir or with IREE.
//!
//! The prepared graph as it is: one operation a node, in the operator's own name, on value tensors. The dialect is not
//! registered here, so that MLIR checks only the form; operands follow PyTorch's schemas (`args`), types their spelling in
//! torch-mlir (`types`), and `table` lists the operators. Sizes over symbols are arithmetic on `!torch.int`, and on
//! `!torch.float` where floats are among them. Conditions on inputs are asserted as far as their symbols have values.
//! Random operators stay the dialect's, so that their generator is the compiler's that comes after.

mod args;
mod emit;
mod floats;
mod rows;
mod table;
mod types;

pub use emit::emit;
pub use table::{OPERATORS, has};
