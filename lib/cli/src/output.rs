//! Outputs: stdout, block-buffered unless it is a terminal, or a file that appears whole or not at all.
//!
//! Nothing counts as written before [`Output::finish`]; an output that is dropped leaves no file.

use crate::Error;
use crate::temporary::TempFile;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, LineWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes collected before a write: a pipe's default size is 64 KiB.
const BUFFER_BYTES: usize = 64 * 1024;

/// Set when a reader of our output went away, so that the program can die of SIGPIPE.
static READER_GONE: AtomicBool = AtomicBool::new(false);

pub(crate) fn reader_is_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

pub(crate) fn watch(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        READER_GONE.store(true, Ordering::Relaxed);
    }
}

/// What is going to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text: fine on a terminal.
    Text,
    /// Binary: refused on a terminal.
    Binary,
}

/// A descriptor whose closed pipe is remembered.
#[derive(Debug)]
struct Watched(File);

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(watch)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
enum Sink {
    Terminal(LineWriter<Watched>),
    Stream(BufWriter<Watched>),
    File(BufWriter<TempFile>),
}

/// An open output.
#[derive(Debug)]
pub struct Output {
    sink: Sink,
    path: Option<PathBuf>,
}

impl Output {
    /// Opens `path` for writing, or stdout for `-` and `None`. A path that is one of `inputs` is refused.
    pub fn open(path: Option<&Path>, content: Content, inputs: &[&Path]) -> Result<Self, Error> {
        match path {
            Some(path) if path != Path::new("-") => Self::open_file(path, inputs),
            _ => Self::stdout(content, inputs),
        }
    }

    fn stdout(content: Content, inputs: &[&Path]) -> Result<Self, Error> {
        let wrap = |source| Error::Stream { action: "write to stdout", source };
        let terminal = io::stdout().is_terminal();
        if terminal && content == Content::Binary {
            return Err(Error::BinaryOnTerminal);
        }
        let file = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(wrap)?);
        if let Ok(meta) = file.metadata()
            && meta.is_file()
            && let Some(input) = inputs.iter().find(|input| is_same(input, &meta))
        {
            return Err(Error::OutputIsInput(input.to_path_buf()));
        }
        let sink = if terminal {
            Sink::Terminal(LineWriter::new(Watched(file)))
        } else {
            Sink::Stream(BufWriter::with_capacity(BUFFER_BYTES, Watched(file)))
        };
        Ok(Output { sink, path: None })
    }

    fn open_file(path: &Path, inputs: &[&Path]) -> Result<Self, Error> {
        // A link keeps pointing where it points: what it names is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let sink = match fs::metadata(&target) {
            Ok(meta) if meta.is_dir() => return Err(Error::IsFolder(path.to_path_buf())),
            Ok(meta) if meta.is_file() => {
                if inputs.iter().any(|input| is_same(input, &meta)) || is_stdin(&meta) {
                    return Err(Error::OutputIsInput(path.to_path_buf()));
                }
                Sink::File(buffered(TempFile::beside(&target)?))
            }
            // Devices and named pipes cannot be renamed over; they are written as they are.
            Ok(_) => {
                let file = OpenOptions::new().write(true).open(&target);
                Sink::Stream(buffered(Watched(file.map_err(|e| Error::file(path, "open", e))?)))
            }
            Err(_) => Sink::File(buffered(TempFile::beside(&target)?)),
        };
        Ok(Output { sink, path: Some(path.to_path_buf()) })
    }

    /// Writes what is buffered, makes it durable, and gives the file its name. Errors, a full disk's above all, are told here.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush().map_err(|source| self.error(source))?;
        match self.sink {
            Sink::File(writer) => {
                let file = writer.into_inner().map_err(io::IntoInnerError::into_error);
                let path = self.path.unwrap_or_default();
                file.map_err(|e| Error::file(&path, "write", e))?.keep()
            }
            Sink::Terminal(_) | Sink::Stream(_) => Ok(()),
        }
    }

    /// Wraps a write error with the name of this output.
    pub fn error(&self, source: io::Error) -> Error {
        match &self.path {
            Some(path) => Error::file(path, "write", source),
            None => Error::Stream { action: "write to stdout", source },
        }
    }
}

fn buffered<W: Write>(inner: W) -> BufWriter<W> {
    BufWriter::with_capacity(BUFFER_BYTES, inner)
}

fn is_same(path: &Path, meta: &fs::Metadata) -> bool {
    fs::metadata(path).is_ok_and(|other| (other.dev(), other.ino()) == (meta.dev(), meta.ino()))
}

fn is_stdin(meta: &fs::Metadata) -> bool {
    let stdin = io::stdin().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    stdin.is_ok_and(|other| (other.dev(), other.ino()) == (meta.dev(), meta.ino()))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Terminal(writer) => writer.write(bytes),
            Sink::Stream(writer) => writer.write(bytes),
            Sink::File(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Terminal(writer) => writer.flush(),
            Sink::Stream(writer) => writer.flush(),
            Sink::File(writer) => writer.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_output_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.txt");
        let mut output = Output::open(Some(&path), Content::Text, &[]).unwrap();
        output.write_all(b"half").unwrap();
        drop(output);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_output_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.bin");
        let mut output = Output::open(Some(&path), Content::Binary, &[]).unwrap();
        output.write_all(b"whole").unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_input_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("same");
        fs::write(&path, b"x").unwrap();
        let error = Output::open(Some(&path), Content::Text, &[&path]).unwrap_err();
        assert!(matches!(error, Error::OutputIsInput(_)), "{error}");
    }

    #[test]
    fn a_full_disk_is_told() {
        let mut output = Output::open(Some(Path::new("/dev/full")), Content::Text, &[]).unwrap();
        output.write_all(b"x").unwrap();
        assert!(output.finish().is_err());
    }
}
