//! What can go wrong before, in and after a run.

use std::path::PathBuf;

/// A variant a cause, with the values that explain it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that is read in place cannot be mapped.
    #[error("{}: cannot open: {source}", path.display())]
    Open {
        /// Its path.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file of tensors is not one.
    #[error("{}: {source}", path.display())]
    Safetensors {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        source: m2m_tensor::safetensors::Error,
    },
    /// An npz file is not one.
    #[error("{}: {message}", path.display())]
    Npz {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The stream's golden record is missing or incomplete.
    #[error("{0}")]
    Golden(String),
    /// The stream has no graph that can be executed.
    #[error(transparent)]
    Graph(#[from] m2m_graph::Error),
    /// The graph cannot be executed.
    #[error(transparent)]
    Torch(#[from] m2m_torch::Error),
    /// The bundle's manifest cannot be read.
    #[error("{}: {message}", path.display())]
    Manifest {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The stream has nothing to execute.
    #[error("the stream has no module record; m2m-lower makes one")]
    NoModule,
    /// The module's bytes are not those that the record states.
    #[error("the module has {found_bytes} bytes and sha256 {found}; its record says {bytes} and {stated}")]
    WrongModule {
        /// Size in the record.
        bytes: u64,
        /// Digest in the record.
        stated: String,
        /// Size found.
        found_bytes: usize,
        /// Digest found.
        found: String,
    },
    /// The module is in a dialect that is not compiled here.
    #[error("the module is in dialect {0}; engine mlir compiles linalg")]
    Dialect(String),
    /// The module loads its state from globals that another runtime fills.
    #[error(
        "{0} is bound to a global of the module; engine mlir passes state as arguments (m2m-lower --bind-weights args)"
    )]
    Global(String),
    /// An argument cannot be given a value.
    #[error("{name}: {message}")]
    Argument {
        /// Key of an input, qualified name of state.
        name: String,
        /// What was found and what would be right.
        message: String,
    },
    /// A `--scalar` is not one.
    #[error("--scalar {0:?}: expected KEY=VALUE with a number, true or false")]
    Scalar(String),
    /// The record and the module disagree about the entry.
    #[error("@{entry} has {found} {what}; its module record lists {expected}")]
    Signature {
        /// The function.
        entry: String,
        /// `arguments` or `results`.
        what: &'static str,
        /// How many the function has.
        found: usize,
        /// How many the record has.
        expected: usize,
    },
    /// Compiling or executing failed.
    #[error(transparent)]
    Mlir(#[from] m2m_mlir::Error),
    /// The stream has no plan of a sparse model, or a wrong one.
    #[error(transparent)]
    Plan(#[from] m2m_lattice::plan::Error),
    /// The plan cannot be executed on what is given.
    #[error(transparent)]
    Lattice(#[from] m2m_lattice::exec::Error),
    /// Outputs cannot be written.
    #[error(transparent)]
    Write(#[from] m2m_tensor::safetensors::WriteError),
}
