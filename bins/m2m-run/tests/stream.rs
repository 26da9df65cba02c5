//! Streams: state in place from the files that they name, keys of inputs and outputs, records of an execution.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_record::{
    Argument, ByteOrder, DType, Data, File, Golden, Graph, Input, InputRole, Module, ModuleResult, OutputRole, Reader,
    Status, Tensor, Writer,
};
use std::path::Path;
use tool::{f32s, run, run_within, tensor_type, tensors, text};

// x * w + b, with b updated to b + 1 and the middle argument a constant input that is no argument.
const TEXT: &str =
    "func.func @forward(%w: tensor<2x2xf32>, %b: tensor<2xf32>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %z = arith.constant dense<0.0> : tensor<2xf32>
    %one = arith.constant dense<1.0> : tensor<2xf32>
    %d = linalg.matvec ins(%w, %x : tensor<2x2xf32>, tensor<2xf32>) outs(%z : tensor<2xf32>) -> tensor<2xf32>
    %y = arith.addf %d, %b : tensor<2xf32>
    %n = arith.addf %b, %one : tensor<2xf32>
    return %n, %y : tensor<2xf32>, tensor<2xf32>
}
";

fn input(value: &str, role: InputRole, shape: &[i64]) -> Input {
    Input::new("original", value, role, tensor_type(DType::F32, shape))
}

fn argument(value: &str, role: InputRole, target: Option<&str>, shape: &[i64], data: Option<Data>) -> Argument {
    let ty = tensor_type(DType::F32, shape);
    Argument { value: value.into(), role, target: target.map(Into::into), ty, data, global: None }
}

fn result(value: &str, role: OutputRole, target: Option<&str>) -> ModuleResult {
    let ty = Some(tensor_type(DType::F32, &[2]));
    ModuleResult { value: Some(value.into()), literal: None, role, target: target.map(Into::into), ty }
}

/// A stream whose weight is stored transposed in a raw file, and whose bias is big-endian. Behind them the file has a hole,
/// up to so many bytes.
fn stream(folder: &Path, file_bytes: u64) -> Vec<u8> {
    // Stored columns first: w = [[1, 2], [3, 4]].
    let mut raw = f32s(&[1.0, 3.0, 2.0, 4.0]);
    raw.extend([10.0_f32, 20.0].iter().flat_map(|value| value.to_be_bytes()));
    let file_bytes = file_bytes.max(raw.len() as u64);
    std::fs::write(folder.join("state.bin"), &raw).unwrap();
    std::fs::File::options().write(true).open(folder.join("state.bin")).unwrap().set_len(file_bytes).unwrap();
    let range = |offset, bytes, strides, byteorder| {
        Some(Data::Range { file: "f0".into(), offset, bytes, storage: None, strides, byteorder })
    };
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let name = "state.bin".to_owned();
    let path = name.clone();
    writer.write(&File { id: "f0".into(), name, path, format: "raw".into(), bytes: file_bytes }).unwrap();
    let graph =
        Graph { graph: "original".into(), stage: "original".into(), entry: Some("forward".into()), parent: None };
    writer.write(&graph).unwrap();
    writer.write(&input("p_w", InputRole::Parameter, &[2, 2])).unwrap();
    writer.write(&input("b_b", InputRole::Buffer, &[2])).unwrap();
    writer.write(&input("flag", InputRole::ConstantInput, &[])).unwrap();
    writer.write(&input("x", InputRole::UserInput, &[2])).unwrap();
    writer.seal().unwrap();
    let module = Module {
        dialect: "linalg".into(),
        form: "pretty".into(),
        text: Some(TEXT.into()),
        file: None,
        bytes: TEXT.len() as u64,
        sha256: m2m_digest::Digest::of(TEXT.as_bytes()).to_string(),
        entry: "forward".into(),
        arguments: vec![
            argument(
                "p_w",
                InputRole::Parameter,
                Some("w"),
                &[2, 2],
                range(0, 16, Some(vec![1, 2]), ByteOrder::Little),
            ),
            argument("b_b", InputRole::Buffer, Some("b"), &[2], range(16, 8, None, ByteOrder::Big)),
            argument("x", InputRole::UserInput, None, &[2], None),
        ],
        results: vec![
            result("n", OutputRole::BufferMutation, Some("b")),
            ModuleResult {
                value: None,
                literal: Some(m2m_record::Arg::Int(7)),
                role: OutputRole::UserOutput,
                target: None,
                ty: None,
            },
            result("y", OutputRole::UserOutput, None),
        ],
        externals: vec![],
    };
    writer.write(&module).unwrap();
    writer.finish(Status::Ok).unwrap()
}

