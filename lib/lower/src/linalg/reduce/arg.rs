//! Reductions that give positions: two accumulators, the best element so far and where it was.
//!
//! The first of equal elements wins, and the first NaN wins over everything, as in PyTorch's CPU kernels.

use super::{Axes, extreme, finish_plain, input, product};
use crate::error::Result;
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Compare, Scalars, compute_dtype, convert};
use crate::linalg::view::reshape;
use m2m_aten::bind::Bound;
use m2m_mlir::{Map, Value};
use m2m_record::{Arg, DType, Dim, Node};

/// Whether `x` comes before `y` when the best is wanted: greater, or less, or NaN where `y` is none.
pub fn is_better<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, is_max: bool) -> Result<Value<'c>> {
    let beyond = s.compare(if is_max { Compare::Gt } else { Compare::Lt }, x, y)?;
    if !s.is_float() {
        return Ok(beyond);
    }
    let is_number = s.b.xori(s.is_nan(y)?, s.b.const_bool(true)?)?;
    let first_nan = s.b.andi(s.is_nan(x)?, is_number)?;
    Ok(s.b.ori(beyond, first_nan)?)
}

/// A tensor with at least one axis: a 0-d one has one of extent 1.
pub fn at_least_1d<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>) -> Result<Tensor<'c>> {
    if t.rank() == 0 { reshape(cx, t, &[Dim::Int(1)]) } else { Ok(t.clone()) }
}

/// Best elements along an axis, in the compute type, and their positions as i64. The results lack the axis.
fn best<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axis: usize, is_max: bool) -> Result<(Tensor<'c>, Tensor<'c>)> {
    let axes = Axes::new(t.rank(), vec![axis]);
    let (from, acc, shape) = (t.dtype, compute_dtype(t.dtype), axes.shape(t));
    let s = Scalars::new(&cx.b, acc);
    let first = if is_max { s.lowest()? } else { s.highest()? };
    let nowhere = Scalars::new(&cx.b, DType::I64).int(0)?;
    let (first, nowhere) = (cx.filled(acc, &shape, first)?, cx.filled(DType::I64, &shape, nowhere)?);
    let outs = [(first, axes.map()), (nowhere, axes.map())];
    let ins = [(t.value, Map::identity(t.rank()))];
    let values = cx.b.generic(&ins, &outs, &axes.iterators(), |b, v| {
        let run = || {
            let s = Scalars::new(b, acc);
            let x = convert(b, v[0], from, acc)?;
            let at = b.index_cast(b.index(axis)?, b.elem("i64")?)?;
            let takes = is_better(&s, x, v[1], is_max)?;
            Ok(vec![b.select(takes, x, v[1])?, b.select(takes, at, v[2])?])
        };
        run().map_err(into_mlir)
    })?;
    let position = Tensor { value: values[1], dtype: DType::I64, shape: shape.clone() };
    Ok((Tensor { value: values[0], dtype: acc, shape }, position))
}

/// `argmax(self, dim, keepdim)`, over all elements in row-major order where `dim` is none.
pub fn argmax<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    position(cx, node, bound, true)
}

/// `argmin(self, dim, keepdim)`
pub fn argmin<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    position(cx, node, bound, false)
}

fn position<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, is_max: bool) -> Result<Vec<Val<'c>>> {
    let (t, result) = (input(cx, bound)?, cx.result_type(node, 0)?);
    let (t, axis) = if *bound.arg("dim")? == Arg::Null {
        let count = product(t.shape.iter())?;
        (reshape(cx, &t, &[count])?, 0)
    } else {
        let axis = t.axis(bound.int("dim")?)?;
        (at_least_1d(cx, &t)?, axis)
    };
    let (_, position) = best(cx, &t, axis, is_max)?;
    Ok(vec![Val::Tensor(finish_plain(cx, position, result)?)])
}

/// `max.dim(self, dim, keepdim) -> (values, indices)`; a plain reduction where nothing uses the indices.
pub fn max_dim<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    along(cx, node, bound, true)
}

/// `min.dim(self, dim, keepdim) -> (values, indices)`
pub fn min_dim<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    along(cx, node, bound, false)
}

fn along<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, is_max: bool) -> Result<Vec<Val<'c>>> {
    let t = input(cx, bound)?;
    let axis = t.axis(bound.int("dim")?)?;
    let t = at_least_1d(cx, &t)?;
    if !cx.is_used(node, 1) {
        let value = extreme(cx, &t, &Axes::new(t.rank(), vec![axis]), is_max)?;
        return Ok(vec![Val::Tensor(finish_plain(cx, value, cx.result_type(node, 0)?)?), Val::None]);
    }
    let (value, position) = best(cx, &t, axis, is_max)?;
    let value = finish_plain(cx, value, cx.result_type(node, 0)?)?;
    let position = finish_plain(cx, position, cx.result_type(node, 1)?)?;
    Ok(vec![Val::Tensor(value), Val::Tensor(position)])
}
