//! Reads a graph from MLIR's text: pretty and generic form, mixed, with aliases, locations and comments.
//!
//! A parser in safe Rust rather than MLIR's own, for these reasons. MLIR stops at the first error of syntax; this one goes
//! on with the next entry of a dictionary or the next operation and reports all. MLIR overruns its stack on deep nesting;
//! here nesting is bounded. MLIR takes most of the time and memory that the whole check of a large graph may take, while
//! this costs a fraction, and what uses it needs no LLVM to be built or to start. The price is that the grammar is written
//! twice: once there and once here, and so the tests hold it against the compiler's own tools wherever those can read the
//! dialect.
//!
//! The grammar is that of MLIR 22 as far as a module of this dialect can use it: the operations `module`, `func.func`,
//! `return` and those of the dialect; all builtin attributes and types, those without meaning here kept as text.
//! Operations of other dialects cannot be read in their pretty form and are reported by name.

mod attributes;
mod function;
mod lexer;
mod location;
mod ops;
mod parser;
mod region;
mod types;

use crate::finding::{Code, Findings};
use crate::ir::{Attribute, Graph, TypeId, Types};

/// Deepest nesting of brackets that is read.
pub const MAX_NESTING: usize = 256;

/// Longest text that is read: places in it are kept in 32 bits.
pub const MAX_TEXT_BYTES: usize = 1 << 30;

/// Reads a text. What is wrong with it goes to `findings`; what could be read is returned all the same.
pub fn parse<'a>(bytes: &'a [u8], findings: &mut Findings) -> Graph<'a> {
    if bytes.len() > MAX_TEXT_BYTES {
        let message = format!("{} bytes; at most {MAX_TEXT_BYTES} are read", bytes.len());
        findings.push(Code::Syntax, 0, message);
        return Graph::default();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => parser::Parser::new(text, findings).file(),
        Err(error) => {
            let message = format!("byte 0x{:02x} is not UTF-8", bytes.get(error.valid_up_to()).unwrap_or(&0));
            findings.push(Code::Encoding, error.valid_up_to() as u32, message);
            Graph::default()
        }
    }
}

/// Reads an attribute that stands alone, as bytecode keeps those of a dialect.
pub(crate) fn attribute<'a>(text: &'a str, types: &mut Types) -> Option<Attribute<'a>> {
    fragment(text, types, |parser| parser.attribute())
}

/// Reads a type that stands alone.
pub(crate) fn ty(text: &str, types: &mut Types) -> Option<TypeId> {
    fragment(text, types, |parser| parser.ty())
}

fn fragment<'a, T>(
    text: &'a str,
    types: &mut Types,
    read: impl FnOnce(&mut parser::Parser<'a, '_>) -> parser::Read<T>,
) -> Option<T> {
    let mut findings = Findings::default();
    let mut parser = parser::Parser::new(text, &mut findings);
    parser.graph.types = std::mem::take(types);
    let value = read(&mut parser).ok().filter(|_| parser.is_end());
    *types = std::mem::take(&mut parser.graph.types);
    value.filter(|_| !findings.has_errors())
}
