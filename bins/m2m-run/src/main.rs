//! m2m-run: executes the graph, module or sparse plan of a stream, or the module of a bundle, and compares outputs with
//! references.
//!
//! A page: `plan` reads what to run, `execute`, `graph` and `lattice` run it, `compare` and `golden` are what is done with
//! the outputs.

mod again;
mod args;
mod bisect;
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
mod observe;
mod outputs;
mod plan;
mod smallest;
mod tensors;
mod timing;
mod trace;

use args::{Against, Args, Engine, Method};
use inputs::Inputs;
use m2m_cli::{About, AtInput, Content, Failure, Input, Message, Messages, Status, run};
use m2m_graph::{Collector, Program};
use m2m_record::{Pipe, Reader, Writer};
use outputs::Outputs;
use plan::{Plan, Story};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let no = "an output differs from its reference by more than the tolerance";
    run(About { version: env!("CARGO_PKG_VERSION"), schema: m2m_record::SCHEMA, no }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    let engine = args.engine();
    check(&args, engine)?;
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
        (Some(path), _) if engine == Engine::Torch || args.against.is_some() => {
            Err(Failure::new("has no graph for the engine torch; use --engine mlir").input(path.display().to_string()))
        }
        (Some(module), Some(_)) => alone(&args, module, messages),
        (Some(folder), None) => bundled(&args, folder, messages),
        (None, _) => match args.observe {
            Some(method) => observed(&args, method, messages),
            None => piped(&args, engine, messages),
        },
    }
}

/// Whether the flags go together.
fn check(args: &Args, engine: Engine) -> Result<(), Failure> {
    let wrong = |message: &str| Err(Failure::new(message));
    if args.trace_values.is_some() && engine != Engine::Torch {
        return wrong("--trace-values needs the engine torch: a module keeps no intermediates");
    }
    if args.observe.is_some() && engine != Engine::Torch {
        return wrong("--observe needs the engine torch: a module keeps no intermediates");
    }
    if engine == Engine::Lattice && args.random.is_some() {
        return wrong("--random needs a graph, which a sparse model has none of; give --inputs FILE");
    }
    if engine == Engine::Lattice && args.against.is_some() {
        return wrong("--against needs a graph, which a sparse model has none of; --compare FILE compares outputs");
    }
    if args.inputs.len() > 1 && args.observe.is_none() {
        return wrong("--inputs is repeated, which only --observe can use");
    }
    match &args.against {
        Some(Against::Engine(other)) if *other == engine => {
            return wrong("--against names the engine that executes; name the other one with --engine");
        }
        Some(Against::Values(file)) if args.bisect.is_none() => {
            return Err(Failure::new("a file of values needs --bisect; --compare FILE compares outputs")
                .input(file.display().to_string()));
        }
        _ => {}
    }
    if args.has_purpose() {
        return Ok(());
    }
    wrong("nothing to do with the outputs; give --compare, --against, --golden FILE or --observe")
}

/// A module without a stream.
fn alone(args: &Args, module: &Path, messages: &Messages) -> Result<Status, Failure> {
    let bytes = plan::map(module)?.bytes().to_vec();
    let plan = Plan { module: bytes, entry: args.entry.clone(), slots: None, targets: None };
    let story = Story::default();
    let inputs = Inputs::of(args, &story, None, None).at_input(module.display())?;
    let outputs = Outputs::of(args, &plan, &story, inputs, None, &[]).at_input(module.display())?;
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
    let outputs = Outputs::of(args, &plan, &story, inputs, Some(folder), &[])?;
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
        let stream = Stream::of(args, engine, story, graphs, name)?;
        let outputs = stream.executed(args, engine, messages)?;
        if let Some(file) = &args.bisect {
            return stream.bisected(args, file, &outputs, messages);
        }
        outputs.write_golden(args)?;
        return outputs.report(args, messages);
    };
    let read_too: Vec<&Path> =
        args.input.iter().chain(&args.inputs).map(PathBuf::as_path).chain(args.references()).collect();
    let output = args.output.open(Content::Text, &read_too)?;
    let mut writer = read(input, output, &mut story, &mut graphs).at_input(&name)?;
    let stream = Stream::of(args, engine, story, graphs, name)?;
    let outputs = stream.executed(args, engine, messages)?;
    let bytes = outputs.write_golden(args)?;
    let run = golden::Run {
        engine: outputs.engine,
        inputs: outputs.inputs.file.as_ref(),
        made: &outputs.inputs.made,
        seed: args.random,
        golden: (golden, bytes),
        files: &stream.story.files,
        tensors: &stream.story.tensors,
    };
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

