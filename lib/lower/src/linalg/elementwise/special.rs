//! Special functions of real numbers, in `f64` whatever the element type is: their series are exact to its last bits, so
//! that a result of `f32` or less is rounded once.
//!
//! `bessel` holds Bessel's and Airy's functions, `gamma` those made of the gamma function, `orthogonal` the polynomials,
//! which are computed in the result's own type, `tables` the series. Definitions are those of `torch.special`.

pub mod bessel;
pub mod gamma;
pub mod orthogonal;
mod tables;

use super::binary::Binary;
use super::unary::Unary;
use super::{Operand, arg_at, emit};
use crate::error::Result;
use crate::linalg::cx::{Cx, Val};
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_mlir::Value;
use m2m_record::{DType, Node};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Lowers a function of one number, computed in `f64`.
pub fn lower<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, body: Unary) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let operands = [Operand::of(cx, arg_at(bound, 0)?)?];
    let t = emit(cx, &result, &operands, DType::F64, DType::F64, |s, v| body(s, v[0], bound))?;
    Ok(vec![Val::Tensor(t)])
}

/// Lowers a function of two numbers, computed in `f64`.
pub fn lower_pair<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, body: Binary) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let operands = [Operand::of(cx, arg_at(bound, 0)?)?, Operand::of(cx, arg_at(bound, 1)?)?];
    let t = emit(cx, &result, &operands, DType::F64, DType::F64, |s, v| body(s, v[0], v[1], bound))?;
    Ok(vec![Val::Tensor(t)])
}

/// `f(x)` by its name in the math dialect.
fn math<'c>(s: &Scalars<'_, 'c>, name: &str, x: Value<'c>) -> Result<Value<'c>> {
    Ok(s.b.unary(&format!("math.{name}"), x)?)
}

/// `x · c + d`
fn affine<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, c: f64, d: f64) -> Result<Value<'c>> {
    s.add(s.mul(x, s.number(c)?)?, s.number(d)?)
}

/// `c / x`
fn over<'c>(s: &Scalars<'_, 'c>, c: f64, x: Value<'c>) -> Result<Value<'c>> {
    s.div(s.number(c)?, x)
}

/// A choice by how `x` compares with a number.
fn choose<'c>(
    s: &Scalars<'_, 'c>,
    (x, op, limit): (Value<'c>, Compare, f64),
    then: Value<'c>,
    other: Value<'c>,
) -> Result<Value<'c>> {
    Ok(s.b.select(s.compare(op, x, s.number(limit)?)?, then, other)?)
}

/// `Σ c[k] T_k(t)`, by Clenshaw's recurrence.
fn chebyshev<'c>(s: &Scalars<'_, 'c>, t: Value<'c>, terms: &[f64]) -> Result<Value<'c>> {
    let zero = s.number(0.0)?;
    let double = s.add(t, t)?;
    let (mut next, mut after) = (zero, zero);
    for term in terms.iter().skip(1).rev() {
        let y = s.add(s.sub(s.mul(double, next)?, after)?, s.number(*term)?)?;
        (next, after) = (y, next);
    }
    s.add(s.sub(s.mul(t, next)?, after)?, s.number(terms.first().copied().unwrap_or(0.0))?)
}

/// `c[0] + c[1]·x + c[2]·x² + …`
fn polynomial<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, terms: &[f64]) -> Result<Value<'c>> {
    let mut y = s.number(0.0)?;
    for term in terms.iter().rev() {
        y = s.add(s.mul(y, x)?, s.number(*term)?)?;
    }
    Ok(y)
}

/// `-x log x`, 0 of 0, `-inf` below.
pub fn entr<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let y = s.b.negf(s.mul(x, math(s, "log", x)?)?)?;
    let y = choose(s, (x, Compare::Eq, 0.0), s.number(0.0)?, y)?;
    choose(s, (x, Compare::Lt, 0.0), s.number(f64::NEG_INFINITY)?, y)
}

/// `x log1p(y)`, 0 where `x` is 0 and `y` is no NaN.
pub fn xlog1py<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let product = s.mul(x, math(s, "log1p", y)?)?;
    let z = choose(s, (x, Compare::Eq, 0.0), s.number(0.0)?, product)?;
    Ok(s.b.select(s.is_nan(y)?, y, z)?)
}

