//! What can go wrong before and while a graph is executed.

use m2m_record::DType;
use std::path::PathBuf;

/// How to get libtorch, said wherever it is missing.
pub const HOW: &str = "any PyTorch 2.13 serves, `pip install torch==2.13.0`; it is found in the folder that LIBTORCH names \
                       (site-packages/torch) and beside the active Python";

/// A variant a cause, with the values that explain it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The crate was built where libtorch was not.
    #[error(
        "this program was built without libtorch, so it has no engine torch; build it again with PyTorch 2.13 at hand: {HOW}"
    )]
    NotBuilt,
    /// There is no libtorch on this machine.
    #[error("libtorch is not found; {HOW}")]
    NotFound,
    /// The folder that LIBTORCH names is not libtorch.
    #[error("LIBTORCH={}: no lib/libtorch_cpu.so there; {HOW}", folder.display())]
    NotThere {
        /// The folder.
        folder: PathBuf,
    },
    /// libtorch is of another release.
    #[error("{}: PyTorch {found}; this program needs 2.13: {HOW}", folder.display())]
    Release {
        /// Its folder.
        folder: PathBuf,
        /// Its version.
        found: String,
    },
    /// The system refused to load a library.
    #[error("cannot load {what}: {message}")]
    Load {
        /// The library.
        what: String,
        /// What the loader said.
        message: String,
    },
    /// libtorch refused.
    #[error("{0}")]
    Torch(String),
    /// A dtype that libtorch does not have.
    #[error("libtorch has no dtype {0}")]
    DType(DType),
    /// A node cannot be executed.
    #[error("{node}: {op}: {message}")]
    Node {
        /// Its id.
        node: String,
        /// Its operator.
        op: String,
        /// What is wrong and what would be right.
        message: String,
    },
    /// An input or a piece of state cannot be used.
    #[error("{name}: {message}")]
    Input {
        /// Its key or qualified name.
        name: String,
        /// What was found and what would be right.
        message: String,
    },
    /// A condition of the program does not hold for these inputs.
    #[error("{0}")]
    Guard(String),
    /// Anything else about a value.
    #[error("{0}")]
    Value(String),
}

impl Error {
    /// An [`Error::Value`].
    pub(crate) fn value(message: impl Into<String>) -> Error {
        Error::Value(message.into())
    }
}
