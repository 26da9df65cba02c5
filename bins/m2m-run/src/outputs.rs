//! What a run gave, and what is done with it: written as a golden file, compared, reported.
//!
//! Verdicts go to stdout unless a stream does; those against an output always reach stderr as errors.

use crate::args::Args;
use crate::compare::{Tolerance, Verdict, compare};
use crate::error::Error;
use crate::execute::{Sources, element_dtype, execute, parse_scalar};
use crate::golden::{Named, write_file};
use crate::plan::{Plan, Story};
use crate::tensors::TensorFile;
use m2m_cli::{Content, Failure, Message, Messages, Output, Status};
use m2m_mlir::jit::Options;
use m2m_record::{Diagnostic, Severity};
use std::io::{self, Write};
use std::path::Path;

/// What a run gave, with the files it is compared with.
pub struct Outputs {
    /// The file of inputs.
    pub inputs: Option<TensorFile>,
    /// In the order of the entry's results.
    pub named: Vec<Named>,
}

impl Outputs {
    /// Runs a plan.
    pub fn of(args: &Args, plan: &Plan, story: &Story, root: Option<&Path>) -> Result<Self, Error> {
        let inputs = args.inputs.as_deref().map(TensorFile::open).transpose()?;
        let scalars = args.scalars.iter().map(|text| parse_scalar(text)).collect::<Result<_, _>>()?;
        let sources = Sources { files: &story.files, root, inputs: inputs.as_ref(), scalars: &scalars };
        let memory_limit = args.memory.map_or(usize::MAX, |mib| mib.saturating_mul(1 << 20));
        let outputs = execute(plan, &sources, Options { memory_limit, ..Options::default() })?;
        let mut named = Vec::with_capacity(outputs.len());
        for (index, output) in outputs.into_iter().enumerate() {
            let target = plan.targets.as_ref().and_then(|targets| targets.get(index));
            let key = target.map_or_else(|| format!("out_{index}"), |target| target.key.clone());
            let stated = target.and_then(|target| target.dtype);
            let dtype = stated.or_else(|| element_dtype(&output.element)).ok_or_else(|| Error::Argument {
                name: key.clone(),
                message: format!("an output of {} has no dtype", output.element),
            })?;
            named.push(Named { key, dtype, output });
        }
        Ok(Self { inputs, named })
    }

    /// Writes `--golden`, if it is asked for; its size.
    pub fn write_golden(&self, args: &Args) -> Result<u64, Failure> {
        let Some(path) = &args.golden else { return Ok(0) };
        let read: Vec<&Path> =
            [&args.inputs, &args.compare, &args.module].into_iter().flatten().map(|p| &**p).collect();
        let mut output = Counted { inner: Output::open(Some(path), Content::Binary, &read)?, bytes: 0 };
        write_file(&self.named, &mut output)?;
        output.inner.finish()?;
        Ok(output.bytes)
    }

    /// A verdict for each output that has a reference, and for each reference without an output.
    pub fn compare(&self, args: &Args) -> Result<Vec<(String, Verdict)>, Failure> {
        let Some(path) = &args.compare else { return Ok(Vec::new()) };
        let references = TensorFile::open(path)?;
        let mut verdicts = Vec::new();
        for Named { key, dtype, output } in &self.named {
            let Some(reference) = references.get(key) else { continue };
            let tolerance = Tolerance::of(*dtype).overridden(args.rtol, args.atol);
            verdicts.push((key.clone(), compare(*dtype, &output.dims, &output.data, reference, tolerance)));
        }
        let is_missing = |name: &&str| !self.named.iter().any(|named| named.key == **name);
        let lost = |name: &str| (name.to_owned(), Verdict::Mismatch("the module has no such output".to_owned()));
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
    pub fn send(&self, verdicts: &[(String, Verdict)], args: &Args, messages: &Messages) -> Status {
        let file = args.compare.as_deref().unwrap_or(Path::new("")).display().to_string();
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

    /// The comparison on stdout, a line an output, when no stream is passed there.
    pub fn report(&self, args: &Args, messages: &Messages) -> Result<Status, Failure> {
        let verdicts = self.compare(args)?;
        if args.compare.is_none() {
            return Ok(Status::Done);
        }
        let mut output = args.output.open(Content::Text, &[])?;
        for (key, verdict) in verdicts.iter().filter(|(_, verdict)| verdict.is_right()) {
            let dims = self.named.iter().find(|named| named.key == *key).map(|named| (named.dtype, &named.output.dims));
            let shown = dims.map(|(dtype, dims)| format!("{dtype} {dims:?}: ")).unwrap_or_default();
            writeln!(output, "{key}: {shown}{verdict}").map_err(|error| output.error(error))?;
        }
        output.finish()?;
        let wrong: Vec<_> = verdicts.into_iter().filter(|(_, verdict)| !verdict.is_right()).collect();
        Ok(self.send(&wrong, args, messages))
    }
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
