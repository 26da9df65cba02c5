//! PyTorch's type promotion: the common dtype of tensors, of tensors without dimensions, and of Python numbers.
//!
//! Participants are of three ranks: tensors with dimensions, 0-d tensors, numbers. A lower rank changes the result only
//! when its category (bool, integer, float, complex) is higher than that of the ranks above it.
//! Source: `torch.result_type`, "Type promotion" in PyTorch's tensor attributes documentation.

use crate::error::Error;
use m2m_record::dtype::Class;
use m2m_record::{Arg, DType, ScalarKind};

/// One operand of a promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Participant {
    /// A tensor with at least one dimension.
    Tensor(DType),
    /// A tensor without dimensions.
    ZeroDim(DType),
    /// A Python number.
    Number(ScalarKind),
}

impl Participant {
    /// A tensor of the given rank.
    pub fn tensor(dtype: DType, rank: usize) -> Self {
        if rank == 0 { Participant::ZeroDim(dtype) } else { Participant::Tensor(dtype) }
    }

    /// A literal number; an expression counts as an integer. `None` for what is no number.
    pub fn number(arg: &Arg) -> Option<Self> {
        Some(Participant::Number(match arg {
            Arg::Bool(_) => ScalarKind::Bool,
            Arg::Int(_) | Arg::Sym(_) => ScalarKind::Int,
            Arg::Float(_) => ScalarKind::Float,
            Arg::Complex(..) => ScalarKind::Complex,
            _ => return None,
        }))
    }
}

/// The dtype that a Python number has when it becomes a tensor.
pub fn number_dtype(kind: ScalarKind) -> Option<DType> {
    match kind {
        ScalarKind::Bool => Some(DType::Bool),
        ScalarKind::Int => Some(DType::I64),
        ScalarKind::Float => Some(DType::F32),
        ScalarKind::Complex => Some(DType::C64),
        ScalarKind::Str => None,
    }
}

/// The complex dtype whose parts hold a float dtype.
pub fn complex_of(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 => Some(DType::C32),
        DType::BF16 | DType::F32 => Some(DType::C64),
        DType::F64 => Some(DType::C128),
        other => other.is_complex().then_some(other),
    }
}

/// The dtype of a complex dtype's parts.
pub fn real_of(dtype: DType) -> DType {
    match dtype {
        DType::C32 => DType::F16,
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        other => other,
    }
}

/// The dtype in which a half-precision computation is carried out before it is rounded once.
pub fn accumulate_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::C32 => DType::C64,
        other => other,
    }
}

/// Integers and bool become `f32`, everything else stays.
pub fn float_of(dtype: DType) -> DType {
    if dtype.is_float() || dtype.is_complex() { dtype } else { DType::F32 }
}

fn is_narrow_float(d: DType) -> bool {
    matches!(d, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

fn is_barebones_unsigned(d: DType) -> bool {
    matches!(d, DType::U16 | DType::U32 | DType::U64)
}

fn is_classic(d: DType) -> bool {
    matches!(d, DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64)
}

/// The common dtype of two tensors of equal rank.
pub fn promote_types(a: DType, b: DType) -> Result<DType, Error> {
    if a == b {
        return Ok(a);
    }
    let (low, high) = if a.class() <= b.class() { (a, b) } else { (b, a) };
    let joined = match high.class() {
        Class::Complex if is_narrow_float(low) => complex_of(low).and_then(|low| wider_complex(low, high)),
        Class::Complex if low.is_complex() => wider_complex(low, high),
        Class::Complex if is_classic(low) => Some(high),
        Class::Float if !is_narrow_float(high) => None,
        Class::Float if is_narrow_float(low) => Some(wider_float(low, high)),
        Class::Float if is_classic(low) || is_barebones_unsigned(low) => Some(high),
        _ if is_classic(low) && is_classic(high) => Some(wider_integer(low, high)),
        _ => None,
    };
    joined.ok_or(Error::Promote { a, b })
}

fn wider_complex(a: DType, b: DType) -> Option<DType> {
    Some(if a.bits() >= b.bits() { a } else { b })
}

fn wider_float(a: DType, b: DType) -> DType {
    match a.bits().cmp(&b.bits()) {
        std::cmp::Ordering::Less => b,
        std::cmp::Ordering::Greater => a,
        std::cmp::Ordering::Equal => DType::F32,
    }
}

/// `u8` with a signed type needs one that holds both; `bool` takes the other.
fn wider_integer(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::Bool, other) | (other, DType::Bool) => other,
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        _ if a.bits() >= b.bits() => a,
        _ => b,
    }
}

