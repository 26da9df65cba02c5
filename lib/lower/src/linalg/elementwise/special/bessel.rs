//! Bessel's functions of orders 0 and 1, and Airy's: series near 0, and beyond them what is left of the function once its
//! growth, decay or oscillation is taken out, as a series in a power of `1/x`.

use super::{affine, chebyshev, choose, math, over, tables};
use crate::error::Result;
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_mlir::Value;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_4, PI};

/// `exp(-|x|) I(|x|)` of order 0, or of order 1 with the sign of `x`.
fn scaled_i<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, order: usize) -> Result<Value<'c>> {
    let size = math(s, "absf", x)?;
    let (near, far) = if order == 0 { (tables::I0_NEAR, tables::I0_FAR) } else { (tables::I1_NEAR, tables::I1_FAR) };
    let near = chebyshev(s, affine(s, size, 0.25, -1.0)?, near)?;
    let near = if order == 0 { near } else { s.mul(near, size)? };
    let far = chebyshev(s, s.sub(over(s, 16.0, size)?, s.number(1.0)?)?, far)?;
    let far = s.div(far, math(s, "sqrt", size)?)?;
    let y = choose(s, (size, Compare::Le, 8.0), near, far)?;
    if order == 0 { Ok(y) } else { choose(s, (x, Compare::Lt, 0.0), s.b.negf(y)?, y) }
}

fn grown<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, order: usize) -> Result<Value<'c>> {
    let y = scaled_i(s, x, order)?;
    s.mul(y, math(s, "exp", math(s, "absf", x)?)?)
}

/// `I0(x)`
pub fn i0<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    grown(s, x, 0)
}

/// `exp(-|x|) I0(x)`
pub fn i0e<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    scaled_i(s, x, 0)
}

/// `I1(x)`
pub fn i1<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    grown(s, x, 1)
}

/// `exp(-|x|) I1(x)`
pub fn i1e<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    scaled_i(s, x, 1)
}

/// `K(x)` of order 0 or 1, or `exp(x)` times it: infinite at 0, NaN below.
fn k<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, order: usize, is_scaled: bool) -> Result<Value<'c>> {
    let (near, far) = if order == 0 { (tables::K0_NEAR, tables::K0_FAR) } else { (tables::K1_NEAR, tables::K1_FAR) };
    let near = chebyshev(s, affine(s, s.mul(x, x)?, 0.5, -1.0)?, near)?;
    let log = s.mul(math(s, "log", s.mul(x, s.number(0.5)?)?)?, grown(s, x, order)?)?;
    let near = if order == 0 { s.sub(near, log)? } else { s.add(log, s.div(near, x)?)? };
    let far = chebyshev(s, s.sub(over(s, 4.0, x)?, s.number(1.0)?)?, far)?;
    let far = s.div(far, math(s, "sqrt", x)?)?;
    let (near, far) = if is_scaled {
        (s.mul(near, math(s, "exp", x)?)?, far)
    } else {
        (near, s.mul(far, math(s, "exp", s.b.negf(x)?)?)?)
    };
    let y = choose(s, (x, Compare::Le, 2.0), near, far)?;
    let y = choose(s, (x, Compare::Eq, 0.0), s.number(f64::INFINITY)?, y)?;
    choose(s, (x, Compare::Lt, 0.0), s.number(f64::NAN)?, y)
}

/// `K0(x)`
pub fn k0<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    k(s, x, 0, false)
}

/// `K1(x)`
pub fn k1<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    k(s, x, 1, false)
}

/// `exp(x) K0(x)`
pub fn k0_scaled<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    k(s, x, 0, true)
}

/// `exp(x) K1(x)`
pub fn k1_scaled<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    k(s, x, 1, true)
}

/// What oscillates beyond 8: `sqrt(2/(πx)) (P cos χ - Q sin χ)`, or with `Y` `P sin χ + Q cos χ`, for `χ = x - (2n+1)π/4`.
fn wave<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, order: usize, is_second: bool) -> Result<Value<'c>> {
    let (p, q) = if order == 0 { (tables::P0_FAR, tables::Q0_FAR) } else { (tables::P1_FAR, tables::Q1_FAR) };
    let t = s.sub(over(s, 128.0, s.mul(x, x)?)?, s.number(1.0)?)?;
    let (p, q) = (chebyshev(s, t, p)?, s.div(chebyshev(s, t, q)?, x)?);
    let angle = s.sub(x, s.number((2 * order + 1) as f64 * FRAC_PI_4)?)?;
    let (cos, sin) = (math(s, "cos", angle)?, math(s, "sin", angle)?);
    let sum = if is_second { s.add(s.mul(p, sin)?, s.mul(q, cos)?)? } else { s.sub(s.mul(p, cos)?, s.mul(q, sin)?)? };
    s.mul(sum, math(s, "sqrt", over(s, FRAC_2_PI, x)?)?)
}

