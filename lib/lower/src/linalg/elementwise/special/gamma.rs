//! The incomplete gamma functions and the zeta function of Hurwitz.

use super::{affine, choose, math, over};
use crate::error::Result;
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_aten::series::LANCZOS;
use m2m_mlir::Value;
use std::f64::consts::PI;

/// Terms after which a series or a continued fraction is cut, whether it has come to rest or not.
const MAX_TERMS: f64 = 20_000.0;

/// `log Γ(1 + a)` for `a` of 0 and more: `(a + 1/2) log t - t + log(2π)/2 + log(series)` with `t = a + 7.5`.
fn log_factorial<'c>(s: &Scalars<'_, 'c>, a: Value<'c>) -> Result<Value<'c>> {
    let mut series = s.number(LANCZOS[0])?;
    for (k, term) in LANCZOS.iter().enumerate().skip(1) {
        series = s.add(series, over(s, *term, s.add(a, s.number(k as f64)?)?)?)?;
    }
    let t = s.add(a, s.number(7.5)?)?;
    let y = s.mul(s.add(a, s.number(0.5)?)?, math(s, "log", t)?)?;
    let y = s.add(s.sub(y, t)?, math(s, "log", series)?)?;
    affine(s, y, 1.0, (2.0 * PI).ln() / 2.0)
}

/// `Σ x^k / ((a+1)…(a+k))` over all `k` from 0, which rises as long as its terms matter.
fn lower_series<'c>(s: &Scalars<'_, 'c>, a: Value<'c>, x: Value<'c>) -> Result<Value<'c>> {
    let f64_type = s.b.elem("f64")?;
    let one = s.number(1.0)?;
    let dtype = s.dtype;
    let results = s.b.while_loop(
        &[one, one, a],
        &[f64_type; 3],
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let is_felt = s.compare(Compare::Gt, v[1], s.mul(v[0], s.number(1e-17)?)?)?;
                let is_early = s.compare(Compare::Lt, s.sub(v[2], a)?, s.number(MAX_TERMS)?)?;
                Ok((b.andi(is_felt, is_early)?, v.to_vec()))
            };
            run().map_err(crate::linalg::elementwise::into_mlir)
        },
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let place = s.add(v[2], s.number(1.0)?)?;
                let term = s.mul(v[1], s.div(x, place)?)?;
                Ok(vec![s.add(v[0], term)?, term, place])
            };
            run().map_err(crate::linalg::elementwise::into_mlir)
        },
    )?;
    Ok(results[0])
}

/// The continued fraction `1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / (x+5-a - …)))`, by Lentz' method as Thompson and Barnett
/// changed it.
fn upper_fraction<'c>(s: &Scalars<'_, 'c>, a: Value<'c>, x: Value<'c>) -> Result<Value<'c>> {
    let f64_type = s.b.elem("f64")?;
    let dtype = s.dtype;
    let first = s.add(s.sub(x, a)?, s.number(1.0)?)?;
    let inverse = over(s, 1.0, first)?;
    let start = [inverse, inverse, s.number(1e300)?, s.number(1.0)?, s.number(1.0)?];
    let results = s.b.while_loop(
        &start,
        &[f64_type; 5],
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                // The last factor is 1 to the last bit, but for the first round.
                let off = math(&s, "absf", s.sub(v[4], s.number(1.0)?)?)?;
                let is_felt = s.compare(Compare::Gt, off, s.number(2e-16)?)?;
                let is_first = s.compare(Compare::Eq, v[3], s.number(1.0)?)?;
                let is_early = s.compare(Compare::Lt, v[3], s.number(MAX_TERMS)?)?;
                Ok((b.andi(b.ori(is_felt, is_first)?, is_early)?, v.to_vec()))
            };
            run().map_err(crate::linalg::elementwise::into_mlir)
        },
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let [h, d, c, k, _] = [v[0], v[1], v[2], v[3], v[4]];
                let top = s.mul(k, s.sub(a, k)?)?;
                let bottom = s.add(first, s.add(k, k)?)?;
                let tiny = s.number(1e-300)?;
                let kept = |x| choose(&s, (x, Compare::Eq, 0.0), tiny, x);
                let d = over(&s, 1.0, kept(s.add(s.mul(top, d)?, bottom)?)?)?;
                let c = kept(s.add(bottom, s.div(top, c)?)?)?;
                let factor = s.mul(c, d)?;
                Ok(vec![s.mul(h, factor)?, d, c, s.add(k, s.number(1.0)?)?, factor])
            };
            run().map_err(crate::linalg::elementwise::into_mlir)
        },
    )?;
    Ok(results[0])
}

