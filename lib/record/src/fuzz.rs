//! The body of the record reader's fuzz target, which an ordinary test runs over the saved corpus too.

use crate::graph::{Graph, Guard, Input, Node, Output, Symbol};
use crate::reader::{Reader, parse_line};
use crate::writer::render;
use crate::{Body, Pipe};

/// Reads `bytes` as a stream to its end or its first error, and checks that every record that parses renders to
/// something that parses to the same record.
#[doc(hidden)]
pub fn stream(bytes: &[u8]) {
    let mut pipe = Pipe::new(Reader::new(bytes).accept_failed(), std::io::sink());
    while let Ok(Some(line)) = pipe.next_line() {
        match line.kind {
            "graph" => round::<Graph>(line.bytes),
            "symbol" => round::<Symbol>(line.bytes),
            "guard" => round::<Guard>(line.bytes),
            "input" => round::<Input>(line.bytes),
            "node" => round::<Node>(line.bytes),
            "output" => round::<Output>(line.bytes),
            _ => {}
        }
    }
    round::<Node>(bytes);
}

fn round<R: Body + PartialEq + std::fmt::Debug>(line: &[u8]) {
    let Ok(record) = parse_line::<R>(line) else { return };
    let mut text = Vec::new();
    render(&record, &mut text).expect("a vector takes every byte");
    let again = parse_line::<R>(&text).expect("what was rendered parses");
    assert_eq!(record, again);
}
