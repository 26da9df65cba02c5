//! Sorting along an axis: a bottom-up merge sort whose passes are `linalg.generic`s.
//!
//! Pass `p` merges neighbouring sorted runs of `2^p` elements. Every element of the merged run finds its source by
//! itself, by bisection along the merge path, so a pass is parallel and the whole takes O(n log² n) steps. The sort is
//! stable; NaN counts as greater than every number, as in PyTorch. `select` holds what picks from sorted elements.

pub mod select;

use super::cx::{Cx, Tensor, Val};
use super::elementwise::into_mlir;
use super::reduce::arg::at_least_1d;
use super::reduce::input;
use super::scalar::{Compare, Scalars, compute_dtype, convert};
use super::view::reshape;
use crate::error::Result;
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, CmpI, Iter, Map, Size, Value};
use m2m_record::{DType, Dim, Node};
use std::rc::Rc;

/// A tensor with an axis in order, and the positions that its elements had.
pub struct Sorted<'c> {
    /// The elements.
    pub values: Tensor<'c>,
    /// Their positions along the axis, i64.
    pub indices: Tensor<'c>,
}

/// The least `k` with `2^k >= extent`, as an `index`; 0 for extents below 2.
pub fn log2_up<'c>(cx: &mut Cx<'c>, extent: &Dim) -> Result<Value<'c>> {
    if let Some(n) = extent.as_int() {
        let bits = u64::try_from(n).unwrap_or(0).saturating_sub(1);
        return Ok(cx.b.const_index(i64::from(u64::BITS - bits.leading_zeros()))?);
    }
    let extent = cx.size_value(extent)?;
    let (zero, one) = (cx.b.const_index(0)?, cx.b.const_index(1)?);
    let index = cx.b.index_type();
    let passed = cx.b.while_loop(
        &[one, zero],
        &[index, index],
        |b, carried| Ok((b.cmpi(CmpI::Slt, carried[0], extent)?, carried.to_vec())),
        |b, carried| Ok(vec![b.shli(carried[0], one)?, b.addi(carried[1], one)?]),
    )?;
    Ok(passed[1])
}

/// Rounds that bisection of an interval of `extent` places takes: `log2_up + 1`, and none where there is no place.
pub fn bisection_rounds<'c>(cx: &mut Cx<'c>, extent: &Dim) -> Result<Value<'c>> {
    let rounds = log2_up(cx, extent)?;
    let extent = cx.size_value(extent)?;
    Ok(cx.b.minsi(cx.b.addi(rounds, cx.b.const_index(1)?)?, extent)?)
}

/// What every merging pass needs.
struct Merge<'c> {
    axis: usize,
    dtype: DType,
    is_descending: bool,
    extent: Value<'c>,
    pass: Value<'c>,
    /// The runs so far: elements and positions.
    runs: [Value<'c>; 2],
}

/// Sorts along an axis.
pub fn sorted<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axis: usize, is_descending: bool) -> Result<Sorted<'c>> {
    let sizes = cx.sizes(&t.shape)?;
    let long = cx.element(DType::I64)?;
    let element = cx.element(t.dtype)?;
    let places = cx.empty(DType::I64, &t.shape)?;
    let places = cx.b.elementwise(&[], places, |b, _| b.index_cast(b.index(axis)?, long))?;
    let passes = log2_up(cx, &t.shape[axis])?;
    let extent = cx.size_value(&t.shape[axis])?;
    let (zero, one) = (cx.b.const_index(0)?, cx.b.const_index(1)?);
    let b = Rc::clone(&cx.b);
    let results = b.for_loop((zero, passes, one), &[t.value, places], |b, pass, runs| {
        let merge = Merge { axis, dtype: t.dtype, is_descending, extent, pass, runs: [runs[0], runs[1]] };
        let outs = [b.empty(&sizes, element)?, b.empty(&sizes, long)?];
        merge.emit(b, &sizes, outs)
    })?;
    let tensor = |value, dtype| Tensor { value, dtype, shape: t.shape.clone() };
    Ok(Sorted { values: tensor(results[0], t.dtype), indices: tensor(results[1], DType::I64) })
}

