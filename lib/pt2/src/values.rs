//! The values of one graph: their types by name, and which of them are defined so far.

use std::collections::{HashMap, HashSet};

use m2m_record::Type;

use crate::schema::{CustomObjArgument, Graph, Pairs, SymBool, SymFloat, SymInt, TensorMeta};
use crate::types::{Exprs, Fault};

/// Tables of a graph, and the names that its inputs and nodes have defined.
pub(crate) struct Values<'p> {
    exprs: &'p Exprs<'p>,
    tensors: HashMap<&'p str, &'p TensorMeta<'p>>,
    ints: HashMap<&'p str, &'p SymInt<'p>>,
    floats: HashMap<&'p str, &'p SymFloat<'p>>,
    bools: HashMap<&'p str, &'p SymBool<'p>>,
    objects: HashMap<&'p str, &'p CustomObjArgument<'p>>,
    defined: HashSet<String>,
    /// Values whose expression was left out, with the reason.
    pub opaque: Vec<(String, String)>,
}

fn index<'p, T>(pairs: &'p Pairs<'p, T>) -> Result<HashMap<&'p str, &'p T>, String> {
    let mut map = HashMap::with_capacity(pairs.0.len());
    for (name, value) in &pairs.0 {
        if map.insert(name.as_ref(), value).is_some() {
            return Err(format!("value {:?} has two types", name.as_ref()));
        }
    }
    Ok(map)
}

impl<'p> Values<'p> {
    /// Indexes the tables of a graph.
    ///
    /// # Errors
    /// A name that is there twice, in words.
    pub fn new(graph: &'p Graph<'p>, exprs: &'p Exprs<'p>) -> Result<Self, String> {
        Ok(Self {
            exprs,
            tensors: index(&graph.tensor_values)?,
            ints: index(&graph.sym_int_values)?,
            floats: index(&graph.sym_float_values)?,
            bools: index(&graph.sym_bool_values)?,
            objects: index(&graph.custom_obj_values)?,
            defined: HashSet::new(),
            opaque: Vec::new(),
        })
    }

    /// Notes that a name has a value from here on.
    ///
    /// # Errors
    /// When it already had one.
    pub fn define(&mut self, name: &str) -> Result<(), Fault> {
        if self.defined.insert(name.to_owned()) {
            return Ok(());
        }
        Err(Fault::Other(format!("value {name:?} is defined a second time; names are defined once")))
    }

    /// Whether a name has a value.
    pub fn is_defined(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// The type of a tensor, or of an object or token that stands in its place.
    pub fn tensor(&self, name: &str) -> Result<Type, Fault> {
        match (self.tensors.get(name), self.objects.get(name)) {
            (Some(meta), _) => self.exprs.tensor(meta),
            (None, Some(object)) => Ok(Type::Object((&object.class_fqn).into())),
            _ => Err(missing(name, "tensor_values")),
        }
    }

    /// The type of an int.
    pub fn int(&mut self, name: &str) -> Result<Type, Fault> {
        let value = self.ints.get(name).ok_or_else(|| missing(name, "sym_int_values"))?;
        let found = self.exprs.int_type(value);
        self.or_opaque(name, found, m2m_record::ScalarKind::Int)
    }

    /// The type of a float.
    pub fn float(&mut self, name: &str) -> Result<Type, Fault> {
        let Some(value) = self.floats.get(name) else {
            // Up to torch 2.5 floats that depend on data have no table.
            return Ok(Type::scalar(m2m_record::ScalarKind::Float));
        };
        let found = self.exprs.float_type(value);
        self.or_opaque(name, found, m2m_record::ScalarKind::Float)
    }

    /// The type of a bool.
    pub fn bool(&mut self, name: &str) -> Result<Type, Fault> {
        let value = self.bools.get(name).ok_or_else(|| missing(name, "sym_bool_values"))?;
        let found = self.exprs.bool_type(value);
        self.or_opaque(name, found, m2m_record::ScalarKind::Bool)
    }

    /// A scalar can do without its expression when that uses a function that records do not have: its value comes from
    /// a node anyway. A dimension cannot.
    fn or_opaque(
        &mut self,
        name: &str,
        found: Result<Type, Fault>,
        kind: m2m_record::ScalarKind,
    ) -> Result<Type, Fault> {
        match found {
            Err(Fault::Expr(text, error @ crate::expr::Error::Function { .. })) => {
                self.opaque.push((name.to_owned(), format!("{text}: {error}")));
                Ok(Type::scalar(kind))
            }
            found => found,
        }
    }
}

fn missing(name: &str, table: &str) -> Fault {
    Fault::Other(format!("value {name:?} has no entry in {table}"))
}
