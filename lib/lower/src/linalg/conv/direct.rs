//! Convolutions of inputs that are padded already, as the named operation for their rank and groups where there is one.

use super::part;
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Scalars, convert};
use crate::linalg::spatial::LEAD;
use crate::linalg::view::reshape;
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Attribute, Iter, Map, attr};
use m2m_record::Dim;

/// How windows go.
pub struct Steps<'a> {
    /// Steps between windows.
    pub stride: &'a [i64],
    /// Steps between elements of a window.
    pub dilation: &'a [i64],
}

/// Adds the convolution to `init`, in `init`'s type.
pub fn emit<'c>(
    cx: &mut Cx<'c>,
    input: &Tensor<'c>,
    weight: &Tensor<'c>,
    init: Tensor<'c>,
    steps: &Steps<'_>,
    groups: i64,
) -> Result<Tensor<'c>> {
    let rank = steps.stride.len();
    if groups == 1 {
        let names = ["linalg.conv_1d_ncw_fcw", "linalg.conv_2d_nchw_fchw", "linalg.conv_3d_ncdhw_fcdhw"];
        return named(cx, names[rank - 1], input, weight, init, steps);
    }
    if weight.shape[0] == Dim::Int(groups) && weight.shape[1] == Dim::Int(1) {
        let names = [
            "linalg.depthwise_conv_1d_ncw_cw",
            "linalg.depthwise_conv_2d_nchw_chw",
            "linalg.depthwise_conv_3d_ncdhw_cdhw",
        ];
        let shape: Vec<Dim> = weight.shape.iter().take(1).chain(&weight.shape[LEAD..]).cloned().collect();
        let weight = reshape(cx, weight, &shape)?;
        return named(cx, names[rank - 1], input, &weight, init, steps);
    }
    let shape = init.shape.clone();
    let split = Split { groups, channels: weight.shape[1].clone(), filters: part(&weight.shape[0], groups)? };
    let input = split.input(cx, input, rank)?;
    let weight = split.weight(cx, weight, rank)?;
    let init = split.output(cx, &init, rank)?;
    let sum = match rank {
        1 => {
            // A line is a plane of height 1.
            let (stride, dilation) = ([1, steps.stride[0]], [1, steps.dilation[0]]);
            let steps = Steps { stride: &stride, dilation: &dilation };
            named(cx, "linalg.conv_2d_ngchw_gfchw", &input, &weight, init, &steps)?
        }
        2 => named(cx, "linalg.conv_2d_ngchw_gfchw", &input, &weight, init, steps)?,
        _ => generic(cx, &input, &weight, init, steps)?,
    };
    reshape(cx, &sum, &shape)
}

fn named<'c>(
    cx: &mut Cx<'c>,
    name: &str,
    input: &Tensor<'c>,
    weight: &Tensor<'c>,
    init: Tensor<'c>,
    steps: &Steps<'_>,
) -> Result<Tensor<'c>> {
    let vector = |values: &[i64]| -> Attribute<'c> { attr::int64_vector(cx.b.context(), values) };
    let attributes = [("strides", vector(steps.stride)), ("dilations", vector(steps.dilation))];
    let results = cx.b.named(name, &[input.value, weight.value], &[init.value], &attributes)?;
    let value = *results.first().ok_or_else(|| Error::Graph(format!("{name} without a result")))?;
    Ok(Tensor { value, ..init })
}

/// How channels and filters are split: each group has so many.
struct Split {
    groups: i64,
    channels: Dim,
    filters: Dim,
}

impl Split {
    /// `[N, C, *]` as `[N, G, C/G, *]`, with height 1 for a line.
    fn input<'c>(&self, cx: &mut Cx<'c>, t: &Tensor<'c>, rank: usize) -> Result<Tensor<'c>> {
        let lead = [t.shape[0].clone(), Dim::Int(self.groups), self.channels.clone()];
        reshape(cx, t, &planes(&lead, &t.shape[LEAD..], rank))
    }

    /// `[F, C/G, *]` as `[G, F/G, C/G, *]`, with height 1 for a line.
    fn weight<'c>(&self, cx: &mut Cx<'c>, t: &Tensor<'c>, rank: usize) -> Result<Tensor<'c>> {
        let lead = [Dim::Int(self.groups), self.filters.clone(), self.channels.clone()];
        reshape(cx, t, &planes(&lead, &t.shape[LEAD..], rank))
    }

    /// `[N, F, *]` as `[N, G, F/G, *]`, with height 1 for a line.
    fn output<'c>(&self, cx: &mut Cx<'c>, t: &Tensor<'c>, rank: usize) -> Result<Tensor<'c>> {
        let lead = [t.shape[0].clone(), Dim::Int(self.groups), self.filters.clone()];
        reshape(cx, t, &planes(&lead, &t.shape[LEAD..], rank))
    }
}

fn planes(lead: &[Dim], spatial: &[Dim], rank: usize) -> Vec<Dim> {
    let height = (rank == 1).then_some(Dim::Int(1));
    lead.iter().cloned().chain(height).chain(spatial.iter().cloned()).collect()
}

/// Grouped convolutions that no named operation covers: loops over `n, g, f, outputs, c, window`.
fn generic<'c>(
    cx: &mut Cx<'c>,
    input: &Tensor<'c>,
    weight: &Tensor<'c>,
    init: Tensor<'c>,
    steps: &Steps<'_>,
) -> Result<Tensor<'c>> {
    let rank = steps.stride.len();
    let (channel, window, loops) = (3 + rank, 4 + rank, 4 + 2 * rank);
    let read =
        |axis: usize| MapExpr::linear(&[(3 + axis, steps.stride[axis]), (window + axis, steps.dilation[axis])], 0);
    let lead = [0, 1, channel].map(MapExpr::Dim);
    let input_map = Map::new(loops, lead.into_iter().chain((0..rank).map(read)).collect());
    let weight_map = Map::dims(loops, &[1, 2, channel].into_iter().chain(window..loops).collect::<Vec<_>>());
    let output_map = Map::dims(loops, &(0..channel).collect::<Vec<_>>());
    let parallel = std::iter::repeat_n(Iter::Parallel, channel);
    let iterators: Vec<Iter> = parallel.chain(std::iter::repeat_n(Iter::Reduction, 1 + rank)).collect();
    let (from, to) = (input.dtype, init.dtype);
    let ins = [(input.value, input_map), (weight.value, weight_map)];
    let results = cx.b.generic(&ins, &[(init.value, output_map)], &iterators, |b, x| {
        let run = || -> Result<_> {
            let s = Scalars::new(b, to);
            let product = s.mul(convert(b, x[0], from, to)?, convert(b, x[1], from, to)?)?;
            Ok(vec![s.add(x[2], product)?])
        };
        run().map_err(into_mlir)
    })?;
    Ok(Tensor { value: results[0], ..init })
}
