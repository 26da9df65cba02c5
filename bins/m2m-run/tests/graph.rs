//! The engine torch over streams: keys, goldens that a later run takes up, random inputs, npz, and what is refused.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_record::{Arg, Dim, TensorType, Type};
use m2m_record::{
    DType, Golden, Graph, Input, InputRole, Node, Output, OutputItem, OutputRole, Reader, Status, Symbol, Tensor,
    TypedValue, Writer,
};
use tool::{f32s, is_there, run, tensors, text};

fn ty(dtype: DType, shape: Vec<Dim>) -> Type {
    TensorType::new(dtype, shape).into()
}

/// y = x * 2 for x: f32 [s0, 2], s0 from 1 to 4.
fn stream(op: &str) -> Vec<u8> {
    let shape = || ty(DType::F32, vec![Dim::Expr("s0".into()), Dim::Int(2)]);
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let graph = "original".to_owned();
    let entry = Some("forward".to_owned());
    writer.write(&Graph { graph: graph.clone(), stage: graph.clone(), entry, parent: None }).unwrap();
    let hint = Some(Arg::Int(3));
    writer.write(&Symbol { graph: graph.clone(), name: "s0".into(), min: Some(1), max: Some(4), hint }).unwrap();
    writer.write(&Input::new("original", "x", InputRole::UserInput, shape())).unwrap();
    let node = Node {
        graph: graph.clone(),
        stage: graph.clone(),
        node: "original:0".into(),
        op: op.into(),
        args: vec![Arg::value("x"), Arg::Int(2)],
        results: vec![TypedValue { value: Some("y".into()), ty: shape() }],
        ..Node::default()
    };
    writer.write(&node).unwrap();
    let outputs =
        vec![OutputItem { value: Some("y".into()), literal: None, role: OutputRole::UserOutput, target: None }];
    writer.write(&Output { graph, outputs }).unwrap();
    writer.seal().unwrap();
    writer.finish(Status::Ok).unwrap()
}

const TORCH: [&str; 2] = ["--engine", "torch"];

#[test]
fn inputs_come_by_key_or_by_name_and_outputs_are_compared() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, key: &str, values: &[f32]| {
        tensors(&folder.path().join(name), &[(key, DType::F32, &[1, 2], f32s(values))]);
    };
    file("key.safetensors", "in_0", &[1.0, 2.0]);
    file("name.safetensors", "x", &[1.0, 2.0]);
    file("out.safetensors", "out_0", &[2.0, 4.0]);
    for inputs in ["key.safetensors", "name.safetensors"] {
        let args = [&TORCH[..], &["--inputs", inputs, "--compare", "out.safetensors", "--exact"]].concat();
        let output = run(folder.path(), &args, &stream("aten.mul.Tensor"));
        let expected = "out_0: f32 [1, 2]: max abs 0.000e0, max rel 0.000e0, max 0 ulp, rtol 0e0, atol 0e0\n";
        assert_eq!((text(&output.stderr).as_str(), text(&output.stdout).as_str()), ("", expected));
    }
}

#[test]
fn a_golden_of_random_inputs_is_all_that_a_later_run_needs() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = [&TORCH[..], &["--random", "7", "--golden", "golden.safetensors"]].concat();
    let first = run(folder.path(), &args, &stream("aten.mul.Tensor"));
    assert_eq!((text(&first.stderr).as_str(), first.status.code()), ("", Some(0)));
    let bytes = std::fs::read(folder.path().join("golden.safetensors")).unwrap();
    let mut reader = Reader::new(first.stdout.as_slice());
    let (mut goldens, mut names) = (Vec::<Golden>::new(), Vec::new());
    while let Some(line) = reader.next_line().unwrap() {
        match line.kind {
            "golden" => goldens.push(line.parse().unwrap()),
            "tensor" => names.push(line.parse::<Tensor>().unwrap().name),
            _ => {}
        }
    }
    let golden = Golden {
        engine: "torch".into(),
        inputs: vec!["in_0".into()],
        outputs: vec!["out_0".into()],
        seed: Some(Arg::Int(7)),
    };
    assert_eq!((goldens, names), (vec![golden], vec!["in_0".to_owned(), "out_0".to_owned()]));
    let again = run(folder.path(), &[&TORCH[..], &["--compare", "--exact"]].concat(), &first.stdout);
    assert_eq!((text(&again.stderr).as_str(), again.status.code()), ("", Some(0)));
    run(folder.path(), &args, &stream("aten.mul.Tensor"));
    assert_eq!(std::fs::read(folder.path().join("golden.safetensors")).unwrap(), bytes);
}

#[test]
fn every_intermediate_is_written_by_its_name() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    tensors(&folder.path().join("in.safetensors"), &[("in_0", DType::F32, &[1, 2], f32s(&[1.0, 2.0]))]);
    tensors(&folder.path().join("expected.safetensors"), &[("y", DType::F32, &[1, 2], f32s(&[2.0, 4.0]))]);
    let args = [&TORCH[..], &["--inputs", "in.safetensors", "--trace-values", "values.safetensors"]].concat();
    let output = run(folder.path(), &args, &stream("aten.mul.Tensor"));
    assert_eq!((text(&output.stderr).as_str(), text(&output.stdout).as_str()), ("", ""));
    let file = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(file("values.safetensors"), file("expected.safetensors"));
    let args = ["--engine", "mlir", "--trace-values", "v.safetensors"];
    let said = text(&run(folder.path(), &args, &stream("aten.mul.Tensor")).stderr);
    assert_eq!(said, "m2m-run: error: --trace-values needs the engine torch: a module keeps no intermediates\n");
}

#[test]
fn what_does_not_hold_is_said() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.safetensors");
    let fails = |op: &str, dtype, shape: &[u64], bytes: Vec<u8>| {
        tensors(&path, &[("in_0", dtype, shape, bytes)]);
        let args = [&TORCH[..], &["--inputs", "in.safetensors", "--golden", "g"]].concat();
        let output = run(folder.path(), &args, &stream(op));
        assert_eq!(output.status.code(), Some(2));
        assert!(!folder.path().join("g").exists());
        text(&output.stderr)
    };
    assert_eq!(
        fails("aten.mul.Tensor", DType::F32, &[5, 2], vec![0; 40]),
        "m2m-run: <stdin>: error: s0 is 5; its range is 1 to 4\n"
    );
    assert_eq!(
        fails("aten.mul.Tensor", DType::F64, &[1, 2], vec![0; 16]),
        "m2m-run: <stdin>: error: x: expected f32 [s0, 2] with s0=1; got f64 [1, 2]\n"
    );
    assert_eq!(
        fails("mine.twist.default", DType::F32, &[1, 2], vec![0; 8]),
        "m2m-run: <stdin>: error: original:0: mine.twist.default: a custom operator of namespace \"mine\", which libtorch \
         does not have\n"
    );
}

#[test]
fn without_libtorch_it_is_said_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_m2m-run"));
    command.args(["--engine", "torch", "--random", "1", "--golden", "g"]).env("LIBTORCH", folder.path());
    command.current_dir(folder.path()).stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &stream("aten.mul.Tensor")).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("pip install torch==2.13.0") && said.contains("LIBTORCH"), "{said}");
}
