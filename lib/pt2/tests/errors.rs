//! Each way in which a file is refused, with the entry and what was found there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use m2m_pt2::Capture;
use serde_json::{Value, json};
use support::build::{item, zip};
use support::*;

#[track_caller]
fn refused_with(bytes: &[u8], parts: &[&str]) {
    let error = refused(bytes);
    for part in parts {
        assert!(error.contains(part), "{error:?} should contain {part:?}");
    }
}

/// The raw archive of a program after a change.
fn changed(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut program = program();
    change(&mut program);
    raw(&program)
}

#[test]
fn torn_anywhere() {
    let whole = raw(&program());
    for len in (0..whole.len()).step_by(7) {
        lines(&whole[..len]).expect_err("a torn archive");
    }
    refused_with(&whole[..whole.len() - 1], &["torn"]);
}

#[test]
fn compressed_entries() {
    let mut items = raw_items(&program(), &config(), weight());
    (items[0].method, items[0].unpacked) = (8, Some(u32::MAX - 1));
    refused_with(&zip(&items), &["weight_0", "compressed", "4294967294"]);
}

#[test]
fn no_program_inside() {
    refused_with(
        &zip(&[item("m/data/aotinductor/net/net.so", "x"), item("m/archive_format", "pt2")]),
        &["AOTInductor", "net"],
    );
    refused_with(&zip(&[item("m/data.pkl", "x"), item("m/version", "3")]), &["checkpoint"]);
    refused_with(&zip(&[item("m/data.pkl", "x"), item("m/constants.pkl", "x")]), &["TorchScript"]);
    refused_with(&zip(&[item("readme", "x")]), &["readme"]);
}

#[test]
fn several_programs_need_a_choice() {
    let mut items = raw_items(&program(), &config(), weight());
    items.push(item("m/models/decode.json", program().to_string()));
    items.push(item("m/data/weights/decode_weights_config.json", config().to_string()));
    let file = zip(&items);
    refused_with(&file, &["model, decode", "--program"]);
    let mut buffer = String::new();
    let error = Capture::open(&file, Some("prefill"), &mut buffer).unwrap_err().to_string();
    assert!(error.contains("prefill") && error.contains("model, decode"), "{error}");
    let mut buffer = String::new();
    Capture::open(&file, Some("decode"), &mut buffer).unwrap();
}

#[test]
fn versions() {
    refused_with(&changed(|p| p["schema_version"]["major"] = json!(9)), &["9.20", "5 to 8"]);
    let newer = lines(&changed(|p| {
        p["schema_version"]["minor"] = json!(21);
        p["graph_module"]["graph"]["nodes"][0]["stream"] = json!(3);
        p["graph_module"]["graph"]["nodes"][0]["empty"] = json!(null);
    }));
    let newer = newer.unwrap();
    let diagnostics = records(&newer, "diagnostic");
    assert_eq!((&diagnostics[0]["code"], &diagnostics[0]["severity"]), (&json!("newer-schema"), &json!("warning")));
    assert!(diagnostics[1]["message"].as_str().unwrap().contains("Node.stream (1)"), "{diagnostics:?}");
    assert!(!diagnostics[1]["message"].as_str().unwrap().contains("empty"));
    let mut items = raw_items(&program(), &config(), weight());
    items[5] = item("m/archive_version", "1");
    refused_with(&zip(&items), &["archive_version", "\"1\""]);
}

#[test]
fn graphs_out_of_order() {
    let arg = |name: &str| json!({"as_tensor": {"name": name}});
    let relu = |from: &str, to: &str| {
        json!({"target": "torch.ops.aten.relu.default", "inputs": [{"name": "self", "arg": arg(from), "kind": 1}],
               "outputs": [arg(to)], "metadata": {}})
    };
    let with = |nodes: Value| {
        changed(|p| {
            let graph = &mut p["graph_module"]["graph"];
            for name in ["a", "b"] {
                graph["tensor_values"][name] = graph["tensor_values"]["mm"].clone();
            }
            graph["nodes"].as_array_mut().unwrap().extend(nodes.as_array().unwrap().clone());
        })
    };
    refused_with(&with(json!([relu("b", "a"), relu("a", "b")])), &["node 1", "\"b\"", "node 2", "order"]);
    refused_with(&with(json!([relu("a", "a")])), &["node 1", "cycle"]);
    refused_with(&with(json!([relu("zzz", "a")])), &["node 1", "\"zzz\"", "nothing defines"]);
    refused_with(&with(json!([relu("mm", "a"), relu("mm", "a")])), &["node 2", "\"a\"", "second time"]);
    lines(&with(json!([relu("mm", "a"), relu("a", "b")]))).unwrap();
}

