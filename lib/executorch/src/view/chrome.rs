//! The profile in the Trace Event Format of chrome://tracing and Perfetto: every measured scope of every run, repetitions
//! included, at the time of the runtime's clock.
//!
//! That format has microseconds only; ticks of a cycle counter are written as if each were one, and the trace says so.

use std::io::{self, Write};

use serde::Serialize;

use super::modules::common_stack;
use crate::capture::{Capture, ticks};
use crate::etdump::Event;
use m2m_record::TimeScale;

/// The rows of the trace: what the runtime measured, and what delegates reported of themselves.
const THREADS: [(u8, &str); 2] = [(1, "runtime"), (2, "delegates")];

#[derive(Serialize)]
struct Complete<'t> {
    name: &'t str,
    cat: &'t str,
    ph: &'t str,
    ts: f64,
    dur: f64,
    pid: u8,
    tid: u8,
    args: Args<'t>,
}

#[derive(Serialize)]
struct Args<'t> {
    block: usize,
    run: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction_id: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'t str>,
    #[serde(skip_serializing_if = "slice_is_empty")]
    nodes: &'t [&'t str],
    #[serde(skip_serializing_if = "slice_is_empty")]
    operators: &'t [&'t str],
}

fn slice_is_empty(slice: &[&str]) -> bool {
    slice.is_empty()
}

/// What is said of an event in each of its scopes.
struct Told<'c> {
    label: String,
    module: Option<String>,
    nodes: Vec<&'c str>,
    operators: Vec<&'c str>,
}

/// Writes the trace.
///
/// # Errors
/// When the sink fails.
pub fn write<W: Write>(capture: &Capture<'_>, out: &mut W) -> io::Result<()> {
    let unit = capture.options.source.name();
    let per_us = match capture.options.source {
        TimeScale::Cycles => 1.0,
        scale => scale.per_second() / TimeScale::Us.per_second(),
    };
    let first = first_tick(capture);
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"source_time_scale\":\"{unit}\"")?;
    if capture.options.source == TimeScale::Cycles {
        write!(out, ",\"note\":\"a microsecond of this trace is a cycle\"")?;
    }
    write!(out, "}},\"traceEvents\":[")?;
    for (number, (tid, name)) in THREADS.iter().enumerate() {
        let separator = if number == 0 { "" } else { "," };
        write!(
            out,
            "{separator}\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"args\":{{\"name\":\"{name}\"}}}}"
        )?;
    }
    for (block_number, block) in capture.blocks.iter().enumerate() {
        let told: Vec<Told<'_>> = block.events.iter().map(|event| tell(capture, event)).collect();
        let index = super::modules::EventIndex::new(capture, block);
        for run in &block.runs {
            for (measured, number) in index.measured(capture, *run) {
                let (event, told) = (&block.events[number], &told[number]);
                let complete = Complete {
                    name: &told.label,
                    cat: block.name,
                    ph: "X",
                    ts: (measured.start - first) as f64 / per_us,
                    dur: ticks(measured).unwrap_or(0) as f64 / per_us,
                    pid: 1,
                    tid: if event.is_delegated() { 2 } else { 1 },
                    args: Args {
                        block: block_number,
                        run: *run,
                        instruction_id: event.instruction,
                        backend: event.backend.as_deref(),
                        module: told.module.as_deref(),
                        nodes: &told.nodes,
                        operators: &told.operators,
                    },
                };
                out.write_all(b",\n")?;
                serde_json::to_writer(&mut *out, &complete)?;
            }
        }
    }
    out.write_all(b"\n]}\n")
}

fn tell<'c>(capture: &'c Capture<'_>, event: &crate::capture::BlockEvent<'_>) -> Told<'c> {
    let mut at: Vec<usize> = event.nodes.clone();
    at.sort_unstable();
    at.dedup();
    let nodes = || at.iter().filter_map(|at| capture.source.nodes.get(*at));
    let operators = nodes().filter(|node| node.target != crate::etrecord::GETITEM);
    Told {
        label: event.label(),
        module: common_stack(capture, &event.nodes).and_then(|stack| stack.last().map(|module| module.path.clone())),
        nodes: nodes().map(|node| node.name.as_str()).collect(),
        operators: operators.map(|node| node.target.as_str()).collect(),
    }
}

/// The earliest start, which becomes the trace's zero.
pub(super) fn first_tick(capture: &Capture<'_>) -> u64 {
    let starts = capture.dump.events().iter().filter_map(|event| match event {
        Event::Profile(event) => Some(event.start),
        _ => None,
    });
    starts.min().unwrap_or(0)
}
