//! Two executions held against each other: outputs, the first node where they part, NaN, references without tensors.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_record::{
    Arg, Argument, DType, Graph, Input, InputRole, Lowered, Module, ModuleResult, Node, Output, OutputItem, OutputRole,
    Status, TypedValue, Writer,
};
use std::path::Path;
use tool::{f32s, is_there, run, tensor_type, tensors, text};

fn f32x2() -> m2m_record::Type {
    tensor_type(DType::F32, &[2])
}

/// a = x + x, b = a * a, c = b - x, with a module whose second operation is `second`.
fn stream(second: &str) -> Vec<u8> {
    let text = format!(
        "func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> {{
    %a = arith.addf %x, %x : tensor<2xf32>
    %b = arith.{second} %a, %a : tensor<2xf32>
    %c = arith.subf %b, %x : tensor<2xf32>
    return %c : tensor<2xf32>
}}"
    );
    let graph = "prepared".to_owned();
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let opened = Graph { graph: graph.clone(), stage: graph.clone(), entry: Some("forward".into()), parent: None };
    writer.write(&opened).unwrap();
    writer.write(&Input::new("prepared", "x", InputRole::UserInput, f32x2())).unwrap();
    let nodes =
        [("aten.add.Tensor", "x", "x", "a"), ("aten.mul.Tensor", "a", "a", "b"), ("aten.sub.Tensor", "b", "x", "c")];
    for (number, (op, left, right, result)) in nodes.into_iter().enumerate() {
        let node = Node {
            graph: graph.clone(),
            stage: graph.clone(),
            node: format!("prepared:{number}"),
            op: op.into(),
            args: vec![Arg::value(left), Arg::value(right)],
            results: vec![TypedValue { value: Some(result.into()), ty: f32x2() }],
            ..Node::default()
        };
        writer.write(&node).unwrap();
    }
    let item = OutputItem { value: Some("c".into()), literal: None, role: OutputRole::UserOutput, target: None };
    writer.write(&Output { graph, outputs: vec![item] }).unwrap();
    writer.seal().unwrap();
    let argument =
        Argument { value: "x".into(), role: InputRole::UserInput, target: None, ty: f32x2(), data: None, global: None };
    let result = ModuleResult {
        value: Some("c".into()),
        literal: None,
        role: OutputRole::UserOutput,
        target: None,
        ty: Some(f32x2()),
    };
    let module = Module {
        dialect: "linalg".into(),
        form: "pretty".into(),
        bytes: text.len() as u64,
        sha256: m2m_digest::Digest::of(text.as_bytes()).to_string(),
        text: Some(text),
        file: None,
        entry: "forward".into(),
        arguments: vec![argument],
        results: vec![result],
        externals: Vec::new(),
    };
    writer.write(&module).unwrap();
    // The module is 0 and the function 1.
    for number in 0..3 {
        let lowered = Lowered { node: format!("prepared:{number}"), ops: Some(vec![number + 2]), ..Lowered::default() };
        writer.write(&lowered).unwrap();
    }
    writer.finish(Status::Ok).unwrap()
}

fn inputs(folder: &Path) {
    tensors(&folder.join("in.safetensors"), &[("in_0", DType::F32, &[2], f32s(&[1.0, 3.0]))]);
}

const AGAINST: [&str; 6] = ["--engine", "mlir", "--against", "torch", "--inputs", "in.safetensors"];

#[test]
fn engines_are_compared_on_the_same_inputs() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path());
    let same = run(folder.path(), &AGAINST, &stream("mulf"));
    assert_eq!((text(&same.stderr).as_str(), same.status.code()), ("", Some(0)));
    assert!(text(&same.stdout).starts_with("out_0: f32 [2]: max abs 0.000e0"), "{}", text(&same.stdout));
    // 4 - 1 = 3 where 2 + 2 - 1 = 3 too; 36 - 3 = 33 where 6 + 6 - 3 = 9.
    let other = run(folder.path(), &AGAINST, &stream("addf"));
    let said = text(&other.stderr);
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(said.starts_with("m2m-run: engine torch: error: out_0: max abs 2.400e1"), "{said}");
    assert!(said.contains("1 of 2 outside, the first at [1]: 9e0, reference 3.3e1"), "{said}");
}

