//! Copies the stream into the bundle, and adds the bundle's own records.
//!
//! Every line passes byte for byte, but for the `path` of a `file` record: it says where the file was on this machine, so
//! the trace has the file's name there.

use crate::folder::{Folder, NewFile};
use crate::story::Story;
use crate::{Error, TRACE_NAME};
use m2m_digest::Hashed;
use m2m_record::{File, Line, Reader, Status, Tool, Writer, writer};
use sha2::{Digest as _, Sha256};
use std::io::{Read, Write};

/// The trace while it is written.
pub(crate) struct Trace {
    file: NewFile,
    digest: Sha256,
    records: u64,
}

/// What the trace came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced {
    pub(crate) hashed: Hashed,
    pub(crate) records: u64,
}

impl Trace {
    pub(crate) fn begin(folder: &Folder) -> Result<Self, Error> {
        Ok(Trace { file: folder.create(TRACE_NAME)?, digest: Sha256::new(), records: 0 })
    }

    /// Copies `input` to its end, which must vouch for all of it.
    pub(crate) fn copy(&mut self, input: impl Read) -> Result<Story, Error> {
        let mut reader = Reader::new(input);
        let mut story = Story::default();
        while let Some(line) = reader.next_line()? {
            story.take(&line)?;
            match moved(&line)? {
                Some(bytes) => self.line(&bytes)?,
                None => self.line(line.bytes)?,
            }
        }
        match reader.end() {
            Some(end) if end.records.is_some() && end.sha256.is_some() => Ok(story),
            _ => {
                let message = "end states no records or no sha256, so it does not show that the stream is whole; \
                     m2m-hash --seal adds them";
                Err(Error::Content { line: Some(self.records + 1), message: message.to_owned() })
            }
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.digest.update(bytes);
        self.records += 1;
        self.file.write_all(bytes).map_err(|error| self.file.error(error))
    }

    /// Appends the bundle's `tool` and `file` records and `end`.
    pub(crate) fn finish(self, folder: &mut Folder, tool: &Tool, files: &[File]) -> Result<Traced, Error> {
        let fail = |error| Error::File { path: TRACE_NAME.into(), action: "write", error };
        let mut writer = Writer::resume(self.file, self.digest, self.records);
        writer.write(tool).map_err(fail)?;
        for file in files {
            writer.write(file).map_err(fail)?;
        }
        let file = writer.finish(Status::Ok).map_err(fail)?;
        let records = self.records + 1 + files.len() as u64;
        Ok(Traced { hashed: folder.close(file)?, records })
    }
}

/// The line of a `file` record with its name for its path; `None` for a line that passes as it is.
fn moved(line: &Line) -> Result<Option<Vec<u8>>, Error> {
    if line.kind != "file" {
        return Ok(None);
    }
    let mut file: File = line.parse()?;
    if file.path == file.name {
        return Ok(None);
    }
    file.path.clone_from(&file.name);
    let mut bytes = Vec::new();
    let fail = |error| Error::File { path: TRACE_NAME.into(), action: "write", error };
    writer::render(&file, &mut bytes).map_err(fail)?;
    Ok(Some(bytes))
}
