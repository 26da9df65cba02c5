//! Arithmetic of shapes and strides, all of it checked: sizes come from files.

use m2m_record::DType;

/// Number of elements; `None` on overflow or a negative extent.
pub fn count(shape: &[i64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?))
}

/// Strides, in elements, of a row-major tensor without gaps; extents of 0 count as 1, as in PyTorch. `None` on overflow.
pub fn contiguous_strides(shape: &[i64]) -> Option<Vec<i64>> {
    let mut strides = vec![1i64; shape.len()];
    for k in (1..shape.len()).rev() {
        strides[k - 1] = strides[k].checked_mul(shape[k].max(1))?;
    }
    Some(strides)
}

/// Whether elements lie in row-major order without gaps; strides of extents 0 and 1 do not matter.
pub fn is_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1i64;
    for (&d, &s) in shape.iter().zip(strides).rev() {
        if d != 1 {
            if s != expected {
                return false;
            }
            expected = expected.saturating_mul(d);
        }
    }
    true
}

/// Elements from the first to the last one, both included; 0 for an empty tensor. `None` on overflow or negative strides.
pub fn span(shape: &[i64], strides: &[i64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().zip(strides).try_fold(1u64, |n, (&d, &s)| {
        let steps = u64::try_from(d).ok()?.checked_sub(1)?;
        n.checked_add(steps.checked_mul(u64::try_from(s).ok()?)?)
    })
}

/// Bytes of a contiguous tensor; `None` on overflow or a negative extent.
pub fn bytes(dtype: DType, shape: &[i64]) -> Option<u64> {
    dtype.bytes_of(count(shape)?)
}
