//! The gradient of sampling a picture at places given by another tensor.

use super::norm::{as_result, wants};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// A coordinate of every place in elements of the picture, and its slope by the grid.
struct Coordinate {
    at: V,
    slope: V,
    size: i64,
}

/// From -1..1 to 0..size-1 (aligned corners) or -1/2..size-1/2; outside of the picture held at its edge (padding 1) or
/// mirrored there (2).
fn coordinate(e: &mut Expander<'_, '_>, c: &V, size: i64, align: bool, padding: i64) -> Result<Coordinate, Error> {
    let scale = if align { (size - 1) as f64 } else { size as f64 } / 2.0;
    let y = e.add(c, 1.0)?;
    let y = e.mul(&y, scale)?;
    let mut at = if align { y } else { e.sub(&y, 0.5)? };
    let mut slope = e.full(&at.shape, at.dtype, Arg::from(scale))?;
    if padding == 2 {
        let (low, span) = if align { (0.0, (size - 1) as f64) } else { (-0.5, size as f64) };
        (at, slope) = mirrored(e, &at, &slope, low, span)?;
    }
    if padding != 0 {
        let last = (size - 1) as f64;
        let (low, high) = (e.compare("le", &at, 0.0)?, e.compare("ge", &at, last)?);
        let is_held = e.binary_default("logical_or", &low, &high)?;
        let zero = e.full(&[], slope.dtype, Arg::Int(0))?;
        slope = e.select_where(&is_held, &zero, &slope)?;
        let args = vec![at.arg(), Arg::from(0.0), Arg::from(last)];
        at = e.call1("aten.clamp.default", args, &[], at.dtype, &at.shape)?;
    }
    Ok(Coordinate { at, slope, size })
}

/// A coordinate mirrored at `low` and `low + span`, as often as it takes; its slope changes its sign each time.
fn mirrored(e: &mut Expander<'_, '_>, at: &V, slope: &V, low: f64, span: f64) -> Result<(V, V), Error> {
    if span == 0.0 {
        let zeros = e.full(&at.shape, at.dtype, Arg::Int(0))?;
        return Ok((zeros.clone(), zeros));
    }
    let off = e.sub(at, low)?;
    let is_below = e.compare("lt", &off, 0.0)?;
    let minus = e.unary("neg", slope)?;
    let slope = e.select_where(&is_below, &minus, slope)?;
    let off = e.unary("abs", &off)?;
    let turns = e.div(&off, span)?;
    let turns = e.unary("floor", &turns)?;
    let whole = e.mul(&turns, span)?;
    let rest = e.sub(&off, &whole)?;
    let half = e.mul(&turns, 0.5)?;
    let pairs = e.unary("floor", &half)?;
    let is_odd = e.compare("ne", &half, &pairs)?;
    let back = e.unary("neg", &rest)?;
    let back = e.add(&back, span)?;
    let at = e.select_where(&is_odd, &back, &rest)?;
    let minus = e.unary("neg", &slope)?;
    Ok((e.add(&at, low)?, e.select_where(&is_odd, &minus, &slope)?))
}

/// A neighbour of a coordinate along one axis: its weight, and the slope of that by the coordinate.
struct Side {
    at: V,
    weight: V,
    slope: f64,
}

/// Both neighbours, or the nearest element, which does not move with the coordinate.
fn sides(e: &mut Expander<'_, '_>, c: &V, is_nearest: bool) -> Result<Vec<Side>, Error> {
    if is_nearest {
        let weight = e.full(&c.shape, c.dtype, Arg::Int(1))?;
        return Ok(vec![Side { at: e.unary("round", c)?, weight, slope: 0.0 }]);
    }
    let low = e.unary("floor", c)?;
    let high = e.add(&low, 1.0)?;
    let (to_high, to_low) = (e.sub(&high, c)?, e.sub(c, &low)?);
    Ok(vec![Side { at: low, weight: to_high, slope: -1.0 }, Side { at: high, weight: to_low, slope: 1.0 }])
}

/// Adds to a sum that may not have begun.
fn add_to(e: &mut Expander<'_, '_>, sum: &mut Option<V>, part: V) -> Result<(), Error> {
    *sum = Some(match sum.take() {
        Some(sum) => e.add(&sum, &part)?,
        None => part,
    });
    Ok(())
}

/// The places of whole coordinates in the flat picture, and which are in it.
fn corner(e: &mut Expander<'_, '_>, axes: &[(&Coordinate, &Side)]) -> Result<(V, V), Error> {
    let (mut index, mut inside): (Option<V>, Option<V>) = (None, None);
    for (c, side) in axes {
        let last = (c.size - 1) as f64;
        for (test, bound) in [("ge", 0.0), ("le", last)] {
            let ok = e.compare(test, &side.at, bound)?;
            inside = Some(match inside {
                Some(all) => e.binary_default("logical_and", &all, &ok)?,
                None => ok,
            });
        }
        let is_nan = e.test("isnan", &side.at)?;
        let zero = e.full(&[], side.at.dtype, Arg::Int(0))?;
        let at = e.select_where(&is_nan, &zero, &side.at)?;
        let args = vec![at.arg(), Arg::from(0.0), Arg::from(last)];
        let at = e.call1("aten.clamp.default", args, &[], at.dtype, &at.shape)?;
        let at = e.to_dtype(&at, DType::I64)?;
        index = Some(match index {
            Some(index) => {
                let index = e.mul(&index, c.size)?;
                e.add(&index, &at)?
            }
            None => at,
        });
    }
    index.zip(inside).ok_or_else(|| Error::shape("grid_sampler", "no axis"))
}

