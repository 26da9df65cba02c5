//! The quantize and dequantize operators of PT2E, as arithmetic.
//!
//! Source: the reference implementations that PyTorch registers for `quantized_decomposed`.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::value::{O, V};
use m2m_record::{Arg, DType};

/// A scale or zero point: a number, a tensor of one element, or one element for each slice along `axis`.
fn parameter(e: &mut Expander<'_, '_>, b: &Bound<'_>, name: &str, x: &V) -> Result<Option<O>, Error> {
    if matches!(b.arg(name)?, Arg::Null) {
        return Ok(None);
    }
    Ok(Some(match e.operand(b, name)? {
        O::N(n) => O::N(n),
        O::T(v) if b.has("axis") => {
            let axis = wrap_dim(b.op(), b.int("axis")?, x.rank())?;
            let size = x.dim(axis);
            // Two symbols for one size: the operator is defined only where they are equal.
            let is_named_twice = v.dim(0) != size && (v.dim(0).as_int().is_none() || size.as_int().is_none());
            let v = if is_named_twice { e.slice(&v, 0, &m2m_tensor::Expr::Int(0), &size, 1)? } else { v };
            O::T(e.along(&v, axis, x.rank())?)
        }
        O::T(v) => O::T(e.view(&v, &[])?),
    }))
}

fn names(b: &Bound<'_>) -> (&'static str, &'static str) {
    if b.has("scales") { ("scales", "zero_points") } else { ("scale", "zero_point") }
}

/// `clamp(round(x · (1/scale)) + zero_point, quant_min, quant_max)`, `round` half to even, the reciprocal taken first.
pub(super) fn quantize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (dtype, _) = e.result(b, 0)?;
    let x = e.widen(&x)?;
    let (scale, zero_point) = names(b);
    let inverse = match parameter(e, b, scale, &x)? {
        Some(O::N(Arg::Float(s))) => O::from(1.0 / s.0),
        Some(O::N(Arg::Int(s))) => O::from(1.0 / s as f64),
        Some(O::T(s)) => O::T(e.unary_float("reciprocal", &s)?),
        _ => return Err(Error::unsupported(format!("{} without a scale", b.op()))),
    };
    let y = e.mul(&x, &inverse)?;
    let y = e.unary("round", &y)?;
    let y = match parameter(e, b, zero_point, &x)? {
        Some(O::N(Arg::Int(0))) | None => y,
        Some(z) => e.add(&y, &z)?,
    };
    let y = match (e.operand(b, "quant_min")?, e.operand(b, "quant_max")?) {
        (O::N(low), O::N(high)) => e.call1("aten.clamp.default", vec![y.arg(), low, high], &[], y.dtype, &y.shape)?,
        (low, high) => {
            let (low, high) = (e.lift(&low, y.dtype)?, e.lift(&high, y.dtype)?);
            e.call1("aten.clamp.Tensor", vec![y.arg(), low.arg(), high.arg()], &[], y.dtype, &y.shape)?
        }
    };
    one(e.to_dtype(&y, dtype)?)
}

/// `(x - zero_point) · scale`. For one scale the difference is taken in the float type, for one a channel in integers.
pub(super) fn dequantize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (dtype, _) = e.result(b, 0)?;
    let (scale, zero_point) = names(b);
    let x = if b.has("axis") { x } else { e.to_dtype(&x, dtype)? };
    let y = match parameter(e, b, zero_point, &x)? {
        Some(O::N(Arg::Int(0))) | None => x,
        Some(z) => e.sub(&x, &z)?,
    };
    let y = match parameter(e, b, scale, &y)? {
        Some(s) => e.mul(&y, &s)?,
        None => return Err(Error::unsupported(format!("{} without a scale", b.op()))),
    };
    one(e.to_dtype(&y, dtype)?)
}

/// `choose_qparams`: `scale = max((max⁺ - min⁻) / (quant_max - quant_min), eps)` and
/// `zero_point = clamp(quant_min - round(min⁻ / scale))`, of the extremes with 0 among them.
pub(super) fn choose(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (low, high, eps) = (b.int("quant_min")?, b.int("quant_max")?, b.float("eps")?);
    let all: Vec<usize> = (0..x.rank()).collect();
    let (min, max) = (e.extreme("amin", &x, &all, false)?, e.extreme("amax", &x, &all, false)?);
    let zero = e.full(&[], x.dtype, Arg::Int(0))?;
    let (min, max) = (e.binary_default("minimum", &min, &zero)?, e.binary_default("maximum", &max, &zero)?);
    let span = e.sub(&max, &min)?;
    let levels = high.checked_sub(low).ok_or_else(|| Error::shape(b.op(), "quant_max - quant_min overflows"))?;
    let scale = e.div(&span, levels as f64)?;
    let eps = e.full(&[m2m_tensor::Expr::Int(1)], DType::F32, Arg::from(eps))?;
    let scale = e.binary_default("maximum", &scale, &eps)?;
    let offset = e.div(&min, &scale)?;
    let offset = e.unary("round", &offset)?;
    let offset = e.to_dtype(&offset, DType::I32)?;
    let offset = e.unary("neg", &offset)?;
    let offset = e.add(&offset, low)?;
    let args = vec![offset.arg(), Arg::Int(low), Arg::Int(high)];
    let zero_point = e.call1("aten.clamp.default", args, &[], offset.dtype, &offset.shape)?;
    let mut out: Vec<Option<V>> = Vec::new();
    for (k, v) in [scale, zero_point].iter().enumerate() {
        let (dtype, _) = e.result(b, k)?;
        out.push(Some(e.to_dtype(v, dtype)?));
    }
    Ok(out)
}

/// `fake_quantize…`: `(clamp(round(x/scale) + zero_point) - zero_point)·scale`, with one scale or one along `axis`, each
/// a number or a tensor; with a mask of what the clamp left alone where the operator gives one.
pub(super) fn fake_quantize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, if b.has("self") { "self" } else { "input" })?;
    let (dtype, _) = e.result(b, 0)?;
    let wide = e.widen(&x)?;
    let (low, high) = (b.int("quant_min")?, b.int("quant_max")?);
    let (scale, zero) = names(b);
    let (Some(scale), Some(zero)) = (parameter(e, b, scale, &x)?, parameter(e, b, zero, &x)?) else {
        return Err(Error::unsupported(format!("{} without a scale", b.op())));
    };
    let inverse = match &scale {
        O::N(_) => O::from(1.0 / b.float("scale")?),
        O::T(s) => O::T(e.unary_float("reciprocal", s)?),
    };
    let zero = match zero {
        O::T(z) => O::T(e.to_dtype(&z, wide.dtype)?),
        number => number,
    };
    let y = e.mul(&wide, &inverse)?;
    let y = e.unary("round", &y)?;
    let q = e.add(&y, &zero)?;
    let args = vec![q.arg(), Arg::Int(low), Arg::Int(high)];
    let kept = e.call1("aten.clamp.default", args, &[], q.dtype, &q.shape)?;
    let y = e.sub(&kept, &zero)?;
    let y = e.mul(&y, &scale)?;
    let mut out = vec![Some(e.to_dtype(&y, dtype)?)];
    if b.node.results.len() == 2 {
        out.push(Some(e.compare("eq", &kept, &q)?));
    }
    Ok(out)
}
