//! `transformers`: mixtures of experts.

use super::Given;
use crate::engine::Engine;
use crate::error::Error;
use crate::value::Value;

/// Rows sorted by expert, each group times its expert's matrix: `input: [s, k]`, `weight: [e, k, n]`, and in `offs: [e]` the
/// row behind each group. Rows behind the last group are zeros.
pub fn grouped_mm(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let (input, weight) = (given.tensor("input")?, given.tensor("weight")?);
    let (rows, sizes) = (input.shape()?, weight.shape()?);
    let (&[count, _], &[experts, _, width]) = (rows.as_slice(), sizes.as_slice()) else {
        return Err(Error::value(format!("{input:?} and {weight:?}; expected [s, k] and [e, k, n]")));
    };
    let zeros = [[count, width].as_slice().into(), Value::Int(crate::tensor::code(input.dtype()?)?.into())];
    let result = engine.tensor("aten.zeros.default", &zeros)?;
    let slice = |tensor: &crate::Tensor, start: i64, end: i64| {
        engine.tensor("aten.slice.Tensor", &[tensor.into(), Value::Int(0), start.into(), end.into()])
    };
    let mut start = 0;
    for expert in 0..experts {
        let at =
            |tensor: &crate::Tensor| engine.tensor("aten.select.int", &[tensor.into(), Value::Int(0), expert.into()]);
        let end = engine.call("aten.item.default", &[at(given.tensor("offs")?)?.into()])?;
        let end = end.first().unwrap_or(&Value::None).int()?;
        if end < start || end > count {
            return Err(Error::value(format!("rows {start} to {end} of {count} for expert {expert}")));
        }
        if end > start {
            let product = engine.tensor("aten.mm.default", &[slice(input, start, end)?.into(), at(weight)?.into()])?;
            engine.call("aten.copy_.default", &[slice(&result, start, end)?.into(), product.into()])?;
        }
        start = end;
    }
    Ok(vec![result.into()])
}
