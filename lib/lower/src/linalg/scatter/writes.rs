//! The loop that writes: over all writes in order, each a slice of the tensor updated by a `linalg.generic`.

use super::Combine;
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor};
use crate::linalg::elementwise::{self, Operand, into_mlir, scalar_value};
use crate::linalg::reduce::product;
use crate::linalg::scalar::{Scalars, convert};
use crate::linalg::view::convert as convert_tensor;
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Builder, Iter, Map, Size, Value};
use m2m_record::{Arg, DType, Dim, TensorType};
use std::rc::Rc;

/// Where a write goes: from the indices of a write to one place on an axis of the tensor, or none for the whole axis.
pub type Place<'a, 'c> = dyn Fn(&Builder<'c>, &[Value<'c>]) -> Result<Vec<Option<Value<'c>>>> + 'a;

/// What a write takes along an axis of its source.
#[derive(Clone, Copy, Debug)]
pub enum Along<'c> {
    /// One place.
    At(Value<'c>),
    /// All of it, which lies along this axis of the tensor.
    Axis(usize),
}

/// What a write takes: from the indices of a write to the part of its source.
pub type Part<'a, 'c> = dyn Fn(&Builder<'c>, &[Value<'c>]) -> Result<Vec<Along<'c>>> + 'a;

/// All writes to a tensor.
pub struct Writes<'a, 'c> {
    /// One write an index.
    pub domain: Vec<Dim>,
    /// Where each goes.
    pub place: &'a Place<'a, 'c>,
    /// Where elements come from: a tensor, or one number.
    pub source: Operand<'c>,
    /// What each takes of it, if it is a tensor with axes.
    pub part: &'a Part<'a, 'c>,
    /// A factor.
    pub scale: Option<Arg>,
}

