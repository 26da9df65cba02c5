//! Gradients of activations: `g` is the gradient of the result, `x` the input of the activation.

use super::{finish, pair, pair_of};
use crate::bind::Bound;
use crate::decompose::identity::number;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::value::V;
use m2m_record::Arg;
use m2m_tensor::Expr;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// The factor of the cube in the approximation of GELU by the hyperbolic tangent.
const GELU_CUBE: f64 = 0.044715;

/// `where(is_flat, 0, y)`
fn flat_where(e: &mut Expander<'_, '_>, is_flat: &V, y: &V) -> Result<V, Error> {
    let zero = e.full(&[], y.dtype, Arg::Int(0))?;
    e.select_where(is_flat, &zero, y)
}

/// `1 - x`
fn rest_of(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let minus = e.unary("neg", x)?;
    e.add(&minus, 1.0)
}

/// `gelu_backward`: `g·(Φ(x) + x·φ(x))` with the normal distribution's `Φ(x) = (1 + erf(x/√2))/2` and
/// `φ(x) = exp(-x²/2)/√(2π)`; of the approximation `x·(1 + tanh u)/2`, `u = √(2/π)·(x + c·x³)`:
/// `g·((1 + tanh u)/2 + x/2·(1 - tanh² u)·u')`.
pub(crate) fn gelu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let square = e.mul(&x, &x)?;
    let slope = match b.str("approximate")? {
        "none" => {
            let part = e.mul(&x, FRAC_1_SQRT_2)?;
            let part = e.unary_float("erf", &part)?;
            let part = e.add(&part, 1.0)?;
            let below = e.mul(&part, 0.5)?;
            let bell = e.mul(&square, -0.5)?;
            let bell = e.unary_float("exp", &bell)?;
            let bell = e.mul(&bell, FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5)?;
            let bell = e.mul(&x, &bell)?;
            e.add(&below, &bell)?
        }
        "tanh" => {
            let beta = SQRT_2 * FRAC_2_SQRT_PI * 0.5;
            let cube = e.mul(&square, &x)?;
            let cube = e.mul(&cube, GELU_CUBE)?;
            let inner = e.add(&x, &cube)?;
            let inner = e.mul(&inner, beta)?;
            let t = e.unary_float("tanh", &inner)?;
            let above = e.add(&t, 1.0)?;
            let above = e.mul(&above, 0.5)?;
            let bend = e.mul(&t, &t)?;
            let bend = rest_of(e, &bend)?;
            let grow = e.mul(&square, 3.0 * GELU_CUBE)?;
            let grow = e.add(&grow, 1.0)?;
            let grow = e.mul(&grow, beta)?;
            let half = e.mul(&x, 0.5)?;
            let bend = e.mul(&half, &bend)?;
            let bend = e.mul(&bend, &grow)?;
            e.add(&above, &bend)?
        }
        other => return Err(Error::unsupported(format!("gelu_backward with the approximation {other:?}"))),
    };
    let y = e.mul(&g, &slope)?;
    finish(e, b, &y)
}

/// `hardtanh_backward`: `g` between the bounds, 0 at and beyond them; where `x` is NaN `g`.
pub(crate) fn hardtanh(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let low = e.compare("le", &x, b.scalar("min_val")?)?;
    let high = e.compare("ge", &x, b.scalar("max_val")?)?;
    let is_flat = e.binary_default("logical_or", &low, &high)?;
    let y = flat_where(e, &is_flat, &g)?;
    finish(e, b, &y)
}

/// `softplus_backward`: `g·z/(z + 1)` with `z = exp(beta·x)`; `g` where `beta·x > threshold`.
pub(crate) fn softplus(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let scaled = e.mul(&x, b.scalar("beta")?)?;
    let z = e.unary_float("exp", &scaled)?;
    let more = e.add(&z, 1.0)?;
    let low = e.mul(&g, &z)?;
    let low = e.div(&low, &more)?;
    let is_high = e.compare("gt", &scaled, b.scalar("threshold")?)?;
    let y = e.select_where(&is_high, &g, &low)?;
    finish(e, b, &y)
}

