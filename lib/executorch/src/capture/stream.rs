//! A stream of records in place of an ETRecord: its `handle` and `instruction` records carry the debug handles, its nodes say
//! what they are.

use std::collections::{BTreeMap, HashMap, HashSet};

use indexmap::IndexMap;
use m2m_record::profile::{Handle, Instruction as InstructionRecord, ModuleRef, SourceNode as SourceNodeRecord};
use m2m_record::{Body, Input, Line, Node};

use super::{Error, Methods, Source, choose_method};
use crate::etrecord::{Delegate, Instruction, SourceNode};

/// What a stream has told so far. Feed it every line.
#[derive(Debug, Default)]
pub struct Trace {
    nodes: Vec<Seen>,
    by_name: HashMap<String, usize>,
    /// The node that makes a value of a graph.
    makers: HashMap<(String, String), String>,
    handles: IndexMap<String, Vec<Handle>>,
    instructions: IndexMap<String, IndexMap<i32, Instruction>>,
}

/// A node with the graph that it is in.
#[derive(Debug)]
struct Seen {
    graph: String,
    node: SourceNode,
}

impl Trace {
    /// Takes what a line tells.
    ///
    /// # Errors
    /// [`Error::Stream`] when a record that must be understood is not.
    pub fn read(&mut self, line: &Line<'_>) -> Result<(), Error> {
        match line.kind {
            Handle::KIND => {
                let handle: Handle = line.parse()?;
                self.handles.entry(handle.method.clone()).or_default().push(handle);
            }
            InstructionRecord::KIND => self.instruction(line.parse()?),
            SourceNodeRecord::KIND => {
                let node: SourceNodeRecord = line.parse()?;
                self.node(node.graph.clone(), source_node(node));
            }
            Input::KIND => {
                let Input { graph, value, .. } = line.parse()?;
                self.makers.insert((graph.clone(), value.clone()), value.clone());
                let node =
                    SourceNode { target: value.clone(), name: value, op: "placeholder", ..SourceNode::default() };
                self.node(graph, node);
            }
            Node::KIND => {
                let node: Node = line.parse()?;
                self.graph_node(node);
            }
            _ => {}
        }
        Ok(())
    }

    fn node(&mut self, graph: String, node: SourceNode) {
        self.by_name.insert(node.name.clone(), self.nodes.len());
        self.nodes.push(Seen { graph, node });
    }

    /// A node of a graph, with the nodes that make what it reads.
    fn graph_node(&mut self, node: Node) {
        let mut inputs: Vec<String> = Vec::new();
        let mut read = |value: &str| {
            let maker = self.makers.get(&(node.graph.clone(), value.to_owned()));
            inputs.extend(maker.filter(|maker| !inputs.contains(maker)).cloned().into_iter().collect::<Vec<_>>());
        };
        node.args.iter().chain(node.kwargs.values()).for_each(|arg| arg.for_each_value(&mut read));
        for value in node.results.iter().filter_map(|result| result.value.clone()) {
            self.makers.insert((node.graph.clone(), value), node.node.clone());
        }
        let module = |path: String| ModuleRef { path, class: String::new() };
        let made = SourceNode {
            name: node.node,
            op: "call_function",
            target: node.op,
            inputs,
            handle: None,
            modules: node.scope.map(module).into_iter().collect(),
            loc: node.loc,
            origins: node.origins,
        };
        self.node(node.graph, made);
    }

    fn instruction(&mut self, record: InstructionRecord) {
        let delegate = record.backend.map(|name| Delegate { name, ids: record.delegate_ids });
        let known = Instruction { handles: Some(record.debug_handles), delegate, outputs: record.outputs };
        self.instructions.entry(record.method).or_default().insert(record.instruction_id, known);
    }

    /// The explanation of a method's events: all nodes of the graphs that handles lead to. A node without a module or a place
    /// of its own takes those of the nodes it was made from.
    ///
    /// # Errors
    /// [`Error::NoHandles`], and those of choosing a method.
    pub fn source(&self, wanted: Methods<'_>) -> Result<Source, Error> {
        if self.instructions.is_empty() {
            return Err(Error::NoHandles);
        }
        let methods: Vec<String> = self.instructions.keys().cloned().collect();
        let method = choose_method(&methods, wanted)?;
        let own: &[Handle] = self.handles.get(&method).map(Vec::as_slice).unwrap_or_default();
        let named = || own.iter().flat_map(|handle| &handle.nodes);
        let graphs: HashSet<&str> =
            named().filter_map(|name| self.find(name)).map(|seen| seen.graph.as_str()).collect();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut nodes: Vec<SourceNode> = Vec::new();
        for seen in self.nodes.iter().filter(|seen| graphs.contains(seen.graph.as_str())) {
            let mut node = SourceNode { handle: None, ..seen.node.clone() };
            self.inherit(&mut node);
            places.insert(&seen.node.name, nodes.len());
            nodes.push(node);
        }
        let mut handles: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for handle in own {
            for name in &handle.nodes {
                let place = *places.entry(name).or_insert_with(|| {
                    nodes.push(SourceNode { name: name.clone(), target: name.clone(), ..SourceNode::default() });
                    nodes.len() - 1
                });
                nodes[place].handle = Some(handle.debug_handle);
                handles.entry(handle.debug_handle).or_default().push(place);
            }
        }
        let instructions = self.instructions.get(&method).cloned().unwrap_or_default();
        let has_delegates = instructions.values().any(|known| known.delegate.is_some());
        Ok(Source { method: Some(method), methods, instructions, has_delegates, nodes, handles, ..Source::default() })
    }

    fn find(&self, name: &str) -> Option<&Seen> {
        self.by_name.get(name).and_then(|at| self.nodes.get(*at))
    }

    /// Takes module and place from the origins of a node that has none of its own.
    fn inherit(&self, node: &mut SourceNode) {
        let mut open: Vec<&str> = node.origins.iter().rev().map(String::as_str).collect();
        let (mut modules, mut loc) = (None, None);
        // Each stage's origins are nodes of the one before, so a chain is as long as there are stages.
        let mut left = self.nodes.len();
        while let (Some(name), true) = (open.pop(), left > 0) {
            left -= 1;
            let Some(Seen { node: origin, .. }) = self.find(name) else { continue };
            if modules.is_none() && !origin.modules.is_empty() {
                modules = Some(origin.modules.clone());
            }
            loc = loc.or_else(|| origin.loc.clone());
            open.extend(origin.origins.iter().rev().map(String::as_str));
        }
        if node.modules.is_empty() {
            node.modules = modules.unwrap_or_default();
        }
        node.loc = node.loc.take().or(loc);
    }
}

fn source_node(node: SourceNodeRecord) -> SourceNode {
    SourceNode {
        name: node.node,
        op: known_op(&node.op),
        target: node.target,
        inputs: node.inputs,
        handle: node.debug_handle,
        modules: node.modules,
        loc: node.loc,
        origins: node.origins,
    }
}

fn known_op(op: &str) -> &'static str {
    ["placeholder", "call_function", "get_attr", "output"].into_iter().find(|known| *known == op).unwrap_or("call")
}
