//! Derives a graph of a new stage from an old one, keeping origins.
//!
//! Every node of the old graph must either become something (a node whose `origins` name it) or be eliminated with a
//! reason and a proof; `finish` fails otherwise, so that a trace is complete by construction. Inputs all stay.

use crate::graph::Graph;
use crate::prune;
use crate::verify::Fault;
use m2m_record::{Arg, Args, Elimination, Input, Kwargs, Node, OutputItem, Return, Type, TypedValue};
use std::collections::{HashMap, HashSet};

/// A node to be added.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields are the record's fields")]
pub struct Emit {
    pub op: String,
    pub args: Args,
    pub kwargs: Kwargs,
    pub results: Vec<TypedValue>,
    pub returns: Option<Vec<Return>>,
    pub origins: Vec<String>,
    pub via: String,
}

/// What became of the old graph.
#[derive(Clone, Debug)]
pub struct Accounting {
    /// The new graph.
    pub graph: Graph,
    /// Old nodes and inputs without a successor.
    pub eliminations: Vec<Elimination>,
}

/// Builds the graph of a new stage.
pub struct Rewriter<'a> {
    old: &'a Graph,
    graph: Graph,
    bound: HashMap<String, Arg>,
    names: HashSet<String>,
    counters: HashMap<String, usize>,
    eliminations: Vec<Elimination>,
    /// Where values of the new graph are made: a hint, which [`Rewriter::place`] checks.
    made: HashMap<String, usize>,
    inputs: HashMap<&'a str, usize>,
}

impl<'a> Rewriter<'a> {
    /// Starts a root graph of `stage` (already made unique, as `quantized.2`) with the old one's inputs and symbols.
    /// The names of all old values are reserved for their successors.
    pub fn new(old: &'a Graph, stage: &str) -> Self {
        Rewriter::start(old, stage, stage, None)
    }

    /// Starts a graph `id` of `stage` that `parent` calls; else as [`Rewriter::new`].
    pub fn nested(old: &'a Graph, id: &str, stage: &str, parent: &str) -> Self {
        Rewriter::start(old, id, stage, Some(parent.to_owned()))
    }

    fn start(old: &'a Graph, id: &str, stage: &str, parent: Option<String>) -> Self {
        let inputs =
            old.inputs.iter().map(|i| Input { graph: id.to_owned(), origins: vec![i.value.clone()], ..i.clone() });
        let graph = Graph {
            id: id.to_owned(),
            stage: stage.to_owned(),
            entry: old.entry.clone(),
            parent,
            symbols: old.symbols.iter().cloned().map(|s| m2m_record::Symbol { graph: id.to_owned(), ..s }).collect(),
            guards: old.guards.iter().cloned().map(|g| m2m_record::Guard { graph: id.to_owned(), ..g }).collect(),
            inputs: inputs.collect(),
            nodes: Vec::with_capacity(old.nodes.len()),
            outputs: Vec::new(),
        };
        let results = old.nodes.iter().flat_map(|n| &n.results).filter_map(|r| r.value.clone());
        let names = old.inputs.iter().map(|i| i.value.clone()).chain(results).collect();
        let inputs = old.inputs.iter().enumerate().map(|(at, input)| (input.value.as_str(), at)).collect();
        Rewriter {
            old,
            graph,
            bound: HashMap::new(),
            names,
            counters: HashMap::new(),
            eliminations: Vec::new(),
            made: HashMap::new(),
            inputs,
        }
    }

