//! Losses and similarities. `reduction` is 0 for each element, 1 for the mean, 2 for the sum.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// Reduces a loss of every element.
pub(super) fn reduced(e: &mut Expander<'_, '_>, b: &Bound<'_>, loss: &V) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let all: Vec<usize> = (0..loss.rank()).collect();
    let y = match b.int("reduction")? {
        0 => loss.clone(),
        1 => e.mean(loss, &all, false)?,
        2 => e.sum(loss, &all, false)?,
        other => return Err(Error::shape(b.op(), format!("reduction {other}; expected 0, 1 or 2"))),
    };
    one(e.to_dtype(&y, dtype)?)
}

fn pair(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<(V, V), Error> {
    let (x, t) = (e.tensor(b, "self")?, e.tensor(b, "target")?);
    Ok((e.widen(&x)?, e.widen(&t)?))
}

/// `mse_loss`: `(x - t)²`; `l1_loss`: `|x - t|`
pub(super) fn distance(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = pair(e, b)?;
    let d = e.sub(&x, &t)?;
    let loss = if b.op() == "aten.mse_loss.default" { e.mul(&d, &d)? } else { e.unary("abs", &d)? };
    reduced(e, b, &loss)
}

/// `smooth_l1_loss(beta)`: `d²/(2·beta)` below `beta`, else `d - beta/2`; `huber_loss(delta)` is `delta` times that.
pub(super) fn smooth(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = pair(e, b)?;
    let is_huber = b.op() == "aten.huber_loss.default";
    let beta = b.float(if is_huber { "delta" } else { "beta" })?;
    let d = e.sub(&x, &t)?;
    let d = e.unary("abs", &d)?;
    if beta == 0.0 {
        return reduced(e, b, &d);
    }
    let square = e.mul(&d, &d)?;
    let near = e.mul(&square, if is_huber { 0.5 } else { 0.5 / beta })?;
    let far = e.sub(&d, 0.5 * beta)?;
    let far = if is_huber { e.mul(&far, beta)? } else { far };
    let is_near = e.compare("lt", &d, beta)?;
    let loss = e.select_where(&is_near, &near, &far)?;
    reduced(e, b, &loss)
}

/// `kl_div`: `t·(log t - x)`, 0 where `t` is 0; `exp(t)·(t - x)` of a logarithmic target.
pub(super) fn kl_div(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = pair(e, b)?;
    let loss = if b.bool("log_target")? {
        let p = e.unary_float("exp", &t)?;
        let d = e.sub(&t, &x)?;
        e.mul(&p, &d)?
    } else {
        let log = e.call1("aten.xlogy.Tensor", vec![t.arg(), t.arg()], &[], t.dtype, &t.shape)?;
        let cross = e.mul(&t, &x)?;
        e.sub(&log, &cross)?
    };
    reduced(e, b, &loss)
}

/// `binary_cross_entropy_with_logits`: `(1-t)·x + w·softplus(-x)` with `w = 1 + (pos_weight - 1)·t`, where
/// `softplus(-x) = log1p(exp(-|x|)) + max(-x, 0)`; times `weight`.
pub(super) fn bce_with_logits(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = pair(e, b)?;
    let size = e.unary("abs", &x)?;
    let size = e.unary("neg", &size)?;
    let small = e.unary_float("exp", &size)?;
    let log = e.unary_float("log1p", &small)?;
    let minus = e.unary("neg", &x)?;
    let high = e.unary("relu", &minus)?;
    let mut tail = e.add(&log, &high)?;
    if let Some(p) = e.opt_tensor(b, "pos_weight")? {
        let p = e.widen(&p)?;
        let p = e.sub(&p, 1.0)?;
        let w = e.mul(&p, &t)?;
        let w = e.add(&w, 1.0)?;
        tail = e.mul(&w, &tail)?;
    }
    let rest = e.unary("neg", &t)?;
    let rest = e.add(&rest, 1.0)?;
    let head = e.mul(&rest, &x)?;
    let mut loss = e.add(&head, &tail)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        loss = e.mul(&loss, &w)?;
    }
    reduced(e, b, &loss)
}

/// The logarithm of a probability counts as this at the least.
const LEAST_LOG: f64 = -100.0;

