//! `max_poolNd_with_indices`: the greatest element of each window, and its place in the input's plane.
//!
//! Definition: the loop in PyTorch's CPU kernel, `if val > max or isnan(val)`: the first of equal elements, the last
//! NaN. Elements outside of the input take no part.

use super::{Fold, Window, batched_shape, finish, fold};
use crate::error::Result;
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Compare, Scalars};
use crate::linalg::spatial::{self, Indices, LEAD, batched, extents};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, CmpI, Value};
use m2m_record::{DType, Dim, Node};

/// `max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)`: `[N, C, W]`
pub fn max_pool1d_with_indices<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    max_pool(cx, node, bound, 1)
}

/// `max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)`: `[N, C, H, W]`
pub fn max_pool2d_with_indices<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    max_pool(cx, node, bound, 2)
}

/// `max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)`: `[N, C, D, H, W]`
pub fn max_pool3d_with_indices<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    max_pool(cx, node, bound, 3)
}

/// `max_poolNd` has the values only.
fn max_pool<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, rank: usize) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = cx.tensor(bound.tensor("self")?)?;
    let window = Window::read(bound, rank)?;
    let (input, was_added) = batched(cx, &input, rank)?;
    let shape = batched_shape(&result, was_added, rank)?;
    let lowest = Scalars::new(&cx.b, input.dtype).lowest()?;
    let padded = spatial::pad(cx, &input, &window.padding, &window.behind(), lowest)?;
    let value = cx.filled(input.dtype, &shape, lowest)?;
    let init = Tensor { value, dtype: input.dtype, shape };
    if node.results.len() == 1 || !cx.is_used(node, 1) {
        let values = fold(cx, Fold::Max, &padded, &window.sizes(), init, &window.sliding())?;
        let values = finish(cx, values, &result)?;
        return Ok(std::iter::once(values).chain((node.results.len() > 1).then_some(Val::None)).collect());
    }
    let indices = cx.result_type(node, 1)?.clone();
    let extents = extents(cx, &input)?;
    let [values, places] = arg_max(cx, &padded, &window, init, &extents)?;
    Ok(vec![finish(cx, values, &result)?, finish(cx, places, &indices)?])
}

/// Values and places in one loop.
fn arg_max<'c>(
    cx: &mut Cx<'c>,
    padded: &Tensor<'c>,
    window: &Window,
    init: Tensor<'c>,
    extents: &[Value<'c>],
) -> Result<[Tensor<'c>; 2]> {
    let rank = extents.len();
    let shape = init.shape.clone();
    let places = starts(cx, window, &shape, extents)?;
    let extent = cx.b.empty(&window.sizes(), cx.element(padded.dtype)?)?;
    let sliding = window.sliding();
    let ins = [(padded.value, sliding.input_map()), (extent, sliding.window_map())];
    let outs = [(init.value, sliding.output_map()), (places, sliding.output_map())];
    let results = cx.b.generic(&ins, &outs, &sliding.iterators(), |b, x| {
        let run = || -> Result<_> {
            let p = Indices { b };
            let mut point = Vec::with_capacity(rank);
            for axis in 0..rank {
                let first = p.linear(b.index(LEAD + axis)?, window.stride[axis], -window.padding[axis])?;
                let within = p.linear(b.index(LEAD + rank + axis)?, window.dilation[axis], 0)?;
                point.push(b.addi(first, within)?);
            }
            let inside = point.iter().zip(extents).map(|(x, n)| p.inside(*x, *n)).collect::<Result<Vec<_>>>()?;
            let (inside, flat) = (p.all(&inside)?, p.flat(&point, extents)?);
            take(b, padded.dtype, x[0], (x[2], x[3]), inside, flat)
        };
        run().map_err(into_mlir)
    })?;
    let places = Tensor { value: results[1], dtype: DType::I64, shape };
    Ok([Tensor { value: results[0], ..init }, places])
}

/// The first point of each window that is not in front of the input: the place of what no element is greater than, also
/// where a window has none.
fn starts<'c>(cx: &mut Cx<'c>, window: &Window, shape: &[Dim], extents: &[Value<'c>]) -> Result<Value<'c>> {
    let out = cx.empty(DType::I64, shape)?;
    let long = cx.element(DType::I64)?;
    let value = cx.b.elementwise(&[], out, |b, _| {
        let run = || -> Result<_> {
            let p = Indices { b };
            let mut point = Vec::with_capacity(extents.len());
            for axis in 0..extents.len() {
                let (padding, dilation) = (window.padding[axis], window.dilation[axis]);
                let first = p.linear(b.index(LEAD + axis)?, window.stride[axis], -padding)?;
                point.push(if padding == 0 {
                    first
                } else {
                    let missing = b.maxsi(p.linear(first, -1, 0)?, p.n(0)?)?;
                    let steps = b.ceildivsi(missing, p.n(dilation)?)?;
                    b.addi(first, p.linear(steps, dilation, 0)?)?
                });
            }
            Ok(b.index_cast(p.flat(&point, extents)?, long)?)
        };
        run().map_err(into_mlir)
    })?;
    Ok(value)
}

/// Indices before any element was seen.
pub fn no_place<'c>(cx: &mut Cx<'c>, shape: &[Dim]) -> Result<Value<'c>> {
    let none = Scalars::new(&cx.b, DType::I64).int(-1)?;
    cx.filled(DType::I64, shape, none)
}

/// The greatest element so far and its place, after one more element; `inside` says whether it takes part.
pub fn take<'c>(
    b: &Builder<'c>,
    dtype: DType,
    element: Value<'c>,
    so_far: (Value<'c>, Value<'c>),
    inside: Value<'c>,
    flat: Value<'c>,
) -> Result<Vec<Value<'c>>> {
    let s = Scalars::new(b, dtype);
    let (greatest, place) = so_far;
    let is_first = b.cmpi(CmpI::Slt, place, b.const_int(b.elem("i64")?, 0)?)?;
    let is_greater = s.compare(Compare::Gt, element, greatest)?;
    let wins = b.ori(b.ori(is_greater, s.is_nan(element)?)?, is_first)?;
    let wins = b.andi(wins, inside)?;
    let flat = b.index_cast(flat, b.elem("i64")?)?;
    Ok(vec![b.select(wins, element, greatest)?, b.select(wins, flat, place)?])
}
