//! Memory-mapped files. The one place that maps, so the one place that has to say why that is sound.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file mapped for reading.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    map: Option<memmap2::Mmap>,
}

impl MappedFile {
    /// Maps a regular file. An empty one maps to an empty slice.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        // SAFETY: the mapping is private and read-only. A file that another process truncates while it is mapped ends
        // this process with SIGBUS, and one that it rewrites shows through as other bytes; readers treat every byte as
        // untrusted, so neither can break memory safety.
        #[allow(unsafe_code)]
        let map = if metadata.len() == 0 { None } else { Some(unsafe { memmap2::Mmap::map(&file)? }) };
        Ok(MappedFile { path: path.to_owned(), map })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }

    /// The path that it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the system drop pages of a range that will not be read again, so that reading a large file does not count
    /// as memory. Pages that the range covers in part are kept.
    pub fn forget(&self, offset: usize, length: usize) {
        const PAGE: usize = 4096;
        let Some(map) = &self.map else { return };
        let start = offset.next_multiple_of(PAGE);
        let end = offset.saturating_add(length).min(map.len()) / PAGE * PAGE;
        if end > start {
            // SAFETY: the mapping is of a file and read-only, so dropped pages are read again from the file.
            #[allow(unsafe_code)]
            let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
        }
    }
}
