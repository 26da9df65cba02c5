//! Why a plan cannot be run on what it was given.

/// An error, which names the argument or the operation, and inside it the tensor and the row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What the caller gives does not fit the plan.
    #[error("{name}: {message}")]
    Argument {
        /// The argument's ABI name.
        name: String,
        /// What was found and what would be right.
        message: String,
    },
    /// An operation cannot be computed.
    #[error("{name}{}: {message}", loc.as_ref().map(|loc| format!(" at {loc}")).unwrap_or_default())]
    Operation {
        /// With the namespace.
        name: String,
        /// `line:column` of the graph's text.
        loc: Option<String>,
        /// What was found and what would be right.
        message: String,
    },
    /// An output cannot be returned.
    #[error("{name}: {message}")]
    Output {
        /// The output's ABI name.
        name: String,
        /// What was found.
        message: String,
    },
    /// A file of weights cannot be read.
    #[error("{0}")]
    File(String),
    /// The threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
}
