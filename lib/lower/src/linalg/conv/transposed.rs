//! Transposed convolutions as plain ones: the input spread out with zeros between its elements, the kernel turned.
//!
//! Input element `i` adds `weight[k]` to output `i*stride + k*dilation - padding`, so output `o` sums
//! `spread[o + padding - k*dilation]`; with `k` counted from the kernel's end this is a convolution of `spread`, which
//! has `dilation*(kernel-1) - padding` zeros before it and `output_padding` more behind.

use super::{Conv, part};
use crate::error::Result;
use crate::linalg::cx::{Cx, Tensor};
use crate::linalg::index;
use crate::linalg::scalar::Scalars;
use crate::linalg::spatial::{self, Indices, LEAD, to_expr};
use crate::linalg::view::{reshape, slice_axis};
use m2m_mlir::Size;
use m2m_record::Dim;
use m2m_tensor::{Expr, expr};

/// The input with zeros between its elements and around it.
pub fn spread<'c>(cx: &mut Cx<'c>, input: &Tensor<'c>, weight: &Tensor<'c>, conv: &Conv) -> Result<Tensor<'c>> {
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for (axis, padding) in conv.padding.iter().enumerate() {
        let reach = expr::add([to_expr(&weight.shape[LEAD + axis])?, Expr::Int(-1)]);
        let before = expr::sub(expr::mul([Expr::Int(conv.dilation[axis]), reach]), Expr::Int(*padding));
        high.push(expr::add([before.clone(), Expr::Int(conv.output_padding[axis])]));
        low.push(before);
    }
    let zero = Scalars::new(&cx.b, input.dtype).int(0)?;
    let (before, after) = (positive(&low), positive(&high));
    let mut t = if conv.stride.iter().all(|s| *s == 1) {
        spatial::pad_by(cx, input, &before, &after, zero)?
    } else {
        insert(cx, input, &conv.stride, &before, &after)?
    };
    // Where the padding is wider than the kernel reaches, rows of the input itself fall away.
    for axis in 0..low.len() {
        let cut_low = expr::sub(before[axis].clone(), low[axis].clone());
        let cut_high = expr::sub(after[axis].clone(), high[axis].clone());
        let old = to_expr(&t.shape[LEAD + axis])?;
        let extent = expr::sub(expr::sub(old.clone(), cut_low.clone()), cut_high);
        if extent != old {
            let first = cx.symbols.size(&cx.b, &Dim::from(&cut_low))?;
            t = slice_axis(cx, &t, LEAD + axis, first, 1, &Dim::from(&extent))?;
        }
    }
    Ok(t)
}

fn positive(amounts: &[Expr]) -> Vec<Expr> {
    amounts.iter().map(|n| expr::max([n.clone(), Expr::Int(0)])).collect()
}

/// Zeros of extent `before + (extent-1)*stride + 1 + after`, with the input at every `stride`-th place from `before`.
fn insert<'c>(
    cx: &mut Cx<'c>,
    input: &Tensor<'c>,
    stride: &[i64],
    before: &[Expr],
    after: &[Expr],
) -> Result<Tensor<'c>> {
    let mut shape = input.shape.clone();
    let mut offsets = vec![Size::Static(0); input.rank()];
    let mut strides = vec![Size::Static(1); input.rank()];
    for (axis, step) in stride.iter().enumerate() {
        let last = expr::add([to_expr(&input.shape[LEAD + axis])?, Expr::Int(-1)]);
        let spread = expr::mul([Expr::Int(*step), last]);
        let extent = expr::add([spread, Expr::Int(1), before[axis].clone(), after[axis].clone()]);
        shape[LEAD + axis] = Dim::from(&extent);
        offsets[LEAD + axis] = cx.symbols.size(&cx.b, &Dim::from(&before[axis]))?;
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
    let (channels, filters) = (part(&weight.shape[0], groups)?, weight.shape[1].clone());
    let shape = |lead: &[Dim]| -> Vec<Dim> { lead.iter().chain(kernel).cloned().collect() };
    let grouped = reshape(cx, weight, &shape(&[Dim::Int(groups), channels.clone(), filters.clone()]))?;
    let extents = kernel.iter().map(|dim| cx.size_value(dim)).collect::<Result<Vec<_>>>()?;
    // Read at computed places: a map with falling indices is sound, but IREE's fusions break on it.
    let turned = shape(&[Dim::Int(groups), filters.clone(), channels.clone()]);
    let turned = index::read(cx, &grouped, &turned, &[], |b, output, _| {
        let p = Indices { b };
        let mut place = vec![output[0], output[2], output[1]];
        for (x, extent) in output[3..].iter().zip(&extents) {
            place.push(b.subi(p.linear(*extent, 1, -1)?, *x)?);
        }
        Ok(place)
    })?;
    let all = Dim::from(&expr::mul([to_expr(&filters)?, Expr::Int(groups)]));
    reshape(cx, &turned, &shape(&[all, channels]))
}
