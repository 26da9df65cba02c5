//! Why a bundle cannot be written.

use m2m_tensor::{safetensors, source};
use std::io;
use std::path::PathBuf;

/// Each variant says what was found and what would be right.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream cannot be read, is cut or was edited.
    #[error(transparent)]
    Stream(#[from] m2m_record::Error),
    /// The stream is whole, but not one that a bundle can be made of.
    #[error("{message}")]
    Content {
        /// The line that it is about, where there is one.
        line: Option<u64>,
        /// What was found and what would be right.
        message: String,
    },
    /// The bytes of a tensor cannot be had.
    #[error("{name}: {error}")]
    Tensor {
        /// The argument's or the tensor's name.
        name: String,
        /// Why.
        error: source::Error,
    },
    /// A tensors file cannot be planned or written.
    #[error(transparent)]
    Write(#[from] safetensors::WriteError),
    /// A file of the bundle cannot be written.
    #[error("{}: cannot {action}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The verb.
        action: &'static str,
        /// The system's answer.
        error: io::Error,
    },
    /// The folder cannot be made or put in place.
    #[error(transparent)]
    Folder(#[from] m2m_cli::Error),
    /// A receipt or canonical JSON cannot be made.
    #[error(transparent)]
    Digest(#[from] m2m_digest::Error),
    /// A manifest cannot be read.
    #[error("{0}")]
    Manifest(String),
}

impl Error {
    /// An error about the stream as a whole.
    pub(crate) fn content(message: impl Into<String>) -> Self {
        Error::Content { line: None, message: message.into() }
    }

    /// The line of the stream that the error is about.
    pub fn line(&self) -> Option<u64> {
        match self {
            Error::Stream(error) => error.line(),
            Error::Content { line, .. } => *line,
            _ => None,
        }
    }

    /// Whether the error is about the stream, rather than about a file.
    pub fn is_about_stream(&self) -> bool {
        matches!(self, Error::Stream(_) | Error::Content { .. })
    }
}
