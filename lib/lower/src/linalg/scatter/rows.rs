//! Writes whose index names positions of one axis: `index_add`, `index_copy`, `index_fill`, `index_reduce`.

use super::{Along, Combine, Writes, source, write};
use crate::error::Result;
use crate::linalg::cx::{Cx, Val};
use crate::linalg::elementwise::Operand;
use crate::linalg::index::{integers, wrapped};
use crate::linalg::reduce::arg::at_least_1d;
use crate::linalg::view::reshape;
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{Arg, Node};

/// `out[…, index[i], …] = source[…, i, …]`, each source element times `scale` where there is one: a write an index.
fn rows<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    bound: &Bound,
    source: Operand<'c>,
    combine: Combine,
    includes_self: bool,
    scale: Option<Arg>,
) -> Result<Vec<Val<'c>>> {
    let shape = cx.result_type(node, 0)?.shape.clone();
    let t = cx.tensor(bound.tensor("self")?)?;
    let axis = t.axis(bound.int("dim")?)?;
    let t = at_least_1d(cx, &t)?;
    let index = integers(cx, bound.tensor("index")?)?;
    let index = at_least_1d(cx, &index)?;
    let extent = cx.size_value(&t.shape[axis])?;
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        let mut place = vec![None; t.rank()];
        place[axis] = Some(wrapped(b, b.extract(index.value, at)?, index.dtype, extent)?);
        Ok(place)
    };
    let part = |_: &Builder<'c>, at: &[Value<'c>]| {
        Ok((0..t.rank()).map(|k| if k == axis { Along::At(at[0]) } else { Along::Axis(k) }).collect())
    };
    let writes = Writes { domain: index.shape.clone(), place: &place, source, part: &part, scale };
    let written = write(cx, &t, &writes, combine, includes_self)?;
    Ok(vec![Val::Tensor(reshape(cx, &written, &shape)?)])
}

/// `index_add(self, dim, index, source, alpha)`
pub fn index_add<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let alpha = bound.arg("alpha")?;
    let alpha = (*alpha != Arg::Int(1)).then(|| alpha.clone());
    let source = source(cx, bound.arg("source")?)?;
    rows(cx, node, bound, source, Combine::Add, true, alpha)
}

/// `index_copy(self, dim, index, source)`
pub fn index_copy<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let source = source(cx, bound.arg("source")?)?;
    rows(cx, node, bound, source, Combine::Replace, true, None)
}

/// `index_reduce(self, dim, index, source, reduce, include_self)`
pub fn index_reduce<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let combine = Combine::named(bound.str("reduce")?)?;
    let source = source(cx, bound.arg("source")?)?;
    rows(cx, node, bound, source, combine, bound.bool("include_self")?, None)
}

/// `index_fill(self, dim, index, value)`
pub fn index_fill<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let value = Operand::of(cx, bound.arg("value")?)?;
    rows(cx, node, bound, value, Combine::Replace, true, None)
}