/// `silu_backward`: `g·s·(1 + x·(1 - s))` with `s = sigmoid(x)`.
pub(crate) fn silu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let s = e.unary_float("sigmoid", &x)?;
    let rest = rest_of(e, &s)?;
    let slope = e.mul(&x, &rest)?;
    let slope = e.add(&slope, 1.0)?;
    let y = e.mul(&g, &s)?;
    let y = e.mul(&y, &slope)?;
    finish(e, b, &y)
}

/// `mish_backward`: `g·(t + x·sigmoid(x)·(1 - t²))` with `t = tanh(log1p(exp(x)))`.
pub(crate) fn mish(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let s = e.unary_float("sigmoid", &x)?;
    let t = e.unary_float("exp", &x)?;
    let t = e.unary_float("log1p", &t)?;
    let t = e.unary_float("tanh", &t)?;
    let bend = e.mul(&t, &t)?;
    let bend = rest_of(e, &bend)?;
    let slope = e.mul(&x, &s)?;
    let slope = e.mul(&slope, &bend)?;
    let slope = e.add(&t, &slope)?;
    let y = e.mul(&g, &slope)?;
    finish(e, b, &y)
}

/// `hardswish_backward`: 0 up to -3, `g·(x/3 + 1/2)` below 3, `g` from there on.
pub(crate) fn hardswish(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let slope = e.div(&x, 3.0)?;
    let slope = e.add(&slope, 0.5)?;
    let middle = e.mul(&g, &slope)?;
    let is_middle = e.compare("lt", &x, 3.0)?;
    let y = e.select_where(&is_middle, &middle, &g)?;
    let is_flat = e.compare("le", &x, -3.0)?;
    let y = flat_where(e, &is_flat, &y)?;
    finish(e, b, &y)
}

/// `hardsigmoid_backward`: `g/6` between -3 and 3, else 0; also where `x` is NaN.
pub(crate) fn hardsigmoid(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let (above, below) = (e.compare("gt", &x, -3.0)?, e.compare("lt", &x, 3.0)?);
    let is_sloped = e.binary_default("logical_and", &above, &below)?;
    let part = e.mul(&g, 1.0 / 6.0)?;
    let zero = e.full(&[], part.dtype, Arg::Int(0))?;
    let y = e.select_where(&is_sloped, &part, &zero)?;
    finish(e, b, &y)
}

/// `logit_backward`: `g/(x·(1 - x))` inside of `[eps, 1 - eps]` and 0 outside; without `eps` inside of `[0, 1]`, NaN
/// outside.
pub(crate) fn logit(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let (least, outside) = b.float_or("eps")?.map_or((0.0, f64::NAN), |eps| (eps, 0.0));
    let rest = rest_of(e, &x)?;
    let slope = e.mul(&x, &rest)?;
    // Of a zero of either sign: at the ends the gradient keeps its own.
    let slope = e.unary("abs", &slope)?;
    let y = e.div(&g, &slope)?;
    let (low, high) = (e.compare("lt", &x, least)?, e.compare("gt", &x, 1.0 - least)?);
    let is_outside = e.binary_default("logical_or", &low, &high)?;
    let outside = e.full(&[], y.dtype, Arg::from(outside))?;
    let y = e.select_where(&is_outside, &outside, &y)?;
    finish(e, b, &y)
}

/// `log_sigmoid_backward`: `g·(1 - z/(1 + z))` of negative `x`, else `g·z/(1 + z)`, with `z = exp(-|x|)`, which is the
/// buffer where the forward kept it.
pub(crate) fn log_sigmoid(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let buffer = e.tensor(b, "buffer")?;
    let z = if buffer.shape == x.shape {
        e.widen(&buffer)?
    } else {
        let size = e.unary("abs", &x)?;
        let size = e.unary("neg", &size)?;
        e.unary_float("exp", &size)?
    };
    let more = e.add(&z, 1.0)?;
    let share = e.div(&z, &more)?;
    let rest = rest_of(e, &share)?;
    let is_negative = e.compare("lt", &x, 0.0)?;
    let slope = e.select_where(&is_negative, &rest, &share)?;
    let y = e.mul(&g, &slope)?;
    finish(e, b, &y)
}

