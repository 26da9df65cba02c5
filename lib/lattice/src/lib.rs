//! The sparse dialect `lattice`, IR version 2.
//!
//! [`schema`] is the one table of the dialect, from which everything else comes. [`text`] and [`bytecode`] read a graph into
//! [`ir`], [`verify`] holds it against every rule, and all of them report [`finding`]s with stable codes, never only the
//! first. [`plan`] is the runtime plan: a model resolved and typed, made from the records that [`emit`] writes. [`bundle`]
//! is all of that for a folder on disk. [`exec`] computes a plan on the CPU.

pub mod build;
pub mod bundle;
pub mod bytecode;
pub mod emit;
pub mod exec;
pub mod finding;
pub mod fuzz;
pub mod ir;
pub mod plan;
pub mod print;
pub mod schema;
pub mod text;
pub mod verify;
