//! Discrete Fourier transforms, dimension by dimension, in real arithmetic on both parts.
//!
//! `X[k] = Σ x[j]·w^(jk)` with `w = exp(∓2πi/n)`. A short transform is a product with the matrix of these powers. A longer
//! one whose length is `n = p·q` is `q` transforms of length `p`, a product with powers of `w`, and `p` transforms of
//! length `q` (Cooley and Tukey, 1965), so that the work is `n` times the sum of the factors; a long prime length is one
//! product after all. Powers are of angles reduced exactly and computed in `f64`. Half types compute in `f32`.

use super::complex::Pair;
use super::exact;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::promote::{accumulate_dtype, float_of};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};
use std::f64::consts::TAU;

/// Lengths up to here are transformed by one matrix.
const SHORT: i64 = 32;

/// What the sums are divided by: nothing, the root of the number of elements, or that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    None,
    Root,
    Whole,
}

impl Scale {
    /// By the number that `_fft_c2c` and its like take.
    fn numbered(b: &Bound<'_>) -> Result<Scale, Error> {
        match b.int("normalization")? {
            0 => Ok(Scale::None),
            1 => Ok(Scale::Root),
            2 => Ok(Scale::Whole),
            other => Err(Error::shape(b.op(), format!("normalization {other}; expected 0, 1 or 2"))),
        }
    }

    /// By the name that `torch.fft` takes.
    fn named(b: &Bound<'_>, is_inverse: bool) -> Result<Scale, Error> {
        match (b.str_or("norm")?, is_inverse) {
            (None | Some("backward"), true) | (Some("forward"), false) => Ok(Scale::Whole),
            (None | Some("backward"), false) | (Some("forward"), true) => Ok(Scale::None),
            (Some("ortho"), _) => Ok(Scale::Root),
            (Some(other), _) => {
                Err(Error::shape(b.op(), format!("norm {other:?}; expected backward, ortho or forward")))
            }
        }
    }
}

/// `cos` and `sin` of `2π·(j·k mod n)/n` for `j` below `rows` and `k` below `cols`, the sine times `sign`.
fn powers(
    e: &mut Expander<'_, '_>,
    n: &Expr,
    (rows, cols): (&Expr, &Expr),
    sign: f64,
    dtype: DType,
) -> Result<Pair, Error> {
    let j = e.iota(rows, DType::I64)?;
    let j = e.unsqueeze(&j, 1)?;
    let k = e.iota(cols, DType::I64)?;
    let turns = e.mul(&j, &k)?;
    let size = crate::value::size_arg(n);
    let turns = e.call1("aten.remainder.Scalar", vec![turns.arg(), size.clone()], &[], DType::I64, &turns.shape)?;
    let turns = e.to_dtype(&turns, DType::F64)?;
    let turns = e.div(&turns, &size)?;
    let angle = e.mul(&turns, TAU)?;
    let (re, im) = (e.unary("cos", &angle)?, e.unary("sin", &angle)?);
    let im = if sign < 0.0 { e.unary("neg", &im)? } else { im };
    Ok(Pair { re: e.to_dtype(&re, dtype)?, im: Some(e.to_dtype(&im, dtype)?) })
}

/// The factor nearest to the root of a length that is to be split.
fn factor(n: i64) -> Option<i64> {
    if n <= SHORT {
        return None;
    }
    (2..=n.isqrt()).rev().find(|p| n % p == 0)
}

