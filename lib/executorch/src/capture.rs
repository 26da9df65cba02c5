//! A profile: the events of a dump in blocks of equal runs, with unaggregated samples, joined to the nodes of a source graph.
//!
//! Blocks, events and times are those of ExecuTorch's own inspector, with its errors left out: a delegate's own event
//! resolves only by an id that its backend recorded, the runtime's own work belongs to no instruction, and the repetitions of
//! a loop can be kept apart. Nothing is aggregated, attributed or decoded here.

mod agreement;
mod blocks;
mod debug;
mod records;
mod source;
mod stream;
mod time;

use m2m_record::profile::Agreement;
use m2m_record::{DelegateId, TimeScale};
use thiserror::Error;

use crate::etdump::{Dump, Event};

pub use debug::{Logged, LoggedValue};
pub use records::{Names, write_raw_dump, write_raw_record};
pub use source::{Methods, Source, choose_method};
pub use stream::Trace;
pub use time::ticks;

/// Names of the runtime's own events, which belong to no instruction.
pub const FRAMEWORK_EVENTS: [&str; 3] = ["Method::init", "Program::load_method", "Method::execute"];

/// The event around everything that a delegate does.
pub const DELEGATE_CALL: &str = "DELEGATE_CALL";

/// The event around a kernel's own.
pub const OPERATOR_CALL: &str = "OPERATOR_CALL";

/// What a kernel's own event is called: this, the operator, a dot and the overload.
pub const NATIVE_CALL: &str = "native_call_";

/// Why events cannot be joined.
#[derive(Debug, Error)]
pub enum Error {
    /// More than one method, and none was asked for.
    #[error("{found} methods to choose from: {}; name one with {option}", crate::etrecord::names(.methods))]
    SeveralMethods {
        /// How many.
        found: usize,
        /// Their names.
        methods: Vec<String>,
        /// The option that the caller's users know.
        option: String,
    },
    /// The method that was asked for is not there.
    #[error("no method {method:?}; {option} may name: {}", crate::etrecord::names(.methods))]
    UnknownMethod {
        /// As asked for.
        method: String,
        /// What is there.
        methods: Vec<String>,
        /// The option that the caller's users know.
        option: String,
    },
    /// The maps name no method.
    #[error("debug_handle_map names no method, so nothing can be joined")]
    NoMethods,
    /// Cycles convert to nothing.
    #[error("{from} do not convert to {to}; give cycles for both time scales, or for neither", from = .from.name(), to = .to.name())]
    Scales {
        /// The source time scale.
        from: TimeScale,
        /// The target time scale.
        to: TimeScale,
    },
    /// A clock that ran backwards.
    #[error(
        "run {run}, event {position} ({name}): it ends at tick {end}, before its start at {start}; only a clock of 32 bits may wrap"
    )]
    Backwards {
        /// The run.
        run: usize,
        /// The event's position in it.
        position: usize,
        /// Its name.
        name: String,
        /// As stored.
        start: u64,
        /// As stored.
        end: u64,
    },
    /// The graph or the maps cannot be read.
    #[error(transparent)]
    Record(#[from] crate::etrecord::Error),
    /// The stream that stands for a record cannot be read.
    #[error(transparent)]
    Stream(#[from] m2m_record::Error),
    /// The stream that stands for a record has no handles.
    #[error("the stream has no instruction records, so no debug handles; m2m-etdump --etrecord writes some")]
    NoHandles,
    /// Logged tensors and the buffer do not fit.
    #[error(
        "run {run}, event {position}: a logged tensor takes {need} bytes at {offset}, the debug buffer has {size}: it is another run's, or cut"
    )]
    Buffer {
        /// The run.
        run: usize,
        /// The event's position in it.
        position: usize,
        /// Bytes of the tensor.
        need: u64,
        /// Where they should begin.
        offset: i64,
        /// Size of the buffer.
        size: u64,
    },
    /// A logged value is not of the type that it claims.
    #[error("run {run}, event {position}: a logged value of type {kind} {detail}")]
    Value {
        /// The run.
        run: usize,
        /// The event's position in it.
        position: usize,
        /// The type.
        kind: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The sink failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Tensors cannot be written.
    #[error(transparent)]
    Tensors(#[from] m2m_tensor::safetensors::WriteError),
}

/// What to do with an event that comes several times in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Occurrences {
    /// Keep the last, as ExecuTorch's own inspector does.
    #[default]
    Last,
    /// Keep all, numbered.
    All,
}

