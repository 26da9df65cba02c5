//! Element and tensor types from the names and shapes of records.
//!
//! Integers are signless: signedness is a property of operations in MLIR, so `u8` and `i8` are both `i8` here.

#![allow(unsafe_code)]

use melior::Context;
use melior::ir::Type;
use melior::ir::r#type::{DimSize, IntegerType, RankedTensorType, ShapedTypeLike, TypeLike};

use crate::error::Error;

/// A dimension known only at run time, in shapes given as `&[i64]`.
pub const DYNAMIC: i64 = i64::MIN;

/// The element type of a dtype as records spell it (`f32`, `bool`, `u8`, `f8e4m3fn`).
pub fn elem<'c>(context: &'c Context, dtype: &str) -> Result<Type<'c>, Error> {
    let integer = |bits| Ok(IntegerType::new(context, bits).into());
    match dtype {
        "bool" => integer(1),
        "u2" | "i2" => integer(2),
        "u4" | "i4" => integer(4),
        "u8" | "i8" => integer(8),
        "u16" | "i16" => integer(16),
        "u32" | "i32" => integer(32),
        "u64" | "i64" => integer(64),
        "index" => Ok(Type::index(context)),
        "f16" => Ok(Type::float16(context)),
        "bf16" => Ok(Type::bfloat16(context)),
        "f32" => Ok(Type::float32(context)),
        "f64" => Ok(Type::float64(context)),
        "f8e4m3" => Ok(Type::float8_e4m3(context)),
        "f8e3m4" => Ok(Type::float8_e3m4(context)),
        "f8e4m3fn" => Ok(Type::float8_e4m3fn(context)),
        "f8e5m2" => Ok(Type::float8_e5m2(context)),
        "f8e4m3fnuz" => Ok(Type::float8_e4m3fnuz(context)),
        "f8e5m2fnuz" => Ok(Type::float8_e5m2fnuz(context)),
        "f8e4m3b11fnuz" => Ok(Type::float8_e4m3b11fnuz(context)),
        "f8e8m0fnu" => Ok(Type::float8_e8m0fnu(context)),
        "f4e2m1fn" => Ok(Type::float4_e2m1fn(context)),
        // complex<f16>, complex<f32> and complex<f64>, named by their whole width.
        "c32" | "c64" | "c128" => {
            let part = match dtype {
                "c32" => "f16",
                "c64" => "f32",
                _ => "f64",
            };
            Type::parse(context, &format!("complex<{part}>")).ok_or_else(|| Error::ElementType(dtype.to_owned()))
        }
        _ => Err(Error::ElementType(dtype.to_owned())),
    }
}

/// `tensor<dims x element>`; a dimension of `DYNAMIC` prints as `?`.
pub fn tensor<'c>(dims: &[i64], element: Type<'c>) -> Type<'c> {
    let dims: Vec<u64> = dims.iter().map(|&dim| dim.cast_unsigned()).collect();
    RankedTensorType::new(&dims, element, None).into()
}

/// The ranked tensor type behind a type, if it is one.
pub fn ranked<'c>(r#type: Type<'c>) -> Option<RankedTensorType<'c>> {
    RankedTensorType::try_from(r#type).ok()
}

/// Dimensions of a ranked tensor type, `DYNAMIC` where unknown; empty for a scalar.
pub fn dims(r#type: Type<'_>) -> Vec<i64> {
    let Some(shaped) = ranked(r#type) else {
        return Vec::new();
    };
    (0..shaped.rank()).map(|axis| raw_dim(shaped, axis)).collect()
}

fn raw_dim(shaped: RankedTensorType<'_>, axis: usize) -> i64 {
    match shaped.dim_size(axis) {
        Ok(DimSize::Static(size)) => i64::try_from(size).unwrap_or(DYNAMIC),
        _ => DYNAMIC,
    }
}

/// The element type of a tensor, or the type itself when it is a scalar.
pub fn element(r#type: Type<'_>) -> Type<'_> {
    ranked(r#type).map_or(r#type, |shaped| shaped.element())
}

/// The same shape with another element type; of a scalar, the element type.
pub fn with_element<'c>(shape_of: Type<'_>, element: Type<'c>) -> Type<'c> {
    if ranked(shape_of).is_some() { tensor(&dims(shape_of), element) } else { element }
}

/// Whether the element type is a float of any width.
pub fn is_float(r#type: Type<'_>) -> bool {
    // SAFETY: a type is valid as long as its context, which its lifetime holds.
    unsafe { mlir_sys::mlirTypeIsAFloat(element(r#type).to_raw()) }
}

/// Whether the element type is a float below 16 bits, on which MLIR can convert but hardware does not compute.
pub fn is_small_float(r#type: Type<'_>) -> bool {
    is_float(r#type) && element(r#type).float_width() < 16
}

/// Width in bits of an integer or float element; none for `index` and complex.
pub fn bits(r#type: Type<'_>) -> Option<u32> {
    let element = element(r#type);
    if is_float(element) {
        return Some(element.float_width());
    }
    IntegerType::try_from(element).ok().map(|integer| integer.width())
}

/// The type of a value.
pub fn of<'c>(value: crate::Value<'c>) -> Type<'c> {
    use melior::ir::ValueLike;
    value.r#type()
}
