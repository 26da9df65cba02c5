//! Running reductions along an axis: one `scf.for` over its positions, each step an elementwise `linalg.generic` on a
//! slice of extent 1, so that the work is linear in the number of elements.
//!
//! Half types accumulate in f32, f32 in f64, and each result is rounded once.

use super::cx::{Cx, Tensor, Val};
use super::elementwise::into_mlir;
use super::reduce::arg::at_least_1d;
use super::scalar::{Compare, Scalars, accumulate_dtype, compute_dtype, convert};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Iter, Map, Size, Value};
use m2m_record::{DType, Dim, Node};
use std::rc::Rc;

/// Scans `t` along `axis`. `inits` are the accumulators' types and first values; the body gets the element, its position
/// as i64, and the accumulators, and gives the next ones. Result `k` is accumulator `k` at each position, as `outs[k]`.
pub fn scan<'c>(
    cx: &mut Cx<'c>,
    t: &Tensor<'c>,
    axis: usize,
    inits: &[(DType, Value<'c>)],
    outs: &[DType],
    body: impl Fn(&Builder<'c>, Value<'c>, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> Result<Vec<Tensor<'c>>> {
    if t.shape.contains(&Dim::Int(0)) {
        let empty =
            |dtype: &DType| Ok(Tensor { value: cx.empty(*dtype, &t.shape)?, dtype: *dtype, shape: t.shape.clone() });
        return outs.iter().map(empty).collect();
    }
    let mut lane = t.shape.clone();
    match lane.get_mut(axis) {
        Some(along) => *along = Dim::Int(1),
        None => return Err(Error::Graph(format!("a scan along axis {axis} of a tensor of rank {}", t.rank()))),
    }
    let sizes = cx.sizes(&lane)?;
    let mut carried = Vec::new();
    for (dtype, init) in inits {
        carried.push(cx.filled(*dtype, &lane, *init)?);
    }
    for dtype in outs {
        carried.push(cx.empty(*dtype, &t.shape)?);
    }
    let extent = cx.size_value(&t.shape[axis])?;
    let (zero, one) = (cx.b.const_index(0)?, cx.b.const_index(1)?);
    let b = Rc::clone(&cx.b);
    let results = b.for_loop((zero, extent, one), &carried, |b, at, carried| {
        let (acc, whole) = carried.split_at(inits.len());
        let lane = Lane { axis, at, sizes: &sizes };
        let next = step(b, t, &lane, acc, &body)?;
        let mut carried = next.clone();
        for (k, whole) in whole.iter().enumerate() {
            let part = lane.converted(b, next[k], inits[k].0, outs[k])?;
            carried.push(lane.put(b, part, *whole)?);
        }
        Ok(carried)
    })?;
    let scanned = results.get(inits.len()..).unwrap_or_default().iter().zip(outs);
    Ok(scanned.map(|(value, dtype)| Tensor { value: *value, dtype: *dtype, shape: t.shape.clone() }).collect())
}

type MlirResult<T> = std::result::Result<T, m2m_mlir::Error>;

/// The slice of extent 1 at a position of an axis.
struct Lane<'a, 'c> {
    axis: usize,
    at: Value<'c>,
    sizes: &'a [Size<'c>],
}

impl<'c> Lane<'_, 'c> {
    fn offsets(&self) -> Vec<Size<'c>> {
        let mut offsets = vec![Size::Static(0); self.sizes.len()];
        offsets[self.axis] = Size::Value(self.at);
        offsets
    }

    fn of(&self, b: &Builder<'c>, whole: Value<'c>) -> MlirResult<Value<'c>> {
        b.extract_slice(whole, &self.offsets(), self.sizes, &vec![Size::Static(1); self.sizes.len()])
    }

    fn put(&self, b: &Builder<'c>, part: Value<'c>, whole: Value<'c>) -> MlirResult<Value<'c>> {
        b.insert_slice(part, whole, &self.offsets(), self.sizes, &vec![Size::Static(1); self.sizes.len()])
    }

    /// An accumulator as a part of a result. By an operation of its own: one that gives both confuses IREE.
    fn converted(&self, b: &Builder<'c>, acc: Value<'c>, from: DType, to: DType) -> MlirResult<Value<'c>> {
        if from == to {
            return Ok(acc);
        }
        let out = b.empty(self.sizes, b.elem(to.name())?)?;
        let map = Map::identity(self.sizes.len());
        b.elementwise(&[(acc, map)], out, |b, v| convert(b, v[0], from, to).map_err(into_mlir))
    }
}

/// The accumulators after one position.
fn step<'c>(
    b: &Builder<'c>,
    t: &Tensor<'c>,
    lane: &Lane<'_, 'c>,
    acc: &[Value<'c>],
    body: &impl Fn(&Builder<'c>, Value<'c>, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> MlirResult<Vec<Value<'c>>> {
    let map = Map::identity(t.rank());
    let x = lane.of(b, t.value)?;
    let position = b.index_cast(lane.at, b.elem("i64")?)?;
    let outs: Vec<_> = acc.iter().map(|value| (*value, map.clone())).collect();
    b.generic(&[(x, map)], &outs, &vec![Iter::Parallel; t.rank()], |b, v| {
        body(b, v[0], position, &v[1..]).map_err(into_mlir)
    })
}

/// The argument `self` with at least one axis, and the axis that `dim` names.
fn lanes<'c>(cx: &mut Cx<'c>, bound: &Bound) -> Result<(Tensor<'c>, usize)> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let axis = t.axis(bound.int("dim")?)?;
    Ok((at_least_1d(cx, &t)?, axis))
}

