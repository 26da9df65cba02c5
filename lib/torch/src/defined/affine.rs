//! `torchao`: a scale and zero point for each block of a tensor.

use super::Given;
use super::math::{Math, number};
use crate::engine::Engine;
use crate::error::Error;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::DType;

/// How a tensor is seen as blocks: its shape with every divided dimension as two, and the dimensions inside blocks.
pub(super) struct Blocks {
    /// The shape.
    pub shape: Vec<i64>,
    /// The dimensions inside blocks.
    pub inside: Vec<i64>,
}

impl Blocks {
    /// A tensor's blocks.
    pub(super) fn of(block: &[i64], size: &[i64]) -> Result<Blocks, Error> {
        if block.len() != size.len() {
            return Err(Error::value(format!("blocks of {block:?} for a tensor of {size:?}")));
        }
        let mut blocks = Blocks { shape: Vec::new(), inside: Vec::new() };
        for (&b, &n) in block.iter().zip(size) {
            if b != n && b > 1 {
                if n % b != 0 {
                    return Err(Error::value(format!("{size:?} does not divide into blocks of {block:?}")));
                }
                blocks.inside.push(blocks.shape.len() as i64 + 1);
                blocks.shape.extend([n / b, b]);
            } else {
                if b != 1 {
                    blocks.inside.push(blocks.shape.len() as i64);
                }
                blocks.shape.push(n);
            }
        }
        Ok(blocks)
    }

    /// The shape with one element a block.
    pub(super) fn reduced(&self) -> Vec<i64> {
        let is_inside = |k: usize| self.inside.contains(&(k as i64));
        self.shape.iter().enumerate().map(|(k, n)| if is_inside(k) { 1 } else { *n }).collect()
    }
}

/// The least and greatest value of an integer dtype, by PyTorch's number.
fn bounds(dtype: i64) -> Result<(i64, i64), Error> {
    let known = [DType::U2, DType::U4, DType::U8, DType::I2, DType::I4, DType::I8, DType::I16, DType::I32];
    let found = known.into_iter().find(|d| number(*d) == dtype);
    let dtype = found.ok_or_else(|| Error::value("quant_min and quant_max are not given, and the dtype has none"))?;
    let is_signed = dtype.class() == m2m_record::dtype::Class::Signed;
    let bits = dtype.bits() - u32::from(is_signed);
    Ok((if is_signed { -(1 << bits) } else { 0 }, (1 << bits) - 1))
}

/// The range of quantized values: what is given, else that of the dtype.
fn range(given: &Given<'_>, dtype: i64) -> Result<(Value, Value), Error> {
    let or = |name, bound: fn((i64, i64)) -> i64| match given.get(name) {
        Value::None => bounds(dtype).map(|both| Value::Int(bound(both))),
        other => Ok(other.clone()),
    };
    Ok((or("quant_min", |b| b.0)?, or("quant_max", |b| b.1)?))
}

/// `clamp(round(input * (1 / scale)) + zero_point, quant_min, quant_max).to(output_dtype)` by blocks.
pub fn quantize(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = given.tensor("input")?;
    let shape = input.shape()?;
    let blocks = Blocks::of(&given.ints("block_size")?, &shape)?;
    let mut dtype = given.int("output_dtype")?;
    let (low, high) = range(given, dtype)?;
    if [DType::U2, DType::U4].iter().any(|d| number(*d) == dtype) {
        dtype = number(DType::U8);
    }
    let seen = m.reshape(input, &blocks.shape)?;
    let scale = m.reshape(given.tensor("scale")?, &blocks.reduced())?;
    let mut scaled = m.round(&m.mul(&seen, &m.inverse(&scale)?)?)?;
    if let Some(zero) = zero_point(given)? {
        scaled = m.add(&scaled, &m.reshape(zero, &blocks.reduced())?)?;
    }
    let clamped = m.clamp(&scaled, low, high)?;
    Ok(vec![m.to(&m.reshape(&clamped, &shape)?, dtype)?.into()])
}

/// The zero point, unless it is absent or empty.
fn zero_point<'a>(given: &'a Given<'_>) -> Result<Option<&'a Tensor>, Error> {
    match given.get("zero_point") {
        Value::Tensor(zero) if !zero.shape()?.contains(&0) => Ok(Some(zero)),
        _ => Ok(None),
    }
}

/// `(input.to(output_dtype) - zero_point.to(output_dtype)) * scale` by blocks.
pub fn dequantize(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = given.tensor("input")?;
    let shape = input.shape()?;
    let blocks = Blocks::of(&given.ints("block_size")?, &shape)?;
    let dtype = given.int_or("output_dtype")?.unwrap_or(number(DType::F32));
    let mut wide = m.to(&m.reshape(input, &blocks.shape)?, dtype)?;
    if let Some(zero) = zero_point(given)? {
        wide = m.sub(&wide, &m.to(&m.reshape(zero, &blocks.reduced())?, dtype)?)?;
    }
    let scaled = m.mul(&wide, &m.reshape(given.tensor("scale")?, &blocks.reduced())?)?;
    Ok(vec![m.to(&m.reshape(&scaled, &shape)?, dtype)?.into()])
}

