//! m2m-lower: the current graph of a stream, as MLIR.
//!
//! A page: rules and the walk over a stream live in `m2m_lower`.

mod args;

use args::{Args, Binding, Emit, Form, Machine, Place, Target};
use m2m_cli::{About, Content, Failure, Message, Messages, Output, Status, run};
use m2m_graph::Program;
use m2m_lower::linalg::WeightBinding;
use m2m_lower::stream::{MODULE_FILE_ID, to_mlir, to_records};
use m2m_lower::{Options, Outcome, PackedFor, StreamError};
use m2m_record::{Diagnostic, File, Severity};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let no = "the graph has operators that no rule lowers; all of them are listed";
    run(About { version: VERSION, schema: m2m_record::SCHEMA, no }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    let content = if args.emit == Emit::Mlir && args.form == Form::Bytecode { Content::Binary } else { Content::Text };
    let inputs: Vec<_> = args.input.path().into_iter().collect();
    if args.list_ops {
        let mut output = args.output.open(Content::Text, &inputs)?;
        let list = match args.to {
            Target::Lattice => m2m_lower::lattice::list_ops(),
            Target::Linalg | Target::Torch => m2m_lower::linalg::list_ops(),
        };
        output.write_all(list.as_bytes()).map_err(|e| output.error(e))?;
        output.finish()?;
        return Ok(Status::Done);
    }
    if args.opaque && args.to != Target::Linalg {
        return Err(Failure::new("--opaque is for linalg; the other dialects have operators of their own"));
    }
    if args.to == Target::Lattice {
        refuse_for_lattice(&args)?;
    }
    let input = args.input.open()?;
    let name = input.name().to_owned();
    let output = args.output.open(content, &inputs)?;
    let outcome = match args.emit {
        Emit::Mlir => to_mlir(input, output, options(&args)),
        Emit::Records => {
            let mut keep = |program: &Program, bytes: &[u8]| keep_module(&args, program, bytes);
            to_records(input, output, VERSION, options(&args), &mut keep)
        }
    };
    match outcome.map_err(|error| place(error, &name))? {
        Outcome::Done(output, warnings) => {
            warnings.iter().for_each(|d| messages.send(&message(d, &name)));
            output.finish()?;
            Ok(Status::Done)
        }
        Outcome::Refused(refused, output) => {
            refused.iter().for_each(|d| messages.send(&message(d, &name)));
            if args.emit == Emit::Records {
                output.finish()?;
            }
            Ok(Status::No)
        }
    }
}

/// What only modules that MLIR makes have.
fn refuse_for_lattice(args: &Args) -> Result<(), Failure> {
    let given = [
        (args.form == Form::Bytecode, "--form bytecode", "a lattice module is text"),
        (args.bind_weights == Binding::Iree, "--bind-weights iree", "a lattice module binds weights by storage keys"),
        (
            args.trace,
            "--trace",
            "operations of lattice carry the dialect's attributes only; records of lowered nodes name them",
        ),
    ];
    match given.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, flag, why)) => Err(Failure::new(format!("{flag} is not for lattice: {why}"))),
        None => Ok(()),
    }
}

fn options(args: &Args) -> Options {
    Options {
        target: match args.to {
            Target::Linalg => m2m_lower::Target::Linalg,
            Target::Torch => m2m_lower::Target::Torch,
            Target::Lattice => m2m_lower::Target::Lattice,
        },
        form: match args.form {
            Form::Generic => m2m_mlir::Form::Generic,
            Form::Pretty => m2m_mlir::Form::Pretty,
            Form::Bytecode => m2m_mlir::Form::Bytecode,
        },
        locations: match args.locations {
            Place::Source => m2m_mlir::Locations::Write,
            Place::None => m2m_mlir::Locations::Omit,
        },
        linalg: m2m_lower::linalg::Options {
            binding: match args.bind_weights {
                Binding::Args => WeightBinding::Args,
                Binding::Iree => WeightBinding::Iree,
            },
            trace: args.trace,
            opaque: args.opaque,
        },
        packed_for: args.packed_for.map(machine),
    }
}

fn machine(machine: Machine) -> PackedFor {
    match machine {
        Machine::Avx512 => PackedFor::Avx512,
        Machine::Avx2 => PackedFor::Avx2,
        Machine::Sve256 => PackedFor::Sve256,
        Machine::Neon => PackedFor::Neon,
        Machine::Default => PackedFor::Default,
    }
}

/// Writes a module that does not travel in the stream to a file of its own.
fn keep_module(args: &Args, program: &Program, bytes: &[u8]) -> io::Result<File> {
    let ending = if args.form == Form::Bytecode { "mlirbc" } else { "mlir" };
    let model = program.files.values().next().map_or("model", |f| f.name.as_str());
    let stem = model.rsplit_once('.').map_or(model, |(stem, _)| stem);
    let path = args.module.clone().unwrap_or_else(|| PathBuf::from(format!("{stem}.m2m-lower.{ending}")));
    let is_there = std::fs::read(&path).is_ok_and(|old| old == bytes);
    if !is_there {
        if path.exists() && !args.force {
            let message = format!("{} exists and holds something else; --force replaces it", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let mut output = Output::open(Some(&path), Content::Binary, &[]).map_err(io::Error::other)?;
        output.write_all(bytes)?;
        output.finish().map_err(io::Error::other)?;
    }
    Ok(File {
        id: MODULE_FILE_ID.into(),
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        path: path.display().to_string(),
        format: ending.into(),
        bytes: bytes.len() as u64,
    })
}

fn place(error: StreamError, input: &str) -> Failure {
    let line = error.line();
    let failure = Failure::from(error).input(input);
    match line {
        Some(line) => failure.line(line),
        None => failure,
    }
}

fn message(d: &Diagnostic, input: &str) -> Message {
    let message = match (d.severity, &d.hint) {
        (Severity::Error, _) => Message::error(&d.message),
        (_, Some(hint)) => Message::warning(format!("{}; {hint}", d.message)),
        (_, None) => Message::warning(&d.message),
    };
    let message = message.input(input);
    match &d.node {
        Some(node) => message.node(node),
        None => message,
    }
}
