//! Operators of one tensor, activations included.

use super::{Operand, arg_at, emit};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_aten::promote::real_of;
use m2m_mlir::{CmpF, Value};
use m2m_record::{Arg, DType, Node};

/// The arithmetic of one element.
pub type Unary = for<'b, 'c> fn(&Scalars<'b, 'c>, Value<'c>, &Bound) -> Result<Value<'c>>;

/// The operator's first argument.
fn input<'c>(cx: &mut Cx<'c>, bound: &Bound) -> Result<Tensor<'c>> {
    match arg_at(bound, 0)? {
        Arg::Value(name) => cx.tensor(name),
        other => Err(Error::Graph(format!("{}: expected a tensor, found {other:?}", bound.op()))),
    }
}

/// Lowers a unary operator: numbers compute in their own type, integers in the result's where that is float, and bools
/// in the result's where that is a number.
pub fn lower<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, body: Unary) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let input = input(cx, bound)?;
    let is_real = !input.dtype.is_complex() && !result.dtype.is_complex();
    let is_widened = is_real && (result.dtype.is_float() && !input.dtype.is_float() || input.dtype == DType::Bool);
    let common = if is_widened { result.dtype } else { input.dtype };
    // What is real of a complex number is of the type of its parts.
    let computed = crate::linalg::scalar::compute_dtype(common);
    let body_dtype = if result.dtype.is_complex() { computed } else { real_of(computed) };
    let t = emit(cx, result, &[Operand::Tensor(input)], common, body_dtype, |s, v| body(s, v[0], bound))?;
    Ok(vec![Val::Tensor(t)])
}

/// Lowers a predicate: the result is bool.
pub fn lower_predicate<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, body: Unary) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let input = input(cx, bound)?;
    let common = input.dtype;
    let t = emit(cx, result, &[Operand::Tensor(input)], common, DType::Bool, |s, v| body(s, v[0], bound))?;
    Ok(vec![Val::Tensor(t)])
}

/// Operations of the math dialect that exist for floats, and of complex numbers what stands for them.
macro_rules! float_math {
    ($($name:ident $op:literal),* $(,)?) => {
        $(#[doc = concat!("`", $op, "`")]
        pub fn $name<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
            s.math($op, x)
        })*
    };
}

float_math! {
    exp "math.exp", exp2 "math.exp2", expm1 "math.expm1", log "math.log", log2 "math.log2", log10 "math.log10",
    log1p "math.log1p", sin "math.sin", cos "math.cos", tan "math.tan", asin "math.asin", acos "math.acos",
    atan "math.atan", sinh "math.sinh", cosh "math.cosh", asinh "math.asinh", acosh "math.acosh", atanh "math.atanh",
    tanh "math.tanh", sqrt "math.sqrt", erf "math.erf", erfc "math.erfc",
}

/// Rounding of floats; integers are whole already.
macro_rules! rounding {
    ($($name:ident $op:literal),* $(,)?) => {
        $(#[doc = concat!("`", $op, "`; the identity of integers")]
        pub fn $name<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
            if s.is_float() { Ok(s.b.unary($op, x)?) } else { Ok(x) }
        })*
    };
}

rounding! { floor "math.floor", ceil "math.ceil", trunc "math.trunc", round "math.roundeven" }

/// The element as it is: `clone`, `_to_copy`.
pub fn identity<'c>(_: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(x)
}

/// `|x|`
pub fn abs<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(if s.is_complex() {
        s.magnitude(x)?
    } else if s.is_float() {
        s.b.unary("math.absf", x)?
    } else if s.is_signed() {
        s.b.unary("math.absi", x)?
    } else {
        x
    })
}

/// `-x`
pub fn neg<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    if s.is_float() { Ok(s.b.negf(x)?) } else { s.sub(s.int(0)?, x) }
}

/// `1 / x`
pub fn reciprocal<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.div(s.number(1.0)?, x)
}

/// `1 / sqrt(x)`
pub fn rsqrt<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.div(s.number(1.0)?, s.math("math.sqrt", x)?)
}

/// `1 / (1 + exp(-x))`
pub fn sigmoid<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let one = s.number(1.0)?;
    let minus = if s.is_complex() { s.sub(s.number(0.0)?, x)? } else { s.b.negf(x)? };
    let e = s.math("math.exp", minus)?;
    s.div(one, s.add(one, e)?)
}

/// `x` where it is not below 0, else 0; keeps NaN and -0.
pub fn relu<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let zero = s.int(0)?;
    Ok(s.b.select(s.compare(Compare::Lt, x, zero)?, zero, x)?)
}

