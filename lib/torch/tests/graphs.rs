//! Graphs: symbols, guards, nested graphs, writes in place, and what is said when something does not hold.
#![allow(clippy::unwrap_used)]

mod common;

use common::{engine, error, f32s, floats, ints, keys, output, program, run};
use m2m_torch::Value;

const OPEN: &str = r#"{"record":"graph","graph":"original","stage":"original","entry":"forward"}"#;

fn input(value: &str, ty: &str) -> String {
    format!(r#"{{"record":"input","graph":"original","value":"{value}","role":"user_input","type":{ty}}}"#)
}

fn node(number: usize, op: &str, args: &str, result: &str, ty: &str) -> String {
    format!(
        r#"{{"record":"node","graph":"original","stage":"original","node":"original:{number}","op":"{op}","args":{args},"results":[{{"value":"{result}","type":{ty}}}]}}"#
    )
}

fn outputs(values: &[&str]) -> String {
    let items: Vec<String> = values.iter().map(|v| format!(r#"{{"value":"{v}","role":"user_output"}}"#)).collect();
    format!(r#"{{"record":"output","graph":"original","outputs":[{}]}}"#, items.join(","))
}

/// y = x reshaped to its two dimensions flattened by an expression over symbols.
fn symbolic() -> String {
    [
        OPEN,
        r#"{"record":"symbol","graph":"original","name":"s0","min":2,"max":5,"hint":3}"#,
        r#"{"record":"guard","graph":"original","expr":"s0!=4","message":"x.size()[0] != 4"}"#,
        &input("x", r#"{"tensor":"f32","shape":["2*s0","s0"]}"#),
        &node(
            0,
            "aten.view.default",
            r#"[{"v":"x"},[{"sym":"2*s0**2"}]]"#,
            "y",
            r#"{"tensor":"f32","shape":["2*s0**2"]}"#,
        ),
        &outputs(&["y"]),
    ]
    .join("\n")
}

#[test]
fn symbols_come_from_shapes_and_expressions_are_computed() {
    let Some(engine) = engine() else { return };
    let program = program(&symbolic());
    let x: Vec<f32> = (0..8u8).map(f32::from).collect();
    let outcome = run(&engine, &program, &[("x", floats(&engine, &[4, 2], &x).into())]).unwrap();
    assert_eq!(output(&outcome, "out_0"), x);
}

#[test]
fn ranges_guards_and_shapes_are_checked() {
    let Some(engine) = engine() else { return };
    let program = program(&symbolic());
    let fails = |shape: &[i64]| {
        let zeros = vec![0.0; shape.iter().product::<i64>() as usize];
        error(run(&engine, &program, &[("x", floats(&engine, shape, &zeros).into())]))
    };
    assert_eq!(fails(&[12, 6]), "s0 is 6; its range is 2 to 5");
    assert_eq!(fails(&[8, 4]), "the guard x.size()[0] != 4 does not hold with s0=4");
    assert_eq!(fails(&[5, 2]), "x: expected f32 [2*s0, s0] with s0=2; got the tensor f32 [5, 2]");
    assert_eq!(fails(&[8]), "x: expected f32 [2*s0, s0] with s0=4; got f32 [8]");
    let wrong = error(run(&engine, &program, &[("x", ints(&engine, &[4, 2], &[0; 8]).into())]));
    assert_eq!(wrong, "x: expected f32 [2*s0, s0] with s0=2; got i64 [4, 2]");
    assert_eq!(error(run(&engine, &program, &[])), "x: no value is given; expected f32 [2*s0, s0]");
}

#[test]
fn a_write_through_a_view_reaches_its_base_and_the_input() {
    let Some(engine) = engine() else { return };
    let row = r#"{"tensor":"f32","shape":[2]}"#;
    let lines = [
        OPEN.to_owned(),
        input("x", r#"{"tensor":"f32","shape":[2,2]}"#),
        node(0, "aten.select.int", r#"[{"v":"x"},0,1]"#, "row", row),
        node(1, "aten.mul_.Scalar", r#"[{"v":"row"},10]"#, "scaled", row),
        node(2, "aten.sum.default", r#"[{"v":"x"}]"#, "sum", r#"{"tensor":"f32","shape":[]}"#),
        outputs(&["sum"]),
    ];
    let x = floats(&engine, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let outcome = run(&engine, &program(&lines.join("\n")), &[("x", x.into())]).unwrap();
    assert_eq!(output(&outcome, "out_0"), [73.0]);
    assert_eq!(output(&outcome, "mutated.x"), [1.0, 2.0, 30.0, 40.0]);
}

#[test]
fn a_graph_of_values_has_no_strides_that_a_view_could_miss() {
    let Some(engine) = engine() else { return };
    let (square, flat) = (r#"{"tensor":"f32","shape":[2,2]}"#, r#"{"tensor":"f32","shape":[4]}"#);
    let lines = [
        OPEN.to_owned(),
        input("x", square),
        node(0, "aten.t.default", r#"[{"v":"x"}]"#, "t", square),
        node(1, "aten.view.default", r#"[{"v":"t"},[4]]"#, "y", flat),
        outputs(&["y"]),
    ];
    let lines = lines.join("\n");
    let x = || Value::from(floats(&engine, &[2, 2], &[1.0, 2.0, 3.0, 4.0]));
    assert!(error(run(&engine, &program(&lines), &[("x", x())])).contains("view size is not compatible"));
    let prepared = program(&lines.replace("original", "prepared"));
    assert_eq!(output(&run(&engine, &prepared, &[("x", x())]).unwrap(), "out_0"), [1.0, 3.0, 2.0, 4.0]);
}

/// State in a file: `w` and its transpose `t` share bytes, `m` is misaligned.
fn state(folder: &std::path::Path, nodes: &[String], results: &[&str]) -> String {
    let path = folder.join("state.bin");
    let mut bytes = f32s(&[1.0, 2.0, 3.0, 4.0]);
    bytes.push(0);
    bytes.extend(f32s(&[5.0, 6.0]));
    std::fs::write(&path, &bytes).unwrap();
    let piece = |value: &str, shape: &str, data: &str| {
        format!(
            r#"{{"record":"input","graph":"original","value":"{value}","role":"buffer","target":"m.{value}","type":{{"tensor":"f32","shape":{shape}}},"data":{{"file":"f0",{data}}},"persistent":true}}"#
        )
    };
    let file = format!(
        r#"{{"record":"file","id":"f0","name":"state.bin","path":{:?},"format":"raw","bytes":25}}"#,
        path.display().to_string()
    );
    let mut lines = vec![
        file,
        OPEN.to_owned(),
        piece("w", "[2,2]", r#""offset":0,"bytes":16,"storage":0"#),
        piece("t", "[2,2]", r#""offset":0,"bytes":16,"storage":0,"strides":[1,2]"#),
        piece("m", "[2]", r#""offset":17,"bytes":8,"storage":1"#),
        piece("first", "[1]", r#""offset":17,"bytes":4,"storage":1"#),
    ];
    lines.extend_from_slice(nodes);
    lines.push(outputs(results));
    lines.join("\n")
}

#[test]
fn tied_state_is_written_together_and_the_file_stays() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ty = r#"{"tensor":"f32","shape":[2,2]}"#;
    let nodes = [
        node(0, "aten.add_.Scalar", r#"[{"v":"w"},1]"#, "a", ty),
        node(1, "aten.clone.default", r#"[{"v":"t"}]"#, "b", ty),
        node(2, "aten.mul_.Scalar", r#"[{"v":"m"},2]"#, "c", r#"{"tensor":"f32","shape":[2]}"#),
        node(3, "aten.clone.default", r#"[{"v":"first"}]"#, "d", r#"{"tensor":"f32","shape":[1]}"#),
    ];
    let program = program(&state(folder.path(), &nodes, &["b", "d"]));
    let before = std::fs::read(folder.path().join("state.bin")).unwrap();
    let outcome = run(&engine, &program, &[]).unwrap();
    assert_eq!(output(&outcome, "out_0"), [2.0, 4.0, 3.0, 5.0]);
    assert_eq!(output(&outcome, "out_1"), [10.0]);
    assert_eq!(keys(&outcome), ["out_0", "out_1", "mutated.m.w", "mutated.m.t", "mutated.m.m", "mutated.m.first"]);
    assert_eq!(output(&outcome, "mutated.m.t"), [2.0, 4.0, 3.0, 5.0]);
    assert_eq!(output(&outcome, "mutated.m.m"), [10.0, 12.0]);
    assert_eq!(std::fs::read(folder.path().join("state.bin")).unwrap(), before);
}

#[test]
fn state_that_keeps_its_bytes_is_not_called_mutated() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let nodes = [node(0, "aten.mul_.Scalar", r#"[{"v":"w"},1]"#, "a", r#"{"tensor":"f32","shape":[2,2]}"#)];
    let outcome = run(&engine, &program(&state(folder.path(), &nodes, &["m"])), &[]).unwrap();
    assert_eq!(keys(&outcome), ["out_0"]);
}

/// A nested graph of two f32 inputs `a`, `b` and one node.
fn nested(name: &str, number: usize, op: &str, ty: &str, result: &str) -> String {
    let graph = format!("original/{name}");
    let input = |value: &str| {
        format!(r#"{{"record":"input","graph":"{graph}","value":"{value}","role":"user_input","type":{ty}}}"#)
    };
    [
        format!(r#"{{"record":"graph","graph":"{graph}","stage":"original","parent":"original"}}"#),
        input("a"),
        input("b"),
        format!(
            r#"{{"record":"node","graph":"{graph}","stage":"original","node":"original:{number}","op":"{op}","args":[{{"v":"a"}},{{"v":"b"}}],"results":[{{"value":"r","type":{result}}}]}}"#
        ),
        format!(r#"{{"record":"output","graph":"{graph}","outputs":[{{"value":"r","role":"user_output"}}]}}"#),
    ]
    .join("\n")
}

const SCALAR: &str = r#"{"tensor":"f32","shape":[]}"#;
const VECTOR: &str = r#"{"tensor":"f32","shape":[3]}"#;

#[test]
fn branches_follow_the_predicate() {
    let Some(engine) = engine() else { return };
    let lines = [
        nested("yes", 0, "aten.add.Tensor", SCALAR, SCALAR),
        nested("no", 1, "aten.mul.Tensor", SCALAR, SCALAR),
        OPEN.to_owned(),
        input("p", r#"{"tensor":"bool","shape":[]}"#),
        input("x", SCALAR),
        node(
            2,
            "higher_order.cond",
            r#"[{"v":"p"},{"graph":"original/yes"},{"graph":"original/no"},[{"v":"x"},{"v":"x"}]]"#,
            "y",
            SCALAR,
        ),
        outputs(&["y"]),
    ];
    let program = program(&lines.join("\n"));
    for (predicate, expected) in [(1u8, 6.0), (0, 9.0)] {
        let p = engine.copied(m2m_record::DType::Bool, &[], &[predicate]).unwrap();
        let outcome = run(&engine, &program, &[("p", p.into()), ("x", floats(&engine, &[], &[3.0]).into())]).unwrap();
        assert_eq!(output(&outcome, "out_0"), [expected]);
    }
}

#[test]
fn loops_carry_map_and_scan() {
    let Some(engine) = engine() else { return };
    let call = |number, op: &str, args: &str, result: &str, ty: &str| node(number, op, args, result, ty);
    let scan = r#"{"record":"node","graph":"original","stage":"original","node":"original:6","op":"higher_order.scan","args":[{"graph":"original/pair"},[{"v":"s"}],[{"v":"x"}],[]],"results":[{"value":"last","type":{"tensor":"f32","shape":[]}},{"value":"sums","type":{"tensor":"f32","shape":[3]}}],"returns":[1,1]}"#;
    let pair = nested("pair", 3, "aten.add.Tensor", SCALAR, SCALAR).replace(
        r#""outputs":[{"value":"r","role":"user_output"}]"#,
        r#""outputs":[{"value":"r","role":"user_output"},{"value":"r","role":"user_output"}]"#,
    );
    let lines = [
        nested("less", 0, "aten.lt.Tensor", SCALAR, r#"{"tensor":"bool","shape":[]}"#),
        nested("double", 1, "aten.add.Tensor", SCALAR, SCALAR)
            .replace(r#"[{"v":"a"},{"v":"b"}]"#, r#"[{"v":"a"},{"v":"a"}]"#),
        nested("times", 2, "aten.mul.Tensor", SCALAR, SCALAR),
        pair,
        OPEN.to_owned(),
        input("s", SCALAR),
        input("x", VECTOR),
        input("limit", SCALAR),
        call(
            4,
            "higher_order.while_loop",
            r#"[{"graph":"original/less"},{"graph":"original/double"},[{"v":"s"}],[{"v":"limit"}]]"#,
            "grown",
            SCALAR,
        ),
        call(
            5,
            "higher_order.map_impl",
            r#"[{"graph":"original/times"},[{"v":"x"}],[{"v":"limit"}]]"#,
            "mapped",
            VECTOR,
        ),
        scan.to_owned(),
        outputs(&["grown", "mapped", "last", "sums"]),
    ];
    let inputs = [
        ("s", Value::from(floats(&engine, &[], &[1.5]))),
        ("x", floats(&engine, &[3], &[1.0, 2.0, 3.0]).into()),
        ("limit", floats(&engine, &[], &[10.0]).into()),
    ];
    let outcome = run(&engine, &program(&lines.join("\n")), &inputs).unwrap();
    assert_eq!(output(&outcome, "out_0"), [12.0]);
    assert_eq!(output(&outcome, "out_1"), [10.0, 20.0, 30.0]);
    assert_eq!(output(&outcome, "out_2"), [7.5]);
    assert_eq!(output(&outcome, "out_3"), [2.5, 4.5, 7.5]);
}

#[test]
fn an_associative_scan_combines_what_came_before_with_each_row() {
    let Some(engine) = engine() else { return };
    let lines = [
        nested("times", 0, "aten.mul.Tensor", SCALAR, SCALAR),
        OPEN.to_owned(),
        input("x", VECTOR),
        node(1, "higher_order.associative_scan", r#"[{"graph":"original/times"},[{"v":"x"}],[]]"#, "y", VECTOR),
        outputs(&["y"]),
    ];
    let inputs = [("x", floats(&engine, &[3], &[2.0, 3.0, 5.0]).into())];
    let outcome = run(&engine, &program(&lines.join("\n")), &inputs).unwrap();
    assert_eq!(output(&outcome, "out_0"), [2.0, 6.0, 30.0]);
}

/// A node with two f32 results.
fn pair(number: usize, op: &str, args: &str, kwargs: &str, results: [&str; 2]) -> String {
    let result = |name: &str| match name {
        "" => r#"{"value":null,"type":{"none":true}}"#.to_owned(),
        name => format!(r#"{{"value":"{name}","type":{VECTOR}}}"#),
    };
    format!(
        r#"{{"record":"node","graph":"original","stage":"original","node":"original:{number}","op":"{op}","args":{args},"kwargs":{kwargs},"results":[{},{}],"returns":[1,1]}}"#,
        result(results[0]),
        result(results[1])
    )
}

#[test]
fn a_functionalized_write_leaves_its_argument_alone() {
    let Some(engine) = engine() else { return };
    let lines = [
        OPEN.to_owned(),
        input("x", VECTOR),
        pair(
            0,
            "higher_order.auto_functionalized",
            r#"[{"op":"aten.mul_.Scalar"}]"#,
            r#"{"self":{"v":"x"},"other":3}"#,
            ["a", "b"],
        ),
        // The last two of x, doubled.
        pair(
            1,
            "higher_order.auto_functionalized_v2",
            r#"[{"op":"aten.mul_.Scalar"}]"#,
            r#"{"other":2,"_self_base_index":0,"_self_slice_dim":0,"_self_slice_start":1,"_self_slice_end":3,"_all_bases":[{"v":"x"}]}"#,
            ["", "c"],
        ),
        outputs(&["a", "b", "c", "x"]),
    ];
    let inputs = [("x", floats(&engine, &[3], &[1.0, 2.0, 3.0]).into())];
    let outcome = run(&engine, &program(&lines.join("\n")), &inputs).unwrap();
    assert_eq!(keys(&outcome), ["out_0", "out_1", "out_2", "out_3"]);
    let expected = [[3.0, 6.0, 9.0], [3.0, 6.0, 9.0], [1.0, 4.0, 6.0], [1.0, 2.0, 3.0]];
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(output(&outcome, &format!("out_{at}")), expected);
    }
}

#[test]
fn an_effect_gives_a_token_and_what_it_does() {
    let Some(engine) = engine() else { return };
    let token = r#"{"record":"input","graph":"original","value":"t","role":"token","type":{"token":true}}"#;
    let lines = [
        OPEN.to_owned(),
        token.to_owned(),
        input("x", VECTOR),
        pair(0, "higher_order.with_effects", r#"[{"v":"t"},{"op":"aten.neg.default"},{"v":"x"}]"#, "{}", ["", "y"]),
        outputs(&["y"]),
    ];
    let inputs = [("x", floats(&engine, &[3], &[1.0, 2.0, 3.0]).into())];
    let outcome = run(&engine, &program(&lines.join("\n")), &inputs).unwrap();
    assert_eq!(output(&outcome, "out_0"), [-1.0, -2.0, -3.0]);
}

#[test]
fn autocast_changes_the_region_and_nothing_after_it() {
    let Some(engine) = engine() else { return };
    let (matrix, half) = (r#"{"tensor":"f32","shape":[2,2]}"#, r#"{"tensor":"bf16","shape":[2,2]}"#);
    let lines = [
        nested("body", 0, "aten.mm.default", matrix, half),
        OPEN.to_owned(),
        input("x", matrix),
        node(
            1,
            "higher_order.wrap_with_autocast",
            r#"["cpu",{"dtype":"bf16"},true,false,{"graph":"original/body"},{"v":"x"},{"v":"x"}]"#,
            "y",
            half,
        ),
        node(2, "aten.mm.default", r#"[{"v":"x"},{"v":"x"}]"#, "z", matrix),
        outputs(&["y", "z"]),
    ];
    let x = floats(&engine, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let outcome = run(&engine, &program(&lines.join("\n")), &[("x", x.into())]).unwrap();
    assert_eq!(outcome.outputs[0].dtype, m2m_record::DType::BF16);
    assert_eq!(output(&outcome, "out_1"), [7.0, 10.0, 15.0, 22.0]);
}

#[test]
fn every_operator_that_is_missing_is_named_at_once() {
    let Some(engine) = engine() else { return };
    let lines = [
        OPEN.to_owned(),
        input("x", VECTOR),
        node(0, "mine.twist.default", r#"[{"v":"x"}]"#, "a", VECTOR),
        node(1, "aten.no_such.default", r#"[{"v":"a"}]"#, "b", VECTOR),
        node(2, "aten.relu.default", r#"[{"v":"b"},1]"#, "c", VECTOR),
        outputs(&["c"]),
    ];
    let said = error(run(&engine, &program(&lines.join("\n")), &[]));
    assert_eq!(
        said,
        "original:0: mine.twist.default: a custom operator of namespace \"mine\", which libtorch does not have\n\
         original:1: aten.no_such.default: this operator is neither in libtorch nor among those that are computed by their \
         definition\n\
         original:2: aten.relu.default: 2 positional arguments; its schema has 1"
    );
}

#[test]
fn an_error_inside_names_the_node() {
    let Some(engine) = engine() else { return };
    let lines = [
        OPEN.to_owned(),
        input("x", VECTOR),
        node(0, "aten.mm.default", r#"[{"v":"x"},{"v":"x"}]"#, "y", VECTOR),
        outputs(&["y"]),
    ];
    let x = floats(&engine, &[3], &[0.0; 3]);
    let said = error(run(&engine, &program(&lines.join("\n")), &[("x", x.into())]));
    assert!(said.starts_with("original:0: aten.mm.default: ") && !said.contains('\n'), "{said}");
}
