//! Elementwise operators in terms of simpler ones, and operators that are others by another name.

use super::renames;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::promote::{accumulate_dtype, real_of};
use crate::value::{O, V};
use m2m_record::{Arg, DType, Float, Node};

/// The same call by another name: the arguments are in the same places.
pub(super) fn rename(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let op = renames::renamed(b.op()).ok_or_else(|| Error::NoSchema { op: b.op().to_owned() })?;
    let mut args: Vec<Arg> = Vec::new();
    let mut kwargs = m2m_record::Kwargs::new();
    for arg in &b.schema.args {
        let value = b.arg(arg.name)?.clone();
        if arg.is_kwarg_only {
            kwargs.insert(arg.name.to_owned(), value);
        } else {
            args.push(value);
        }
    }
    let node = Node {
        op: op.to_owned(),
        args,
        kwargs,
        results: b.node.results.iter().map(|r| m2m_record::TypedValue { value: None, ..r.clone() }).collect(),
        returns: b.node.returns.clone(),
        ..Node::default()
    };
    e.expand(&node)
}

/// `round(x, decimals)`: `round(x · 10^d) / 10^d`, for negative ones `round(x / 10^-d) · 10^-d`, halves to even.
pub(super) fn round(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, decimals) = (e.tensor(b, "self")?, b.int("decimals")?);
    if decimals == 0 || !x.dtype.is_float() {
        return one(e.unary("round", &x)?);
    }
    let (dtype, scale) = (x.dtype, O::N(Arg::from(10f64.powi(decimals.unsigned_abs().min(400) as i32))));
    let x = compute(e, &x, dtype)?;
    let y = if decimals > 0 { e.mul(&x, scale.clone())? } else { e.div(&x, scale.clone())? };
    let y = e.unary("round", &y)?;
    let y = if decimals > 0 { e.div(&y, scale)? } else { e.mul(&y, scale)? };
    one(e.to_dtype(&y, dtype)?)
}

/// `x` in the dtype in which a result of `dtype` is computed, first rounded to that.
fn compute(e: &mut Expander<'_, '_>, x: &V, dtype: DType) -> Result<V, Error> {
    let x = e.to_dtype(x, dtype)?;
    e.to_dtype(&x, accumulate_dtype(dtype))
}

/// An operand in the dtype in which the result is computed; numbers stay numbers.
fn compute_operand(e: &mut Expander<'_, '_>, x: &O, dtype: DType) -> Result<O, Error> {
    match x {
        O::T(v) => compute(e, v, dtype).map(O::T),
        n => Ok(n.clone()),
    }
}

/// `rsub`: `other - alpha · self`
pub(super) fn rsub(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let x = e.tensor(b, "self")?;
    let x = compute(e, &x, dtype)?;
    let other = e.operand(b, "other")?;
    let other = compute_operand(e, &other, dtype)?;
    let alpha = b.scalar("alpha")?.clone();
    let x = if is_one(&alpha) { x } else { e.mul(&x, &alpha)? };
    let y = match &other {
        O::T(v) => e.sub(v, &x)?,
        n => {
            let minus = e.unary("neg", &x)?;
            e.add(&minus, n)?
        }
    };
    one(e.to_dtype(&y, dtype)?)
}

fn is_one(n: &Arg) -> bool {
    matches!(n, Arg::Int(1)) || matches!(n, Arg::Float(x) if x.0 == 1.0)
}

