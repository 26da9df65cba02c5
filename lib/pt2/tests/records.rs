//! How each thing that a program can say is spelled in records.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use support::build::{item, zip};
use support::*;

fn arg(name: &str) -> Value {
    json!({"as_tensor": {"name": name}})
}

/// A program after a change to it, captured.
fn captured(change: impl FnOnce(&mut Value)) -> Vec<Value> {
    let mut program = program();
    change(&mut program);
    lines(&raw(&program)).unwrap_or_else(|e| panic!("{e}"))
}

/// A program whose node 1 is `changed`, with `values` for types of further tensors.
fn with_node(values: &[&str], node: Value) -> Vec<Value> {
    captured(|p| {
        let graph = &mut p["graph_module"]["graph"];
        for name in values {
            graph["tensor_values"][name] = graph["tensor_values"]["mm"].clone();
        }
        graph["nodes"].as_array_mut().unwrap().push(node);
    })
}

#[test]
fn every_argument_kind() {
    let cases = [
        (json!({"as_none": []}), json!(null)),
        (json!({"as_none": true}), json!(null)),
        (arg("mm"), json!({"v": "mm"})),
        (json!({"as_tensors": [{"name": "mm"}, {"name": "x"}]}), json!([{"v": "mm"}, {"v": "x"}])),
        (json!({"as_optional_tensor": {"as_none": true}}), json!(null)),
        (json!({"as_optional_tensors": [{"as_tensor": {"name": "x"}}, {"as_none": []}]}), json!([{"v": "x"}, null])),
        (json!({"as_nested_tensors": [[{"name": "x"}], []]}), json!([[{"v": "x"}], []])),
        (json!({"as_int": 9_007_199_254_740_993_i64}), json!({"int": "9007199254740993"})),
        (json!({"as_ints": [1, -2]}), json!([1, -2])),
        (json!({"as_int_lists": [[1], [2, 3]]}), json!([[1], [2, 3]])),
        (json!({"as_float": 2.0}), json!({"float": 2})),
        (json!({"as_float": "NaN"}), json!({"float": "nan"})),
        (json!({"as_floats": [0.5, "-Infinity"]}), json!([0.5, {"float": "-inf"}])),
        (json!({"as_float_lists": [[0.5]]}), json!([[0.5]])),
        (json!({"as_bool": true}), json!(true)),
        (json!({"as_bools": [true, false]}), json!([true, false])),
        (json!({"as_string": "same\n"}), json!("same\n")),
        (json!({"as_strings": ["a", "b"]}), json!(["a", "b"])),
        (json!({"as_complex": {"real": 0.5, "imag": -1.5}}), json!({"complex": [0.5, -1.5]})),
        (json!({"as_sym_int": {"as_name": "n"}}), json!({"v": "n"})),
        (json!({"as_sym_int": {"as_int": 4}}), json!(4)),
        (json!({"as_sym_ints": [{"as_name": "n"}, {"as_int": 2}]}), json!([{"v": "n"}, 2])),
        (json!({"as_sym_float": {"as_float": 0.5}}), json!(0.5)),
        (json!({"as_sym_floats": [{"as_float": 0.5}]}), json!([0.5])),
        (json!({"as_sym_bool": {"as_bool": false}}), json!(false)),
        (json!({"as_sym_bools": [{"as_bool": true}]}), json!([true])),
        (json!({"as_scalar_type": 13}), json!({"dtype": "bf16"})),
        (json!({"as_memory_format": 2}), json!({"memory_format": "channels_last"})),
        (json!({"as_layout": 7}), json!({"layout": "strided"})),
        (json!({"as_device": {"type": "cuda", "index": 1}}), json!({"device": "cuda:1"})),
        (json!({"as_device": {"type": "cpu"}}), json!({"device": "cpu"})),
        (json!({"as_operator": "torch.ops.aten.add.Tensor"}), json!({"op": "aten.add.Tensor"})),
        (
            json!({"as_string_to_argument": {"k": {"as_int": 1}, "t": arg("x")}}),
            json!({"map": {"k": 1, "t": {"v": "x"}}}),
        ),
    ];
    let inputs: Vec<Value> = cases.iter().map(|(given, _)| json!({"name": "", "arg": given, "kind": 1})).collect();
    let all = captured(|p| {
        let graph = &mut p["graph_module"]["graph"];
        graph["sym_int_values"]["n"] = json!({"as_expr": {"expr_str": "Symbol('u0', integer=True)", "hint": null}});
        let size = json!({"target": "torch.ops.aten.sym_size.int", "inputs": [{"name": "self", "arg": arg("x"), "kind": 1}],
                          "outputs": [{"as_sym_int": {"as_name": "n"}}], "metadata": {}});
        let node = json!({"target": "torch.ops.test.all.default", "inputs": inputs, "outputs": [], "metadata": {}});
        graph["nodes"].as_array_mut().unwrap().extend([size, node]);
    });
    let nodes = records(&all, "node");
    assert_eq!(nodes[1]["results"], json!([{"value": "n", "type": {"scalar": "int", "expr": "u0"}}]));
    let args = nodes[2]["args"].as_array().unwrap();
    for ((given, wanted), found) in cases.iter().zip(args) {
        assert_eq!(found, wanted, "{given}");
    }
    assert_eq!((&nodes[2]["results"], &nodes[2]["returns"]), (&json!([]), &json!([])));
}

