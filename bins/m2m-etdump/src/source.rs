//! What events are explained by, and what is to be said when it does not fit.

use crate::args::Args;
use crate::input::Bytes;
use m2m_cli::{AtInput as _, Failure, Message, Messages};
use m2m_executorch::capture::{Block, Capture, Methods, Occurrences, Source};
use m2m_executorch::etdump::Event;
use m2m_executorch::etrecord::EtRecord;

/// How the caller's users name a method.
pub fn wanted(args: &Args) -> Methods<'_> {
    Methods { asked: args.method.as_deref(), option: &args.method_option }
}

/// The explanation that a record gives; without a record only the method's name.
pub fn of(args: &Args, record: Option<&Bytes>, messages: &Messages) -> Result<Source, Failure> {
    let Some(bytes) = record else { return Ok(Source::labelled(args.method.as_deref())) };
    let record = EtRecord::open(bytes.get()).at_input(&bytes.name)?;
    let source = Source::from_record(&record, wanted(args)).at_input(&bytes.name)?;
    if source.nested > 0 {
        let text = format!("{} nested graphs; the nodes in them are not part of the source graph", source.nested);
        messages.send(&Message::warning(text).input(&bytes.name));
    }
    Ok(source)
}

/// Most blocks that are spoken of one by one.
const MAX_WARNINGS: usize = 8;

/// Says what a reader of the result should know of each block.
pub fn warn(capture: &Capture<'_>, dump: &Bytes, record: Option<&Bytes>, messages: &Messages) {
    let doubtful =
        |block: &&(usize, &Block<'_>)| block.1.agreement.is_some_and(|found| found.matched * 2 < found.checked);
    let blocks: Vec<(usize, &Block<'_>)> = capture.blocks.iter().enumerate().collect();
    let doubtful: Vec<_> = blocks.iter().filter(doubtful).collect();
    let others = if doubtful.is_empty() { Vec::new() } else { other_methods(capture, record) };
    for (number, block) in doubtful.iter().take(MAX_WARNINGS) {
        let text = misfit(capture, *number, block, &others);
        messages.send(&Message::warning(text).input(&dump.name));
    }
    if doubtful.len() > MAX_WARNINGS {
        let text = format!("{} more blocks are not what the method has there", doubtful.len() - MAX_WARNINGS);
        messages.send(&Message::warning(text).input(&dump.name));
    }
    let (mut left_out, mut measured, mut which) = (0, 0, Vec::new());
    for (number, block) in blocks.iter().filter(|_| capture.options.occurrences == Occurrences::Last) {
        let all: usize = block.runs.iter().map(|run| profiles(capture, *run)).sum();
        let kept: usize = block.events.iter().map(|event| event.samples.len()).sum();
        if all > kept {
            left_out += all - kept;
            measured += all;
            which.push(number.to_string());
        }
    }
    if left_out > 0 {
        let (word, more) =
            (if which.len() == 1 { "block" } else { "blocks" }, which.len().saturating_sub(MAX_WARNINGS));
        which.truncate(MAX_WARNINGS);
        let list = which.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!(
            "{word} {list}: {left_out} of {measured} measurements repeat an event of their run and are left out; \
             --occurrences all keeps them"
        );
        messages.send(&Message::note(text).input(&dump.name));
    }
}

fn profiles(capture: &Capture<'_>, run: usize) -> usize {
    let is_profile = |event: &&Event<'_>| matches!(event, Event::Profile(_));
    capture.dump.runs.get(run).map_or(0, |run| capture.dump.events_of(run).iter().filter(is_profile).count())
}

/// What the record says of the methods that were not asked for.
fn other_methods(capture: &Capture<'_>, record: Option<&Bytes>) -> Vec<Source> {
    let Some(record) = record.and_then(|record| EtRecord::open(record.get()).ok()) else { return Vec::new() };
    let own = capture.source.method.as_ref();
    let others = capture.source.methods.iter().filter(|name| Some(*name) != own);
    others.filter_map(|name| Source::from_record(&record, Methods { asked: Some(name), option: "" }).ok()).collect()
}

/// What to say of a block that does not look like the method it is taken for.
fn misfit(capture: &Capture<'_>, number: usize, block: &Block<'_>, others: &[Source]) -> String {
    let agreement = block.agreement.unwrap_or_default();
    let method = capture.source.method.as_deref().unwrap_or_default();
    let fits = |source: &&Source| {
        let found = capture.agreement_with(block, source).unwrap_or_default();
        found.matched == found.checked && found.checked >= agreement.checked
    };
    let fitting: Vec<&str> = others.iter().filter(fits).filter_map(|source| source.method.as_deref()).collect();
    let rest = match fitting.as_slice() {
        [] => "it is of another method or another program".to_owned(),
        fitting => format!("all of them are what {} has", fitting.join(" or ")),
    };
    format!(
        "block {number} {:?}: {} of {} instructions are what method {method:?} has there; {rest}",
        block.name, agreement.matched, agreement.checked
    )
}
