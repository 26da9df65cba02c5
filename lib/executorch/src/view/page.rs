//! A page with a flame chart of each block, its modules, and the table of its events. It needs nothing but a browser, and
//! nothing of the network; without scripts the tables remain.
//!
//! Every text of the profile is foreign: it is escaped where it stands in the page, and the scripts make text nodes of it.

use std::io::{self, Write};

use serde::Serialize;

use super::compare::run_times;
use super::modules::{EventIndex, Row, common_stack, roll_up};
use super::stats::{Summary, mean};
use super::sweep::Scope;
use super::table::{operators, rounded};
use crate::capture::{Block, Capture};

/// Most runs of a block that are drawn; the tables are of all.
const MAX_RUNS: usize = 16;

/// Most scopes of a run that are drawn, the longest ones.
const MAX_SCOPES: usize = 4000;

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

#[derive(Serialize)]
struct Chart<'c> {
    unit: &'c str,
    events: Vec<ChartEvent>,
    runs: Vec<ChartRun>,
    modules: Vec<ChartModule>,
}

#[derive(Serialize)]
struct ChartEvent {
    label: String,
    module: Option<String>,
    backend: Option<String>,
    instruction: Option<i32>,
    nodes: Vec<String>,
    p50: Option<f64>,
}

#[derive(Serialize)]
struct ChartRun {
    run: usize,
    label: String,
    left_out: usize,
    /// Event, start, duration, depth.
    scopes: Vec<(usize, f64, f64, usize)>,
}

#[derive(Serialize)]
struct ChartModule {
    label: String,
    depth: usize,
    own: f64,
    total: f64,
}

