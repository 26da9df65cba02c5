//! Operators of two operands, either of which may be a number.

use super::{Operand, arg_at, common_dtype, emit};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::scalar::{Compare, Scalars, compute_dtype};
use m2m_aten::bind::Bound;
use m2m_mlir::{CmpI, Value};
use m2m_record::{Arg, DType, Node};

/// The arithmetic of one pair of elements.
pub type Binary = for<'b, 'c> fn(&Scalars<'b, 'c>, Value<'c>, Value<'c>, &Bound) -> Result<Value<'c>>;

fn operands<'c>(cx: &mut Cx<'c>, bound: &Bound) -> Result<[Operand<'c>; 2]> {
    Ok([Operand::of(cx, arg_at(bound, 0)?)?, Operand::of(cx, arg_at(bound, 1)?)?])
}

/// Arithmetic: operands are brought to the result's dtype, which is their common one or, of `div`, the float one.
pub fn lower<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, body: Binary) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let mut operands = operands(cx, bound)?.to_vec();
    if let Some(alpha) = alpha(bound)? {
        operands.push(Operand::of(cx, alpha)?);
    }
    let common = result.dtype;
    let t = emit(cx, result, &operands, common, compute_dtype(common), |s, v| {
        let y = if let [_, y, alpha] = v { s.mul(*y, *alpha)? } else { v[1] };
        body(s, v[0], y, bound)
    })?;
    Ok(vec![Val::Tensor(t)])
}

/// The factor of the second operand, where it is not 1.
fn alpha<'b>(bound: &'b Bound<'_>) -> Result<Option<&'b Arg>> {
    if !bound.has("alpha") {
        return Ok(None);
    }
    Ok(match bound.arg("alpha")? {
        Arg::Int(1) | Arg::Bool(true) => None,
        Arg::Float(x) if x.0 == 1.0 => None,
        alpha => Some(alpha),
    })
}

/// Comparisons: operands are brought to their common dtype, the result is bool.
pub fn lower_compare<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, op: Compare) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let operands = operands(cx, bound)?;
    let common = common_dtype(&operands)?;
    let t = emit(cx, result, &operands, common, DType::Bool, |s, v| s.compare(op, v[0], v[1]))?;
    Ok(vec![Val::Tensor(t)])
}

/// Logic: operands are taken for their truth, each in its own dtype.
pub fn lower_logical<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, body: Binary) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let operands = operands(cx, bound)?;
    let t = emit(cx, result, &operands, DType::Bool, DType::Bool, |s, v| body(s, v[0], v[1], bound))?;
    Ok(vec![Val::Tensor(t)])
}

/// `self + other`, which comes times `alpha`
pub fn add<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.add(x, y)
}

/// `self - other`, which comes times `alpha`
pub fn sub<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.sub(x, y)
}

/// `self * other`
pub fn mul<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.mul(x, y)
}

/// `self / other`, or with `rounding_mode` "floor" or "trunc" the whole quotient.
pub fn div<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let mode = if bound.has("rounding_mode") { bound.arg("rounding_mode")? } else { &Arg::Null };
    match mode {
        Arg::Null => s.div(x, y),
        Arg::Str(mode) if mode == "floor" => s.floor_div(x, y),
        Arg::Str(mode) if mode == "trunc" => {
            let quotient = s.div(x, y)?;
            if s.is_float() { Ok(s.b.unary("math.trunc", quotient)?) } else { Ok(quotient) }
        }
        other => Err(Error::unsupported(format!("rounding_mode={other:?}; floor and trunc are known"))),
    }
}

/// `floor(self / other)`
pub fn floor_divide<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.floor_div(x, y)
}

/// Remainder with the divisor's sign.
pub fn remainder<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.remainder(x, y)
}

/// Remainder with the dividend's sign.
pub fn fmod<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.rem(x, y)
}

/// The greater; NaN wins.
pub fn maximum<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.maximum(x, y)
}

/// The lesser; NaN wins.
pub fn minimum<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    s.minimum(x, y)
}

/// The angle of the point (other, self).
pub fn atan2<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(s.b.binary("math.atan2", x, y)?)
}

/// The magnitude of `self` with the sign of `other`.
pub fn copysign<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(s.b.binary("math.copysign", x, y)?)
}

/// Bits in both; of bools, and.
pub fn bitwise_and<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(s.b.andi(x, y)?)
}

/// Bits in either; of bools, or.
pub fn bitwise_or<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(s.b.ori(x, y)?)
}

/// Bits in one of the two.
pub fn bitwise_xor<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    Ok(s.b.xori(x, y)?)
}

