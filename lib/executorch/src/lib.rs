//! Readers of ExecuTorch's files: programs (`.pte`) and their external data (`.ptd`), event dumps and export records.
//!
//! `pte` is programs; `etdump` and `etrecord` are what a runtime measured and what the export remembers, `capture` joins the
//! two, and `view` is what there is to look at.
//!
//! Every byte is foreign: all offsets, lengths and indices are checked, nothing is copied that can be borrowed, and an error
//! names the byte, the table and the field. What a delegate's payload means is left to whoever takes the payload.

pub mod capture;
pub mod etdump;
pub mod etrecord;
pub mod flatbuffer;
#[doc(hidden)]
pub mod fuzz;
pub mod kind;
pub mod pte;
pub mod view;