/// `addcmul`: `self + value · t1 · t2`; `addcdiv`: `self + value · t1 / t2`
pub(super) fn addc(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let x = e.tensor(b, "self")?;
    let (t, u) = (e.tensor(b, "tensor1")?, e.tensor(b, "tensor2")?);
    let (x, t, u) = (compute(e, &x, dtype)?, compute(e, &t, dtype)?, compute(e, &u, dtype)?);
    let value = b.scalar("value")?.clone();
    let t = if is_one(&value) { t } else { e.mul(&t, &value)? };
    let t = if b.op().contains("addcdiv") { e.div(&t, &u)? } else { e.mul(&t, &u)? };
    let y = e.add(&x, &t)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `lerp`: `a + w·(b-a)` for `|w| < 0.5`, else `b - (b-a)·(1-w)`, as PyTorch computes it.
pub(super) fn lerp(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let (a, z) = (e.tensor(b, "self")?, e.tensor(b, "end")?);
    let (a, z) = (compute(e, &a, dtype)?, compute(e, &z, dtype)?);
    let span = e.sub(&z, &a)?;
    let w = e.operand(b, "weight")?;
    let y = match &compute_operand(e, &w, dtype)? {
        O::N(Arg::Float(w)) if w.0.abs() >= 0.5 => {
            let back = e.mul(&span, 1.0 - w.0)?;
            e.sub(&z, &back)?
        }
        O::T(w) => {
            let step = e.mul(w, &span)?;
            let up = e.add(&a, &step)?;
            let rest = e.unary("neg", w)?;
            let rest = e.add(&rest, 1.0)?;
            let back = e.mul(&span, &rest)?;
            let down = e.sub(&z, &back)?;
            let size = e.unary("abs", w)?;
            let is_small = e.compare("lt", &size, 0.5)?;
            e.select_where(&is_small, &up, &down)?
        }
        n => {
            let step = e.mul(&span, n)?;
            e.add(&a, &step)?
        }
    };
    one(e.to_dtype(&y, dtype)?)
}

/// `square`: `x·x`
pub(super) fn square(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let y = e.binary("mul", &x, &x)?;
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `where` with numbers: they take the dtype of the result.
pub(super) fn where_scalar(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let c = e.tensor(b, "condition")?;
    let (dtype, _) = e.result(b, 0)?;
    let (x, y) = (e.operand(b, "self")?, e.operand(b, "other")?);
    let (x, y) = (e.lift(&x, dtype)?, e.lift(&y, dtype)?);
    let (x, y) = (e.to_dtype(&x, dtype)?, e.to_dtype(&y, dtype)?);
    one(e.select_where(&c, &x, &y)?)
}

/// `clamp_min`, `clamp_max`: `clamp` with one bound; with a tensor bound `maximum`, `minimum`.
pub(super) fn clamp_one(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let name = if b.has("min") { "min" } else { "max" };
    match e.operand(b, name)? {
        O::T(bound) => one(e.binary_default(if name == "min" { "maximum" } else { "minimum" }, &x, &bound)?),
        O::N(n) => {
            let args = if name == "min" { vec![x.arg(), n, Arg::Null] } else { vec![x.arg(), Arg::Null, n] };
            one(e.call1("aten.clamp.default", args, &[], dtype, &shape)?)
        }
    }
}

/// `celu`: `max(0, x) + min(0, a·(exp(x/a) - 1))`; `selu` and `elu` are the target's `elu` with their constants.
pub(super) fn celu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let alpha = b.float("alpha")?;
    let args = vec![x.arg(), Arg::from(alpha), Arg::from(1.0), Arg::from(1.0 / alpha)];
    one(e.call1("aten.elu.default", args, &[], dtype, &shape)?)
}

/// `selu`: `elu` with `alpha` 1.6732632423543772 and `scale` 1.0507009873554805.
pub(super) fn selu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let args = vec![x.arg(), Arg::from(1.673_263_242_354_377_2), Arg::from(1.050_700_987_355_480_5), Arg::from(1.0)];
    one(e.call1("aten.elu.default", args, &[], dtype, &shape)?)
}

/// `prelu`: `x > 0 ? x : w·x`, one weight a channel (dimension 1) or one for all.
pub(super) fn prelu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, w) = (e.tensor(b, "self")?, e.tensor(b, "weight")?);
    let (dtype, _) = e.result(b, 0)?;
    let (x, mut w) = (compute(e, &x, dtype)?, compute(e, &w, dtype)?);
    if w.rank() == 1 && x.rank() >= 2 {
        w = e.along(&w, 1, x.rank())?;
    } else if w.rank() <= 1 {
        w = e.view(&w, &vec![m2m_tensor::Expr::Int(1); x.rank()])?;
    }
    let scaled = e.mul(&w, &x)?;
    let is_positive = e.compare("gt", &x, 0i64)?;
    let y = e.select_where(&is_positive, &x, &scaled)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `threshold`: `x <= t ? v : x`. Its complement would let NaN through as the value.