fn folder() -> (tempfile::TempDir, Vec<u8>) {
    folder_of(0)
}

fn folder_of(file_bytes: u64) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let stream = stream(folder.path(), file_bytes);
    // Leaf 0 is the constant, so the tensor is in_1; out_0 is the literal, so the result is out_1.
    tensors(&folder.path().join("in.safetensors"), &[("in_1", DType::F32, &[2], f32s(&[1.0, 10.0]))]);
    let outputs = [
        ("out_1", DType::F32, [2].as_slice(), f32s(&[31.0, 63.0])),
        ("mutated.b", DType::F32, &[2], f32s(&[11.0, 21.0])),
    ];
    tensors(&folder.path().join("out.safetensors"), &outputs);
    (folder, stream)
}

#[test]
fn strided_and_swapped_state_is_bound_and_leaves_are_counted() {
    let (folder, stream) = folder();
    let output = run(
        folder.path(),
        &["--engine", "mlir", "--inputs", "in.safetensors", "--compare", "out.safetensors"],
        &stream,
    );
    assert_eq!(text(&output.stderr), "");
    assert_eq!(text(&output.stdout).lines().count(), 2);
    assert_eq!(output.status.code(), Some(0));
    let elsewhere = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let args = [
        "--engine",
        "mlir",
        "--root",
        &path(""),
        "--inputs",
        &path("in.safetensors"),
        "--compare",
        &path("out.safetensors"),
    ];
    assert_eq!(run(elsewhere.path(), &args, &stream).status.code(), Some(0));
}

/// Two tensors of one file of 3 GiB are in an address space that has no room for it twice.
#[test]
fn a_file_is_mapped_once_for_all_that_it_holds() {
    let (folder, stream) = folder_of(3 << 30);
    let args = ["--engine", "mlir", "--inputs", "in.safetensors", "--compare", "out.safetensors"];
    let output = run_within(5 << 20, folder.path(), &args, &stream);
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(0)));
}

#[test]
fn a_golden_passes_the_stream_on_with_its_records() {
    let (folder, stream) = folder();
    let args = [
        "--engine",
        "mlir",
        "--inputs",
        "in.safetensors",
        "--golden",
        "golden.safetensors",
        "--compare",
        "out.safetensors",
        "-q",
    ];
    let output = run(folder.path(), &args, &stream);
    assert_eq!((text(&output.stderr), output.status.code()), (String::new(), Some(0)));
    let before = stream.split_inclusive(|&byte| byte == b'\n').count() - 1;
    let head: Vec<u8> = stream.split_inclusive(|&byte| byte == b'\n').take(before).flatten().copied().collect();
    assert!(output.stdout.starts_with(&head), "every line but end passes byte for byte");
    let mut reader = Reader::new(output.stdout.as_slice());
    let (mut kinds, mut tensors, mut golden) = (Vec::new(), Vec::new(), None);
    while let Some(line) = reader.next_line().unwrap() {
        kinds.push(line.kind.to_owned());
        match line.kind {
            "tensor" => tensors.push(line.parse::<Tensor>().unwrap()),
            "golden" => golden = Some(line.parse::<Golden>().unwrap()),
            _ => {}
        }
    }
    assert_eq!(kinds[before..], ["tool", "file", "tensor", "file", "tensor", "tensor", "golden"]);
    let golden = golden.unwrap();
    assert_eq!(
        (golden.inputs, golden.outputs),
        (vec!["in_1".to_owned()], vec!["mutated.b".to_owned(), "out_1".to_owned()])
    );
    assert_eq!(tensors[0].data, Data::Tensor { file: "f1".into(), tensor: "in_1".into() });
    let again = run(folder.path(), &args, &output.stdout);
    assert!(
        text(&again.stdout).contains("\"outputs\":[\"2.mutated.b\",\"2.out_1\"]"),
        "a second execution has names of its own"
    );
}

