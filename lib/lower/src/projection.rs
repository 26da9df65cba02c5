//! Casts of complex tensors to real dtypes, which drop the imaginary parts: a program that states one is told so.

use m2m_graph::{Graph, Program};
use m2m_record::{Arg, DType, Diagnostic, Node, Severity, Type};
use std::collections::HashMap;

/// Operators whose result is their first argument in another dtype.
const CASTS: &[&str] = &["aten.to.", "aten._to_copy.", "aten._cast_", "aten.type_as.", "prims.convert_element_type."];

/// A warning for each cast that drops imaginary parts, as PyTorch gives one when it runs.
pub fn warnings(program: &Program) -> Vec<Diagnostic> {
    let graphs = program.nested.values().chain([&program.root]);
    graphs.flat_map(of_graph).collect()
}

fn of_graph(graph: &Graph) -> Vec<Diagnostic> {
    let is_cast = |node: &&Node| CASTS.iter().any(|name| node.op.starts_with(name));
    if !graph.nodes.iter().any(|node| is_cast(&node)) {
        return Vec::new();
    }
    let types = graph.types();
    graph.nodes.iter().filter(is_cast).filter_map(|node| warning(node, &types)).collect()
}

fn warning(node: &Node, types: &HashMap<&str, &Type>) -> Option<Diagnostic> {
    let Some(Arg::Value(name)) = node.args.first() else { return None };
    let from = types.get(name.as_str())?.as_tensor()?.dtype;
    let to = node.results.first()?.ty.as_tensor()?.dtype;
    let is_dropping = from.is_complex() && !to.is_complex() && to != DType::Bool;
    is_dropping.then(|| Diagnostic {
        severity: Severity::Warning,
        code: "imaginary-part-dropped".into(),
        node: Some(node.node.clone()),
        message: format!("{}: casts {from} to {to}, of which the imaginary parts are dropped", node.op),
        hint: Some("take the real part first, if that is meant".into()),
    })
}
