//! The LU factorisation with row pivots, and what a packed one stands for.

use super::cholesky::noted;
use super::{Batch, by_column, by_matrix, by_row, line, put_line, renew, repeat, result, units};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_aten::promote::real_of;
use m2m_mlir::{Builder, CmpF, CmpI, Iter, Map, Value};
use m2m_record::{DType, Dim, Node};

/// `linalg_lu_factor_ex(A [*, m, n], pivot) -> (LU, pivots, info)`: `P @ L @ U = A`, `L` with a diagonal of ones that is not
/// stored. Step `k` exchanges row `k` with that of the first largest element below, counted from 1 in `pivots`, and takes
/// its multiples from the rows below. `info` is the first step whose pivot is 0, or 0. Source: LAPACK's `getrf`.
pub fn factor<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    if !bound.bool("pivot")? {
        return Err(Error::unsupported("an LU factorisation without pivots"));
    }
    let a = Batch::of(cx, bound.tensor("A")?)?;
    let (dtype, steps, batch) = (a.dtype, a.steps()?, a.shape[0].clone());
    let zero = Scalars::new(&cx.b, DType::I32).int(0)?;
    let pivots = cx.filled(DType::I32, &[batch.clone(), steps.clone()], zero)?;
    let info = cx.filled(DType::I32, std::slice::from_ref(&batch), zero)?;
    let done = repeat(cx, &steps, &[a.value, pivots, info], |b, k, v| {
        let place = largest_below(b, dtype, v[0], k)?;
        let swapped = exchange(b, v[0], k, place)?;
        let column = line(b, swapped, 2, k)?;
        let pivot = line(b, column, 1, k)?;
        let ins = [(column, by_row()), (pivot, by_matrix()), (line(b, swapped, 1, k)?, by_column())];
        let next = renew(b, dtype, swapped, &ins, &|s, row, col, v: &[Value<'c>], own| {
            let is_zero = s.compare(Compare::Eq, v[1], s.number(0.0)?)?;
            let factor = s.div(v[0], s.b.select(is_zero, s.number(1.0)?, v[1])?)?;
            let rest = s.sub(own, s.mul(factor, v[2])?)?;
            let next = s.b.select(s.b.cmpi(CmpI::Sgt, col, k)?, rest, own)?;
            let next = s.b.select(s.b.cmpi(CmpI::Eq, col, k)?, factor, next)?;
            Ok(s.b.select(s.b.cmpi(CmpI::Sgt, row, k)?, next, own)?)
        })?;
        let step = b.index_cast(b.addi(k, b.const_index(1)?)?, b.elem("i32")?)?;
        let pivots = put_line(b, numbered(b, place)?, v[1], 1, k)?;
        Ok(vec![next, pivots, noted(b, dtype, pivot, v[2], step, Compare::Ne)?])
    })?;
    let packed = result(cx, node, 0, done[0], dtype, &a.shape)?;
    let pivots = result(cx, node, 1, done[1], DType::I32, &[batch.clone(), steps])?;
    Ok(vec![packed, pivots, result(cx, node, 2, done[2], DType::I32, &[batch])?])
}

/// The size by which pivots are chosen: `|x|`, of a complex number `|re| + |im|`, as LAPACK's `izamax` has it.
fn pivot_size<'c>(s: &Scalars<'_, 'c>, x: Value<'c>) -> Result<Value<'c>> {
    if !s.is_complex() {
        return Ok(s.b.unary("math.absf", x)?);
    }
    let (re, im) = s.parts(x)?;
    Ok(s.b.addf(s.b.unary("math.absf", re)?, s.b.unary("math.absf", im)?)?)
}

/// The row from `k` on whose element in column `k` is the largest: `[batch]`, i64.
fn largest_below<'c>(b: &Builder<'c>, dtype: DType, m: Value<'c>, k: Value<'c>) -> Result<Value<'c>> {
    let column = line(b, m, 2, k)?;
    let sizes = b.sizes(m)?;
    let fill = |scalar: Value<'c>, element: &str| b.fill(scalar, b.empty(&sizes[..1], b.elem(element)?)?);
    let part = real_of(dtype).name();
    let most = fill(b.const_float(b.elem(part)?, -1.0)?, part)?;
    let place = fill(b.index_cast(k, b.elem("i64")?)?, "i64")?;
    let at = Map::new(2, vec![m2m_mlir::map::Expr::Dim(0), m2m_mlir::map::Expr::Dim(1), m2m_mlir::map::Expr::Const(0)]);
    let own = Map::dims(2, &[0]);
    let iterators = [Iter::Parallel, Iter::Reduction];
    let results = b.generic(&[(column, at)], &[(most, own.clone()), (place, own)], &iterators, |b, v| {
        let row = b.index(1)?;
        let size = pivot_size(&Scalars::new(b, dtype), v[0]).map_err(into_mlir)?;
        let is_more = b.cmpf(CmpF::Ogt, size, v[1])?;
        let is_taken = b.andi(is_more, b.cmpi(CmpI::Sge, row, k)?)?;
        let row = b.index_cast(row, b.elem("i64")?)?;
        Ok(vec![b.select(is_taken, size, v[1])?, b.select(is_taken, row, v[2])?])
    })?;
    Ok(results[1])
}

