//! Softmax and its logarithm, shifted by the maximum so that exponentials do not overflow.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::promote::accumulate_dtype;
use crate::value::V;
use m2m_record::Arg;

fn input(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<(V, Vec<usize>), Error> {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let dims = if x.rank() == 0 { vec![] } else { vec![dim] };
    Ok((e.to_dtype(&x, accumulate_dtype(dtype))?, dims))
}

/// `y = exp(x - m) / sum(exp(x - m))`, `m = max(x)` along `dim`.
pub(super) fn softmax(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, dims) = input(e, b)?;
    let (dtype, _) = e.result(b, 0)?;
    let m = e.extreme("amax", &x, &dims, true)?;
    let y = e.sub(&x, &m)?;
    let y = e.unary_float("exp", &y)?;
    let s = e.sum(&y, &dims, true)?;
    let y = e.div(&y, &s)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `y = x - m - log(sum(exp(x - m)))`
pub(super) fn log_softmax(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, dims) = input(e, b)?;
    let (dtype, _) = e.result(b, 0)?;
    let m = e.extreme("amax", &x, &dims, true)?;
    let x = e.sub(&x, &m)?;
    let y = e.unary_float("exp", &x)?;
    let s = e.sum(&y, &dims, true)?;
    let s = e.unary_float("log", &s)?;
    let y = e.sub(&x, &s)?;
    one(e.to_dtype(&y, dtype)?)
}

/// Softmax along the last dimension, 0 in rows that are wholly `-inf`, where the plain one gives NaN.
pub(super) fn safe_softmax(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    safe_along(e, x, &[x.rank().saturating_sub(1)])
}

fn safe_along(e: &mut Expander<'_, '_>, x: &V, dims: &[usize]) -> Result<V, Error> {
    let m = e.extreme("amax", x, dims, true)?;
    let is_masked = e.compare("eq", &m, f64::NEG_INFINITY)?;
    let zero = e.full(&[], m.dtype, Arg::Int(0))?;
    let shift = e.select_where(&is_masked, &zero, &m)?;
    let y = e.sub(x, &shift)?;
    let y = e.unary_float("exp", &y)?;
    let s = e.sum(&y, dims, true)?;
    let unit = e.full(&[], s.dtype, Arg::Int(1))?;
    let s = e.select_where(&is_masked, &unit, &s)?;
    e.div(&y, &s)
}

/// `_safe_softmax(x, dim)`
pub(super) fn safe(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, dims) = input(e, b)?;
    let (dtype, _) = e.result(b, 0)?;
    let y = safe_along(e, &x, &dims)?;
    one(e.to_dtype(&y, dtype)?)
}
