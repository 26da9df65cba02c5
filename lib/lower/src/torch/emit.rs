//! Emits a prepared graph as one function of the torch dialect.

use super::args::{Cx, Scope};
use super::table::lifted;
use super::types;
use crate::error::{Error, Refusal, Result};
use crate::linalg::entry::{self, Check, Entry};
use crate::linalg::{Emitted, Failure, Options, account, stashing};
use m2m_aten::{Prepared, bind};
use m2m_graph::{Graph, Places};
use m2m_mlir::{Builder, Context, Value, attr, new_module};
use m2m_record::{Arg, Argument, InputRole, Lowered, Node, OutputItem, ScalarKind, Type as RecordType};
use m2m_tensor::Expr;
use std::collections::HashMap;
use std::rc::Rc;

/// Emits a prepared program in a context that allows dialects it does not know. Refusals of all nodes are collected.
pub fn emit<'c>(
    context: &'c Context,
    prepared: &Prepared,
    places: &Places,
    options: Options,
) -> std::result::Result<Emitted<'c>, Failure> {
    let graph = &prepared.graph;
    let module = new_module(context);
    let mut cx = Cx::new(Builder::new(context, &module));
    let Entry { name, arguments, results } = Entry::of(graph, options.binding, false);
    let graphs = prepared.nested.iter().map(|graph| (graph.id.as_str(), graph)).collect();
    let mut walk = Walk { graphs, places, options, lowered: Vec::new(), refusals: Vec::new() };
    let emitted = walk.function(&mut cx, graph, &name, &arguments);
    if !walk.refusals.is_empty() {
        return Err(Failure::Refused(walk.refusals));
    }
    emitted?;
    Ok(Emitted { module, lowered: walk.lowered, arguments, results, entry: name, externals: Vec::new() })
}

/// A walk over the graphs of a program.
pub(super) struct Walk<'w> {
    graphs: HashMap<&'w str, &'w Graph>,
    places: &'w Places,
    options: Options,
    lowered: Vec<Lowered>,
    refusals: Vec<Refusal>,
}

