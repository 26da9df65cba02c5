//! Every field of a file as stored, as one JSON object with the schema's own names.

use super::data_file::FlatTensor;
use super::{DataFile, DataHeader, Header, Stored, schema};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct RawProgram<'s, 'a> {
    file_size: usize,
    file_identifier: &'static str,
    root_offset: u32,
    extended_header: Option<Header>,
    program: &'s schema::Program<'a>,
}

#[derive(Serialize)]
struct RawData<'s, 'a> {
    file_size: usize,
    file_identifier: &'static str,
    root_offset: u32,
    header: DataHeader,
    flat_tensor: &'s FlatTensor<'a>,
}

/// Writes a program's header and tables, whether or not their indices lead anywhere.
///
/// # Errors
/// Those of the writer.
pub fn write(stored: &Stored<'_>, mut out: impl Write) -> io::Result<()> {
    let raw = RawProgram {
        file_size: stored.file.len(),
        file_identifier: "ET12",
        root_offset: stored.root_offset,
        extended_header: stored.header,
        program: &stored.program,
    };
    serde_json::to_writer(&mut out, &raw)?;
    out.write_all(b"\n")
}

/// Writes a data file's header and tables.
///
/// # Errors
/// Those of the writer.
pub fn write_data(data: &DataFile<'_>, mut out: impl Write) -> io::Result<()> {
    let raw = RawData {
        file_size: data.file.len(),
        file_identifier: "FT01",
        root_offset: data.root_offset,
        header: data.header,
        flat_tensor: &data.tables,
    };
    serde_json::to_writer(&mut out, &raw)?;
    out.write_all(b"\n")
}
