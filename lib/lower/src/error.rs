//! What can go wrong in a lowering: the answer is no, or the tool itself failed.

/// A node that cannot be lowered, and why. Refusals are collected: one run reports all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The node's id in the graph that was lowered.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// What about it is not covered, with the actual values.
    pub reason: String,
}

/// Why a rule did not produce operations.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rule does not cover this case; becomes a [`Refusal`].
    #[error("{0}")]
    Unsupported(String),
    /// The arguments do not fit the operator's schema.
    #[error("{0}")]
    Bind(#[from] m2m_aten::Error),
    /// The graph contradicts itself.
    #[error("{0}")]
    Graph(String),
    /// MLIR refused an operation that a rule made.
    #[error("{0}")]
    Mlir(#[from] m2m_mlir::Error),
}

impl Error {
    /// Shorthand for [`Error::Unsupported`].
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Error::Unsupported(reason.into())
    }
}

/// Result of a rule's step.
pub type Result<T> = std::result::Result<T, Error>;
