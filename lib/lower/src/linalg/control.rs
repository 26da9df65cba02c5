//! Calls of nested graphs: branches, loops, maps and scans, as structured control flow.
//!
//! Source of the definitions: `torch.cond`, `torch.while_loop`, and `map`, `scan` and `associative_scan` of PyTorch's
//! higher-order operators. Operands are tensors and numbers; a graph's inputs take them in order.
//!
//! C1: graphs stand where the operator has them, and operands in lists behind them.
//! C2: what a loop carries keeps its type, up to sizes that are known only when it runs.

use super::check::{only_element, truth};
use super::cx::{Cx, Tensor, Val};
use super::scalar::Scalars;
use super::walk::{Walk, stashing};
use crate::error::{Error, Result};
use m2m_graph::Graph;
use m2m_mlir::{Type, Value};
use m2m_record::{Arg, Dim, Node, ScalarKind, Type as RecordType};
use std::rc::Rc;

/// A rule that emits graphs which a node calls.
pub type Rule = for<'c, 'w> fn(&mut Cx<'c>, &mut Walk<'w>, &Node) -> Result<Vec<Val<'c>>>;

/// The MLIR type of a value inside functions and regions: `index` for integers, `f64` for floats, `i1` for bools.
pub fn value_type<'c>(cx: &Cx<'c>, ty: &RecordType) -> Result<Type<'c>> {
    match ty {
        RecordType::Tensor(t) => cx.tensor_type(t.dtype, &t.shape),
        RecordType::Scalar { kind: ScalarKind::Int, .. } => Ok(cx.b.index_type()),
        RecordType::Scalar { kind: ScalarKind::Float, .. } => Ok(cx.b.elem("f64")?),
        RecordType::Scalar { kind: ScalarKind::Bool, .. } => Ok(cx.b.elem("bool")?),
        other => Err(Error::unsupported(format!("{other:?} as an operand or result of a called graph"))),
    }
}

/// An MLIR value of that type as a value of the graph.
pub fn as_val<'c>(ty: &RecordType, value: Value<'c>) -> Result<Val<'c>> {
    match ty {
        RecordType::Tensor(t) => Ok(Val::Tensor(Tensor { value, dtype: t.dtype, shape: t.shape.clone() })),
        RecordType::Scalar { kind, .. } => Ok(Val::Scalar(*kind, value)),
        other => Err(Error::Graph(format!("a value of type {other:?}"))),
    }
}

/// A value of the graph as an MLIR value of a type, whose static sizes may be others than the value's.
pub fn conformed<'c>(cx: &Cx<'c>, val: Val<'c>, ty: &RecordType) -> Result<Value<'c>> {
    match (val, ty) {
        (Val::Tensor(t), RecordType::Tensor(to)) if t.dtype == to.dtype => {
            Ok(cx.b.tensor_cast(t.value, cx.tensor_type(to.dtype, &to.shape)?)?)
        }
        (Val::Scalar(found, value), RecordType::Scalar { kind, .. }) if found == *kind => Ok(value),
        (val, ty) => Err(Error::Graph(format!("a called graph gives {val:?} where the call says {ty:?}"))),
    }
}

/// The types of the results that a node has, and whether each is a value at all.
fn results(node: &Node) -> Vec<&RecordType> {
    node.results.iter().map(|r| &r.ty).filter(|ty| !matches!(ty, RecordType::None)).collect()
}

/// Values for all results of a node, from those that are values.
fn spread<'c>(node: &Node, values: Vec<Value<'c>>) -> Result<Vec<Val<'c>>> {
    let mut values = values.into_iter();
    let val = |ty: &RecordType| match ty {
        RecordType::None => Ok(Val::None),
        ty => as_val(ty, values.next().ok_or_else(|| Error::Graph("fewer values than results".into()))?),
    };
    node.results.iter().map(|r| &r.ty).map(val).collect()
}

/// The outputs of a graph as values of the types of results.
fn yielded<'c>(cx: &Cx<'c>, outputs: Vec<Val<'c>>, types: &[&RecordType]) -> Result<Vec<Value<'c>>> {
    let outputs: Vec<Val<'c>> = outputs.into_iter().filter(|val| !matches!(val, Val::None)).collect();
    if outputs.len() != types.len() {
        return Err(Error::Graph(format!("a called graph gives {} values for {} results", outputs.len(), types.len())));
    }
    outputs.into_iter().zip(types).map(|(val, ty)| conformed(cx, val, ty)).collect()
}

