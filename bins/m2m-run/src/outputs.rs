//! What a run gave, and what is done with it: written as a golden file, compared, reported.
//!
//! Verdicts go to stdout unless a stream does; those against an output always reach stderr as errors.

use crate::args::Args;
use crate::compare::{Tolerance, Verdict, compare};
use crate::error::Error;
use crate::execute::{Sources, element_dtype, execute};
use crate::golden::{Named, write_file};
use crate::graph;
use crate::inputs::Inputs;
use crate::lattice;
use crate::plan::{Plan, Story};
use crate::tensors::TensorFile;
use crate::timing::Times;
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
    /// Every intermediate, if they are asked for.
    values: Vec<Named>,
    /// The file of `--compare`, or that of the stream's golden record.
    references: Option<PathBuf>,
    /// What `--repeat` found.
    times: Option<Times>,
}

impl Outputs {
    /// Runs a plan through MLIR.
    pub fn of(args: &Args, plan: &Plan, story: &Story, inputs: Inputs, root: Option<&Path>) -> Result<Self, Error> {
        let references = references(args, story, root)?;
        let sources = Sources { files: &story.files, root, inputs: &inputs };
        let memory_limit = args.memory.map_or(usize::MAX, |mib| mib.saturating_mul(1 << 20));
        let (outputs, times) = execute(plan, &sources, Options { memory_limit, ..Options::default() }, args.repeat)?;
        let mut named = Vec::with_capacity(outputs.len());
        for (index, output) in outputs.into_iter().enumerate() {
            let target = plan.targets.as_ref().and_then(|targets| targets.get(index));
            let key = target.map_or_else(|| format!("out_{index}"), |target| target.key.clone());
            let stated = target.and_then(|target| target.dtype);
            let dtype = stated.or_else(|| element_dtype(&output.element)).ok_or_else(|| Error::Argument {
                name: key.clone(),
                message: format!("an output of {} has no dtype", output.element),
            })?;
            named.push(Named { key, dtype, dims: output.dims, data: output.data });
        }
        let times = args.repeat.map(|_| times);
        Ok(Self { engine: "mlir", inputs, named, values: Vec::new(), references, times })
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
        let done = match graph::execute(args, graphs, story, &inputs, root) {
            Ok(done) => done,
            Err(mut errors) => {
                let last = errors.pop().unwrap_or(m2m_torch::Error::NotFound);
                errors.iter().for_each(|error| send(Message::error(error.to_string())));
                return Err(last.into());
            }
        };
        done.unread_guards
            .iter()
            .for_each(|guard| send(Message::note(format!("the guard {guard} is not checked: it cannot be read"))));
        Ok(Self { engine: "torch", inputs, named: done.outputs, values: done.values, references, times: None })
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
        let read: Vec<&Path> = [args.inputs.as_deref(), self.references.as_deref(), args.module.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        let mut output = Counted { inner: Output::open(Some(path), Content::Binary, &read)?, bytes: 0 };
        write_file(tensors, &mut output)?;
        output.inner.finish()?;
        Ok(output.bytes)
    }

    /// A verdict for each output that has a reference, and for each reference without an output.
    pub fn compare(&self, args: &Args) -> Result<Vec<(String, Verdict)>, Failure> {
        let Some(path) = &self.references else { return Ok(Vec::new()) };
        let references = TensorFile::open(path)?;
        let mut verdicts = Vec::new();
        let (rtol, atol) = args.tolerances();
        for Named { key, dtype, dims, data } in &self.named {
            let Some(reference) = references.get(key) else { continue };
            let tolerance = Tolerance::of(*dtype).overridden(rtol, atol);
            verdicts.push((key.clone(), compare(*dtype, dims, data, reference, tolerance)));
        }
        // A golden file of random inputs holds them beside its outputs.
        let is_missing = |name: &&str| !name.starts_with("in_") && !self.named.iter().any(|named| named.key == **name);
        let what = match self.engine {
            "mlir" => "module",
            "lattice" => "plan",
            _ => "graph",
        };
        let lost = |name: &str| (name.to_owned(), Verdict::Mismatch(format!("the {what} has no such output")));
        verdicts.extend(references.names().filter(is_missing).map(lost));
        if verdicts.is_empty() {
            return Err(Failure::new("holds no tensor to compare with").input(path.display().to_string()));
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
        let file = self.references.as_deref().unwrap_or(Path::new("")).display().to_string();
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
        if args.compare.is_none() {
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

/// The file to compare with, if that is asked for.
fn references(args: &Args, story: &Story, root: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    Ok(match &args.compare {
        None => None,
        Some(Some(path)) => Some(path.clone()),
        Some(None) => {
            let path = &story.golden_outputs()?.path;
            Some(root.map_or_else(|| PathBuf::from(path), |root| root.join(path)))
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