impl<'c> Merge<'c> {
    fn emit(
        &self,
        b: &Builder<'c>,
        sizes: &[Size<'c>],
        outs: [Value<'c>; 2],
    ) -> std::result::Result<Vec<Value<'c>>, m2m_mlir::Error> {
        let rank = sizes.len();
        let outs = outs.map(|out| (out, Map::identity(rank)));
        b.generic(&[], &outs, &vec![Iter::Parallel; rank], |b, _| {
            let run = || {
                let mut place = (0..rank).map(|k| Ok(b.index(k)?)).collect::<Result<Vec<_>>>()?;
                place[self.axis] = self.source(b, &place)?;
                Ok(vec![b.extract(self.runs[0], &place)?, b.extract(self.runs[1], &place)?])
            };
            run().map_err(into_mlir)
        })
    }

    /// Where the element at `place` of the merged runs comes from.
    fn source(&self, b: &Builder<'c>, place: &[Value<'c>]) -> Result<Value<'c>> {
        let (zero, one) = (b.const_index(0)?, b.const_index(1)?);
        let last = b.subi(self.extent, one)?;
        let width = b.shli(one, self.pass)?;
        let pair = b.shli(width, one)?;
        let at = place[self.axis];
        let start = b.muli(b.divui(at, pair)?, pair)?;
        let middle = b.minsi(b.addi(start, width)?, self.extent)?;
        let end = b.minsi(b.addi(start, pair)?, self.extent)?;
        let (left_size, right_size) = (b.subi(middle, start)?, b.subi(end, middle)?);
        let rank = b.subi(at, start)?;
        let low = b.maxsi(b.subi(rank, right_size)?, zero)?;
        let high = b.minsi(rank, left_size)?;
        // Of the first `rank` merged elements, how many are from the left run: the interval is at most `width` long.
        let rounds = b.addi(self.pass, one)?;
        let found = b.for_loop((zero, rounds, one), &[low, high], |b, _, carried| {
            let (low, high) = (carried[0], carried[1]);
            let open = b.cmpi(CmpI::Slt, low, high)?;
            let probe = b.shrui(b.addi(low, high)?, one)?;
            let left = b.minsi(b.addi(start, probe)?, last)?;
            let right = b.subi(b.addi(middle, rank)?, b.addi(probe, one)?)?;
            let right = b.minsi(right, last)?;
            let is_left_first = self.is_left_first(b, place, left, right).map_err(into_mlir)?;
            let up = b.andi(open, is_left_first)?;
            let next_low = b.select(up, b.addi(probe, one)?, low)?;
            let stays = b.ori(up, b.xori(open, b.const_bool(true)?)?)?;
            Ok(vec![next_low, b.select(stays, high, probe)?])
        })?;
        let from_left = found[0];
        let from_right = b.subi(rank, from_left)?;
        let left = b.minsi(b.addi(start, from_left)?, last)?;
        let right = b.minsi(b.addi(middle, from_right)?, last)?;
        let has_left = b.cmpi(CmpI::Slt, from_left, left_size)?;
        let no_right = b.cmpi(CmpI::Sge, from_right, right_size)?;
        let is_left_first = b.ori(no_right, self.is_left_first(b, place, left, right)?)?;
        Ok(b.select(b.andi(has_left, is_left_first)?, left, right)?)
    }

    /// Whether the left run's element at `left` comes before the right run's at `right`: unless that is strictly before.
    fn is_left_first(
        &self,
        b: &Builder<'c>,
        place: &[Value<'c>],
        left: Value<'c>,
        right: Value<'c>,
    ) -> Result<Value<'c>> {
        let s = Scalars::new(b, compute_dtype(self.dtype));
        let read = |at| {
            let mut place = place.to_vec();
            place[self.axis] = at;
            convert(b, b.extract(self.runs[0], &place)?, self.dtype, s.dtype)
        };
        let (left, right) = (read(left)?, read(right)?);
        let right_first = is_before(&s, right, left, self.is_descending)?;
        Ok(b.xori(right_first, b.const_bool(true)?)?)
    }
}

/// Whether `x` belongs strictly before `y`.
pub fn is_before<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, is_descending: bool) -> Result<Value<'c>> {
    let (least, greatest) = if is_descending { (y, x) } else { (x, y) };
    let below = s.compare(Compare::Lt, least, greatest)?;
    if !s.is_float() {
        return Ok(below);
    }
    let is_number = s.b.xori(s.is_nan(least)?, s.b.const_bool(true)?)?;
    Ok(s.b.ori(below, s.b.andi(s.is_nan(greatest)?, is_number)?)?)
}

/// The argument `self` with at least one axis, and the axis that `dim` names.
fn lanes<'c>(cx: &mut Cx<'c>, bound: &Bound) -> Result<(Tensor<'c>, usize)> {
    let t = input(cx, bound)?;
    let axis = t.axis(bound.int("dim")?)?;
    Ok((at_least_1d(cx, &t)?, axis))
}

/// A tensor in the shape that is recorded for a result.
fn shaped<'c>(cx: &mut Cx<'c>, node: &Node, k: usize, t: &Tensor<'c>) -> Result<Val<'c>> {
    let shape = cx.result_type(node, k)?.shape.clone();
    Ok(Val::Tensor(reshape(cx, t, &shape)?))
}

/// `sort(self, dim, descending) -> (values, indices)`, stable whether asked for or not.
pub fn sort<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, axis) = lanes(cx, bound)?;
    let sorted = sorted(cx, &t, axis, bound.bool("descending")?)?;
    Ok(vec![shaped(cx, node, 0, &sorted.values)?, shaped(cx, node, 1, &sorted.indices)?])
}

/// `argsort(self, dim, descending)`: the indices of `sort`.
pub fn argsort<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, axis) = lanes(cx, bound)?;
    let sorted = sorted(cx, &t, axis, bound.bool("descending")?)?;
    Ok(vec![shaped(cx, node, 0, &sorted.indices)?])
}
