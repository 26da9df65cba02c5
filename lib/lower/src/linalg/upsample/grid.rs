//! `grid_sampler_2d` and `_3d`: each output reads the input at the coordinates that a grid holds for it.
//!
//! `input: [N, C, *in]`, `grid: [N, *out, rank]` with coordinates from the last axis on, -1 and 1 at the ends; `out: [N,
//! C, *out]`. Definition: GridSampler.h and GridSampler.cpp in PyTorch; places outside of the input count as zeros,
//! or are brought inside of it (border, reflection) before they are read.

use super::taps::{cubic_weights, floor_within};
use super::weigh_inside;
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val, need_rank};
use crate::linalg::elementwise::{into_mlir, scalar_value};
use crate::linalg::scalar::{Scalars, compute_dtype, convert};
use crate::linalg::spatial::{Indices, LEAD, extents};
use m2m_aten::bind::Bound;
use m2m_mlir::{CmpF, Value};
use m2m_record::{Node, ScalarKind};

/// A place along an axis, its weight, and whether it is inside of the input.
pub type Reading<'c> = (Value<'c>, Value<'c>, Value<'c>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Linear,
    Nearest,
    Cubic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// `grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)`, and of volumes `grid_sampler_3d`
pub fn grid_sampler<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let (input, grid) = (cx.tensor(bound.tensor("input")?)?, cx.tensor(bound.tensor("grid")?)?);
    let rank = result.shape.len().saturating_sub(LEAD);
    if !matches!(rank, 2 | 3) || !input.dtype.is_float() || grid.dtype != input.dtype {
        let (input, grid) = (input.dtype, grid.dtype);
        return Err(Error::unsupported(format!("sampling {rank} axes of {input} at coordinates of {grid}")));
    }
    need_rank("an input", &input.shape, rank + LEAD)?;
    need_rank("a grid", &grid.shape, rank + LEAD)?;
    let between = match bound.int("interpolation_mode")? {
        0 => Between::Linear,
        1 => Between::Nearest,
        2 if rank == 2 => Between::Cubic,
        mode => return Err(Error::unsupported(format!("interpolation mode {mode} over {rank} axes"))),
    };
    let outside = match bound.int("padding_mode")? {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection,
        mode => return Err(Error::unsupported(format!("padding mode {mode}"))),
    };
    let align_corners = bound.bool("align_corners")?;
    let extents = extents(cx, &input)?;
    let out = cx.empty(result.dtype, &result.shape)?;
    let dtype = compute_dtype(input.dtype);
    let value = cx.b.elementwise(&[], out, |b, _| {
        let run = || -> Result<_> {
            let (p, s) = (Indices { b }, Scalars::new(b, dtype));
            let output = (0..rank + LEAD).map(|axis| Ok(b.index(axis)?)).collect::<Result<Vec<_>>>()?;
            let mut along = Vec::with_capacity(rank);
            for (axis, extent) in extents.iter().enumerate() {
                let mut at = vec![output[0]];
                at.extend(&output[LEAD..]);
                at.push(p.n((rank - 1 - axis) as i64)?);
                let x = convert(b, b.extract(grid.value, &at)?, grid.dtype, dtype)?;
                let line = Line { p: &p, s: &s, extent: *extent, outside, align_corners };
                along.push(line.readings(between, x)?);
            }
            let sum = weigh_inside(b, &s, &input, &mut output[..LEAD].to_vec(), &along)?;
            convert(b, sum, dtype, input.dtype)
        };
        run().map_err(into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: result.dtype, shape: result.shape })])
}

/// One axis of the input.
struct Line<'a, 'b, 'c> {
    p: &'a Indices<'b, 'c>,
    s: &'a Scalars<'b, 'c>,
    extent: Value<'c>,
    outside: Outside,
    align_corners: bool,
}

impl<'c> Line<'_, '_, 'c> {
    /// The extent plus `n`, as a float.
    fn size(&self, n: i64) -> Result<Value<'c>> {
        scalar_value(self.s, ScalarKind::Int, self.p.linear(self.extent, 1, n)?)
    }

    /// A grid's coordinate as one of the input's.
    fn scaled(&self, x: Value<'c>) -> Result<Value<'c>> {
        let s = self.s;
        let (one, half) = (s.number(1.0)?, s.number(0.5)?);
        let x = s.add(x, one)?;
        if self.align_corners {
            return s.mul(s.mul(x, half)?, self.size(-1)?);
        }
        s.mul(s.sub(s.mul(x, self.size(0)?)?, one)?, half)
    }

    /// A coordinate brought inside, as the padding mode says.
    fn inward(&self, x: Value<'c>) -> Result<Value<'c>> {
        let s = self.s;
        let x = match self.outside {
            Outside::Zeros => return Ok(x),
            Outside::Border => x,
            Outside::Reflection => self.reflected(x)?,
        };
        s.minimum(s.maximum(x, s.number(0.0)?)?, self.size(-1)?)
    }

    /// A coordinate mirrored at the ends as often as needed: at the outer elements, or half a step beyond them.
    fn reflected(&self, x: Value<'c>) -> Result<Value<'c>> {
        let (s, b) = (self.s, self.s.b);
        let (least, span) =
            if self.align_corners { (s.number(0.0)?, self.size(-1)?) } else { (s.number(-0.5)?, self.size(0)?) };
        let zero = s.number(0.0)?;
        let is_point = b.cmpf(CmpF::Oeq, span, zero)?;
        let divisor = b.select(is_point, s.number(1.0)?, span)?;
        let x = b.unary("math.absf", s.sub(x, least)?)?;
        let (extra, flips) = (s.rem(x, divisor)?, b.unary("math.floor", s.div(x, divisor)?)?);
        let is_even = b.cmpf(CmpF::Oeq, s.rem(flips, s.number(2.0)?)?, zero)?;
        let there = b.select(is_even, extra, s.sub(divisor, extra)?)?;
        Ok(b.select(is_point, zero, s.add(there, least)?)?)
    }

    /// A whole coordinate as a place that can be read, and whether it is inside.
    fn place(&self, x: Value<'c>) -> Result<(Value<'c>, Value<'c>)> {
        let place = floor_within(self.p, self.s, x, self.size(1)?)?;
        Ok((self.p.clamp(place, self.extent)?, self.p.inside(place, self.extent)?))
    }

    fn readings(&self, between: Between, x: Value<'c>) -> Result<Vec<Reading<'c>>> {
        let (s, b) = (self.s, self.s.b);
        let one = s.number(1.0)?;
        let x = self.scaled(x)?;
        let reading = |x: Value<'c>, weight: Value<'c>| -> Result<Reading<'c>> {
            let (place, inside) = self.place(x)?;
            Ok((place, weight, inside))
        };
        match between {
            Between::Nearest => Ok(vec![reading(b.unary("math.roundeven", self.inward(x)?)?, one)?]),
            Between::Linear => {
                let x = self.inward(x)?;
                let first = b.unary("math.floor", x)?;
                let rest = s.sub(x, first)?;
                Ok(vec![reading(first, s.sub(one, rest)?)?, reading(s.add(first, one)?, rest)?])
            }
            Between::Cubic => {
                let first = b.unary("math.floor", x)?;
                let weights = cubic_weights(s, s.sub(x, first)?)?;
                let mut readings = Vec::with_capacity(weights.len());
                for (offset, weight) in [-1.0, 0.0, 1.0, 2.0].into_iter().zip(weights) {
                    let x = self.inward(s.add(first, s.number(offset)?)?)?;
                    readings.push(reading(x, weight)?);
                }
                Ok(readings)
            }
        }
    }
}
