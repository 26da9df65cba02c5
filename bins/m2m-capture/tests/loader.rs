//! Loaders: what Python gives becomes an archive that is captured, and what goes wrong in Python is said in one line.
//!
//! `M2M_PYTHON` names an interpreter with PyTorch; tests that need one show nothing without it, unless `M2M_NEED_PYTORCH`
//! is set.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

fn capture(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_m2m-capture")).current_dir(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An interpreter with PyTorch.
fn pytorch() -> Option<String> {
    let python = std::env::var("M2M_PYTHON").ok();
    assert!(python.is_some() || std::env::var_os("M2M_NEED_PYTORCH").is_none(), "M2M_PYTHON is needed and not set");
    python
}

/// Any interpreter.
fn python() -> Option<String> {
    let any = pytorch().unwrap_or_else(|| "python3".to_owned());
    Command::new(&any).arg("--version").output().is_ok().then_some(any)
}

fn folder(loader: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("loader.py"), loader).unwrap();
    folder
}

const MODEL: &str = "import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(x)

    def twice(self, x):
        return self.fc(x) * 2

def get_model_and_inputs():
    print('a line of the loader')
    return Model().eval(), (torch.randn(4, 3),)
";

fn ops(stream: &str) -> Vec<&str> {
    let nodes = stream.lines().filter(|line| line.starts_with(r#"{"record":"node""#));
    nodes.filter_map(|line| line.split(r#""op":""#).nth(1)?.split('"').next()).collect()
}

#[test]
fn a_module_in_memory_becomes_an_archive_and_records() {
    let Some(python) = pytorch() else { return };
    let folder = folder(MODEL);
    let output = capture(folder.path(), &["loader.py", "--python", &python]);
    let stream = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(ops(&stream), ["aten.linear.default"]);
    assert!(text(&output.stderr).contains("a line of the loader"));
    // The archive is read like any other, and is not replaced without being named.
    assert_eq!(text(&capture(folder.path(), &["loader.pt2"]).stdout), stream);
    let again = capture(folder.path(), &["loader.py", "--python", &python]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).starts_with("m2m-capture: loader.pt2: error: is there already"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn dimensions_are_dynamic_by_flag() {
    let Some(python) = pytorch() else { return };
    let folder = folder(MODEL);
    let flags = ["loader.py", "--python", &python, "--save-pt2", "m.pt2", "--strict", "--dynamic", "x:0=batch:1..64"];
    let output = capture(folder.path(), &flags);
    let stream = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let symbol = stream.lines().find(|line| line.starts_with(r#"{"record":"symbol""#)).unwrap();
    assert!(symbol.contains(r#""min":1,"max":64"#), "{symbol}");
    let wrong = capture(folder.path(), &["loader.py", "--python", &python, "--save-pt2", "n.pt2", "--dynamic", "y:0"]);
    let said = text(&wrong.stderr);
    assert!(said.contains("m2m-capture: loader.py: error: --dynamic names 'y'; the inputs are x"), "{said}");
}

#[test]
fn an_export_that_fails_comes_with_its_own_hint() {
    let Some(python) = pytorch() else { return };
    // A batch that is used as the number 4 cannot be dynamic.
    let folder = folder(
        &MODEL.replace("return self.fc(x)\n\n    def twice", "return self.fc(x) + torch.ones(4, 2)\n\n    def twice"),
    );
    let flags = ["loader.py", "--python", &python, "--dynamic", "x:0=batch:2..64"];
    let output = capture(folder.path(), &flags);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("m2m-capture: loader.py: error: "), "{said}");
    assert!(said.contains("batch"), "{said}");
    assert!(!said.contains("Traceback"), "{said}");
    assert!(!folder.path().join("loader.pt2").exists());
}

#[test]
fn methods_become_programs_of_one_archive() {
    let Some(python) = pytorch() else { return };
    let folder = folder(&format!("{MODEL}\nmethods = ['forward', 'twice']\n"));
    let flags = ["loader.py", "--python", &python, "--program", "twice"];
    let output = capture(folder.path(), &flags);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(ops(&text(&output.stdout)), ["aten.linear.default", "aten.mul.Tensor"]);
    let forward = capture(folder.path(), &["loader.pt2", "--program", "forward"]);
    assert_eq!(ops(&text(&forward.stdout)), ["aten.linear.default"]);
}

#[test]
fn errors_of_python_name_the_line() {
    let Some(python) = python() else { return };
    let said = |loader: &str| {
        let folder = folder(loader);
        let output = capture(folder.path(), &["loader.py", "--python", &python]);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        text(&output.stderr)
    };
    assert_eq!(
        said("x = 1\nraise ValueError('the weights are not here')\n"),
        "m2m-capture: loader.py:2: error: ValueError: the weights are not here\n"
    );
    assert!(said("def f(:\n").starts_with("m2m-capture: loader.py:1: error: SyntaxError: "));
}

#[test]
fn what_a_loader_lacks_is_said() {
    let Some(python) = pytorch() else { return };
    let folder = folder("x = 1\n");
    let output = capture(folder.path(), &["loader.py", "--python", &python]);
    let expected = "m2m-capture: loader.py: error: defines no function get_model_and_inputs(); it should return a \
                    torch.nn.Module and its example inputs\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn an_interpreter_that_is_missing_is_named() {
    let folder = folder("");
    let output = capture(folder.path(), &["loader.py", "--python", "no/such/python"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.starts_with("m2m-capture: loader.py: error: cannot run no/such/python: "), "{said}");
    assert!(said.trim_end().ends_with("--python names an interpreter"), "{said}");
}
