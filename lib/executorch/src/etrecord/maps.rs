//! The three maps of a record: instructions to debug handles, to delegates, and to numbers of outputs.
//!
//! JSON objects by method and then by instruction, whose keys are decimal text. Keys may not repeat.

use std::fmt;
use std::marker::PhantomData;

use indexmap::IndexMap;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What a record says of an instruction that calls a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delegate {
    /// The backend.
    pub name: String,
    /// Handles by the backend's own ids, as text whatever they were; none where the backend recorded none.
    pub ids: Option<IndexMap<String, Vec<i64>>>,
}

/// What a record says of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Handles of the nodes it came from, in the recorded order, repetitions kept.
    pub handles: Option<Vec<i64>>,
    /// The call of a backend.
    pub delegate: Option<Delegate>,
    /// How many outputs it has.
    pub outputs: Option<i64>,
}

/// Instructions by number.
pub type Instructions = IndexMap<i32, Instruction>;

/// The maps of all methods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps {
    methods: IndexMap<String, Instructions>,
    /// Whether the record has a delegate map.
    pub has_delegates: bool,
    /// Whether the record says how many outputs instructions have.
    pub has_outputs: bool,
}

impl Maps {
    /// The methods, in the record's order.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.methods.keys().map(String::as_str)
    }

    /// The instructions of a method, in the record's order.
    pub fn instructions(&self, method: &str) -> Option<&Instructions> {
        self.methods.get(method)
    }

    /// The instructions of a method to be added to; the method too where it is new.
    pub fn instructions_mut(&mut self, method: &str) -> &mut Instructions {
        self.methods.entry(method.to_owned()).or_default()
    }

    pub(crate) fn read_handles(&mut self, text: &[u8]) -> serde_json::Result<()> {
        let found: ByMethod<Handles> = serde_json::from_slice(text)?;
        self.add(found, |place, value| place.handles = Some(value.0));
        Ok(())
    }

    pub(crate) fn read_delegates(&mut self, text: &[u8]) -> serde_json::Result<()> {
        // A record that was made without delegates may say null.
        let Some(found) = serde_json::from_slice::<Option<ByMethod<DelegateEntry>>>(text)? else { return Ok(()) };
        self.has_delegates = true;
        self.add(found, |place, value| {
            let ids = value.delegate_map.map(|map| map.0.into_iter().map(|(key, value)| (key, value.0)).collect());
            place.delegate = Some(Delegate { name: value.name, ids });
        });
        Ok(())
    }

    pub(crate) fn read_outputs(&mut self, text: &[u8]) -> serde_json::Result<()> {
        let Some(found) = serde_json::from_slice::<Option<ByMethod<i64>>>(text)? else { return Ok(()) };
        self.has_outputs = true;
        self.add(found, |place, value| place.outputs = Some(value));
        Ok(())
    }

    fn add<T>(&mut self, found: ByMethod<T>, put: impl Fn(&mut Instruction, T)) {
        for (method, instructions) in found.0 {
            let places = self.methods.entry(method).or_default();
            for (Number(instruction), value) in instructions.0 {
                put(places.entry(instruction).or_default(), value);
            }
        }
    }
}

type ByMethod<T> = Unique<String, Unique<Number, T>>;

#[derive(Deserialize)]
struct DelegateEntry {
    name: String,
    delegate_map: Option<Unique<String, Handles>>,
}

/// An instruction's number: decimal text, as JSON has no other keys.
#[derive(PartialEq, Eq, Hash)]
struct Number(i32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.parse().ok().filter(|number: &i32| *number >= 0 && number.to_string() == text);
        number.map(Number).ok_or_else(|| D::Error::custom(format!("{text:?} is no instruction id")))
    }
}

/// One handle, or a list of them.
struct Handles(Vec<i64>);

impl<'de> Deserialize<'de> for Handles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Handles;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a debug handle or a list of them")
            }
            fn visit_unit<E>(self) -> Result<Handles, E> {
                Ok(Handles(Vec::new()))
            }
            fn visit_i64<E>(self, x: i64) -> Result<Handles, E> {
                Ok(Handles(vec![x]))
            }
            fn visit_u64<E: serde::de::Error>(self, x: u64) -> Result<Handles, E> {
                i64::try_from(x).map(|x| Handles(vec![x])).map_err(|_| E::custom(format!("debug handle {x}")))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Handles, A::Error> {
                let mut handles = Vec::new();
                while let Some(handle) = all.next_element()? {
                    handles.push(handle);
                }
                Ok(Handles(handles))
            }
        }
        deserializer.deserialize_any(V)
    }
}

/// An object whose keys must be distinct, in its own order.
struct Unique<K, T>(Vec<(K, T)>);

impl<'de, K: Deserialize<'de> + Eq + std::hash::Hash, T: Deserialize<'de>> Deserialize<'de> for Unique<K, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<K, T>(PhantomData<(K, T)>);
        impl<'de, K: Deserialize<'de> + Eq + std::hash::Hash, T: Deserialize<'de>> Visitor<'de> for V<K, T> {
            type Value = Unique<K, T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut out: IndexMap<K, T> = IndexMap::new();
                while let Some((key, value)) = map.next_entry()? {
                    if out.insert(key, value).is_some() {
                        return Err(A::Error::custom("a key is there twice"));
                    }
                }
                Ok(Unique(out.into_iter().collect()))
            }
        }
        deserializer.deserialize_map(V(PhantomData))
    }
}