/// Writes the page. `name` is what the profile is called.
///
/// # Errors
/// When the sink fails.
pub fn write<W: Write>(capture: &Capture<'_>, name: &str, out: &mut W) -> io::Result<()> {
    let title = match &capture.source.method {
        Some(method) => format!("{name}, method {method}"),
        None => name.to_owned(),
    };
    let title = html(&title);
    let (from, to) = (capture.options.source.name(), capture.options.target.name());
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         <p>Times are in {to}; a tick of the runtime's clock is taken for one of {from}.</p>\n"
    )?;
    let rows = roll_up(capture);
    let mut rest = rows.as_slice();
    for (number, block) in capture.blocks.iter().enumerate() {
        let own = rest.partition_point(|row| row.block == number);
        let (modules, others) = rest.split_at(own);
        rest = others;
        write_block(capture, number, block, modules, out)?;
    }
    write!(out, "<div id=\"tip\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}

fn write_block<W: Write>(
    capture: &Capture<'_>,
    number: usize,
    block: &Block<'_>,
    modules: &[Row],
    out: &mut W,
) -> io::Result<()> {
    let (name, runs) = (html(block.name), block.runs.len());
    let times = run_times(capture, block);
    let mean_time = mean(&times).map(rounded).unwrap_or_default();
    let unit = capture.options.target.name();
    write!(
        out,
        "<section>\n<h2>Block {number}: {name}</h2>\n<p>{runs} run{}, {mean_time} {unit} on average.</p>\n",
        if runs == 1 { "" } else { "s" }
    )?;
    let json = serde_json::to_string(&chart(capture, block, modules, &times))?;
    writeln!(out, "<div class=\"chart\"></div>\n<script type=\"application/json\">{}</script>", script_safe(&json))?;
    write_modules(capture, modules, out)?;
    write_events(capture, block, out)?;
    writeln!(out, "</section>")
}

fn write_modules<W: Write>(capture: &Capture<'_>, rows: &[Row], out: &mut W) -> io::Result<()> {
    let all: f64 = rows.iter().filter_map(|row| mean(&row.own)).sum();
    let unit = capture.options.target.name();
    write!(
        out,
        "<details open>\n<summary>Modules</summary>\n<table>\n<tr><th>module<th>class<th class=\"n\">self avg ({unit})\
         <th class=\"n\">total avg ({unit})<th class=\"n\">share (%)\n"
    )?;
    for row in rows {
        let (own, total) = (mean(&row.own).unwrap_or(0.0), mean(&row.total).unwrap_or(0.0));
        let share = if all > 0.0 { total / all * 100.0 } else { 0.0 };
        let depth = row.stack.as_ref().map_or(0, |stack| stack.len().saturating_sub(1));
        writeln!(
            out,
            "<tr><td class=\"d{}\">{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{share:.1}",
            depth.min(9),
            html(&row.label()),
            html(&row.class().unwrap_or_default()),
            rounded(own),
            rounded(total)
        )?;
    }
    writeln!(out, "</table>\n</details>")
}

fn write_events<W: Write>(capture: &Capture<'_>, block: &Block<'_>, out: &mut W) -> io::Result<()> {
    let unit = capture.options.target.name();
    write!(
        out,
        "<details open>\n<summary>Events</summary>\n<table>\n<tr><th>event<th class=\"n\">instruction<th>backend"
    )?;
    for column in ["p10", "p50", "p90", "avg", "min", "max"] {
        write!(out, "<th class=\"n\">{column} ({unit})")?;
    }
    writeln!(out, "<th>operators<th>module")?;
    for event in &block.events {
        let instruction = event.instruction.map(|id| id.to_string()).unwrap_or_default();
        let backend = html(event.backend.as_deref().unwrap_or_default());
        write!(out, "<tr><td>{}<td class=\"n\">{instruction}<td>{backend}", html(&event.label()))?;
        let summary = Summary::of(&event.samples);
        let times = summary.map(|s| [s.p10, s.p50, s.p90, s.avg, s.min, s.max].map(Some)).unwrap_or_default();
        for time in times {
            write!(out, "<td class=\"n\">{}", time.map(rounded).unwrap_or_default())?;
        }
        let mut operators = operators(capture, event);
        operators.dedup();
        let module = module_of(capture, &event.nodes).unwrap_or_default();
        writeln!(out, "<td>{}<td>{}", html(&operators.join(" ")), html(&module))?;
    }
    writeln!(out, "</table>\n</details>")
}

fn module_of(capture: &Capture<'_>, nodes: &[usize]) -> Option<String> {
    let stack = common_stack(capture, nodes)?;
    Some(stack.last().map(|module| module.path.clone()).filter(|path| !path.is_empty()).unwrap_or("(model)".to_owned()))
}

fn chart<'c>(capture: &'c Capture<'_>, block: &Block<'_>, modules: &[Row], times: &[f64]) -> Chart<'c> {
    let node = |at: &usize| capture.source.nodes.get(*at).map(|node| node.name.clone());
    let event = |event: &crate::capture::BlockEvent<'_>| {
        let mut nodes = event.nodes.clone();
        nodes.sort_unstable();
        nodes.dedup();
        ChartEvent {
            label: event.label(),
            module: module_of(capture, &event.nodes),
            backend: event.backend.clone(),
            instruction: event.instruction,
            nodes: nodes.iter().filter_map(node).collect(),
            p50: Summary::of(&event.samples).map(|summary| summary.p50),
        }
    };
    let module = |row: &Row| ChartModule {
        label: row.label(),
        depth: row.stack.as_ref().map_or(0, |stack| stack.len().saturating_sub(1)),
        own: mean(&row.own).unwrap_or(0.0),
        total: mean(&row.total).unwrap_or(0.0),
    };
    let index = EventIndex::new(capture, block);
    let run = |(position, what): (usize, &'static str)| {
        let found = index.scopes(capture, block, block.runs[position]);
        chart_run(capture, block.runs[position], what, &found.scopes, &found.events)
    };
    Chart {
        unit: capture.options.target.name(),
        events: block.events.iter().map(event).collect(),
        runs: chosen(times).into_iter().map(run).collect(),
        modules: modules.iter().map(module).collect(),
    }
}

