//! What a rule works with: the graph's values as MLIR values, their PyTorch types, and sizes over symbols.

use super::random::Source;
use super::symbols::Symbols;
use crate::error::{Error, Result};
use m2m_graph::Graph;
use m2m_mlir::types::{self, DYNAMIC};
use m2m_mlir::{Builder, Size, Type, Value};
use m2m_record::{Arg, DType, Dim, Node, ScalarKind, TensorType, Type as RecordType};
use m2m_tensor::Expr;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A tensor of the graph.
#[derive(Clone, Debug)]
pub struct Tensor<'c> {
    /// Its MLIR value, of the ranked tensor type that `dtype` and `shape` give.
    pub value: Value<'c>,
    /// Its element type, with the sign that MLIR's integers lack.
    pub dtype: DType,
    /// Its shape, over the graph's symbols.
    pub shape: Vec<Dim>,
}

impl Tensor<'_> {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// An axis argument, counted from the end if negative; a 0-d tensor has axis 0 and -1, as in PyTorch.
    pub fn axis(&self, dim: i64) -> Result<usize> {
        axis_of(self.rank(), dim)
    }

    /// An axis argument of a tensor that has axes.
    pub fn real_axis(&self, dim: i64) -> Result<usize> {
        if self.rank() == 0 {
            return Err(Error::Graph(format!("axis {dim} of a tensor without axes")));
        }
        self.axis(dim)
    }
}

/// An axis argument of a tensor of `rank` dimensions as its index.
pub fn axis_of(rank: usize, dim: i64) -> Result<usize> {
    let range = (rank as i64).max(1);
    let index = if dim < 0 { dim.checked_add(range) } else { Some(dim) };
    index
        .filter(|k| (0..range).contains(k))
        .map(|k| k as usize)
        .ok_or_else(|| Error::Graph(format!("axis {dim} of a tensor of rank {rank}")))
}

/// Refuses a shape of fewer or more than `rank` dimensions.
pub fn need_rank(what: &str, shape: &[Dim], rank: usize) -> Result<()> {
    if shape.len() == rank {
        return Ok(());
    }
    Err(Error::Graph(format!("{what} of rank {}; expected {rank}", shape.len())))
}

/// A value of the graph.
#[derive(Clone, Debug)]
pub enum Val<'c> {
    /// A tensor.
    Tensor(Tensor<'c>),
    /// A number that is not a tensor: `index` for integers, `f64` for floats, `i1` for bools.
    Scalar(ScalarKind, Value<'c>),
    /// No value.
    None,
}

/// What is known inside one graph.
#[derive(Default)]
pub struct Scope<'c> {
    symbols: Symbols<'c>,
    values: HashMap<String, Val<'c>>,
    used: HashSet<String>,
    random: Option<Source<'c>>,
}

/// The state of an emission.
pub struct Cx<'c> {
    /// Where operations go.
    pub b: Rc<Builder<'c>>,
    /// What the graph's symbols are.
    pub symbols: Symbols<'c>,
    /// Where random numbers come from; none in a graph without random operators.
    pub random: Option<Source<'c>>,
    values: HashMap<String, Val<'c>>,
    used: HashSet<String>,
}

impl<'c> Cx<'c> {
    /// Nothing defined yet.
    pub fn new(b: Builder<'c>) -> Self {
        let (symbols, values, used) = (Symbols::default(), HashMap::new(), HashSet::new());
        Cx { b: Rc::new(b), symbols, random: None, values, used }
    }

    /// Begins a graph with names of its own; gives what [`Cx::leave`] goes back to. Symbols of the graph around it stay
    /// known, unless its values are not: inside a function.
    pub fn enter(&mut self, graph: &Graph, is_function: bool, random: Option<Source<'c>>) -> Scope<'c> {
        let symbols = if is_function { Symbols::default() } else { self.symbols.clone() };
        let outer = Scope {
            symbols: std::mem::replace(&mut self.symbols, symbols),
            values: std::mem::take(&mut self.values),
            used: std::mem::take(&mut self.used),
            random: std::mem::replace(&mut self.random, random),
        };
        self.note_uses(graph);
        outer
    }

    /// Ends a graph.
    pub fn leave(&mut self, outer: Scope<'c>) {
        (self.symbols, self.values, self.used) = (outer.symbols, outer.values, outer.used);
        self.random = outer.random;
    }

    /// Notes which values the graph uses, so that rules need not compute the others.
    pub fn note_uses(&mut self, graph: &Graph) {
        self.used.extend(graph.outputs.iter().filter_map(|o| o.value.clone()));
        for arg in graph.nodes.iter().flat_map(|n| n.args.iter().chain(n.kwargs.values())) {
            arg.for_each_value(&mut |name| {
                self.used.insert(name.to_owned());
            });
        }
    }

    /// Whether anything uses a node's result `k`.
    pub fn is_used(&self, node: &Node, k: usize) -> bool {
        node.results.get(k).and_then(|r| r.value.as_ref()).is_some_and(|name| self.used.contains(name))
    }

    /// Defines a value of the graph, and the symbols that first appear in its shape.
    pub fn define(&mut self, name: &str, value: Val<'c>) -> Result<()> {
        if let Val::Tensor(t) = &value {
            for (axis, dim) in t.shape.iter().enumerate() {
                if let Some(expr) = unbound(&self.symbols, dim)? {
                    let size = self.b.dim(t.value, axis)?;
                    self.symbols.bind_from(&self.b, &expr, size)?;
                }
            }
        }
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    /// A value of the graph by name.
    pub fn value(&self, name: &str) -> Result<&Val<'c>> {
        self.values.get(name).ok_or_else(|| Error::Graph(format!("value {name:?} is not defined")))
    }

    /// A tensor of the graph by name.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'c>> {
        match self.value(name)? {
            Val::Tensor(t) => Ok(t.clone()),
            _ => Err(Error::Graph(format!("value {name:?} is not a tensor"))),
        }
    }

