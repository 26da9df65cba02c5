//! Arithmetic on elements, in PyTorch's types.
//!
//! MLIR's integers have no sign, so every operation here takes the dtype. Half types compute in f32 (`compute_dtype`),
//! as PyTorch's CPU kernels do, and round once when the result is stored.

use super::complex;
use crate::error::{Error, Result};
use m2m_aten::promote::real_of;
use m2m_mlir::{Builder, CmpF, CmpI, Value};
use m2m_record::dtype::Class;
use m2m_record::{Arg, DType};

/// The type in which elements of a dtype are computed: f32 for every float of less than 32 bits, c64 for c32, the dtype
/// otherwise.
pub fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::C32 => DType::C64,
        _ if dtype.is_float() && dtype.bits() < 32 => DType::F32,
        _ => dtype,
    }
}

/// The type in which sums over elements of a dtype accumulate, for float and integer results alike.
pub fn accumulate_dtype(dtype: DType) -> DType {
    compute_dtype(dtype)
}

/// Elementwise code of one dtype.
#[derive(Clone, Copy)]
pub struct Scalars<'b, 'c> {
    /// Where operations go.
    pub b: &'b Builder<'c>,
    /// The type of every value, unless a method says otherwise.
    pub dtype: DType,
}

impl<'b, 'c> Scalars<'b, 'c> {
    /// Code in `dtype` at the builder's place.
    pub fn new(b: &'b Builder<'c>, dtype: DType) -> Self {
        Scalars { b, dtype }
    }

    /// True when values are floats.
    pub fn is_float(&self) -> bool {
        self.dtype.is_float()
    }

    /// True when values are signed integers.
    pub fn is_signed(&self) -> bool {
        self.dtype.class() == Class::Signed
    }

