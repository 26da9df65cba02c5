//! Gradients, where a program states them itself: `g` is the gradient of the result.

pub(super) mod activation;
pub(super) mod attention;
pub(super) mod bag;
pub(super) mod conv;
pub(super) mod distance;
pub(super) mod grid;
pub(super) mod index;
pub(super) mod loss;
pub(super) mod margin;
pub(super) mod norm;
pub(super) mod pool;
pub(super) mod spread;

use super::identity::number;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// The gradient of the result and another tensor, both widened.
fn pair(e: &mut Expander<'_, '_>, b: &Bound<'_>, other: &str) -> Result<(V, V), Error> {
    pair_of(e, b, "grad_output", other)
}

fn pair_of(e: &mut Expander<'_, '_>, b: &Bound<'_>, grad: &str, other: &str) -> Result<(V, V), Error> {
    let (g, x) = (e.tensor(b, grad)?, e.tensor(b, other)?);
    Ok((e.widen(&g)?, e.widen(&x)?))
}

fn finish(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &V) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(y, dtype)?)
}

/// `threshold_backward`: `g` where `x > threshold`, else 0; also where `x` is NaN.
pub(super) fn threshold(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let is_low = e.compare("le", &x, b.scalar("threshold")?)?;
    let zero = e.full(&[], g.dtype, Arg::Int(0))?;
    let y = e.select_where(&is_low, &zero, &g)?;
    finish(e, b, &y)
}

/// `leaky_relu_backward`: `g` where `x > 0`, else `negative_slope · g`.
pub(super) fn leaky_relu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self")?;
    let is_high = e.compare("gt", &x, 0i64)?;
    let low = e.mul(&g, b.scalar("negative_slope")?)?;
    let y = e.select_where(&is_high, &g, &low)?;
    finish(e, b, &y)
}

/// `sigmoid_backward`: `g·(1-y)·y` of the result `y`; `tanh_backward`: `g·(1-y²)`.
pub(super) fn of_result(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, y) = pair(e, b, "output")?;
    let inner = if b.op().contains("tanh") { e.mul(&y, &y)? } else { y.clone() };
    let rest = e.unary("neg", &inner)?;
    let rest = e.add(&rest, 1.0)?;
    let z = e.mul(&g, &rest)?;
    let z = if b.op().contains("tanh") { z } else { e.mul(&z, &y)? };
    finish(e, b, &z)
}

/// `elu_backward`: `g·scale` where `x > 0`, else `g·input_scale·alpha·scale·exp(input_scale·x)`, the last factors being
/// `y + alpha·scale` where the result `y` is given.
pub(super) fn elu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = pair(e, b, "self_or_result")?;
    let (alpha, scale, slope) = (number(b, "alpha")?, number(b, "scale")?, number(b, "input_scale")?);
    let grown = if b.bool("is_result")? {
        e.add(&x, alpha * scale)?
    } else {
        let y = e.mul(&x, slope)?;
        let y = e.unary_float("exp", &y)?;
        e.mul(&y, alpha * scale)?
    };
    let low = e.mul(&g, slope)?;
    let low = e.mul(&low, &grown)?;
    let high = e.mul(&g, scale)?;
    let is_low = e.compare("le", &x, 0i64)?;
    let y = e.select_where(&is_low, &low, &high)?;
    finish(e, b, &y)
}

/// `_softmax_backward_data`: `y·(g - Σ g·y)`; `_log_softmax_backward_data`: `g - exp(y)·Σ g`, sums along `dim`.
pub(super) fn softmax(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, y) = pair(e, b, "output")?;
    let dim = wrap_dim(b.op(), b.int("dim")?, y.rank())?;
    let dims: Vec<usize> = (0..y.rank()).filter(|d| *d == dim).collect();
    let z = if b.op().contains("log_softmax") {
        let total = e.sum(&g, &dims, true)?;
        let p = e.unary_float("exp", &y)?;
        let share = e.mul(&p, &total)?;
        e.sub(&g, &share)?
    } else {
        let own = e.mul(&g, &y)?;
        let total = e.sum(&own, &dims, true)?;
        let rest = e.sub(&g, &total)?;
        e.mul(&y, &rest)?
    };
    finish(e, b, &z)
}

