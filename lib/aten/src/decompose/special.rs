//! Functions of numbers that few programs need, in terms of common ones.

use super::identity::number;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::promote::accumulate_dtype;
use crate::series::LANCZOS;
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;
use std::f64::consts::{LN_2, PI};

pub(super) fn finish(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &V) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(y, dtype)?)
}

/// The argument `self` in the dtype in which the result is computed.
pub(super) fn input(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<V, Error> {
    let (dtype, _) = e.result(b, 0)?;
    let x = e.tensor(b, "self")?;
    e.to_dtype(&x, accumulate_dtype(dtype))
}

/// `deg2rad`: `x·π/180`; `rad2deg`: `x·180/π`
pub(super) fn angle_unit(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = input(e, b)?;
    let y = e.mul(&x, if b.op() == "aten.deg2rad.default" { PI / 180.0 } else { 180.0 / PI })?;
    finish(e, b, &y)
}

/// `logaddexp2`: `log2(2^a + 2^b)`, from `logaddexp` of both times `ln 2`.
pub(super) fn logaddexp2(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let wide = accumulate_dtype(dtype);
    let mut parts = Vec::new();
    for name in ["self", "other"] {
        let v = e.tensor(b, name)?;
        let v = e.to_dtype(&v, wide)?;
        parts.push(e.mul(&v, LN_2)?.arg());
    }
    let y = e.call1("aten.logaddexp.default", parts, &[], wide, &shape)?;
    let y = e.mul(&y, 1.0 / LN_2)?;
    finish(e, b, &y)
}

/// `isclose(a, b, rtol, atol, equal_nan)`: equal, or finite with `|a - b| <= atol + |rtol·b|`; two NaN where asked for.
pub(super) fn isclose(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let mut close = e.compare("eq", &x, &y)?;
    let (rtol, atol) = (b.float("rtol")?, b.float("atol")?);
    if (x.dtype.is_float() || x.dtype.is_complex()) && b.bool("equal_nan")? {
        let (of_x, of_y) = (e.test("isnan", &x)?, e.test("isnan", &y)?);
        let both = e.binary_default("logical_and", &of_x, &of_y)?;
        close = e.binary_default("logical_or", &close, &both)?;
    }
    if rtol == 0.0 && atol == 0.0 {
        return one(close);
    }
    let (x, y) = (e.widen_float(&x)?, e.widen_float(&y)?);
    let off = e.sub(&x, &y)?;
    let off = e.unary("abs", &off)?;
    let allowed = e.mul(&y, rtol)?;
    let allowed = e.unary("abs", &allowed)?;
    let allowed = e.add(&allowed, atol)?;
    let is_within = e.compare("le", &off, &allowed)?;
    let is_finite = e.test("isfinite", &off)?;
    let is_within = e.binary_default("logical_and", &is_within, &is_finite)?;
    one(e.binary_default("logical_or", &close, &is_within)?)
}

/// `ndtr`: `(1 + erf(x/√2)) / 2`, rounded after each step as PyTorch's four operators do.
pub(super) fn ndtr(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let x = e.tensor(b, "self")?;
    let x = e.to_dtype(&x, dtype)?;
    let x = e.div(&x, std::f64::consts::SQRT_2)?;
    let y = e.unary("erf", &x)?;
    let y = e.add(&y, 1.0)?;
    one(e.mul(&y, 0.5)?)
}

/// `renorm(p, dim, maxnorm)`: each slice along `dim` whose `p`-norm is above `maxnorm` brought down to it.
pub(super) fn renorm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = input(e, b)?;
    let dim = crate::infer::wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != dim).collect();
    let norm = super::reduce::vector_norm(e, &x, number(b, "p")?, &dims, true)?;
    let most = number(b, "maxnorm")?;
    let divisor = e.add(&norm, 1e-7)?;
    let factor = e.unary_float("reciprocal", &divisor)?;
    let factor = e.mul(&factor, most)?;
    let is_long = e.compare("gt", &norm, most)?;
    let unit = e.full(&[], factor.dtype, Arg::Int(1))?;
    let factor = e.select_where(&is_long, &factor, &unit)?;
    let y = e.mul(&x, &factor)?;
    finish(e, b, &y)
}

/// `sinc`: `sin(πx)/(πx)`, 1 at 0.
pub(super) fn sinc(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = input(e, b)?;
    let angle = e.mul(&x, PI)?;
    let sine = e.unary_float("sin", &angle)?;
    let ratio = e.div(&sine, &angle)?;
    let is_zero = e.compare("eq", &x, 0i64)?;
    let unit = e.full(&[], ratio.dtype, Arg::Int(1))?;
    let y = e.select_where(&is_zero, &unit, &ratio)?;
    finish(e, b, &y)
}

