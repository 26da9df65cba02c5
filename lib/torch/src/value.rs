//! Values of a graph while it is executed.

use crate::error::Error;
use crate::tensor::Tensor;

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `None`, or a result that is absent.
    None,
    /// A bool.
    Bool(bool),
    /// An integer; also a dtype, layout or memory format on its way into a call.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// A string; also a device.
    Str(String),
    /// A list.
    List(Vec<Value>),
    /// A tensor.
    Tensor(Tensor),
}

impl Value {
    /// What it is, in words.
    pub fn describe(&self) -> String {
        match self {
            Value::None => "None".to_owned(),
            Value::Bool(b) => format!("the bool {b}"),
            Value::Int(n) => format!("the integer {n}"),
            Value::Float(x) => format!("the float {x:?}"),
            Value::Complex(re, im) => format!("the complex number {re:?}+{im:?}j"),
            Value::Str(s) => format!("the string {s:?}"),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Tensor(t) => format!("the tensor {t:?}"),
        }
    }

    /// The tensor, if it is one.
    pub fn tensor(&self) -> Result<&Tensor, Error> {
        match self {
            Value::Tensor(t) => Ok(t),
            other => Err(Error::value(format!("expected a tensor, found {}", other.describe()))),
        }
    }

    /// The integer, if it is one.
    pub fn int(&self) -> Result<i64, Error> {
        match self {
            Value::Int(n) => Ok(*n),
            Value::Bool(b) => Ok(i64::from(*b)),
            other => Err(Error::value(format!("expected an integer, found {}", other.describe()))),
        }
    }

    /// The number, if it is a real one.
    pub fn float(&self) -> Result<f64, Error> {
        match self {
            Value::Float(x) => Ok(*x),
            Value::Int(n) => Ok(*n as f64),
            Value::Bool(b) => Ok(f64::from(u8::from(*b))),
            other => Err(Error::value(format!("expected a number, found {}", other.describe()))),
        }
    }
}

impl From<Tensor> for Value {
    fn from(t: Tensor) -> Value {
        Value::Tensor(t)
    }
}

impl From<&Tensor> for Value {
    fn from(t: &Tensor) -> Value {
        Value::Tensor(t.clone())
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

impl From<&[i64]> for Value {
    fn from(items: &[i64]) -> Value {
        Value::List(items.iter().map(|n| Value::Int(*n)).collect())
    }
}
