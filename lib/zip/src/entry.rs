//! One entry: where its data lie, and the checks that its directory record and its local header must pass.
//!
//! The local header is needed only to find the data (its name and extra field come before them). PyTorch writes sizes of
//! zero there and a data descriptor behind the data; Python's zipfile writes the sizes. Either is accepted, a contradiction
//! is not.

use rawzip::{CompressionMethod, ZipFileHeaderRecord, ZipSliceArchive, ZipSliceEntry};

use crate::Error;

/// How an entry's data are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// As they are.
    Stored,
    /// By DEFLATE.
    Deflated,
}

impl Packing {
    /// The compression method's number in an archive.
    pub fn number(self) -> u16 {
        match self {
            Packing::Stored => 0,
            Packing::Deflated => 8,
        }
    }
}

/// Where an entry lies in its archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Full name, with `/` between folders.
    pub name: String,
    /// Offset of the first byte of data, counted from the first byte of the archive.
    pub start: u64,
    /// Size of the data in bytes, as they stand in the archive.
    pub len: u64,
    /// Size of the data in bytes once unpacked; `len` of a stored entry.
    pub unpacked: u64,
    /// How the data are packed.
    pub packing: Packing,
    /// CRC-32 of the unpacked data, as the central directory states it.
    pub crc: u32,
    /// Offset of the local header.
    pub(crate) header: u64,
}

/// What a byte of DEFLATE can become at most; a claim beyond it is a lie.
const MAX_RATIO: u64 = 1032;

/// Size fields of a local header that defer to the ZIP64 extra field.
const IN_ZIP64: u64 = u32::MAX as u64;

/// Reads every record of the central directory, in order.
pub(crate) fn read_all(archive: &ZipSliceArchive<&[u8]>, packed: bool) -> Result<Vec<Entry>, Error> {
    let at = archive.directory_offset();
    let mut entries = Vec::new();
    let mut records = archive.entries();
    loop {
        let number = entries.len();
        let record =
            records.next_entry().map_err(|e| Error::Directory { at, number, detail: e.to_string().to_lowercase() })?;
        let Some(record) = record else { break };
        if entries.len() as u64 == archive.entries_hint() {
            return Err(Error::Count { promised: archive.entries_hint(), found: entries.len() as u64 + 1 });
        }
        entries.push(read(archive, &record, packed)?);
    }
    if entries.len() as u64 != archive.entries_hint() {
        return Err(Error::Count { promised: archive.entries_hint(), found: entries.len() as u64 });
    }
    Ok(entries)
}

fn read(archive: &ZipSliceArchive<&[u8]>, record: &ZipFileHeaderRecord<'_>, packed: bool) -> Result<Entry, Error> {
    let name = safe_name(record.file_path().as_bytes())?;
    let packing = check_record(&name, record, packed)?;
    let (header, len) = (record.local_header_offset(), record.compressed_size_hint());
    let directory = archive.directory_offset();
    let outside = || Error::OutOfBounds { name: name.clone(), header, len, directory };
    if header >= directory {
        return Err(outside());
    }
    let found = archive.get_entry(record.wayfinder()).map_err(|e| match e.kind() {
        rawzip::ErrorKind::Eof => outside(),
        _ => Error::Mismatch {
            name: name.clone(),
            header,
            found: e.to_string().to_lowercase(),
            expected: "a local header".into(),
        },
    })?;
    let (start, end) = found.compressed_data_range();
    if end > directory {
        return Err(outside());
    }
    check_local(&name, record, &found)?;
    let (unpacked, crc) = (record.uncompressed_size_hint(), record.crc32());
    Ok(Entry { name, start, len, unpacked, packing, crc, header })
}

/// What the directory alone can tell: method, encryption, sizes.
fn check_record(name: &str, record: &ZipFileHeaderRecord<'_>, allowed: bool) -> Result<Packing, Error> {
    let (packed, unpacked) = (record.compressed_size_hint(), record.uncompressed_size_hint());
    let flags = record.flags();
    if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() {
        return Err(Error::Encrypted { name: name.into(), flags: flags.bits() });
    }
    let method = record.compression_method();
    if method == CompressionMethod::DEFLATE && allowed {
        if unpacked > packed.saturating_mul(MAX_RATIO) {
            return Err(Error::Sizes { name: name.into(), packed, unpacked });
        }
        return Ok(Packing::Deflated);
    }
    if method != CompressionMethod::STORE {
        return Err(Error::Compressed { name: name.into(), method: method.as_u16(), packed, unpacked });
    }
    if packed != unpacked {
        return Err(Error::Sizes { name: name.into(), packed, unpacked });
    }
    Ok(Packing::Stored)
}

/// What the local header says must agree with the directory wherever it says anything.
fn check_local(name: &str, record: &ZipFileHeaderRecord<'_>, found: &ZipSliceEntry<'_>) -> Result<(), Error> {
    let local = found.local_header();
    let differ = |found: String, expected: String| {
        Err(Error::Mismatch { name: name.into(), header: record.local_header_offset(), found, expected })
    };
    if local.file_path().as_bytes() != name.as_bytes() {
        return differ(String::from_utf8_lossy(local.file_path().as_bytes()).into_owned(), name.into());
    }
    let method = record.compression_method();
    if local.compression_method() != method {
        let expected = if method == CompressionMethod::STORE { "stored" } else { "deflated" };
        return differ(format!("compression method {}", local.compression_method().as_u16()), expected.into());
    }
    let deferred = local.flags().has_data_descriptor();
    let sizes = [
        (local.compressed_size_hint(), record.compressed_size_hint()),
        (local.uncompressed_size_hint(), record.uncompressed_size_hint()),
    ];
    for (size, expected) in sizes {
        if size != expected && !(deferred && (size == 0 || size == IN_ZIP64)) {
            return differ(format!("{size} bytes"), format!("{expected} bytes"));
        }
    }
    if local.crc32() != record.crc32() && !(deferred && local.crc32() == 0) {
        return differ(format!("CRC-32 {:08x}", local.crc32()), format!("{:08x}", record.crc32()));
    }
    Ok(())
}

/// Names are keys here and may become file names later, so they must be plain relative paths.
fn safe_name(raw: &[u8]) -> Result<String, Error> {
    let refuse = |detail| Err(Error::Name { name: String::from_utf8_lossy(raw).into_owned(), detail });
    let Ok(name) = std::str::from_utf8(raw) else { return refuse("not UTF-8") };
    if name.is_empty() {
        return refuse("empty");
    }
    if name.chars().any(char::is_control) {
        return refuse("control character");
    }
    if name.starts_with('/') || name.contains('\\') {
        return refuse("absolute, or with backslashes");
    }
    if name.split('/').any(|part| part == "..") {
        return refuse("climbs out of its folder");
    }
    Ok(name.to_owned())
}
