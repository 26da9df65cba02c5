//! Arguments of a serialized graph, as far as they name values: constants are skipped.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What an argument refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// A value, or nothing where it is a constant or absent.
    Value(Option<String>),
    /// Several.
    List(Vec<Argument>),
    /// A nested graph.
    Graph,
}

impl Argument {
    /// Appends the names in this argument, in order.
    pub fn collect(&self, names: &mut Vec<String>) {
        match self {
            Argument::Value(name) => names.extend(name.clone()),
            Argument::List(items) => items.iter().for_each(|item| item.collect(names)),
            Argument::Graph => {}
        }
    }
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(V)
    }
}

struct V;

macro_rules! constants {
    ($($visit:ident: $kind:ty),*) => {
        $(fn $visit<E>(self, _: $kind) -> Result<Argument, E> {
            Ok(Argument::Value(None))
        })*
    };
}

impl<'de> Visitor<'de> for V {
    type Value = Argument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument")
    }

    constants!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Argument, E> {
        Ok(Argument::Value(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Argument, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = all.next_element()? {
            items.push(item);
        }
        Ok(Argument::List(items))
    }

    /// A tagged argument, or what is inside one: `{"name":…}`.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Argument, A::Error> {
        let mut found = Argument::Value(None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" | "as_name" => found = Argument::Value(Some(map.next_value()?)),
                "as_graph" => {
                    map.next_value::<IgnoredAny>()?;
                    found = Argument::Graph;
                }
                "as_tensor"
                | "as_tensors"
                | "as_optional_tensor"
                | "as_optional_tensors"
                | "as_nested_tensors"
                | "as_sym_int"
                | "as_sym_ints"
                | "as_sym_bool"
                | "as_sym_bools"
                | "as_sym_float"
                | "as_sym_floats"
                | "as_custom_obj" => found = map.next_value()?,
                "as_string_to_argument" => {
                    let inside: indexmap::IndexMap<String, Argument> = map.next_value()?;
                    found = Argument::List(inside.into_values().collect());
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}
