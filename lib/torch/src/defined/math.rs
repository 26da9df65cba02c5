//! Arithmetic on tensors in the words of Python, each word one operator of the dispatcher.

use crate::engine::Engine;
use crate::error::Error;
use crate::tensor::{Tensor, code};
use crate::value::Value;
use m2m_record::DType;

type Result<T> = std::result::Result<T, Error>;

/// The words.
#[derive(Clone, Copy)]
pub struct Math<'e>(pub &'e Engine);

impl Math<'_> {
    fn op(self, op: &str, args: &[Value]) -> Result<Tensor> {
        self.0.tensor(op, args)
    }

    /// `a * b`.
    pub fn mul(self, a: &Tensor, b: impl Into<Value>) -> Result<Tensor> {
        self.op("aten.mul.Tensor", &[a.into(), b.into()])
    }

    /// `a / b`.
    pub fn div(self, a: &Tensor, b: impl Into<Value>) -> Result<Tensor> {
        self.op("aten.div.Tensor", &[a.into(), b.into()])
    }

    /// `a + b`.
    pub fn add(self, a: &Tensor, b: impl Into<Value>) -> Result<Tensor> {
        self.op("aten.add.Tensor", &[a.into(), b.into()])
    }

    /// `a - b`.
    pub fn sub(self, a: &Tensor, b: impl Into<Value>) -> Result<Tensor> {
        self.op("aten.sub.Tensor", &[a.into(), b.into()])
    }

    /// `b - a`, where `b` is a number.
    pub fn rsub(self, a: &Tensor, b: impl Into<Value>) -> Result<Tensor> {
        self.op("aten.rsub.Scalar", &[a.into(), b.into()])
    }

    /// `1.0 / a`.
    pub fn inverse(self, a: &Tensor) -> Result<Tensor> {
        let reciprocal = self.op("aten.reciprocal.default", &[a.into()])?;
        self.mul(&reciprocal, 1.0)
    }

    /// To the nearest integer, ties to even.
    pub fn round(self, a: &Tensor) -> Result<Tensor> {
        self.op("aten.round.default", &[a.into()])
    }

    /// Not below `low`, not above `high`, where they are given.
    pub fn clamp(self, a: &Tensor, low: Value, high: Value) -> Result<Tensor> {
        self.op("aten.clamp.default", &[a.into(), low, high])
    }

    /// In another dtype, by its number.
    pub fn to(self, a: &Tensor, dtype: i64) -> Result<Tensor> {
        self.op("aten.to.dtype", &[a.into(), Value::Int(dtype)])
    }

    /// In another shape.
    pub fn reshape(self, a: &Tensor, shape: &[i64]) -> Result<Tensor> {
        self.op("aten.reshape.default", &[a.into(), shape.into()])
    }

    /// The larger one, element by element.
    pub fn max(self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.op("aten.maximum.default", &[a.into(), b.into()])
    }

    /// Negative values, zeros for others.
    pub fn negative_part(self, a: &Tensor) -> Result<Tensor> {
        let zeros = self.op("aten.zeros_like.default", &[a.into()])?;
        self.op("aten.minimum.default", &[a.into(), zeros.into()])
    }

    /// Positive values, zeros for others.
    pub fn positive_part(self, a: &Tensor) -> Result<Tensor> {
        let zeros = self.op("aten.zeros_like.default", &[a.into()])?;
        self.max(a, &zeros)
    }

    /// The least and the greatest of these dimensions.
    pub fn extremes(self, a: &Tensor, dims: &[i64], keeps: bool) -> Result<(Tensor, Tensor)> {
        let args = [a.into(), dims.into(), keeps.into()];
        Ok((self.op("aten.amin.default", &args)?, self.op("aten.amax.default", &args)?))
    }

    /// A tensor of the same shape and dtype, filled.
    pub fn full_like(self, a: &Tensor, x: impl Into<Value>) -> Result<Tensor> {
        self.op("aten.full_like.default", &[a.into(), x.into()])
    }

    /// `c` where true `a`, else `b`.
    pub fn select(self, c: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        self.op("aten.where.self", &[c.into(), a.into(), b.into()])
    }

    /// `a > b`.
    pub fn is_greater(self, a: &Tensor, b: impl Into<Value>) -> Result<Tensor> {
        self.op("aten.gt.Tensor", &[a.into(), b.into()])
    }

    /// The only element, if it is a tensor; numbers as they are.
    pub fn item(self, value: &Value) -> Result<Value> {
        match value {
            Value::Tensor(_) => {
                Ok(self.0.call("aten.item.default", std::slice::from_ref(value))?.pop().unwrap_or(Value::None))
            }
            other => Ok(other.clone()),
        }
    }
}

/// PyTorch's number of a dtype that it has.
pub fn number(dtype: DType) -> i64 {
    code(dtype).map_or(-1, i64::from)
}