/// `binary_cross_entropy`: `-w·(t·log x + (1 - t)·log(1 - x))`, no logarithm less than -100.
pub(super) fn binary_cross_entropy(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = pair(e, b)?;
    let minus = e.unary("neg", &x)?;
    let mut logs = Vec::new();
    for (op, v) in [("log", &x), ("log1p", &minus)] {
        let log = e.unary_float(op, v)?;
        let args = vec![log.arg(), Arg::from(LEAST_LOG)];
        logs.push(e.call1("aten.clamp.default", args, &[], log.dtype, &log.shape)?);
    }
    let [own, other] = logs.as_slice() else { return Err(Error::shape(b.op(), "two logarithms")) };
    let rest = e.sub(&t, 1.0)?;
    let rest = e.mul(&rest, other)?;
    let own = e.mul(&t, own)?;
    let mut loss = e.sub(&rest, &own)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        loss = e.mul(&loss, &w)?;
    }
    reduced(e, b, &loss)
}

/// `-w[t] · logp[t]` of class indices `t`, classes along dimension 1 (0 for a lone sample), 0 where ignored; the mean
/// is over weights. `logp` is `[N, C, …]`, `t` is `[N, …]`.
fn nll(e: &mut Expander<'_, '_>, b: &Bound<'_>, logp: &V, t: &V, smoothing: f64) -> Results {
    Ok(vec![Some(weighed(e, b, logp, t, smoothing)?.0)])
}

/// The same, and the sum of the weights of all targets that count.
fn weighed(e: &mut Expander<'_, '_>, b: &Bound<'_>, logp: &V, t: &V, smoothing: f64) -> Result<(V, V), Error> {
    let dim = if logp.rank() == 1 { 0 } else { 1 };
    let t = e.to_dtype(t, DType::I64)?;
    let ignore = b.int("ignore_index")?;
    let is_kept = e.compare("ne", &t, ignore)?;
    let zero = e.full(&[], DType::I64, Arg::Int(0))?;
    let at = e.select_where(&is_kept, &t, &zero)?;
    let index = e.unsqueeze(&at, dim)?;
    let args = vec![logp.arg(), Arg::Int(dim as i64), index.arg()];
    let picked = e.call1("aten.gather.default", args, &[], logp.dtype, &index.shape)?;
    let picked = e.squeeze(&picked, dim)?;
    let mut weight = e.to_dtype(&is_kept, logp.dtype)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        let flat = e.view(&at, &[Expr::Int(-1)])?;
        let w = e.index_select(&w, 0, &flat)?;
        let w = e.view(&w, &at.shape)?;
        weight = e.mul(&w, &weight)?;
    }
    let loss = e.unary("neg", &picked)?;
    let nothing = e.full(&[], loss.dtype, Arg::Int(0))?;
    let loss = e.select_where(&is_kept, &loss, &nothing)?;
    let mut loss = e.mul(&loss, &weight)?;
    if smoothing != 0.0 {
        let mut shared = logp.clone();
        if let Some(w) = e.opt_tensor(b, "weight")? {
            let w = e.widen(&w)?;
            let w = e.along(&w, dim, logp.rank())?;
            shared = e.mul(&shared, &w)?;
        }
        let shared = e.sum(&shared, &[dim], false)?;
        let shared = e.select_where(&is_kept, &shared, &nothing)?;
        let shared = e.mul(&shared, smoothing / classes(b, logp, dim)?)?;
        let own = e.mul(&loss, 1.0 - smoothing)?;
        loss = e.sub(&own, &shared)?;
    }
    let (dtype, _) = e.result(b, 0)?;
    let all: Vec<usize> = (0..loss.rank()).collect();
    let weights = e.sum(&weight, &all, false)?;
    let y = match b.int("reduction")? {
        0 => loss,
        2 => e.sum(&loss, &all, false)?,
        _ => {
            let total = e.sum(&loss, &all, false)?;
            e.div(&total, &weights)?
        }
    };
    Ok((e.to_dtype(&y, dtype)?, weights))
}

/// How many classes there are.
fn classes(b: &Bound<'_>, x: &V, dim: usize) -> Result<f64, Error> {
    let size = x.dim(dim).as_int();
    size.map(|n| n as f64).ok_or_else(|| Error::unsupported(format!("{} over {} classes", b.op(), x.dim(dim))))
}

/// `nll_loss_nd`
pub(super) fn nll_loss(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = (e.tensor(b, "self")?, e.tensor(b, "target")?);
    let x = e.widen(&x)?;
    nll(e, b, &x, &t, 0.0)
}

