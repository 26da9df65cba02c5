//! Pooling by other names, and adaptive pooling as pooling or as means of slices.

use super::{need_rank, pieces};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType, Type};
use m2m_tensor::Expr;

/// `max_pool1d 2d 3d`: the first result of the pooling that gives indices too; one dimension is a plane of height 1.
pub(super) fn max_pool(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    need_rank(b.op(), &x, 2)?;
    if shape.len() != x.rank() {
        return Err(Error::shape(
            b.op(),
            format!("a result of rank {} for an input of rank {}", shape.len(), x.rank()),
        ));
    }
    let is_line = b.op().starts_with("aten.max_pool1d");
    let (op, x) = match b.op() {
        "aten.max_pool3d.default" => ("aten.max_pool3d_with_indices.default", x),
        _ if is_line => ("aten.max_pool2d_with_indices.default", e.unsqueeze(&x, x.from_end(1)?)?),
        _ => ("aten.max_pool2d_with_indices.default", x),
    };
    let plane = |mut v: Vec<i64>, one: i64| {
        if is_line {
            v.insert(0, one);
        }
        v
    };
    let kernel = plane(b.ints("kernel_size")?, 1);
    let stride = b.ints("stride")?;
    let stride = if stride.is_empty() { kernel.clone() } else { plane(stride, 1) };
    let (padding, dilation) = (plane(b.ints("padding")?, 0), plane(b.ints("dilation")?, 1));
    let mut out = shape.clone();
    if is_line {
        out.insert(out.len() - 1, Expr::Int(1));
    }
    let args = vec![
        x.arg(),
        Arg::ints(kernel),
        Arg::ints(stride),
        Arg::ints(padding),
        Arg::ints(dilation),
        Arg::Bool(b.bool("ceil_mode")?),
    ];
    let types = vec![crate::value::tensor_type(dtype, &out), crate::value::tensor_type(DType::I64, &out)];
    let y = crate::expand::first(op, e.call(op, args, &[], types)?)?;
    let y = e.view(&y, &shape)?;
    if b.node.results.len() == 1 {
        return one(y);
    }
    Err(Error::unsupported("max_pool1d with indices"))
}

/// The bounds of window `k` of `out` over `size`: `floor(k·size/out)` to `ceil((k+1)·size/out)`.
fn window(k: i64, size: i64, out: i64) -> Option<(i64, i64)> {
    let from = k.checked_mul(size)?.checked_div(out)?;
    let end = k.checked_add(1)?.checked_mul(size)?.checked_add(out)?.checked_sub(1)?;
    Some((from, end.checked_div(out)?))
}

/// Pools one dimension to `out` windows with `op` over each.
fn adapt(e: &mut Expander<'_, '_>, x: &V, dim: usize, out: &Expr, is_mean: bool) -> Result<V, Error> {
    let pool = |e: &mut Expander<'_, '_>, part: &V| {
        if is_mean { e.mean(part, &[dim], true) } else { e.extreme("amax", part, &[dim], true) }
    };
    if x.dim(dim) == *out {
        return Ok(x.clone());
    }
    if *out == Expr::Int(1) {
        return pool(e, x);
    }
    let (Some(size), Some(count)) = (x.dim(dim).as_int(), out.as_int()) else {
        let message = format!("adaptive pooling of {} to {out}; expected static sizes or 1", x.dim(dim));
        return Err(Error::unsupported(message));
    };
    let mut parts = Vec::new();
    for k in 0..pieces("adaptive pooling", count)? {
        let (from, to) =
            window(k, size, count).ok_or_else(|| Error::shape("adaptive pooling", "its numbers leave 64 bits"))?;
        let part = e.slice(x, dim, &Expr::Int(from), &Expr::Int(to), 1)?;
        parts.push(pool(e, &part)?);
    }
    e.cat(&parts, dim)
}

/// `adaptive_avg_pool1d 2d 3d`: the mean over everything where the output is 1, ordinary pooling where sizes divide,
/// else the mean of each window, which is the product of a window along each dimension.
pub(super) fn adaptive_avg(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let spatial = match b.op() {
        op if op.contains("pool1d") => 1,
        op if op.contains("pool2d") => 2,
        _ => 3,
    };
    let lead = x.rank().saturating_sub(spatial);
    let out: Vec<Expr> = shape.iter().skip(lead).cloned().collect();
    if out.iter().all(|s| *s == Expr::Int(1)) {
        let wide = e.widen(&x)?;
        let y = e.mean(&wide, &(lead..x.rank()).collect::<Vec<_>>(), true)?;
        return one(e.to_dtype(&y, dtype)?);
    }
    let op = format!("aten.avg_pool{spatial}d.default");
    let kernel: Option<Vec<i64>> = x.shape.iter().skip(lead).zip(&out).map(|(i, o)| exact(i, o)).collect();
    if let Some(kernel) = kernel
        && e.is_lowerable(&op)
    {
        let kernel = Arg::ints(kernel);
        return one(e.call1(&op, vec![x.arg(), kernel.clone(), kernel], &[], dtype, &shape)?);
    }
    let mut y = e.widen(&x)?;
    for (k, size) in out.iter().enumerate() {
        y = adapt(e, &y, lead + k, size, true)?;
    }
    one(e.to_dtype(&y, dtype)?)
}

fn exact(size: &Expr, out: &Expr) -> Option<i64> {
    let (size, out) = (size.as_int()?, out.as_int()?);
    (out > 0 && size % out == 0).then(|| size / out)
}

