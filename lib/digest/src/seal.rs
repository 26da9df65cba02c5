//! Rewrites the seals and the end of a record stream that someone edited on purpose.
//!
//! Every other line stays as it is, byte for byte. A stream without `end` is refused: it was cut, not edited.

use crate::{Digest, Error, Hasher};
use m2m_record::{End, Reader, Seal, Status, writer};
use serde::Deserialize;
use std::borrow::Cow;
use std::io::Read;

/// Any record: only its kind is looked at.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    record: Cow<'a, str>,
}

/// What is kept of a `seal`.
#[derive(Deserialize)]
struct OldSeal {
    graph: String,
}

/// What is kept of an `end`.
#[derive(Deserialize)]
struct OldEnd {
    status: Status,
}

/// The digest of the graph whose lines are passing.
#[derive(Default)]
struct OpenGraph {
    hasher: Hasher,
    nodes: u64,
}

/// The stream with new seals and a new end, checked by the reader that every tool uses.
pub fn reseal(mut input: impl Read) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    input.read_to_end(&mut text)?;
    let sealed = rewrite(&text)?;
    let mut reader = Reader::new(&sealed[..]).accept_failed();
    loop {
        match reader.next_line() {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(sealed),
            Err(error) => return Err(fail(error.line().unwrap_or(0), error.to_string())),
        }
    }
}

fn fail(line: u64, message: impl Into<String>) -> Error {
    Error::Seal { line, message: message.into() }
}

fn rewrite(text: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(text.len() + 256);
    let mut open: Option<OpenGraph> = None;
    let mut number = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(length);
        rest = after;
        number += 1;
        let kind: Kind = parse(line, number)?;
        match kind.record.as_ref() {
            "end" => {
                if !rest.is_empty() {
                    return Err(fail(number + 1, "data after the end record; expected the end of the input"));
                }
                write_end(parse(line, number)?, number - 1, &mut out)?;
                return Ok(out);
            }
            "seal" => {
                let graph = open.take().ok_or_else(|| fail(number, "a seal, but no graph is open"))?;
                write_seal(parse(line, number)?, graph, &mut out)?;
                continue;
            }
            "graph" => open = Some(OpenGraph::default()),
            _ => {}
        }
        if !line.ends_with(b"\n") {
            return Err(fail(number, "the stream is cut: this line has no newline"));
        }
        if let Some(graph) = &mut open {
            graph.hasher.update(line);
            graph.nodes += u64::from(kind.record == "node");
        }
        out.extend_from_slice(line);
    }
    Err(fail(number + 1, "the stream has no end record: it was cut, and a cut stream is not sealed"))
}

fn parse<'a, T: Deserialize<'a>>(line: &'a [u8], number: u64) -> Result<T, Error> {
    serde_json::from_slice(line).map_err(|error| {
        let words = error.to_string();
        fail(number, format!("not a record: {}", words.split(" at line").next().unwrap_or_default()))
    })
}

fn write_seal(old: OldSeal, graph: OpenGraph, out: &mut Vec<u8>) -> Result<(), Error> {
    let sha256 = graph.hasher.finish().digest.to_string();
    Ok(writer::render(&Seal { graph: old.graph, nodes: graph.nodes, sha256 }, out)?)
}

fn write_end(old: OldEnd, records: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let sha256 = Some(Digest::of(out).to_string());
    Ok(writer::render(&End { status: old.status, records: Some(records), sha256 }, out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = concat!(
        "{\"record\":\"begin\",\"schema\":\"m2m.stream.v1\"}\n",
        "{\"record\":\"graph\",\"graph\":\"original\",\"stage\":\"original\",\"entry\":\"forward\"}\n",
        "{\"record\":\"output\",\"graph\":\"original\",\"outputs\":[]}\n",
        "{\"record\":\"seal\",\"graph\":\"original\",\"nodes\":7,\"sha256\":\"old\"}\n",
        "{\"record\":\"end\",\"status\":\"ok\"}\n",
    );

    #[test]
    fn seals_are_rewritten_and_the_rest_stays() {
        let sealed = String::from_utf8(reseal(STREAM.as_bytes()).unwrap()).unwrap();
        let (old, new): (Vec<_>, Vec<_>) = (STREAM.lines().collect(), sealed.lines().collect());
        assert_eq!(old[..3], new[..3]);
        let graph: String = old[1..3].iter().map(|line| format!("{line}\n")).collect();
        let digest = Digest::of(graph.as_bytes());
        assert_eq!(
            new[3],
            format!("{{\"record\":\"seal\",\"graph\":\"original\",\"nodes\":0,\"sha256\":\"{digest}\"}}")
        );
        assert_eq!(reseal(sealed.as_bytes()).unwrap(), sealed.as_bytes(), "sealing twice changes nothing");
    }

    #[test]
    fn a_cut_stream_is_not_sealed() {
        let whole = STREAM.trim_end().len();
        for cut in 0..whole {
            assert!(reseal(&STREAM.as_bytes()[..cut]).is_err(), "cut at {cut}");
        }
        let more = format!("{STREAM}{{}}\n");
        assert!(reseal(more.as_bytes()).unwrap_err().to_string().contains("after the end"));
    }
}
