//! The executor against an independent dense reference, against arithmetic shown in the tests, and on hostile inputs.
//!
//! Features and weights are small whole numbers, whose sums f32 holds exactly in any order: results are compared for
//! equality wherever an operation only adds and multiplies, or ends in one division or root.

#![allow(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

mod algebra;
mod convolutions;
mod dense;
mod hostile;
mod matrices;
mod model;
mod packed;
mod points;
mod pooling;
mod scene;
mod threads;