/// `grid_sampler_2d_backward`, `grid_sampler_3d_backward(g [N, C, *out], input [N, C, *size], grid [N, *out, axes])`:
/// with the corners around each place, their elements `v` and weights `w`, `Σ w·g` at the corners by the input, and by
/// each coordinate `Σ v·g·∂w`, sums over corners and channels; for interpolation (0) and the nearest element (1).
pub(crate) fn grid_sampler(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, grid) = (e.tensor(b, "grad_output")?, e.tensor(b, "input")?, e.tensor(b, "grid")?);
    let (mode, padding) = (b.int("interpolation_mode")?, b.int("padding_mode")?);
    if !(0..=1).contains(&mode) {
        return Err(Error::unsupported(format!("{} with the interpolation {mode}; expected 0 or 1", b.op())));
    }
    let (g, x, grid) = (e.widen(&g)?, e.widen(&x)?, e.widen(&grid)?);
    let spatial = x.rank().saturating_sub(2);
    let places = expr::mul(g.shape.iter().skip(2).cloned());
    let area = expr::mul(x.shape.iter().skip(2).cloned());
    let flat = |size: &Expr| [x.dim(0), x.dim(1), size.clone()];
    let (g, picture) = (e.view(&g, &flat(&places))?, e.view(&x, &flat(&area))?);
    let grid = e.view(&grid, &[x.dim(0), Expr::Int(1), places.clone(), grid.dim(grid.from_end(1)?)])?;
    let mut axes = Vec::new();
    for k in 0..spatial {
        // The last coordinate comes first in the grid.
        let column = i64::try_from(spatial - 1 - k).unwrap_or(0);
        let c = e.select(&grid, 3, &Expr::Int(column))?;
        let Some(size) = x.dim(k + 2).as_int() else {
            return Err(Error::unsupported(format!("grid sampling of a symbolic size {}", x.dim(k + 2))));
        };
        let c = coordinate(e, &c, size, b.bool("align_corners")?, padding)?;
        let sides = sides(e, &c.at, mode == 1)?;
        axes.push((c, sides));
    }
    let mut by_input: Option<V> = None;
    let mut by_grid: Vec<Option<V>> = vec![None; spatial];
    let corners = axes.iter().fold(vec![Vec::new()], |corners: Vec<Vec<(&Coordinate, &Side)>>, (c, sides)| {
        let with =
            |corner: &Vec<_>| sides.iter().map(|side| [corner.clone(), vec![(c, side)]].concat()).collect::<Vec<_>>();
        corners.iter().flat_map(with).collect()
    });
    let zero = e.full(&[], g.dtype, Arg::Int(0))?;
    for at in &corners {
        let (index, inside) = corner(e, at)?;
        let index = e.expand_to(&index, &g.shape)?;
        if wants(b, 0) {
            let mut part = g.clone();
            for (_, side) in at {
                part = e.mul(&part, &side.weight)?;
            }
            let part = e.select_where(&inside, &part, &zero)?;
            let zeros = e.full(&picture.shape, g.dtype, Arg::Int(0))?;
            let args = vec![zeros.arg(), Arg::Int(2), index.arg(), part.arg()];
            let part = e.call1("aten.scatter_add.default", args, &[], g.dtype, &picture.shape)?;
            add_to(e, &mut by_input, part)?;
        }
        if !wants(b, 1) {
            continue;
        }
        let args = vec![picture.arg(), Arg::Int(2), index.arg()];
        let v = e.call1("aten.gather.default", args, &[], g.dtype, &index.shape)?;
        let v = e.mul(&v, &g)?;
        let v = e.sum(&v, &[1], true)?;
        let v = e.select_where(&inside, &v, &zero)?;
        for (k, sum) in by_grid.iter_mut().enumerate() {
            let mut part = v.clone();
            for (other, (_, side)) in at.iter().enumerate() {
                part = if other == k { e.mul(&part, side.slope)? } else { e.mul(&part, &side.weight)? };
            }
            add_to(e, sum, part)?;
        }
    }
    let mut out = vec![None, None];
    if let (Some(y), Some(slot)) = (by_input, out.first_mut()) {
        *slot = as_result(e, b, 0, &y)?;
    }
    if wants(b, 1) {
        let mut columns = Vec::new();
        for (sum, (c, _)) in by_grid.into_iter().zip(&axes).rev() {
            let sum = sum.ok_or_else(|| Error::shape(b.op(), "no corner"))?;
            let y = e.mul(&sum, &c.slope)?;
            columns.push(e.unsqueeze(&y, 3)?);
        }
        let y = e.cat(&columns, 3)?;
        if let Some(slot) = out.last_mut() {
            *slot = as_result(e, b, 1, &y)?;
        }
    }
    Ok(out)
}
