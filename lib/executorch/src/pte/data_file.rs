//! External data (`.ptd`): tensors and blobs by name, for programs whose weights are kept apart.

use super::load::{Element, FromTable, Load, child, children, tables};
use super::program::place;
use super::schema::{DataSegment, ScalarType};
use super::{DataHeader, Error, Range};
use crate::flatbuffer::{Buffer, Field, Table};
use crate::kind;
use serde::Serialize;

/// The file identifier of data files.
const IDENTIFIER: &[u8; 4] = b"FT01";

tables! {
    /// The root of a data file.
    FlatTensor<'a> {
        0 version: u32, 1 segments: Option<Vec<DataSegment>>, 2 named_data: Option<Vec<NamedTensor<'a>>>,
    }
    /// A segment by name, and how a tensor lies in it.
    NamedTensor<'a> { 0 key: Option<&'a str>, 1 segment_index: u32, 2 tensor_layout: Option<TensorLayout> }
    /// How a tensor lies in its bytes.
    TensorLayout { 0 scalar_type: ScalarType, 1 sizes: Option<Vec<i32>>, 2 dim_order: Option<Vec<u8>> }
}

/// A data file whose every index and range has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFile<'a> {
    /// The whole file.
    pub file: &'a [u8],
    /// Where the root table begins.
    pub root_offset: u32,
    /// The header.
    pub header: DataHeader,
    /// The tables.
    pub tables: FlatTensor<'a>,
    segments: Vec<Range>,
}

impl<'a> DataFile<'a> {
    /// Whether the file says that it is one.
    pub fn is_one(file: &[u8]) -> bool {
        file.get(4..8) == Some(IDENTIFIER)
    }

    /// Reads and checks a whole file.
    ///
    /// # Errors
    /// [`Error::Kind`] for another kind of file; otherwise where it is torn or broken.
    pub fn open(file: &'a [u8]) -> Result<Self, Error> {
        if !Self::is_one(file) {
            return Err(Error::Kind { found: kind::describe(file), expected: "an ExecuTorch data file (.ptd)" });
        }
        Self::read(file).map_err(|error| error.of("ExecuTorch data file"))
    }

    fn read(file: &'a [u8]) -> Result<Self, Error> {
        let Some(header) = DataHeader::read(file)? else {
            return Err(Error::Missing { place: "the header FH01 at byte 8".to_owned() });
        };
        let end = header.flatbuffer_offset.saturating_add(header.flatbuffer_size);
        let size = usize::try_from(end).unwrap_or(usize::MAX);
        let buffer = Buffer::new(file.get(..size).unwrap_or(file), 0);
        let root = buffer.root("FlatTensor", IDENTIFIER)?;
        let root_offset = u32::try_from(root.position()).unwrap_or(u32::MAX);
        let tables = FlatTensor::from_table(&root)?;
        let (base, end) = (header.segment_base_offset, header.segment_base_offset + header.segment_data_size);
        let all = tables.segments.iter().flatten().enumerate();
        let segments: Vec<Range> =
            all.map(|(index, it)| place(index, (it.offset, it.size), base, end)).collect::<Result<_, _>>()?;
        for (index, named) in tables.named_data.iter().flatten().enumerate() {
            let found = i64::from(named.segment_index);
            if named.segment_index as usize >= segments.len() {
                let place = format!("named_data[{index}].segment_index");
                return Err(Error::Index { place, found, count: segments.len(), what: "segments" });
            }
            if named.key.is_none() {
                return Err(Error::Missing { place: format!("named_data[{index}].key") });
            }
        }
        Ok(DataFile { file, root_offset, header, tables, segments })
    }

    /// Where the segments lie.
    pub fn segments(&self) -> &[Range] {
        &self.segments
    }

    /// Bytes of header and tables: what comes before the segments.
    pub fn program_bytes(&self) -> &'a [u8] {
        let end = self.header.flatbuffer_offset.saturating_add(self.header.flatbuffer_size);
        self.file.get(..usize::try_from(end).unwrap_or(usize::MAX)).unwrap_or(self.file)
    }
}
