//! What a run gave, and what is done with it: written as a golden file, compared, reported.
//!
//! Verdicts go to stdout unless a stream does; those against an output always reach stderr as errors.

use crate::args::Args;
use crate::compare::{Tolerance, Verdict, compare, find_nan};
use crate::error::Error;
use crate::execute::{How, Sources, element_dtype, execute};
use crate::golden::{Named, write_file};
use crate::graph;
use crate::inputs::Inputs;
use crate::lattice;
use crate::plan::{Plan, Story};
use crate::tensors::{TensorFile, TensorView};
use crate::timing::Times;
use crate::trace::Wanted;
use m2m_cli::{Content, Failure, Message, Messages, Output, Status};
use m2m_graph::Program;
use m2m_mlir::jit::Options;
use m2m_record::{Diagnostic, Severity};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What a run gave, with what it is compared with.
pub struct Outputs {
    /// What executed.
    pub engine: &'static str,
    /// The values of inputs.
    pub inputs: Inputs,
    /// In the order of the results.
    pub named: Vec<Named>,
    /// Intermediates by name, if they are asked for.
    pub values: Vec<Named>,
    /// What they are compared with.
    references: Option<References>,
    /// What `--repeat` found.
    times: Option<Times>,
}

/// What outputs are compared with.
enum References {
    /// The file of `--compare`, or that of the stream's golden record.
    File(PathBuf),
    /// What another engine gave.
    Engine(&'static str, Vec<Named>),
}

/// References, ready to be looked up.
enum Opened<'a> {
    File(TensorFile),
    Engine(&'a [Named]),
}

impl Opened<'_> {
    fn get(&self, key: &str) -> Option<TensorView<'_>> {
        match self {
            Self::File(file) => file.get(key),
            Self::Engine(named) => named.iter().find(|named| named.key == key).map(Named::view),
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::File(file) => file.names().collect(),
            Self::Engine(named) => named.iter().map(|named| named.key.as_str()).collect(),
        }
    }
}

impl References {
    fn open(&self) -> Result<Opened<'_>, Error> {
        Ok(match self {
            Self::File(path) => Opened::File(TensorFile::open(path)?),
            Self::Engine(_, named) => Opened::Engine(named),
        })
    }

    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Engine(name, _) => format!("engine {name}"),
        }
    }
}

impl Outputs {
    /// Runs a plan through MLIR. `wanted` are values that are kept beside the outputs; of some several may be it.
    pub fn of(
        args: &Args,
        plan: &Plan,
        story: &Story,
        inputs: Inputs,
        root: Option<&Path>,
        wanted: &[Wanted],
    ) -> Result<Self, Error> {
        let references = references(args, story, root)?;
        let sources = Sources { files: &story.files, root, inputs: &inputs };
        let memory_limit = args.memory.map_or(usize::MAX, |mib| mib.saturating_mul(1 << 20));
        let exposed = wanted.iter().map(|wanted| wanted.operations.clone()).collect();
        let how = How { options: Options { memory_limit, ..Options::default() }, repeat: args.repeat, exposed };
        let ran = execute(plan, &sources, &how)?;
        let mut named = Vec::with_capacity(ran.outputs.len());
        for (index, output) in ran.outputs.into_iter().enumerate() {
            let target = plan.targets.as_ref().and_then(|targets| targets.get(index));
            let key = target.map_or_else(|| format!("out_{index}"), |target| target.key.clone());
            let stated = target.and_then(|target| target.dtype);
            let dtype = stated.or_else(|| element_dtype(&output.element)).ok_or_else(|| Error::Argument {
                name: key.clone(),
                message: format!("an output of {} has no dtype", output.element),
            })?;
            named.push(Named { key, dtype, dims: output.dims, data: output.data });
        }
        let values = wanted.iter().zip(&ran.exposed).flat_map(|(wanted, outputs)| wanted.named(outputs)).collect();
        let times = args.repeat.map(|_| ran.times);
        Ok(Self { engine: "mlir", inputs, named, values, references, times })
    }

