//! m2m-capture: a program of an archive, as records.
//!
//! A page: what a `.pt2` is lives in `m2m_pt2`, and `loader` has one made.

mod args;
mod loader;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use args::Args;
use m2m_cli::{About, AtInput as _, Content, Failure, Message, Messages, Output, Status, run};
use m2m_pt2::{Capture, Origin, WEIGHTS_ID};
use m2m_record::{Diagnostic, File, Severity};
use m2m_tensor::MappedFile;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    run(About { version: VERSION, schema: m2m_record::SCHEMA, no: "" }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    let saved = if loader::is_loader(&args.model) { Some(loader::export(&args, messages)?) } else { None };
    let path = saved.as_deref().unwrap_or(&args.model);
    let shown = path.display().to_string();
    let mapped = MappedFile::open(path).at_input(&shown)?;
    // Of each tensor only the header before it is read.
    mapped.expect_jumps();
    let mut buffer = String::new();
    let capture = Capture::open(mapped.bytes(), args.program.as_deref(), &mut buffer).at_input(&shown)?;
    let name = name_of(path);
    let origin = Origin { name: &name, path: &shown };
    if let Some(samples) = &args.sample_inputs {
        let mut output = Output::open(Some(samples), Content::Binary, &[path])?;
        capture.write_samples(&origin, &mut output).at_input(&shown)?;
        output.finish()?;
    }
    let weights = match &args.weights {
        Some(file) => Some((capture.plan_weights().at_input(&shown)?, file.as_path())),
        None => None,
    };
    if let Some((weights, file)) = &weights {
        let mut output = Output::open(Some(file), Content::Binary, &[path])?;
        weights.write(&capture.file(&origin), &mut output).at_input(&shown)?;
        output.finish()?;
    }
    let weights = match &weights {
        Some((weights, file)) => Some((weights, weights_file(file, weights.file_bytes()?))),
        None => None,
    };
    let output = args.output.open(Content::Text, &[path])?;
    let (mut output, diagnostics) = capture.write(&origin, VERSION, weights, output).at_input(&shown)?;
    output.flush().map_err(|e| output.error(e))?;
    output.finish()?;
    // Notes are for who reads the stream; the person at the terminal hears of what may go wrong.
    let grave = diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Note);
    grave.for_each(|diagnostic| messages.send(&message(diagnostic).input(&shown)));
    Ok(Status::Done)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn weights_file(path: &Path, bytes: u64) -> File {
    File {
        id: WEIGHTS_ID.to_owned(),
        name: name_of(path),
        path: path.display().to_string(),
        format: "safetensors".to_owned(),
        bytes,
    }
}

/// A finding of the stream, for the person at the terminal.
fn message(diagnostic: &Diagnostic) -> Message {
    let text = match &diagnostic.hint {
        Some(hint) => format!("{}; {hint}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let message = match diagnostic.severity {
        Severity::Error => Message::error(text),
        Severity::Warning => Message::warning(text),
        Severity::Note => Message::note(text),
    };
    match &diagnostic.node {
        Some(node) => message.node(node),
        None => message,
    }
}
