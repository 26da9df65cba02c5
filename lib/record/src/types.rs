//! Types of values: tensors with static and symbolic dimensions, scalars, lists, and what has no bytes at all.

use crate::dtype::DType;
use crate::tagged::end_of_tag;
use schemars::JsonSchema;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A dimension, stride or extent: a number, or an expression over the graph's symbols in canonical infix text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the two kinds are described above")]
pub enum Dim {
    Int(i64),
    Expr(String),
}

impl Dim {
    /// The number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Dim::Int(n) => Some(*n),
            Dim::Expr(_) => None,
        }
    }
}

impl From<i64> for Dim {
    fn from(n: i64) -> Self {
        Dim::Int(n)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Int(n) => write!(f, "{n}"),
            Dim::Expr(e) => f.write_str(e),
        }
    }
}

/// A tensor's type. `strides` (in elements), `device` and `layout` are there only where they are not the default:
/// contiguous, `cpu`, `strided`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are the record's fields")]
pub struct TensorType {
    pub dtype: DType,
    pub shape: Vec<Dim>,
    pub strides: Option<Vec<Dim>>,
    pub device: Option<String>,
    pub layout: Option<String>,
}

impl TensorType {
    /// A contiguous tensor on the CPU.
    pub fn new(dtype: DType, shape: Vec<Dim>) -> Self {
        TensorType { dtype, shape, strides: None, device: None, layout: None }
    }

    /// The shape as numbers, if every dimension is static.
    pub fn static_shape(&self) -> Option<Vec<i64>> {
        self.shape.iter().map(Dim::as_int).collect()
    }
}

/// The kind of a scalar value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant is the kind its name spells")]
pub enum ScalarKind {
    Int,
    Float,
    Bool,
    Str,
    Complex,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A tensor.
    Tensor(TensorType),
    /// A Python number, bool or string; `expr` where the value is symbolic.
    Scalar {
        /// What kind of scalar.
        kind: ScalarKind,
        /// Its value over the graph's symbols, if known.
        expr: Option<String>,
    },
    /// A list of values.
    List(Vec<Type>),
    /// No value.
    None,
    /// An ordering token.
    Token,
    /// An opaque object of the named class.
    Object(String),
}

impl Type {
    /// A scalar without an expression.
    pub fn scalar(kind: ScalarKind) -> Self {
        Type::Scalar { kind, expr: None }
    }

    /// The tensor type, if it is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(t) => Some(t),
            _ => None,
        }
    }
}

impl From<TensorType> for Type {
    fn from(t: TensorType) -> Self {
        Type::Tensor(t)
    }
}

impl Serialize for Dim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Dim::Int(n) => crate::number::write_int((*n).into(), serializer),
            Dim::Expr(e) => serializer.serialize_str(e),
        }
    }
}

