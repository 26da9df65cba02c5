//! Parameters of several tensors (torchao's quantized weights): each inner tensor that the graph reads becomes an input.
//!
//! `export.access_subclass_inner_tensor(x, "qdata")` is the tensor `FQN.qdata`, which is a `tensor` record. The outer
//! parameter has no bytes of its own and goes where nothing else reads it.

use m2m_graph::Graph;
use m2m_record::{Arg, Elimination, Input, Node, Tensor};
use std::collections::{HashMap, HashSet};

const ACCESS: &str = "export.access_subclass_inner_tensor.default";

/// A graph that reads no inner tensors.
pub(crate) struct Unwrapped {
    pub graph: Graph,
    /// The reads that went.
    pub eliminations: Vec<Elimination>,
    /// The outer input of each new one.
    pub origins: HashMap<String, String>,
}

/// Makes inputs of the inner tensors that `tensors` has; `None` where nothing reads any.
pub(crate) fn unwrap<'t>(graph: &Graph, tensor: &dyn Fn(&str) -> Option<&'t Tensor>) -> Option<Unwrapped> {
    if !graph.nodes.iter().any(|n| n.op == ACCESS) {
        return None;
    }
    let mut paths: HashMap<String, (String, String)> = HashMap::new();
    for input in &graph.inputs {
        if let Some(target) = &input.target {
            paths.insert(input.value.clone(), (input.value.clone(), target.clone()));
        }
    }
    let (mut eliminations, mut origins) = (Vec::new(), HashMap::new());
    let mut made: HashMap<String, Vec<Input>> = HashMap::new();
    let mut nodes = Vec::new();
    let read: HashSet<&str> = read_inside(graph);
    for node in &graph.nodes {
        let Some((outer, path, value)) = access(node, &paths) else {
            nodes.push(node.clone());
            continue;
        };
        let owner = graph.inputs.iter().find(|i| i.value == outer);
        let found = tensor(&path).zip(owner).zip(node.results.first());
        match found {
            Some(((tensor, owner), result)) => {
                let input = Input {
                    value: value.clone(),
                    target: Some(path.clone()),
                    ty: result.ty.clone(),
                    data: Some(tensor.data.clone()),
                    ..owner.clone()
                };
                made.entry(outer.clone()).or_default().push(input);
                origins.insert(value.clone(), outer.clone());
                let proof = format!("its result is the tensor {path}, an input");
                eliminations.push(Elimination { node: node.node.clone(), reason: "inner tensor".into(), proof });
            }
            // A subclass inside of another one: its own tensors are read next.
            None if read.contains(value.as_str()) => {
                let proof = format!("{path} is read through its inner tensors only");
                eliminations.push(Elimination { node: node.node.clone(), reason: "inner tensor".into(), proof });
            }
            None => nodes.push(node.clone()),
        }
        paths.insert(value, (outer, path));
    }
    let mut used: HashSet<String> = graph.outputs.iter().filter_map(|o| o.value.clone()).collect();
    for arg in nodes.iter().flat_map(|n| n.args.iter().chain(n.kwargs.values())) {
        arg.for_each_value(&mut |name| {
            used.insert(name.to_owned());
        });
    }
    let mut inputs = Vec::new();
    for input in &graph.inputs {
        let inner = made.remove(&input.value);
        if inner.is_none() || used.contains(&input.value) {
            inputs.push(input.clone());
        }
        inputs.extend(inner.unwrap_or_default());
    }
    Some(Unwrapped { graph: Graph { inputs, nodes, ..graph.clone() }, eliminations, origins })
}

/// The values that are read for their inner tensors.
fn read_inside(graph: &Graph) -> HashSet<&str> {
    let accesses = graph.nodes.iter().filter(|n| n.op == ACCESS);
    accesses.filter_map(|n| if let Some(Arg::Value(v)) = n.args.first() { Some(v.as_str()) } else { None }).collect()
}

/// The outer input of an access, the path of what it reads, and its result.
fn access(node: &Node, paths: &HashMap<String, (String, String)>) -> Option<(String, String, String)> {
    let [Arg::Value(from), Arg::Str(name)] = node.args.as_slice() else { return None };
    let (outer, path) = paths.get(from).filter(|_| node.op == ACCESS)?;
    let value = node.results.first()?.value.clone()?;
    Some((outer.clone(), format!("{path}.{name}"), value))
}
