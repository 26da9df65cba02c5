//! The sparse dialect `lattice`, IR version 2.
//!
//! [`schema`] is the one table of the dialect, from which everything else comes. [`plan`] is the runtime plan: a model
//! resolved and typed, made from records.

pub mod plan;
pub mod schema;