#[test]
fn a_difference_ends_the_stream_as_failed() {
    let (folder, stream) = folder();
    tensors(&folder.path().join("out.safetensors"), &[("out_1", DType::F32, &[2], f32s(&[31.0, 64.0]))]);
    let args =
        ["--engine", "mlir", "--inputs", "in.safetensors", "--golden", "g.safetensors", "--compare", "out.safetensors"];
    let output = run(folder.path(), &args, &stream);
    assert_eq!(output.status.code(), Some(1));
    let last: Vec<String> = text(&output.stdout).lines().rev().take(2).map(Into::into).collect();
    assert!(last[0].starts_with("{\"record\":\"end\",\"status\":\"failed\""), "{}", last[0]);
    assert!(
        last[1].starts_with("{\"record\":\"diagnostic\",\"severity\":\"error\",\"code\":\"differs\""),
        "{}",
        last[1]
    );
}

#[test]
fn cut_and_edited_streams_run_nothing() {
    let (folder, stream) = folder();
    let args = ["--engine", "mlir", "--inputs", "in.safetensors", "--golden", "g.safetensors"];
    for length in (0..stream.len()).step_by(97) {
        let output = run(folder.path(), &args, &stream[..length]);
        assert_eq!(output.status.code(), Some(2), "cut at {length}");
    }
    let edited = text(&stream).replace("arith.addf %d", "arith.subf %d");
    let output = run(folder.path(), &args, edited.as_bytes());
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.path().join("g.safetensors").exists());
    std::fs::write(folder.path().join("state.bin"), b"other").unwrap();
    let output = run(folder.path(), &args, &stream);
    let said = text(&output.stderr);
    assert!(said.contains("<stdin>: error: w: state.bin: 5 bytes; the stream says 24"), "{said}");
}

#[test]
fn a_full_disk_is_told() {
    let (folder, stream) = folder();
    let args = ["--engine", "mlir", "--inputs", "in.safetensors", "--golden", "g.safetensors", "-o", "/dev/full"];
    let output = run(folder.path(), &args, &stream);
    let expected = "m2m-run: error: cannot write the stream: No space left on device (os error 28)\n";
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), (expected, Some(2)));
}

#[test]
fn modules_of_other_engines_are_named() {
    let (folder, stream) = folder();
    let args = ["--engine", "mlir", "--inputs", "in.safetensors", "--golden", "g.safetensors"];
    let said = |from: &str, to: &str| {
        let edited = m2m_digest::reseal(text(&stream).replacen(from, to, 1).as_bytes()).unwrap();
        let output = run(folder.path(), &args, &edited);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let tosa = said("\"dialect\":\"linalg\"", "\"dialect\":\"tosa\"");
    assert_eq!(tosa, "m2m-run: <stdin>: error: the module is in dialect tosa; engine mlir compiles linalg\n");
    let global = said("\"byteorder\":\"big\"}}", "\"byteorder\":\"big\"},\"global\":\"b\"}");
    let expected =
        "b is bound to a global of the module; engine mlir passes state as arguments (m2m-lower --bind-weights args)";
    assert_eq!(global, format!("m2m-run: <stdin>: error: {expected}\n"));
}
