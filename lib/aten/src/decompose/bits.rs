//! What depends on how a float is written: its sign, its exponent, its infinities.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{O, V};
use m2m_record::{Arg, DType};

/// `signbit`: whether the sign is set, that of -0.0 and of NaN too.
pub(super) fn signbit(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if !x.dtype.is_float() {
        return one(if x.dtype == DType::Bool {
            e.full(&x.shape, DType::Bool, false)?
        } else {
            e.compare("lt", &x, 0i64)?
        });
    }
    let ones = e.full(&x.shape, x.dtype, Arg::Int(1))?;
    let signed = e.call1("aten.copysign.Tensor", vec![ones.arg(), x.arg()], &[], x.dtype, &x.shape)?;
    one(e.compare("lt", &signed, 0i64)?)
}

/// `isposinf`, `isneginf`; integers are neither.
pub(super) fn is_infinity(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if !x.dtype.is_float() {
        return one(e.full(&x.shape, DType::Bool, false)?);
    }
    let infinity = if b.op() == "aten.isposinf.default" { f64::INFINITY } else { f64::NEG_INFINITY };
    one(e.compare("eq", &x, infinity)?)
}

/// The exponent of the least double.
const LEAST_F64: f64 = -1074.0;

/// `frexp`: `x = m·2^n` with `1/2 <= |m| < 1`; of 0, infinities and NaN itself and 0.
pub(super) fn frexp(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 1)?;
    let wide = e.to_dtype(&x, DType::F64)?;
    let size = e.unary("abs", &wide)?;
    let (leading, _) = exponent(e, &size, LEAST_F64, 1023.0)?;
    let leading = e.add(&leading, 1.0)?;
    let (zero, none) = (e.compare("eq", &x, 0i64)?, e.test("isfinite", &x)?);
    let none = e.test("logical_not", &none)?;
    let is_whole = e.binary_default("logical_or", &zero, &none)?;
    let nothing = e.full(&[], DType::F64, Arg::from(0.0))?;
    let exponent = e.select_where(&is_whole, &nothing, &leading)?;
    // In two steps, as the inverse of the least number has no finite power of two.
    let half = e.mul(&exponent, -0.5)?;
    let first = e.unary("floor", &half)?;
    let rest = e.add(&exponent, &first)?;
    let rest = e.unary("neg", &rest)?;
    let mut mantissa = wide;
    for power in [first, rest] {
        let factor = e.unary_float("exp2", &power)?;
        mantissa = e.mul(&mantissa, &factor)?;
    }
    let (m, n) = (e.to_dtype(&mantissa, x.dtype)?, e.to_dtype(&exponent, dtype)?);
    Ok(vec![Some(m), Some(n)])
}

/// `float_power`: `x^y` in double precision, whatever the operands are.
pub(super) fn float_power(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (x, y) = (e.operand(b, "self")?, e.operand(b, "exponent")?);
    let mut args = Vec::new();
    for v in [&x, &y] {
        args.push(match v {
            O::T(v) => e.to_dtype(v, dtype)?.arg(),
            O::N(Arg::Int(n)) => Arg::from(*n as f64),
            O::N(n) => n.clone(),
        });
    }
    let op = match (&x, &y) {
        (O::T(_), O::T(_)) => "aten.pow.Tensor_Tensor",
        (O::T(_), _) => "aten.pow.Tensor_Scalar",
        (_, O::T(_)) => "aten.pow.Scalar",
        _ => return Err(Error::shape(b.op(), "no tensor")),
    };
    one(e.call1(op, args, &[], dtype, &shape)?)
}

/// How many bits of a float type follow the leading one, its least and largest exponents of numbers with all of them,
/// and its largest number.
fn layout(dtype: DType) -> Option<(i32, f64, f64, f64)> {
    Some(match dtype {
        DType::F16 => (10, -14.0, 15.0, 65504.0),
        DType::BF16 => (7, -126.0, 127.0, 3.389_531_389_251_535_5e38),
        DType::F32 => (23, -126.0, 127.0, f64::from(f32::MAX)),
        DType::F64 => (52, -1022.0, 1023.0, f64::MAX),
        _ => return None,
    })
}

