//! The verdicts of m2m-hash: on a bundle, on a record stream, on a list of digests.

use crate::args::Args;
use crate::write::{at_line, at_path};
use m2m_cli::{AtInput, Content, Failure, Input, Message, Messages, Progress, Status};
use m2m_digest::{Digest, Entry, Name, RECEIPT_NAME, Receipt, Report, Scope};
use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Checks what the paths name.
pub fn check(args: &Args, messages: &Messages) -> Result<Status, Failure> {
    let (subject, folder) = match args.paths.as_slice() {
        [] => (Path::new("-"), None),
        [subject] => (subject.as_path(), None),
        [list, folder] => (list.as_path(), Some(folder.as_path())),
        more => {
            return Err(Failure::new(format!(
                "{} paths given; --check takes one, or a list and its folder",
                more.len()
            )));
        }
    };
    let checker = Checker { args, messages };
    match folder {
        None if subject.is_dir() => checker.bundle(subject),
        None => checker.list_or_stream(subject),
        Some(folder) => checker.list(Input::open(Some(subject))?, Some(folder)),
    }
}

struct Checker<'a> {
    args: &'a Args,
    messages: &'a Messages,
}

impl Checker<'_> {
    fn bundle(&self, folder: &Path) -> Result<Status, Failure> {
        let path = folder.join(RECEIPT_NAME);
        let shown = path.display().to_string();
        if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            return Err(Failure::new("is not a regular file; a receipt is never a link").input(shown));
        }
        let bytes = fs::read(&path).map_err(|error| {
            let hint = format!(
                "cannot open: {error}; a bundle has one, for a list of digests use: --check LIST {}",
                folder.display()
            );
            Failure::new(hint).input(&shown)
        })?;
        let receipt = Receipt::from_bytes(&bytes).at_input(&shown)?;
        let entries = receipt.entries().at_input(&shown)?;
        let own = Name::from_bytes(RECEIPT_NAME);
        let scope = Scope::Whole { except: Some(&own), empty_folders: true };
        let identity = format!("receipt sha256 {}", Digest::of(&bytes));
        self.compare(&folder.display().to_string(), folder, &entries, scope, &identity)
    }

    fn list_or_stream(&self, path: &Path) -> Result<Status, Failure> {
        let input = Input::open(Some(path))?;
        let name = input.name().to_owned();
        let mut reader = input.into_reader();
        let is_stream = reader.fill_buf().at_input(&name)?.first() == Some(&b'{');
        if is_stream { self.stream(&name, reader) } else { self.entries(&name, reader, None, path) }
    }

    fn list(&self, input: Input, folder: Option<&Path>) -> Result<Status, Failure> {
        let name = input.name().to_owned();
        let path = input.path().map(Path::to_path_buf).unwrap_or_default();
        self.entries(&name, input.into_reader(), folder, &path)
    }

    fn entries(&self, name: &str, reader: impl BufRead, folder: Option<&Path>, list: &Path) -> Result<Status, Failure> {
        let entries = m2m_digest::read_list(reader).map_err(|e| at_line(e, name))?;
        let Some(folder) = folder else {
            if entries.is_empty() {
                return Err(Failure::new("is empty; expected lines of a digest, two spaces and a name").input(name));
            }
            return self.compare(name, Path::new("."), &entries, Scope::Listed, "only what is listed was looked at");
        };
        if !folder.is_dir() {
            return Err(
                Failure::new("is not a folder; --check LIST FOLDER takes one").input(folder.display().to_string())
            );
        }
        let own = name_inside(folder, list);
        let scope = Scope::Whole { except: own.as_ref(), empty_folders: false };
        self.compare(name, folder, &entries, scope, "nothing else is there")
    }

    /// Prints the differences, or one line that says that there are none.
    fn compare(
        &self,
        name: &str,
        root: &Path,
        entries: &[Entry],
        scope: Scope,
        remark: &str,
    ) -> Result<Status, Failure> {
        let total = entries.iter().filter_map(|entry| entry.bytes).sum();
        let progress = Progress::new(self.messages, "checking", total);
        let report = m2m_digest::check(root, entries, scope, &|bytes| progress.advance(bytes)).map_err(at_path)?;
        drop(progress);
        let mut text = String::new();
        for (file, finding) in &report.findings {
            text.push_str(&format!("{}: {finding}\n", file.shown()));
        }
        if report.is_clean() {
            text = format!("{name}: ok: {} files, {} bytes, {remark}\n", report.matched, report.bytes);
        }
        self.print(&text)?;
        Ok(self.verdict(name, &report))
    }

    fn verdict(&self, name: &str, report: &Report) -> Status {
        if report.is_clean() {
            return Status::Done;
        }
        let count = report.findings.len();
        let words = if count == 1 { "difference" } else { "differences" };
        let text = format!("{count} {words} found; files as listed: {}", report.matched);
        self.messages.send(&Message::error(text).input(name));
        if report.is_incomplete() { Status::Failed } else { Status::No }
    }

    /// Every digest of a stream is checked by reading it to its end.
    fn stream(&self, name: &str, input: impl BufRead) -> Result<Status, Failure> {
        let mut reader = m2m_record::Reader::new(input).accept_failed();
        while reader.next_line().map_err(|e| stream_failure(e, name))?.is_some() {}
        let Some(end) = reader.end() else {
            return Err(Failure::new("the stream has no end record").input(name));
        };
        let (Some(records), Some(sha256)) = (end.records, &end.sha256) else {
            self.messages
                .send(&Message::error("end states no records or no sha256; m2m-hash --seal adds them").input(name));
            return Ok(Status::No);
        };
        let status = if end.status == m2m_record::Status::Ok { "ok" } else { "failed" };
        self.print(&format!("{name}: ok: {records} records, status {status}, sha256 {sha256}\n"))?;
        Ok(Status::Done)
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        let mut output = self.args.output.open(Content::Text, &[])?;
        output.write_all(text.as_bytes()).map_err(|e| output.error(e))?;
        Ok(output.finish()?)
    }
}

fn stream_failure(error: m2m_record::Error, name: &str) -> Failure {
    let line = error.line();
    let failure = Failure::from(error).input(name);
    match line {
        Some(line) => failure.line(line),
        None => failure,
    }
}

/// The name of the list relative to the folder that it describes, where it lies inside.
fn name_inside(folder: &Path, list: &Path) -> Option<Name> {
    let (folder, list): (PathBuf, PathBuf) = (fs::canonicalize(folder).ok()?, fs::canonicalize(list).ok()?);
    let inside = list.strip_prefix(folder).ok()?;
    Some(Name::from_bytes(inside.as_os_str().as_bytes()))
}