/// Which of the runs are drawn: the median first, then the fastest and the slowest, then others in order.
fn chosen(times: &[f64]) -> Vec<(usize, &'static str)> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| times[*a].total_cmp(&times[*b]));
    let mut chosen: Vec<(usize, &'static str)> = Vec::new();
    let named = [
        (order.get(times.len().saturating_sub(1) / 2), "median"),
        (order.first(), "fastest"),
        (order.last(), "slowest"),
    ];
    let rest = (0..times.len()).map(|at| (at, ""));
    let all = named.into_iter().filter_map(|(at, what)| Some((*at?, what))).chain(rest);
    for (at, what) in all {
        if chosen.len() < MAX_RUNS && chosen.iter().all(|(other, _)| *other != at) {
            chosen.push((at, what));
        }
    }
    chosen
}

fn chart_run(capture: &Capture<'_>, run: usize, what: &str, scopes: &[Scope], events: &[usize]) -> ChartRun {
    let factor = capture.ticks_per_unit();
    let first = scopes.iter().map(|scope| scope.start).min().unwrap_or(0);
    let depths = depths(scopes);
    let mut order: Vec<usize> = (0..scopes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(scopes[*at].end - scopes[*at].start));
    let left_out = order.len().saturating_sub(MAX_SCOPES);
    order.truncate(MAX_SCOPES);
    order.sort_unstable();
    let place = |at: usize| {
        let (scope, ticks) = (scopes[at], |ticks: u64| ticks as f64 / factor);
        (events[at], ticks(scope.start - first), ticks(scope.end - scope.start), depths[at])
    };
    let label = if what.is_empty() { format!("run {run}") } else { format!("run {run} ({what})") };
    ChartRun { run, label, left_out, scopes: order.into_iter().map(place).collect() }
}

/// How many scopes each is inside of.
fn depths(scopes: &[Scope]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scopes.len()).collect();
    // The outer of two that begin together ends later, or is told later.
    order.sort_by_key(|at| (scopes[*at].start, std::cmp::Reverse(scopes[*at].end), std::cmp::Reverse(*at)));
    let mut depths = vec![0; scopes.len()];
    let mut open: Vec<usize> = Vec::new();
    for at in order {
        while open.last().is_some_and(|last| scopes[*last].end <= scopes[at].start && scopes[*last] != scopes[at]) {
            open.pop();
        }
        depths[at] = open.len();
        open.push(at);
    }
    depths
}

/// Text as it may stand in a page, between tags and in attributes.
fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.extend(visible(c)),
        }
    }
    out
}

/// A character, or its escape where it would hide or reorder what is around it.
fn visible(c: char) -> Vec<char> {
    let hidden = c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if hidden { c.escape_default().collect() } else { vec![c] }
}

/// JSON as it may stand in a script element: nothing in it can end the element or begin a comment.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        assert_eq!(
            html("<script>alert('x')</script>&\u{202e}"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\\u{202e}"
        );
        assert_eq!(script_safe("\"</script><!--\""), "\"\\u003c/script\\u003e\\u003c!--\"");
    }

    #[test]
    fn the_median_run_is_drawn_first() {
        let found = chosen(&[5.0, 1.0, 3.0, 9.0]);
        assert_eq!(found, [(2, "median"), (1, "fastest"), (3, "slowest"), (0, "")]);
        assert_eq!(chosen(&[1.0]), [(0, "median")]);
        assert_eq!(chosen(&vec![1.0; 100]).len(), MAX_RUNS);
    }

    #[test]
    fn depth_is_how_many_are_around() {
        let scope = |start, end| Scope { start, end, preferred: true };
        assert_eq!(depths(&[scope(12, 22), scope(10, 25), scope(30, 31), scope(8, 40)]), [2, 1, 1, 0]);
        assert_eq!(depths(&[scope(5, 9), scope(5, 9)]), [1, 0]);
    }
}