/// The complex conjugate; a real number itself.
pub fn conj<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.conj(x)
}

/// `(x > 0) - (x < 0)`, in the element's type; `x / |x|` of complex numbers, 0 of 0.
pub fn sign<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    if s.is_complex() {
        let (size, part) = (s.magnitude(x)?, s.of_parts());
        let zero = part.number(0.0)?;
        let is_zero = part.compare(Compare::Eq, size, zero)?;
        let divisor = s.b.select(is_zero, part.number(1.0)?, size)?;
        let (re, im) = s.parts(x)?;
        return s.join(part.div(re, divisor)?, part.div(im, divisor)?);
    }
    if s.dtype == DType::Bool {
        return Ok(x);
    }
    let (zero, one) = (s.int(0)?, s.int(1)?);
    let positive = s.b.select(s.compare(Compare::Gt, x, zero)?, one, zero)?;
    if !s.is_float() && !s.is_signed() {
        return Ok(positive);
    }
    let negative = s.b.select(s.compare(Compare::Lt, x, zero)?, one, zero)?;
    s.sub(positive, negative)
}

/// `x == 0`, as bool.
pub fn logical_not<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(s.b.xori(s.truth(x)?, s.b.const_bool(true)?)?)
}

/// `~x`; of bools, not.
pub fn bitwise_not<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let ones = if s.dtype == DType::Bool { s.int(1)? } else { s.int(-1)? };
    Ok(s.b.xori(x, ones)?)
}

/// `x != x`
pub fn isnan<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.is_nan(x)
}

/// `|x| == inf`
pub fn isinf<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    if s.is_complex() {
        let ((re, im), part) = (s.parts(x)?, s.of_parts());
        let infinity = part.number(f64::INFINITY)?;
        let is_infinite = |x| s.b.cmpf(CmpF::Oeq, s.b.unary("math.absf", x)?, infinity);
        return Ok(s.b.ori(is_infinite(re)?, is_infinite(im)?)?);
    }
    if !s.is_float() {
        return Ok(s.b.const_bool(false)?);
    }
    Ok(s.b.cmpf(CmpF::Oeq, s.b.unary("math.absf", x)?, s.number(f64::INFINITY)?)?)
}

/// `|x| < inf`
pub fn isfinite<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    if s.is_complex() {
        let ((re, im), part) = (s.parts(x)?, s.of_parts());
        let infinity = part.number(f64::INFINITY)?;
        let is_finite = |x| s.b.cmpf(CmpF::Olt, s.b.unary("math.absf", x)?, infinity);
        return Ok(s.b.andi(is_finite(re)?, is_finite(im)?)?);
    }
    if !s.is_float() {
        return Ok(s.b.const_bool(true)?);
    }
    Ok(s.b.cmpf(CmpF::Olt, s.b.unary("math.absf", x)?, s.number(f64::INFINITY)?)?)
}

/// `x / 2 * (1 + erf(x / sqrt 2))`, or with `approximate="tanh"`
/// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`.
pub fn gelu<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let b = s.b;
    let (half, one) = (s.number(0.5)?, s.number(1.0)?);
    let inner = match bound.str("approximate")? {
        "none" => b.unary("math.erf", b.mulf(x, s.number(std::f64::consts::FRAC_1_SQRT_2)?)?)?,
        "tanh" => {
            let cube = b.mulf(b.mulf(x, x)?, x)?;
            let sum = b.addf(x, b.mulf(s.number(0.044715)?, cube)?)?;
            let beta = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
            b.unary("math.tanh", b.mulf(s.number(beta)?, sum)?)?
        }
        other => return Err(Error::unsupported(format!("gelu with approximate={other:?}; none and tanh are known"))),
    };
    Ok(b.mulf(b.mulf(half, x)?, b.addf(one, inner)?)?)
}

/// `x / (1 + exp(-x))`
pub fn silu<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let minus = if s.is_complex() { s.sub(s.number(0.0)?, x)? } else { s.b.negf(x)? };
    let e = s.math("math.exp", minus)?;
    s.div(x, s.add(s.number(1.0)?, e)?)
}

/// `min(max(x + 3, 0), 6)`
fn relu6_of_shifted<'c>(s: &Scalars<'_, 'c>, x: Value<'c>) -> Result<Value<'c>> {
    let shifted = s.add(x, s.number(3.0)?)?;
    s.minimum(s.maximum(shifted, s.number(0.0)?)?, s.number(6.0)?)
}

