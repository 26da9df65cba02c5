//! `quantized_decomposed`: scales and zero points a channel, a token, or a group of a channel.

use super::Given;
use super::math::{Math, number};
use super::per_tensor::widened;
use crate::engine::Engine;
use crate::error::Error;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::DType;

/// A vector of as many elements as the axis has, in the shape that broadcasts along it.
fn along(m: Math<'_>, vector: &Tensor, input: &Tensor, axis: i64) -> Result<Tensor, Error> {
    let rank = input.shape()?.len() as i64;
    let axis = if axis < 0 { axis + rank } else { axis };
    if axis < 0 || axis >= rank {
        return Err(Error::value(format!("axis {axis} of a tensor with {rank} dimensions")));
    }
    let count = vector.shape()?.first().copied().unwrap_or(1);
    let shape: Vec<i64> = (0..rank).map(|k| if k == axis { count } else { 1 }).collect();
    m.reshape(vector, &shape)
}

/// `clamp(round(input * (1 / scales)) + zero_points, quant_min, quant_max)`.
fn quantized(m: Math<'_>, given: &Given<'_>, input: &Tensor, scales: &Tensor, zeros: &Tensor) -> Result<Tensor, Error> {
    let scaled = m.round(&m.mul(input, &m.inverse(scales)?)?)?;
    m.clamp(&m.add(&scaled, zeros)?, given.int("quant_min")?.into(), given.int("quant_max")?.into())
}

/// Along an axis, the rounding before the zero point is added.
pub fn quantize_per_channel(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = widened(m, given.tensor("input")?)?;
    let axis = given.int("axis")?;
    let scales = along(m, given.tensor("scales")?, &input, axis)?;
    let zeros = along(m, given.tensor("zero_points")?, &input, axis)?;
    let clamped = quantized(m, given, &input, &scales, &zeros)?;
    Ok(vec![m.to(&clamped, given.int("dtype")?)?.into()])
}

/// `(input - zero_points) * scales`, then `out_dtype`.
pub fn dequantize_per_channel(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = given.tensor("input")?;
    let axis = given.int("axis")?;
    let scales = along(m, given.tensor("scales")?, input, axis)?;
    let centred = match given.get("zero_points") {
        Value::Tensor(zeros) => m.sub(input, &along(m, zeros, input, axis)?)?,
        _ => input.clone(),
    };
    let dtype = given.int_or("out_dtype")?.unwrap_or(number(DType::F32));
    Ok(vec![m.to(&m.mul(&centred, &scales)?, dtype)?.into()])
}

/// Quantized and back, in f32.
pub fn fake_quant_per_channel(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = given.tensor("input")?;
    let axis = given.int("axis")?;
    let scales = m.to(&along(m, given.tensor("scales")?, input, axis)?, number(DType::F32))?;
    let zeros = m.to(&along(m, given.tensor("zero_points")?, input, axis)?, number(DType::I32))?;
    let clamped = quantized(m, given, input, &scales, &zeros)?;
    Ok(vec![m.mul(&m.sub(&clamped, &zeros)?, &scales)?.into()])
}

/// `scales = max(|input|, 1e-5) / 127` over the last axis; zero points are 0.
pub fn choose_qparams_per_token(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    if given.int("dtype")? != number(DType::I8) {
        return Err(Error::value("only i8 has per-token scales by this definition"));
    }
    let magnitude = engine.tensor("aten.abs.default", &[given.get("input").clone()])?;
    let (_, mut widest) = m.extremes(&magnitude, &[-1], true)?;
    if widest.dtype()? == DType::F16 {
        widest = m.to(&widest, number(DType::F32))?;
    }
    let scales = m.div(&m.clamp(&widest, 1e-5.into(), Value::None)?, 127i64)?;
    let zeros = engine.tensor("aten.zeros_like.default", &[(&scales).into()])?;
    Ok(vec![scales.into(), zeros.into()])
}

