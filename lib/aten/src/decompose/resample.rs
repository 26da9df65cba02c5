//! Resampling for targets that do not have all of it: the nearest element by reading along each axis, one axis as a plane.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{V, sizes_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// The input of a call, and the scale factor of each of its `rank` axes where one is given.
fn read(e: &Expander<'_, '_>, b: &Bound<'_>, rank: usize) -> Result<(V, Vec<Option<f64>>), Error> {
    let x = e.tensor(b, if b.has("input") { "input" } else { "self" })?;
    if !b.has("scale_factors") {
        let names: &[&str] = if b.has("scales") { &["scales"] } else { &["scales_d", "scales_h", "scales_w"] };
        let names = names.get(names.len().saturating_sub(rank)..).unwrap_or_default();
        return Ok((x, names.iter().map(|name| b.float_or(name)).collect::<Result<_, _>>()?));
    }
    let factor = |item: &Arg| match item {
        Arg::Float(factor) => Ok(Some(factor.0)),
        Arg::Int(n) => Ok(Some(*n as f64)),
        other => Err(Error::shape(b.op(), format!("a factor is {}", crate::bind::describe(other)))),
    };
    match b.arg("scale_factors")? {
        Arg::List(items) if items.len() == rank => Ok((x, items.iter().map(factor).collect::<Result<_, _>>()?)),
        Arg::Null => Ok((x, vec![None; rank])),
        other => Err(Error::shape(b.op(), format!("factors {other:?} for {rank} axes"))),
    }
}

/// `upsample_nearestNd`, `_upsample_nearest_exactNd`: along each axis the element at `floor(s·i)`, or `floor(s·(i + 1/2))`,
/// with `s` one over the factor, or `in / out`, in the precision of PyTorch's kernel: `f32`, but for `f64` elements.
pub(super) fn nearest(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (_, shape) = e.result(b, 0)?;
    let rank = shape.len().saturating_sub(2);
    let (mut x, factors) = read(e, b, rank)?;
    let half = if b.op().contains("exact") { 0.5 } else { 0.0 };
    for (axis, factor) in (2..).zip(factors) {
        let (Some(from), Some(to)) = (x.dim(axis).as_int(), shape.get(axis).and_then(Expr::as_int)) else {
            return Err(Error::unsupported(format!("{} of symbolic sizes", b.op())));
        };
        let scale = factor.filter(|factor| *factor > 0.0).map_or(from as f64 / to as f64, |factor| 1.0 / factor);
        let dtype = if x.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let place = e.iota(&Expr::Int(to), dtype)?;
        let place = if half == 0.0 { place } else { e.add(&place, half)? };
        let place = e.mul(&place, scale)?;
        let place = e.to_dtype(&place, DType::I64)?;
        let last = e.full(&[], DType::I64, Arg::Int(from.saturating_sub(1)))?;
        let place = e.binary_default("minimum", &place, &last)?;
        let mut sizes = x.shape.clone();
        if let Some(size) = sizes.get_mut(axis) {
            *size = Expr::Int(to);
        }
        let args = vec![x.arg(), Arg::Int(axis as i64), place.arg()];
        x = e.call1("aten.index_select.default", args, &[], x.dtype, &sizes)?;
    }
    one(x)
}

/// `upsample_linear1d` of `[N, C, W]`: `upsample_bilinear2d` of `[N, C, 1, W]`.
pub(super) fn line(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (x, factors) = read(e, b, 1)?;
    if shape.len() != 3 || x.rank() != 3 {
        return Err(Error::shape(b.op(), format!("rank {}; expected 3", x.rank())));
    }
    let x = e.unsqueeze(&x, 2)?;
    let wide = [shape[0].clone(), shape[1].clone(), Expr::Int(1), shape[2].clone()];
    let (size, scales) = match factors.first() {
        Some(Some(factor)) => (Arg::Null, Arg::List(vec![Arg::from(1.0), Arg::from(*factor)])),
        _ => (sizes_arg(wide.get(2..).unwrap_or_default()), Arg::Null),
    };
    let args = vec![x.arg(), size, Arg::Bool(b.bool("align_corners")?), scales];
    let y = e.call1("aten.upsample_bilinear2d.vec", args, &[], dtype, &wide)?;
    one(e.squeeze(&y, 2)?)
}

/// `upsample_….vec` as the overload with sizes, those of the result, where the factors say no more than they do.
pub(super) fn by_sizes(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (x, factors) = read(e, b, shape.len().saturating_sub(2))?;
    let op = b.op().replace(".vec", ".default");
    let sizes = x.shape.iter().zip(&shape).skip(2).map(|(from, to)| Some((from.as_int()?, to.as_int()?)));
    let is_implied = |(size, factor): (Option<(i64, i64)>, &Option<f64>)| match (size, factor) {
        (_, None) => true,
        (Some((from, to)), Some(factor)) => from as f64 * factor == to as f64,
        (None, Some(_)) => false,
    };
    if !e.is_lowerable(&op) || !sizes.zip(&factors).all(is_implied) {
        return if b.has("align_corners") { super::antialias::resize(e, b) } else { nearest(e, b) };
    }
    let mut args = vec![x.arg(), sizes_arg(shape.get(2..).unwrap_or_default())];
    if b.has("align_corners") {
        args.push(b.arg("align_corners")?.clone());
    }
    args.extend(factors.iter().map(|_| Arg::Null));
    one(e.call1(&op, args, &[], dtype, &shape)?)
}
