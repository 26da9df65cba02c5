//! Sampling a picture at places given by another tensor.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `grid_sampler(input [N, C, H, W], grid [N, Ho, Wo, 2])`: `y[n, c, i, j]` is the picture at `(x, y) = grid[n, i, j]`,
/// -1 and 1 being its edges: interpolated (0) or the nearest element (1); outside it is 0 (padding 0) or the edge (1).
/// Source: `torch.nn.functional.grid_sample`.
pub(super) fn sample(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, grid) = (e.tensor(b, "input")?, e.tensor(b, "grid")?);
    let (mode, padding) = (b.int("interpolation_mode")?, b.int("padding_mode")?);
    if x.rank() != 4 || !(0..=1).contains(&mode) || !(0..=1).contains(&padding) {
        let message =
            format!("grid_sampler of rank {}, mode {mode}, padding {padding}; expected 4, 0 or 1, 0 or 1", x.rank());
        return Err(Error::unsupported(message));
    }
    let (dtype, shape) = e.result(b, 0)?;
    let align = b.bool("align_corners")?;
    let (wide, grid) = (e.widen(&x)?, e.widen(&grid)?);
    let mut place = Vec::new();
    for (k, dim) in [(0, 3), (1, 2)] {
        let c = e.select(&grid, 3, &Expr::Int(k))?;
        let size = static_size(&x, dim)?;
        place.push((unnormalize(e, &c, size, align, padding == 1)?, size));
    }
    let [(px, w), (py, h)] = place.as_slice() else { return Err(Error::shape(b.op(), "two coordinates")) };
    let picture = e.view(&wide, &[x.dim(0), x.dim(1), expr::mul([x.dim(2), x.dim(3)])])?;
    let y = if mode == 1 {
        let (cx, cy) = (e.unary("round", px)?, e.unary("round", py)?);
        pick(e, &picture, (&cx, *w), (&cy, *h))?
    } else {
        bilinear(e, &picture, (px, *w), (py, *h))?
    };
    let y = e.view(&y, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}

fn static_size(x: &V, dim: usize) -> Result<i64, Error> {
    x.dim(dim).as_int().ok_or_else(|| Error::unsupported(format!("grid sampling of a symbolic size {}", x.dim(dim))))
}

/// From -1..1 to 0..size-1 (aligned corners) or to -1/2..size-1/2.
fn unnormalize(e: &mut Expander<'_, '_>, c: &V, size: i64, align: bool, is_clipped: bool) -> Result<V, Error> {
    let y = e.add(c, 1.0)?;
    let y = if align {
        e.mul(&y, (size - 1) as f64 / 2.0)?
    } else {
        let y = e.mul(&y, size as f64)?;
        let y = e.sub(&y, 1.0)?;
        e.mul(&y, 0.5)?
    };
    if !is_clipped {
        return Ok(y);
    }
    let args = vec![y.arg(), Arg::from(0.0), Arg::from((size - 1) as f64)];
    e.call1("aten.clamp.default", args, &[], y.dtype, &y.shape)
}

/// The picture `[N, C, H·W]` at whole coordinates `[N, Ho, Wo]`, 0 outside: `[N, C, Ho·Wo]`.
fn pick(e: &mut Expander<'_, '_>, picture: &V, x: (&V, i64), y: (&V, i64)) -> Result<V, Error> {
    let mut inside: Option<V> = None;
    let mut whole = Vec::new();
    for (c, size) in [x, y] {
        for (test, bound) in [("ge", 0.0), ("le", (size - 1) as f64)] {
            let ok = e.compare(test, c, bound)?;
            inside = Some(match inside {
                Some(all) => e.binary_default("logical_and", &all, &ok)?,
                None => ok,
            });
        }
        let args = vec![c.arg(), Arg::from(0.0), Arg::from((size - 1) as f64)];
        let c = e.call1("aten.clamp.default", args, &[], c.dtype, &c.shape)?;
        // Not a number is nowhere, so that it may be read from anywhere.
        let nowhere = e.test("isnan", &c)?;
        let zero = e.full(&[], c.dtype, Arg::Int(0))?;
        let c = e.select_where(&nowhere, &zero, &c)?;
        whole.push(e.to_dtype(&c, DType::I64)?);
    }
    let (Some(inside), [cx, cy]) = (inside, whole.as_slice()) else {
        return Err(Error::unsupported("two coordinates"));
    };
    let index = e.mul(cy, x.1)?;
    let index = e.add(&index, cx)?;
    let flat = [index.dim(0), Expr::Int(1), expr::mul([index.dim(1), index.dim(2)])];
    let index = e.view(&index, &flat)?;
    let inside = e.view(&inside, &flat)?;
    let [n, _, places] = flat;
    let index = e.expand_to(&index, &[n, picture.dim(1), places])?;
    let args = vec![picture.arg(), Arg::Int(2), index.arg()];
    let values = e.call1("aten.gather.default", args, &[], picture.dtype, &index.shape)?;
    let zero = e.full(&[], picture.dtype, Arg::Int(0))?;
    e.select_where(&inside, &values, &zero)
}

