//! Calls of nested graphs (`higher_order.cond`, `while_loop`, `map_impl`, `scan`, …), and operands under autocast.
//!
//! A nested graph is prepared as the root is, with an accounting of its own; the call stays, with the new graph's id.
//! What goes with a call that nothing uses is eliminated with it.

use super::{Preparer, is_check, unknown};
use crate::autocast::{is_eligible, policy};
use crate::error::Error;
use crate::expand::{Expander, without_strides};
use crate::functional::Step;
use crate::inline::Cast;
use crate::value::{V, shape_of};
use m2m_graph::{Emit, Graph};
use m2m_record::{Arg, DType, Elimination, Node, OutputRole, Type, TypedValue};
use std::collections::{HashMap, HashSet};

/// Calls by name: how many graphs stand among their arguments.
const CALLS: &[(&str, usize)] = &[
    ("higher_order.associative_scan", 1),
    ("higher_order.cond", 2),
    ("higher_order.invoke_subgraph", 1),
    ("higher_order.map", 1),
    ("higher_order.map_impl", 1),
    ("higher_order.scan", 1),
    ("higher_order.while_loop", 2),
];

/// Whether a node calls nested graphs in a way that is known.
pub(super) fn is_call(node: &Node) -> bool {
    CALLS.iter().any(|(name, graphs)| node.op == *name && graphs_of(node).count() == *graphs)
}

fn graphs_of(node: &Node) -> impl Iterator<Item = &str> {
    node.args.iter().filter_map(|arg| if let Arg::Graph(id) = arg { Some(id.as_str()) } else { None })
}

/// The operands of a call, in the order of its graphs' inputs.
fn operands_of(node: &Node) -> Vec<&Arg> {
    let last = node.args.iter().rposition(|arg| matches!(arg, Arg::Graph(_))).map_or(0, |at| at + 1);
    let mut operands = Vec::new();
    for arg in node.args.iter().skip(last) {
        match arg {
            Arg::List(items) => operands.extend(items),
            // The name of a region.
            Arg::Str(_) => {}
            other => operands.push(other),
        }
    }
    operands
}

/// Graphs that have been prepared because a node calls them.
#[derive(Default)]
pub(super) struct Called {
    /// Callees before callers, with their eliminations.
    graphs: Vec<(Graph, Vec<Elimination>)>,
    /// The ids of those that check something when they run.
    effects: HashSet<String>,
}

impl Called {
    /// Whether a node calls a graph that checks something.
    pub(super) fn has_effect(&self, node: &Node) -> bool {
        graphs_of(node).any(|id| self.effects.contains(id))
    }

    fn add(&mut self, graph: Graph, eliminations: Vec<Elimination>) {
        if graph.nodes.iter().any(|node| is_check(&node.op) || self.has_effect(node)) {
            self.effects.insert(graph.id.clone());
        }
        self.graphs.push((graph, eliminations));
    }

    /// The graphs that are still called from `graph`, and the eliminations of all.
    pub(super) fn finish(self, graph: &Graph, eliminations: &mut Vec<Elimination>) -> Vec<Graph> {
        let mut called: HashSet<String> = graph.nodes.iter().flat_map(graphs_of).map(str::to_owned).collect();
        for (graph, _) in self.graphs.iter().rev() {
            if called.contains(&graph.id) {
                called.extend(graph.nodes.iter().flat_map(graphs_of).map(str::to_owned));
            }
        }
        let mut kept = Vec::with_capacity(self.graphs.len());
        for (graph, gone) in self.graphs {
            eliminations.extend(gone);
            if called.contains(&graph.id) {
                kept.push(graph);
            } else {
                eliminations.extend(uncalled(&graph));
            }
        }
        kept
    }
}

/// Eliminations of everything that a graph which nothing calls any more comes from.
fn uncalled(graph: &Graph) -> Vec<Elimination> {
    let mut seen = HashSet::new();
    let origins = graph.nodes.iter().flat_map(|n| &n.origins).filter(|o| seen.insert(o.as_str()));
    let proof = "its graph is called for results on which no output and no effect depends";
    origins.map(|node| Elimination { node: node.clone(), reason: "unused".into(), proof: proof.into() }).collect()
}