pub(super) fn threshold(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (t, v) = (b.scalar("threshold")?.clone(), b.scalar("value")?.clone());
    let is_low = e.compare("le", &x, &t)?;
    let v = e.full(&[], x.dtype, v)?;
    one(e.select_where(&is_low, &v, &x)?)
}

/// `hardshrink`: `|x| <= l ? 0 : x`; `softshrink`: `x > l ? x-l : x < -l ? x+l : x·0`, NaN staying NaN.
pub(super) fn shrink(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let limit = b.float("lambd")?;
    let low = e.compare("ge", &x, -limit)?;
    let high = e.compare("le", &x, limit)?;
    let is_inside = e.binary_default("logical_and", &low, &high)?;
    let zero = e.full(&[], x.dtype, Arg::Int(0))?;
    if b.op() == "aten.hardshrink.default" {
        return one(e.select_where(&is_inside, &zero, &x)?);
    }
    let (less, more) = (e.sub(&x, limit)?, e.add(&x, limit)?);
    let is_high = e.compare("gt", &x, limit)?;
    let y = e.select_where(&is_high, &less, &more)?;
    one(e.select_where(&is_inside, &zero, &y)?)
}

/// `frac`: `x - trunc(x)`
pub(super) fn frac(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let whole = e.unary("trunc", &x)?;
    one(e.sub(&x, &whole)?)
}

/// `logit(eps)`: `log(x / (1-x))`, `x` first clamped to `[eps, 1-eps]`. Every step rounds, of half types too, as in
/// PyTorch's kernel.
pub(super) fn logit(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let mut x = e.to_dtype(&x, dtype)?;
    if let Some(eps) = b.float_or("eps")? {
        let args = vec![x.arg(), Arg::from(eps), Arg::from(1.0 - eps)];
        x = e.call1("aten.clamp.default", args, &[], x.dtype, &x.shape)?;
    }
    let rest = e.unary("neg", &x)?;
    let rest = e.add(&rest, 1.0)?;
    let odds = e.div(&x, &rest)?;
    let y = e.unary_float("log", &odds)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `log_sigmoid_forward`: `log_sigmoid(x)`, and `exp(-|x|)` for its gradient.
pub(super) fn log_sigmoid_forward(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 1)?;
    let y = e.unary("log_sigmoid", &x)?;
    if crate::infer::numel(&shape) == m2m_tensor::Expr::Int(0) {
        return Ok(vec![Some(y), Some(e.full(&shape, dtype, Arg::Int(0))?)]);
    }
    let wide = e.widen(&x)?;
    let size = e.unary("abs", &wide)?;
    let size = e.unary("neg", &size)?;
    let buffer = e.unary_float("exp", &size)?;
    Ok(vec![Some(y), Some(e.to_dtype(&buffer, dtype)?)])
}

/// `xlogy`: `x·log(y)`, 0 where `x` is 0 and `y` is no NaN.
pub(super) fn xlogy(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let (x, y) = (e.operand(b, "self")?, e.operand(b, "other")?);
    let (x, y) = (e.lift(&x, dtype)?, e.lift(&y, dtype)?);
    let (x, y) = (compute(e, &x, dtype)?, compute(e, &y, dtype)?);
    let log = e.unary_float("log", &y)?;
    let product = e.mul(&x, &log)?;
    let is_zero = e.compare("eq", &x, 0i64)?;
    let zero = e.full(&[], product.dtype, Arg::Int(0))?;
    let z = e.select_where(&is_zero, &zero, &product)?;
    let is_nan = e.test("isnan", &y)?;
    let z = e.select_where(&is_nan, &y, &z)?;
    one(e.to_dtype(&z, dtype)?)
}

/// `logaddexp`: `max(a,b) + log1p(exp(-|a-b|))`; equal infinities give themselves.
pub(super) fn logaddexp(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (x, y) = (compute(e, &x, dtype)?, compute(e, &y, dtype)?);
    if dtype.is_complex() {
        let z = complex_logaddexp(e, &x, &y)?;
        return one(e.to_dtype(&z, dtype)?);
    }
    let high = e.binary_default("maximum", &x, &y)?;
    let gap = e.sub(&x, &y)?;
    let gap = e.unary("abs", &gap)?;
    let gap = e.unary("neg", &gap)?;
    let small = e.unary_float("exp", &gap)?;
    let more = e.unary_float("log1p", &small)?;
    let sum = e.add(&high, &more)?;
    let is_infinite = e.test("isinf", &x)?;
    let is_same = e.compare("eq", &x, &y)?;
    let keep = e.binary_default("logical_and", &is_infinite, &is_same)?;
    let z = e.select_where(&keep, &x, &sum)?;
    one(e.to_dtype(&z, dtype)?)
}

