//! The leaves of the JSON: borrowed strings, floats with their odd spellings, ordered maps, and values that are skipped.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A string, borrowed from the file unless it has escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<'a>(pub Cow<'a, str>);

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&Text<'_>> for String {
    fn from(text: &Text<'_>) -> String {
        text.0.clone().into_owned()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(V)
    }
}

/// A float: a number, or one of the strings that stand for what JSON cannot write.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Real(pub f64);

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Real;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, \"Infinity\", \"-Infinity\" or \"NaN\"")
            }
            fn visit_f64<E: Error>(self, x: f64) -> Result<Real, E> {
                Ok(Real(x))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Real, E> {
                Ok(Real(n as f64))
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<Real, E> {
                Ok(Real(n as f64))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Real, E> {
                match text {
                    "Infinity" => Ok(Real(f64::INFINITY)),
                    "-Infinity" => Ok(Real(f64::NEG_INFINITY)),
                    "NaN" => Ok(Real(f64::NAN)),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(V)
    }
}

/// A map in file order. Keys may repeat here; who indexes it refuses that.
#[derive(Debug)]
pub struct Pairs<'a, T>(pub Vec<(Text<'a>, T)>);

impl<T> Default for Pairs<'_, T> {
    fn default() -> Self {
        Pairs(Vec::new())
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Pairs<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<'a, T>(PhantomData<(&'a (), T)>);
        impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for V<'a, T> {
            type Value = Pairs<'a, T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(V(PhantomData))
    }
}

/// A value whose presence is all that it says, such as the one of `as_none`: `true`, or `[]` up to torch 2.5.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Ignored)
    }
}

/// Whether a skipped value says anything: null and empty containers do not.
pub(crate) struct Carries(pub bool);

impl<'de> Deserialize<'de> for Carries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Carries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E: Error>(self) -> Result<Carries, E> {
                Ok(Carries(false))
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Carries, E> {
                Ok(Carries(true))
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Carries, E> {
                Ok(Carries(true))
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<Carries, E> {
                Ok(Carries(true))
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Carries, E> {
                Ok(Carries(true))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Carries, E> {
                Ok(Carries(!text.is_empty()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Carries, A::Error> {
                let mut any = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    any = true;
                }
                Ok(Carries(any))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Carries, A::Error> {
                let mut any = false;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    any = true;
                }
                Ok(Carries(any))
            }
        }
        deserializer.deserialize_any(V)
    }
}
