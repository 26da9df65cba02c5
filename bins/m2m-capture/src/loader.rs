//! A Python loader instead of an archive: the user's interpreter runs it once, exports the model, and saves the archive
//! that is then read like any other.
//!
//! The loader's own prints go to stderr, since stdout has the records. What goes wrong in Python comes back as a report,
//! not as a traceback.

use crate::args::{Args, Dynamic};
use m2m_cli::{Failure, Message, Messages};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that the interpreter runs.
const EXPORT: &str = include_str!("loader/export.py");

/// Lines of an error's text that are shown behind the first one.
const MOST_LINES: usize = 40;

/// What the program is told.
#[derive(Serialize)]
struct Options<'a> {
    loader: &'a Path,
    save: &'a Path,
    report: &'a Path,
    strict: bool,
    dynamic: &'a [Dynamic],
}

/// What the program says when something went wrong.
#[derive(Deserialize)]
struct Report {
    kind: Option<String>,
    message: String,
    line: Option<u64>,
    hint: Option<String>,
}

/// Whether a path is a loader's.
pub fn is_loader(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py"))
}

/// Runs the loader and saves its archive; where that is.
pub fn export(args: &Args, messages: &Messages) -> Result<PathBuf, Failure> {
    let loader = args.model.as_path();
    let shown = loader.display().to_string();
    std::fs::File::open(loader).map_err(|error| Failure::new(format!("cannot open: {error}")).input(&shown))?;
    let target = target(args)?;
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cannot_save = |error: std::io::Error| {
        Failure::new(format!("cannot save the archive: {error}")).input(target.display().to_string())
    };
    let temporary = |suffix: &str| tempfile::Builder::new().prefix(".m2m-capture-").suffix(suffix).tempfile_in(folder);
    let (save, report) = (temporary(".pt2").map_err(cannot_save)?, temporary(".json").map_err(cannot_save)?);
    let options =
        Options { loader, save: save.path(), report: report.path(), strict: args.strict, dynamic: &args.dynamic };
    let options = serde_json::to_string(&options).map_err(|error| Failure::new(error.to_string()).input(&shown))?;
    let status = Command::new(&args.python)
        .args(["-c", EXPORT, &options])
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| {
            let python = args.python.display();
            Failure::new(format!("cannot run {python}: {error}; --python names an interpreter")).input(&shown)
        })?;
    if status.success() {
        save.as_file().sync_all().map_err(cannot_save)?;
        save.persist(&target).map_err(|error| cannot_save(error.error))?;
        return Ok(target);
    }
    let report = std::fs::read_to_string(report.path()).unwrap_or_default();
    match serde_json::from_str(&report) {
        Ok(report) => Err(failure(report, &shown, messages)),
        Err(_) => Err(Failure::new(format!("{} ended with {status}", args.python.display())).input(&shown)),
    }
}

/// Where the archive goes: `--save-pt2`, or the loader's name in the working directory if nothing is there.
fn target(args: &Args) -> Result<PathBuf, Failure> {
    if let Some(target) = &args.save_pt2 {
        return Ok(target.clone());
    }
    let target = PathBuf::from(args.model.file_name().unwrap_or_default()).with_extension("pt2");
    if target.exists() {
        let message =
            "is there already; --save-pt2 says where the archive of the loader goes, or that it replaces this";
        return Err(Failure::new(message).input(target.display().to_string()));
    }
    Ok(target)
}

/// The first line of the report as the failure; the others, which often say what would be right, as notes before it.
fn failure(report: Report, shown: &str, messages: &Messages) -> Failure {
    let mut lines = report.message.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim();
    let (rest, hint) = (lines.by_ref().take(MOST_LINES), report.hint.as_deref());
    for line in rest {
        messages.send(&Message::note(line.to_owned()).input(shown));
    }
    let left = lines.count();
    if left > 0 {
        messages.send(&Message::note(format!("and {left} more lines")).input(shown));
    }
    let kind = report.kind.map(|kind| format!("{kind}: ")).unwrap_or_default();
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let failure = Failure::new(format!("{kind}{first}{hint}")).input(shown);
    match report.line {
        Some(line) => failure.line(line),
        None => failure,
    }
}
