//! Tiny programs in all three layouts, built byte by byte so that each test can spoil one thing.
#![allow(dead_code, reason = "each test file uses a part")]

#[path = "../../../zip/tests/build/mod.rs"]
pub mod build;

use build::{Item, item, zip};
use m2m_pt2::{Capture, Error, Origin};
use serde_json::{Value, json};

/// A parameter `w` of f32 [2, 3], an input `x` of f32 [3, 2], and `mm(w, x)`.
pub fn program() -> Value {
    let tensor = |sizes: [i64; 2]| {
        json!({"dtype": 7, "sizes": [{"as_int": sizes[0]}, {"as_int": sizes[1]}], "requires_grad": false,
               "device": {"type": "cpu", "index": null}, "strides": [{"as_int": sizes[1]}, {"as_int": 1}],
               "storage_offset": {"as_int": 0}, "layout": 7})
    };
    let arg = |name: &str| json!({"as_tensor": {"name": name}});
    let leaf = r#"{"type": null, "context": null, "children_spec": []}"#;
    let tuple = format!(r#"{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}]}}"#);
    let dict = r#"{"type": "builtins.dict", "context": "[]", "children_spec": []}"#;
    json!({
        "graph_module": {
            "graph": {
                "inputs": [arg("p_w"), arg("x")],
                "outputs": [arg("mm")],
                "nodes": [{
                    "target": "torch.ops.aten.mm.default",
                    "inputs": [{"name": "self", "arg": arg("p_w"), "kind": 1}, {"name": "mat2", "arg": arg("x"), "kind": 1}],
                    "outputs": [arg("mm")],
                    "metadata": {"stack_trace": "File \"/a/model.py\", line 7, in forward\n    y", "nn_module_stack": "k,,M;k2,fc,L"}
                }],
                "tensor_values": {"p_w": tensor([2, 3]), "x": tensor([3, 2]), "mm": tensor([2, 2])},
                "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": false, "custom_obj_values": {}
            },
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                    {"user_input": {"arg": arg("x")}}
                ],
                "output_specs": [{"user_output": {"arg": arg("mm")}}]
            },
            "module_call_graph": [{"fqn": "", "signature": {
                "inputs": [], "outputs": [], "forward_arg_names": ["x"],
                "in_spec": format!(r#"[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{tuple}, {dict}]}}]"#),
                "out_spec": format!("[1, {leaf}]")
            }}]
        },
        "opset_version": {"aten": 10}, "range_constraints": {},
        "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], "torch_version": "2.13.0"
    })
}

/// The bytes of `w`: 1 to 6.
pub fn weight() -> Vec<u8> {
    (1..=6).flat_map(|n| (n as f32).to_le_bytes()).collect()
}

/// The weights config of [`program`].
pub fn config() -> Value {
    json!({"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false,
        "tensor_meta": program()["graph_module"]["graph"]["tensor_values"]["p_w"]}}})
}

/// The entries of a raw archive (torch 2.9 and later).
pub fn raw_items(program: &Value, config: &Value, weight: Vec<u8>) -> Vec<Item> {
    vec![
        item("m/data/weights/weight_0", weight),
        item("m/data/weights/model_weights_config.json", config.to_string()),
        item("m/data/constants/model_constants_config.json", r#"{"config": {}}"#),
        item("m/models/model.json", program.to_string()),
        item("m/archive_format", "pt2"),
        item("m/archive_version", "0"),
        item("m/.data/version", "6\n"),
        item("m/byteorder", "little"),
    ]
}

/// A raw archive of a program.
pub fn raw(program: &Value) -> Vec<u8> {
    zip(&raw_items(program, &config(), weight()))
}

/// A file of torch.save whose pickle is `pickle` and whose storage 0 is `storage`.
pub fn saved(pickle: &[u8], storage: Vec<u8>) -> Vec<u8> {
    zip(&[
        item("archive/data.pkl", pickle),
        item("archive/byteorder", "little"),
        item("archive/data/0", storage),
        item("archive/version", "3\n"),
    ])
}

/// Opcodes of the tensor f32 [2, 3] over storage 0.
pub fn tensor_pickle() -> Vec<u8> {
    let mut p = Vec::new();
    p.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n");
    p.extend(b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89");
    p.extend(b"ccollections\nOrderedDict\n)RtR");
    p
}

/// The pickle `{"w": tensor}`.
pub fn state_pickle() -> Vec<u8> {
    [b"\x80\x02}X\x01\x00\x00\x00w".as_slice(), &tensor_pickle(), b"s."].concat()
}

/// The pickle `((tensor, 5, None), {})`.
pub fn samples_pickle() -> Vec<u8> {
    [b"\x80\x02(".as_slice(), &tensor_pickle(), b"K\x05Nt}\x86."].concat()
}

/// A flat archive (torch 2.1 to 2.7).
pub fn flat(program: &Value) -> Vec<u8> {
    zip(&[
        item("serialized_exported_program.json", program.to_string()),
        item("serialized_state_dict.pt", saved(&state_pickle(), weight())),
        item("serialized_constants.pt", saved(b"\x80\x02}.", vec![])),
        item("version", "8.7"),
    ])
}

/// An archive with pickled state (torch 2.8).
pub fn pickled(program: &Value, state: &[u8]) -> Vec<u8> {
    zip(&[
        item("m/archive_format", "pt2"),
        item("m/archive_version", "0"),
        item("m/byteorder", "little"),
        item("m/models/model.json", program.to_string()),
        item("m/data/weights/model.pt", saved(state, weight())),
        item("m/data/constants/model.pt", saved(b"\x80\x02}.", vec![])),
        item("m/data/sample_inputs/model.pt", saved(&samples_pickle(), weight())),
    ])
}

/// Captures a file: the lines of its stream.
pub fn lines(bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let mut buffer = String::new();
    let capture = Capture::open(bytes, None, &mut buffer)?;
    let origin = Origin { name: "m.pt2", path: "m.pt2" };
    let (out, _) = capture.write(&origin, "0", None, Vec::new())?;
    Ok(out.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect())
}

/// The records of a kind.
pub fn records<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["record"] == kind).collect()
}

/// Why a file is refused.
pub fn refused(bytes: &[u8]) -> String {
    lines(bytes).expect_err("the file is wrong").to_string()
}
