//! Adaptive pools: output `i` of `out` covers the input from `floor(i*in/out)` to before `ceil((i+1)*in/out)`.
//!
//! Where every window has the same extent this is a plain pool. Elsewhere windows differ by place: loops go to the
//! greatest extent, and read the input at computed places. Definition: AdaptivePooling.h in PyTorch.

use super::average::{by_place, divided};
use super::max::{no_place, take};
use super::{Fold, batched_shape, finish, fold, lead_indices};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Scalars, accumulate_dtype, convert};
use crate::linalg::spatial::{Indices, LEAD, Sliding, batched, extents};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Size, Value};
use m2m_record::{DType, Dim, Node, TensorType};

/// `adaptive_avg_pool1d(self, output_size)`: `[N, C, W]`
pub fn average1d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    average(cx, node, bound, 1)
}

/// `adaptive_avg_pool2d(self, output_size)`: `[N, C, H, W]`
pub fn average2d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    average(cx, node, bound, 2)
}

/// `adaptive_avg_pool3d(self, output_size)`: `[N, C, D, H, W]`
pub fn average3d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    average(cx, node, bound, 3)
}

/// `adaptive_max_pool1d(self, output_size)`: `[N, C, W]`, values and indices
pub fn max1d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    max(cx, node, bound, 1)
}

/// `adaptive_max_pool2d(self, output_size)`: `[N, C, H, W]`, values and indices
pub fn max2d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    max(cx, node, bound, 2)
}

/// `adaptive_max_pool3d(self, output_size)`: `[N, C, D, H, W]`, values and indices
pub fn max3d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    max(cx, node, bound, 3)
}

fn average<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, rank: usize) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = cx.tensor(bound.tensor("self")?)?;
    let (input, was_added) = batched(cx, &input, rank)?;
    let ty = TensorType::new(result.dtype, batched_shape(&result, was_added, rank)?);
    let acc = accumulate_dtype(input.dtype);
    let zero = Scalars::new(&cx.b, acc).int(0)?;
    let value = cx.filled(acc, &ty.shape, zero)?;
    let init = Tensor { value, dtype: acc, shape: ty.shape.clone() };
    let mean = if let Some(steps) = equal_windows(&input.shape[LEAD..], &ty.shape[LEAD..]) {
        plain_average(cx, &input, init, &steps, &ty)?
    } else {
        let uneven = Uneven::new(cx, &input, &ty)?;
        let sum = uneven.reduce(cx, &[init], |b, element, _, inside, so_far| {
            let s = Scalars::new(b, acc);
            let element = b.select(inside, convert(b, element, input.dtype, acc)?, zero)?;
            Ok(vec![s.add(so_far[0], element)?])
        })?;
        by_place(cx, sum[0].clone(), &ty, |p, outputs| uneven.count(p, outputs))?
    };
    Ok(vec![finish(cx, mean, &result)?])
}

/// The extent of every window along each axis, where all are the same; a whole axis may have any extent.
fn equal_windows(input: &[Dim], output: &[Dim]) -> Option<Vec<Option<i64>>> {
    let along = |(extent, outputs): (&Dim, &Dim)| match (extent.as_int(), outputs.as_int()?) {
        (None, 1) => Some(None),
        (Some(extent), outputs) if outputs > 0 && extent % outputs == 0 => Some(Some(extent / outputs)),
        _ => None,
    };
    input.iter().zip(output).map(along).collect()
}

/// Windows of one extent, next to one another.
fn plain_average<'c>(
    cx: &mut Cx<'c>,
    input: &Tensor<'c>,
    init: Tensor<'c>,
    windows: &[Option<i64>],
    ty: &TensorType,
) -> Result<Tensor<'c>> {
    let mut sizes = Vec::with_capacity(windows.len());
    for (axis, window) in windows.iter().enumerate() {
        sizes.push(match window {
            Some(n) => Size::Static(*n),
            None => Size::Value(cx.size_value(&input.shape[LEAD + axis])?),
        });
    }
    // A whole axis is one window, so that any step does.
    let stride: Vec<i64> = windows.iter().map(|w| w.unwrap_or(1).max(1)).collect();
    let dilation = vec![1; windows.len()];
    let sliding = Sliding { stride: &stride, dilation: &dilation };
    let sum = fold(cx, Fold::Sum, input, &sizes, init, &sliding)?;
    let known = windows.iter().try_fold(1i64, |product, w| product.checked_mul((*w)?));
    match known {
        Some(count) => divided(cx, sum, count, ty),
        None => {
            let mut count = Size::Static(1);
            for size in sizes {
                count = cx.b.mul_sizes(count, size)?;
            }
            let count = cx.b.size_value(count)?;
            by_place(cx, sum, ty, |_, _| Ok(count))
        }
    }
}