/// Transforms `[L, n]` along the last dimension.
fn rows(e: &mut Expander<'_, '_>, x: &Pair, sign: f64) -> Result<Pair, Error> {
    let (lead, n) = (x.re.dim(0), x.re.dim(1));
    let Some(p) = n.as_int().and_then(factor) else {
        let w = powers(e, &n, (&n, &n), sign, x.re.dtype)?;
        return product(e, x, &w);
    };
    let q = exact("fft", n.as_int().and_then(|n| n.checked_div(p)))?;
    let (ep, eq) = (Expr::Int(p), Expr::Int(q));
    let flat = |inner: &Expr, outer: &Expr| [expr::mul([lead.clone(), outer.clone()]), inner.clone()];
    // x[j1·q + j2] as [L·q, p], transformed to [L, q, p] = [L, j2, k1].
    let columns = x.map(&mut |v| {
        let v = e.view(v, &[lead.clone(), ep.clone(), eq.clone()])?;
        let v = e.permute(&v, &[0, 2, 1])?;
        e.view(&v, &flat(&ep, &eq))
    })?;
    let inner = rows(e, &columns, sign)?;
    let inner = inner.map(&mut |v| e.view(v, &[lead.clone(), eq.clone(), ep.clone()]))?;
    let twist = powers(e, &n, (&eq, &ep), sign, x.re.dtype)?;
    let inner = inner.mul(e, &twist)?;
    let inner = inner.map(&mut |v| {
        let v = e.permute(v, &[0, 2, 1])?;
        e.view(&v, &flat(&eq, &ep))
    })?;
    // [L, k1, k2] is X[k1 + p·k2].
    let outer = rows(e, &inner, sign)?;
    outer.map(&mut |v| {
        let v = e.view(v, &[lead.clone(), ep.clone(), eq.clone()])?;
        let v = e.permute(&v, &[0, 2, 1])?;
        e.view(&v, &[lead.clone(), n.clone()])
    })
}

/// `x @ w` of complex matrices.
fn product(e: &mut Expander<'_, '_>, x: &Pair, w: &Pair) -> Result<Pair, Error> {
    let Some(sine) = &w.im else { return x.map(&mut |v| e.mm(v, &w.re)) };
    let (mut re, mut im) = (e.mm(&x.re, &w.re)?, e.mm(&x.re, sine)?);
    if let Some(x) = &x.im {
        let (low, high) = (e.mm(x, sine)?, e.mm(x, &w.re)?);
        (re, im) = (e.sub(&re, &low)?, e.add(&im, &high)?);
    }
    Ok(Pair { re, im: Some(im) })
}

/// Transforms along a dimension; the inverse one is not divided by anything.
fn along(e: &mut Expander<'_, '_>, x: &Pair, dim: usize, is_inverse: bool) -> Result<Pair, Error> {
    let rank = x.re.rank();
    let mut order: Vec<usize> = (0..rank).filter(|d| *d != dim).collect();
    order.push(dim);
    let mut back: Vec<usize> = (0..rank.saturating_sub(1)).collect();
    back.insert(dim.min(back.len()), rank.saturating_sub(1));
    let shape: Vec<Expr> = order.iter().map(|d| x.re.dim(*d)).collect();
    let n = x.re.dim(dim);
    let lead = expr::mul(shape.iter().take(rank.saturating_sub(1)).cloned());
    let flat = x.map(&mut |v| {
        let v = e.permute(v, &order)?;
        e.view(&v, &[lead.clone(), n.clone()])
    })?;
    let y = rows(e, &flat, if is_inverse { 1.0 } else { -1.0 })?;
    y.map(&mut |v| {
        let v = e.view(v, &shape)?;
        e.permute(&v, &back)
    })
}

/// Divides by the number of elements that were summed.
fn scaled(e: &mut Expander<'_, '_>, x: Pair, scale: Scale, count: &Expr) -> Result<Pair, Error> {
    if scale == Scale::None {
        return Ok(x);
    }
    match count.as_int() {
        Some(n) => {
            let n = if scale == Scale::Root { (n as f64).sqrt() } else { n as f64 };
            x.map(&mut |v| e.mul(v, 1.0 / n))
        }
        None => {
            let n = e.full(&[], x.re.dtype, crate::value::size_arg(count))?;
            let n = if scale == Scale::Root { e.unary("sqrt", &n)? } else { n };
            x.map(&mut |v| e.div(v, &n))
        }
    }
}

