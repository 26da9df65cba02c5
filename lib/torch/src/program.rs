//! Executes the current graph of a stream.
//!
//! Views and writes in place need no care here: libtorch executes them, so aliasing is what it is in PyTorch. A value is
//! dropped after its last use.

use crate::body::{Action, Body, Source, Template, placed};
use crate::defined::Given;
use crate::engine::{Engine, Scratch};
use crate::error::Error;
use crate::ffi::{RawValue, Tag};
use crate::symbolic;
use crate::symbols::Symbols;
use crate::value::Value;
use m2m_graph::Graph;
use m2m_record::Node;
use m2m_tensor::expr::Value as Number;
use std::collections::HashMap;

/// Sees the results of every node, nested graphs included: the graph, the node, its results.
pub type Watch<'w> = dyn FnMut(&Graph, &Node, &[Value]) -> Result<(), Error> + 'w;

/// A program, ready for execution.
pub struct Program<'g> {
    engine: &'g Engine,
    root: Body<'g>,
    nested: HashMap<&'g str, Body<'g>>,
    inner: HashMap<String, Value>,
}

/// What an execution gave.
pub struct Outcome {
    /// In the order of the root graph's outputs.
    pub outputs: Vec<Value>,
    /// Guards that could not be read, as they are worded.
    pub unread_guards: Vec<String>,
}

