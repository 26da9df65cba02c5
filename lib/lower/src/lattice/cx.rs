//! What the values of a graph are in the module, and how one kind becomes another.
//!
//! A sparse value is kept in two parts: some value of the module that has its rows, and its features. Either is made only
//! when something asks for it, so that row-wise operators one after another work on tensors.

use super::weights::{Packed, Stored, Weights};
use crate::error::{Error, Result};
use m2m_lattice::build::{self, Attr, Builder, tensor};
use m2m_lattice::ir::Value;
use m2m_lattice::plan::ValueType;
use m2m_lattice::schema::Op;
use m2m_record::{DType, Dim, TensorType, Type};
use std::collections::HashMap;

/// A dense tensor of the module.
#[derive(Clone, Debug)]
pub struct Dense {
    pub value: Value,
    pub dtype: DType,
    /// Sizes; `None` is known only when it runs.
    pub shape: Vec<Option<u64>>,
}

/// The rows of a sparse value: equal numbers have the same coordinates in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows(usize);

/// A sparse value. `like` has its rows; `whole` and `features` are there once they have been made.
#[derive(Clone, Debug)]
struct Sparse {
    rows: Rows,
    like: Value,
    whole: Option<Value>,
    features: Option<Value>,
    dtype: DType,
    channels: Option<u64>,
    /// The node that gave it, by its place in the graph.
    maker: usize,
}

/// A sparse value, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseId(usize);

/// A value of the graph.
#[derive(Clone, Debug)]
pub enum Val {
    /// A tensor.
    Dense(Dense),
    /// A sparse value in a tensor's clothes.
    Sparse(SparseId),
    /// A parameter, buffer or constant.
    Stored(Stored),
    /// A packed weight.
    Packed(Box<Packed>),
    /// What is no tensor, or what an operator gives besides its first result.
    Other,
    /// What a refused node would give.
    Broken,
}

/// The state of an emission.
#[derive(Default)]
pub struct Cx<'g> {
    pub b: Builder,
    pub weights: Weights,
    values: HashMap<&'g str, Val>,
    sparse: Vec<Sparse>,
    rows: usize,
    /// The node that operations are made for, by its place in the graph.
    pub node: usize,
    /// The node of each operation.
    pub owners: Vec<usize>,
}

/// The sizes of a type.
pub fn sizes(ty: &TensorType) -> Vec<Option<u64>> {
    ty.shape.iter().map(|dim| dim.as_int().and_then(|n| u64::try_from(n).ok())).collect()
}

/// A type in few words, for messages.
pub fn shown(dtype: DType, shape: &[Dim]) -> String {
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("{dtype} [{}]", shape.join(", "))
}

/// The tensor type of a result.
pub fn tensor_type(ty: &Type) -> Result<&TensorType> {
    ty.as_tensor().ok_or_else(|| Error::unsupported("a result that is no tensor"))
}

/// The type of a tensor `[rows, channels]` that stands for a sparse value or for features.
pub fn row_type(ty: &Type) -> Result<(DType, Option<u64>)> {
    let ty = tensor_type(ty)?;
    match sizes(ty)[..] {
        [_, channels] => Ok((ty.dtype, channels)),
        _ => Err(Error::unsupported(format!("a result of {}; expected [rows, channels]", shown(ty.dtype, &ty.shape)))),
    }
}

impl<'g> Cx<'g> {
    pub fn define(&mut self, name: &'g str, val: Val) {
        self.values.insert(name, val);
    }

    pub fn get(&self, name: &str) -> Result<&Val> {
        self.values.get(name).ok_or_else(|| Error::Graph(format!("value {name:?} is used before it is defined")))
    }