    /// The MLIR element type of a dtype.
    pub fn element(&self, dtype: DType) -> Result<Type<'c>> {
        Ok(self.b.elem(dtype.name())?)
    }

    /// The MLIR type of a tensor type: static where its shape is, `?` elsewhere.
    pub fn tensor_type(&self, dtype: DType, shape: &[Dim]) -> Result<Type<'c>> {
        let dims: Vec<i64> = shape.iter().map(|d| d.as_int().unwrap_or(DYNAMIC)).collect();
        Ok(types::tensor(&dims, self.element(dtype)?))
    }

    /// Sizes of a shape.
    pub fn sizes(&mut self, shape: &[Dim]) -> Result<Vec<Size<'c>>> {
        shape.iter().map(|dim| self.symbols.size(&self.b, dim)).collect()
    }

    /// One dimension as an `index` value.
    pub fn size_value(&mut self, dim: &Dim) -> Result<Value<'c>> {
        let size = self.symbols.size(&self.b, dim)?;
        Ok(self.b.size_value(size)?)
    }

    /// An expression over the graph's symbols, of any kind.
    pub fn number(&mut self, text: &str) -> Result<(ScalarKind, Value<'c>)> {
        let expr: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
        self.symbols.number(&self.b, &expr)
    }

    /// A scalar argument (number, expression or value), of any kind.
    pub fn number_arg(&mut self, arg: &Arg) -> Result<(ScalarKind, Value<'c>)> {
        match arg {
            Arg::Int(n) => Ok((ScalarKind::Int, self.b.const_index(*n)?)),
            Arg::Bool(x) => Ok((ScalarKind::Bool, self.b.const_bool(*x)?)),
            Arg::Float(x) => Ok((ScalarKind::Float, self.b.const_float(self.b.elem("f64")?, x.0)?)),
            Arg::Sym(text) => self.number(text),
            Arg::Value(name) => match self.value(name)? {
                Val::Scalar(kind, value) => Ok((*kind, *value)),
                _ => Err(Error::Graph(format!("value {name:?} is not a number"))),
            },
            other => Err(Error::Graph(format!("expected a number, found {other:?}"))),
        }
    }

    /// An integer argument (number, expression or value) as a size.
    pub fn size_arg(&mut self, arg: &Arg) -> Result<Size<'c>> {
        match arg {
            Arg::Int(n) => Ok(Size::Static(*n)),
            Arg::Sym(text) => self.symbols.size(&self.b, &Dim::Expr(text.clone())),
            Arg::Value(name) => match self.value(name)? {
                Val::Scalar(ScalarKind::Int, value) => Ok(Size::Value(*value)),
                _ => Err(Error::Graph(format!("value {name:?} is not an integer"))),
            },
            other => Err(Error::Graph(format!("expected an integer, found {other:?}"))),
        }
    }

    /// An uninitialised tensor.
    pub fn empty(&mut self, dtype: DType, shape: &[Dim]) -> Result<Value<'c>> {
        let sizes = self.sizes(shape)?;
        let element = self.element(dtype)?;
        Ok(self.b.empty(&sizes, element)?)
    }

    /// A tensor with `scalar` in every element.
    pub fn filled(&mut self, dtype: DType, shape: &[Dim], scalar: Value<'c>) -> Result<Value<'c>> {
        let out = self.empty(dtype, shape)?;
        Ok(self.b.fill(scalar, out)?)
    }

    /// A tensor of a type, from a value whose static sizes may be less or more known than the type's.
    pub fn conform(&self, value: Value<'c>, dtype: DType, shape: &[Dim]) -> Result<Tensor<'c>> {
        let value = self.b.tensor_cast(value, self.tensor_type(dtype, shape)?)?;
        Ok(Tensor { value, dtype, shape: shape.to_vec() })
    }

    /// The type of a node's result `k`, which must be a tensor.
    pub fn result_type<'n>(&self, node: &'n Node, k: usize) -> Result<&'n TensorType> {
        node.results
            .get(k)
            .and_then(|r| r.ty.as_tensor())
            .ok_or_else(|| Error::Graph(format!("result {k} of {} is not a tensor", node.node)))
    }

    /// Refuses types that the default CPU, strided world does not have.
    pub fn check_type(ty: &RecordType) -> Result<()> {
        match ty {
            RecordType::Tensor(t) if t.layout.as_deref().is_some_and(|l| l != "strided") => {
                Err(Error::unsupported(format!("layout {}", t.layout.as_deref().unwrap_or_default())))
            }
            _ => Ok(()),
        }
    }
}

/// The expression of a dimension, if it has symbols that are not bound yet.
fn unbound(symbols: &Symbols<'_>, dim: &Dim) -> Result<Option<Expr>> {
    let Dim::Expr(text) = dim else { return Ok(None) };
    let expr: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
    Ok((!symbols.knows(&expr)).then_some(expr))
}
