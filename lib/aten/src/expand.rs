//! Typed emission of nodes: what a decomposition writes with.
//!
//! Every node goes through [`Expander::call`]: an operator that the target lowers is added to the new graph, every
//! other one is decomposed in its turn. So a rule may use any operator that has a rule, and what comes out are
//! operators of the target only, each knowing the old nodes it comes from.

mod ops;
mod shapes;

use crate::bind::{Bound, Operand, bind};
use crate::decompose;
use crate::error::Error;
use crate::packing::PackedFor;
use crate::schema;
use crate::value::{O, V, shape_of};
use m2m_graph::{Emit, Rewriter};
use m2m_record::{Arg, DType, Kwargs, Node, Type, TypedValue};
use m2m_tensor::Expr;
use std::collections::HashMap;

/// Deepest nesting of decompositions; deeper means that rules call each other in a circle.
const MAX_DEPTH: usize = 24;

/// What is known while a graph is being made.
pub struct State<'p> {
    /// The graph.
    pub rewriter: Rewriter<'p>,
    /// Types of its values.
    pub types: HashMap<String, Type>,
    /// Tells whether the target lowers an operator itself.
    pub is_lowerable: &'p dyn Fn(&str) -> bool,
    /// Whether a permutation of a permutation may become one. Not while writes through views are being followed: each
    /// view then stays a step of its own.
    pub is_folding: bool,
    /// Where matrices of 4-bit weights were packed.
    pub packed_for: PackedFor,
}

/// Emits the nodes that one old node becomes.
pub struct Expander<'s, 'p> {
    pub(crate) state: &'s mut State<'p>,
    origins: Vec<String>,
    via: String,
    stem: String,
    depth: usize,
    proof: Option<(&'static str, String)>,
}

/// The results of a decomposition, one for each of the node's; `None` where the operator returns nothing there.
pub type Results = Result<Vec<Option<V>>, Error>;

/// One result.
pub fn one(v: V) -> Results {
    Ok(vec![Some(v)])
}

impl<'s, 'p> Expander<'s, 'p> {
    /// Begins the nodes that come from `origins` by the rule `via`; names derive from `stem`.
    pub fn new(state: &'s mut State<'p>, origins: Vec<String>, via: String, stem: String) -> Self {
        Expander { state, origins, via, stem, depth: 0, proof: None }
    }

    /// States why the old node may vanish without a successor.
    pub fn prove(&mut self, reason: &'static str, proof: impl Into<String>) {
        self.proof = Some((reason, proof.into()));
    }

    /// The reason and proof stated, if any.
    pub fn proof(&self) -> Option<&(&'static str, String)> {
        self.proof.as_ref()
    }

    /// Whether the target lowers an operator itself.
    pub fn is_lowerable(&self, op: &str) -> bool {
        (self.state.is_lowerable)(op)
    }

    /// Where matrices of 4-bit weights were packed.
    pub(crate) fn packed_for(&self) -> PackedFor {
        self.state.packed_for
    }

    /// Calls an operator whose results have these types.
    pub fn call(&mut self, op: &str, args: Vec<Arg>, kwargs: &[(&str, Arg)], types: Vec<Type>) -> Results {
        let kwargs: Kwargs = kwargs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let results = types.into_iter().map(|ty| TypedValue { value: None, ty }).collect::<Vec<_>>();
        let returns = (results.len() != 1).then(|| vec![m2m_record::Return::One; results.len()]);
        let node = Node { op: op.to_owned(), args, kwargs, results, returns, ..Node::default() };
        // What a rule writes needs no simplification first; and the eager rules themselves end here.
        if self.is_lowerable(op) { self.emit(&node) } else { self.expand(&node) }
    }

    /// Calls an operator with one tensor result.
    pub fn call1(
        &mut self,
        op: &str,
        args: Vec<Arg>,
        kwargs: &[(&str, Arg)],
        dtype: DType,
        shape: &[Expr],
    ) -> Result<V, Error> {
        let results = self.call(op, args, kwargs, vec![crate::value::tensor_type(dtype, shape)])?;
        first(op, results)
    }

    /// Adds the node, or decomposes it. Its arguments are of the new graph; its results have types and no names.
    pub fn expand(&mut self, node: &Node) -> Results {
        // While writes are followed, a view must become steps that can be taken back.
        let is_step = !self.state.is_folding && self.depth == 0 && schema::find(&node.op).is_some_and(|s| s.is_view());
        let has_rule = decompose::find(&node.op).is_some();
        if self.is_lowerable(&node.op) && !(has_rule && (is_step || decompose::is_eager(&node.op))) {
            return self.emit(node);
        }
        let Some(rule) = decompose::find(&node.op) else {
            return Err(Error::unsupported(format!("{} is neither lowered nor decomposed", node.op)));
        };
        if self.depth >= MAX_DEPTH {
            return Err(Error::unsupported(format!("{} decomposes deeper than {MAX_DEPTH} levels", node.op)));
        }
        self.depth += 1;
        let results = bind(node).and_then(|bound| rule(self, &bound));
        self.depth -= 1;
        check(node, results?)
    }

