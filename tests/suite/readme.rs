//! Runs the commands of README.md as they stand there, from a folder that has the repository's `tests` and the tools.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::process::Command;

use m2m_tests::tools;

/// The shell blocks of the section `title`.
fn blocks(text: &str, title: &str) -> String {
    let section = text.split("\n## ").find(|section| section.starts_with(title)).unwrap();
    let fenced = section.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix("sh\n")).collect()
}

fn the_commands_of_the_readme_work() {
    let text = std::fs::read_to_string(tools::workspace().join("README.md")).unwrap();
    let commands = blocks(&text, "Use");
    assert!(commands.lines().filter(|line| line.starts_with("m2m-")).count() >= 5, "{commands}");
    let folder = tools::work_dir().unwrap();
    std::os::unix::fs::symlink(tools::workspace().join("tests"), folder.path().join("tests")).unwrap();
    std::fs::create_dir(folder.path().join("target")).unwrap();
    std::os::unix::fs::symlink(tools::bin_dir().unwrap(), folder.path().join("target/release")).unwrap();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &commands]);
    let output = tools::run_with(command, folder.path(), b"").unwrap();
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

m2m_tests::suite! {
    mlir the_commands_of_the_readme_work,
}
