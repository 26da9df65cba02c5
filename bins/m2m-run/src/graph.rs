//! The engine torch: executes the current graph of a stream.

use crate::args::Args;
use crate::execute::Scalar;
use crate::golden::Named;
use crate::inputs::Inputs;
use crate::plan::Story;
use m2m_graph::{Graph, Program};
use m2m_record::Node;
use m2m_torch::{Engine, Error, Given, Output, Session, Value};
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
}

/// Runs the graph.
pub fn execute(
    args: &Args,
    graphs: &Program,
    story: &Story,
    inputs: &Inputs,
    root: Option<&Path>,
) -> Result<Done, Vec<Error>> {
    let engine = Engine::start(args.threads).map_err(|error| vec![error])?;
    engine.seed(args.seed).map_err(|error| vec![error])?;
    let tensor = |key: &str| {
        let view = inputs.get(key);
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
    let mut trace = Trace::default();
    let outcome = m2m_torch::run(&engine, &session, &mut |graph, node, results| {
        if args.trace_values.is_some() { trace.take(graphs, graph, node, results) } else { Ok(()) }
    })?;
    let outputs = outcome.outputs.into_iter().map(named).collect();
    Ok(Done { outputs, values: trace.values, unread_guards: outcome.unread_guards })
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
    fn take(&mut self, graphs: &Program, graph: &Graph, node: &Node, results: &[&Value]) -> Result<(), Error> {
        for (result, value) in node.results.iter().zip(results) {
            let Some(name) = &result.value else { continue };
            let place = graph.id.strip_prefix(&graphs.root.id).unwrap_or_default().trim_start_matches('/');
            let name = if place.is_empty() { name.clone() } else { format!("{place}/{name}") };
            let count = self.seen.entry(name.clone()).or_default();
            *count += 1;
            let key = if *count > 1 { format!("{name}#{count}") } else { name };
            self.values.extend(Output::of(key, value)?.map(named));
        }
        Ok(())
    }
}
