//! The format of the file tests: reading a `.test` file, running its command, comparing, and writing expectations
//! back. `tests/file/README.test` explains it to people, and is itself a test.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tensors;
use crate::tools;

/// A file test, read. The sections `in`, `tensors` and `file` are given; `out`, `err` and `status` are expected.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Everything before the first section, as written.
    head: String,
    /// The command line, for `sh`.
    pub run: String,
    given: Vec<(String, String)>,
    out: String,
    err: String,
    status: i32,
}

/// What a command did.
#[derive(Debug, Default)]
struct Seen {
    out: String,
    err: String,
    status: i32,
}

impl Case {
    /// Reads a test's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut case = Case::default();
        let mut section: Option<String> = None;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let number = index + 1;
            if let Some(title) = line.strip_prefix("--- ") {
                let title = title.trim_end();
                case.open_section(title).map_err(|message| format!("line {number}: {message}"))?;
                section = Some(title.to_owned());
                continue;
            }
            match section.as_deref() {
                None => case.head.push_str(line),
                Some("out") => case.out.push_str(line),
                Some("err") => case.err.push_str(line),
                Some(title) if title.starts_with("status") => {
                    return Err(format!("line {number}: nothing may follow the status; found {line:?}"));
                }
                Some(_) => case.given.last_mut().expect("a given section is open").1.push_str(line),
            }
        }
        let run = case.head.lines().find_map(|line| line.strip_prefix("# run: "));
        case.run = run.ok_or("the first lines hold no `# run: COMMAND`")?.to_owned();
        if !case.head.lines().any(|line| line.starts_with("# ") && !line.starts_with("# run: ")) {
            return Err("no `# sentence` says what the test shows".into());
        }
        if section.is_none_or(|title| !title.starts_with("status")) {
            return Err("the last section is not `--- status NUMBER`".into());
        }
        Ok(case)
    }

    fn open_section(&mut self, title: &str) -> Result<(), String> {
        match title.split_once(' ') {
            None if matches!(title, "out" | "err") => {}
            None if matches!(title, "in" | "tensors") => self.given.push((title.into(), String::new())),
            Some(("file", name)) if !name.contains('/') => self.given.push((title.into(), String::new())),
            Some(("status", number)) => {
                self.status = number.parse().map_err(|_| format!("status {number:?} is no number"))?
            }
            _ => {
                return Err(format!(
                    "no section is called {title:?}; there are in, tensors, file NAME, out, err, status N"
                ));
            }
        }
        Ok(())
    }

    /// Whether the command names a tool that links MLIR.
    pub fn needs_mlir(&self) -> bool {
        tools::MLIR_TOOLS.iter().any(|tool| self.run.contains(tool))
    }

    /// Runs the command and compares; with `bless` rewrites `path` instead of complaining.
    pub fn check(&self, path: &Path, bless: bool) -> Result<(), String> {
        let seen = self.execute().map_err(|error| error.to_string())?;
        if seen.out == self.out && seen.err == self.err && seen.status == self.status {
            return Ok(());
        }
        if bless {
            return std::fs::write(path, self.blessed(&seen)).map_err(|error| format!("{}: {error}", path.display()));
        }
        Err(self.difference(&seen, path))
    }

    fn execute(&self) -> io::Result<Seen> {
        let folder = tools::work_dir()?;
        let mut input = "";
        for (title, body) in &self.given {
            match title.as_str() {
                "in" => input = body,
                "tensors" => {
                    let bytes = tensors::from_text(body).map_err(io::Error::other)?;
                    std::fs::write(folder.path().join("tensors.safetensors"), bytes)?;
                }
                title => std::fs::write(folder.path().join(title.trim_start_matches("file ")), body)?,
            }
        }
        for word in self.run.split_whitespace().filter(|word| word.starts_with("m2m-")) {
            tools::tool(word)?;
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.run).env("PATH", search_path()?).env_remove("NO_COLOR");
        let output = tools::run_with(command, folder.path(), input.as_bytes())?;
        let normal = |bytes: &[u8]| normalise(&String::from_utf8_lossy(bytes), folder.path());
        Ok(Seen { out: normal(&output.stdout), err: normal(&output.stderr), status: shell_status(output.status) })
    }

    /// The test's text with what was seen in place of what was expected.
    fn blessed(&self, seen: &Seen) -> String {
        let mut text = self.head.clone();
        for (title, body) in &self.given {
            let _ = write!(text, "--- {title}\n{body}");
        }
        let _ = write!(text, "--- out\n{}--- err\n{}--- status {}\n", ended(&seen.out), ended(&seen.err), seen.status);
        text
    }

    fn difference(&self, seen: &Seen, path: &Path) -> String {
        let mut text = String::new();
        for (name, expected, found) in [("out", &self.out, &seen.out), ("err", &self.err, &seen.err)] {
            if expected != found {
                let line = expected.lines().zip(found.lines()).take_while(|(left, right)| left == right).count();
                let _ = writeln!(text, "--- {name} differs at line {}", line + 1);
                let _ = writeln!(text, "expected: {}", expected.lines().nth(line).unwrap_or("(no such line)"));
                let _ = writeln!(text, "found:    {}", found.lines().nth(line).unwrap_or("(no such line)"));
            }
        }
        if seen.status != self.status {
            let _ = writeln!(text, "--- status {} was expected, {} found", self.status, seen.status);
        }
        let _ = writeln!(text, "full err:\n{}", seen.err);
        let _ = write!(text, "again: cargo test -p m2m-tests --test file -- {}", test_name(path));
        text
    }
}

