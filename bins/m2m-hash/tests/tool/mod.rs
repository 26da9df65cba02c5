//! Runs m2m-hash for the tests.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by test files that each use a part; a failed step fails the test"
)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_m2m-hash"));
    command.current_dir(folder).args(args).stdin(Stdio::null());
    command
}

pub fn hash(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

pub fn with_stdin(args: &[&str], input: &[u8]) -> Output {
    let mut command = command("/".as_ref(), args);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A tool that refuses its input early closes the pipe; that is its right.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