/// Joins ranks: `high` keeps its dtype unless the lower rank's category is above its own.
fn combine(high: Option<DType>, low: Option<DType>) -> Result<Option<DType>, Error> {
    let (Some(high), Some(low)) = (high, low) else { return Ok(high.or(low)) };
    Ok(Some(match (high.class(), low.class()) {
        (Class::Complex, _) => high,
        (Class::Float, Class::Complex) => complex_of(high).ok_or(Error::Promote { a: high, b: low })?,
        (Class::Float, _) => high,
        (Class::Bool, _) | (_, Class::Float | Class::Complex) => promote_types(high, low)?,
        _ => high,
    }))
}

/// The dtype in which PyTorch computes an operation on these operands; `None` for none.
pub fn result_type(participants: &[Participant]) -> Result<Option<DType>, Error> {
    let (mut dims, mut zero, mut number) = (None, None, None);
    for participant in participants {
        let (slot, dtype) = match participant {
            Participant::Tensor(d) => (&mut dims, Some(*d)),
            Participant::ZeroDim(d) => (&mut zero, Some(*d)),
            Participant::Number(kind) => (&mut number, number_dtype(*kind)),
        };
        *slot = match (*slot, dtype) {
            (Some(a), Some(b)) => Some(promote_types(a, b)?),
            (a, b) => a.or(b),
        };
    }
    combine(dims, combine(zero, number)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The square that `torch.promote_types` gives, refusals included.
    #[test]
    fn promote_types_is_pytorchs() {
        let table = include_str!("../tests/promotion.txt");
        let rows: Vec<Vec<&str>> =
            table.lines().filter(|l| !l.starts_with('#')).map(|l| l.split(' ').collect()).collect();
        let names: Vec<DType> = rows.iter().map(|r| r[0].parse().unwrap()).collect();
        assert_eq!(names.len(), 21);
        for row in &rows {
            for (b, expected) in names.iter().zip(&row[1..]) {
                let a: DType = row[0].parse().unwrap();
                let found = promote_types(a, *b).map_or("-".to_owned(), |d| d.to_string());
                assert_eq!(found, *expected, "{a} with {b}");
            }
        }
    }

    /// Cases from `torch.result_type`.
    #[test]
    fn ranks_promote_only_by_category() {
        use Participant::{Number, Tensor, ZeroDim};
        use ScalarKind::{Bool, Complex, Float, Int};
        let cases = [
            (vec![Tensor(DType::I32), ZeroDim(DType::I64)], Some(DType::I32)),
            (vec![Tensor(DType::I32), ZeroDim(DType::F64)], Some(DType::F64)),
            (vec![Tensor(DType::I32), ZeroDim(DType::F16)], Some(DType::F16)),
            (vec![Tensor(DType::U8), Number(Int)], Some(DType::U8)),
            (vec![Tensor(DType::U8), Number(Float)], Some(DType::F32)),
            (vec![ZeroDim(DType::Bool), Number(Int)], Some(DType::I64)),
            (vec![Tensor(DType::Bool), Number(Bool)], Some(DType::Bool)),
            (vec![Tensor(DType::F16), ZeroDim(DType::F64)], Some(DType::F16)),
            (vec![Tensor(DType::F16), ZeroDim(DType::C128)], Some(DType::C32)),
            (vec![Tensor(DType::BF16), Number(Complex)], Some(DType::C64)),
            (vec![Tensor(DType::U16), Number(Int)], Some(DType::U16)),
            (vec![Tensor(DType::U16), ZeroDim(DType::Bool)], Some(DType::U16)),
            (vec![Tensor(DType::F8E4M3FN), Number(Float)], Some(DType::F8E4M3FN)),
            (vec![Number(Int), Number(Float)], Some(DType::F32)),
            (vec![], None),
        ];
        for (participants, expected) in cases {
            assert_eq!(result_type(&participants).unwrap(), expected, "{participants:?}");
        }
        assert!(result_type(&[Tensor(DType::Bool), ZeroDim(DType::U16)]).is_err());
        assert!(result_type(&[Tensor(DType::F8E4M3FN), Number(Complex)]).is_err());
    }
}
