//! The manual page and the completions that are checked in are those that m2m-pte makes.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::path::Path;
use std::process::Command;

#[test]
fn pages_have_not_drifted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../man");
    let pages = [
        ("man", "m2m-pte.1"),
        ("bash", "completions/m2m-pte.bash"),
        ("zsh", "completions/_m2m-pte"),
        ("fish", "completions/m2m-pte.fish"),
        ("elvish", "completions/m2m-pte.elv"),
    ];
    for (page, name) in pages {
        let made = Command::new(env!("CARGO_BIN_EXE_m2m-pte")).args(["--generate", page]).output().unwrap();
        let kept = std::fs::read(folder.join(name)).unwrap();
        assert!(made.stdout == kept, "man/{name} differs from what m2m-pte makes; run scripts/man");
    }
}

#[test]
fn help_has_examples_and_statuses() {
    let help = Command::new(env!("CARGO_BIN_EXE_m2m-pte")).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    for part in ["\nExamples:\n  ", "\nExit status:\n  0  done\n", "\n  2  usage"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let short = Command::new(env!("CARGO_BIN_EXE_m2m-pte")).arg("-h").output().unwrap();
    assert!(String::from_utf8(short.stdout).unwrap().lines().count() <= 24, "-h does not fit a screen");
}
