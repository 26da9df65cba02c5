//! The schema document and its digest, by which a graph and its reader know that they mean the same dialect.

use super::{ATTRIBUTES, Class, Kind, NAMESPACE, OPS, Parameter, TYPES, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The digest that a graph of IR version 2 states in `lattice.schema_digest`.
pub const SCHEMA_DIGEST: &str = "1380f1e819fc0eb1af587202ecec3c14ec2c981d249333c5061f0263f82072ad";

/// Digests of versions that are not read any more: their first and last hexadecimal digits, and the version.
const EARLIER: &[(&str, &str, i64)] = &[
    ("eb5aaff9fc917038f49f4c62f9e19c2d78d2b3540035de55c270b9513d3156aa", "", 1),
    ("de8cda63", "9bfd1", 0),
    ("545fd430", "3369c", 0),
    ("e48cb610", "476c9", 0),
    ("33a97d62", "f66c7", 0),
    ("8a5ace10", "73088", 0),
    ("314833e3", "5c4a1", 0),
    ("81c84249", "65443", 0),
];

/// The IR version that a schema digest belongs to.
pub fn known_version(digest: &str) -> Option<i64> {
    if digest == SCHEMA_DIGEST {
        return Some(super::IR_VERSION);
    }
    let is_digest = digest.len() == SCHEMA_DIGEST.len();
    let mut earlier = EARLIER.iter().filter(|(head, tail, _)| digest.starts_with(head) && digest.ends_with(tail));
    earlier.next().filter(|_| is_digest).map(|(.., version)| *version)
}

/// SHA-256 of [`document`], in lower-case hexadecimal.
pub fn digest() -> String {
    m2m_record::writer::hex(&Sha256::digest(document().as_bytes()))
}

/// The schema as JSON: no spaces, keys sorted at every level, lists in the order of the tables.
pub fn document() -> String {
    let mut out = String::from("{\"attrs\":");
    list(&mut out, ATTRIBUTES, |out, each| {
        parameters(out, each.mnemonic, each.name, each.parameters);
        out.push_str(",\"values\":");
        list(out, each.values, |out, value| push_string(out, value));
        out.push('}');
    });
    let _ = write!(out, ",\"namespace\":\"{NAMESPACE}\",\"ops\":");
    list(&mut out, OPS, |out, each| {
        let _ = write!(out, "{{\"assembly\":\"{}\",\"attributes\":", each.assembly.name());
        list(out, each.attributes, |out, field| attribute(out, field.name, field.kind));
        let _ = write!(out, ",\"name\":\"{}\",\"operands\":", each.name);
        list(out, each.operands, operand);
        let _ = write!(out, ",\"python_name\":\"{}\",\"results\":", each.python_name());
        list(out, each.results, |out, value| {
            let _ = write!(out, "{{\"name\":\"{}\",\"type\":\"{}\"}}", value.name, value.class.name());
        });
        out.push('}');
    });
    out.push_str(",\"types\":");
    list(&mut out, TYPES, |out, each| {
        parameters(out, each.mnemonic, each.name, each.parameters);
        out.push('}');
    });
    out.push('}');
    out
}

/// Opens an object with a mnemonic, a name and parameters.
fn parameters(out: &mut String, mnemonic: &str, name: &str, parameters: &[Parameter]) {
    let _ = write!(out, "{{\"mnemonic\":\"{mnemonic}\",\"name\":\"{name}\",\"parameters\":");
    list(out, parameters, |out, each| {
        let _ = write!(out, "{{\"kind\":\"{}\",\"name\":\"{}\"}}", each.kind, each.name);
    });
}

fn attribute(out: &mut String, name: &str, kind: Kind) {
    let _ = write!(out, "{{\"kind\":\"{}\",\"name\":\"{name}\",\"required\":true}}", kind.name());
}

fn operand(out: &mut String, value: &Value) {
    let kind = if value.class == Class::Symbol { "symbol" } else { "ssa" };
    let (name, class) = (value.name, value.class.name());
    let _ = write!(
        out,
        "{{\"kind\":\"{kind}\",\"name\":\"{name}\",\"optional\":{},\"type\":\"{class}\"}}",
        value.is_optional
    );
}

/// Names of the tables need no escapes.
fn push_string(out: &mut String, text: &str) {
    let _ = write!(out, "\"{text}\"");
}

fn list<T>(out: &mut String, items: &[T], each: impl Fn(&mut String, &T)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_published_digest() {
        assert_eq!(document().len(), 16_760);
        assert_eq!(digest(), SCHEMA_DIGEST);
    }

    #[test]
    fn earlier_versions_are_known_by_their_digests() {
        assert_eq!(known_version(SCHEMA_DIGEST), Some(2));
        assert_eq!(known_version("eb5aaff9fc917038f49f4c62f9e19c2d78d2b3540035de55c270b9513d3156aa"), Some(1));
        let zero = format!("de8cda63{}9bfd1", "0".repeat(51));
        assert_eq!(known_version(&zero), Some(0));
        assert_eq!(known_version("de8cda639bfd1"), None);
        assert_eq!(known_version(&"0".repeat(64)), None);
    }
}
