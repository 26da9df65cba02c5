//! m2m-pte: what an ExecuTorch program holds, and its payloads.
//!
//! A page: the formats and all checks live in `m2m_executorch`.

mod args;

use args::{Args, Format};
use m2m_cli::{About, AtInput as _, Content, Failure, Message, Messages, Output, Status, run};
use m2m_executorch::pte::extract::{self, Selection};
use m2m_executorch::pte::records::{Stream, Wanted};
use m2m_executorch::pte::{DataFile, Program, Stored, diff, raw, view};
use m2m_record::pte::Difference;
use m2m_tensor::MappedFile;
use std::path::Path;
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let no = "--diff found a difference, or --extract-delegates had to refuse a delegate or found none; nothing is written then";
    run(About { version: VERSION, schema: m2m_record::SCHEMA, no }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    match (args.files.as_slice(), args.diff) {
        ([a, b], true) => compare(&args, a, b),
        ([path], false) => {
            let mapped = MappedFile::open(path).at_input(path.display())?;
            show(&args, path, mapped.bytes(), messages)
        }
        (_, true) => Err(Failure::new("one file given; --diff takes two")),
        (_, false) => Err(Failure::new("two files given; only --diff takes two")),
    }
}

fn show(args: &Args, path: &Path, file: &[u8], messages: &Messages) -> Result<Status, Failure> {
    let shown = path.display().to_string();
    if DataFile::is_one(file) && args.extract_delegates.is_none() && args.method.is_none() {
        let data = DataFile::open(file).at_input(&shown)?;
        let mut output = open(args, path)?;
        let done = match (args.raw, args.format) {
            (true, _) => raw::write_data(&data, &mut output),
            (false, Format::Table) => view::write_data(&data, &shown, &mut output),
            (false, Format::Records) => stream(args, &shown).write_data(&data, args.digests, &mut output),
        };
        return close(done, output);
    }
    let stored = Stored::read(file).at_input(&shown)?;
    if args.raw {
        let mut output = open(args, path)?;
        let done = raw::write(&stored, &mut output);
        return close(done, output);
    }
    let program = Program::check(stored).at_input(&shown)?;
    if let Some(name) = &args.method {
        program.find(name).at_input(&shown)?;
    }
    if let Some(folder) = &args.extract_delegates {
        return take_out(args, path, folder, &program, messages);
    }
    let mut output = open(args, path)?;
    let wanted = Wanted { method: args.method.as_deref(), digests: args.digests };
    let done = match args.format {
        Format::Table => view::write(&program, &shown, args.method.as_deref(), &mut output),
        Format::Records => stream(args, &shown).write(&program, wanted, &mut output),
    };
    close(done, output)
}

fn take_out(
    args: &Args,
    path: &Path,
    folder: &Path,
    program: &Program<'_>,
    messages: &Messages,
) -> Result<Status, Failure> {
    let shown = path.display().to_string();
    let (method, backend) = (args.method.as_deref(), args.backend.as_deref());
    let plan = match args.single {
        true => extract::plan_single(program),
        false => extract::plan(program, Selection { method, delegate: args.delegate, backend }),
    };
    let mut output = open(args, path)?;
    let is_done = plan.refusals.is_empty() && !plan.files.is_empty();
    if is_done {
        plan.write(folder, args.force, program.stored().file.len() as u64).map_err(|error| match error {
            extract::Error::File(error) => Failure::from(error),
            sharing => Failure::from(sharing).input(&shown),
        })?;
    }
    for refusal in plan.all_refusals() {
        let message = Message::error(refusal.to_string()).input(&shown);
        messages.send(&match refusal.delegate() {
            Some(delegate) => message.node(delegate),
            None => message,
        });
    }
    let done = match args.format {
        Format::Table => view::write_plan(&plan, &mut output),
        Format::Records => stream(args, &shown).write_plan(program, &plan, args.digests, &mut output),
    };
    close(done, output)?;
    Ok(if is_done { Status::Done } else { Status::No })
}

fn compare(args: &Args, a: &Path, b: &Path) -> Result<Status, Failure> {
    let (first, second) = (MappedFile::open(a).at_input(a.display())?, MappedFile::open(b).at_input(b.display())?);
    let old = Program::open(first.bytes()).at_input(a.display())?;
    let new = Program::open(second.bytes()).at_input(b.display())?;
    let found: Vec<Difference> = diff::compare(&old, &new);
    let mut output = args.output.open(Content::Text, &[a, b])?;
    let done = match args.format {
        Format::Table => view::write_differences(&found, &mut output),
        Format::Records => stream(args, &a.display().to_string()).write_differences(
            [&old, &new],
            &b.display().to_string(),
            &found,
            &mut output,
        ),
    };
    close(done, output)?;
    Ok(if found.is_empty() { Status::Done } else { Status::No })
}

fn stream<'a>(args: &Args, path: &'a str) -> Stream<'a> {
    Stream { path, tool: ("m2m-pte", VERSION), options: args.options() }
}

fn open(args: &Args, input: &Path) -> Result<Output, Failure> {
    Ok(args.output.open(Content::Text, &[input])?)
}

fn close(done: std::io::Result<()>, output: Output) -> Result<Status, Failure> {
    match done {
        Ok(()) => output.finish()?,
        Err(error) => return Err(output.error(error).into()),
    }
    Ok(Status::Done)
}
