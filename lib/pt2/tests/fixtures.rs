//! Every fixture is captured, and has the operators, types, roles and names that PyTorch saw when it was exported.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use m2m_pt2::{Archive, Capture, Origin};
use serde_json::Value;

/// A type as the fixtures spell it: `f32[2,?]`, `int`, `token`, `none`.
fn spell(ty: &Value) -> String {
    if let Some(scalar) = ty["scalar"].as_str() {
        return scalar.to_owned();
    }
    if ty["token"] == true {
        return "token".to_owned();
    }
    let Some(dtype) = ty["tensor"].as_str() else { return "none".to_owned() };
    let dim = |d: &Value| d.as_i64().map_or("?".to_owned(), |d| d.to_string());
    let shape: Vec<String> = ty["shape"].as_array().unwrap().iter().map(dim).collect();
    format!("{dtype}[{}]", shape.join(","))
}

/// The words of a list and of the lists in it, or the one word, without `none`.
fn words(value: &Value) -> Vec<String> {
    match value.as_array() {
        Some(list) => list.iter().flat_map(words).collect(),
        None => value.as_str().filter(|word| *word != "none").map(str::to_owned).into_iter().collect(),
    }
}

fn check(name: &str, lines: &[Value], expected: &Value) {
    let of = |kind: &str| -> Vec<&Value> {
        lines.iter().filter(|l| l["record"] == kind && l["graph"] == "original").collect()
    };
    let nodes = of("node");
    let wanted = expected["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), wanted.len(), "{name}: nodes");
    for (node, wanted) in nodes.iter().zip(wanted) {
        let results = node["results"].as_array().unwrap();
        let types: Vec<String> = results.iter().filter(|r| !r["value"].is_null()).map(|r| spell(&r["type"])).collect();
        assert_eq!((node["op"].as_str(), types), (wanted[0].as_str(), words(&wanted[1])), "{name}: {}", node["node"]);
    }
    let inputs = of("input");
    let wanted = expected["signature"].as_array().unwrap();
    assert_eq!(inputs.len(), wanted.len(), "{name}: inputs");
    for (input, wanted) in inputs.iter().zip(wanted) {
        assert_eq!(input["role"], wanted[0], "{name}: {}", input["value"]);
        assert_eq!(input["target"], wanted[1], "{name}: {}", input["value"]);
        assert_eq!(input["value"], wanted[2], "{name}");
        if input["role"] != "constant_input" {
            assert_eq!(spell(&input["type"]), wanted[3], "{name}: {}", input["value"]);
        }
    }
}

#[test]
fn fixtures_are_what_pytorch_exported() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(bytes) = fs::read(path.join("model.pt2")) else { continue };
        let expected: Value = serde_json::from_slice(&fs::read(path.join("expected.json")).unwrap()).unwrap();
        // Of several programs the expectations are about the first.
        let archive = Archive::open(&bytes).unwrap();
        let program = archive.programs()[0].clone();
        let mut buffer = String::new();
        let capture = Capture::open(&bytes, Some(&program), &mut buffer).unwrap_or_else(|e| panic!("{name}: {e}"));
        let origin = Origin { name: "model.pt2", path: "model.pt2" };
        let (out, _) = capture.write(&origin, "0", None, Vec::new()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (again, _) = capture.write(&origin, "0", None, Vec::new()).unwrap();
        assert_eq!(out, again, "{name}: the stream differs the second time");
        let lines: Vec<Value> =
            std::str::from_utf8(&out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        check(&name, &lines, &expected);
        count += 1;
    }
    assert!(count > 20, "only {count} fixtures were found");
}
