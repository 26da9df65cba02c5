//! Why a file is no program that can be captured: one variant a cause, naming the entry and what was found.

use thiserror::Error;

use crate::{expr, pickle, schema};

/// The reasons why a capture stops.
#[derive(Debug, Error)]
pub enum Error {
    /// The zip is torn, or not as PyTorch writes it.
    #[error(transparent)]
    Zip(#[from] m2m_zip::Error),
    /// A zip inside the zip, the same.
    #[error("entry {entry:?}: {source}")]
    Inner {
        /// The entry that holds the zip.
        entry: String,
        /// What is wrong with it.
        source: m2m_zip::Error,
    },
    /// A zip without a program in it.
    #[error("no exported program: {found}")]
    NoProgram {
        /// What the archive holds instead.
        found: String,
    },
    /// Several programs, none chosen.
    #[error("the archive holds {} programs, {}; choose one with --program NAME", names.len(), names.join(", "))]
    ManyPrograms {
        /// Their names.
        names: Vec<String>,
    },
    /// A chosen program that is not there.
    #[error("no program {name:?}; the archive holds {}", names.join(", "))]
    UnknownProgram {
        /// What was asked for.
        name: String,
        /// What is there.
        names: Vec<String>,
    },
    /// An entry that the layout promises.
    #[error("entry {entry:?} is missing: {why}")]
    MissingEntry {
        /// Its full name.
        entry: String,
        /// Who needs it.
        why: String,
    },
    /// A small text entry with a value that is not known.
    #[error("entry {entry:?} says {found:?}; {expected} is read")]
    Marker {
        /// The entry.
        entry: String,
        /// Its text.
        found: String,
        /// What is known.
        expected: &'static str,
    },
    /// An entry larger than anything that has to be held in memory.
    #[error("entry {entry:?} has {len} bytes; at most {limit} are read into memory")]
    TooLarge {
        /// The entry.
        entry: String,
        /// Its size.
        len: u64,
        /// The limit.
        limit: u64,
    },
    /// Malformed JSON, or JSON of another shape.
    #[error("entry {entry:?}: {source}")]
    Json {
        /// The entry.
        entry: String,
        /// Where and what.
        source: schema::Error,
    },
    /// A refused pickle.
    #[error("entry {entry:?}: {source}")]
    Pickle {
        /// The entry.
        entry: String,
        /// Where and what.
        source: pickle::Error,
    },
    /// A schema that is too new or too old to be understood.
    #[error("schema version {major}.{minor}; majors {} to {} are read", schema::MAJORS.start(), schema::MAJORS.end())]
    SchemaMajor {
        /// As stated.
        major: i64,
        /// As stated.
        minor: i64,
    },
    /// A tensor whose bytes are not where the archive says.
    #[error("tensor {name:?} in entry {entry:?}: {detail}")]
    Tensor {
        /// Qualified name.
        name: String,
        /// Where it should be.
        entry: String,
        /// What does not fit.
        detail: String,
    },
    /// A graph that cannot be followed.
    #[error("graph {graph}, {place}: {detail}")]
    Graph {
        /// Its id.
        graph: String,
        /// A node, an input or an output.
        place: String,
        /// What was found, and what would be right.
        detail: String,
    },
    /// An expression that cannot be read.
    #[error("graph {graph}, value {value}: expression {text:?}: {source}")]
    Expr {
        /// The graph.
        graph: String,
        /// The value that has it.
        value: String,
        /// The text, cut.
        text: String,
        /// Where and what.
        source: expr::Error,
    },
    /// A calling convention that cannot be read.
    #[error("module_call_graph entry {module:?}: {detail}")]
    Tree {
        /// Qualified name of the module.
        module: String,
        /// What is wrong.
        detail: String,
    },
    /// Sample inputs that are not there, or cannot be written.
    #[error("sample inputs: {0}")]
    Samples(String),
    /// The bytes of a tensor cannot be had.
    #[error("tensor {name:?}: {source}")]
    Data {
        /// Qualified name.
        name: String,
        /// Why.
        source: m2m_tensor::source::Error,
    },
    /// A safetensors file cannot be written.
    #[error(transparent)]
    Safetensors(#[from] m2m_tensor::safetensors::WriteError),
    /// Writing the stream failed.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
}