/// Scale and zero point from the extremes of each block.
pub fn choose_qparams(engine: &Engine, given: &Given<'_>) -> Result<Vec<Value>, Error> {
    let m = Math(engine);
    let input = given.tensor("input")?;
    let (shape, block) = (input.shape()?, given.ints("block_size")?);
    let blocks = Blocks::of(&block, &shape)?;
    let (low, high) = range(given, given.int("target_dtype")?)?;
    let keeps = matches!(given.get("keepdim"), Value::Bool(true));
    let eps = match given.get("eps") {
        Value::None => smallest_normal(input.dtype()?),
        eps => eps.float()?,
    };
    let (least, greatest) = m.extremes(&m.reshape(input, &blocks.shape)?, &blocks.inside, keeps)?;
    let (least, greatest) = (m.negative_part(&least)?, m.positive_part(&greatest)?);
    let (mut scale, mut zero) = match given.get("mapping_type") {
        Value::Str(kind) if kind == "ASYMMETRIC" => asymmetric(m, &least, &greatest, &low, &high, eps)?,
        Value::Str(kind) if kind == "SYMMETRIC" || kind == "SYMMETRIC_NO_CLIPPING_ERR" => {
            symmetric(m, &least, &greatest, &low, &high, eps, kind == "SYMMETRIC")?
        }
        other => {
            return Err(Error::value(format!(
                "mapping_type is {}; expected SYMMETRIC or ASYMMETRIC",
                other.describe()
            )));
        }
    };
    if keeps {
        let counts: Vec<i64> = shape.iter().zip(&block).map(|(n, b)| n / (*b).max(1)).collect();
        (scale, zero) = (m.reshape(&scale, &counts)?, m.reshape(&zero, &counts)?);
    }
    let is_asymmetric = matches!(given.get("mapping_type"), Value::Str(kind) if kind == "ASYMMETRIC");
    let zero_dtype = given.int_or("zero_point_dtype")?.or(is_asymmetric.then_some(number(DType::I32)));
    let scale = m.to(&scale, given.int_or("scale_dtype")?.unwrap_or(number(input.dtype()?)))?;
    let zero = zero_dtype.map_or(Ok(zero.clone()), |dtype| m.to(&zero, dtype))?;
    Ok(vec![scale.into(), zero.into()])
}

/// `scale = max((greatest - least) / (high - low), eps)`, `zero = clamp(low - round(least / scale))`.
fn asymmetric(
    m: Math<'_>,
    least: &Tensor,
    greatest: &Tensor,
    low: &Value,
    high: &Value,
    eps: f64,
) -> Result<(Tensor, Tensor), Error> {
    let scale = m.div(&m.sub(greatest, least)?, high.float()? - low.float()?)?;
    let scale = m.clamp(&scale, eps.into(), Value::None)?;
    let zero = m.rsub(&m.round(&m.div(least, &scale)?)?, low.clone())?;
    Ok((scale, m.clamp(&zero, low.clone(), high.clone())?))
}

/// The zero point in the middle; the scale from the widest side, or from the side that needs the larger one.
fn symmetric(
    m: Math<'_>,
    least: &Tensor,
    greatest: &Tensor,
    low: &Value,
    high: &Value,
    eps: f64,
    is_centred: bool,
) -> Result<(Tensor, Tensor), Error> {
    let (quant_min, quant_max) = (low.float()?, high.float()?);
    let scale = if is_centred {
        m.div(&m.max(&m.mul(least, -1i64)?, greatest)?, (quant_max - quant_min) / 2.0)?
    } else {
        let (below, above) = (m.div(least, quant_min)?, m.div(greatest, quant_max)?);
        m.select(&m.is_greater(&below, &above)?, &below, &above)?
    };
    let zero = m.full_like(&scale, ((quant_max + quant_min + 1.0) / 2.0) as i64)?;
    Ok((m.clamp(&scale, eps.into(), Value::None)?, zero))
}

fn smallest_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-14),
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_split_the_dimensions_that_they_divide() {
        let blocks = Blocks::of(&[3, 3, 2, 10], &[3, 3, 10, 10]).unwrap();
        assert_eq!((blocks.shape.clone(), blocks.inside.clone()), (vec![3, 3, 5, 2, 10], vec![0, 1, 3, 4]));
        assert_eq!(blocks.reduced(), [1, 1, 5, 1, 1]);
        assert!(Blocks::of(&[4], &[10]).is_err());
        assert!(Blocks::of(&[4, 1], &[10]).is_err());
    }

    #[test]
    fn bounds_are_those_of_two_s_complement() {
        assert_eq!(bounds(number(DType::I8)).unwrap(), (-128, 127));
        assert_eq!(bounds(number(DType::U4)).unwrap(), (0, 15));
        assert!(bounds(number(DType::F32)).is_err());
    }
}
