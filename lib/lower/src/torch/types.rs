//! Types in torch-mlir's spelling.

use crate::error::{Error, Result};
use m2m_mlir::{Builder, Type};
use m2m_record::{DType, Dim, ScalarKind, Type as RecordType};

/// An element type.
fn element(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::Bool => "i1",
        DType::U8 => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        DType::U64 => "ui64",
        DType::I8 => "si8",
        DType::I16 => "si16",
        DType::I32 => "si32",
        DType::I64 => "si64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C64 => "complex<f32>",
        DType::C128 => "complex<f64>",
        DType::F8E4M3FN => "f8E4M3FN",
        DType::F8E5M2 => "f8E5M2",
        other => return Err(Error::unsupported(format!("{other} has no element type in the torch dialect"))),
    })
}

/// PyTorch's number for a dtype, as operators take it.
pub fn code(dtype: DType) -> Result<i64> {
    Ok(match dtype {
        DType::U8 => 0,
        DType::I8 => 1,
        DType::I16 => 2,
        DType::I32 => 3,
        DType::I64 => 4,
        DType::F16 => 5,
        DType::F32 => 6,
        DType::F64 => 7,
        DType::C64 => 9,
        DType::C128 => 10,
        DType::Bool => 11,
        DType::BF16 => 15,
        DType::F8E5M2 => 23,
        DType::F8E4M3FN => 24,
        other => return Err(Error::unsupported(format!("{other} as an argument in the torch dialect"))),
    })
}

/// The text of a tensor's type: `!torch.vtensor<[2,?],f32>`.
pub fn tensor(dtype: DType, shape: &[Dim]) -> Result<String> {
    let dims = shape.iter().map(|d| d.as_int().map_or_else(|| "?".to_owned(), |n| n.to_string()));
    Ok(format!("!torch.vtensor<[{}],{}>", dims.collect::<Vec<_>>().join(","), element(dtype)?))
}

/// The text of a value's type.
pub fn text(ty: &RecordType) -> Result<String> {
    match ty {
        RecordType::Tensor(t) => tensor(t.dtype, &t.shape),
        RecordType::Scalar { kind: ScalarKind::Int, .. } => Ok("!torch.int".into()),
        RecordType::Scalar { kind: ScalarKind::Float, .. } => Ok("!torch.float".into()),
        RecordType::Scalar { kind: ScalarKind::Bool, .. } => Ok("!torch.bool".into()),
        other => Err(Error::unsupported(format!("{other:?} has no type in the torch dialect"))),
    }
}

/// A type by its text.
pub fn parse<'c>(b: &Builder<'c>, text: &str) -> Result<Type<'c>> {
    Type::parse(b.context(), text).ok_or_else(|| Error::Graph(format!("{text} is no type")))
}
