//! The gradient of scaled dot-product attention.

use super::norm::as_result;
use crate::bind::Bound;
use crate::decompose::attention::{default_scale, masked};
use crate::decompose::matmul::product;
use crate::decompose::softmax::safe_softmax;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::{O, V};
use m2m_record::Arg;

/// `_scaled_dot_product_flash_attention_for_cpu_backward`: with the scores `S = scale·Q Kᵀ + mask`, the weights
/// `P = exp(S - logsumexp)` and `dS = P·(dO Vᵀ - Σ dO·O)`, sums along rows: `dQ = scale·dS K`, `dK = scale·dSᵀ Q`,
/// `dV = Pᵀ dO`.
pub(crate) fn flash_for_cpu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if b.float("dropout_p")? != 0.0 {
        return Err(Error::unsupported("the gradient of attention with dropout, whose mask it is not given"));
    }
    let mut wide = Vec::new();
    for name in ["grad_out", "query", "key", "value", "out", "logsumexp"] {
        let v = e.tensor(b, name)?;
        wide.push(e.widen(&v)?);
    }
    let [g, q, k, v, out, lse] = wide.as_slice() else { return Err(Error::shape(b.op(), "six tensors")) };
    let scale = match b.float_or("scale")? {
        Some(scale) => O::from(scale),
        None => default_scale(e, q)?,
    };
    let kt = flipped(e, k)?;
    let scores = product(e, q, &kt)?;
    let scores = e.mul(&scores, &scale)?;
    let mask = e.opt_tensor(b, "attn_mask")?;
    let scores = masked(e, &scores, mask, b.bool("is_causal")?)?;
    let rows = crate::infer::reduced(&scores.shape, &[scores.from_end(1)?], true);
    let weights = if lse.rank() == scores.rank() {
        // PyTorch's own decomposition of the forward gives its weights in place of the logarithms of their sums.
        safe_softmax(e, &scores)?
    } else {
        // One number for each row of scores, in their order, whatever order of dimensions the types tell.
        let lse = e.view(lse, &rows)?;
        let off = e.sub(&scores, &lse)?;
        let weights = e.unary_float("exp", &off)?;
        let is_out = e.compare("eq", &scores, f64::NEG_INFINITY)?;
        let zero = e.full(&[], weights.dtype, Arg::Int(0))?;
        e.select_where(&is_out, &zero, &weights)?
    };
    let own = e.mul(g, out)?;
    let own = e.sum(&own, &[own.from_end(1)?], true)?;
    let vt = flipped(e, v)?;
    let slope = product(e, g, &vt)?;
    let slope = e.sub(&slope, &own)?;
    let slope = e.mul(&weights, &slope)?;
    let slope = e.mul(&slope, &scale)?;
    let of_query = product(e, &slope, k)?;
    let turned = flipped(e, &slope)?;
    let of_key = product(e, &turned, q)?;
    let turned = flipped(e, &weights)?;
    let of_value = product(e, &turned, g)?;
    Ok(vec![as_result(e, b, 0, &of_query)?, as_result(e, b, 1, &of_key)?, as_result(e, b, 2, &of_value)?])
}

/// The last two dimensions exchanged.
fn flipped(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    e.transpose(x, x.from_end(2)?, x.from_end(1)?)
}
