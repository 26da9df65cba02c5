//! Orthogonal polynomials by their recurrences, in the type of the result as PyTorch computes them. The degree is cut to a
//! whole number; a negative one gives 0.

use super::{affine, choose, math};
use crate::error::Result;
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_mlir::Value;
use m2m_record::DType;

/// A degree that is no number, infinite, or beyond 64 bits counts as negative.
fn degree<'c>(s: &Scalars<'_, 'c>, n: Value<'c>) -> Result<Value<'c>> {
    let whole = math(s, "trunc", n)?;
    let is_known = s.compare(Compare::Lt, math(s, "absf", n)?, s.number(9.2e18)?)?;
    Ok(s.b.select(is_known, whole, s.number(-1.0)?)?)
}

/// `p[n]`, from `p[0] = 1` and `p[1]` by `p[k+1] = next(k, p[k], p[k-1])`; it stays at NaN once it is there.
fn recur<'c>(
    s: &Scalars<'_, 'c>,
    n: Value<'c>,
    first: Value<'c>,
    next: impl Fn(&Scalars<'_, 'c>, Value<'c>, Value<'c>, Value<'c>) -> Result<Value<'c>>,
) -> Result<Value<'c>> {
    let dtype = s.dtype;
    let element = s.b.elem(dtype.name())?;
    let one = s.number(1.0)?;
    let results = s.b.while_loop(
        &[one, first, one],
        &[element; 3],
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                let is_known = s.compare(Compare::Eq, v[1], v[1])?;
                Ok((b.andi(s.compare(Compare::Lt, v[2], n)?, is_known)?, v.to_vec()))
            };
            run().map_err(into_mlir)
        },
        |b, v| {
            let run = || {
                let s = Scalars::new(b, dtype);
                Ok(vec![v[1], next(&s, v[2], v[1], v[0])?, s.add(v[2], s.number(1.0)?)?])
            };
            run().map_err(into_mlir)
        },
    )?;
    let y = choose(s, (n, Compare::Eq, 0.0), one, results[1])?;
    choose(s, (n, Compare::Lt, 0.0), s.number(0.0)?, y)
}

/// The four kinds of Chebyshev's polynomials: `p[1] = 2x + shift` but for the first, whose `p[1]` is `x`.
#[derive(Clone, Copy)]
enum Kind {
    First,
    Second,
    Third,
    Fourth,
}

/// `p[k+1] = 2x p[k] - p[k-1]`; above a degree and within -1 to 1 by angles, with `x = cos θ`: `cos nθ`,
/// `sin (n+1)θ / sin θ`, `cos (n+1/2)θ / cos θ/2`, `sin (n+1/2)θ / sin θ/2`.
fn chebyshev<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: Value<'c>, kind: Kind, most: f64) -> Result<Value<'c>> {
    let n = degree(s, n)?;
    let double = s.add(x, x)?;
    let (first, ahead) = match kind {
        Kind::First => (x, 0.0),
        Kind::Second => (double, 1.0),
        Kind::Third => (affine(s, double, 1.0, -1.0)?, 0.5),
        Kind::Fourth => (affine(s, double, 1.0, 1.0)?, 0.5),
    };
    let is_inside = s.compare(Compare::Lt, math(s, "absf", x)?, s.number(1.0)?)?;
    let is_high = s.compare(Compare::Gt, n, s.number(most)?)?;
    let is_angular = s.b.andi(is_inside, is_high)?;
    let steps = s.b.select(is_angular, s.number(0.0)?, n)?;
    let y = recur(s, steps, first, |s, _, p, before| s.sub(s.mul(double, p)?, before))?;
    let theta = math(s, "acos", x)?;
    let angle = s.mul(s.add(n, s.number(ahead)?)?, theta)?;
    let half = s.mul(theta, s.number(0.5)?)?;
    let by_angle = match kind {
        Kind::First => math(s, "cos", angle)?,
        Kind::Second => s.div(math(s, "sin", angle)?, math(s, "sin", theta)?)?,
        Kind::Third => s.div(math(s, "cos", angle)?, math(s, "cos", half)?)?,
        Kind::Fourth => s.div(math(s, "sin", angle)?, math(s, "sin", half)?)?,
    };
    Ok(s.b.select(is_angular, by_angle, y)?)
}

macro_rules! chebyshev {
    ($($name:ident $shifted:ident $kind:ident $most:literal $shifted_most:literal),* $(,)?) => {
        $(#[doc = concat!("Chebyshev's polynomial, `", stringify!($kind), "` kind.")]
        pub fn $name<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: Value<'c>, _: &Bound) -> Result<Value<'c>> {
            chebyshev(s, x, n, Kind::$kind, $most)
        }

        #[doc = concat!("Chebyshev's polynomial of `2x - 1`, `", stringify!($kind), "` kind.")]
        pub fn $shifted<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: Value<'c>, _: &Bound) -> Result<Value<'c>> {
            chebyshev(s, affine(s, x, 2.0, -1.0)?, n, Kind::$kind, $shifted_most)
        })*
    };
}

chebyshev! {
    chebyshev_t shifted_t First 6.0 6.0,
    chebyshev_u shifted_u Second 8.0 6.0,
    chebyshev_v shifted_v Third 8.0 6.0,
    chebyshev_w shifted_w Fourth 8.0 4.0,
}

/// Hermite's polynomials are NaN above a degree, by the type: PyTorch's limit.
fn bounded<'c>(s: &Scalars<'_, 'c>, n: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
    let most = if s.dtype == DType::F64 { 512.0 } else { 128.0 };
    choose(s, (n, Compare::Gt, most), s.number(f64::NAN)?, y)
}

/// Hermite's of physics: `p[k+1] = 2x p[k] - 2k p[k-1]`
pub fn hermite_h<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let n = degree(s, n)?;
    let double = s.add(x, x)?;
    let y = recur(s, n, double, |s, k, p, before| s.sub(s.mul(double, p)?, s.mul(s.add(k, k)?, before)?))?;
    bounded(s, n, y)
}

/// Hermite's of probability: `p[k+1] = x p[k] - k p[k-1]`
pub fn hermite_he<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let n = degree(s, n)?;
    let y = recur(s, n, x, |s, k, p, before| s.sub(s.mul(x, p)?, s.mul(k, before)?))?;
    bounded(s, n, y)
}

/// Laguerre's: `p[k+1] = ((2k+1-x) p[k] - k p[k-1]) / (k+1)`
pub fn laguerre<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let n = degree(s, n)?;
    let rest = s.sub(s.number(1.0)?, x)?;
    recur(s, n, rest, |s, k, p, before| {
        let sum = s.sub(s.mul(s.add(s.add(k, k)?, rest)?, p)?, s.mul(k, before)?)?;
        s.div(sum, s.add(k, s.number(1.0)?)?)
    })
}

/// Legendre's: `p[k+1] = ((2k+1) x p[k] - k p[k-1]) / (k+1)`
pub fn legendre<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let n = degree(s, n)?;
    recur(s, n, x, |s, k, p, before| {
        let odd = s.add(s.add(k, k)?, s.number(1.0)?)?;
        let sum = s.sub(s.mul(s.mul(odd, x)?, p)?, s.mul(k, before)?)?;
        s.div(sum, s.add(k, s.number(1.0)?)?)
    })
}
