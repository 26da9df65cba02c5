//! Gradients of losses by their input `x`, `t` being the target: `g` is the gradient of the loss, of which a mean gives
//! each element its share.

use super::{finish, pair};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::infer::numel;
use crate::value::{V, size_arg};
use m2m_record::Arg;

/// `g`, divided by the number of elements where the loss is their mean; and `x`, `t`.
fn read(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<(V, V, V), Error> {
    let (mut g, x) = pair(e, b, "self")?;
    let t = e.tensor(b, "target")?;
    let t = e.widen(&t)?;
    if b.int("reduction")? == 1 {
        let shape = crate::infer::broadcast(b.op(), &x.shape, &t.shape)?;
        let count = size_arg(&numel(&shape));
        g = e.div(&g, &count)?;
    }
    Ok((g, x, t))
}

/// Ends with the shape of the input, to which a gradient without dimensions is stretched.
fn shaped(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &V) -> Results {
    let (_, shape) = e.result(b, 0)?;
    let y = e.expand_to(y, &shape)?;
    finish(e, b, &y)
}

/// `mse_loss_backward`: `2·(x - t)·g`
pub(crate) fn square(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, t) = read(e, b)?;
    let d = e.sub(&x, &t)?;
    let d = e.mul(&d, 2.0)?;
    let y = e.mul(&d, &g)?;
    shaped(e, b, &y)
}

/// `smooth_l1_loss_backward(beta)`: with `d = x - t`, `-g` up to `-beta`, `g` from `beta` on, `d·g/beta` between;
/// `huber_loss_backward(delta)` is `delta` times that.
pub(crate) fn smooth(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, t) = read(e, b)?;
    let is_huber = b.has("delta");
    let limit = b.float(if is_huber { "delta" } else { "beta" })?;
    let d = e.sub(&x, &t)?;
    let near = e.mul(&d, &g)?;
    let near = if is_huber { near } else { e.div(&near, limit)? };
    let far = if is_huber { e.mul(&g, limit)? } else { g };
    let (is_low, is_high) = (e.compare("le", &d, -limit)?, e.compare("ge", &d, limit)?);
    let minus = e.unary("neg", &far)?;
    let y = e.select_where(&is_high, &far, &near)?;
    let y = e.select_where(&is_low, &minus, &y)?;
    shaped(e, b, &y)
}

/// Least divisor of the gradient of a cross entropy.
const LEAST_SLOPE: f64 = 1e-12;

/// `binary_cross_entropy_backward`: `w·g·(x - t)/max(x·(1 - x), 1e-12)`
pub(crate) fn binary_cross_entropy(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, t) = read(e, b)?;
    let rest = e.unary("neg", &x)?;
    let rest = e.add(&rest, 1.0)?;
    let slope = e.mul(&rest, &x)?;
    let slope =
        e.call1("aten.clamp.default", vec![slope.arg(), Arg::from(LEAST_SLOPE)], &[], slope.dtype, &slope.shape)?;
    let d = e.sub(&x, &t)?;
    let y = e.mul(&g, &d)?;
    let mut y = e.div(&y, &slope)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        y = e.mul(&y, &w)?;
    }
    shaped(e, b, &y)
}

/// `soft_margin_loss_backward`: `-t·g·z/(1 + z)` with `z = exp(-t·x)`.
pub(crate) fn soft_margin(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, t) = read(e, b)?;
    let minus = e.unary("neg", &t)?;
    let z = e.mul(&minus, &x)?;
    let z = e.unary_float("exp", &z)?;
    let more = e.add(&z, 1.0)?;
    let y = e.mul(&minus, &z)?;
    let y = e.mul(&y, &g)?;
    let y = e.div(&y, &more)?;
    shaped(e, b, &y)
}
