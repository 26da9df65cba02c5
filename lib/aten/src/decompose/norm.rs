//! Normalisations over a batch, a layer, groups or instances. Statistics are kept in `f32` for half types, and the
//! result is rounded once.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `(x - mean) · rstd`, `mean` and `rstd = 1/sqrt(var + eps)` of `x` over `dims`, which stay with size 1.
fn normalize(e: &mut Expander<'_, '_>, x: &V, dims: &[usize], eps: f64) -> Result<(V, V, V), Error> {
    let mean = e.mean(x, dims, true)?;
    let centred = e.sub(x, &mean)?;
    let var = e.mul(&centred, &centred)?;
    let var = e.mean(&var, dims, true)?;
    let rstd = e.add(&var, eps)?;
    let rstd = e.unary_float("rsqrt", &rstd)?;
    Ok((e.mul(&centred, &rstd)?, mean, rstd))
}

/// The dtype in which batch statistics of half elements are kept: that of the parameters or running statistics, or of
/// the elements where there are none. PyTorch's CPU kernel rounds mean and deviation to it before it uses them.
fn kept_dtype(e: &Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Result<DType, Error> {
    for name in ["weight", "bias", "running_mean"] {
        if b.has(name)
            && let Some(v) = e.opt_tensor(b, name)?
        {
            return Ok(v.dtype);
        }
    }
    Ok(x.dtype)
}

/// As [`normalize`], with mean and deviation rounded to `kept` before they are used.
fn normalize_kept(e: &mut Expander<'_, '_>, x: &V, dims: &[usize], eps: f64, kept: DType) -> Result<(V, V, V), Error> {
    let (y, mean, rstd) = normalize(e, x, dims, eps)?;
    if kept == x.dtype || x.dtype != DType::F32 {
        return Ok((y, mean, rstd));
    }
    let (short_mean, short_rstd) = (e.to_dtype(&mean, kept)?, e.to_dtype(&rstd, kept)?);
    let (short_mean, short_rstd) = (e.to_dtype(&short_mean, x.dtype)?, e.to_dtype(&short_rstd, x.dtype)?);
    let y = e.sub(x, &short_mean)?;
    Ok((e.mul(&y, &short_rstd)?, mean, rstd))
}

/// The mean that layer and group normalisation tell: over no elements it is 0, though `rstd` is NaN.
fn told_mean(e: &mut Expander<'_, '_>, mean: V, x: &V, dims: &[usize]) -> Result<V, Error> {
    if dims.iter().any(|dim| x.dim(*dim) == Expr::Int(0)) {
        return e.full(&mean.shape, mean.dtype, Arg::Int(0));
    }
    Ok(mean)
}

/// `x · weight + bias`, either of which may be absent.
fn affine(e: &mut Expander<'_, '_>, x: V, weight: Option<&V>, bias: Option<&V>) -> Result<V, Error> {
    let mut y = x;
    if let Some(w) = weight {
        let w = e.widen(w)?;
        y = e.mul(&y, &w)?;
    }
    if let Some(b) = bias {
        let b = e.widen(b)?;
        y = e.add(&y, &b)?;
    }
    Ok(y)
}

/// `layer_norm(x, normalized_shape, weight, bias, eps)`: over the last dimensions, as many as `normalized_shape` has.
/// `native_layer_norm` gives mean and rstd too, with those dimensions of size 1.
pub(super) fn layer_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (weight, bias) = (e.opt_tensor(b, "weight")?, e.opt_tensor(b, "bias")?);
    let count = b.sym_ints("normalized_shape")?.len();
    let lead = x.rank().checked_sub(count).ok_or_else(|| {
        Error::shape(b.op(), format!("normalized_shape has {count} sizes, the input {} dimensions", x.rank()))
    })?;
    let dims: Vec<usize> = (lead..x.rank()).collect();
    let wide = e.widen(&x)?;
    let (y, mean, rstd) = normalize(e, &wide, &dims, b.float("eps")?)?;
    let mean = told_mean(e, mean, &wide, &dims)?;
    let y = affine(e, y, weight.as_ref(), bias.as_ref())?;
    let mut out = vec![Some(e.to_dtype(&y, x.dtype)?)];
    for (k, stat) in [mean, rstd].iter().enumerate() {
        if b.node.results.len() == 3 {
            let (dtype, _) = e.result(b, k + 1)?;
            out.push(Some(e.to_dtype(stat, dtype)?));
        }
    }
    Ok(out)
}

