//! Memory-mapped files. The one place that maps, so the one place that has to say why that is sound.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file mapped for reading, or privately for writing.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    map: Option<Map>,
}

#[derive(Debug)]
enum Map {
    Shared(memmap2::Mmap),
    Private(memmap2::MmapRaw),
}

impl MappedFile {
    /// Maps a regular file. An empty one maps to an empty slice.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (file, len) = regular(path)?;
        // SAFETY: the mapping is private and read-only. A file that another process truncates while it is mapped ends
        // this process with SIGBUS, and one that it rewrites shows through as other bytes; readers treat every byte as
        // untrusted, so neither can break memory safety.
        #[allow(unsafe_code)]
        let map = if len == 0 { None } else { Some(Map::Shared(unsafe { memmap2::Mmap::map(&file)? })) };
        Ok(MappedFile { path: path.to_owned(), map })
    }

    /// Maps a regular file so that foreign code may write to the mapping: a page that is written becomes this process's
    /// own, and the file stays as it is. No memory is set aside before that.
    pub fn open_private(path: &Path) -> io::Result<Self> {
        let (file, len) = regular(path)?;
        // SAFETY: as in `open`; the kernel copies a page at the first write to it, so the file cannot change.
        #[allow(unsafe_code)]
        let map = match len {
            0 => None,
            _ => Some(Map::Private(unsafe { memmap2::MmapOptions::new().no_reserve_swap().map_copy(&file)? }.into())),
        };
        Ok(MappedFile { path: path.to_owned(), map })
    }

    /// The bytes. Those of a private mapping must not be held while foreign code writes to it.
    pub fn bytes(&self) -> &[u8] {
        match &self.map {
            None => &[],
            Some(Map::Shared(map)) => map,
            // SAFETY: the mapping is as long as it says and lives as long as `self`.
            #[allow(unsafe_code)]
            Some(Map::Private(map)) => unsafe { std::slice::from_raw_parts(map.as_ptr(), map.len()) },
        }
    }

    /// Where foreign code may write: the position of `offset` in a private mapping.
    pub fn private_pointer(&self, offset: usize) -> Option<*mut u8> {
        match &self.map {
            Some(Map::Private(map)) if offset < map.len() => Some(map.as_mut_ptr().wrapping_add(offset)),
            _ => None,
        }
    }

    /// The path that it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the system that few bytes will be read, far from each other: around each it would read megabytes otherwise.
    pub fn expect_jumps(&self) {
        if let Some(Map::Shared(map)) = &self.map {
            // It is advice: where the system does not take it, reading is only slower.
            let _ = map.advise(memmap2::Advice::Random);
        }
    }

    /// Lets the system drop pages of a range that will not be read again, so that reading a large file does not count
    /// as memory. Pages that the range covers in part are kept.
    pub fn forget(&self, offset: usize, length: usize) {
        const PAGE: usize = 4096;
        let Some(Map::Shared(map)) = &self.map else { return };
        let start = offset.next_multiple_of(PAGE);
        let end = offset.saturating_add(length).min(map.len()) / PAGE * PAGE;
        if end > start {
            // SAFETY: the mapping is of a file and read-only, so dropped pages are read again from the file.
            #[allow(unsafe_code)]
            let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
        }
    }
}

/// A regular file and its size.
fn regular(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, metadata.len()))
}
