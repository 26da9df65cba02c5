//! One graph of the file as the lines of a graph record: nested graphs first, then inputs, nodes and outputs.
//!
//! The file promises definitions before uses and unique names; both are checked, since everything downstream relies on them.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use m2m_record::{
    Arg, Graph as GraphRecord, Input, InputRole, Node as NodeRecord, Output, OutputItem, OutputRole, Return,
    ScalarKind, Symbol, Type, TypedValue, Writer,
};

use crate::notes::Notes;
use crate::schema::{Argument, Graph, GraphArgument, NamedArgument, Node, OptionalTensor};
use crate::types::{Exprs, Fault};
use crate::values::Values;
use crate::{Error, args, enums, names, schema, unread};

/// The stage of everything that is captured.
pub(crate) const STAGE: &str = "original";

/// What the root has beside its graph: symbols, guards, inputs and outputs with their roles.
pub(crate) trait Signature<'p> {
    /// The name of the function.
    fn entry(&self) -> String;
    /// Symbols with their bounds.
    fn symbols(&self, graph: &str) -> Vec<Symbol>;
    /// Writes guards once the inputs' types are known.
    fn guards(&self, inputs: &[Input], notes: &mut Notes) -> Vec<m2m_record::Guard>;
    /// Inputs in order.
    fn inputs(&self, values: &mut Values<'p>, notes: &mut Notes) -> Result<Vec<Input>, Error>;
    /// Outputs in order.
    fn outputs(&self, values: &Values<'p>) -> Result<Vec<OutputItem>, Error>;
}

/// Writes the graphs of a program.
pub(crate) struct Emitter<'p, 'w, W: Write> {
    pub exprs: &'p Exprs<'p>,
    pub out: &'w mut Writer<W>,
    pub notes: &'w mut Notes,
    pub next_node: u64,
    pub graph_ids: HashSet<String>,
}

/// An error about a place in a graph.
pub(crate) fn fault(graph: &str, place: impl Into<String>, fault: Fault) -> Error {
    let place = place.into();
    match fault {
        Fault::Other(detail) => Error::Graph { graph: graph.to_owned(), place, detail },
        Fault::Expr(text, source) => Error::Expr { graph: graph.to_owned(), value: place, text, source },
    }
}

impl<'p, W: Write> Emitter<'p, '_, W> {
    /// Writes the root graph and everything nested in it.
    pub fn root(&mut self, graph: &'p Graph<'p>, signature: &dyn Signature<'p>) -> Result<(), Error> {
        self.graph_ids.insert(STAGE.to_owned());
        let nested = self.nested(graph, STAGE)?;
        let mut values = Values::new(graph, self.exprs).map_err(|e| fault(STAGE, "values", Fault::Other(e)))?;
        let entry = Some(signature.entry());
        self.out.write(&GraphRecord { graph: STAGE.into(), stage: STAGE.into(), entry, parent: None })?;
        signature.symbols(STAGE).iter().try_for_each(|symbol| self.out.write(symbol))?;
        let inputs = signature.inputs(&mut values, self.notes)?;
        let guards = signature.guards(&inputs, self.notes);
        guards.iter().try_for_each(|guard| self.out.write(guard))?;
        inputs.iter().try_for_each(|input| self.out.write(input))?;
        self.nodes(graph, STAGE, &mut values, &nested)?;
        let outputs = signature.outputs(&values)?;
        self.close(graph, STAGE, values, outputs)
    }

    /// Writes the graphs that nodes of `graph` call, and returns their ids in order.
    fn nested(&mut self, graph: &'p Graph<'p>, id: &str) -> Result<Vec<String>, Error> {
        let mut found: Vec<&'p GraphArgument<'p>> = Vec::new();
        for input in graph.nodes.iter().flat_map(|node| &node.inputs) {
            args::nested(&input.arg, &mut |graph| found.push(graph));
        }
        let mut ids = Vec::with_capacity(found.len());
        for argument in found {
            let child = self.unique_id(&format!("{id}/{}", argument.name));
            self.notes.unknown("GraphArgument", &argument.unknown);
            self.child(&argument.graph, &child, id)?;
            ids.push(child);
        }
        Ok(ids)
    }

    /// Two calls of one body are written as two graphs, the second with `.2` behind its name.
    fn unique_id(&mut self, wanted: &str) -> String {
        let mut id = wanted.to_owned();
        let mut number = 2;
        while !self.graph_ids.insert(id.clone()) {
            id = format!("{wanted}.{number}");
            number += 1;
        }
        id
    }

    fn child(&mut self, graph: &'p Graph<'p>, id: &str, parent: &str) -> Result<(), Error> {
        let nested = self.nested(graph, id)?;
        let mut values = Values::new(graph, self.exprs).map_err(|e| fault(id, "values", Fault::Other(e)))?;
        self.out.write(&GraphRecord {
            graph: id.into(),
            stage: STAGE.into(),
            entry: None,
            parent: Some(parent.into()),
        })?;
        for name in self.exprs.symbols_of(graph) {
            let hint = self.exprs.hint(&name).cloned();
            self.out.write(&Symbol { graph: id.into(), name, min: None, max: None, hint })?;
        }
        for (i, argument) in graph.inputs.iter().enumerate() {
            let input = plain_input(&mut values, id, i, argument).map_err(|e| fault(id, format!("input {i}"), e))?;
            self.out.write(&input)?;
        }
        self.nodes(graph, id, &mut values, &nested)?;
        let mut outputs = Vec::with_capacity(graph.outputs.len());
        for (i, argument) in graph.outputs.iter().enumerate() {
            let item = output_item(&values, argument, OutputRole::UserOutput, None);
            outputs.push(item.map_err(|e| fault(id, format!("output {i}"), e))?);
        }
        self.close(graph, id, values, outputs)
    }

    fn close(
        &mut self,
        graph: &Graph<'_>,
        id: &str,
        values: Values<'_>,
        outputs: Vec<OutputItem>,
    ) -> Result<(), Error> {
        unread::graph(graph, self.notes);
        for (name, reason) in values.opaque {
            let message = format!("the value of {name} is known at run time only: {reason}");
            self.notes.tell(m2m_record::Severity::Note, "opaque-expression", None, message);
        }
        self.out.write(&Output { graph: id.to_owned(), outputs })?;
        Ok(self.out.seal()?)
    }

    fn nodes(
        &mut self,
        graph: &'p Graph<'p>,
        id: &str,
        values: &mut Values<'p>,
        nested: &[String],
    ) -> Result<(), Error> {
        let mut graphs = nested.iter().map(String::as_str);
        for (i, node) in graph.nodes.iter().enumerate() {
            let place = || format!("node {i} ({})", node.target);
            let mut record = self.node(id, node, &mut graphs).map_err(|e| fault(id, place(), Fault::Other(e)))?;
            check_uses(&record, values, graph, i).map_err(|e| fault(id, place(), e))?;
            let (results, returns) = results(node, values).map_err(|e| fault(id, place(), e))?;
            for name in results.iter().filter_map(|r| r.value.as_deref()) {
                values.define(name).map_err(|e| fault(id, place(), e))?;
            }
            (record.results, record.returns) = (results, returns);
            self.out.write(&record)?;
        }
        Ok(())
    }

    fn node<'g>(
        &mut self,
        id: &str,
        node: &Node<'_>,
        graphs: &mut impl Iterator<Item = &'g str>,
    ) -> Result<NodeRecord, String> {
        let (op, is_known) = names::operator(node.target.as_ref());
        if !is_known {
            self.notes.target(node.target.as_ref());
        }
        unread::node(node, self.notes);
        let mut record = NodeRecord {
            graph: id.to_owned(),
            stage: STAGE.to_owned(),
            node: format!("{STAGE}:{}", self.next_node),
            op: op.into_owned(),
            scope: node.metadata.nn_module_stack.as_ref().and_then(|stack| names::scope(stack.as_ref())),
            loc: node.metadata.stack_trace.as_ref().and_then(|trace| names::location(trace.as_ref())),
            ..NodeRecord::default()
        };
        self.next_node += 1;
        let order = positional_names(&record.op, node);
        let mut positional = true;
        for (k, input) in node.inputs.iter().enumerate() {
            let arg =
                args::convert(&input.arg, graphs).map_err(|e| format!("argument {:?}: {e}", input.name.as_ref()))?;
            positional = positional && is_positional(&order, k, input);
            if positional {
                record.args.push(arg);
            } else if record.kwargs.insert((&input.name).into(), arg).is_some() {
                return Err(format!("argument {:?} is given twice", input.name.as_ref()));
            }
        }
        Ok(record)
    }
}

