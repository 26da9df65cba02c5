//! What can go wrong with digests, lists and folders.

use std::io;
use std::path::{Path, PathBuf};

/// Each variant says where, what was found and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The verb: `open`, `read`, `list`.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A stream could not be read or written.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// An entry of a folder is neither a file nor a folder, so an inventory cannot state it.
    #[error("{}: is {kind}; an inventory holds only regular files", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// `a symbolic link`, `not a regular file`.
        kind: &'static str,
    },
    /// A line of a list is malformed.
    #[error("{message}")]
    List {
        /// The line, counted from 1.
        line: u64,
        /// What was found and what would be right.
        message: String,
    },
    /// A JSON text is malformed.
    #[error("{message}, at column {column}")]
    Json {
        /// The line, counted from 1.
        line: u64,
        /// The byte of the line, counted from 1.
        column: u64,
        /// What was found and what would be right.
        message: String,
    },
    /// A receipt is not one that this version writes.
    #[error("{0}")]
    Receipt(String),
    /// A record stream cannot be sealed.
    #[error("{message}")]
    Seal {
        /// The line, counted from 1.
        line: u64,
        /// What was found and what would be right.
        message: String,
    },
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>, action: &'static str, source: io::Error) -> Self {
        Error::Io { path: path.into(), action, source }
    }

    /// The file or folder that the error is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::Io { path, .. } | Error::NotRegular { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The line of the input that the error is about.
    pub fn line(&self) -> Option<u64> {
        match self {
            Error::List { line, .. } | Error::Json { line, .. } | Error::Seal { line, .. } => Some(*line),
            _ => None,
        }
    }
}
