//! Arguments of nodes: plain JSON where JSON is exact, one-key tagged objects for everything else.

use crate::dtype::DType;
use crate::number::{Float, Scalar, float_tag, int_tag, plain_number, write_float, write_int};
use crate::tagged::{end_of_tag, unique};
use indexmap::IndexMap;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Positional arguments.
pub type Args = Vec<Arg>;

/// Keyword arguments in the order of the call; keys are distinct.
pub type Kwargs = IndexMap<String, Arg>;

/// One argument of a node, or a literal elsewhere in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// An integer; `{"int":"…"}` beyond ±2^53.
    Int(i64),
    /// A float; `{"float":…}` where it has an integral value or is not finite.
    Float(Float),
    /// A string.
    Str(String),
    /// A list.
    List(Vec<Arg>),
    /// `{"v":"linear_1"}`: a value of this graph.
    Value(String),
    /// `{"sym":"2*s0+1"}`: an expression over this graph's symbols.
    Sym(String),
    /// `{"dtype":"bf16"}`.
    DType(DType),
    /// `{"device":"cpu"}`.
    Device(String),
    /// `{"layout":"strided"}`.
    Layout(String),
    /// `{"memory_format":"contiguous"}`.
    MemoryFormat(String),
    /// `{"graph":"original/true_graph_0"}`: a nested graph by its id.
    Graph(String),
    /// `{"complex":[re,im]}`.
    Complex(Float, Float),
    /// `{"op":"aten.add.Tensor"}`: an operator as an argument.
    Op(String),
    /// `{"object":"name","class":"…"}`: an opaque object.
    Object {
        /// Its value name.
        name: String,
        /// Its class.
        class: String,
    },
    /// `{"map":{…}}`.
    Map(Kwargs),
}

impl Arg {
    /// A reference to a value.
    pub fn value(name: impl Into<String>) -> Arg {
        Arg::Value(name.into())
    }

    /// A list of integers.
    pub fn ints(items: impl IntoIterator<Item = i64>) -> Arg {
        Arg::List(items.into_iter().map(Arg::Int).collect())
    }

    /// Calls `f` with each value name in this argument, lists and maps included, in order.
    pub fn for_each_value<'a>(&'a self, f: &mut impl FnMut(&'a str)) {
        match self {
            Arg::Value(name) => f(name),
            Arg::Object { name, .. } => f(name),
            Arg::List(items) => items.iter().for_each(|a| a.for_each_value(f)),
            Arg::Map(map) => map.values().for_each(|a| a.for_each_value(f)),
            _ => {}
        }
    }

    /// Replaces value names in this argument, lists and maps included.
    pub fn rename_values(&mut self, f: &mut impl FnMut(&str) -> Option<String>) {
        match self {
            Arg::Value(name) | Arg::Object { name, .. } => {
                if let Some(new) = f(name) {
                    *name = new;
                }
            }
            Arg::List(items) => items.iter_mut().for_each(|a| a.rename_values(f)),
            Arg::Map(map) => map.values_mut().for_each(|a| a.rename_values(f)),
            _ => {}
        }
    }
}

impl From<i64> for Arg {
    fn from(n: i64) -> Arg {
        Arg::Int(n)
    }
}

impl From<bool> for Arg {
    fn from(b: bool) -> Arg {
        Arg::Bool(b)
    }
}

impl From<f64> for Arg {
    fn from(x: f64) -> Arg {
        Arg::Float(Float(x))
    }
}

impl From<&str> for Arg {
    fn from(s: &str) -> Arg {
        Arg::Str(s.to_owned())
    }
}

fn one<S: Serializer, T: Serialize + ?Sized>(serializer: S, tag: &str, value: &T) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(tag, value)?;
    map.end()
}

impl Serialize for Arg {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Arg::Null => serializer.serialize_unit(),
            Arg::Bool(b) => serializer.serialize_bool(*b),
            Arg::Int(n) => write_int((*n).into(), serializer),
            Arg::Float(x) => write_float(x.0, serializer),
            Arg::Str(s) => serializer.serialize_str(s),
            Arg::List(items) => items.serialize(serializer),
            Arg::Value(name) => one(serializer, "v", name),
            Arg::Sym(expr) => one(serializer, "sym", expr),
            Arg::DType(d) => one(serializer, "dtype", d),
            Arg::Device(d) => one(serializer, "device", d),
            Arg::Layout(l) => one(serializer, "layout", l),
            Arg::MemoryFormat(m) => one(serializer, "memory_format", m),
            Arg::Graph(g) => one(serializer, "graph", g),
            Arg::Complex(re, im) => one(serializer, "complex", &[re, im]),
            Arg::Op(op) => one(serializer, "op", op),
            Arg::Map(map) => one(serializer, "map", map),
            Arg::Object { name, class } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("object", name)?;
                map.serialize_entry("class", class)?;
                map.end()
            }
        }
    }
}

