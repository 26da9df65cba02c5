//! m2m-run: executes the graph, module or sparse plan of a stream, or the module of a bundle, and compares outputs with
//! references.
//!
//! A page: `plan` reads what to run, `execute`, `graph` and `lattice` run it, `compare` and `golden` are what is done with
//! the outputs.

mod args;
mod bundle;
mod compare;
mod error;
mod execute;
mod golden;
mod graph;
mod inputs;
mod lattice;
mod npz;
mod number;
mod outputs;
mod plan;
mod tensors;
mod timing;

use args::{Args, Engine};
use inputs::Inputs;
use m2m_cli::{About, AtInput, Content, Failure, Input, Messages, Status, run};
use m2m_graph::Collector;
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
    let engine = args.engine();
    if args.trace_values.is_some() && engine != Engine::Torch {
        return Err(Failure::new("--trace-values needs the engine torch: a module keeps no intermediates"));
    }
    if engine == Engine::Lattice && args.random.is_some() {
        return Err(Failure::new("--random needs a graph, which a sparse model has none of; give --inputs FILE"));
    }
    if args.golden.is_none() && args.compare.is_none() && args.trace_values.is_none() {
        return Err(Failure::new("nothing to do with the outputs; give --compare FILE or --golden FILE"));
    }
    let lone = match (&args.module, &args.input) {
        (Some(module), _) => Some(module),
        (None, Some(folder)) if folder.is_dir() => Some(folder),
        _ => None,
    };
    match (lone, &args.module) {
        (Some(path), _) if engine == Engine::Lattice => {
            Err(Failure::new("is no stream, which the engine lattice needs; m2m-lattice-verify writes one")
                .input(path.display().to_string()))
        }
        (Some(path), _) if engine == Engine::Torch => {
            Err(Failure::new("has no graph for the engine torch; use --engine mlir").input(path.display().to_string()))
        }
        (Some(module), Some(_)) => alone(&args, module, messages),
        (Some(folder), None) => bundled(&args, folder, messages),
        (None, _) => piped(&args, engine, messages),
    }
}

/// A module without a stream.
fn alone(args: &Args, module: &Path, messages: &Messages) -> Result<Status, Failure> {
    let bytes = plan::map(module)?.bytes().to_vec();
    let plan = Plan { module: bytes, entry: args.entry.clone(), slots: None, targets: None };
    let story = Story::default();
    let inputs = Inputs::of(args, &story, None, None).at_input(module.display())?;
    let outputs = Outputs::of(args, &plan, &story, inputs, None).at_input(module.display())?;
    outputs.write_golden(args)?;
    outputs.report(args, messages)
}

/// A bundle folder.
fn bundled(args: &Args, folder: &Path, messages: &Messages) -> Result<Status, Failure> {
    let trace = folder.join(m2m_bundle::TRACE_NAME);
    let mut story = Story::default();
    let mut graphs = Collector::new();
    read(Input::open(Some(&trace))?, io::sink(), &mut story, &mut graphs).at_input(trace.display())?;
    let plan = bundle::plan(folder, &mut story)?;
    let graph = args.random.map(|_| graphs.finish()).transpose()?;
    let inputs = Inputs::of(args, &story, graph.as_ref(), Some(folder))?;
    let outputs = Outputs::of(args, &plan, &story, inputs, Some(folder))?;
    outputs.write_golden(args)?;
    outputs.report(args, messages)
}

/// A stream, which is passed on when a golden record comes of it.
fn piped(args: &Args, engine: Engine, messages: &Messages) -> Result<Status, Failure> {
    let input = Input::open(args.input.as_deref())?;
    let name = input.name().to_owned();
    let (mut story, mut graphs) = (Story::default(), Collector::new());
    let Some(golden) = &args.golden else {
        read(input, io::sink(), &mut story, &mut graphs).at_input(&name)?;
        let outputs = executed(args, engine, &mut story, graphs, messages, &name)?;
        outputs.write_golden(args)?;
        return outputs.report(args, messages);
    };
    let read_too: Vec<&Path> =
        [args.input.as_deref(), args.inputs.as_deref(), args.references()].into_iter().flatten().collect();
    let output = args.output.open(Content::Text, &read_too)?;
    let mut writer = read(input, output, &mut story, &mut graphs).at_input(&name)?;
    let outputs = executed(args, engine, &mut story, graphs, messages, &name)?;
    let bytes = outputs.write_golden(args)?;
    let run = golden::Run {
        engine: outputs.engine,
        inputs: outputs.inputs.file.as_ref(),
        made: &outputs.inputs.made,
        seed: args.random,
        golden: (golden, bytes),
        files: &story.files,
        tensors: &story.tensors,
    };
    let cannot_write = |error: io::Error| Failure::new(format!("cannot write the stream: {error}"));
    golden::append(&mut writer, &outputs.named, &run).map_err(cannot_write)?;
    outputs.send_times(messages);
    let verdicts = outputs.compare(args)?;
    for diagnostic in outputs.diagnose(&verdicts) {
        writer.write(&diagnostic).map_err(cannot_write)?;
    }
    let status = outputs.send(&verdicts, messages);
    let end = if status == Status::Done { m2m_record::Status::Ok } else { m2m_record::Status::Failed };
    writer.finish(end).map_err(cannot_write)?.finish()?;
    Ok(status)
}

/// Runs what a stream has for an engine.
fn executed(
    args: &Args,
    engine: Engine,
    story: &mut Story,
    graphs: Collector,
    messages: &Messages,
    name: &str,
) -> Result<Outputs, Failure> {
    let root = args.root.path();
    if engine == Engine::Torch {
        let graphs = graphs.finish().at_input(name)?;
        return Outputs::of_graph(args, &graphs, story, root, &mut |message| messages.send(&message.input(name)))
            .at_input(name);
    }
    if engine == Engine::Lattice {
        let plan = sparse(story).at_input(name)?;
        return Outputs::of_plan(args, &plan, story).at_input(name);
    }
    let plan = story.plan(root).at_input(name)?;
    let graph = args.random.map(|_| graphs.finish()).transpose().at_input(name)?;
    let inputs = Inputs::of(args, story, graph.as_ref(), root).at_input(name)?;
    Outputs::of(args, &plan, story, inputs, root).at_input(name)
}

/// The plan of a sparse model, or what is wrong with it and where.
fn sparse(story: &mut Story) -> Result<m2m_lattice::plan::Plan, Failure> {
    story.sparse().map_err(|error| {
        let line = error.line();
        let failure = Failure::from(error);
        line.map_or(failure.clone(), |line| failure.line(line))
    })
}

/// Passes a stream to its end, and remembers what matters.
fn read<W: Write>(input: impl Read, out: W, story: &mut Story, graphs: &mut Collector) -> Result<Writer<W>, Failure> {
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
        graphs.push(&line).map_err(|error| Failure::from(error).line(line.number))?;
    }
    Ok(pipe.into_writer())
}
