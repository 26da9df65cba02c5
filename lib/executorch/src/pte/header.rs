//! The extended header: what a program file, or a data file, says of its own parts before the flatbuffer tells anything.

use super::Error;
use super::load::exact;
use serde::Serialize;

/// Where the header lies: behind root offset and file identifier.
const AT: usize = 8;

/// The header of a program file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Header {
    /// Bytes of the header itself: 24 of the first version, 32 since.
    pub length: u32,
    /// Bytes of the flatbuffer, this header included.
    #[serde(serialize_with = "exact")]
    pub program_size: u64,
    /// Where the first segment begins; 0 for none.
    #[serde(serialize_with = "exact")]
    pub segment_base_offset: u64,
    /// Bytes from there to the end of the last segment; 0 where the first version does not say.
    #[serde(serialize_with = "exact")]
    pub segment_data_size: u64,
}

const PROGRAM_MAGIC: &[u8; 4] = b"eh00";
const PROGRAM_LENGTH_MIN: u32 = 24;

impl Header {
    /// Reads it; `None` for a file that is all flatbuffer.
    ///
    /// # Errors
    /// When its parts do not lie in the file in their order.
    pub(super) fn read(file: &[u8]) -> Result<Option<Self>, Error> {
        if file.get(AT..AT + 4) != Some(PROGRAM_MAGIC) {
            return Ok(None);
        }
        let length = u32_at(file, AT + 4)?;
        if length < PROGRAM_LENGTH_MIN {
            return Err(Error::HeaderLength { found: length, least: PROGRAM_LENGTH_MIN });
        }
        let sized = length > PROGRAM_LENGTH_MIN;
        let header = Header {
            length,
            program_size: u64_at(file, AT + 8)?,
            segment_base_offset: u64_at(file, AT + 16)?,
            segment_data_size: if sized { u64_at(file, AT + 24)? } else { 0 },
        };
        header.check(file.len() as u64).map(Some)
    }

    fn check(self, file: u64) -> Result<Self, Error> {
        let least = u64::from(self.length) + AT as u64;
        if self.program_size < least || self.program_size > file {
            return Err(Error::ProgramSize { at: AT as u64 + 8, found: self.program_size, least, file });
        }
        let (base, size) = (self.segment_base_offset, self.segment_data_size);
        if base == 0 {
            return if size == 0 {
                Ok(self)
            } else {
                Err(Error::SegmentBase { at: AT as u64 + 16, base, program: self.program_size, file })
            };
        }
        if base < self.program_size || base > file {
            return Err(Error::SegmentBase { at: AT as u64 + 16, base, program: self.program_size, file });
        }
        match base.checked_add(size) {
            Some(end) if end <= file => Ok(self),
            _ => Err(Error::SegmentData { at: AT as u64 + 24, base, size, file }),
        }
    }
}

/// The header of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DataHeader {
    /// Bytes of the header itself.
    pub length: u32,
    /// Where the flatbuffer begins.
    #[serde(serialize_with = "exact")]
    pub flatbuffer_offset: u64,
    /// Bytes of the flatbuffer.
    #[serde(serialize_with = "exact")]
    pub flatbuffer_size: u64,
    /// Where the first segment begins.
    #[serde(serialize_with = "exact")]
    pub segment_base_offset: u64,
    /// Bytes from there to the end of the last segment.
    #[serde(serialize_with = "exact")]
    pub segment_data_size: u64,
}

const DATA_MAGIC: &[u8; 4] = b"FH01";
const DATA_LENGTH_MIN: u32 = 40;

impl DataHeader {
    /// Reads it; `None` where there is none.
    ///
    /// # Errors
    /// When its parts do not lie in the file in their order.
    pub(super) fn read(file: &[u8]) -> Result<Option<Self>, Error> {
        if file.get(AT..AT + 4) != Some(DATA_MAGIC) {
            return Ok(None);
        }
        let length = u32_at(file, AT + 4)?;
        if length < DATA_LENGTH_MIN {
            return Err(Error::HeaderLength { found: length, least: DATA_LENGTH_MIN });
        }
        let header = DataHeader {
            length,
            flatbuffer_offset: u64_at(file, AT + 8)?,
            flatbuffer_size: u64_at(file, AT + 16)?,
            segment_base_offset: u64_at(file, AT + 24)?,
            segment_data_size: u64_at(file, AT + 32)?,
        };
        let len = file.len() as u64;
        let program = header.flatbuffer_offset.checked_add(header.flatbuffer_size).filter(|end| *end <= len);
        let Some(program) = program else {
            return Err(Error::ProgramSize { at: AT as u64 + 16, found: header.flatbuffer_size, least: 0, file: len });
        };
        let (base, size) = (header.segment_base_offset, header.segment_data_size);
        if base < program || base > len {
            return Err(Error::SegmentBase { at: AT as u64 + 24, base, program, file: len });
        }
        match base.checked_add(size) {
            Some(end) if end <= len => Ok(Some(header)),
            _ => Err(Error::SegmentData { at: AT as u64 + 32, base, size, file: len }),
        }
    }
}

fn u32_at(file: &[u8], at: usize) -> Result<u32, Error> {
    array(file, at).map(u32::from_le_bytes)
}

fn u64_at(file: &[u8], at: usize) -> Result<u64, Error> {
    array(file, at).map(u64::from_le_bytes)
}

fn array<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N], Error> {
    let found = file.get(at..).and_then(|rest| rest.first_chunk::<N>());
    found.copied().ok_or(Error::HeaderTruncated { at: at as u64, need: N as u64, file: file.len() as u64 })
}