/// What a loop does: from the index of a write and the tensors so far to the next ones.
type Body<'a, 'c> = dyn Fn(&Builder<'c>, &[Value<'c>], &[Value<'c>]) -> Result<Vec<Value<'c>>> + 'a;
/// What happens to elements.
type Elements<'a, 'c> = dyn Fn(&Builder<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>> + 'a;

type MlirResult<T> = std::result::Result<T, m2m_mlir::Error>;

/// One value, or none for the whole, along each axis, as a slice.
fn slice_of<'c>(reach: &[Option<Value<'c>>], sizes: &[Size<'c>]) -> [Vec<Size<'c>>; 3] {
    let offsets = reach.iter().map(|at| at.map_or(Size::Static(0), Size::Value)).collect();
    let extents = reach.iter().zip(sizes).map(|(at, size)| if at.is_some() { Size::Static(1) } else { *size });
    [offsets, extents.collect(), vec![Size::Static(1); reach.len()]]
}

/// Tensors after a loop over `domain` in row-major order. One loop with its index taken apart, rather than a nest:
/// IREE cannot follow the sizes of tensors through nested loops.
fn for_each<'c>(cx: &mut Cx<'c>, domain: &[Dim], tensors: &[Value<'c>], body: &Body<'_, 'c>) -> Result<Vec<Value<'c>>> {
    if domain.contains(&Dim::Int(0)) {
        return Ok(tensors.to_vec());
    }
    let sizes = domain.iter().map(|dim| cx.size_value(dim)).collect::<Result<Vec<_>>>()?;
    let total = cx.size_value(&product(domain.iter())?)?;
    let (zero, one) = (cx.b.const_index(0)?, cx.b.const_index(1)?);
    let b = Rc::clone(&cx.b);
    let looped = b.for_loop((zero, total, one), tensors, |b, number, carried| {
        let mut at = Vec::with_capacity(sizes.len());
        let mut rest = number;
        for (axis, size) in sizes.iter().enumerate().rev() {
            at.push(if axis == 0 { rest } else { b.remui(rest, *size)? });
            rest = if axis == 0 { rest } else { b.divui(rest, *size)? };
        }
        at.reverse();
        body(b, &at, carried).map_err(into_mlir)
    })?;
    Ok(looped)
}

/// The elements of a slice of each tensor in `whole` replaced by what the body gives for them.
fn update<'c>(
    b: &Builder<'c>,
    whole: &[Value<'c>],
    [offsets, extents, strides]: &[Vec<Size<'c>>; 3],
    ins: &[(Value<'c>, Map)],
    body: &Elements<'_, 'c>,
) -> MlirResult<Vec<Value<'c>>> {
    let rank = offsets.len();
    let mut outs = Vec::new();
    for tensor in whole {
        let part = if rank == 0 { *tensor } else { b.extract_slice(*tensor, offsets, extents, strides)? };
        outs.push((part, Map::identity(rank)));
    }
    let parts = b.generic(ins, &outs, &vec![Iter::Parallel; rank], |b, v| body(b, v).map_err(into_mlir))?;
    let put = |(part, tensor): (Value<'c>, &Value<'c>)| {
        if rank == 0 { Ok(part) } else { b.insert_slice(part, *tensor, offsets, extents, strides) }
    };
    parts.into_iter().zip(whole).map(put).collect()
}

impl<'c> Writes<'_, 'c> {
    /// The part of the source that a write takes, and how it is read along the axes of the tensor.
    fn taken(
        &self,
        b: &Builder<'c>,
        at: &[Value<'c>],
        sizes: &[Size<'c>],
        rank: usize,
    ) -> Result<Vec<(Value<'c>, Map)>> {
        let Operand::Tensor(t) = &self.source else { return Ok(Vec::new()) };
        if t.rank() == 0 {
            return Ok(vec![(t.value, Map::new(rank, Vec::new()))]);
        }
        let along = (self.part)(b, at)?;
        let reach: Vec<_> = along.iter().map(|a| if let Along::At(at) = a { Some(*at) } else { None }).collect();
        let read = along.iter().map(|a| match a {
            Along::At(_) => MapExpr::Const(0),
            Along::Axis(axis) => MapExpr::Dim(*axis),
        });
        let [offsets, extents, strides] = slice_of(&reach, sizes);
        let part = b.extract_slice(t.value, &offsets, &extents, &strides)?;
        Ok(vec![(part, Map::new(rank, read.collect()))])
    }

    /// The tensor with the neutral element at every place that is written.
    fn cleared(
        &self,
        cx: &mut Cx<'c>,
        whole: &[Value<'c>],
        sizes: &[Size<'c>],
        dtype: DType,
        combine: Combine,
    ) -> Result<Vec<Value<'c>>> {
        for_each(cx, &self.domain, whole, &|b, at, whole| {
            let slice = slice_of(&(self.place)(b, at)?, sizes);
            let clear = |b: &Builder<'c>, _: &[Value<'c>]| Ok(vec![combine.neutral(&Scalars::new(b, dtype))?]);
            Ok(update(b, whole, &slice, &[], &clear)?)
        })
    }

    /// The element that is written, in the type that the tensor is written in.
    fn element(&self, s: &Scalars<'_, 'c>, taken: Option<Value<'c>>) -> Result<Value<'c>> {
        let x = match (&self.source, taken) {
            (Operand::Tensor(t), Some(x)) => convert(s.b, x, t.dtype, s.dtype)?,
            (Operand::Tensor(_), None) => return Err(Error::Graph("a source that is not read".into())),
            (Operand::Scalar(kind, value), _) => scalar_value(s, *kind, *value)?,
            (Operand::Literal(arg), _) => s.literal(arg)?,
        };
        self.scale.as_ref().map_or(Ok(x), |scale| s.mul(x, s.literal(scale)?))
    }
}

/// Writes to `t`. Where its own elements do not count (`includes_self` is false), written places start from the neutral
/// element.
pub fn write<'c>(
    cx: &mut Cx<'c>,
    t: &Tensor<'c>,
    writes: &Writes<'_, 'c>,
    combine: Combine,
    includes_self: bool,
) -> Result<Tensor<'c>> {
    let (dtype, rank) = (combine.dtype(t.dtype), t.rank());
    let own = TensorType::new(t.dtype, t.shape.clone());
    let start = convert_tensor(cx, t.clone(), &TensorType::new(dtype, t.shape.clone()))?;
    let sizes = cx.sizes(&t.shape)?;
    let source_sizes = if let Operand::Tensor(source) = &writes.source { cx.sizes(&source.shape)? } else { Vec::new() };
    let mut whole = vec![start.value];
    if !includes_self && combine != Combine::Replace {
        whole = writes.cleared(cx, &whole, &sizes, dtype, combine)?;
    }
    if combine == Combine::Mean {
        let first = Scalars::new(&cx.b, DType::I64).int(i64::from(includes_self))?;
        whole.push(cx.filled(DType::I64, &t.shape, first)?);
    }
    let written = for_each(cx, &writes.domain, &whole, &|b, at, whole| {
        let slice = slice_of(&(writes.place)(b, at)?, &sizes);
        let ins = writes.taken(b, at, &source_sizes, rank)?;
        let step = |b: &Builder<'c>, v: &[Value<'c>]| {
            let s = Scalars::new(b, dtype);
            let (taken, old) = v.split_at(ins.len());
            let new = writes.element(&s, taken.first().copied())?;
            let mut next = vec![combine.step(&s, old[0], new)?];
            if let Some(count) = old.get(1) {
                next.push(b.addi(*count, Scalars::new(b, DType::I64).int(1)?)?);
            }
            Ok(next)
        };
        Ok(update(b, whole, &slice, &ins, &step)?)
    })?;
    let sum = Tensor { value: written[0], dtype, shape: t.shape.clone() };
    match written.get(1) {
        None => convert_tensor(cx, sum, &own),
        Some(counts) => mean(cx, sum, *counts, &own),
    }
}

/// Sums divided by counts, rounded down for integers; a count of 0 leaves the sum.
fn mean<'c>(cx: &mut Cx<'c>, sum: Tensor<'c>, counts: Value<'c>, own: &TensorType) -> Result<Tensor<'c>> {
    let dtype = sum.dtype;
    let counts = Tensor { value: counts, dtype: DType::I64, shape: sum.shape.clone() };
    elementwise::emit(cx, own, &[Operand::Tensor(sum), Operand::Tensor(counts)], dtype, dtype, |s, v| {
        let count = s.maximum(v[1], s.int(1)?)?;
        if s.is_float() { s.div(v[0], count) } else { s.floor_div(v[0], count) }
    })
}