#[test]
fn results_keep_their_grouping() {
    let node = json!({"target": "torch.ops.aten.thing.default", "inputs": [{"name": "self", "arg": arg("mm"), "kind": 1}],
        "outputs": [arg("a"), {"as_tensors": [{"name": "b"}, {"name": "thing_unused_2"}]}, {"as_none": true}], "metadata": {}});
    let all = with_node(&["a", "b", "thing_unused_2"], node);
    let node = records(&all, "node")[1];
    assert_eq!(node["returns"], json!([1, ["list", 2], 1]));
    let names: Vec<&Value> = node["results"].as_array().unwrap().iter().map(|r| &r["value"]).collect();
    assert_eq!(names, [&json!("a"), &json!("b"), &json!("thing_unused_2"), &json!(null)]);
    assert_eq!(node["results"][3]["type"], json!({"none": true}));
}

#[test]
fn one_list_is_told_from_one_value() {
    let node = json!({"target": "torch.ops.aten.unbind.int", "inputs": [{"name": "self", "arg": arg("mm"), "kind": 1}],
        "outputs": [{"as_tensors": [{"name": "a"}]}], "metadata": {}});
    assert_eq!(records(&with_node(&["a"], node), "node")[1]["returns"], json!([["list", 1]]));
}

/// A graph that takes `t` and returns its sine.
fn body(inner: &str) -> Value {
    let meta = program()["graph_module"]["graph"]["tensor_values"]["mm"].clone();
    json!({"inputs": [arg("t")], "outputs": [arg(inner)], "nodes": [
        {"target": "torch.ops.aten.sin.default", "inputs": [{"name": "self", "arg": arg("t"), "kind": 1}],
         "outputs": [arg(inner)], "metadata": {}}],
        "tensor_values": {"t": meta, inner: meta}, "is_single_tensor_return": false})
}

#[test]
fn nested_graphs_come_first_and_have_ids() {
    let graph =
        |name: &str, inner: &str| json!({"name": "", "arg": {"as_graph": {"name": name, "graph": body(inner)}}});
    for outputs in [json!([{"as_tensors": [{"name": "a"}]}]), json!([arg("a")])] {
        let node = json!({"target": "torch.ops.higher_order.cond", "outputs": outputs, "metadata": {},
            "inputs": [{"name": "", "arg": {"as_bool": true}}, graph("true_graph_0", "mm"), graph("true_graph_0", "s"),
                       {"name": "", "arg": {"as_tensors": [{"name": "mm"}]}}]});
        let all = with_node(&["a"], node);
        let ids: Vec<&Value> = records(&all, "graph").into_iter().map(|g| &g["graph"]).collect();
        assert_eq!(ids, ["original/true_graph_0", "original/true_graph_0.2", "original"]);
        assert_eq!(records(&all, "graph")[0]["parent"], "original");
        let cond = records(&all, "node").into_iter().find(|n| n["op"] == "higher_order.cond").unwrap();
        let args =
            json!([true, {"graph": "original/true_graph_0"}, {"graph": "original/true_graph_0.2"}, [{"v": "mm"}]]);
        assert_eq!(cond["args"], args);
        assert_eq!(cond["results"].as_array().unwrap().len(), 1);
        assert!(cond.get("returns").is_none(), "one result of a higher-order op, whichever way it is written");
    }
}

