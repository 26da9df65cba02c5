//! Values of expressions, with Python's rules: `//` and `%` round down, comparisons give bools.

use super::{Cmp, Expr};

/// What an expression evaluates to.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are Python's numbers")]
pub enum Value {
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A symbol has no value.
    #[error("symbol {0} has no value")]
    Unbound(String),
    /// Arithmetic left the range of 64-bit integers.
    #[error("{0} overflows 64 bits")]
    Overflow(String),
    /// A divisor is zero.
    #[error("{0} divides by zero")]
    ZeroDivision(String),
    /// An operand is of the wrong kind.
    #[error("{0} needs operands of another kind")]
    Kind(String),
}

impl Value {
    fn as_f64(self) -> f64 {
        match self {
            Value::Int(n) => n as f64,
            Value::Float(x) => x,
            Value::Bool(b) => f64::from(u8::from(b)),
        }
    }

    /// The truth of it, as Python's `bool()`.
    pub fn is_true(self) -> bool {
        match self {
            Value::Int(n) => n != 0,
            Value::Float(x) => x != 0.0,
            Value::Bool(b) => b,
        }
    }
}

/// Quotient rounded down; `None` on overflow or a zero divisor.
pub fn floor_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
}

/// Remainder with the divisor's sign; `None` on overflow or a zero divisor.
pub fn modulo(a: i64, b: i64) -> Option<i64> {
    let r = a.checked_rem(b)?;
    Some(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
}

impl Expr {
    /// The value, given those of symbols.
    pub fn eval(&self, symbol: &dyn Fn(&str) -> Option<Value>) -> Result<Value, EvalError> {
        match self {
            Expr::Int(n) => Ok(Value::Int(*n)),
            Expr::Float(x) => Ok(Value::Float(*x)),
            Expr::Bool(b) => Ok(Value::Bool(*b)),
            Expr::Sym(name) => symbol(name).ok_or_else(|| EvalError::Unbound(name.clone())),
            Expr::Add(v) => self.fold(v, symbol, i64::checked_add, |a, b| a + b),
            Expr::Mul(v) => self.fold(v, symbol, i64::checked_mul, |a, b| a * b),
            Expr::Max(v) => self.fold(v, symbol, |a, b| Some(a.max(b)), f64::max),
            Expr::Min(v) => self.fold(v, symbol, |a, b| Some(a.min(b)), f64::min),
            Expr::Pow(a, b) => self.power(a.eval(symbol)?, b.eval(symbol)?),
            Expr::Div(a, b) => Ok(Value::Float(a.eval(symbol)?.as_f64() / b.eval(symbol)?.as_f64())),
            Expr::FloorDiv(a, b) => self.division(a.eval(symbol)?, b.eval(symbol)?, floor_div, |a, b| (a / b).floor()),
            Expr::Mod(a, b) => self.division(a.eval(symbol)?, b.eval(symbol)?, modulo, |a, b| a - b * (a / b).floor()),
            Expr::Ceil(a) => self.round(a.eval(symbol)?, f64::ceil),
            Expr::Floor(a) => self.round(a.eval(symbol)?, f64::floor),
            Expr::Trunc(a) => self.round(a.eval(symbol)?, f64::trunc),
            Expr::Where(c, a, b) => if c.eval(symbol)?.is_true() { a } else { b }.eval(symbol),
            Expr::Cmp(op, a, b) => Ok(Value::Bool(compare(*op, a.eval(symbol)?, b.eval(symbol)?))),
            Expr::And(v) => self.all(v, symbol, true),
            Expr::Or(v) => self.all(v, symbol, false),
            Expr::Not(a) => Ok(Value::Bool(!a.eval(symbol)?.is_true())),
        }
    }

    /// The value, which must be an integer.
    pub fn eval_int(&self, symbol: &dyn Fn(&str) -> Option<i64>) -> Result<i64, EvalError> {
        match self.eval(&|name| symbol(name).map(Value::Int))? {
            Value::Int(n) => Ok(n),
            Value::Bool(b) => Ok(b.into()),
            Value::Float(_) => Err(EvalError::Kind(self.to_string())),
        }
    }

    fn all(&self, items: &[Expr], symbol: &dyn Fn(&str) -> Option<Value>, neutral: bool) -> Result<Value, EvalError> {
        for item in items {
            if item.eval(symbol)?.is_true() != neutral {
                return Ok(Value::Bool(!neutral));
            }
        }
        Ok(Value::Bool(neutral))
    }

    fn fold(
        &self,
        items: &[Expr],
        symbol: &dyn Fn(&str) -> Option<Value>,
        int: fn(i64, i64) -> Option<i64>,
        float: fn(f64, f64) -> f64,
    ) -> Result<Value, EvalError> {
        let mut values = items.iter().map(|item| item.eval(symbol));
        let first = values.next().ok_or_else(|| EvalError::Kind(self.to_string()))??;
        values.try_fold(first, |a, b| match (a, b?) {
            (Value::Int(a), Value::Int(b)) => {
                int(a, b).map(Value::Int).ok_or_else(|| EvalError::Overflow(self.to_string()))
            }
            (a, b) => Ok(Value::Float(float(a.as_f64(), b.as_f64()))),
        })
    }

    fn division(
        &self,
        a: Value,
        b: Value,
        int: fn(i64, i64) -> Option<i64>,
        float: fn(f64, f64) -> f64,
    ) -> Result<Value, EvalError> {
        match (a, b) {
            (Value::Int(_), Value::Int(0)) => Err(EvalError::ZeroDivision(self.to_string())),
            (Value::Int(a), Value::Int(b)) => {
                int(a, b).map(Value::Int).ok_or_else(|| EvalError::Overflow(self.to_string()))
            }
            (a, b) => Ok(Value::Float(float(a.as_f64(), b.as_f64()))),
        }
    }

    fn power(&self, a: Value, b: Value) -> Result<Value, EvalError> {
        match (a, b) {
            (Value::Int(a), Value::Int(b)) if b >= 0 => u32::try_from(b)
                .ok()
                .and_then(|b| a.checked_pow(b))
                .map(Value::Int)
                .ok_or_else(|| EvalError::Overflow(self.to_string())),
            (a, b) => Ok(Value::Float(a.as_f64().powf(b.as_f64()))),
        }
    }

    fn round(&self, a: Value, f: fn(f64) -> f64) -> Result<Value, EvalError> {
        match a {
            Value::Float(x) => {
                let y = f(x);
                if y.abs() < i64::MAX as f64 {
                    Ok(Value::Int(y as i64))
                } else {
                    Err(EvalError::Overflow(self.to_string()))
                }
            }
            other => Ok(other),
        }
    }
}

fn compare(op: Cmp, a: Value, b: Value) -> bool {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.as_f64().partial_cmp(&b.as_f64()),
    };
    match op {
        Cmp::Eq => order.is_some_and(|o| o.is_eq()),
        Cmp::Ne => order.is_none_or(|o| o.is_ne()),
        Cmp::Lt => order.is_some_and(|o| o.is_lt()),
        Cmp::Le => order.is_some_and(|o| o.is_le()),
        Cmp::Gt => order.is_some_and(|o| o.is_gt()),
        Cmp::Ge => order.is_some_and(|o| o.is_ge()),
    }
}