    /// Runs the current graph through libtorch. All but the last of several errors are sent at once.
    pub fn of_graph(
        args: &Args,
        graphs: &Program,
        story: &Story,
        root: Option<&Path>,
        send: &mut dyn FnMut(Message),
    ) -> Result<Self, Error> {
        let references = references(args, story, root)?;
        let inputs = Inputs::of(args, story, Some(graphs), root)?;
        let keeps_values = args.trace_values.is_some() || args.bisect.is_some();
        let done = graph::execute(args, graphs, story, &inputs, root, keeps_values);
        let done = done.map_err(|errors| last_of(errors.into_iter().map(Error::from).collect(), send))?;
        send_unread(&done.unread_guards, send);
        let times = args.repeat.map(|_| done.times);
        Ok(Self { engine: "torch", inputs, named: done.outputs, values: done.values, references, times })
    }

    /// Compares with what another engine gave instead of with a file.
    pub fn against(&mut self, other: Outputs) {
        self.references = Some(References::Engine(other.engine, other.named));
    }

    /// Runs the plan of a sparse model.
    pub fn of_plan(args: &Args, plan: &m2m_lattice::plan::Plan, story: &Story) -> Result<Self, Error> {
        let root = args.root.path();
        let references = references(args, story, root)?;
        let inputs = Inputs::of(args, story, None, root)?;
        let done = lattice::execute(args, plan, &inputs, root)?;
        let times = args.repeat.map(|_| done.times);
        Ok(Self { engine: "lattice", inputs, named: done.outputs, values: Vec::new(), references, times })
    }

    /// Writes `--golden`, if it is asked for, and `--trace-values`; the size of the former.
    pub fn write_golden(&self, args: &Args) -> Result<u64, Failure> {
        if let Some(path) = &args.trace_values {
            self.write(args, path, &self.values.iter().collect::<Vec<_>>())?;
        }
        let Some(path) = &args.golden else { return Ok(0) };
        self.write(args, path, &self.inputs.made.iter().chain(&self.named).collect::<Vec<_>>())
    }

    /// Writes a file of tensors; its size.
    fn write(&self, args: &Args, path: &Path, tensors: &[&Named]) -> Result<u64, Failure> {
        let compared = match &self.references {
            Some(References::File(path)) => Some(path.as_path()),
            _ => None,
        };
        let read = args.inputs.iter().map(PathBuf::as_path).chain(compared).chain(args.module.as_deref());
        let output = Output::open(Some(path), Content::Binary, &read.collect::<Vec<_>>())?;
        write_tensors(output, tensors)
    }

    /// A verdict for each output that has a reference, and for each reference without an output.
    pub fn compare(&self, args: &Args) -> Result<Vec<(String, Verdict)>, Failure> {
        let mut verdicts = Vec::new();
        if args.refuse_nan {
            let found = |named: &Named| Some((named.key.clone(), find_nan(named.dtype, &named.dims, &named.data)?));
            verdicts.extend(self.named.iter().filter_map(found));
        }
        let Some(references) = &self.references else { return Ok(verdicts) };
        let opened = references.open()?;
        let (rtol, atol) = args.tolerances();
        let is_known = |verdicts: &[(String, Verdict)], key: &str| verdicts.iter().any(|(known, _)| known == key);
        for Named { key, dtype, dims, data } in &self.named {
            let Some(reference) = opened.get(key).filter(|_| !is_known(&verdicts, key)) else { continue };
            let tolerance = Tolerance::of(*dtype).overridden(rtol, atol);
            verdicts.push((key.clone(), compare(*dtype, dims, data, &reference, tolerance)));
        }
        // A golden file of random inputs holds them beside its outputs.
        let names = opened.names();
        let is_missing = |name: &&&str| !name.starts_with("in_") && !self.named.iter().any(|n| n.key == ***name);
        let what = match self.engine {
            "mlir" => "module",
            "lattice" => "plan",
            _ => "graph",
        };
        let lost = |name: &&str| ((*name).to_owned(), Verdict::Mismatch(format!("the {what} has no such output")));
        verdicts.extend(names.iter().filter(is_missing).map(lost));
        // References of a program whose outputs are all numbers, or that has none, hold no tensor.
        let is_without_tensors = names.is_empty() && self.named.iter().all(|named| named.dims.is_empty());
        if verdicts.is_empty() && !is_without_tensors {
            return Err(Failure::new("holds no tensor to compare with").input(references.name()));
        }
        Ok(verdicts)
    }

