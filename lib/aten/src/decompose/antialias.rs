//! Resizing as a product with a matrix of weights along each dimension.
//!
//! With antialiasing column `i` of the matrix is the filter around `scale·(i + 1/2)`, widened by `scale` where the picture
//! shrinks, over the input places that it reaches, brought to the sum 1. Source: PyTorch's separable CPU kernel, which
//! follows Pillow. Without it the two or four places around are taken, those outside at the edge.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `_upsample_bilinear2d_aa`, `_upsample_bicubic2d_aa`, `upsample_bilinear2d`, `upsample_bicubic2d` of `[N, C, H, W]`.
pub(super) fn resize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, if b.has("input") { "input" } else { "self" })?;
    super::need_rank(b.op(), &x, 4)?;
    let (dtype, shape) = e.result(b, 0)?;
    if !dtype.is_float() {
        return Err(Error::unsupported(format!("{} of {dtype}, whose weights are whole numbers", b.op())));
    }
    let mut y = e.widen(&x)?;
    for (k, dim) in [3usize, 2].into_iter().zip([1usize, 0]) {
        let (Some(from), Some(to)) = (y.dim(k).as_int(), shape.get(k).and_then(Expr::as_int)) else {
            return Err(Error::unsupported(format!("{} of symbolic sizes", b.op())));
        };
        let scale = scale(b, dim, from, to)?;
        let weights = if b.op().contains("_aa") {
            weights(e, (from, to), scale, b.op().contains("bicubic"))?
        } else {
            taps(e, (from, to), scale, b.bool("align_corners")?, b.op().contains("bicubic"))?
        };
        let weights = e.to_dtype(&weights, y.dtype)?;
        let mut order: Vec<usize> = (0..y.rank()).filter(|d| *d != k).collect();
        order.push(k);
        let mut back: Vec<usize> = (0..y.from_end(1)?).collect();
        back.insert(k, y.from_end(1)?);
        let moved = e.permute(&y, &order)?;
        let lead = moved.shape.iter().take(moved.from_end(1)?).cloned();
        let flat = e.view(&moved, &[expr::mul(lead.clone()), Expr::Int(from)])?;
        let flat = e.mm(&flat, &weights)?;
        let wide: Vec<Expr> = lead.chain([Expr::Int(to)]).collect();
        let wide = e.view(&flat, &wide)?;
        y = e.permute(&wide, &back)?;
    }
    one(e.to_dtype(&y, dtype)?)
}

/// Input places for one output place.
fn scale(b: &Bound<'_>, dim: usize, from: i64, to: i64) -> Result<f64, Error> {
    if b.bool("align_corners")? {
        return Ok(if to > 1 { (from - 1) as f64 / (to - 1) as f64 } else { 0.0 });
    }
    let given = if b.has("scale_factors") {
        match b.arg("scale_factors")? {
            Arg::List(factors) => match factors.get(dim) {
                Some(Arg::Float(x)) => Some(x.0),
                Some(Arg::Int(n)) => Some(*n as f64),
                _ => None,
            },
            _ => None,
        }
    } else {
        b.float_or(if dim == 0 { "scales_h" } else { "scales_w" })?
    };
    Ok(match given {
        Some(factor) if factor > 0.0 => 1.0 / factor,
        _ => from as f64 / to as f64,
    })
}

