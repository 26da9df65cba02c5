//! What a program says once its indices and ranges have been checked: where everything lies in the file.

use super::schema::{BackendDelegate, CompileSpec, DataLocation, ExecutionPlan, Instruction, SubsegmentOffsets};
use super::{Error, Stored, check};
use std::collections::HashMap;

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// Offset in the file.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// A numbered part of a segment, or of the flatbuffer: a constant, or the first state of a mutable tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The segment; `None` for one inside the flatbuffer.
    pub segment: Option<u32>,
    /// Where it lies: up to the next part, so alignment behind it counts.
    pub range: Range,
}

/// A program whose every index and range is inside what it points into.
#[derive(Clone, Debug, PartialEq)]
pub struct Program<'a> {
    stored: Stored<'a>,
    segments: Vec<Range>,
    constants: Vec<Part>,
    mutable_data: Vec<Vec<Part>>,
}

/// Where a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In the flatbuffer, by index into `backend_delegate_data`.
    Inline(u32),
    /// In a segment, by its index.
    Segment(u32),
}

/// A delegate of a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Delegate<'p, 'a> {
    /// The method.
    pub method: &'a str,
    /// The method's position.
    pub plan: usize,
    /// Its index in the method.
    pub index: usize,
    /// The backend.
    pub id: &'a str,
    /// Where the payload is stored.
    pub location: Location,
    /// Where in the file that is.
    pub range: Range,
    /// The payload.
    pub payload: &'a [u8],
    /// What it was compiled with.
    pub compile_specs: &'p [CompileSpec<'a>],
    /// The instructions that call it.
    pub calls: Vec<Call<'p>>,
}

/// A call of a delegate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'p> {
    /// The chain.
    pub chain: usize,
    /// The instruction.
    pub instruction: usize,
    /// Indices of values.
    pub args: &'p [i32],
}

impl<'a> Program<'a> {
    /// Checks what was read.
    ///
    /// # Errors
    /// An index or a range that leads nowhere, or a part that is missing, with its place in the tables.
    pub fn check(stored: Stored<'a>) -> Result<Self, Error> {
        Self::check_stored(stored).map_err(|error| error.of(super::KIND))
    }

    fn check_stored(stored: Stored<'a>) -> Result<Self, Error> {
        let segments = segments(&stored)?;
        let constants = constants(&stored, &segments)?;
        let mutable = stored.program.mutable_data_segments.as_deref().unwrap_or_default();
        let place = "mutable_data_segments.offsets";
        let mutable_data = mutable.iter().map(|parts| cut(parts, &segments, place)).collect::<Result<_, _>>()?;
        let program = Program { stored, segments, constants, mutable_data };
        check::program(&program)?;
        Ok(program)
    }

    /// Reads and checks a whole file.
    ///
    /// # Errors
    /// As [`Stored::read`] and [`Program::check`].
    pub fn open(file: &'a [u8]) -> Result<Self, Error> {
        Self::check(Stored::read(file)?)
    }

    /// The header and the tables.
    pub fn stored(&self) -> &Stored<'a> {
        &self.stored
    }

    /// Where the segments lie. An empty one of a file without segment data lies at its end.
    pub fn segments(&self) -> &[Range] {
        &self.segments
    }

    /// The constants by `data_buffer_idx`; the first stands for no data.
    pub fn constants(&self) -> &[Part] {
        &self.constants
    }

    /// For each mutable data segment, the first states of tensors by `data_buffer_idx`.
    pub fn mutable_data(&self) -> &[Vec<Part>] {
        &self.mutable_data
    }

    /// The methods.
    pub fn plans(&self) -> &[ExecutionPlan<'a>] {
        self.stored.program.execution_plan.as_deref().unwrap_or_default()
    }

    /// The position of the method of that name.
    ///
    /// # Errors
    /// [`Error::NoMethod`], with the names that there are.
    pub fn find(&self, name: &str) -> Result<usize, Error> {
        let found = self.plans().iter().position(|plan| plan.name == Some(name));
        found.ok_or_else(|| {
            let known = self.plans().iter().filter_map(|plan| plan.name).map(str::to_owned).collect();
            Error::NoMethod { name: name.to_owned(), known }
        })
    }

    /// Named data: key, segment, and where it lies.
    pub fn named_data(&self) -> impl Iterator<Item = (&'a str, u32, Range)> {
        let all = self.stored.program.named_data.iter().flatten();
        all.filter_map(|data| {
            let range = self.segments.get(data.segment_index as usize)?;
            Some((data.key.unwrap_or_default(), data.segment_index, *range))
        })
    }

    /// The bytes of a range of the file.
    pub fn bytes(&self, range: Range) -> &'a [u8] {
        slice(self.stored.file, range)
    }

    /// The delegates of all methods, in their order.
    pub fn delegates(&self) -> impl Iterator<Item = Delegate<'_, 'a>> {
        (0..self.plans().len()).flat_map(|plan| self.delegates_of(plan))
    }

    /// The delegates of one method, by its position.
    pub fn delegates_of(&self, plan: usize) -> Vec<Delegate<'_, 'a>> {
        let Some(method) = self.plans().get(plan) else { return Vec::new() };
        let mut calls = calls(method);
        let all = method.delegates.iter().flatten().enumerate();
        let delegates = all.filter_map(|(index, delegate)| {
            let (location, range) = self.payload_place(delegate)?;
            Some(Delegate {
                method: method.name?,
                plan,
                index,
                id: delegate.id?,
                location,
                range,
                payload: self.bytes(range),
                compile_specs: delegate.compile_specs.as_deref().unwrap_or_default(),
                calls: calls.remove(&index).unwrap_or_default(),
            })
        });
        delegates.collect()
    }

    /// Where a delegate's payload lies; `None` only before the program has been checked.
    fn payload_place(&self, delegate: &BackendDelegate<'_>) -> Option<(Location, Range)> {
        let reference = delegate.processed.as_ref()?;
        let at = reference.index as usize;
        match reference.location {
            DataLocation::INLINE => {
                let inline = self.stored.program.backend_delegate_data.as_ref()?.get(at)?;
                let range = inline.data.map(|blob| Range { offset: blob.offset, bytes: blob.bytes.len() as u64 });
                Some((Location::Inline(reference.index), range.unwrap_or(Range { offset: 0, bytes: 0 })))
            }
            DataLocation::SEGMENT => Some((Location::Segment(reference.index), *self.segments.get(at)?)),
            _ => None,
        }
    }
}

