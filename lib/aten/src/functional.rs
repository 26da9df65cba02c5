//! Writes in place become values: who shares memory with whom, and what a write changes.
//!
//! Every tensor of the old graph lives in a storage, seen from its base through steps (a permutation, a slice, …). A
//! write replaces the value of the tensor written to, and by the inverse steps that of the base; every other view of
//! the storage is made anew from the base when it is next used. Memory that PyTorch shares without a schema saying so
//! (dropout in evaluation, `type_as`) is known here too. What cannot be followed is refused, never guessed.

mod alias;
mod step;
mod write;

pub(crate) use alias::{Aliases, shares};
pub(crate) use step::{Step, steps_between};
pub(crate) use write::{batch_norm_writes, functional_name, is_write, written_dtype};
