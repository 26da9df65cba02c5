//! Programs of torch.export, read from `.pt2` archives without Python.
//!
//! [`Archive`] finds the programs of a mapped file, [`Capture`] opens one and writes it as records. Every layout and schema
//! version from torch 2.4 to 2.13 is read. Weights stay where they are: records point at them. Nothing in a file is
//! executed; what cannot be carried is named in a diagnostic, what cannot be understood is an error that says where.

mod archive;
mod args;
mod capture;
mod enums;
mod error;
mod expr;
mod finder;
mod function;
#[doc(hidden)]
pub mod fuzz;
mod graph;
mod names;
mod notes;
pub mod pickle;
mod place;
mod samples;
mod saved;
pub mod schema;
mod signature;
mod state;
mod tree;
mod types;
mod unread;
mod values;
mod weights;

pub use archive::{Archive, Layout, Program, StateEntries};
pub use capture::{ARCHIVE_ID, Capture, Origin, WEIGHTS_ID};
pub use error::Error;
pub use expr::Error as ExprError;
pub use weights::Weights;