/// The tags that an object argument may carry.
const TAGS: &[&str] = &[
    "v",
    "sym",
    "dtype",
    "device",
    "layout",
    "memory_format",
    "graph",
    "complex",
    "op",
    "object",
    "class",
    "map",
    "float",
    "int",
];

/// An object argument's second key, of which only `object` and `class` go together.
fn object<'de, A: MapAccess<'de>>(map: &mut A, first: &str) -> Result<Arg, A::Error> {
    let one: String = map.next_value()?;
    let wanted = if first == "object" { "class" } else { "object" };
    let other = match map.next_entry::<String, String>()? {
        Some((key, value)) if key == wanted => value,
        _ => return Err(A::Error::custom(format!("{first:?} needs {wanted:?} beside it"))),
    };
    let (name, class) = if first == "object" { (one, other) } else { (other, one) };
    Ok(Arg::Object { name, class })
}

/// Wrapper that reads an object with distinct keys.
struct Distinct(Kwargs);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        unique(d).map(Distinct)
    }
}

struct ArgVisitor;

impl<'de> Visitor<'de> for ArgVisitor {
    type Value = Arg;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument: null, bool, number, string, list or a tagged object")
    }

    fn visit_unit<E>(self) -> Result<Arg, E> {
        Ok(Arg::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Arg, E> {
        Ok(Arg::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Arg, E> {
        Ok(Arg::Int(n))
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Arg, E> {
        i64::try_from(n).map(Arg::Int).map_err(|_| E::custom(format!("integer {n} is beyond 2^63")))
    }

    fn visit_f64<E: serde::de::Error>(self, x: f64) -> Result<Arg, E> {
        Ok(match plain_number(x).map_err(E::custom)? {
            Scalar::Int(n) => Arg::Int(n as i64),
            _ => Arg::Float(Float(x)),
        })
    }

    fn visit_str<E>(self, s: &str) -> Result<Arg, E> {
        Ok(Arg::Str(s.to_owned()))
    }

    fn visit_string<E>(self, s: String) -> Result<Arg, E> {
        Ok(Arg::Str(s))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Arg, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Arg::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arg, A::Error> {
        let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? else {
            return Err(A::Error::custom("empty object; a tagged argument has one key"));
        };
        let arg = match key.as_ref() {
            "v" => Arg::Value(map.next_value()?),
            "sym" => Arg::Sym(map.next_value()?),
            "dtype" => Arg::DType(map.next_value()?),
            "device" => Arg::Device(map.next_value()?),
            "layout" => Arg::Layout(map.next_value()?),
            "memory_format" => Arg::MemoryFormat(map.next_value()?),
            "graph" => Arg::Graph(map.next_value()?),
            "op" => Arg::Op(map.next_value()?),
            "map" => Arg::Map(map.next_value::<Distinct>()?.0),
            "float" => Arg::Float(Float(float_tag(&mut map)?)),
            "int" => {
                let n = int_tag(&mut map)?;
                Arg::Int(i64::try_from(n).map_err(|_| A::Error::custom(format!("integer {n} is beyond 2^63")))?)
            }
            "complex" => {
                let [re, im] = map.next_value::<[Float; 2]>()?;
                Arg::Complex(re, im)
            }
            first @ ("object" | "class") => object(&mut map, first)?,
            other => return Err(A::Error::unknown_field(other, TAGS)),
        };
        end_of_tag(&mut map)?;
        Ok(arg)
    }
}

impl<'de> Deserialize<'de> for Arg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgVisitor)
    }
}

impl schemars::JsonSchema for Arg {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Arg".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let scalar = generator.subschema_for::<Scalar>();
        let dtype = generator.subschema_for::<DType>();
        let arg = generator.subschema_for::<Arg>();
        let text = serde_json::json!({ "type": "string" });
        let tag = |key: &str, inner: serde_json::Value| {
            serde_json::json!({ "type": "object", "additionalProperties": false, "required": [key],
                                "properties": { key: inner } })
        };
        let mut any = vec![
            serde_json::json!({ "type": ["null", "string"] }),
            scalar.to_value(),
            serde_json::json!({ "type": "array", "items": arg }),
            tag("dtype", dtype.to_value()),
            tag("map", serde_json::json!({ "type": "object", "additionalProperties": arg })),
            serde_json::json!({ "type": "object", "additionalProperties": false, "required": ["object", "class"],
                                "properties": { "object": text, "class": text } }),
        ];
        any.extend(["v", "sym", "device", "layout", "memory_format", "graph", "op"].map(|key| tag(key, text.clone())));
        schemars::json_schema!({ "anyOf": any })
    }
}
