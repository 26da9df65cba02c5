//! Which called graphs become functions: those that stand several times in a program, as the branches or loop bodies of
//! its layers do, with other weights as operands.
//!
//! Graphs are equal when they have the same nodes up to the names of values. A function sees only its arguments, so that
//! a graph which uses a symbol that no input of its own gives stays in place, as does one of few nodes.

use super::walk::is_random;
use m2m_aten::Prepared;
use m2m_graph::Graph;
use m2m_record::{Arg, Dim, Lowered, Node, Type};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::rc::Rc;

/// Fewest nodes, those of graphs inside counted, for which a call is shorter than what it stands for.
const MIN_NODES: usize = 4;

/// A graph that becomes a function.
pub struct Function<'w> {
    /// The function's name.
    pub name: String,
    /// One of the equal graphs.
    pub graph: &'w Graph,
    /// Node ids of the others, by those of `graph`.
    twins: Vec<HashMap<&'w str, &'w str>>,
}

impl Function<'_> {
    /// What became of the nodes of the other graphs, which share the operations of this one.
    pub fn shared(&self, emitted: &[Lowered]) -> Vec<Lowered> {
        let mut all = emitted.to_vec();
        for twin in &self.twins {
            let named = emitted.iter().filter_map(|l| Some((l, twin.get(l.node.as_str())?)));
            all.extend(named.map(|(l, node)| Lowered { node: (*node).to_owned(), ..l.clone() }));
        }
        all
    }
}

/// All functions of a program.
pub struct Functions<'w> {
    all: Rc<Vec<Function<'w>>>,
    by_graph: HashMap<&'w str, usize>,
}

/// Graphs by id.
type Graphs<'w> = HashMap<&'w str, &'w Graph>;

impl<'w> Functions<'w> {
    /// Finds the graphs that are worth a function.
    pub fn of(prepared: &'w Prepared) -> Self {
        let graphs: Graphs<'w> = prepared.nested.iter().map(|graph| (graph.id.as_str(), graph)).collect();
        let mut keys: HashMap<&str, Rc<str>> = HashMap::new();
        let mut groups: HashMap<Rc<str>, Vec<&'w Graph>> = HashMap::new();
        let mut order: Vec<Rc<str>> = Vec::new();
        for graph in &prepared.nested {
            let key: Rc<str> = key(graph, &keys).into();
            keys.insert(&graph.id, Rc::clone(&key));
            let group = groups.entry(Rc::clone(&key)).or_default();
            if group.is_empty() {
                order.push(key);
            }
            group.push(graph);
        }
        let mut names: HashSet<String> = HashSet::from([prepared.graph.entry.clone().unwrap_or("forward".into())]);
        let (mut all, mut by_graph) = (Vec::new(), HashMap::new());
        for key in order {
            let group = groups.remove(&key).unwrap_or_default();
            let Some((first, rest)) = group.split_first().filter(|(_, rest)| !rest.is_empty()) else { continue };
            if size(first, &graphs) < MIN_NODES || !is_self_contained(first) || is_random(first, &graphs) {
                continue;
            }
            group.iter().for_each(|graph| {
                by_graph.insert(graph.id.as_str(), all.len());
            });
            let twins = rest.iter().map(|twin| {
                let mut pairs = HashMap::new();
                pair(first, twin, &graphs, &mut pairs);
                pairs
            });
            all.push(Function { name: name(first, &mut names), graph: first, twins: twins.collect() });
        }
        Functions { all: Rc::new(all), by_graph }
    }

    /// The functions, callees before callers.
    pub fn all(&self) -> Rc<Vec<Function<'w>>> {
        Rc::clone(&self.all)
    }

    /// The name of the function that a graph has become.
    pub fn name(&self, graph: &str) -> Option<&str> {
        self.by_graph.get(graph).and_then(|at| self.all.get(*at)).map(|function| function.name.as_str())
    }
}

/// The last part of a graph's id, numbered where it is taken.
fn name(graph: &Graph, names: &mut HashSet<String>) -> String {
    let stem = graph.id.rsplit('/').next().unwrap_or("graph").to_owned();
    let numbered = (2..).map(|n| format!("{stem}_{n}"));
    let name = std::iter::once(stem.clone()).chain(numbered).find(|name| !names.contains(name)).unwrap_or_default();
    names.insert(name.clone());
    name
}

fn callees(node: &Node) -> impl Iterator<Item = &str> {
    node.args.iter().filter_map(|arg| if let Arg::Graph(id) = arg { Some(id.as_str()) } else { None })
}

/// How many nodes a graph has, those of graphs that it calls counted.
fn size(graph: &Graph, graphs: &Graphs<'_>) -> usize {
    let inner = graph.nodes.iter().flat_map(callees).filter_map(|id| graphs.get(id));
    graph.nodes.len() + inner.map(|graph| size(graph, graphs)).sum::<usize>()
}

/// Whether every symbol of a graph is the size of an input's axis, or an input itself.
fn is_self_contained(graph: &Graph) -> bool {
    let mut given: HashSet<&str> = HashSet::new();
    for input in &graph.inputs {
        match &input.ty {
            Type::Tensor(t) => {
                given.extend(
                    t.shape.iter().filter_map(|d| if let Dim::Expr(text) = d { Some(text.as_str()) } else { None }),
                );
            }
            Type::Scalar { expr: Some(text), .. } => {
                given.insert(text);
            }
            _ => {}
        }
    }
    graph.symbols.iter().all(|symbol| given.contains(symbol.name.as_str()))
}

/// A text that is the same for equal graphs and for no others.
fn key(graph: &Graph, keys: &HashMap<&str, Rc<str>>) -> String {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut text = String::new();
    for input in &graph.inputs {
        let number = numbers.len();
        numbers.insert(&input.value, number);
        let _ = writeln!(text, "input {:?} {:?}", input.ty, input.literal);
    }
    for node in &graph.nodes {
        let mut rename = |name: &str| Some(numbers.get(name).map_or_else(|| name.to_owned(), |n| format!("%{n}")));
        let _ = write!(text, "{}", node.op);
        for arg in &node.args {
            if let Arg::Graph(id) = arg {
                let _ = write!(text, " {{{}}}", keys.get(id.as_str()).map_or(id.as_str(), |key| key));
                continue;
            }
            let mut arg = arg.clone();
            arg.rename_values(&mut rename);
            let _ = write!(text, " {arg:?}");
        }
        for (name, arg) in &node.kwargs {
            let mut arg = arg.clone();
            arg.rename_values(&mut rename);
            let _ = write!(text, " {name}={arg:?}");
        }
        for result in &node.results {
            let number = numbers.len();
            if let Some(name) = &result.value {
                numbers.insert(name, number);
            }
            let _ = write!(text, " -> {} {:?}", result.value.is_some(), result.ty);
        }
        text.push('\n');
    }
    for output in &graph.outputs {
        let value = output.value.as_deref().and_then(|name| numbers.get(name));
        let _ = writeln!(text, "output {value:?} {:?}", output.literal);
    }
    text
}

/// Notes which nodes of two equal graphs stand for each other.
fn pair<'w>(a: &'w Graph, b: &'w Graph, graphs: &Graphs<'w>, pairs: &mut HashMap<&'w str, &'w str>) {
    for (left, right) in a.nodes.iter().zip(&b.nodes) {
        pairs.insert(&left.node, &right.node);
        for (left, right) in callees(left).zip(callees(right)) {
            if let (Some(left), Some(right)) = (graphs.get(left), graphs.get(right)) {
                pair(left, right, graphs, pairs);
            }
        }
    }
}