/// `x * min(max(x + 3, 0), 6) / 6`
pub fn hardswish<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.div(s.mul(x, relu6_of_shifted(s, x)?)?, s.number(6.0)?)
}

/// `min(max(x + 3, 0), 6) / 6`
pub fn hardsigmoid<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.div(relu6_of_shifted(s, x)?, s.number(6.0)?)
}

/// `x` kept between two bounds; NaN stays, and the upper bound wins over the lower.
fn clamp_to<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, low: &Arg, high: &Arg) -> Result<Value<'c>> {
    let mut x = x;
    if *low != Arg::Null {
        let low = s.literal(low)?;
        x = s.b.select(s.compare(Compare::Lt, x, low)?, low, x)?;
    }
    if *high != Arg::Null {
        let high = s.literal(high)?;
        x = s.b.select(s.compare(Compare::Gt, x, high)?, high, x)?;
    }
    Ok(x)
}

/// `min(max(x, min), max)`
pub fn clamp<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let (low, high) = (bound.arg("min")?, bound.arg("max")?);
    let is_nan = |bound: &Arg| matches!(bound, Arg::Float(x) if x.0.is_nan());
    // A bound that is NaN makes everything NaN.
    if is_nan(low) || is_nan(high) { s.number(f64::NAN) } else { clamp_to(s, x, low, high) }
}

/// `min(max(x, min_val), max_val)`
pub fn hardtanh<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    clamp_to(s, x, bound.arg("min_val")?, bound.arg("max_val")?)
}

/// `min(max(x, 0), 6)`
pub fn relu6<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    clamp_to(s, x, &Arg::Int(0), &Arg::Int(6))
}

/// `x` above 0, `negative_slope * x` elsewhere.
pub fn leaky_relu<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let scaled = s.mul(x, s.literal(bound.arg("negative_slope")?)?)?;
    Ok(s.b.select(s.compare(Compare::Gt, x, s.int(0)?)?, x, scaled)?)
}

/// `scale * x` above 0, `scale * alpha * (exp(input_scale * x) - 1)` elsewhere.
pub fn elu<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let scale = s.literal(bound.arg("scale")?)?;
    let alpha = s.mul(s.literal(bound.arg("alpha")?)?, scale)?;
    let inner = s.b.unary("math.expm1", s.mul(x, s.literal(bound.arg("input_scale")?)?)?)?;
    let below = s.mul(inner, alpha)?;
    Ok(s.b.select(s.compare(Compare::Le, x, s.number(0.0)?)?, below, s.mul(x, scale)?)?)
}

/// `log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` is above `threshold`.
pub fn softplus<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let beta = s.literal(bound.arg("beta")?)?;
    let scaled = s.mul(x, beta)?;
    let soft = s.div(s.b.unary("math.log1p", s.b.unary("math.exp", scaled)?)?, beta)?;
    Ok(s.b.select(s.compare(Compare::Gt, scaled, s.literal(bound.arg("threshold")?)?)?, x, soft)?)
}

/// `x * tanh(log(1 + exp(x)))`
pub fn mish<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let soft = s.b.unary("math.log1p", s.b.unary("math.exp", x)?)?;
    s.mul(x, s.b.unary("math.tanh", soft)?)
}

/// `min(x, 0) - log(1 + exp(-|x|))`
pub fn log_sigmoid<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let e = s.b.unary("math.exp", s.b.negf(s.b.unary("math.absf", x)?)?)?;
    s.sub(s.minimum(x, s.number(0.0)?)?, s.b.unary("math.log1p", e)?)
}

/// 0 within `lambd` of 0, `x` elsewhere; NaN stays.
pub fn hardshrink<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let lambda = s.literal(bound.arg("lambd")?)?;
    let inside = s.compare(Compare::Le, s.b.unary("math.absf", x)?, lambda)?;
    Ok(s.b.select(inside, s.number(0.0)?, x)?)
}

/// `x - lambd` above `lambd`, `x + lambd` below `-lambd`, `0 * x` between.
pub fn softshrink<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let lambda = s.literal(bound.arg("lambd")?)?;
    let low = s.select_below(x, s.b.negf(lambda)?, s.add(x, lambda)?, s.mul(x, s.number(0.0)?)?)?;
    Ok(s.b.select(s.compare(Compare::Gt, x, lambda)?, s.sub(x, lambda)?, low)?)
}

/// `value` where `x <= threshold`, `x` elsewhere.
pub fn threshold<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let limit = s.literal(bound.arg("threshold")?)?;
    Ok(s.b.select(s.compare(Compare::Le, x, limit)?, s.literal(bound.arg("value")?)?, x)?)
}
