//! Resizing as a product with a matrix of weights along each dimension.
//!
//! With antialiasing column `i` of the matrix is the filter around `scale·(i + 1/2)`, widened by `scale` where the picture
//! shrinks, over the input places that it reaches, brought to the sum 1. Source: PyTorch's separable CPU kernel, which
//! follows Pillow. Without it the two or four places around are taken, those outside at the edge.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{O, V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `_upsample_bilinear2d_aa`, `_upsample_bicubic2d_aa`, `_upsample_lanczos2d_aa`, `upsample_bilinear2d`, `upsample_bicubic2d` of `[N, C, H, W]`.
pub(super) fn resize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, if b.has("input") { "input" } else { "self" })?;
    super::need_rank(b.op(), &x, 4)?;
    let (dtype, shape) = e.result(b, 0)?;
    if !dtype.is_float() {
        return Err(Error::unsupported(format!("{} of {dtype}, whose weights are whole numbers", b.op())));
    }
    let mut y = e.widen(&x)?;
    for (k, dim) in [3usize, 2].into_iter().zip([1usize, 0]) {
        let (from, to) = (y.dim(k), shape.get(k).cloned().unwrap_or(Expr::Int(1)));
        let scale = scale(e, b, dim, (&from, &to))?;
        let weights = if b.op().contains("_aa") {
            weights(e, (&from, &to), &scale, Filter::of(b.op()))?
        } else {
            taps(e, (&from, &to), &scale, b.bool("align_corners")?, b.op().contains("bicubic"))?
        };
        let weights = e.to_dtype(&weights, y.dtype)?;
        let mut order: Vec<usize> = (0..y.rank()).filter(|d| *d != k).collect();
        order.push(k);
        let mut back: Vec<usize> = (0..y.from_end(1)?).collect();
        back.insert(k, y.from_end(1)?);
        let moved = e.permute(&y, &order)?;
        let lead = moved.shape.iter().take(moved.from_end(1)?).cloned();
        let flat = e.view(&moved, &[expr::mul(lead.clone()), from])?;
        let flat = e.mm(&flat, &weights)?;
        let wide: Vec<Expr> = lead.chain([to]).collect();
        let wide = e.view(&flat, &wide)?;
        y = e.permute(&wide, &back)?;
    }
    one(e.to_dtype(&y, dtype)?)
}

/// What weighs the places that an output place reaches.
#[derive(Clone, Copy)]
enum Filter {
    Triangle,
    Cubic,
    Lanczos,
}

impl Filter {
    fn of(op: &str) -> Filter {
        match op {
            op if op.contains("bicubic") => Filter::Cubic,
            op if op.contains("lanczos") => Filter::Lanczos,
            _ => Filter::Triangle,
        }
    }