    /// Records of the outputs that differ.
    pub fn diagnose(&self, verdicts: &[(String, Verdict)]) -> Vec<Diagnostic> {
        let wrong = verdicts.iter().filter(|(_, verdict)| !verdict.is_right());
        let diagnostic = |(key, verdict): &(String, Verdict)| Diagnostic {
            severity: Severity::Error,
            code: "differs".to_owned(),
            node: None,
            message: format!("{key}: {verdict}"),
            hint: None,
        };
        wrong.map(diagnostic).collect()
    }

    /// Verdicts as messages: errors for the wrong ones, notes for the others.
    pub fn send(&self, verdicts: &[(String, Verdict)], messages: &Messages) -> Status {
        let file = self.references.as_ref().map_or_else(|| format!("engine {}", self.engine), References::name);
        let mut status = Status::Done;
        for (key, verdict) in verdicts {
            if verdict.is_right() {
                messages.send(&Message::note(verdict.to_string()).input(&file).node(key));
            } else {
                messages.send(&Message::error(verdict.to_string()).input(&file).node(key));
                status = Status::No;
            }
        }
        status
    }

    /// What `--repeat` found, as a note.
    pub fn send_times(&self, messages: &Messages) {
        if let Some(times) = &self.times {
            messages.send(&Message::note(format!("engine {}: {times}", self.engine)));
        }
    }

    /// The comparison on stdout, a line an output, when no stream is passed there.
    pub fn report(&self, args: &Args, messages: &Messages) -> Result<Status, Failure> {
        self.send_times(messages);
        let verdicts = self.compare(args)?;
        if !args.is_judged() {
            return Ok(Status::Done);
        }
        let mut output = args.output.open(Content::Text, &[])?;
        for (key, verdict) in verdicts.iter().filter(|(_, verdict)| verdict.is_right()) {
            let dims = self.named.iter().find(|named| named.key == *key).map(|named| (named.dtype, &named.dims));
            let shown = dims.map(|(dtype, dims)| format!("{dtype} {dims:?}: ")).unwrap_or_default();
            writeln!(output, "{key}: {shown}{verdict}").map_err(|error| output.error(error))?;
        }
        output.finish()?;
        let wrong: Vec<_> = verdicts.into_iter().filter(|(_, verdict)| !verdict.is_right()).collect();
        Ok(self.send(&wrong, messages))
    }
}

/// Writes tensors to an opened file; its size.
pub fn write_tensors(output: Output, tensors: &[&Named]) -> Result<u64, Failure> {
    let mut output = Counted { inner: output, bytes: 0 };
    write_file(tensors, &mut output)?;
    output.inner.finish()?;
    Ok(output.bytes)
}

/// Sends all errors but the last, which is returned.
pub fn last_of(mut errors: Vec<Error>, send: &mut dyn FnMut(Message)) -> Error {
    let last = errors.pop().unwrap_or(Error::Torch(m2m_torch::Error::NotFound));
    errors.iter().for_each(|error| send(Message::error(error.to_string())));
    last
}

/// Says which guards are not checked.
pub fn send_unread(guards: &[String], send: &mut dyn FnMut(Message)) {
    guards.iter().for_each(|guard| send(Message::note(format!("the guard {guard} is not checked: it cannot be read"))));
}

/// The file to compare with, if that is asked for.
fn references(args: &Args, story: &Story, root: Option<&Path>) -> Result<Option<References>, Error> {
    Ok(match &args.compare {
        None => None,
        Some(Some(path)) => Some(References::File(path.clone())),
        Some(None) => {
            let path = &story.golden_outputs()?.path;
            Some(References::File(root.map_or_else(|| PathBuf::from(path), |root| root.join(path))))
        }
    })
}

/// Counts the bytes that pass.
struct Counted {
    inner: Output,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
