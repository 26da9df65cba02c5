//! Storages, and the tensors that see them.

use super::step::Step;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, State};
use crate::value::{V, shape_of};
use m2m_record::{Arg, Data, Input, TensorType, Type};
use std::collections::HashMap;

/// One piece of memory: the tensor that it was made for, and that tensor's present value.
struct Storage {
    value: V,
    generation: u64,
    /// The inputs that it belongs to: several where they are the same bytes.
    inputs: Vec<String>,
    is_written: bool,
}

/// How an old value sees its storage.
#[derive(Clone)]
struct Slot {
    storage: usize,
    steps: Vec<Step>,
    /// The generation of the storage that the value's present name is of.
    generation: u64,
}

/// Who shares memory with whom.
#[derive(Default)]
pub(crate) struct Aliases {
    storages: Vec<Storage>,
    slots: HashMap<String, Slot>,
    /// Inputs whose bytes are those of another input too.
    tied: HashMap<String, String>,
}

impl Aliases {
    /// Gives every tensor input its storage. Inputs that are the same bytes share one; those that overlap otherwise are
    /// remembered, for a write to them cannot be followed.
    pub fn new(inputs: &[Input]) -> Self {
        let mut aliases = Aliases::default();
        let mut owners: HashMap<(&str, u64), Vec<&Input>> = HashMap::new();
        for input in inputs {
            let Type::Tensor(ty) = &input.ty else { continue };
            let Ok(shape) = shape_of(ty) else { continue };
            let others = match &input.data {
                Some(Data::Range { file, storage: Some(storage), bytes, .. }) if *bytes > 0 => {
                    let others = owners.entry((file, *storage)).or_default();
                    others.push(input);
                    others.split_last().map_or(&[] as &[&Input], |(_, rest)| rest)
                }
                _ => &[],
            };
            if let Some(same) = others.iter().find(|o| o.data == input.data && o.ty == input.ty) {
                aliases.view(&input.value, &same.value, Vec::new());
                let at = aliases.slots.get(&same.value).map(|s| s.storage);
                if let Some(storage) = at.and_then(|at| aliases.storages.get_mut(at)) {
                    storage.inputs.push(input.value.clone());
                }
                continue;
            }
            for other in others {
                aliases.tied.insert(input.value.clone(), other.value.clone());
                aliases.tied.insert(other.value.clone(), input.value.clone());
            }
            let value = V { name: input.value.clone(), dtype: ty.dtype, shape };
            aliases.own(&input.value, value, vec![input.value.clone()]);
        }
        aliases
    }

    /// A value in memory of its own.
    pub fn fresh(&mut self, old: &str, value: V) {
        self.own(old, value, Vec::new());
    }

    fn own(&mut self, old: &str, value: V, inputs: Vec<String>) {
        let storage = self.storages.len();
        self.storages.push(Storage { value, generation: 0, inputs, is_written: false });
        self.slots.insert(old.to_owned(), Slot { storage, steps: Vec::new(), generation: 0 });
    }

    /// A value that sees the memory of `base` through further steps.
    pub fn view(&mut self, old: &str, base: &str, steps: Vec<Step>) {
        if let Some(slot) = self.slots.get(base).cloned() {
            let steps = slot.steps.iter().cloned().chain(steps).collect();
            self.slots.insert(old.to_owned(), Slot { steps, ..slot });
        }
    }

    /// Makes an old value's name stand for its present value, making the view anew after a write.
    pub fn sync(&mut self, state: &mut State<'_>, old: &str) -> Result<(), Error> {
        let Some(slot) = self.slots.get_mut(old) else { return Ok(()) };
        let Some(storage) = self.storages.get(slot.storage) else { return Ok(()) };
        if slot.generation == storage.generation {
            return Ok(());
        }
        let mut origins: Vec<String> = slot.steps.iter().map(|s| s.node.clone()).collect();
        origins.dedup();
        let mut value = storage.value.clone();
        let mut e = Expander::new(state, origins, "functionalize".into(), old.to_owned());
        for step in &slot.steps {
            value = step.apply(&mut e, &value)?;
        }
        slot.generation = storage.generation;
        state.rewriter.bind(old, Arg::value(value.name));
        Ok(())
    }

