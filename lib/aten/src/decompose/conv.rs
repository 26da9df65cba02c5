//! Convolutions by other names: all become `convolution.default` on batched input.

use super::complex::Pair;
use super::{exact, own};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::promote::real_of;
use crate::value::{V, sizes_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::expr::Cmp;
use m2m_tensor::{Expr, expr};

/// The numbers of a convolution, one for each spatial dimension.
struct Window {
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    output_padding: Vec<i64>,
    is_transposed: bool,
}

/// Calls `convolution` on `[N, C, …]`; `[C, …]` gets a batch of one, which goes again.
fn convolve(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, w: Window) -> Results {
    let (weight, bias) = (e.tensor(b, "weight")?, e.opt_tensor(b, "bias")?);
    let (dtype, shape) = e.result(b, 0)?;
    let spatial = w.stride.len();
    let is_batched = x.rank() == spatial + 2;
    if !is_batched && x.rank() != spatial + 1 {
        let message = format!("input of rank {}; expected {} or {}", x.rank(), spatial + 1, spatial + 2);
        return Err(Error::shape(b.op(), message));
    }
    let x = if is_batched { x.clone() } else { e.unsqueeze(x, 0)? };
    let out: Vec<Expr> = (!is_batched).then_some(Expr::Int(1)).into_iter().chain(shape).collect();
    let numbers = [
        Arg::ints(w.stride),
        Arg::ints(w.padding),
        Arg::ints(w.dilation),
        Arg::Bool(w.is_transposed),
        Arg::ints(w.output_padding),
        Arg::Int(b.int("groups")?),
    ];
    let y = convolution_of(e, [Some(x), Some(weight), bias], &numbers, dtype, &out)?;
    one(if is_batched { y } else { e.squeeze(&y, 0)? })
}

/// `convolution` of an input, a weight and a bias. It is linear in the first two: of complex ones the parts are convolved,
/// `(a + ib)·(c + id)` being `ac - bd + i(ad + bc)`.
fn convolution_of(
    e: &mut Expander<'_, '_>,
    [x, weight, bias]: [Option<V>; 3],
    numbers: &[Arg],
    dtype: DType,
    shape: &[Expr],
) -> Result<V, Error> {
    let (Some(x), Some(weight)) = (x, weight) else {
        return Err(Error::shape("aten.convolution.default", "no input or no weight"));
    };
    if !dtype.is_complex() {
        let bias = bias.map_or(Arg::Null, |v| v.arg());
        let args = [x.arg(), weight.arg(), bias].into_iter().chain(numbers.iter().cloned()).collect();
        return e.call1("aten.convolution.default", args, &[], dtype, shape);
    }
    let (x, w) = (Pair::of(e, &x)?, Pair::of(e, &weight)?);
    let bias = bias.map(|v| Pair::of(e, &v)).transpose()?;
    let (bias_re, bias_im) = bias.map_or((None, None), |pair| (Some(pair.re), pair.im));
    let part = real_of(dtype);
    let mut product = |a: &V, c: &V, bias: Option<V>| {
        convolution_of(e, [Some(a.clone()), Some(c.clone()), bias], numbers, part, shape)
    };
    let re = product(&x.re, &w.re, bias_re)?;
    let low = x.im.as_ref().zip(w.im.as_ref()).map(|(a, c)| product(a, c, None)).transpose()?;
    let cross = w.im.as_ref().map(|c| product(&x.re, c, bias_im.clone())).transpose()?;
    let bias_im = if cross.is_some() { None } else { bias_im };
    let turned = x.im.as_ref().map(|a| product(a, &w.re, bias_im)).transpose()?;
    let re = low.map_or_else(|| Ok(re.clone()), |low| e.sub(&re, &low))?;
    let im = match (cross, turned) {
        (Some(a), Some(c)) => Some(e.add(&a, &c)?),
        (a, c) => a.or(c),
    };
    Pair { re, im }.join(e)
}

/// `convolution`, `_convolution`: of complex numbers by [`convolution_of`]; the target convolves real ones itself.
pub(super) fn plain(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    if !dtype.is_complex() {
        return own(e, b);
    }
    let tensors = [Some(e.tensor(b, "input")?), Some(e.tensor(b, "weight")?), e.opt_tensor(b, "bias")?];
    let names = ["stride", "padding", "dilation", "transposed", "output_padding", "groups"];
    let numbers = names.iter().map(|name| b.arg(name).cloned()).collect::<Result<Vec<_>, _>>()?;
    one(convolution_of(e, tensors, &numbers, dtype, &shape)?)
}

/// `conv1d conv2d conv3d`: `y[n, o, p] = Σ_{c, k} x[n, c, p·stride + k·dilation - padding] · w[o, c, k] + bias[o]`.
pub(super) fn conv(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let stride = b.ints("stride")?;
    let output_padding = vec![0; stride.len()];
    let (padding, dilation) = (b.ints("padding")?, b.ints("dilation")?);
    convolve(e, b, &x, Window { stride, padding, dilation, output_padding, is_transposed: false })
}

/// `conv_transpose1d 2d 3d`
pub(super) fn conv_transpose(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (stride, padding, dilation) = (b.ints("stride")?, b.ints("padding")?, b.ints("dilation")?);
    let output_padding = b.ints("output_padding")?;
    convolve(e, b, &x, Window { stride, padding, dilation, output_padding, is_transposed: true })
}

/// `conv2d.padding`: `valid` is 0; `same` keeps the size, the odd element of `dilation · (kernel - 1)` going to the
/// end. A kernel of symbolic size has all of it padded before the convolution.
pub(super) fn conv_padding(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let mut x = e.tensor(b, "input")?;
    let weight = e.tensor(b, "weight")?;
    let (stride, dilation) = (b.ints("stride")?, b.ints("dilation")?);
    let spatial = stride.len();
    let padding = match b.str("padding")? {
        "valid" => vec![0; spatial],
        "same" => {
            let lead = x.rank().saturating_sub(spatial);
            let mut pads = vec![(Expr::Int(0), Expr::Int(0)); x.rank()];
            let mut even = Vec::new();
            for (k, d) in dilation.iter().enumerate() {
                let Some(kernel) = weight.dim(k + 2).as_int() else {
                    let reach = expr::mul([Expr::Int(*d), expr::sub(weight.dim(k + 2), Expr::Int(1))]);
                    let first = expr::floor_div(reach.clone(), Expr::Int(2));
                    even.push(0);
                    if let Some(pad) = pads.get_mut(lead + k) {
                        *pad = (first.clone(), expr::sub(reach, first));
                    }
                    continue;
                };
                let total = exact(b.op(), kernel.checked_sub(1).and_then(|k| d.checked_mul(k)))?;
                even.push(total / 2);
                if let Some(pad) = pads.get_mut(lead + k) {
                    pad.1 = Expr::Int(total % 2);
                }
            }
            x = e.pad(&x, &pads, zero(x.dtype))?;
            even
        }
        other => return Err(Error::shape(b.op(), format!("padding {other:?}; expected \"valid\" or \"same\""))),
    };
    let output_padding = vec![0; spatial];
    convolve(e, b, &x, Window { stride, padding, dilation, output_padding, is_transposed: false })
}

pub(super) fn zero(dtype: DType) -> Arg {
    if dtype.is_float() { Arg::from(0.0) } else { Arg::Int(0) }
}

/// `pad(x, pad, mode, value)`, `constant_pad_nd` among them: pairs from the last dimension backwards. `reflect` mirrors
/// without the edge, `replicate` repeats it, `circular` wraps, after negative sizes have cut elements off.
pub(super) fn pad(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let flat = e.sizes(b, "pad")?;
    let mode = if b.has("mode") { b.str("mode")? } else { "constant" };
    let mut pads = vec![(Expr::Int(0), Expr::Int(0)); x.rank()];
    for (k, pair) in flat.chunks(2).enumerate() {
        let slot = x.rank().checked_sub(k + 1).and_then(|d| pads.get_mut(d));
        match (slot, pair) {
            (Some(slot), [a, z]) => *slot = (a.clone(), z.clone()),
            _ => return Err(Error::shape(b.op(), format!("{} pad sizes for rank {}", flat.len(), x.rank()))),
        }
    }
    if mode == "constant" {
        let value = match b.arg("value")? {
            Arg::Null => zero(x.dtype),
            other => other.clone(),
        };
        return one(e.pad(&x, &pads, value)?);
    }
    // What has an operator of its own is left to it, which may know sizes that are known only at run time.
    if let Some(op) = named(mode, flat.len() / 2) {
        let (dtype, shape) = e.result(b, 0)?;
        return one(e.call1(op, vec![x.arg(), sizes_arg(&flat)], &[], dtype, &shape)?);
    }
    let mut y = x;
    for (dim, (before, after)) in pads.iter().enumerate() {
        y = border(e, &y, dim, (before, after), mode)?;
    }
    one(y)
}

/// The operator that pads so many of the last dimensions.
fn named(mode: &str, dims: usize) -> Option<&'static str> {
    Some(match (mode, dims) {
        ("reflect", 1) => "aten.reflection_pad1d.default",
        ("reflect", 2) => "aten.reflection_pad2d.default",
        ("reflect", 3) => "aten.reflection_pad3d.default",
        ("replicate", 1) => "aten.replication_pad1d.default",
        ("replicate", 2) => "aten.replication_pad2d.default",
        ("replicate", 3) => "aten.replication_pad3d.default",
        _ => return None,
    })
}

