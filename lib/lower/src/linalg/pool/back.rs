//! From pooled elements back to the places they came from: `max_unpoolNd`, and the gradient of `max_poolNd`.
//!
//! `self: [N, C, *]` or `[C, *]`, and as many indices, each a place in the plane of the result as `max_pool` gives it.
//! Definitions: torch.nn.MaxUnpool2d in PyTorch's documentation; derivatives.yaml for the gradient.

use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::Operand;
use crate::linalg::index::{integers, wrapped};
use crate::linalg::scalar::Scalars;
use crate::linalg::scatter::{Along, Combine, Writes, write};
use crate::linalg::spatial::Indices;
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{DType, Node};

/// `max_unpoolNd(self, indices, output_size, ...)`: zeros with each element of `self` at its place; where several meet
/// the last one stays.
pub fn unpool<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    put(cx, node, bound, "self", Combine::Replace)
}

/// `max_poolNd_with_indices_backward(grad_output, self, ..., indices)`: zeros with every element of the gradient added
/// at its place.
pub fn max_pool_backward<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    put(cx, node, bound, "grad_output", Combine::Add)
}

fn put<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, source: &str, combine: Combine) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let (source, index) = (cx.tensor(bound.tensor(source)?)?, integers(cx, bound.tensor("indices")?)?);
    let spatial = if bound.op().contains("3d") { 3 } else { 2 };
    let lead = result.shape.len().checked_sub(spatial).filter(|_| index.rank() == result.shape.len());
    let lead = lead.ok_or_else(|| Error::unsupported(format!("indices of shape {:?}", index.shape)))?;
    let zero = Scalars::new(&cx.b, result.dtype).int(0)?;
    let value = cx.filled(result.dtype, &result.shape, zero)?;
    let zeros = Tensor { value, dtype: result.dtype, shape: result.shape.clone() };
    let extents = result.shape[lead..].iter().map(|dim| cx.size_value(dim)).collect::<Result<Vec<_>>>()?;
    let whole = extents.iter().skip(1).try_fold(extents[0], |product, extent| cx.b.muli(product, *extent))?;
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        let mut flat = wrapped(b, b.extract(index.value, at)?, DType::I64, whole)?;
        let mut place = at.to_vec();
        for (axis, extent) in extents.iter().enumerate().rev() {
            let p = Indices { b };
            place[lead + axis] = if axis == 0 { p.clamp(flat, *extent)? } else { b.remsi(flat, *extent)? };
            flat = b.divsi(flat, *extent)?;
        }
        Ok(place.into_iter().map(Some).collect())
    };
    let part = |_: &Builder<'c>, at: &[Value<'c>]| Ok(at.iter().copied().map(Along::At).collect());
    let writes = Writes {
        domain: index.shape.clone(),
        place: &place,
        source: Operand::Tensor(source),
        part: &part,
        scale: None,
    };
    Ok(vec![Val::Tensor(write(cx, &zeros, &writes, combine, true)?)])
}
