//! Outputs against references, element by element.
//!
//! A float is right when `|x - reference| <= atol + rtol * |reference|`, when both are NaN, or when both are the same
//! infinity. Integers and bools must be equal. The relative difference leaves out references of zero.

use crate::number::{floats, integers};
use crate::tensors::TensorView;
use m2m_record::DType;
use std::fmt;

/// How far a float may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Times the reference.
    pub relative: f64,
    /// Added.
    pub absolute: f64,
}

impl Tolerance {
    /// What whole models in a dtype keep to: rounding of some thousand operations, not of one.
    pub fn of(dtype: DType) -> Self {
        let (relative, absolute) = match dtype {
            DType::F64 | DType::C128 => (1e-7, 1e-9),
            DType::F32 | DType::C64 => (1e-4, 1e-5),
            DType::F16 | DType::C32 => (1e-2, 1e-3),
            DType::BF16 => (3e-2, 1e-2),
            dtype if dtype.is_float() => (1.3e-1, 1e-2),
            _ => (0.0, 0.0),
        };
        Self { relative, absolute }
    }

    /// With what the command line says instead.
    pub fn overridden(self, relative: Option<f64>, absolute: Option<f64>) -> Self {
        Self { relative: relative.unwrap_or(self.relative), absolute: absolute.unwrap_or(self.absolute) }
    }
}

/// What comparing one output found.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Compared.
    Numbers(Difference),
    /// Not comparable: why.
    Mismatch(String),
}

/// The differences of one output.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Elements.
    pub count: usize,
    /// Elements that are not right.
    pub outside: usize,
    /// The largest absolute difference.
    pub max_abs: f64,
    /// The largest relative difference.
    pub max_rel: f64,
    /// Element, output and reference where an element is most wrong.
    pub worst: Option<(usize, f64, f64)>,
    /// What it was held to.
    pub tolerance: Tolerance,
}

impl Verdict {
    /// Whether the output is right.
    pub fn is_right(&self) -> bool {
        matches!(self, Self::Numbers(difference) if difference.outside == 0)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = match self {
            Self::Mismatch(why) => return f.write_str(why),
            Self::Numbers(difference) => difference,
        };
        let Difference { count, outside, max_abs, max_rel, worst, tolerance } = difference;
        let Tolerance { relative, absolute } = tolerance;
        write!(f, "max abs {max_abs:.3e}, max rel {max_rel:.3e}, rtol {relative:e}, atol {absolute:e}")?;
        match worst {
            Some((at, x, reference)) if *outside > 0 => {
                write!(f, "; {outside} of {count} outside, the worst at {at}: {x:e}, reference {reference:e}")
            }
            _ => Ok(()),
        }
    }
}

/// Compares an output of `dtype` with its reference. Complex references may be stored as pairs of floats.
pub fn compare(dtype: DType, dims: &[i64], bytes: &[u8], reference: TensorView<'_>, tolerance: Tolerance) -> Verdict {
    let mut shape: Vec<i64> = dims.to_vec();
    let part = match dtype {
        DType::C32 => DType::F16,
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    };
    let dtype = if reference.dtype == part && part != dtype {
        shape.push(2);
        part
    } else {
        dtype
    };
    if dtype != reference.dtype || shape != reference.dims() {
        return Verdict::Mismatch(format!(
            "{dtype} {shape:?}, but the reference is {} {:?}",
            reference.dtype, reference.shape
        ));
    }
    if let (Some(x), Some(y)) = (floats(dtype, bytes), floats(dtype, reference.bytes)) {
        return Verdict::Numbers(compare_floats(&x, &y, tolerance));
    }
    match (integers(dtype, bytes), integers(dtype, reference.bytes)) {
        (Some(x), Some(y)) => Verdict::Numbers(compare_integers(&x, &y)),
        _ => Verdict::Mismatch(format!("{dtype} cannot be compared")),
    }
}

