//! Reads a stream line by line, and refuses one that is not whole.
//!
//! The reader checks framing as it goes: `begin` first, graphs contiguous and sealed with the right digest, `end` last
//! with the right count and digest. Lines are handed out as bytes; only those that a tool asks for are parsed.

use crate::framing::{Begin, End, Status};
use crate::graph::{Graph, Seal};
use crate::writer::hex;
use crate::{Body, SCHEMA};
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// Longest line that is read, a bound on memory.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// First and smallest size of the buffer.
const BLOCK_BYTES: usize = 256 << 10;

/// Why a stream cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes could not be had.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A line is not what it should be.
    #[error("{message}")]
    Line {
        /// The line, counted from 1.
        number: u64,
        /// What was found and what would be right.
        message: String,
    },
    /// The stream is not whole.
    #[error("{message}")]
    Cut {
        /// The line at which that shows.
        number: u64,
        /// What is missing or differs.
        message: String,
    },
    /// The tool before answered no.
    #[error("the stream ends with status failed; the tool before could not do its work, see its diagnostics")]
    Failed {
        /// The line of `end`.
        number: u64,
    },
}

impl Error {
    /// The line that the error is about.
    pub fn line(&self) -> Option<u64> {
        match self {
            Error::Io(_) => None,
            Error::Line { number, .. } | Error::Cut { number, .. } | Error::Failed { number } => Some(*number),
        }
    }
}

/// One line of a stream, without parsing beyond its kind.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    /// The value of `record`.
    pub kind: &'a str,
    /// All bytes, newline included.
    pub bytes: &'a [u8],
}

impl Line<'_> {
    /// Parses the line as a record of `R`'s kind.
    pub fn parse<R: Body>(&self) -> Result<R, Error> {
        parse_line(self.bytes).map_err(|message| Error::Line { number: self.number, message })
    }
}

/// Parses one record line of a known kind.
pub fn parse_line<R: Body>(bytes: &[u8]) -> Result<R, String> {
    let kind = R::KIND;
    let body = match fast_rest(bytes, kind) {
        Some(rest) => [b"{", rest].concat(),
        None => slow_rest(bytes, kind)?,
    };
    // Text that is checked once is read faster than bytes whose strings are checked one by one.
    let parsed = match std::str::from_utf8(&body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(&body),
    };
    parsed.map_err(|e| {
        let text = e.to_string();
        let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(head, _)| head);
        format!("{kind}: {text}")
    })
}

/// What follows `{"record":"KIND",`, or the lone brace of an empty record.
fn fast_rest<'a>(bytes: &'a [u8], kind: &str) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(PREFIX)?.strip_prefix(kind.as_bytes())?.strip_prefix(b"\"")?;
    rest.strip_prefix(b",")
        .filter(|r| !r.trim_ascii_start().starts_with(b"}"))
        .or_else(|| rest.starts_with(b"}").then_some(rest))
}

const PREFIX: &[u8] = b"{\"record\":\"";

/// The record without its `record` field, wherever that field stands.
fn slow_rest(bytes: &[u8], kind: &str) -> Result<Vec<u8>, String> {
    let fields = fields(bytes)?;
    let mut out = vec![b'{'];
    for (key, value) in &fields {
        if key == "record" {
            let found: String = serde_json::from_str(value.get()).map_err(|_| "field \"record\" is not a string")?;
            if found != kind {
                return Err(format!("expected a {kind} record, found {found}"));
            }
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend(serde_json::to_vec(key).map_err(|e| e.to_string())?);
        out.push(b':');
        out.extend(value.get().as_bytes());
    }
    out.push(b'}');
    Ok(out)
}

/// The fields of a JSON object, unparsed; duplicate keys are an error.
fn fields(bytes: &[u8]) -> Result<indexmap::IndexMap<String, Box<serde_json::value::RawValue>>, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let fields = crate::tagged::unique(&mut deserializer).map_err(|e| e.to_string())?;
    deserializer.end().map_err(|e| e.to_string())?;
    Ok(fields)
}