/// `reflection_pad*`, `replication_pad*`
pub(super) fn named_pad(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let mode = if b.op().contains("reflection") { "reflect" } else { "replicate" };
    let flat = e.sizes(b, "padding")?;
    let mut y = x;
    for (k, pair) in flat.chunks(2).enumerate() {
        let (Some(dim), [before, after]) = (y.rank().checked_sub(k + 1), pair) else {
            return Err(Error::shape(b.op(), format!("{} padding sizes", flat.len())));
        };
        y = border(e, &y, dim, (before, after), mode)?;
    }
    one(y)
}

/// Fails, or has the program fail, unless a padding is at least 0 and at most `limit`.
fn within(e: &mut Expander<'_, '_>, padding: &Expr, limit: &Expr, message: &str) -> Result<(), Error> {
    for (small, large) in [(&Expr::Int(0), padding), (padding, limit)] {
        match (small.as_int(), large.as_int()) {
            (Some(small), Some(large)) if small > large => return Err(Error::shape("pad", message)),
            (Some(_), Some(_)) => {}
            _ => e.require(Cmp::Ge, large, small, message.to_owned())?,
        }
    }
    Ok(())
}

/// Pads one dimension with elements of its other end; negative numbers cut elements off first.
fn wrapped(e: &mut Expander<'_, '_>, x: &V, dim: usize, (before, after): (&Expr, &Expr)) -> Result<V, Error> {
    let zero = Expr::Int(0);
    let cut = |n: &Expr| Expr::Int(n.as_int().map_or(0, |n| n.saturating_neg().max(0)));
    let end = expr::sub(x.dim(dim), cut(after));
    let kept = e.slice(x, dim, &cut(before), &end, 1)?;
    let size = kept.dim(dim);
    let grown = |n: &Expr| n.as_int().map_or_else(|| n.clone(), |n| Expr::Int(n.max(0)));
    let (before, after) = (grown(before), grown(after));
    let message = format!("circular padding ({before}, {after}) of a dimension of size {size}");
    within(e, &before, &size, &message)?;
    within(e, &after, &size, &message)?;
    let mut parts = Vec::new();
    if before != zero {
        parts.push(e.slice(&kept, dim, &expr::sub(size.clone(), before), &size, 1)?);
    }
    parts.push(kept.clone());
    if after != zero {
        parts.push(e.slice(&kept, dim, &zero, &after, 1)?);
    }
    e.cat(&parts, dim)
}