impl Walk<'_> {
    fn function<'c>(&mut self, cx: &mut Cx<'c>, graph: &Graph, name: &str, arguments: &[Argument]) -> Result<()> {
        globals(cx, arguments)?;
        let types = graph.types();
        let texts = |values: &mut dyn Iterator<Item = &RecordType>| {
            values.map(|ty| types::parse(&cx.b, &types::text(ty)?)).collect::<Result<Vec<_>>>()
        };
        let inputs = texts(&mut arguments.iter().filter(|a| a.global.is_none()).map(|a| &a.ty))?;
        let outputs = entry::outputs(graph).filter_map(|o| types.get(o.value.as_deref()?).copied());
        let outputs = texts(&mut outputs.collect::<Vec<_>>().into_iter())?;
        let attributes = [("torch.assume_strict_symbolic_shapes", attr::unit(cx.b.context()))];
        let b = Rc::clone(&cx.b);
        stashing(|stash| {
            b.function(name, &inputs, &outputs, &attributes, |_, values| {
                self.body(cx, graph, arguments, values).map_err(stash)
            })
        })
    }

    fn body<'c>(
        &mut self,
        cx: &mut Cx<'c>,
        graph: &Graph,
        arguments: &[Argument],
        values: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>> {
        let mut values = values.iter().copied();
        for argument in arguments {
            let value = match &argument.global {
                Some(name) => loaded(cx, name, &argument.ty)?,
                None => values.next().ok_or_else(|| Error::Graph("more inputs than arguments".into()))?,
            };
            cx.define(&argument.value, value, &argument.ty)?;
        }
        self.assertions(cx, graph)?;
        self.nodes(cx, graph)?;
        let named = entry::outputs(graph).filter_map(|o| o.value.as_deref());
        named.map(|name| cx.value(name).map(|(value, _)| value)).collect()
    }

    /// Checks what must hold of the inputs, as far as its symbols have values.
    fn assertions(&mut self, cx: &mut Cx<'_>, graph: &Graph) -> Result<()> {
        for (check, message) in entry::checks(graph)? {
            match verdict(cx, &check) {
                Ok(Some(holds)) => assert(cx, holds, &message)?,
                Ok(None) => {}
                Err(Error::Unsupported(reason)) => {
                    self.refusals.push(Refusal { node: "input".into(), op: message, reason });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Begins the operations of a node.
    pub(super) fn begin(&self, cx: &Cx<'_>, node: &Node) {
        let (scope, loc) = self.places.of_node(node);
        let file = loc.and_then(|l| l.rsplit_once(':')).and_then(|(f, line)| Some((f, line.parse().ok()?)));
        cx.b.set_named_location(scope.unwrap_or(&node.node), file);
        cx.b.set_tag(self.options.trace.then_some(node.node.as_str()));
    }

    fn nodes<'c>(&mut self, cx: &mut Cx<'c>, graph: &Graph) -> Result<()> {
        for node in &graph.nodes {
            self.begin(cx, node);
            let (first, inner) = (cx.b.ordinal(), self.lowered.len());
            match self.node(cx, node) {
                Ok(()) => {}
                Err(error @ (Error::Unsupported(_) | Error::Bind(_))) => {
                    let (node_id, op, reason) = (node.node.clone(), node.op.clone(), error.to_string());
                    self.refusals.push(Refusal { node: node_id, op, reason });
                    stand_ins(cx, node)?;
                }
                Err(error) => return Err(Error::Graph(format!("{}: {}: {error}", node.node, node.op))),
            }
            let called = self.lowered.iter().skip(inner).filter_map(|l| l.ops.as_ref()).flatten().copied().collect();
            self.lowered.push(account(node, first, cx.b.ordinal(), called));
        }
        cx.b.set_tag(None);
        Ok(())
    }

    fn node<'c>(&mut self, cx: &mut Cx<'c>, node: &Node) -> Result<()> {
        if let [result] = node.results.as_slice()
            && let RecordType::Scalar { expr: Some(text), kind } = &result.ty
            && let Ok(expr) = text.parse::<Expr>()
            && (*kind == ScalarKind::Float) == cx.is_float(&expr)
            && cx.knows(&expr)
        {
            let value = cx.number(&expr)?;
            return result.value.as_ref().map_or(Ok(()), |name| cx.define(name, value, &result.ty));
        }
        let values = match node.op.as_str() {
            "higher_order.cond" => self.cond(cx, node)?,
            "higher_order.while_loop" => self.while_loop(cx, node)?,
            "higher_order.map" | "higher_order.map_impl" | "higher_order.scan" => self.by_rows(cx, node)?,
            "aten._assert_scalar.default" | "aten._assert_async.default" | "aten._assert_async.msg" => {
                return assert_truth(cx, node);
            }
            "aten.sym_constrain_range.default" | "aten.sym_constrain_range_for_size.default" => {
                return constrain_range(cx, node);
            }
            _ => operator(cx, node)?,
        };
        let values = values.into_iter().zip(&node.results);
        for (value, result) in values {
            if let Some(name) = &result.value {
                cx.define(name, value, &result.ty)?;
            }
        }
        Ok(())
    }

    /// The outputs of a called graph, whose names are its own.
    pub(super) fn call<'c>(
        &mut self,
        cx: &mut Cx<'c>,
        id: &str,
        operands: Vec<(Value<'c>, String)>,
    ) -> Result<Vec<(Value<'c>, String)>> {
        let graph = self.graphs.get(id).copied().ok_or_else(|| Error::Graph(format!("graph {id:?} is not there")))?;
        if operands.len() != graph.inputs.len() {
            return Err(Error::Graph(format!("graph {id:?} is called with {} operands", operands.len())));
        }
        let outer = cx.scope.clone();
        cx.scope = Scope::inside(&outer);
        for ((value, found), input) in operands.into_iter().zip(&graph.inputs) {
            let value = cast(cx, value, &found, &types::text(&input.ty)?)?;
            cx.define(&input.value, value, &input.ty)?;
        }
        let done = self.nodes(cx, graph);
        let output = |cx: &mut Cx<'c>, output: &OutputItem| {
            let literal = output.literal.clone().unwrap_or(Arg::Null);
            let arg = output.value.as_ref().map_or(literal, |name| Arg::value(name.clone()));
            cx.scalar(&arg)
        };
        let outputs = done.and_then(|()| graph.outputs.iter().map(|o| output(cx, o)).collect());
        cx.scope = outer;
        outputs
    }

    /// `torch.prim.If`
    fn cond<'c>(&mut self, cx: &mut Cx<'c>, node: &Node) -> Result<Vec<Value<'c>>> {
        let [predicate, Arg::Graph(yes), Arg::Graph(no), rest @ ..] = node.args.as_slice() else {
            return Err(Error::unsupported("arguments that are not a predicate, two graphs and operands"));
        };
        let (predicate, ty) = cx.scalar(predicate)?;
        let predicate = truth(cx, predicate, &ty)?;
        let operands = operands(cx, rest.first())?;
        let texts = node.results.iter().map(|r| types::text(&r.ty)).collect::<Result<Vec<_>>>()?;
        let result_types = texts.iter().map(|text| types::parse(&cx.b, text)).collect::<Result<Vec<_>>>()?;
        regions(cx, "torch.prim.If", &[predicate], &result_types, &[vec![], vec![]], |cx, region, _| {
            let outputs = self.call(cx, if region == 0 { yes } else { no }, operands.clone())?;
            self.begin(cx, node);
            let values = cast_all(cx, outputs, &texts)?;
            Ok(cx.b.op("torch.prim.If.yield", &values, &[], &[]).map(drop)?)
        })
    }

    /// `torch.prim.Loop` without a bound: the condition is computed before the first round and at the end of each.
    fn while_loop<'c>(&mut self, cx: &mut Cx<'c>, node: &Node) -> Result<Vec<Value<'c>>> {
        let [Arg::Graph(condition), Arg::Graph(body), carried @ Arg::List(_), rest @ ..] = node.args.as_slice() else {
            return Err(Error::unsupported("arguments that are not two graphs and two lists of operands"));
        };
        let texts = node.results.iter().map(|r| types::text(&r.ty)).collect::<Result<Vec<_>>>()?;
        let carried = operands(cx, Some(carried))?;
        let carried = cast_all(cx, carried, &texts)?;
        let additional = operands(cx, rest.first())?;
        let given = |values: &[Value<'c>]| {
            let carried = values.iter().copied().zip(texts.iter().cloned());
            carried.chain(additional.iter().cloned()).collect::<Vec<_>>()
        };
        let holds = |walk: &mut Self, cx: &mut Cx<'c>, values: &[Value<'c>]| {
            let outputs = walk.call(cx, condition, given(values))?;
            walk.begin(cx, node);
            let (again, ty) =
                outputs.into_iter().next().ok_or_else(|| Error::Graph("a condition without a value".into()))?;
            truth(cx, again, &ty)
        };
        let first = holds(self, cx, &carried)?;
        let bound = cx.int(i64::MAX)?;
        let loop_types = texts.iter().map(|text| types::parse(&cx.b, text)).collect::<Result<Vec<_>>>()?;
        let mut arguments = vec![types::parse(&cx.b, "!torch.int")?];
        arguments.extend(loop_types.iter().copied());
        let inits: Vec<_> = [bound, first].into_iter().chain(carried).collect();
        regions(cx, "torch.prim.Loop", &inits, &loop_types, &[arguments], |cx, _, values| {
            let carried = values.get(1..).unwrap_or_default();
            let next = self.call(cx, body, given(carried))?;
            self.begin(cx, node);
            let next = cast_all(cx, next, &texts)?;
            let again = holds(self, cx, &next)?;
            let passed: Vec<_> = std::iter::once(again).chain(next).collect();
            Ok(cx.b.op("torch.prim.Loop.condition", &passed, &[], &[]).map(drop)?)
        })
    }
}

