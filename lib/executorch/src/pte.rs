//! Programs (`.pte`) and external data (`.ptd`): the tables as stored, and what they say once every index and range holds.
//!
//! [`Stored`] is the header and the tables, checked as a flatbuffer. [`Program`] adds what the format means: where segments,
//! constants, named data and payloads lie in the file. Nothing is copied out of a segment, and no payload is decoded.

mod check;
mod data_file;
pub mod diff;
mod error;
pub mod extract;
mod header;
mod load;
pub mod payload;
mod program;
pub mod raw;
pub mod records;
pub mod schema;
pub mod view;

use crate::flatbuffer::Buffer;
use crate::kind;
use sha2::{Digest as _, Sha256};

pub use data_file::DataFile;
pub use error::Error;
pub use header::{DataHeader, Header};
pub use load::Blob;
pub use program::{Call, Delegate, Location, Part, Program, Range};

/// The file identifier of programs.
pub const IDENTIFIER: &[u8; 4] = b"ET12";

/// What a program is called in errors.
const KIND: &str = "ExecuTorch program";

/// The header and the tables of a program file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<'a> {
    /// The whole file.
    pub file: &'a [u8],
    /// Where the root table begins.
    pub root_offset: u32,
    /// The extended header, where there is one.
    pub header: Option<Header>,
    /// The tables.
    pub program: schema::Program<'a>,
}

impl<'a> Stored<'a> {
    /// Reads a whole file.
    ///
    /// # Errors
    /// [`Error::Kind`] for another kind of file; otherwise where it is torn or broken.
    pub fn read(file: &'a [u8]) -> Result<Self, Error> {
        if file.get(4..8) != Some(IDENTIFIER) {
            return Err(Error::Kind { found: kind::describe(file), expected: "an ExecuTorch program (.pte)" });
        }
        Self::read_program(file).map_err(|error| error.of(KIND))
    }

    fn read_program(file: &'a [u8]) -> Result<Self, Error> {
        let header = Header::read(file)?;
        let size = header.map_or(file.len(), |header| usize::try_from(header.program_size).unwrap_or(usize::MAX));
        let buffer = Buffer::new(file.get(..size).unwrap_or(file), 0);
        let root = buffer.root("Program", IDENTIFIER)?;
        let root_offset = u32::try_from(root.position()).unwrap_or(u32::MAX);
        let program = <schema::Program<'a> as load::FromTable<'a>>::from_table(&root)?;
        Ok(Stored { file, root_offset, header, program })
    }

    /// Bytes of header and tables: what comes before the segments.
    pub fn program_bytes(&self) -> &'a [u8] {
        let size = self.header.and_then(|header| usize::try_from(header.program_size).ok());
        size.and_then(|size| self.file.get(..size)).unwrap_or(self.file)
    }
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    m2m_record::writer::hex(&Sha256::digest(bytes))
}
