//! Where an output of a resampled axis reads the input, and how much each place counts.

use crate::error::Result;
use crate::linalg::elementwise::scalar_value;
use crate::linalg::scalar::{Scalars, compute_dtype};
use crate::linalg::spatial::Indices;
use m2m_mlir::{CmpI, Value};
use m2m_record::{DType, ScalarKind};

/// How elements between places are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The element before.
    Nearest,
    /// The element that the output's centre falls into.
    NearestExact,
    /// Two neighbours.
    Linear,
    /// Four neighbours.
    Cubic,
}

/// One axis of a call.
pub struct Axis<'c> {
    /// Extent of the input.
    pub input: Value<'c>,
    /// Extent of the output.
    pub output: Value<'c>,
    /// The given scale factor.
    pub factor: Option<f64>,
    /// Whether the first and last elements of input and output lie on each other.
    pub align_corners: bool,
}

/// A place along an axis and its weight.
pub struct Tap<'c> {
    /// Inside of the input.
    pub place: Value<'c>,
    /// What its element is multiplied with.
    pub weight: Value<'c>,
}

/// The type of coordinates for elements of a dtype; integers, which only `nearest` moves, have f32 ones.
pub fn coordinate_dtype(dtype: DType) -> DType {
    if dtype.is_float() { compute_dtype(dtype) } else { DType::F32 }
}

impl<'c> Axis<'c> {
    fn real(s: &Scalars<'_, 'c>, index: Value<'c>) -> Result<Value<'c>> {
        scalar_value(s, ScalarKind::Int, index)
    }

    /// Input steps an output step.
    fn scale(&self, p: &Indices<'_, 'c>, s: &Scalars<'_, 'c>) -> Result<Value<'c>> {
        if self.align_corners {
            let steps = p.linear(self.output, 1, -1)?;
            let many = p.b.cmpi(CmpI::Sgt, steps, p.n(0)?)?;
            let last = Self::real(s, p.linear(self.input, 1, -1)?)?;
            let scale = s.div(last, Self::real(s, p.b.maxsi(steps, p.n(1)?)?)?)?;
            return Ok(p.b.select(many, scale, s.number(0.0)?)?);
        }
        match self.factor {
            Some(factor) if factor > 0.0 => s.number(1.0 / factor),
            _ => s.div(Self::real(s, self.input)?, Self::real(s, self.output)?),
        }
    }

    /// A float that is not negative, rounded down to an index.
    fn floor(p: &Indices<'_, 'c>, x: Value<'c>) -> Result<Value<'c>> {
        let wide = p.b.cast("fptosi", x, p.b.elem("i64")?)?;
        Ok(p.b.index_cast(wide, p.b.index_type())?)
    }

    /// The one place that an output reads.
    pub fn nearest(
        &self,
        p: &Indices<'_, 'c>,
        s: &Scalars<'_, 'c>,
        kind: Kind,
        output: Value<'c>,
    ) -> Result<Value<'c>> {
        let scale = self.scale(p, s)?;
        let mut x = Self::real(s, output)?;
        if kind == Kind::NearestExact {
            x = s.add(x, s.number(0.5)?)?;
        }
        p.clamp(Self::floor(p, s.mul(x, scale)?)?, self.input)
    }

    /// The source coordinate of an output; of linear interpolation not below zero.
    fn coordinate(&self, p: &Indices<'_, 'c>, s: &Scalars<'_, 'c>, kind: Kind, output: Value<'c>) -> Result<Value<'c>> {
        let scale = self.scale(p, s)?;
        let x = Self::real(s, output)?;
        if self.align_corners {
            return s.mul(scale, x);
        }
        let half = s.number(0.5)?;
        let x = s.sub(s.mul(scale, s.add(x, half)?)?, half)?;
        if kind == Kind::Cubic { Ok(x) } else { s.maximum(x, s.number(0.0)?) }
    }

    /// The places that an output is made of.
    pub fn taps(
        &self,
        p: &Indices<'_, 'c>,
        s: &Scalars<'_, 'c>,
        kind: Kind,
        output: Value<'c>,
    ) -> Result<Vec<Tap<'c>>> {
        let x = self.coordinate(p, s, kind, output)?;
        if kind == Kind::Cubic { self.cubic(p, s, x) } else { self.linear(p, s, x, output) }
    }