    /// Adds a node as it is.
    pub fn emit(&mut self, node: &Node) -> Results {
        let mut values = Vec::with_capacity(node.results.len());
        let mut results = Vec::with_capacity(node.results.len());
        for result in &node.results {
            let ty = without_strides(&result.ty);
            let (Type::Tensor(_) | Type::Scalar { .. }) = &ty else {
                values.push(None);
                results.push(TypedValue { value: None, ty });
                continue;
            };
            let name = self.state.rewriter.fresh(&self.stem);
            if let Type::Tensor(t) = &ty {
                let shape = shape_of(t)?;
                if let Some(size) = shape.iter().filter_map(Expr::as_int).find(|size| *size < 0) {
                    return Err(Error::shape(&node.op, format!("a result with a size of {size}")));
                }
                values.push(Some(V { name: name.clone(), dtype: t.dtype, shape }));
            } else {
                values.push(None);
            }
            self.state.types.insert(name.clone(), ty.clone());
            results.push(TypedValue { value: Some(name), ty });
        }
        self.state.rewriter.emit(Emit {
            op: node.op.clone(),
            args: node.args.clone(),
            kwargs: node.kwargs.clone(),
            results,
            returns: node.returns.clone(),
            origins: self.origins.clone(),
            via: self.via.clone(),
        });
        Ok(values)
    }

    /// A tensor value of the new graph.
    pub fn value(&self, name: &str) -> Result<V, Error> {
        match self.state.types.get(name) {
            Some(Type::Tensor(t)) => Ok(V { name: name.to_owned(), dtype: t.dtype, shape: shape_of(t)? }),
            Some(_) => Err(Error::unsupported(format!("value {name} is no tensor"))),
            None => Err(Error::unsupported(format!("value {name} has no type"))),
        }
    }

    /// A tensor argument.
    pub fn tensor(&self, bound: &Bound<'_>, name: &str) -> Result<V, Error> {
        self.value(bound.tensor(name)?)
    }

    /// A tensor argument, or none.
    pub fn opt_tensor(&self, bound: &Bound<'_>, name: &str) -> Result<Option<V>, Error> {
        bound.opt_tensor(name)?.map(|v| self.value(v)).transpose()
    }

    /// A list of tensors.
    pub fn tensors(&self, bound: &Bound<'_>, name: &str) -> Result<Vec<V>, Error> {
        bound.tensors(name)?.into_iter().map(|v| self.value(v)).collect()
    }

    /// A tensor or a number. A scalar value of the graph is a number.
    pub fn operand(&self, bound: &Bound<'_>, name: &str) -> Result<O, Error> {
        match bound.operand(name)? {
            Operand::Number(n) => Ok(O::N(n.clone())),
            Operand::Value(v) => match self.state.types.get(v) {
                Some(Type::Scalar { expr: Some(expr), .. }) => Ok(O::N(Arg::Sym(expr.clone()))),
                _ => self.value(v).map(O::T),
            },
        }
    }

    /// A size: a number or an expression; a scalar value gives its expression.
    pub fn size(&self, arg: &Arg) -> Result<Expr, Error> {
        let parse = |text: &str| text.parse::<Expr>().map_err(|e| Error::unsupported(e.to_string()));
        match arg {
            Arg::Int(n) => Ok(Expr::Int(*n)),
            Arg::Sym(text) => parse(text),
            Arg::Value(v) => match self.state.types.get(v) {
                Some(Type::Scalar { expr: Some(text), .. }) => parse(text),
                _ => Err(Error::unsupported(format!("size {v} is known to no expression"))),
            },
            other => Err(Error::unsupported(format!("{}; expected a size", crate::bind::describe(other)))),
        }
    }

    /// A list of sizes.
    pub fn sizes(&self, bound: &Bound<'_>, name: &str) -> Result<Vec<Expr>, Error> {
        bound.sym_ints(name)?.iter().map(|arg| self.size(arg)).collect()
    }

    /// The dtype and shape that result `at` of a node has.
    pub fn result(&self, bound: &Bound<'_>, at: usize) -> Result<(DType, Vec<Expr>), Error> {
        match bound.node.results.get(at).map(|r| &r.ty) {
            Some(Type::Tensor(t)) => Ok((t.dtype, shape_of(t)?)),
            _ => Err(Error::shape(bound.op(), format!("result {at} is no tensor"))),
        }
    }

    /// The values of constants, for rules that look through a permutation.
    pub(crate) fn producer(&self, v: &V) -> Option<&Node> {
        self.state.rewriter.producer(&v.name)
    }
}

/// The first result, which must be there.
pub(crate) fn first(op: &str, results: Vec<Option<V>>) -> Result<V, Error> {
    results.into_iter().next().flatten().ok_or_else(|| Error::shape(op, "it has no tensor result"))
}

/// A type without what only matters to memory.
pub(crate) fn without_strides(ty: &Type) -> Type {
    match ty {
        Type::Tensor(t) => Type::Tensor(m2m_record::TensorType { strides: None, ..t.clone() }),
        other => other.clone(),
    }
}

/// Compares what a rule gave with what the node says: dtypes, ranks and static sizes must agree.
fn check(node: &Node, results: Vec<Option<V>>) -> Results {
    if results.len() != node.results.len() {
        let message = format!("its rule gives {} results, the node has {}", results.len(), node.results.len());
        return Err(Error::shape(&node.op, message));
    }
    for (k, (found, expected)) in results.iter().zip(&node.results).enumerate() {
        let (Some(found), Type::Tensor(t)) = (found, &expected.ty) else { continue };
        let sizes_agree = found.rank() == t.shape.len()
            && found.shape.iter().zip(&t.shape).all(|(a, b)| match (a.as_int(), b.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            });
        if found.dtype != t.dtype || !sizes_agree {
            let join = |items: Vec<String>| items.join(",");
            let (a, b) = (
                join(found.shape.iter().map(Expr::to_string).collect()),
                join(t.shape.iter().map(|d| d.to_string()).collect()),
            );
            let message = format!("its rule gives {}[{a}] for result {k}, the node says {}[{b}]", found.dtype, t.dtype);
            return Err(Error::shape(&node.op, message));
        }
    }
    Ok(results)
}
