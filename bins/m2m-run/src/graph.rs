//! The engine torch: executes the current graph of a stream.

use crate::args::Args;
use crate::execute::Scalar;
use crate::golden::Named;
use crate::inputs::Inputs;
use crate::plan::Story;
use crate::timing::{Times, timed};
use crate::trace::place;
use m2m_graph::{Graph, Program};
use m2m_record::{DType, Input, Node};
use m2m_torch::{Engine, Error, Given, Outcome, Output, Session, Value, Watch};
use std::collections::HashMap;
use std::path::Path;

/// What a graph gave.
pub struct Done {
    /// Its outputs.
    pub outputs: Vec<Named>,
    /// Every intermediate, if they are asked for.
    pub values: Vec<Named>,
    /// The guards that could not be read.
    pub unread_guards: Vec<String>,
    /// What it took.
    pub times: Times,
}

/// Runs the graph once, or as often as `--repeat` says; keeps every intermediate if `keeps_values`.
pub fn execute(
    args: &Args,
    graphs: &Program,
    story: &Story,
    inputs: &Inputs,
    root: Option<&Path>,
    keeps_values: bool,
) -> Result<Done, Vec<Error>> {
    let (engine, prepare) = timed(|| Engine::start(args.threads));
    let engine = engine.map_err(|error| vec![error])?;
    let mut trace = Trace::default();
    let mut times = Times { prepare, nodes: Some(graphs.root.nodes.len()), ..Times::default() };
    let mut last = None;
    for _ in 0..args.repeat.unwrap_or(1) {
        trace = Trace::default();
        let outcome = run(args, &engine, graphs, story, inputs, root, &mut |graph, node, results| {
            if keeps_values { trace.take(graphs, graph, node, results) } else { Ok(()) }
        })?;
        times.runs.push(outcome.seconds);
        last = Some(outcome);
    }
    let (outputs, unread_guards) = last.map(|outcome| (outcome.outputs, outcome.unread_guards)).unwrap_or_default();
    let outputs = outputs.into_iter().map(named).collect();
    Ok(Done { outputs, values: trace.values, unread_guards, times })
}

/// Runs the graph once. `watch` sees every intermediate.
pub fn run(
    args: &Args,
    engine: &Engine,
    graphs: &Program,
    story: &Story,
    inputs: &Inputs,
    root: Option<&Path>,
    watch: &mut Watch<'_>,
) -> Result<Outcome, Vec<Error>> {
    engine.seed(args.seed).map_err(|error| vec![error])?;
    let complex: HashMap<String, DType> = graphs.root.inputs.iter().filter_map(|input| complex(story, input)).collect();
    let tensor = |key: &str| {
        let view = inputs.get(key).map(|view| match complex.get(key) {
            Some(dtype) => view.paired(*dtype),
            None => view,
        });
        view.map(|view| engine.copied(view.dtype, &view.dims(), view.bytes)).transpose()
    };
    let scalar = |key: &str| {
        inputs.scalars.get(key).map(|scalar| match *scalar {
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(n) => Value::Int(n),
            Scalar::Float(x) => Value::Float(x),
        })
    };
    let tensors: Vec<_> = story.tensors.values().cloned().collect();
    let given = Given { tensor: &tensor, scalar: &scalar };
    let session = Session { graphs, tensors: &tensors, root, key: &|value| story.leaf(value), given: &given };
    m2m_torch::run(engine, &session, watch)
}

/// The key and dtype of an input of complex numbers.
fn complex(story: &Story, input: &Input) -> Option<(String, DType)> {
    let dtype = input.ty.as_tensor()?.dtype;
    dtype.is_complex().then(|| (story.leaf(&input.value).unwrap_or_else(|| input.value.clone()), dtype))
}

fn named(output: Output) -> Named {
    Named { key: output.key, dtype: output.dtype, dims: output.shape, data: output.bytes }
}

/// Intermediates by name.
#[derive(Default)]
struct Trace {
    values: Vec<Named>,
    seen: HashMap<String, u64>,
}

impl Trace {
    fn take(&mut self, graphs: &Program, graph: &Graph, node: &Node, results: &[Value]) -> Result<(), Error> {
        for (result, value) in node.results.iter().zip(results) {
            let Some(name) = &result.value else { continue };
            let name = place(graphs, graph, name);
            let count = self.seen.entry(name.clone()).or_default();
            *count += 1;
            let key = if *count > 1 { format!("{name}#{count}") } else { name };
            self.values.extend(Output::of(key, value)?.map(named));
        }
        Ok(())
    }
}