/// How to read a dump.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What a tick of the runtime's clock is.
    pub source: TimeScale,
    /// What samples are in.
    pub target: TimeScale,
    /// What to do with repetitions.
    pub occurrences: Occurrences,
}

impl Default for Options {
    fn default() -> Self {
        Options { source: TimeScale::Ns, target: TimeScale::Ms, occurrences: Occurrences::Last }
    }
}

/// Runs that executed the same instructions.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// The name of the runs.
    pub name: &'a str,
    /// The bundled input that was run; -1 for none.
    pub bundled_input_index: i32,
    /// The runs, by their position in the dump.
    pub runs: Vec<usize>,
    /// Its events: kernels and delegates before the calls around them, as the runtime finishes them.
    pub events: Vec<BlockEvent<'a>>,
    /// Whether what ran is what the method has there.
    pub agreement: Option<Agreement>,
}

/// One event of a block.
#[derive(Clone, Debug)]
pub struct BlockEvent<'a> {
    /// The runtime's name for it, empty where only values were logged; none for a delegate's own event.
    pub name: Option<&'a str>,
    /// The instruction; none for the runtime's own work.
    pub instruction: Option<i32>,
    /// The backend's own id.
    pub delegate: Option<DelegateId>,
    /// Which repetition within a run, where they are kept apart.
    pub occurrence: Option<u64>,
    /// The backend that the instruction calls.
    pub backend: Option<String>,
    /// Debug handles in the recorded order.
    pub handles: Vec<i64>,
    /// Positions of nodes in the source graph, by handle and then by position.
    pub nodes: Vec<usize>,
    /// A sample a run, in the target time scale; none where only values were logged.
    pub samples: Vec<f64>,
    /// The events of the dump that the samples are of.
    pub places: Vec<u32>,
    /// Values that the first of the runs logged for it, as events of the dump.
    pub logged: Vec<u32>,
}

impl BlockEvent<'_> {
    /// What a person calls it: the delegate's id as text, else the name.
    pub fn label(&self) -> String {
        match &self.delegate {
            Some(id) => id.to_string(),
            None => self.name.unwrap_or_default().to_owned(),
        }
    }

    /// Whether a delegate reported it.
    pub fn is_delegated(&self) -> bool {
        self.delegate.is_some()
    }
}

/// A dump that has been read, put into blocks, and joined.
#[derive(Debug)]
pub struct Capture<'a> {
    /// The dump.
    pub dump: Dump<'a>,
    /// How it was read.
    pub options: Options,
    /// What events are explained by.
    pub source: Source,
    /// The blocks in the order of their first runs.
    pub blocks: Vec<Block<'a>>,
}

impl<'a> Capture<'a> {
    /// Puts the runs of a dump into blocks and joins their events to a source, which may be empty.
    ///
    /// # Errors
    /// [`Error::Scales`] and [`Error::Backwards`].
    pub fn new(dump: Dump<'a>, source: Source, options: Options) -> Result<Self, Error> {
        let factor = time::factor(options.source, options.target)?;
        let mut blocks = blocks::build(&dump, options.occurrences);
        for block in &mut blocks {
            for event in &mut block.events {
                event.samples = time::samples(&dump, event, factor)?;
                source.explain(event);
            }
            block.agreement = agreement::of(block, &source);
        }
        Ok(Capture { dump, options, source, blocks })
    }

    /// How well each block's events would fit another source: for saying which method a block belongs to.
    pub fn agreement_with(&self, block: &Block<'a>, source: &Source) -> Option<Agreement> {
        agreement::of(block, source)
    }

    /// How many ticks of the runtime's clock make one unit of the samples.
    pub fn ticks_per_unit(&self) -> f64 {
        self.options.source.per_second() / self.options.target.per_second()
    }

    /// The measured scope at a place of the dump.
    pub fn profile_at(&self, place: u32) -> Option<&crate::etdump::ProfileEvent<'a>> {
        match self.dump.events().get(place as usize) {
            Some(Event::Profile(event)) => Some(event),
            _ => None,
        }
    }

    /// The run and the position in it of a place of the dump.
    pub fn position_of(&self, place: u32) -> (usize, usize) {
        time::position_of(&self.dump, place)
    }
}