/// Complex to complex over dimensions.
fn c2c(e: &mut Expander<'_, '_>, x: Pair, dims: &[usize], is_inverse: bool, scale: Scale) -> Result<Pair, Error> {
    let count = expr::mul(dims.iter().map(|d| x.re.dim(*d)));
    let mut y = x;
    for dim in dims {
        y = along(e, &y, *dim, is_inverse)?;
    }
    scaled(e, y, scale, &count)
}

/// Half of a length, and one: as many frequencies as a real signal has.
fn half(n: &Expr) -> Expr {
    expr::add([expr::floor_div(n.clone(), Expr::Int(2)), Expr::Int(1)])
}

/// Real to complex: the last of `dims` first, of which one half is kept where it is one-sided.
fn r2c(e: &mut Expander<'_, '_>, x: &V, dims: &[usize], onesided: bool, scale: Scale) -> Result<Pair, Error> {
    let (last, others) = last_of(dims)?;
    let count = expr::mul(dims.iter().map(|d| x.dim(*d)));
    let n = x.dim(last);
    let mut y = along(e, &Pair { re: x.clone(), im: None }, last, false)?;
    if onesided {
        y = y.map(&mut |v| e.slice(v, last, &Expr::Int(0), &half(&n), 1))?;
    }
    for dim in others {
        y = along(e, &y, *dim, false)?;
    }
    scaled(e, y, scale, &count)
}

fn last_of(dims: &[usize]) -> Result<(usize, &[usize]), Error> {
    dims.split_last()
        .map(|(last, rest)| (*last, rest))
        .ok_or_else(|| Error::unsupported("a transform over no dimension"))
}

/// Complex to real: the last of `dims` holds one half of a spectrum whose other half is the conjugate of this one.
fn c2r(e: &mut Expander<'_, '_>, x: Pair, dims: &[usize], n: &Expr, scale: Scale) -> Result<V, Error> {
    let (last, others) = last_of(dims)?;
    let sizes = others.iter().map(|d| x.re.dim(*d));
    let count = expr::mul(sizes.chain([n.clone()]));
    let mut y = x;
    for dim in others {
        y = along(e, &y, *dim, true)?;
    }
    let y = y.map(&mut |v| resized(e, v, last, &half(n)))?;
    let rest = expr::sub(n.clone(), expr::floor_div(n.clone(), Expr::Int(2)));
    let tail = y.conj(e)?;
    let whole = |e: &mut Expander<'_, '_>, head: &V, tail: &V| {
        let tail = e.slice(tail, last, &Expr::Int(1), &rest, 1)?;
        let tail = e.flip(&tail, &[last])?;
        e.cat(&[head.clone(), tail], last)
    };
    let re = whole(e, &y.re, &tail.re)?;
    let im = y.im.as_ref().zip(tail.im.as_ref()).map(|(head, tail)| whole(e, head, tail)).transpose()?;
    let y = along(e, &Pair { re, im }, last, true)?;
    Ok(scaled(e, Pair { re: y.re, im: None }, scale, &count)?.re)
}

/// A dimension cut, or padded with zeros at its end.
fn resized(e: &mut Expander<'_, '_>, x: &V, dim: usize, size: &Expr) -> Result<V, Error> {
    let old = x.dim(dim);
    match (old.as_int(), size.as_int()) {
        _ if old == *size => Ok(x.clone()),
        (Some(old), Some(new)) if new < old => e.slice(x, dim, &Expr::Int(0), size, 1),
        (Some(old), Some(new)) => {
            let mut pads = vec![(Expr::Int(0), Expr::Int(0)); x.rank()];
            if let Some(pad) = pads.get_mut(dim) {
                pad.1 = Expr::Int(new - old);
            }
            e.pad(x, &pads, Arg::Int(0))
        }
        _ => {
            // Which of both it is the symbols may hide: padded as far as it lacks, then cut.
            let mut pads = vec![(Expr::Int(0), Expr::Int(0)); x.rank()];
            if let Some(pad) = pads.get_mut(dim) {
                pad.1 = expr::max([expr::sub(size.clone(), old), Expr::Int(0)]);
            }
            let x = e.pad(x, &pads, Arg::Int(0))?;
            e.slice(&x, dim, &Expr::Int(0), size, 1)
        }
    }
}