/// The lower function `P(a, x)` or the upper one `Q = 1 - P`: `x^a e^-x / Γ(a+1)` times the series of the lower one for `x`
/// up to `a + 1`, `x^a e^-x / Γ(a)` times the fraction of the upper one beyond. `P` is 1 where `a` is 0 or `x` infinite, 0
/// where `x` is 0 or `a` infinite, NaN where an argument is negative or both are 0 or infinite.
fn incomplete<'c>(s: &Scalars<'_, 'c>, a: Value<'c>, x: Value<'c>, is_upper: bool) -> Result<Value<'c>> {
    let (zero, one) = (s.number(0.0)?, s.number(1.0)?);
    // Arguments whose result is known go through the loops as others, so that these end.
    let is_finite = |v| s.compare(Compare::Lt, math(s, "absf", v)?, s.number(f64::INFINITY)?);
    let is_plain = s.b.andi(is_finite(a)?, is_finite(x)?)?;
    let is_above = s.b.andi(s.compare(Compare::Gt, a, zero)?, s.compare(Compare::Gt, x, zero)?)?;
    let is_plain = s.b.andi(is_plain, is_above)?;
    let (safe_a, safe_x) = (s.b.select(is_plain, a, one)?, s.b.select(is_plain, x, one)?);
    let power = s.sub(s.mul(safe_a, math(s, "log", safe_x)?)?, safe_x)?;
    let power = math(s, "exp", s.sub(power, log_factorial(s, safe_a)?)?)?;
    let is_low = s.compare(Compare::Le, safe_x, s.add(safe_a, one)?)?;
    // Each loop runs on what it is for, and on 1 elsewhere.
    let (low_x, high_x) = (s.b.select(is_low, safe_x, zero)?, s.b.select(is_low, s.add(safe_a, one)?, safe_x)?);
    let lower = s.mul(power, lower_series(s, safe_a, low_x)?)?;
    let upper = s.mul(s.mul(power, safe_a)?, upper_fraction(s, safe_a, high_x)?)?;
    let (of_lower, of_upper) = if is_upper { (s.sub(one, lower)?, upper) } else { (lower, s.sub(one, upper)?) };
    let y = s.b.select(is_low, of_lower, of_upper)?;
    let (full, none) = if is_upper { (zero, one) } else { (one, zero) };
    let nan = s.number(f64::NAN)?;
    let y = s.b.select(is_plain, y, nan)?;
    // At the ends, the later ones before the earlier ones: PyTorch asks for them in the other order, NaN or not.
    let is_infinite = |v| s.compare(Compare::Eq, v, s.number(f64::INFINITY)?);
    let y = s.b.select(is_infinite(x)?, full, y)?;
    let y = s.b.select(is_infinite(a)?, s.b.select(is_infinite(x)?, nan, none)?, y)?;
    let y = choose(s, (x, Compare::Eq, 0.0), none, y)?;
    let y = choose(s, (a, Compare::Eq, 0.0), choose(s, (x, Compare::Gt, 0.0), full, nan)?, y)?;
    let is_below = s.b.ori(s.compare(Compare::Lt, a, zero)?, s.compare(Compare::Lt, x, zero)?)?;
    Ok(s.b.select(is_below, nan, y)?)
}

/// `P(self, other)`
pub fn igamma<'c>(s: &Scalars<'_, 'c>, a: Value<'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    incomplete(s, a, x, false)
}

/// `Q(self, other)`
pub fn igammac<'c>(s: &Scalars<'_, 'c>, a: Value<'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    incomplete(s, a, x, true)
}

