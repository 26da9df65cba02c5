//! The profile for pprof: the protocol buffer `perftools.profiles.Profile`, not compressed. A stack is the block, the modules
//! around the event's nodes, and the event; a sample's time is the event's own, so that all samples add up to the whole.

use std::collections::HashMap;
use std::io::{self, Write};

use super::modules::{EventIndex, common_stack};
use super::sweep::own_ticks;
use crate::capture::{Block, BlockEvent, Capture};
use m2m_record::TimeScale;

/// Field numbers of `Profile` and of the messages in it.
mod field {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub const VALUE_TYPE_TYPE: u32 = 1;
    pub const VALUE_TYPE_UNIT: u32 = 2;
    pub const SAMPLE_LOCATION_ID: u32 = 1;
    pub const SAMPLE_VALUE: u32 = 2;
    pub const LOCATION_ID: u32 = 1;
    pub const LOCATION_LINE: u32 = 4;
    pub const LINE_FUNCTION_ID: u32 = 1;
    pub const LINE_LINE: u32 = 2;
    pub const FUNCTION_ID: u32 = 1;
    pub const FUNCTION_NAME: u32 = 2;
    pub const FUNCTION_FILENAME: u32 = 4;
}

/// A message of a protocol buffer.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut x: u64) {
        while x >= 0x80 {
            self.0.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.0.push(x as u8);
    }

    /// A number; zero is what a reader takes a missing one for.
    fn number(&mut self, field: u32, x: u64) {
        if x != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(x);
        }
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn packed(&mut self, field: u32, numbers: &[u64]) {
        let mut inner = Message::default();
        numbers.iter().for_each(|x| inner.varint(*x));
        self.bytes(field, &inner.0);
    }
}

/// A frame of a stack: what is shown, and where in the source it is.
type Frame = (String, Option<(String, u64)>);

#[derive(Default)]
struct Profile {
    strings: Vec<String>,
    by_text: HashMap<String, u64>,
    locations: HashMap<Frame, u64>,
    out: Message,
}

impl Profile {
    /// The position of a text in the table, whose first is empty.
    fn string(&mut self, text: &str) -> u64 {
        if let Some(at) = self.by_text.get(text) {
            return *at;
        }
        let at = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.by_text.insert(text.to_owned(), at);
        at
    }

    /// The number of a frame's location, which is also that of its function.
    fn location(&mut self, frame: &Frame) -> u64 {
        if let Some(id) = self.locations.get(frame) {
            return *id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(frame.clone(), id);
        let (name, place) = frame;
        let (file, line_number) = place.clone().unwrap_or_default();
        let mut line = Message::default();
        line.number(field::LINE_FUNCTION_ID, id);
        line.number(field::LINE_LINE, line_number);
        let mut location = Message::default();
        location.number(field::LOCATION_ID, id);
        location.bytes(field::LOCATION_LINE, &line.0);
        self.out.bytes(field::LOCATION, &location.0);
        let (name, file) = (self.string(name), self.string(&file));
        let mut function = Message::default();
        function.number(field::FUNCTION_ID, id);
        function.number(field::FUNCTION_NAME, name);
        function.number(field::FUNCTION_FILENAME, file);
        self.out.bytes(field::FUNCTION, &function.0);
        id
    }

    fn sample_type(&mut self, kind: &str, unit: &str) {
        let mut value = Message::default();
        let (kind, unit) = (self.string(kind), self.string(unit));
        value.number(field::VALUE_TYPE_TYPE, kind);
        value.number(field::VALUE_TYPE_UNIT, unit);
        self.out.bytes(field::SAMPLE_TYPE, &value.0);
    }
}

/// Writes the profile.
///
/// # Errors
/// When the sink fails.
pub fn write<W: Write>(capture: &Capture<'_>, out: &mut W) -> io::Result<()> {
    let mut profile = Profile::default();
    profile.string("");
    let cycles = capture.options.source == TimeScale::Cycles;
    let (kind, unit) = if cycles { ("cycles", "count") } else { ("time", "nanoseconds") };
    profile.sample_type("samples", "count");
    profile.sample_type(kind, unit);
    let per_tick = if cycles { 1.0 } else { TimeScale::Ns.per_second() / capture.options.source.per_second() };
    for block in &capture.blocks {
        for (event, (count, ticks)) in block.events.iter().zip(own_times(capture, block)) {
            if count == 0 {
                continue;
            }
            let ids: Vec<u64> =
                stack(capture, block, event).iter().rev().map(|frame| profile.location(frame)).collect();
            let mut sample = Message::default();
            sample.packed(field::SAMPLE_LOCATION_ID, &ids);
            sample.packed(field::SAMPLE_VALUE, &[count, (ticks as f64 * per_tick).round() as u64]);
            profile.out.bytes(field::SAMPLE, &sample.0);
        }
    }
    let default = profile.string(kind);
    profile.out.number(field::DEFAULT_SAMPLE_TYPE, default);
    for text in std::mem::take(&mut profile.strings) {
        profile.out.bytes(field::STRING_TABLE, text.as_bytes());
    }
    out.write_all(&profile.out.0)
}

/// For each event of a block how many scopes it had, and the ticks that no scope inside them has.
fn own_times(capture: &Capture<'_>, block: &Block<'_>) -> Vec<(u64, u64)> {
    let mut times = vec![(0, 0); block.events.len()];
    let index = EventIndex::new(capture, block);
    for run in &block.runs {
        let mut found = index.scopes(capture, block, *run);
        found.scopes.iter_mut().for_each(|scope| scope.preferred = true);
        for (ticks, event) in own_ticks(&found.scopes).into_iter().zip(found.events) {
            times[event].0 += 1;
            times[event].1 += ticks;
        }
    }
    times
}

/// The frames of an event, outermost first.
fn stack(capture: &Capture<'_>, block: &Block<'_>, event: &BlockEvent<'_>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = vec![(block.name.to_owned(), None)];
    for module in common_stack(capture, &event.nodes).into_iter().flatten() {
        let path = if module.path.is_empty() { "(model)" } else { &module.path };
        let class = module.class.rsplit('.').next().unwrap_or_default();
        let name = if class.is_empty() { path.to_owned() } else { format!("{path} ({class})") };
        frames.push((name, None));
    }
    let nodes = event.nodes.iter().filter_map(|at| capture.source.nodes.get(*at));
    let place = nodes.filter_map(|node| node.loc.as_deref()?.rsplit_once(':')).next();
    let place = place.and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
    let label = match event.instruction {
        Some(instruction) => format!("{} @{instruction}", event.label()),
        None => event.label(),
    };
    frames.push((label, place));
    frames
}
