//! Reads a graph from MLIR bytecode.

use crate::finding::{Code, Findings};
use crate::ir::Graph;

/// What bytecode begins with.
const MAGIC: &[u8] = b"ML\xefR";

/// Whether bytes are MLIR bytecode.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads bytecode.
pub fn parse<'a>(_: &'a [u8], findings: &mut Findings) -> Graph<'a> {
    findings.push(Code::Bytecode, None, "bytecode is not read yet");
    Graph::default()
}
