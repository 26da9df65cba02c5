//! The engine torch: executes the current graph of a stream.

use crate::args::Args;
use crate::execute::Scalar;
use crate::golden::Named;
use crate::inputs::Inputs;
use crate::plan::Story;
use m2m_graph::Program;
use m2m_torch::{Engine, Error, Given, Session, Value};
use std::path::Path;

/// Runs the graph; its outputs, and the guards that could not be read.
pub fn execute(
    args: &Args,
    graphs: &Program,
    story: &Story,
    inputs: &Inputs,
    root: Option<&Path>,
) -> Result<(Vec<Named>, Vec<String>), Vec<Error>> {
    let engine = Engine::start(args.threads).map_err(|error| vec![error])?;
    if let Some(seed) = args.random {
        engine.seed(seed).map_err(|error| vec![error])?;
    }
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
    let outcome = m2m_torch::run(&engine, &session, &mut |_, _, _| Ok(()))?;
    let named = outcome.outputs.into_iter();
    let named =
        named.map(|output| Named { key: output.key, dtype: output.dtype, dims: output.shape, data: output.bytes });
    Ok((named.collect(), outcome.unread_guards))
}
