//! Weights and constants by qualified name, whichever way the archive keeps them.

use std::collections::HashMap;

use m2m_record::DType;

use crate::archive::{Archive, Program, StateEntries};
use crate::pickle::{Id, MAX_DEPTH, Pickle, Policy, Value};
use crate::place::{Placed, Storages};
use crate::saved::Saved;
use crate::schema::{self, Payload, PayloadConfig, SymInt};
use crate::{Error, enums};

/// What the archive holds under a qualified name.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// Bytes in the file.
    Tensor(Placed),
    /// A tensor that was saved without its bytes.
    Absent {
        /// Element type.
        dtype: DType,
        /// Shape.
        sizes: Vec<i64>,
    },
    /// A tensor of a Python subclass.
    Subclass {
        /// Its class.
        class: String,
        /// Inner tensors by attribute.
        tensors: Vec<(String, Placed)>,
        /// Other attributes, in words.
        others: Vec<(String, String)>,
    },
    /// An object that only its class can read.
    Object {
        /// The entry that holds it.
        entry: String,
    },
}

/// Everything that is not a user's input.
#[derive(Debug, Default)]
pub struct State {
    weights: HashMap<String, Held>,
    constants: HashMap<String, Held>,
    /// Names in file order, to report what no input uses.
    names: Vec<String>,
}

impl State {
    /// Finds every weight and constant of a program; reads none of their bytes.
    ///
    /// # Errors
    /// Configs or pickles that are refused, tensors that do not fit their storage.
    pub fn read(archive: &Archive<'_>, program: &Program) -> Result<Self, Error> {
        let mut state = State::default();
        let mut storages = Storages::default();
        match &program.state {
            StateEntries::Raw { weights, constants } => {
                state.weights = state.raw(archive, weights.as_deref(), "data/weights/", &mut storages)?;
                state.constants = state.raw(archive, constants.as_deref(), "data/constants/", &mut storages)?;
            }
            StateEntries::Pickled { weights, constants } => {
                state.weights = state.pickled(archive, weights.as_deref(), &mut storages)?;
                state.constants = state.pickled(archive, constants.as_deref(), &mut storages)?;
            }
        }
        Ok(state)
    }

    /// What is kept under a name. Persistent state is looked for among the weights first.
    pub fn find(&self, name: &str, is_weight: bool) -> Option<&Held> {
        let (first, second) =
            if is_weight { (&self.weights, &self.constants) } else { (&self.constants, &self.weights) };
        first.get(name).or_else(|| second.get(name))
    }

    /// All names, in the order of the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Everything that is held, in the order of the file.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Held)> {
        let (weights, constants) = self.names.split_at(self.weights.len().min(self.names.len()));
        let held = |map, names| names_in(map, names);
        held(&self.weights, weights).chain(held(&self.constants, constants))
    }

    fn raw(
        &mut self,
        archive: &Archive<'_>,
        config: Option<&str>,
        folder: &str,
        storages: &mut Storages,
    ) -> Result<HashMap<String, Held>, Error> {
        let mut held = HashMap::new();
        let Some(entry) = config else { return Ok(held) };
        let mut buffer = String::new();
        let bytes = archive.text(entry, "it was just found")?;
        let json = |source| Error::Json { entry: entry.to_owned(), source };
        let config: PayloadConfig<'_> = schema::parse(bytes, &mut buffer).map_err(json)?;
        for (name, payload) in &config.config.0 {
            let name = String::from(name);
            let path = archive.entry_name(&format!("{folder}{}", payload.path_name));
            let found = payload_held(archive, &name, &path, payload, storages)?;
            if held.insert(name.clone(), found).is_some() {
                return Err(twice(&name, entry));
            }
            self.names.push(name);
        }
        Ok(held)
    }

    fn pickled(
        &mut self,
        archive: &Archive<'_>,
        entry: Option<&str>,
        storages: &mut Storages,
    ) -> Result<HashMap<String, Held>, Error> {
        let mut held = HashMap::new();
        let Some(entry) = entry else { return Ok(held) };
        let saved = Saved::open(archive, entry, Policy::Tensors)?;
        let pickle = saved.pickle();
        let Value::Dict(items) = pickle.value(pickle.root()) else {
            return Err(shape(entry, "a dict of tensors by name", pickle.value(pickle.root()).kind()));
        };
        for (key, value) in items {
            let Value::Str(name) = pickle.value(*key) else {
                return Err(shape(entry, "names as keys", pickle.value(*key).kind()));
            };
            let found = saved_held(&saved, name, *value, storages)?;
            if held.insert((*name).to_owned(), found).is_some() {
                return Err(twice(name, entry));
            }
            self.names.push((*name).to_owned());
        }
        Ok(held)
    }
}

fn names_in<'s>(map: &'s HashMap<String, Held>, names: &'s [String]) -> impl Iterator<Item = (&'s str, &'s Held)> {
    names.iter().filter_map(|name| Some((name.as_str(), map.get(name)?)))
}

