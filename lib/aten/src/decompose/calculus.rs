//! Slopes and areas of sampled functions.

use super::identity::number;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::promote::{accumulate_dtype, float_of};
use crate::value::{O, V};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `x[from : size - to]` along `dim`.
fn part(e: &mut Expander<'_, '_>, x: &V, dim: usize, from: i64, to: i64) -> Result<V, Error> {
    let end = expr::sub(x.dim(dim), Expr::Int(to));
    e.slice(x, dim, &Expr::Int(from), &end, 1)
}

/// `x[from : to]` along `dim`, negative bounds counting from the end, the end itself being 0.
fn edge(e: &mut Expander<'_, '_>, x: &V, dim: usize, from: i64) -> Result<V, Error> {
    let start = if from < 0 { expr::add([x.dim(dim), Expr::Int(from)]) } else { Expr::Int(from) };
    let end = expr::add([start.clone(), Expr::Int(1)]);
    e.slice(x, dim, &start, &end, 1)
}

/// Where the samples of a function lie along an axis: at equal steps, or at the places `[n]` of a tensor, whose steps
/// these are.
enum Spacing {
    Even(f64),
    Steps(V),
}

/// The spacing of each of `dims`.
fn spacings(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, dims: &[usize]) -> Result<Vec<Spacing>, Error> {
    let literal = |arg: &Arg| match arg {
        Arg::Float(step) => Ok(step.0),
        Arg::Int(step) => Ok(*step as f64),
        other => Err(Error::unsupported(format!("{} with a spacing of {}", b.op(), crate::bind::describe(other)))),
    };
    if !b.has("spacing") || *b.arg("spacing")? == Arg::Null {
        return Ok(dims.iter().map(|_| Spacing::Even(1.0)).collect());
    }
    let Arg::List(items) = b.arg("spacing")? else {
        let step = literal(b.arg("spacing")?)?;
        return Ok(dims.iter().map(|_| Spacing::Even(step)).collect());
    };
    if items.len() != dims.len() {
        return Err(Error::shape(b.op(), format!("{} spacings for {} dimensions", items.len(), dims.len())));
    }
    let mut out = Vec::new();
    for (item, dim) in items.iter().zip(dims) {
        out.push(match item {
            Arg::Value(name) => {
                let places = e.value(name)?;
                let places = e.to_dtype(&places, x.dtype)?;
                let (before, after) = (part(e, &places, 0, 0, 1)?, part(e, &places, 0, 1, 0)?);
                let steps = e.sub(&after, &before)?;
                Spacing::Steps(e.along(&steps, *dim, x.rank())?)
            }
            other => Spacing::Even(literal(other)?),
        });
    }
    Ok(out)
}

/// `gradient(self, spacing, dim, edge_order)`: along each dimension the slope at each sample, of the parabola through
/// it and its neighbours; at the ends of the line through the two last samples, or with `edge_order` 2 of the parabola
/// through the three last.
pub(super) fn gradient(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let wide = accumulate_dtype(float_of(x.dtype));
    let x = e.to_dtype(&x, wide)?;
    let dims: Vec<usize> = match b.arg("dim")? {
        Arg::Null => (0..x.rank()).collect(),
        Arg::List(_) => b.ints("dim")?.iter().map(|d| wrap_dim(b.op(), *d, x.rank())).collect::<Result<_, _>>()?,
        _ => vec![wrap_dim(b.op(), b.int("dim")?, x.rank())?],
    };
    let steps = spacings(e, b, &x, &dims)?;
    let is_second = b.int("edge_order")? == 2;
    let mut out = Vec::new();
    for (k, (dim, step)) in dims.iter().zip(&steps).enumerate() {
        let (dtype, _) = e.result(b, k)?;
        let (first, middle, last) = match step {
            Spacing::Even(h) => even(e, &x, *dim, *h, is_second)?,
            Spacing::Steps(h) => uneven(e, &x, *dim, h, is_second)?,
        };
        let y = e.cat(&[first, middle, last], *dim)?;
        out.push(Some(e.to_dtype(&y, dtype)?));
    }
    Ok(out)
}

/// `Σ weight·sample`
fn weighed(e: &mut Expander<'_, '_>, terms: &[(O, V)]) -> Result<V, Error> {
    let mut total: Option<V> = None;
    for (weight, sample) in terms {
        let term = e.mul(sample, weight)?;
        total = Some(match total {
            Some(total) => e.add(&total, &term)?,
            None => term,
        });
    }
    total.ok_or_else(|| Error::shape("gradient", "no samples"))
}

/// Slopes at the first sample, between, and at the last, of samples at equal steps `h`.
fn even(e: &mut Expander<'_, '_>, x: &V, dim: usize, h: f64, is_second: bool) -> Result<(V, V, V), Error> {
    let (before, after) = (part(e, x, dim, 0, 2)?, part(e, x, dim, 2, 0)?);
    let middle = e.sub(&after, &before)?;
    let middle = e.div(&middle, 2.0 * h)?;
    let mut ends = Vec::new();
    for (near, next, far, sign) in [(0, 1, 2, 1.0), (-1, -2, -3, -1.0)] {
        let (near, next) = (edge(e, x, dim, near)?, edge(e, x, dim, next)?);
        let rise = if is_second {
            let far = edge(e, x, dim, far)?;
            weighed(e, &[(O::from(-1.5), near), (O::from(2.0), next), (O::from(-0.5), far)])?
        } else {
            e.sub(&next, &near)?
        };
        ends.push(e.div(&rise, sign * h)?);
    }
    let [first, last] = ends.as_slice() else { return Err(Error::shape("gradient", "two ends")) };
    Ok((first.clone(), middle, last.clone()))
}

