//! Two profiles against one another, event by event, with a verdict that knows of noise.
//!
//! An event is slower or faster when its medians differ by more than a threshold and by more than a tick, and when the
//! rank-sum test, corrected for the number of events looked at, gives chance less than one in twenty. Where so few samples
//! could not show that however they fell, or where they scatter too much, the verdict is that none can be given.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Write};

use m2m_record::profile::{Comparison, Time, Verdict};
use m2m_record::{DelegateId, Writer};

use super::modules::EventIndex;
use super::rank;
use super::stats::{median, median_deviation};
use super::sweep::own_ticks;
use super::table::{Form, Table};
use crate::capture::{Block, Capture};

/// Chance must be less likely than this.
pub const ALPHA: f64 = 0.05;

/// What makes an event of one profile the same as one of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    name: Option<String>,
    instruction: Option<i32>,
    delegate: Option<DelegateId>,
    occurrence: Option<u64>,
}

/// The samples of one event in both profiles.
struct Pair {
    block: String,
    key: Key,
    samples: [Vec<f64>; 2],
}

/// Compares every event of two profiles in the same time scale, and each block's whole runs.
/// `threshold` is the least relative difference of medians that matters.
pub fn compare(first: &Capture<'_>, second: &Capture<'_>, threshold: f64) -> Vec<Comparison> {
    let pairs = pairs(first, second);
    let chance = |pair: &Pair| rank::probability(&pair.samples[0], &pair.samples[1]);
    let both = |pair: &&Pair| pair.samples.iter().all(|samples| !samples.is_empty());
    let found: Vec<f64> = pairs.iter().filter(both).map(chance).collect();
    let mut corrected = rank::corrected(&found).into_iter();
    let tick = 1.0 / first.ticks_per_unit().max(f64::MIN_POSITIVE);
    let unit = first.options.target;
    let made = pairs.into_iter().map(|pair| {
        let p = if both(&&pair) { corrected.next() } else { None };
        let medians = [median(&pair.samples[0]), median(&pair.samples[1])];
        let change = match medians {
            [Some(a), Some(b)] if a != 0.0 => Some(b / a - 1.0),
            _ => None,
        };
        Comparison {
            verdict: verdict(&pair, medians, p, threshold, tick),
            samples: [pair.samples[0].len() as u64, pair.samples[1].len() as u64],
            p50: medians.map(|x| x.map(Time)),
            mad: [0, 1].map(|side| median_deviation(&pair.samples[side]).map(Time)),
            block_name: pair.block,
            name: pair.key.name,
            instruction_id: pair.key.instruction,
            delegate_id: pair.key.delegate,
            occurrence: pair.key.occurrence,
            unit,
            change: change.map(Time),
            p: p.map(Time),
        }
    });
    made.collect()
}

fn verdict(pair: &Pair, medians: [Option<f64>; 2], p: Option<f64>, threshold: f64, tick: f64) -> Verdict {
    let [Some(a), Some(b)] = medians else {
        return if pair.samples[0].is_empty() { Verdict::New } else { Verdict::Gone };
    };
    if rank::least(pair.samples[0].len(), pair.samples[1].len()) > ALPHA {
        return Verdict::Unsure;
    }
    let difference = b - a;
    // Both medians are rounded to ticks, so one tick of difference may be none.
    if difference.abs() <= tick || difference.abs() <= threshold * a {
        return Verdict::Same;
    }
    match p {
        Some(p) if p < ALPHA && difference > 0.0 => Verdict::Slower,
        Some(p) if p < ALPHA => Verdict::Faster,
        _ => Verdict::Unsure,
    }
}

/// The events of both profiles: blocks of the first with their likes of the second, then blocks of the second alone. Alike
/// are those with the same name and events, and of the others those of one name in their order.
fn pairs(first: &Capture<'_>, second: &Capture<'_>) -> Vec<Pair> {
    let shape = |capture: &Capture<'_>, block: &Block<'_>| -> (String, Vec<Key>) {
        (block.name.to_owned(), keyed(capture, block).map(|(key, _)| key).collect())
    };
    let mut same: HashMap<(String, Vec<Key>), VecDeque<usize>> = HashMap::new();
    for (number, block) in second.blocks.iter().enumerate() {
        same.entry(shape(second, block)).or_default().push_back(number);
    }
    let mut partners: Vec<Option<usize>> =
        first.blocks.iter().map(|block| same.get_mut(&shape(first, block))?.pop_front()).collect();
    let mut left: HashMap<&str, VecDeque<usize>> = HashMap::new();
    let taken: HashSet<usize> = partners.iter().flatten().copied().collect();
    for (number, block) in second.blocks.iter().enumerate().filter(|(number, _)| !taken.contains(number)) {
        left.entry(block.name).or_default().push_back(number);
    }
    for (partner, block) in partners.iter_mut().zip(&first.blocks).filter(|(partner, _)| partner.is_none()) {
        *partner = left.get_mut(block.name).and_then(VecDeque::pop_front);
    }
    let mut out = Vec::new();
    for (block, partner) in first.blocks.iter().zip(&partners) {
        let other = partner.and_then(|number| second.blocks.get(number)).map(|other| keyed(second, other));
        add(&mut out, block.name, keyed(first, block), other);
    }
    let taken: HashSet<usize> = partners.into_iter().flatten().collect();
    for (_, block) in second.blocks.iter().enumerate().filter(|(number, _)| !taken.contains(number)) {
        add(&mut out, block.name, std::iter::empty(), Some(keyed(second, block)));
    }
    out
}