#[test]
fn signatures_that_do_not_fit() {
    refused_with(
        &changed(|p| drop(p["graph_module"]["signature"]["input_specs"].as_array_mut().unwrap().pop())),
        &["1 input specs for 2 inputs"],
    );
    refused_with(
        &changed(|p| {
            p["graph_module"]["signature"]["input_specs"][1]["user_input"]["arg"]["as_tensor"]["name"] = json!("p_w")
        }),
        &["input 1", "\"p_w\"", "\"x\""],
    );
    refused_with(
        &changed(|p| p["graph_module"]["graph"]["outputs"][0]["as_tensor"]["name"] = json!("q")),
        &["output 0", "\"q\""],
    );
    refused_with(
        &changed(|p| p["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json!("[1, {}")),
        &["module_call_graph", "pytree"],
    );
}

#[test]
fn unknown_kinds_and_numbers() {
    let spoil =
        |pointer: &str, value: Value| changed(|p| *p["graph_module"]["graph"].pointer_mut(pointer).unwrap() = value);
    refused_with(
        &spoil("/nodes/0/inputs/1/arg", json!({"as_sparse": 3})),
        &["models/model.json", "as_sparse", "as_tensor"],
    );
    refused_with(&spoil("/nodes/0/inputs/1/arg", json!({"as_int": 3, "as_bool": true})), &["two keys", "as_bool"]);
    refused_with(&spoil("/nodes/0/inputs/1/arg", json!({"as_scalar_type": 99})), &["node 0", "mat2", "ScalarType 99"]);
    refused_with(&spoil("/tensor_values/mm/dtype", json!(77)), &["node 0", "ScalarType 77"]);
    refused_with(&spoil("/nodes/0/inputs/1/arg", json!({"as_int": 1e30})), &["models/model.json", "i64"]);
    refused_with(
        &spoil("/tensor_values/mm/sizes/0", json!({"as_expr": {"expr_str": "RoundToInt(s0)", "hint": null}})),
        &["node 0", "RoundToInt"],
    );
    refused_with(&spoil("/tensor_values/mm/sizes", json!([])), &["2 strides for 0 sizes"]);
}

#[test]
fn malformed_json_is_placed() {
    let mut items = raw_items(&program(), &config(), weight());
    items[3] = item("m/models/model.json", "{\"graph_module\": tru}");
    refused_with(&zip(&items), &["m/models/model.json", "byte 20"]);
    items[3] = item("m/models/model.json", vec![b'{', 0xff]);
    refused_with(&zip(&items), &["not UTF-8 from byte 1"]);
    items[3] = item("m/models/model.json", "[".repeat(100_000));
    lines(&zip(&items)).expect_err("deep nesting is refused");
}

#[test]
fn a_damaged_program_is_found_by_its_checksum() {
    let mut file = raw(&program());
    let at = file.windows(8).position(|w| w == b"aten.mm.").unwrap();
    file[at + 5] = b'n';
    refused_with(&file, &["m/models/model.json", "CRC-32"]);
}

#[test]
fn tensors_outside_their_storage() {
    let with = |pointer: &str, value: Value| {
        let mut config = config();
        *config["config"]["w"].pointer_mut(pointer).unwrap() = value;
        zip(&raw_items(&program(), &config, weight()))
    };
    refused_with(
        &with("/tensor_meta/storage_offset", json!({"as_int": 1})),
        &["\"w\"", "weight_0", "ends at byte 28", "24"],
    );
    refused_with(&with("/tensor_meta/strides/0", json!({"as_int": i64::MAX})), &["\"w\"", "overflows"]);
    refused_with(&with("/tensor_meta/strides/0", json!({"as_int": -3})), &["\"w\"", "negative"]);
    refused_with(&with("/path_name", json!("weight_7")), &["weight_7", "missing"]);
    refused_with(&with("/tensor_meta/dtype", json!(5)), &["\"w\""]);
    let mut program = program();
    program["graph_module"]["graph"]["tensor_values"]["p_w"]["dtype"] = json!(4);
    refused_with(&raw(&program), &["\"w\"", "f32 [2, 3]", "i32 [2, 3]"]);
}

#[test]
fn weights_that_are_absent_are_said_to_be() {
    let all = lines(&zip(&raw_items(&program(), &config(), vec![]))).unwrap();
    assert_eq!(records(&all, "input")[0]["data"], json!({"missing": true}));
    assert_eq!(records(&all, "diagnostic")[0]["code"], "weights-absent");
}

#[test]
fn pickles_that_need_code() {
    let evil = b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.";
    refused_with(
        &pickled(&program(), evil),
        &["data/weights/model.pt!archive/data.pkl", "byte 2", "posix.system", "run"],
    );
    let builtin = b"\x80\x02c__builtin__\neval\nX\x01\x00\x00\x001\x85R.";
    refused_with(&pickled(&program(), builtin), &["__builtin__.eval"]);
    let truncated = b"\x80\x02}X\xff\x00\x00\x00w";
    refused_with(&pickled(&program(), truncated), &["data.pkl", "byte 3", "ends within"]);
    refused_with(&pickled(&program(), b"\x80\x02I5\n."), &["opcode 0x49"]);
    refused_with(&pickled(&program(), b"\x80\x02K\x05."), &["a dict of tensors", "integer 5"]);
}

#[test]
fn unread_entries_and_extra_files_are_named() {
    let mut items = raw_items(&program(), &config(), weight());
    items.push(item("m/data/aotinductor/net/net.so", "x"));
    items.push(item("m/extra/note.txt", "hello"));
    let file = zip(&items);
    let all = lines(&file).unwrap();
    let extra = records(&all, "extra")[0];
    let offset = extra["data"]["offset"].as_u64().unwrap() as usize;
    assert_eq!((&extra["name"], &file[offset..offset + 5]), (&json!("note.txt"), b"hello".as_slice()));
    let unread = records(&all, "diagnostic").into_iter().find(|d| d["code"] == "unread-entry").unwrap();
    assert!(unread["message"].as_str().unwrap().contains("net.so"));
}
