//! Two dumps against one another.

use crate::args::{Args, Format};
use crate::input::Bytes;
use crate::{capture, output, source, stream, view};
use m2m_cli::{Content, Failure, Messages, Status};
use m2m_executorch::view::compare::{compare, write_records, write_table};
use m2m_record::Writer;
use m2m_record::profile::Verdict;
use std::path::PathBuf;

/// Compares the two files. The answer is no when something became slower.
pub fn run(args: &Args, files: &[PathBuf], messages: &Messages) -> Result<Status, Failure> {
    let [first, second] = files else { return Err(Failure::new("--compare takes two dumps")) };
    if !args.threshold.is_finite() || args.threshold < 0.0 {
        return Err(Failure::new(format!("--threshold {}: give a percentage of at least 0", args.threshold)));
    }
    let form = view::form(args.format);
    if form.is_none() && args.format != Format::Ndjson {
        return Err(Failure::new("--compare gives a table; use --format ndjson, tsv, csv or md"));
    }
    let record = args.etrecord.as_deref().map(Bytes::open).transpose()?;
    let (first, second) = (Bytes::open(first)?, Bytes::open(second)?);
    let explained = source::of(args, record.as_ref(), messages)?;
    let before = capture(args, &first, explained.clone())?;
    let after = capture(args, &second, explained)?;
    for (found, bytes) in [(&before, &first), (&after, &second)] {
        source::warn(found, bytes, record.as_ref(), messages);
    }
    let all = compare(&before, &after, args.threshold / 100.0);
    let mut out = output(args, Content::Text)?;
    match form {
        Some(form) => {
            write_table(&all, form, &mut out).map_err(|error| out.error(error))?;
            out.finish()?;
        }
        None => {
            let mut records = Writer::begin(out)?;
            records.write(&stream::tool(args, stream::inputs(&[&first, &second], record.as_ref())?))?;
            write_records(&all, &mut records)?;
            records.finish(m2m_record::Status::Ok)?.finish()?;
        }
    }
    let slower = all.iter().any(|comparison| comparison.verdict == Verdict::Slower);
    Ok(if slower { Status::No } else { Status::Done })
}
