//! A stream of records in place of an ETRecord: its `handle` and `instruction` records carry the debug handles, its nodes say
//! what they are.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;
use m2m_record::profile::{Handle, Instruction as InstructionRecord, ModuleRef, SourceNode as SourceNodeRecord};
use m2m_record::{Body, Line, Node};

use super::{Error, Methods, Source, choose_method};
use crate::etrecord::{Delegate, Instruction, SourceNode};

/// What a stream has told so far. Feed it every line.
#[derive(Debug, Default)]
pub struct Trace {
    nodes: Vec<SourceNode>,
    by_name: HashMap<String, usize>,
    handles: IndexMap<String, Vec<Handle>>,
    instructions: IndexMap<String, IndexMap<i32, Instruction>>,
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
                self.node(source_node(node));
            }
            Node::KIND => {
                let node: Node = line.parse()?;
                self.node(graph_node(node));
            }
            _ => {}
        }
        Ok(())
    }

    fn node(&mut self, node: SourceNode) {
        self.by_name.insert(node.name.clone(), self.nodes.len());
        self.nodes.push(node);
    }

    fn instruction(&mut self, record: InstructionRecord) {
        let delegate = record.backend.map(|name| Delegate { name, ids: record.delegate_ids });
        let known = Instruction { handles: Some(record.debug_handles), delegate, outputs: record.outputs };
        self.instructions.entry(record.method).or_default().insert(record.instruction_id, known);
    }

    /// The explanation of a method's events: nodes that no handle leads to are left out, and where an earlier stage alone
    /// knows a node's module, that is followed.
    ///
    /// # Errors
    /// [`Error::NoHandles`], and those of choosing a method.
    pub fn source(&self, wanted: Methods<'_>) -> Result<Source, Error> {
        if self.instructions.is_empty() {
            return Err(Error::NoHandles);
        }
        let methods: Vec<String> = self.instructions.keys().cloned().collect();
        let method = choose_method(&methods, wanted)?;
        let mut nodes: Vec<SourceNode> = Vec::new();
        let mut handles: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for handle in self.handles.get(&method).into_iter().flatten() {
            for name in &handle.nodes {
                let unknown = || SourceNode { name: name.clone(), target: name.clone(), ..SourceNode::default() };
                let mut node = self.find(name).cloned().unwrap_or_else(unknown);
                node.handle = Some(handle.debug_handle);
                self.inherit(&mut node);
                handles.entry(handle.debug_handle).or_default().push(nodes.len());
                nodes.push(node);
            }
        }
        let instructions = self.instructions.get(&method).cloned().unwrap_or_default();
        let has_delegates = instructions.values().any(|known| known.delegate.is_some());
        Ok(Source { method: Some(method), methods, instructions, has_delegates, nodes, handles, ..Source::default() })
    }

    fn find(&self, name: &str) -> Option<&SourceNode> {
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
            let Some(origin) = self.find(name) else { continue };
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

fn graph_node(node: Node) -> SourceNode {
    let module = |path: String| ModuleRef { path, class: String::new() };
    SourceNode {
        name: node.node,
        op: "call_function",
        target: node.op,
        inputs: Vec::new(),
        handle: None,
        modules: node.scope.map(module).into_iter().collect(),
        loc: node.loc,
        origins: node.origins,
    }
}

fn known_op(op: &str) -> &'static str {
    ["placeholder", "call_function", "get_attr", "output"].into_iter().find(|known| *known == op).unwrap_or("call")
}