/// The parts of an argument as floats that are computed with.
fn input(e: &mut Expander<'_, '_>, x: &V) -> Result<Pair, Error> {
    let pair = Pair::of(e, x)?;
    pair.map(&mut |v| e.to_dtype(v, accumulate_dtype(float_of(v.dtype))))
}

/// A complex result in the dtype that the node says.
fn complex_result(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &Pair) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let y = y.join(e)?;
    one(e.to_dtype(&y, dtype)?)
}

fn real_result(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &V) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(y, dtype)?)
}

fn wrapped(b: &Bound<'_>, dims: &[i64], rank: usize) -> Result<Vec<usize>, Error> {
    dims.iter().map(|d| wrap_dim(b.op(), *d, rank)).collect()
}

/// `_fft_c2c(self, dim, normalization, forward)`
pub(super) fn raw_c2c(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = wrapped(b, &b.ints("dim")?, x.rank())?;
    let x = input(e, &x)?;
    let y = c2c(e, x, &dims, !b.bool("forward")?, Scale::numbered(b)?)?;
    complex_result(e, b, &y)
}

/// `_fft_r2c(self, dim, normalization, onesided)`
pub(super) fn raw_r2c(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = wrapped(b, &b.ints("dim")?, x.rank())?;
    let x = input(e, &x)?.re;
    let y = r2c(e, &x, &dims, b.bool("onesided")?, Scale::numbered(b)?)?;
    complex_result(e, b, &y)
}

/// `_fft_c2r(self, dim, normalization, last_dim_size)`
pub(super) fn raw_c2r(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = wrapped(b, &b.ints("dim")?, x.rank())?;
    let n = e.size(b.arg("last_dim_size")?)?;
    let x = input(e, &x)?;
    let y = c2r(e, x, &dims, &n, Scale::numbered(b)?)?;
    real_result(e, b, &y)
}

/// The dimensions of a transform, and the lengths that they are brought to first, where these are given.
fn extents(e: &Expander<'_, '_>, b: &Bound<'_>, rank: usize) -> Result<(Vec<usize>, Vec<Option<Expr>>), Error> {
    let length = |arg: &Arg| match arg {
        Arg::Null | Arg::Int(-1) => Ok(None),
        other => e.size(other).map(Some),
    };
    if b.has("n") {
        return Ok((wrapped(b, &[b.int("dim")?], rank)?, vec![length(b.arg("n")?)?]));
    }
    let sizes = match b.arg("s")? {
        Arg::Null => None,
        _ => Some(b.sym_ints("s")?.iter().map(length).collect::<Result<Vec<_>, _>>()?),
    };
    let dims = match (b.ints_or("dim")?, &sizes) {
        (Some(dims), _) => wrapped(b, &dims, rank)?,
        (None, Some(sizes)) => (rank.saturating_sub(sizes.len())..rank).collect(),
        (None, None) => (0..rank).collect(),
    };
    let sizes = sizes.unwrap_or_else(|| vec![None; dims.len()]);
    if sizes.len() != dims.len() {
        return Err(Error::shape(b.op(), format!("{} sizes for {} dimensions", sizes.len(), dims.len())));
    }
    Ok((dims, sizes))
}

