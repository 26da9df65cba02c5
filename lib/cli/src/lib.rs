//! What every m2m program does the same way: flags, streams, diagnostics, exit statuses, progress, signals and files that
//! appear whole or not at all.
//!
//! A binary is a page: it hands its `clap` arguments and a body to [`run`], opens its streams with [`Input`] and
//! [`Output`], calls one library function and returns a [`Status`]. This crate knows nothing of models or records.

mod args;
mod error;
mod escape;
mod input;
mod message;
mod output;
mod pages;
mod progress;
mod run;
mod status;
mod temporary;

pub use args::{Common, InputArgs, OutputArgs, RootArgs, WhereArgs};
pub use error::Error;
pub use escape::escape;
pub use input::Input;
pub use message::{AtInput, Colour, Failure, Message, Messages, Severity};
pub use output::{Content, Output};
pub use pages::{Page, write_page};
pub use progress::Progress;
pub use run::{About, command, run};
pub use status::Status;
pub use temporary::{TempDir, TempFile};
