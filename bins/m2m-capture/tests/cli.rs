//! The program as a person meets it: exit statuses, messages, files that appear whole or not at all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name).join("model.pt2")
}

fn capture(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_m2m-capture")).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_stream_goes_to_stdout_or_to_a_file() {
    let model = fixture("mlp");
    let model = model.to_str().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mlp.ndjson");
    let direct = capture(&[model]);
    assert_eq!((direct.status.code(), stderr(&direct).as_str()), (Some(0), ""));
    let written = capture(&[model, "-o", file.to_str().unwrap()]);
    assert_eq!((written.status.code(), written.stdout.len()), (Some(0), 0));
    assert_eq!(std::fs::read(&file).unwrap(), direct.stdout);
    assert!(direct.stdout.ends_with(b"}\n"));
}

#[test]
fn several_programs_need_a_choice() {
    let model = fixture("two_programs");
    let model = model.to_str().unwrap();
    let output = capture(&[model]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let message = stderr(&output);
    assert!(message.starts_with(&format!("m2m-capture: {model}: error: the archive holds 2 programs, ")), "{message}");
    assert!(message.ends_with("choose one with --program NAME\n"), "{message}");
}

#[test]
fn a_torn_file_gives_no_output() {
    let dir = tempfile::tempdir().unwrap();
    let (torn, out) = (dir.path().join("torn.pt2"), dir.path().join("out.ndjson"));
    let whole = std::fs::read(fixture("mlp")).unwrap();
    std::fs::write(&torn, &whole[..whole.len() / 2]).unwrap();
    let output = capture(&[torn.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("torn"), "{}", stderr(&output));
    assert!(!out.exists());
}

#[test]
fn the_model_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("mlp.pt2");
    std::fs::copy(fixture("mlp"), &model).unwrap();
    let model_text = model.to_str().unwrap();
    for flag in ["-o", "--weights", "--sample-inputs"] {
        let output = capture(&[model_text, flag, model_text]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
    }
    assert_eq!(std::fs::read(&model).unwrap(), std::fs::read(fixture("mlp")).unwrap());
}

#[test]
fn weights_and_samples_go_to_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let (weights, samples) = (dir.path().join("w.safetensors"), dir.path().join("in.safetensors"));
    let model = fixture("tied_shared");
    let (w, s) = (weights.to_str().unwrap(), samples.to_str().unwrap());
    let output = capture(&[model.to_str().unwrap(), "--weights", w, "--sample-inputs", s]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stream = String::from_utf8(output.stdout).unwrap();
    assert!(stream.contains("\"file\":\"f1\",\"tensor\":"), "{stream}");
    assert!(!stream.contains("\"file\":\"f0\",\"offset\""), "{stream}");
    assert!(weights.exists() && samples.exists());
}

#[test]
fn a_full_disk_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_m2m-capture"))
        .arg(fixture("mlp"))
        .stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("write"), "{}", stderr(&output));
}