    /// Where it becomes 0.
    fn reach(self) -> f64 {
        match self {
            Filter::Triangle => 1.0,
            Filter::Cubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }
}

/// A size as a number of type `f64`.
fn number(e: &mut Expander<'_, '_>, size: &Expr) -> Result<V, Error> {
    let size = e.full(&[], DType::I64, size_arg(size))?;
    e.to_dtype(&size, DType::F64)
}

/// Input places for one output place.
fn scale(e: &mut Expander<'_, '_>, b: &Bound<'_>, dim: usize, (from, to): (&Expr, &Expr)) -> Result<O, Error> {
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
    let is_aligned = b.bool("align_corners")?;
    if let (false, Some(factor)) = (is_aligned, given.filter(|factor| *factor > 0.0)) {
        return Ok(O::from(1.0 / factor));
    }
    let less = i64::from(is_aligned);
    if let (Some(from), Some(to)) = (from.as_int(), to.as_int()) {
        return Ok(O::from(if to > less { (from - less) as f64 / (to - less) as f64 } else { 0.0 }));
    }
    let [from, to] = [from, to].map(|size| expr::sub(size.clone(), Expr::Int(less)));
    let (from, to) = (number(e, &from)?, number(e, &expr::max([to, Expr::Int(1)]))?);
    // Of one place that is aligned the scale does not matter, as it is multiplied by 0.
    Ok(O::T(e.div(&from, &to)?))
}

/// The greater of a number and a constant.
fn at_least(e: &mut Expander<'_, '_>, x: &O, least: f64) -> Result<O, Error> {
    match x {
        O::N(Arg::Float(x)) => Ok(O::from(x.0.max(least))),
        other => {
            let (x, least) = (e.lift(other, DType::F64)?, e.full(&[], DType::F64, Arg::from(least))?);
            Ok(O::T(e.binary_default("maximum", &x, &least)?))
        }
    }
}

/// `x` within 0 and a size less `under`.
fn inside(e: &mut Expander<'_, '_>, x: &V, size: &Expr, under: i64) -> Result<V, Error> {
    let most = number(e, &expr::sub(size.clone(), Expr::Int(under)))?;
    let x = e.unary("relu", x)?;
    e.binary_default("minimum", &x, &most)
}

/// `[from, to]`, each column of sum 1.
fn weights(e: &mut Expander<'_, '_>, (from, to): (&Expr, &Expr), scale: &O, filter: Filter) -> Result<V, Error> {
    let stretch = at_least(e, scale, 1.0)?;
    let stretch = e.lift(&stretch, DType::F64)?;
    let support = e.mul(&stretch, filter.reach())?;
    let i = e.iota(to, DType::F64)?;
    let centre = e.add(&i, 0.5)?;
    let centre = e.mul(&centre, scale)?;
    let rounded = e.add(&centre, 0.5)?;
    let (first, end) = (e.sub(&rounded, &support)?, e.add(&rounded, &support)?);
    let (first, end) = (e.unary("trunc", &first)?, e.unary("trunc", &end)?);
    let (first, end) = (inside(e, &first, from, 0)?, inside(e, &end, from, 0)?);
    let j = e.iota(from, DType::F64)?;
    let j = e.unsqueeze(&j, 1)?;
    let off = e.sub(&j, &centre)?;
    let off = e.add(&off, 0.5)?;
    let off = e.div(&off, &stretch)?;
    let off = e.unary("abs", &off)?;
    let value = match filter {
        Filter::Triangle => triangle(e, &off)?,
        Filter::Cubic => cubic(e, &off, -0.5)?,
        Filter::Lanczos => lanczos(e, &off)?,
    };
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
    (from, to): (&Expr, &Expr),
    scale: &O,
    is_aligned: bool,
    is_cubic: bool,
) -> Result<V, Error> {
    let i = e.iota(to, DType::F64)?;
    let half = if is_aligned { 0.0 } else { 0.5 };
    let centre = e.add(&i, half)?;
    let centre = e.mul(&centre, scale)?;
    let mut centre = e.sub(&centre, half)?;
    if !is_cubic {
        centre = e.unary("relu", &centre)?;
    }
    let below = e.unary("floor", &centre)?;
    let j = e.iota(from, DType::F64)?;
    let j = e.unsqueeze(&j, 1)?;
    let zero = e.full(&[], DType::F64, Arg::Int(0))?;
    let mut total = e.full(&[from.clone(), to.clone()], DType::F64, Arg::Int(0))?;
    let steps: &[f64] = if is_cubic { &[-1.0, 0.0, 1.0, 2.0] } else { &[0.0, 1.0] };
    for step in steps {
        let tap = e.add(&below, *step)?;
        let off = e.sub(&centre, &tap)?;
        let off = e.unary("abs", &off)?;
        let weight = if is_cubic { cubic(e, &off, -0.75)? } else { triangle(e, &off)? };
        let place = inside(e, &tap, from, 1)?;
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

/// `sinc(x)·sinc(x/3)` below 3, else 0.
fn lanczos(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let third = e.mul(x, 1.0 / 3.0)?;
    let (wide, narrow) = (e.unary_float("sinc", x)?, e.unary_float("sinc", &third)?);
    let y = e.mul(&wide, &narrow)?;
    let zero = e.full(&[], DType::F64, Arg::Int(0))?;
    let is_near = e.compare("lt", x, 3.0)?;
    e.select_where(&is_near, &y, &zero)
}