impl<'de> Deserialize<'de> for Dim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Dim;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer or an expression")
            }
            fn visit_i64<E>(self, n: i64) -> Result<Dim, E> {
                Ok(Dim::Int(n))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Dim, E> {
                i64::try_from(n).map(Dim::Int).map_err(|_| E::custom(format!("dimension {n} is beyond 2^63")))
            }
            fn visit_str<E>(self, e: &str) -> Result<Dim, E> {
                Ok(Dim::Expr(e.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Dim, A::Error> {
                match map.next_key::<String>()?.as_deref() {
                    Some("int") => {}
                    _ => return Err(A::Error::custom("expected an integer, an expression or {\"int\":\"…\"}")),
                }
                let n = crate::number::int_tag(&mut map)?;
                end_of_tag(&mut map)?;
                i64::try_from(n).map(Dim::Int).map_err(|_| A::Error::custom(format!("dimension {n} is beyond 2^63")))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl Serialize for Type {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Type::Tensor(t) => {
                map.serialize_entry("tensor", &t.dtype)?;
                map.serialize_entry("shape", &t.shape)?;
                if let Some(strides) = &t.strides {
                    map.serialize_entry("strides", strides)?;
                }
                if let Some(device) = &t.device {
                    map.serialize_entry("device", device)?;
                }
                if let Some(layout) = &t.layout {
                    map.serialize_entry("layout", layout)?;
                }
            }
            Type::Scalar { kind, expr } => {
                map.serialize_entry("scalar", kind)?;
                if let Some(expr) = expr {
                    map.serialize_entry("expr", expr)?;
                }
            }
            Type::List(items) => map.serialize_entry("list", items)?,
            Type::None => map.serialize_entry("none", &true)?,
            Type::Token => map.serialize_entry("token", &true)?,
            Type::Object(class) => map.serialize_entry("object", class)?,
        }
        map.end()
    }
}

/// The fields of any type, as they stand in JSON.
#[derive(Default)]
struct Fields {
    tensor: Option<DType>,
    shape: Option<Vec<Dim>>,
    strides: Option<Vec<Dim>>,
    device: Option<String>,
    layout: Option<String>,
    scalar: Option<ScalarKind>,
    expr: Option<String>,
    list: Option<Vec<Type>>,
    none: Option<bool>,
    token: Option<bool>,
    object: Option<String>,
}

const FIELDS: &[&str] =
    &["tensor", "shape", "strides", "device", "layout", "scalar", "expr", "list", "none", "token", "object"];

impl Fields {
    fn into_type(self) -> Result<Type, String> {
        let only_tensor =
            self.shape.is_some() || self.strides.is_some() || self.device.is_some() || self.layout.is_some();
        let kinds = [
            self.tensor.is_some(),
            self.scalar.is_some(),
            self.list.is_some(),
            self.none.is_some(),
            self.token.is_some(),
            self.object.is_some(),
        ];
        if kinds.iter().filter(|k| **k).count() != 1 {
            return Err("a type needs exactly one of tensor, scalar, list, none, token, object".into());
        }
        if only_tensor && self.tensor.is_none() {
            return Err("shape, strides, device and layout belong to a tensor type".into());
        }
        if self.expr.is_some() && self.scalar.is_none() {
            return Err("expr belongs to a scalar type".into());
        }
        if self.none == Some(false) || self.token == Some(false) {
            return Err("none and token can only be true".into());
        }
        Ok(match self {
            Fields { tensor: Some(dtype), shape, strides, device, layout, .. } => {
                let shape = shape.ok_or("a tensor type needs a shape")?;
                if strides.as_ref().is_some_and(|s| s.len() != shape.len()) {
                    return Err("strides and shape differ in rank".into());
                }
                Type::Tensor(TensorType { dtype, shape, strides, device, layout })
            }
            Fields { scalar: Some(kind), expr, .. } => Type::Scalar { kind, expr },
            Fields { list: Some(items), .. } => Type::List(items),
            Fields { object: Some(class), .. } => Type::Object(class),
            Fields { none: Some(_), .. } => Type::None,
            _ => Type::Token,
        })
    }
}

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Type;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a type object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Type, A::Error> {
                fn put<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
                    slot: &mut Option<T>,
                    map: &mut A,
                    key: &'static str,
                ) -> Result<(), A::Error> {
                    if slot.is_some() {
                        return Err(A::Error::duplicate_field(key));
                    }
                    *slot = Some(map.next_value()?);
                    Ok(())
                }
                let mut f = Fields::default();
                while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    match key.as_ref() {
                        "tensor" => put(&mut f.tensor, &mut map, "tensor")?,
                        "shape" => put(&mut f.shape, &mut map, "shape")?,
                        "strides" => put(&mut f.strides, &mut map, "strides")?,
                        "device" => put(&mut f.device, &mut map, "device")?,
                        "layout" => put(&mut f.layout, &mut map, "layout")?,
                        "scalar" => put(&mut f.scalar, &mut map, "scalar")?,
                        "expr" => put(&mut f.expr, &mut map, "expr")?,
                        "list" => put(&mut f.list, &mut map, "list")?,
                        "none" => put(&mut f.none, &mut map, "none")?,
                        "token" => put(&mut f.token, &mut map, "token")?,
                        "object" => put(&mut f.object, &mut map, "object")?,
                        other => return Err(A::Error::unknown_field(other, FIELDS)),
                    }
                }
                f.into_type().map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_map(V)
    }
}

impl JsonSchema for Dim {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dim".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [
            { "type": "integer" },
            { "type": "string" },
            { "type": "object", "properties": { "int": { "type": "string" } }, "required": ["int"], "additionalProperties": false },
        ] })
    }
}

impl JsonSchema for Type {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Type".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let dtype = generator.subschema_for::<DType>();
        let dim = generator.subschema_for::<Dim>();
        let kind = generator.subschema_for::<ScalarKind>();
        let ty = generator.subschema_for::<Type>();
        schemars::json_schema!({ "anyOf": [
            { "type": "object", "additionalProperties": false, "required": ["tensor", "shape"], "properties": {
                "tensor": dtype, "shape": { "type": "array", "items": dim }, "strides": { "type": "array", "items": dim },
                "device": { "type": "string" }, "layout": { "type": "string" } } },
            { "type": "object", "additionalProperties": false, "required": ["scalar"],
              "properties": { "scalar": kind, "expr": { "type": "string" } } },
            { "type": "object", "additionalProperties": false, "required": ["list"],
              "properties": { "list": { "type": "array", "items": ty } } },
            { "type": "object", "additionalProperties": false, "required": ["none"], "properties": { "none": { "const": true } } },
            { "type": "object", "additionalProperties": false, "required": ["token"], "properties": { "token": { "const": true } } },
            { "type": "object", "additionalProperties": false, "required": ["object"],
              "properties": { "object": { "type": "string" } } },
        ] })
    }
}
