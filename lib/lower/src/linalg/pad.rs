//! Padding by the tensor's own elements: `reflection_padNd`, `replication_padNd`; and `im2col`.
//!
//! Definitions: torch.nn.ReflectionPad2d, torch.nn.ReplicationPad2d and torch.nn.Unfold in PyTorch's documentation.

use super::cx::{Cx, Tensor, Val, need_rank};
use super::index;
use super::scalar::Scalars;
use super::spatial::{self, Indices, LEAD, Sliding, batched, ints_from};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::Value;
use m2m_record::{Arg, Dim, Node};
use m2m_tensor::{Expr, expr};

/// `reflection_padNd(self, padding)`: places before the first mirror at it, places behind the last mirror at that.
pub fn reflection<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    by_place(cx, node, bound, |p, x, extent| {
        let b = p.b;
        let last = p.linear(extent, 1, -1)?;
        let x = b.maxsi(x, b.subi(p.n(0)?, x)?)?;
        let beyond = b.subi(b.muli(last, p.n(2)?)?, x)?;
        p.clamp(b.minsi(x, beyond)?, extent)
    })
}

/// `replication_padNd(self, padding)`: the first and the last element go on.
pub fn replication<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    by_place(cx, node, bound, |p, x, extent| p.clamp(x, extent))
}

/// Reads the input along the padded axes at `source(place, extent)`, where places start at minus the padding.
fn by_place<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    bound: &Bound,
    source: impl Fn(&Indices<'_, 'c>, Value<'c>, Value<'c>) -> Result<Value<'c>>,
) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = cx.tensor(bound.tensor("self")?)?;
    let pads = bound.sym_ints("padding")?;
    let padded = pads.len() / 2;
    let lead = input.rank().checked_sub(padded);
    let lead =
        lead.ok_or_else(|| Error::Graph(format!("{padded} padded axes of a tensor of rank {}", input.rank())))?;
    need_rank("a result", &result.shape, input.rank())?;
    // Pairs of (before, after) count from the last axis; what is behind shows in the result's extent.
    let mut before = Vec::with_capacity(padded);
    let mut extents = Vec::with_capacity(padded);
    for axis in 0..padded {
        let pad = cx.size_arg(pads.get(2 * (padded - 1 - axis)).unwrap_or(&Arg::Int(0)))?;
        before.push(cx.b.size_value(pad)?);
        extents.push(cx.size_value(&input.shape[lead + axis])?);
    }
    let value = index::read(cx, &input, &result.shape, &[], |b, output, _| {
        let p = Indices { b };
        let mut place = output[..lead].to_vec();
        for (axis, x) in output[lead..].iter().enumerate() {
            place.push(source(&p, b.subi(*x, before[axis])?, extents[axis])?);
        }
        Ok(place)
    })?;
    Ok(vec![Val::Tensor(value)])
}

/// `im2col(self, kernel_size, dilation, padding, stride)`: `[N, C, H, W]` gives `[N, C*KH*KW, L]`, every window of the
/// padded planes as a column.
pub fn im2col<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = cx.tensor(bound.tensor("self")?)?;
    let (input, _) = batched(cx, &input, 2)?;
    let kernel = ints_from(bound, "kernel_size", 2, 1)?;
    let (stride, dilation) = (ints_from(bound, "stride", 2, 1)?, ints_from(bound, "dilation", 2, 1)?);
    let padding = ints_from(bound, "padding", 2, 0)?;
    let zero = Scalars::new(&cx.b, input.dtype).int(0)?;
    let padded = spatial::pad(cx, &input, &padding, &padding, zero)?;
    let sliding = Sliding { stride: &stride, dilation: &dilation };
    let mut shape = input.shape[..LEAD].to_vec();
    shape.extend(kernel.iter().copied().map(Dim::Int));
    for axis in 0..kernel.len() {
        shape.push(windows(&padded.shape[LEAD + axis], kernel[axis], stride[axis], dilation[axis])?);
    }
    // Loops of a sliding window are batch, channel, outputs, window; columns want the window before the outputs.
    let map = sliding.input_map();
    let order: Vec<usize> = (0..LEAD).chain(LEAD + 2..LEAD + 4).chain(LEAD..LEAD + 2).collect();
    let out = cx.empty(input.dtype, &shape)?;
    let outs = [(out, m2m_mlir::Map::dims(LEAD + 4, &order))];
    let iterators = [m2m_mlir::Iter::Parallel; LEAD + 4];
    let results = cx.b.generic(&[(padded.value, map)], &outs, &iterators, |_, x| Ok(vec![x[0]]))?;
    let columns = Tensor { value: results[0], dtype: input.dtype, shape };
    Ok(vec![Val::Tensor(reshape(cx, &columns, &result.shape)?)])
}

/// `floor((extent - dilation*(kernel-1) - 1) / stride) + 1` with the 1 inside of the division: the number of windows along a padded axis.
fn windows(extent: &Dim, kernel: i64, stride: i64, dilation: i64) -> Result<Dim> {
    let reach = dilation.checked_mul(kernel - 1).and_then(|n| n.checked_add(1));
    let reach = reach.ok_or_else(|| Error::unsupported(format!("a dilation of {dilation}")))?;
    let reached = Expr::try_from(&spatial::grown(extent, stride - reach)?).map_err(|e| Error::Graph(e.to_string()))?;
    Ok(Dim::from(&expr::floor_div(reached, Expr::Int(stride))))
}
