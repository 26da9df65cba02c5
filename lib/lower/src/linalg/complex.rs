//! Complex elements: their parts, and functions of them.
//!
//! Sums, products and quotients, and what the complex dialect has a function for, are its operations; every other
//! function is written in those. c32 computes in c64, as PyTorch does. Branch cuts are those of C99, Annex G.

use super::cx::{Cx, Tensor, Val};
use super::elementwise::{self, Operand};
use super::scalar::{Compare, Scalars, compute_dtype, convert};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_aten::promote::{complex_of, real_of};
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Builder, CmpF, Map, Value};
use m2m_record::{DType, Node};
use std::f64::consts::{FRAC_PI_2, LN_2, LN_10, PI};

/// Functions that the complex dialect has, by their name in the math dialect.
const NATIVE: &[&str] = &["cos", "exp", "expm1", "log", "log1p", "rsqrt", "sin", "sqrt", "tan", "tanh"];

/// The real part and the imaginary part of an element of `dtype`.
pub fn parts<'c>(b: &Builder<'c>, x: Value<'c>, dtype: DType) -> Result<(Value<'c>, Value<'c>)> {
    let part = b.elem(real_of(dtype).name())?;
    Ok((b.op1("complex.re", &[x], part, &[])?, b.op1("complex.im", &[x], part, &[])?))
}

/// An element of `dtype` from its parts.
pub fn join<'c>(b: &Builder<'c>, re: Value<'c>, im: Value<'c>, dtype: DType) -> Result<Value<'c>> {
    Ok(b.op1("complex.create", &[re, im], b.elem(dtype.name())?, &[])?)
}

impl<'b, 'c> Scalars<'b, 'c> {
    /// True when values are complex.
    pub fn is_complex(&self) -> bool {
        self.dtype.is_complex()
    }

    /// Code in the dtype of a complex value's parts.
    pub fn of_parts(&self) -> Scalars<'b, 'c> {
        Scalars::new(self.b, real_of(self.dtype))
    }

    /// The parts of a complex value.
    pub fn parts(&self, x: Value<'c>) -> Result<(Value<'c>, Value<'c>)> {
        parts(self.b, x, self.dtype)
    }

