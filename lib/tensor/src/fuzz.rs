//! The bodies of this crate's fuzz targets, which ordinary tests run over the saved corpus too.

use crate::expr::Expr;
use crate::safetensors::Header;

/// Reads bytes as a safetensors header; every tensor of an accepted one lies inside the file.
#[doc(hidden)]
pub fn safetensors(bytes: &[u8]) {
    if let Ok(header) = Header::read(bytes) {
        for entry in header.tensors.values() {
            assert!(entry.offset + entry.bytes <= bytes.len() as u64);
        }
    }
}

/// Reads text as an expression; its canonical text reads to the same canonical text.
#[doc(hidden)]
pub fn expression(text: &str) {
    if let Ok(expr) = text.parse::<Expr>() {
        let canonical = expr.to_string();
        let again: Expr = canonical.parse().expect("canonical text parses");
        assert_eq!(canonical, again.to_string(), "from {text:?}");
    }
}