/// `nll_loss_forward`: the loss, and the sum of weights for its gradient, 0 where nothing is reduced over many samples.
pub(super) fn nll_loss_forward(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = (e.tensor(b, "self")?, e.tensor(b, "target")?);
    let x = e.widen(&x)?;
    let (y, weights) = weighed(e, b, &x, &t, 0.0)?;
    let (dtype, shape) = e.result(b, 1)?;
    let total = match b.int("reduction")? {
        0 if x.rank() > 1 => e.full(&shape, dtype, Arg::Int(0))?,
        _ => e.to_dtype(&weights, dtype)?,
    };
    Ok(vec![Some(y), Some(total)])
}

/// `poisson_nll_loss`: `exp(x) - t·x` of a logarithm, else `x - t·log(x + eps)`; with `full` Stirling's term
/// `t·log t - t + log(2πt)/2` is added for targets above 1.
pub(super) fn poisson(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = (e.tensor(b, "input")?, e.tensor(b, "target")?);
    let (x, t) = (e.widen(&x)?, e.widen(&t)?);
    let mut loss = if b.bool("log_input")? {
        let rate = e.unary_float("exp", &x)?;
        let hit = e.mul(&t, &x)?;
        e.sub(&rate, &hit)?
    } else {
        let safe = e.add(&x, b.float("eps")?)?;
        let log = e.unary_float("log", &safe)?;
        let hit = e.mul(&t, &log)?;
        e.sub(&x, &hit)?
    };
    if b.bool("full")? {
        let log = e.unary_float("log", &t)?;
        let main = e.mul(&t, &log)?;
        let main = e.sub(&main, &t)?;
        let tail = e.mul(&t, std::f64::consts::TAU)?;
        let tail = e.unary_float("log", &tail)?;
        let tail = e.mul(&tail, 0.5)?;
        let term = e.add(&main, &tail)?;
        let is_large = e.compare("gt", &t, 1i64)?;
        let zero = e.full(&[], term.dtype, Arg::Int(0))?;
        let term = e.select_where(&is_large, &term, &zero)?;
        loss = e.add(&loss, &term)?;
    }
    reduced(e, b, &loss)
}

/// `cross_entropy_loss` of class indices: `nll_loss` of the logarithm of the softmax. Probabilities as the target: the
/// sum of `-w·t·logp` over classes, its mean over samples. Smoothing takes its share `s` of every target and gives it to
/// all `C` classes alike: `t` becomes `(1-s)·t + s/C`.
pub(super) fn cross_entropy(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = (e.tensor(b, "self")?, e.tensor(b, "target")?);
    let smoothing = b.float("label_smoothing")?;
    let x = e.widen(&x)?;
    let dim = i64::from(x.rank() > 1);
    let args = vec![x.arg(), Arg::Int(dim), Arg::Bool(false)];
    let logp = e.call1("aten._log_softmax.default", args, &[], x.dtype, &x.shape)?;
    if t.dtype.is_integer() {
        return nll(e, b, &logp, &t, smoothing);
    }
    let dim = wrap_dim(b.op(), dim, x.rank())?;
    let mut t = e.to_dtype(&t, x.dtype)?;
    if smoothing != 0.0 {
        t = e.mul(&t, 1.0 - smoothing)?;
        t = e.add(&t, smoothing / classes(b, &x, dim)?)?;
    }
    let mut loss = e.mul(&t, &logp)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        let w = e.along(&w, dim, x.rank())?;
        loss = e.mul(&loss, &w)?;
    }
    let loss = e.sum(&loss, &[dim], false)?;
    let loss = e.unary("neg", &loss)?;
    reduced(e, b, &loss)
}

/// `cosine_similarity(x, y, dim, eps)`: `Σ (x/max(|x|, eps))·(y/max(|y|, eps))`
pub(super) fn cosine_similarity(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "x1")?, e.tensor(b, "x2")?);
    let (dtype, _) = e.result(b, 0)?;
    let shape = crate::infer::broadcast(b.op(), &x.shape, &y.shape)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, shape.len())?;
    let eps = b.float("eps")?;
    let mut unit = Vec::new();
    for v in [x, y] {
        let v = e.widen(&v)?;
        let v = e.expand_to(&v, &shape)?;
        let n = e.mul(&v, &v)?;
        let n = e.sum(&n, &[dim], true)?;
        let n = e.unary_float("sqrt", &n)?;
        let n = e.call1("aten.clamp.default", vec![n.arg(), Arg::from(eps), Arg::Null], &[], n.dtype, &n.shape)?;
        unit.push(e.div(&v, &n)?);
    }
    let [x, y] = unit.as_slice() else { return Err(Error::shape(b.op(), "two tensors")) };
    let z = e.mul(x, y)?;
    let z = e.sum(&z, &[dim], false)?;
    one(e.to_dtype(&z, dtype)?)
}