    /// A complex value from its parts.
    pub fn join(&self, re: Value<'c>, im: Value<'c>) -> Result<Value<'c>> {
        join(self.b, re, im, self.dtype)
    }

    /// A complex constant.
    pub fn complex(&self, re: f64, im: f64) -> Result<Value<'c>> {
        let s = self.of_parts();
        self.join(s.number(re)?, s.number(im)?)
    }

    /// The real part of a value, of the type of its parts; a real value itself.
    pub fn real_part(&self, x: Value<'c>) -> Result<Value<'c>> {
        if self.is_complex() { Ok(self.parts(x)?.0) } else { Ok(x) }
    }

    /// A real value, of the type of the parts, as one of the type of values.
    pub fn as_complex(&self, x: Value<'c>) -> Result<Value<'c>> {
        if self.is_complex() { self.join(x, self.of_parts().number(0.0)?) } else { Ok(x) }
    }

    /// The complex conjugate; a real value itself.
    pub fn conj(&self, x: Value<'c>) -> Result<Value<'c>> {
        if !self.is_complex() {
            return Ok(x);
        }
        let (re, im) = self.parts(x)?;
        self.join(re, self.b.negf(im)?)
    }

    /// `|x|` of a complex value, of the type of its parts.
    pub fn magnitude(&self, x: Value<'c>) -> Result<Value<'c>> {
        Ok(self.b.op1("complex.abs", &[x], self.b.elem(real_of(self.dtype).name())?, &[])?)
    }

    /// Whether two complex values are equal, or not: both parts are, or not both.
    pub fn compare_complex(&self, op: Compare, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        let ((xr, xi), (yr, yi), s) = (self.parts(x)?, self.parts(y)?, self.of_parts());
        let (re, im) = (s.compare(op, xr, yr)?, s.compare(op, xi, yi)?);
        match op {
            Compare::Eq => Ok(self.b.andi(re, im)?),
            Compare::Ne => Ok(self.b.ori(re, im)?),
            other => Err(Error::unsupported(format!("the order ({other:?}) of complex numbers"))),
        }
    }

    /// A function by its name in the math dialect (`math.exp`), of floats and of complex values.
    pub fn math(&self, name: &str, x: Value<'c>) -> Result<Value<'c>> {
        if !self.is_complex() {
            return Ok(self.b.unary(name, x)?);
        }
        let plain = name.strip_prefix("math.").unwrap_or(name);
        if NATIVE.contains(&plain) {
            return Ok(self.b.unary(&format!("complex.{plain}"), x)?);
        }
        let one = self.number(1.0)?;
        match plain {
            "exp2" => self.math("math.exp", self.mul(x, self.number(LN_2)?)?),
            "log2" => self.mul(self.math("math.log", x)?, self.number(1.0 / LN_2)?),
            "log10" => self.mul(self.math("math.log", x)?, self.number(1.0 / LN_10)?),
            "sinh" | "cosh" => self.hyperbolic(x, plain == "sinh"),
            // log(x + sqrt(x² + 1)), log(x + sqrt(x + 1)·sqrt(x - 1)), (log(1 + x) - log(1 - x)) / 2.
            "asinh" => {
                let root = self.math("math.sqrt", self.add(self.mul(x, x)?, one)?)?;
                self.math("math.log", self.add(x, root)?)
            }
            "acosh" => {
                let (up, down) =
                    (self.math("math.sqrt", self.add(x, one)?)?, self.math("math.sqrt", self.sub(x, one)?)?);
                self.math("math.log", self.add(x, self.mul(up, down)?)?)
            }
            "atanh" => {
                let (up, down) = (self.math("math.log", self.add(one, x)?)?, self.math("math.log", self.sub(one, x)?)?);
                self.mul(self.sub(up, down)?, self.number(0.5)?)
            }
            "asin" => self.turned(x, "math.asinh"),
            "atan" => self.turned(x, "math.atanh"),
            "acos" => self.sub(self.number(FRAC_PI_2)?, self.turned(x, "math.asinh")?),
            _ => Err(Error::unsupported(format!("{plain} of complex numbers"))),
        }
    }

    /// `-i · f(i · x)`
    fn turned(&self, x: Value<'c>, name: &str) -> Result<Value<'c>> {
        let (re, im) = self.parts(x)?;
        let y = self.math(name, self.join(self.b.negf(im)?, re)?)?;
        let (re, im) = self.parts(y)?;
        self.join(im, self.b.negf(re)?)
    }

    /// `(exp(x) - exp(-x)) / 2` or `(exp(x) + exp(-x)) / 2`, by parts so that small ones do not cancel.
    fn hyperbolic(&self, x: Value<'c>, is_sine: bool) -> Result<Value<'c>> {
        let ((re, im), s) = (self.parts(x)?, self.of_parts());
        let (sinh, cosh) = (self.b.unary("math.sinh", re)?, self.b.unary("math.cosh", re)?);
        let (sin, cos) = (self.b.unary("math.sin", im)?, self.b.unary("math.cos", im)?);
        let (first, second) = if is_sine { (sinh, cosh) } else { (cosh, sinh) };
        self.join(s.mul(first, cos)?, s.mul(second, sin)?)
    }

    /// `x ** y` of complex values: `exp(y · log(x))`; 0 to a power with a positive real part is 0, to 0 it is 1.
    pub fn power(&self, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>> {
        let (zero, one) = (self.number(0.0)?, self.number(1.0)?);
        let power = self.math("math.exp", self.mul(y, self.math("math.log", x)?)?)?;
        let (is_zero, is_to_zero) = (self.compare(Compare::Eq, x, zero)?, self.compare(Compare::Eq, y, zero)?);
        let (re, _) = self.parts(y)?;
        let is_up = self.b.cmpf(CmpF::Ogt, re, self.of_parts().number(0.0)?)?;
        let power = self.b.select(self.b.andi(is_zero, is_up)?, zero, power)?;
        Ok(self.b.select(is_to_zero, one, power)?)
    }
}

/// A function of a complex tensor whose result is real: `result` is of the parts' type.
fn to_real<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    bound: &Bound,
    body: impl Fn(&Scalars<'_, 'c>, Value<'c>) -> Result<Value<'c>>,
) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let x = cx.tensor(bound.tensor("self")?)?;
    let common = x.dtype;
    let computed = real_of(compute_dtype(common));
    let t = elementwise::emit(cx, &result, &[Operand::Tensor(x)], common, computed, |s, v| body(s, v[0]))?;
    Ok(vec![Val::Tensor(t)])
}

/// `real(self)`: the real part; a real tensor itself.
pub fn real<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let x = cx.tensor(bound.tensor("self")?)?;
    if !x.dtype.is_complex() {
        return Ok(vec![Val::Tensor(x)]);
    }
    to_real(cx, node, bound, |s, x| Ok(s.parts(x)?.0))
}

/// `imag(self)`: the imaginary part.
pub fn imag<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    to_real(cx, node, bound, |s, x| Ok(s.parts(x)?.1))
}

/// `angle(self)`: `atan2(imaginary, real)`; of real numbers pi below zero, 0 above, NaN of NaN.
pub fn angle<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let x = cx.tensor(bound.tensor("self")?)?;
    if x.dtype.is_complex() {
        return to_real(cx, node, bound, |s, x| {
            let (re, im) = s.parts(x)?;
            Ok(s.b.binary("math.atan2", im, re)?)
        });
    }
    let result = cx.result_type(node, 0)?.clone();
    let common = result.dtype;
    let t = elementwise::emit(cx, &result, &[Operand::Tensor(x)], common, compute_dtype(common), |s, v| {
        let zero = s.number(0.0)?;
        let angle = s.select_below(v[0], zero, s.number(PI)?, zero)?;
        Ok(s.b.select(s.is_nan(v[0])?, v[0], angle)?)
    })?;
    Ok(vec![Val::Tensor(t)])
}

/// Two real tensors as the parts, or as what the parts are computed from.
fn from_real<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    (x, y): (&str, &str),
    body: impl Fn(&Scalars<'_, 'c>, Value<'c>, Value<'c>) -> Result<(Value<'c>, Value<'c>)>,
) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let operands = [Operand::Tensor(cx.tensor(x)?), Operand::Tensor(cx.tensor(y)?)];
    let common = elementwise::common_dtype(&operands)?;
    let whole = complex_of(compute_dtype(common)).ok_or_else(|| Error::unsupported(format!("parts of {common}")))?;
    let t = elementwise::emit(cx, &result, &operands, common, whole, |s, v| {
        let (re, im) = body(s, v[0], v[1])?;
        join(s.b, re, im, whole)
    })?;
    Ok(vec![Val::Tensor(t)])
}

/// `complex(real, imag)`
pub fn complex<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    from_real(cx, node, (bound.tensor("real")?, bound.tensor("imag")?), |_, re, im| Ok((re, im)))
}