/// Pads one dimension with elements of the tensor itself.
fn border(
    e: &mut Expander<'_, '_>,
    x: &V,
    dim: usize,
    (before, after): (&Expr, &Expr),
    mode: &str,
) -> Result<V, Error> {
    let (zero, unit) = (Expr::Int(0), Expr::Int(1));
    if *before == zero && *after == zero {
        return Ok(x.clone());
    }
    if mode == "circular" {
        return wrapped(e, x, dim, (before, after));
    }
    let size = x.dim(dim);
    let message = format!("{mode} padding ({before}, {after}) of a dimension of size {size}");
    let last = expr::sub(size.clone(), unit.clone());
    let limit = if mode == "reflect" { last.clone() } else { Expr::Int(i64::MAX) };
    within(e, &zero, &last, &message)?;
    let mut parts = vec![x.clone()];
    for (count, is_first) in [(before, true), (after, false)] {
        within(e, count, &limit, &message)?;
        if *count == zero {
            continue;
        }
        let (from, to) = match (mode, is_first) {
            ("reflect", true) => (unit.clone(), expr::add([count.clone(), unit.clone()])),
            ("reflect", false) => (expr::sub(last.clone(), count.clone()), last.clone()),
            (_, true) => (zero.clone(), unit.clone()),
            (_, false) => (last.clone(), size.clone()),
        };
        let part = e.slice(x, dim, &from, &to, 1)?;
        let part = if mode == "reflect" {
            e.flip(&part, &[dim])?
        } else {
            let mut shape = x.shape.clone();
            if let Some(size) = shape.get_mut(dim) {
                *size = count.clone();
            }
            e.expand_to(&part, &shape)?
        };
        if is_first { parts.insert(0, part) } else { parts.push(part) }
    }
    e.cat(&parts, dim)
}

/// `conv_tbc(x [T, B, C], weight [K, C, O], bias, pad)`: `conv1d` with time first and channels last.
pub(super) fn conv_tbc(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, w) = (e.tensor(b, "self")?, e.tensor(b, "weight")?);
    let (dtype, shape) = e.result(b, 0)?;
    let [time, batch, out] = shape.as_slice() else {
        return Err(Error::shape(b.op(), format!("a result of rank {}; expected 3", shape.len())));
    };
    let (x, w) = (e.permute(&x, &[1, 2, 0])?, e.permute(&w, &[2, 1, 0])?);
    let (zero, unit, pad) = (Arg::ints([0]), Arg::ints([1]), Arg::ints([b.int("pad")?]));
    let bias = b.arg("bias")?.clone();
    let args = vec![x.arg(), w.arg(), bias, unit.clone(), pad, unit, Arg::Bool(false), zero, Arg::Int(1)];
    let wide = [batch.clone(), out.clone(), time.clone()];
    let y = e.call1("aten.convolution.default", args, &[], dtype, &wide)?;
    one(e.permute(&y, &[2, 0, 1])?)
}
