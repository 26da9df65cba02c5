//! Tensors whose elements are read from computed places of another one.

use super::cx::{Cx, Tensor};
use super::elementwise::into_mlir;
use super::spatial::Indices;
use crate::error::Result;
use m2m_mlir::Value;
use m2m_record::Dim;

/// A tensor of `shape` whose element at `output` is the input's at `place(output)`. Places must be inside of the input.
pub fn gather<'c>(
    cx: &mut Cx<'c>,
    input: &Tensor<'c>,
    shape: &[Dim],
    place: impl FnOnce(&Indices<'_, 'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> Result<Tensor<'c>> {
    let out = cx.empty(input.dtype, shape)?;
    let value = cx.b.elementwise(&[], out, |b, _| {
        let run = || -> Result<_> {
            let output = (0..shape.len()).map(|axis| Ok(b.index(axis)?)).collect::<Result<Vec<_>>>()?;
            let place = place(&Indices { b }, &output)?;
            Ok(b.extract(input.value, &place)?)
        };
        run().map_err(into_mlir)
    })?;
    Ok(Tensor { value, dtype: input.dtype, shape: shape.to_vec() })
}