/// `[from, to]`, each column of sum 1.
fn weights(e: &mut Expander<'_, '_>, (from, to): (i64, i64), scale: f64, is_cubic: bool) -> Result<V, Error> {
    let reach = if is_cubic { 2.0 } else { 1.0 };
    let stretch = scale.max(1.0);
    let support = reach * stretch;
    let i = e.iota(&Expr::Int(to), DType::F64)?;
    let centre = e.add(&i, 0.5)?;
    let centre = e.mul(&centre, scale)?;
    let bound = |e: &mut Expander<'_, '_>, by: f64| {
        let v = e.add(&centre, by)?;
        let v = e.unary("trunc", &v)?;
        let args = vec![v.arg(), Arg::Int(0), Arg::Int(from)];
        e.call1("aten.clamp.default", args, &[], v.dtype, &v.shape)
    };
    let (first, end) = (bound(e, 0.5 - support)?, bound(e, 0.5 + support)?);
    let j = e.iota(&Expr::Int(from), DType::F64)?;
    let j = e.unsqueeze(&j, 1)?;
    let off = e.sub(&j, &centre)?;
    let off = e.add(&off, 0.5)?;
    let off = e.mul(&off, 1.0 / stretch)?;
    let off = e.unary("abs", &off)?;
    let value = if is_cubic { cubic(e, &off, -0.5)? } else { triangle(e, &off)? };
    let (is_after, is_before) = (e.compare("ge", &j, &first)?, e.compare("lt", &j, &end)?);
    let is_reached = e.binary_default("logical_and", &is_after, &is_before)?;
    let zero = e.full(&[], DType::F64, Arg::Int(0))?;
    let value = e.select_where(&is_reached, &value, &zero)?;
    let total = e.sum(&value, &[0], true)?;
    e.div(&value, &total)
}

/// `[from, to]` of the places around `scale·(i + 1/2) - 1/2`, or `scale·i` where corners are aligned: two, before which there
/// is nothing, or four.
fn taps(
    e: &mut Expander<'_, '_>,
    (from, to): (i64, i64),
    scale: f64,
    is_aligned: bool,
    is_cubic: bool,
) -> Result<V, Error> {
    let i = e.iota(&Expr::Int(to), DType::F64)?;
    let half = if is_aligned { 0.0 } else { 0.5 };
    let centre = e.add(&i, half)?;
    let centre = e.mul(&centre, scale)?;
    let mut centre = e.sub(&centre, half)?;
    if !is_cubic {
        centre = e.unary("relu", &centre)?;
    }
    let below = e.unary("floor", &centre)?;
    let j = e.iota(&Expr::Int(from), DType::F64)?;
    let j = e.unsqueeze(&j, 1)?;
    let zero = e.full(&[], DType::F64, Arg::Int(0))?;
    let mut total = e.full(&[Expr::Int(from), Expr::Int(to)], DType::F64, Arg::Int(0))?;
    let steps: &[f64] = if is_cubic { &[-1.0, 0.0, 1.0, 2.0] } else { &[0.0, 1.0] };
    for step in steps {
        let tap = e.add(&below, *step)?;
        let off = e.sub(&centre, &tap)?;
        let off = e.unary("abs", &off)?;
        let weight = if is_cubic { cubic(e, &off, -0.75)? } else { triangle(e, &off)? };
        let args = vec![tap.arg(), Arg::Int(0), Arg::Int(from - 1)];
        let place = e.call1("aten.clamp.default", args, &[], tap.dtype, &tap.shape)?;
        let is_there = e.compare("eq", &j, &place)?;
        let share = e.select_where(&is_there, &weight, &zero)?;
        total = e.add(&total, &share)?;
    }
    Ok(total)
}

/// `max(1 - x, 0)`
fn triangle(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let y = e.unary("neg", x)?;
    let y = e.add(&y, 1.0)?;
    e.unary("relu", &y)
}

/// Keys' cubic: `(a+2)x³ - (a+3)x² + 1` below 1, `ax³ - 5ax² + 8ax - 4a` below 2, else 0.
fn cubic(e: &mut Expander<'_, '_>, x: &V, a: f64) -> Result<V, Error> {
    let polynomial = |e: &mut Expander<'_, '_>, terms: [f64; 4]| {
        let mut y = e.mul(x, terms[0])?;
        for (k, term) in terms.iter().enumerate().skip(1) {
            y = e.add(&y, *term)?;
            if k < 3 {
                y = e.mul(&y, x)?;
            }
        }
        Ok::<V, Error>(y)
    };
    let near = polynomial(e, [a + 2.0, -a - 3.0, 0.0, 1.0])?;
    let far = polynomial(e, [a, -5.0 * a, 8.0 * a, -4.0 * a])?;
    let zero = e.full(&[], DType::F64, Arg::Int(0))?;
    let is_far = e.compare("lt", x, 2.0)?;
    let far = e.select_where(&is_far, &far, &zero)?;
    let is_near = e.compare("lt", x, 1.0)?;
    e.select_where(&is_near, &near, &far)
}
