//! Scaled dot-product attention.

use super::random;
use super::softmax::safe_softmax;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{O, V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `softmax(scale · Q Kᵀ + mask) V`: query `[…, L, E]`, key `[…, S, E]`, value `[…, S, Ev]`. A bool mask keeps where it
/// is true; `is_causal` keeps column `j <= i`; a row that keeps nothing gives 0. With `enable_gqa` every key head
/// serves several query heads. Source: `torch.nn.functional.scaled_dot_product_attention`.
pub(super) fn attention(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (q, k, v) = (e.tensor(b, "query")?, e.tensor(b, "key")?, e.tensor(b, "value")?);
    let (dtype, _) = e.result(b, 0)?;
    let (q, mut k, mut v) = (e.widen(&q)?, e.widen(&k)?, e.widen(&v)?);
    if b.bool("enable_gqa")? {
        k = repeat_heads(e, &k, &q)?;
        v = repeat_heads(e, &v, &q)?;
    }
    let scale = match b.float_or("scale")? {
        Some(scale) => O::from(scale),
        None => default_scale(e, &q)?,
    };
    let (k, v) = of_query(e, &q, &k, &v)?;
    let scores = products(e, &q, &k, &scale)?;
    let mask = e.opt_tensor(b, "attn_mask")?;
    let is_masked = mask.is_some();
    let scores = masked(e, &scores, mask, b.bool("is_causal")?)?;
    let weights = if is_masked { safe_softmax(e, &scores)? } else { plain_softmax(e, &scores)? };
    let weights = dropped(e, b, weights)?;
    let y = super::matmul::product(e, &weights, &v)?;
    one(e.to_dtype(&y, dtype)?)
}

/// Keys of the query's embedding size, and values of as many rows as the keys.
fn of_query(e: &mut Expander<'_, '_>, q: &V, k: &V, v: &V) -> Result<(V, V), Error> {
    let k = e.of_sizes(k, &[q.dim(q.from_end(1)?)])?;
    let v = e.of_sizes(v, &[k.dim(k.from_end(2)?), v.dim(v.from_end(1)?)])?;
    Ok((k, v))
}

/// `scale · Q Kᵀ`
fn products(e: &mut Expander<'_, '_>, q: &V, k: &V, scale: &O) -> Result<V, Error> {
    let kt = e.transpose(k, k.from_end(2)?, k.from_end(1)?)?;
    let scores = super::matmul::product(e, q, &kt)?;
    e.mul(&scores, scale)
}

/// Attention weights after dropout with probability `dropout_p`.
fn dropped(e: &mut Expander<'_, '_>, b: &Bound<'_>, weights: V) -> Result<V, Error> {
    let p = b.float("dropout_p")?;
    if p == 0.0 {
        return Ok(weights);
    }
    let mask = random::kept(e, &weights.shape, p)?;
    random::scaled(e, &weights, &mask, p)
}

/// `1 / sqrt(E)`
pub(super) fn default_scale(e: &mut Expander<'_, '_>, q: &V) -> Result<O, Error> {
    let size = q.dim(q.rank().saturating_sub(1));
    match size.as_int() {
        Some(n) if n > 0 => Ok(O::from(1.0 / (n as f64).sqrt())),
        Some(n) => Err(Error::shape("attention", format!("an embedding size of {n}"))),
        None => {
            let size = e.full(&[], q.dtype, size_arg(&size))?;
            Ok(O::T(e.unary_float("rsqrt", &size)?))
        }
    }
}

/// `[…, H, S, E]` with each head as often in a row as query heads share it.
fn repeat_heads(e: &mut Expander<'_, '_>, x: &V, q: &V) -> Result<V, Error> {
    let at = x.rank().checked_sub(3).ok_or_else(|| Error::shape("attention", "grouped heads need rank 3 or more"))?;
    let heads = q.dim(q.from_end(3)?);
    let times = crate::infer::divide(&heads, &x.dim(at));
    if times == Expr::Int(1) {
        return Ok(x.clone());
    }
    let wide = e.unsqueeze(x, at + 1)?;
    let mut shape = wide.shape.clone();
    if let Some(size) = shape.get_mut(at + 1) {
        *size = times;
    }
    let wide = e.expand_to(&wide, &shape)?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(at) {
        *size = heads;
    }
    e.view(&wide, &shape)
}

pub(super) fn masked(e: &mut Expander<'_, '_>, scores: &V, mask: Option<V>, is_causal: bool) -> Result<V, Error> {
    let mut y = scores.clone();
    if let Some(mask) = mask {
        y = if mask.dtype == DType::Bool {
            keep_where(e, &mask, &y)?
        } else {
            let mask = e.to_dtype(&mask, y.dtype)?;
            e.add(&y, &mask)?
        };
    }
    if is_causal {
        let (rows, cols) = (scores.dim(scores.from_end(2)?), scores.dim(scores.from_end(1)?));
        let keep = e.lower_triangle(&rows, &cols, 0)?;
        y = keep_where(e, &keep, &y)?;
    }
    Ok(y)
}

fn keep_where(e: &mut Expander<'_, '_>, keep: &V, scores: &V) -> Result<V, Error> {
    let minus = e.full(&[], scores.dtype, Arg::from(f64::NEG_INFINITY))?;
    e.select_where(keep, scores, &minus)
}

fn plain_softmax(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let last = Arg::Int(i64::try_from(x.rank()).unwrap_or(1) - 1);
    e.call1("aten._softmax.default", vec![x.arg(), last, Arg::Bool(false)], &[], x.dtype, &x.shape)
}

/// `_scaled_dot_product_flash_attention_for_cpu`: the same, and the logarithm of each row's sum, `[…, L]`.
pub(super) fn flash_for_cpu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (q, k, v) = (e.tensor(b, "query")?, e.tensor(b, "key")?, e.tensor(b, "value")?);
    let (dtype, _) = e.result(b, 0)?;
    let (q, k, v) = (e.widen(&q)?, e.widen(&k)?, e.widen(&v)?);
    let scale = match b.float_or("scale")? {
        Some(scale) => O::from(scale),
        None => default_scale(e, &q)?,
    };
    let (k, v) = of_query(e, &q, &k, &v)?;
    let scores = products(e, &q, &k, &scale)?;
    let mask = e.opt_tensor(b, "attn_mask")?;
    let scores = masked(e, &scores, mask, b.bool("is_causal")?)?;
    let weights = safe_softmax(e, &scores)?;
    let weights = dropped(e, b, weights)?;
    let y = super::matmul::product(e, &weights, &v)?;
    let y = e.to_dtype(&y, dtype)?;
    let (lse_dtype, lse_shape) = e.result(b, 1)?;
    let last = Arg::Int(i64::try_from(scores.rank()).unwrap_or(1) - 1);
    let rows: Vec<Expr> = scores.shape.iter().take(scores.from_end(1)?).cloned().collect();
    let lse = e.call1("aten.logsumexp.default", vec![scores.arg(), Arg::List(vec![last])], &[], scores.dtype, &rows)?;
    let lse = e.to_dtype(&lse, lse_dtype)?;
    let lse = if expr::mul(lse_shape.iter().cloned()) == expr::mul(rows) { e.view(&lse, &lse_shape)? } else { lse };
    Ok(vec![Some(y), Some(lse)])
}
