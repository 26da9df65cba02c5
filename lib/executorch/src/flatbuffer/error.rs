//! Why a flatbuffer was refused: one cause, with the byte, the table and the field where it shows.

use thiserror::Error;

/// What is wrong, and where. Offsets are counted from the first byte of the file, not of the buffer inside it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {at}: {table}{}{field}: {cause}", if field.is_empty() { "" } else { "." })]
pub struct Error {
    /// Offset in the file of what could not be read.
    pub at: u64,
    /// The table being read.
    pub table: &'static str,
    /// The field being read; empty for the table itself.
    pub field: &'static str,
    /// What is wrong there.
    pub cause: Cause,
}

/// The ways in which a flatbuffer can be broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// The bytes to be read lie, wholly or in part, behind the end.
    #[error("{need} bytes are needed, the flatbuffer ends at byte {end}")]
    Truncated {
        /// How many bytes.
        need: u64,
        /// End of the buffer, as an offset in the file.
        end: u64,
    },
    /// The four bytes that name the format are others.
    #[error("file identifier {found:?}; expected {expected:?}")]
    Identifier {
        /// As found, lossily decoded.
        found: String,
        /// As it must be.
        expected: String,
    },
    /// The size before a size-prefixed buffer is not that of what follows.
    #[error("the size prefix says {stated} bytes, {found} bytes follow")]
    SizePrefix {
        /// As stated.
        stated: u64,
        /// As found.
        found: u64,
    },
    /// An offset of zero, or one that leaves the buffer.
    #[error("offset {offset} leads out of the flatbuffer, which ends at byte {end}")]
    Offset {
        /// As stored.
        offset: i64,
        /// End of the buffer, as an offset in the file.
        end: u64,
    },
    /// A vtable has an impossible size.
    #[error("a vtable of {len} bytes; expected an even number of at least 4")]
    VtableSize {
        /// As stored.
        len: u16,
    },
    /// A table is smaller than its own head.
    #[error("a table of {len} bytes; expected at least 4")]
    TableSize {
        /// As stored.
        len: u16,
    },
    /// A field lies outside its table.
    #[error("{size} bytes at {offset} of a table of {len} bytes")]
    Outside {
        /// Position in the table.
        offset: u16,
        /// Size of the field.
        size: usize,
        /// Size of the table.
        len: u16,
    },
    /// A vector is longer than what is left.
    #[error("{count} elements of {size} bytes, but {left} bytes are left")]
    Vector {
        /// Number of elements.
        count: u32,
        /// Size of one.
        size: usize,
        /// Bytes from the first element to the end of the buffer.
        left: u64,
    },
    /// A string is not followed by a zero byte.
    #[error("a string of {len} bytes is not followed by a zero byte")]
    Unterminated {
        /// Its length.
        len: u32,
    },
    /// A string is not UTF-8.
    #[error("a string of {len} bytes is not UTF-8 from its byte {valid} on")]
    Utf8 {
        /// Its length.
        len: u32,
        /// How much of it is right.
        valid: usize,
    },
    /// A union has a type without a value, or a value without a type.
    #[error("a union of type {tag} {}", if *.is_set { "with a value; type 0 has none" } else { "without its value" })]
    Union {
        /// The type as stored.
        tag: u8,
        /// Whether there is a value.
        is_set: bool,
    },
    /// Something that the format requires is not there.
    #[error("is missing")]
    Missing,
    /// Tables inside tables, too deep.
    #[error("tables inside tables, {limit} deep")]
    Depth {
        /// The limit.
        limit: u8,
    },
    /// Many offsets lead to the same bytes, so that reading them all would take far longer than the file is.
    #[error("{limit} bytes read out of a flatbuffer of {len}: too many offsets lead to the same place")]
    Work {
        /// The limit.
        limit: u64,
        /// Size of the buffer.
        len: u64,
    },
}
