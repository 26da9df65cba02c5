//! The walk over the nodes of a prepared graph and of those that it calls.
//!
//! A called graph is emitted where it is called, inside the region of the operation that decides whether and how often
//! it runs, with names of its own; or once, as a function, where several calls have equal graphs (`outline`).

use super::control;
use super::cx::{Cx, Tensor, Val};
use super::emit::Options;
use super::entry::signature_type;
use super::opaque;
use super::outline::Functions;
use super::table::{self, Family, Kind};
use crate::error::{Error, Refusal, Result};
use indexmap::IndexMap;
use m2m_aten::Prepared;
use m2m_aten::bind::bind;
use m2m_graph::{Graph, Places};
use m2m_mlir::{Value, types};
use m2m_record::{Arg, External, Lowered, Node, OutputItem, ScalarKind, Type as RecordType};
use m2m_tensor::Expr;
use std::collections::HashMap;

/// The state of the walk.
pub struct Walk<'w> {
    graphs: HashMap<&'w str, &'w Graph>,
    functions: Functions<'w>,
    places: &'w Places,
    options: Options,
    lowered: Vec<Lowered>,
    refusals: Vec<Refusal>,
    externals: IndexMap<String, External>,
}

impl<'w> Walk<'w> {
    /// Begins a walk.
    pub fn new(prepared: &'w Prepared, places: &'w Places, options: Options) -> Self {
        let graphs = prepared.nested.iter().map(|graph| (graph.id.as_str(), graph)).collect();
        let functions = Functions::of(prepared);
        let (lowered, refusals, externals) = (Vec::new(), Vec::new(), IndexMap::new());
        Walk { graphs, functions, places, options, lowered, refusals, externals }
    }

