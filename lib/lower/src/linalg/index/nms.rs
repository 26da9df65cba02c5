//! `torchvision.nms`: boxes that no better one covers.

use super::{nonzero, read};
use crate::error::Result;
use crate::linalg::cx::{Cx, Tensor, Val, need_rank};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Compare, Scalars, compute_dtype, convert};
use crate::linalg::sort::sorted;
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, CmpI, Iter, Map, Value};
use m2m_record::{DType, Dim, Node};
use std::rc::Rc;

/// `nms(boxes [n, 4], scores [n], iou_threshold)`: the places of boxes `(x1, y1, x2, y2)`, the best score first, without
/// those whose intersection with a box kept before is more than the threshold of their union. One loop over boxes in the
/// order of their scores; a box that is kept takes out those after it. Source: `torchvision.ops.nms`.
pub fn nms<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let (boxes, scores) = (cx.tensor(bound.tensor("dets")?)?, cx.tensor(bound.tensor("scores")?)?);
    need_rank("a list of boxes", &boxes.shape, 2)?;
    need_rank("a list of scores", &scores.shape, 1)?;
    let threshold = bound.float("iou_threshold")?;
    let order = sorted(cx, &scores, 0, true)?.indices;
    let lines = [(order.value, Map::dims(2, &[0]))];
    let shape = [scores.shape[0].clone(), Dim::Int(4)];
    let ranked = read(cx, &boxes, &shape, &lines, |b, at, x| Ok(vec![b.index_cast(x[0], b.index_type())?, at[1]]))?;
    let all = cx.b.const_bool(true)?;
    let kept = cx.filled(DType::Bool, &scores.shape, all)?;
    let count = cx.size_value(&scores.shape[0])?;
    let (zero, one) = (cx.b.const_index(0)?, cx.b.const_index(1)?);
    let (from, computed) = (boxes.dtype, compute_dtype(boxes.dtype));
    let corners = |b: &Builder<'c>, row: Value<'c>| -> Result<Vec<Value<'c>>> {
        let corner = |k| convert(b, b.extract(ranked.value, &[row, b.const_index(k)?])?, from, computed);
        (0..4).map(corner).collect()
    };
    let b = Rc::clone(&cx.b);
    let done = b.for_loop((zero, count, one), &[kept], |b, best, carried| {
        let is_kept = b.extract(carried[0], &[best])?;
        let own = corners(b, best).map_err(into_mlir)?;
        b.generic(&[], &[(carried[0], Map::identity(1))], &[Iter::Parallel], |b, v| {
            let run = || {
                let s = Scalars::new(b, computed);
                let row = b.index(0)?;
                let ratio = overlap(&s, &own, &corners(b, row)?)?;
                let is_covered = s.compare(Compare::Gt, ratio, s.number(threshold)?)?;
                let is_after = b.cmpi(CmpI::Ugt, row, best)?;
                let goes = b.andi(b.andi(is_kept, is_after)?, is_covered)?;
                Ok(vec![b.select(goes, b.const_bool(false)?, v[0])?])
            };
            run().map_err(into_mlir)
        })
    })?;
    let mask = Tensor { value: done[0], dtype: DType::Bool, shape: scores.shape.clone() };
    let places = nonzero::places(cx, &mask)?;
    let taken = [(places.value, Map::identity(1))];
    let chosen = read(cx, &order, &places.shape, &taken, |b, _, x| Ok(vec![b.index_cast(x[0], b.index_type())?]))?;
    Ok(vec![Val::Tensor(cx.conform(chosen.value, result.dtype, &result.shape)?)])
}

/// The area that two boxes share over the area that either covers.
fn overlap<'c>(s: &Scalars<'_, 'c>, x: &[Value<'c>], y: &[Value<'c>]) -> Result<Value<'c>> {
    let area = |v: &[Value<'c>]| s.mul(s.sub(v[2], v[0])?, s.sub(v[3], v[1])?);
    let side = |low: usize, high: usize| {
        let length = s.sub(s.minimum(x[high], y[high])?, s.maximum(x[low], y[low])?)?;
        s.maximum(length, s.number(0.0)?)
    };
    let shared = s.mul(side(0, 2)?, side(1, 3)?)?;
    s.div(shared, s.sub(s.add(area(x)?, area(y)?)?, shared)?)
}