/// `glu_backward`: of `a·sigmoid(c)`, `a` and `c` the halves of the input along `dim`: `g·s` and `g·a·s·(1 - s)` with
/// `s = sigmoid(c)`.
pub(crate) fn glu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let half = g.dim(dim);
    let a = e.slice(&x, dim, &Expr::Int(0), &half, 1)?;
    let c = e.slice(&x, dim, &half, &x.dim(dim), 1)?;
    let s = e.unary_float("sigmoid", &c)?;
    let first = e.mul(&s, &g)?;
    let rest = rest_of(e, &s)?;
    let second = e.mul(&first, &rest)?;
    let second = e.mul(&second, &a)?;
    let y = e.cat(&[first, second], dim)?;
    finish(e, b, &y)
}

/// `softshrink_backward`, `hardshrink_backward`: 0 where `|x| <= lambd`, else `g`; also where `x` is NaN.
pub(crate) fn shrink(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair_of(e, b, if b.has("grad_out") { "grad_out" } else { "grad_output" }, "self")?;
    let limit = number(b, "lambd")?;
    let (low, high) = (e.compare("ge", &x, -limit)?, e.compare("le", &x, limit)?);
    let is_flat = e.binary_default("logical_and", &low, &high)?;
    let y = flat_where(e, &is_flat, &g)?;
    finish(e, b, &y)
}

/// Slopes that lie closer than this are not random.
const LEAST_SPREAD: f64 = 1e-6;

/// `rrelu_with_noise_backward`: `g·noise` in training; else that of a leaky ReLU with the mean of both slopes.
pub(crate) fn rrelu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let (lower, upper) = (number(b, "lower")?, number(b, "upper")?);
    let y = if b.bool("training")? && upper - lower > LEAST_SPREAD {
        let noise = e.tensor(b, "noise")?;
        let noise = e.widen(&noise)?;
        e.mul(&g, &noise)?
    } else {
        let low = e.mul(&g, (lower + upper) / 2.0)?;
        let is_high = e.compare("gt", &x, 0.0)?;
        e.select_where(&is_high, &g, &low)?
    };
    finish(e, b, &y)
}

/// `_prelu_kernel_backward`: of the input `g` where `x > 0`, else `w·g`; of the weight 0 where `x > 0`, else `x·g`.
pub(crate) fn prelu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let w = e.tensor(b, "weight")?;
    let w = e.widen(&w)?;
    let is_high = e.compare("gt", &x, 0.0)?;
    let scaled = e.mul(&w, &g)?;
    let of_input = e.select_where(&is_high, &g, &scaled)?;
    let own = e.mul(&x, &g)?;
    let of_weight = flat_where(e, &is_high, &own)?;
    let mut out = Vec::new();
    for (k, y) in [of_input, of_weight].iter().enumerate() {
        let (dtype, _) = e.result(b, k)?;
        out.push(Some(e.to_dtype(y, dtype)?));
    }
    Ok(out)
}

/// `native_dropout_backward(g, mask, scale)`: `g·mask·scale`
pub(crate) fn dropout(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let wide = crate::promote::accumulate_dtype(crate::promote::float_of(dtype));
    let (g, mask) = (e.tensor(b, "grad_output")?, e.tensor(b, "mask")?);
    let (g, mask) = (e.to_dtype(&g, wide)?, e.to_dtype(&mask, wide)?);
    let y = e.mul(&g, &mask)?;
    let y = e.mul(&y, b.float("scale")?)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `fake_quantize_…_cachemask_backward(g, mask)`: `g` where the value was not cut, else 0.
pub(crate) fn masked(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, mask) = (e.tensor(b, "grad")?, e.tensor(b, "mask")?);
    let mask = e.to_dtype(&mask, g.dtype)?;
    let y = e.mul(&g, &mask)?;
    finish(e, b, &y)
}
