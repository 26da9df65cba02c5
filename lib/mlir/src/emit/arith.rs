//! Constants, arithmetic, comparisons, conversions and math functions, on scalars or elementwise on tensors.
//!
//! Lowered modules compute on scalars inside `linalg.generic`; the same methods accept tensors where MLIR does.

use melior::ir::{Attribute, Type, ValueLike};

use super::{Builder, Value};
use crate::error::Error;
use crate::{attr, types};

/// Predicates of `arith.cmpf`. `O…` is false and `U…` is true when an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CmpF {
    False,
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    Ord,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
    Uno,
    True,
}

/// Predicates of `arith.cmpi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CmpI {
    Eq,
    Ne,
    Slt,
    Sle,
    Sgt,
    Sge,
    Ult,
    Ule,
    Ugt,
    Uge,
}

macro_rules! binary {
    ($($method:ident)*) => {
        /// Two operands of one type, and a result of that type: the operation of the same name in `arith`.
        impl<'c> Builder<'c> {
            $(
                #[doc = concat!("`arith.", stringify!($method), "`.")]
                pub fn $method(&self, lhs: Value<'c>, rhs: Value<'c>) -> Result<Value<'c>, Error> {
                    self.binary(concat!("arith.", stringify!($method)), lhs, rhs)
                }
            )*
        }
    };
}

binary! {
    addf subf mulf divf remf maximumf minimumf maxnumf minnumf
    addi subi muli divsi divui remsi remui floordivsi ceildivsi ceildivui
    andi ori xori shli shrsi shrui maxsi maxui minsi minui
}

impl<'c> Builder<'c> {
    /// `arith.constant` of any attribute; the type is the attribute's. One that is seen from here already is taken again.
    pub fn constant(&self, r#type: Type<'c>, value: Attribute<'c>) -> Result<Value<'c>, Error> {
        if let Some(known) = self.known_constant(r#type, value) {
            return Ok(known);
        }
        let made = self.op1("arith.constant", &[], r#type, &[("value", value)])?;
        self.note_constant(r#type, value, made);
        Ok(made)
    }

    /// A constant `index`.
    pub fn const_index(&self, value: i64) -> Result<Value<'c>, Error> {
        self.const_int(self.index_type(), value)
    }

    /// A constant of an integer type or `index`; the low bits are taken, so a u64 passes as its i64 twin.
    pub fn const_int(&self, r#type: Type<'c>, value: i64) -> Result<Value<'c>, Error> {
        self.constant(r#type, attr::int(r#type, value))
    }

    /// A constant `i1`.
    pub fn const_bool(&self, value: bool) -> Result<Value<'c>, Error> {
        self.const_int(self.elem("bool")?, i64::from(value))
    }

    /// A constant float, rounded to nearest even from f64 to the type.
    pub fn const_float(&self, r#type: Type<'c>, value: f64) -> Result<Value<'c>, Error> {
        self.constant(r#type, attr::float(self.context, r#type, value))
    }

    /// A constant float of exactly these bits.
    pub fn const_float_bits(&self, r#type: Type<'c>, bits: u64) -> Result<Value<'c>, Error> {
        self.constant(r#type, attr::float_bits(self.context, r#type, bits)?)
    }

    /// A number in whatever element type: floats through f64, integers truncated towards zero, `i1` as non-zero.
    pub fn const_number(&self, r#type: Type<'c>, value: f64) -> Result<Value<'c>, Error> {
        if types::is_float(r#type) {
            self.const_float(r#type, value)
        } else if types::bits(r#type) == Some(1) {
            self.const_int(r#type, i64::from(value != 0.0))
        } else {
            self.const_int(r#type, value as i64)
        }
    }

    /// A constant tensor from little-endian bytes in row-major order, `bool` one byte each.
    pub fn const_dense(&self, dims: &[i64], element: Type<'c>, bytes: &[u8]) -> Result<Value<'c>, Error> {
        let r#type = types::tensor(dims, element);
        self.constant(r#type, attr::dense(r#type, bytes)?)
    }

    /// A constant tensor with one value in every element.
    pub fn const_splat(&self, dims: &[i64], element: Type<'c>, value: Attribute<'c>) -> Result<Value<'c>, Error> {
        let r#type = types::tensor(dims, element);
        self.constant(r#type, attr::splat(r#type, value)?)
    }

    /// Any two-operand operation whose result has the type of its first operand: `math.powf`, `math.atan2`, ….
    pub fn binary(&self, name: &str, lhs: Value<'c>, rhs: Value<'c>) -> Result<Value<'c>, Error> {
        self.op1(name, &[lhs, rhs], lhs.r#type(), &[])
    }

    /// Any one-operand operation that keeps the type: `math.exp`, `arith.negf`, `math.absi`, ….
    pub fn unary(&self, name: &str, value: Value<'c>) -> Result<Value<'c>, Error> {
        self.op1(name, &[value], value.r#type(), &[])
    }

    /// `arith.negf`: flips the sign, of zero and NaN too.
    pub fn negf(&self, value: Value<'c>) -> Result<Value<'c>, Error> {
        self.unary("arith.negf", value)
    }

    /// `arith.cmpf`.
    pub fn cmpf(&self, predicate: CmpF, lhs: Value<'c>, rhs: Value<'c>) -> Result<Value<'c>, Error> {
        self.compare("arith.cmpf", predicate as i64, lhs, rhs)
    }

    /// `arith.cmpi`.
    pub fn cmpi(&self, predicate: CmpI, lhs: Value<'c>, rhs: Value<'c>) -> Result<Value<'c>, Error> {
        self.compare("arith.cmpi", predicate as i64, lhs, rhs)
    }

    fn compare(&self, name: &str, predicate: i64, lhs: Value<'c>, rhs: Value<'c>) -> Result<Value<'c>, Error> {
        let result = types::with_element(lhs.r#type(), self.elem("bool")?);
        self.op1(name, &[lhs, rhs], result, &[("predicate", attr::int64(self.context, predicate))])
    }

    /// `arith.select`.
    pub fn select(&self, condition: Value<'c>, then: Value<'c>, otherwise: Value<'c>) -> Result<Value<'c>, Error> {
        self.op1("arith.select", &[condition, then, otherwise], then.r#type(), &[])
    }

    /// A conversion by name (`extf`, `truncf`, `extsi`, `extui`, `trunci`, `sitofp`, `uitofp`, `fptosi`, `fptoui`,
    /// `bitcast`, `index_cast`, `index_castui`) to an element type; a tensor keeps its shape.
    pub fn cast(&self, name: &str, value: Value<'c>, element: Type<'c>) -> Result<Value<'c>, Error> {
        self.op1(&format!("arith.{name}"), &[value], types::with_element(value.r#type(), element), &[])
    }

    /// `arith.index_cast`, between `index` and integers, sign-extending.
    pub fn index_cast(&self, value: Value<'c>, element: Type<'c>) -> Result<Value<'c>, Error> {
        self.cast("index_cast", value, element)
    }

    /// `math.fma`: `a * b + c` rounded once.
    pub fn fma(&self, a: Value<'c>, b: Value<'c>, c: Value<'c>) -> Result<Value<'c>, Error> {
        self.op1("math.fma", &[a, b, c], a.r#type(), &[])
    }
}