/// `heaviside(x, values)`: 0 below 0, 1 above, `values` at 0; NaN gives 0.
pub(super) fn heaviside(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, values) = (e.tensor(b, "self")?, e.tensor(b, "values")?);
    let is_high = e.compare("gt", &x, 0i64)?;
    let step = e.to_dtype(&is_high, x.dtype)?;
    let is_zero = e.compare("eq", &x, 0i64)?;
    one(e.select_where(&is_zero, &values, &step)?)
}

/// `mvlgamma(x, p)`: `p(p-1)/4·log π + Σ lgamma(x - j/2)` for `j` below `p`.
pub(super) fn mvlgamma(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = input(e, b)?;
    let p = b.int("p")?;
    if p < 1 {
        return Err(Error::shape(b.op(), format!("{p} terms; expected at least one")));
    }
    let halves = e.iota(&Expr::Int(p), x.dtype)?;
    let halves = e.mul(&halves, 0.5)?;
    let wide = e.unsqueeze(&x, x.rank())?;
    let shifted = e.sub(&wide, &halves)?;
    let terms = e.unary("lgamma", &shifted)?;
    let y = e.sum(&terms, &[x.rank()], false)?;
    let y = e.add(&y, p as f64 * (p as f64 - 1.0) / 4.0 * PI.ln())?;
    finish(e, b, &y)
}

/// `lcm`: `|a / gcd(a, b) · b|`, 0 where either is.
pub(super) fn lcm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (x, y) = (e.to_dtype(&x, dtype)?, e.to_dtype(&y, dtype)?);
    let common = e.call1("aten.gcd.default", vec![x.arg(), y.arg()], &[], dtype, &shape)?;
    let is_zero = e.compare("eq", &common, 0i64)?;
    let unit = e.full(&[], dtype, Arg::Int(1))?;
    let divisor = e.select_where(&is_zero, &unit, &common)?;
    let args = vec![x.arg(), divisor.arg()];
    let part = e.call1("aten.div.Tensor_mode", args, &[("rounding_mode", Arg::from("trunc"))], dtype, &shape)?;
    let whole = e.mul(&part, &y)?;
    one(e.unary("abs", &whole)?)
}

