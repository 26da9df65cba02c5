//! The first node of the current graph whose value differs between two executions.
//!
//! Values are compared by name, in the order of the nodes. Of a module they are what the operations gave that its
//! `lowered` records name for a node, where that is one tensor.

use crate::args::Args;
use crate::compare::{Tolerance, Verdict, compare};
use crate::golden::Named;
use crate::outputs::{Outputs, Wanted};
use crate::plan::Story;
use crate::smallest;
use crate::tensors::TensorFile;
use m2m_cli::{Content, Failure, Message, Messages, Status};
use m2m_graph::{Graph, Program};
use m2m_record::{DType, Node};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

/// What the module must give besides its outputs: the value of every node with one result that operations compute.
pub fn wanted(graphs: &Program, story: &Story) -> Vec<Wanted> {
    let by_node: HashMap<&str, &Node> = graphs.root.nodes.iter().map(|node| (node.node.as_str(), node)).collect();
    let range = |lowered: &m2m_record::Lowered| {
        let [result] = by_node.get(lowered.node.as_str())?.results.as_slice() else { return None };
        let ops = lowered.ops.as_ref()?;
        let (first, last) = (usize::try_from(*ops.first()?).ok()?, usize::try_from(*ops.last()?).ok()?);
        Some((result.value.clone()?, first..=last))
    };
    story.lowered.iter().filter_map(range).collect()
}

/// The reference's values.
pub enum References {
    /// Of another engine.
    Engine(Box<Outputs>),
    /// Of a file.
    File(TensorFile),
}

impl References {
    fn get(&self, graph: &Graph, name: &str) -> Option<Named> {
        match self {
            Self::Engine(outputs) => find(&outputs.values, graph, name),
            Self::File(file) => {
                let view = file.get(name)?;
                let (dtype, dims) = (view.dtype, view.dims());
                Some(Named { key: name.to_owned(), dtype, dims, data: view.bytes.to_vec() })
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Engine(outputs) => format!("engine {}", outputs.engine),
            Self::File(file) => file.path().display().to_string(),
        }
    }
}

/// A value by name, in the dtype that the graph states: MLIR's integers have no sign.
fn find(values: &[Named], graph: &Graph, name: &str) -> Option<Named> {
    let mut named = values.iter().find(|named| named.key == name)?.clone();
    let stated = graph.nodes.iter().flat_map(|node| &node.results).find(|result| result.value.as_deref() == Some(name));
    if let Some(tensor) = stated.and_then(|result| result.ty.as_tensor()) {
        let is_alike = |dtype: DType| dtype.is_integer() && dtype.bits() == tensor.dtype.bits();
        if is_alike(named.dtype) && is_alike(tensor.dtype) {
            named.dtype = tensor.dtype;
        }
    }
    Some(named)
}

/// Where two executions part.
struct Parting<'a> {
    node: &'a Node,
    value: &'a str,
    verdict: Verdict,
}

/// Finds the first node that differs, says so, and writes the stream of it.
pub fn bisect(
    args: &Args,
    file: &Path,
    (graphs, story): (&Program, &Story),
    own: &Outputs,
    references: &References,
    messages: &Messages,
) -> Result<Status, Failure> {
    let (parting, compared) = first_parting(args, &graphs.root, own, references);
    let mut output = args.output.open(Content::Text, &[])?;
    let Some(parting) = parting else {
        if compared == 0 {
            let message = format!("has no value that engine {} also has", own.engine);
            return Err(Failure::new(message).input(references.name()));
        }
        writeln!(output, "{compared} values compared, none differs").map_err(|error| output.error(error))?;
        output.finish()?;
        return Ok(Status::Done);
    };
    let operand = |name: &str| {
        let made = find(&own.values, &graphs.root, name).or_else(|| references.get(&graphs.root, name));
        made.or_else(|| given(graphs, story, own, name))
    };
    let reference = |name: &str| references.get(&graphs.root, name);
    let tensors = smallest::write(args, file, graphs, parting.node, &operand, &reference)?;
    let Parting { node, value, verdict } = parting;
    messages
        .send(&Message::error(format!("{value}: {}: {verdict}", node.op)).input(references.name()).node(&node.node));
    let written =
        format!("{} of {compared} values agree before {}; it is alone in {}", compared - 1, node.node, file.display());
    writeln!(output, "{written}, its tensors in {}", tensors.display()).map_err(|error| output.error(error))?;
    output.finish()?;
    Ok(Status::No)
}

/// The first value outside of its tolerance, and how many were compared up to it.
fn first_parting<'a>(
    args: &Args,
    graph: &'a Graph,
    own: &Outputs,
    references: &References,
) -> (Option<Parting<'a>>, usize) {
    let (rtol, atol) = args.tolerances();
    let mut compared = 0;
    for node in &graph.nodes {
        for value in node.results.iter().filter_map(|result| result.value.as_deref()) {
            let (Some(mine), Some(other)) = (find(&own.values, graph, value), references.get(graph, value)) else {
                continue;
            };
            // What operations gave that shape the value otherwise is not the value.
            let is_of_module = own.engine == "mlir" || matches!(references, References::Engine(_));
            if is_of_module && mine.dims != other.dims {
                continue;
            }
            compared += 1;
            let tolerance = Tolerance::of(mine.dtype).overridden(rtol, atol);
            let verdict = compare(mine.dtype, &mine.dims, &mine.data, &other.view(), tolerance);
            if !verdict.is_right() {
                return (Some(Parting { node, value, verdict }), compared);
            }
        }
    }
    (None, compared)
}

/// The value of an input that a user gave, or of state that the stream lacks.
fn given(graphs: &Program, story: &Story, own: &Outputs, name: &str) -> Option<Named> {
    let input = graphs.root.inputs.iter().find(|input| input.value == name)?;
    let key = story.leaf(name).or_else(|| input.target.clone()).unwrap_or_else(|| name.to_owned());
    if let Some(scalar) = own.inputs.scalars.get(&key) {
        return Some(scalar.named(name));
    }
    let view = own.inputs.get(&key).or_else(|| own.inputs.get(name))?;
    let (dtype, dims) = (view.dtype, view.dims());
    Some(Named { key: name.to_owned(), dtype, dims, data: view.bytes.to_vec() })
}
