//! The folder being written: every file is hashed as it is written, and made durable before the folder gets its name.

use crate::Error;
use m2m_cli::TempDir;
use m2m_digest::{BoundFile, Hashed, Hasher, RECEIPT_NAME, Receipt};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes collected before a write.
const BUFFER_BYTES: usize = 256 * 1024;

/// A folder under a temporary name, and what is in it so far.
#[derive(Debug)]
pub(crate) struct Folder {
    inner: TempDir,
    files: Vec<BoundFile>,
    folders: Vec<PathBuf>,
}

impl Folder {
    /// Makes it beside `target`.
    pub(crate) fn beside(target: &Path, force: bool) -> Result<Self, Error> {
        Ok(Folder { inner: TempDir::beside(target, force)?, files: Vec::new(), folders: Vec::new() })
    }

    /// Makes a folder inside.
    pub(crate) fn subfolder(&mut self, name: &str) -> Result<(), Error> {
        let path = self.inner.path().join(name);
        fs::create_dir(&path).map_err(|error| Error::File { path: path.clone(), action: "create", error })?;
        self.folders.push(path);
        Ok(())
    }

    /// Begins a file.
    pub(crate) fn create(&self, name: &str) -> Result<NewFile, Error> {
        let path = self.inner.path().join(name);
        let file = File::create_new(&path).map_err(|error| Error::File { path, action: "create", error })?;
        let inner = BufWriter::with_capacity(BUFFER_BYTES, Hashing { file, hasher: Hasher::default() });
        Ok(NewFile { name: name.to_owned(), inner })
    }

    /// Ends a file.
    pub(crate) fn close(&mut self, file: NewFile) -> Result<Hashed, Error> {
        let path = PathBuf::from(&file.name);
        let fail = |error| Error::File { path: path.clone(), action: "write", error };
        let inner = file.inner.into_inner().map_err(|error| fail(error.into_error()))?;
        inner.file.sync_all().map_err(fail)?;
        let hashed = inner.hasher.finish();
        self.files.push(BoundFile { bytes: hashed.bytes, name: file.name, sha256: hashed.digest.to_string() });
        Ok(hashed)
    }

    /// Writes a whole file.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<Hashed, Error> {
        let mut file = self.create(name)?;
        file.write_all(bytes).map_err(|error| Error::File { path: name.into(), action: "write", error })?;
        self.close(file)
    }

    /// Binds all files by the receipt and gives the folder its name.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let receipt = Receipt::new(std::mem::take(&mut self.files)).to_bytes()?;
        self.write(RECEIPT_NAME, &receipt)?;
        for path in &self.folders {
            let synced = File::open(path).and_then(|folder| folder.sync_all());
            synced.map_err(|error| Error::File { path: path.clone(), action: "write", error })?;
        }
        Ok(self.inner.keep()?)
    }
}

/// A file of the folder, being written.
#[derive(Debug)]
pub(crate) struct NewFile {
    name: String,
    inner: BufWriter<Hashing>,
}

impl NewFile {
    /// Wraps a write error with the file's name.
    pub(crate) fn error(&self, error: io::Error) -> Error {
        Error::File { path: PathBuf::from(&self.name), action: "write", error }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Hashes what has been written.
#[derive(Debug)]
struct Hashing {
    file: File,
    hasher: Hasher,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
