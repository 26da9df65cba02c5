//! Every index of a program leads to something of the right kind, and every tensor fits into what holds it.

use super::schema::{
    Chain, DataLocation, EValue, ExecutionPlan, Instruction, Tensor, TensorDataLocation, tensor_bytes,
};
use super::{Error, Program};
use std::collections::HashMap;

/// Checks a program whose segments and parts have been placed.
pub(super) fn program(program: &Program<'_>) -> Result<(), Error> {
    let segments = program.segments().len();
    for (index, data) in program.stored().program.named_data.iter().flatten().enumerate() {
        let place = || format!("named_data[{index}].segment_index");
        bound(place, i64::from(data.segment_index), segments, "segments")?;
        required(data.key, || format!("named_data[{index}].key"))?;
    }
    let mut names = HashMap::new();
    for (number, method) in program.plans().iter().enumerate() {
        let name = required(method.name, || format!("execution_plan[{number}].name"))?;
        if let Some(first) = names.insert(name, number) {
            return Err(Error::SameName { first, second: number, name: name.to_owned() });
        }
        Plan { program, method, number }.check()?;
    }
    Ok(())
}

fn required<T>(found: Option<T>, place: impl Fn() -> String) -> Result<T, Error> {
    found.ok_or_else(|| Error::Missing { place: place() })
}

fn bound(place: impl Fn() -> String, found: i64, count: usize, what: &'static str) -> Result<usize, Error> {
    match usize::try_from(found) {
        Ok(index) if index < count => Ok(index),
        _ => Err(Error::Index { place: place(), found, count, what }),
    }
}

/// A method being checked.
#[derive(Clone, Copy)]
struct Plan<'p, 'a> {
    program: &'p Program<'a>,
    method: &'p ExecutionPlan<'a>,
    number: usize,
}

impl Plan<'_, '_> {
    fn check(self) -> Result<(), Error> {
        let values = self.method.values.as_deref().unwrap_or_default();
        for (index, value) in values.iter().enumerate() {
            self.value(index, value)?;
        }
        for (field, list) in [("inputs", &self.method.inputs), ("outputs", &self.method.outputs)] {
            self.values(|| self.place(field), list.as_deref().unwrap_or_default())?;
        }
        for (index, delegate) in self.method.delegates.iter().flatten().enumerate() {
            let place = |field: &str| self.place(&format!("delegates[{index}].{field}"));
            required(delegate.id, || place("id"))?;
            let reference = required(delegate.processed.as_ref(), || place("processed"))?;
            let tables = &self.program.stored().program;
            let (count, what) = match reference.location {
                DataLocation::INLINE => {
                    (tables.backend_delegate_data.as_ref().map_or(0, Vec::len), "payloads in backend_delegate_data")
                }
                DataLocation::SEGMENT => (self.program.segments().len(), "segments"),
                other => return Err(Error::Unknown { place: place("processed.location"), tag: other.0 as u8 }),
            };
            bound(|| place("processed.index"), i64::from(reference.index), count, what)?;
        }
        for (index, operator) in self.method.operators.iter().flatten().enumerate() {
            required(operator.name, || self.place(&format!("operators[{index}].name")))?;
        }
        self.method.chains.iter().flatten().enumerate().try_for_each(|(number, chain)| self.chain(number, chain))
    }

    fn place(self, field: &str) -> String {
        format!("execution_plan[{}].{field}", self.number)
    }

    fn count(self) -> usize {
        self.method.values.as_ref().map_or(0, Vec::len)
    }

    fn values(self, place: impl Fn() -> String, list: &[i32]) -> Result<(), Error> {
        list.iter().try_for_each(|index| bound(&place, i64::from(*index), self.count(), "values").map(drop))
    }

    fn chain(self, number: usize, chain: &Chain<'_>) -> Result<(), Error> {
        let instructions = chain.instructions.as_deref().unwrap_or_default();
        let call = |place: &dyn Fn() -> String, index: i32, count: usize, what, args: &Option<Vec<i32>>| {
            bound(place, i64::from(index), count, what)?;
            self.values(place, args.as_deref().unwrap_or_default())
        };
        for (index, instruction) in instructions.iter().enumerate() {
            let place = || self.place(&format!("chains[{number}].instructions[{index}]"));
            match instruction {
                Instruction::KernelCall(it) => {
                    let count = self.method.operators.as_ref().map_or(0, Vec::len);
                    call(&place, it.op_index, count, "operators", &it.args)?;
                }
                Instruction::DelegateCall(it) => {
                    let count = self.method.delegates.as_ref().map_or(0, Vec::len);
                    call(&place, it.delegate_index, count, "delegates", &it.args)?;
                }
                Instruction::MoveCall(it) => self.values(place, &[it.move_from, it.move_to])?,
                Instruction::JumpFalseCall(it) => {
                    self.values(place, &[it.cond_value_index])?;
                    // A jump behind the last instruction ends the chain.
                    bound(place, i64::from(it.destination_instruction), instructions.len() + 1, "places to jump to")?;
                }
                Instruction::FreeCall(it) => self.values(place, &[it.value_index])?,
                Instruction::None => return Err(Error::Missing { place: place() }),
                Instruction::Unknown(tag) => return Err(Error::Unknown { place: place(), tag: *tag }),
            }
        }
        Ok(())
    }