/// `rms_norm`: `x / sqrt(mean(x²) + eps) · weight` over the last dimensions; `eps` is the dtype's when it is absent.
pub(super) fn rms_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let weight = e.opt_tensor(b, "weight")?;
    let (dtype, _) = e.result(b, 0)?;
    let count = b.sym_ints("normalized_shape")?.len();
    let dims: Vec<usize> = (x.rank().saturating_sub(count)..x.rank()).collect();
    let wide = e.widen(&x)?;
    let eps =
        b.float_or("eps")?.unwrap_or(if wide.dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) });
    let square = e.mul(&wide, &wide)?;
    let mean = e.mean(&square, &dims, true)?;
    let rstd = e.add(&mean, eps)?;
    let rstd = e.unary_float("rsqrt", &rstd)?;
    let y = e.mul(&wide, &rstd)?;
    let y = affine(e, y, weight.as_ref(), None)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `group_norm(x, groups, weight, bias, eps)`: `[N, C, …]` as `[N, groups, C/groups · …]`, normalised over the last.
/// `native_group_norm` gives mean and rstd `[N, groups]` too.
pub(super) fn group_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (weight, bias) = (e.opt_tensor(b, "weight")?, e.opt_tensor(b, "bias")?);
    let groups = Expr::Int(b.int(if b.has("num_groups") { "num_groups" } else { "group" })?);
    let wide = e.widen(&x)?;
    let rest = crate::infer::divide(&expr::mul(x.shape.iter().skip(1).cloned()), &groups);
    let grouped = e.view(&wide, &[x.dim(0), groups, rest])?;
    let (y, mean, rstd) = normalize(e, &grouped, &[2], b.float("eps")?)?;
    let mean = told_mean(e, mean, &grouped, &[2])?;
    let y = e.view(&y, &x.shape)?;
    let weight = weight.map(|w| e.along(&w, 1, x.rank())).transpose()?;
    let bias = bias.map(|w| e.along(&w, 1, x.rank())).transpose()?;
    let y = affine(e, y, weight.as_ref(), bias.as_ref())?;
    let mut out = vec![Some(e.to_dtype(&y, x.dtype)?)];
    for (k, stat) in [mean, rstd].iter().enumerate() {
        if b.node.results.len() == 3 {
            let (dtype, shape) = e.result(b, k + 1)?;
            let stat = e.view(stat, &shape)?;
            out.push(Some(e.to_dtype(&stat, dtype)?));
        }
    }
    Ok(out)
}

/// `instance_norm`: each channel of each sample over its own space, or by running statistics in evaluation.
pub(super) fn instance_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (mean, var) = (e.opt_tensor(b, "running_mean")?, e.opt_tensor(b, "running_var")?);
    let eps = b.float("eps")?;
    let wide = e.widen(&x)?;
    let y = match (b.bool("use_input_stats")?, mean, var) {
        (true, None, None) => {
            let kept = kept_dtype(e, b, &x)?;
            let y = normalize_kept(e, &wide, &(2..x.rank()).collect::<Vec<_>>(), eps, kept)?.0;
            return one(scaled(e, b, y, &x)?);
        }
        (false, Some(mean), Some(var)) => by_statistics(e, b, &wide, (&mean, &var), eps)?,
        (true, ..) => {
            let message = "instance_norm in training updates running statistics; export after model.eval()";
            return Err(Error::unsupported(message));
        }
        (false, ..) => return Err(Error::shape(b.op(), "no input statistics and no running ones")),
    };
    one(e.to_dtype(&y, x.dtype)?)
}

