//! What a tensor is, apart from any model: its shape over symbols, its layout in memory, and the files it lives in.
//!
//! `expr` defines the canonical text of symbolic expressions, `layout` the arithmetic of shapes and strides, `map`
//! memory-mapped files, `safetensors` the format's reader and streaming writer, `source` the bytes behind a record's
//! `data`. Nothing here knows an operator or copies a tensor that it need not copy.

pub mod expr;
pub mod fuzz;
pub mod layout;
pub mod map;
pub mod safetensors;
pub mod source;

pub use expr::Expr;
pub use map::MappedFile;
