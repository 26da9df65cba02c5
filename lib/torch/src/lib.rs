//! Executes graphs with libtorch.
//!
//! A small C++ shim over PyTorch's dispatcher (`cpp/shim.cpp`) calls any operator by name and overload with values from
//! records; there is no table of operators, only definitions of those that PyTorch has in Python alone (`defined`). The
//! shim is a shared library inside this crate's own bytes, opened from memory after libtorch when the engine is first
//! started: a program that uses this crate does not link libtorch, starts without it, and needs no file beside itself.
//!
//! libtorch is the folder that `LIBTORCH` names, else the one that the crate was built with, else the active Python's
//! `site-packages/torch`, found without importing it. Any PyTorch 2.13 serves. Where there was none at build time, the
//! crate builds all the same and [`Engine::start`] says so.
//!
//! Tensors are handles of the shim's, not of the crate tch: a tensor here needs seven functions (make it over memory,
//! make it empty, describe it, copy its handle, free it, make it row-major, and everything else by name through the
//! dispatcher), while tch links libtorch into the program, which has to start without it, compiles for a minute and a
//! half, and lacks u16, u32, u64 and f8e8m0fnu.

mod body;
mod defined;
mod engine;
mod error;
mod ffi;
mod find;
mod functional;
mod program;
pub mod random;
mod region;
mod session;
mod state;
mod symbolic;
mod symbols;
mod tensor;
mod value;

pub use engine::{Engine, Operator, Scratch};
pub use error::Error;
pub use ffi::present;
pub use program::Watch;
pub use session::{Given, Outcome, Output, Session, run};
pub use state::Supply;
pub use tensor::Tensor;
pub use value::Value;
