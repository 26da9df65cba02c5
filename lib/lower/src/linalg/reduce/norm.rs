//! Vector norms.

use super::{Axes, accumulator, finish, finish_plain, fold};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::scalar::{Compare, Scalars, compute_dtype, convert};
use m2m_aten::bind::Bound;
use m2m_aten::promote::real_of;
use m2m_mlir::Value;
use m2m_record::{Arg, Node};

/// What is folded, by the order of the norm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// The number of elements that are not 0.
    Zero,
    /// `sum |x|`
    One,
    /// `sqrt(sum x^2)`
    Two,
    /// `max |x|`
    Max,
    /// `min |x|`
    Min,
    /// `(sum |x|^p)^(1/p)`
    P(f64),
}

impl Order {
    fn of(p: f64) -> Self {
        match p {
            0.0 => Order::Zero,
            1.0 => Order::One,
            2.0 => Order::Two,
            f64::INFINITY => Order::Max,
            f64::NEG_INFINITY => Order::Min,
            p => Order::P(p),
        }
    }

    fn step<'c>(self, s: &Scalars<'_, 'c>, acc: Value<'c>, x: Value<'c>) -> Result<Value<'c>> {
        let magnitude = s.b.unary("math.absf", x)?;
        match self {
            Order::Zero => {
                let is_zero = s.compare(Compare::Eq, x, s.number(0.0)?)?;
                s.add(acc, s.b.select(is_zero, s.number(0.0)?, s.number(1.0)?)?)
            }
            Order::One => s.add(acc, magnitude),
            Order::Two => s.add(acc, s.mul(x, x)?),
            Order::Max => s.maximum(acc, magnitude),
            Order::Min => s.minimum(acc, magnitude),
            Order::P(p) => s.add(acc, s.b.binary("math.powf", magnitude, s.number(p)?)?),
        }
    }
}

/// `linalg.vector_norm(self, ord, dim, keepdim, dtype)`, in the result's type (f32 for halves); of complex elements
/// that of their magnitudes.
pub fn vector_norm<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    norm(cx, node, bound, "ord")
}

/// `norm(self, p, dim, keepdim, dtype)`: the vector norm, of order 2 where `p` is none.
pub fn p_norm<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    norm(cx, node, bound, "p")
}

fn norm<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, name: &str) -> Result<Vec<Val<'c>>> {
    let (t, result) = (cx.tensor(bound.tensor("self")?)?, cx.result_type(node, 0)?.clone());
    if !(t.dtype.is_float() || t.dtype.is_complex()) || !result.dtype.is_float() {
        return Err(Error::unsupported(format!("the norm of {} elements as {}", t.dtype, result.dtype)));
    }
    let order = match bound.arg(name)? {
        Arg::Null => Order::Two,
        Arg::Int(_) | Arg::Float(_) => Order::of(bound.float(name)?),
        other => return Err(Error::unsupported(format!("a norm of order {other:?}"))),
    };
    let axes = Axes::of(&t, bound)?;
    let (from, as_type) = (t.dtype, result.dtype);
    let acc = accumulator(as_type, &axes.count(&t)?);
    let first = if order == Order::Min { f64::INFINITY } else { 0.0 };
    let init = Scalars::new(&cx.b, acc).number(first)?;
    let folded = fold(cx, &t, &axes, acc, init, |s, x, so_far| {
        let (x, from) = if from.is_complex() {
            let wide = compute_dtype(from);
            let x = convert(s.b, x, from, wide)?;
            (Scalars::new(s.b, wide).magnitude(x)?, real_of(wide))
        } else {
            (x, from)
        };
        let x = convert(s.b, convert(s.b, x, from, as_type)?, as_type, acc)?;
        order.step(s, so_far, x)
    })?;
    let t = match order {
        Order::Two => finish(cx, folded, &[], &result, |s, v| Ok(s.b.unary("math.sqrt", v[0])?))?,
        Order::P(p) => {
            finish(cx, folded, &[], &result, |s, v| Ok(s.b.binary("math.powf", v[0], s.number(1.0 / p)?)?))?
        }
        _ => finish_plain(cx, folded, &result)?,
    };
    Ok(vec![Val::Tensor(t)])
}