fn compare_floats(outputs: &[f64], references: &[f64], tolerance: Tolerance) -> Difference {
    let mut found = Difference { count: outputs.len(), outside: 0, max_abs: 0.0, max_rel: 0.0, worst: None, tolerance };
    let mut most = 0.0;
    for (at, (&x, &y)) in outputs.iter().zip(references).enumerate() {
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        let off = (x - y).abs();
        // NaN or infinity on one side only, or opposite infinities.
        let is_broken = !x.is_finite() || !y.is_finite();
        let off = if is_broken { f64::INFINITY } else { off };
        found.max_abs = found.max_abs.max(off);
        if y != 0.0 {
            found.max_rel = found.max_rel.max(off / y.abs());
        }
        let allowed = tolerance.absolute + tolerance.relative * y.abs();
        if is_broken || off > allowed {
            found.outside += 1;
            let excess = if is_broken { f64::INFINITY } else { off - allowed };
            if found.worst.is_none() || excess > most {
                most = excess;
                found.worst = Some((at, x, y));
            }
        }
    }
    found
}

fn compare_integers(outputs: &[i128], references: &[i128]) -> Difference {
    let tolerance = Tolerance { relative: 0.0, absolute: 0.0 };
    let mut found = Difference { count: outputs.len(), outside: 0, max_abs: 0.0, max_rel: 0.0, worst: None, tolerance };
    for (at, (&x, &y)) in outputs.iter().zip(references).enumerate() {
        let off = x.abs_diff(y) as f64;
        if off == 0.0 {
            continue;
        }
        found.outside += 1;
        if y != 0 {
            found.max_rel = found.max_rel.max(off / y.unsigned_abs() as f64);
        }
        if off > found.max_abs {
            found.max_abs = off;
            found.worst = Some((at, x as f64, y as f64));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats_within(outputs: &[f64], references: &[f64]) -> Difference {
        compare_floats(outputs, references, Tolerance { relative: 0.1, absolute: 0.5 })
    }

    #[test]
    fn tolerance_is_absolute_plus_relative() {
        // Allowed around 10: 0.5 + 0.1 * 10 = 1.5.
        assert_eq!(floats_within(&[11.5], &[10.0]).outside, 0);
        let off = floats_within(&[8.0, 11.75], &[10.0, 10.0]);
        assert_eq!((off.outside, off.worst), (2, Some((0, 8.0, 10.0))));
        assert_eq!((off.max_abs, off.max_rel), (2.0, 0.2));
    }

    #[test]
    fn special_values_match_only_themselves() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert_eq!(floats_within(&[nan, inf, -inf, -0.0], &[nan, inf, -inf, 0.0]).outside, 0);
        let off = floats_within(&[nan, 1.0, inf, -inf, 1e300], &[1.0, nan, 1.0, inf, -inf]);
        assert_eq!((off.outside, off.max_abs), (5, inf));
    }

    #[test]
    fn integers_are_exact() {
        let off = compare_integers(&[1, 2, i128::from(u64::MAX)], &[1, 5, i128::from(u64::MAX) - 1]);
        assert_eq!((off.outside, off.max_abs, off.worst), (2, 3.0, Some((1, 2.0, 5.0))));
    }

    #[test]
    fn types_and_shapes_must_agree() {
        let reference = TensorView { dtype: DType::F32, shape: &[1], bytes: &[0; 4] };
        let tolerance = Tolerance::of(DType::F32);
        assert!(compare(DType::F32, &[1], &[0; 4], reference, tolerance).is_right());
        let verdict = compare(DType::F32, &[], &[0; 4], reference, tolerance);
        assert_eq!(verdict.to_string(), "f32 [], but the reference is f32 [1]");
        assert!(!compare(DType::I32, &[1], &[0; 4], reference, tolerance).is_right());
        let pairs = TensorView { dtype: DType::F32, shape: &[1, 2], bytes: &[0; 8] };
        assert!(compare(DType::C64, &[1], &[0; 8], pairs, tolerance).is_right());
    }
}
