//! Eigenvalues of symmetric matrices and singular values, by Jacobi's rotations.
//!
//! A sweep rotates every pair of axes once; a fixed number of sweeps, which is more than convergence takes, makes the
//! result a function of the input alone. Vectors have the signs that the rotations give them: no signs are defined, and
//! LAPACK's are others.

use super::{Batch, by_matrix, line, lu, put_line, read, renew, repeat, result, total, type_of, units, widened};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, CmpI, Iter, Map, Value, types};
use m2m_record::{DType, Dim, Node};

/// Sweeps: convergence is quadratic, and eight suffice for f32 matrices of some hundred rows.
fn sweeps(dtype: DType) -> i64 {
    if dtype == DType::F64 { 16 } else { 12 }
}

/// A cosine and a sine for each matrix, `[batch, 1, 1]` each.
struct Rotation<'c> {
    cos: Value<'c>,
    sin: Value<'c>,
}

impl<'c> Rotation<'c> {
    /// What takes the off-diagonal element `b` of `[[a, b], [b, d]]` to 0: with `t` the smaller root of
    /// `t² + 2t·(d - a)/(2b) - 1 = 0`, the cosine is `1/sqrt(1 + t²)` and the sine `t` times that. All are `[batch, 1, 1]`.
    fn of(b: &Builder<'c>, dtype: DType, [first, off, second]: [Value<'c>; 3]) -> Result<Self> {
        let sizes = b.sizes(first)?;
        let empty = || b.empty(&sizes, b.elem(dtype.name())?);
        let map = Map::identity(3);
        let ins = [(first, map.clone()), (off, map.clone()), (second, map.clone())];
        let outs = [(empty()?, map.clone()), (empty()?, map)];
        let both = b.generic(&ins, &outs, &[Iter::Parallel; 3], |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let (zero, one) = (s.number(0.0)?, s.number(1.0)?);
                let is_done = s.compare(Compare::Eq, v[1], zero)?;
                let safe = b.select(is_done, one, v[1])?;
                let slope = s.div(s.sub(v[2], v[0])?, s.add(safe, safe)?)?;
                let root = b.unary("math.sqrt", s.add(one, s.mul(slope, slope)?)?)?;
                let tangent = s.div(one, s.add(b.unary("math.absf", slope)?, root)?)?;
                let tangent = b.binary("math.copysign", tangent, slope)?;
                let tangent = b.select(is_done, zero, tangent)?;
                let cos = s.div(one, b.unary("math.sqrt", s.add(one, s.mul(tangent, tangent)?)?)?)?;
                Ok(vec![cos, s.mul(tangent, cos)?])
            };
            run().map_err(into_mlir)
        })?;
        Ok(Rotation { cos: both[0], sin: both[1] })
    }

    /// Lines `p` and `q` of every matrix along an axis: `cos·p - sin·q` and `sin·p + cos·q`.
    fn apply(
        &self,
        b: &Builder<'c>,
        dtype: DType,
        m: Value<'c>,
        axis: usize,
        (p, q): (Value<'c>, Value<'c>),
    ) -> Result<Value<'c>> {
        let (first, second) = (line(b, m, axis, p)?, line(b, m, axis, q)?);
        let sizes = b.sizes(first)?;
        let empty = || b.empty(&sizes, b.elem(dtype.name())?);
        let map = Map::identity(3);
        let ins = [(first, map.clone()), (second, map.clone()), (self.cos, by_matrix()), (self.sin, by_matrix())];
        let outs = [(empty()?, map.clone()), (empty()?, map)];
        let both = b.generic(&ins, &outs, &[Iter::Parallel; 3], |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let low = s.sub(s.mul(v[2], v[0])?, s.mul(v[3], v[1])?)?;
                Ok(vec![low, s.add(s.mul(v[3], v[0])?, s.mul(v[2], v[1])?)?])
            };
            run().map_err(into_mlir)
        })?;
        let m = put_line(b, both[0], m, axis, p)?;
        put_line(b, both[1], m, axis, q)
    }
}

/// What happens to the carried tensors for a pair of axes.
type Turn<'a, 'c> = dyn Fn(&Builder<'c>, Value<'c>, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>> + 'a;

/// Runs `body` for every pair `p < q` of `n` axes, sweep after sweep.
fn sweep<'c>(
    cx: &mut Cx<'c>,
    dtype: DType,
    n: &Dim,
    carried: &[Value<'c>],
    body: &Turn<'_, 'c>,
) -> Result<Vec<Value<'c>>> {
    let count = cx.size_value(n)?;
    repeat(cx, &Dim::Int(sweeps(dtype)), carried, |b, _, carried| {
        let (zero, one) = (b.const_index(0)?, b.const_index(1)?);
        Ok(b.for_loop((zero, count, one), carried, |b, p, carried| {
            let next = b.addi(p, one)?;
            b.for_loop((next, count, one), carried, |b, q, carried| body(b, p, q, carried).map_err(into_mlir))
        })?)
    })
}

