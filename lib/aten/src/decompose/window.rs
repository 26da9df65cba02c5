//! Windows of signal processing, over `n` places, or over `n - 1` where they are not periodic.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;
use std::f64::consts::TAU;

/// `a - b·cos(2πk/period) + c·cos(4πk/period)`
fn cosines(e: &mut Expander<'_, '_>, k: &V, period: f64, [a, b, c]: [f64; 3]) -> Result<V, Error> {
    let angle = e.mul(k, TAU / period)?;
    let first = e.unary_float("cos", &angle)?;
    let y = e.mul(&first, -b)?;
    let y = e.add(&y, a)?;
    if c == 0.0 {
        return Ok(y);
    }
    let angle = e.mul(&angle, 2.0)?;
    let second = e.unary_float("cos", &angle)?;
    let second = e.mul(&second, c)?;
    e.add(&y, &second)
}

/// `hann_window`, `hamming_window` (0.54 and 0.46 unless given), `blackman_window`, `bartlett_window` (a triangle), and
/// `kaiser_window`: `I0(beta·sqrt(1 - (2k/period - 1)²)) / I0(beta)`, `beta` 12 unless given. One place is 1.
pub(super) fn window(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let n = b.int("window_length")?;
    if n <= 1 {
        return one(e.full(&shape, dtype, Arg::Int(1))?);
    }
    let is_periodic = !b.has("periodic") || b.bool("periodic")?;
    let period = if is_periodic { n } else { n - 1 } as f64;
    let k = e.iota(&Expr::Int(n), DType::F64)?;
    let number = |name: &str, default: f64| if b.has(name) { b.float(name) } else { Ok(default) };
    let name = b.op().trim_start_matches("aten.").split('.').next().unwrap_or_default();
    let y = match name {
        "hann_window" => cosines(e, &k, period, [0.5, 0.5, 0.0])?,
        "hamming_window" => cosines(e, &k, period, [number("alpha", 0.54)?, number("beta", 0.46)?, 0.0])?,
        "blackman_window" => cosines(e, &k, period, [0.42, 0.5, 0.08])?,
        _ => {
            let place = e.mul(&k, 2.0 / period)?;
            let place = e.sub(&place, 1.0)?;
            if name == "bartlett_window" {
                let size = e.unary("abs", &place)?;
                let y = e.unary("neg", &size)?;
                e.add(&y, 1.0)?
            } else {
                kaiser(e, &place, number("beta", 12.0)?)?
            }
        }
    };
    one(e.to_dtype(&y, dtype)?)
}

fn kaiser(e: &mut Expander<'_, '_>, place: &V, beta: f64) -> Result<V, Error> {
    let square = e.mul(place, place)?;
    let y = e.unary("neg", &square)?;
    let y = e.add(&y, 1.0)?;
    // Rounding may leave the edges below 0.
    let y = e.unary("relu", &y)?;
    let y = e.unary_float("sqrt", &y)?;
    let y = e.mul(&y, beta)?;
    let above = e.unary_float("i0", &y)?;
    let beta = e.full(&[], DType::F64, Arg::from(beta))?;
    let below = e.unary_float("i0", &beta)?;
    e.div(&above, &below)
}
