//! Writing to places that tensors name: one `scf.for` over all writes, in order, so that what comes later wins and what
//! meets at one place is combined. A write reaches one place of some axes and the whole of the others, as a slice.
//!
//! Sums, products and means accumulate in f32 for half types and round once. Places count from the end where negative and
//! are kept inside of the tensor. `put` has the operators that take a list of index tensors, `slices` those that write
//! one contiguous part, `rows` those whose index names positions of one axis.

pub mod count;
pub mod put;
pub mod rows;
pub mod slices;
mod writes;

pub use writes::{Along, Writes, write};

use super::cx::{Cx, Val, axis_of, need_rank};
use super::elementwise::Operand;
use super::index::{integers, wrapped};
use super::reduce::arg::at_least_1d;
use super::scalar::{Scalars, accumulate_dtype};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{Arg, DType, Dim, Node};

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
    pub fn dtype(self, dtype: DType) -> DType {
        if self == Combine::Replace { dtype } else { accumulate_dtype(dtype) }
    }

    /// What stands at a place after `new` meets `old`.
    pub fn step<'c>(self, s: &Scalars<'_, 'c>, old: Value<'c>, new: Value<'c>) -> Result<Value<'c>> {
        match self {
            Combine::Replace => Ok(new),
            Combine::Add | Combine::Mean => s.add(old, new),
            Combine::Multiply => s.mul(old, new),
            Combine::Max => s.maximum(old, new),
            Combine::Min => s.minimum(old, new),
        }
    }

    /// The element that changes nothing.
    pub fn neutral<'c>(self, s: &Scalars<'_, 'c>) -> Result<Value<'c>> {
        match self {
            Combine::Replace | Combine::Add | Combine::Mean => s.int(0),
            Combine::Multiply => s.int(1),
            Combine::Max => s.lowest(),
            Combine::Min => s.highest(),
        }
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
    let axis = axis_of(t.rank().max(index.rank()), bound.int("dim")?)?;
    let (t, index) = (at_least_1d(cx, &t)?, at_least_1d(cx, &index)?);
    if index.rank() != t.rank() && index.shape.contains(&Dim::Int(0)) {
        // Nothing is written, so the ranks may differ.
        return Ok(vec![Val::Tensor(reshape(cx, &t, &shape)?)]);
    }
    need_rank("an index", &index.shape, t.rank())?;
    let source = source(cx, bound.arg(source_name)?)?;
    let extent = cx.size_value(&t.shape[axis])?;
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        let mut place: Vec<_> = at.iter().copied().map(Some).collect();
        place[axis] = Some(wrapped(b, b.extract(index.value, at)?, index.dtype, extent)?);
        Ok(place)
    };
    let part = |_: &Builder<'c>, at: &[Value<'c>]| Ok(at.iter().copied().map(Along::At).collect());
    let writes = Writes { domain: index.shape.clone(), place: &place, source, part: &part, scale: None };
    let written = write(cx, &t, &writes, combine, includes_self)?;
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