fn types_of<'c>(cx: &Cx<'c>, types: &[&RecordType]) -> Result<Vec<Type<'c>>> {
    types.iter().map(|ty| value_type(cx, ty)).collect()
}

/// An operation whose regions are filled one after another. What becomes known of sizes in a region is forgotten after
/// it, as its values are not seen outside.
fn regions<'c>(
    cx: &mut Cx<'c>,
    name: &str,
    operands: &[Value<'c>],
    results: &[Type<'c>],
    arguments: &[Vec<Type<'c>>],
    mut fill: impl FnMut(&mut Cx<'c>, usize, &[Value<'c>]) -> Result<()>,
) -> Result<Vec<Value<'c>>> {
    let b = Rc::clone(&cx.b);
    stashing(|stash| {
        b.op_with_regions(name, operands, results, &[], arguments, |_, region, arguments| {
            let known = cx.symbols.clone();
            let filled = fill(cx, region, arguments);
            cx.symbols = known;
            filled.map_err(&mut *stash)
        })
    })
}

fn terminate<'c>(cx: &Cx<'c>, walk: &Walk<'_>, node: &Node, name: &str, operands: &[Value<'c>]) -> Result<()> {
    walk.begin(cx, node);
    cx.b.op(name, operands, &[], &[])?;
    Ok(())
}

/// An `scf.for` from `first` to below `count`, whose body gives the next of the carried values.
fn for_each<'c>(
    cx: &mut Cx<'c>,
    walk: &mut Walk<'_>,
    node: &Node,
    (first, count): (i64, Value<'c>),
    (inits, types): (&[Value<'c>], &[Type<'c>]),
    mut body: impl FnMut(&mut Cx<'c>, &mut Walk<'_>, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> Result<Vec<Value<'c>>> {
    let bounds = [cx.b.const_index(first)?, count, cx.b.const_index(1)?];
    let operands: Vec<_> = bounds.into_iter().chain(inits.iter().copied()).collect();
    let arguments: Vec<_> = std::iter::once(cx.b.index_type()).chain(types.iter().copied()).collect();
    regions(cx, "scf.for", &operands, types, &[arguments], |cx, _, values| {
        let (at, carried) = values.split_first().ok_or_else(|| Error::Graph("a loop without an index".into()))?;
        let next = body(cx, walk, *at, carried)?;
        terminate(cx, walk, node, "scf.yield", &next)
    })
}

fn malformed(node: &Node, expected: &str) -> Error {
    Error::unsupported(format!("arguments that are not {expected}: {:?}", node.args))
}

/// An operand as a value of the graph.
fn operand<'c>(cx: &mut Cx<'c>, arg: &Arg) -> Result<Val<'c>> {
    match arg {
        Arg::Value(name) => Ok(cx.value(name)?.clone()),
        Arg::Null => Ok(Val::None),
        number => cx.number_arg(number).map(|(kind, value)| Val::Scalar(kind, value)),
    }
}

fn operands<'c>(cx: &mut Cx<'c>, args: &[Arg]) -> Result<Vec<Val<'c>>> {
    args.iter().map(|arg| operand(cx, arg)).collect()
}

/// A list of operands; a last one that is not there is empty.
fn list(arg: Option<&Arg>) -> Option<&[Arg]> {
    match arg {
        Some(Arg::List(items)) => Some(items),
        None | Some(Arg::Null) => Some(&[]),
        Some(_) => None,
    }
}

/// Whether a condition holds: a bool, a number, or the one element of a tensor.
fn holds<'c>(cx: &Cx<'c>, val: &Val<'c>) -> Result<Value<'c>> {
    match val {
        Val::Scalar(kind, value) => truth(cx, *kind, *value),
        Val::Tensor(t) => {
            let element = only_element(cx, t.value, t.rank())?;
            Scalars::new(&cx.b, t.dtype).truth(element)
        }
        Val::None => Err(Error::Graph("a condition without a value".into())),
    }
}