fn cut(e: &mut Expander<'_, '_>, x: Pair, dims: &[usize], sizes: &[Option<Expr>]) -> Result<Pair, Error> {
    let mut x = x;
    for (dim, size) in dims.iter().zip(sizes) {
        if let Some(size) = size {
            x = x.map(&mut |v| resized(e, v, *dim, size))?;
        }
    }
    Ok(x)
}

/// `fft`, `ifft` and their forms of two and of any number of dimensions.
pub(super) fn fft(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let is_inverse = b.op().starts_with("aten.fft_ifft");
    let (dims, sizes) = extents(e, b, x.rank())?;
    let x = input(e, &x)?;
    let x = cut(e, x, &dims, &sizes)?;
    let y = c2c(e, x, &dims, is_inverse, Scale::named(b, is_inverse)?)?;
    complex_result(e, b, &y)
}

/// `rfft…`: one half of the spectrum of a real signal. `ihfft…`: its conjugate, scaled as an inverse.
pub(super) fn rfft(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let is_inverse = b.op().starts_with("aten.fft_ihfft");
    let (dims, sizes) = extents(e, b, x.rank())?;
    let x = input(e, &x)?;
    let x = cut(e, x, &dims, &sizes)?;
    let scale = Scale::named(b, is_inverse)?;
    let y = r2c(e, &x.re, &dims, true, scale)?;
    let y = if is_inverse { y.conj(e)? } else { y };
    complex_result(e, b, &y)
}

/// `irfft…`: the real signal of one half of a spectrum. `hfft…`: of its conjugate, scaled as a forward transform.
pub(super) fn irfft(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let is_inverse = b.op().starts_with("aten.fft_irfft");
    let (dims, mut sizes) = extents(e, b, x.rank())?;
    let (last, _) = last_of(&dims)?;
    let default = expr::mul([Expr::Int(2), expr::sub(x.dim(last), Expr::Int(1))]);
    let n = sizes.pop().flatten().unwrap_or(default);
    sizes.push(None);
    let x = input(e, &x)?;
    let x = cut(e, x, &dims, &sizes)?;
    let x = if is_inverse { x } else { x.conj(e)? };
    let scale = Scale::named(b, is_inverse)?;
    let y = c2r(e, x, &dims, &n, scale)?;
    real_result(e, b, &y)
}

/// `fftshift`, `ifftshift`: the zero frequency from the beginning to the middle, and back.
pub(super) fn shift(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = b.ints_or("dim")?;
    let dims = e.dims(b.op(), dims.as_deref(), &x)?;
    let mut y = x;
    for dim in dims {
        let size = y.dim(dim);
        let half = expr::floor_div(size.clone(), Expr::Int(2));
        // Of an odd number the greater part comes first before the shift, and last before its inverse.
        let at = if b.op().contains("ifftshift") { half } else { expr::sub(size.clone(), half) };
        let (tail, head) = (e.slice(&y, dim, &at, &size, 1)?, e.slice(&y, dim, &Expr::Int(0), &at, 1)?);
        y = e.cat(&[tail, head], dim)?;
    }
    one(y)
}

/// `fftfreq(n, d)`: `k/(n·d)` for `k` from 0 to `(n-1)/2` and then from `-n/2` to -1; `rfftfreq`: from 0 to `n/2`.
pub(super) fn freq(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (n, d) = (b.int("n")?, b.float("d")?);
    let k = e.iota(shape.first().unwrap_or(&Expr::Int(0)), DType::I64)?;
    let k = if b.op().contains("rfftfreq") {
        k
    } else {
        let low = e.sub(&k, n)?;
        let is_high = e.compare("ge", &k, exact(b.op(), n.checked_add(1))? / 2)?;
        e.select_where(&is_high, &low, &k)?
    };
    let k = e.to_dtype(&k, accumulate_dtype(dtype))?;
    let y = e.mul(&k, 1.0 / (n as f64 * d))?;
    one(e.to_dtype(&y, dtype)?)
}

