//! Checks that the program itself makes when it runs, as `cf.assert` with its own message; and numbers taken out of
//! tensors, on which most of them depend.

use super::cx::{Cx, Val};
use super::scalar::{Scalars, convert};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{CmpF, CmpI, Value};
use m2m_record::{DType, Node, ScalarKind};

/// The truth of a number.
pub fn truth<'c>(cx: &Cx<'c>, kind: ScalarKind, value: Value<'c>) -> Result<Value<'c>> {
    let b = &cx.b;
    Ok(match kind {
        ScalarKind::Bool => value,
        ScalarKind::Int => b.cmpi(CmpI::Ne, value, b.const_index(0)?)?,
        ScalarKind::Float => b.cmpf(CmpF::Une, value, b.const_float(b.elem("f64")?, 0.0)?)?,
        other => return Err(Error::unsupported(format!("the truth of a {other:?} number"))),
    })
}

/// `_assert_scalar(self, assert_msg)`: fails with the message where the number is zero or false.
pub fn assert_scalar<'c>(cx: &mut Cx<'c>, _: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (kind, value) = cx.number_arg(bound.arg("self")?)?;
    let holds = truth(cx, kind, value)?;
    cx.b.assert(holds, bound.str("assert_msg")?)?;
    Ok(vec![])
}

/// `_assert_async(self, assert_msg)`: fails where the one element of a tensor is zero or false.
pub fn assert_async<'c>(cx: &mut Cx<'c>, _: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let message = if bound.has("assert_msg") {
        bound.str("assert_msg")?
    } else {
        "Expected Tensor with single nonzero value, but got zero"
    };
    let element = only_element(cx, t.value, t.shape.len())?;
    let holds = Scalars::new(&cx.b, t.dtype).truth(element)?;
    cx.b.assert(holds, message)?;
    Ok(vec![])
}

/// `sym_constrain_range(size, min, max)`: fails where the number is outside the bounds that are given.
pub fn constrain_range<'c>(cx: &mut Cx<'c>, _: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let size = cx.size_arg(bound.arg("size")?)?;
    let size = cx.b.size_value(size)?;
    let bounds = [("min", CmpI::Sge, "at least"), ("max", CmpI::Sle, "at most")];
    for (name, predicate, words) in bounds {
        let Some(limit) = bound.int_or(name)? else { continue };
        let holds = cx.b.cmpi(predicate, size, cx.b.const_index(limit)?)?;
        cx.b.assert(holds, &format!("a size from data must be {words} {limit}"))?;
    }
    Ok(vec![])
}

/// The first element, which is the only one.
pub fn only_element<'c>(cx: &Cx<'c>, tensor: Value<'c>, rank: usize) -> Result<Value<'c>> {
    let zero = cx.b.const_index(0)?;
    Ok(cx.b.extract(tensor, &vec![zero; rank])?)
}

/// `item(self)`: the one element of a tensor, as a number. Integers become `index`, floats `f64`, bools `i1`.
pub fn item<'c>(cx: &mut Cx<'c>, _: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let element = only_element(cx, t.value, t.shape.len())?;
    let b = &cx.b;
    let (kind, value) = if t.dtype == DType::Bool {
        (ScalarKind::Bool, element)
    } else if t.dtype.is_integer() {
        let wide = convert(b, element, t.dtype, DType::I64)?;
        (ScalarKind::Int, b.index_cast(wide, b.index_type())?)
    } else if t.dtype.is_float() {
        (ScalarKind::Float, convert(b, element, t.dtype, DType::F64)?)
    } else {
        return Err(Error::unsupported(format!("a number out of a tensor of {}", t.dtype)));
    };
    Ok(vec![Val::Scalar(kind, value)])
}
