//! m2m-hash as a filter: streams, statuses, closed pipes, full disks, files that appear whole.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod tool;

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use tool::{hash, text};

/// SHA-256 of "abc", FIPS 180-4.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn stdin_and_dash_are_the_same() {
    for args in [&[][..], &["-"]] {
        let out = tool::with_stdin(args, b"abc");
        assert_eq!((text(&out.stdout), out.status.code()), (format!("{ABC}  -\n"), Some(0)));
    }
}

#[test]
fn an_unreadable_file_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "abc").unwrap();
    let out = hash(dir.path(), &["gone", "a"]);
    assert_eq!((text(&out.stdout), out.status.code()), (format!("{ABC}  a\n"), Some(2)));
    assert_eq!(text(&out.stderr), "m2m-hash: gone: error: cannot open: No such file or directory (os error 2)\n");
}

#[test]
fn an_inventory_does_not_depend_on_where_it_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    for name in ["b", "a", "sub/c"] {
        fs::write(tree.join(name), name).unwrap();
    }
    let outside = hash(dir.path(), &["tree"]);
    let inside = hash(&tree.join("sub"), &[".."]);
    assert_eq!(text(&outside.stdout), text(&inside.stdout));
    let names: Vec<_> = text(&outside.stdout).lines().map(|line| line[66..].to_owned()).collect();
    assert_eq!(names, ["a", "b", "sub/c"]);
}

#[test]
fn a_link_has_no_inventory() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
    let out = hash(dir.path(), &["."]);
    assert_eq!((text(&out.stdout).as_str(), out.status.code()), ("", Some(2)));
    assert!(text(&out.stderr).contains("is a symbolic link"), "{}", text(&out.stderr));
}

#[test]
fn a_closed_pipe_ends_it_by_sigpipe() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..2000 {
        fs::write(dir.path().join(n.to_string()), "x").unwrap();
    }
    let mut child = tool::command(dir.path(), &["."]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.signal(), text(&out.stderr).as_str()), (Some(13), ""));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out = tool::command("/".as_ref(), &["--help"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let out = out.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("cannot write to stdout: No space left"), "{}", text(&out.stderr));
    let out = tool::with_stdin(&["-o", "/dev/full"], b"abc");
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).starts_with("m2m-hash: /dev/full: error: cannot write"), "{}", text(&out.stderr));
}

#[test]
fn an_input_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.json"), "{ }").unwrap();
    let out = hash(dir.path(), &["--canonical-json", "a.json", "-o", "a.json"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(fs::read(dir.path().join("a.json")).unwrap(), b"{ }");
}

#[test]
fn canonical_json_is_one_line() {
    let out = tool::with_stdin(&["--canonical-json"], b"{\"b\": 9007199254740993, \"a\": [1.0, 1E2]}");
    assert_eq!((text(&out.stdout).as_str(), out.status.code()), ("{\"a\":[1,100],\"b\":9007199254740993}\n", Some(0)));
    let out = tool::with_stdin(&["--canonical-json"], b"{\"a\":1,\n\"a\":2}");
    assert_eq!((text(&out.stdout).as_str(), out.status.code()), ("", Some(2)));
    assert!(
        text(&out.stderr).starts_with("m2m-hash: <stdin>:2: error: the key a is repeated"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn version_names_the_schema() {
    let out = hash("/".as_ref(), &["--version"]);
    assert_eq!(text(&out.stdout), format!("m2m-hash {} (m2m.stream.v1)\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn usage_errors_are_one_line() {
    let out = hash("/".as_ref(), &["--seal", "--check"]);
    let lines = text(&out.stderr);
    assert_eq!((out.status.code(), lines.lines().count()), (Some(2), 1), "{lines}");
    assert!(lines.starts_with("m2m-hash: error: "), "{lines}");
}

#[test]
fn a_terminated_program_leaves_no_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = tool::command(dir.path(), &["-o", "out"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"abc").unwrap();
    // The output is opened before the input is read to its end, so a temporary file appears while stdin stays open.
    for _ in 0..500 {
        if fs::read_dir(dir.path()).unwrap().count() == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let killed = std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    let status = child.wait().unwrap();
    assert_eq!((status.signal(), fs::read_dir(dir.path()).unwrap().count()), (Some(15), 0));
}
