//! Writing to places that tensors name: nested `scf.for` over all writes, in order, so that what comes later wins and
//! what meets at one place is combined.
//!
//! Sums, products and means accumulate in f32 for half types and round once. Places count from the end where negative and
//! are kept inside of the tensor. `put` has the operators that take a list of index tensors, `slices` those that write
//! one contiguous part, `rows` those whose index names positions of one axis.

pub mod put;
pub mod rows;
pub mod slices;

use super::cx::{Cx, Tensor, Val, axis_of};
use super::elementwise::{self, Operand, into_mlir, scalar_value};
use super::index::{extents, integers, wrapped};
use super::reduce::arg::at_least_1d;
use super::scalar::{Scalars, accumulate_dtype, convert};
use super::view::{convert as convert_tensor, reshape};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{Arg, DType, Dim, Node, TensorType};
use std::rc::Rc;

/// What happens at a place that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The new element takes the place of the old.
    Replace,
    /// Their sum.
    Add,
    /// Their product.
    Multiply,
    /// The mean of all that meets there.
    Mean,
    /// The greater; NaN wins.
    Max,
    /// The lesser; NaN wins.
    Min,
}

impl Combine {
    /// By the name that an operator's `reduce` argument gives.
    pub fn named(name: &str) -> Result<Self> {
        Ok(match name {
            "sum" | "add" => Combine::Add,
            "prod" | "multiply" => Combine::Multiply,
            "mean" => Combine::Mean,
            "amax" => Combine::Max,
            "amin" => Combine::Min,
            other => return Err(Error::unsupported(format!("reduce={other:?}"))),
        })
    }

    /// The type of the tensor that is written to.
    fn dtype(self, dtype: DType) -> DType {
        if self == Combine::Replace { dtype } else { accumulate_dtype(dtype) }
    }

    fn step<'c>(self, s: &Scalars<'_, 'c>, old: Value<'c>, new: Value<'c>) -> Result<Value<'c>> {
        match self {
            Combine::Replace => Ok(new),
            Combine::Add | Combine::Mean => s.add(old, new),
            Combine::Multiply => s.mul(old, new),
            Combine::Max => s.maximum(old, new),
            Combine::Min => s.minimum(old, new),
        }
    }

    /// The element that changes nothing.
    fn neutral<'c>(self, s: &Scalars<'_, 'c>) -> Result<Value<'c>> {
        match self {
            Combine::Replace | Combine::Add | Combine::Mean => s.int(0),
            Combine::Multiply => s.int(1),
            Combine::Max => s.lowest(),
            Combine::Min => s.highest(),
        }
    }
}

/// Where writes go: from the indices of a write to a place in the tensor.
pub type Place<'a, 'c> = dyn Fn(&Builder<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>> + 'a;
/// What is written: from the indices of a write to an element, of the type that the tensor is written in.
pub type Element<'a, 'c> = dyn Fn(&Builder<'c>, &[Value<'c>]) -> Result<Value<'c>> + 'a;

type MlirResult<T> = std::result::Result<T, m2m_mlir::Error>;

