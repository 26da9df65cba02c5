//! The records of a profile: what a runtime measured, and how that leads back to the nodes of a graph.
//!
//! Times carry their unit in the field's name or in a field of its own. A sample is a float that is never tagged: one with
//! an integral value is written as the integer that it equals, so that sums in jq need no case distinction.

use crate::arg::Arg;
use crate::framing::body;
use crate::number::{EXACT, Integer};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration in the unit that its field names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time(pub f64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.fract() == 0.0 && self.0.abs() <= EXACT as f64 {
            true => serializer.serialize_i64(self.0 as i64),
            false => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Time)
    }
}

impl JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number" })
    }
}

/// A unit of time, or a clock's cycles, which convert to nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the units need no words")]
pub enum TimeScale {
    Ns,
    Us,
    Ms,
    S,
    Cycles,
}

impl TimeScale {
    /// How many make a second; 1 for cycles.
    pub fn per_second(self) -> f64 {
        match self {
            TimeScale::Ns => 1e9,
            TimeScale::Us => 1e6,
            TimeScale::Ms => 1e3,
            TimeScale::S | TimeScale::Cycles => 1.0,
        }
    }

    /// The unit as records and headings spell it.
    pub fn name(self) -> &'static str {
        match self {
            TimeScale::Ns => "ns",
            TimeScale::Us => "us",
            TimeScale::Ms => "ms",
            TimeScale::S => "s",
            TimeScale::Cycles => "cycles",
        }
    }
}

/// How a backend names one of its own steps: a number, or a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the two kinds need no words")]
pub enum DelegateId {
    Int(i32),
    Str(String),
}

impl std::fmt::Display for DelegateId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DelegateId::Int(id) => id.fmt(f),
            DelegateId::Str(id) => f.write_str(id),
        }
    }
}

/// What a backend attached to a sample: its bytes, as text where they are UTF-8. Nobody looks into them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Metadata {
    /// Bytes that are UTF-8.
    Text(String),
    /// All others, in lower-case hexadecimal.
    Hex(String),
}

impl Metadata {
    /// Wraps bytes.
    pub fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Metadata::Text(text.to_owned()),
            Err(_) => Metadata::Hex(crate::writer::hex(bytes)),
        }
    }
}

/// Opens a profile: where it comes from and how times are to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// `etdump`.
    pub format: String,
    /// The format's version.
    pub version: u32,
    /// The method that events are taken to belong to; the dump itself names none.
    pub method: Option<String>,
    /// The methods to choose from.
    pub methods: Vec<String>,
    /// What a tick of the runtime's clock is.
    pub source_time_scale: TimeScale,
    /// What samples are in.
    pub target_time_scale: TimeScale,
    /// How many blocks.
    pub blocks: u64,
    /// How many events, over all blocks.
    pub events: u64,
    /// How many samples, over all events.
    pub samples: u64,
    /// Identity of the exported graph in the process that made the record.
    pub export_graph_id: Option<Integer>,
}

/// Runs that executed the same instructions, seen as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Its index.
    pub block: u64,
    /// `Default` for loading, `Execute` for a run, or what the application chose.
    pub name: String,
    /// The bundled input that was run; -1 for none.
    pub bundled_input_index: i64,
    /// Positions of its runs in the dump; sample `i` of each of its events comes from the `i`-th of them.
    pub runs: Vec<u64>,
    /// How many events.
    pub events: u64,
    /// Whether what ran is what the method has at those instructions; null where nothing can be compared.
    pub agreement: Option<Agreement>,
}

/// How many instructions were compared with the method's own, and how many of them agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// Compared.
    pub checked: u64,
    /// In agreement.
    pub matched: u64,
}

/// One event of a block, with a sample from each of its runs. Exactly one of the `samples_…` is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Index of its block.
    pub block: u64,
    /// Its index in the block.
    pub event: u64,
    /// Name of its block.
    pub block_name: String,
    /// The method that it is taken to belong to.
    pub method: Option<String>,
    /// The runtime's name for it; the id's text for a delegate's own event.
    pub name: String,
    /// The instruction that it belongs to; null for the runtime's own work.
    pub instruction_id: Option<i32>,
    /// The backend's own id, of a delegate's own event.
    pub delegate_id: Option<DelegateId>,
    /// The backend that the instruction calls, where it is known.
    pub backend: Option<String>,
    /// Which repetition within a run this is, where repetitions are kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u64>,
    /// Handles of the source nodes, in the recorded order.
    pub debug_handles: Vec<i64>,
    /// The nodes with those handles.
    pub nodes: Vec<String>,
    /// A member for each sample, null where nothing was attached to it; null as a whole where nothing ever was.
    pub raw_delegate_metadata: Option<Vec<Option<Metadata>>>,
    /// Samples in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_ns: Option<Vec<Time>>,
    /// Samples in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_us: Option<Vec<Time>>,
    /// Samples in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_ms: Option<Vec<Time>>,
    /// Samples in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_s: Option<Vec<Time>>,
    /// Samples in cycles of the runtime's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_cycles: Option<Vec<Time>>,
    /// When each sample began, in the clock's ticks.
    pub start_ticks: Vec<Integer>,
}