impl Preparer<'_> {
    /// Keeps a call, with its graphs prepared.
    pub(super) fn region(&mut self, node: &Node) -> Result<(), Error> {
        let mut mapped = self.mapped(node);
        let mut renamed = HashMap::new();
        for id in graphs_of(node) {
            let new = self.callee(node, id)?;
            renamed.insert(id.to_owned(), new);
        }
        for arg in &mut mapped.args {
            if let Arg::Graph(id) = arg
                && let Some(new) = renamed.get(id)
            {
                *id = new.clone();
            }
        }
        let results: Vec<TypedValue> =
            node.results.iter().map(|r| TypedValue { value: r.value.clone(), ty: without_strides(&r.ty) }).collect();
        for (k, result) in results.iter().enumerate() {
            let Some(name) = &result.value else { continue };
            self.state.types.insert(name.clone(), result.ty.clone());
            if let Type::Tensor(t) = &result.ty {
                self.note_result(node, k, &V { name: name.clone(), dtype: t.dtype, shape: shape_of(t)? });
            }
        }
        self.state.rewriter.emit(Emit {
            op: mapped.op,
            args: mapped.args,
            kwargs: mapped.kwargs,
            results,
            returns: mapped.returns,
            origins: vec![node.node.clone()],
            via: "identity".into(),
        });
        Ok(())
    }

    /// A graph may hand an operand through, whose memory a result of the call then sees.
    fn note_result(&mut self, node: &Node, at: usize, value: &V) {
        let base = graphs_of(node).find_map(|id| {
            let graph = self.task.program.nested.get(id)?;
            let out = graph.outputs.get(at)?.value.as_ref()?;
            let place = graph.inputs.iter().position(|i| i.value == *out)?;
            match operands_of(node).get(place)? {
                Arg::Value(name) => Some(name.clone()),
                _ => None,
            }
        });
        match (base, &mut self.aliases) {
            (Some(base), Some(aliases)) => {
                aliases.view(&value.name, &base, vec![Step::opaque(&node.node, &node.op)]);
            }
            _ => self.own(&value.name, value),
        }
    }

    /// Prepares a nested graph; its new id.
    fn callee(&mut self, node: &Node, id: &str) -> Result<String, Error> {
        let old = self.task.program.nested.get(id).ok_or_else(|| unknown(node))?;
        let new = id.strip_prefix(&self.task.program.root.id).unwrap_or(id);
        let new = format!("{}/{}", self.task.stage, new.trim_start_matches('/'));
        if self.called.graphs.iter().any(|(graph, _)| graph.id == new) {
            return Ok(new);
        }
        let parent = self.state.rewriter.graph().id.clone();
        match self.task.graph(old, &new, Some(&parent), self.cast_of(node)) {
            Ok(done) => {
                if let Some(output) = done.graph.outputs.iter().find(|o| o.role != OutputRole::UserOutput) {
                    let target = output.target.as_deref().unwrap_or_default();
                    return Err(Error::unsupported(format!("graph {id} writes to its operand {target}")));
                }
                for graph in done.called {
                    self.called.add(graph, Vec::new());
                }
                self.called.add(done.graph, done.eliminations);
            }
            Err(all) => self.unsupported.extend(all),
        }
        Ok(new)
    }

    /// The type in which autocast runs a node.
    pub(super) fn cast_of(&self, node: &Node) -> Cast {
        self.casts.and_then(|casts| casts.get(&node.node)).copied()
    }

    /// Makes the casts of a node's operands that autocast makes.
    pub(super) fn cast_operands(&mut self, node: &Node, mapped: &mut Node, own: DType) -> Result<(), Error> {
        let Some(policy) = policy(&node.op) else { return Ok(()) };
        let stem = node.results.iter().find_map(|r| r.value.clone()).unwrap_or_else(|| super::stem_of(&node.op));
        let mut e = Expander::new(&mut self.state, vec![node.node.clone()], "autocast".into(), stem);
        let mut operands = Vec::new();
        let all = mapped.args.iter().chain(mapped.kwargs.values());
        all.for_each(|arg| arg.for_each_value(&mut |name| operands.push(name.to_owned())));
        let tensors: Vec<V> = operands.iter().filter_map(|name| e.value(name).ok()).collect();
        let tensors: Vec<V> = tensors.into_iter().filter(|v| is_eligible(v.dtype)).collect();
        let target = policy.target(own, tensors.iter().map(|v| v.dtype));
        let mut cast = HashMap::new();
        for v in tensors.iter().filter(|v| v.dtype != target) {
            if !cast.contains_key(&v.name) {
                cast.insert(v.name.clone(), e.to_dtype(v, target)?.name);
            }
        }
        let mut rename = |name: &str| cast.get(name).cloned();
        mapped.args.iter_mut().chain(mapped.kwargs.values_mut()).for_each(|arg| arg.rename_values(&mut rename));
        Ok(())
    }
}
