//! m2m-bundle: a record stream in, a folder out.
//!
//! A page: the layout and all checks live in `m2m_bundle`.

mod args;

use args::Args;
use m2m_bundle::{Error, Options};
use m2m_cli::{About, Failure, Messages, Progress, Status, run};
use std::cell::OnceCell;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(About { version: env!("CARGO_PKG_VERSION"), schema: m2m_record::SCHEMA, no: "" }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    let input = args.input.open()?;
    let name = input.name().to_owned();
    let tool = ("m2m-bundle", env!("CARGO_PKG_VERSION"));
    let options = Options { root: args.root.path(), force: args.force, tool };
    let progress = OnceCell::new();
    let advance = |bytes, total| progress.get_or_init(|| Progress::new(messages, "weights", total)).advance(bytes);
    m2m_bundle::write(input, &args.output, options, &advance).map_err(|error| place(error, &name))?;
    Ok(Status::Done)
}

/// An error about the stream names it and the line; others name their own file.
fn place(error: Error, input: &str) -> Failure {
    let (line, is_about_stream) = (error.line(), error.is_about_stream());
    let failure = match error {
        Error::Folder(error) => Failure::from(error),
        error => Failure::from(error),
    };
    let failure = if is_about_stream { failure.input(input) } else { failure };
    match line {
        Some(line) => failure.line(line),
        None => failure,
    }
}
