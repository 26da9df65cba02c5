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
