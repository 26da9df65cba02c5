//! Means and variances. Variance takes two passes, the mean first, and those of f32 in f64 as PyTorch's kernel does, so
//! that it stays accurate where the mean is large.

use super::{Axes, accumulator, dim_operand, finish, finish_plain, fold};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::{Operand, into_mlir};
use crate::linalg::scalar::{Scalars, convert};
use m2m_aten::bind::Bound;
use m2m_aten::promote::real_of;
use m2m_mlir::Map;
use m2m_record::{Arg, DType, Node, TensorType};

/// Sums of converted elements, `from -> as_type -> acc`.
fn sums<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axes: &Axes, as_type: DType, acc: DType) -> Result<Tensor<'c>> {
    let zero = Scalars::new(&cx.b, acc).int(0)?;
    let from = t.dtype;
    fold(cx, t, axes, acc, zero, |s, x, so_far| {
        let x = convert(s.b, convert(s.b, x, from, as_type)?, as_type, acc)?;
        s.add(so_far, x)
    })
}

/// `mean(self, dim, keepdim, dtype)`: sum over count; NaN over no elements.
pub fn mean<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, result) = (cx.tensor(bound.tensor("self")?)?, cx.result_type(node, 0)?.clone());
    let axes = Axes::of(&t, bound)?;
    let count = axes.count(&t)?;
    let sum = sums(cx, &t, &axes, result.dtype, accumulator(result.dtype, &count))?;
    let count = dim_operand(cx, &count)?;
    Ok(vec![Val::Tensor(finish(cx, sum, &[count], &result, |s, v| s.div(v[0], v[1]))?)])
}

/// `var(self, dim, correction, keepdim)`: `sum((x - mean)^2) / max(count - correction, 0)`, correction 1 where none is
/// given.
pub fn var<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (var, _) = moments(cx, node, bound)?;
    Ok(vec![Val::Tensor(var)])
}

/// `var_mean(self, dim, correction, keepdim) -> (var, mean)`
pub fn var_mean<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (var, mean) = moments(cx, node, bound)?;
    let mean = finish_plain(cx, mean, cx.result_type(node, 1)?)?;
    Ok(vec![Val::Tensor(var), Val::Tensor(mean)])
}

/// The variance as the result, and the mean as an accumulator.
fn moments<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<(Tensor<'c>, Tensor<'c>)> {
    let (t, result) = (cx.tensor(bound.tensor("self")?)?, cx.result_type(node, 0)?.clone());
    if !(t.dtype.is_float() || t.dtype.is_complex()) {
        return Err(Error::unsupported(format!("the variance of {} elements", t.dtype)));
    }
    let axes = Axes::of(&t, bound)?;
    let count = axes.count(&t)?;
    let acc = if t.dtype == DType::F32 { DType::F64 } else { accumulator(t.dtype, &count) };
    let sum = sums(cx, &t, &axes, t.dtype, acc)?;
    let count = dim_operand(cx, &count)?;
    let plain = TensorType::new(acc, sum.shape.clone());
    let mean = finish(cx, sum, std::slice::from_ref(&count), &plain, |s, v| s.div(v[0], v[1]))?;
    let squares = squares(cx, &t, &mean, &axes)?;
    let correction = match bound.arg("correction")? {
        Arg::Null => Operand::Literal(Arg::Int(1)),
        number => Operand::of(cx, number)?,
    };
    let var = finish(cx, squares, &[count, correction], &result, |s, v| {
        let degrees = s.maximum(s.sub(v[1], v[2])?, s.number(0.0)?)?;
        s.div(v[0], degrees)
    })?;
    Ok((var, mean))
}

/// `sum(|x - mean|^2)` over axes, `mean` lacking them; of the type of a complex number's parts.
fn squares<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, mean: &Tensor<'c>, axes: &Axes) -> Result<Tensor<'c>> {
    let (from, whole) = (t.dtype, mean.dtype);
    let acc = real_of(whole);
    let zero = Scalars::new(&cx.b, acc).int(0)?;
    let start = cx.filled(acc, &mean.shape, zero)?;
    let ins = [(t.value, Map::identity(t.rank())), (mean.value, axes.map())];
    let values = cx.b.generic(&ins, &[(start, axes.map())], &axes.iterators(), |b, v| {
        let run = || {
            let (s, parts) = (Scalars::new(b, whole), Scalars::new(b, acc));
            let off = s.sub(convert(b, v[0], from, whole)?, v[1])?;
            let square = if s.is_complex() {
                let (re, im) = s.parts(off)?;
                parts.add(parts.mul(re, re)?, parts.mul(im, im)?)?
            } else {
                s.mul(off, off)?
            };
            Ok(vec![parts.add(v[2], square)?])
        };
        run().map_err(into_mlir)
    })?;
    Ok(Tensor { value: values[0], dtype: acc, shape: mean.shape.clone() })
}
