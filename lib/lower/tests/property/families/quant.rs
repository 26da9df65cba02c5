//! Quantization and back, by tensor and by channel.

use super::axis;
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Types with their least and greatest number.
const TYPES: &[(DType, i64, i64)] = &[
    (DType::I8, -128, 127),
    (DType::I8, -8, 7),
    (DType::U8, 0, 255),
    (DType::I16, -32768, 32767),
    (DType::I32, -1000, 1000),
];

/// Quantization and its inverse.
pub fn quant(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(1, 4);
    let (shape, (dtype, low, high)) = (draw.filled_shape(rank), draw.dice.one(TYPES));
    let limits = [Arg::Int(low), Arg::Int(high)];
    let kind = Arg::DType(dtype);
    let x = draw.input(DType::F32, &shape, Range::Plain);
    match draw.dice.between(0, 4) {
        0 | 1 => {
            let parameters = [Arg::from(0.01 + draw.dice.unit()), Arg::Int(draw.dice.between(low.max(-9), 7))];
            let tail = || parameters.iter().chain(&limits).chain([&kind]).cloned();
            let args = std::iter::once(x.arg()).chain(tail()).collect();
            let q = draw.call("quantized_decomposed.quantize_per_tensor.default", args)?;
            if draw.dice.once_in(2) {
                return Ok(());
            }
            let args = std::iter::once(q.arg()).chain(tail()).collect();
            draw.call("quantized_decomposed.dequantize_per_tensor.default", args).map(drop)
        }
        2 => {
            let dim = axis(draw, rank).rem_euclid(rank);
            let channels = [shape[dim as usize]];
            let scales = draw.input(DType::F32, &channels, Range::Positive);
            let zeros = draw.input(DType::I64, &channels, Range::Between(low.max(-9), 7));
            let tail =
                || [scales.arg(), zeros.arg(), Arg::Int(dim)].into_iter().chain(limits.clone()).chain([kind.clone()]);
            let args = std::iter::once(x.arg()).chain(tail()).collect();
            let q = draw.call("quantized_decomposed.quantize_per_channel.default", args)?;
            if draw.dice.once_in(2) {
                return Ok(());
            }
            let args = std::iter::once(q.arg()).chain(tail()).collect();
            draw.call("quantized_decomposed.dequantize_per_channel.default", args).map(drop)
        }
        _ => {
            let [low, high] = limits;
            let args = vec![x.arg(), Arg::from(0.01 + draw.dice.unit()), Arg::Int(draw.dice.between(0, 7)), low, high];
            draw.call("aten.fake_quantize_per_tensor_affine.default", args).map(drop)
        }
    }
}
