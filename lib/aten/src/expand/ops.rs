//! Elementwise operators, reductions, contractions and constants, with PyTorch's result types.

use super::Expander;
use crate::error::Error;
use crate::infer::{broadcast, reduced, wrap_dims};
use crate::promote::{Participant, accumulate_dtype, float_of, promote_types, real_of, result_type};
use crate::value::{O, V, sizes_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// The integer dims as an argument.
fn dims_arg(dims: &[usize]) -> Arg {
    Arg::List(dims.iter().map(|d| Arg::Int(i64::try_from(*d).unwrap_or(i64::MAX))).collect())
}

impl Expander<'_, '_> {
    /// `op(x)` of the same dtype, `abs` of that of a complex number's parts; `op` without overload.
    pub fn unary(&mut self, op: &str, x: &V) -> Result<V, Error> {
        let dtype = if op == "abs" { real_of(x.dtype) } else { x.dtype };
        self.call1(&format!("aten.{op}.default"), vec![x.arg()], &[], dtype, &x.shape)
    }

    /// `op(x)`, a float: integers become `f32`.
    pub fn unary_float(&mut self, op: &str, x: &V) -> Result<V, Error> {
        self.call1(&format!("aten.{op}.default"), vec![x.arg()], &[], float_of(x.dtype), &x.shape)
    }

    /// `op(x)`, a bool.
    pub fn test(&mut self, op: &str, x: &V) -> Result<V, Error> {
        self.call1(&format!("aten.{op}.default"), vec![x.arg()], &[], DType::Bool, &x.shape)
    }

    /// The dtype that PyTorch computes in.
    pub fn promote(&self, operands: &[&O]) -> Result<DType, Error> {
        let participants = operands.iter().map(|o| o.participant()).collect::<Result<Vec<Participant>, _>>()?;
        result_type(&participants)?.ok_or_else(|| Error::unsupported("an operator without operands"))
    }

    /// `op(a, b)` with overload `Tensor`, or `Scalar` where `b` is a number; `dtype` is that of the result.
    fn pair(&mut self, op: &str, a: &O, b: &O, dtype: DType) -> Result<V, Error> {
        let shape = broadcast(op, a.shape(), b.shape())?;
        match (a, b) {
            (O::N(_), _) => {
                let a = self.lift(a, dtype)?;
                self.pair(op, &O::T(a), b, dtype)
            }
            (O::T(a), O::N(n)) => {
                self.call1(&format!("aten.{op}.Scalar"), vec![a.arg(), n.clone()], &[], dtype, &shape)
            }
            (O::T(a), O::T(b)) => self.call1(&format!("aten.{op}.Tensor"), vec![a.arg(), b.arg()], &[], dtype, &shape),
        }
    }

    /// `op(a, b)` in the operands' common dtype.
    pub fn binary(&mut self, op: &str, a: impl Into<O>, b: impl Into<O>) -> Result<V, Error> {
        let (a, b) = (a.into(), b.into());
        let dtype = self.promote(&[&a, &b])?;
        self.pair(op, &a, &b, dtype)
    }

    /// `a + b`
    pub fn add(&mut self, a: impl Into<O>, b: impl Into<O>) -> Result<V, Error> {
        self.binary("add", a, b)
    }

    /// `a - b`
    pub fn sub(&mut self, a: impl Into<O>, b: impl Into<O>) -> Result<V, Error> {
        self.binary("sub", a, b)
    }

    /// `a * b`
    pub fn mul(&mut self, a: impl Into<O>, b: impl Into<O>) -> Result<V, Error> {
        self.binary("mul", a, b)
    }

    /// `a / b`, a float.
    pub fn div(&mut self, a: impl Into<O>, b: impl Into<O>) -> Result<V, Error> {
        let (a, b) = (a.into(), b.into());
        let dtype = float_of(self.promote(&[&a, &b])?);
        self.pair("div", &a, &b, dtype)
    }

    /// `x ** n` for a number.
    pub fn pow(&mut self, x: &V, n: impl Into<O>) -> Result<V, Error> {
        let n = n.into();
        let dtype = self.promote(&[&x.into(), &n])?;
        self.call1("aten.pow.Tensor_Scalar", vec![x.arg(), n.arg()], &[], dtype, &x.shape)
    }

    /// A comparison: `eq ne lt le gt ge`.
    pub fn compare(&mut self, op: &str, a: impl Into<O>, b: impl Into<O>) -> Result<V, Error> {
        self.pair(op, &a.into(), &b.into(), DType::Bool)
    }

    /// `maximum`, `minimum`, `logical_and`, … of two tensors, whose only overload is `default`.
    pub fn binary_default(&mut self, op: &str, a: &V, b: &V) -> Result<V, Error> {
        let dtype = if op.starts_with("logical") { DType::Bool } else { self.promote(&[&a.into(), &b.into()])? };
        let shape = broadcast(op, &a.shape, &b.shape)?;
        self.call1(&format!("aten.{op}.default"), vec![a.arg(), b.arg()], &[], dtype, &shape)
    }

    /// A number as a tensor without dimensions; a tensor stays.
    pub fn lift(&mut self, operand: &O, dtype: DType) -> Result<V, Error> {
        match operand {
            O::T(v) => Ok(v.clone()),
            O::N(n) => self.full(&[], dtype, n.clone()),
        }
    }

    /// `where(c, a, b)`; numbers take the dtype of the common result.
    pub fn select_where(&mut self, c: &V, a: impl Into<O>, b: impl Into<O>) -> Result<V, Error> {
        let (a, b) = (a.into(), b.into());
        let dtype = self.promote(&[&a, &b])?;
        let (a, b) = (self.lift(&a, dtype)?, self.lift(&b, dtype)?);
        let shape = broadcast("where", &c.shape, &broadcast("where", &a.shape, &b.shape)?)?;
        self.call1("aten.where.self", vec![c.arg(), a.arg(), b.arg()], &[], dtype, &shape)
    }

    /// `x` in another dtype; itself where it has it. Of a complex number a real dtype takes the real part, and a bool
    /// tells whether it is 0.
    pub fn to_dtype(&mut self, x: &V, dtype: DType) -> Result<V, Error> {
        if x.dtype == dtype {
            return Ok(x.clone());
        }
        if x.dtype.is_complex() && dtype == DType::Bool {
            return self.compare("ne", x, 0i64);
        }
        if x.dtype.is_complex() && !dtype.is_complex() {
            let part = self.call1("aten.real.default", vec![x.arg()], &[], real_of(x.dtype), &x.shape)?;
            return self.to_dtype(&part, dtype);
        }
        self.call1("aten._to_copy.default", vec![x.arg()], &[("dtype", Arg::DType(dtype))], dtype, &x.shape)
    }

    /// `x` in the dtype in which sums of it are kept: half types widen to `f32`.
    pub fn widen(&mut self, x: &V) -> Result<V, Error> {
        self.to_dtype(x, accumulate_dtype(x.dtype))
    }

    /// `x` as a float, widened.
    pub fn widen_float(&mut self, x: &V) -> Result<V, Error> {
        self.to_dtype(x, accumulate_dtype(float_of(x.dtype)))
    }

    /// A sum over dimensions; integers and bool sum in `i64`. Over none it is the value itself.
    pub fn sum(&mut self, x: &V, dims: &[usize], keepdim: bool) -> Result<V, Error> {
        let dtype = if x.dtype.is_float() || x.dtype.is_complex() { x.dtype } else { DType::I64 };
        if dims.is_empty() {
            return self.to_dtype(x, dtype);
        }
        self.reduce("aten.sum.dim_IntList", x, dims, keepdim, dtype)
    }

    /// A mean over dimensions of a float.
    pub fn mean(&mut self, x: &V, dims: &[usize], keepdim: bool) -> Result<V, Error> {
        if dims.is_empty() {
            return Ok(x.clone());
        }
        self.reduce("aten.mean.dim", x, dims, keepdim, x.dtype)
    }

    /// `amax` or `amin` over dimensions.
    pub fn extreme(&mut self, op: &str, x: &V, dims: &[usize], keepdim: bool) -> Result<V, Error> {
        if dims.is_empty() {
            return Ok(x.clone());
        }
        self.reduce(&format!("aten.{op}.default"), x, dims, keepdim, x.dtype)
    }

    /// A reduction with arguments `(x, dims, keepdim)`.
    pub fn reduce(&mut self, op: &str, x: &V, dims: &[usize], keepdim: bool, dtype: DType) -> Result<V, Error> {
        let shape = reduced(&x.shape, dims, keepdim);
        self.call1(op, vec![x.arg(), dims_arg(dims), Arg::Bool(keepdim)], &[], dtype, &shape)
    }

    /// The dimensions of a list argument that may be `None` or empty, which name all.
    pub fn dims(&self, op: &str, dims: Option<&[i64]>, x: &V) -> Result<Vec<usize>, Error> {
        wrap_dims(op, dims.unwrap_or(&[]), x.rank())
    }

    /// `a @ b` of `[m, k]` and `[k, n]`.
    pub fn mm(&mut self, a: &V, b: &V) -> Result<V, Error> {
        let dtype = promote_types(a.dtype, b.dtype)?;
        let (Some(k), Some(j)) = (a.shape.get(1), b.shape.first()) else {
            return Err(Error::shape("aten.mm.default", "operands of other ranks than 2"));
        };
        if a.rank() != 2 || b.rank() != 2 || k != j {
            return Err(Error::shape(
                "aten.mm.default",
                format!("inner sizes {k} and {j} differ; expected equal ones"),
            ));
        }
        self.call1("aten.mm.default", vec![a.arg(), b.arg()], &[], dtype, &[a.dim(0), b.dim(1)])
    }

    /// `a @ b` of `[n, m, k]` and `[n, k, p]`.
    pub fn bmm(&mut self, a: &V, b: &V) -> Result<V, Error> {
        if a.rank() != 3 || b.rank() != 3 || a.dim(0) != b.dim(0) || a.dim(2) != b.dim(1) {
            let message = format!("[{}] and [{}]; expected [n,m,k] and [n,k,p]", a.sizes(), b.sizes());
            return Err(Error::shape("aten.bmm.default", message));
        }
        let dtype = promote_types(a.dtype, b.dtype)?;
        self.call1("aten.bmm.default", vec![a.arg(), b.arg()], &[], dtype, &[a.dim(0), a.dim(1), b.dim(2)])
    }

    /// A tensor of one number.
    pub fn full(&mut self, shape: &[Expr], dtype: DType, value: impl Into<Arg>) -> Result<V, Error> {
        let args = vec![sizes_arg(shape), value.into()];
        self.call1("aten.full.default", args, &[("dtype", Arg::DType(dtype))], dtype, shape)
    }

    /// `0, 1, …, size-1`
    pub fn iota(&mut self, size: &Expr, dtype: DType) -> Result<V, Error> {
        let args = vec![Arg::Int(0), crate::value::size_arg(size), Arg::Int(1)];
        let dtype_arg = [("dtype", Arg::DType(dtype))];
        self.call1("aten.arange.start_step", args, &dtype_arg, dtype, std::slice::from_ref(size))
    }
}