    /// The places on both sides. An axis that keeps its extent is copied, as rounding could tell otherwise.
    fn linear(
        &self,
        p: &Indices<'_, 'c>,
        s: &Scalars<'_, 'c>,
        x: Value<'c>,
        output: Value<'c>,
    ) -> Result<Vec<Tap<'c>>> {
        let b = p.b;
        let same = b.cmpi(CmpI::Eq, self.input, self.output)?;
        let (zero, one) = (s.number(0.0)?, s.number(1.0)?);
        let first = p.clamp(Self::floor(p, x)?, self.input)?;
        let rest = s.sub(x, Self::real(s, first)?)?;
        let rest = s.minimum(s.maximum(rest, zero)?, one)?;
        let first = b.select(same, output, first)?;
        let second = p.clamp(p.linear(first, 1, 1)?, self.input)?;
        let second = b.select(same, first, second)?;
        let rest = b.select(same, zero, rest)?;
        Ok(vec![Tap { place: first, weight: s.sub(one, rest)? }, Tap { place: second, weight: rest }])
    }

    /// The two places on either side; beyond the ends those at the ends.
    fn cubic(&self, p: &Indices<'_, 'c>, s: &Scalars<'_, 'c>, x: Value<'c>) -> Result<Vec<Tap<'c>>> {
        let (zero, one) = (s.number(0.0)?, s.number(1.0)?);
        let whole = p.b.unary("math.floor", x)?;
        let first = Self::floor(p, whole)?;
        // Coordinates are held inside of the axis before their fraction is taken.
        let first = p.b.minsi(first, p.linear(self.input, 1, -1)?)?;
        let t = s.sub(x, Self::real(s, first)?)?;
        let t = s.minimum(s.maximum(t, zero)?, one)?;
        let weights = cubic_weights(s, t)?;
        let mut taps = Vec::with_capacity(weights.len());
        for (offset, weight) in (-1..).zip(weights) {
            taps.push(Tap { place: p.clamp(p.linear(first, 1, offset)?, self.input)?, weight });
        }
        Ok(taps)
    }
}

/// The sharpness of the cubic convolution.
const A: f64 = -0.75;

/// Weights of the four elements around a coordinate that lies `t` behind the second of them.
pub fn cubic_weights<'c>(s: &Scalars<'_, 'c>, t: Value<'c>) -> Result<[Value<'c>; 4]> {
    let one = s.number(1.0)?;
    let u = s.sub(one, t)?;
    Ok([far(s, s.add(t, one)?)?, near(s, t)?, near(s, u)?, far(s, s.add(u, one)?)?])
}

/// A whole float as an index, those below -1 as -1 and those above `most` as `most`; NaN gives -1.
pub fn floor_within<'c>(p: &Indices<'_, 'c>, s: &Scalars<'_, 'c>, x: Value<'c>, most: Value<'c>) -> Result<Value<'c>> {
    let x = p.b.maxnumf(p.b.minnumf(x, most)?, s.number(-1.0)?)?;
    let x = p.b.select(s.is_nan(x)?, s.number(-1.0)?, x)?;
    let wide = p.b.cast("fptosi", x, p.b.elem("i64")?)?;
    Ok(p.b.index_cast(wide, p.b.index_type())?)
}

/// `((A + 2) x - (A + 3)) x^2 + 1`, for distances up to 1.
fn near<'c>(s: &Scalars<'_, 'c>, x: Value<'c>) -> Result<Value<'c>> {
    let inner = s.sub(s.mul(s.number(A + 2.0)?, x)?, s.number(A + 3.0)?)?;
    s.add(s.mul(s.mul(inner, x)?, x)?, s.number(1.0)?)
}

/// `((A x - 5 A) x + 8 A) x - 4 A`, for distances from 1 to 2.
fn far<'c>(s: &Scalars<'_, 'c>, x: Value<'c>) -> Result<Value<'c>> {
    let inner = s.sub(s.mul(s.number(A)?, x)?, s.number(5.0 * A)?)?;
    let inner = s.add(s.mul(inner, x)?, s.number(8.0 * A)?)?;
    s.sub(s.mul(inner, x)?, s.number(4.0 * A)?)
}
