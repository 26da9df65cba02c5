//! Axes turned around, shifted, or with every position repeated.

use super::{extents, read, shaped};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::reduce::arg::at_least_1d;
use crate::linalg::reduce::product;
use crate::linalg::view::reshape;
use m2m_aten::bind::Bound;
use m2m_mlir::CmpI;
use m2m_record::{Arg, Dim, Node};

/// `flip(self, dims)`: `out[…, i, …] = self[…, n - 1 - i, …]` on each axis of `dims`.
pub fn flip<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let axes = bound.ints("dims")?.into_iter().map(|dim| t.axis(dim)).collect::<Result<Vec<_>>>()?;
    let sizes = extents(cx, &t)?;
    let flipped = read(cx, &t, &t.shape, &[], |b, at, _| {
        let one = b.const_index(1)?;
        let turn = |(axis, place)| -> Result<_> {
            if !axes.contains(&axis) {
                return Ok(place);
            }
            Ok(b.subi(b.subi(sizes[axis], one)?, place)?)
        };
        at.iter().copied().enumerate().map(turn).collect()
    })?;
    shaped(cx, node, &flipped)
}

/// `roll(self, shifts, dims)`: `out[…, i, …] = self[…, (i - shift) mod n, …]`; without `dims`, of all elements in
/// row-major order.
pub fn roll<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let shifts = bound.sym_ints("shifts")?;
    let dims = bound.ints("dims")?;
    let (t, axes) = if dims.is_empty() {
        let count = product(t.shape.iter())?;
        (reshape(cx, &t, &[count])?, vec![0])
    } else {
        let axes = dims.into_iter().map(|dim| t.axis(dim)).collect::<Result<Vec<_>>>()?;
        (at_least_1d(cx, &t)?, axes)
    };
    if shifts.len() != axes.len() {
        return Err(Error::Graph(format!("{} shifts for {} axes", shifts.len(), axes.len())));
    }
    let mut moves = Vec::new();
    for (axis, shift) in axes.into_iter().zip(&shifts) {
        let shift = cx.size_arg(shift)?;
        moves.push((axis, cx.b.size_value(shift)?, cx.size_value(&t.shape[axis])?));
    }
    let rolled = read(cx, &t, &t.shape, &[], |b, at, _| {
        let mut place = at.to_vec();
        for (axis, shift, size) in &moves {
            let rest = b.remsi(b.subi(place[*axis], *shift)?, *size)?;
            let is_negative = b.cmpi(CmpI::Slt, rest, b.const_index(0)?)?;
            place[*axis] = b.select(is_negative, b.addi(rest, *size)?, rest)?;
        }
        Ok(place)
    })?;
    shaped(cx, node, &rolled)
}

/// `repeat_interleave(self, repeats, dim)`: `out[…, i, …] = self[…, i / repeats, …]`; without `dim`, of all elements in
/// row-major order.
pub fn repeat_interleave<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let t = cx.tensor(bound.tensor("self")?)?;
    let (t, axis) = if *bound.arg("dim")? == Arg::Null {
        let count = product(t.shape.iter())?;
        (reshape(cx, &t, &[count])?, 0)
    } else {
        let axis = t.axis(bound.int("dim")?)?;
        (at_least_1d(cx, &t)?, axis)
    };
    let repeats = cx.size_arg(bound.arg("repeats")?)?;
    let repeats = cx.b.size_value(repeats)?;
    let mut shape = t.shape.clone();
    shape[axis] = result.shape.get(axis).cloned().unwrap_or(Dim::Int(1));
    let repeated = read(cx, &t, &shape, &[], |b, at, _| {
        let mut place = at.to_vec();
        place[axis] = b.divui(place[axis], repeats)?;
        Ok(place)
    })?;
    shaped(cx, node, &repeated)
}
