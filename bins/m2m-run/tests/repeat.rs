//! `--repeat`: the outputs are those of one run, and the times are a note.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_record::DType;
use tool::{f32s, run, tensors, text};

const ADD: &str = "func.func @forward(%a: tensor<2xf32>) -> tensor<2xf32> {
    %s = arith.addf %a, %a : tensor<2xf32>
    return %s : tensor<2xf32>
}";

#[test]
fn repeated_runs_say_what_they_took() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("add.mlir"), ADD).unwrap();
    tensors(&folder.path().join("in.safetensors"), &[("in_0", DType::F32, &[2], f32s(&[1.0, -3.0]))]);
    tensors(&folder.path().join("out.safetensors"), &[("out_0", DType::F32, &[2], f32s(&[2.0, -6.0]))]);
    let flags = ["--module", "add.mlir", "--inputs", "in.safetensors", "--compare", "out.safetensors", "--exact"];
    let output = run(folder.path(), &[&flags[..], &["--repeat", "3"]].concat(), b"");
    let notes = text(&output.stderr);
    assert!(output.status.success(), "{notes}");
    assert!(text(&output.stdout).starts_with("out_0: f32 [2]: max abs 0"), "{}", text(&output.stdout));
    assert!(notes.starts_with("m2m-run: note: engine mlir: prepared in "), "{notes}");
    assert!(notes.contains(" ms, executed 3 times in "), "{notes}");
    let none = run(folder.path(), &[&flags[..], &["--repeat", "0"]].concat(), b"");
    assert_eq!(none.status.code(), Some(2));
}
