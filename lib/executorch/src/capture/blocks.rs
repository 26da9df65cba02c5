//! Runs into blocks. Two runs are in one block when they have the same name, the same bundled input, and the same events in
//! the same order; an event is the same when its name, instruction and delegate id are, and the name of what it logged.
//!
//! Most runs repeat an earlier one event by event, which is seen by comparing; only a new shape is worked out.

use std::collections::HashMap;

use indexmap::IndexMap;
use m2m_record::DelegateId;

use super::{Block, BlockEvent, Occurrences};
use crate::etdump::{Dump, Event, Identity};

/// How many shapes are compared with before one is worked out.
const RECENT: usize = 8;

/// What makes an event of a run the same as one of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Signature<'a> {
    /// None where only values were logged.
    name: Option<&'a str>,
    instruction: i32,
    delegate_int: i32,
    delegate_str: Option<&'a str>,
    /// Name of the first value that was logged for it.
    logged: Option<&'a str>,
    occurrence: u64,
}

/// Where in a run the parts of an event are.
#[derive(Clone, Debug, Default)]
struct Slot {
    profile: Option<usize>,
    logged: Vec<usize>,
    /// Whether the runtime did it for no instruction.
    is_framework: bool,
}

type Layout<'a> = IndexMap<Signature<'a>, Slot>;

/// A shape of runs that has been worked out.
struct Shape {
    /// A run of that shape.
    run: usize,
    block: usize,
    /// Position in the run of each of the block's events.
    profiles: Vec<Option<usize>>,
}

/// The blocks of a dump, without samples and without an explanation of their events.
pub(super) fn build<'a>(dump: &Dump<'a>, occurrences: Occurrences) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let mut known: HashMap<(&'a str, i32, Vec<Signature<'a>>), usize> = HashMap::new();
    let mut shapes: Vec<Shape> = Vec::new();
    for (position, run) in dump.runs.iter().enumerate() {
        let Some(range) = &run.events else { continue };
        let events = dump.events_of(run);
        let alike = |shape: &Shape| {
            let other = &dump.runs[shape.run];
            other.name == run.name
                && other.bundled_input_index == run.bundled_input_index
                && is_same_shape(dump.events_of(other), events)
        };
        let recent = shapes.iter().rposition(alike).filter(|found| found + RECENT >= shapes.len());
        let shape = recent.unwrap_or_else(|| {
            let layout = lay_out(events, occurrences);
            let profiles = layout.values().map(|slot| slot.profile).collect();
            let name = run.name.unwrap_or_default();
            let signatures: Vec<Signature<'a>> = layout.keys().cloned().collect();
            let block = *known.entry((name, run.bundled_input_index, signatures)).or_insert_with(|| {
                blocks.push(open(name, run.bundled_input_index, &layout, range.start, occurrences));
                blocks.len() - 1
            });
            shapes.push(Shape { run: position, block, profiles });
            shapes.len() - 1
        });
        let shape = &shapes[shape];
        let block = &mut blocks[shape.block];
        block.runs.push(position);
        for (event, profile) in block.events.iter_mut().zip(&shape.profiles) {
            event.places.extend(profile.map(|at| (range.start + at) as u32));
        }
    }
    blocks
}

fn open<'a>(
    name: &'a str,
    bundled_input_index: i32,
    layout: &Layout<'a>,
    start: usize,
    occurrences: Occurrences,
) -> Block<'a> {
    let event = |(signature, slot): (&Signature<'a>, &Slot)| {
        let text = |id: &'a str| DelegateId::Str(id.to_owned());
        let number = (signature.delegate_int != -1).then_some(DelegateId::Int(signature.delegate_int));
        let delegate = number.or_else(|| signature.delegate_str.map(text));
        BlockEvent {
            name: signature.name.or(signature.logged),
            instruction: (!slot.is_framework && signature.instruction != -1).then_some(signature.instruction),
            delegate,
            occurrence: (occurrences == Occurrences::All).then_some(signature.occurrence),
            backend: None,
            handles: Vec::new(),
            nodes: Vec::new(),
            samples: Vec::new(),
            places: Vec::new(),
            logged: slot.logged.iter().map(|at| (start + at) as u32).collect(),
        }
    };
    let events = layout.iter().map(event).collect();
    Block { name, bundled_input_index, runs: Vec::new(), events, agreement: None }
}

/// Whether two runs have the same events, so that what holds for the positions in one holds for those in the other.
fn is_same_shape(left: &[Event<'_>], right: &[Event<'_>]) -> bool {
    let alike = |(left, right): (&Event<'_>, &Event<'_>)| match (left, right) {
        (Event::Profile(left), Event::Profile(right)) => left.name == right.name && left.identity() == right.identity(),
        (Event::Debug(left), Event::Debug(right)) => {
            left.name == right.name
                && left.identity() == right.identity()
                && left.entry.is_output() == right.entry.is_output()
        }
        (Event::Allocation { .. }, Event::Allocation { .. }) => true,
        _ => false,
    };
    left.len() == right.len() && left.iter().zip(right).all(alike)
}

/// Everything that a run tells of one instruction, or of one of a delegate's own steps.
#[derive(Default)]
struct Group<'a> {
    profiles: Vec<(usize, Option<&'a str>)>,
    logged: Vec<(usize, Option<&'a str>)>,
}

/// The events of a run: grouped by whose doing they are, in the order of first sight.
fn lay_out<'a>(events: &[Event<'a>], occurrences: Occurrences) -> Layout<'a> {
    let mut groups: IndexMap<Identity<'a>, Group<'a>> = IndexMap::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Profile(event) => groups.entry(event.identity()).or_default().profiles.push((at, event.name)),
            Event::Debug(event) => {
                let group = groups.entry(event.identity()).or_default();
                if !event.entry.is_output() {
                    group.logged.push((at, event.name));
                }
            }
            Event::Allocation { .. } => {}
        }
    }
    let mut layout = Layout::new();
    let mut repetitions: HashMap<Signature<'a>, u64> = HashMap::new();
    for (identity, group) in groups {
        let logged = || group.logged.iter().map(|(at, _)| *at).collect();
        let is_framework = identity.chain == -1 || identity.chain == i128::from(u64::MAX);
        let signature = |name| Signature {
            name,
            instruction: identity.instruction,
            delegate_int: identity.delegate_int,
            delegate_str: identity.delegate_str.filter(|id| !id.is_empty()),
            logged: group.logged.first().map(|(_, name)| name.unwrap_or_default()),
            occurrence: 0,
        };
        if group.profiles.is_empty() && !group.logged.is_empty() {
            layout.insert(signature(None), Slot { profile: None, logged: logged(), is_framework });
        }
        for (at, name) in &group.profiles {
            let mut signature = signature(Some(name.unwrap_or_default()));
            if occurrences == Occurrences::All {
                let number = repetitions.entry(signature.clone()).or_default();
                signature.occurrence = *number;
                *number += 1;
            }
            layout.insert(signature, Slot { profile: Some(*at), logged: logged(), is_framework });
        }
    }
    layout
}
