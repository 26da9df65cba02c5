//! Runs m2m-run for the tests, on files that they make.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by test files that each use a part; a failed step fails the test"
)]

use m2m_record::{DType, Type};
use m2m_record::{Dim, TensorType};
use m2m_tensor::safetensors::{Plan, WriteError};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Whether there is libtorch; without it a test has nothing to show. `M2M_NEED_LIBTORCH` makes that a failure.
pub fn is_there() -> bool {
    let is_there = m2m_torch::present().is_some();
    assert!(is_there || std::env::var_os("M2M_NEED_LIBTORCH").is_none(), "libtorch is needed and not found");
    is_there
}

pub fn run(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    finish(Command::new(env!("CARGO_BIN_EXE_m2m-run")).args(args), folder, input)
}

/// The same in an address space of so many KiB.
pub fn run_within(kib: u64, folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let script = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
    finish(Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_m2m-run")]).args(args), folder, input)
}

fn finish(command: &mut Command, folder: &Path, input: &[u8]) -> Output {
    let piped = command.current_dir(folder).stdin(Stdio::piped());
    let mut child = piped.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A tool that refuses its input early closes the pipe; that is its right.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Writes a safetensors file of (name, dtype, shape, bytes).
pub fn tensors(path: &Path, tensors: &[(&str, DType, &[u64], Vec<u8>)]) {
    let mut plan = Plan::new();
    for (name, dtype, shape, _) in tensors {
        plan.tensor(name, *dtype, shape).unwrap();
    }
    let mut out = Vec::new();
    plan.write::<_, WriteError>(&mut out, |key, sink| {
        let (.., bytes) = tensors.iter().find(|(name, ..)| *name == key).unwrap();
        Ok(sink.write_all(bytes)?)
    })
    .unwrap();
    std::fs::write(path, out).unwrap();
}

pub fn tensor_type(dtype: DType, shape: &[i64]) -> Type {
    TensorType::new(dtype, shape.iter().copied().map(Dim::Int).collect()).into()
}
