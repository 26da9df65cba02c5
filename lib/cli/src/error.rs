//! What can go wrong with streams and files.

use std::io;
use std::path::{Path, PathBuf};

/// Each variant names the file and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be opened, read, written, or renamed.
    #[error("{}: cannot {action}: {source}", path.display())]
    File {
        /// The path as given.
        path: PathBuf,
        /// The verb: `open`, `read`, `write`, `rename`, …
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Standard input or output failed.
    #[error("cannot {action}: {source}")]
    Stream {
        /// What was being done: `write to stdout`, …
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A folder was given where a file is read.
    #[error("{}: is a folder; give a file", .0.display())]
    IsFolder(PathBuf),
    /// The output would replace what is being read.
    #[error("{}: is also an input; write to another file", .0.display())]
    OutputIsInput(PathBuf),
    /// Binary output would go to a terminal.
    #[error("stdout is a terminal and the output is binary; use -o FILE or a pipe")]
    BinaryOnTerminal,
    /// A folder that must be made is already there with content.
    #[error("{}: exists and is not an empty folder; use --force to replace it", .0.display())]
    NotEmpty(PathBuf),
    /// A folder that has no name of its own cannot be put in place by a rename.
    #[error("{}: cannot be replaced as a whole; name a folder inside it", .0.display())]
    Nameless(PathBuf),
}

impl Error {
    /// Wraps a system error about `path`.
    pub fn file(path: impl Into<PathBuf>, action: &'static str, source: io::Error) -> Self {
        Error::File { path: path.into(), action, source }
    }

    /// The file or folder that the error is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::File { path, .. }
            | Error::IsFolder(path)
            | Error::OutputIsInput(path)
            | Error::NotEmpty(path)
            | Error::Nameless(path) => Some(path),
            Error::Stream { .. } | Error::BinaryOnTerminal => None,
        }
    }
}
