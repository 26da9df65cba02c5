//! Emits a prepared graph as one function.

use super::cx::{Cx, Val};
use super::entry::{self, Entry};
use super::walk::{Walk, stashing};
use crate::error::{Error, Refusal, Result};
use m2m_aten::Prepared;
use m2m_graph::{Graph, Places};
use m2m_mlir::{Builder, Context, Module, Type, Value, new_module};
use m2m_record::{Arg, Argument, External, Lowered, ModuleResult, ScalarKind, Type as RecordType};
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
    /// Whether what no rule covers becomes a call of a function that is only declared.
    pub opaque: bool,
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
    /// Functions that are only declared.
    pub externals: Vec<External>,
}

/// Emits a prepared program. Refusals of all nodes are collected; with any of them there is no module.
pub fn emit<'c>(
    context: &'c Context,
    prepared: &Prepared,
    places: &Places,
    options: Options,
) -> std::result::Result<Emitted<'c>, Failure> {
    let graph = &prepared.graph;
    let module = new_module(context);
    let mut cx = Cx::new(Builder::new(context, &module));
    cx.note_uses(graph);
    let mut walk = Walk::new(prepared, places, options);
    let Entry { name, arguments, results } = Entry::of(graph, options.binding, walk.is_random(graph));
    let emitted = function(&mut cx, graph, &name, &arguments, &mut walk);
    let refusals = walk.refusals();
    if !refusals.is_empty() {
        return Err(Failure::Refused(refusals));
    }
    emitted?;
    let externals = walk.externals();
    Ok(Emitted { module, lowered: walk.lowered(), arguments, results, entry: name, externals })
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

fn function<'c>(cx: &mut Cx<'c>, graph: &Graph, name: &str, arguments: &[Argument], walk: &mut Walk<'_>) -> Result<()> {
    let taken = arguments.iter().filter(|a| a.global.is_none());
    let argument_types = taken.map(|a| entry::signature_type(cx, &a.ty)).collect::<Result<Vec<_>>>()?;
    let result_types = result_types(cx, graph)?;
    entry::globals(cx, arguments)?;
    walk.functions(cx)?;
    let builder = Rc::clone(&cx.b);
    stashing(|stash| {
        builder.function(name, &argument_types, &result_types, &[], |_, values| {
            body(cx, graph, arguments, values, walk).map_err(stash)
        })
    })?;
    walk.declare(cx)
}

/// Types of the outputs that the function returns.
fn result_types<'c>(cx: &Cx<'c>, graph: &Graph) -> Result<Vec<Type<'c>>> {
    let known = graph.types();
    let values = entry::outputs(graph).filter_map(|o| o.value.as_deref());
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
    arguments: &[Argument],
    values: &[Value<'c>],
    walk: &mut Walk<'_>,
) -> Result<Vec<Value<'c>>> {
    entry::define_inputs(cx, graph, arguments, values)?;
    entry::assertions(cx, graph)?;
    walk.nodes(cx, graph)?;
    returned(cx, graph)
}

fn returned<'c>(cx: &mut Cx<'c>, graph: &Graph) -> Result<Vec<Value<'c>>> {
    let known = graph.types();
    let mut out = Vec::new();
    for name in entry::outputs(graph).filter_map(|o| o.value.as_deref()) {
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
