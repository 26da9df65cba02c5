//! Values between inputs and outputs: their places in a trace, the nodes that they come from, and what of a module may be
//! them.
//!
//! A value of the root graph is `VALUE`, one of a nested graph `GRAPH/VALUE`, and what a loop computes again `VALUE#2`, ….

use crate::execute::element_dtype;
use crate::golden::Named;
use m2m_graph::{Graph, Program};
use m2m_mlir::jit::Output;
use m2m_record::{Arg, DType, Dim, Lowered, Node, TensorType};
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

/// The place of a value when it is computed for the first time.
pub fn place(graphs: &Program, graph: &Graph, value: &str) -> String {
    let inner = graph.id.strip_prefix(&graphs.root.id).unwrap_or_default().trim_start_matches('/');
    if inner.is_empty() { value.to_owned() } else { format!("{inner}/{value}") }
}

/// Where a value comes from.
pub struct Origin<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The node.
    pub node: &'a Node,
}

/// Where values come from, by their places.
pub struct Origins<'a>(HashMap<String, Origin<'a>>);

impl<'a> Origins<'a> {
    /// Of all nodes.
    pub fn of(graphs: &'a Program) -> Self {
        let mut origins = HashMap::new();
        for graph in graphs.nested.values().chain([&graphs.root]) {
            for node in &graph.nodes {
                for result in &node.results {
                    let Some(value) = &result.value else { continue };
                    origins.insert(place(graphs, graph, value), Origin { graph, node });
                }
            }
        }
        Origins(origins)
    }

    /// Of a place, in whatever round of a loop.
    pub fn get(&self, place: &str) -> Option<&Origin<'a>> {
        self.0.get(place).or_else(|| self.0.get(place.rsplit_once('#')?.0))
    }
}

/// The ids of the graphs that a node calls, and of those that they call.
pub fn reached(graphs: &Program, node: &Node) -> HashSet<String> {
    let mut reached = HashSet::new();
    let mut open: Vec<&str> = called(node).collect();
    while let Some(id) = open.pop() {
        if let Some(graph) = graphs.nested.get(id)
            && reached.insert(id.to_owned())
        {
            open.extend(graph.nodes.iter().flat_map(called));
        }
    }
    reached
}

fn called(node: &Node) -> impl Iterator<Item = &str> {
    node.args.iter().filter_map(|arg| if let Arg::Graph(id) = arg { Some(id.as_str()) } else { None })
}

/// The tensors that a node of a module gives, and the ordinals of the operations that compute them.
pub struct Wanted {
    values: Vec<(String, TensorType)>,
    /// From the first to the last.
    pub operations: RangeInclusive<usize>,
}

impl Wanted {
    /// Of every node of the root graph that operations compute.
    pub fn of(graphs: &Program, lowered: &[Lowered]) -> Vec<Wanted> {
        let by_node: HashMap<&str, &Node> = graphs.root.nodes.iter().map(|node| (node.node.as_str(), node)).collect();
        let wanted = |lowered: &Lowered| {
            let (node, ops) = (by_node.get(lowered.node.as_str())?, lowered.ops.as_ref()?);
            let operations = usize::try_from(*ops.first()?).ok()?..=usize::try_from(*ops.last()?).ok()?;
            let tensor =
                |result: &m2m_record::TypedValue| Some((result.value.clone()?, result.ty.as_tensor()?.clone()));
            Some(Wanted { values: node.results.iter().filter_map(tensor).collect(), operations })
        };
        lowered.iter().filter_map(wanted).collect()
    }

    /// What may be each of the values: everything that has its type.
    pub fn named(&self, outputs: &[Output]) -> Vec<Named> {
        let mut named = Vec::new();
        for (key, ty) in &self.values {
            for output in outputs {
                let dtype = element_dtype(&output.element).map(|dtype| signed_as(dtype, ty.dtype));
                if dtype == Some(ty.dtype) && is_of_shape(&output.dims, &ty.shape) {
                    let (dims, data) = (output.dims.clone(), output.data.clone());
                    named.push(Named { key: key.clone(), dtype: ty.dtype, dims, data });
                }
            }
        }
        named
    }
}

/// An integer dtype with the sign that is stated: MLIR's integers have none.
fn signed_as(dtype: DType, stated: DType) -> DType {
    let is_alike = dtype.is_integer() && stated.is_integer() && dtype.bits() == stated.bits();
    if is_alike { stated } else { dtype }
}

fn is_of_shape(dims: &[i64], stated: &[Dim]) -> bool {
    dims.len() == stated.len() && dims.iter().zip(stated).all(|(dim, stated)| stated.as_int().is_none_or(|n| n == *dim))
}