/// The places `[batch, n]` (i64) at which sorted keys `[batch, n]` stand before: of equal ones the first comes first.
fn order<'c>(cx: &mut Cx<'c>, dtype: DType, keys: Value<'c>, is_ascending: bool) -> Result<Value<'c>> {
    let b = &cx.b;
    let sizes = b.sizes(keys)?;
    let start = |b: &Builder<'c>| b.fill(b.const_int(b.elem("i64")?, 0)?, b.empty(&sizes, b.elem("i64")?)?);
    let (own, other) = (Map::dims(3, &[0, 1]), Map::dims(3, &[0, 2]));
    let loops = [Iter::Parallel, Iter::Parallel, Iter::Reduction];
    let number = |b: &Builder<'c>, axis| b.index_cast(b.index(axis)?, b.elem("i64")?);
    let rank =
        b.generic(&[(keys, own.clone()), (keys, other.clone())], &[(start(b)?, own.clone())], &loops, |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let before = s.compare(if is_ascending { Compare::Lt } else { Compare::Gt }, v[1], v[0])?;
                let is_same = s.compare(Compare::Eq, v[1], v[0])?;
                let is_earlier = b.cmpi(CmpI::Slt, b.index(2)?, b.index(1)?)?;
                let is_before = b.ori(before, b.andi(is_same, is_earlier)?)?;
                Ok(vec![b.addi(v[2], b.cast("extui", is_before, b.elem("i64")?)?)?])
            };
            run().map_err(into_mlir)
        })?;
    let place = b.generic(&[(rank[0], other)], &[(start(b)?, own)], &loops, |b, v| {
        let is_here = b.cmpi(CmpI::Eq, v[0], number(b, 1)?)?;
        let zero = b.const_int(b.elem("i64")?, 0)?;
        Ok(vec![b.addi(v[1], b.select(is_here, number(b, 2)?, zero)?)?])
    })?;
    Ok(place[0])
}

/// Values `[batch, n]` in the order of `places`.
fn arranged<'c>(cx: &Cx<'c>, values: Value<'c>, places: Value<'c>) -> Result<Value<'c>> {
    let b = &cx.b;
    let out = b.empty(&b.sizes(values)?, types::element(type_of(values)))?;
    Ok(b.elementwise(&[(places, Map::identity(2))], out, |b, v| {
        b.extract(values, &[b.index(0)?, b.index_cast(v[0], b.index_type())?])
    })?)
}

/// Columns of every matrix in the order of `places`.
fn arranged_columns<'c>(cx: &Cx<'c>, m: Value<'c>, places: Value<'c>) -> Result<Value<'c>> {
    let b = &cx.b;
    let out = b.empty(&b.sizes(m)?, types::element(type_of(m)))?;
    Ok(b.elementwise(&[(places, Map::dims(3, &[0, 2]))], out, |b, v| {
        b.extract(m, &[b.index(0)?, b.index(1)?, b.index_cast(v[0], b.index_type())?])
    })?)
}

