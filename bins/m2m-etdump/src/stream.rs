//! The profile as records: a stream of its own, or behind the stream that explains it.

use crate::args::{Args, Which};
use crate::input::{Bytes, base_name};
use crate::{VERSION, capture, output, source};
use m2m_cli::{AtInput as _, Content, Failure, Input, Messages, Output};
use m2m_executorch::capture::{Capture, LoggedValue, Names, Trace, write_raw_dump, write_raw_record};
use m2m_executorch::etdump::Dump;
use m2m_executorch::etrecord::EtRecord;
use m2m_record::{Arg, File, Float, Kwargs, Pipe, Reader, Status, Tool, ToolInput, Writer};
use std::io::Write;
use std::path::Path;

/// The id of the file with logged tensors, which no other tool uses.
const LOGGED_ID: &str = "logged";

/// A stream that explains itself.
pub fn alone(args: &Args, capture: &Capture<'_>, dump: &Bytes, record: Option<&Bytes>) -> Result<(), Failure> {
    let mut out = Writer::begin(output(args, Content::Text)?)?;
    out.write(&tool(args, inputs(&[dump], record)?))?;
    capture.source.write(&mut out)?;
    profile(args, capture, dump, &mut out)?;
    finish(out)
}

/// What a `tool` record says of the files that were read.
pub fn inputs(dumps: &[&Bytes], record: Option<&Bytes>) -> Result<Vec<ToolInput>, Failure> {
    let mut inputs: Vec<ToolInput> = dumps.iter().map(|dump| dump.tool_input(None)).collect();
    if let Some(record) = record {
        let digest = EtRecord::open(record.get()).at_input(&record.name)?.digest();
        inputs.push(record.tool_input(Some(digest)));
    }
    Ok(inputs)
}

/// What a record holds, without a dump.
pub fn record_alone(args: &Args, record: Option<&Bytes>, messages: &Messages) -> Result<(), Failure> {
    let Some(bytes) = record else { return Err(Failure::new("nothing to read; give an ETDump or --etrecord FILE")) };
    let source = source::of(args, Some(bytes), messages)?;
    let mut out = Writer::begin(output(args, Content::Text)?)?;
    out.write(&tool(args, inputs(&[], Some(bytes))?))?;
    source.write(&mut out)?;
    finish(out)
}

/// Behind the stream that carries the debug handles.
pub fn piped(args: &Args, dump: &Bytes, messages: &Messages) -> Result<(), Failure> {
    let input = Input::open(args.trace.as_deref())?;
    let name = input.name().to_owned();
    let is_view = args.html || args.by_module || args.format != crate::Format::Ndjson;
    let mut trace = Trace::default();
    let at_line = |error: m2m_record::Error| {
        let line = error.line();
        let failure = Failure::from(error).input(&name);
        line.into_iter().fold(failure, Failure::line)
    };
    if is_view {
        let mut pipe = Pipe::new(Reader::new(input), std::io::sink());
        while let Some(line) = pipe.next_line().map_err(at_line)? {
            trace.read(&line).at_input(&name)?;
        }
        let capture = capture(args, dump, trace.source(source::wanted(args)).at_input(&name)?)?;
        source::warn(&capture, dump, None, messages);
        return crate::view::write(args, &capture, dump, None);
    }
    let mut pipe = Pipe::new(Reader::new(input), output(args, Content::Text)?);
    while let Some(line) = pipe.next_line().map_err(at_line)? {
        trace.read(&line).at_input(&name)?;
    }
    let capture = capture(args, dump, trace.source(source::wanted(args)).at_input(&name)?)?;
    source::warn(&capture, dump, None, messages);
    let mut out = pipe.into_writer();
    out.write(&tool(args, vec![dump.tool_input(None)]))?;
    profile(args, &capture, dump, &mut out)?;
    finish(out)
}

