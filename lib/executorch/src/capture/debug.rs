//! Values that the runtime logged: where the bytes of tensors lie in the buffer beside the dump, and their way out of it.

use std::io::Write;

use m2m_record::{Arg, DType, DelegateId, Float};
use m2m_tensor::safetensors::Plan;

use super::{Capture, Error};
use crate::etdump::{DebugEvent, Event, LoggedTensor, scalar_type, scalar_type_name};

/// A logged value with its place in the profile.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedValue {
    /// Its block; none for a run that is in none.
    pub block: Option<usize>,
    /// An event of the same instruction and the same delegate id, by its index in the block.
    pub event: Option<usize>,
    /// Its run.
    pub run: usize,
    /// Its position in the run.
    pub position: usize,
    /// The runtime's name for it.
    pub name: Option<String>,
    /// The instruction that computed it.
    pub instruction: Option<i32>,
    /// The backend's own id.
    pub delegate: Option<DelegateId>,
    /// Whether it is an output of the program.
    pub output: bool,
    /// The value.
    pub value: Logged,
}

/// What was logged.
#[derive(Clone, Debug, PartialEq)]
pub enum Logged {
    /// A number, a bool, or nothing.
    Literal(Arg),
    /// One tensor, or the members of a list.
    Tensors(Vec<Tensor>),
}

/// A logged tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Unique in the dump: `run1/4`, and with `.2` behind it in a list.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Where its bytes begin in the buffer.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
}

impl<'a> Capture<'a> {
    /// All logged values in the order of the dump. Tensors are held to the size of the buffer where it is there.
    ///
    /// # Errors
    /// [`Error::Value`] and [`Error::Buffer`].
    pub fn logged(&self, buffer: Option<&[u8]>) -> Result<Vec<LoggedValue>, Error> {
        let mut block_of = vec![None; self.dump.runs.len()];
        for (number, block) in self.blocks.iter().enumerate() {
            block.runs.iter().for_each(|run| block_of[*run] = Some(number));
        }
        let mut all = Vec::new();
        for (run, block) in block_of.iter().enumerate() {
            for (position, event) in self.dump.events_of(&self.dump.runs[run]).iter().enumerate() {
                if let Event::Debug(event) = event {
                    all.push(self.logged_value(event, run, position, *block, buffer)?);
                }
            }
        }
        Ok(all)
    }

    fn logged_value(
        &self,
        event: &DebugEvent<'a>,
        run: usize,
        position: usize,
        block: Option<usize>,
        buffer: Option<&[u8]>,
    ) -> Result<LoggedValue, Error> {
        let is_framework = event.chain == u64::MAX;
        let instruction = (!is_framework && event.instruction != -1).then_some(event.instruction);
        let text = || event.delegate_str.filter(|id| !id.is_empty()).map(|id| DelegateId::Str(id.to_owned()));
        let delegate = if event.delegate_int == -1 { text() } else { Some(DelegateId::Int(event.delegate_int)) };
        let output = event.entry.is_output();
        let same = |block: &super::Block<'_>| {
            block.events.iter().position(|found| found.instruction == instruction && found.delegate == delegate)
        };
        Ok(LoggedValue {
            block,
            event: block.filter(|_| instruction.is_some()).and_then(|block| same(&self.blocks[block])),
            run,
            position,
            name: event.name.map(str::to_owned),
            instruction,
            delegate,
            output,
            value: value(event, run, position, buffer)?,
        })
    }

    /// Writes the tensors of logged values to a safetensors file.
    ///
    /// # Errors
    /// [`Error::Tensors`] and [`Error::Io`].
    pub fn write_tensors<W: Write>(&self, logged: &[LoggedValue], buffer: &[u8], out: &mut W) -> Result<(), Error> {
        let mut plan = Plan::new();
        let tensors = || logged.iter().flat_map(LoggedValue::tensors);
        for tensor in tensors() {
            plan.tensor(&tensor.name, tensor.dtype, &tensor.shape)?;
        }
        let places: std::collections::HashMap<&str, &Tensor> =
            tensors().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        plan.write(out, |name, sink| {
            let tensor = places.get(name).ok_or_else(|| std::io::Error::other(format!("{name} was not planned")))?;
            let bytes = usize::try_from(tensor.offset).ok().and_then(|start| {
                let end = start.checked_add(usize::try_from(tensor.bytes).ok()?)?;
                buffer.get(start..end)
            });
            Ok::<(), Error>(sink.write_all(bytes.unwrap_or_default())?)
        })
    }
}

