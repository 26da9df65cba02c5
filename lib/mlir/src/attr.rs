//! Attributes from plain data, with floats and integers kept to their exact bits.

#![allow(unsafe_code)]

use melior::Context;
use melior::ir::attribute::{
    ArrayAttribute, BoolAttribute, DenseElementsAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute,
    FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute, StringAttribute, TypeAttribute,
};
use melior::ir::r#type::TypeLike;
use melior::ir::{Attribute, Type};
use mlir_sys::{mlirAffineMapAttrGet, mlirDenseElementsAttrBoolGet, mlirDenseElementsAttrRawBufferGet};

use crate::error::Error;
use crate::map::Map;
use crate::types;

/// Any attribute in MLIR's syntax.
pub fn parse<'c>(context: &'c Context, source: &str) -> Result<Attribute<'c>, Error> {
    Attribute::parse(context, source).ok_or_else(|| Error::Attribute(source.to_owned()))
}

/// `value : type` for an integer type or `index`; the low bits of `value` are taken.
pub fn int(r#type: Type<'_>, value: i64) -> Attribute<'_> {
    let value = match types::bits(r#type) {
        // The bits above the width must be zero for a signless type, or MLIR's checks object.
        Some(width @ 1..=63) => value & ((1_i64 << width) - 1),
        _ => value,
    };
    IntegerAttribute::new(r#type, value).into()
}

/// `value : i64`.
pub fn int64(context: &Context, value: i64) -> Attribute<'_> {
    int(melior::ir::r#type::IntegerType::new(context, 64).into(), value)
}

/// A float rounded to nearest from f64; exact whenever `value` came from that type. NaN becomes the quiet one.
pub fn float<'c>(context: &'c Context, r#type: Type<'c>, value: f64) -> Attribute<'c> {
    FloatAttribute::new(context, r#type, value).into()
}

/// A float of exactly these bits, NaN payloads included.
pub fn float_bits<'c>(context: &'c Context, r#type: Type<'c>, bits: u64) -> Result<Attribute<'c>, Error> {
    let width = types::bits(r#type).ok_or_else(|| Error::ElementType(r#type.to_string()))?;
    let digits = width.div_ceil(4) as usize;
    parse(context, &format!("0x{bits:0digits$X} : {type}"))
}

/// `true` or `false`.
pub fn boolean(context: &Context, value: bool) -> Attribute<'_> {
    BoolAttribute::new(context, value).into()
}

/// A string.
pub fn string<'c>(context: &'c Context, value: &str) -> Attribute<'c> {
    StringAttribute::new(context, value).into()
}

/// `@symbol`.
pub fn symbol<'c>(context: &'c Context, name: &str) -> Attribute<'c> {
    FlatSymbolRefAttribute::new(context, name).into()
}

/// A type as an attribute.
pub fn r#type(value: Type<'_>) -> Attribute<'_> {
    TypeAttribute::new(value).into()
}

/// `unit`.
pub fn unit(context: &Context) -> Attribute<'_> {
    Attribute::unit(context)
}

/// `[a, b, …]`.
pub fn array<'c>(context: &'c Context, values: &[Attribute<'c>]) -> Attribute<'c> {
    ArrayAttribute::new(context, values).into()
}

/// `array<i64: …>`.
pub fn int64_array<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    DenseI64ArrayAttribute::new(context, values).into()
}

/// `array<i32: …>`.
pub fn int32_array<'c>(context: &'c Context, values: &[i32]) -> Attribute<'c> {
    DenseI32ArrayAttribute::new(context, values).into()
}

/// `dense<[…]> : tensor<nxi64>`, as strides and dilations of named convolutions want it.
pub fn int64_vector<'c>(context: &'c Context, values: &[i64]) -> Attribute<'c> {
    let i64_type = melior::ir::r#type::IntegerType::new(context, 64).into();
    DenseElementsAttribute::i64_values(types::tensor(&[values.len().cast_signed() as i64], i64_type), values).into()
}

/// `affine_map<…>`.
pub fn map<'c>(context: &'c Context, map: &Map) -> Attribute<'c> {
    // SAFETY: the map was made in this context.
    unsafe { Attribute::from_raw(mlirAffineMapAttrGet(map.build(context).to_raw())) }
}

/// `[affine_map<…>, …]`, for `indexing_maps`.
pub fn maps<'c>(context: &'c Context, maps: &[Map]) -> Attribute<'c> {
    let maps: Vec<_> = maps.iter().map(|one| map(context, one)).collect();
    array(context, &maps)
}

/// `[[0], [1, 2]]`, for `reassociation`.
pub fn groups<'c>(context: &'c Context, groups: &[Vec<usize>]) -> Attribute<'c> {
    let groups: Vec<_> = groups
        .iter()
        .map(|group| {
            let axes: Vec<_> = group.iter().map(|&axis| int64(context, axis.cast_signed() as i64)).collect();
            array(context, &axes)
        })
        .collect();
    array(context, &groups)
}

/// `dense<…>` of a static tensor type from its bytes: little-endian elements in row-major order, `bool` one byte each.
pub fn dense<'c>(r#type: Type<'c>, bytes: &[u8]) -> Result<Attribute<'c>, Error> {
    let wrong = || Error::Attribute(format!("{} bytes for {type}", bytes.len()));
    let count =
        types::dims(r#type).iter().try_fold(1_usize, |count, &dim| count.checked_mul(usize::try_from(dim).ok()?));
    let width = types::bits(r#type).ok_or_else(wrong)?;
    let each = width.div_ceil(8) as usize;
    if count.and_then(|count| count.checked_mul(each)) != Some(bytes.len()) || (width % 8 != 0 && width != 1) {
        return Err(wrong());
    }
    // SAFETY: the length was checked against the type; MLIR copies the bytes, whatever their alignment.
    let raw = unsafe {
        if width == 1 {
            let values: Vec<i32> = bytes.iter().map(|&byte| i32::from(byte != 0)).collect();
            mlirDenseElementsAttrBoolGet(r#type.to_raw(), values.len().cast_signed(), values.as_ptr())
        } else {
            mlirDenseElementsAttrRawBufferGet(r#type.to_raw(), bytes.len(), bytes.as_ptr().cast())
        }
    };
    // SAFETY: the attribute lives in the context of its type.
    unsafe { Attribute::from_option_raw(raw) }.ok_or_else(wrong)
}

/// `dense<element> : type`.
pub fn splat<'c>(r#type: Type<'c>, element: Attribute<'c>) -> Result<Attribute<'c>, Error> {
    let wrong = || Error::Attribute(format!("splat of {element} for {type}"));
    if types::ranked(r#type).is_none() || types::dims(r#type).contains(&types::DYNAMIC) {
        return Err(wrong());
    }
    Ok(DenseElementsAttribute::splat(r#type, element).into())
}