/// Scanned tensors in the recorded shapes.
fn finish<'c>(cx: &mut Cx<'c>, node: &Node, scanned: Vec<Tensor<'c>>) -> Result<Vec<Val<'c>>> {
    let results = scanned.iter().enumerate().map(|(k, t)| {
        let shape = cx.result_type(node, k)?.shape.clone();
        Ok(Val::Tensor(reshape(cx, t, &shape)?))
    });
    results.collect()
}

/// The value and step of a running sum or product.
type Combine = for<'b, 'c> fn(&Scalars<'b, 'c>, Value<'c>, Value<'c>) -> Result<Value<'c>>;

/// Elements go to the result's type first, as PyTorch does where `dtype` is given, then to the accumulator's. That of f32
/// is f64, as in PyTorch's CPU kernels: here rounding errors would add up over all positions before.
fn accumulated<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, start: f64, combine: Combine) -> Result<Vec<Val<'c>>> {
    let to = cx.result_type(node, 0)?.dtype;
    let (t, axis) = lanes(cx, bound)?;
    let (from, acc) = (t.dtype, if to == DType::F32 { DType::F64 } else { accumulate_dtype(to) });
    let init = Scalars::new(&cx.b, acc).number(start)?;
    let scanned = scan(cx, &t, axis, &[(acc, init)], &[to], |b, x, _, so_far| {
        let x = convert(b, convert(b, x, from, to)?, to, acc)?;
        Ok(vec![combine(&Scalars::new(b, acc), so_far[0], x)?])
    })?;
    finish(cx, node, scanned)
}

/// `cumsum(self, dim, dtype)`: `y[i] = x[0] + … + x[i]`
pub fn cumsum<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    accumulated(cx, node, bound, 0.0, |s, acc, x| s.add(acc, x))
}

/// `cumprod(self, dim, dtype)`: `y[i] = x[0] * … * x[i]`
pub fn cumprod<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    accumulated(cx, node, bound, 1.0, |s, acc, x| s.mul(acc, x))
}

/// `logcumsumexp(self, dim)`: `y[i] = log(exp(x[0]) + … + exp(x[i]))`, each step relative to the greater term.
pub fn logcumsumexp<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, axis) = lanes(cx, bound)?;
    if !t.dtype.is_float() {
        return Err(Error::unsupported(format!("logcumsumexp of {} elements", t.dtype)));
    }
    let (to, acc) = (t.dtype, compute_dtype(t.dtype));
    let init = Scalars::new(&cx.b, acc).lowest()?;
    let scanned = scan(cx, &t, axis, &[(acc, init)], &[to], |b, x, _, so_far| {
        let s = Scalars::new(b, acc);
        Ok(vec![log_add_exp(&s, so_far[0], convert(b, x, to, acc)?)?])
    })?;
    finish(cx, node, scanned)
}

/// `log(exp(x) + exp(y))`; equal infinities stay, which the difference in the formula would make NaN.
fn log_add_exp<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
    let (least, greatest) = (s.minimum(x, y)?, s.maximum(x, y)?);
    let tail = s.b.unary("math.log1p", s.b.unary("math.exp", s.sub(least, greatest)?)?)?;
    let magnitude = s.b.unary("math.absf", greatest)?;
    let is_infinite = s.compare(Compare::Eq, magnitude, s.number(f64::INFINITY)?)?;
    let is_kept = s.b.andi(is_infinite, s.compare(Compare::Eq, least, greatest)?)?;
    Ok(s.b.select(is_kept, greatest, s.add(greatest, tail)?)?)
}

/// `cummax(self, dim) -> (values, indices)`: the greatest element so far and its last position; NaN wins.
pub fn cummax<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    running(cx, node, bound, true)
}

/// `cummin(self, dim) -> (values, indices)`
pub fn cummin<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    running(cx, node, bound, false)
}

fn running<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, is_max: bool) -> Result<Vec<Val<'c>>> {
    let (t, axis) = lanes(cx, bound)?;
    let (from, acc) = (t.dtype, compute_dtype(t.dtype));
    let s = Scalars::new(&cx.b, acc);
    let first = if is_max { s.lowest()? } else { s.highest()? };
    let nowhere = Scalars::new(&cx.b, DType::I64).int(0)?;
    let inits = [(acc, first), (DType::I64, nowhere)];
    let scanned = scan(cx, &t, axis, &inits, &[from, DType::I64], |b, x, at, so_far| {
        let s = Scalars::new(b, acc);
        let x = convert(b, x, from, acc)?;
        let beyond = s.compare(if is_max { Compare::Ge } else { Compare::Le }, x, so_far[0])?;
        let takes = b.ori(beyond, s.is_nan(x)?)?;
        Ok(vec![b.select(takes, x, so_far[0])?, b.select(takes, at, so_far[1])?])
    })?;
    finish(cx, node, scanned)
}