    /// A constant: floats rounded to the type, integers truncated.
    pub fn number(&self, x: f64) -> Result<Value<'c>> {
        if self.is_complex() {
            return self.complex(x, 0.0);
        }
        Ok(self.b.const_number(self.b.elem(self.dtype.name())?, x)?)
    }

    /// A constant integer, exact over 64 bits.
    pub fn int(&self, n: i64) -> Result<Value<'c>> {
        if self.is_complex() {
            return self.complex(n as f64, 0.0);
        }
        let element = self.b.elem(self.dtype.name())?;
        if self.is_float() {
            return Ok(self.b.const_float(element, n as f64)?);
        }
        Ok(self.b.const_int(element, if self.dtype == DType::Bool { i64::from(n != 0) } else { n })?)
    }

    /// A literal argument as a constant.
    pub fn literal(&self, arg: &Arg) -> Result<Value<'c>> {
        match arg {
            Arg::Int(n) => self.int(*n),
            Arg::Bool(x) => self.int(i64::from(*x)),
            Arg::Float(x) if self.is_float() || self.is_complex() => self.number(x.0),
            Arg::Complex(re, im) if self.is_complex() => self.complex(re.0, im.0),
            Arg::Float(x) => self.int(x.0 as i64),
            other => Err(Error::unsupported(format!("{other:?} as a number of {}", self.dtype))),
        }
    }

    /// The smallest value: -inf, or the least integer.
    pub fn lowest(&self) -> Result<Value<'c>> {
        match self.dtype.class() {
            Class::Complex => Err(no_order()),
            Class::Float => self.number(f64::NEG_INFINITY),
            Class::Signed => self.int(i64::MIN >> (64 - self.dtype.bits())),
            _ => self.int(0),
        }
    }

    /// The largest value: inf, or the greatest integer.
    pub fn highest(&self) -> Result<Value<'c>> {
        match self.dtype.class() {
            Class::Complex => Err(no_order()),
            Class::Float => self.number(f64::INFINITY),
            Class::Signed => self.int(i64::MAX >> (64 - self.dtype.bits())),
            Class::Bool => self.int(1),
            _ => self.int(-1),
        }
    }

    /// `x + y`; of bools, or.
    pub fn add(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        Ok(match self.dtype.class() {
            Class::Complex => self.b.binary("complex.add", x, y)?,
            Class::Float => self.b.addf(x, y)?,
            Class::Bool => self.b.ori(x, y)?,
            _ => self.b.addi(x, y)?,
        })
    }

    /// `x - y`.
    pub fn sub(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        Ok(match self.dtype.class() {
            Class::Complex => self.b.binary("complex.sub", x, y)?,
            Class::Float => self.b.subf(x, y)?,
            _ => self.b.subi(x, y)?,
        })
    }

    /// `x * y`; of bools, and.
    pub fn mul(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        Ok(match self.dtype.class() {
            Class::Complex => self.b.binary("complex.mul", x, y)?,
            Class::Float => self.b.mulf(x, y)?,
            Class::Bool => self.b.andi(x, y)?,
            _ => self.b.muli(x, y)?,
        })
    }

    /// `x / y` of floats; of integers, rounded toward zero. A zero divisor of integers gives 0 rather than a trap.
    pub fn div(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        if self.is_complex() {
            return Ok(self.b.binary("complex.div", x, y)?);
        }
        if self.is_float() {
            return Ok(self.b.divf(x, y)?);
        }
        self.guarded(y, |s, y| Ok(if s.is_signed() { s.b.divsi(x, y)? } else { s.b.divui(x, y)? }))
    }

    /// Remainder with the dividend's sign, as C's `fmod` and `%`. A zero divisor of integers gives 0.
    pub fn rem(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        if self.is_float() {
            return Ok(self.b.remf(x, y)?);
        }
        self.guarded(y, |s, y| Ok(if s.is_signed() { s.b.remsi(x, y)? } else { s.b.remui(x, y)? }))
    }

    /// Integer division with divisors that would trap (0, and -1 for the least dividend) kept away from the machine.
    fn guarded(&self, y: Value<'c>, op: impl FnOnce(&Self, Value<'c>) -> Result<Value<'c>>) -> Result<Value<'c>> {
        let zero = self.int(0)?;
        let is_zero = self.b.cmpi(CmpI::Eq, y, zero)?;
        let safe = self.b.select(is_zero, self.int(1)?, y)?;
        let quotient = op(self, safe)?;
        Ok(self.b.select(is_zero, zero, quotient)?)
    }

    /// `floor(x / y)`, the quotient that PyTorch's `floor_divide` and Python's `//` give.
    pub fn floor_div(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        let b = self.b;
        if self.is_float() {
            return self.floor_div_float(x, y);
        }
        let quotient = self.div(x, y)?;
        if !self.is_signed() {
            return Ok(quotient);
        }
        let remainder = self.rem(x, y)?;
        let zero = self.int(0)?;
        let inexact = b.cmpi(CmpI::Ne, remainder, zero)?;
        let differ = b.cmpi(CmpI::Slt, b.xori(remainder, y)?, zero)?;
        let down = b.subi(quotient, self.int(1)?)?;
        Ok(b.select(b.andi(inexact, differ)?, down, quotient)?)
    }

    /// The definition in c10/util/generic_math.h: exact division of `x - fmod(x, y)`, rounded to the nearest integer.
    fn floor_div_float(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        let b = self.b;
        let (zero, one, half) = (self.number(0.0)?, self.number(1.0)?, self.number(0.5)?);
        let remainder = b.remf(x, y)?;
        let quotient = b.divf(b.subf(x, remainder)?, y)?;
        let inexact = b.cmpf(CmpF::Une, remainder, zero)?;
        let differ = b.xori(b.cmpf(CmpF::Olt, y, zero)?, b.cmpf(CmpF::Olt, remainder, zero)?)?;
        let quotient = b.select(b.andi(inexact, differ)?, b.subf(quotient, one)?, quotient)?;
        let floor = b.unary("math.floor", quotient)?;
        let up = b.cmpf(CmpF::Ogt, b.subf(quotient, floor)?, half)?;
        let rounded = b.select(up, b.addf(floor, one)?, floor)?;
        let signed_zero = b.binary("math.copysign", zero, b.divf(x, y)?)?;
        let is_zero = b.cmpf(CmpF::Oeq, quotient, zero)?;
        let result = b.select(is_zero, signed_zero, rounded)?;
        let by_zero = b.cmpf(CmpF::Oeq, y, zero)?;
        Ok(b.select(by_zero, b.divf(x, y)?, result)?)
    }

    /// Remainder with the divisor's sign, as Python's `%`.
    pub fn remainder(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        let b = self.b;
        let rest = self.rem(x, y)?;
        if !self.is_float() && !self.is_signed() {
            return Ok(rest);
        }
        let zero = self.int(0)?;
        let (inexact, differ) = if self.is_float() {
            let differ = b.xori(b.cmpf(CmpF::Olt, y, zero)?, b.cmpf(CmpF::Olt, rest, zero)?)?;
            (b.cmpf(CmpF::Une, rest, zero)?, differ)
        } else {
            (b.cmpi(CmpI::Ne, rest, zero)?, b.cmpi(CmpI::Slt, b.xori(rest, y)?, zero)?)
        };
        let shifted = self.add(rest, y)?;
        Ok(b.select(b.andi(inexact, differ)?, shifted, rest)?)
    }

    /// The greater one; NaN wins.
    pub fn maximum(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        Ok(match self.dtype.class() {
            Class::Complex => return Err(no_order()),
            Class::Float => self.b.maximumf(x, y)?,
            Class::Signed => self.b.maxsi(x, y)?,
            _ => self.b.maxui(x, y)?,
        })
    }

    /// The lesser one; NaN wins.
    pub fn minimum(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        Ok(match self.dtype.class() {
            Class::Complex => return Err(no_order()),
            Class::Float => self.b.minimumf(x, y)?,
            Class::Signed => self.b.minsi(x, y)?,
            _ => self.b.minui(x, y)?,
        })
    }

    /// A comparison, as `i1`; with NaN all are false but `Ne`.
    pub fn compare(&self, op: Compare, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        if self.is_complex() {
            return self.compare_complex(op, x, y);
        }
        let signed = self.is_signed();
        let pick = |s, u| if signed { s } else { u };
        Ok(if self.is_float() {
            let predicate = match op {
                Compare::Eq => CmpF::Oeq,
                Compare::Ne => CmpF::Une,
                Compare::Lt => CmpF::Olt,
                Compare::Le => CmpF::Ole,
                Compare::Gt => CmpF::Ogt,
                Compare::Ge => CmpF::Oge,
            };
            self.b.cmpf(predicate, x, y)?
        } else {
            let predicate = match op {
                Compare::Eq => CmpI::Eq,
                Compare::Ne => CmpI::Ne,
                Compare::Lt => pick(CmpI::Slt, CmpI::Ult),
                Compare::Le => pick(CmpI::Sle, CmpI::Ule),
                Compare::Gt => pick(CmpI::Sgt, CmpI::Ugt),
                Compare::Ge => pick(CmpI::Sge, CmpI::Uge),
            };
            self.b.cmpi(predicate, x, y)?
        })
    }

    /// `x != 0`, as `i1`; NaN is true.
    pub fn truth(&self, x: Value<'c>) -> Result<Value<'c>> {
        if self.dtype == DType::Bool { Ok(x) } else { self.compare(Compare::Ne, x, self.int(0)?) }
    }

    /// `then` where `x < limit`, `otherwise` elsewhere.
    pub fn select_below(
        &self,
        x: Value<'c>,
        limit: Value<'c>,
        then: Value<'c>,
        otherwise: Value<'c>,
    ) -> Result<Value<'c>> {
        Ok(self.b.select(self.compare(Compare::Lt, x, limit)?, then, otherwise)?)
    }

    /// Whether a float, or a part of a complex number, is NaN, as `i1`; false for other types.
    pub fn is_nan(&self, x: Value<'c>) -> Result<Value<'c>> {
        if self.is_complex() {
            let (re, im) = self.parts(x)?;
            return Ok(self.b.cmpf(CmpF::Uno, re, im)?);
        }
        if self.is_float() { Ok(self.b.cmpf(CmpF::Uno, x, x)?) } else { Ok(self.b.const_bool(false)?) }
    }
}

