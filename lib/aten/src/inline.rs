//! Regions that compute what their graph computes are put in place of their call.
//!
//! Of `wrap_with_set_grad_enabled(flag, graph, operands…)` the flag matters to gradients only; `wrap`,
//! `tag_activation_checkpoint`, `strict_mode` and `run_const_graph` say how to compile or to train.
//! `wrap_with_autocast(device, dtype, enabled, cache, graph, operands…)` casts operands that the graph does not show
//! being cast: `Inlined` tells for each node in which type autocast runs there, and `prepare` makes the casts. The nodes
//! of a region keep their ids; the call itself has no successor, which `Inlined` tells too.

use m2m_graph::{Graph, Program};
use m2m_record::{Arg, DType, Elimination, Node, Type};
use std::collections::{HashMap, HashSet};

/// Deepest nesting of regions.
const MAX_DEPTH: usize = 32;

/// The type in which autocast runs an operator; `None` where it is off.
pub(crate) type Cast = Option<DType>;

/// A graph without such regions.
pub(crate) struct Inlined {
    pub graph: Graph,
    /// The calls that went.
    pub eliminations: Vec<Elimination>,
    /// The nodes that run under autocast.
    pub casts: HashMap<String, DType>,
}

/// A region that may be inlined.
struct Region<'n> {
    body: &'n str,
    operands: &'n [Arg],
    cast: Cast,
    difference: &'static str,
}

/// Inlines the regions of a graph that is called where autocast is `cast`; `None` where nothing changes.
pub(crate) fn inline(program: &Program, root: &Graph, cast: Cast) -> Option<Inlined> {
    let has_region = root.nodes.iter().any(|n| region_of(program, n, cast).is_some());
    if !has_region && cast.is_none() {
        return None;
    }
    let values = root.inputs.iter().map(|i| i.value.clone());
    let results = root.nodes.iter().flat_map(|n| &n.results).filter_map(|r| r.value.clone());
    let names = values.chain(results).collect();
    let (nodes, eliminations, casts) = (Vec::new(), Vec::new(), HashMap::new());
    let mut inliner = Inliner { program, root, names, nodes, eliminations, casts };
    let mut renames = HashMap::new();
    inliner.graph(root, &mut renames, 0, cast);
    let mut graph = Graph { nodes: inliner.nodes, ..root.clone() };
    for output in &mut graph.outputs {
        match output.value.as_ref().and_then(|v| renames.get(v)) {
            Some(Arg::Value(new)) => output.value = Some(new.clone()),
            Some(literal) => {
                output.value = None;
                output.literal = Some(literal.clone());
            }
            None => {}
        }
    }
    Some(Inlined { graph, eliminations: inliner.eliminations, casts: inliner.casts })
}

/// The region that a node calls where autocast is `cast`.
fn region_of<'n>(program: &Program, node: &'n Node, cast: Cast) -> Option<Region<'n>> {
    let name = node.op.strip_prefix("higher_order.")?;
    let (body, operands, cast, difference) = match (name, node.args.as_slice()) {
        ("wrap_with_set_grad_enabled", [Arg::Bool(_), Arg::Graph(body), operands @ ..]) => {
            (body, operands, cast, "only gradients see the difference")
        }
        ("wrap_with_autocast", [Arg::Str(device), dtype, Arg::Bool(on), _, Arg::Graph(body), operands @ ..]) => {
            let own = match dtype {
                Arg::DType(dtype) => *dtype,
                _ => DType::BF16,
            };
            if device == "cpu" {
                (body, operands, on.then_some(own), "its casts are nodes of their own")
            } else if *on && is_on(program.nested.get(body)?, device) {
                return None;
            } else {
                (body, operands, cast, "autocast of another device does nothing to these tensors")
            }
        }
        ("wrap" | "tag_activation_checkpoint", [Arg::Graph(body), operands @ ..]) => {
            (body, operands, cast, "only compilers and gradients see the difference")
        }
        ("strict_mode" | "run_const_graph", [Arg::Graph(body), Arg::List(operands)]) => {
            (body, operands.as_slice(), cast, "only compilers see the difference")
        }
        _ => return None,
    };
    Some(Region { body, operands, cast, difference })
}

/// Whether any tensor of a graph is on a device.
fn is_on(graph: &Graph, device: &str) -> bool {
    let is_there = |ty: &Type| {
        let named = ty.as_tensor().and_then(|t| t.device.as_deref());
        named.is_some_and(|found| found.split(':').next() == Some(device))
    };
    let inputs = graph.inputs.iter().map(|i| &i.ty);
    inputs.chain(graph.nodes.iter().flat_map(|n| n.results.iter().map(|r| &r.ty))).any(is_there)
}

struct Inliner<'a> {
    program: &'a Program,
    root: &'a Graph,
    names: HashSet<String>,
    nodes: Vec<Node>,
    eliminations: Vec<Elimination>,
    casts: HashMap<String, DType>,
}

impl Inliner<'_> {
    /// Adds the nodes of a graph whose values have other names by `renames`.
    fn graph(&mut self, graph: &Graph, renames: &mut HashMap<String, Arg>, depth: usize, cast: Cast) {
        for node in &graph.nodes {
            let mut node = node.clone();
            node.graph.clone_from(&self.root.id);
            node.stage.clone_from(&self.root.stage);
            for arg in node.args.iter_mut().chain(node.kwargs.values_mut()) {
                replace(arg, renames);
            }
            if depth < MAX_DEPTH && self.region(&node, renames, depth, cast) {
                continue;
            }
            if depth > 0 {
                self.rename_results(&mut node, renames);
            }
            if let Some(dtype) = cast {
                self.casts.insert(node.node.clone(), dtype);
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
    fn region(&mut self, call: &Node, renames: &mut HashMap<String, Arg>, depth: usize, cast: Cast) -> bool {
        let Some(region) = region_of(self.program, call, cast) else { return false };
        let Some(body) = self.program.nested.get(region.body) else { return false };
        if body.inputs.len() != region.operands.len() || body.outputs.len() != call.results.len() {
            return false;
        }
        let mut inner: HashMap<String, Arg> =
            body.inputs.iter().map(|i| i.value.clone()).zip(region.operands.iter().cloned()).collect();
        let before = self.nodes.len();
        self.graph(body, &mut inner, depth + 1, region.cast);
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
        let count = self.nodes.len() - before;
        let (id, difference) = (region.body, region.difference);
        self.eliminations.push(Elimination {
            node: call.node.clone(),
            reason: "inlined".into(),
            proof: format!("the {count} nodes of {id} stand in its place; {difference}"),
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
