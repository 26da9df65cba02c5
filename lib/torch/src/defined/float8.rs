//! `torchao`: 8-bit floats with scales.

use super::Given;
use super::affine::Blocks;
use super::math::{Math, number};
use crate::engine::Engine;
use crate::error::Error;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::DType;

/// The greatest finite value of an 8-bit float, by PyTorch's number of its dtype.
fn greatest(dtype: i64) -> Result<f64, Error> {
    let known =
        [(DType::F8E4M3FN, 448.0), (DType::F8E5M2, 57344.0), (DType::F8E4M3FNUZ, 240.0), (DType::F8E5M2FNUZ, 57344.0)];
    let found = known.iter().find(|(known, _)| number(*known) == dtype);
    found.map(|(_, max)| *max).ok_or_else(|| Error::value("float8_dtype is no 8-bit float"))
}

fn float8_dtype(given: &Given<'_>) -> Result<i64, Error> {
    Ok(given.int_or("float8_dtype")?.unwrap_or(number(DType::F8E4M3FN)))
}

/// `max(|tensor|) / max(float8)` by blocks, to a power of two where the scale's dtype holds nothing else.
pub fn choose_scale(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let tensor = given.tensor("tensor")?;
    let (shape, block) = (tensor.shape()?, given.ints("block_size")?);
    let blocks = Blocks::of(&block, &shape)?;
    let magnitude = engine.tensor("aten.abs.default", &[m.reshape(tensor, &blocks.shape)?.into()])?;
    let (_, mut widest) = m.extremes(&magnitude, &blocks.inside, true)?;
    let (low, high) = (given.get("hp_value_lb").clone(), given.get("hp_value_ub").clone());
    if !matches!((&low, &high), (Value::None, Value::None)) {
        widest = m.clamp(&widest, low, high)?;
    }
    let counts: Vec<i64> = shape.iter().zip(&block).map(|(n, b)| n / (*b).max(1)).collect();
    let mut scale = m.reshape(&m.div(&widest, greatest(float8_dtype(given)?)?)?, &counts)?;
    if given.int_or("scale_dtype")?.is_some_and(|dtype| dtype == number(DType::F8E8M0FNU)) {
        let exponent = m.round(&engine.tensor("aten.log2.default", &[scale.into()])?)?;
        scale = engine.tensor("aten.exp2.default", &[exponent.into()])?;
    }
    Ok(vec![m.to(&scale, number(DType::F32))?.into()])
}

/// A scale for every element, unless it broadcasts as it is.
fn expanded(m: Math<'_>, scale: &Tensor, shape: &[i64]) -> Result<Tensor, Error> {
    let own = scale.shape()?;
    let broadcasts = own.iter().zip(shape).all(|(a, b)| a == b || *a == 1);
    if own.iter().product::<i64>() == 1 || broadcasts {
        return Ok(scale.clone());
    }
    if own.len() != shape.len() || own.iter().zip(shape).any(|(a, b)| *a == 0 || b % a != 0) {
        return Err(Error::value(format!("scales of {own:?} for a tensor of {shape:?}")));
    }
    let mut scale = scale.clone();
    for (dim, (a, b)) in own.iter().zip(shape).enumerate() {
        if b / a > 1 {
            let args = [scale.into(), (b / a).into(), (dim as i64).into()];
            scale = m.0.tensor("aten.repeat_interleave.self_int", &args)?;
        }
    }
    Ok(scale)
}

/// `clamp(tensor / scale, -max, max).to(float8)`.
pub fn quantize(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let tensor = m.to(given.tensor("tensor")?, number(DType::F32))?;
    let scaled = m.div(&tensor, &expanded(m, given.tensor("scale")?, &tensor.shape()?)?)?;
    let dtype = float8_dtype(given)?;
    let max = greatest(dtype)?;
    Ok(vec![m.to(&m.clamp(&scaled, (-max).into(), max.into())?, dtype)?.into()])
}

/// `(tensor.to(f32) * scale).to(output_dtype)`.
pub fn dequantize(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let tensor = m.to(given.tensor("tensor")?, number(DType::F32))?;
    let scaled = m.mul(&tensor, &expanded(m, given.tensor("scale")?, &tensor.shape()?)?)?;
    let dtype = given.int_or("output_dtype")?.unwrap_or(number(DType::F32));
    Ok(vec![m.to(&scaled, dtype)?.into()])
}