/// `nll_loss_backward`: `-w[t]·g` at the class `t` of each sample, divided by `total_weight` for the mean, 0 elsewhere
/// and where `t` is ignored. `self` is `[N, C, …]` or `[C]`, of which only the first target counts.
pub(super) fn nll_loss(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (mut g, x) = pair(e, b, "self")?;
    let mut t = e.tensor(b, "target")?;
    let dim = usize::from(x.rank() > 1);
    if x.rank() == 1 {
        if t.rank() == 1 {
            t = e.select(&t, 0, &Expr::Int(0))?;
        }
        g = e.view(&g, &[])?;
    }
    let t = e.to_dtype(&t, DType::I64)?;
    let t = e.unsqueeze(&t, dim)?;
    if g.rank() > 0 {
        g = e.unsqueeze(&g, dim)?;
    }
    if b.int("reduction")? == 1 {
        let total = e.tensor(b, "total_weight")?;
        let total = e.widen(&total)?;
        g = e.div(&g, &total)?;
    }
    let mut y = e.unary("neg", &g)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        let w = e.along(&w, dim, x.rank())?;
        y = e.mul(&y, &w)?;
    }
    let class = e.iota(&x.dim(dim), DType::I64)?;
    let class = e.along(&class, dim, x.rank())?;
    let is_own = e.compare("eq", &class, &t)?;
    let is_kept = e.compare("ne", &t, b.int("ignore_index")?)?;
    let is_own = e.binary_default("logical_and", &is_own, &is_kept)?;
    let zero = e.full(&[], y.dtype, Arg::Int(0))?;
    let y = e.select_where(&is_own, &y, &zero)?;
    let y = e.expand_to(&y, &x.shape)?;
    finish(e, b, &y)
}

/// `native_group_norm_backward`: with `x̂ = (x - mean)·rstd` and `h = g·weight`, the gradient of the input is
/// `rstd·(h - mean(h) - x̂·mean(h·x̂))`, means over each group; that of the weight `Σ g·x̂`, that of the bias `Σ g`.
pub(super) fn group_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = (e.tensor(b, "grad_out")?, e.tensor(b, "input")?);
    let (mean, rstd) = (e.tensor(b, "mean")?, e.tensor(b, "rstd")?);
    let Arg::List(mask) = b.arg("output_mask")? else { return Err(Error::shape(b.op(), "no list of outputs")) };
    let wants = |k: usize| mask.get(k) == Some(&Arg::Bool(true));
    let groups = Expr::Int(b.int("group")?);
    let (n, c) = (x.dim(0), x.dim(1));
    let inner = crate::infer::divide(&c, &groups);
    let area = expr::mul(x.shape.iter().skip(2).cloned());
    let split = [n.clone(), groups.clone(), inner.clone(), area];
    let wide = |e: &mut Expander<'_, '_>, v: &V, shape: &[Expr]| {
        let v = e.widen(v)?;
        e.view(&v, shape)
    };
    let stat = [n, groups.clone(), Expr::Int(1), Expr::Int(1)];
    let (g, x) = (wide(e, &g, &split)?, wide(e, &x, &split)?);
    let (mean, rstd) = (wide(e, &mean, &stat)?, wide(e, &rstd, &stat)?);
    let centred = e.sub(&x, &mean)?;
    let normal = e.mul(&centred, &rstd)?;
    let mut h = g.clone();
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = wide(e, &w, &[Expr::Int(1), groups, inner, Expr::Int(1)])?;
        h = e.mul(&h, &w)?;
    }
    let mut out = Vec::new();
    for k in 0..3 {
        if !wants(k) {
            out.push(None);
            continue;
        }
        let y = match k {
            0 => {
                let level = e.mean(&h, &[2, 3], true)?;
                let slope = e.mul(&h, &normal)?;
                let slope = e.mean(&slope, &[2, 3], true)?;
                let bent = e.mul(&normal, &slope)?;
                let y = e.sub(&h, &level)?;
                let y = e.sub(&y, &bent)?;
                e.mul(&y, &rstd)?
            }
            1 => {
                let y = e.mul(&g, &normal)?;
                e.sum(&y, &[0, 3], false)?
            }
            _ => e.sum(&g, &[0, 3], false)?,
        };
        let (dtype, shape) = e.result(b, k)?;
        let y = e.view(&y, &shape)?;
        out.push(Some(e.to_dtype(&y, dtype)?));
    }
    Ok(out)
}