/// An operation with regions; what becomes known in one is forgotten after it.
pub(super) fn regions<'c>(
    cx: &mut Cx<'c>,
    name: &str,
    operands: &[Value<'c>],
    results: &[m2m_mlir::Type<'c>],
    arguments: &[Vec<m2m_mlir::Type<'c>>],
    mut fill: impl FnMut(&mut Cx<'c>, usize, &[Value<'c>]) -> Result<()>,
) -> Result<Vec<Value<'c>>> {
    let b = Rc::clone(&cx.b);
    stashing(|stash| {
        b.op_with_regions(name, operands, results, &[], arguments, |_, region, arguments| {
            let known = cx.scope.clone();
            let filled = fill(cx, region, arguments);
            cx.scope = known;
            filled.map_err(&mut *stash)
        })
    })
}

/// A list of operands, with the texts of their types.
pub(super) fn operands<'c>(cx: &mut Cx<'c>, list: Option<&Arg>) -> Result<Vec<(Value<'c>, String)>> {
    match list {
        None | Some(Arg::Null) => Ok(Vec::new()),
        Some(Arg::List(items)) => items.iter().map(|item| cx.scalar(item)).collect(),
        Some(other) => Err(Error::unsupported(format!("{other:?} as a list of operands"))),
    }
}