/// Quotients of the Bernoulli numbers `B(2j)` and `(2j)!`, from `j = 1` on.
const BERNOULLI: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3617.0 / 10_670_622_842_880_000.0,
    43867.0 / 5_109_094_217_170_944_000.0,
    -174_611.0 / 802_857_662_698_291_200_000.0,
];

/// `ζ(x, q) = Σ (q + k)^-x`: terms until ten are taken and `q + k` is above 9, the others by Euler and Maclaurin. Infinite
/// at `x` of 1, NaN below; infinite at `q` of 0 and negative whole numbers, NaN at other negative ones unless `x` is whole.
pub fn zeta<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, q: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let (zero, one) = (s.number(0.0)?, s.number(1.0)?);
    let whole = |v| s.compare(Compare::Eq, v, math(s, "floor", v)?);
    let is_low = s.compare(Compare::Le, q, zero)?;
    let is_pole = s.b.ori(s.compare(Compare::Eq, x, one)?, s.b.andi(is_low, whole(q)?)?)?;
    let is_fraction = s.b.xori(whole(x)?, s.b.const_bool(true)?)?;
    let is_below = s.compare(Compare::Lt, x, one)?;
    let is_unknown = s.b.ori(s.is_nan(x)?, s.is_nan(q)?)?;
    let is_out = s.b.ori(is_below, is_unknown)?;
    // What has no sum goes through the loop as ζ(2, 1), so that it ends.
    let is_odd = s.b.ori(s.b.ori(is_out, is_pole)?, s.b.andi(is_low, is_fraction)?)?;
    let (from, power) = (s.b.select(is_odd, one, q)?, s.b.select(is_odd, s.number(2.0)?, x)?);
    let minus = s.b.negf(power)?;
    let dtype = s.dtype;
    let f64_type = s.b.elem("f64")?;
    let results = s.b.while_loop(
        &[zero, from, zero],
        &[f64_type; 3],
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let is_few = s.compare(Compare::Lt, v[2], s.number(10.0)?)?;
                let is_small = s.compare(Compare::Le, v[1], s.number(9.0)?)?;
                Ok((b.ori(is_few, is_small)?, v.to_vec()))
            };
            run().map_err(crate::linalg::elementwise::into_mlir)
        },
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let term = b.binary("math.powf", v[1], minus)?;
                let one = s.number(1.0)?;
                Ok(vec![s.add(v[0], term)?, s.add(v[1], one)?, s.add(v[2], one)?])
            };
            run().map_err(crate::linalg::elementwise::into_mlir)
        },
    )?;
    let (sum, w) = (results[0], results[1]);
    // `w^-x (w/(x-1) + 1/2 + Σ B(2j)/(2j)! x(x+1)…(x+2j-2) w^(1-2j))`
    let last = s.b.binary("math.powf", w, minus)?;
    let mut series = s.add(s.div(w, s.sub(power, one)?)?, s.number(0.5)?)?;
    let square = s.mul(w, w)?;
    let mut factor = s.div(power, w)?;
    for (j, bernoulli) in (1..).zip(BERNOULLI) {
        series = s.add(series, s.mul(factor, s.number(bernoulli)?)?)?;
        let (up, more) = (f64::from(2 * j - 1), f64::from(2 * j));
        let next = s.mul(s.add(power, s.number(up)?)?, s.add(power, s.number(more)?)?)?;
        factor = s.div(s.mul(factor, next)?, square)?;
    }
    let tail = s.mul(last, series)?;
    // A power that is 0 adds nothing to a sum, however large what it is multiplied with.
    let is_nothing = s.b.andi(s.compare(Compare::Eq, last, zero)?, s.compare(Compare::Ne, sum, zero)?)?;
    let tail = s.b.select(is_nothing, zero, tail)?;
    let y = s.add(sum, tail)?;
    let (nan, infinity) = (s.number(f64::NAN)?, s.number(f64::INFINITY)?);
    let y = s.b.select(is_unknown, nan, y)?;
    let y = s.b.select(s.b.andi(is_low, is_fraction)?, nan, y)?;
    let y = s.b.select(s.b.andi(is_low, whole(q)?)?, infinity, y)?;
    let y = s.b.select(is_below, nan, y)?;
    choose(s, (x, Compare::Eq, 1.0), infinity, y)
}
