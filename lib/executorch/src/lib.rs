//! Readers of ExecuTorch's files: programs (`.pte`) and their external data (`.ptd`).
//!
//! Every byte is foreign: all offsets, lengths and indices are checked, nothing is copied that can be borrowed, and an error
//! names the byte, the table and the field. What a delegate's payload means is left to whoever takes the payload.

pub mod flatbuffer;
#[doc(hidden)]
pub mod fuzz;
pub mod kind;
pub mod pte;
