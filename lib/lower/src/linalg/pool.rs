//! Pools: the greatest element or the mean of windows that slide over spatial axes, or that divide them evenly.
//!
//! `input: [N, C, *]` or `[C, *]`; windows as in torch.nn.MaxPool2d and torch.nn.AvgPool2d in PyTorch's documentation.

pub mod adaptive;
pub mod average;
pub mod back;
pub mod max;

use super::cx::{Cx, Tensor, Val, need_rank};
use super::elementwise::into_mlir;
use super::scalar::{Scalars, convert};
use super::spatial::{LEAD, Sliding, ints_from};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Size, Value, attr};
use m2m_record::dtype::Class;
use m2m_record::{Arg, Dim, TensorType};

/// Windows of constant extents.
pub struct Window {
    /// Elements of a window along each axis.
    pub kernel: Vec<i64>,
    /// Steps between windows.
    pub stride: Vec<i64>,
    /// Rows on both sides that count as outside.
    pub padding: Vec<i64>,
    /// Steps between elements of a window.
    pub dilation: Vec<i64>,
    /// Whether a window may reach beyond the end.
    pub ceil: bool,
}

impl Window {
    fn read(bound: &Bound<'_>, rank: usize) -> Result<Self> {
        let kernel = ints_from(bound, "kernel_size", rank, 1)?;
        let is_kernel = matches!(bound.arg("stride")?, Arg::List(items) if items.is_empty());
        let dilation = if bound.has("dilation") { ints_from(bound, "dilation", rank, 1)? } else { vec![1; rank] };
        Ok(Window {
            stride: if is_kernel { kernel.clone() } else { ints_from(bound, "stride", rank, 1)? },
            padding: ints_from(bound, "padding", rank, 0)?,
            ceil: bound.bool("ceil_mode")?,
            kernel,
            dilation,
        })
    }

    /// Rows to add behind: with `ceil`, the last window reaches up to `stride - 1` further.
    fn behind(&self) -> Vec<i64> {
        let more = |stride: &i64| if self.ceil { stride - 1 } else { 0 };
        self.padding.iter().zip(&self.stride).map(|(padding, stride)| padding + more(stride)).collect()
    }

    fn sliding(&self) -> Sliding<'_> {
        Sliding { stride: &self.stride, dilation: &self.dilation }
    }

    fn sizes<'c>(&self) -> Vec<Size<'c>> {
        self.kernel.iter().copied().map(Size::Static).collect()
    }
}

/// How a window becomes one element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    Max,
    Sum,
}

/// Folds windows of a padded input into `init`, by a named operation where there is one.
fn fold<'c>(
    cx: &mut Cx<'c>,
    how: Fold,
    input: &Tensor<'c>,
    window: &[Size<'c>],
    init: Tensor<'c>,
    sliding: &Sliding<'_>,
) -> Result<Tensor<'c>> {
    // Its elements do not matter: only its extents do.
    let window = cx.b.empty(window, cx.element(input.dtype)?)?;
    let name = match (how, sliding.stride.len()) {
        (Fold::Max, _) if matches!(input.dtype.class(), Class::Unsigned | Class::Bool) => None,
        (Fold::Max, 1) => Some("linalg.pooling_ncw_max"),
        (Fold::Max, 2) => Some("linalg.pooling_nchw_max"),
        // The named sums widen integers as signed ones.
        (Fold::Sum, 1 | 2) if input.dtype != init.dtype && !input.dtype.is_float() => None,
        (Fold::Sum, 1) => Some("linalg.pooling_ncw_sum"),
        (Fold::Sum, 2) => Some("linalg.pooling_nchw_sum"),
        _ => None,
    };
    let results = match name {
        Some(name) => {
            let vector = |values: &[i64]| attr::int64_vector(cx.b.context(), values);
            let attributes = [("strides", vector(sliding.stride)), ("dilations", vector(sliding.dilation))];
            cx.b.named(name, &[input.value, window], &[init.value], &attributes)?
        }
        None => {
            let ins = [(input.value, sliding.input_map()), (window, sliding.window_map())];
            let outs = [(init.value, sliding.output_map())];
            cx.b.generic(&ins, &outs, &sliding.iterators(), |b, x| {
                let run = || -> Result<_> {
                    let s = Scalars::new(b, init.dtype);
                    let element = convert(b, x[0], input.dtype, init.dtype)?;
                    Ok(vec![if how == Fold::Max { s.maximum(x[2], element)? } else { s.add(x[2], element)? }])
                };
                run().map_err(into_mlir)
            })?
        }
    };
    let value = *results.first().ok_or_else(|| Error::Graph("a pool without a result".into()))?;
    Ok(Tensor { value, ..init })
}

/// The shape of a result with the batch axis that the input was given.
fn batched_shape(result: &TensorType, was_added: bool, spatial: usize) -> Result<Vec<Dim>> {
    let shape: Vec<Dim> = was_added.then_some(Dim::Int(1)).into_iter().chain(result.shape.iter().cloned()).collect();
    need_rank("a result", &shape, LEAD + spatial)?;
    Ok(shape)
}

/// A result without the batch axis, if its input lacked it.
fn finish<'c>(cx: &mut Cx<'c>, t: Tensor<'c>, result: &TensorType) -> Result<Val<'c>> {
    Ok(Val::Tensor(reshape(cx, &t, &result.shape)?))
}

/// Loop indices of batch and channel inside a body.
fn lead_indices<'c>(b: &m2m_mlir::Builder<'c>) -> Result<Vec<Value<'c>>> {
    (0..LEAD).map(|axis| Ok(b.index(axis)?)).collect()
}