/// Loops over a domain, carrying tensors.
fn nest<'c>(
    b: &Builder<'c>,
    bounds: &[Value<'c>],
    at: &mut Vec<Value<'c>>,
    carried: &[Value<'c>],
    body: &dyn Fn(&Builder<'c>, &[Value<'c>], &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> MlirResult<Vec<Value<'c>>> {
    let Some((bound, rest)) = bounds.split_first() else {
        return body(b, at, carried).map_err(into_mlir);
    };
    let (zero, one) = (b.const_index(0)?, b.const_index(1)?);
    b.for_loop((zero, *bound, one), carried, |b, index, carried| {
        at.push(index);
        let next = nest(b, rest, at, carried, body);
        at.pop();
        next
    })
}

/// Tensors after a loop over `domain` in row-major order.
fn for_each<'c>(
    cx: &mut Cx<'c>,
    domain: &[Dim],
    tensors: &[Value<'c>],
    body: &dyn Fn(&Builder<'c>, &[Value<'c>], &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> Result<Vec<Value<'c>>> {
    if domain.contains(&Dim::Int(0)) {
        return Ok(tensors.to_vec());
    }
    let bounds = domain.iter().map(|dim| cx.size_value(dim)).collect::<Result<Vec<_>>>()?;
    let b = Rc::clone(&cx.b);
    Ok(nest(&b, &bounds, &mut Vec::new(), tensors, body)?)
}

/// Writes `element` of every index in `domain` to its `place` in `t`. Where the tensor's own elements do not count
/// (`includes_self` is false), written places start from the neutral element.
pub fn write<'c>(
    cx: &mut Cx<'c>,
    t: &Tensor<'c>,
    domain: &[Dim],
    combine: Combine,
    includes_self: bool,
    place: &Place<'_, 'c>,
    element: &Element<'_, 'c>,
) -> Result<Tensor<'c>> {
    let dtype = combine.dtype(t.dtype);
    let own = TensorType::new(t.dtype, t.shape.clone());
    let start = convert_tensor(cx, t.clone(), &TensorType::new(dtype, t.shape.clone()))?;
    let mut value = start.value;
    if !includes_self && combine != Combine::Replace {
        let neutral = combine.neutral(&Scalars::new(&cx.b, dtype))?;
        let cleared =
            for_each(cx, domain, &[value], &|b, at, whole| Ok(vec![b.insert(neutral, whole[0], &place(b, at)?)?]))?;
        value = cleared[0];
    }
    let mut whole = vec![value];
    if combine == Combine::Mean {
        let first = Scalars::new(&cx.b, DType::I64).int(i64::from(includes_self))?;
        whole.push(cx.filled(DType::I64, &t.shape, first)?);
    }
    let written = for_each(cx, domain, &whole, &|b, at, whole| {
        let (place, new) = (place(b, at)?, element(b, at)?);
        let old = if combine == Combine::Replace { new } else { b.extract(whole[0], &place)? };
        let next = combine.step(&Scalars::new(b, dtype), old, new)?;
        let mut next = vec![b.insert(next, whole[0], &place)?];
        if let Some(counts) = whole.get(1) {
            let count = b.extract(*counts, &place)?;
            let more = b.addi(count, Scalars::new(b, DType::I64).int(1)?)?;
            next.push(b.insert(more, *counts, &place)?);
        }
        Ok(next)
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

/// An operand's element at a place, in a type. The place is that of the operand's own axes.
pub fn element_of<'c>(b: &Builder<'c>, operand: &Operand<'c>, at: &[Value<'c>], dtype: DType) -> Result<Value<'c>> {
    let s = Scalars::new(b, dtype);
    match operand {
        Operand::Tensor(t) => convert(b, b.extract(t.value, at)?, t.dtype, dtype),
        Operand::Scalar(kind, value) => scalar_value(&s, *kind, *value),
        Operand::Literal(arg) => s.literal(arg),
    }
}

/// What `scatter` writes: a tensor of at least one axis, or a number.
fn source<'c>(cx: &mut Cx<'c>, arg: &Arg) -> Result<Operand<'c>> {
    Ok(match Operand::of(cx, arg)? {
        Operand::Tensor(t) => Operand::Tensor(at_least_1d(cx, &t)?),
        number => number,
    })
}

/// `out[…, index[i, j, …], …] = source[i, j, …]` over the indices of `index`, which replaces the place on axis `dim`.
fn scatter<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    bound: &Bound,
    source_name: &str,
    combine: Combine,
    includes_self: bool,
) -> Result<Vec<Val<'c>>> {
    let shape = cx.result_type(node, 0)?.shape.clone();
    let (t, index) = (cx.tensor(bound.tensor("self")?)?, integers(cx, bound.tensor("index")?)?);
    if t.dtype.is_complex() {
        return Err(Error::unsupported(format!("{} of {} elements", bound.op(), t.dtype)));
    }
    let axis = axis_of(t.rank().max(index.rank()), bound.int("dim")?)?;
    let (t, index) = (at_least_1d(cx, &t)?, at_least_1d(cx, &index)?);
    let source = source(cx, bound.arg(source_name)?)?;
    let extent = extents(cx, &t)?[axis];
    let dtype = combine.dtype(t.dtype);
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        let mut place = at.to_vec();
        place[axis] = wrapped(b, b.extract(index.value, at)?, index.dtype, extent)?;
        Ok(place)
    };
    let element = |b: &Builder<'c>, at: &[Value<'c>]| element_of(b, &source, at, dtype);
    let written = write(cx, &t, &index.shape, combine, includes_self, &place, &element)?;
    Ok(vec![Val::Tensor(reshape(cx, &written, &shape)?)])
}

/// `scatter(self, dim, index, src)`
pub fn scatter_src<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    scatter(cx, node, bound, "src", Combine::Replace, true)
}

/// `scatter(self, dim, index, value)`
pub fn scatter_value<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    scatter(cx, node, bound, "value", Combine::Replace, true)
}

/// `scatter(self, dim, index, src, reduce)`: `reduce` is `add` or `multiply`.
pub fn scatter_reduced<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    scatter(cx, node, bound, "src", Combine::named(bound.str("reduce")?)?, true)
}

/// `scatter(self, dim, index, value, reduce)`
pub fn scatter_value_reduced<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    scatter(cx, node, bound, "value", Combine::named(bound.str("reduce")?)?, true)
}

/// `scatter_add(self, dim, index, src)`
pub fn scatter_add<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    scatter(cx, node, bound, "src", Combine::Add, true)
}

/// `scatter_reduce(self, dim, index, src, reduce, include_self)`: `reduce` is `sum`, `prod`, `mean`, `amax` or `amin`.
pub fn scatter_reduce<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let combine = Combine::named(bound.str("reduce")?)?;
    scatter(cx, node, bound, "src", combine, bound.bool("include_self")?)
}
