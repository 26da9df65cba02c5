//! What is in a bundle.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod sample;

use m2m_bundle::Manifest;
use m2m_tensor::safetensors::Header;
use sample::{MLIR, bundle, contents, passes, prepare, raw_file, stream, text};
use std::fs;
use std::path::Path;

fn made() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let input = prepare(dir.path());
    let out = bundle(dir.path(), &["-o", "out"], &input);
    assert_eq!((text(&out.stderr).as_str(), out.status.code()), ("", Some(0)));
    let folder = dir.path().join("out");
    (dir, folder)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn elements(path: &Path, name: &str) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let header = Header::read(&bytes).unwrap();
    let entry = &header.tensors[name];
    bytes[entry.offset as usize..][..entry.bytes as usize].to_vec()
}

#[test]
fn every_file_is_there_and_bound() {
    let (_dir, folder) = made();
    let names: Vec<_> = contents(&folder).into_iter().map(|(name, _)| name).collect();
    let want = [
        "goldens/0.safetensors",
        "inputs/0.safetensors",
        "manifest.json",
        "meta.json",
        "model.mlir",
        "receipt.json",
        "trace.ndjson",
        "weights.safetensors",
    ];
    assert_eq!(names, want);
    assert_eq!(fs::read_to_string(folder.join("model.mlir")).unwrap(), MLIR);
    assert!(passes(&folder));
}

/// By hand: `t` is the raw file's 6.0 … 11.0 seen as [3, 2] with strides [1, 3], so its rows are 6 9, 7 10, 8 11.
#[test]
fn weights_are_contiguous_and_tied_ones_are_stored_once() {
    let (_dir, folder) = made();
    let path = folder.join("weights.safetensors");
    assert_eq!(floats(&elements(&path, "w")), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(floats(&elements(&path, "t")), [6.0, 9.0, 7.0, 10.0, 8.0, 11.0]);
    assert_eq!(elements(&path, "c_big"), [1, 0, 2, 0, 3, 0]);
    assert_eq!(elements(&path, "c_in"), [7i64.to_le_bytes(), (-1i64).to_le_bytes()].concat());
    assert_eq!(elements(&path, "c_splat"), [9, 9, 9]);
    let bytes = fs::read(&path).unwrap();
    let header = Header::read(&bytes).unwrap();
    assert_eq!(header.tensors["tied"].offset, header.tensors["w"].offset);
    assert_eq!(header.notes.aliases.len(), 1);
}

#[test]
fn the_manifest_binds_arguments_by_index() {
    let (_dir, folder) = made();
    let manifest = Manifest::from_bytes(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let found: Vec<_> = manifest.arguments.iter().map(|a| (a.index.unwrap(), a.tensor.as_deref())).collect();
    let tensors = [Some("w"), Some("tied"), Some("t"), Some("c_big"), Some("c_in"), Some("c_splat"), None];
    assert_eq!(found, (0..7).zip(tensors).collect::<Vec<_>>());
    let digests: Vec<_> = manifest.arguments.iter().map(|a| a.sha256.clone()).collect();
    assert_eq!(digests[0].as_deref(), Some(m2m_digest::Digest::of(&raw_file()[..24]).to_string().as_str()));
    assert_eq!((&digests[1], &digests[6]), (&digests[0], &None));
    assert_eq!((manifest.weights.tensors, manifest.model.entry.as_str()), (5, "forward"));
    let example = &manifest.examples[0];
    assert_eq!(floats(&elements(&folder.join(&example.inputs), "in_0")), [0.0, 1.0, 2.0]);
    assert_eq!(floats(&elements(&folder.join(&example.goldens), "out_0")), [3.0, 4.0]);
}

#[test]
fn the_trace_is_the_stream_with_the_bundle_in_it() {
    let (_dir, folder) = made();
    let trace = fs::read_to_string(folder.join("trace.ndjson")).unwrap();
    let input = text(&stream("raw.bin"));
    let (before, _) = input.trim_end().rsplit_once('\n').unwrap();
    let rest = trace.strip_prefix(before).unwrap();
    let kinds: Vec<_> = rest.lines().skip(1).map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(kinds, ["tool", "file", "end"]);
    let mut reader = m2m_record::Reader::new(trace.as_bytes());
    while reader.next_line().unwrap().is_some() {}
    let meta: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("meta.json")).unwrap()).unwrap();
    assert_eq!(meta["trace"]["records"], reader.end().unwrap().records.unwrap());
    assert_eq!(meta["tools"].as_array().unwrap().len(), 2);
}

#[test]
fn json_files_are_canonical() {
    let (_dir, folder) = made();
    for name in ["manifest.json", "meta.json", "receipt.json"] {
        let bytes = fs::read(folder.join(name)).unwrap();
        assert_eq!(m2m_digest::canonical_json(&bytes).unwrap() + "\n", text(&bytes), "{name}");
    }
}

#[test]
fn the_same_bytes_from_anywhere() {
    let (dir, folder) = made();
    let elsewhere = tempfile::tempdir().unwrap();
    let absolute = format!("{}/raw.bin", dir.path().display());
    let target = elsewhere.path().join("other name");
    let out = bundle("/".as_ref(), &["-o", target.to_str().unwrap()], &stream(&absolute));
    assert_eq!((text(&out.stderr).as_str(), out.status.code()), ("", Some(0)));
    assert_eq!(contents(&folder), contents(&target));
    let out = bundle(elsewhere.path(), &["-o", "third/", "--root", dir.path().to_str().unwrap()], &stream("raw.bin"));
    assert_eq!((text(&out.stderr).as_str(), out.status.code()), ("", Some(0)));
    assert_eq!(contents(&folder), contents(&elsewhere.path().join("third")));
}
