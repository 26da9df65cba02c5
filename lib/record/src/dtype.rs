//! Element types, spelled as the stream spells them.
//!
//! One table gives each dtype its name and its size in bits; everything else asks the table.

use std::fmt;
use std::str::FromStr;

macro_rules! dtypes {
    ($($variant:ident $name:literal $bits:literal $class:ident),* $(,)?) => {
        /// An element type. Sub-byte types are packed; complex types hold the real part first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is the type its name spells")]
        pub enum DType { $($variant),* }

        impl DType {
            /// Every dtype, in table order.
            pub const ALL: &[DType] = &[$(DType::$variant),*];

            /// The name in records.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name),* }
            }

            /// Bits of one element (a `bool` takes 8).
            pub const fn bits(self) -> u32 {
                match self { $(DType::$variant => $bits),* }
            }

            /// What kind of number it is.
            pub const fn class(self) -> Class {
                match self { $(DType::$variant => Class::$class),* }
            }
        }
    };
}

/// The kind of number that a dtype holds, in the order of PyTorch's promotion categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is the kind its name spells")]
pub enum Class {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

dtypes! {
    Bool "bool" 8 Bool,
    U2 "u2" 2 Unsigned, U4 "u4" 4 Unsigned, U8 "u8" 8 Unsigned,
    U16 "u16" 16 Unsigned, U32 "u32" 32 Unsigned, U64 "u64" 64 Unsigned,
    I2 "i2" 2 Signed, I4 "i4" 4 Signed, I8 "i8" 8 Signed,
    I16 "i16" 16 Signed, I32 "i32" 32 Signed, I64 "i64" 64 Signed,
    F16 "f16" 16 Float, BF16 "bf16" 16 Float, F32 "f32" 32 Float, F64 "f64" 64 Float,
    C32 "c32" 32 Complex, C64 "c64" 64 Complex, C128 "c128" 128 Complex,
    F8E4M3 "f8e4m3" 8 Float, F8E3M4 "f8e3m4" 8 Float, F8E4M3FN "f8e4m3fn" 8 Float, F8E5M2 "f8e5m2" 8 Float,
    F8E4M3FNUZ "f8e4m3fnuz" 8 Float, F8E5M2FNUZ "f8e5m2fnuz" 8 Float, F8E4M3B11FNUZ "f8e4m3b11fnuz" 8 Float,
    F8E8M0FNU "f8e8m0fnu" 8 Float, F4E2M1FN "f4e2m1fn" 4 Float,
}

impl DType {
    /// True for floating-point types, complex ones not included.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Float)
    }

    /// True for signed and unsigned integers; `bool` is not one.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), Class::Signed | Class::Unsigned)
    }

    /// True for complex types.
    pub const fn is_complex(self) -> bool {
        matches!(self.class(), Class::Complex)
    }

    /// Bytes of `count` elements, packed types rounded up; `None` on overflow.
    pub fn bytes_of(self, count: u64) -> Option<u64> {
        count.checked_mul(u64::from(self.bits())).map(|bits| bits.div_ceil(8))
    }

    /// Bytes of one element; `None` for types smaller than a byte.
    pub const fn size(self) -> Option<u64> {
        if self.bits() < 8 { None } else { Some(self.bits() as u64 / 8) }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name is not in the table.
#[derive(Debug, thiserror::Error)]
#[error("unknown dtype {0:?}; known are bool, i8..i64, u8..u64, f16, bf16, f32, f64, c64, c128, f8e4m3fn and kin")]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        DType::ALL.iter().copied().find(|d| d.name() == text).ok_or_else(|| UnknownDType(text.to_owned()))
    }
}

impl serde::Serialize for DType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for DType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl serde::de::Visitor<'_> for Name {
            type Value = DType;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a dtype name")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<DType, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Name)
    }
}

impl schemars::JsonSchema for DType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DType".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
        schemars::json_schema!({ "enum": names })
    }
}
