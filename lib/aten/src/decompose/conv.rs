//! Convolutions by other names: all become `convolution.default` on batched input.

use super::exact;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{V, sizes_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

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
    let (weight, bias) = (b.arg("weight")?.clone(), b.arg("bias")?.clone());
    let (dtype, shape) = e.result(b, 0)?;
    let spatial = w.stride.len();
    let is_batched = x.rank() == spatial + 2;
    if !is_batched && x.rank() != spatial + 1 {
        let message = format!("input of rank {}; expected {} or {}", x.rank(), spatial + 1, spatial + 2);
        return Err(Error::shape(b.op(), message));
    }
    let x = if is_batched { x.clone() } else { e.unsqueeze(x, 0)? };
    let out: Vec<Expr> = (!is_batched).then_some(Expr::Int(1)).into_iter().chain(shape).collect();
    let args = vec![
        x.arg(),
        weight,
        bias,
        Arg::ints(w.stride),
        Arg::ints(w.padding),
        Arg::ints(w.dilation),
        Arg::Bool(w.is_transposed),
        Arg::ints(w.output_padding),
        Arg::Int(b.int("groups")?),
    ];
    let y = e.call1("aten.convolution.default", args, &[], dtype, &out)?;
    one(if is_batched { y } else { e.squeeze(&y, 0)? })
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
/// end.
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
                    return Err(Error::unsupported("a kernel of symbolic size"));
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
/// without the edge, `replicate` repeats it, `circular` wraps.
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

/// Pads one dimension with elements of the tensor itself.
fn border(
    e: &mut Expander<'_, '_>,
    x: &V,
    dim: usize,
    (before, after): (&Expr, &Expr),
    mode: &str,
) -> Result<V, Error> {
    let (Some(before), Some(after)) = (before.as_int(), after.as_int()) else {
        return Err(Error::unsupported(format!("{mode} padding of a symbolic size")));
    };
    if before == 0 && after == 0 {
        return Ok(x.clone());
    }
    let Some(size) = x.dim(dim).as_int() else {
        return Err(Error::unsupported(format!("{mode} padding of a dimension of symbolic size {}", x.dim(dim))));
    };
    if before < 0 || after < 0 {
        return Err(Error::unsupported(format!("{mode} padding of a negative size")));
    }
    let limit = if mode == "reflect" {
        size - 1
    } else if mode == "circular" {
        size
    } else {
        i64::MAX
    };
    if before > limit || after > limit || size == 0 {
        return Err(Error::shape("pad", format!("{mode} padding ({before}, {after}) of a dimension of size {size}")));
    }
    let mut parts = Vec::new();
    let mut edge = |e: &mut Expander<'_, '_>, count: i64, is_first: bool| -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let (from, to) = match (mode, is_first) {
            ("reflect", true) => (1, count + 1),
            ("reflect", false) => (size - 1 - count, size - 1),
            ("circular", true) => (size - count, size),
            ("circular", false) => (0, count),
            (_, true) => (0, 1),
            (_, false) => (size - 1, size),
        };
        let part = e.slice(x, dim, &Expr::Int(from), &Expr::Int(to), 1)?;
        parts.push(match mode {
            "reflect" => e.flip(&part, &[dim])?,
            "circular" => part,
            _ => {
                let mut shape = x.shape.clone();
                if let Some(size) = shape.get_mut(dim) {
                    *size = Expr::Int(count);
                }
                e.expand_to(&part, &shape)?
            }
        });
        Ok(())
    };
    edge(e, before, true)?;
    let split = usize::from(before > 0);
    edge(e, after, false)?;
    parts.insert(split, x.clone());
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