/// A value of another static type: sizes that are known or not.
pub(super) fn cast<'c>(cx: &Cx<'c>, value: Value<'c>, from: &str, to: &str) -> Result<Value<'c>> {
    if from == to { Ok(value) } else { cx.op1("torch.tensor_static_info_cast", &[value], to, &[]) }
}

/// Values as those of other static types.
pub(super) fn cast_all<'c>(cx: &Cx<'c>, values: Vec<(Value<'c>, String)>, texts: &[String]) -> Result<Vec<Value<'c>>> {
    if values.len() != texts.len() {
        return Err(Error::Graph(format!("a called graph gives {} values for {} results", values.len(), texts.len())));
    }
    values.into_iter().zip(texts).map(|((value, from), to)| cast(cx, value, &from, to)).collect()
}

/// A condition as a `!torch.bool`.
fn truth<'c>(cx: &Cx<'c>, value: Value<'c>, ty: &str) -> Result<Value<'c>> {
    match ty {
        "!torch.bool" => Ok(value),
        "!torch.int" => cx.op1("torch.aten.Bool.int", &[value], "!torch.bool", &[]),
        "!torch.float" => cx.op1("torch.aten.Bool.float", &[value], "!torch.bool", &[]),
        _ => cx.op1("torch.aten.Bool.Tensor", &[value], "!torch.bool", &[]),
    }
}

/// Any operator: its operation by the schema's arguments.
fn operator<'c>(cx: &mut Cx<'c>, node: &Node) -> Result<Vec<Value<'c>>> {
    let node = &with_scalar_overload(node);
    let bound = bind(node)?;
    let schema = bound.schema.clone();
    let operands = schema.args.iter().map(|arg| cx.operand(&bound, arg)).collect::<Result<Vec<_>>>()?;
    let results: Vec<_> = node.results.iter().filter(|r| !matches!(r.ty, RecordType::None)).collect();
    let types = results.iter().map(|r| types::parse(&cx.b, &types::text(&r.ty)?)).collect::<Result<Vec<_>>>()?;
    let name = node.op.strip_suffix(".default").unwrap_or(&node.op);
    Ok(cx.b.op(&format!("torch.{name}"), &operands, &types, &[])?)
}

/// A number where the schema says tensor makes the overload for numbers of it, where there is one.
fn with_scalar_overload(node: &Node) -> Node {
    if let Some(op) = lifted(&node.op) {
        return Node { op: op.to_owned(), ..node.clone() };
    }
    let is_number = matches!(node.args.get(1), Some(Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) | Arg::Sym(_)));
    let scalar = node.op.strip_suffix(".Tensor").map(|name| format!("{name}.Scalar"));
    match scalar.filter(|op| is_number && super::has(op) && lifted(op).is_none()) {
        Some(op) => Node { op, ..node.clone() },
        None => node.clone(),
    }
}

