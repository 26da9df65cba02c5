//! Outputs against references, element by element.
//!
//! A float is right when `|x - reference| <= atol + rtol * |reference|`, when both are NaN, or when both are the same
//! infinity. Integers and bools must be equal. The relative difference leaves out references of zero; a ULP is the distance
//! to the next value of the dtype, and the signal-to-noise ratio is ten times the logarithm of the references' squares over
//! those of the differences.

use crate::number::{floats, integers, places};
use crate::tensors::{TensorView, part_of};
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
    /// The most values of the dtype between an output and its reference, of floats.
    pub max_ulp: Option<u64>,
    /// Signal over noise in dB, of floats that differ.
    pub sqnr: Option<f64>,
    /// Element, output and reference where an element is most wrong.
    pub worst: Option<(usize, f64, f64)>,
    /// The same of the first that is wrong.
    pub first: Option<(usize, f64, f64)>,
    /// The shape, to show places in.
    pub dims: Vec<i64>,
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
        let Difference { count, outside, max_abs, max_rel, tolerance, .. } = difference;
        let Tolerance { relative, absolute } = tolerance;
        write!(f, "max abs {max_abs:.3e}, max rel {max_rel:.3e}")?;
        if let Some(ulp) = difference.max_ulp {
            write!(f, ", max {ulp} ulp")?;
        }
        if let Some(sqnr) = difference.sqnr {
            write!(f, ", sqnr {sqnr:.1} dB")?;
        }
        write!(f, ", rtol {relative:e}, atol {absolute:e}")?;
        let (Some(first), Some(worst)) = (difference.first, difference.worst) else { return Ok(()) };
        write!(f, "; {outside} of {count} outside, the first at {}", difference.shown(first))?;
        if worst.0 != first.0 {
            write!(f, ", the worst at {}", difference.shown(worst))?;
        }
        Ok(())
    }
}

impl Difference {
    /// Nothing different yet.
    fn none(count: usize, tolerance: Tolerance) -> Self {
        let (max_ulp, sqnr, worst, first, dims) = (None, None, None, None, Vec::new());
        Self { count, outside: 0, max_abs: 0.0, max_rel: 0.0, max_ulp, sqnr, worst, first, dims, tolerance }
    }

    /// An element's place, value and reference.
    fn shown(&self, (at, x, reference): (usize, f64, f64)) -> String {
        format!("{:?}: {x:e}, reference {reference:e}", place(at, &self.dims))
    }

    fn is_wrong(&mut self, wrong: (usize, f64, f64)) {
        self.outside += 1;
        self.first.get_or_insert(wrong);
    }
}

/// The index of an element by its place in row-major order.
fn place(at: usize, dims: &[i64]) -> Vec<usize> {
    let mut place = Vec::with_capacity(dims.len());
    let mut rest = at;
    for dim in dims.iter().rev() {
        let size = usize::try_from(*dim).unwrap_or(1).max(1);
        place.push(rest % size);
        rest /= size;
    }
    place.reverse();
    place
}

/// Where an output is NaN, if it is anywhere: the first place, and how many.
pub fn find_nan(dtype: DType, dims: &[i64], bytes: &[u8]) -> Option<Verdict> {
    let elements = floats(dtype, bytes)?;
    let mut dims = dims.to_vec();
    if dtype.is_complex() {
        dims.push(2);
    }
    let first = elements.iter().position(|x| x.is_nan())?;
    let (count, all) = (elements.iter().filter(|x| x.is_nan()).count(), elements.len());
    Some(Verdict::Mismatch(format!("{count} of {all} elements are NaN, the first at {:?}", place(first, &dims))))
}

/// Compares an output of `dtype` with its reference. Complex references may be stored as pairs of floats.
pub fn compare(dtype: DType, dims: &[i64], bytes: &[u8], reference: &TensorView<'_>, tolerance: Tolerance) -> Verdict {
    let mut shape: Vec<i64> = dims.to_vec();
    let part = part_of(dtype);
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
        let found = compare_floats(&x, &y, tolerance);
        if dtype.is_complex() {
            shape.push(2);
        }
        let max_ulp = match (places(dtype, bytes), places(dtype, reference.bytes)) {
            (Some(a), Some(b)) => most_apart(&a, &b, &x, &y),
            _ => None,
        };
        return Verdict::Numbers(Difference { max_ulp, dims: shape, ..found });
    }
    match (integers(dtype, bytes), integers(dtype, reference.bytes)) {
        (Some(x), Some(y)) => Verdict::Numbers(Difference { dims: shape, ..compare_integers(&x, &y) }),
        _ => Verdict::Mismatch(format!("{dtype} cannot be compared")),
    }
}

/// The most places between two finite floats.
fn most_apart(a: &[i64], b: &[i64], outputs: &[f64], references: &[f64]) -> Option<u64> {
    let places = a.iter().zip(b).zip(outputs.iter().zip(references));
    let finite = places.filter(|(_, (x, y))| x.is_finite() && y.is_finite());
    finite.map(|((a, b), _)| a.abs_diff(*b)).max()
}

