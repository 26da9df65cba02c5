//! Inputs: a file, or stdin for `-` and for nothing.

use crate::Error;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Bytes read at a time: large enough that system calls do not show in a profile.
const BUFFER_BYTES: usize = 256 * 1024;

/// An open input with the name that diagnostics use.
#[derive(Debug)]
pub struct Input {
    name: String,
    path: Option<PathBuf>,
    file: File,
}

impl Input {
    /// Opens `path`, or stdin for `-` and `None`.
    pub fn open(path: Option<&Path>) -> Result<Self, Error> {
        match path {
            Some(path) if path != Path::new("-") => Self::open_file(path),
            _ => Self::stdin(),
        }
    }

    fn open_file(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|e| Error::file(path, "open", e))?;
        let meta = file.metadata().map_err(|e| Error::file(path, "read", e))?;
        if meta.is_dir() {
            return Err(Error::IsFolder(path.to_path_buf()));
        }
        Ok(Input { name: path.display().to_string(), path: Some(path.to_path_buf()), file })
    }

    fn stdin() -> Result<Self, Error> {
        // A second descriptor for stdin spares the lock and the small buffer of the standard library.
        let wrap = |source| Error::Stream { action: "read stdin", source };
        let fd = io::stdin().as_fd().try_clone_to_owned().map_err(wrap)?;
        let file = File::from(fd);
        if file.metadata().map_err(wrap)?.is_dir() {
            return Err(Error::IsFolder(PathBuf::from("<stdin>")));
        }
        Ok(Input { name: "<stdin>".to_owned(), path: None, file })
    }

    /// The path as given, or `<stdin>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path, where the input is not stdin.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A buffered reader over it.
    pub fn into_reader(self) -> BufReader<File> {
        BufReader::with_capacity(BUFFER_BYTES, self.file)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}
