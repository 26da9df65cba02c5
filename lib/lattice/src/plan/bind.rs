//! Binds what a caller gives to the arguments of a plan, by position and by name.
//!
//! A sparse input is three arguments in a row with the roles of coordinates, features and active rows, called `coords`,
//! `features`, `active` (then the input is called `input`), or the same behind a prefix, `x_coords`, … (then `x`). It may be
//! given whole, by that name, or by its three components.

use super::Plan;
use crate::schema::InputRole;
use std::collections::HashMap;

/// What a caller sees as one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A dense tensor: the argument.
    Tensor(usize),
    /// A sparse value: the first of its three arguments.
    Sparse {
        /// Its name.
        name: String,
        /// The argument of its coordinates; features and active rows follow.
        first: usize,
    },
}

/// A part of a sparse input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the three parts need no words")]
pub enum Component {
    Coords,
    Features,
    Active,
}

/// Where an argument comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The positional value of this index.
    Positional(usize),
    /// The named value of this index.
    Named(usize),
    /// A part of the sparse value that is named by this index.
    Part(usize, Component),
}

/// Why a call does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// More values by position than arguments.
    #[error("{given} positional values; the function takes {takes}")]
    TooMany {
        /// How many came.
        given: usize,
        /// How many there may be.
        takes: usize,
    },
    /// Arguments that nothing binds.
    #[error("missing {}", .0.join(", "))]
    Missing(Vec<String>),
    /// A name that is no argument.
    #[error("unexpected {name:?}; the function takes {}", takes.join(", "))]
    Unexpected {
        /// The name.
        name: String,
        /// What there is.
        takes: Vec<String>,
    },
    /// An argument that is bound twice, also where a sparse input and one of its components are given.
    #[error("{0:?} is given twice")]
    Twice(String),
}

const COMPONENTS: [(InputRole, &str, Component); 3] = [
    (InputRole::SparseCoords, "coords", Component::Coords),
    (InputRole::SparseFeatures, "features", Component::Features),
    (InputRole::SparseActive, "active", Component::Active),
];

impl Plan {
    /// The inputs as a caller sees them, in order.
    pub fn inputs(&self) -> Vec<Input> {
        let mut inputs = Vec::new();
        let mut at = 0;
        while at < self.arguments.len() {
            match self.sparse_at(at) {
                Some(name) => {
                    inputs.push(Input::Sparse { name, first: at });
                    at += 3;
                }
                None => {
                    inputs.push(Input::Tensor(at));
                    at += 1;
                }
            }
        }
        inputs
    }

    /// The name of the sparse input that begins at an argument.
    fn sparse_at(&self, first: usize) -> Option<String> {
        let group = self.arguments.get(first..first.checked_add(3)?)?;
        let mut prefix = None;
        for (argument, (role, suffix, _)) in group.iter().zip(COMPONENTS) {
            let before = argument.abi_name.strip_suffix(suffix).filter(|_| argument.role == role)?;
            if *prefix.get_or_insert(before) != before {
                return None;
            }
        }
        match prefix? {
            "" => Some("input".to_owned()),
            prefix => prefix.strip_suffix('_').filter(|name| !name.is_empty()).map(str::to_owned),
        }
    }

    /// Binds `positional` values and values by name: for each argument, where it comes from.
    pub fn bind(&self, positional: usize, names: &[&str]) -> Result<Vec<Bound>, BindError> {
        let takes = self.arguments.len();
        if positional > takes {
            return Err(BindError::TooMany { given: positional, takes });
        }
        let mut bound: Vec<Option<Bound>> =
            (0..takes).map(|at| (at < positional).then_some(Bound::Positional(at))).collect();
        let mut put = |at: usize, what: Bound| match bound.get_mut(at) {
            Some(slot @ None) => {
                *slot = Some(what);
                Ok(())
            }
            _ => Err(BindError::Twice(self.arguments.get(at).map(|a| a.abi_name.clone()).unwrap_or_default())),
        };
        let arguments: HashMap<&str, usize> =
            self.arguments.iter().enumerate().map(|(at, each)| (each.abi_name.as_str(), at)).collect();
        let inputs = self.inputs();
        for (index, name) in names.iter().enumerate() {
            if let Some(at) = arguments.get(name) {
                put(*at, Bound::Named(index))?;
                continue;
            }
            let whole = inputs.iter().find_map(|input| match input {
                Input::Sparse { name: own, first } if own == name => Some(*first),
                _ => None,
            });
            let first = whole.ok_or_else(|| BindError::Unexpected {
                name: (*name).to_owned(),
                takes: self.arguments.iter().map(|each| each.abi_name.clone()).collect(),
            })?;
            for (offset, (_, _, component)) in COMPONENTS.iter().enumerate() {
                put(first + offset, Bound::Part(index, *component))?;
            }
        }
        let missing = self.arguments.iter().zip(&bound).filter(|(_, slot)| slot.is_none());
        let missing: Vec<String> = missing.map(|(argument, _)| argument.abi_name.clone()).collect();
        if missing.is_empty() { Ok(bound.into_iter().flatten().collect()) } else { Err(BindError::Missing(missing)) }
    }
}