/// The argument `self` in `f64`, in which the series below are good to the last bits of the result.
pub(super) fn wide_input(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<V, Error> {
    let x = e.tensor(b, "self")?;
    e.to_dtype(&x, DType::F64)
}

/// `c[0] + c[1]·x + c[2]·x² + …`
pub(super) fn polynomial(e: &mut Expander<'_, '_>, x: &V, terms: &[f64]) -> Result<V, Error> {
    let Some((last, rest)) = terms.split_last() else { return e.full(&[], x.dtype, Arg::Int(0)) };
    let mut y = e.full(&[], x.dtype, Arg::from(*last))?;
    for term in rest.iter().rev() {
        y = e.mul(&y, x)?;
        y = e.add(&y, *term)?;
    }
    Ok(y)
}

/// `erfinv`: a rational approximation in `y²` up to 0.7, in `sqrt(-log((1 - |y|)/2))` beyond, and two steps of Newton's
/// method on `erf(x) = y`, from the approximation that PyTorch's CPU kernel begins with.
pub(super) fn erfinv(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let y = wide_input(e, b)?;
    let size = e.unary("abs", &y)?;
    let square = e.mul(&y, &y)?;
    let top = polynomial(e, &square, &[0.886226899, -1.645349621, 0.914624893, -0.140543331])?;
    let bottom = polynomial(e, &square, &[1.0, -2.118377725, 1.442710462, -0.329097515, 0.012229801])?;
    let inner = e.div(&top, &bottom)?;
    let inner = e.mul(&inner, &y)?;
    let rest = e.unary("neg", &size)?;
    let rest = e.add(&rest, 1.0)?;
    let rest = e.mul(&rest, 0.5)?;
    let log = e.unary("log", &rest)?;
    let log = e.unary("neg", &log)?;
    let z = e.unary("sqrt", &log)?;
    let top = polynomial(e, &z, &[-1.970840454, -1.624906493, 3.429567803, 1.641345311])?;
    let bottom = polynomial(e, &z, &[1.0, 3.543889200, 1.637067800])?;
    let outer = e.div(&top, &bottom)?;
    let sign = e.unary("sign", &y)?;
    let outer = e.mul(&outer, &sign)?;
    let is_inner = e.compare("le", &size, 0.7)?;
    let mut x = e.select_where(&is_inner, &inner, &outer)?;
    for _ in 0..2 {
        let off = e.unary("erf", &x)?;
        let off = e.sub(&off, &y)?;
        let slope = e.mul(&x, &x)?;
        let slope = e.unary("neg", &slope)?;
        let slope = e.unary("exp", &slope)?;
        let slope = e.mul(&slope, std::f64::consts::FRAC_2_SQRT_PI)?;
        let step = e.div(&off, &slope)?;
        x = e.sub(&x, &step)?;
    }
    let infinity = e.full(&[], DType::F64, Arg::from(f64::INFINITY))?;
    let infinity = e.mul(&sign, &infinity)?;
    let is_end = e.compare("eq", &size, 1.0)?;
    let x = e.select_where(&is_end, &infinity, &x)?;
    finish(e, b, &x)
}

/// `|sin(πx)|`, exactly 0 at whole numbers.
fn sine(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let whole = e.unary("round", x)?;
    let part = e.sub(x, &whole)?;
    let part = e.mul(&part, PI)?;
    let y = e.unary("sin", &part)?;
    e.unary("abs", &y)
}

/// `lgamma`: `(x - 1/2)·log t - t + log(2π)/2 + log(series)` with `t = x + 6.5`; of `x` below 1/2 by
/// `log(π/|sin πx|) - lgamma(1 - x)`.
pub(super) fn lgamma(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = wide_input(e, b)?;
    let is_low = e.compare("lt", &x, 0.5)?;
    let mirrored = e.unary("neg", &x)?;
    let mirrored = e.add(&mirrored, 1.0)?;
    let z = e.select_where(&is_low, &mirrored, &x)?;
    let mut series = e.full(&[], DType::F64, Arg::from(LANCZOS[0]))?;
    for (k, term) in LANCZOS.iter().enumerate().skip(1) {
        let place = e.add(&z, k as f64 - 1.0)?;
        let inverse = e.unary("reciprocal", &place)?;
        let part = e.mul(&inverse, *term)?;
        series = e.add(&series, &part)?;
    }
    let t = e.add(&z, 6.5)?;
    let log = e.unary("log", &t)?;
    let power = e.sub(&z, 0.5)?;
    let y = e.mul(&power, &log)?;
    let y = e.sub(&y, &t)?;
    let tail = e.unary("log", &series)?;
    let y = e.add(&y, &tail)?;
    let y = e.add(&y, (2.0 * PI).ln() / 2.0)?;
    let sine = sine(e, &x)?;
    let sine = e.unary("log", &sine)?;
    let low = e.unary("neg", &sine)?;
    let low = e.add(&low, PI.ln())?;
    let low = e.sub(&low, &y)?;
    let y = e.select_where(&is_low, &low, &y)?;
    let is_infinite = e.test("isinf", &x)?;
    let infinity = e.full(&[], DType::F64, Arg::from(f64::INFINITY))?;
    let y = e.select_where(&is_infinite, &infinity, &y)?;
    finish(e, b, &y)
}

/// Most times that `polygamma` derives: beyond them factorials leave the precision of `f64`.
const MAX_ORDER: i64 = 20;

/// Quotients of the Bernoulli numbers `B(2j)` and `(2j)!`, from `j = 1` on.
const BERNOULLI: [f64; 7] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
];

/// `polygamma(n, x)`, for `n` of 1 and more: `(-1)^(n+1) n! Σ (x+k)^-(n+1)`, ten terms and the others by Euler and Maclaurin;
/// of `x` below 0 by `(-1)^n ψ(n, 1-x) - π^(n+1) P(n, cot πx)` with `P(0, c) = c`, `P(n+1, c) = -(1+c²) P'(n, c)`. Infinite at
/// the poles, as PyTorch has it for `n` of 2 and more.
pub(super) fn polygamma(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let n = b.int("n")?;
    if n == 0 {
        return digamma(e, b);
    }
    if !(0..=MAX_ORDER).contains(&n) {
        return Err(Error::unsupported(format!("{} of n={n}; 0 to {MAX_ORDER} is covered", b.op())));
    }
    let x = wide_input(e, b)?;
    let is_low = e.compare("lt", &x, 0.0)?;
    let mirrored = e.unary("neg", &x)?;
    let mirrored = e.add(&mirrored, 1.0)?;
    let z = e.select_where(&is_low, &mirrored, &x)?;
    let y = hurwitz(e, &z, n)?;
    let factorial: f64 = (1..=n).map(|k| k as f64).product();
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    let y = e.mul(&y, sign * factorial)?;
    let whole = e.unary("round", &x)?;
    let part = e.sub(&x, &whole)?;
    let angle = e.mul(&part, PI)?;
    let tangent = e.unary("tan", &angle)?;
    let cotangent = e.unary("reciprocal", &tangent)?;
    let turn = polynomial(e, &cotangent, &cotangent_derivative(n))?;
    let turn = e.mul(&turn, PI.powi(n as i32 + 1))?;
    let low = e.mul(&y, -sign)?;
    let low = e.sub(&low, &turn)?;
    let y = e.select_where(&is_low, &low, &y)?;
    let is_whole = e.compare("eq", &x, &whole)?;
    let is_pole = e.binary_default("logical_and", &is_low, &is_whole)?;
    let pole = e.full(&[], DType::F64, Arg::from(sign * f64::INFINITY))?;
    let y = e.select_where(&is_pole, &pole, &y)?;
    finish(e, b, &y)
}