/// A window of `win_length` ones or of given weights, in the middle of `n_fft` elements.
fn window(e: &mut Expander<'_, '_>, b: &Bound<'_>, dtype: DType) -> Result<Option<Pair>, Error> {
    let n = b.int("n_fft")?;
    let length = b.int_or("win_length")?.unwrap_or(n);
    if length < 1 || length > n {
        return Err(Error::shape(b.op(), format!("a window of {length} elements; expected 1 to {n}")));
    }
    let window = e.opt_tensor(b, "window")?;
    if window.is_none() && length == n {
        return Ok(None);
    }
    let window = match window {
        Some(w) => Pair::of(e, &w)?.map(&mut |v| e.to_dtype(v, dtype))?,
        None => Pair { re: e.full(&[Expr::Int(length)], dtype, Arg::Int(1))?, im: None },
    };
    let before = (n - length) / 2;
    let pads = [(Expr::Int(before), Expr::Int(n - length - before))];
    Ok(Some(window.map(&mut |v| e.pad(v, &pads, Arg::Int(0)))?))
}

/// `stft(x [B, L] or [L], n_fft, hop_length, win_length, window, …)`: the spectra `[B, frequency, frame]` of frames of
/// `n_fft` elements, one every `hop_length`, times the window.
pub(super) fn stft(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let n = b.int("n_fft")?;
    let hop = b.int_or("hop_length")?.unwrap_or(n / 4);
    let is_complex = x.dtype.is_complex();
    let onesided = match b.arg("onesided")? {
        Arg::Null => !is_complex,
        _ => b.bool("onesided")?,
    };
    let is_flat = x.rank() == 1;
    let mut x = input(e, &x)?;
    if is_flat {
        x = x.map(&mut |v| e.unsqueeze(v, 0))?;
    }
    if b.has("center") && b.bool("center")? {
        x = x.map(&mut |v| around(e, b, v, n / 2))?;
    }
    let frames = expr::sub(x.re.dim(1), Expr::Int(n));
    let frames = expr::add([expr::floor_div(frames, Expr::Int(hop.max(1))), Expr::Int(1)]);
    let shape = [x.re.dim(0), frames, Expr::Int(n)];
    let mut x = x.map(&mut |v| {
        let args = vec![v.arg(), Arg::Int(1), Arg::Int(n), Arg::Int(hop)];
        e.call1("aten.unfold.default", args, &[], v.dtype, &shape)
    })?;
    if let Some(w) = window(e, b, x.re.dtype)? {
        x = x.mul(e, &w)?;
    }
    let is_complex = x.im.is_some();
    let scale = if b.bool("normalized")? { Scale::Root } else { Scale::None };
    let y = if is_complex { c2c(e, x, &[2], false, scale)? } else { r2c(e, &x.re, &[2], onesided, scale)? };
    let y = y.map(&mut |v| {
        let v = e.permute(v, &[0, 2, 1])?;
        if is_flat { e.squeeze(&v, 0) } else { Ok(v) }
    })?;
    let (dtype, shape) = e.result(b, 0)?;
    let whole = y.join(e)?;
    if dtype.is_complex() {
        return one(e.to_dtype(&whole, dtype)?);
    }
    one(e.call1("aten.view_as_real.default", vec![whole.arg()], &[], dtype, &shape)?)
}

/// A signal `[B, L]` with `count` elements more on both sides.
fn around(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, count: i64) -> Result<V, Error> {
    let shape = [x.dim(0), expr::add([x.dim(1), Expr::Int(2 * count)])];
    let args = vec![x.arg(), Arg::ints([count, count]), b.arg("pad_mode")?.clone(), Arg::Null];
    e.call1("aten.pad.default", args, &[], x.dtype, &shape)
}

