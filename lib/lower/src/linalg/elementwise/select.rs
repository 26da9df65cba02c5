//! Choices between elements: `where`, `masked_fill`, clamping by tensors.

use super::{Operand, emit, unary};
use crate::error::Result;
use crate::linalg::cx::{Cx, Val};
use crate::linalg::scalar::compute_dtype;
use m2m_aten::bind::Bound;
use m2m_mlir::Value;
use m2m_record::{Arg, Node};

/// A loop over a bool tensor and two operands of the result's dtype.
fn choose<'c>(cx: &mut Cx<'c>, node: &Node, condition: &Arg, then: &Arg, otherwise: &Arg) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let operands = [Operand::of(cx, then)?, Operand::of(cx, otherwise)?];
    let condition = Operand::of(cx, condition)?;
    // The condition is brought to the common dtype too, as 1 or 0, and tested again.
    let common = result.dtype;
    let all = [condition, operands[0].clone(), operands[1].clone()];
    let t = emit(cx, result, &all, common, compute_dtype(common), |s, v: &[Value<'c>]| {
        Ok(s.b.select(s.truth(v[0])?, v[1], v[2])?)
    })?;
    Ok(vec![Val::Tensor(t)])
}

/// `where(condition, self, other)`
pub fn where_self<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    choose(cx, node, bound.arg("condition")?, bound.arg("self")?, bound.arg("other")?)
}

/// `masked_fill(self, mask, value)`
pub fn masked_fill<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    choose(cx, node, bound.arg("mask")?, bound.arg("value")?, bound.arg("self")?)
}

/// `clamp(self, min, max)`: of bounds that are known only at run time as if they were tensors.
pub fn clamp<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let is_known = |side: &Arg| !matches!(side, Arg::Sym(_) | Arg::Value(_));
    if is_known(bound.arg("min")?) && is_known(bound.arg("max")?) {
        unary::lower(cx, node, bound, unary::clamp)
    } else {
        clamp_tensor(cx, node, bound)
    }
}

/// `clamp(self, min, max)` with tensors for bounds; a bound that is NaN gives NaN.
pub fn clamp_tensor<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let (low, high) = (bound.arg("min")?, bound.arg("max")?);
    let mut operands = vec![Operand::of(cx, bound.arg("self")?)?];
    for side in [low, high].into_iter().filter(|a| **a != Arg::Null) {
        operands.push(Operand::of(cx, side)?);
    }
    let has_low = *low != Arg::Null;
    let common = result.dtype;
    let t = emit(cx, result, &operands, common, compute_dtype(common), |s, v| match *v {
        [x, low, high] => s.minimum(s.maximum(x, low)?, high),
        [x, low] if has_low => s.maximum(x, low),
        [x, high] => s.minimum(x, high),
        _ => Ok(v[0]),
    })?;
    Ok(vec![Val::Tensor(t)])
}
