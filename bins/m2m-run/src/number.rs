//! The numbers behind bytes, for comparing and showing.
//!
//! Every float format fits f64 exactly. The 8-bit formats are decoded by their definitions (OCP OFP8 for E4M3 and E5M2,
//! the FNUZ forms with their bias one higher, no infinity and one NaN).

use m2m_record::DType;

/// An 8-bit float format: exponent bits, mantissa bits, bias, and how its special values are spelled.
struct ByteFormat {
    mantissa: u32,
    bias: i32,
    specials: Specials,
}

enum Specials {
    /// The highest exponent is infinity and NaN.
    Ieee,
    /// No infinity; all ones is NaN.
    AllOnes,
    /// No infinity; negative zero is NaN.
    NegativeZero,
}

fn byte_format(dtype: DType) -> Option<ByteFormat> {
    use Specials::{AllOnes, Ieee, NegativeZero};
    let (mantissa, bias, specials) = match dtype {
        DType::F8E4M3 => (3, 7, Ieee),
        DType::F8E3M4 => (4, 3, Ieee),
        DType::F8E5M2 => (2, 15, Ieee),
        DType::F8E4M3FN => (3, 7, AllOnes),
        DType::F8E4M3FNUZ => (3, 8, NegativeZero),
        DType::F8E5M2FNUZ => (2, 16, NegativeZero),
        DType::F8E4M3B11FNUZ => (3, 11, NegativeZero),
        _ => return None,
    };
    Some(ByteFormat { mantissa, bias, specials })
}

fn decode_byte(bits: u8, format: &ByteFormat) -> f64 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let magnitude = u32::from(bits & 0x7F);
    let (exponent, fraction) = (magnitude >> format.mantissa, magnitude & ((1 << format.mantissa) - 1));
    let highest = 0x7F >> format.mantissa;
    match format.specials {
        Specials::Ieee if exponent == highest => return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN },
        Specials::AllOnes if magnitude == 0x7F => return f64::NAN,
        Specials::NegativeZero if bits == 0x80 => return f64::NAN,
        _ => {}
    }
    let lead = if exponent == 0 { 0 } else { 1 << format.mantissa };
    let power = exponent.max(1).cast_signed() - format.bias - format.mantissa.cast_signed();
    sign * f64::from(lead + fraction) * 2_f64.powi(power)
}

fn chunks<const N: usize>(bytes: &[u8], decode: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| decode(*chunk)).collect()
}

/// Floats as f64; the parts of complex numbers one after the other. None for other dtypes.
pub fn floats(dtype: DType, bytes: &[u8]) -> Option<Vec<f64>> {
    Some(match dtype {
        DType::F64 | DType::C128 => chunks(bytes, f64::from_le_bytes),
        DType::F32 | DType::C64 => chunks(bytes, |chunk| f32::from_le_bytes(chunk).into()),
        DType::F16 | DType::C32 => chunks(bytes, |chunk| half::f16::from_le_bytes(chunk).into()),
        DType::BF16 => chunks(bytes, |chunk| half::bf16::from_le_bytes(chunk).into()),
        DType::F8E8M0FNU => {
            bytes.iter().map(|&bits| if bits == 0xFF { f64::NAN } else { 2_f64.powi(i32::from(bits) - 127) }).collect()
        }
        _ => {
            let format = byte_format(dtype)?;
            bytes.iter().map(|&bits| decode_byte(bits, &format)).collect()
        }
    })
}

/// The place of each float among the values of its dtype, zero in the middle: neighbours differ by one, which is a unit
/// in the last place. None for other dtypes.
pub fn places(dtype: DType, bytes: &[u8]) -> Option<Vec<i64>> {
    let part = match dtype {
        DType::C32 => DType::F16,
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other if other.is_float() => other,
        _ => return None,
    };
    let size = usize::try_from(part.size()?).ok()?;
    let sign = 1u64 << (part.bits() - 1);
    let place = |chunk: &[u8]| {
        let bits = chunk.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let magnitude = (bits & (sign - 1)).cast_signed();
        match part {
            DType::F8E8M0FNU => bits.cast_signed(),
            _ if bits & sign != 0 => -magnitude,
            _ => magnitude,
        }
    };
    Some(bytes.chunks_exact(size).map(place).collect())
}

/// Integers and bools, exactly. None for other dtypes.
pub fn integers(dtype: DType, bytes: &[u8]) -> Option<Vec<i128>> {
    let size = usize::try_from(dtype.size()?).ok()?;
    let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    if !(is_signed || matches!(dtype, DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64)) {
        return None;
    }
    let number = |chunk: &[u8]| {
        let fill = if is_signed && chunk.last().is_some_and(|byte| byte & 0x80 != 0) { 0xFF } else { 0 };
        let mut wide = [fill; 16];
        wide[..chunk.len()].copy_from_slice(chunk);
        i128::from_le_bytes(wide)
    };
    Some(bytes.chunks_exact(size).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_floats_by_their_definitions() {
        let one = |dtype, bits| floats(dtype, &[bits]).unwrap()[0];
        assert_eq!(one(DType::F8E4M3FN, 0x7E), 448.0);
        assert!(one(DType::F8E4M3FN, 0xFF).is_nan());
        assert_eq!(one(DType::F8E4M3FN, 0x01), 2_f64.powi(-9));
        assert_eq!(one(DType::F8E5M2, 0x7B), 57344.0);
        assert_eq!(one(DType::F8E5M2, 0xFC), f64::NEG_INFINITY);
        assert_eq!(one(DType::F8E4M3FNUZ, 0x7F), 240.0);
        assert!(one(DType::F8E5M2FNUZ, 0x80).is_nan());
        assert_eq!(one(DType::F8E5M2FNUZ, 0x7F), 57344.0);
        assert_eq!(one(DType::F8E8M0FNU, 0x80), 2.0);
    }

    #[test]
    fn neighbours_are_one_place_apart() {
        let place = |x: f32| places(DType::F32, &x.to_le_bytes()).unwrap()[0];
        assert_eq!(place(1.0f32.next_up()) - place(1.0), 1);
        assert_eq!(place(f32::from_bits(1)) - place(-f32::from_bits(1)), 2);
        assert_eq!(place(-0.0), 0);
        assert_eq!(places(DType::F8E4M3FN, &[0x81, 0x01]).unwrap(), [-1, 1]);
        assert_eq!(places(DType::C32, &[0, 0, 1, 0x80]).unwrap(), [0, -1]);
        assert_eq!(places(DType::I32, &[0; 4]), None);
    }

    #[test]
    fn integers_keep_sign_and_width() {
        assert_eq!(integers(DType::I8, &[0xFF, 1]).unwrap(), [-1, 1]);
        assert_eq!(integers(DType::U8, &[0xFF]).unwrap(), [255]);
        assert_eq!(integers(DType::U64, &[0xFF; 8]).unwrap(), [i128::from(u64::MAX)]);
        assert_eq!(integers(DType::F32, &[0; 4]), None);
    }
}