    /// The old graph.
    pub fn old(&self) -> &'a Graph {
        self.old
    }

    /// The new graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What an old argument is in the new graph.
    pub fn map(&self, arg: &Arg) -> Arg {
        match arg {
            Arg::Value(name) => self.bound.get(name).cloned().unwrap_or_else(|| arg.clone()),
            Arg::List(items) => Arg::List(items.iter().map(|a| self.map(a)).collect()),
            Arg::Map(map) => Arg::Map(map.iter().map(|(k, a)| (k.clone(), self.map(a))).collect()),
            other => other.clone(),
        }
    }

    /// Says what an old value is in the new graph, where it is not the value of the same name.
    pub fn bind(&mut self, old: &str, new: Arg) {
        self.bound.insert(old.to_owned(), new);
    }

    /// A name that no value of either graph has: `stem.1`, `stem.2`, …
    pub fn fresh(&mut self, stem: &str) -> String {
        let counter = self.counters.entry(stem.to_owned()).or_insert(0);
        loop {
            *counter += 1;
            let name = format!("{stem}.{counter}");
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Adds a node. Its results are named by [`Rewriter::fresh`], or as the old values that they stand for. Gives its
    /// place among [`Rewriter::nodes`].
    pub fn emit(&mut self, emit: Emit) -> usize {
        let at = self.graph.nodes.len();
        self.made.extend(emit.results.iter().filter_map(|result| Some((result.value.clone()?, at))));
        self.graph.nodes.push(Node {
            graph: self.graph.id.clone(),
            stage: self.graph.stage.clone(),
            op: emit.op,
            args: emit.args,
            kwargs: emit.kwargs,
            results: emit.results,
            returns: emit.returns,
            origins: emit.origins,
            via: Some(emit.via),
            ..Node::default()
        });
        at
    }

    /// Adds an old node as it is, with its arguments mapped.
    pub fn keep(&mut self, node: &Node) -> usize {
        self.emit(Emit {
            op: node.op.clone(),
            args: node.args.iter().map(|a| self.map(a)).collect(),
            kwargs: node.kwargs.iter().map(|(k, a)| (k.clone(), self.map(a))).collect(),
            results: node.results.clone(),
            returns: node.returns.clone(),
            origins: vec![node.node.clone()],
            via: "identity".into(),
        })
    }

    /// Gives a value made at or after place `since` another name, wherever it is used.
    pub fn rename(&mut self, since: usize, from: &str, to: &str) {
        self.names.insert(to.to_owned());
        // The last number given out is free again, so that names count up without gaps.
        if let Some((stem, number)) = from.rsplit_once('.')
            && let Some(counter) = self.counters.get_mut(stem)
            && *counter > 0
            && number == counter.to_string()
        {
            *counter -= 1;
            self.names.remove(from);
        }
        let mut rename = |name: &str| (name == from).then(|| to.to_owned());
        for node in self.graph.nodes.iter_mut().skip(since) {
            node.args.iter_mut().chain(node.kwargs.values_mut()).for_each(|a| a.rename_values(&mut rename));
            for result in &mut node.results {
                if result.value.as_deref() == Some(from) {
                    result.value = Some(to.to_owned());
                }
            }
        }
        if let Some(at) = self.made.remove(from) {
            self.made.insert(to.to_owned(), at);
        }
    }

    /// Takes back what was added at or after place `since`.
    pub fn truncate(&mut self, since: usize) {
        self.graph.nodes.truncate(since);
    }

    /// Says that an old node has no successor, and why that is right. It is void if the node gets one after all, as a
    /// view that is made anew after a write.
    pub fn eliminate(&mut self, node: &str, reason: &str, proof: impl Into<String>) {
        self.eliminations.push(Elimination { node: node.to_owned(), reason: reason.to_owned(), proof: proof.into() });
    }

    /// Adds an output that the old graph does not have; it comes before the old ones.
    pub fn add_output(&mut self, item: OutputItem) {
        self.graph.outputs.push(item);
    }

    /// Nodes added at or after place `since`, to be completed.
    pub fn nodes_since(&mut self, since: usize) -> &mut [Node] {
        self.graph.nodes.get_mut(since..).unwrap_or_default()
    }

    /// Nodes added so far.
    pub fn nodes(&self) -> &[Node] {
        &self.graph.nodes
    }

    /// The node of the new graph that makes a value; none for an input.
    pub fn producer(&self, value: &str) -> Option<&Node> {
        self.graph.nodes.get(self.place(value)?)
    }

    /// The place of that node among [`Rewriter::nodes`].
    pub fn place(&self, value: &str) -> Option<usize> {
        let at = *self.made.get(value)?;
        let results = &self.graph.nodes.get(at)?.results;
        results.iter().any(|result| result.value.as_deref() == Some(value)).then_some(at)
    }

    /// The type of an input of the new graph.
    pub fn input_type(&self, value: &str) -> Option<&Type> {
        self.graph.inputs.get(*self.inputs.get(value)?).map(|i| &i.ty)
    }

    /// Closes the graph: outputs are those added, then the old ones, mapped. Nodes whose results nothing uses go,
    /// unless `has_effect`; an old node all of whose successors went is eliminated as `unused`. Ids are numbered
    /// here. Whatever of the old graph is unaccounted for is an error.
    pub fn finish(mut self, has_effect: &dyn Fn(&Node) -> bool) -> Result<Accounting, Fault> {
        for item in &self.old.outputs {
            let mut item = item.clone();
            if let Some(value) = &item.value {
                match self.map(&Arg::value(value.clone())) {
                    Arg::Value(new) => item.value = Some(new),
                    literal => {
                        item.value = None;
                        item.literal = Some(literal);
                    }
                }
            }
            self.graph.outputs.push(item);
        }
        let removed = prune::remove_unused(&mut self.graph, has_effect);
        for (k, node) in self.graph.nodes.iter_mut().enumerate() {
            node.node = format!("{}:{k}", self.graph.stage);
        }
        self.account(&removed)
    }

    fn account(mut self, removed: &HashSet<String>) -> Result<Accounting, Fault> {
        let successors: HashSet<&str> = self.graph.nodes.iter().flat_map(|n| &n.origins).map(String::as_str).collect();
        let gone: HashSet<&str> = self.eliminations.iter().map(|e| e.node.as_str()).collect();
        let mut unused = Vec::new();
        for node in &self.old.nodes {
            if successors.contains(node.node.as_str()) || gone.contains(node.node.as_str()) {
                continue;
            }
            if !removed.contains(&node.node) {
                return Err(self.fault(&node.node, "has neither a successor nor an elimination"));
            }
            unused.push(Elimination {
                node: node.node.clone(),
                reason: "unused".into(),
                proof: "no output and no effect depends on its results".into(),
            });
        }
        let has_successor: Vec<bool> = self.eliminations.iter().map(|e| successors.contains(e.node.as_str())).collect();
        let mut has_successor = has_successor.into_iter();
        self.eliminations.retain(|_| !has_successor.next().unwrap_or(false));
        self.eliminations.extend(unused);
        let order: HashMap<&str, usize> =
            self.old.nodes.iter().enumerate().map(|(k, n)| (n.node.as_str(), k)).collect();
        self.eliminations.sort_by_key(|e| order.get(e.node.as_str()).copied().unwrap_or(usize::MAX));
        Ok(Accounting { graph: self.graph, eliminations: self.eliminations })
    }

    fn fault(&self, node: &str, message: &str) -> Fault {
        let op = self.old.nodes.iter().find(|n| n.node == node).map_or("it", |n| n.op.as_str());
        Fault { graph: self.graph.id.clone(), place: node.to_owned(), message: format!("{op} {message}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m2m_record::{DType, Dim, InputRole, OutputRole, ScalarKind, TensorType};

    fn tensor(shape: &[&str]) -> Type {
        let dim = |s: &&str| s.parse().map_or(Dim::Expr((*s).to_owned()), Dim::Int);
        TensorType::new(DType::F32, shape.iter().map(dim).collect()).into()
    }

    fn node(n: usize, op: &str, args: &[&str], result: &str, ty: Type) -> Node {
        Node {
            graph: "original".into(),
            stage: "original".into(),
            node: format!("original:{n}"),
            op: op.into(),
            args: args.iter().map(|a| Arg::value(*a)).collect(),
            results: vec![TypedValue { value: Some(result.into()), ty }],
            ..Node::default()
        }
    }

    fn graph(nodes: Vec<Node>, output: &str) -> Graph {
        let input = Input::new("original", "x", InputRole::UserInput, tensor(&["2"]));
        let role = OutputRole::UserOutput;
        let outputs = vec![OutputItem { value: Some(output.into()), literal: None, role, target: None }];
        let (id, stage) = ("original".to_owned(), "original".to_owned());
        Graph { id, stage, inputs: vec![input], nodes, outputs, ..Graph::default() }
    }

    fn made(op: &str, arg: Arg, result: &str, origin: &str) -> Emit {
        Emit {
            op: op.into(),
            args: vec![arg],
            results: vec![TypedValue { value: Some(result.into()), ty: tensor(&["2"]) }],
            origins: vec![origin.into()],
            via: "test".into(),
            ..Emit::default()
        }
    }

    #[test]
    fn kept_nodes_know_their_origins_and_unused_ones_are_eliminated() {
        let old = graph(
            vec![
                node(0, "aten.relu.default", &["x"], "y", tensor(&["2"])),
                node(1, "aten.neg.default", &["y"], "dead", tensor(&["2"])),
            ],
            "y",
        );
        let mut rewriter = Rewriter::new(&old, "prepared");
        for n in &old.nodes {
            rewriter.keep(n);
        }
        let done = rewriter.finish(&|_| false).unwrap();
        assert_eq!(done.graph.nodes.len(), 1);
        assert_eq!(done.graph.nodes[0].origins, ["original:0"]);
        assert_eq!(done.graph.nodes[0].node, "prepared:0");
        assert_eq!(done.graph.inputs[0].origins, ["x"]);
        let gone: Vec<_> = done.eliminations.iter().map(|e| (e.node.as_str(), e.reason.as_str())).collect();
        assert_eq!(gone, [("original:1", "unused")]);
    }

    #[test]
    fn effects_stay() {
        let old = graph(vec![node(0, "aten._assert_async.default", &["x"], "y", tensor(&["2"]))], "x");
        let mut rewriter = Rewriter::new(&old, "prepared");
        rewriter.keep(&old.nodes[0]);
        assert_eq!(rewriter.finish(&|n| n.op.contains("assert")).unwrap().graph.nodes.len(), 1);
    }

    #[test]
    fn a_node_without_successor_or_elimination_is_a_fault() {
        let old = graph(vec![node(0, "aten.relu.default", &["x"], "y", tensor(&["2"]))], "x");
        let fault = Rewriter::new(&old, "prepared").finish(&|_| false).unwrap_err();
        assert_eq!(fault.place, "original:0");
        let mut rewriter = Rewriter::new(&old, "prepared");
        rewriter.eliminate("original:0", "identity", "its result is x");
        assert_eq!(rewriter.finish(&|_| false).unwrap().eliminations.len(), 1);
    }

    #[test]
    fn an_elimination_is_void_when_the_node_has_a_successor() {
        let old = graph(vec![node(0, "aten.relu.default", &["x"], "y", tensor(&["2"]))], "y");
        let mut rewriter = Rewriter::new(&old, "prepared");
        rewriter.eliminate("original:0", "identity", "its result is x");
        rewriter.keep(&old.nodes[0]);
        let done = rewriter.finish(&|_| false).unwrap();
        assert_eq!((done.graph.nodes.len(), done.eliminations.len()), (1, 0));
    }

    #[test]
    fn producers_are_found_until_they_are_renamed_or_taken_back() {
        let old = graph(vec![node(0, "aten.relu.default", &["x"], "y", tensor(&["2"]))], "y");
        let mut rewriter = Rewriter::new(&old, "prepared");
        rewriter.keep(&old.nodes[0]);
        assert_eq!(rewriter.producer("y").map(|n| n.op.as_str()), Some("aten.relu.default"));
        assert!(rewriter.producer("x").is_none());
        rewriter.rename(0, "y", "z");
        assert!(rewriter.producer("y").is_none() && rewriter.producer("z").is_some());
        assert_eq!(rewriter.place("z"), Some(0));
        rewriter.truncate(0);
        assert!(rewriter.producer("z").is_none() && rewriter.place("z").is_none());
    }

    #[test]
    fn renaming_reaches_arguments_and_names_stay_distinct() {
        // `y.2` is the last name given out, so that it is given out again; `y.1` is not.
        let old = graph(vec![node(0, "aten.silu.default", &["x"], "y", tensor(&["2"]))], "y");
        let mut rewriter = Rewriter::new(&old, "prepared");
        let (a, b) = (rewriter.fresh("y"), rewriter.fresh("y"));
        assert_eq!((a.as_str(), b.as_str()), ("y.1", "y.2"));
        rewriter.emit(made("aten.sigmoid.default", Arg::value("x"), &a, "original:0"));
        rewriter.emit(made("aten.neg.default", Arg::value(a.clone()), &b, "original:0"));
        rewriter.rename(0, &a, "half");
        rewriter.rename(0, &b, "y");
        assert_eq!(rewriter.fresh("y"), "y.2");
        let done = rewriter.finish(&|_| false).unwrap();
        assert_eq!(done.graph.nodes[0].results[0].value.as_deref(), Some("half"));
        assert_eq!(done.graph.nodes[1].args, [Arg::value("half")]);
        assert_eq!(done.graph.outputs[0].value.as_deref(), Some("y"));
    }

    #[test]
    fn outputs_follow_what_a_value_is_bound_to() {
        let old = graph(vec![node(0, "aten.alias.default", &["x"], "y", tensor(&["2"]))], "y");
        let mut rewriter = Rewriter::new(&old, "prepared");
        rewriter.bind("y", Arg::value("x"));
        rewriter.eliminate("original:0", "identity", "its result is x");
        let role = OutputRole::BufferMutation;
        rewriter.add_output(OutputItem { value: Some("x".into()), literal: None, role, target: Some("b".into()) });
        let done = rewriter.finish(&|_| false).unwrap();
        let outputs: Vec<_> = done.graph.outputs.iter().map(|o| (o.role, o.value.as_deref())).collect();
        assert_eq!(outputs, [(OutputRole::BufferMutation, Some("x")), (OutputRole::UserOutput, Some("x"))]);
    }

    #[test]
    fn what_gives_a_used_symbol_its_value_stays() {
        let item = Type::Scalar { kind: ScalarKind::Int, expr: Some("u0".into()) };
        let mut full = node(1, "aten.full.default", &[], "y", tensor(&["u0"]));
        full.args = vec![Arg::List(vec![Arg::Sym("u0".into())]), Arg::Int(0)];
        let old = graph(vec![node(0, "aten.item.default", &["x"], "n", item), full], "y");
        let mut rewriter = Rewriter::new(&old, "prepared");
        for n in &old.nodes {
            rewriter.keep(n);
        }
        assert_eq!(rewriter.finish(&|_| false).unwrap().graph.nodes.len(), 2);
    }
}