/// `polar(abs, angle)`: `abs · (cos(angle) + i · sin(angle))`
pub fn polar<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    from_real(cx, node, (bound.tensor("abs")?, bound.tensor("angle")?), |s, size, angle| {
        let (cos, sin) = (s.b.unary("math.cos", angle)?, s.b.unary("math.sin", angle)?);
        Ok((s.mul(size, cos)?, s.mul(size, sin)?))
    })
}

/// `view_as_real(self)`: `[*]` as `[*, 2]`, real parts and imaginary parts along the last axis.
pub fn view_as_real<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let x = cx.tensor(bound.tensor("self")?)?;
    let (from, rank) = (x.dtype, x.rank());
    let out = cx.empty(result.dtype, &result.shape)?;
    let map = Map::dims(rank + 1, &(0..rank).collect::<Vec<_>>());
    let value = cx.b.elementwise(&[(x.value, map)], out, |b, v| {
        let run = || {
            let (re, im) = parts(b, v[0], from)?;
            let is_real = b.cmpi(m2m_mlir::CmpI::Eq, b.index(rank)?, b.const_index(0)?)?;
            Ok(b.select(is_real, re, im)?)
        };
        run().map_err(elementwise::into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: result.dtype, shape: result.shape })])
}

/// `view_as_complex(self)`: `[*, 2]` as `[*]`.
pub fn view_as_complex<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let x = cx.tensor(bound.tensor("self")?)?;
    let (from, rank) = (x.dtype, result.shape.len());
    let part = |k: i64| {
        let axes = (0..rank).map(MapExpr::Dim).chain([MapExpr::Const(k)]);
        (x.value, Map::new(rank, axes.collect()))
    };
    let out = cx.empty(result.dtype, &result.shape)?;
    let to = result.dtype;
    let value = cx.b.elementwise(&[part(0), part(1)], out, |b, v| {
        let run = || {
            let of = |x| convert(b, x, from, real_of(to));
            join(b, of(v[0])?, of(v[1])?, to)
        };
        run().map_err(elementwise::into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: to, shape: result.shape })])
}