fn compare_floats(outputs: &[f64], references: &[f64], tolerance: Tolerance) -> Difference {
    let mut found = Difference::none(outputs.len(), tolerance);
    let (mut most, mut noise) = (0.0, 0.0);
    for (at, (&x, &y)) in outputs.iter().zip(references).enumerate() {
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        let off = (x - y).abs();
        // NaN or infinity on one side only, or opposite infinities.
        let is_broken = !x.is_finite() || !y.is_finite();
        let off = if is_broken { f64::INFINITY } else { off };
        found.max_abs = found.max_abs.max(off);
        noise += off * off;
        if y != 0.0 {
            found.max_rel = found.max_rel.max(off / y.abs());
        }
        let allowed = tolerance.absolute + tolerance.relative * y.abs();
        if is_broken || off > allowed {
            found.is_wrong((at, x, y));
            let excess = if is_broken { f64::INFINITY } else { off - allowed };
            if found.worst.is_none() || excess > most {
                most = excess;
                found.worst = Some((at, x, y));
            }
        }
    }
    if noise > 0.0 {
        let signal: f64 = references.iter().filter(|y| y.is_finite()).map(|y| y * y).sum();
        found.sqnr = Some(10.0 * (signal / noise).log10());
    }
    found
}

fn compare_integers(outputs: &[i128], references: &[i128]) -> Difference {
    let tolerance = Tolerance { relative: 0.0, absolute: 0.0 };
    let mut found = Difference::none(outputs.len(), tolerance);
    for (at, (&x, &y)) in outputs.iter().zip(references).enumerate() {
        let off = x.abs_diff(y) as f64;
        if off == 0.0 {
            continue;
        }
        found.is_wrong((at, x as f64, y as f64));
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
    fn noise_is_measured_against_the_references() {
        // Squares of 3 and 4 against a square of 0.5: 10 * log10(25 / 0.25) = 20 dB.
        let off = floats_within(&[3.0, 4.5], &[3.0, 4.0]);
        assert!((off.sqnr.unwrap() - 20.0).abs() < 1e-12);
        assert_eq!(floats_within(&[3.0], &[3.0]).sqnr, None);
    }

    #[test]
    fn the_first_and_the_worst_are_shown_by_their_place() {
        let bytes = |values: [f32; 4]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let references = bytes([1.0, 2.0, 3.0, 4.0]);
        let reference = TensorView { dtype: DType::F32, shape: (&[2, 2][..]).into(), bytes: &references };
        let exact = Tolerance { relative: 0.0, absolute: 0.0 };
        let verdict = compare(DType::F32, &[2, 2], &bytes([1.0, 2.5, 3.0, 8.0]), &reference, exact);
        assert_eq!(
            verdict.to_string(),
            "max abs 4.000e0, max rel 1.000e0, max 8388608 ulp, sqnr 2.7 dB, rtol 0e0, atol 0e0; 2 of 4 outside, the first at \
             [0, 1]: 2.5e0, reference 2e0, the worst at [1, 1]: 8e0, reference 4e0"
        );
    }

    #[test]
    fn the_first_nan_is_found_by_its_place() {
        let bytes: Vec<u8> =
            [0.0, 1.0, 2.0, f32::NAN, 4.0, f32::NAN].iter().flat_map(|x: &f32| x.to_le_bytes()).collect();
        let found = find_nan(DType::F32, &[2, 3], &bytes).unwrap();
        assert_eq!(found.to_string(), "2 of 6 elements are NaN, the first at [1, 0]");
        assert_eq!(find_nan(DType::F32, &[3], &bytes[..12]), None);
        assert_eq!(find_nan(DType::I64, &[3], &bytes), None);
    }

    #[test]
    fn integers_are_exact() {
        let off = compare_integers(&[1, 2, i128::from(u64::MAX)], &[1, 5, i128::from(u64::MAX) - 1]);
        assert_eq!((off.outside, off.max_abs, off.worst), (2, 3.0, Some((1, 2.0, 5.0))));
    }

    #[test]
    fn types_and_shapes_must_agree() {
        let reference = TensorView { dtype: DType::F32, shape: (&[1][..]).into(), bytes: &[0; 4] };
        let tolerance = Tolerance::of(DType::F32);
        assert!(compare(DType::F32, &[1], &[0; 4], &reference, tolerance).is_right());
        let verdict = compare(DType::F32, &[], &[0; 4], &reference, tolerance);
        assert_eq!(verdict.to_string(), "f32 [], but the reference is f32 [1]");
        assert!(!compare(DType::I32, &[1], &[0; 4], &reference, tolerance).is_right());
        let pairs = TensorView { dtype: DType::F32, shape: (&[1, 2][..]).into(), bytes: &[0; 8] };
        assert!(compare(DType::C64, &[1], &[0; 8], &pairs, tolerance).is_right());
    }
}