/// `exp(x²) erfc(x)`: a series for `x` of 0 and more, `2 exp(x²)` less that of `-x` below.
fn scaled_erfc<'c>(s: &Scalars<'_, 'c>, x: Value<'c>) -> Result<Value<'c>> {
    let size = math(s, "absf", x)?;
    // The quotient of infinities would be NaN.
    let size = s.minimum(size, s.number(1e300)?)?;
    let four = s.number(4.0)?;
    let (less, more) = (s.sub(four, size)?, s.add(four, size)?);
    let y = s.div(chebyshev(s, s.div(less, more)?, tables::ERFCX)?, more)?;
    let square = math(s, "exp", s.mul(x, x)?)?;
    let below = s.sub(s.add(square, square)?, y)?;
    let y = choose(s, (x, Compare::Lt, 0.0), below, y)?;
    let y = choose(s, (x, Compare::Eq, f64::INFINITY), s.number(0.0)?, y)?;
    Ok(s.b.select(s.is_nan(x)?, x, y)?)
}

/// `exp(x²) erfc(x)`
pub fn erfcx<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    scaled_erfc(s, x)
}

/// The logarithm of the normal distribution, `log(erfc(-x/√2) / 2)`: below -1 `log(erfcx(-x/√2) / 2) - x²/2`, else `log1p(-erfc(x/√2) / 2)`.
pub fn log_ndtr<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let t = s.mul(x, s.number(FRAC_1_SQRT_2)?)?;
    let tail = math(s, "log", s.mul(scaled_erfc(s, s.b.negf(t)?)?, s.number(0.5)?)?)?;
    let low = s.sub(tail, s.mul(t, t)?)?;
    let high = math(s, "log1p", s.mul(math(s, "erfc", t)?, s.number(-0.5)?)?)?;
    choose(s, (x, Compare::Lt, -1.0), low, high)
}

/// Where the normal distribution is `p`: of `p` up to 1/2 `-z + (a polynomial) / (another one)` in `z = sqrt(-2 log p)`, good to 5e-4
/// (Abramowitz and Stegun, 26.2.23), and two steps of Halley's method, each of which triples the digits; of the others by
/// `-ndtri(1 - p)`. Infinite at 0 and 1, NaN outside.
pub fn ndtri<'c>(s: &Scalars<'_, 'c>, p: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let other = s.sub(s.number(1.0)?, p)?;
    let low = choose(s, (p, Compare::Gt, 0.5), other, p)?;
    let z = math(s, "sqrt", s.mul(math(s, "log", low)?, s.number(-2.0)?)?)?;
    let top = polynomial(s, z, &[2.515517, 0.802853, 0.010328])?;
    let bottom = polynomial(s, z, &[1.0, 1.432788, 0.189269, 0.001308])?;
    let mut x = s.sub(s.div(top, bottom)?, z)?;
    for _ in 0..2 {
        let area = s.mul(s.number(0.5)?, math(s, "erfc", s.mul(x, s.number(-FRAC_1_SQRT_2)?)?)?)?;
        let density = math(s, "exp", s.mul(s.mul(x, x)?, s.number(0.5)?)?)?;
        let step = s.mul(s.mul(s.sub(area, low)?, density)?, s.number((2.0 * PI).sqrt())?)?;
        let bend = affine(s, s.mul(x, step)?, 0.5, 1.0)?;
        x = s.sub(x, s.div(step, bend)?)?;
    }
    let x = choose(s, (p, Compare::Gt, 0.5), s.b.negf(x)?, x)?;
    let x = choose(s, (p, Compare::Eq, 0.0), s.number(f64::NEG_INFINITY)?, x)?;
    let x = choose(s, (p, Compare::Eq, 1.0), s.number(f64::INFINITY)?, x)?;
    let nan = s.number(f64::NAN)?;
    let x = choose(s, (p, Compare::Lt, 0.0), nan, x)?;
    choose(s, (p, Compare::Gt, 1.0), nan, x)
}
