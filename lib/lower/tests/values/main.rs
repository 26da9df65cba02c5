//! Rules of the families that have no file of their own here, against values worked out by hand.

#[path = "../support/mod.rs"]
mod support;

mod check;
mod elementwise;
mod matmul;
mod scatter;
mod solve;
mod view;
