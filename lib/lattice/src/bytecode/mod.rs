//! Reads a graph from MLIR bytecode, versions 0 to 6.
//!
//! Strings, types and attributes lie in tables; operations name them by number. Types and attributes of the dialect itself
//! are kept there as text, which the text parser reads; those of the builtin dialect have an encoding of their own. Properties
//! of a registered operation are its attributes sorted by name. Nothing in bytecode has a line, and its tables make no sense
//! after an error, so the first one ends the reading.
//!
//! The format: the document `BytecodeFormat` of MLIR, and `Encoding.h` and `BuiltinDialectBytecode.td` of LLVM 22.

mod attributes;
mod cursor;
mod ops;
mod tables;

use crate::finding::{Code, Findings};
use crate::ir::Graph;
use cursor::{Cursor, Read};
use ops::Ops;
use tables::Tables;

/// What bytecode begins with.
const MAGIC: &[u8] = b"ML\xefR";

/// The last version that is read.
const MAX_VERSION: u64 = 6;

/// Since this version dialects have versions.
const WITH_DIALECT_VERSIONS: u64 = 1;

/// Since this version the regions of an isolated operation are a section.
const WITH_SECTIONS: u64 = 2;

/// Since this version orders of uses are kept.
const WITH_USE_ORDERS: u64 = 3;

/// Since this version a block argument may lack a location, and the number of operation names is known.
const WITH_FLAGGED_ARGUMENTS: u64 = 4;

/// Since this version properties are apart from attributes.
const WITH_PROPERTIES: u64 = 5;

/// The sections of a file.
mod section {
    pub const STRINGS: u8 = 0;
    pub const DIALECTS: u8 = 1;
    pub const ATTRIBUTES: u8 = 2;
    pub const OFFSETS: u8 = 3;
    pub const IR: u8 = 4;
    pub const DIALECT_VERSIONS: u8 = 7;
    pub const PROPERTIES: u8 = 8;
    pub const COUNT: usize = 9;
}

/// Whether bytes are MLIR bytecode.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads bytecode. What is wrong with it goes to `findings`.
pub fn parse<'a>(bytes: &'a [u8], findings: &mut Findings) -> Graph<'a> {
    match read(bytes, findings) {
        Ok(graph) => graph,
        Err(wrong) => {
            findings.push(Code::Bytecode, None, format!("byte {}: {}", wrong.at, wrong.message));
            Graph::default()
        }
    }
}

fn read<'a>(bytes: &'a [u8], findings: &mut Findings) -> Read<Graph<'a>> {
    let mut file = Cursor::new(bytes);
    file.part(MAGIC.len() as u64)?;
    let version = file.varint()?;
    if version > MAX_VERSION {
        return file.wrong(format!("bytecode version {version}; at most {MAX_VERSION} is read"));
    }
    file.terminated()?;
    let mut sections: [Option<Cursor<'a>>; section::COUNT] = [None; section::COUNT];
    while !file.is_empty() {
        let (id, content) = file.section()?;
        match sections.get_mut(usize::from(id)) {
            Some(slot @ None) => *slot = Some(content),
            Some(Some(_)) => return file.wrong(format!("section {id} is there twice")),
            None => return file.wrong(format!("section {id} is none that is known")),
        }
    }
    let get = |id: u8| match sections.get(usize::from(id)).copied().flatten() {
        Some(content) => Ok(content),
        None => file.wrong(format!("section {id} is missing")),
    };
    let strings = tables::strings(get(section::STRINGS)?)?;
    let properties = match sections.get(usize::from(section::PROPERTIES)).copied().flatten() {
        Some(content) => tables::properties(content)?,
        None => Vec::new(),
    };
    let (dialects, names) = tables::dialects(get(section::DIALECTS)?, version, &strings)?;
    let entries = tables::entries(get(section::OFFSETS)?, get(section::ATTRIBUTES)?, &dialects)?;
    let tables = Tables::new(strings, entries, bytes.len());
    Ops::new(version, tables, names, properties, findings).file(get(section::IR)?)
}
