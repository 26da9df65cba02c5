//! m2m-lattice-verify: a sparse model, held against its contract, as a plan.
//!
//! A page: the dialect, its rules and the plan live in `m2m_lattice`.

mod args;

use args::{Args, List};
use m2m_cli::{About, AtInput as _, Content, Failure, Input, Message, Messages, Status, run};
use m2m_lattice::bundle::{Bundle, Error, Report};
use m2m_lattice::emit::Lines;
use m2m_lattice::finding::{Code, Finding, Findings, Severity};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    let no = "the model has a defect; all of them are listed";
    run(About { version: VERSION, schema: m2m_record::SCHEMA, no }, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    if let Some(what) = args.list {
        return list(&args, what);
    }
    let bundle = open(&args)?;
    let mut findings = Findings::default();
    let graph = bundle.parse(&mut findings);
    let report = bundle.check(&graph, findings, args.strict);
    tell(&bundle, &report, messages);
    let status = if report.model.is_some() { Status::Done } else { Status::No };
    if args.native && status == Status::No {
        return Ok(status);
    }
    let mut output = args.output.open(Content::Text, &bundle.paths())?;
    let written = match args.native {
        true => bundle.write_native(&report, &mut output),
        false => bundle.write_records(&report, (messages.tool(), VERSION), &mut output).map(drop),
    };
    written.and_then(|()| output.flush()).map_err(|error| output.error(error))?;
    output.finish()?;
    Ok(status)
}

fn open(args: &Args) -> Result<Bundle, Failure> {
    let weights = args.weights.as_deref();
    let path = args.model.as_deref().unwrap_or(Path::new("-"));
    let opened = if path == Path::new("-") {
        let mut input = Input::open(None)?;
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).at_input(input.name())?;
        Bundle::from_bytes("<stdin>", bytes, weights)
    } else {
        Bundle::open(path, weights)
    };
    opened.map_err(|error| {
        let shown = Error::path(&error).display().to_string();
        Failure::new(error.to_string()).input(shown)
    })
}

/// Says every finding on stderr, with the line that it is about.
fn tell(bundle: &Bundle, report: &Report<'_, '_>, messages: &Messages) {
    let lines = bundle.text().map(Lines::new);
    for finding in &report.findings {
        let message = message(finding, report.effective(finding)).input(bundle.graph_path());
        let placed = match lines.as_ref().zip(finding.at) {
            Some((lines, at)) => {
                let (line, column) = lines.place(at);
                let (excerpt, offset) = lines.excerpt(at);
                message.line(line).column(column, &String::from_utf8_lossy(excerpt), offset)
            }
            None => message,
        };
        messages.send(&placed);
    }
}

fn message(finding: &Finding, severity: Severity) -> Message {
    let text = finding.message.as_str();
    let message = match severity {
        Severity::Error => Message::error(text),
        Severity::Warning => Message::warning(text),
        Severity::Note => Message::note(text),
    };
    message.node(finding.code.name())
}

fn list(args: &Args, what: List) -> Result<Status, Failure> {
    let text = match what {
        List::Ops => m2m_lattice::schema::describe_all(),
        List::Codes => Code::ALL.iter().map(describe).collect(),
    };
    let mut output = args.output.open(Content::Text, &[])?;
    output.write_all(text.as_bytes()).map_err(|error| output.error(error))?;
    output.finish()?;
    Ok(Status::Done)
}

fn describe(code: &Code) -> String {
    let severity = match code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    format!("{:<22} {severity:<8} {}\n", code.name(), code.meaning())
}