/// `cond(predicate, true, false, [operands])`: the outputs of the one graph or the other.
pub fn cond<'c>(cx: &mut Cx<'c>, walk: &mut Walk<'_>, node: &Node) -> Result<Vec<Val<'c>>> {
    let [predicate, Arg::Graph(yes), Arg::Graph(no), rest @ ..] = node.args.as_slice() else {
        return Err(malformed(node, "a predicate, two graphs and operands"));
    };
    let given = list(rest.first()).ok_or_else(|| malformed(node, "a predicate, two graphs and operands"))?;
    let predicate = operand(cx, predicate)?;
    let condition = holds(cx, &predicate)?;
    let given = operands(cx, given)?;
    let types = results(node);
    let result_types = types_of(cx, &types)?;
    let values = regions(cx, "scf.if", &[condition], &result_types, &[vec![], vec![]], |cx, region, _| {
        let graph = if region == 0 { yes } else { no };
        let outputs = walk.call(cx, graph, given.clone(), None)?;
        walk.begin(cx, node);
        let values = yielded(cx, outputs, &types)?;
        terminate(cx, walk, node, "scf.yield", &values)
    })?;
    spread(node, values)
}

/// `while_loop(condition, body, [carried], [additional])`: `carried = body(carried, additional)` as long as
/// `condition(carried, additional)` holds.
pub fn while_loop<'c>(cx: &mut Cx<'c>, walk: &mut Walk<'_>, node: &Node) -> Result<Vec<Val<'c>>> {
    let expected = "two graphs and two lists of operands";
    let [Arg::Graph(condition), Arg::Graph(body), Arg::List(carried), rest @ ..] = node.args.as_slice() else {
        return Err(malformed(node, expected));
    };
    let additional = list(rest.first()).ok_or_else(|| malformed(node, expected))?;
    let types = carried_types(walk.graph(body)?, carried.len())?;
    let types: Vec<&RecordType> = types.iter().collect();
    let (carried, additional) = (operands(cx, carried)?, operands(cx, additional)?);
    let mut inits = yielded(cx, carried, &types)?;
    let mut loop_types = types_of(cx, &types)?;
    // Random numbers differ from round to round, so that rounds must be counted.
    let is_counted = walk.is_random(walk.graph(condition)?) || walk.is_random(walk.graph(body)?);
    if is_counted {
        inits.push(cx.b.const_index(0)?);
        loop_types.push(cx.b.index_type());
    }
    let arguments = [loop_types.clone(), loop_types.clone()];
    let values = regions(cx, "scf.while", &inits, &loop_types, &arguments, |cx, region, values| {
        let mut given = values.iter().zip(&types).map(|(v, ty)| as_val(ty, *v)).collect::<Result<Vec<_>>>()?;
        let round = values.last().copied().filter(|_| is_counted);
        given.extend(additional.iter().cloned());
        let outputs = walk.call(cx, if region == 0 { condition } else { body }, given, round)?;
        walk.begin(cx, node);
        if region == 1 {
            let mut next = yielded(cx, outputs, &types)?;
            if let Some(round) = round {
                next.push(cx.b.addi(round, cx.b.const_index(1)?)?);
            }
            return terminate(cx, walk, node, "scf.yield", &next);
        }
        let again = outputs.first().ok_or_else(|| Error::Graph("a condition without a value".into()))?;
        let again = holds(cx, again)?;
        let passed: Vec<_> = std::iter::once(again).chain(values.iter().copied()).collect();
        terminate(cx, walk, node, "scf.condition", &passed)
    })?;
    let outputs = values.into_iter().zip(&types).map(|(v, ty)| as_val(ty, v)).collect::<Result<Vec<_>>>()?;
    let found = yielded(cx, outputs, &results(node))?;
    spread(node, found)
}

/// Types of what a loop carries: those of its body's first inputs.
fn carried_types(body: &Graph, count: usize) -> Result<Vec<RecordType>> {
    let types: Vec<_> = body.inputs.iter().take(count).map(|input| input.ty.clone()).collect();
    if types.len() == count {
        return Ok(types);
    }
    Err(Error::Graph(format!("graph {} takes fewer inputs than the loop carries", body.id)))
}

