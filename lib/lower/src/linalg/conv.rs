//! Convolutions in one, two and three dimensions: grouped, strided, dilated, transposed.
//!
//! `out[n, f, o] = bias[f] + sum over c, k of input[n, c, o*stride + k*dilation - padding] * weight[f, c, k]`, zeros
//! outside of the input. `input: [N, C, *]`, `weight: [F, C/groups, *kernel]`, `out: [N, F, *]`; filters of group g see
//! the g-th part of the channels. Definition: torch.nn.Conv2d and torch.nn.ConvTranspose2d in PyTorch's documentation.

mod direct;
mod transposed;

use super::cx::{Cx, Tensor, Val};
use super::scalar::{Scalars, accumulate_dtype};
use super::spatial::{self, LEAD, ints_from, to_expr};
use super::view;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_record::{DType, Dim, Node, TensorType};
use m2m_tensor::{Expr, expr};

/// What a call states besides its tensors.
pub struct Conv {
    /// Steps between windows; of a transposed convolution, between the places that inputs are spread to.
    pub stride: Vec<i64>,
    /// Rows of zeros on both sides; of a transposed convolution, rows cut off.
    pub padding: Vec<i64>,
    /// Steps between elements of a window.
    pub dilation: Vec<i64>,
    /// Further rows at the end of a transposed convolution's result.
    pub output_padding: Vec<i64>,
    /// Parts that channels are split into.
    pub groups: i64,
}

impl Conv {
    fn read(bound: &Bound<'_>, rank: usize) -> Result<Self> {
        let groups = bound.int("groups")?;
        if !(1..=i64::from(i32::MAX)).contains(&groups) {
            return Err(Error::Graph(format!("convolution in {groups} groups")));
        }
        Ok(Conv {
            stride: ints_from(bound, "stride", rank, 1)?,
            padding: ints_from(bound, "padding", rank, 0)?,
            dilation: ints_from(bound, "dilation", rank, 1)?,
            output_padding: ints_from(bound, "output_padding", rank, 0)?,
            groups,
        })
    }
}

/// `convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)`
pub fn convolution<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = cx.tensor(bound.tensor("input")?)?;
    let weight = cx.tensor(bound.tensor("weight")?)?;
    let bias = bound.opt_tensor("bias")?.map(|name| cx.tensor(name)).transpose()?;
    check(&input, &weight, &result)?;
    let rank = weight.rank() - LEAD;
    let conv = Conv::read(bound, rank)?;
    let (input, weight, stride) = if bound.bool("transposed")? {
        let input = transposed::spread(cx, &input, &weight, &conv)?;
        (input, transposed::turned(cx, &weight, conv.groups)?, vec![1; rank])
    } else {
        let zero = Scalars::new(&cx.b, input.dtype).int(0)?;
        (spatial::pad(cx, &input, &conv.padding, &conv.padding, zero)?, weight, conv.stride.clone())
    };
    let init = start(cx, bias, accumulate_dtype(input.dtype), &result.shape)?;
    let strides = direct::Steps { stride: &stride, dilation: &conv.dilation };
    let sum = direct::emit(cx, &input, &weight, init, &strides, conv.groups)?;
    Ok(vec![Val::Tensor(view::convert(cx, sum, &result)?)])
}

/// Cases that the rule covers.
fn check(input: &Tensor<'_>, weight: &Tensor<'_>, result: &TensorType) -> Result<()> {
    if input.dtype != weight.dtype || input.dtype.is_complex() || input.dtype == DType::Bool {
        return Err(Error::unsupported(format!("a convolution of {} with a weight of {}", input.dtype, weight.dtype)));
    }
    let ranks = (input.rank(), weight.rank(), result.shape.len());
    if !(LEAD + 1..=LEAD + 3).contains(&weight.rank()) || ranks.0 != ranks.1 || ranks.1 != ranks.2 {
        let (input, weight) = (input.rank(), weight.rank());
        return Err(Error::unsupported(format!("a convolution of rank {input} with a weight of rank {weight}")));
    }
    Ok(())
}

/// How many of `all` channels or filters each group has.
fn part(all: &Dim, groups: i64) -> Result<Dim> {
    match all.as_int() {
        Some(n) if n % groups != 0 => Err(Error::Graph(format!("{n} channels or filters in {groups} groups"))),
        _ => Ok(Dim::from(&expr::floor_div(to_expr(all)?, Expr::Int(groups)))),
    }
}

/// What sums start from: the bias of each filter, or zero.
fn start<'c>(cx: &mut Cx<'c>, bias: Option<Tensor<'c>>, dtype: DType, shape: &[Dim]) -> Result<Tensor<'c>> {
    let value = match bias {
        None => {
            let zero = Scalars::new(&cx.b, dtype).int(0)?;
            cx.filled(dtype, shape, zero)?
        }
        Some(bias) => {
            let like = TensorType::new(dtype, Vec::new());
            let bias = view::convert(cx, bias, &like)?;
            let bias = cx.conform(bias.value, dtype, &shape[1..2])?;
            let out = cx.empty(dtype, shape)?;
            let repeated: Vec<i64> = (0..shape.len() as i64).filter(|axis| *axis != 1).collect();
            cx.b.broadcast(bias.value, out, &repeated)?
        }
    };
    Ok(Tensor { value, dtype, shape: shape.to_vec() })
}