/// `istft(x [B, frequency, frame], …)`: frames transformed back, times the window, added where they overlap and divided
/// by the sum of the squared windows.
pub(super) fn istft(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let n = b.int("n_fft")?;
    let hop = b.int_or("hop_length")?.unwrap_or(n / 4);
    let is_flat = x.rank() == 2;
    let mut x = input(e, &x)?;
    if is_flat {
        x = x.map(&mut |v| e.unsqueeze(v, 0))?;
    }
    let frames = x.re.dim(2);
    let x = x.map(&mut |v| e.permute(v, &[0, 2, 1]))?;
    let scale = if b.bool("normalized")? { Scale::Root } else { Scale::Whole };
    let onesided = match b.arg("onesided")? {
        Arg::Null => x.re.dim(2) != Expr::Int(n),
        _ => b.bool("onesided")?,
    };
    // A real result is of the first half of the frequencies, whether the others are there or not.
    let (wanted, _) = e.result(b, 0)?;
    let y = if onesided || !wanted.is_complex() {
        Pair { re: c2r(e, x, &[2], &Expr::Int(n), scale)?, im: None }
    } else {
        c2c(e, x, &[2], true, scale)?
    };
    let dtype = y.re.dtype;
    let w = match window(e, b, dtype)? {
        Some(Pair { im: Some(_), .. }) => {
            return Err(Error::unsupported(format!("{} with a complex window; expected a real one", b.op())));
        }
        Some(w) => w.re,
        None => e.full(&[Expr::Int(n)], dtype, Arg::Int(1))?,
    };
    let steps = expr::sub(frames.clone(), Expr::Int(1));
    let total = expr::add([expr::mul([steps, Expr::Int(hop)]), Expr::Int(n)]);
    let square = e.mul(&w, &w)?;
    let square = e.expand_to(&square, &[Expr::Int(1), frames, Expr::Int(n)])?;
    let envelope = overlap(e, &square, hop, &total)?;
    let padding = Expr::Int(if b.bool("center")? { n / 2 } else { 0 });
    let end = match b.int_or("length")? {
        Some(length) => expr::add([padding.clone(), Expr::Int(length)]),
        None => expr::sub(total.clone(), padding.clone()),
    };
    let reach = expr::min([end.clone(), total.clone()]);
    let missing = expr::sub(end, reach.clone());
    let y = y.map(&mut |v| {
        let v = e.mul(v, &w)?;
        let v = overlap(e, &v, hop, &total)?;
        let v = e.slice(&v, 1, &padding, &reach, 1)?;
        let divisor = e.slice(&envelope, 1, &padding, &reach, 1)?;
        let v = e.div(&v, &divisor)?;
        let v = e.pad(&v, &[(Expr::Int(0), Expr::Int(0)), (Expr::Int(0), missing.clone())], Arg::Int(0))?;
        if is_flat { e.squeeze(&v, 0) } else { Ok(v) }
    })?;
    if wanted.is_complex() { complex_result(e, b, &y) } else { real_result(e, b, &y.re) }
}

/// Frames `[B, frames, n]` added where they lie, one every `hop` of `total` places.
fn overlap(e: &mut Expander<'_, '_>, x: &V, hop: i64, total: &Expr) -> Result<V, Error> {
    let start = e.iota(&x.dim(1), DType::I64)?;
    let start = e.mul(&start, hop)?;
    let start = e.unsqueeze(&start, 1)?;
    let inner = e.iota(&x.dim(2), DType::I64)?;
    let index = e.add(&start, &inner)?;
    let index = e.view(&index, &[Expr::Int(1), Expr::Int(-1)])?;
    let flat = e.view(x, &[x.dim(0), index.dim(1)])?;
    let index = e.expand_to(&index, &flat.shape)?;
    let shape = [x.dim(0), total.clone()];
    let zeros = e.full(&shape, x.dtype, Arg::Int(0))?;
    let args = vec![zeros.arg(), Arg::Int(1), index.arg(), flat.arg()];
    e.call1("aten.scatter_add.default", args, &[], x.dtype, &shape)
}
