//! Time by module of the source model. Each instant of a run counts for one module: that of the innermost open event that
//! leads to a source node. What a delegate does without saying for which node counts where its call does.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use m2m_record::Writer;
use m2m_record::profile::{ModuleRef, ModuleTime, Time};

use super::stats::{mean, median};
use super::sweep::{Scope, own_ticks};
use super::table::{Form, Table};
use crate::capture::{Block, Capture, ticks};
use crate::etdump::{Event, Identity, ProfileEvent};

/// The modules around something, outermost first; none for time that belongs to no source node.
type Stack = Option<Vec<ModuleRef>>;

/// Time of one module in one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The block.
    pub block: usize,
    /// The modules from the outermost to this one; none for time that belongs to no source node.
    pub stack: Stack,
    /// How many events count for the module itself.
    pub events: usize,
    /// For each run, the module itself.
    pub own: Vec<f64>,
    /// For each run, with the modules inside it.
    pub total: Vec<f64>,
}

/// The scopes that a run measured, each with the block's event that it is one of.
#[derive(Clone, Debug, Default)]
pub struct RunScopes {
    /// The scopes in the order in which they closed.
    pub scopes: Vec<Scope>,
    /// Positions of their events in the block.
    pub events: Vec<usize>,
}

/// Finds the block's event that a measured scope is one of; repetitions within a run are one event here.
#[derive(Debug)]
pub struct EventIndex<'a> {
    by_identity: HashMap<(Option<&'a str>, Identity<'a>), usize>,
}

impl<'a> EventIndex<'a> {
    /// The index of a block.
    pub fn new(capture: &Capture<'a>, block: &Block<'a>) -> Self {
        let mut by_identity = HashMap::new();
        for (number, event) in block.events.iter().enumerate() {
            if let Some(found) = event.places.first().and_then(|place| capture.profile_at(*place)) {
                by_identity.entry((found.name, found.identity())).or_insert(number);
            }
        }
        EventIndex { by_identity }
    }

    /// What a run measured, with all repetitions, and of which of the block's events each is one.
    pub fn measured<'c>(&self, capture: &'c Capture<'a>, run: usize) -> Vec<(&'c ProfileEvent<'a>, usize)> {
        let events = capture.dump.runs.get(run).map(|run| capture.dump.events_of(run)).unwrap_or_default();
        let found = |event: &'c Event<'a>| {
            let Event::Profile(event) = event else { return None };
            Some((event, *self.by_identity.get(&(event.name, event.identity()))?))
        };
        events.iter().filter_map(found).collect()
    }

    /// The scopes of a run, with all repetitions.
    pub fn scopes(&self, capture: &Capture<'a>, block: &Block<'a>, run: usize) -> RunScopes {
        let mut found = RunScopes::default();
        for (event, number) in self.measured(capture, run) {
            let end = event.start.saturating_add(ticks(event).unwrap_or(0));
            let preferred = block.events.get(number).is_some_and(|event| !event.nodes.is_empty());
            found.scopes.push(Scope { start: event.start, end, preferred });
            found.events.push(number);
        }
        found
    }
}

/// The modules of all blocks: in each the outermost first, each followed by the modules inside it, the slowest first, and
/// what belongs to no source node last.
pub fn roll_up(capture: &Capture<'_>) -> Vec<Row> {
    capture.blocks.iter().enumerate().flat_map(|(number, block)| roll_up_block(capture, number, block)).collect()
}

fn roll_up_block(capture: &Capture<'_>, number: usize, block: &Block<'_>) -> Vec<Row> {
    let factor = capture.ticks_per_unit();
    let stacks: Vec<Stack> = block.events.iter().map(|event| common_stack(capture, &event.nodes)).collect();
    let mut rows: BTreeMap<Stack, Row> = BTreeMap::new();
    let runs = block.runs.len();
    let row_of = |stack: Stack, rows: &mut BTreeMap<Stack, Row>| {
        let zero = || vec![0.0; runs];
        let new = || Row { block: number, stack: stack.clone(), events: 0, own: zero(), total: zero() };
        rows.entry(stack.clone()).or_insert_with(new);
    };
    for stack in &stacks {
        row_of(stack.clone(), &mut rows);
        for len in 1..stack.as_ref().map_or(0, Vec::len) {
            row_of(stack.as_ref().map(|stack| stack[..len].to_vec()), &mut rows);
        }
    }
    for stack in &stacks {
        rows.entry(stack.clone()).and_modify(|row| row.events += 1);
    }
    let index = EventIndex::new(capture, block);
    for (position, run) in block.runs.iter().enumerate() {
        let found = index.scopes(capture, block, *run);
        for (ticks, event) in own_ticks(&found.scopes).into_iter().zip(&found.events) {
            // A scope that no node claims has only what no claimed one covers.
            let Some(row) = rows.get_mut(&stacks[*event]) else { continue };
            row.own[position] += ticks as f64 / factor;
        }
    }
    add_up(&mut rows);
    in_order(rows.into_values().collect())
}

/// Adds what is inside each module to its total.
fn add_up(rows: &mut BTreeMap<Stack, Row>) {
    let own: Vec<(Stack, Vec<f64>)> = rows.values().map(|row| (row.stack.clone(), row.own.clone())).collect();
    for (stack, times) in own {
        let lens = stack.as_ref().map_or(0..1, |stack| stack.len().min(1)..stack.len() + 1);
        for len in lens {
            let above = stack.as_ref().map(|stack| stack[..len].to_vec());
            if let Some(row) = rows.get_mut(&above) {
                row.total.iter_mut().zip(&times).for_each(|(total, x)| *total += x);
            }
        }
    }
}