/// The same of samples with the steps `h` between them.
fn uneven(e: &mut Expander<'_, '_>, x: &V, dim: usize, h: &V, is_second: bool) -> Result<(V, V, V), Error> {
    let (left, right) = (part(e, h, dim, 0, 1)?, part(e, h, dim, 1, 0)?);
    let whole = e.add(&left, &right)?;
    let (before, at, after) = (part(e, x, dim, 0, 2)?, part(e, x, dim, 1, 1)?, part(e, x, dim, 2, 0)?);
    let (to_left, to_right) = (e.sub(&at, &before)?, e.sub(&after, &at)?);
    // The slopes on both sides, each weighted by the step on the other side.
    let (to_left, to_right) = (e.div(&to_left, &left)?, e.div(&to_right, &right)?);
    let (to_left, to_right) = (e.mul(&to_left, &right)?, e.mul(&to_right, &left)?);
    let middle = e.add(&to_left, &to_right)?;
    let middle = e.div(&middle, &whole)?;
    let mut ends = Vec::new();
    for (near, next, far, own, other) in [(0, 1, 2, 0, 1), (-1, -2, -3, -1, -2)] {
        let (near, next) = (edge(e, x, dim, near)?, edge(e, x, dim, next)?);
        let sign = if own == 0 { 1.0 } else { -1.0 };
        let a = edge(e, h, dim, own)?;
        let a = e.mul(&a, sign)?;
        let rise = e.sub(&next, &near)?;
        let slope = e.div(&rise, &a)?;
        if !is_second {
            ends.push(slope);
            continue;
        }
        let c = edge(e, h, dim, other)?;
        let c = e.mul(&c, sign)?;
        let far = edge(e, x, dim, far)?;
        let bend = e.sub(&far, &next)?;
        let bend = e.div(&bend, &c)?;
        let bend = e.sub(&slope, &bend)?;
        let share = e.add(&a, &c)?;
        let share = e.div(&a, &share)?;
        let bend = e.mul(&bend, &share)?;
        ends.push(e.add(&slope, &bend)?);
    }
    let [first, last] = ends.as_slice() else { return Err(Error::shape("gradient", "two ends")) };
    Ok((first.clone(), middle, last.clone()))
}

/// `(y[i] + y[i+1])·(x[i+1] - x[i])`, twice the areas under the lines between neighbours, in the operands' own type, of
/// which whole numbers may leave it. The places are `[n]`, or of a shape that broadcasts to that of `y`; without them
/// the steps are 1.
fn areas(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &V, dim: usize) -> Result<V, Error> {
    let (left, right) = (part(e, y, dim, 0, 1)?, part(e, y, dim, 1, 0)?);
    let sum = e.add(&left, &right)?;
    if b.has("dx") {
        return Ok(sum);
    }
    let x = e.tensor(b, "x")?;
    let x = e.widen(&x)?;
    let x = if x.rank() == 1 && y.rank() != 1 { e.along(&x, dim, y.rank())? } else { x };
    let lead = vec![Expr::Int(1); y.rank().saturating_sub(x.rank())];
    let x = e.view(&x, &lead.into_iter().chain(x.shape.iter().cloned()).collect::<Vec<_>>())?;
    let (before, after) = (part(e, &x, dim, 0, 1)?, part(e, &x, dim, 1, 0)?);
    let step = e.sub(&after, &before)?;
    e.mul(&sum, &step)
}

/// The samples, and the dimension.
fn samples(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<(V, usize), Error> {
    let y = e.tensor(b, "y")?;
    let y = e.widen(&y)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, y.rank())?;
    Ok((y, dim))
}

/// Half of `x` as a float, times the equal steps where there are such.
fn halved(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let step = if b.has("dx") { number(b, "dx")? } else { 1.0 };
    let x = e.widen_float(x)?;
    let y = e.mul(&x, step / 2.0)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `trapezoid`, `trapz`: the sum of the areas along a dimension.
pub(super) fn trapezoid(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (y, dim) = samples(e, b)?;
    let (dtype, shape) = e.result(b, 0)?;
    if y.dim(dim) == Expr::Int(0) {
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    if b.has("dx") {
        let total = e.sum(&y, &[dim], false)?;
        let (first, last) = (edge(e, &y, dim, 0)?, edge(e, &y, dim, -1)?);
        let (first, last) = (e.squeeze(&first, dim)?, e.squeeze(&last, dim)?);
        let ends = e.add(&first, &last)?;
        let twice = e.mul(&total, 2i64)?;
        let twice = e.sub(&twice, &ends)?;
        return halved(e, b, &twice);
    }
    let area = areas(e, b, &y, dim)?;
    let area = e.sum(&area, &[dim], false)?;
    halved(e, b, &area)
}

/// `cumulative_trapezoid`: their running sums.
pub(super) fn cumulative(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (y, dim) = samples(e, b)?;
    let (dtype, shape) = e.result(b, 0)?;
    if y.dim(dim) == Expr::Int(0) {
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    let area = areas(e, b, &y, dim)?;
    let axis = Arg::Int(i64::try_from(dim).unwrap_or(0));
    let sums = if area.dtype.is_float() || area.dtype.is_complex() { area.dtype } else { DType::I64 };
    let sums = e.call1("aten.cumsum.default", vec![area.arg(), axis], &[], sums, &area.shape)?;
    halved(e, b, &sums)
}
