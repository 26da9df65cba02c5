//! What convolutions, pools and resampling share: tensors `[N, C, *spatial]`, padding of spatial axes, windows that
//! slide over them, and reads at computed places.

use super::cx::{Cx, Tensor};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::{Bound, describe};
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Builder, Iter, Map, Size, Value};
use m2m_record::{Arg, Dim};
use m2m_tensor::{Expr, expr};

/// Axes before the spatial ones: batch and channels.
pub const LEAD: usize = 2;

/// A list argument of one integer a spatial axis, or one for all; symbols are refused, as strides and kernels are
/// attributes.
pub fn ints(bound: &Bound<'_>, name: &str, rank: usize) -> Result<Vec<i64>> {
    let items = bound.sym_ints(name)?;
    let number = |item: &Arg| match item {
        Arg::Int(n) => Ok(*n),
        other => Err(Error::unsupported(format!("{name} holds {}", describe(other)))),
    };
    let list = items.iter().map(number).collect::<Result<Vec<_>>>()?;
    match list.as_slice() {
        [one] => Ok(vec![*one; rank]),
        list if list.len() == rank => Ok(list.to_vec()),
        _ => Err(Error::Graph(format!("{name} has {} entries for {rank} spatial axes", list.len()))),
    }
}

/// The greatest stride, kernel, padding or dilation that is covered, so that products of two are exact.
const MOST: i64 = 1 << 31;

/// As `ints`, for amounts from `least` to `MOST`.
pub fn ints_from(bound: &Bound<'_>, name: &str, rank: usize, least: i64) -> Result<Vec<i64>> {
    let list = ints(bound, name, rank)?;
    match list.iter().find(|n| !(least..=MOST).contains(*n)) {
        Some(n) => Err(Error::unsupported(format!("{name} of {n}; {least} to {MOST} is covered"))),
        None => Ok(list),
    }
}

/// A size as an expression.
pub fn to_expr(dim: &Dim) -> Result<Expr> {
    Expr::try_from(dim).map_err(|e| Error::Graph(e.to_string()))
}

/// `dim + n`.
pub fn grown(dim: &Dim, n: i64) -> Result<Dim> {
    Ok(Dim::from(&expr::add([to_expr(dim)?, Expr::Int(n)])))
}

/// An input with the batch axis that it may lack, given the number of spatial axes; and whether it lacked it.
pub fn batched<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, rank: usize) -> Result<(Tensor<'c>, bool)> {
    if t.rank() == rank + LEAD {
        return Ok((t.clone(), false));
    }
    if t.rank() + 1 != rank + LEAD {
        return Err(Error::unsupported(format!("an input of rank {} with {rank} spatial axes", t.rank())));
    }
    let shape: Vec<Dim> = std::iter::once(Dim::Int(1)).chain(t.shape.iter().cloned()).collect();
    Ok((reshape(cx, t, &shape)?, true))
}

/// Pads the last axes by constant amounts with one scalar.
pub fn pad<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, low: &[i64], high: &[i64], fill: Value<'c>) -> Result<Tensor<'c>> {
    let exprs = |amounts: &[i64]| -> Vec<Expr> { amounts.iter().copied().map(Expr::Int).collect() };
    pad_by(cx, t, &exprs(low), &exprs(high), fill)
}

/// Pads the last axes with one scalar.
pub fn pad_by<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, low: &[Expr], high: &[Expr], fill: Value<'c>) -> Result<Tensor<'c>> {
    if low.iter().chain(high).all(|n| n.as_int() == Some(0)) {
        return Ok(t.clone());
    }
    let lead = t.rank() - low.len();
    let mut shape = t.shape.clone();
    for (axis, (low, high)) in low.iter().zip(high).enumerate() {
        let sum = expr::add([to_expr(&t.shape[lead + axis])?, low.clone(), high.clone()]);
        shape[lead + axis] = Dim::from(&sum);
    }
    let mut sizes = |amounts: &[Expr]| -> Result<Vec<Size<'c>>> {
        let amounts: Vec<Dim> = std::iter::repeat_n(Dim::Int(0), lead).chain(amounts.iter().map(Dim::from)).collect();
        cx.sizes(&amounts)
    };
    let (low, high) = (sizes(low)?, sizes(high)?);
    let value = cx.b.pad(t.value, &low, &high, fill)?;
    cx.conform(value, t.dtype, &shape)
}

