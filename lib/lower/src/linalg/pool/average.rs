//! `avg_poolNd`: the mean of each window.
//!
//! The sum of a window divided by `divisor_override`, or by its number of elements: those inside of the input and its
//! padding (`count_include_pad`), or inside of the input alone. Definition: PyTorch's CPU kernel for avg_pool2d.

use super::{Fold, Window, batched_shape, finish, fold};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::{self, Operand, into_mlir, scalar_value};
use crate::linalg::scalar::{Scalars, accumulate_dtype, convert};
use crate::linalg::spatial::{self, Indices, LEAD, batched, extents};
use m2m_aten::bind::Bound;
use m2m_mlir::{Map, Value};
use m2m_record::{Node, ScalarKind, TensorType};

/// `avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad)`: `[N, C, W]`
pub fn avg_pool1d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    avg_pool(cx, node, bound, 1)
}

/// `avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)`: `[N, C, H, W]`
pub fn avg_pool2d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    avg_pool(cx, node, bound, 2)
}

/// `avg_pool3d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)`: `[N, C, D, H, W]`
pub fn avg_pool3d<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    avg_pool(cx, node, bound, 3)
}

fn avg_pool<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, rank: usize) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = cx.tensor(bound.tensor("self")?)?;
    let window = Window::read(bound, rank)?;
    let (input, was_added) = batched(cx, &input, rank)?;
    let shape = batched_shape(&result, was_added, rank)?;
    let zero = Scalars::new(&cx.b, input.dtype).int(0)?;
    let padded = spatial::pad(cx, &input, &window.padding, &window.behind(), zero)?;
    let acc = accumulate_dtype(input.dtype);
    let zero = Scalars::new(&cx.b, acc).int(0)?;
    let value = cx.filled(acc, &shape, zero)?;
    let sum = fold(cx, Fold::Sum, &padded, &window.sizes(), Tensor { value, dtype: acc, shape }, &window.sliding())?;
    let ty = TensorType::new(result.dtype, sum.shape.clone());
    let includes_padding = bound.bool("count_include_pad")?;
    let divisor = if bound.has("divisor_override") { bound.int_or("divisor_override")? } else { None };
    let whole = !window.ceil && (includes_padding || window.padding.iter().all(|p| *p == 0));
    let mean = match divisor {
        Some(0) => return Err(Error::unsupported("a divisor of 0")),
        Some(divisor) => divided(cx, sum, divisor, &ty)?,
        None if whole => divided(cx, sum, product(&window.kernel)?, &ty)?,
        None => {
            let extents = extents(cx, &input)?;
            let count = Count { window: &window, extents: &extents, includes_padding };
            by_place(cx, sum, &ty, |p, outputs| count.of(p, outputs))?
        }
    };
    Ok(vec![finish(cx, mean, &result)?])
}

fn product(numbers: &[i64]) -> Result<i64> {
    let product = numbers.iter().try_fold(1i64, |product, n| product.checked_mul(*n));
    product.ok_or_else(|| Error::unsupported(format!("a window of {numbers:?}")))
}

/// Sums over one number, rounded to the result's type.
pub fn divided<'c>(cx: &mut Cx<'c>, sum: Tensor<'c>, divisor: i64, ty: &TensorType) -> Result<Tensor<'c>> {
    let acc = sum.dtype;
    elementwise::emit(cx, ty, &[Operand::Tensor(sum)], acc, acc, |s, x| s.div(x[0], s.int(divisor)?))
}

/// Sums over a number that depends on the place, given the output's indices along the spatial axes.
pub fn by_place<'c>(
    cx: &mut Cx<'c>,
    sum: Tensor<'c>,
    ty: &TensorType,
    divisor: impl FnOnce(&Indices<'_, 'c>, &[Value<'c>]) -> Result<Value<'c>>,
) -> Result<Tensor<'c>> {
    let rank = sum.rank();
    let out = cx.empty(ty.dtype, &ty.shape)?;
    let value = cx.b.elementwise(&[(sum.value, Map::identity(rank))], out, |b, x| {
        let run = || -> Result<_> {
            let outputs = (LEAD..rank).map(|axis| Ok(b.index(axis)?)).collect::<Result<Vec<_>>>()?;
            let s = Scalars::new(b, sum.dtype);
            let divisor = scalar_value(&s, ScalarKind::Int, divisor(&Indices { b }, &outputs)?)?;
            convert(b, s.div(x[0], divisor)?, sum.dtype, ty.dtype)
        };
        run().map_err(into_mlir)
    })?;
    Ok(Tensor { value, dtype: ty.dtype, shape: ty.shape.clone() })
}

/// How many elements a window has.
struct Count<'a, 'c> {
    window: &'a Window,
    extents: &'a [Value<'c>],
    includes_padding: bool,
}

impl<'c> Count<'_, 'c> {
    fn of(&self, p: &Indices<'_, 'c>, outputs: &[Value<'c>]) -> Result<Value<'c>> {
        let b = p.b;
        let mut count = None;
        for (axis, output) in outputs.iter().enumerate() {
            let (padding, extent) = (self.window.padding[axis], self.extents[axis]);
            let first = p.linear(*output, self.window.stride[axis], -padding)?;
            let end = p.linear(first, 1, self.window.kernel[axis])?;
            let along = if self.includes_padding {
                b.subi(b.minsi(end, p.linear(extent, 1, padding)?)?, first)?
            } else {
                b.subi(b.minsi(end, extent)?, b.maxsi(first, p.n(0)?)?)?
            };
            count = Some(match count {
                None => along,
                Some(so_far) => b.muli(so_far, along)?,
            });
        }
        count.map_or_else(|| p.n(1), Ok)
    }
}