/// Every matrix with row `k` and the row that `place` (`[batch]`, i64) names exchanged.
fn exchange<'c>(b: &Builder<'c>, m: Value<'c>, k: Value<'c>, place: Value<'c>) -> Result<Value<'c>> {
    let out = b.empty(&b.sizes(m)?, m2m_mlir::types::element(super::type_of(m)))?;
    Ok(b.elementwise(&[(place, Map::dims(3, &[0]))], out, |b, v| {
        let (batch, row, col) = (b.index(0)?, b.index(1)?, b.index(2)?);
        let other = b.index_cast(v[0], b.index_type())?;
        let from = b.select(b.cmpi(CmpI::Eq, row, other)?, k, row)?;
        let from = b.select(b.cmpi(CmpI::Eq, row, k)?, other, from)?;
        b.extract(m, &[batch, from, col])
    })?)
}

/// Places from 0 as `[batch, 1]` numbers from 1, i32.
fn numbered<'c>(b: &Builder<'c>, place: Value<'c>) -> Result<Value<'c>> {
    let sizes = b.sizes(place)?;
    let out = b.empty(&[sizes[0], m2m_mlir::Size::Static(1)], b.elem("i32")?)?;
    Ok(b.elementwise(&[(place, Map::dims(2, &[0]))], out, |b, v| {
        let one = b.const_int(b.elem("i64")?, 1)?;
        b.cast("trunci", b.addi(v[0], one)?, b.elem("i32")?)
    })?)
}

/// `lu_unpack(LU_data [*, m, n], LU_pivots) -> (P, L, U)`: `P` is the unit matrix with its columns exchanged as the pivots
/// say, the last one first; `L` is `[*, m, k]` and `U` is `[*, k, n]` for the smaller size `k`.
pub fn unpack<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let a = Batch::of(cx, bound.tensor("LU_data")?)?;
    let (dtype, steps, batch) = (a.dtype, a.steps()?, a.shape[0].clone());
    let mut out = Vec::new();
    out.push(if bound.bool("unpack_pivots")? {
        let pivots = cx.tensor(bound.tensor("LU_pivots")?)?;
        let pivots = crate::linalg::view::reshape(cx, &pivots, &[batch.clone(), steps.clone()])?.value;
        let rows = a.shape[1].clone();
        let shape = [batch.clone(), rows.clone(), rows];
        let unit = units(cx, dtype, &shape)?;
        // Exchanging rows of the unit matrix in order gives the inverse of P, which is its transpose.
        let done = repeat(cx, &steps, &[unit], |b, k, v| {
            let at = line(b, pivots, 1, k)?;
            let place = from_one(b, at)?;
            Ok(vec![exchange(b, v[0], k, place)?])
        })?;
        let empty = cx.empty(dtype, &shape)?;
        let value = cx.b.transpose(done[0], empty, &[0, 2, 1])?;
        result(cx, node, 0, value, dtype, &shape)?
    } else {
        nothing(cx, node, 0, dtype)?
    });
    for (k, is_lower) in [(1, true), (2, false)] {
        if !bound.bool("unpack_data")? {
            out.push(nothing(cx, node, k, dtype)?);
            continue;
        }
        let shape = if is_lower {
            [batch.clone(), a.shape[1].clone(), steps.clone()]
        } else {
            [batch.clone(), steps.clone(), a.shape[2].clone()]
        };
        let out_value = cx.empty(dtype, &shape)?;
        let from = a.value;
        let value = cx.b.elementwise(&[], out_value, |b, _| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let (batch, row, col) = (b.index(0)?, b.index(1)?, b.index(2)?);
                let x = b.extract(from, &[batch, row, col])?;
                let is_kept = b.cmpi(if is_lower { CmpI::Sgt } else { CmpI::Sle }, row, col)?;
                let is_on = b.cmpi(CmpI::Eq, row, col)?;
                let other = if is_lower { b.select(is_on, s.number(1.0)?, s.number(0.0)?)? } else { s.number(0.0)? };
                Ok(b.select(is_kept, x, other)?)
            };
            run().map_err(into_mlir)
        })?;
        out.push(result(cx, node, k, value, dtype, &shape)?);
    }
    Ok(out)
}

/// `[batch, 1]` numbers from 1 as `[batch]` places, i64.
fn from_one<'c>(b: &Builder<'c>, at: Value<'c>) -> Result<Value<'c>> {
    let sizes = b.sizes(at)?;
    let out = b.empty(&sizes[..1], b.elem("i64")?)?;
    let map = Map::new(1, vec![m2m_mlir::map::Expr::Dim(0), m2m_mlir::map::Expr::Const(0)]);
    Ok(b.elementwise(&[(at, map)], out, |b, v| {
        let one = b.const_int(b.elem("i64")?, 1)?;
        b.subi(b.cast("extsi", v[0], b.elem("i64")?)?, one)
    })?)
}

/// An empty result, for what is not asked for.
pub fn nothing<'c>(cx: &mut Cx<'c>, node: &Node, k: usize, dtype: DType) -> Result<Val<'c>> {
    let shape: Vec<Dim> = cx.result_type(node, k)?.shape.clone();
    let value = cx.empty(dtype, &shape)?;
    result(cx, node, k, value, dtype, &shape)
}
