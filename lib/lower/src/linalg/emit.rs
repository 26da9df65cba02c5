//! Emits a prepared graph as one function, node by node.

use super::cx::{Cx, Tensor, Val};
use super::{entry, table};
use crate::error::{Error, Refusal, Result};
use m2m_aten::bind::bind;
use m2m_graph::Graph;
use m2m_mlir::{Builder, Context, Module, Type, Value, new_module, types};
use m2m_record::{Arg, Argument, Lowered, ModuleResult, Node, ScalarKind, Type as RecordType};
use m2m_tensor::Expr;
use std::collections::HashMap;
use std::rc::Rc;

/// How weights reach the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightBinding {
    /// As its first arguments, in signature order.
    #[default]
    Args,
    /// As globals that IREE binds by name (`--parameters=model=weights.safetensors`).
    Iree,
}

/// What of an emission can be chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How weights reach the function.
    pub binding: WeightBinding,
    /// Whether operations carry their node as the attribute `m2m.node`.
    pub trace: bool,
}

/// A module and what became of each node.
pub struct Emitted<'c> {
    /// The module, not verified yet.
    pub module: Module<'c>,
    /// One record a node.
    pub lowered: Vec<Lowered>,
    /// The entry function's arguments.
    pub arguments: Vec<Argument>,
    /// The entry function's results.
    pub results: Vec<ModuleResult>,
    /// The entry function's name.
    pub entry: String,
}

/// Scope and location of nodes of the stage before, by node id.
pub type Places = HashMap<String, (Option<String>, Option<String>)>;

/// Emits `graph`. Refusals of all nodes are collected; with any of them there is no module.
pub fn emit<'c>(
    context: &'c Context,
    graph: &Graph,
    places: &Places,
    options: Options,
) -> std::result::Result<Emitted<'c>, Failure> {
    let module = new_module(context);
    let mut cx = Cx::new(Builder::new(context, &module));
    cx.note_uses(graph);
    let arguments = entry::arguments(graph, options.binding);
    let results = entry::results(graph);
    let name = graph.entry.clone().unwrap_or_else(|| "forward".into());
    let mut walk = Walk { lowered: Vec::with_capacity(graph.nodes.len()), refusals: Vec::new() };
    let emitted = function(&mut cx, graph, places, options, &name, &arguments, &mut walk);
    if !walk.refusals.is_empty() {
        return Err(Failure::Refused(walk.refusals));
    }
    emitted?;
    Ok(Emitted { module, lowered: walk.lowered, arguments, results, entry: name })
}

/// Why there is no module.
#[derive(Debug)]
pub enum Failure {
    /// Nodes that cannot be lowered, all of them.
    Refused(Vec<Refusal>),
    /// The graph or the tool is wrong.
    Broken(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Broken(error)
    }
}

/// What the walk over the nodes has gathered.
struct Walk {
    lowered: Vec<Lowered>,
    refusals: Vec<Refusal>,
}

fn function<'c>(
    cx: &mut Cx<'c>,
    graph: &Graph,
    places: &Places,
    options: Options,
    name: &str,
    arguments: &[Argument],
    walk: &mut Walk,
) -> Result<()> {
    let taken = arguments.iter().filter(|a| a.global.is_none());
    let argument_types = taken.map(|a| entry::signature_type(cx, &a.ty)).collect::<Result<Vec<_>>>()?;
    let result_types = result_types(cx, graph)?;
    entry::globals(cx, arguments)?;
    let builder = Rc::clone(&cx.b);
    builder.function(name, &argument_types, &result_types, &[], |_, values| {
        body(cx, graph, places, options, arguments, values, walk).map_err(super::elementwise::into_mlir)
    })?;
    Ok(())
}

/// Types of the outputs that the function returns.
fn result_types<'c>(cx: &Cx<'c>, graph: &Graph) -> Result<Vec<Type<'c>>> {
    let known = graph.types();
    let values = graph.outputs.iter().filter_map(|o| o.value.as_deref());
    values
        .map(|value| {
            let ty = known.get(value).ok_or_else(|| Error::Graph(format!("output {value:?} has no type")))?;
            entry::signature_type(cx, ty)
        })
        .collect()
}

fn body<'c>(
    cx: &mut Cx<'c>,
    graph: &Graph,
    places: &Places,
    options: Options,
    arguments: &[Argument],
    values: &[Value<'c>],
    walk: &mut Walk,
) -> Result<Vec<Value<'c>>> {
    entry::define_inputs(cx, graph, arguments, values)?;
    entry::assertions(cx, graph)?;
    for node in &graph.nodes {
        let (scope, loc) = node.origins.iter().find_map(|o| places.get(o)).cloned().unwrap_or_default();
        locate(cx, node, scope.as_deref(), loc.as_deref());
        cx.b.set_tag(options.trace.then_some(node.node.as_str()));
        let first = cx.b.ordinal();
        match lower_node(cx, node) {
            Ok(values) => define_results(cx, node, values)?,
            Err(error @ (Error::Unsupported(_) | Error::Bind(_))) => {
                let reason = error.to_string();
                walk.refusals.push(Refusal { node: node.node.clone(), op: node.op.clone(), reason });
                define_stand_ins(cx, node)?;
            }
            Err(error) => return Err(at_node(node, error)),
        }
        walk.lowered.push(account(node, first, cx.b.ordinal()));
    }
    cx.b.set_tag(None);
    returned(cx, graph)
}

/// What became of a node whose operations are those from `first` to before `next`.
fn account(node: &Node, first: usize, next: usize) -> Lowered {
    let mut lowered = Lowered { node: node.node.clone(), ..Lowered::default() };
    if next > first {
        lowered.ops = Some((first as u64..next as u64).collect());
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

fn locate(cx: &Cx<'_>, node: &Node, scope: Option<&str>, loc: Option<&str>) {
    let file = loc.and_then(|l| l.rsplit_once(':')).and_then(|(f, line)| Some((f, line.parse().ok()?)));
    cx.b.set_named_location(scope.unwrap_or(&node.node), file);
}

/// Lowers one node by its row, or a scalar by its expression.
fn lower_node<'c>(cx: &mut Cx<'c>, node: &Node) -> Result<Vec<Val<'c>>> {
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
    let bound = bind(node)?;
    row.lower(cx, node, &bound)
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

fn returned<'c>(cx: &mut Cx<'c>, graph: &Graph) -> Result<Vec<Value<'c>>> {
    let known = graph.types();
    let mut out = Vec::new();
    for name in graph.outputs.iter().filter_map(|o| o.value.as_deref()) {
        out.push(match cx.value(name)?.clone() {
            Val::Tensor(t) => {
                let Some(RecordType::Tensor(ty)) = known.get(name) else {
                    return Err(Error::Graph(format!("output {name:?} has no tensor type")));
                };
                cx.conform(t.value, ty.dtype, &ty.shape)?.value
            }
            Val::Scalar(ScalarKind::Int, value) => cx.b.index_cast(value, cx.b.elem("i64")?)?,
            Val::Scalar(_, value) => value,
            Val::None => return Err(Error::Graph(format!("output {name:?} is {:?}", Arg::Null))),
        });
    }
    Ok(out)
}