    fn value(self, index: usize, value: &EValue<'_>) -> Result<(), Error> {
        let place = || self.place(&format!("values[{index}]"));
        match value {
            EValue::IntList(Some(items)) => {
                items.iter().try_for_each(|item| self.member(&place, *item, "Int", |it| matches!(it, EValue::Int(_))))
            }
            EValue::TensorList(Some(items)) => items.iter().try_for_each(|item| {
                self.member(&place, i64::from(*item), "Tensor", |it| matches!(it, EValue::Tensor(_)))
            }),
            EValue::OptionalTensorList(Some(items)) => items.iter().try_for_each(|item| {
                let right = |it: &EValue<'_>| matches!(it, EValue::Tensor(_) | EValue::Null | EValue::None);
                self.member(&place, i64::from(*item), "Tensor or Null", right)
            }),
            EValue::Tensor(tensor) => self.tensor(&place, tensor),
            EValue::Unknown(tag) => Err(Error::Unknown { place: place(), tag: *tag }),
            _ => Ok(()),
        }
    }

    fn member(
        self,
        place: &impl Fn() -> String,
        index: i64,
        expected: &'static str,
        is_right: impl Fn(&EValue<'_>) -> bool,
    ) -> Result<(), Error> {
        let at = bound(place, index, self.count(), "values")?;
        let Some(value) = self.method.values.as_ref().and_then(|all| all.get(at)) else { return Ok(()) };
        if is_right(value) {
            return Ok(());
        }
        Err(Error::Type { place: place(), index, found: value.type_name().unwrap_or("unknown"), expected })
    }

    fn tensor(self, place: &impl Fn() -> String, tensor: &Tensor<'_>) -> Result<(), Error> {
        let sizes = tensor.sizes.as_deref().unwrap_or_default();
        let order = tensor.dim_order.as_deref().unwrap_or_default();
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted.len() != sizes.len() || sorted.iter().enumerate().any(|(at, dim)| at != usize::from(*dim)) {
            return Err(Error::DimOrder { place: place(), sizes: sizes.len(), found: order.to_vec() });
        }
        if sizes.iter().any(|size| *size < 0) {
            return Err(Error::Sizes { place: place(), sizes: sizes.to_vec() });
        }
        let bytes = match tensor.scalar_type.size_bytes() {
            // Packed and unknown types: their extent is their backend's affair.
            None => 0,
            Some(_) => tensor_bytes(tensor.scalar_type, sizes)
                .ok_or_else(|| Error::Sizes { place: place(), sizes: sizes.to_vec() })?,
        };
        let extra = tensor.extra_tensor_info.as_ref();
        if extra.is_some_and(|extra| extra.location == TensorDataLocation::EXTERNAL) {
            return required(extra.and_then(|it| it.fully_qualified_name), || {
                format!("{}.extra_tensor_info.fully_qualified_name", place())
            })
            .map(drop);
        }
        let index = i64::from(tensor.data_buffer_idx);
        match (&tensor.allocation_info, tensor.data_buffer_idx) {
            (None, 0) => Ok(()),
            (None, _) => {
                let parts = self.program.constants();
                let at = bound(|| format!("{}.data_buffer_idx", place()), index, parts.len(), "constants")?;
                let holder = || format!("constant {at}");
                self.fits(place, bytes, 0, holder, parts.get(at).map_or(0, |part| part.range.bytes))
            }
            (Some(planned), data) => {
                if data > 0 {
                    let all = self.program.mutable_data();
                    let which = extra.map_or(0, |extra| extra.mutable_data_segments_idx);
                    let which = i64::try_from(which).unwrap_or(i64::MAX);
                    let at = bound(place, which, all.len(), "mutable data segments")?;
                    let parts = all.get(at).map(Vec::as_slice).unwrap_or_default();
                    let at = bound(|| format!("{}.data_buffer_idx", place()), index, parts.len(), "initial states")?;
                    let size = parts.get(at).map_or(0, |part| part.range.bytes);
                    self.fits(place, bytes, 0, || format!("initial state {at}"), size)?;
                }
                let sizes = self.method.non_const_buffer_sizes.as_deref().unwrap_or_default();
                let memory = i64::from(planned.memory_id);
                let memory = bound(|| format!("{}.memory_id", place()), memory, sizes.len(), "planned buffers")?;
                let offset = u64::from(planned.memory_offset_high) << 32 | u64::from(planned.memory_offset_low);
                let size = sizes.get(memory).and_then(|size| u64::try_from(*size).ok()).unwrap_or(0);
                self.fits(place, bytes, offset, || format!("planned buffer {memory}"), size)
            }
        }
    }

    fn fits(
        self,
        place: &impl Fn() -> String,
        bytes: u64,
        offset: u64,
        holder: impl Fn() -> String,
        size: u64,
    ) -> Result<(), Error> {
        match offset.checked_add(bytes) {
            Some(end) if end <= size => Ok(()),
            _ => Err(Error::Extent { place: place(), bytes, offset, holder: holder(), size }),
        }
    }
}