/// The kind of a line: the value of `record`.
fn kind_of(bytes: &[u8]) -> Result<std::borrow::Cow<'_, str>, String> {
    let quick = bytes.strip_prefix(PREFIX).and_then(|rest| {
        let end = memchr::memchr(b'"', rest.get(..64.min(rest.len()))?)?;
        std::str::from_utf8(rest.get(..end)?).ok().filter(|kind| !kind.contains('\\'))
    });
    if let Some(kind) = quick {
        return Ok(kind.into());
    }
    let fields = fields(bytes).map_err(|e| format!("not a record: {e}"))?;
    let value = fields.get("record").ok_or("not a record: no field \"record\"")?;
    let kind: String = serde_json::from_str(value.get()).map_err(|_| "field \"record\" is not a string")?;
    Ok(kind.into())
}

/// The graph whose lines are passing.
struct OpenGraph {
    id: String,
    nodes: u64,
    digest: Sha256,
}

/// Reads lines and checks that the stream is whole.
pub struct Reader<R: Read> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    line: u64,
    stream: Sha256,
    open: Option<OpenGraph>,
    kind: String,
    end: Option<End>,
    accept_failed: bool,
}

impl<R: Read> Reader<R> {
    /// Reads from `input`, which needs no buffer of its own.
    pub fn new(input: R) -> Self {
        Reader {
            input,
            buffer: vec![0; BLOCK_BYTES],
            start: 0,
            filled: 0,
            line: 0,
            stream: Sha256::new(),
            open: None,
            kind: String::new(),
            end: None,
            accept_failed: false,
        }
    }

    /// Also reads a stream that ended with status `failed`.
    pub fn accept_failed(mut self) -> Self {
        self.accept_failed = true;
        self
    }

    /// The digest state over all lines so far and their count; after the last line, what stands before `end`.
    pub fn state(&self) -> (Sha256, u64) {
        let records = self.line - u64::from(self.end.is_some());
        (self.stream.clone(), records)
    }

