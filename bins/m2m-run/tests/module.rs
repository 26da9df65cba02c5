//! A module file on its own: inputs by number, outputs written and compared.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_record::DType;
use tool::{f32s, run, tensors, text};

const ADD: &str = "func.func @forward(%a: tensor<2xf32>, %n: i64) -> (tensor<2xf32>, i64) {
    %b = arith.addf %a, %a : tensor<2xf32>
    %m = arith.addi %n, %n : i64
    return %b, %m : tensor<2xf32>, i64
}";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("add.mlir"), ADD).unwrap();
    tensors(&folder.path().join("in.safetensors"), &[("in_0", DType::F32, &[2], f32s(&[1.0, 2.5]))]);
    folder
}

const RUN: [&str; 6] = ["--module", "add.mlir", "--inputs", "in.safetensors", "--scalar", "in_1=21"];

#[test]
fn equal_outputs_are_reported_on_stdout() {
    let folder = folder();
    let outputs = [
        ("out_0", DType::F32, [2].as_slice(), f32s(&[2.0, 5.0])),
        ("out_1", DType::I64, &[], 42_i64.to_le_bytes().to_vec()),
    ];
    tensors(&folder.path().join("out.safetensors"), &outputs);
    let output = run(folder.path(), &[RUN.as_slice(), &["--compare", "out.safetensors"]].concat(), b"");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(
        text(&output.stdout),
        "out_0: f32 [2]: max abs 0.000e0, max rel 0.000e0, max 0 ulp, rtol 1e-4, atol 1e-5\n\
         out_1: i64 []: max abs 0.000e0, max rel 0.000e0, rtol 0e0, atol 0e0\n"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn wrong_and_missing_outputs_are_errors() {
    let folder = folder();
    let outputs = [
        ("out_0", DType::F32, [2].as_slice(), f32s(&[2.0, 5.5])),
        ("out_1", DType::I32, &[], vec![42, 0, 0, 0]),
        ("out_7", DType::I32, &[], vec![0; 4]),
    ];
    tensors(&folder.path().join("out.safetensors"), &outputs);
    let output = run(folder.path(), &[RUN.as_slice(), &["--compare", "out.safetensors"]].concat(), b"");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(
        text(&output.stderr),
        "m2m-run: out.safetensors: error: out_0: max abs 5.000e-1, max rel 9.091e-2, max 1048576 ulp, \
         sqnr 21.4 dB, rtol 1e-4, atol 1e-5; 1 of 2 outside, the first at [1]: 5e0, reference 5.5e0\n\
         m2m-run: out.safetensors: error: out_1: i64 [], but the reference is i32 []\n\
         m2m-run: out.safetensors: error: out_7: the module has no such output\n"
    );
    assert_eq!(output.status.code(), Some(1));
    let loose = [RUN.as_slice(), &["--compare", "out.safetensors", "--rtol", "0.1"]].concat();
    assert!(!text(&run(folder.path(), &loose, b"").stderr).contains("out_0"));
}

#[test]
fn goldens_are_the_same_bytes_every_time() {
    let folder = folder();
    let golden = folder.path().join("golden.safetensors");
    let args = [RUN.as_slice(), &["--golden", "golden.safetensors"]].concat();
    let output = run(folder.path(), &args, b"");
    assert_eq!(
        (text(&output.stdout), text(&output.stderr), output.status.code()),
        (String::new(), String::new(), Some(0))
    );
    let first = std::fs::read(&golden).unwrap();
    run(folder.path(), &args, b"");
    assert_eq!(std::fs::read(&golden).unwrap(), first);
    let compared = run(folder.path(), &[RUN.as_slice(), &["--compare", "golden.safetensors"]].concat(), b"");
    assert_eq!(compared.status.code(), Some(0));
}

#[test]
fn what_cannot_be_run_is_said() {
    let folder = folder();
    let fails = |args: &[&str], expected: &str| {
        let output = run(folder.path(), args, b"");
        assert_eq!((text(&output.stderr), output.status.code()), (format!("m2m-run: {expected}\n"), Some(2)));
    };
    fails(
        &["--engine", "torch", "--module", "add.mlir", "--golden", "g"],
        "add.mlir: error: has no graph for the engine torch; use --engine mlir",
    );
    fails(
        &["--module", "add.mlir"],
        "error: nothing to do with the outputs; give --compare, --against, --golden FILE or --observe",
    );
    fails(
        &["--module", "add.mlir", "--inputs", "in.safetensors", "--golden", "g"],
        "add.mlir: error: in_1: no value; expected i64 [] in --scalar or --inputs",
    );
    fails(
        &[RUN.as_slice(), &["--golden", "in.safetensors"]].concat(),
        "in.safetensors: error: is also an input; write to another file",
    );
    fails(
        &[RUN.as_slice(), &["--scalar", "in_1", "--golden", "g"]].concat(),
        "add.mlir: error: --scalar \"in_1\": expected KEY=VALUE with a number, true or false",
    );
    fails(
        &["--module", "none.mlir", "--golden", "g"],
        "error: none.mlir: cannot open: No such file or directory (os error 2)",
    );
    std::fs::write(folder.path().join("bad.mlir"), "func.func @forward(").unwrap();
    let output = run(folder.path(), &["--module", "bad.mlir", "--golden", "g"], b"");
    assert!(
        text(&output.stderr).starts_with("m2m-run: bad.mlir: error: module cannot be parsed: "),
        "{}",
        text(&output.stderr)
    );
    assert!(!folder.path().join("g").exists());
}
