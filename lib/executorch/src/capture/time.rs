//! Ticks to time, by the rule of ExecuTorch's own inspector, down to the last digit.

use m2m_record::TimeScale;

use super::{BlockEvent, Error};
use crate::etdump::{Dump, Event, ProfileEvent};

/// The greatest tick of a clock of 32 bits.
const MAX_SHORT_TICK: u64 = u32::MAX as u64;

/// Ticks of one scale in one unit of another.
pub(super) fn factor(from: TimeScale, to: TimeScale) -> Result<f64, Error> {
    if (from == TimeScale::Cycles) != (to == TimeScale::Cycles) {
        return Err(Error::Scales { from, to });
    }
    Ok(from.per_second() / to.per_second())
}

/// The samples of an event, in the order of its runs.
pub(super) fn samples(dump: &Dump<'_>, event: &BlockEvent<'_>, factor: f64) -> Result<Vec<f64>, Error> {
    let delegated = event.is_delegated();
    let sample = |place: &u32| match dump.events().get(*place as usize) {
        Some(Event::Profile(found)) => elapsed(found, delegated, factor).ok_or_else(|| backwards(dump, *place, found)),
        _ => Ok(0.0),
    };
    event.places.iter().map(sample).collect()
}

/// Time from start to end. A runtime's own event is scaled after the subtraction, a delegate's before it, so that the two
/// differ in their last digits. An end before the start is a clock of 32 bits that wrapped.
fn elapsed(event: &ProfileEvent<'_>, delegated: bool, factor: f64) -> Option<f64> {
    if let Some(ticks) = ticks(event)
        && (!delegated || event.start > event.end)
    {
        return Some(ticks as f64 / factor);
    }
    (event.start <= event.end).then(|| event.end as f64 / factor - event.start as f64 / factor)
}

/// Ticks from start to end; none where the clock ran backwards.
pub fn ticks(event: &ProfileEvent<'_>) -> Option<u64> {
    if event.start <= event.end {
        return Some(event.end - event.start);
    }
    let short = event.start <= MAX_SHORT_TICK && event.end <= MAX_SHORT_TICK;
    short.then(|| (MAX_SHORT_TICK - event.start) + event.end)
}

fn backwards(dump: &Dump<'_>, place: u32, event: &ProfileEvent<'_>) -> Error {
    let (run, position) = position_of(dump, place);
    let name = event.name.or(event.delegate_str).unwrap_or("a delegate's own");
    Error::Backwards { run, position, name: name.to_owned(), start: event.start, end: event.end }
}

/// The run and the position in it of a place of the dump.
pub(super) fn position_of(dump: &Dump<'_>, place: u32) -> (usize, usize) {
    let place = place as usize;
    let holds = |run: &crate::etdump::Run<'_>| run.events.as_ref().is_some_and(|range| range.contains(&place));
    match dump.runs.iter().position(holds) {
        Some(run) => (run, place - dump.runs[run].events.as_ref().map_or(0, |range| range.start)),
        None => (0, place),
    }
}
