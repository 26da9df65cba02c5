//! Regions that compute what their graph computes are put in place of their call.
//!
//! `wrap_with_set_grad_enabled(flag, graph, operands…)`: the flag matters to gradients only. So does
//! `wrap_with_autocast(device, dtype, enabled, cache, graph, operands…)` where it is not enabled; where it is, it casts
//! operands that the graph does not show being cast, and stays for `prepare` to refuse. The nodes of the region keep their ids; the call itself has no successor, which `Inlined` tells.

use m2m_graph::{Graph, Program};
use m2m_record::{Arg, Elimination, Node};
use std::collections::{HashMap, HashSet};

/// The body and the operands of a region that may be inlined.
fn region_of(node: &Node) -> Option<(&str, &[Arg])> {
    match (node.op.as_str(), node.args.as_slice()) {
        ("higher_order.wrap_with_set_grad_enabled", [Arg::Bool(_), Arg::Graph(body), operands @ ..])
        | ("higher_order.wrap_with_autocast", [_, _, Arg::Bool(false), _, Arg::Graph(body), operands @ ..]) => {
            Some((body, operands))
        }
        _ => None,
    }
}

/// Deepest nesting of regions.
const MAX_DEPTH: usize = 32;

/// A root graph without such regions.
pub(crate) struct Inlined {
    pub graph: Graph,
    /// The calls that went.
    pub eliminations: Vec<Elimination>,
}

/// Inlines the regions of a program; `None` where it has none.
pub(crate) fn inline(program: &Program) -> Option<Inlined> {
    if !program.root.nodes.iter().any(|n| region_of(n).is_some()) {
        return None;
    }
    let values = program.root.inputs.iter().map(|i| i.value.clone());
    let results = program.root.nodes.iter().flat_map(|n| &n.results).filter_map(|r| r.value.clone());
    let mut inliner = Inliner { program, names: values.chain(results).collect(), nodes: vec![], eliminations: vec![] };
    let mut renames = HashMap::new();
    inliner.graph(&program.root, &mut renames, 0);
    let mut graph = Graph { nodes: inliner.nodes, ..program.root.clone() };
    for output in &mut graph.outputs {
        if let Some(Arg::Value(new)) = output.value.as_ref().and_then(|v| renames.get(v)) {
            output.value = Some(new.clone());
        }
    }
    Some(Inlined { graph, eliminations: inliner.eliminations })
}

struct Inliner<'a> {
    program: &'a Program,
    names: HashSet<String>,
    nodes: Vec<Node>,
    eliminations: Vec<Elimination>,
}

impl Inliner<'_> {
    /// Adds the nodes of a graph whose values have other names by `renames`.
    fn graph(&mut self, graph: &Graph, renames: &mut HashMap<String, Arg>, depth: usize) {
        for node in &graph.nodes {
            let mut node = node.clone();
            node.graph.clone_from(&self.program.root.id);
            node.stage.clone_from(&self.program.root.stage);
            for arg in node.args.iter_mut().chain(node.kwargs.values_mut()) {
                replace(arg, renames);
            }
            if depth < MAX_DEPTH && self.region(&node, renames, depth) {
                continue;
            }
            if depth > 0 {
                self.rename_results(&mut node, renames);
            }
            self.nodes.push(node);
        }
    }

    fn rename_results(&mut self, node: &mut Node, renames: &mut HashMap<String, Arg>) {
        for name in node.results.iter_mut().filter_map(|r| r.value.as_mut()) {
            let mut new = name.clone();
            let mut k = 0;
            while !self.names.insert(new.clone()) {
                k += 1;
                new = format!("{name}.{k}");
            }
            renames.insert(name.clone(), Arg::value(new.clone()));
            *name = new;
        }
    }

    /// Puts a region's nodes in place of its call; false where the call is not of the known form.
    fn region(&mut self, call: &Node, renames: &mut HashMap<String, Arg>, depth: usize) -> bool {
        let Some((id, operands)) = region_of(call) else { return false };
        let Some(body) = self.program.nested.get(id) else { return false };
        if body.inputs.len() != operands.len() || body.outputs.len() != call.results.len() {
            return false;
        }
        let mut inner: HashMap<String, Arg> =
            body.inputs.iter().map(|i| i.value.clone()).zip(operands.iter().cloned()).collect();
        let before = self.nodes.len();
        self.graph(body, &mut inner, depth + 1);
        for (output, result) in body.outputs.iter().zip(&call.results) {
            let new = match (&output.value, &output.literal) {
                (Some(v), _) => inner.get(v).cloned().unwrap_or_else(|| Arg::value(v.clone())),
                (None, Some(literal)) => literal.clone(),
                (None, None) => Arg::Null,
            };
            if let Some(name) = &result.value {
                renames.insert(name.clone(), new);
            }
        }
        self.eliminations.push(Elimination {
            node: call.node.clone(),
            reason: "inlined".into(),
            proof: format!(
                "the {} nodes of {id} stand in its place; only gradients see the difference",
                self.nodes.len() - before
            ),
        });
        true
    }
}

fn replace(arg: &mut Arg, renames: &HashMap<String, Arg>) {
    match arg {
        Arg::Value(name) => {
            if let Some(new) = renames.get(name) {
                *arg = new.clone();
            }
        }
        Arg::List(items) => items.iter_mut().for_each(|a| replace(a, renames)),
        Arg::Map(map) => map.values_mut().for_each(|a| replace(a, renames)),
        _ => {}
    }
}