/// The name of the test in a file: its path below `tests/file`, without the extension.
pub fn test_name(path: &Path) -> String {
    let below = path.strip_prefix(root()).unwrap_or(path);
    below.with_extension("").to_string_lossy().into_owned()
}

/// The folder of the file tests.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("file")
}

/// The tools first, then the system.
fn search_path() -> io::Result<std::ffi::OsString> {
    let system = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools::bin_dir()?).chain(std::env::split_paths(&system));
    std::env::join_paths(folders).map_err(io::Error::other)
}

/// A section's text must end its last line, or the next title would not be one.
fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Replaces the folder of the test and the version of the tools; nothing else may vary.
fn normalise(text: &str, folder: &Path) -> String {
    let text = text.replace(&*folder.to_string_lossy(), "$TMP");
    ended(&text.replace(concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\""), "\"version\":\"$VERSION\""))
}

/// The status as a shell tells it: 128 and the signal for a death by signal.
fn shell_status(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# run: cat\n# It copies.\n--- in\nhello\n--- out\nhello\n--- err\n--- status 0\n";

    #[test]
    fn blessing_what_was_expected_changes_nothing() {
        let case = Case::parse(TEXT).unwrap();
        let seen = Seen { out: "hello\n".into(), err: String::new(), status: 0 };
        assert_eq!(case.blessed(&seen), TEXT);
    }

    #[test]
    fn malformed_tests_are_refused_by_line() {
        let refused = |text: &str| Case::parse(text).unwrap_err();
        assert_eq!(refused("--- in\n--- status 0\n"), "the first lines hold no `# run: COMMAND`");
        assert_eq!(refused("# run: cat\n--- status 0\n"), "no `# sentence` says what the test shows");
        assert_eq!(refused("# run: cat\n# x\n--- out\n"), "the last section is not `--- status NUMBER`");
        assert_eq!(refused("# run: cat\n# x\n--- status zero\n"), "line 3: status \"zero\" is no number");
        let message = refused("# run: cat\n# x\n--- stdin\n--- status 0\n");
        assert!(message.starts_with("line 3: no section is called \"stdin\""), "{message}");
    }

    #[test]
    fn a_wrong_expectation_is_a_difference() {
        let case = Case::parse(&TEXT.replace("--- out\nhello", "--- out\nhullo")).unwrap();
        let message = case.check(Path::new("copy.test"), false).unwrap_err();
        assert!(message.contains("out differs at line 1\nexpected: hullo\nfound:    hello"), "{message}");
    }
}
