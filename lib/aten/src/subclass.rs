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

#[cfg(test)]
mod tests {
    use super::*;
    use m2m_record::{DType, Data, Dim, InputRole, OutputItem, OutputRole, TensorType, Type, TypedValue};

    fn ty(dtype: DType, size: i64) -> Type {
        TensorType::new(dtype, vec![Dim::Int(size)]).into()
    }

    fn node(n: usize, op: &str, args: Vec<Arg>, result: &str, ty: Type) -> Node {
        let (graph, stage) = ("original".to_owned(), "original".to_owned());
        let results = vec![TypedValue { value: Some(result.into()), ty }];
        Node { graph, stage, node: format!("original:{n}"), op: op.into(), args, results, ..Node::default() }
    }

    fn parameter() -> Input {
        Input {
            graph: "original".into(),
            value: "w".into(),
            role: InputRole::Parameter,
            target: Some("fc.weight".into()),
            ty: ty(DType::F32, 4),
            data: None,
            literal: None,
            persistent: None,
            origins: vec![],
        }
    }

    /// `w.outer.qdata`, a tensor inside of one that is inside of a parameter, with its sign changed.
    fn nested() -> Graph {
        let inside = |from: &str, name: &str| vec![Arg::value(from), Arg::from(name)];
        Graph {
            id: "original".into(),
            stage: "original".into(),
            inputs: vec![parameter()],
            nodes: vec![
                node(0, ACCESS, inside("w", "outer"), "a", ty(DType::F32, 4)),
                node(1, ACCESS, inside("a", "qdata"), "q", ty(DType::I8, 4)),
                node(2, "aten.neg.default", vec![Arg::value("q")], "y", ty(DType::I8, 4)),
            ],
            outputs: vec![OutputItem {
                value: Some("y".into()),
                literal: None,
                role: OutputRole::UserOutput,
                target: None,
            }],
            ..Graph::default()
        }
    }

    #[test]
    fn inner_tensors_take_the_place_of_their_parameter() {
        let data = Data::Tensor { file: "f0".into(), tensor: "bytes".into() };
        let name = "fc.weight.outer.qdata".to_owned();
        let inner = Tensor { name, ty: ty(DType::I8, 4), data: data.clone(), sha256: None, origin: None };
        let root = nested();
        let found = unwrap(&root, &|name| (name == inner.name).then_some(&inner)).unwrap();
        let [input] = found.graph.inputs.as_slice() else { panic!("{:?}", found.graph.inputs) };
        assert_eq!((input.value.as_str(), input.target.as_deref()), ("q", Some("fc.weight.outer.qdata")));
        assert_eq!((&input.ty, &input.data), (&ty(DType::I8, 4), &Some(data)));
        assert_eq!(found.graph.nodes.len(), 1);
        assert_eq!(found.eliminations.len(), 2);
        assert_eq!(found.origins.get("q").map(String::as_str), Some("w"));
        let tensors = [(inner.name.clone(), inner)].into_iter().collect();
        let program = m2m_graph::Program { root, tensors, ..m2m_graph::Program::default() };
        let prepared = crate::prepare(&program, &|op| op == "aten.neg.default").unwrap();
        assert_eq!(prepared.graph.inputs[0].origins, ["w"]);
    }

    #[test]
    fn what_no_record_has_stays_as_it_is() {
        let root = nested();
        let found = unwrap(&root, &|_| None).unwrap();
        assert_eq!(found.graph.inputs, root.inputs);
        assert!(found.graph.nodes.iter().any(|n| n.op == ACCESS));
    }
}
