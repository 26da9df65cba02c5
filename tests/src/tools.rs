//! Finds the workspace's binaries beside the running test, and runs them the way the tests need: from a folder of
//! their own, with the fixtures under the relative name `fixtures`, so that no path of the machine is in what they write.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The tools that link MLIR; a run of the tests without LLVM leaves out what needs them.
pub const MLIR_TOOLS: [&str; 2] = ["m2m-lower", "m2m-run"];

/// Set to run only what needs no LLVM. Otherwise a missing tool is a failure, never a test that is silently left out.
pub const WITHOUT_MLIR: &str = "M2M_WITHOUT_MLIR";

/// Whether this run leaves out what needs MLIR.
pub fn without_mlir() -> bool {
    std::env::var_os(WITHOUT_MLIR).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The folder of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// The folder of the fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The folder in which cargo puts this profile's binaries: that of the running test, without `deps`.
pub fn bin_dir() -> io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().ok_or_else(|| io::Error::other("the test has no folder"))?;
    let folder = if folder.file_name() == Some(OsStr::new("deps")) { folder.parent() } else { Some(folder) };
    Ok(folder.ok_or_else(|| io::Error::other("deps has no folder"))?.to_owned())
}

/// The path of a tool, or an error that says how to build it.
pub fn tool(name: &str) -> io::Result<PathBuf> {
    let path = bin_dir()?.join(name);
    if path.is_file() {
        return Ok(path);
    }
    let profile = if path.parent().is_some_and(|folder| folder.ends_with("release")) { " --release" } else { "" };
    Err(io::Error::other(format!(
        "{} is missing: build it with `cargo build{profile} --workspace --bin {name}`",
        path.display()
    )))
}

/// A folder for one test, holding the link `fixtures`; it disappears with the value.
pub fn work_dir() -> io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    std::os::unix::fs::symlink(fixtures(), folder.path().join("fixtures"))?;
    Ok(folder)
}

/// Runs a command in `folder` with `input` on its standard input, and returns what it wrote and its status.
pub fn run_with(mut command: Command, folder: &Path, input: &[u8]) -> io::Result<Output> {
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().expect("standard input is piped");
    std::thread::scope(|scope| {
        // A tool may stop reading before the input's end: that is its right, and its status tells.
        scope.spawn(move || {
            let _ = stdin.write_all(input);
        });
        child.wait_with_output()
    })
}

/// Runs a tool by name; see `run_with`.
pub fn run<S: AsRef<OsStr>>(name: &str, args: &[S], folder: &Path, input: &[u8]) -> io::Result<Output> {
    let mut command = Command::new(tool(name)?);
    command.args(args);
    run_with(command, folder, input)
}

/// The output of a run that must succeed; otherwise an error with the status and what was said.
pub fn expect_success(what: &str, output: Output) -> io::Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{what}: {}\n{said}", output.status)))
}

/// Captures the program of a fixture that its first input set is for, and returns the stream.
pub fn capture(fixture: &str, folder: &Path) -> io::Result<Vec<u8>> {
    capture_for(fixture, "", folder)
}

/// Captures the program that the input set with this suffix is for: an archive of several has sets for each.
pub fn capture_for(fixture: &str, suffix: &str, folder: &Path) -> io::Result<Vec<u8>> {
    let program: &[&str] = match (fixture, suffix) {
        ("two_programs", _) => &["--program", "prefill"],
        ("multi_program", "") => &["--program", "model"],
        ("multi_program", _) => &["--program", "decode"],
        _ => &[],
    };
    let path = format!("fixtures/{fixture}/model.pt2");
    let mut args = vec![path.as_str()];
    args.extend(program);
    expect_success(&format!("m2m-capture {}", args.join(" ")), run("m2m-capture", &args, folder, b"")?)
}

/// The names of the folders below `root` that hold a model, sorted.
pub fn model_names(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.path().join("model.pt2").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Runs the tests of a suite, each a name and a function; those that need MLIR are ignored in a run without it.
pub fn run_suite(tests: &[(&'static str, bool, fn())]) -> std::process::ExitCode {
    let trial = |(name, needs_mlir, test): &(&'static str, bool, fn())| {
        let test = *test;
        let run = move || {
            test();
            Ok(())
        };
        libtest_mimic::Trial::test(*name, run).with_ignored_flag(*needs_mlir && without_mlir())
    };
    let trials = tests.iter().map(trial).collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
}

/// Makes a suite's `main`: `mlir NAME` is a test that needs MLIR, `plain NAME` one that does not.
#[macro_export]
macro_rules! suite {
    (@mlir plain) => { false };
    (@mlir mlir) => { true };
    ($($need:ident $test:ident),* $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::tools::run_suite(&[$((stringify!($test), $crate::suite!(@mlir $need), $test)),*])
        }
    };
}
