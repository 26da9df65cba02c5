//! One program in three layouts gives one graph, and its weight is found in each.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use m2m_pt2::{Capture, Origin};
use serde_json::{Value, json};
use support::build::{item, zip};
use support::*;

/// The graph's lines without the place of the weight, which differs.
fn graph(lines: &[Value]) -> Vec<Value> {
    let start = lines.iter().position(|line| line["record"] == "graph").unwrap();
    let end = lines.iter().position(|line| line["record"] == "seal").unwrap();
    let mut lines = lines[start..end].to_vec();
    lines.iter_mut().filter_map(|line| line["data"].as_object_mut()).for_each(|data| drop(data.remove("offset")));
    lines
}

#[test]
fn all_layouts_give_the_same_graph() {
    let program = program();
    let files = [raw(&program), flat(&program), pickled(&program, &state_pickle())];
    let graphs: Vec<Vec<Value>> = files.iter().map(|file| graph(&lines(file).unwrap())).collect();
    assert_eq!(graphs[0], graphs[1]);
    assert_eq!(graphs[0], graphs[2]);
    for file in &files {
        let all = lines(file).unwrap();
        let data = &records(&all, "input")[0]["data"];
        let offset = data["offset"].as_u64().unwrap() as usize;
        assert_eq!(file[offset..offset + data["bytes"].as_u64().unwrap() as usize], weight());
    }
}

#[test]
fn a_node_has_its_names() {
    let all = lines(&raw(&program())).unwrap();
    let node = records(&all, "node")[0];
    assert_eq!(
        *node,
        json!({"record": "node", "graph": "original", "stage": "original", "node": "original:0", "op": "aten.mm.default",
               "args": [{"v": "p_w"}, {"v": "x"}],
               "results": [{"value": "mm", "type": {"tensor": "f32", "shape": [2, 2]}}],
               "scope": "fc", "loc": "model.py:7"})
    );
}

#[test]
fn positional_arguments_of_old_files_come_from_the_schema() {
    let mut program = program();
    let inputs = &mut program["graph_module"]["graph"]["nodes"][0]["inputs"];
    inputs.as_array_mut().unwrap().iter_mut().for_each(|input| drop(input.as_object_mut().unwrap().remove("kind")));
    let all = lines(&raw(&program)).unwrap();
    assert_eq!(records(&all, "node")[0]["args"], json!([{"v": "p_w"}, {"v": "x"}]));
}

#[test]
fn bare_infinities_and_missing_fields_of_old_files_are_read() {
    let mut program = program();
    program["schema_version"] = json!({"major": 5, "minor": 3});
    program.as_object_mut().unwrap().remove("torch_version");
    program.as_object_mut().unwrap().remove("verifiers");
    program["dialect"] = json!("ATEN");
    let node = &mut program["graph_module"]["graph"]["nodes"][0];
    node["target"] = json!("torch.ops.aten.clamp.default");
    node["inputs"][1] = json!({"name": "min", "arg": {"as_float": "HERE"}});
    let text = program.to_string().replace("\"HERE\"", "-Infinity");
    let mut items = raw_items(&program, &config(), weight());
    items[3] = item("m/models/model.json", text);
    let all = lines(&zip(&items)).unwrap();
    assert_eq!(records(&all, "node")[0]["args"][1], json!({"float": "-inf"}));
    assert_eq!(records(&all, "source")[0]["verifiers"], json!(["ATEN"]));
    assert_eq!(records(&all, "source")[0]["schema"], "5.3");
}

#[test]
fn weights_and_samples_are_written() {
    let file = pickled(&program(), &state_pickle());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.pt2");
    std::fs::write(&path, &file).unwrap();
    let mut buffer = String::new();
    let capture = Capture::open(&file, None, &mut buffer).unwrap();
    let path = path.to_str().unwrap();
    let origin = Origin { name: "m.pt2", path };
    let mut out = Vec::new();
    capture.plan_weights().unwrap().write(&capture.file(&origin), &mut out).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&out).unwrap();
    assert_eq!(tensors.tensor("w").unwrap().data(), weight());
    let mut out = Vec::new();
    capture.write_samples(&origin, &mut out).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&out).unwrap();
    assert_eq!(tensors.tensor("in_0").unwrap().shape(), [2, 3]);
    assert_eq!(tensors.tensor("in_1").unwrap().data(), 5i64.to_le_bytes());
    assert_eq!(tensors.len(), 2);
}

#[test]
fn a_flipped_bit_in_a_weight_is_found_when_weights_are_written() {
    let mut file = raw(&program());
    let offset = records(&lines(&file).unwrap(), "input")[0]["data"]["offset"].as_u64().unwrap() as usize;
    file[offset] ^= 1;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.pt2");
    std::fs::write(&path, &file).unwrap();
    let mut buffer = String::new();
    let capture = Capture::open(&file, None, &mut buffer).unwrap();
    let origin = Origin { name: "m.pt2", path: path.to_str().unwrap() };
    let weights = capture.plan_weights().unwrap();
    let error = weights.write(&capture.file(&origin), &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("weight_0") && error.contains("CRC-32"), "{error}");
}

#[test]
fn the_identity_does_not_depend_on_weight_bytes_being_read() {
    let (a, mut other) = (raw(&program()), raw_items(&program(), &config(), weight()));
    other[0].data[0] ^= 1;
    let b = zip(&other);
    let identity = |file: &[u8]| records(&lines(file).unwrap(), "tool")[0]["inputs"][0]["sha256"].clone();
    assert_eq!(identity(&a), identity(&raw(&program())));
    assert_ne!(identity(&a), identity(&b), "the directory's CRC tells them apart");
}
