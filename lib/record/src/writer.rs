//! Writes a stream, keeping the digests that `seal` and `end` state.

use crate::framing::{Begin, End, Status};
use crate::graph::{Graph, Node, Seal};
use crate::{Body, SCHEMA};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes records to `out`, which should be block-buffered. Nothing marks the stream as whole until
/// [`Writer::finish`]: dropped before, it leaves a stream that every reader refuses.
pub struct Writer<W: Write> {
    out: W,
    stream: Sha256,
    records: u64,
    open: Option<OpenGraph>,
    scratch: Vec<u8>,
}

/// The graph whose lines are being written.
struct OpenGraph {
    id: String,
    nodes: u64,
    digest: Sha256,
}

impl<W: Write> Writer<W> {
    /// Begins a stream.
    pub fn begin(out: W) -> io::Result<Self> {
        let mut writer = Writer::resume(out, Sha256::new(), 0);
        writer.write(&Begin { schema: SCHEMA.to_owned() })?;
        Ok(writer)
    }

    /// Continues a stream of which `records` lines with the digest state `stream` are already in `out`.
    pub fn resume(out: W, stream: Sha256, records: u64) -> Self {
        Writer { out, stream, records, open: None, scratch: Vec::new() }
    }

    /// Appends a record.
    pub fn write<R: Body>(&mut self, record: &R) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.scratch);
        line.clear();
        render(record, &mut line)?;
        let done = self.line::<R>(&line, record);
        self.scratch = line;
        done
    }

    fn line<R: Body>(&mut self, line: &[u8], record: &R) -> io::Result<()> {
        if R::KIND == Graph::KIND {
            let id = serde_json::to_value(record).ok().and_then(|v| v["graph"].as_str().map(str::to_owned));
            self.open = Some(OpenGraph { id: id.unwrap_or_default(), nodes: 0, digest: Sha256::new() });
        }
        if let Some(open) = &mut self.open {
            open.digest.update(line);
            open.nodes += u64::from(R::KIND == Node::KIND);
        }
        self.stream.update(line);
        self.records += 1;
        self.out.write_all(line)
    }

    /// Closes the graph that the last `graph` record opened.
    pub fn seal(&mut self) -> io::Result<()> {
        let open = self.open.take().ok_or_else(|| io::Error::other("no graph is open"))?;
        self.write(&Seal { graph: open.id, nodes: open.nodes, sha256: hex(&open.digest.finalize()) })
    }

    /// Writes `end`, flushes, and gives the sink back.
    pub fn finish(mut self, status: Status) -> io::Result<W> {
        let sha256 = Some(hex(&self.stream.clone().finalize()));
        let end = End { status, records: Some(self.records), sha256 };
        let mut line = Vec::new();
        render(&end, &mut line)?;
        self.out.write_all(&line)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Appends the line of a record, newline included.
pub fn render<R: Body>(record: &R, line: &mut Vec<u8>) -> io::Result<()> {
    write!(line, "{{\"record\":\"{}\"", R::KIND)?;
    let start = line.len();
    serde_json::to_writer(&mut *line, record)?;
    if line.get(start + 1) == Some(&b'}') {
        line.remove(start);
    } else if let Some(brace) = line.get_mut(start) {
        *brace = b',';
    }
    line.push(b'\n');
    Ok(())
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}
