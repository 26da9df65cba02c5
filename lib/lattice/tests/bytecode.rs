//! Bytecode that MLIR wrote (scripts/lattice-mlir --fixtures), in versions with and without sections and properties, of
//! registered operations and not: it reads as the text that it was made of, and damage to it is survived.

#![allow(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use m2m_lattice::finding::{Code, Findings};
use m2m_lattice::print::print;
use m2m_lattice::verify::verify;
use m2m_lattice::{bytecode, fuzz, text};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bytecode")
}

/// The text that a graph prints as, and the codes that are found in it.
fn printed(bytes: &[u8]) -> (String, Vec<Code>) {
    let mut findings = Findings::default();
    let graph = match bytecode::is_bytecode(bytes) {
        true => bytecode::parse(bytes, &mut findings),
        false => text::parse(bytes, &mut findings),
    };
    let model = verify(&graph, None, &mut findings);
    let printed = model.map(|model| print(&model)).unwrap_or_default();
    (printed, findings.into_sorted().into_iter().map(|finding| finding.code).collect())
}

#[test]
fn every_form_reads_as_its_text() {
    let (text, _) = printed(&std::fs::read(folder().join("graph.mlir")).unwrap());
    assert!(text.contains("array<i64: 1, 1, 300>") && text.contains("-2.5 : f32"), "{text}");
    for name in ["registered.v0", "registered.v3", "registered.v6", "unregistered.v6"] {
        let (found, codes) = printed(&std::fs::read(folder().join(format!("{name}.mlirbc"))).unwrap());
        assert_eq!(found, text, "{name}: {codes:?}");
        assert_eq!(codes, [], "{name}");
    }
}

#[test]
fn damage_is_survived_and_noticed() {
    for name in ["registered.v6", "unregistered.v6"] {
        let bytes = std::fs::read(folder().join(format!("{name}.mlirbc"))).unwrap();
        for end in 4..bytes.len() {
            let (_, codes) = printed(&bytes[..end]);
            assert!(codes.contains(&Code::Bytecode), "{name} cut at {end}: {codes:?}");
        }
        for at in 4..bytes.len() {
            for flip in [1u8, 255] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                fuzz::graph(&changed);
            }
        }
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = std::fs::read(folder().join("registered.v6.mlirbc")).unwrap();
    bytes[4] = 7 << 1 | 1;
    let mut findings = Findings::default();
    bytecode::parse(&bytes, &mut findings);
    let found = findings.into_sorted();
    assert_eq!(found[0].message, "byte 5: bytecode version 7; at most 6 is read");
}