/// The calls of a method's delegates, by delegate.
fn calls<'p>(method: &'p ExecutionPlan<'_>) -> HashMap<usize, Vec<Call<'p>>> {
    let mut calls: HashMap<usize, Vec<Call<'p>>> = HashMap::new();
    for (chain, body) in method.chains.iter().flatten().enumerate() {
        for (instruction, it) in body.instructions.iter().flatten().enumerate() {
            let Instruction::DelegateCall(call) = it else { continue };
            let Ok(delegate) = usize::try_from(call.delegate_index) else { continue };
            let args = call.args.as_deref().unwrap_or_default();
            calls.entry(delegate).or_default().push(Call { chain, instruction, args });
        }
    }
    calls
}

pub(super) fn slice(file: &[u8], range: Range) -> &[u8] {
    let start = usize::try_from(range.offset).unwrap_or(usize::MAX);
    let end = usize::try_from(range.offset.saturating_add(range.bytes)).unwrap_or(usize::MAX);
    file.get(start..end).unwrap_or_default()
}

/// Where the segments lie in the file.
fn segments(stored: &Stored<'_>) -> Result<Vec<Range>, Error> {
    let file = stored.file.len() as u64;
    let base = stored.header.map(|header| header.segment_base_offset).filter(|base| *base > 0).unwrap_or(file);
    let size = stored.header.map_or(0, |header| header.segment_data_size);
    // The first version of the header does not say where segment data end.
    let end = if size > 0 { base.saturating_add(size).min(file) } else { file };
    let all = stored.program.segments.iter().flatten().enumerate();
    all.map(|(index, segment)| place(index, (segment.offset, segment.size), base, end)).collect()
}

pub(super) fn place(index: usize, (offset, size): (u64, u64), base: u64, end: u64) -> Result<Range, Error> {
    let start = base.checked_add(offset);
    match start.and_then(|start| Some((start, start.checked_add(size)?))) {
        Some((start, last)) if last <= end => Ok(Range { offset: start, bytes: size }),
        _ => Err(Error::Segment { index, offset, size, base, file: end }),
    }
}

fn constants(stored: &Stored<'_>, segments: &[Range]) -> Result<Vec<Part>, Error> {
    let buffers = stored.program.constant_buffer.as_deref().unwrap_or_default();
    let offsets = stored.program.constant_segment.as_ref().and_then(|it| it.offsets.as_deref()).unwrap_or_default();
    if !buffers.is_empty() && !offsets.is_empty() {
        return Err(Error::TwoConstants { buffers: buffers.len(), offsets: offsets.len() });
    }
    if let Some(parts) = stored.program.constant_segment.as_ref().filter(|_| !offsets.is_empty()) {
        return cut(parts, segments, "constant_segment.offsets");
    }
    let inline = buffers.iter().map(|buffer| {
        let range = buffer.storage.map(|blob| Range { offset: blob.offset, bytes: blob.bytes.len() as u64 });
        Part { segment: None, range: range.unwrap_or(Range { offset: 0, bytes: 0 }) }
    });
    Ok(inline.collect())
}

/// The parts of a segment, each from its offset to the next.
fn cut(parts: &SubsegmentOffsets, segments: &[Range], place: &'static str) -> Result<Vec<Part>, Error> {
    let offsets = parts.offsets.as_deref().unwrap_or_default();
    let index = parts.segment_index as usize;
    let whole = match segments.get(index) {
        Some(whole) => *whole,
        // A program without constants keeps the one offset that stands for no data, and has no segment.
        None if offsets.iter().all(|offset| *offset == 0) && segments.is_empty() => Range { offset: 0, bytes: 0 },
        None => {
            let place = place.replace("offsets", "segment_index");
            let found = i64::from(parts.segment_index);
            return Err(Error::Index { place, found, count: segments.len(), what: "segments" });
        }
    };
    let ends = offsets.iter().skip(1).copied().chain([whole.bytes]);
    let mut least = 0;
    let cut = offsets.iter().zip(ends).enumerate().map(|(index, (&offset, end))| {
        if offset < least || offset > whole.bytes {
            return Err(Error::Subsegment { place, index, offset, least, most: whole.bytes });
        }
        least = offset;
        // A part that ends before it begins is the next one's fault, which is met next.
        let range = Range { offset: whole.offset + offset, bytes: end.saturating_sub(offset) };
        Ok(Part { segment: Some(parts.segment_index), range })
    });
    cut.collect()
}