/// The asymmetric choice over the last axis, its zero point from the end whose error is smaller.
pub fn choose_qparams_per_token_asymmetric(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let (quant_min, quant_max) = (-128i64, 127i64);
    let (low, high) = m.extremes(given.tensor("input")?, &[-1], true)?;
    let (low, high) = (m.negative_part(&low)?, m.positive_part(&high)?);
    let scale = m.div(&m.sub(&high, &low)?, (quant_max - quant_min) as f64)?;
    let scale = m.clamp(&scale, f64::from(f32::EPSILON).into(), Value::None)?;
    let (least, greatest) = (m.div(&low, &scale)?, m.div(&high, &scale)?);
    let errors = m.add(&m.add(&least, quant_min)?, &m.add(&greatest, quant_max)?)?;
    let from_min = m.is_greater(&errors, 0i64)?;
    let zero = m.select(&from_min, &m.rsub(&least, quant_min)?, &m.rsub(&greatest, quant_max)?)?;
    let zero = m.round(&m.clamp(&zero, quant_min.into(), quant_max.into())?)?;
    Ok(vec![m.to(&scale, number(DType::F64))?.into(), m.to(&zero, number(DType::I64))?.into()])
}

/// `clamp(round(input * (1 / scales) + zero_points))`, the zero point added before the rounding.
fn rounded_last(
    m: Math<'_>,
    given: &Given<'_>,
    input: &Tensor,
    scales: &Tensor,
    zeros: &Tensor,
) -> Result<Tensor, Error> {
    let moved = m.add(&m.mul(input, &m.inverse(scales)?)?, zeros)?;
    let clamped = m.clamp(&m.round(&moved)?, given.int("quant_min")?.into(), given.int("quant_max")?.into())?;
    m.to(&clamped, given.int("dtype")?)
}

/// By the scale and zero point of each token.
pub fn quantize_per_token(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let (input, scales, zeros) = (given.tensor("input")?, given.tensor("scales")?, given.tensor("zero_points")?);
    Ok(vec![rounded_last(Math(engine), given, input, scales, zeros)?.into()])
}

/// `((input - zero_points) * scales).to(output_dtype)`.
pub fn dequantize_per_token(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let centred = m.sub(given.tensor("input")?, given.tensor("zero_points")?)?;
    Ok(vec![m.to(&m.mul(&centred, given.tensor("scales")?)?, given.int("output_dtype")?)?.into()])
}

/// By groups of `group_size` neighbours of a row.
pub fn quantize_per_channel_group(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = given.tensor("input")?;
    let size = group_size(given, input)?;
    let grouped = m.reshape(input, &[-1, size])?;
    let scales = m.reshape(given.tensor("scales")?, &[-1, 1])?;
    let zeros = m.reshape(given.tensor("zero_points")?, &[-1, 1])?;
    let result = rounded_last(m, given, &grouped, &scales, &zeros)?;
    Ok(vec![m.reshape(&result, &input.shape()?)?.into()])
}

/// `((input - zero_points) * scales).to(output_dtype)` by groups.
pub fn dequantize_per_channel_group(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = given.tensor("input")?;
    let size = group_size(given, input)?;
    let mut grouped = m.reshape(input, &[-1, size])?;
    if let Value::Tensor(zeros) = given.get("zero_points") {
        grouped = m.sub(&grouped, &m.reshape(zeros, &[-1, 1])?)?;
    }
    let scaled = m.mul(&grouped, &m.reshape(given.tensor("scales")?, &[-1, 1])?)?;
    let result = m.reshape(&scaled, &input.shape()?)?;
    Ok(vec![m.to(&result, given.int("output_dtype")?)?.into()])
}

/// The size of a group; a single scale a row stands for the whole row.
fn group_size(given: &Given<'_>, input: &Tensor) -> Result<i64, Error> {
    let size = given.int("group_size")?;
    let row = input.shape()?.last().copied().unwrap_or(1);
    let is_whole = size > row && given.tensor("scales")?.shape()?.last() == Some(&1);
    let size = if is_whole { row } else { size };
    if size < 1 || row % size != 0 {
        return Err(Error::value(format!("rows of {row} in groups of {size}")));
    }
    Ok(size)
}