    /// Nodes that could not be lowered.
    pub fn refusals(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.refusals)
    }

    /// The functions that are only declared.
    pub fn externals(&mut self) -> Vec<External> {
        std::mem::take(&mut self.externals).into_values().collect()
    }

    /// What became of each node, once each.
    pub fn lowered(self) -> Vec<Lowered> {
        let mut all: Vec<Lowered> = Vec::with_capacity(self.lowered.len());
        let mut places: HashMap<String, usize> = HashMap::new();
        for lowered in self.lowered {
            match places.get(&lowered.node).and_then(|at| all.get_mut(*at)) {
                Some(known) => known.ops.get_or_insert_default().extend(lowered.ops.unwrap_or_default()),
                None => {
                    places.insert(lowered.node.clone(), all.len());
                    all.push(lowered);
                }
            }
        }
        all
    }

    /// A called graph.
    pub fn graph(&self, id: &str) -> Result<&'w Graph> {
        self.graphs.get(id).copied().ok_or_else(|| Error::Graph(format!("graph {id:?} is called and not there")))
    }

    /// Emits the functions that several calls share.
    pub fn functions<'c>(&mut self, cx: &mut Cx<'c>) -> Result<()> {
        for function in self.functions.all().iter() {
            let graph = function.graph;
            let arguments = graph.inputs.iter().map(|i| control::value_type(cx, &i.ty)).collect::<Result<Vec<_>>>()?;
            let results = output_types(graph)?;
            let result_types = results.iter().map(|ty| control::value_type(cx, ty)).collect::<Result<Vec<_>>>()?;
            let begin = self.lowered.len();
            let b = std::rc::Rc::clone(&cx.b);
            let private = [("sym_visibility", m2m_mlir::attr::string(b.context(), "private"))];
            stashing(|stash| {
                b.function(&function.name, &arguments, &result_types, &private, |_, values| {
                    let inputs = graph.inputs.iter().zip(values).map(|(i, v)| control::as_val(&i.ty, *v));
                    let outer = cx.enter(graph, true, None);
                    let returned = inputs.collect::<Result<Vec<_>>>().and_then(|inputs| self.body(cx, graph, inputs));
                    let returned = returned.and_then(|vals| {
                        vals.into_iter().zip(&results).map(|(val, ty)| control::conformed(cx, val, ty)).collect()
                    });
                    cx.leave(outer);
                    returned.map_err(stash)
                })
            })?;
            let emitted = self.lowered.split_off(begin);
            self.lowered.extend(function.shared(&emitted));
        }
        Ok(())
    }

    /// Whether a graph draws random numbers, or calls one that does.
    pub fn is_random(&self, graph: &Graph) -> bool {
        is_random(graph, &self.graphs)
    }

    /// The values that a called graph gives for operands, in round `at` of a loop, an `index`; `None` outside of loops.
    pub fn call<'c>(
        &mut self,
        cx: &mut Cx<'c>,
        id: &str,
        operands: Vec<Val<'c>>,
        at: Option<Value<'c>>,
    ) -> Result<Vec<Val<'c>>> {
        let graph = self.graph(id)?;
        if operands.len() != graph.inputs.len() {
            let (found, expected) = (operands.len(), graph.inputs.len());
            return Err(Error::Graph(format!("graph {id:?} takes {expected} operands; got {found}")));
        }
        if let Some(name) = self.functions.name(id) {
            let pairs = operands.into_iter().zip(&graph.inputs);
            let operands = pairs.map(|(val, i)| control::conformed(cx, val, &i.ty)).collect::<Result<Vec<_>>>()?;
            let results = output_types(graph)?;
            let types = results.iter().map(|ty| control::value_type(cx, ty)).collect::<Result<Vec<_>>>()?;
            let values = cx.b.call(name, &operands, &types)?;
            return values.into_iter().zip(&results).map(|(v, ty)| control::as_val(ty, v)).collect();
        }
        let random = if self.is_random(graph) {
            let at = at.map_or_else(|| cx.b.const_index(0), Ok)?;
            Some(cx.fork(at)?)
        } else {
            None
        };
        let outer = cx.enter(graph, false, random);
        let results = self.body(cx, graph, operands);
        cx.leave(outer);
        results
    }

    /// Emits a graph's nodes for inputs; its outputs.
    fn body<'c>(&mut self, cx: &mut Cx<'c>, graph: &Graph, inputs: Vec<Val<'c>>) -> Result<Vec<Val<'c>>> {
        for (input, val) in graph.inputs.iter().zip(inputs) {
            let val = match (&input.ty, val) {
                (RecordType::Tensor(ty), Val::Tensor(t)) if t.dtype == ty.dtype => {
                    Val::Tensor(cx.conform(t.value, ty.dtype, &ty.shape)?)
                }
                (RecordType::Scalar { kind, expr }, Val::Scalar(found, value)) if *kind == found => {
                    if let Some(Ok(Expr::Sym(name))) = expr.as_ref().map(|e| e.parse::<Expr>()) {
                        cx.symbols.rebind(&name, *kind, value);
                    }
                    Val::Scalar(found, value)
                }
                (RecordType::None, _) => Val::None,
                (ty, val) => {
                    let message =
                        format!("input {} of graph {} is {ty:?}; the call gives {val:?}", input.value, graph.id);
                    return Err(Error::Graph(message));
                }
            };
            cx.define(&input.value, val)?;
        }
        self.nodes(cx, graph)?;
        graph.outputs.iter().map(|output| output_value(cx, output)).collect()
    }

    /// Emits the nodes of a graph whose inputs are defined.
    pub fn nodes<'c>(&mut self, cx: &mut Cx<'c>, graph: &Graph) -> Result<()> {
        for node in &graph.nodes {
            self.begin(cx, node);
            let (first, inner) = (cx.b.ordinal(), self.lowered.len());
            let done = match self.node(cx, node) {
                Err(Error::Unsupported(_) | Error::Bind(_)) if self.options.opaque => self.opaque(cx, node),
                done => done,
            };
            match done {
                Ok(values) => define_results(cx, node, values)?,
                Err(error @ (Error::Unsupported(_) | Error::Bind(_))) => {
                    let reason = error.to_string();
                    self.refusals.push(Refusal { node: node.node.clone(), op: node.op.clone(), reason });
                    define_stand_ins(cx, node)?;
                }
                Err(error) => return Err(at_node(node, error)),
            }
            let called: Vec<u64> =
                self.lowered.iter().skip(inner).filter_map(|l| l.ops.as_ref()).flatten().copied().collect();
            self.lowered.push(account(node, first, cx.b.ordinal(), called));
        }
        cx.b.set_tag(None);
        Ok(())
    }

    /// Says of what follows that it comes from a node.
    pub fn begin(&self, cx: &Cx<'_>, node: &Node) {
        let (scope, loc) = self.places.of_node(node);
        let file = loc.and_then(|l| l.rsplit_once(':')).and_then(|(f, line)| Some((f, line.parse().ok()?)));
        cx.b.set_named_location(scope.unwrap_or(&node.node), file);
        cx.b.set_tag(self.options.trace.then_some(node.node.as_str()));
    }

    /// Calls a function that stands for a node.
    fn opaque<'c>(&mut self, cx: &mut Cx<'c>, node: &Node) -> Result<Vec<Val<'c>>> {
        let (values, external) = opaque::call(cx, node)?;
        self.externals.entry(external.symbol.clone()).or_insert(external);
        Ok(values)
    }

    /// Declares the functions that were called so.
    pub fn declare(&self, cx: &Cx<'_>) -> Result<()> {
        for external in self.externals.values() {
            let types = |all: &[RecordType]| all.iter().map(|ty| signature_type(cx, ty)).collect::<Result<Vec<_>>>();
            cx.b.declaration(&external.symbol, &types(&external.operands)?, &types(&external.results)?)?;
        }
        Ok(())
    }

    /// Lowers one node by its row, or a scalar by its expression.
    fn node<'c>(&mut self, cx: &mut Cx<'c>, node: &Node) -> Result<Vec<Val<'c>>> {
        for result in &node.results {
            Cx::check_type(&result.ty)?;
        }
        if let [result] = node.results.as_slice()
            && let RecordType::Scalar { kind, expr: Some(expr) } = &result.ty
            && let Some(value) = known_scalar(cx, *kind, expr)?
        {
            return Ok(vec![value]);
        }
        let row = table::find(&node.op).ok_or_else(|| Error::unsupported("no rule lowers it to linalg"))?;
        if let Kind::Control(rule) = row.kind {
            return rule(cx, self, node);
        }
        let bound = bind(node)?;
        row.lower(cx, node, &bound)
    }
}