/// Whether a check holds; none where its symbols have no values.
fn verdict<'c>(cx: &mut Cx<'c>, check: &Check) -> Result<Option<Value<'c>>> {
    Ok(match check {
        Check::Size { input, axis, size } if cx.knows(size) => {
            let axis = cx.int(*axis as i64)?;
            let (value, _) = cx.value(input)?;
            let actual = cx.op1("torch.aten.size.int", &[value, axis], "!torch.int", &[])?;
            let expected = cx.number(size)?;
            Some(cx.op1("torch.aten.eq.int", &[actual, expected], "!torch.bool", &[])?)
        }
        Check::Condition(expr) if cx.knows(expr) => Some(cx.number(expr)?),
        _ => None,
    })
}

/// `torch.runtime.assert`
fn assert<'c>(cx: &Cx<'c>, holds: Value<'c>, message: &str) -> Result<()> {
    let message = attr::string(cx.b.context(), message);
    Ok(cx.b.op("torch.runtime.assert", &[holds], &[], &[("message", message)]).map(drop)?)
}

/// `_assert_scalar(self, assert_msg)`, `_assert_async(self, assert_msg)`: fails where a number, or the one element of a
/// tensor, is zero or false.
fn assert_truth(cx: &mut Cx<'_>, node: &Node) -> Result<()> {
    let bound = bind(node)?;
    let (value, ty) = cx.scalar(bound.arg("self")?)?;
    let holds = truth(cx, value, &ty)?;
    let default = "Expected Tensor with single nonzero value, but got zero";
    let message = if bound.has("assert_msg") { bound.str("assert_msg")? } else { default };
    assert(cx, holds, message)
}

/// `sym_constrain_range(size, min, max)`: fails where the number is outside the bounds that are given.
fn constrain_range(cx: &mut Cx<'_>, node: &Node) -> Result<()> {
    let bound = bind(node)?;
    let (size, _) = cx.scalar(bound.arg("size")?)?;
    for (name, op, words) in [("min", "ge", "at least"), ("max", "le", "at most")] {
        let Some(limit) = bound.int_or(name)? else { continue };
        let limit_value = cx.int(limit)?;
        let holds = cx.op1(&format!("torch.aten.{op}.int"), &[size, limit_value], "!torch.bool", &[])?;
        assert(cx, holds, &format!("a size from data must be {words} {limit}"))?;
    }
    Ok(())
}

/// Gives a refused node's results values, so that the walk can go on and find other refusals.
fn stand_ins(cx: &mut Cx<'_>, node: &Node) -> Result<()> {
    for result in &node.results {
        if let (Some(name), Ok(text)) = (&result.value, types::text(&result.ty)) {
            let value = cx.op1("torch.constant.none", &[], &text, &[])?;
            cx.define(name, value, &result.ty)?;
        }
    }
    Ok(())
}

/// Declares a global for each weight that IREE is to bind by name.
fn globals(cx: &Cx<'_>, arguments: &[Argument]) -> Result<()> {
    let mut declared = std::collections::HashSet::new();
    for argument in arguments.iter().filter(|a| a.role != InputRole::Seed) {
        let Some(name) = argument.global.as_ref().filter(|name| declared.insert(name.as_str())) else { continue };
        let ty = builtin(cx, &argument.ty)?;
        entry::global(&cx.b, name, ty)?;
    }
    Ok(())
}

/// The type of a weight's bytes.
fn builtin<'c>(cx: &Cx<'c>, ty: &RecordType) -> Result<m2m_mlir::Type<'c>> {
    let t = ty.as_tensor().ok_or_else(|| Error::Graph(format!("a weight of type {ty:?}")))?;
    let dims: Vec<i64> = t.shape.iter().map(|d| d.as_int().unwrap_or(m2m_mlir::types::DYNAMIC)).collect();
    Ok(m2m_mlir::types::tensor(&dims, cx.b.elem(t.dtype.name())?))
}

fn loaded<'c>(cx: &Cx<'c>, name: &str, ty: &RecordType) -> Result<Value<'c>> {
    let symbol = attr::symbol(cx.b.context(), name);
    let bytes = cx.b.op1("ml_program.global_load_const", &[], builtin(cx, ty)?, &[("global", symbol)])?;
    cx.op1("torch_c.from_builtin_tensor", &[bytes], &types::text(ty)?, &[])
}