/// Depth first, the slowest first; equal ones by name.
fn in_order(rows: Vec<Row>) -> Vec<Row> {
    let total: HashMap<Vec<ModuleRef>, f64> =
        rows.iter().filter_map(|row| Some((row.stack.clone()?, mean(&row.total).unwrap_or(0.0)))).collect();
    let time = |stack: &[ModuleRef]| total.get(stack).copied().unwrap_or(0.0);
    let mut rows = rows;
    rows.sort_by(|left, right| {
        let (Some(a), Some(b)) = (&left.stack, &right.stack) else {
            return left.stack.is_none().cmp(&right.stack.is_none());
        };
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        if shared == a.len() || shared == b.len() {
            return a.len().cmp(&b.len());
        }
        let key = |stack: &[ModuleRef]| time(&stack[..=shared]);
        let by_name = || (&a[shared].path, &a[shared].class).cmp(&(&b[shared].path, &b[shared].class));
        key(b).total_cmp(&key(a)).then_with(by_name)
    });
    rows
}

/// The modules that all of these nodes are inside; none where no node is in any.
pub fn common_stack(capture: &Capture<'_>, nodes: &[usize]) -> Stack {
    let stacks = nodes.iter().filter_map(|at| capture.source.nodes.get(*at)).map(|node| &node.modules);
    let mut common: Stack = None;
    for stack in stacks.filter(|stack| !stack.is_empty()) {
        common = Some(match common {
            None => stack.clone(),
            Some(mut found) => {
                let shared = found.iter().zip(stack).take_while(|(a, b)| a == b).count();
                found.truncate(shared);
                found
            }
        });
    }
    common.or_else(|| (!nodes.is_empty()).then(Vec::new))
}

impl Row {
    /// The path of the module; none for time that belongs to no source node.
    pub fn scope(&self) -> Option<String> {
        self.stack.as_ref().map(|stack| stack.last().map(|module| module.path.clone()).unwrap_or_default())
    }

    /// The class of the module.
    pub fn class(&self) -> Option<String> {
        self.stack.as_ref()?.last().map(|module| module.class.clone()).filter(|class| !class.is_empty())
    }

    /// What a person calls it.
    pub fn label(&self) -> String {
        match self.scope() {
            None => "(runtime)".to_owned(),
            Some(scope) if scope.is_empty() => "(model)".to_owned(),
            Some(scope) => scope,
        }
    }
}

/// All time of each block, from its rows.
fn block_times(rows: &[Row]) -> HashMap<usize, f64> {
    let mut times = HashMap::new();
    for row in rows {
        *times.entry(row.block).or_insert(0.0) += mean(&row.own).unwrap_or(0.0);
    }
    times
}

/// Writes the modules as records.
///
/// # Errors
/// When the sink fails.
pub fn write_records<W: Write>(capture: &Capture<'_>, out: &mut Writer<W>) -> io::Result<()> {
    let rows = roll_up(capture);
    let whole = block_times(&rows);
    for row in &rows {
        let time = |x: Option<f64>| Time(x.unwrap_or(0.0));
        let all = whole.get(&row.block).copied().unwrap_or(0.0);
        let total_avg = mean(&row.total).unwrap_or(0.0);
        out.write(&ModuleTime {
            block: row.block as u64,
            scope: row.scope(),
            class: row.class(),
            unit: capture.options.target,
            events: row.events as u64,
            self_p50: time(median(&row.own)),
            self_avg: time(mean(&row.own)),
            total_p50: time(median(&row.total)),
            total_avg: Time(total_avg),
            share: Time(if all > 0.0 { total_avg / all } else { 0.0 }),
        })?;
    }
    Ok(())
}

/// Writes the modules as a table.
///
/// # Errors
/// When the sink fails.
pub fn write_table<W: Write>(capture: &Capture<'_>, form: Form, out: &mut W) -> io::Result<()> {
    let rows = roll_up(capture);
    let whole = block_times(&rows);
    let unit = capture.options.target.name();
    let times = ["self p50", "self avg", "total p50", "total avg"].map(|name| format!("{name} ({unit})"));
    let mut columns = vec![("event_block_name", false), ("module", false), ("class", false), ("events", true)];
    columns.extend(times.iter().map(|name| (name.as_str(), true)));
    columns.push(("share (%)", true));
    let mut table = Table::begin(out, form, &columns)?;
    for row in &rows {
        let all = whole.get(&row.block).copied().unwrap_or(0.0);
        let total_avg = mean(&row.total).unwrap_or(0.0);
        let share = if all > 0.0 { total_avg / all * 100.0 } else { 0.0 };
        let block = capture.blocks.get(row.block).map_or("", |block| block.name);
        let mut cells = vec![block.to_owned(), row.label(), row.class().unwrap_or_default(), row.events.to_string()];
        let times = [median(&row.own), mean(&row.own), median(&row.total), Some(total_avg)];
        cells.extend(times.map(|x| table.time(x)));
        cells.push(format!("{share:.1}"));
        table.row(cells)?;
    }
    Ok(())
}