/// Whether a graph draws random numbers, or calls one of `graphs` that does.
pub fn is_random(graph: &Graph, graphs: &HashMap<&str, &Graph>) -> bool {
    let called = |node: &Node| {
        let ids = node.args.iter().filter_map(|arg| if let Arg::Graph(id) = arg { Some(id.as_str()) } else { None });
        ids.filter_map(|id| graphs.get(id)).any(|graph| is_random(graph, graphs))
    };
    graph.nodes.iter().any(|node| table::find(&node.op).is_some_and(|row| row.family == Family::Random) || called(node))
}

/// Runs MLIR's builder with a callback that fails with errors of ours. The builder would pass them on as its own: each
/// goes through the function that `build` gets, and the first is the result.
pub fn stashing<T>(
    build: impl FnOnce(&mut dyn FnMut(Error) -> m2m_mlir::Error) -> std::result::Result<T, m2m_mlir::Error>,
) -> Result<T> {
    let mut first = None;
    let built = build(&mut |error| {
        let stands_for = super::elementwise::into_mlir(Error::Graph(error.to_string()));
        first.get_or_insert(error);
        stands_for
    });
    first.map_or(Ok(()), Err)?;
    Ok(built?)
}

/// Types of a graph's outputs.
fn output_types(graph: &Graph) -> Result<Vec<RecordType>> {
    let types = graph.types();
    let of = |output: &OutputItem| {
        let ty = output.value.as_deref().and_then(|v| types.get(v)).map(|ty| (*ty).clone());
        ty.ok_or_else(|| Error::Graph(format!("an output of graph {} has no type", graph.id)))
    };
    graph.outputs.iter().map(of).collect()
}

/// The value of an output, which may be a number in the graph.
fn output_value<'c>(cx: &mut Cx<'c>, output: &OutputItem) -> Result<Val<'c>> {
    match (&output.value, &output.literal) {
        (Some(name), _) => Ok(cx.value(name)?.clone()),
        (None, Some(Arg::Null) | None) => Ok(Val::None),
        (None, Some(literal)) => cx.number_arg(literal).map(|(kind, value)| Val::Scalar(kind, value)),
    }
}

/// What became of a node whose operations are those from `first` to before `next` but for those of called graphs.
pub fn account(node: &Node, first: usize, next: usize, called: Vec<u64>) -> Lowered {
    let mut lowered = Lowered { node: node.node.clone(), ..Lowered::default() };
    if next > first {
        let called: std::collections::HashSet<u64> = called.into_iter().collect();
        lowered.ops = Some((first as u64..next as u64).filter(|ordinal| !called.contains(ordinal)).collect());
        return lowered;
    }
    let mut source = None;
    node.args.iter().for_each(|a| a.for_each_value(&mut |v| source = source.or(Some(v))));
    match source {
        Some(value) if !node.results.is_empty() => lowered.alias = Some(value.to_owned()),
        _ => lowered.eliminated = Some("it needs no operation: its value is known when the module is made".into()),
    }
    lowered
}