impl Event {
    /// Puts the samples where their unit belongs.
    pub fn set_samples(&mut self, scale: TimeScale, samples: Vec<Time>) {
        let place = match scale {
            TimeScale::Ns => &mut self.samples_ns,
            TimeScale::Us => &mut self.samples_us,
            TimeScale::Ms => &mut self.samples_ms,
            TimeScale::S => &mut self.samples_s,
            TimeScale::Cycles => &mut self.samples_cycles,
        };
        *place = Some(samples);
    }
}

/// The nodes that share a debug handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handle {
    /// The method; handles of different methods are unrelated.
    pub method: String,
    /// The handle.
    pub debug_handle: i64,
    /// Nodes in graph order: names of `source_node` records, or of `node` records where there are none.
    pub nodes: Vec<String>,
}

/// What an instruction of a method came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instruction {
    /// The method.
    pub method: String,
    /// Its position in the method's chain.
    pub instruction_id: i32,
    /// Handles of its source nodes, in the recorded order, repetitions kept.
    pub debug_handles: Vec<i64>,
    /// The backend that it calls.
    pub backend: Option<String>,
    /// Handles by the backend's own ids; null where the backend recorded none.
    #[serde(default, deserialize_with = "crate::tagged::unique_option")]
    pub delegate_ids: Option<IndexMap<String, Vec<i64>>>,
    /// How many outputs it has, where that is recorded.
    pub outputs: Option<i64>,
}

/// A node of a source graph. Its inputs are the graph's dataflow edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceNode {
    /// The graph, by the name of its entry in the record.
    pub graph: String,
    /// Its name, unique in the graph.
    pub node: String,
    /// `placeholder`, `call_function`, `get_attr`, `output`.
    pub op: String,
    /// The operator, or the name again.
    pub target: String,
    /// Nodes that it reads, each once, in the order of the arguments.
    pub inputs: Vec<String>,
    /// Its debug handle.
    pub debug_handle: Option<i64>,
    /// The module path, empty for the outermost module.
    pub scope: Option<String>,
    /// The modules that it is inside, outermost first.
    pub modules: Vec<ModuleRef>,
    /// `file.py:line`.
    pub loc: Option<String>,
    /// The nodes of the exported program that it was made from.
    pub origins: Vec<String>,
}

/// A module of the source model.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleRef {
    /// Its path, as the artifact spells it; empty for the outermost module.
    pub path: String,
    /// Its class.
    pub class: String,
}

/// A value that the runtime logged. It is one of `tensors` and `literal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DebugValue {
    /// Index of the block.
    pub block: Option<u64>,
    /// Index in the block of an event of the same instruction; null for the program's outputs.
    pub event: Option<u64>,
    /// Position of its run in the dump.
    pub run: u64,
    /// Its position in the run.
    pub position: u64,
    /// The runtime's name for it.
    pub name: Option<String>,
    /// The instruction that computed it.
    pub instruction_id: Option<i32>,
    /// The backend's own id.
    pub delegate_id: Option<DelegateId>,
    /// Whether it is an output of the program.
    pub output: bool,
    /// Names of `tensor` records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensors: Option<Vec<String>>,
    /// A number or a bool; may be null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::tagged::present")]
    pub literal: Option<Arg>,
}

/// The time of one module of the source model. Each instant of a run counts for exactly one module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleTime {
    /// Index of the block.
    pub block: u64,
    /// The module path; empty for the outermost module, null for time that belongs to no source node.
    pub scope: Option<String>,
    /// Its class.
    pub class: Option<String>,
    /// The unit of the times.
    pub unit: TimeScale,
    /// How many events count for the module itself.
    pub events: u64,
    /// Median over the runs, the module itself.
    pub self_p50: Time,
    /// Mean over the runs, the module itself.
    pub self_avg: Time,
    /// Median over the runs, with the modules inside it.
    pub total_p50: Time,
    /// Mean over the runs, with the modules inside it.
    pub total_avg: Time,
    /// `total_avg` as a part of the block's time.
    pub share: Time,
}

/// What two runs of one event say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The second takes less time, beyond noise and threshold.
    Faster,
    /// The second takes more time, beyond noise and threshold.
    Slower,
    /// The difference is below the threshold, or well within noise.
    Same,
    /// There are too few samples, or they scatter too much, to tell.
    Unsure,
    /// The second does not have it.
    Gone,
    /// The first does not have it.
    New,
}

/// One event of two profiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Name of the block; the comparison of whole runs has an event name of null.
    pub block_name: String,
    /// The event.
    pub name: Option<String>,
    /// Its instruction.
    pub instruction_id: Option<i32>,
    /// The backend's own id.
    pub delegate_id: Option<DelegateId>,
    /// Which repetition, where they are kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<u64>,
    /// The unit of the times.
    pub unit: TimeScale,
    /// Samples of the first and of the second.
    pub samples: [u64; 2],
    /// Medians of the first and of the second; null for none.
    pub p50: [Option<Time>; 2],
    /// Median absolute deviations; null for none.
    pub mad: [Option<Time>; 2],
    /// Second median over first, less one; null where it cannot be told.
    pub change: Option<Time>,
    /// Probability of such a difference by chance (Mann-Whitney, two-sided, Holm's correction over all events).
    pub p: Option<Time>,
    /// What follows from that.
    pub verdict: Verdict,
}

body!(
    Capture = "capture",
    Block = "block",
    Event = "event",
    Handle = "handle",
    Instruction = "instruction",
    SourceNode = "source_node",
    DebugValue = "debug_value",
    ModuleTime = "module_time",
    Comparison = "comparison",
);
