//! ETDumps: what ExecuTorch's runtime measured and logged, in the order in which it did.
//!
//! A size-prefixed flatbuffer with the identifier `ED00`. A run is what the runtime did between two of its own marks:
//! loading a method, or executing it once. Nothing here interprets an event; names and metadata are borrowed from the file.

mod schema;
mod value;

use std::ops::Range;

use crate::flatbuffer::{self, Buffer, Cause, Table};

pub use value::{DebugEntry, LoggedTensor, SCALAR_TYPES, VALUE_TYPES, scalar_type, scalar_type_name};

/// The file identifier, at offset 8 of a file.
pub const IDENTIFIER: &[u8; 4] = b"ED00";

/// The only version of the schema so far.
pub const VERSION: u32 = 0;

/// Why an ETDump cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is of another kind.
    #[error("{found}, no ETDump: {size} bytes without the identifier \"ED00\" at byte 8")]
    Kind {
        /// What it looks like.
        found: &'static str,
        /// Its size.
        size: usize,
    },
    /// The bytes break the format.
    #[error(transparent)]
    Flatbuffer(#[from] flatbuffer::Error),
    /// A schema that nobody here knows.
    #[error("schema version {found}; only version {VERSION} is known")]
    Version {
        /// As stored.
        found: u32,
    },
    /// An event must be one of three things.
    #[error(
        "byte {at}: run {run}, event {position}: {found} of profile_event, allocation_event and debug_event are set; expected one"
    )]
    Event {
        /// Offset of the event's table.
        at: u64,
        /// The run.
        run: usize,
        /// The event's position in it.
        position: usize,
        /// How many are set.
        found: usize,
    },
    /// A debug event without a value.
    #[error("byte {at}: run {run}, event {position}: a debug event without its debug_entry")]
    NoEntry {
        /// Offset of the event's table.
        at: u64,
        /// The run.
        run: usize,
        /// The event's position in it.
        position: usize,
    },
}

/// A dump whose every event has been read.
#[derive(Debug)]
pub struct Dump<'a> {
    /// The runs in order.
    pub runs: Vec<Run<'a>>,
    events: Vec<Event<'a>>,
}

/// What happened between two marks of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    /// Its name: `Default` for loading, `Execute` for an execution, or the application's own.
    pub name: Option<&'a str>,
    /// The bundled input that was run; -1 for none.
    pub bundled_input_index: i32,
    /// Names of allocators.
    pub allocators: Option<Vec<Option<&'a str>>>,
    /// Positions of its events in [`Dump::events`]; none where the list is not stored.
    pub events: Option<Range<usize>>,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A measured scope.
    Profile(ProfileEvent<'a>),
    /// An allocation.
    Allocation {
        /// Which of the run's allocators; counted as the runtime does.
        allocator: i32,
        /// Bytes.
        size: u64,
    },
    /// A logged value.
    Debug(Box<DebugEvent<'a>>),
}

/// Whose doing an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity<'a> {
    /// The chain; -1 for the runtime's own work. A debug event stores that as 2^64 - 1.
    pub chain: i128,
    /// The instruction; the runtime's own work has 0 here.
    pub instruction: i32,
    /// The backend's own id, as a number; -1 for none.
    pub delegate_int: i32,
    /// The backend's own id, as a text.
    pub delegate_str: Option<&'a str>,
}

/// A measured scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileEvent<'a> {
    /// The runtime's name for it; a delegate's own event has none.
    pub name: Option<&'a str>,
    /// The chain; -1 for the runtime's own work.
    pub chain: i32,
    /// The instruction; the runtime's own work has 0 here.
    pub instruction: i32,
    /// The backend's own id, as a number; -1 for none.
    pub delegate_int: i32,
    /// The backend's own id, as a text.
    pub delegate_str: Option<&'a str>,
    /// What the backend attached.
    pub metadata: Option<&'a [u8]>,
    /// When it began, in ticks.
    pub start: u64,
    /// When it ended, in ticks.
    pub end: u64,
}

/// A logged value.
#[derive(Clone, Debug, PartialEq)]
pub struct DebugEvent<'a> {
    /// The runtime's name for it.
    pub name: Option<&'a str>,
    /// The chain; 2^64 - 1 for the runtime's own work.
    pub chain: u64,
    /// The instruction; the runtime's own work has 0 here.
    pub instruction: i32,
    /// The backend's own id, as a number; -1 for none.
    pub delegate_int: i32,
    /// The backend's own id, as a text.
    pub delegate_str: Option<&'a str>,
    /// The value.
    pub entry: DebugEntry,
}

impl<'a> ProfileEvent<'a> {
    /// Whose doing it is.
    pub fn identity(&self) -> Identity<'a> {
        Identity {
            chain: self.chain.into(),
            instruction: self.instruction,
            delegate_int: self.delegate_int,
            delegate_str: self.delegate_str,
        }
    }
}

impl<'a> DebugEvent<'a> {
    /// Whose doing it is.
    pub fn identity(&self) -> Identity<'a> {
        Identity {
            chain: self.chain.into(),
            instruction: self.instruction,
            delegate_int: self.delegate_int,
            delegate_str: self.delegate_str,
        }
    }
}

