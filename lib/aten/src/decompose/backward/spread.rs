//! Gradients of resampling, padding and adaptive means, axis by axis: along an axis each element of the gradient is
//! added, with a weight, to the places that the forward read it from.

use super::finish;
use super::index::add_along;
use crate::bind::Bound;
use crate::decompose::exact;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::{O, V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// Where the elements along an axis go, and how much of each; all of it without weights.
struct Tap {
    place: V,
    weight: Option<V>,
}

/// Sums what `taps` take of `g` along `dim` to an axis of `size`.
fn spread(e: &mut Expander<'_, '_>, g: &V, dim: usize, size: &Expr, taps: &[Tap]) -> Result<V, Error> {
    let mut total: Option<V> = None;
    for tap in taps {
        let part = match &tap.weight {
            Some(w) => {
                let w = e.along(w, dim, g.rank())?;
                e.mul(g, &w)?
            }
            None => g.clone(),
        };
        let part = add_along(e, &part, dim, &tap.place, size)?;
        total = Some(match total {
            Some(total) => e.add(&total, &part)?,
            None => part,
        });
    }
    total.ok_or_else(|| Error::shape("spread", "no places"))
}

/// `min(max(x, 0), size - 1)`
fn inside(e: &mut Expander<'_, '_>, x: &V, size: &Expr) -> Result<V, Error> {
    let last = e.full(&[], x.dtype, size_arg(&expr::sub(size.clone(), Expr::Int(1))))?;
    let zero = e.full(&[], x.dtype, Arg::Int(0))?;
    let x = e.binary_default("minimum", x, &last)?;
    e.binary_default("maximum", &x, &zero)
}

/// A size as a number of a float dtype.
fn real(e: &mut Expander<'_, '_>, size: &Expr, dtype: DType) -> Result<O, Error> {
    match size {
        Expr::Int(n) => Ok(O::from(*n as f64)),
        other => Ok(O::T(e.full(&[], dtype, size_arg(other))?)),
    }
}

/// `a / c` of numbers and tensors without dimensions.
fn ratio(e: &mut Expander<'_, '_>, a: &O, c: &O) -> Result<O, Error> {
    match (a, c) {
        (O::N(Arg::Float(a)), O::N(Arg::Float(c))) => Ok(O::from(a.0 / c.0)),
        _ => Ok(O::T(e.div(a, c)?)),
    }
}

/// One axis of a resampling: `input` places become `output`.
struct Axis {
    input: Expr,
    output: Expr,
    factor: Option<f64>,
}

impl Axis {
    /// Input steps an output step.
    fn scale(&self, e: &mut Expander<'_, '_>, align_corners: bool, dtype: DType) -> Result<O, Error> {
        if align_corners {
            if self.output == Expr::Int(1) {
                return Ok(O::from(0.0));
            }
            let less = |size: &Expr| expr::sub(size.clone(), Expr::Int(1));
            let (a, c) = (real(e, &less(&self.input), dtype)?, real(e, &less(&self.output), dtype)?);
            return ratio(e, &a, &c);
        }
        match self.factor.filter(|factor| *factor > 0.0) {
            Some(factor) => Ok(O::from(1.0 / factor)),
            None => {
                let (a, c) = (real(e, &self.input, dtype)?, real(e, &self.output, dtype)?);
                ratio(e, &a, &c)
            }
        }
    }

    /// The nearest place: `floor(scale·(i + offset))`.
    fn nearest(&self, e: &mut Expander<'_, '_>, offset: f64) -> Result<Vec<Tap>, Error> {
        let scale = self.scale(e, false, DType::F32)?;
        let x = e.iota(&self.output, DType::F32)?;
        let x = if offset == 0.0 { x } else { e.add(&x, offset)? };
        let x = e.mul(&x, &scale)?;
        let x = e.to_dtype(&x, DType::I64)?;
        Ok(vec![Tap { place: inside(e, &x, &self.input)?, weight: None }])
    }

    /// The source coordinate of each output.
    fn coordinate(&self, e: &mut Expander<'_, '_>, align_corners: bool, dtype: DType) -> Result<V, Error> {
        let scale = self.scale(e, align_corners, dtype)?;
        let x = e.iota(&self.output, dtype)?;
        if align_corners {
            return e.mul(&x, &scale);
        }
        let x = e.add(&x, 0.5)?;
        let x = e.mul(&x, &scale)?;
        e.sub(&x, 0.5)
    }

    /// The two neighbours, weighted by distance.
    fn linear(&self, e: &mut Expander<'_, '_>, align_corners: bool, dtype: DType) -> Result<Vec<Tap>, Error> {
        let x = self.coordinate(e, align_corners, dtype)?;
        let x = e.unary("relu", &x)?;
        let first = e.to_dtype(&x, DType::I64)?;
        let first = inside(e, &first, &self.input)?;
        let start = e.to_dtype(&first, dtype)?;
        let behind = e.sub(&x, &start)?;
        let behind = e.call1(
            "aten.clamp.default",
            vec![behind.arg(), Arg::from(0.0), Arg::from(1.0)],
            &[],
            dtype,
            &behind.shape,
        )?;
        let before = e.unary("neg", &behind)?;
        let before = e.add(&before, 1.0)?;
        let second = e.add(&first, 1i64)?;
        let second = inside(e, &second, &self.input)?;
        Ok(vec![Tap { place: first, weight: Some(before) }, Tap { place: second, weight: Some(behind) }])
    }

    /// Four neighbours, weighted by the cubic convolution.
    fn cubic(&self, e: &mut Expander<'_, '_>, align_corners: bool, dtype: DType) -> Result<Vec<Tap>, Error> {
        let x = self.coordinate(e, align_corners, dtype)?;
        let whole = e.unary("floor", &x)?;
        let t = e.sub(&x, &whole)?;
        let first = e.to_dtype(&whole, DType::I64)?;
        let mut taps = Vec::new();
        for offset in -1..=2i64 {
            let distance = e.sub(&t, offset as f64)?;
            let distance = e.unary("abs", &distance)?;
            let weight = cubic_weight(e, &distance, (0..=1).contains(&offset))?;
            let place = e.add(&first, offset)?;
            taps.push(Tap { place: inside(e, &place, &self.input)?, weight: Some(weight) });
        }
        Ok(taps)
    }
}

/// The sharpness of the cubic convolution.
const SHARPNESS: f64 = -0.75;

/// `((A + 2)·d - (A + 3))·d² + 1` up to a distance of 1, else `((A·d - 5·A)·d + 8·A)·d - 4·A`.
fn cubic_weight(e: &mut Expander<'_, '_>, d: &V, is_near: bool) -> Result<V, Error> {
    const A: f64 = SHARPNESS;
    if is_near {
        let y = e.mul(d, A + 2.0)?;
        let y = e.sub(&y, A + 3.0)?;
        let y = e.mul(&y, d)?;
        let y = e.mul(&y, d)?;
        return e.add(&y, 1.0);
    }
    let y = e.mul(d, A)?;
    let y = e.sub(&y, 5.0 * A)?;
    let y = e.mul(&y, d)?;
    let y = e.add(&y, 8.0 * A)?;
    let y = e.mul(&y, d)?;
    e.sub(&y, 4.0 * A)
}

/// `upsample_…_backward(g, output_size, input_size, align_corners, scales…)`, of all kinds.
pub(crate) fn upsample(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let g = e.tensor(b, "grad_output")?;
    let (_, shape) = e.result(b, 0)?;
    let spatial = shape.len().saturating_sub(2);
    let names: &[&str] = if b.has("scales") { &["scales"] } else { &["scales_d", "scales_h", "scales_w"] };
    let names = names.get(names.len().saturating_sub(spatial)..).unwrap_or_default();
    let align = b.has("align_corners") && b.bool("align_corners")?;
    let mut y = e.widen(&g)?;
    let dtype = y.dtype;
    for (dim, name) in (2..).zip(names) {
        let input = shape.get(dim).cloned().unwrap_or(Expr::Int(1));
        let axis = Axis { output: y.dim(dim), input, factor: b.float_or(name)? };
        let is_nearest = b.op().contains("nearest");
        if axis.input == axis.output
            && (!is_nearest || axis.factor.is_none_or(|f| f == 1.0))
            && !(b.op().contains("cubic") && axis.factor.is_some_and(|f| f != 1.0))
        {
            continue;
        }
        let taps = match b.op() {
            op if op.contains("nearest_exact") => axis.nearest(e, 0.5)?,
            _ if is_nearest => axis.nearest(e, 0.0)?,
            op if op.contains("cubic") => axis.cubic(e, align, dtype)?,
            _ => axis.linear(e, align, dtype)?,
        };
        y = spread(e, &y, dim, &axis.input, &taps)?;
    }
    finish(e, b, &y)
}

/// `reflection_padNd_backward(g, self, padding)`, `replication_padNd_backward`: place `i` was read from `i - before`,
/// mirrored at the ends or held between them.
pub(crate) fn padding(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let g = e.tensor(b, "grad_output")?;
    let (_, shape) = e.result(b, 0)?;
    let flat = e.sizes(b, "padding")?;
    let mut y = e.widen(&g)?;
    for (k, pair) in flat.chunks(2).enumerate() {
        let (Some(dim), Some(before)) = (shape.len().checked_sub(k + 1), pair.first()) else {
            return Err(Error::shape(b.op(), format!("{} padding sizes for rank {}", flat.len(), shape.len())));
        };
        let size = shape.get(dim).cloned().unwrap_or(Expr::Int(1));
        let i = e.iota(&y.dim(dim), DType::I64)?;
        let mut place = e.sub(&i, &size_arg(before))?;
        if b.op().contains("reflection") {
            let last = size_arg(&expr::sub(size.clone(), Expr::Int(1)));
            place = e.unary("abs", &place)?;
            let beyond = e.sub(&place, &last)?;
            let beyond = e.unary("abs", &beyond)?;
            let back = e.unary("neg", &beyond)?;
            place = e.add(&back, &last)?;
        }
        let place = inside(e, &place, &size)?;
        y = spread(e, &y, dim, &size, &[Tap { place, weight: None }])?;
    }
    finish(e, b, &y)
}

/// `_adaptive_avg_poolNd_backward(g, self)`: along each axis element `k` of `out`, divided by the length of its window,
/// is added to places `floor(k·size/out)` to before `ceil((k + 1)·size/out)`.
pub(crate) fn adaptive_avg(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let g = e.tensor(b, "grad_output")?;
    let (_, shape) = e.result(b, 0)?;
    let spatial = if b.op().contains("3d") { 3 } else { 2 };
    let mut y = e.widen(&g)?;
    for dim in g.from_end(spatial)?..g.rank() {
        let size = shape.get(dim).cloned().unwrap_or(Expr::Int(1));
        y = if y.dim(dim) == Expr::Int(1) {
            let share = e.div(&y, &size_arg(&size))?;
            let mut wide = y.shape.clone();
            if let Some(slot) = wide.get_mut(dim) {
                *slot = size;
            }
            e.expand_to(&share, &wide)?
        } else {
            windows(e, &y, dim, &size)?
        };
    }
    finish(e, b, &y)
}

/// The same along one axis of more than one window.
fn windows(e: &mut Expander<'_, '_>, g: &V, dim: usize, size: &Expr) -> Result<V, Error> {
    let (Some(count), Some(n)) = (g.dim(dim).as_int(), size.as_int()) else {
        let message =
            format!("the gradient of adaptive pooling of {size} to {}; expected static sizes or 1", g.dim(dim));
        return Err(Error::unsupported(message));
    };
    if count < 1 {
        let mut shape = g.shape.clone();
        if let Some(slot) = shape.get_mut(dim) {
            *slot = size.clone();
        }
        return e.full(&shape, g.dtype, Arg::Int(0));
    }
    let op = "adaptive pooling";
    let longest = exact(op, n.checked_add(count.saturating_mul(2)))? / count;
    let k = e.iota(&Expr::Int(count), DType::I64)?;
    let scaled = e.mul(&k, n)?;
    let start = floor_div(e, &scaled, count)?;
    let end = e.add(&scaled, exact(op, n.checked_add(count - 1))?)?;
    let end = floor_div(e, &end, count)?;
    let length = e.sub(&end, &start)?;
    let length = e.to_dtype(&length, g.dtype)?;
    let length = e.along(&length, dim, g.rank())?;
    let share = e.div(g, &length)?;
    let zero = e.full(&[], g.dtype, Arg::Int(0))?;
    let mut total: Option<V> = None;
    for offset in 0..crate::decompose::pieces(op, longest)? {
        let place = e.add(&start, offset)?;
        let is_inside = e.compare("lt", &place, &end)?;
        let is_inside = e.along(&is_inside, dim, g.rank())?;
        let part = e.select_where(&is_inside, &share, &zero)?;
        let place = inside(e, &place, size)?;
        let part = add_along(e, &part, dim, &place, size)?;
        total = Some(match total {
            Some(total) => e.add(&total, &part)?,
            None => part,
        });
    }
    total.ok_or_else(|| Error::shape(op, "no window"))
}

/// `floor(x / n)` of integers.
fn floor_div(e: &mut Expander<'_, '_>, x: &V, n: i64) -> Result<V, Error> {
    e.call1("aten.floor_divide.default", vec![x.arg(), Arg::Int(n)], &[], x.dtype, &x.shape)
}