/// Whether a shift amount is within the type's width; others give 0, or -1 of a negative number shifted right.
fn shift_in_range<'c>(s: &Scalars<'_, 'c>, y: Value<'c>) -> Result<Value<'c>> {
    Ok(s.b.cmpi(CmpI::Ult, y, s.int(i64::from(s.dtype.bits()))?)?)
}

/// `self * 2 ** other` of integers.
pub fn shift_left<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let shifted = s.b.shli(x, y)?;
    Ok(s.b.select(shift_in_range(s, y)?, shifted, s.int(0)?)?)
}

/// `floor(self / 2 ** other)` of integers.
pub fn shift_right<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let in_range = shift_in_range(s, y)?;
    if s.is_signed() {
        let most = s.int(i64::from(s.dtype.bits()) - 1)?;
        return Ok(s.b.shrsi(x, s.b.select(in_range, y, most)?)?);
    }
    Ok(s.b.select(in_range, s.b.shrui(x, y)?, s.int(0)?)?)
}

/// `self ** other`. Whole exponents up to 3 and halves are products and roots, as in PyTorch's kernels.
pub fn pow<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, bound: &Bound) -> Result<Value<'c>> {
    let exponent = match bound.arg("exponent")? {
        Arg::Int(n) => Some(*n as f64),
        Arg::Float(e) => Some(e.0),
        _ => None,
    };
    if !s.is_float() && !s.is_complex() {
        return match exponent {
            Some(n) if n >= 0.0 => int_power(s, x, n as u64),
            Some(_) => Err(Error::unsupported("an integer tensor to a negative power")),
            None => int_power_of(s, x, y),
        };
    }
    let square = |x| s.mul(x, x);
    match exponent {
        Some(0.0) => s.number(1.0),
        Some(1.0) => Ok(x),
        Some(2.0) => square(x),
        Some(3.0) => s.mul(square(x)?, x),
        Some(0.5) => s.math("math.sqrt", x),
        Some(-0.5) => s.div(s.number(1.0)?, s.math("math.sqrt", x)?),
        Some(-1.0) => s.div(s.number(1.0)?, x),
        Some(-2.0) => s.div(s.number(1.0)?, square(x)?),
        _ if s.is_complex() => s.power(x, y),
        _ => Ok(s.b.binary("math.powf", x, y)?),
    }
}

/// `x ** n` by repeated squaring.
fn int_power<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, n: u64) -> Result<Value<'c>> {
    let (mut result, mut base, mut n) = (s.int(1)?, x, n);
    while n > 0 {
        if n & 1 == 1 {
            result = s.mul(result, base)?;
        }
        n >>= 1;
        if n > 0 {
            base = s.mul(base, base)?;
        }
    }
    Ok(result)
}

/// `x ** y` for an exponent known at run time: one squaring a bit. Negative exponents give 0, 1 for base 1, and ±1 for
/// base -1.
fn int_power_of<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
    let b = s.b;
    let (zero, one) = (s.int(0)?, s.int(1)?);
    let (mut result, mut base, mut rest) = (one, x, y);
    for _ in 0..s.dtype.bits() {
        let odd = b.cmpi(CmpI::Ne, b.andi(rest, one)?, zero)?;
        result = b.select(odd, s.mul(result, base)?, result)?;
        base = s.mul(base, base)?;
        rest = b.shrui(rest, one)?;
    }
    if !s.is_signed() {
        return Ok(result);
    }
    let minus_one = s.int(-1)?;
    let odd = b.cmpi(CmpI::Ne, b.andi(y, one)?, zero)?;
    let of_minus_one = b.select(odd, minus_one, one)?;
    let below = b.select(b.cmpi(CmpI::Eq, x, minus_one)?, of_minus_one, zero)?;
    let below = b.select(b.cmpi(CmpI::Eq, x, one)?, one, below)?;
    Ok(b.select(b.cmpi(CmpI::Slt, y, zero)?, below, result)?)
}

/// The greatest common divisor of integers, by Euclid's algorithm on their magnitudes; 0 of two zeros.
pub fn gcd<'c>(s: &Scalars<'_, 'c>, x: Value<'c>, y: Value<'c>, _: &Bound) -> Result<Value<'c>> {
    let size = |x| if s.is_signed() { s.b.unary("math.absi", x) } else { Ok(x) };
    let ty = m2m_mlir::types::of(x);
    let zero = s.int(0)?;
    let results = s.b.while_loop(
        &[size(x)?, size(y)?],
        &[ty, ty],
        |b, v| Ok((b.cmpi(CmpI::Ne, v[1], zero)?, v.to_vec())),
        |b, v| Ok(vec![v[1], if s.is_signed() { b.remsi(v[0], v[1])? } else { b.remui(v[0], v[1])? }]),
    )?;
    Ok(results[0])
}