    /// The `end` record, once the stream has been read to it.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The next line, or `None` after a valid `end` at the end of input.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, Error> {
        if self.end.is_some() {
            return Ok(None);
        }
        let Some(length) = self.find_line()? else {
            return Err(self.cut_short());
        };
        self.line += 1;
        let range = self.start..self.start + length;
        self.start = range.end;
        let bytes = &self.buffer[range.clone()];
        let kind = kind_of(bytes).map_err(|message| Error::Line { number: self.line, message })?;
        self.kind.clear();
        self.kind.push_str(&kind);
        if self.kind == End::KIND {
            self.check_end(range)?;
            return Ok(None);
        }
        self.check_framing(range.clone())?;
        Ok(Some(Line { number: self.line, kind: &self.kind, bytes: &self.buffer[range] }))
    }

    /// Length of the line at `start`, newline included, reading more as needed; `None` at the end of input.
    fn find_line(&mut self) -> Result<Option<usize>, Error> {
        let mut searched = 0;
        loop {
            let pending = &self.buffer[self.start + searched..self.filled];
            if let Some(at) = memchr::memchr(b'\n', pending) {
                return Ok(Some(searched + at + 1));
            }
            searched = self.filled - self.start;
            if searched > MAX_LINE_BYTES {
                let message = format!("line is longer than {MAX_LINE_BYTES} bytes");
                return Err(Error::Line { number: self.line + 1, message });
            }
            if !self.refill()? {
                return Ok(None);
            }
        }
    }

    /// Moves the pending bytes to the front, grows the buffer if they fill it, and reads once.
    fn refill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.filled * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(count) => {
                    self.filled += count;
                    return Ok(count > 0);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn cut_short(&self) -> Error {
        let rest = self.filled - self.start;
        let message = if self.line == 0 && rest == 0 {
            "empty input; expected a record stream, which starts with a begin record".to_owned()
        } else if rest > 0 {
            format!(
                "the stream is cut after {rest} bytes of this line; expected a newline and, last of all, an end record"
            )
        } else {
            "the stream is cut: it stops without an end record".to_owned()
        };
        Error::Cut { number: self.line + 1, message }
    }

    fn wrong(&self, message: String) -> Error {
        Error::Line { number: self.line, message }
    }

    /// Keeps the digests and checks that `begin`, graphs and seals stand where they may.
    fn check_framing(&mut self, range: std::ops::Range<usize>) -> Result<(), Error> {
        let line = Line { number: self.line, kind: &self.kind, bytes: &self.buffer[range.clone()] };
        if self.line == 1 {
            if self.kind != Begin::KIND {
                return Err(self.wrong(format!("the stream starts with a {} record; expected begin", self.kind)));
            }
            let begin: Begin = line.parse()?;
            if begin.schema != SCHEMA {
                return Err(self.wrong(format!("stream schema {:?}; this tool reads {SCHEMA}", begin.schema)));
            }
        }
        match self.kind.as_str() {
            Begin::KIND if self.line > 1 => return Err(self.wrong("a second begin record".into())),
            Graph::KIND => {
                if let Some(open) = &self.open {
                    return Err(self.wrong(format!("graph record inside graph {:?}, which is not sealed", open.id)));
                }
                let graph: Graph = line.parse()?;
                self.open = Some(OpenGraph { id: graph.graph, nodes: 0, digest: Sha256::new() });
            }
            Seal::KIND => {
                let seal: Seal = line.parse()?;
                self.check_seal(&seal)?;
            }
            "symbol" | "guard" | "input" | "node" | "output" if self.open.is_none() => {
                return Err(self.wrong(format!("{} record outside a graph", self.kind)));
            }
            "symbol" | "guard" | "input" | "node" | "output" => {}
            _ => {
                if let Some(open) = &self.open {
                    let message =
                        format!("{} record inside graph {:?}, whose lines must be contiguous", self.kind, open.id);
                    return Err(self.wrong(message));
                }
            }
        }
        let bytes = &self.buffer[range];
        self.stream.update(bytes);
        if let Some(open) = &mut self.open {
            open.digest.update(bytes);
            open.nodes += u64::from(self.kind == "node");
        }
        Ok(())
    }

    fn check_seal(&mut self, seal: &Seal) -> Result<(), Error> {
        let Some(open) = self.open.take() else {
            return Err(self.wrong(format!("seal of {:?}, but no graph is open", seal.graph)));
        };
        if open.id != seal.graph {
            return Err(self.wrong(format!("seal of {:?} inside graph {:?}", seal.graph, open.id)));
        }
        let found = hex(&open.digest.finalize());
        if seal.nodes != open.nodes || seal.sha256 != found {
            return Err(self.wrong(format!(
                "graph {:?} was edited after it was sealed: seal says {} nodes and sha256 {}, found {} and {found}; m2m-hash --seal \
                 rewrites seals after an edit on purpose",
                seal.graph, seal.nodes, seal.sha256, open.nodes
            )));
        }
        Ok(())
    }

    /// Checks `end` against what was read, and that nothing follows it.
    fn check_end(&mut self, range: std::ops::Range<usize>) -> Result<(), Error> {
        let number = self.line;
        let end: End = Line { number, kind: End::KIND, bytes: &self.buffer[range] }.parse()?;
        let cut = |message: String| Error::Cut { number, message };
        if number == 1 {
            return Err(self.wrong("the stream starts with an end record; expected begin".into()));
        }
        if let Some(open) = &self.open {
            return Err(cut(format!("the stream ends inside graph {:?}", open.id)));
        }
        let found = hex(&self.stream.clone().finalize());
        if end.records.is_some_and(|n| n != number - 1) || end.sha256.as_ref().is_some_and(|s| *s != found) {
            return Err(cut(format!(
                "the stream was cut or edited: end says {} records and sha256 {}, found {} and {found}; m2m-hash --seal rewrites \
                 end after an edit on purpose",
                end.records.map_or("no".into(), |n| n.to_string()),
                end.sha256.as_deref().unwrap_or("none"),
                number - 1
            )));
        }
        if self.find_line()?.is_some() || self.filled > self.start {
            return Err(Error::Cut { number: number + 1, message: "data after the end record".into() });
        }
        if end.status == Status::Failed && !self.accept_failed {
            return Err(Error::Failed { number });
        }
        self.end = Some(end);
        Ok(())
    }
}
