//! Writes `.pt2` archives the way PyTorch's own zip writer does: entries stored, data at multiples of 64 bytes, sizes
//! in descriptors after the data, dates of zero, ZIP64 records only where 32 bits do not reach. Streams: no entry is
//! held in memory, and an entry of zeros may be left as a hole in the file.

use std::io::{self, Seek, SeekFrom, Write};

const ALIGNMENT: usize = 64;
const LOCAL_HEADER_BYTES: usize = 30;
/// Bit 11 says that names are UTF-8, bit 3 that a descriptor follows the data.
const FLAGS: u16 = 0x0808;
/// Values from here on go to a ZIP64 field, and the 32-bit field says so by being all ones.
const LIMIT_32: u64 = 0xFFFF_FFFF;
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

struct Entry {
    name: String,
    offset: u64,
    len_bytes: u64,
    crc: u32,
}

/// An archive being written; it is one only after `finish`.
pub struct ArchiveWriter<W> {
    out: W,
    root: String,
    position: u64,
    entries: Vec<Entry>,
}

/// Hands an entry's bytes on, and keeps their count and CRC.
struct Counted<'a, W> {
    out: &'a mut W,
    crc: crc32fast::Hasher,
    len_bytes: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.len_bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write + Seek> ArchiveWriter<W> {
    /// Begins an archive whose entries all lie below the folder `root`.
    pub fn new(out: W, root: &str) -> Self {
        ArchiveWriter { out, root: root.to_owned(), position: 0, entries: Vec::new() }
    }

    /// Adds an entry from memory.
    pub fn bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.stream(name, bytes.len() as u64, |out| out.write_all(bytes))
    }

    /// Adds an entry of `len_bytes` that `fill` writes; more or fewer bytes are an error.
    pub fn stream<F>(&mut self, name: &str, len_bytes: u64, fill: F) -> io::Result<()>
    where
        F: FnOnce(&mut dyn Write) -> io::Result<()>,
    {
        let mut entry = self.begin_entry(name, len_bytes)?;
        let mut counted = Counted { out: &mut self.out, crc: crc32fast::Hasher::new(), len_bytes: 0 };
        fill(&mut counted)?;
        if counted.len_bytes != len_bytes {
            let found = counted.len_bytes;
            return Err(io::Error::other(format!("{name}: {found} bytes were written, {len_bytes} announced")));
        }
        entry.crc = counted.crc.finalize();
        self.end_entry(entry)
    }

    /// Adds an entry of zeros as a hole: a file system that knows holes stores nothing for it.
    pub fn hole(&mut self, name: &str, len_bytes: u64) -> io::Result<()> {
        let mut entry = self.begin_entry(name, len_bytes)?;
        self.out.seek(SeekFrom::Current(i64::try_from(len_bytes).map_err(io::Error::other)?))?;
        entry.crc = crc_of_zeros(len_bytes);
        self.end_entry(entry)
    }

    /// Writes the directory and gives the file back.
    pub fn finish(mut self) -> io::Result<W> {
        let start = self.position;
        let mut directory = Vec::new();
        for entry in &self.entries {
            directory_record(&mut directory, entry);
        }
        self.put(&directory)?;
        let end = end_records(self.entries.len() as u64, start, self.position);
        self.put(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes the local header, padded so that the data that follows is aligned.
    fn begin_entry(&mut self, name: &str, len_bytes: u64) -> io::Result<Entry> {
        let entry = Entry { name: format!("{}/{name}", self.root), offset: self.position, len_bytes, crc: 0 };
        let mut extra = Vec::new();
        if len_bytes >= LIMIT_32 {
            zip64_extra(&mut extra, &[len_bytes, len_bytes]);
        } else if entry.offset >= LIMIT_32 {
            zip64_extra(&mut extra, &[entry.offset]);
        }
        let data = self.position as usize + LOCAL_HEADER_BYTES + entry.name.len() + extra.len() + 4;
        let padding = data.next_multiple_of(ALIGNMENT) - data;
        extra.extend_from_slice(&0x4246u16.to_le_bytes());
        extra.extend_from_slice(&(padding as u16).to_le_bytes());
        extra.resize(extra.len() + padding, b'Z');
        let mut header = Vec::with_capacity(LOCAL_HEADER_BYTES + entry.name.len() + extra.len());
        header.extend_from_slice(b"PK\x03\x04");
        put16(&mut header, &[0, FLAGS, 0, 0, 0]);
        put32(&mut header, &[0, 0, 0]);
        put16(&mut header, &[entry.name.len() as u16, extra.len() as u16]);
        header.extend_from_slice(entry.name.as_bytes());
        header.extend_from_slice(&extra);
        self.put(&header)?;
        Ok(entry)
    }

    /// Writes the descriptor after the data, and remembers the entry for the directory.
    fn end_entry(&mut self, entry: Entry) -> io::Result<()> {
        self.position += entry.len_bytes;
        let mut descriptor = b"PK\x07\x08".to_vec();
        put32(&mut descriptor, &[entry.crc]);
        if entry.len_bytes >= LIMIT_32 || entry.offset >= LIMIT_32 {
            put64(&mut descriptor, &[entry.len_bytes, entry.len_bytes]);
        } else {
            put32(&mut descriptor, &[entry.len_bytes as u32, entry.len_bytes as u32]);
        }
        self.put(&descriptor)?;
        self.entries.push(entry);
        Ok(())
    }
}

fn put16(out: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

fn put32(out: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

fn put64(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

fn zip64_extra(out: &mut Vec<u8>, values: &[u64]) {
    put16(out, &[1, 8 * values.len() as u16]);
    put64(out, values);
}

/// The 32-bit field for a value: itself, or all ones when a ZIP64 field holds it.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn directory_record(out: &mut Vec<u8>, entry: &Entry) {
    let mut extra = Vec::new();
    let wide: Vec<u64> =
        [entry.len_bytes, entry.len_bytes, entry.offset].into_iter().filter(|v| *v >= LIMIT_32).collect();
    if !wide.is_empty() {
        zip64_extra(&mut extra, &wide);
    }
    out.extend_from_slice(b"PK\x01\x02");
    put16(out, &[0, 0, FLAGS, 0, 0, 0]);
    put32(out, &[entry.crc, narrow(entry.len_bytes), narrow(entry.len_bytes)]);
    put16(out, &[entry.name.len() as u16, extra.len() as u16, 0, 0, 0]);
    put32(out, &[0, narrow(entry.offset)]);
    out.extend_from_slice(entry.name.as_bytes());
    out.extend_from_slice(&extra);
}

/// The end record of a directory of `count` entries at `start..end`, with its ZIP64 forms where needed.
fn end_records(count: u64, start: u64, end: u64) -> Vec<u8> {
    let mut out = Vec::new();
    if start >= LIMIT_32 || count >= 0xFFFF {
        out.extend_from_slice(b"PK\x06\x06");
        put64(&mut out, &[44]);
        put16(&mut out, &[45, 45]);
        put32(&mut out, &[0, 0]);
        put64(&mut out, &[count, count, end - start, start]);
        out.extend_from_slice(b"PK\x06\x07");
        put32(&mut out, &[0]);
        put64(&mut out, &[end]);
        put32(&mut out, &[1]);
    }
    let short = u16::try_from(count).unwrap_or(u16::MAX);
    out.extend_from_slice(b"PK\x05\x06");
    put16(&mut out, &[0, 0, short, short]);
    put32(&mut out, &[narrow(end - start), narrow(start)]);
    put16(&mut out, &[0]);
    out
}

/// The CRC-32 of `len_bytes` zeros, by doubling: a terabyte costs as little as a kilobyte.
fn crc_of_zeros(len_bytes: u64) -> u32 {
    let mut total = crc32fast::Hasher::new();
    total.update(&ZEROS[..(len_bytes % ZEROS.len() as u64) as usize]);
    let mut block = crc32fast::Hasher::new();
    block.update(&ZEROS);
    let mut blocks = len_bytes / ZEROS.len() as u64;
    while blocks > 0 {
        if blocks & 1 == 1 {
            total.combine(&block);
        }
        block.combine(&block.clone());
        blocks >>= 1;
    }
    total.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn zeros_have_the_crc_that_hashing_them_gives() {
        for len_bytes in [0usize, 1, 65_535, 65_536, 65_537, 1_000_003] {
            assert_eq!(crc_of_zeros(len_bytes as u64), crc32fast::hash(&vec![0; len_bytes]), "{len_bytes} zeros");
        }
    }

    #[test]
    fn data_is_aligned_and_named_below_the_root() {
        let mut archive = ArchiveWriter::new(Cursor::new(Vec::new()), "model");
        archive.bytes("one", b"abc").unwrap();
        archive.bytes("data/two", b"defgh").unwrap();
        archive.hole("three", 100).unwrap();
        let file = archive.finish().unwrap().into_inner();
        for (needle, name) in [(&b"abcPK"[..], "model/one"), (b"defghPK", "model/data/two")] {
            let at = file.windows(needle.len()).position(|window| window == needle).unwrap();
            assert_eq!(at % 64, 0, "{name} lies at {at}");
            assert_eq!(file.windows(name.len()).filter(|window| *window == name.as_bytes()).count(), 2, "{name}");
        }
    }

    #[test]
    fn an_entry_of_another_length_is_refused() {
        let mut archive = ArchiveWriter::new(Cursor::new(Vec::new()), "model");
        let error = archive.stream("short", 5, |out| out.write_all(b"abc")).unwrap_err();
        assert_eq!(error.to_string(), "short: 3 bytes were written, 5 announced");
    }
}