/// `b + log(1 + exp(a - b))`, `b` being the one of the larger real part; two real parts of `-inf` give `a`, of `inf` the
/// logarithm of the sum of exponentials; a NaN gives NaN in both parts.
fn complex_logaddexp(e: &mut Expander<'_, '_>, x: &V, y: &V) -> Result<V, Error> {
    let (a, b) = (e.to_dtype(x, real_of(x.dtype))?, e.to_dtype(y, real_of(y.dtype))?);
    let is_less = e.compare("lt", &a, &b)?;
    let (low, high) = (e.select_where(&is_less, x, y)?, e.select_where(&is_less, y, x)?);
    let gap = e.sub(&low, &high)?;
    let small = e.unary("exp", &gap)?;
    let more = e.unary("log1p", &small)?;
    let mut z = e.add(&more, &high)?;
    let (sum, other) = (e.unary("exp", &low)?, e.unary("exp", &high)?);
    let sum = e.add(&sum, &other)?;
    let whole = e.unary("log", &sum)?;
    let is_same = e.compare("eq", &a, &b)?;
    for (value, end) in [(f64::INFINITY, &whole), (f64::NEG_INFINITY, &low)] {
        let is_end = e.compare("eq", &a, value)?;
        let is_end = e.binary_default("logical_and", &is_end, &is_same)?;
        z = e.select_where(&is_end, end, &z)?;
    }
    let (of_x, of_y) = (e.test("isnan", x)?, e.test("isnan", y)?);
    let is_nan = e.binary_default("logical_or", &of_x, &of_y)?;
    let nan = Arg::Complex(Float(f64::NAN), Float(f64::NAN));
    let nan = e.full(&[], z.dtype, nan)?;
    e.select_where(&is_nan, &nan, &z)
}

/// `fmax`, `fmin`: `maximum`, `minimum`, a NaN giving way to the other operand.
pub(super) fn fextreme(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let op = if b.op() == "aten.fmax.default" { "maximum" } else { "minimum" };
    let (dtype, _) = e.result(b, 0)?;
    let (x, y) = (e.to_dtype(&x, dtype)?, e.to_dtype(&y, dtype)?);
    let z = e.binary_default(op, &x, &y)?;
    if !dtype.is_float() {
        return one(z);
    }
    let (no_x, no_y) = (e.test("isnan", &x)?, e.test("isnan", &y)?);
    let z = e.select_where(&no_y, &x, &z)?;
    one(e.select_where(&no_x, &y, &z)?)
}

/// `nan_to_num`: NaN becomes `nan` (0), infinities become `posinf`, `neginf` (the largest finite values).
pub(super) fn nan_to_num(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let limit = match x.dtype {
        DType::F16 => 65504.0,
        DType::BF16 => 3.389_531_389_251_535_5e38,
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        d if d.is_integer() || d == DType::Bool => {
            e.prove("identity", format!("{} has no NaN and no infinity", x.name));
            return one(x);
        }
        d => return Err(Error::unsupported(format!("nan_to_num of {d}"))),
    };
    let nan = b.float_or("nan")?.unwrap_or(0.0);
    let (high, low) = (b.float_or("posinf")?.unwrap_or(limit), b.float_or("neginf")?.unwrap_or(-limit));
    let mut y = x.clone();
    for (test, value) in [("isnan", nan), ("", high), ("-", low)] {
        let mask = match test {
            "isnan" => e.test("isnan", &x)?,
            "-" => e.compare("eq", &x, f64::NEG_INFINITY)?,
            _ => e.compare("eq", &x, f64::INFINITY)?,
        };
        let value = e.full(&[], x.dtype, Arg::from(value))?;
        y = e.select_where(&mask, &value, &y)?;
    }
    one(y)
}