fn max<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, rank: usize) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let indices = cx.result_type(node, 1)?.clone();
    let input = cx.tensor(bound.tensor("self")?)?;
    let (input, was_added) = batched(cx, &input, rank)?;
    let shape = batched_shape(&result, was_added, rank)?;
    let lowest = Scalars::new(&cx.b, input.dtype).lowest()?;
    let value = cx.filled(input.dtype, &shape, lowest)?;
    let init = Tensor { value, dtype: input.dtype, shape: shape.clone() };
    if let (false, Some(steps)) = (cx.is_used(node, 1), equal_windows(&input.shape[LEAD..], &shape[LEAD..]))
        && let Some(stride) = steps.into_iter().collect::<Option<Vec<i64>>>()
    {
        let sizes: Vec<Size<'c>> = stride.iter().copied().map(Size::Static).collect();
        let sliding = Sliding { stride: &stride, dilation: &vec![1; rank] };
        let values = fold(cx, Fold::Max, &input, &sizes, init, &sliding)?;
        return Ok(vec![finish(cx, values, &result)?, Val::None]);
    }
    let places = Tensor { value: no_place(cx, &shape)?, dtype: DType::I64, shape };
    let uneven = Uneven::new(cx, &input, &TensorType::new(result.dtype, init.shape.clone()))?;
    let extents = uneven.extents.clone();
    let found = uneven.reduce(cx, &[init, places], |b, element, point, inside, so_far| {
        let flat = Indices { b }.flat(point, &extents)?;
        take(b, input.dtype, element, (so_far[0], so_far[1]), inside, flat)
    })?;
    Ok(vec![finish(cx, found[0].clone(), &result)?, finish(cx, found[1].clone(), &indices)?])
}

/// Windows whose extents differ by place.
struct Uneven<'c> {
    input: Tensor<'c>,
    extents: Vec<Value<'c>>,
    outputs: Vec<Value<'c>>,
    /// The greatest extent of a window along each axis.
    greatest: Vec<Size<'c>>,
}

impl<'c> Uneven<'c> {
    fn new(cx: &mut Cx<'c>, input: &Tensor<'c>, ty: &TensorType) -> Result<Self> {
        let extents = extents(cx, input)?;
        let outputs = ty.shape[LEAD..].iter().map(|dim| cx.size_value(dim)).collect::<Result<Vec<_>>>()?;
        let mut greatest = Vec::with_capacity(extents.len());
        for (axis, (extent, output)) in input.shape[LEAD..].iter().zip(&ty.shape[LEAD..]).enumerate() {
            greatest.push(match (extent.as_int(), output.as_int()) {
                (Some(_), Some(0)) => Size::Static(0),
                (Some(extent), Some(output)) if extent % output == 0 => Size::Static(extent / output),
                (Some(extent), Some(output)) => Size::Static(extent / output + 2),
                _ => {
                    let most = cx.b.ceildivsi(extents[axis], outputs[axis])?;
                    Size::Value(cx.b.addi(most, cx.b.const_index(1)?)?)
                }
            });
        }
        Ok(Uneven { input: input.clone(), extents, outputs, greatest })
    }

    /// The first place of a window, and the one behind its last.
    fn range(&self, p: &Indices<'_, 'c>, axis: usize, output: Value<'c>) -> Result<(Value<'c>, Value<'c>)> {
        let (b, extent, outputs) = (p.b, self.extents[axis], self.outputs[axis]);
        let start = b.divsi(b.muli(output, extent)?, outputs)?;
        let next = b.muli(p.linear(output, 1, 1)?, extent)?;
        Ok((start, b.ceildivsi(next, outputs)?))
    }

    /// The number of elements of a window.
    fn count(&self, p: &Indices<'_, 'c>, outputs: &[Value<'c>]) -> Result<Value<'c>> {
        let mut count = None;
        for (axis, output) in outputs.iter().enumerate() {
            let (start, end) = self.range(p, axis, *output)?;
            let along = p.b.subi(end, start)?;
            count = Some(match count {
                None => along,
                Some(so_far) => p.b.muli(so_far, along)?,
            });
        }
        count.map_or_else(|| p.n(1), Ok)
    }

    /// Folds windows into `inits`. The body gets an element, its place, whether it is in the window, and the results
    /// so far.
    fn reduce(
        &self,
        cx: &mut Cx<'c>,
        inits: &[Tensor<'c>],
        body: impl FnOnce(&Builder<'c>, Value<'c>, &[Value<'c>], Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>>,
    ) -> Result<Vec<Tensor<'c>>> {
        let rank = self.extents.len();
        let ones = vec![1; rank];
        let sliding = Sliding { stride: &ones, dilation: &ones };
        let window = cx.b.empty(&self.greatest, cx.element(self.input.dtype)?)?;
        let outs: Vec<_> = inits.iter().map(|t| (t.value, sliding.output_map())).collect();
        let results = cx.b.generic(&[(window, sliding.window_map())], &outs, &sliding.iterators(), |b, x| {
            let run = || -> Result<_> {
                let p = Indices { b };
                let (mut at, mut point, mut inside) = (lead_indices(b)?, Vec::new(), Vec::new());
                for axis in 0..rank {
                    let (start, end) = self.range(&p, axis, b.index(LEAD + axis)?)?;
                    let place = b.addi(start, b.index(LEAD + rank + axis)?)?;
                    inside.push(b.cmpi(m2m_mlir::CmpI::Slt, place, end)?);
                    point.push(p.clamp(place, self.extents[axis])?);
                }
                at.extend(&point);
                let element = b.extract(self.input.value, &at)?;
                body(b, element, &point, p.all(&inside)?, x.get(1..).unwrap_or_default())
            };
            run().map_err(into_mlir)
        })?;
        if results.len() != inits.len() {
            return Err(Error::Graph("a pool without its results".into()));
        }
        Ok(inits.iter().zip(results).map(|(init, value)| Tensor { value, ..init.clone() }).collect())
    }
}