/// `Σ (z+k)^-(n+1)` over all `k` from 0, for `z` of 0 and more.
fn hurwitz(e: &mut Expander<'_, '_>, z: &V, n: i64) -> Result<V, Error> {
    let mut sum = e.full(&[], DType::F64, Arg::from(0.0))?;
    for k in 0..10 {
        let place = e.add(z, f64::from(k))?;
        let inverse = e.unary("reciprocal", &place)?;
        let term = e.pow(&inverse, n + 1)?;
        sum = e.add(&sum, &term)?;
    }
    let w = e.add(z, 10.0)?;
    let inverse = e.unary("reciprocal", &w)?;
    let square = e.mul(&inverse, &inverse)?;
    // In powers of `1/w²`, times `w^-n`: `1/n + (1/w)/2 + Σ B(2j)/(2j)! (n+1)…(n+2j-1) w^-2j`.
    let mut rising = 1.0;
    let mut terms = vec![1.0 / n as f64];
    for (j, bernoulli) in (1..).zip(BERNOULLI) {
        rising *= (n + 2 * j - 1) as f64 * if j > 1 { (n + 2 * j - 2) as f64 } else { 1.0 };
        terms.push(bernoulli * rising);
    }
    let series = polynomial(e, &square, &terms)?;
    let half = e.mul(&inverse, 0.5)?;
    let series = e.add(&series, &half)?;
    // Of infinity PyTorch's series, which is for `n` of 2 and more, gives NaN: a power of 0 times infinity.
    let power = if n == 1 { inverse } else { e.pow(&inverse, n + 1).and_then(|power| e.mul(&power, &w))? };
    let tail = e.mul(&series, &power)?;
    e.add(&sum, &tail)
}

/// Coefficients of `P(n, c)`, with which the `n`-th derivative of `cot πx` is `π^n P(n, cot πx)`.
fn cotangent_derivative(n: i64) -> Vec<f64> {
    let mut p = vec![0.0, 1.0];
    for _ in 0..n {
        let derived: Vec<f64> = p.iter().enumerate().skip(1).map(|(k, c)| c * k as f64).collect();
        p = vec![0.0; derived.len() + 2];
        for (k, c) in derived.iter().enumerate() {
            p[k] -= c;
            p[k + 2] -= c;
        }
    }
    p
}

/// `digamma`: from `log z - 1/(2z) - Σ B(2k)/(2k·z^2k)` at `z = x + 10` down by `ψ(x) = ψ(x+1) - 1/x`; of `x` below 0 by
/// `ψ(1-x) - π/tan(πx)`. Infinite at 0, NaN at the other poles.
pub(super) fn digamma(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = wide_input(e, b)?;
    let is_low = e.compare("lt", &x, 0.0)?;
    let mirrored = e.unary("neg", &x)?;
    let mirrored = e.add(&mirrored, 1.0)?;
    let z = e.select_where(&is_low, &mirrored, &x)?;
    let mut sum = e.unary("reciprocal", &z)?;
    for k in 1..10 {
        let place = e.add(&z, f64::from(k))?;
        let inverse = e.unary("reciprocal", &place)?;
        sum = e.add(&sum, &inverse)?;
    }
    let z = e.add(&z, 10.0)?;
    let inverse = e.unary("reciprocal", &z)?;
    let square = e.mul(&inverse, &inverse)?;
    let terms = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    let series = polynomial(e, &square, &terms)?;
    let series = e.mul(&series, &square)?;
    let half = e.mul(&inverse, 0.5)?;
    let y = e.unary("log", &z)?;
    let y = e.sub(&y, &half)?;
    let y = e.sub(&y, &series)?;
    let y = e.sub(&y, &sum)?;
    let whole = e.unary("round", &x)?;
    let part = e.sub(&x, &whole)?;
    let angle = e.mul(&part, PI)?;
    let tangent = e.unary("tan", &angle)?;
    let turn = e.unary("reciprocal", &tangent)?;
    let turn = e.mul(&turn, PI)?;
    let low = e.sub(&y, &turn)?;
    let y = e.select_where(&is_low, &low, &y)?;
    let is_whole = e.compare("eq", &part, 0.0)?;
    let is_pole = e.binary_default("logical_and", &is_low, &is_whole)?;
    let nan = e.full(&[], DType::F64, Arg::from(f64::NAN))?;
    let y = e.select_where(&is_pole, &nan, &y)?;
    finish(e, b, &y)
}
