//! Transposed convolutions as plain ones: the input spread out with zeros between its elements, the kernel turned.
//!
//! Input element `i` adds `weight[k]` to output `i*stride + k*dilation - padding`, so output `o` sums
//! `spread[o + padding - k*dilation]`; with `k` counted from the kernel's end this is a convolution of `spread`, which
//! has `dilation*(kernel-1) - padding` zeros before it and `output_padding` more behind.

use super::{Conv, fixed};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor};
use crate::linalg::scalar::Scalars;
use crate::linalg::spatial::{self, LEAD, grown};
use crate::linalg::view::{reshape, slice_axis};
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Map, Size};
use m2m_record::Dim;
use m2m_tensor::{Expr, expr};

/// The input with zeros between its elements and around it.
pub fn spread<'c>(cx: &mut Cx<'c>, input: &Tensor<'c>, weight: &Tensor<'c>, conv: &Conv) -> Result<Tensor<'c>> {
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for (axis, padding) in conv.padding.iter().enumerate() {
        let kernel = fixed("a kernel", &weight.shape[LEAD + axis])?;
        let reach = conv.dilation[axis].checked_mul(kernel - 1);
        let reach = reach.ok_or_else(|| Error::unsupported(format!("a dilation of {}", conv.dilation[axis])))?;
        low.push(reach - padding);
        high.push(reach - padding + conv.output_padding[axis]);
    }
    let zero = Scalars::new(&cx.b, input.dtype).int(0)?;
    let (before, after): (Vec<i64>, Vec<i64>) = (positive(&low), positive(&high));
    let mut t = if conv.stride.iter().all(|s| *s == 1) {
        spatial::pad(cx, input, &before, &after, zero)?
    } else {
        insert(cx, input, &conv.stride, &before, &after)?
    };
    // Where the padding is wider than the kernel reaches, rows of the input itself fall away.
    for axis in 0..low.len() {
        let (cut_low, cut_high) = (-low[axis].min(0), -high[axis].min(0));
        if cut_low != 0 || cut_high != 0 {
            let extent = grown(&t.shape[LEAD + axis], -cut_low - cut_high)?;
            t = slice_axis(cx, &t, LEAD + axis, Size::Static(cut_low), 1, &extent)?;
        }
    }
    Ok(t)
}

fn positive(amounts: &[i64]) -> Vec<i64> {
    amounts.iter().map(|n| (*n).max(0)).collect()
}

/// Zeros of extent `before + (extent-1)*stride + 1 + after`, with the input at every `stride`-th place from `before`.
fn insert<'c>(
    cx: &mut Cx<'c>,
    input: &Tensor<'c>,
    stride: &[i64],
    before: &[i64],
    after: &[i64],
) -> Result<Tensor<'c>> {
    let mut shape = input.shape.clone();
    let mut offsets = vec![Size::Static(0); input.rank()];
    let mut strides = vec![Size::Static(1); input.rank()];
    for (axis, step) in stride.iter().enumerate() {
        let extent = Expr::try_from(&input.shape[LEAD + axis]).map_err(|e| Error::Graph(e.to_string()))?;
        let spread = expr::mul([Expr::Int(*step), expr::add([extent, Expr::Int(-1)])]);
        shape[LEAD + axis] = Dim::from(&expr::add([spread, Expr::Int(1 + before[axis] + after[axis])]));
        offsets[LEAD + axis] = Size::Static(before[axis]);
        strides[LEAD + axis] = Size::Static(*step);
    }
    let zero = Scalars::new(&cx.b, input.dtype).int(0)?;
    let zeros = cx.filled(input.dtype, &shape, zero)?;
    let sizes = cx.sizes(&input.shape)?;
    let value = cx.b.insert_slice(input.value, zeros, &offsets, &sizes, &strides)?;
    Ok(Tensor { value, dtype: input.dtype, shape })
}

/// The weight `[C, F/G, *kernel]` as a plain convolution wants it: `[F, C/G, *kernel]`, each kernel from its end.
pub fn turned<'c>(cx: &mut Cx<'c>, weight: &Tensor<'c>, groups: i64) -> Result<Tensor<'c>> {
    let kernel = &weight.shape[LEAD..];
    let (channels, filters) = (fixed("channels", &weight.shape[0])?, fixed("filters", &weight.shape[1])?);
    if channels % groups != 0 {
        return Err(Error::Graph(format!("{channels} channels in {groups} groups")));
    }
    let shape = |lead: [i64; 3]| -> Vec<Dim> { lead.map(Dim::Int).iter().chain(kernel).cloned().collect() };
    let grouped = reshape(cx, weight, &shape([groups, channels / groups, filters]))?;
    let loops = grouped.rank();
    let mut read = [0, 2, 1].map(MapExpr::Dim).to_vec();
    for (axis, extent) in kernel.iter().enumerate() {
        read.push(match fixed("a kernel", extent)? {
            1 => MapExpr::Dim(3 + axis),
            extent => MapExpr::linear(&[(3 + axis, -1)], extent - 1),
        });
    }
    let turned = shape([groups, filters, channels / groups]);
    let out = cx.empty(weight.dtype, &turned)?;
    let value = cx.b.elementwise(&[(grouped.value, Map::new(loops, read))], out, |_, x| Ok(x[0]))?;
    let turned = Tensor { value, dtype: weight.dtype, shape: turned };
    let all = filters.checked_mul(groups).ok_or_else(|| Error::unsupported(format!("{filters} filters a group")))?;
    let plain: Vec<Dim> = [all, channels / groups].map(Dim::Int).iter().chain(kernel).cloned().collect();
    reshape(cx, &turned, &plain)
}
