//! Elements against references.

use m2m_record::DType;

/// How far a float may be from its reference, relative to it and beyond that. One operator is computed in another order
/// or by another approximation than PyTorch's; halves are also rounded at each step of a decomposition.
fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F64 => (1e-9, 1e-9),
        DType::F32 => (1e-5, 1e-5),
        DType::F16 => (4e-3, 1e-3),
        DType::BF16 => (3e-2, 1e-2),
        _ => (0.0, 0.0),
    }
}

/// The first element that is wrong, and how.
pub fn difference(dtype: DType, found: &[u8], expected: &[u8]) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} bytes, expected {}", found.len(), expected.len()));
    }
    let Some((found, expected)) = floats(dtype, found).zip(floats(dtype, expected)) else {
        let width = (dtype.bits() / 8).max(1) as usize;
        let at = found.chunks(width).zip(expected.chunks(width)).position(|(x, y)| x != y)?;
        let shown = |bytes: &[u8]| integer(dtype, &bytes[at * width..(at + 1) * width]);
        return Some(format!("element {at} is {}, expected {}", shown(found), shown(expected)));
    };
    let (relative, absolute) = tolerance(dtype);
    let is_right =
        |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= absolute + relative * y.abs();
    let at = found.iter().zip(&expected).position(|(x, y)| !is_right(*x, *y))?;
    Some(format!("element {at} is {:e}, expected {:e}", found[at], expected[at]))
}

fn floats(dtype: DType, bytes: &[u8]) -> Option<Vec<f64>> {
    Some(match dtype {
        DType::F64 => bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
        DType::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect(),
        DType::F16 => bytes.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).into()).collect(),
        DType::BF16 => bytes.as_chunks().0.iter().map(|b| half::bf16::from_le_bytes(*b).into()).collect(),
        _ => return None,
    })
}

fn integer(dtype: DType, bytes: &[u8]) -> i64 {
    let is_negative = !crate::dice::is_unsigned(dtype) && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let start = if is_negative { -1 } else { 0 };
    bytes.iter().rev().fold(start, |number, byte| number << 8 | i64::from(*byte))
}
