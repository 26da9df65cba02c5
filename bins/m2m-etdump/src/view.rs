//! The profile as a view.

use crate::args::{Args, Format};
use crate::input::{Bytes, base_name};
use crate::{output, stream};
use m2m_cli::{Content, Failure};
use m2m_executorch::capture::Capture;
use m2m_executorch::view::table::Form;
use m2m_executorch::view::{chrome, explorer, modules, page, pprof, table};
use m2m_record::{Status, Writer};

/// The form of a table that a format asks for.
pub fn form(format: Format) -> Option<Form> {
    match format {
        Format::Tsv => Some(Form::Tsv),
        Format::Csv => Some(Form::Csv),
        Format::Md => Some(Form::Markdown),
        _ => None,
    }
}

/// Writes the view that the flags ask for.
pub fn write(args: &Args, capture: &Capture<'_>, dump: &Bytes, record: Option<&Bytes>) -> Result<(), Failure> {
    let content = if args.format == Format::Pprof && !args.html { Content::Binary } else { Content::Text };
    if args.by_module && form(args.format).is_none() && args.format != Format::Ndjson {
        return Err(Failure::new("--by-module is a table; use --format ndjson, tsv, csv or md"));
    }
    let mut out = output(args, content)?;
    let written = match (form(args.format), args.format) {
        _ if args.html => {
            let name = args.dump.as_deref().map(base_name).unwrap_or_default();
            page::write(capture, &name, &mut out)
        }
        (Some(form), _) if args.by_module => modules::write_table(capture, form, &mut out),
        (Some(form), _) => table::write(capture, form, &mut out),
        (None, Format::ChromeTrace) => chrome::write(capture, &mut out),
        (None, Format::Pprof) => pprof::write(capture, &mut out),
        (None, Format::ModelExplorer) => {
            if capture.source.nodes.is_empty() {
                return Err(Failure::new("--format model-explorer draws the source graph; give --etrecord FILE"));
            }
            explorer::write(capture, &mut out)
        }
        (None, _) => {
            let mut records = Writer::begin(out)?;
            records.write(&stream::tool(args, stream::inputs(&[dump], record)?))?;
            modules::write_records(capture, &mut records)?;
            return Ok(records.finish(Status::Ok)?.finish()?);
        }
    };
    written.map_err(|error| out.error(error))?;
    Ok(out.finish()?)
}