fn at_node(node: &Node, error: Error) -> Error {
    match error {
        Error::Mlir(e) => Error::Graph(format!("{}: {}: {e}", node.node, node.op)),
        Error::Graph(m) => Error::Graph(format!("{}: {}: {m}", node.node, node.op)),
        other => Error::Graph(format!("{}: {other}", node.node)),
    }
}

/// A scalar whose expression is over symbols that are already bound.
fn known_scalar<'c>(cx: &mut Cx<'c>, kind: ScalarKind, text: &str) -> Result<Option<Val<'c>>> {
    let expr: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
    if !cx.symbols.knows(&expr) {
        return Ok(None);
    }
    let (found, value) = cx.symbols.number(&cx.b, &expr)?;
    // A float whose expression is whole (`2.0*s0` written `2*s0`) is still a float.
    if (kind, found) == (ScalarKind::Float, ScalarKind::Int) {
        let wide = cx.b.index_cast(value, cx.b.elem("i64")?)?;
        return Ok(Some(Val::Scalar(kind, cx.b.cast("sitofp", wide, cx.b.elem("f64")?)?)));
    }
    Ok((kind == found).then_some(Val::Scalar(kind, value)))
}

fn define_results<'c>(cx: &mut Cx<'c>, node: &Node, values: Vec<Val<'c>>) -> Result<()> {
    if values.len() != node.results.len() {
        let (found, expected) = (values.len(), node.results.len());
        return Err(Error::Graph(format!("{}: {}: {found} values for {expected} results", node.node, node.op)));
    }
    for (result, value) in node.results.iter().zip(values) {
        if let Some(name) = &result.value {
            check_defined(cx, node, &result.ty, &value)?;
            bind_symbol(cx, &result.ty, &value)?;
            cx.define(name, value)?;
        }
    }
    Ok(())
}

/// Binds the symbol that a number from data is known by from here on.
fn bind_symbol<'c>(cx: &mut Cx<'c>, ty: &RecordType, value: &Val<'c>) -> Result<()> {
    let (RecordType::Scalar { expr: Some(text), .. }, Val::Scalar(kind, value)) = (ty, value) else { return Ok(()) };
    let expr: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
    match (&expr, kind) {
        (Expr::Sym(name), ScalarKind::Float) => cx.symbols.bind_real(name, *value),
        (_, ScalarKind::Int) => {
            cx.symbols.bind_from(&cx.b, &expr, *value)?;
        }
        _ => {}
    }
    Ok(())
}

/// A rule's tensor must have the type that the record states.
fn check_defined(cx: &Cx<'_>, node: &Node, ty: &RecordType, value: &Val<'_>) -> Result<()> {
    let (RecordType::Tensor(expected), Val::Tensor(found)) = (ty, value) else { return Ok(()) };
    let mlir = cx.tensor_type(expected.dtype, &expected.shape)?;
    if found.dtype == expected.dtype && types::of(found.value) == mlir {
        return Ok(());
    }
    Err(Error::Graph(format!(
        "{}: {}: the rule gave {} {:?}; the record states {} {:?}",
        node.node, node.op, found.dtype, found.shape, expected.dtype, expected.shape
    )))
}

/// Gives a refused node's results undefined tensors, so that the walk can go on and find other refusals.
fn define_stand_ins(cx: &mut Cx<'_>, node: &Node) -> Result<()> {
    for result in &node.results {
        let Some(name) = &result.value else { continue };
        let value = match &result.ty {
            RecordType::Tensor(t) => {
                let shape: Vec<_> = t.shape.iter().map(|d| m2m_record::Dim::Int(d.as_int().unwrap_or(1))).collect();
                let value = cx.empty(t.dtype, &shape)?;
                Val::Tensor(cx.conform(value, t.dtype, &t.shape).map(|c| Tensor { shape: t.shape.clone(), ..c })?)
            }
            RecordType::Scalar { kind, .. } => Val::Scalar(*kind, stand_in(cx, *kind)?),
            _ => Val::None,
        };
        cx.define(name, value)?;
    }
    Ok(())
}

fn stand_in<'c>(cx: &Cx<'c>, kind: ScalarKind) -> Result<Value<'c>> {
    Ok(match kind {
        ScalarKind::Float => cx.b.const_float(cx.b.elem("f64")?, 0.0)?,
        ScalarKind::Bool => cx.b.const_bool(false)?,
        _ => cx.b.const_index(1)?,
    })
}
