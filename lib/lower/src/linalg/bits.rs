//! Bits read as another dtype of the same width.

use super::cx::{Cx, Tensor, Val};
use super::elementwise::into_mlir;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Iter, Map};
use m2m_record::Node;

/// `view(self, dtype)`: the same bytes as elements of another dtype, of as many bits.
pub fn view<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let to = cx.result_type(node, 0)?.dtype;
    let is_number = |dtype: m2m_record::DType| dtype.is_float() || dtype.is_integer();
    if t.dtype.bits() != to.bits() || !is_number(t.dtype) || !is_number(to) {
        return Err(Error::unsupported(format!("{} seen as {to}; expected numbers of the same width", t.dtype)));
    }
    let element = cx.element(to)?;
    if cx.element(t.dtype)? == element {
        return Ok(vec![Val::Tensor(Tensor { dtype: to, ..t })]);
    }
    let (out, same) = (cx.empty(to, &t.shape)?, Map::identity(t.rank()));
    let iterators = vec![Iter::Parallel; t.rank()];
    let values = cx.b.generic(&[(t.value, same.clone())], &[(out, same)], &iterators, |b, v| {
        let run = || Ok(vec![b.op1("arith.bitcast", &[v[0]], element, &[])?]);
        run().map_err(into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value: values[0], dtype: to, shape: t.shape })])
}