/// `adaptive_max_pool2d` with its indices, where sizes divide: ordinary pooling.
pub(super) fn adaptive_max(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (_, shape) = e.result(b, 0)?;
    let lead = x.rank().saturating_sub(2);
    let kernel: Option<Vec<i64>> = x.shape.iter().zip(&shape).skip(lead).map(|(i, o)| exact(i, o)).collect();
    let Some(kernel) = kernel else {
        return Err(Error::unsupported("adaptive max pooling to sizes that do not divide the input's"));
    };
    let types: Vec<Type> = b.node.results.iter().map(|r| r.ty.clone()).collect();
    let kernel = Arg::ints(kernel);
    let zero = Arg::ints([0, 0]);
    let args = vec![x.arg(), kernel.clone(), kernel, zero, Arg::ints([1, 1]), Arg::Bool(false)];
    e.call("aten.max_pool2d_with_indices.default", args, &[], types)
}

/// `fractional_max_pool2d 3d(x, kernel_size, output_size, random_samples [N, C, 2 or 3])`: windows of `kernel` places
/// that begin along each axis at `floor((k + u)·a) - floor(u·a)` with `a = (size - kernel)/(out - 1)`, the last at
/// `size - kernel`; the largest element of each and its place in the plane. The random number `u` of the last axis
/// comes first for planes, that of the first axis for boxes.
pub(super) fn fractional_max(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let u = e.tensor(b, "random_samples")?;
    let (_, shape) = e.result(b, 0)?;
    let kernel = b.ints("kernel_size")?;
    let spatial = kernel.len();
    let lead = x.from_end(spatial)?;
    let planes: Vec<Expr> = x.shape.iter().take(lead).cloned().collect();
    let rows = crate::infer::numel(&planes);
    let u = e.view(&u, &[rows.clone(), Expr::Int(-1)])?;
    // `[plane, out…, kernel…]`: the place in the plane of each element of each window.
    let rank = 1 + 2 * spatial;
    let mut place: Option<V> = None;
    for (k, kernel) in kernel.iter().enumerate() {
        let (size, out) = (x.dim(lead + k), shape.get(lead + k).cloned().unwrap_or(Expr::Int(1)));
        let (Some(size), Some(out)) = (size.as_int(), out.as_int()) else {
            return Err(Error::unsupported(format!("{} of symbolic sizes", b.op())));
        };
        let column = if spatial == 2 { spatial - 1 - k } else { k };
        let u = e.select(&u, 1, &Expr::Int(i64::try_from(column).unwrap_or(0)))?;
        let start = window_starts(e, &u, size, out, *kernel)?;
        let mut sizes = vec![Expr::Int(1); rank];
        for (at, size) in [(0, rows.clone()), (1 + k, Expr::Int(out))] {
            if let Some(slot) = sizes.get_mut(at) {
                *slot = size;
            }
        }
        let start = e.view(&start, &sizes)?;
        let step = e.iota(&Expr::Int(*kernel), DType::I64)?;
        let step = e.along(&step, 1 + spatial + k, rank)?;
        let at = e.add(&start, &step)?;
        place = Some(match place {
            Some(place) => {
                let place = e.mul(&place, size)?;
                e.add(&place, &at)?
            }
            None => at,
        });
    }
    let place = place.ok_or_else(|| Error::shape(b.op(), "no axis"))?;
    let windows = crate::infer::numel(shape.get(lead..).unwrap_or_default());
    let area = m2m_tensor::expr::mul(kernel.iter().map(|n| Expr::Int(*n)));
    let place = e.view(&place, &[rows.clone(), windows.clone(), area])?;
    let flat = e.view(&place, &[rows.clone(), Expr::Int(-1)])?;
    let x = e.view(&x, &[rows.clone(), Expr::Int(-1)])?;
    let args = vec![x.arg(), Arg::Int(1), flat.arg()];
    let taken = e.call1("aten.gather.default", args, &[], x.dtype, &flat.shape)?;
    let taken = e.view(&taken, &place.shape)?;
    let kept = [rows.clone(), windows.clone(), Expr::Int(1)];
    let types = vec![crate::value::tensor_type(x.dtype, &kept), crate::value::tensor_type(DType::I64, &kept)];
    let most = e.call("aten.max.dim", vec![taken.arg(), Arg::Int(2), Arg::Bool(true)], &[], types)?;
    let [Some(y), Some(at)] = most.as_slice() else { return Err(Error::shape(b.op(), "no largest elements")) };
    let args = vec![place.arg(), Arg::Int(2), at.arg()];
    let at = e.call1("aten.gather.default", args, &[], DType::I64, &kept)?;
    Ok(vec![Some(e.view(y, &shape)?), Some(e.view(&at, &shape)?)])
}

/// Where the windows of each plane begin along an axis: `[planes, out]`.
fn window_starts(e: &mut Expander<'_, '_>, u: &V, size: i64, out: i64, kernel: i64) -> Result<V, Error> {
    let last = size.saturating_sub(kernel);
    let column = e.unsqueeze(u, 1)?;
    let k = e.iota(&Expr::Int(out), u.dtype)?;
    let step = if out > 1 { last as f64 / (out - 1) as f64 } else { 0.0 };
    let at = e.add(&k, &column)?;
    let at = e.mul(&at, step)?;
    let first = e.mul(&column, step)?;
    let (at, first) = (e.to_dtype(&at, DType::I64)?, e.to_dtype(&first, DType::I64)?);
    let at = e.sub(&at, &first)?;
    let k = e.iota(&Expr::Int(out), DType::I64)?;
    let is_last = e.compare("eq", &k, out.saturating_sub(1))?;
    let end = e.full(&[], DType::I64, last)?;
    e.select_where(&is_last, &end, &at)
}
