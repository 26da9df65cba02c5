//! A reader and a writer in one: every line that is read has been passed through, byte for byte.
//!
//! One digest serves both ends, so that a tool that only appends hashes each byte once for the whole stream.

use crate::framing::End;
use crate::reader::{Error, Line, Reader};
use crate::writer::Writer;
use std::io::{Read, Write};

/// Passes a stream from `input` to `out`.
pub struct Pipe<R: Read, W: Write> {
    reader: Reader<R>,
    out: W,
}

impl<R: Read, W: Write> Pipe<R, W> {
    /// Passes lines from a reader to `out`, which should be block-buffered.
    pub fn new(reader: Reader<R>, out: W) -> Self {
        Pipe { reader, out }
    }

    /// Passes the next line and returns it; `None` once `end` was read, which is not passed.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, Error> {
        match self.reader.next_line()? {
            None => Ok(None),
            Some(line) => {
                self.out.write_all(line.bytes)?;
                Ok(Some(line))
            }
        }
    }

    /// The `end` record that was read.
    pub fn end(&self) -> Option<&End> {
        self.reader.end()
    }

    /// Continues with the tool's own records. Call after the last line.
    pub fn into_writer(self) -> Writer<W> {
        let (stream, records) = self.reader.state();
        Writer::resume(self.out, stream, records)
    }
}