#[test]
fn symbols_have_bounds_hints_and_guards() {
    let all = captured(|p| {
        let text = |text: &str, hint: Value| json!({"as_expr": {"expr_str": text, "hint": hint}});
        let graph = &mut p["graph_module"]["graph"]["tensor_values"];
        graph["x"]["sizes"][1] = text("Symbol('s9', positive=True, integer=True)", json!({"as_int": 2}));
        graph["x"]["strides"][0] = text("Symbol('s9', positive=True, integer=True)", json!({"as_int": 2}));
        graph["mm"]["sizes"][1] =
            text("Mul(Integer(2), Symbol('s9', positive=True, integer=True))", json!({"as_int": 4}));
        graph["mm"]["strides"][0] = text("2*s9", json!(null));
        p["range_constraints"] =
            json!({"s9": {"min_val": 2, "max_val": null}, "2*s9 + 1": {"min_val": 5, "max_val": 99}});
        p["guards_code"] = json!(["L['x'].size()[1] % 2 == 0", "L['zzz'].size()[1] > 1"]);
    });
    let symbol = json!({"record": "symbol", "graph": "original", "name": "s9", "min": 2, "max": null, "hint": 2});
    assert_eq!(*records(&all, "symbol")[0], symbol);
    assert_eq!(records(&all, "symbol").len(), 1);
    assert_eq!(records(&all, "input")[1]["type"], json!({"tensor": "f32", "shape": [3, "s9"]}));
    assert_eq!(records(&all, "node")[0]["results"][0]["type"], json!({"tensor": "f32", "shape": [2, "2*s9"]}));
    let guards: Vec<&Value> = records(&all, "guard").into_iter().map(|g| &g["expr"]).collect();
    assert_eq!(guards, ["s9%2==0", "L['zzz'].size()[1] > 1", "2*s9+1>=5 and 2*s9+1<=99"]);
    assert!(records(&all, "diagnostic").iter().any(|d| d["code"] == "opaque-guard"));
}

#[test]
fn strides_devices_and_layouts_that_are_not_the_default() {
    let all = captured(|p| {
        let values = &mut p["graph_module"]["graph"]["tensor_values"];
        values["mm"]["strides"] = json!([{"as_int": 1}, {"as_int": 2}]);
        values["mm"]["device"] = json!({"type": "cuda", "index": 0});
        values["x"]["layout"] = json!(2);
    });
    let ty = json!({"tensor": "f32", "shape": [2, 2], "strides": [1, 2], "device": "cuda:0"});
    assert_eq!(records(&all, "node")[0]["results"][0]["type"], ty);
    assert_eq!(records(&all, "input")[1]["type"], json!({"tensor": "f32", "shape": [3, 2], "layout": "sparse_csr"}));
}