fn cannot_write(error: io::Error) -> Failure {
    Failure::new(format!("cannot write the stream: {error}"))
}

/// A stream that is passed on with what its values were.
fn observed(args: &Args, method: Method, messages: &Messages) -> Result<Status, Failure> {
    let input = Input::open(args.input.as_deref())?;
    let name = input.name().to_owned();
    let (mut story, mut graphs) = (Story::default(), Collector::new());
    let read_too: Vec<&Path> = args.input.iter().chain(&args.inputs).map(PathBuf::as_path).collect();
    let output = args.output.open(Content::Text, &read_too)?;
    let mut writer = read(input, output, &mut story, &mut graphs).at_input(&name)?;
    let graphs = graphs.finish().at_input(&name)?;
    let asked = observe::Asked::of(args, method);
    let send = &mut |message: Message| messages.send(&message.input(&name));
    let observed = observe::observe(args, &asked, &graphs, &story, args.root.path());
    let observed = observed.map_err(|errors| outputs::last_of(errors, send)).at_input(&name)?;
    outputs::send_unread(&observed.unread_guards, send);
    observed.append(&mut writer, &graphs, &asked, args.random).map_err(cannot_write)?;
    writer.finish(m2m_record::Status::Ok).map_err(cannot_write)?.finish()?;
    Ok(Status::Done)
}

/// What a stream said, for executing it.
struct Stream {
    story: Story,
    /// The current graph, if something needs it: a module alone can be executed without.
    graphs: Option<Program>,
    /// The plan of a sparse model, for the engine that executes it.
    sparse: Option<m2m_lattice::plan::Plan>,
    name: String,
}

impl Stream {
    fn of(args: &Args, engine: Engine, mut story: Story, graphs: Collector, name: String) -> Result<Self, Failure> {
        let is_needed = engine == Engine::Torch || args.random.is_some() || args.against.is_some();
        let graphs = is_needed.then(|| graphs.finish()).transpose().at_input(&name)?;
        let sparse = (engine == Engine::Lattice).then(|| sparse(&mut story)).transpose().at_input(&name)?;
        Ok(Self { story, graphs, sparse, name })
    }

    /// Runs what the stream has for an engine, and for the one that it is held against.
    fn executed(&self, args: &Args, engine: Engine, messages: &Messages) -> Result<Outputs, Failure> {
        let mut outputs = self.run(args, engine, messages)?;
        if let (Some(Against::Engine(other)), None) = (&args.against, &args.bisect) {
            outputs.against(self.run(args, *other, messages)?);
        }
        Ok(outputs)
    }

    fn run(&self, args: &Args, engine: Engine, messages: &Messages) -> Result<Outputs, Failure> {
        let (root, name, story) = (args.root.path(), &self.name, &self.story);
        if let (Engine::Torch, Some(graphs)) = (engine, &self.graphs) {
            let send = &mut |message: Message| messages.send(&message.input(name));
            return Outputs::of_graph(args, graphs, story, root, send).at_input(name);
        }
        if let Some(plan) = &self.sparse {
            return Outputs::of_plan(args, plan, story).at_input(name);
        }
        let plan = story.plan(root).at_input(name)?;
        let wanted = match &self.graphs {
            Some(graphs) if args.bisect.is_some() => trace::Wanted::of(graphs, &story.lowered),
            _ => Vec::new(),
        };
        let inputs = Inputs::of(args, story, self.graphs.as_ref(), root).at_input(name)?;
        Outputs::of(args, &plan, story, inputs, root, &wanted).at_input(name)
    }

    fn bisected(&self, args: &Args, file: &Path, outputs: &Outputs, messages: &Messages) -> Result<Status, Failure> {
        let (Some(against), Some(graphs)) = (&args.against, &self.graphs) else {
            return Err(Failure::new("--bisect needs --against"));
        };
        let references = match against {
            Against::Engine(other) => bisect::References::Engine(Box::new(self.run(args, *other, messages)?)),
            Against::Values(path) => bisect::References::File(tensors::TensorFile::open(path)?),
        };
        bisect::bisect(args, file, (graphs, &self.story), outputs, &references, messages)
    }
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