/// `map_impl(body, [mapped], [others])`: row `i` of the results is what the body gives for row `i` of each mapped tensor.
pub fn map<'c>(cx: &mut Cx<'c>, walk: &mut Walk<'_>, node: &Node) -> Result<Vec<Val<'c>>> {
    let expected = "a graph, tensors to map over, and other operands";
    let [Arg::Graph(body), Arg::List(mapped), rest @ ..] = node.args.as_slice() else {
        return Err(malformed(node, expected));
    };
    let others = list(rest.first()).ok_or_else(|| malformed(node, expected))?;
    let rows = Rows { body, carried: &[], mapped, others };
    rows.lower(cx, walk, node)
}

/// `scan(combine, [init], [xs], [additional])`: `(carried, ys[i]) = combine(carried, xs[i], additional)` for each row
/// `i`; gives what is carried at the end, then all `ys`.
pub fn scan<'c>(cx: &mut Cx<'c>, walk: &mut Walk<'_>, node: &Node) -> Result<Vec<Val<'c>>> {
    let expected = "a graph, what is carried, tensors to scan forward over their first axis, and other operands";
    let [Arg::Graph(body), rest @ ..] = node.args.as_slice() else { return Err(malformed(node, expected)) };
    // Exports of PyTorch 2.5 and 2.6 state the axis and the direction.
    let is_forward = |arg: &&Arg| !matches!(arg, Arg::Int(0) | Arg::Bool(false));
    let lists: Option<Vec<&[Arg]>> = rest.iter().filter(is_forward).map(|arg| list(Some(arg))).collect();
    match lists.as_deref() {
        Some([carried, mapped]) => Rows { body, carried, mapped, others: &[] }.lower(cx, walk, node),
        Some([carried, mapped, others]) => Rows { body, carried, mapped, others }.lower(cx, walk, node),
        _ => Err(malformed(node, expected)),
    }
}

/// A graph applied to the rows of tensors.
struct Rows<'n> {
    body: &'n str,
    carried: &'n [Arg],
    mapped: &'n [Arg],
    others: &'n [Arg],
}

impl Rows<'_> {
    fn lower<'c>(&self, cx: &mut Cx<'c>, walk: &mut Walk<'_>, node: &Node) -> Result<Vec<Val<'c>>> {
        let graph = walk.graph(self.body)?;
        let types = results(node);
        let row_types = types.get(self.carried.len()..);
        let row_types = row_types.ok_or_else(|| Error::Graph("a scan with fewer results than it carries".into()))?;
        let carried = operands(cx, self.carried)?;
        let mapped = tensors(cx, self.mapped)?;
        let others = operands(cx, self.others)?;
        let first = mapped.first().ok_or_else(|| Error::unsupported("no tensor to take rows of"))?;
        let count = first.shape.first().cloned().unwrap_or(Dim::Int(0));
        let count = cx.size_value(&count)?;
        let inputs = carried_types(graph, carried.len())?;
        let inputs: Vec<&RecordType> = inputs.iter().collect();
        let mut inits = yielded(cx, carried, &inputs)?;
        for ty in row_types {
            let RecordType::Tensor(t) = ty else { return Err(Error::Graph(format!("rows of {ty:?}"))) };
            inits.push(cx.empty(t.dtype, &t.shape)?);
        }
        let mut loop_types = types_of(cx, &inputs)?;
        loop_types.extend(types_of(cx, row_types)?);
        let row_types: Vec<RecordType> = row_types.iter().filter_map(|ty| row_type(ty)).collect();
        let values = for_each(cx, walk, node, (0, count), (&inits, &loop_types), |cx, walk, at, values| {
            let (carried, stacked) = values.split_at(inputs.len());
            let mut given = carried.iter().zip(&inputs).map(|(v, ty)| as_val(ty, *v)).collect::<Result<Vec<_>>>()?;
            for t in &mapped {
                given.push(row_of(cx, t, at)?);
            }
            given.extend(others.iter().cloned());
            let mut outputs = walk.call(cx, self.body, given, Some(at))?;
            walk.begin(cx, node);
            if outputs.len() < inputs.len() {
                return Err(Error::Graph("a scan whose graph gives fewer values than it carries".into()));
            }
            let rows = outputs.split_off(inputs.len());
            let mut next = yielded(cx, outputs, &inputs)?;
            let rows = yielded(cx, rows, &row_types.iter().collect::<Vec<_>>())?;
            for (row, whole) in rows.into_iter().zip(stacked) {
                next.push(cx.b.insert_row(row, *whole, at)?);
            }
            Ok(next)
        })?;
        let all: Vec<RecordType> =
            inputs.iter().copied().chain(types.iter().skip(inputs.len()).copied()).cloned().collect();
        let outputs = values.into_iter().zip(&all).map(|(v, ty)| as_val(ty, v)).collect::<Result<Vec<_>>>()?;
        let found = yielded(cx, outputs, &types)?;
        spread(node, found)
    }
}

