//! PyTorch's primitive operators, where they are no other operator by another name.
//!
//! A primitive never promotes: its operands have one dtype, and its dimensions count from the start.

use super::{exact, identity, special};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::promote::accumulate_dtype;
use crate::value::{V, size_arg, sizes_arg};
use m2m_record::Arg;
use m2m_tensor::Expr;

fn first_tensor(e: &Expander<'_, '_>, b: &Bound<'_>) -> Result<V, Error> {
    e.tensor(b, b.schema.args.first().map_or("self", |a| a.name))
}

/// The dimensions that a reduction names; none and an empty list stand for all.
fn reduced(e: &Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Result<Vec<usize>, Error> {
    e.dims(b.op(), b.ints_or("dims")?.as_deref(), x)
}

fn finish(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &V) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(y, dtype)?)
}

/// `sum(x, dims)`, `prod(x, dims)`: the dimensions go.
pub(super) fn fold(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "inp")?;
    let dims = reduced(e, b, &x)?;
    let mut y = e.widen(&x)?;
    if b.op() == "prims.sum.default" {
        y = e.sum(&y, &dims, false)?;
    } else {
        for dim in dims.iter().rev() {
            let shape = crate::infer::reduced(&y.shape, &[*dim], false);
            let args = vec![y.arg(), Arg::Int(*dim as i64), Arg::Bool(false)];
            y = e.call1("aten.prod.dim_int", args, &[("dtype", Arg::DType(y.dtype))], y.dtype, &shape)?;
        }
    }
    finish(e, b, &y)
}

/// `amax(x, dims)`, `amin(x, dims)`
pub(super) fn extreme(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "inp")?;
    let dims = reduced(e, b, &x)?;
    let y = e.extreme(if b.op() == "prims.amax.default" { "amax" } else { "amin" }, &x, &dims, false)?;
    finish(e, b, &y)
}

/// `var(x, dims, correction)`
pub(super) fn var(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "inp")?;
    let (dtype, shape) = e.result(b, 0)?;
    let dims = Arg::ints(reduced(e, b, &x)?.into_iter().map(|d| d as i64));
    let kwargs = [("correction", b.arg("correction")?.clone()), ("keepdim", Arg::Bool(false))];
    one(e.call1("aten.var.correction", vec![x.arg(), dims], &kwargs, dtype, &shape)?)
}

/// `div`: of integers the whole quotient, rounded toward zero.
pub(super) fn div(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let args = vec![b.arg("self")?.clone(), b.arg("other")?.clone()];
    if dtype.is_float() || dtype.is_complex() {
        return one(e.call1("aten.div.Tensor", args, &[], dtype, &shape)?);
    }
    one(e.call1("aten.div.Tensor_mode", args, &[("rounding_mode", Arg::from("trunc"))], dtype, &shape)?)
}

/// `cbrt`: `sign(x) · |x|^(1/3)`, in `f64` for the last bit.
pub(super) fn cbrt(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = special::wide_input(e, b)?;
    let size = e.unary("abs", &x)?;
    let root = e.pow(&size, 1.0 / 3.0)?;
    let sign = e.unary("sign", &x)?;
    let y = e.mul(&root, &sign)?;
    finish(e, b, &y)
}

/// `convert_element_type(x, dtype)`
pub(super) fn convert(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let (dtype, _) = e.result(b, 0)?;
    if dtype == x.dtype {
        return identity::same(e, b);
    }
    one(e.to_dtype(&x, dtype)?)
}

/// `conj`
pub(super) fn conj(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    if !x.dtype.is_complex() {
        return identity::same(e, b);
    }
    one(e.unary("conj_physical", &x)?)
}

/// `broadcast_in_dim(x, shape, dims)`: dimension `k` of `x` is dimension `dims[k]` of the result, stretched where its size
/// is 1; all others are new.
pub(super) fn broadcast_in_dim(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let (_, shape) = e.result(b, 0)?;
    let mut padded = vec![Expr::Int(1); shape.len()];
    for (k, dim) in b.ints("broadcast_dimensions")?.iter().enumerate() {
        let dim = crate::infer::wrap_dim(b.op(), *dim, shape.len())?;
        if let Some(size) = padded.get_mut(dim) {
            *size = x.dim(k);
        }
    }
    let y = e.view(&x, &padded)?;
    one(e.expand_to(&y, &shape)?)
}

/// `iota(length, start, step)`: `start + step·i`
pub(super) fn iota(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (length, start, step) = (e.size(b.arg("length")?)?, e.size(b.arg("start")?)?, e.size(b.arg("step")?)?);
    if let (Some(n), Some(from), Some(by)) = (length.as_int(), start.as_int(), step.as_int())
        && by != 0
    {
        let end = exact(b.op(), by.checked_mul(n).and_then(|reach| reach.checked_add(from)))?;
        let args = vec![Arg::Int(from), Arg::Int(end), Arg::Int(by)];
        return one(e.call1("aten.arange.start_step", args, &[("dtype", Arg::DType(dtype))], dtype, &shape)?);
    }
    let line = e.iota(&length, dtype)?;
    let line = e.mul(&line, &size_arg(&step))?;
    one(e.add(&line, &size_arg(&start))?)
}

/// `fft_r2c`, `fft_c2c`, `fft_c2r`: the transforms without a scale.
pub(super) fn fft(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let (dtype, shape) = e.result(b, 0)?;
    let name = b.op().split('.').nth(1).unwrap_or("");
    let last = if b.has("forward") {
        "forward"
    } else if b.has("onesided") {
        "onesided"
    } else {
        "last_dim_size"
    };
    let args = vec![x.arg(), b.arg("dim")?.clone(), Arg::Int(0), b.arg(last)?.clone()];
    one(e.call1(&format!("aten._{name}.default"), args, &[], dtype, &shape)?)
}

/// `normal(shape, mean, std)`: `mean + std·n`; `uniform(shape, low, high)`: `low + (high - low)·u`.
pub(super) fn random(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let is_normal = b.op() == "prims.normal.default";
    let (low, span) = if is_normal {
        (identity::number(b, "mean")?, identity::number(b, "std")?)
    } else {
        let (low, high) = (identity::number(b, "low")?, identity::number(b, "high")?);
        (low, high - low)
    };
    let wide = accumulate_dtype(dtype);
    let op = if is_normal { "aten.randn.default" } else { "aten.rand.default" };
    let y = e.call1(op, vec![sizes_arg(&shape)], &[("dtype", Arg::DType(wide))], wide, &shape)?;
    let y = e.mul(&y, span)?;
    let y = e.add(&y, low)?;
    one(e.to_dtype(&y, dtype)?)
}
