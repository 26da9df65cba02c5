//! A strict reader of zip archives, over bytes that are usually memory-mapped.
//!
//! It promises that every entry it lists lies inside the archive, shares no byte with another and has a unique, harmless
//! name. Sizes come from the central directory alone. Contents are not touched until somebody asks for a checksum, so that
//! a hundred gigabytes of weights cost nothing. Compressed entries are refused unless the caller can take them
//! ([`Zip::open_packed`]), encrypted ones always; an entry is unpacked only as far as it says that it will go.

mod entry;
mod error;

use std::borrow::Cow;
use std::collections::HashMap;

pub use entry::{Entry, Packing};
pub use error::Error;

/// Most entries that an archive may have; real programs have a few thousand.
pub const MAX_ENTRIES: u64 = 1 << 20;

/// An archive whose directory has been read and checked.
#[derive(Debug)]
pub struct Zip<'a> {
    data: &'a [u8],
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    by_start: Vec<usize>,
}

impl<'a> Zip<'a> {
    /// Reads and checks the directory and every local header; no content is read. Every entry must be stored.
    ///
    /// # Errors
    /// Whatever [`Error`] names, except `Crc` and `Inflate`.
    pub fn open(data: &'a [u8]) -> Result<Self, Error> {
        Self::read(data, false)
    }

    /// As [`Zip::open`], but entries may also be deflated; [`Zip::contents`] unpacks them.
    ///
    /// # Errors
    /// Whatever [`Error`] names, except `Crc` and `Inflate`.
    pub fn open_packed(data: &'a [u8]) -> Result<Self, Error> {
        Self::read(data, true)
    }

    fn read(data: &'a [u8], packed: bool) -> Result<Self, Error> {
        let archive = rawzip::ZipArchive::from_slice(data)
            .map_err(|e| Error::Torn { detail: e.to_string().to_lowercase(), len: data.len() })?;
        if archive.end_offset() != data.len() as u64 {
            return Err(Error::Trailing { end: archive.end_offset(), len: data.len() });
        }
        if archive.entries_hint() > MAX_ENTRIES {
            return Err(Error::TooMany { found: archive.entries_hint(), limit: MAX_ENTRIES });
        }
        let entries = entry::read_all(&archive, packed)?;
        let by_name = index_names(&entries)?;
        let by_start = order_without_overlap(&entries)?;
        Ok(Self { data, entries, by_name, by_start })
    }

    /// The entries in the order of the central directory.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of that exact name.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).and_then(|&i| self.entries.get(i))
    }

    /// The entry whose data hold the byte at `offset` of the archive.
    pub fn find_at(&self, offset: u64) -> Option<&Entry> {
        let after = self.by_start.partition_point(|&i| self.entries[i].start <= offset);
        let entry = &self.entries[*self.by_start.get(after.checked_sub(1)?)?];
        (offset < entry.start + entry.len).then_some(entry)
    }

    /// The unpacked data of an entry after comparing them with the CRC-32 of the directory; a stored entry is not copied.
    ///
    /// # Errors
    /// [`Error::Inflate`] when they cannot be unpacked to the size that the directory states, [`Error::Crc`] when they
    /// are not what was packed.
    pub fn contents(&self, entry: &Entry) -> Result<Cow<'a, [u8]>, Error> {
        if entry.packing == Packing::Stored {
            return self.checked_bytes(entry).map(Cow::Borrowed);
        }
        let fail = |detail: String| Error::Inflate { name: entry.name.clone(), start: entry.start, detail };
        let limit = usize::try_from(entry.unpacked).map_err(|e| fail(e.to_string()))?;
        let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(self.bytes(entry), limit)
            .map_err(|e| fail(e.to_string().to_lowercase()))?;
        if bytes.len() != limit {
            return Err(fail(format!("{} bytes, the directory says {limit}", bytes.len())));
        }
        let found = crc32fast::hash(&bytes);
        match found == entry.crc {
            true => Ok(Cow::Owned(bytes)),
            false => {
                let (name, start, len) = (entry.name.clone(), entry.start, entry.unpacked);
                Err(Error::Crc { name, found, expected: entry.crc, start, len })
            }
        }
    }

    /// The data of an entry as they stand in the archive, unchecked: a damaged byte is not noticed.
    pub fn bytes(&self, entry: &Entry) -> &'a [u8] {
        let start = entry.start as usize;
        self.data
            .get(start..start + entry.len as usize)
            .expect("`open` has checked that entries lie inside the archive")
    }

    /// The data of an entry after comparing them with the CRC-32 of the directory.
    ///
    /// # Errors
    /// [`Error::Crc`] when they differ.
    pub fn checked_bytes(&self, entry: &Entry) -> Result<&'a [u8], Error> {
        check(self.data, entry)
    }
}

/// The data of an entry of an archive that was opened before, after comparing them with the CRC-32 of its directory.
///
/// # Errors
/// [`Error::Crc`] when they differ.
///
/// # Panics
/// When `data` is not the archive that the entry was read from.
pub fn check<'a>(data: &'a [u8], entry: &Entry) -> Result<&'a [u8], Error> {
    let start = entry.start as usize;
    let bytes =
        data.get(start..start + entry.len as usize).expect("`open` has checked that entries lie inside the archive");
    let found = crc32fast::hash(bytes);
    if found == entry.crc {
        return Ok(bytes);
    }
    Err(Error::Crc { name: entry.name.clone(), found, expected: entry.crc, start: entry.start, len: entry.len })
}

fn index_names(entries: &[Entry]) -> Result<HashMap<String, usize>, Error> {
    let mut by_name = HashMap::with_capacity(entries.len());
    for (i, entry) in entries.iter().enumerate() {
        if by_name.insert(entry.name.clone(), i).is_some() {
            return Err(Error::Duplicate { name: entry.name.clone() });
        }
    }
    Ok(by_name)
}

/// Orders entries by where they lie and refuses two that share a byte, headers included.
fn order_without_overlap(entries: &[Entry]) -> Result<Vec<usize>, Error> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&i| entries[i].header);
    for pair in order.windows(2) {
        let (first, second) = (&entries[pair[0]], &entries[pair[1]]);
        let end = first.start + first.len;
        if second.header < end {
            return Err(Error::Overlap {
                name: second.name.clone(),
                start: second.header,
                other: first.name.clone(),
                end,
            });
        }
    }
    Ok(order)
}