fn tensors<'c>(cx: &mut Cx<'c>, args: &[Arg]) -> Result<Vec<Tensor<'c>>> {
    let tensor = |val| match val {
        Val::Tensor(t) => Ok(t),
        other => Err(Error::Graph(format!("{other:?} has no rows"))),
    };
    operands(cx, args)?.into_iter().map(tensor).collect()
}

/// Row `at` of a tensor.
fn row_of<'c>(cx: &Cx<'c>, t: &Tensor<'c>, at: Value<'c>) -> Result<Val<'c>> {
    let shape = t.shape.get(1..).unwrap_or_default().to_vec();
    Ok(Val::Tensor(Tensor { value: cx.b.extract_row(t.value, at)?, dtype: t.dtype, shape }))
}

/// The type of one row of a tensor.
fn row_type(ty: &RecordType) -> Option<RecordType> {
    let mut t = ty.as_tensor()?.clone();
    if !t.shape.is_empty() {
        t.shape.remove(0);
    }
    Some(RecordType::Tensor(t))
}

/// `associative_scan(combine, [xs], [additional])`: `ys[0] = xs[0]`, `ys[i] = combine(ys[i-1], xs[i], additional)`. The
/// results begin as the tensors scanned, so that no row needs another rule.
pub fn associative_scan<'c>(cx: &mut Cx<'c>, walk: &mut Walk<'_>, node: &Node) -> Result<Vec<Val<'c>>> {
    let expected = "a graph, tensors to scan, and other operands";
    let [Arg::Graph(body), Arg::List(scanned), rest @ ..] = node.args.as_slice() else {
        return Err(malformed(node, expected));
    };
    let others = list(rest.first()).ok_or_else(|| malformed(node, expected))?;
    let (scanned, others) = (tensors(cx, scanned)?, operands(cx, others)?);
    let first = scanned.first().ok_or_else(|| malformed(node, expected))?;
    let count = first.shape.first().cloned().unwrap_or(Dim::Int(0));
    let count = cx.size_value(&count)?;
    let types = results(node);
    let inits = yielded(cx, scanned.iter().cloned().map(Val::Tensor).collect(), &types)?;
    let loop_types = types_of(cx, &types)?;
    let row_types: Vec<RecordType> = types.iter().filter_map(|ty| row_type(ty)).collect();
    let row_types: Vec<&RecordType> = row_types.iter().collect();
    let values = for_each(cx, walk, node, (1, count), (&inits, &loop_types), |cx, walk, at, values| {
        let before = cx.b.subi(at, cx.b.const_index(1)?)?;
        let mut given = Vec::with_capacity(2 * values.len() + others.len());
        for place in [before, at] {
            for (value, ty) in values.iter().zip(&types) {
                let Val::Tensor(whole) = as_val(ty, *value)? else { return Err(malformed(node, expected)) };
                given.push(row_of(cx, &whole, place)?);
            }
        }
        given.extend(others.iter().cloned());
        let outputs = walk.call(cx, body, given, Some(at))?;
        walk.begin(cx, node);
        let rows = yielded(cx, outputs, &row_types)?;
        rows.into_iter().zip(values).map(|(row, whole)| Ok(cx.b.insert_row(row, *whole, at)?)).collect()
    })?;
    spread(node, values)
}

/// `invoke_subgraph(body, name, operands…)`: the outputs of the graph, which several calls may share.
pub fn invoke_subgraph<'c>(cx: &mut Cx<'c>, walk: &mut Walk<'_>, node: &Node) -> Result<Vec<Val<'c>>> {
    let [Arg::Graph(body), Arg::Str(_), given @ ..] = node.args.as_slice() else {
        return Err(malformed(node, "a graph, its name and operands"));
    };
    let given = operands(cx, given)?;
    let outputs = walk.call(cx, body, given, None)?;
    walk.begin(cx, node);
    let values = yielded(cx, outputs, &results(node))?;
    spread(node, values)
}