/// `_linalg_eigh(A [*, n, n], UPLO, compute_v) -> (eigenvalues, eigenvectors)`: `A = V @ diag(w) @ V.T`, values ascending.
/// One triangle of `A` is read and stands for the other.
pub fn eigh<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let a = Batch::real(cx, bound.tensor("A")?)?;
    let (dtype, n, from) = (a.dtype, a.shape[1].clone(), a.value);
    let is_lower = !bound.str("UPLO")?.eq_ignore_ascii_case("u");
    let out = cx.empty(dtype, &a.shape)?;
    let whole = renew(&cx.b, dtype, out, &[], &|s, row, col, _, _| {
        let b = s.b;
        let is_own = b.cmpi(if is_lower { CmpI::Sge } else { CmpI::Sle }, row, col)?;
        let (row, col) = (b.select(is_own, row, col)?, b.select(is_own, col, row)?);
        Ok(b.extract(from, &[b.index(0)?, row, col])?)
    })?;
    let unit = units(cx, dtype, &a.shape)?;
    let done = sweep(cx, dtype, &n, &[whole, unit], &|b, p, q, v| {
        let (row_p, row_q) = (line(b, v[0], 1, p)?, line(b, v[0], 1, q)?);
        let block = [line(b, row_p, 2, p)?, line(b, row_p, 2, q)?, line(b, row_q, 2, q)?];
        let turn = Rotation::of(b, dtype, block)?;
        let rows = turn.apply(b, dtype, v[0], 1, (p, q))?;
        Ok(vec![turn.apply(b, dtype, rows, 2, (p, q))?, turn.apply(b, dtype, v[1], 2, (p, q))?])
    })?;
    let shape = [a.shape[0].clone(), n];
    let empty = cx.empty(dtype, &shape)?;
    let matrix = done[0];
    let values = cx.b.elementwise(&[], empty, |b, _| {
        let at = b.index(1)?;
        b.extract(matrix, &[b.index(0)?, at, at])
    })?;
    let places = order(cx, dtype, values, true)?;
    let values = arranged(cx, values, places)?;
    let values = result(cx, node, 0, values, dtype, &shape)?;
    let vectors = if bound.bool("compute_v")? {
        let vectors = arranged_columns(cx, done[1], places)?;
        result(cx, node, 1, vectors, dtype, &a.shape)?
    } else {
        lu::nothing(cx, node, 1, dtype)?
    };
    Ok(vec![values, vectors])
}

/// `_linalg_svd(A [*, m, n], full_matrices, compute_uv) -> (U, S, Vh)`: `A = U @ diag(S) @ Vh`, values descending. Columns
/// are rotated until they are orthogonal (Hestenes, 1958): their lengths are `S`, they themselves over these are `U`, and
/// the rotations `V`. A column of length 0 gives 0 in `U`.
///
/// C1: `m >= n` and `full_matrices` is false; the decomposition sees to that.
pub fn svd<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let a = Batch::real(cx, bound.tensor("A")?)?;
    if bound.bool("full_matrices")? {
        return Err(Error::Graph("a singular value decomposition with whole bases".into()));
    }
    let dtype = a.dtype;
    let [batch, _, n] = a.shape.clone();
    let square = [batch.clone(), n.clone(), n.clone()];
    let unit = units(cx, dtype, &square)?;
    let done = sweep(cx, dtype, &n, &[a.value, unit], &|b, p, q, v| {
        let (first, second) = (line(b, v[0], 2, p)?, line(b, v[0], 2, q)?);
        let dot = |x, y| {
            let ins = [(y, read(&[Some(0), Some(1), Some(2)]))];
            let sum = total(b, dtype, 1, x, &ins, &|s, _, _, v: &[Value<'c>], x| s.mul(x, v[0]))?;
            widened(b, sum, 1)
        };
        let turn = Rotation::of(b, dtype, [dot(first, first)?, dot(first, second)?, dot(second, second)?])?;
        Ok(vec![turn.apply(b, dtype, v[0], 2, (p, q))?, turn.apply(b, dtype, v[1], 2, (p, q))?])
    })?;
    let squares = total(&cx.b, dtype, 1, done[0], &[], &|s, _, _, _, x| s.mul(x, x))?;
    let empty = cx.empty(dtype, &[batch.clone(), n.clone()])?;
    let lengths = cx.b.elementwise(&[(squares, Map::identity(2))], empty, |b, v| b.unary("math.sqrt", v[0]))?;
    let places = order(cx, dtype, lengths, false)?;
    let lengths = arranged(cx, lengths, places)?;
    let values = result(cx, node, 1, lengths, dtype, &[batch, n])?;
    if !bound.bool("compute_uv")? {
        return Ok(vec![lu::nothing(cx, node, 0, dtype)?, values, lu::nothing(cx, node, 2, dtype)?]);
    }
    let columns = arranged_columns(cx, done[0], places)?;
    let left =
        renew(&cx.b, dtype, columns, &[(lengths, read(&[Some(0), Some(2)]))], &|s, _, _, v: &[Value<'c>], own| {
            let zero = s.number(0.0)?;
            let is_zero = s.compare(Compare::Eq, v[0], zero)?;
            let divisor = s.b.select(is_zero, s.number(1.0)?, v[0])?;
            s.div(own, divisor)
        })?;
    let left = result(cx, node, 0, left, dtype, &a.shape)?;
    let right = arranged_columns(cx, done[1], places)?;
    let empty = cx.empty(dtype, &square)?;
    let right = cx.b.transpose(right, empty, &[0, 2, 1])?;
    Ok(vec![left, values, result(cx, node, 2, right, dtype, &square)?])
}