impl<'a> Dump<'a> {
    /// Reads a whole file.
    ///
    /// # Errors
    /// Whatever [`Error`] names.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.get(8..12) != Some(IDENTIFIER) {
            return Err(Error::Kind { found: crate::kind::describe(bytes), size: bytes.len() });
        }
        let buffer = Buffer::size_prefixed(bytes, schema::DUMP)?;
        let root = buffer.root(schema::DUMP, IDENTIFIER)?;
        let version = root.scalar(schema::dump::VERSION, 0)?;
        if version != VERSION {
            return Err(Error::Version { found: version });
        }
        let mut dump = Dump { runs: Vec::new(), events: Vec::new() };
        if let Some(runs) = root.tables(schema::dump::RUN_DATA, schema::RUN)? {
            for run in runs.iter() {
                dump.read_run(&run?)?;
            }
        }
        Ok(dump)
    }

    /// The events of all runs.
    pub fn events(&self) -> &[Event<'a>] {
        &self.events
    }

    /// The events of a run, none where it has no list of them.
    pub fn events_of(&self, run: &Run<'a>) -> &[Event<'a>] {
        run.events.clone().and_then(|range| self.events.get(range)).unwrap_or_default()
    }

    fn read_run(&mut self, table: &Table<'_, 'a>) -> Result<(), Error> {
        use schema::run as field;
        let name = table.string(field::NAME)?;
        let bundled_input_index = table.scalar(field::BUNDLED_INPUT_INDEX, -1)?;
        let allocators = match table.tables(field::ALLOCATORS, schema::ALLOCATOR)? {
            None => None,
            Some(all) => {
                let names = all.iter().map(|table| table?.string(schema::allocator::NAME));
                Some(names.collect::<Result<Vec<_>, _>>()?)
            }
        };
        let first = self.events.len();
        let events = match table.tables(field::EVENTS, schema::EVENT)? {
            None => None,
            Some(all) => {
                for (position, event) in all.iter().enumerate() {
                    let event = read_event(&event?, self.runs.len(), position)?;
                    self.events.push(event);
                }
                Some(first..self.events.len())
            }
        };
        self.runs.push(Run { name, bundled_input_index, allocators, events });
        Ok(())
    }
}

fn read_event<'a>(table: &Table<'_, 'a>, run: usize, position: usize) -> Result<Event<'a>, Error> {
    use schema::event as field;
    let found = [field::PROFILE, field::ALLOCATION, field::DEBUG].into_iter().filter(|f| table.is_set(*f)).count();
    if found != 1 {
        return Err(Error::Event { at: table.position(), run, position, found });
    }
    if let Some(event) = table.table(field::PROFILE, schema::PROFILE)? {
        return Ok(Event::Profile(read_profile(&event)?));
    }
    if let Some(event) = table.table(field::ALLOCATION, schema::ALLOCATION)? {
        return Ok(read_allocation(&event)?);
    }
    let event = table.table(field::DEBUG, schema::DEBUG)?.ok_or_else(|| table.error(field::DEBUG, Cause::Missing))?;
    let entry = event.table(schema::debug::DEBUG_ENTRY, schema::VALUE)?;
    let Some(entry) = entry else { return Err(Error::NoEntry { at: event.position(), run, position }) };
    Ok(Event::Debug(Box::new(read_debug(&event, &entry)?)))
}

fn read_allocation<'a>(event: &Table<'_, 'a>) -> Result<Event<'a>, flatbuffer::Error> {
    use schema::allocation as field;
    let (allocator, size) = (event.scalar(field::ALLOCATOR_ID, 0)?, event.scalar(field::ALLOCATION_SIZE, 0)?);
    Ok(Event::Allocation { allocator, size })
}

fn read_debug<'a>(event: &Table<'_, 'a>, entry: &Table<'_, 'a>) -> Result<DebugEvent<'a>, flatbuffer::Error> {
    use schema::debug as field;
    Ok(DebugEvent {
        name: event.string(field::NAME)?,
        chain: event.scalar(field::CHAIN_INDEX, 0)?,
        instruction: event.scalar(field::INSTRUCTION_ID, -1)?,
        delegate_int: event.scalar(field::DELEGATE_DEBUG_ID_INT, -1)?,
        delegate_str: event.string(field::DELEGATE_DEBUG_ID_STR)?,
        entry: DebugEntry::read(entry)?,
    })
}

fn read_profile<'a>(event: &Table<'_, 'a>) -> Result<ProfileEvent<'a>, flatbuffer::Error> {
    use schema::profile as field;
    Ok(ProfileEvent {
        name: event.string(field::NAME)?,
        chain: event.scalar(field::CHAIN_INDEX, 0)?,
        instruction: event.scalar(field::INSTRUCTION_ID, -1)?,
        delegate_int: event.scalar(field::DELEGATE_DEBUG_ID_INT, -1)?,
        delegate_str: event.string(field::DELEGATE_DEBUG_ID_STR)?,
        metadata: event.bytes(field::DELEGATE_DEBUG_METADATA)?.map(|(_, bytes)| bytes),
        start: event.scalar(field::START_TIME, 0)?,
        end: event.scalar(field::END_TIME, 0)?,
    })
}