/// `J` of order 0 or 1 for `x` of 0 and more.
fn j<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, order: usize) -> Result<Value<'c>> {
    let series = if order == 0 { tables::J0_NEAR } else { tables::J1_NEAR };
    let near = chebyshev(s, affine(s, s.mul(x, x)?, 1.0 / 32.0, -1.0)?, series)?;
    let near = if order == 0 { near } else { s.mul(near, x)? };
    choose(s, (x, Compare::Le, 8.0), near, wave(s, x, order, false)?)
}

/// `J0(x)`
pub fn j0<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    j(s, math(s, "absf", x)?, 0)
}

/// `J1(x)`
pub fn j1<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let y = j(s, math(s, "absf", x)?, 1)?;
    choose(s, (x, Compare::Lt, 0.0), s.b.negf(y)?, y)
}

/// `Y` of order 0 or 1: `-inf` at 0, NaN below.
fn y<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, order: usize) -> Result<Value<'c>> {
    let series = if order == 0 { tables::Y0_NEAR } else { tables::Y1_NEAR };
    let near = chebyshev(s, affine(s, s.mul(x, x)?, 1.0 / 32.0, -1.0)?, series)?;
    let mut log = s.mul(math(s, "log", x)?, j(s, x, order)?)?;
    let near = if order == 0 {
        near
    } else {
        log = s.sub(log, over(s, 1.0, x)?)?;
        s.mul(near, x)?
    };
    let near = s.add(near, s.mul(log, s.number(FRAC_2_PI)?)?)?;
    let y = choose(s, (x, Compare::Le, 8.0), near, wave(s, x, order, true)?)?;
    let y = choose(s, (x, Compare::Eq, 0.0), s.number(f64::NEG_INFINITY)?, y)?;
    choose(s, (x, Compare::Lt, 0.0), s.number(f64::NAN)?, y)
}

/// `Y0(x)`
pub fn y0<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    y(s, x, 0)
}

/// `Y1(x)`
pub fn y1<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    y(s, x, 1)
}

/// `sin(x) / x`: 1 at 0, 0 at infinities.
pub fn spherical_j0<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let y = s.div(math(s, "sin", x)?, x)?;
    let y = choose(s, (x, Compare::Eq, 0.0), s.number(1.0)?, y)?;
    choose(s, (math(s, "absf", x)?, Compare::Eq, f64::INFINITY), s.number(0.0)?, y)
}

/// `Ai(x)`; NaN at infinities, as PyTorch has it. With `ζ = 2/3 |x|^(3/2)`: from 2 on what decays as `exp(-ζ)`, below -6
/// what oscillates as `sin(ζ + π/4)`, one series between.
pub fn airy<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let zeta_of = |x: f64| 2.0 / 3.0 * x.powf(1.5);
    let size = math(s, "absf", x)?;
    let root = math(s, "sqrt", size)?;
    let zeta = s.mul(s.mul(size, root)?, s.number(2.0 / 3.0)?)?;
    let fourth = s.mul(math(s, "sqrt", root)?, s.number(PI.sqrt())?)?;
    let t = s.sub(over(s, 2.0 * zeta_of(2.0), zeta)?, s.number(1.0)?)?;
    let right = s.mul(chebyshev(s, t, tables::AIRY_RIGHT)?, math(s, "exp", s.b.negf(zeta)?)?)?;
    let right = s.div(s.mul(right, s.number(0.5)?)?, fourth)?;
    let middle = chebyshev(s, affine(s, x, 0.25, 0.5)?, tables::AIRY_MIDDLE)?;
    let ratio = over(s, zeta_of(6.0), zeta)?;
    let t = affine(s, s.mul(ratio, ratio)?, 2.0, -1.0)?;
    let (p, q) = (chebyshev(s, t, tables::AIRY_P)?, s.div(chebyshev(s, t, tables::AIRY_Q)?, zeta)?);
    let angle = s.add(zeta, s.number(FRAC_PI_4)?)?;
    let left = s.sub(s.mul(p, math(s, "sin", angle)?)?, s.mul(q, math(s, "cos", angle)?)?)?;
    let left = s.div(left, fourth)?;
    let y = choose(s, (x, Compare::Lt, -6.0), left, middle)?;
    let y = choose(s, (x, Compare::Gt, 2.0), right, y)?;
    choose(s, (size, Compare::Eq, f64::INFINITY), s.number(f64::NAN)?, y)
}