impl LoggedValue {
    /// Its tensors.
    pub fn tensors(&self) -> &[Tensor] {
        match &self.value {
            Logged::Tensors(tensors) => tensors,
            Logged::Literal(_) => &[],
        }
    }
}

fn value(event: &DebugEvent<'_>, run: usize, position: usize, buffer: Option<&[u8]>) -> Result<Logged, Error> {
    let entry = &event.entry;
    let fail = |detail: &str| Error::Value { run, position, kind: entry.kind_name(), detail: detail.to_owned() };
    let without = || fail("without its value");
    let literal = match entry.kind {
        0 => Arg::Null,
        1 => Arg::Int(entry.int.ok_or_else(without)?),
        2 => Arg::Bool(entry.bool.ok_or_else(without)?),
        3 => Arg::Float(Float(shortest(entry.float.ok_or_else(without)?))),
        4 => Arg::Float(Float(entry.double.ok_or_else(without)?)),
        5 | 6 => {
            let tensors = entry.tensors().ok_or_else(without)?;
            let name = |index: usize| match entry.kind {
                5 => format!("run{run}/{position}"),
                _ => format!("run{run}/{position}.{index}"),
            };
            let place = |(index, tensor): (usize, &LoggedTensor)| {
                let found = tensor_at(tensor, name(index)).map_err(|detail| fail(&detail))?;
                let size = buffer.map_or(u64::MAX, |buffer| buffer.len() as u64);
                match found.offset.checked_add(found.bytes) {
                    Some(end) if end <= size => Ok(found),
                    _ => Err(Error::Buffer { run, position, need: found.bytes, offset: tensor.offset, size }),
                }
            };
            return tensors.iter().enumerate().map(place).collect::<Result<_, _>>().map(Logged::Tensors);
        }
        _ => return Err(fail("cannot be logged by any runtime so far")),
    };
    Ok(Logged::Literal(literal))
}

/// The double with the digits of a float, so that widening prints no noise.
pub(super) fn shortest(x: f32) -> f64 {
    x.to_string().parse().unwrap_or_else(|_| f64::from(x))
}

fn tensor_at(tensor: &LoggedTensor, name: String) -> Result<Tensor, String> {
    let kind = || scalar_type_name(tensor.scalar_type);
    let dtype = scalar_type(tensor.scalar_type)
        .ok_or_else(|| format!("of scalar type {}, whose size is not known here", kind()))?;
    let shape: Option<Vec<u64>> = tensor.sizes.iter().map(|size| u64::try_from(*size).ok()).collect();
    let shape = shape.ok_or_else(|| format!("with sizes {:?}", tensor.sizes))?;
    let count = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size));
    let bytes = count.and_then(|count| dtype.bytes_of(count));
    let bytes = bytes.ok_or_else(|| format!("with sizes {:?}, whose product overflows", tensor.sizes))?;
    let offset = match u64::try_from(tensor.offset) {
        Ok(offset) => offset,
        // An empty tensor has no bytes, so it has no place.
        Err(_) if bytes == 0 => 0,
        Err(_) => return Err(format!("at offset {}, though it has {bytes} bytes", tensor.offset)),
    };
    Ok(Tensor { name, dtype, shape, offset, bytes })
}
