//! Numbers that survive JSON and jq unchanged.
//!
//! Non-finite floats, floats with an integral value, and integers beyond ±2^53 are tagged; everything else is a plain
//! JSON number. An untagged integral number is an integer.

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Largest magnitude that a double, and so jq, holds exactly.
pub const EXACT: i128 = 1 << 53;

/// A double that is written as `0.5`, `{"float":2}` or `{"float":"nan"}`. Equality is of bits, all NaNs being one.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f64);

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits() || (self.0.is_nan() && other.0.is_nan())
    }
}

impl Eq for Float {}

/// The inside of a `{"float":…}` tag.
struct Untagged(f64);

impl Serialize for Untagged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let x = self.0;
        if x.is_nan() {
            serializer.serialize_str("nan")
        } else if x.is_infinite() {
            serializer.serialize_str(if x > 0.0 { "inf" } else { "-inf" })
        } else if x.fract() == 0.0 && x.abs() < EXACT as f64 && !(x == 0.0 && x.is_sign_negative()) {
            serializer.serialize_i64(x as i64)
        } else {
            serializer.serialize_f64(x)
        }
    }
}

impl<'de> Deserialize<'de> for Untagged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Untagged;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"nan\", \"inf\" or \"-inf\"")
            }
            fn visit_i64<E>(self, x: i64) -> Result<Untagged, E> {
                Ok(Untagged(x as f64))
            }
            fn visit_u64<E>(self, x: u64) -> Result<Untagged, E> {
                Ok(Untagged(x as f64))
            }
            fn visit_f64<E>(self, x: f64) -> Result<Untagged, E> {
                Ok(Untagged(x))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Untagged, E> {
                match text {
                    "nan" => Ok(Untagged(f64::NAN)),
                    "inf" => Ok(Untagged(f64::INFINITY)),
                    "-inf" => Ok(Untagged(f64::NEG_INFINITY)),
                    _ => Err(E::custom(format!("float {text:?}; expected nan, inf, -inf or a number"))),
                }
            }
        }
        deserializer.deserialize_any(V)
    }
}

/// Reads the value of a `float` tag.
pub(crate) fn float_tag<'de, A: MapAccess<'de>>(map: &mut A) -> Result<f64, A::Error> {
    map.next_value::<Untagged>().map(|u| u.0)
}

/// Reads the value of an `int` tag: digits in a string.
pub(crate) fn int_tag<'de, A: MapAccess<'de>>(map: &mut A) -> Result<i128, A::Error> {
    let digits: String = map.next_value()?;
    digits.parse().map_err(|_| A::Error::custom(format!("int {digits:?}; expected decimal digits")))
}

/// Writes a float, tagged where it must be.
pub(crate) fn write_float<S: Serializer>(x: f64, serializer: S) -> Result<S::Ok, S::Error> {
    if x.is_finite() && x.fract() != 0.0 {
        return serializer.serialize_f64(x);
    }
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("float", &Untagged(x))?;
    map.end()
}

/// Writes an integer, tagged beyond ±2^53.
pub(crate) fn write_int<S: Serializer>(x: i128, serializer: S) -> Result<S::Ok, S::Error> {
    if (-EXACT..=EXACT).contains(&x) {
        return serializer.serialize_i64(x as i64);
    }
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("int", &x.to_string())?;
    map.end()
}

/// An untagged JSON float: an integral one is an integer, as jq may have rewritten it.
pub(crate) fn plain_number(x: f64) -> Result<Scalar, String> {
    if x.fract() != 0.0 {
        Ok(Scalar::Float(Float(x)))
    } else if x.abs() <= EXACT as f64 {
        Ok(Scalar::Int(x as i128))
    } else {
        Err(format!("untagged number {x:e} is beyond 2^53; expected {{\"int\":\"…\"}} or {{\"float\":…}}"))
    }
}

/// One element of a constant: a bool, an integer of up to 64 bits (either sign), a float, or a complex number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the number its name spells")]
pub enum Scalar {
    Bool(bool),
    Int(i128),
    Float(Float),
    Complex(Float, Float),
}

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_float(self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::deserialize(deserializer)? {
            Scalar::Float(x) => Ok(x),
            Scalar::Int(i) if (-EXACT..=EXACT).contains(&i) => Ok(Float(i as f64)),
            other => Err(D::Error::custom(format!("expected a float, found {other:?}"))),
        }
    }
}

/// An integer of up to 64 bits, either sign; `{"int":"…"}` beyond ±2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Integer(pub i128);

impl<T: Into<i128>> From<T> for Integer {
    fn from(x: T) -> Self {
        Integer(x.into())
    }
}

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_int(self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::deserialize(deserializer)? {
            Scalar::Int(i) => Ok(Integer(i)),
            other => Err(D::Error::custom(format!("expected an integer, found {other:?}"))),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Scalar::Bool(b) => serializer.serialize_bool(*b),
            Scalar::Int(i) => write_int(*i, serializer),
            Scalar::Float(x) => write_float(x.0, serializer),
            Scalar::Complex(re, im) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("complex", &[re, im])?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a bool, a number, or a tagged number")
            }
            fn visit_bool<E>(self, b: bool) -> Result<Scalar, E> {
                Ok(Scalar::Bool(b))
            }
            fn visit_i64<E>(self, x: i64) -> Result<Scalar, E> {
                Ok(Scalar::Int(x.into()))
            }
            fn visit_u64<E>(self, x: u64) -> Result<Scalar, E> {
                Ok(Scalar::Int(x.into()))
            }
            fn visit_f64<E: serde::de::Error>(self, x: f64) -> Result<Scalar, E> {
                plain_number(x).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                let key: String = map.next_key()?.ok_or_else(|| A::Error::custom("empty object, expected a number"))?;
                let scalar = match key.as_str() {
                    "float" => Scalar::Float(Float(float_tag(&mut map)?)),
                    "int" => Scalar::Int(int_tag(&mut map)?),
                    "complex" => {
                        let [re, im] = map.next_value::<[Float; 2]>()?;
                        Scalar::Complex(re, im)
                    }
                    other => return Err(A::Error::unknown_field(other, &["float", "int", "complex"])),
                };
                crate::tagged::end_of_tag(&mut map)?;
                Ok(scalar)
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl schemars::JsonSchema for Float {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Float".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "number" },
                { "type": "object", "properties": { "float": { "anyOf": [{ "type": "number" }, { "enum": ["nan", "inf", "-inf"] }] } },
                  "required": ["float"], "additionalProperties": false },
            ]
        })
    }
}

impl schemars::JsonSchema for Integer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Integer".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "integer" },
                { "type": "object", "properties": { "int": { "type": "string", "pattern": "^-?[0-9]+$" } },
                  "required": ["int"], "additionalProperties": false },
            ]
        })
    }
}

impl schemars::JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let float = generator.subschema_for::<Float>();
        schemars::json_schema!({
            "anyOf": [
                { "type": "boolean" },
                float,
                { "type": "object", "properties": { "int": { "type": "string", "pattern": "^-?[0-9]+$" } },
                  "required": ["int"], "additionalProperties": false },
                { "type": "object", "properties": { "complex": { "type": "array", "items": float, "minItems": 2, "maxItems": 2 } },
                  "required": ["complex"], "additionalProperties": false },
            ]
        })
    }
}
