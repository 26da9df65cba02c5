//! Resampling of spatial axes: `upsample_nearest`, `upsample_linear`, `upsample_bicubic` and their like.
//!
//! Output `i` of an axis lies at the source coordinate `scale * i` (nearest), `scale * (i + 0.5) - 0.5`, or with
//! `align_corners` `i * (in - 1) / (out - 1)`; `scale` is one over the given factor, or `in / out`. Definition: UpSample.h
//! and the CPU kernel in PyTorch, which compute coordinates in f32 (f64 for f64 elements).

pub mod grid;
mod taps;

use super::cx::{Cx, Tensor, Val};
use super::elementwise::into_mlir;
use super::index;
use super::scalar::{Scalars, compute_dtype, convert};
use super::spatial::{Indices, LEAD, batched, extents};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{Arg, Dim, Node};
use taps::{Axis, Kind, Tap};

/// `upsample_nearestNd(self, output_size, scales...)`: the element at `floor(scale * i)`
pub fn nearest<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    pick(cx, node, bound, Kind::Nearest)
}

/// `_upsample_nearest_exactNd(self, output_size, scales...)`: the element at `floor(scale * (i + 0.5))`
pub fn nearest_exact<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    pick(cx, node, bound, Kind::NearestExact)
}

/// `upsample_linear1d`, `upsample_bilinear2d`, `upsample_trilinear3d`: two neighbours an axis, weighted by distance
pub fn linear<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    blend(cx, node, bound, Kind::Linear)
}

/// `upsample_bicubic2d(self, output_size, align_corners, scales...)`: four neighbours an axis, weighted by the cubic
/// convolution with A = -0.75
pub fn cubic<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    blend(cx, node, bound, Kind::Cubic)
}

/// Input, shape of the result with a batch axis, and what is known of each axis.
type Call<'c> = (Tensor<'c>, Vec<Dim>, Vec<Axis<'c>>);

fn read<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, align_corners: bool) -> Result<Call<'c>> {
    let result = cx.result_type(node, 0)?.clone();
    let name = if bound.has("self") { "self" } else { "input" };
    let input = cx.tensor(bound.tensor(name)?)?;
    let rank = result.shape.len().saturating_sub(LEAD);
    if rank == 0 || input.dtype.is_complex() {
        return Err(Error::unsupported(format!("resampling {} of shape {:?}", input.dtype, input.shape)));
    }
    let (input, _) = batched(cx, &input, rank)?;
    let inputs = extents(cx, &input)?;
    let mut axes = Vec::with_capacity(rank);
    for (axis, factor) in factors(bound, rank)?.into_iter().enumerate() {
        let output = cx.size_value(&result.shape[LEAD + axis])?;
        axes.push(Axis { input: inputs[axis], output, factor, align_corners });
    }
    Ok((input, result.shape, axes))
}

/// The scale factor of each axis, where one is given: `scale_factors` of the overload `vec`, `scales_h` and the like of
/// the others.
fn factors(bound: &Bound<'_>, rank: usize) -> Result<Vec<Option<f64>>> {
    if bound.has("scale_factors") {
        let Arg::List(items) = bound.arg("scale_factors")? else { return Ok(vec![None; rank]) };
        let number = |item: &Arg| match item {
            Arg::Float(x) => Ok(Some(x.0)),
            Arg::Int(n) => Ok(Some(*n as f64)),
            other => Err(Error::unsupported(format!("scale_factors holds {other:?}"))),
        };
        let list = items.iter().map(number).collect::<Result<Vec<_>>>()?;
        return if list.len() == rank {
            Ok(list)
        } else {
            Err(Error::Graph(format!("scale_factors has {} entries for {rank} axes", list.len())))
        };
    }
    if bound.has("scales") {
        return Ok(vec![bound.float_or("scales")?]);
    }
    let names = ["scales_d", "scales_h", "scales_w"];
    names.iter().skip(names.len() - rank.min(names.len())).map(|name| Ok(bound.float_or(name)?)).collect()
}

fn pick<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, kind: Kind) -> Result<Vec<Val<'c>>> {
    let (input, shape, axes) = read(cx, node, bound, false)?;
    let dtype = taps::coordinate_dtype(input.dtype);
    let value = index::read(cx, &input, &shape, &[], |b, output, _| {
        let (p, s) = (Indices { b }, Scalars::new(b, dtype));
        let mut place = output[..LEAD].to_vec();
        for (axis, output) in axes.iter().zip(&output[LEAD..]) {
            place.push(axis.nearest(&p, &s, kind, *output)?);
        }
        Ok(place)
    })?;
    Ok(vec![Val::Tensor(value)])
}

