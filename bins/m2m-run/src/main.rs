//! m2m-run: executes the module of a stream or bundle, writes its outputs and compares them with references.
//!
//! A page: `plan` reads what to run, `execute` runs it, `compare` and `golden` are what is done with the outputs.

mod args;
mod bundle;
mod compare;
mod error;
mod execute;
mod golden;
mod number;
mod outputs;
mod plan;
mod tensors;

use args::{Args, Engine};
use m2m_cli::{About, AtInput, Content, Failure, Input, Messages, Status, run};
use m2m_record::{Pipe, Reader, Writer};
use outputs::Outputs;
use plan::{Plan, Story};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let no = "an output differs from its reference by more than the tolerance";
    run(About { version: env!("CARGO_PKG_VERSION"), schema: m2m_record::SCHEMA, no }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    if args.engine == Engine::Torch {
        return Err(Failure::new("engine torch is not in this version; use --engine mlir"));
    }
    if args.golden.is_none() && args.compare.is_none() {
        return Err(Failure::new("nothing to do with the outputs; give --compare FILE or --golden FILE"));
    }
    match (&args.module, &args.input) {
        (Some(module), _) => alone(&args, module, messages),
        (None, Some(folder)) if folder.is_dir() => bundled(&args, folder, messages),
        _ => piped(&args, messages),
    }
}

/// A module without a stream.
fn alone(args: &Args, module: &Path, messages: &Messages) -> Result<Status, Failure> {
    let bytes = plan::map(module)?.bytes().to_vec();
    let plan = Plan { module: bytes, entry: args.entry.clone(), slots: None, targets: None };
    let outputs = Outputs::of(args, &plan, &Story::default(), None).at_input(module.display())?;
    outputs.write_golden(args)?;
    outputs.report(args, messages)
}

/// A bundle folder.
fn bundled(args: &Args, folder: &Path, messages: &Messages) -> Result<Status, Failure> {
    let trace = folder.join(m2m_bundle::TRACE_NAME);
    let mut story = Story::default();
    read(Input::open(Some(&trace))?, io::sink(), &mut story).at_input(trace.display())?;
    let plan = bundle::plan(folder, &mut story)?;
    let outputs = Outputs::of(args, &plan, &story, Some(folder))?;
    outputs.write_golden(args)?;
    outputs.report(args, messages)
}

/// A stream, which is passed on when a golden record comes of it.
fn piped(args: &Args, messages: &Messages) -> Result<Status, Failure> {
    let input = Input::open(args.input.as_deref())?;
    let name = input.name().to_owned();
    let mut story = Story::default();
    let Some(golden) = &args.golden else {
        read(input, io::sink(), &mut story).at_input(&name)?;
        let plan = story.plan(args.root.path()).at_input(&name)?;
        return Outputs::of(args, &plan, &story, args.root.path()).at_input(&name)?.report(args, messages);
    };
    let read_too: Vec<&Path> = [&args.input, &args.inputs, &args.compare].into_iter().flatten().map(|p| &**p).collect();
    let output = args.output.open(Content::Text, &read_too)?;
    let mut writer = read(input, output, &mut story).at_input(&name)?;
    let plan = story.plan(args.root.path()).at_input(&name)?;
    let outputs = Outputs::of(args, &plan, &story, args.root.path()).at_input(&name)?;
    let bytes = outputs.write_golden(args)?;
    let run = golden::Run {
        inputs: outputs.inputs.as_ref(),
        golden: (golden, bytes),
        files: &story.files,
        tensors: &story.tensors,
    };
    let cannot_write = |error: io::Error| Failure::new(format!("cannot write the stream: {error}"));
    golden::append(&mut writer, &outputs.named, &run).map_err(cannot_write)?;
    let verdicts = outputs.compare(args)?;
    for diagnostic in outputs.diagnose(&verdicts) {
        writer.write(&diagnostic).map_err(cannot_write)?;
    }
    let status = outputs.send(&verdicts, args, messages);
    let end = if status == Status::Done { m2m_record::Status::Ok } else { m2m_record::Status::Failed };
    writer.finish(end).map_err(cannot_write)?.finish()?;
    Ok(status)
}

/// Passes a stream to its end, and remembers what matters.
fn read<W: Write>(input: impl Read, out: W, story: &mut Story) -> Result<Writer<W>, Failure> {
    let mut pipe = Pipe::new(Reader::new(input), out);
    let place = |error: m2m_record::reader::Error| {
        let line = error.line();
        let failure = Failure::from(error);
        match line {
            Some(line) => failure.line(line),
            None => failure,
        }
    };
    while let Some(line) = pipe.next_line().map_err(place)? {
        story.take(&line).map_err(place)?;
    }
    Ok(pipe.into_writer())
}
