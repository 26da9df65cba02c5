//! Why an archive was refused: one variant a cause, each with the entry and the values that explain it.

use thiserror::Error;

/// The reasons why a zip archive, or an entry of it, cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// There is no valid end record, so the file is no zip or its tail is missing.
    #[error("no zip archive, or a torn one: {detail} in {len} bytes")]
    Torn {
        /// What the search for the end record met.
        detail: String,
        /// Size of what was searched.
        len: usize,
    },
    /// Bytes follow the end record, so the directory may belong to something else.
    #[error("the zip's end record stops at byte {end}, but the file has {len} bytes")]
    Trailing {
        /// Where the archive says that it ends.
        end: u64,
        /// Size of the file.
        len: usize,
    },
    /// The central directory cannot be parsed.
    #[error("central directory at byte {at}, entry number {number}: {detail}")]
    Directory {
        /// Where the directory begins.
        at: u64,
        /// Which record, counted from 0.
        number: usize,
        /// What the parser met.
        detail: String,
    },
    /// The end record and the directory disagree on the number of entries.
    #[error("the end record promises {promised} entries, the central directory holds {found}")]
    Count {
        /// As stated.
        promised: u64,
        /// As found.
        found: u64,
    },
    /// More entries than any program has.
    #[error("{found} entries; at most {limit} are read")]
    TooMany {
        /// As stated by the end record.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// A name that is not UTF-8, has control characters, or climbs out of a folder.
    #[error("entry name {name:?} is unsafe: {detail}")]
    Name {
        /// The name, lossily decoded.
        name: String,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// Two entries with one name.
    #[error("entry {name:?} is there twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Compressed data; everything that is mapped must be stored.
    #[error(
        "entry {name:?} is compressed (method {method}, {packed} bytes that claim {unpacked}); only stored entries are read"
    )]
    Compressed {
        /// The entry.
        name: String,
        /// Compression method number.
        method: u16,
        /// Size in the archive.
        packed: u64,
        /// Claimed size when unpacked.
        unpacked: u64,
    },
    /// Compressed data that cannot be unpacked.
    #[error("entry {name:?}: deflated data at byte {start}: {detail}")]
    Inflate {
        /// The entry.
        name: String,
        /// Offset of the data.
        start: u64,
        /// What the decompressor met.
        detail: String,
    },
    /// Encrypted data.
    #[error("entry {name:?} is encrypted (flags {flags:#06x})")]
    Encrypted {
        /// The entry.
        name: String,
        /// General purpose flags.
        flags: u16,
    },
    /// A stored entry must have one size, and a deflated one cannot grow without bound.
    #[error("entry {name:?} cannot have both its sizes, {packed} bytes packed and {unpacked} unpacked")]
    Sizes {
        /// The entry.
        name: String,
        /// Compressed size of the directory.
        packed: u64,
        /// Uncompressed size of the directory.
        unpacked: u64,
    },
    /// The data do not lie before the directory.
    #[error("entry {name:?} leaves the archive: header at {header}, {len} bytes of data, directory at {directory}")]
    OutOfBounds {
        /// The entry.
        name: String,
        /// Offset of the local header.
        header: u64,
        /// Size of the data.
        len: u64,
        /// Where the central directory begins.
        directory: u64,
    },
    /// Two entries share bytes.
    #[error("entry {name:?} begins at byte {start}, inside entry {other:?}, which ends at {end}")]
    Overlap {
        /// The later entry.
        name: String,
        /// Its local header.
        start: u64,
        /// The earlier entry.
        other: String,
        /// End of the earlier entry's data.
        end: u64,
    },
    /// Local header and directory tell different stories.
    #[error("entry {name:?}: the local header at byte {header} says {found}, the directory says {expected}")]
    Mismatch {
        /// The entry, as the directory names it.
        name: String,
        /// Offset of the local header.
        header: u64,
        /// In the local header.
        found: String,
        /// In the directory.
        expected: String,
    },
    /// The checksum of the data is wrong.
    #[error(
        "entry {name:?}: CRC-32 is {found:08x}, the directory says {expected:08x}: {len} bytes at {start} are damaged"
    )]
    Crc {
        /// The entry.
        name: String,
        /// Computed.
        found: u32,
        /// As the directory states.
        expected: u32,
        /// Offset of the data.
        start: u64,
        /// Size of the data.
        len: u64,
    },
}