fn add(
    out: &mut Vec<Pair>,
    block: &str,
    first: impl Iterator<Item = (Key, Vec<f64>)>,
    second: Option<impl Iterator<Item = (Key, Vec<f64>)>>,
) {
    let mut others: indexmap::IndexMap<Key, Vec<f64>> = second.into_iter().flatten().collect();
    for (key, samples) in first {
        let other = others.shift_remove(&key).unwrap_or_default();
        out.push(Pair { block: block.to_owned(), key, samples: [samples, other] });
    }
    out.extend(others.into_iter().map(|(key, samples)| Pair {
        block: block.to_owned(),
        key,
        samples: [vec![], samples],
    }));
}

/// The samples of a block: of its whole runs, then of each event.
fn keyed<'c>(capture: &'c Capture<'_>, block: &'c Block<'_>) -> impl Iterator<Item = (Key, Vec<f64>)> + 'c {
    let whole = Key { name: None, instruction: None, delegate: None, occurrence: None };
    let events = block.events.iter().filter(|event| !event.samples.is_empty()).map(|event| {
        let key = Key {
            name: Some(event.label()),
            instruction: event.instruction,
            delegate: event.delegate.clone(),
            occurrence: event.occurrence,
        };
        (key, event.samples.clone())
    });
    std::iter::once((whole, run_times(capture, block))).chain(events)
}

/// For each run the time that any scope covers.
pub fn run_times(capture: &Capture<'_>, block: &Block<'_>) -> Vec<f64> {
    let index = EventIndex::new(capture, block);
    let ticks = |run: &usize| own_ticks(&index.scopes(capture, block, *run).scopes).into_iter().sum::<u64>();
    block.runs.iter().map(|run| ticks(run) as f64 / capture.ticks_per_unit()).collect()
}

/// Writes comparisons as records.
///
/// # Errors
/// When the sink fails.
pub fn write_records<W: Write>(all: &[Comparison], out: &mut Writer<W>) -> io::Result<()> {
    all.iter().try_for_each(|comparison| out.write(comparison))
}

/// Writes comparisons as a table.
///
/// # Errors
/// When the sink fails.
pub fn write_table<W: Write>(all: &[Comparison], form: Form, out: &mut W) -> io::Result<()> {
    let unit = all.first().map_or("", |comparison| comparison.unit.name());
    let times = ["p50 A", "p50 B", "MAD A", "MAD B"].map(|name| format!("{name} ({unit})"));
    let mut columns = vec![("event_block_name", false), ("event_name", false), ("instruction", true)];
    columns.extend([("samples A", true), ("samples B", true)]);
    columns.extend(times.iter().map(|name| (name.as_str(), true)));
    columns.extend([("change (%)", true), ("p", true), ("verdict", false)]);
    let mut table = Table::begin(out, form, &columns)?;
    for row in all {
        let mut cells = vec![row.block_name.clone(), row.name.clone().unwrap_or_else(|| "(whole run)".to_owned())];
        cells.push(row.instruction_id.map(|id| id.to_string()).unwrap_or_default());
        cells.extend(row.samples.map(|count| count.to_string()));
        let times = [row.p50[0], row.p50[1], row.mad[0], row.mad[1]];
        cells.extend(times.map(|x| table.time(x.map(|x| x.0))));
        cells.push(row.change.map(|x| format!("{:+.1}", x.0 * 100.0)).unwrap_or_default());
        cells.push(row.p.map(|x| format!("{:.2e}", x.0)).unwrap_or_default());
        let word = serde_json::to_value(row.verdict)?;
        cells.push(word.as_str().unwrap_or_default().to_owned());
        table.row(cells)?;
    }
    Ok(())
}
