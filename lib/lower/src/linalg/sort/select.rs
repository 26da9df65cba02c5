//! What picks elements by rank: `topk`, `kthvalue`, medians.

use super::{Sorted, lanes, shaped, sorted};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::reduce::{Axes, fold, input, product};
use crate::linalg::scalar::Scalars;
use crate::linalg::view::{reshape, slice_axis};
use m2m_aten::bind::Bound;
use m2m_mlir::{CmpI, Iter, Map, Size, Value};
use m2m_record::{DType, Dim, Node};

/// `topk(self, k, dim, largest) -> (values, indices)`: the first `k` of the sorted elements, in order whether asked for
/// or not.
pub fn topk<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, axis) = lanes(cx, bound)?;
    let Sorted { values, indices } = sorted(cx, &t, axis, bound.bool("largest")?)?;
    let shape = &cx.result_type(node, 0)?.shape;
    let extent = shape.get(axis).cloned().unwrap_or(Dim::Int(1));
    let values = slice_axis(cx, &values, axis, Size::Static(0), 1, &extent)?;
    let indices = slice_axis(cx, &indices, axis, Size::Static(0), 1, &extent)?;
    Ok(vec![shaped(cx, node, 0, &values)?, shaped(cx, node, 1, &indices)?])
}

/// `kthvalue(self, k, dim, keepdim) -> (values, indices)`: the `k`-th least element, counted from 1.
pub fn kthvalue<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, axis) = lanes(cx, bound)?;
    let k = cx.size_arg(bound.arg("k")?)?;
    let at = cx.b.add_sizes(k, Size::Static(-1))?;
    let Sorted { values, indices } = sorted(cx, &t, axis, false)?;
    let values = slice_axis(cx, &values, axis, at, 1, &Dim::Int(1))?;
    let indices = slice_axis(cx, &indices, axis, at, 1, &Dim::Int(1))?;
    Ok(vec![shaped(cx, node, 0, &values)?, shaped(cx, node, 1, &indices)?])
}

/// `median.dim(self, dim, keepdim) -> (values, indices)`: the lower median; the first NaN where there is one.
pub fn median_dim<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    along(cx, node, bound, false)
}

/// `nanmedian.dim(self, dim, keepdim) -> (values, indices)`: the lower median of the numbers.
pub fn nanmedian_dim<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    along(cx, node, bound, true)
}

fn along<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, skips_nan: bool) -> Result<Vec<Val<'c>>> {
    let (t, axis) = lanes(cx, bound)?;
    let (value, index) = median(cx, &t, axis, skips_nan)?;
    Ok(vec![shaped(cx, node, 0, &value)?, shaped(cx, node, 1, &index)?])
}

/// `median(self)` of all elements.
pub fn median_all<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    flat(cx, node, bound, false)
}

/// `nanmedian(self)` of all elements.
pub fn nanmedian_all<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    flat(cx, node, bound, true)
}

fn flat<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, skips_nan: bool) -> Result<Vec<Val<'c>>> {
    let t = input(cx, bound)?;
    let count = product(t.shape.iter())?;
    let t = reshape(cx, &t, &[count])?;
    let (value, _) = median(cx, &t, 0, skips_nan)?;
    Ok(vec![shaped(cx, node, 0, &value)?])
}

/// The lower median along an axis and where it was. Sorted elements have their NaNs last, so the number of numbers says
/// which rank is wanted: that of the middle number, or of the first NaN.
fn median<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axis: usize, skips_nan: bool) -> Result<(Tensor<'c>, Tensor<'c>)> {
    if t.shape.contains(&Dim::Int(0)) {
        return Err(Error::unsupported(format!("the median of no elements, shape {:?}", t.shape)));
    }
    let axes = Axes::new(t.rank(), vec![axis]);
    let zero = Scalars::new(&cx.b, DType::I64).int(0)?;
    let from = t.dtype;
    let numbers = fold(cx, t, &axes, DType::I64, zero, |s, x, so_far| {
        let one = s.b.select(Scalars::new(s.b, from).is_nan(x)?, s.int(0)?, s.int(1)?)?;
        s.add(so_far, one)
    })?;
    let extent = cx.size_value(&t.shape[axis])?;
    let Sorted { values, indices } = sorted(cx, t, axis, false)?;
    let shape = axes.shape(t);
    let outs = [cx.empty(t.dtype, &shape)?, cx.empty(DType::I64, &shape)?];
    let outs = outs.map(|out| (out, Map::identity(shape.len())));
    let iterators = vec![Iter::Parallel; shape.len()];
    let ins = [(numbers.value, Map::identity(shape.len()))];
    let picked = cx.b.generic(&ins, &outs, &iterators, |b, v| {
        let run = || {
            let numbers = b.index_cast(v[0], b.index_type())?;
            let (zero, one) = (b.const_index(0)?, b.const_index(1)?);
            let middle = b.maxsi(b.shrsi(b.subi(numbers, one)?, one)?, zero)?;
            let has_nan = b.cmpi(CmpI::Slt, numbers, extent)?;
            let rank = if skips_nan { middle } else { b.select(has_nan, numbers, middle)? };
            let mut place = (0..shape.len()).map(|k| Ok(b.index(k)?)).collect::<Result<Vec<Value<'c>>>>()?;
            place.insert(axis, rank);
            Ok(vec![b.extract(values.value, &place)?, b.extract(indices.value, &place)?])
        };
        run().map_err(into_mlir)
    })?;
    let index = Tensor { value: picked[1], dtype: DType::I64, shape: shape.clone() };
    Ok((Tensor { value: picked[0], dtype: t.dtype, shape }, index))
}