    /// Says that the memory that `old` sees now holds `new`.
    pub fn write(&mut self, e: &mut Expander<'_, '_>, old: &str, new: &V) -> Result<(), Error> {
        let slot = self.slots.get_mut(old).ok_or_else(|| Error::unsupported(format!("{old} has no known memory")))?;
        let storage = self
            .storages
            .get_mut(slot.storage)
            .ok_or_else(|| Error::unsupported(format!("{old} has no known memory")))?;
        if let Some((input, other)) = storage.inputs.iter().find_map(|i| self.tied.get_key_value(i)) {
            let message = format!("it writes to {input}, which shares some of its bytes with {other}");
            return Err(Error::unsupported(message));
        }
        let mut parents = vec![storage.value.clone()];
        for step in slot.steps.iter().rev().skip(1).rev() {
            if let Some(parent) = parents.last().cloned() {
                parents.push(step.apply(e, &parent)?);
            }
        }
        let mut value = new.clone();
        for (step, parent) in slot.steps.iter().zip(&parents).rev() {
            value = step.invert(e, parent, &value)?;
        }
        storage.value = value;
        storage.generation += 1;
        storage.is_written = true;
        slot.generation = storage.generation;
        e.state.rewriter.bind(old, Arg::value(new.name.clone()));
        Ok(())
    }

    /// The inputs that were written to, with their values at the end; those of the same bytes together.
    pub fn written(&self) -> impl Iterator<Item = (&[String], &V)> {
        let written = self.storages.iter().filter(|s| s.is_written && !s.inputs.is_empty());
        written.map(|s| (s.inputs.as_slice(), &s.value))
    }
}

/// Whether a result shares memory with an argument, as far as the types tell; `None` where they do not.
pub(crate) fn shares(b: &Bound<'_>, old_input: &TensorType, result: &Type) -> Option<bool> {
    let Type::Tensor(result) = result else { return Some(false) };
    let name = b.op().split('.').nth(1).unwrap_or("");
    match name {
        "dropout" | "alpha_dropout" | "feature_dropout" | "feature_alpha_dropout" => {
            Some(!b.bool("train").unwrap_or(true) || b.float("p") == Ok(0.0))
        }
        "type_as" => Some(result.dtype == old_input.dtype),
        // A tensor that lies in the wanted format already is handed on; any other is copied into it.
        "to" => {
            let is_as_wanted = result.dtype == old_input.dtype && result.strides == old_input.strides;
            Some(is_as_wanted && !b.bool("copy").unwrap_or(false))
        }
        "contiguous" => Some(result.strides == old_input.strides),
        "reshape" | "reshape_as" | "flatten" | "ravel" => is_viewable(old_input, result),
        "broadcast_tensors" | "meshgrid" | "atleast_1d" => Some(true),
        _ => Some(b.schema.is_view()),
    }
}

/// Whether a tensor with these strides can be seen in another shape without a copy; `None` for symbolic ones.
/// Source: the rule of `torch.Tensor.view`.
fn is_viewable(from: &TensorType, to: &TensorType) -> Option<bool> {
    let Some(strides) = &from.strides else { return Some(true) };
    let ints = |dims: &[m2m_record::Dim]| dims.iter().map(m2m_record::Dim::as_int).collect::<Option<Vec<i64>>>();
    let (shape, strides, target) = (ints(&from.shape)?, ints(strides)?, ints(&to.shape)?);
    let mut dims: Vec<(i64, i64)> = shape.into_iter().zip(strides).filter(|(size, _)| *size != 1).collect();
    // Neighbours that lie one inside the other in memory are one dimension.
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (size, stride) in dims.drain(..) {
        match joined.last_mut() {
            Some((s, t)) if *t == stride.checked_mul(size)? => (*s, *t) = (s.checked_mul(size)?, stride),
            _ => joined.push((size, stride)),
        }
    }
    let mut target = target.into_iter().filter(|s| *s != 1);
    for (size, _) in joined {
        let mut left = size;
        while left > 1 {
            let part = target.next()?;
            if part == 0 || left % part != 0 {
                return Some(false);
            }
            left /= part;
        }
    }
    Some(true)
}
