//! Why a program or data file was refused: one variant a cause, with the values that explain it.

use crate::flatbuffer;
use thiserror::Error;

/// The reasons why a file of ExecuTorch cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are the numbers and names that the message shows")]
pub enum Error {
    /// Another kind of file.
    #[error("is {found}; expected {expected}")]
    Kind { found: &'static str, expected: &'static str },
    /// The right kind of file, but broken.
    #[error("broken {what}: {cause}")]
    Broken { what: &'static str, cause: Box<Error> },
    /// Fewer bytes than the fixed part of the format.
    #[error("byte {at}: extended header: {need} bytes are needed, the file has {file} in all; it is torn")]
    HeaderTruncated { at: u64, need: u64, file: u64 },
    /// The header cannot be that short.
    #[error("byte 12: extended header: a length of {found}; expected at least {least}")]
    HeaderLength { found: u32, least: u32 },
    /// The flatbuffer does not lie inside the file, behind the header.
    #[error(
        "byte {at}: extended header: a flatbuffer of {found} bytes; expected {least} to {file}, the size of the file{}",
        if found > file { ": it is torn" } else { "" }
    )]
    ProgramSize { at: u64, found: u64, least: u64, file: u64 },
    /// Segments do not begin behind the flatbuffer.
    #[error(
        "byte {at}: extended header: segments begin at byte {base}; expected {program}, where the flatbuffer ends, to {file}, where the file ends"
    )]
    SegmentBase { at: u64, base: u64, program: u64, file: u64 },
    /// The file is shorter than its segments.
    #[error(
        "byte {at}: extended header: {size} bytes of segments from byte {base} on, but the file ends at byte {file}: it is torn"
    )]
    SegmentData { at: u64, base: u64, size: u64, file: u64 },
    /// A table is broken.
    #[error(transparent)]
    Flatbuffer(#[from] flatbuffer::Error),
    /// A segment leaves the file.
    #[error(
        "segments[{index}]: {size} bytes at {offset} from byte {base} on leave the file, which ends at byte {file}"
    )]
    Segment { index: usize, offset: u64, size: u64, base: u64, file: u64 },
    /// An index leads nowhere.
    #[error("{place}: index {found}, but there are {count} {what}")]
    Index { place: String, found: i64, count: usize, what: &'static str },
    /// An index leads to something of another kind.
    #[error("{place}: value {index} is of type {found}; expected {expected}")]
    Type { place: String, index: i64, found: &'static str, expected: &'static str },
    /// Something that must be there is not.
    #[error("{place} is missing")]
    Missing { place: String },
    /// A type of a newer schema.
    #[error("{place}: type {tag} is not of the schema that is read here")]
    Unknown { place: String, tag: u8 },
    /// Two methods of one name.
    #[error("execution_plan[{second}] is called {name:?}, as is execution_plan[{first}]")]
    SameName { first: usize, second: usize, name: String },
    /// Constants in two places.
    #[error(
        "constant_buffer has {buffers} buffers and constant_segment {offsets} offsets; expected one of them to be empty"
    )]
    TwoConstants { buffers: usize, offsets: usize },
    /// The ranges of a segment are not in order or leave it.
    #[error("{place}[{index}]: {offset}; expected {least} to {most}")]
    Subsegment { place: &'static str, index: usize, offset: u64, least: u64, most: u64 },
    /// Sizes and the order of dimensions do not fit.
    #[error("{place}: {sizes} sizes and a dim_order of {found:?}; expected a permutation of them")]
    DimOrder { place: String, sizes: usize, found: Vec<u8> },
    /// A tensor is larger than what holds it.
    #[error("{place}: {bytes} bytes at {offset} of {holder}, which has {size}")]
    Extent { place: String, bytes: u64, offset: u64, holder: String, size: u64 },
    /// A size below zero, or more bytes than 64 bits can count.
    #[error("{place}: sizes {sizes:?} make no number of bytes")]
    Sizes { place: String, sizes: Vec<i32> },
    /// No method of that name.
    #[error("no method is called {name:?}; there are {}", known.join(", "))]
    NoMethod { name: String, known: Vec<String> },
}

impl Error {
    /// Says of which kind of file it is.
    pub(super) fn of(self, what: &'static str) -> Self {
        Error::Broken { what, cause: Box::new(self) }
    }
}