/// The four neighbours, each weighted by the area of the opposite corner.
fn bilinear(e: &mut Expander<'_, '_>, picture: &V, x: (&V, i64), y: (&V, i64)) -> Result<V, Error> {
    let mut sides = Vec::new();
    for c in [x.0, y.0] {
        let low = e.unary("floor", c)?;
        let high = e.add(&low, 1.0)?;
        let (to_high, to_low) = (e.sub(&high, c)?, e.sub(c, &low)?);
        sides.push([(low, to_high), (high, to_low)]);
    }
    let [of_x, of_y] = sides.as_slice() else { return Err(Error::unsupported("two coordinates")) };
    let mut sum: Option<V> = None;
    for (cy, wy) in of_y {
        for (cx, wx) in of_x {
            let values = pick(e, picture, (cx, x.1), (cy, y.1))?;
            let weight = e.mul(wx, wy)?;
            let weight = e.view(&weight, &[weight.dim(0), Expr::Int(1), values.dim(2)])?;
            let part = e.mul(&values, &weight)?;
            sum = Some(match sum {
                Some(sum) => e.add(&sum, &part)?,
                None => part,
            });
        }
    }
    sum.ok_or_else(|| Error::unsupported("four neighbours"))
}

/// Places -1 to 1 of `count` elements' centres, or of their outer edges; 0 of one.
fn centres(e: &mut Expander<'_, '_>, count: &Expr, dtype: DType, align: bool) -> Result<V, Error> {
    let line = if let Some(count) = count.as_int() {
        let (low, high) = if count > 1 { (-1.0, 1.0) } else { (0.0, 0.0) };
        let args = vec![Arg::from(low), Arg::from(high), Arg::Int(count)];
        let line =
            e.call1("aten.linspace.default", args, &[("dtype", Arg::DType(dtype))], dtype, &[Expr::Int(count)])?;
        return if align { Ok(line) } else { e.mul(&line, (count - 1) as f64 / count as f64) };
    } else {
        let last = expr::sub(count.clone(), Expr::Int(1));
        let i = e.iota(count, dtype)?;
        let twice = e.mul(&i, 2.0)?;
        e.sub(&twice, &size_arg(&last))?
    };
    let steps = if align { expr::max([expr::sub(count.clone(), Expr::Int(1)), Expr::Int(1)]) } else { count.clone() };
    e.div(&line, &size_arg(&steps))
}

/// `affine_grid_generator(theta [N, 2, 3], size [N, C, H, W])`: `grid[n, i, j] = theta[n] @ (x_j, y_i, 1)`; with `theta
/// [N, 3, 4]` and `size [N, C, D, H, W]` the same of a volume.
pub(super) fn affine_grid(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let theta = e.tensor(b, "theta")?;
    let (dtype, shape) = e.result(b, 0)?;
    let align = b.bool("align_corners")?;
    let spatial = match shape.as_slice() {
        [_, spatial @ .., _] if [2, 3].contains(&spatial.len()) => spatial.to_vec(),
        _ => return Err(Error::shape(b.op(), format!("a result of rank {}; expected 4 or 5", shape.len()))),
    };
    let rank = spatial.len();
    let wide = e.widen(&theta)?;
    let ones = e.full(&spatial, wide.dtype, Arg::Int(1))?;
    let mut base = Vec::new();
    for (dim, count) in spatial.iter().enumerate().rev() {
        let line = centres(e, count, wide.dtype, align)?;
        let line = e.along(&line, dim, rank)?;
        let all = e.expand_to(&line, &spatial)?;
        base.push(e.unsqueeze(&all, rank)?);
    }
    base.push(e.unsqueeze(&ones, rank)?);
    let base = e.cat(&base, rank)?;
    let (places, width) = (expr::mul(spatial), base.dim(rank));
    let base = e.view(&base, &[Expr::Int(1), places.clone(), width.clone()])?;
    let base = e.expand_to(&base, &[theta.dim(0), places, width])?;
    let turned = e.transpose(&wide, 1, 2)?;
    let y = e.bmm(&base, &turned)?;
    let y = e.view(&y, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}
