//! `quantized_decomposed`: one scale and zero point a tensor.

use super::Given;
use super::math::{Math, number};
use crate::engine::Engine;
use crate::error::Error;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::DType;

/// The input, half types widened to f32.
pub(super) fn widened(m: Math<'_>, input: &Tensor) -> Result<Tensor, Error> {
    match input.dtype()? {
        DType::F16 | DType::BF16 => m.to(input, number(DType::F32)),
        _ => Ok(input.clone()),
    }
}

/// `clamp(round(input * (1 / scale)) + zero_point, quant_min, quant_max).to(dtype)`, the inverse taken in f64.
pub fn quantize(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = widened(m, given.tensor("input")?)?;
    let (scale, zero_point) = (m.item(given.get("scale"))?.float()?, m.item(given.get("zero_point"))?.int()?);
    let (low, high) = (m.item(given.get("quant_min"))?.int()?, m.item(given.get("quant_max"))?.int()?);
    let scaled = m.round(&m.mul(&input, 1.0 / scale)?)?;
    let clamped = m.clamp(&m.add(&scaled, zero_point)?, low.into(), high.into())?;
    Ok(vec![m.to(&clamped, given.int("dtype")?)?.into()])
}

/// `(input.to(out_dtype) - zero_point) * scale`.
pub fn dequantize(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let (scale, zero_point) = (m.item(given.get("scale"))?.float()?, m.item(given.get("zero_point"))?.int()?);
    let dtype = given.int_or("out_dtype")?.unwrap_or(number(DType::F32));
    let wide = m.to(given.tensor("input")?, dtype)?;
    Ok(vec![m.mul(&m.sub(&wide, zero_point)?, scale)?.into()])
}

/// The extremes of the input, zero included, and the smallest scale as a tensor of one element.
fn range(m: Math<'_>, given: &Given<'_>) -> Result<(Tensor, Tensor, Tensor), Error> {
    let mut extremes = m.0.call("aten.aminmax.default", &[given.get("input").clone()])?;
    let (Some(Value::Tensor(high)), Some(Value::Tensor(low))) = (extremes.pop(), extremes.pop()) else {
        return Err(Error::value("aten.aminmax.default gave no tensors"));
    };
    let eps = m.0.copied(DType::F32, &[1], &(given.float("eps")? as f32).to_le_bytes())?;
    Ok((m.negative_part(&low)?, m.positive_part(&high)?, eps))
}

fn qparams(m: Math<'_>, scale: &Tensor, zero_point: &Tensor) -> Result<Vec<Value>, Error> {
    Ok(vec![m.to(scale, number(DType::F64))?.into(), m.to(zero_point, number(DType::I64))?.into()])
}

/// `scale = max((max - min) / (quant_max - quant_min), eps)`, `zero_point = quant_min - round(min / scale)`.
pub fn choose_qparams(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let (low, high, eps) = range(m, given)?;
    let (quant_min, quant_max) = (given.int("quant_min")?, given.int("quant_max")?);
    let scale = m.max(&m.div(&m.sub(&high, &low)?, (quant_max - quant_min) as f64)?, &eps)?;
    let steps = m.to(&m.round(&m.div(&low, &scale)?)?, number(DType::I32))?;
    let zero_point = m.clamp(&m.rsub(&steps, quant_min)?, quant_min.into(), quant_max.into())?;
    qparams(m, &scale, &zero_point)
}

/// `scale = max(max(-min, max) / ((quant_max - quant_min) / 2), eps)`; the zero point is 0, or 128 for u8.
pub fn choose_qparams_symmetric(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let (low, high, eps) = range(m, given)?;
    let half = (given.int("quant_max")? - given.int("quant_min")?) as f64 / 2.0;
    let widest = m.max(&m.mul(&low, -1i64)?, &high)?;
    let scale = m.max(&m.div(&widest, half)?, &eps)?;
    let zero = if given.int("dtype")? == number(DType::U8) { 128i64 } else { 0 };
    let zero_point = m.full_like(&scale, zero)?;
    qparams(m, &scale, &zero_point)
}