/// `(x - mean[c]) / sqrt(var[c] + eps) · weight[c] + bias[c]`, `c` being dimension 1, as `x · scale + shift` with both
/// computed for each channel: the form of PyTorch's CPU kernel.
fn by_statistics(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, (mean, var): (&V, &V), eps: f64) -> Result<V, Error> {
    let (mean, var) = (e.widen(mean)?, e.widen(var)?);
    let scale = e.add(&var, eps)?;
    let mut scale = e.unary_float("rsqrt", &scale)?;
    if let Some(weight) = e.opt_tensor(b, "weight")? {
        let weight = e.widen(&weight)?;
        scale = e.mul(&scale, &weight)?;
    }
    let shift = e.mul(&mean, &scale)?;
    let shift = match e.opt_tensor(b, "bias")? {
        Some(bias) => {
            let bias = e.widen(&bias)?;
            e.sub(&bias, &shift)?
        }
        None => e.unary("neg", &shift)?,
    };
    let (scale, shift) = (e.along(&scale, 1, x.rank())?, e.along(&shift, 1, x.rank())?);
    let y = e.mul(x, &scale)?;
    e.add(&y, &shift)
}

/// What a batch norm in training gives: the result, mean and rstd of the batch, and the running statistics moved
/// towards it by `momentum` (with the unbiased variance).
struct Trained {
    y: V,
    mean: V,
    rstd: V,
    running: Option<(V, V)>,
}

/// A running statistic moved towards a new one by `momentum`.
fn moved(e: &mut Expander<'_, '_>, old: &V, new: &V, momentum: f64) -> Result<V, Error> {
    let wide = e.to_dtype(old, new.dtype)?;
    let kept = e.mul(&wide, 1.0 - momentum)?;
    let fresh = e.mul(new, momentum)?;
    let sum = e.add(&kept, &fresh)?;
    e.to_dtype(&sum, old.dtype)
}

/// `instance_norm` in training: the result, and the running statistics moved towards the means over samples of those of
/// the instances.
pub(crate) fn train_instance_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (old_mean, old_var) = (e.tensor(b, "running_mean")?, e.tensor(b, "running_var")?);
    let momentum = b.float("momentum")?;
    let wide = e.widen(&x)?;
    let dims: Vec<usize> = (2..x.rank()).collect();
    let kept = kept_dtype(e, b, &x)?;
    let (y, mean, _) = normalize_kept(e, &wide, &dims, b.float("eps")?, kept)?;
    let y = scaled(e, b, y, &x)?;
    let instances = [x.dim(0), x.dim(1)];
    let mean = e.view(&mean, &instances)?;
    let args = vec![wide.arg(), Arg::ints(dims.iter().map(|d| *d as i64))];
    let var = e.call1("aten.var.correction", args, &[("correction", Arg::Int(1))], wide.dtype, &instances)?;
    let (mean, var) = (e.mean(&mean, &[0], false)?, e.mean(&var, &[0], false)?);
    Ok(vec![Some(y), Some(moved(e, &old_mean, &mean, momentum)?), Some(moved(e, &old_var, &var, momentum)?)])
}

fn train(
    e: &mut Expander<'_, '_>,
    x: &V,
    running: Option<(V, V)>,
    momentum: f64,
    (eps, kept): (f64, DType),
) -> Result<Trained, Error> {
    let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != 1).collect();
    let (y, mean, rstd) = normalize_kept(e, x, &dims, eps, kept)?;
    let channels = [x.dim(1)];
    let (mean, rstd) = (e.view(&mean, &channels)?, e.view(&rstd, &channels)?);
    let running = match running {
        None => None,
        Some((old_mean, old_var)) => {
            let args = vec![x.arg(), Arg::ints(dims.iter().map(|d| *d as i64))];
            let kwargs = [("correction", Arg::Int(1))];
            let var = e.call1("aten.var.correction", args, &kwargs, x.dtype, &channels)?;
            Some((moved(e, &old_mean, &mean, momentum)?, moved(e, &old_var, &var, momentum)?))
        }
    };
    Ok(Trained { y, mean, rstd, running })
}