fn no_order() -> Error {
    Error::unsupported("an order of complex numbers")
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the six comparisons")]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Converts an element, as PyTorch's `to` does: bool is `x != 0`, floats to integers round toward zero, integers wrap.
pub fn convert<'c>(b: &Builder<'c>, x: Value<'c>, from: DType, to: DType) -> Result<Value<'c>> {
    if from == to {
        return Ok(x);
    }
    let element = b.elem(to.name())?;
    let unsigned = |d: DType| matches!(d.class(), Class::Unsigned | Class::Bool);
    Ok(match (from.class(), to.class()) {
        (_, Class::Bool) => Scalars::new(b, from).truth(x)?,
        (Class::Complex, Class::Complex) => {
            let ((re, im), (from, part)) = (complex::parts(b, x, from)?, (real_of(from), real_of(to)));
            complex::join(b, convert_float(b, re, from, part)?, convert_float(b, im, from, part)?, to)?
        }
        (_, Class::Complex) => {
            let part = real_of(to);
            complex::join(b, convert(b, x, from, part)?, Scalars::new(b, part).number(0.0)?, to)?
        }
        (Class::Complex, _) => return Err(Error::unsupported(format!("conversion from {from} to {to}"))),
        (Class::Float, Class::Float) => return convert_float(b, x, from, to),
        (Class::Float, _) => {
            // Through a wide signed integer, so that negative floats wrap into unsigned types as they do in PyTorch.
            let x = convert_float(b, x, from, compute_dtype(from))?;
            if to == DType::U64 {
                return float_to_u64(b, x, compute_dtype(from));
            }
            let wide = b.cast("fptosi", x, b.elem("i64")?)?;
            if to.bits() < 64 { b.cast("trunci", wide, element)? } else { wide }
        }
        (_, Class::Float) => {
            let name = if unsigned(from) { "uitofp" } else { "sitofp" };
            if to.bits() < 32 {
                let wide = b.cast(name, x, b.elem("f32")?)?;
                b.cast("truncf", wide, element)?
            } else {
                b.cast(name, x, element)?
            }
        }
        _ if width(to) > width(from) => b.cast(if unsigned(from) { "extui" } else { "extsi" }, x, element)?,
        _ if width(to) < width(from) => b.cast("trunci", x, element)?,
        _ => x,
    })
}

/// Bits of the MLIR integer of a dtype.
fn width(dtype: DType) -> u32 {
    if dtype == DType::Bool { 1 } else { dtype.bits() }
}

/// f64 and f32 values from 2^63 on do not fit a signed integer, and negative ones wrap.
fn float_to_u64<'c>(b: &Builder<'c>, x: Value<'c>, from: DType) -> Result<Value<'c>> {
    let zero = Scalars::new(b, from).number(0.0)?;
    let wide = b.elem("i64")?;
    let negative = b.cmpf(CmpF::Olt, x, zero)?;
    let down = b.cast("fptosi", x, wide)?;
    let up = b.cast("fptoui", x, wide)?;
    Ok(b.select(negative, down, up)?)
}

fn convert_float<'c>(b: &Builder<'c>, x: Value<'c>, from: DType, to: DType) -> Result<Value<'c>> {
    if from == to {
        return Ok(x);
    }
    // Types of equal width (bf16 and f16, the fp8 formats) convert through f32, which holds both exactly.
    if from.bits() <= 16 && to.bits() <= 16 {
        let wide = b.cast("extf", x, b.elem("f32")?)?;
        return Ok(b.cast("truncf", wide, b.elem(to.name())?)?);
    }
    let name = if to.bits() > from.bits() { "extf" } else { "truncf" };
    Ok(b.cast(name, x, b.elem(to.name())?)?)
}
