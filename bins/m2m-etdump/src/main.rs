//! m2m-etdump: what a runtime measured, joined to the source graph, as records or as a view.
//!
//! A page: readers, the join and the views live in `m2m_executorch`.

mod args;
mod compare;
mod input;
mod source;
mod stream;
mod view;

use args::{Args, Format, Which};
use input::Bytes;
use m2m_cli::{About, AtInput as _, Content, Failure, Messages, Status, run};
use m2m_executorch::capture::{Capture, Occurrences, Options};
use m2m_executorch::etdump::Dump;
use std::path::Path;
use std::process::ExitCode;

/// The version that records state.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let no = "with --compare, something became slower";
    run(About { version: VERSION, schema: m2m_record::SCHEMA, no }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    if let Some(files) = &args.compare {
        return compare::run(&args, files, messages);
    }
    if args.debug_buffer.is_some() && (args.raw || args.html || args.by_module || args.format != Format::Ndjson) {
        return Err(Failure::new("--debug-buffer is for records; leave out the view"));
    }
    let dump = args.dump.as_deref().map(Bytes::open).transpose()?;
    let record = args.etrecord.as_deref().map(Bytes::open).transpose()?;
    match &dump {
        _ if args.raw => stream::raw(&args, dump.as_ref(), record.as_ref())?,
        None => stream::record_alone(&args, record.as_ref(), messages)?,
        Some(dump) if args.trace.is_some() => stream::piped(&args, dump, messages)?,
        Some(dump) => {
            let source = source::of(&args, record.as_ref(), messages)?;
            let capture = capture(&args, dump, source)?;
            source::warn(&capture, dump, record.as_ref(), messages);
            match args.format {
                Format::Ndjson if !args.html && !args.by_module => {
                    stream::alone(&args, &capture, dump, record.as_ref())?;
                }
                _ => view::write(&args, &capture, dump, record.as_ref())?,
            }
        }
    }
    Ok(Status::Done)
}

/// Reads a dump and joins it to a source.
fn capture<'a>(args: &Args, dump: &'a Bytes, source: m2m_executorch::capture::Source) -> Result<Capture<'a>, Failure> {
    let opened = Dump::open(dump.get()).at_input(&dump.name)?;
    Capture::new(opened, source, options(args)).at_input(&dump.name)
}

fn options(args: &Args) -> Options {
    let occurrences = match args.occurrences {
        Which::Last => Occurrences::Last,
        Which::All => Occurrences::All,
    };
    Options { source: args.source_time_scale.into(), target: args.target_time_scale.into(), occurrences }
}

/// The files that an output must not replace.
fn inputs(args: &Args) -> Vec<&Path> {
    let files = [&args.dump, &args.etrecord, &args.trace, &args.debug_buffer];
    files.into_iter().flatten().chain(args.compare.iter().flatten()).map(|path| path.as_path()).collect()
}

/// Opens where the result goes.
fn output(args: &Args, content: Content) -> Result<m2m_cli::Output, Failure> {
    Ok(args.output.open(content, &inputs(args))?)
}