/// `hypot`: `sqrt(a² + b²)`, scaled by the larger so that squares do not overflow; an infinity wins over NaN.
pub(super) fn hypot(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (x, y) = (compute(e, &x, dtype)?, compute(e, &y, dtype)?);
    let (x, y) = (e.unary("abs", &x)?, e.unary("abs", &y)?);
    let (high, low) = (e.binary_default("maximum", &x, &y)?, e.binary_default("minimum", &x, &y)?);
    let is_zero = e.compare("eq", &high, 0i64)?;
    let unit = e.full(&[], high.dtype, Arg::Int(1))?;
    let divisor = e.select_where(&is_zero, &unit, &high)?;
    let ratio = e.div(&low, &divisor)?;
    let square = e.mul(&ratio, &ratio)?;
    let root = e.add(&square, 1.0)?;
    let root = e.unary_float("sqrt", &root)?;
    let z = e.mul(&high, &root)?;
    let (inf_x, inf_y) = (e.test("isinf", &x)?, e.test("isinf", &y)?);
    let is_infinite = e.binary_default("logical_or", &inf_x, &inf_y)?;
    let infinity = e.full(&[], z.dtype, Arg::from(f64::INFINITY))?;
    let z = e.select_where(&is_infinite, &infinity, &z)?;
    one(e.to_dtype(&z, dtype)?)
}

/// `ldexp`: `x · 2^n`
pub(super) fn ldexp(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let (x, n) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let n = e.to_dtype(&n, accumulate_dtype(dtype))?;
    let power = e.unary_float("exp2", &n)?;
    let y = e.mul(&x, &power)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `copysign`: the size of `a` with the sign of `b`; of `-0.0` too, whose reciprocal is negative.
pub(super) fn copysign(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let x = e.tensor(b, "self")?;
    let x = e.to_dtype(&x, dtype)?;
    let size = e.unary("abs", &x)?;
    let minus = e.unary("neg", &size)?;
    if let O::N(n) = e.operand(b, "other")? {
        let is_negative = match n {
            Arg::Float(f) => f.0.is_sign_negative(),
            Arg::Int(n) => n < 0,
            _ => false,
        };
        return one(if is_negative { minus } else { size });
    }
    let y = e.tensor(b, "other")?;
    if y.dtype.is_float() {
        let inverse = e.unary_float("reciprocal", &y)?;
        let is_zero = e.compare("eq", &y, 0i64)?;
        let sign = e.select_where(&is_zero, &inverse, &y)?;
        let is_negative = e.compare("lt", &sign, 0i64)?;
        return one(e.select_where(&is_negative, &minus, &size)?);
    }
    let is_negative = e.compare("lt", &y, 0i64)?;
    one(e.select_where(&is_negative, &minus, &size)?)
}

/// `copy(self, src)`: `src` in the dtype of `self`, stretched to its shape.
pub(super) fn copy(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let src = e.tensor(b, "src")?;
    let src = e.to_dtype(&src, x.dtype)?;
    let y = e.expand_to(&src, &x.shape)?;
    e.prove("identity", format!("every element is overwritten by {}", y.name));
    one(y)
}

/// `isfinite` for a target without it: `|x| < inf`, which NaN is not; integers are finite.
pub(super) fn is_finite(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if !x.dtype.is_float() {
        return one(e.full(&x.shape, DType::Bool, true)?);
    }
    let size = e.unary("abs", &x)?;
    one(e.compare("lt", &size, f64::INFINITY)?)
}

/// `bitwise_and`, `bitwise_or`, `bitwise_xor` and shifts of a number and a tensor.
pub(super) fn of_number(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (n, x) = (e.operand(b, "self")?, e.tensor(b, "other")?);
    let (dtype, _) = e.result(b, 0)?;
    let n = e.lift(&n, dtype)?;
    let op = b.op().replace(".Scalar_Tensor", ".Tensor");
    one(e.call1(&op, vec![n.arg(), x.arg()], &[], dtype, &x.shape)?)
}

/// `_add_relu`: `max(self + alpha·other, 0)`.
pub(super) fn add_relu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.operand(b, "other")?);
    let alpha = b.scalar("alpha")?.clone();
    let y = if alpha == Arg::Int(1) {
        y
    } else {
        let y = e.lift(&y, x.dtype)?;
        O::T(e.mul(&y, &alpha)?)
    };
    let sum = e.add(&x, y)?;
    one(e.unary("relu", &sum)?)
}
