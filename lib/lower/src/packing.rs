//! Matrices of 4-bit weights that a graph has packed already: their bytes do not tell for which machine.

use m2m_aten::{PACKED_ALIKE, PackedFor};
use m2m_graph::{Graph, Program};
use m2m_record::{Arg, Diagnostic, Node, Severity, Type};
use std::collections::{HashMap, HashSet};

/// Packs a matrix; its result goes with whatever layout both operators are lowered for.
const PACK: &str = "aten._convert_weight_to_int4pack_for_cpu.default";

/// Multiplies by a packed matrix.
const MULTIPLY: &str = "aten._weight_int4pack_mm_for_cpu.default";

/// A warning for each product with a matrix whose layout is taken for granted, unless it is stated.
pub fn warnings(program: &Program, stated: Option<PackedFor>) -> Vec<Diagnostic> {
    if stated.is_some() {
        return Vec::new();
    }
    program.nested.values().chain([&program.root]).flat_map(of_graph).collect()
}

fn of_graph(graph: &Graph) -> Vec<Diagnostic> {
    if !graph.nodes.iter().any(|node| node.op == MULTIPLY) {
        return Vec::new();
    }
    let types = graph.types();
    let packs = graph.nodes.iter().filter(|node| node.op == PACK);
    let packed: HashSet<&str> = packs.flat_map(|node| &node.results).filter_map(|r| r.value.as_deref()).collect();
    let is_assumed = |node: &&Node| {
        let matrix = match node.args.get(1).or_else(|| node.kwargs.get("mat2")) {
            Some(Arg::Value(name)) => name.as_str(),
            _ => return false,
        };
        node.op == MULTIPLY && !packed.contains(matrix) && !is_alike(&types, matrix)
    };
    graph.nodes.iter().filter(is_assumed).map(warning).collect()
}

/// Whether a packed matrix has so few rows that every machine packs it alike.
fn is_alike(types: &HashMap<&str, &Type>, matrix: &str) -> bool {
    let rows = types.get(matrix).and_then(|ty| ty.as_tensor()).and_then(|t| t.shape.first()?.as_int());
    rows.is_some_and(|rows| rows <= PACKED_ALIKE)
}

fn warning(node: &Node) -> Diagnostic {
    let name = PackedFor::default().name();
    Diagnostic {
        severity: Severity::Warning,
        code: "packing-assumed".into(),
        node: Some(node.node.clone()),
        message: format!("{}: takes its matrix of 4-bit weights as packed on a machine with {name}", node.op),
        hint: Some("state the machine that packed it with --packed-for".into()),
    }
}