fn blend<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, kind: Kind) -> Result<Vec<Val<'c>>> {
    let (input, shape, axes) = read(cx, node, bound, bound.bool("align_corners")?)?;
    if !input.dtype.is_float() {
        return Err(Error::unsupported(format!("interpolation of {}: only floats are covered", input.dtype)));
    }
    let dtype = compute_dtype(input.dtype);
    let out = cx.empty(input.dtype, &shape)?;
    let value = cx.b.elementwise(&[], out, |b, _| {
        let run = || -> Result<_> {
            let s = Scalars::new(b, dtype);
            let mut place = (0..LEAD).map(|axis| Ok(b.index(axis)?)).collect::<Result<Vec<_>>>()?;
            let mut taps = Vec::with_capacity(axes.len());
            for (k, axis) in axes.iter().enumerate() {
                taps.push(axis.taps(&Indices { b }, &s, kind, b.index(LEAD + k)?)?);
            }
            let sum = weigh(b, &s, &input, &mut place, &taps)?;
            convert(b, sum, dtype, input.dtype)
        };
        run().map_err(into_mlir)
    })?;
    let t = Tensor { value, dtype: input.dtype, shape: shape.clone() };
    Ok(vec![Val::Tensor(reshape(cx, &t, &shape)?)])
}

/// The weighted sum over the remaining axes' neighbours, the innermost axis first. Recursion is as deep as the axes.
fn weigh<'c>(
    b: &Builder<'c>,
    s: &Scalars<'_, 'c>,
    input: &Tensor<'c>,
    place: &mut Vec<Value<'c>>,
    taps: &[Vec<Tap<'c>>],
) -> Result<Value<'c>> {
    let Some((along, rest)) = taps.split_first() else {
        let element = b.extract(input.value, place)?;
        return convert(b, element, input.dtype, s.dtype);
    };
    let mut terms = Vec::with_capacity(along.len());
    for tap in along {
        place.push(tap.place);
        let element = weigh(b, s, input, place, rest)?;
        place.pop();
        terms.push(s.mul(element, tap.weight)?);
    }
    sum(s, terms)
}

/// As `weigh`, where elements outside of the input count as zeros. Those are weighed too, so that coordinates that are
/// not finite give NaN, as they do in PyTorch.
fn weigh_inside<'c>(
    b: &Builder<'c>,
    s: &Scalars<'_, 'c>,
    input: &Tensor<'c>,
    place: &mut Vec<Value<'c>>,
    readings: &[Vec<grid::Reading<'c>>],
) -> Result<Value<'c>> {
    let zero = s.number(0.0)?;
    let mut terms = Vec::new();
    let lead = place.len();
    for corner in corners(readings) {
        place.truncate(lead);
        place.extend(corner.iter().map(|reading| reading.0));
        let inside: Vec<Value<'c>> = corner.iter().map(|reading| reading.2).collect();
        let element = convert(b, b.extract(input.value, place)?, input.dtype, s.dtype)?;
        let mut term = b.select(Indices { b }.all(&inside)?, element, zero)?;
        for reading in corner.iter().rev() {
            term = s.mul(term, reading.1)?;
        }
        terms.push(term);
    }
    place.truncate(lead);
    sum(s, terms)
}

/// Every choice of one reading an axis, the last axis fastest.
fn corners<'c>(readings: &[Vec<grid::Reading<'c>>]) -> Vec<Vec<grid::Reading<'c>>> {
    readings.iter().fold(vec![Vec::new()], |corners, along| {
        let longer = |corner: &Vec<_>, reading: &grid::Reading<'c>| {
            corner.iter().copied().chain(std::iter::once(*reading)).collect()
        };
        corners.iter().flat_map(|corner| along.iter().map(move |reading| longer(corner, reading))).collect()
    })
}

fn sum<'c>(s: &Scalars<'_, 'c>, terms: Vec<Value<'c>>) -> Result<Value<'c>> {
    let mut terms = terms.into_iter();
    let first = terms.next().ok_or_else(|| Error::Graph("interpolation without neighbours".into()))?;
    terms.try_fold(first, |so_far, term| s.add(so_far, term))
}
