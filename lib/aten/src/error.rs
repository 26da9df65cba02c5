//! Why an operator's call cannot be understood, typed or decomposed.

use m2m_record::DType;

/// An error about one call of an operator. It names what was found and what would be right; the node is the caller's
/// to name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operator is in no schema table.
    #[error("{op} has no known schema; expected an aten, prims or quantized_decomposed operator with its overload")]
    NoSchema {
        /// The operator.
        op: String,
    },
    /// More positional arguments than the schema has.
    #[error("{op}: {found} positional arguments; its schema has {expected}")]
    TooMany {
        /// The operator.
        op: String,
        /// How many were given.
        found: usize,
        /// How many can be given by position.
        expected: usize,
    },
    /// A keyword that the schema does not have.
    #[error("{op}: no argument is named {name:?}; its schema has {expected}")]
    UnknownKeyword {
        /// The operator.
        op: String,
        /// The keyword.
        name: String,
        /// The names that it has.
        expected: String,
    },
    /// An argument given by position and by keyword.
    #[error("{op}: argument {name:?} is given twice")]
    Twice {
        /// The operator.
        op: String,
        /// The argument.
        name: String,
    },
    /// An argument without a value and without a default.
    #[error("{op}: argument {name:?} is missing and has no default")]
    Missing {
        /// The operator.
        op: String,
        /// The argument.
        name: String,
    },
    /// An argument of another kind than the rule needs.
    #[error("{op}: argument {name:?} is {found}; expected {expected}")]
    Kind {
        /// The operator.
        op: String,
        /// The argument.
        name: String,
        /// What it is.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// Two dtypes that PyTorch does not promote.
    #[error("{a} and {b} have no common dtype; cast one of them first")]
    Promote {
        /// One dtype.
        a: DType,
        /// The other.
        b: DType,
    },
    /// A shape, rank or dtype that an operator does not accept.
    #[error("{op}: {message}")]
    Shape {
        /// The operator.
        op: String,
        /// What was found and what would be right.
        message: String,
    },
    /// A case that no rule handles.
    #[error("{0}")]
    Unsupported(String),
}

impl Error {
    /// A [`Error::Shape`].
    pub fn shape(op: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Shape { op: op.into(), message: message.into() }
    }

    /// A [`Error::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::Unsupported(message.into())
    }
}