/// `batch_norm` in evaluation: by the running statistics. With three results, those of the batch are empty.
pub(super) fn batch_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let wide = e.widen(&x)?;
    let training = b.has("training") && b.bool("training")?;
    let stats = if b.has("running_mean") {
        e.opt_tensor(b, "running_mean")?.zip(e.opt_tensor(b, "running_var")?)
    } else {
        None
    };
    let eps = b.float("eps")?;
    let (y, saved) = match (training, stats) {
        (false, Some((mean, var))) => {
            let y = by_statistics(e, b, &wide, (&mean, &var), eps)?;
            (e.to_dtype(&y, x.dtype)?, None)
        }
        (_, None) => {
            let kept = kept_dtype(e, b, &x)?;
            let t = train(e, &wide, None, 0.0, (eps, kept))?;
            (scaled(e, b, t.y, &x)?, Some([t.mean, t.rstd]))
        }
        (true, Some(_)) => {
            return Err(Error::unsupported("batch norm in training changes its running statistics in place"));
        }
    };
    let mut out = vec![Some(y)];
    for k in 1..b.node.results.len() {
        let (dtype, shape) = e.result(b, k)?;
        out.push(Some(match &saved {
            Some([mean, rstd]) if shape.first() != Some(&Expr::Int(0)) => {
                e.to_dtype(if k == 1 { mean } else { rstd }, dtype)?
            }
            _ => e.full(&shape, dtype, Arg::Int(0))?,
        }));
    }
    Ok(out)
}

fn scaled(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: V, x: &V) -> Result<V, Error> {
    let weight = e.opt_tensor(b, "weight")?.map(|w| e.along(&w, 1, x.rank())).transpose()?;
    let bias = e.opt_tensor(b, "bias")?.map(|w| e.along(&w, 1, x.rank())).transpose()?;
    let y = affine(e, y, weight.as_ref(), bias.as_ref())?;
    e.to_dtype(&y, x.dtype)
}

/// `_native_batch_norm_legit_functional`: result, mean, rstd, and the running statistics as they are afterwards;
/// `_batch_norm_with_update_functional`, which is always in training and keeps nothing more for its gradient, but says
/// so.
pub(super) fn batch_norm_functional(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let wide = e.widen(&x)?;
    let (mean, var) = (e.tensor(b, "running_mean")?, e.tensor(b, "running_var")?);
    let eps = b.float("eps")?;
    if b.has("training") && !b.bool("training")? {
        let y = by_statistics(e, b, &wide, (&mean, &var), eps)?;
        let y = e.to_dtype(&y, x.dtype)?;
        let (dtype, shape) = e.result(b, 1)?;
        let empty = e.full(&shape, dtype, Arg::Int(0))?;
        return Ok(vec![Some(y), Some(empty.clone()), Some(empty), Some(mean), Some(var)]);
    }
    let kept = kept_dtype(e, b, &x)?;
    let t = train(e, &wide, Some((mean, var)), b.float("momentum")?, (eps, kept))?;
    let y = scaled(e, b, t.y, &x)?;
    let (new_mean, new_var) = t.running.unzip();
    let mut out = vec![Some(y)];
    for (k, stat) in [t.mean, t.rstd].iter().enumerate() {
        let (dtype, _) = e.result(b, k + 1)?;
        out.push(Some(e.to_dtype(stat, dtype)?));
    }
    if b.node.results.len() == 6 {
        let (dtype, shape) = e.result(b, 3)?;
        out.push(Some(e.full(&shape, dtype, Arg::Int(0))?));
    }
    out.extend([new_mean, new_var]);
    Ok(out)
}
