//! The whole of `m2m-lower`: a stream in; the stream with a prepared graph and a module, or the module alone, out.

use crate::error::{Error, Refusal};
use crate::lattice;
use crate::linalg::{self, Failure};
use crate::packing;
use crate::projection;
use crate::torch;
use m2m_aten::PackedFor;
use m2m_aten::prepare::{Lowerable, Prepared, Unsupported, prepare_opaque};
use m2m_graph::{Collector, Program};
use m2m_mlir::{Form, Locations, print, verify};
use m2m_record::{
    Argument, Diagnostic, External, File, Kwargs, Lowered, Module, ModuleResult, Pipe, Reader, Severity, Status, Tool,
    Writer, writer::hex,
};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};

/// Longest module text that travels in the stream itself.
pub const MAX_INLINE_BYTES: usize = 1 << 20;

/// The id of the file that holds a module which does not travel in the stream.
pub const MODULE_FILE_ID: &str = "module";

/// The dialect of the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// linalg on tensors.
    #[default]
    Linalg,
    /// The torch dialect of torch-mlir.
    Torch,
    /// The sparse dialect, always as pretty text.
    Lattice,
}

impl Target {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Target::Linalg => "linalg",
            Target::Torch => "torch",
            Target::Lattice => "lattice",
        }
    }

    /// Whether it has an operator.
    fn has(self, op: &str) -> bool {
        match self {
            Target::Linalg => linalg::find(op).is_some(),
            Target::Torch => torch::has(op),
            Target::Lattice => lattice::has(op),
        }
    }
}

/// What can be chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The dialect.
    pub target: Target,
    /// How the module is written.
    pub form: Form,
    /// Whether source locations are written.
    pub locations: Locations,
    /// How weights reach the function, and whether operations name their node.
    pub linalg: linalg::Options,
    /// Where the program's matrices of 4-bit weights were packed, if it is stated.
    pub packed_for: Option<PackedFor>,
}