#[test]
fn all_roles() {
    let all = captured(|p| {
        let module = &mut p["graph_module"];
        let mm = module["graph"]["tensor_values"]["mm"].clone();
        let x = module["graph"]["tensor_values"]["x"].clone();
        for (name, meta) in [("b", &x), ("c", &x), ("tok", &mm)] {
            module["graph"]["tensor_values"][name] = meta.clone();
        }
        module["graph"]["inputs"] = json!([arg("p_w"), arg("b"), arg("c"), {"as_custom_obj": {"name": "o", "class_fqn": "my.Queue"}}, arg("tok"), arg("x"), {"as_float": 0.5}]);
        module["signature"]["input_specs"] = json!([
            {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
            {"buffer": {"arg": {"name": "b"}, "buffer_name": "net.b", "persistent": false}},
            {"tensor_constant": {"arg": {"name": "c"}, "tensor_constant_name": "lifted_tensor_0"}},
            {"custom_obj": {"arg": {"name": "o", "class_fqn": "my.Queue"}, "custom_obj_name": "queue"}},
            {"token": {"arg": {"name": "tok"}}},
            {"user_input": {"arg": arg("x")}},
            {"constant_input": {"name": "alpha", "value": {"as_float": 0.5}}}
        ]);
        module["graph"]["outputs"] = json!([arg("mm"), arg("mm"), arg("mm"), arg("mm"), arg("mm"), arg("mm"), arg("tok"), arg("mm"), {"as_int": 7}]);
        module["signature"]["output_specs"] = json!([
            {"buffer_mutation": {"arg": {"name": "mm"}, "buffer_name": "net.b"}},
            {"parameter_mutation": {"arg": {"name": "mm"}, "parameter_name": "w"}},
            {"user_input_mutation": {"arg": {"name": "mm"}, "user_input_name": "x"}},
            {"gradient_to_parameter": {"arg": {"name": "mm"}, "parameter_name": "w"}},
            {"gradient_to_user_input": {"arg": {"name": "mm"}, "user_input_name": "x"}},
            {"loss_output": {"arg": {"name": "mm"}}},
            {"token": {"arg": {"name": "tok"}}},
            {"user_output": {"arg": arg("mm")}},
            {"user_output": {"arg": {"as_int": 7}}}
        ]);
        module["module_call_graph"] = json!([]);
    });
    let inputs = records(&all, "input");
    let roles: Vec<&Value> = inputs.iter().map(|i| &i["role"]).collect();
    let wanted = ["parameter", "buffer", "tensor_constant", "custom_obj", "token", "user_input", "constant_input"];
    assert_eq!(roles, wanted);
    assert_eq!((&inputs[1]["persistent"], &inputs[1]["data"]), (&json!(false), &json!({"missing": true})));
    assert_eq!((&inputs[3]["type"], &inputs[3]["target"]), (&json!({"object": "my.Queue"}), &json!("queue")));
    assert_eq!((&inputs[4]["type"], &inputs[6]["literal"]), (&json!({"token": true}), &json!(0.5)));
    let outputs = records(&all, "output")[0]["outputs"].as_array().unwrap();
    let roles: Vec<(&str, Option<&str>)> =
        outputs.iter().map(|o| (o["role"].as_str().unwrap(), o["target"].as_str())).collect();
    let wanted = [
        ("buffer_mutation", Some("net.b")),
        ("parameter_mutation", Some("w")),
        ("user_input_mutation", Some("x")),
        ("gradient_to_parameter", Some("w")),
        ("gradient_to_user_input", Some("x")),
        ("loss_output", None),
        ("token", None),
        ("user_output", None),
        ("user_output", None),
    ];
    assert_eq!(roles, wanted);
    assert_eq!(outputs[8], json!({"literal": 7, "role": "user_output"}));
    let opaque = records(&all, "diagnostic").into_iter().find(|d| d["code"] == "opaque-object").unwrap();
    assert!(opaque["message"].as_str().unwrap().contains("my.Queue"));
}

#[test]
fn tied_and_strided_weights() {
    let mut program = program();
    let module = &mut program["graph_module"];
    let mut column = module["graph"]["tensor_values"]["p_w"].clone();
    (column["sizes"], column["strides"]) = (json!([{"as_int": 2}]), json!([{"as_int": 3}]));
    column["storage_offset"] = json!({"as_int": 1});
    module["graph"]["tensor_values"]["q"] = module["graph"]["tensor_values"]["p_w"].clone();
    module["graph"]["tensor_values"]["k"] = column.clone();
    module["graph"]["inputs"] = json!([arg("p_w"), arg("x"), arg("q"), arg("k")]);
    let specs = module["signature"]["input_specs"].as_array_mut().unwrap();
    specs.push(json!({"parameter": {"arg": {"name": "q"}, "parameter_name": "tied"}}));
    specs.push(json!({"buffer": {"arg": {"name": "k"}, "buffer_name": "column", "persistent": true}}));
    let mut config = config();
    config["config"]["tied"] = config["config"]["w"].clone();
    config["config"]["column"] = config["config"]["w"].clone();
    config["config"]["column"]["tensor_meta"] = column;
    let file = zip(&raw_items(&program, &config, weight()));
    let all = lines(&file).unwrap();
    let data: Vec<&Value> = records(&all, "input").into_iter().map(|i| &i["data"]).collect();
    assert_eq!(data[0], data[2]);
    let start = data[0]["offset"].as_u64().unwrap();
    assert_eq!(*data[3], json!({"file": "f0", "offset": start + 4, "bytes": 16, "storage": 0, "strides": [3]}));
}

#[test]
fn tensor_subclasses_come_apart() {
    let subclass = |kind: &[u8]| {
        let mut pickle =
            b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_wrapper_subclass\n".to_vec();
        pickle.extend(b"cquant.lib\nPacked\n)}(X\x05\x00\x00\x00qdata");
        pickle.extend(tensor_pickle());
        pickle.extend(b"X\x05\x00\x00\x00block]K\x04aX\x04\x00\x00\x00kind");
        [pickle.as_slice(), kind, b"K\x01\x85RutR."].concat()
    };
    let mut config = config();
    config["config"]["w"]["use_pickle"] = json!(true);
    let file = zip(&raw_items(&program(), &config, saved(&subclass(b"cquant.lib\nKind\n"), weight())));
    let all = lines(&file).unwrap();
    let tensor = records(&all, "tensor")[0];
    assert_eq!((&tensor["name"], &tensor["type"]), (&json!("w.qdata"), &json!({"tensor": "f32", "shape": [2, 3]})));
    let offset = tensor["data"]["offset"].as_u64().unwrap() as usize;
    assert_eq!(file[offset..offset + 24], weight());
    let note = records(&all, "diagnostic").into_iter().find(|d| d["code"] == "tensor-subclass").unwrap();
    let message = note["message"].as_str().unwrap();
    assert!(
        message.contains("quant.lib.Packed")
            && message.contains("block=[4]")
            && message.contains("kind=quant.lib.Kind((1))"),
        "{message}"
    );
    // Objects of any other package would have to be built.
    let other = subclass(b"cshutil\nrmtree\n");
    let error = refused(&zip(&raw_items(&program(), &config, saved(&other, weight()))));
    assert!(error.contains("shutil.rmtree"), "{error}");
}

#[test]
fn preserved_modules_keep_their_signatures() {
    let all = captured(|p| {
        let calls = p["graph_module"]["module_call_graph"].as_array_mut().unwrap();
        let mut call = calls[0].clone();
        call["fqn"] = json!("fc");
        call["signature"]["inputs"] = json!([arg("x")]);
        call["signature"]["outputs"] = json!([arg("mm")]);
        calls.push(call);
        calls.push(json!({"fqn": "other", "signature": null}));
    });
    let call = records(&all, "module_call")[0];
    assert_eq!(
        (&call["module"], &call["inputs"], &call["outputs"]),
        (&json!("fc"), &json!([{"v": "x"}]), &json!([{"v": "mm"}]))
    );
    assert_eq!(call["output_tree"], json!({"leaf": "mm"}));
    let note = records(&all, "diagnostic").into_iter().find(|d| d["code"] == "not-carried").unwrap();
    assert!(note["message"].as_str().unwrap().contains("module_call_graph entry without a signature (1)"));
}

#[test]
fn targets_of_unknown_form_keep_their_spelling() {
    let node = json!({"target": "#backend:fused", "inputs": [], "outputs": [], "metadata": {}});
    let all = with_node(&[], node);
    assert_eq!(records(&all, "node")[1]["op"], "#backend:fused");
    assert!(records(&all, "diagnostic").iter().any(|d| d["code"] == "unknown-target"));
}

#[test]
fn big_endian_archives_say_so() {
    let mut items = raw_items(&program(), &config(), weight());
    items[7] = item("m/byteorder", "big");
    let all = lines(&zip(&items)).unwrap();
    assert_eq!(records(&all, "input")[0]["data"]["byteorder"], "big");
}