/// The loops of a window that slides over spatial axes: batch, channel, outputs, then the window's own.
pub struct Sliding<'a> {
    /// Steps between windows.
    pub stride: &'a [i64],
    /// Steps between elements of a window.
    pub dilation: &'a [i64],
}

impl Sliding<'_> {
    fn rank(&self) -> usize {
        self.stride.len()
    }

    fn loops(&self) -> usize {
        LEAD + 2 * self.rank()
    }

    /// How the input is read: at `stride * output + dilation * window`.
    pub fn input_map(&self) -> Map {
        let window = |axis: usize| {
            let terms = [(LEAD + axis, self.stride[axis]), (LEAD + self.rank() + axis, self.dilation[axis])];
            MapExpr::linear(&terms, 0)
        };
        let lead = (0..LEAD).map(MapExpr::Dim);
        Map::new(self.loops(), lead.chain((0..self.rank()).map(window)).collect())
    }

    /// How a tensor of the window's extents is read; it tells the loops how far they go.
    pub fn window_map(&self) -> Map {
        let first = LEAD + self.rank();
        Map::dims(self.loops(), &(first..self.loops()).collect::<Vec<_>>())
    }

    /// How results are written.
    pub fn output_map(&self) -> Map {
        Map::dims(self.loops(), &(0..LEAD + self.rank()).collect::<Vec<_>>())
    }

    /// The window's loops reduce.
    pub fn iterators(&self) -> Vec<Iter> {
        let parallel = std::iter::repeat_n(Iter::Parallel, LEAD + self.rank());
        parallel.chain(std::iter::repeat_n(Iter::Reduction, self.rank())).collect()
    }
}

/// `index` constants and arithmetic inside bodies, short to write.
#[derive(Clone, Copy)]
pub struct Indices<'b, 'c> {
    /// Where operations go.
    pub b: &'b Builder<'c>,
}

impl<'b, 'c> Indices<'b, 'c> {
    /// A constant.
    pub fn n(&self, n: i64) -> Result<Value<'c>> {
        Ok(self.b.const_index(n)?)
    }

    /// `x * factor + offset`, without what changes nothing.
    pub fn linear(&self, x: Value<'c>, factor: i64, offset: i64) -> Result<Value<'c>> {
        let x = if factor == 1 { x } else { self.b.muli(x, self.n(factor)?)? };
        Ok(if offset == 0 { x } else { self.b.addi(x, self.n(offset)?)? })
    }

    /// `0 <= x < extent`, as `i1`.
    pub fn inside(&self, x: Value<'c>, extent: Value<'c>) -> Result<Value<'c>> {
        let below = self.b.cmpi(m2m_mlir::CmpI::Slt, x, extent)?;
        Ok(self.b.andi(self.b.cmpi(m2m_mlir::CmpI::Sge, x, self.n(0)?)?, below)?)
    }

    /// `x` brought into `0..extent`.
    pub fn clamp(&self, x: Value<'c>, extent: Value<'c>) -> Result<Value<'c>> {
        let last = self.b.subi(extent, self.n(1)?)?;
        Ok(self.b.maxsi(self.b.minsi(x, last)?, self.n(0)?)?)
    }

    /// The place in row-major order of a point of a box.
    pub fn flat(&self, point: &[Value<'c>], extents: &[Value<'c>]) -> Result<Value<'c>> {
        let mut flat = self.n(0)?;
        for (k, (x, extent)) in point.iter().zip(extents).enumerate() {
            flat = if k == 0 { *x } else { self.b.addi(self.b.muli(flat, *extent)?, *x)? };
        }
        Ok(flat)
    }

    /// Every one of conditions.
    pub fn all(&self, conditions: &[Value<'c>]) -> Result<Value<'c>> {
        let mut all = None;
        for condition in conditions {
            all = Some(match all {
                None => *condition,
                Some(so_far) => self.b.andi(so_far, *condition)?,
            });
        }
        all.map_or_else(|| Ok(self.b.const_bool(true)?), Ok)
    }
}

/// Sizes of spatial axes as `index` values.
pub fn extents<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>) -> Result<Vec<Value<'c>>> {
    t.shape[LEAD..].iter().map(|dim| cx.size_value(dim)).collect()
}