/// Every field as it is stored.
pub fn raw(args: &Args, dump: Option<&Bytes>, record: Option<&Bytes>) -> Result<(), Failure> {
    let opened = dump.map(|bytes| Dump::open(bytes.get()).at_input(&bytes.name)).transpose()?;
    let opened_record = record.map(|bytes| EtRecord::open(bytes.get()).at_input(&bytes.name)).transpose()?;
    let mut out = Writer::begin(output(args, Content::Text)?)?;
    out.write(&tool(args, inputs(&dump.into_iter().collect::<Vec<_>>(), record)?))?;
    if let (Some(opened), Some(bytes)) = (&opened_record, record) {
        write_raw_record(opened, &mut out).at_input(&bytes.name)?;
    }
    if let Some(opened) = &opened {
        write_raw_dump(opened, &mut out)?;
    }
    finish(out)
}

fn profile<W: Write>(args: &Args, capture: &Capture<'_>, dump: &Bytes, out: &mut Writer<W>) -> Result<(), Failure> {
    let buffer = args.debug_buffer.as_deref().map(Bytes::open).transpose()?;
    let logged = capture.logged(buffer.as_ref().map(Bytes::get)).at_input(&dump.name)?;
    capture.write(out)?;
    match (buffer, &args.tensors, &args.debug_buffer) {
        (Some(buffer), Some(path), _) => {
            let file = write_tensors(args, capture, &logged, buffer.get(), path)?;
            out.write(&file)?;
            capture.write_logged(&logged, Names::Tensors(&file), out)?;
        }
        (Some(buffer), None, Some(path)) => {
            let file = file(path, "debug_buffer", buffer.get().len() as u64);
            out.write(&file)?;
            capture.write_logged(&logged, Names::Buffer(&file), out)?;
        }
        _ => capture.write_logged(&logged, Names::Nowhere, out)?,
    }
    Ok(())
}

fn write_tensors(
    args: &Args,
    capture: &Capture<'_>,
    logged: &[LoggedValue],
    buffer: &[u8],
    path: &Path,
) -> Result<File, Failure> {
    let mut output = Output::open(Some(path), Content::Binary, &crate::inputs(args))?;
    capture.write_tensors(logged, buffer, &mut output).at_input(path.display())?;
    output.finish()?;
    let bytes = std::fs::metadata(path).at_input(path.display())?.len();
    Ok(file(path, "safetensors", bytes))
}

fn file(path: &Path, format: &str, bytes: u64) -> File {
    let (name, path) = (base_name(path), path.display().to_string());
    File { id: LOGGED_ID.to_owned(), name, path, format: format.to_owned(), bytes }
}

/// What opens the records that this tool writes.
pub fn tool(args: &Args, inputs: Vec<ToolInput>) -> Tool {
    let mut options = Kwargs::new();
    let mut add = |name: &str, value: &str| drop(options.insert(name.to_owned(), Arg::Str(value.to_owned())));
    if let Some(method) = &args.method {
        add("method", method);
    }
    let (from, to) = (m2m_record::TimeScale::from(args.source_time_scale), args.target_time_scale.into());
    if (from, to) != (m2m_record::TimeScale::Ns, m2m_record::TimeScale::Ms) {
        add("source-time-scale", from.name());
        add("target-time-scale", to.name());
    }
    if args.occurrences == Which::All {
        add("occurrences", "all");
    }
    if args.compare.is_some() {
        options.insert("threshold".to_owned(), Arg::Float(Float(args.threshold)));
    }
    if args.by_module {
        options.insert("by-module".to_owned(), Arg::Bool(true));
    }
    if args.raw {
        options.insert("raw".to_owned(), Arg::Bool(true));
    }
    Tool { name: "m2m-etdump".to_owned(), version: VERSION.to_owned(), options, inputs }
}

fn finish(out: Writer<Output>) -> Result<(), Failure> {
    Ok(out.finish(Status::Ok)?.finish()?)
}