impl<'g> Program<'g> {
    /// Makes a program ready, or says of every node what stands in the way. `inner` are the tensors of tensor
    /// subclasses, by `TARGET.ATTRIBUTE`.
    pub fn new(
        engine: &'g Engine,
        graphs: &'g m2m_graph::Program,
        inner: HashMap<String, Value>,
    ) -> Result<Program<'g>, Vec<Error>> {
        let (mut nested, mut errors) = (HashMap::new(), Vec::new());
        for (id, graph) in &graphs.nested {
            match Body::new(engine, graph) {
                Ok(body) => drop(nested.insert(id.as_str(), body)),
                Err(found) => errors.extend(found),
            }
        }
        match Body::new(engine, &graphs.root) {
            Ok(root) if errors.is_empty() => Ok(Program { engine, root, nested, inner }),
            Ok(_) => Err(errors),
            Err(found) => Err(errors.into_iter().chain(found).collect()),
        }
    }

    /// The engine that executes it.
    pub fn engine(&self) -> &'g Engine {
        self.engine
    }

    /// Executes the root graph with a value for each of its inputs. Inputs are checked against their types, ranges and
    /// guards first.
    pub fn run(&self, inputs: Vec<Value>, watch: &mut Watch<'_>) -> Result<Outcome, Error> {
        let graph = self.root.graph;
        let symbols = bound(graph, &inputs, &Symbols::default())?;
        for (input, value) in graph.inputs.iter().zip(&inputs) {
            symbols.check_type(&input.ty, value).map_err(|error| {
                let name = input.target.clone().unwrap_or_else(|| input.value.clone());
                Error::Input { name, message: error.to_string() }
            })?;
        }
        symbols.check_ranges(graph)?;
        let unread_guards = symbols.check_guards(graph)?;
        Ok(Outcome { outputs: self.execute(&self.root, inputs, symbols, watch)?, unread_guards })
    }

    /// Executes a nested graph.
    pub fn run_nested(
        &self,
        id: &str,
        inputs: Vec<Value>,
        outer: &Symbols,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Value>, Error> {
        let body = self.nested.get(id).ok_or_else(|| Error::value(format!("there is no graph {id:?}")))?;
        let symbols = bound(body.graph, &inputs, outer)?;
        self.execute(body, inputs, symbols, watch)
    }

    fn execute(
        &self,
        body: &Body<'g>,
        inputs: Vec<Value>,
        mut symbols: Symbols,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Value>, Error> {
        let expected = body.graph.inputs.len();
        if inputs.len() != expected {
            return Err(Error::value(format!(
                "graph {:?} has {expected} inputs; {} are given",
                body.graph.id,
                inputs.len()
            )));
        }
        let mut values = inputs;
        values.resize(body.slots, Value::None);
        // Both keep their memory from node to node.
        let (mut scratch, mut results) = (Scratch::default(), Vec::new());
        for step in &body.steps {
            let Some(node) = body.graph.nodes.get(step.node) else { continue };
            let place = |error| placed(node, error);
            self.act(&step.action, &values, &symbols, &mut scratch, watch, &mut results).map_err(place)?;
            flatten(&mut results, step.results.len());
            if results.len() != step.results.len() {
                let message = format!("{} results; the graph has {}", results.len(), step.results.len());
                return Err(place(Error::Value(message)));
            }
            watch(body.graph, node, &results).map_err(place)?;
            for &k in &step.binds {
                if let (Some(stated), Some(value)) = (node.results.get(k), results.get(k)) {
                    symbols.bind_type(&stated.ty, value).map_err(place)?;
                    symbols.check_ranges(body.graph).map_err(place)?;
                }
            }
            for (slot, value) in step.results.iter().zip(results.drain(..)) {
                if let Some(place) = slot.and_then(|slot| values.get_mut(slot)) {
                    *place = value;
                }
            }
            for &slot in &step.frees {
                if let Some(place) = values.get_mut(slot) {
                    *place = Value::None;
                }
            }
        }
        let take = |source: &Source| match source {
            Source::Slot(slot) => values.get(*slot).cloned().unwrap_or(Value::None),
            Source::Literal(literal) => literal.clone(),
        };
        Ok(body.outputs.iter().map(take).collect())
    }

    /// Appends the results of an action.
    fn act(
        &self,
        action: &Action,
        values: &[Value],
        symbols: &Symbols,
        scratch: &mut Scratch,
        watch: &mut Watch<'_>,
        results: &mut Vec<Value>,
    ) -> Result<(), Error> {
        let all =
            |args: &[Template]| args.iter().map(|arg| filled(arg, values, symbols)).collect::<Result<Vec<_>, _>>();
        match action {
            Action::Call(operator, args) => {
                return scratch.call(operator, results, |scratch, raws| {
                    for arg in args {
                        raws.push(raw(arg, values, symbols, scratch)?);
                    }
                    Ok(())
                });
            }
            Action::Symbolic(op, args) => results.push(symbolic::apply(op, &all(args)?)?),
            Action::Defined(definition, args) => {
                let given = Given { parameters: definition.parameters, values: &all(args)? };
                results.extend((definition.compute)(self.engine, &given)?);
            }
            Action::Region(region, args) => results.extend(region.run(self, all(args)?, symbols, watch)?),
            Action::Functional(call) => {
                results.extend(call.run(self.engine, &mut |arg| filled(arg, values, symbols))?);
            }
            Action::Effect { action, is_void } => {
                results.push(Value::None);
                self.act(action, values, symbols, scratch, watch, results)?;
                if *is_void {
                    results.push(Value::None);
                }
            }
            Action::Inner(name) => {
                let value = self.inner.get(name);
                results.push(value.cloned().ok_or_else(|| Error::value(format!("the stream has no tensor {name:?}")))?);
            }
        }
        Ok(())
    }
}

/// Symbols of a graph's inputs, beside those of the graph that calls it.
fn bound(graph: &Graph, inputs: &[Value], outer: &Symbols) -> Result<Symbols, Error> {
    let mut symbols = outer.clone();
    // Dimensions that are symbols alone come first, so that expressions over them can be checked or solved.
    for _ in 0..2 {
        for (input, value) in graph.inputs.iter().zip(inputs) {
            symbols.bind_type(&input.ty, value)?;
        }
    }
    Ok(symbols)
}

/// Opens lists among results, unless there are as many as expected without; absent ones stay.
fn flatten(results: &mut Vec<Value>, expected: usize) {
    if results.len() == expected && !results.iter().any(|result| matches!(result, Value::List(_))) {
        return;
    }
    for result in std::mem::take(results) {
        match result {
            Value::List(items) => results.extend(items),
            other => results.push(other),
        }
    }
}

fn scalar(value: Number) -> Value {
    match value {
        Number::Int(n) => Value::Int(n),
        Number::Float(x) => Value::Float(x),
        Number::Bool(b) => Value::Bool(b),
    }
}

/// An argument as a value.
fn filled(template: &Template, values: &[Value], symbols: &Symbols) -> Result<Value, Error> {
    Ok(match template {
        Template::Absent => Value::None,
        Template::Constant(value) => value.clone(),
        Template::Slot(slot) => values.get(*slot).cloned().unwrap_or(Value::None),
        Template::Symbolic(expr) => scalar(symbols.eval(expr)?),
        Template::List(items) => {
            Value::List(items.iter().map(|item| filled(item, values, symbols)).collect::<Result<_, _>>()?)
        }
    })
}

/// An argument as it is given to a call.
fn raw(template: &Template, values: &[Value], symbols: &Symbols, scratch: &mut Scratch) -> Result<RawValue, Error> {
    Ok(match template {
        Template::Absent => RawValue::of(Tag::Absent),
        Template::Constant(value) => scratch.value(value),
        Template::Slot(slot) => scratch.value(values.get(*slot).unwrap_or(&Value::None)),
        Template::Symbolic(expr) => scratch.value(&scalar(symbols.eval(expr)?)),
        Template::List(items) => {
            let items = items.iter().map(|item| raw(item, values, symbols, scratch)).collect::<Result<Vec<_>, _>>()?;
            scratch.list(items)
        }
    })
}