    /// Adds an operation.
    pub fn op(
        &mut self,
        op: Op,
        operands: &[Value],
        attributes: &[(&str, Attr<'_>)],
        results: &[ValueType],
    ) -> Result<Vec<Value>> {
        let made = self.b.op(op, operands, attributes, results);
        self.owned();
        made.map_err(|error| match error {
            build::Error::Operation { message, .. } => Error::unsupported(message),
            refused => Error::unsupported(refused.to_string()),
        })
    }

    /// The operations that were just added are those of the node.
    fn owned(&mut self) {
        self.owners.resize(self.b.count(), self.node);
    }

    fn op1(&mut self, op: Op, operands: &[Value], result: ValueType) -> Result<Value> {
        one(&self.op(op, operands, &[], &[result])?)
    }

    /// Rows that no value had before.
    pub fn new_rows(&mut self) -> Rows {
        self.rows += 1;
        Rows(self.rows)
    }

    /// A sparse value that an operation gave.
    pub fn sparse(&mut self, value: Value, rows: Rows, (dtype, channels): (DType, Option<u64>)) -> SparseId {
        let (whole, maker) = (Some(value), self.node);
        self.sparse.push(Sparse { rows, like: value, whole, features: None, dtype, channels, maker });
        SparseId(self.sparse.len() - 1)
    }

    fn at(&self, id: SparseId) -> Result<&Sparse> {
        self.sparse.get(id.0).ok_or_else(|| Error::Graph(format!("sparse value {} is not there", id.0)))
    }

    /// Its rows.
    pub fn rows_of(&self, id: SparseId) -> Result<Rows> {
        Ok(self.at(id)?.rows)
    }

    /// Its channels.
    pub fn channels(&self, id: SparseId) -> Result<Option<u64>> {
        Ok(self.at(id)?.channels)
    }

    /// The node that gave it.
    pub fn maker(&self, id: SparseId) -> Result<usize> {
        Ok(self.at(id)?.maker)
    }

    /// It as one value of the module.
    pub fn whole(&mut self, id: SparseId) -> Result<Value> {
        let known = self.at(id)?.clone();
        if let Some(value) = known.whole {
            return Ok(value);
        }
        let features = self.features(id)?;
        let sparse = ValueType::Sparse { dtype: known.dtype };
        let value = self.op1(Op::SparseWithFeatures, &[known.like, features.value], sparse)?;
        if let Some(slot) = self.sparse.get_mut(id.0) {
            (slot.whole, slot.like) = (Some(value), value);
        }
        Ok(value)
    }

    /// Its features.
    pub fn features(&mut self, id: SparseId) -> Result<Dense> {
        let known = self.at(id)?.clone();
        let shape = vec![None, known.channels];
        let value = match known.features {
            Some(value) => value,
            None => {
                let rows = tensor(&[None, Some(4)], DType::I32);
                let types = [rows, tensor(&shape, known.dtype), tensor(&[Some(1)], DType::I32)];
                let parts = self.op(Op::SparseDecompose, &[known.whole.unwrap_or(known.like)], &[], &types)?;
                one(parts.get(1..2).unwrap_or_default())?
            }
        };
        if let Some(slot) = self.sparse.get_mut(id.0) {
            slot.features = Some(value);
        }
        Ok(Dense { value, dtype: known.dtype, shape })
    }

    /// A value where an operation takes a sparse one.
    pub fn sparse_operand(&self, operand: &str, name: &str) -> Result<SparseId> {
        match self.get(name)? {
            Val::Sparse(id) => Ok(*id),
            _ => Err(Error::unsupported(format!(
                "{operand} is {name}, which is no sparse value; expected what an operator gives whose operation gives one, as \
                 lattice::sparse_make"
            ))),
        }
    }

    /// A value where an operation takes a tensor.
    pub fn dense_operand(&mut self, operand: &str, name: &str) -> Result<Dense> {
        match self.get(name)?.clone() {
            Val::Dense(dense) => Ok(dense),
            Val::Sparse(id) => self.features(id),
            Val::Stored(stored) => Err(Error::unsupported(format!(
                "{operand} is {}, which the model stores; the dialect has no constants, expected an input or a result",
                stored.name()
            ))),
            _ => Err(Error::unsupported(format!("{operand} is {name}, which is no tensor of the module"))),
        }
    }

    /// A value where an operation takes a weight.
    pub fn weight_operand(
        &mut self,
        operand: &str,
        name: &str,
        family: m2m_lattice::schema::Family,
        is_transposed: bool,
    ) -> Result<Value> {
        let value = match self.get(name)?.clone() {
            Val::Stored(stored) if stored.is_transposed == is_transposed => {
                self.weights.dense(&mut self.b, &stored, family)
            }
            Val::Stored(stored) => {
                let (found, wanted) = if is_transposed { ("out, in", "in, out") } else { ("in, out", "out, in") };
                Err(Error::unsupported(format!(
                    "{operand} is {} as [{found}]; expected [{wanted}], which the contract stores as [out, in]",
                    stored.name()
                )))
            }
            Val::Packed(packed) if !is_transposed => self.weights.packed(&mut self.b, &packed, family),
            _ => Err(Error::unsupported(format!(
                "{operand} is {name}, which is computed or an input; expected a parameter, buffer or constant as it is stored"
            ))),
        };
        self.owned();
        value
    }

    /// An operation that works row by row on a matrix, on a tensor or on the features of a sparse value.
    pub fn by_rows(
        &mut self,
        op: Op,
        input: &str,
        weights: &[Value],
        attributes: &[(&str, Attr<'_>)],
        result: &Type,
    ) -> Result<Val> {
        let (dtype, channels) = row_type(result)?;
        let on = match self.get(input)? {
            Val::Sparse(id) => Some(*id),
            _ => None,
        };
        let dense = self.dense_operand("input", input)?;
        let [rows, _] = dense.shape[..] else {
            return Err(Error::unsupported(format!(
                "{input} has rank {}; expected [rows, channels]",
                dense.shape.len()
            )));
        };
        let operands: Vec<Value> = [dense.value].into_iter().chain(weights.iter().copied()).collect();
        let shape = vec![rows, channels];
        let value = one(&self.op(op, &operands, attributes, &[tensor(&shape, dtype)])?)?;
        let Some(id) = on else { return Ok(Val::Dense(Dense { value, dtype, shape })) };
        let known = self.at(id)?.clone();
        let (whole, features, maker) = (None, Some(value), self.node);
        self.sparse.push(Sparse { whole, features, dtype, channels, maker, ..known });
        Ok(Val::Sparse(SparseId(self.sparse.len() - 1)))
    }
}

/// The one value of a list.
pub fn one(values: &[Value]) -> Result<Value> {
    match values {
        [value] => Ok(*value),
        _ => Err(Error::Graph(format!("an operation gives {} values", values.len()))),
    }
}