/// The names of an operator's positional arguments, for files that do not tell them from keywords (up to torch 2.6).
/// Arguments are listed there in the schema's order, so a prefix of the list is positional.
fn positional_names(op: &str, node: &Node<'_>) -> Vec<&'static str> {
    if op.starts_with("sym.") {
        return vec!["a", "b"];
    }
    if node.inputs.iter().all(|input| input.kind.is_some()) {
        return Vec::new();
    }
    let schema = m2m_aten::schema::find(op);
    schema.iter().flat_map(|s| &s.args).filter(|arg| !arg.is_kwarg_only).map(|arg| arg.name).collect()
}

/// Whether an argument stands in the call's list. Without a schema an argument that has a name is given by name.
fn is_positional(order: &[&str], index: usize, input: &NamedArgument<'_>) -> bool {
    match input.kind {
        Some(enums::POSITIONAL) => true,
        Some(enums::KEYWORD) => false,
        _ => input.name.as_ref().is_empty() || order.get(index) == Some(&input.name.as_ref()),
    }
}

/// Every value that a node reads must have been defined by an input or an earlier node.
fn check_uses(record: &NodeRecord, values: &Values<'_>, graph: &Graph<'_>, at: usize) -> Result<(), Fault> {
    let mut missing: Option<String> = None;
    for arg in record.args.iter().chain(record.kwargs.values()) {
        arg.for_each_value(&mut |name| {
            if missing.is_none() && !values.is_defined(name) {
                missing = Some(name.to_owned());
            }
        });
    }
    missing.map_or(Ok(()), |name| Err(undefined(&name, graph, at)))
}

/// Says whether an undefined value comes later (the graph is out of order, or a cycle) or never.
fn undefined(name: &str, graph: &Graph<'_>, at: usize) -> Fault {
    let later = graph
        .nodes
        .iter()
        .enumerate()
        .skip(at)
        .find(|(_, node)| node.outputs.iter().any(|output| output_names(output).contains(&name)));
    Fault::Other(match later {
        Some((i, node)) if i == at => {
            format!("it uses its own result {name:?} ({}); the graph has a cycle", node.target)
        }
        Some((i, node)) => format!(
            "value {name:?} is used before node {i} ({}) defines it; nodes must stand in order, without cycles",
            node.target
        ),
        None => format!("value {name:?} is used but nothing defines it"),
    })
}

fn output_names<'n>(output: &'n Argument<'_>) -> Vec<&'n str> {
    match output {
        Argument::Tensor(t) => vec![t.name.as_ref()],
        Argument::Tensors(list) => list.iter().map(|t| t.name.as_ref()).collect(),
        Argument::SymInt(schema::SymIntArgument::Name(n)) => vec![n.as_ref()],
        Argument::SymFloat(schema::SymFloatArgument::Name(n)) => vec![n.as_ref()],
        Argument::SymBool(schema::SymBoolArgument::Name(n)) => vec![n.as_ref()],
        _ => vec![],
    }
}

/// Flat results, and how they group into the returns of the operator's schema.
fn results(node: &Node<'_>, values: &mut Values<'_>) -> Result<(Vec<TypedValue>, Option<Vec<Return>>), Fault> {
    let is_higher_order = node.target.as_ref().starts_with("torch.ops.higher_order.");
    let is_effect = node.target.as_ref() == "torch.ops.higher_order.with_effects";
    let (mut results, mut returns) = (Vec::new(), Vec::new());
    for output in &node.outputs {
        let start = results.len();
        // Its first result orders effects; the file gives it the type of the empty tensor that stands for it.
        if let (true, Argument::Tensor(token)) = (is_effect && start == 0, output) {
            results.push(TypedValue { value: Some(token.name.to_string()), ty: Type::Token });
            returns.push(Return::One);
            continue;
        }
        let is_list = result(output, values, &mut results)?;
        let count = results.len() - start;
        // Up to torch 2.6 a higher-order op returned its tuple as one list; its results are single ones since.
        match is_list && !is_higher_order {
            true => returns.push(Return::List(u32::try_from(count).unwrap_or(u32::MAX))),
            false => returns.extend(std::iter::repeat_n(Return::One, count)),
        }
    }
    let plain = returns.as_slice() == [Return::One];
    Ok((results, (!plain).then_some(returns)))
}

/// Appends what one return holds; true when it is a list.
fn result(output: &Argument<'_>, values: &mut Values<'_>, results: &mut Vec<TypedValue>) -> Result<bool, Fault> {
    use schema::{SymBoolArgument as B, SymFloatArgument as F, SymIntArgument as I};
    let mut push = |value: Option<&str>, ty| results.push(TypedValue { value: value.map(str::to_owned), ty });
    let literal = |kind, text: String| Type::Scalar { kind, expr: Some(text) };
    match output {
        Argument::Tensor(t) => push(Some(t.name.as_ref()), values.tensor(t.name.as_ref())?),
        Argument::None(_) | Argument::OptionalTensor(OptionalTensor::None(_)) => push(None, Type::None),
        Argument::OptionalTensor(OptionalTensor::Tensor(t)) => {
            push(Some(t.name.as_ref()), values.tensor(t.name.as_ref())?)
        }
        Argument::SymInt(I::Name(name)) => push(Some(name.as_ref()), values.int(name.as_ref())?),
        Argument::SymFloat(F::Name(name)) => push(Some(name.as_ref()), values.float(name.as_ref())?),
        Argument::SymBool(B::Name(name)) => push(Some(name.as_ref()), values.bool(name.as_ref())?),
        Argument::SymInt(I::Int(n)) | Argument::Int(n) => push(None, literal(ScalarKind::Int, n.to_string())),
        Argument::SymFloat(F::Float(x)) | Argument::Float(x) => {
            push(None, literal(ScalarKind::Float, format!("{:?}", x.0)))
        }
        Argument::SymBool(B::Bool(b)) | Argument::Bool(b) => push(None, literal(ScalarKind::Bool, b.to_string())),
        Argument::CustomObj(object) => push(Some(object.name.as_ref()), Type::Object((&object.class_fqn).into())),
        Argument::Tensors(list) => {
            for t in list {
                push(Some(t.name.as_ref()), values.tensor(t.name.as_ref())?);
            }
            return Ok(true);
        }
        Argument::OptionalTensors(list) => {
            for t in list {
                match t {
                    OptionalTensor::Tensor(t) => push(Some(t.name.as_ref()), values.tensor(t.name.as_ref())?),
                    OptionalTensor::None(_) => push(None, Type::None),
                }
            }
            return Ok(true);
        }
        Argument::SymInts(list) => {
            for n in list {
                match n {
                    I::Name(name) => push(Some(name.as_ref()), values.int(name.as_ref())?),
                    I::Int(n) => push(None, literal(ScalarKind::Int, n.to_string())),
                }
            }
            return Ok(true);
        }
        _ => return Err(Fault::Other("a result is of a kind that operators do not return".to_owned())),
    }
    Ok(false)
}

/// The value name and type of an argument that stands for an input, and its literal if it is a constant.
pub(crate) fn input_value(
    values: &mut Values<'_>,
    argument: &Argument<'_>,
    fallback: &str,
) -> Result<(String, Type, Option<Arg>), Fault> {
    use schema::{SymBoolArgument as B, SymFloatArgument as F, SymIntArgument as I};
    Ok(match argument {
        Argument::Tensor(t) => (t.name.to_string(), values.tensor(t.name.as_ref())?, None),
        Argument::SymInt(I::Name(name)) => (name.to_string(), values.int(name.as_ref())?, None),
        Argument::SymFloat(F::Name(name)) => (name.to_string(), values.float(name.as_ref())?, None),
        Argument::SymBool(B::Name(name)) => (name.to_string(), values.bool(name.as_ref())?, None),
        Argument::CustomObj(object) => (object.name.to_string(), Type::Object((&object.class_fqn).into()), None),
        other => {
            let literal = args::convert(other, &mut std::iter::empty()).map_err(Fault::Other)?;
            (fallback.to_owned(), literal_type(&literal)?, Some(literal))
        }
    })
}

/// The type of a constant.
pub(crate) fn literal_type(literal: &Arg) -> Result<Type, Fault> {
    Ok(match literal {
        Arg::Null => Type::None,
        Arg::Int(_) => Type::scalar(ScalarKind::Int),
        Arg::Float(_) => Type::scalar(ScalarKind::Float),
        Arg::Bool(_) => Type::scalar(ScalarKind::Bool),
        Arg::Str(_) => Type::scalar(ScalarKind::Str),
        Arg::Complex(..) => Type::scalar(ScalarKind::Complex),
        _ => return Err(Fault::Other("an input is neither a value nor a plain constant".to_owned())),
    })
}

fn plain_input(values: &mut Values<'_>, id: &str, i: usize, argument: &Argument<'_>) -> Result<Input, Fault> {
    let (value, ty, literal) = input_value(values, argument, &format!("constant_{i}"))?;
    values.define(&value)?;
    let role = if literal.is_some() { InputRole::ConstantInput } else { InputRole::UserInput };
    Ok(Input { literal, ..Input::new(id, value, role, ty) })
}

/// An output: a value that exists, or a constant.
pub(crate) fn output_item(
    values: &Values<'_>,
    argument: &Argument<'_>,
    role: OutputRole,
    target: Option<String>,
) -> Result<OutputItem, Fault> {
    let arg = args::convert(argument, &mut std::iter::empty()).map_err(Fault::Other)?;
    let (value, literal) = match arg {
        Arg::Value(name) | Arg::Object { name, .. } => (Some(name), None),
        literal => (None, Some(literal)),
    };
    if let Some(name) = &value
        && !values.is_defined(name)
    {
        return Err(Fault::Other(format!("value {name:?} is returned but nothing defines it")));
    }
    Ok(OutputItem { value, literal, role, target })
}

/// Types of inputs by value name, for guards.
pub(crate) fn types_by_name(inputs: &[Input]) -> HashMap<&str, &Type> {
    inputs.iter().map(|input| (input.value.as_str(), &input.ty)).collect()
}