fn twice(name: &str, entry: &str) -> Error {
    Error::Tensor { name: name.to_owned(), entry: entry.to_owned(), detail: "the name is there twice".to_owned() }
}

fn shape(entry: &str, expected: &str, found: String) -> Error {
    Error::Tensor {
        name: String::new(),
        entry: entry.to_owned(),
        detail: format!("expected {expected}, found {found}"),
    }
}

/// What one line of a config stands for.
fn payload_held(
    archive: &Archive<'_>,
    name: &str,
    path: &str,
    payload: &Payload<'_>,
    storages: &mut Storages,
) -> Result<Held, Error> {
    let fail = |detail: String| Error::Tensor { name: name.to_owned(), entry: path.to_owned(), detail };
    let entry = archive.zip().find(path).ok_or_else(|| fail("the entry is missing".to_owned()))?;
    let Some(meta) = &payload.tensor_meta else { return Ok(Held::Object { entry: path.to_owned() }) };
    if payload.use_pickle {
        let saved = Saved::open(archive, path, Policy::Subclass)?;
        return saved_held(&saved, name, saved.pickle().root(), storages);
    }
    let dtype =
        enums::scalar_type(meta.dtype).ok_or_else(|| fail(format!("ScalarType {} is not known", meta.dtype)))?;
    let ints = |list: &[SymInt<'_>]| -> Result<Vec<i64>, Error> {
        list.iter().map(|n| static_int(n).ok_or_else(|| fail("a weight has a symbolic size".to_owned()))).collect()
    };
    let (sizes, strides) = (ints(&meta.sizes)?, ints(&meta.strides)?);
    let offset = static_int(&meta.storage_offset).ok_or_else(|| fail("a weight has a symbolic offset".to_owned()))?;
    if entry.len == 0 && !sizes.contains(&0) {
        return Ok(Held::Absent { dtype, sizes });
    }
    let placed = Placed::new(dtype, &sizes, &strides, offset, entry.len).map_err(fail)?;
    let storage = storages.id(entry.start, entry.len);
    Ok(Held::Tensor(placed.at(entry.start, storage, archive.is_big_endian())))
}

fn static_int(n: &SymInt<'_>) -> Option<i64> {
    match n {
        SymInt::Int(n) => Some(*n),
        _ => None,
    }
}

/// What a value of a file of torch.save stands for.
fn saved_held(saved: &Saved<'_>, name: &str, id: Id, storages: &mut Storages) -> Result<Held, Error> {
    let pickle = saved.pickle();
    match pickle.value(id) {
        Value::Tensor(tensor) => Ok(match saved.place(name, tensor, storages)? {
            Some(placed) => Held::Tensor(placed),
            None => Held::Absent { dtype: tensor.dtype, sizes: tensor.sizes.clone() },
        }),
        Value::Subclass(subclass) => {
            let (mut tensors, mut others) = (Vec::new(), Vec::new());
            for (key, value) in &subclass.attributes {
                let Value::Str(attribute) = pickle.value(*key) else {
                    return Err(shape(saved.entry(), "attribute names", pickle.value(*key).kind()));
                };
                let placed = match pickle.value(*value) {
                    Value::Tensor(tensor) => saved.place(&format!("{name}.{attribute}"), tensor, storages)?,
                    _ => None,
                };
                match placed {
                    Some(placed) => tensors.push(((*attribute).to_owned(), placed)),
                    None => others.push(((*attribute).to_owned(), words(pickle, *value, MAX_DEPTH))),
                }
            }
            Ok(Held::Subclass { class: subclass.class.to_string(), tensors, others })
        }
        other => Err(Error::Tensor {
            name: name.to_owned(),
            entry: saved.entry().to_owned(),
            detail: format!("expected a tensor, found {}", other.kind()),
        }),
    }
}

/// Longest description of an attribute.
const MAX_WORDS: usize = 400;

/// An attribute as Python would print it, cut where it grows long.
fn words(pickle: &Pickle<'_>, id: Id, depth: usize) -> String {
    let list = |items: &[Id]| {
        let mut text = String::new();
        for &item in items {
            if depth == 0 || text.len() > MAX_WORDS {
                text.push_str("...");
                break;
            }
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&words(pickle, item, depth - 1));
        }
        text
    };
    match pickle.value(id) {
        Value::None => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => format!("{x:?}"),
        Value::Str(s) => format!("{:?}", s.chars().take(MAX_WORDS).collect::<String>()),
        Value::Tuple(items) => format!("({})", list(items)),
        Value::List(items) => format!("[{}]", list(items)),
        Value::Dict(items) => {
            let flat: Vec<Id> = items.iter().flat_map(|(k, v)| [*k, *v]).collect();
            format!("{{{}}}", list(&flat))
        }
        Value::Object(object) => {
            let state = object.state.map(|state| list(&[state])).unwrap_or_default();
            format!("{}({}{state})", object.class, list(&[object.args]))
        }
        other => other.kind(),
    }
}