#[test]
fn the_first_node_that_differs_is_found_and_runs_alone() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path());
    let bisect = [&AGAINST[..], &["--bisect", "one.ndjson"]].concat();
    let same = run(folder.path(), &bisect, &stream("mulf"));
    assert_eq!(text(&same.stdout), "3 values compared, none differs\n");
    assert!(!folder.path().join("one.ndjson").exists());
    let other = run(folder.path(), &bisect, &stream("addf"));
    let said = text(&other.stderr);
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("m2m-run: engine torch: error: prepared:1: b: aten.mul.Tensor: max abs 2.400e1"),
        "{said}"
    );
    assert_eq!(
        text(&other.stdout),
        "1 of 2 values agree before prepared:1; it is alone in one.ndjson, its tensors in one.safetensors, but agrees \
         there, lowered anew and on the reference's values\n"
    );
    let alone = run(folder.path(), &["one.ndjson", "--engine", "torch", "--compare"], b"");
    assert_eq!((text(&alone.stderr).as_str(), alone.status.code()), ("", Some(0)));
    let stream = std::fs::read_to_string(folder.path().join("one.ndjson")).unwrap();
    let nodes: Vec<&str> = stream.lines().filter(|line| line.starts_with(r#"{"record":"node""#)).collect();
    assert_eq!(nodes.len(), 1);
    assert!(nodes[0].contains(r#""op":"aten.mul.Tensor","args":[{"v":"a"},{"v":"a"}]"#), "{}", nodes[0]);
}

#[test]
fn a_file_of_values_serves_as_the_reference() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path());
    let trace = ["--engine", "torch", "--inputs", "in.safetensors", "--trace-values", "values.safetensors"];
    assert!(run(folder.path(), &trace, &stream("mulf")).status.success());
    let bisect =
        ["--engine", "mlir", "--inputs", "in.safetensors", "--against", "values.safetensors", "--bisect", "one.ndjson"];
    let other = run(folder.path(), &bisect, &stream("addf"));
    let said = text(&other.stderr);
    assert!(said.starts_with("m2m-run: values.safetensors: error: prepared:1: b: "), "{said}");
    let alone = run(folder.path(), &bisect[..6], &stream("addf"));
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("a file of values needs --bisect"), "{}", text(&alone.stderr));
}

#[test]
fn nan_is_refused_where_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let source = "func.func @forward(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
        %s = math.sqrt %a : tensor<2x2xf32>
        return %s : tensor<2x2xf32>
    }";
    std::fs::write(folder.path().join("root.mlir"), source).unwrap();
    let values = [4.0, 1.0, -1.0, 9.0];
    tensors(&folder.path().join("in.safetensors"), &[("in_0", DType::F32, &[2, 2], f32s(&values))]);
    let flags = ["--module", "root.mlir", "--inputs", "in.safetensors", "--refuse-nan"];
    let output = run(folder.path(), &flags, b"");
    let expected = "m2m-run: engine mlir: error: out_0: 1 of 4 elements are NaN, the first at [1, 0]\n";
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), (expected, Some(1)));
    tensors(&folder.path().join("in.safetensors"), &[("in_0", DType::F32, &[2, 2], f32s(&[1.0; 4]))]);
    assert_eq!(run(folder.path(), &flags, b"").status.code(), Some(0));
}

#[test]
fn references_without_tensors_suit_a_program_of_numbers_only() {
    let folder = tempfile::tempdir().unwrap();
    let source = |shape: &str| {
        format!("func.func @forward(%a: tensor<{shape}f32>) -> tensor<{shape}f32> {{ return %a : tensor<{shape}f32> }}")
    };
    tensors(&folder.path().join("none.safetensors"), &[]);
    let flags = ["--module", "m.mlir", "--inputs", "in.safetensors", "--compare", "none.safetensors"];
    std::fs::write(folder.path().join("m.mlir"), source("")).unwrap();
    tensors(&folder.path().join("in.safetensors"), &[("in_0", DType::F32, &[], f32s(&[1.0]))]);
    let number = run(folder.path(), &flags, b"");
    assert_eq!((text(&number.stderr).as_str(), number.status.code()), ("", Some(0)));
    std::fs::write(folder.path().join("m.mlir"), source("2x")).unwrap();
    tensors(&folder.path().join("in.safetensors"), &[("in_0", DType::F32, &[2], f32s(&[1.0, 2.0]))]);
    let tensor = run(folder.path(), &flags, b"");
    assert_eq!(text(&tensor.stderr), "m2m-run: none.safetensors: error: holds no tensor to compare with\n");
}