/// The exponent of the leading bit of positive numbers, brought between `least` and `most`, and that power of two.
fn exponent(e: &mut Expander<'_, '_>, size: &V, least: f64, most: f64) -> Result<(V, V), Error> {
    let n = e.unary_float("log2", size)?;
    let n = e.unary("floor", &n)?;
    let args = vec![n.arg(), Arg::from(least), Arg::from(most)];
    let mut n = e.call1("aten.clamp.default", args, &[], n.dtype, &n.shape)?;
    // The logarithm may be off by one near a power of two.
    for (test, factor, step) in [("gt", 1.0, -1.0), ("le", 2.0, 1.0)] {
        let power = e.unary_float("exp2", &n)?;
        let power = e.mul(&power, factor)?;
        let is_off = e.compare(test, &power, size)?;
        let moved = e.add(&n, step)?;
        n = e.select_where(&is_off, &moved, &n)?;
    }
    let args = vec![n.arg(), Arg::from(least), Arg::from(most)];
    let n = e.call1("aten.clamp.default", args, &[], n.dtype, &n.shape)?;
    let power = e.unary_float("exp2", &n)?;
    Ok((n, power))
}

/// `nextafter(x, y)`: the number of the type next to `x` on the side of `y`; `y` where they are equal. Numbers are
/// `2^(n - bits)` apart from `2^n` on, and half of that before it.
pub(super) fn nextafter(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let Some((bits, least, most, largest)) = layout(dtype) else {
        return Err(Error::unsupported(format!("{} of {dtype}", b.op())));
    };
    let mut wide = Vec::new();
    for name in ["self", "other"] {
        let v = e.tensor(b, name)?;
        let v = e.to_dtype(&v, dtype)?;
        wide.push(e.to_dtype(&v, DType::F64)?);
    }
    let [x, y] = wide.as_slice() else { return Err(Error::shape(b.op(), "two tensors")) };
    let size = e.unary("abs", x)?;
    let (n, power) = exponent(e, &size, least, most)?;
    let step = e.mul(&power, f64::from(-bits).exp2())?;
    let half = e.mul(&step, 0.5)?;
    let (is_power, is_halved) = (e.compare("eq", &size, &power)?, e.compare("gt", &n, least)?);
    let is_halved = e.binary_default("logical_and", &is_power, &is_halved)?;
    let back = e.select_where(&is_halved, &half, &step)?;
    let (rises, is_positive) = (e.compare("gt", y, x)?, e.compare("gt", x, 0.0)?);
    let is_inward = e.binary_default("logical_xor", &rises, &is_positive)?;
    let (outer, inner) = (e.add(&size, &step)?, e.sub(&size, &back)?);
    let moved = e.select_where(&is_inward, &inner, &outer)?;
    let is_infinite = e.test("isinf", x)?;
    let largest = e.full(&[], DType::F64, Arg::from(largest))?;
    let moved = e.select_where(&is_infinite, &largest, &moved)?;
    let signed = |e: &mut Expander<'_, '_>, size: &V, like: &V| {
        let shape = crate::infer::broadcast("nextafter", &size.shape, &like.shape)?;
        e.call1("aten.copysign.Tensor", vec![size.arg(), like.arg()], &[], DType::F64, &shape)
    };
    let moved = signed(e, &moved, x)?;
    let smallest = e.full(&[], DType::F64, Arg::from((least - f64::from(bits)).exp2()))?;
    let from_zero = signed(e, &smallest, y)?;
    let is_zero = e.compare("eq", x, 0.0)?;
    let z = e.select_where(&is_zero, &from_zero, &moved)?;
    let is_same = e.compare("eq", x, y)?;
    let z = e.select_where(&is_same, y, &z)?;
    let sum = e.add(x, y)?;
    let (no_x, no_y) = (e.test("isnan", x)?, e.test("isnan", y)?);
    let is_nan = e.binary_default("logical_or", &no_x, &no_y)?;
    let z = e.select_where(&is_nan, &sum, &z)?;
    one(e.to_dtype(&z, dtype)?)
}
