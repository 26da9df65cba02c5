//! Gradients of normalisations. With `x̂ = (x - mean)·rstd` and `h = g·weight`, the gradient of the input is
//! `rstd·(h - mean(h) - x̂·mean(h·x̂))`, means over what is normalised; that of the weight is `Σ g·x̂`, that of the
//! bias `Σ g`, sums over the rest.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::V;
use m2m_record::{Arg, Type};

/// Whether result `k` is asked for.
pub(super) fn wants(b: &Bound<'_>, k: usize) -> bool {
    let is_tensor = matches!(b.node.results.get(k).map(|r| &r.ty), Some(Type::Tensor(_)));
    let is_masked = match b.arg("output_mask") {
        Ok(Arg::List(mask)) => mask.get(k) == Some(&Arg::Bool(true)),
        _ => true,
    };
    is_tensor && is_masked
}

/// `y` in the dtype and shape of result `k`.
pub(super) fn as_result(e: &mut Expander<'_, '_>, b: &Bound<'_>, k: usize, y: &V) -> Result<Option<V>, Error> {
    let (dtype, shape) = e.result(b, k)?;
    let y = e.view(y, &shape)?;
    Ok(Some(e.to_dtype(&y, dtype)?))
}

/// What the gradients are made of, all widened.
struct Call {
    g: V,
    h: V,
    /// `x̂`
    normal: V,
    rstd: V,
}

impl Call {
    /// `rstd·(h - mean(h) - x̂·mean(h·x̂))`
    fn of_input(&self, e: &mut Expander<'_, '_>, dims: &[usize]) -> Result<V, Error> {
        let level = e.mean(&self.h, dims, true)?;
        let slope = e.mul(&self.h, &self.normal)?;
        let slope = e.mean(&slope, dims, true)?;
        let bent = e.mul(&self.normal, &slope)?;
        let y = e.sub(&self.h, &level)?;
        let y = e.sub(&y, &bent)?;
        e.mul(&y, &self.rstd)
    }

    /// `Σ g·x̂`
    fn of_weight(&self, e: &mut Expander<'_, '_>, dims: &[usize]) -> Result<V, Error> {
        let y = e.mul(&self.g, &self.normal)?;
        e.sum(&y, dims, false)
    }

    /// Those of input, weight and bias that are asked for; `inner` is what the normalisation was over, none where its
    /// statistics were given, and `outer` the rest.
    fn gradients(&self, e: &mut Expander<'_, '_>, b: &Bound<'_>, inner: Option<&[usize]>, outer: &[usize]) -> Results {
        let mut out = Vec::new();
        for k in 0..b.node.results.len() {
            if !wants(b, k) {
                out.push(None);
                continue;
            }
            let y = match (k, inner) {
                (0, Some(inner)) => self.of_input(e, inner)?,
                (0, None) => e.mul(&self.h, &self.rstd)?,
                (1, _) => self.of_weight(e, outer)?,
                _ => e.sum(&self.g, outer, false)?,
            };
            out.push(as_result(e, b, k, &y)?);
        }
        Ok(out)
    }
}

fn wide(e: &mut Expander<'_, '_>, b: &Bound<'_>, name: &str) -> Result<V, Error> {
    let v = e.tensor(b, name)?;
    e.widen(&v)
}

/// `native_layer_norm_backward`, over the last dimensions.
pub(crate) fn layer_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, rstd) = (wide(e, b, "grad_out")?, wide(e, b, "input")?, wide(e, b, "rstd")?);
    let mean = wide(e, b, "mean")?;
    let count = b.sym_ints("normalized_shape")?.len();
    let lead = x.from_end(count)?;
    let (outer, inner): (Vec<usize>, Vec<usize>) = ((0..lead).collect(), (lead..x.rank()).collect());
    let centred = e.sub(&x, &mean)?;
    let normal = e.mul(&centred, &rstd)?;
    let h = match e.opt_tensor(b, "weight")? {
        Some(w) => {
            let w = e.widen(&w)?;
            e.mul(&g, &w)?
        }
        None => g.clone(),
    };
    let call = Call { g, h, normal, rstd };
    call.gradients(e, b, Some(&inner), &outer)
}

/// `native_batch_norm_backward`, over all dimensions but 1: by the statistics of the batch in training, else by the
/// running ones, on which the input has no influence. `batch_norm_backward` calls the deviation `save_var` too.
pub(crate) fn batch_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x) = (wide(e, b, "grad_out")?, wide(e, b, "input")?);
    let is_training = b.bool(if b.has("train") { "train" } else { "update" })?;
    let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != 1).collect();
    let (mean, rstd) = if is_training {
        let saved = if b.has("save_invstd") { "save_invstd" } else { "save_var" };
        (wide(e, b, "save_mean")?, wide(e, b, saved)?)
    } else {
        let var = wide(e, b, "running_var")?;
        let var = e.add(&var, b.float("eps")?)?;
        (wide(e, b, "running_mean")?, e.unary_float("rsqrt", &var)?)
    };
    let (mean, rstd) = (e.along(&mean, 1, x.rank())?, e.along(&rstd, 1, x.rank())?);
    let centred = e.sub(&x, &mean)?;
    let normal = e.mul(&centred, &rstd)?;
    let h = match e.opt_tensor(b, "weight")? {
        Some(w) => {
            let w = e.widen(&w)?;
            let w = e.along(&w, 1, x.rank())?;
            e.mul(&g, &w)?
        }
        None => g.clone(),
    };
    let call = Call { g, h, normal, rstd };
    call.gradients(e, b, is_training.then_some(dims.as_slice()), &dims)
}

/// `_weight_norm_interface_backward`: of `w = v·g/n`, `n` the norm of `v` over all dimensions but `dim`: with
/// `s = Σ grad·v` over them, `(grad - v·s/n²)·g/n` of `v` and `s/n` of `g`.
pub(crate) fn weight_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (grad, v) = (wide(e, b, "grad_w")?, wide(e, b, "saved_v")?);
    let (g, n) = (wide(e, b, "saved_g")?, wide(e, b, "saved_norms")?);
    let dim = crate::infer::wrap_dim(b.op(), b.int("dim")?, v.rank())?;
    let dims: Vec<usize> = (0..v.rank()).filter(|d| *d != dim).collect();
    let s = e.mul(&grad, &v)?;
    let s = e.sum(&s, &dims, true)?;
    let share = e.div(&s, &n)?;
    let bent = e.div(&share, &n)?;
    let bent = e.mul(&v, &bent)?;
    let y = e.sub(&grad, &bent)?;
    let scale = e.div(&g, &n)?;
    let y = e.mul(&y, &scale)?;
    Ok(vec![as_result(e, b, 0, &y)?, as_result(e, b, 1, &share)?])
}