/// Why a stream was not lowered, apart from refusals.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The stream cannot be read.
    #[error("{0}")]
    Read(#[from] m2m_record::Error),
    /// Its graphs cannot be used.
    #[error("{0}")]
    Graph(#[from] m2m_graph::Error),
    /// The output failed.
    #[error("{0}")]
    Write(#[from] std::io::Error),
    /// A rule or MLIR failed.
    #[error("{0}")]
    Lower(#[from] Error),
}

impl StreamError {
    /// The line of the stream that it is about.
    pub fn line(&self) -> Option<u64> {
        match self {
            StreamError::Read(e) => e.line(),
            StreamError::Graph(m2m_graph::Error::Line { number, .. }) => Some(*number),
            _ => None,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome<W> {
    /// Done; the output is complete. What its user should know.
    Done(W, Vec<Diagnostic>),
    /// The answer is no: everything that cannot be lowered.
    Refused(Vec<Diagnostic>, W),
}

/// Keeps a module that is too long for the stream, or binary, and gives the record of its file.
pub type KeepModule<'a> = &'a mut dyn FnMut(&Program, &[u8]) -> std::io::Result<File>;

/// Passes a stream through and appends the prepared graph, the module and what became of every node.
pub fn to_records<R: Read, W: Write>(
    input: R,
    output: W,
    version: &str,
    options: Options,
    keep: KeepModule<'_>,
) -> Result<Outcome<W>, StreamError> {
    let mut pipe = Pipe::new(Reader::new(input), output);
    let mut collector = Collector::new();
    while let Some(line) = pipe.next_line()? {
        collector.push(&line)?;
    }
    let program = collector.finish()?;
    let mut writer = pipe.into_writer();
    writer.write(&tool(version, options))?;
    let prepared = match prepare_for(options, &program)? {
        Ok(prepared) => prepared,
        Err(refused) => return refuse(writer, refused),
    };
    let warnings = warnings(&program, options);
    warnings.iter().try_for_each(|warning| writer.write(warning))?;
    prepared.nested.iter().chain([&prepared.graph]).try_for_each(|graph| graph.write(&mut writer))?;
    prepared.eliminations.iter().try_for_each(|e| writer.write(e))?;
    let made = match make(&program, &prepared, options)? {
        Ok(made) => made,
        Err(refused) => return refuse(writer, refused),
    };
    write_module(&mut writer, &program, made, options, keep)?;
    Ok(Outcome::Done(writer.finish(Status::Ok)?, warnings))
}

/// Reads a stream and writes the module alone; nothing is written of one that is refused.
pub fn to_mlir<R: Read, W: Write>(input: R, mut output: W, options: Options) -> Result<Outcome<W>, StreamError> {
    let mut reader = Reader::new(input);
    let mut collector = Collector::new();
    while let Some(line) = reader.next_line()? {
        collector.push(&line)?;
    }
    let program = collector.finish()?;
    let prepared = match prepare_for(options, &program)? {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(Outcome::Refused(refused, output)),
    };
    let made = match make(&program, &prepared, options)? {
        Ok(made) => made,
        Err(refused) => return Ok(Outcome::Refused(refused, output)),
    };
    output.write_all(&made.bytes)?;
    Ok(Outcome::Done(output, warnings(&program, options)))
}

/// What is done otherwise than one might think.
fn warnings(program: &Program, options: Options) -> Vec<Diagnostic> {
    let mut all = projection::warnings(program);
    all.extend(packing::warnings(program, options.packed_for));
    all
}

/// The torch dialect is not registered here, nor is that of the attributes of parameters that IREE binds.
fn m2m_mlir_context(options: Options) -> m2m_mlir::Context {
    match (options.target, options.linalg.binding) {
        (Target::Linalg, linalg::WeightBinding::Args) => m2m_mlir::context(),
        _ => m2m_mlir::open_context(),
    }
}

fn prepare_for(options: Options, program: &Program) -> Result<Result<Prepared, Vec<Diagnostic>>, StreamError> {
    let target = options.target;
    // What has no counterpart in lattice is refused by the walk, which tells of everything in one run.
    let takes_all = target == Target::Lattice || options.linalg.opaque && target == Target::Linalg;
    let is_opaque = |op: &str| takes_all && !op.starts_with("higher_order.");
    let is_lowerable = |op: &str| target.has(op);
    let packed_for = options.packed_for.unwrap_or_default();
    let targets = Lowerable { directly: &is_lowerable, opaquely: &is_opaque, packed_for };
    Ok(prepare_opaque(program, targets).map_err(|all| all.iter().map(|u| unsupported(target, u)).collect()))
}

/// A module as it is written, and what its record says.
struct Made {
    bytes: Vec<u8>,
    entry: String,
    arguments: Vec<Argument>,
    results: Vec<ModuleResult>,
    externals: Vec<External>,
    lowered: Vec<Lowered>,
}

fn make(
    program: &Program,
    prepared: &Prepared,
    options: Options,
) -> Result<Result<Made, Vec<Diagnostic>>, StreamError> {
    let made = match options.target {
        Target::Lattice => lattice::emit(prepared, &program.places).map(|emitted| Made {
            bytes: emitted.text.into_bytes(),
            entry: emitted.entry,
            arguments: emitted.arguments,
            results: emitted.results,
            externals: Vec::new(),
            lowered: emitted.lowered,
        }),
        Target::Linalg | Target::Torch => with_mlir(program, prepared, options),
    };
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(Failure::Refused(refusals)) => Ok(Err(refusals.iter().map(|r| refusal(options.target, r)).collect())),
        Err(Failure::Broken(error)) => Err(error.into()),
    }
}

/// A module that MLIR makes, verifies and prints.
fn with_mlir(program: &Program, prepared: &Prepared, options: Options) -> Result<Made, Failure> {
    let context = m2m_mlir_context(options);
    let emit = if options.target == Target::Torch { torch::emit } else { linalg::emit };
    let emitted = emit(&context, prepared, &program.places, options.linalg)?;
    verify(&context, &emitted.module).map_err(Error::from)?;
    let bytes = print(&emitted.module, options.form, options.locations).map_err(Error::from)?;
    Ok(Made {
        bytes,
        entry: emitted.entry,
        arguments: emitted.arguments,
        results: emitted.results,
        externals: emitted.externals,
        lowered: emitted.lowered,
    })
}

/// How the module is written, as records say it.
fn form(options: Options) -> &'static str {
    match options.form {
        _ if options.target == Target::Lattice => "pretty",
        Form::Generic => "generic",
        Form::Pretty => "pretty",
        Form::Bytecode => "bytecode",
    }
}

fn tool(version: &str, options: Options) -> Tool {
    let mut all = Kwargs::new();
    all.insert("to".into(), options.target.name().into());
    all.insert("form".into(), form(options).into());
    if options.linalg.binding == linalg::WeightBinding::Iree {
        all.insert("bind_weights".into(), "iree".into());
    }
    if options.locations == Locations::Omit {
        all.insert("locations".into(), "none".into());
    }
    if options.linalg.opaque {
        all.insert("opaque".into(), true.into());
    }
    if options.linalg.trace {
        all.insert("trace".into(), true.into());
    }
    if let Some(machine) = options.packed_for {
        all.insert("packed_for".into(), machine.name().into());
    }
    Tool { name: "m2m-lower".into(), version: version.into(), options: all, inputs: vec![] }
}

fn refuse<W: Write>(mut writer: Writer<W>, refused: Vec<Diagnostic>) -> Result<Outcome<W>, StreamError> {
    refused.iter().try_for_each(|d| writer.write(d))?;
    Ok(Outcome::Refused(refused, writer.finish(Status::Failed)?))
}

fn unsupported(target: Target, u: &Unsupported) -> Diagnostic {
    let place = [u.scope.as_deref(), u.loc.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
    Diagnostic {
        severity: Severity::Error,
        code: "unsupported-operator".into(),
        node: Some(u.node.clone()),
        message: format!("{}: to {}: {}{place}", u.op, target.name(), without_name(&u.reason, &u.op)),
        hint: None,
    }
}

/// A reason that begins with the operator's name, without it: the message has it already.
fn without_name<'r>(reason: &'r str, op: &str) -> &'r str {
    let rest = reason.strip_prefix(op).map(|rest| rest.trim_start_matches([':', ' ']));
    rest.map_or(reason, |rest| rest.strip_prefix("is ").unwrap_or(rest))
}

fn refusal(target: Target, r: &Refusal) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: "unsupported-case".into(),
        node: Some(r.node.clone()),
        message: format!("{}: to {}: {}", r.op, target.name(), without_name(&r.reason, &r.op)),
        hint: None,
    }
}

fn write_module<W: Write>(
    writer: &mut Writer<W>,
    program: &Program,
    made: Made,
    options: Options,
    keep: KeepModule<'_>,
) -> Result<(), StreamError> {
    let (form, bytes) = (form(options), made.bytes.as_slice());
    let inline = if form != "bytecode" && bytes.len() <= MAX_INLINE_BYTES {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    } else {
        None
    };
    let file = match inline {
        Some(_) => None,
        None => {
            let file = keep(program, bytes)?;
            writer.write(&file)?;
            Some(file.id)
        }
    };
    writer.write(&Module {
        dialect: options.target.name().into(),
        form: form.into(),
        text: inline,
        file,
        bytes: bytes.len() as u64,
        sha256: hex(&Sha256::digest(bytes)),
        entry: made.entry,
        arguments: made.arguments,
        results: made.results,
        externals: made.externals,
    })?;
    made.lowered.iter().try_for_each(|l| writer.write(l))?;
    Ok(())
}
