//! What can go wrong in this crate, one variant a cause.

use crate::context::Message;

/// An error of building, reading, checking or running a module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation could not be made, which happens only when its result types cannot be inferred.
    #[error("operation {name} could not be built{}", listed(messages))]
    Build {
        /// Full name, `linalg.matmul`.
        name: String,
        /// What MLIR said.
        messages: Vec<Message>,
    },
    /// An operation was asked of a value whose type does not allow it.
    #[error("{name}: {expected}; got {found}")]
    Operand {
        /// Full name of the operation.
        name: String,
        /// What would be right.
        expected: String,
        /// The type or number found.
        found: String,
    },
    /// A dtype that MLIR has no element type for.
    #[error("no MLIR element type for dtype {0}")]
    ElementType(String),
    /// A literal that MLIR does not accept for its type.
    #[error("not a valid MLIR attribute: {0}")]
    Attribute(String),
    /// A module was made that MLIR's own verifier refuses.
    #[error("module does not verify{}", listed(.0))]
    Verify(Vec<Message>),
    /// Bytes that are neither MLIR text nor bytecode.
    #[error("module cannot be parsed{}", listed(.0))]
    Parse(Vec<Message>),
    /// A module could not be written as bytecode or text.
    #[error("module cannot be written: {0}")]
    Write(String),
    /// A compilation pass failed.
    #[error("compilation failed in {stage}{}", listed(messages))]
    Pass {
        /// Which part of the pipeline.
        stage: &'static str,
        /// What MLIR said.
        messages: Vec<Message>,
    },
    /// The module cannot be executed as asked.
    #[error("{0}")]
    Execute(String),
}

fn listed(messages: &[Message]) -> String {
    let text: Vec<String> = messages.iter().map(ToString::to_string).collect();
    if text.is_empty() { String::new() } else { format!(": {}", text.join("; ")) }
}
