//! Small serde pieces that several record values share.

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Fails when a tagged object (`{"v":"x"}`) has anything after its one key.
pub(crate) fn end_of_tag<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    match map.next_entry::<String, IgnoredAny>()? {
        None => Ok(()),
        Some((key, _)) => Err(A::Error::custom(format!("unexpected key {key:?} in a tagged value"))),
    }
}

/// Reads an object whose keys must be distinct.
pub(crate) fn unique<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<IndexMap<String, T>, D::Error> {
    struct V<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
        type Value = IndexMap<String, T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = IndexMap::new();
            while let Some((key, value)) = map.next_entry::<String, T>()? {
                if out.contains_key(&key) {
                    return Err(A::Error::custom(format!("duplicate key {key:?}")));
                }
                out.insert(key, value);
            }
            Ok(out)
        }
    }
    d.deserialize_map(V(PhantomData))
}

/// Reads an object whose keys must be distinct, or null.
pub(crate) fn unique_option<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<IndexMap<String, T>>, D::Error> {
    struct V<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
        type Value = Option<IndexMap<String, T>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object or null")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
            unique(d).map(Some)
        }
    }
    d.deserialize_option(V(PhantomData))
}

/// Reads a field that is there, `null` included, as `Some`; absent is `None` through `#[serde(default)]`.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}
