//! Writes whose index names positions of one axis: `index_add`, `index_copy`, `index_fill`, `index_reduce`.

use super::{Combine, element_of, source, write};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::Operand;
use crate::linalg::index::{integers, wrapped};
use crate::linalg::reduce::arg::at_least_1d;
use crate::linalg::scalar::Scalars;
use crate::linalg::view::reshape;
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{Arg, Node};

/// `out[…, index[i], …] = source[…, i, …]`, each source element times `alpha` where there is one.
fn rows<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    bound: &Bound,
    source_name: &str,
    combine: Combine,
    includes_self: bool,
    alpha: Option<&Arg>,
) -> Result<Vec<Val<'c>>> {
    let shape = cx.result_type(node, 0)?.shape.clone();
    let t = cx.tensor(bound.tensor("self")?)?;
    if t.dtype.is_complex() {
        return Err(Error::unsupported(format!("{} of {} elements", bound.op(), t.dtype)));
    }
    let axis = t.axis(bound.int("dim")?)?;
    let t = at_least_1d(cx, &t)?;
    let index = integers(cx, bound.tensor("index")?)?;
    let index = at_least_1d(cx, &index)?;
    let source = source(cx, bound.arg(source_name)?)?;
    let mut domain = t.shape.clone();
    domain[axis] = index.shape[0].clone();
    let extent = cx.size_value(&t.shape[axis])?;
    let dtype = combine.dtype(t.dtype);
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        let mut place = at.to_vec();
        place[axis] = wrapped(b, b.extract(index.value, &[at[axis]])?, index.dtype, extent)?;
        Ok(place)
    };
    let element = |b: &Builder<'c>, at: &[Value<'c>]| {
        let at = if is_number(&source) { &[] } else { at };
        let x = element_of(b, &source, at, dtype)?;
        let s = Scalars::new(b, dtype);
        alpha.map_or(Ok(x), |alpha| s.mul(x, s.literal(alpha)?))
    };
    let written: Tensor<'c> = write(cx, &t, &domain, combine, includes_self, &place, &element)?;
    Ok(vec![Val::Tensor(reshape(cx, &written, &shape)?)])
}

/// Whether a source is one number for all places: `index_fill` takes it as a 0-d tensor too.
fn is_number(source: &Operand<'_>) -> bool {
    !matches!(source, Operand::Tensor(t) if t.rank() > 0)
}

/// `index_add(self, dim, index, source, alpha)`
pub fn index_add<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let alpha = bound.arg("alpha")?.clone();
    let alpha = (alpha != Arg::Int(1)).then_some(&alpha);
    rows(cx, node, bound, "source", Combine::Add, true, alpha)
}

/// `index_copy(self, dim, index, source)`
pub fn index_copy<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    rows(cx, node, bound, "source", Combine::Replace, true, None)
}

/// `index_reduce(self, dim, index, source, reduce, include_self)`
pub fn index_reduce<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let combine = Combine::named(bound.str("reduce")?)?;
    rows(cx, node, bound, "source", combine, bound.bool("include_self")?, None)
}

/// `index_fill(self, dim, index, value)`
pub fn index_fill<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    rows(cx, node, bound, "value", Combine::Replace, true, None)
}
