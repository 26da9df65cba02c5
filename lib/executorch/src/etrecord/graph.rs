//! The graph of a record: nodes with their dataflow edges and debug handles, as the exporter's own deserializer makes them.
//!
//! A node that returns several values is followed by one `getitem` for each, with the node's own handle. Inputs come first
//! and the output last, as nodes of their own.

mod argument;
mod metadata;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use m2m_record::profile::{ModuleRef, SourceNode as NodeRecord};
use serde::Deserialize;
use serde::de::Error as _;

use argument::Argument;
use metadata::Metadata;

/// Target of the nodes that take one value out of several.
pub const GETITEM: &str = "_operator.getitem";

/// A node of a source graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceNode {
    /// Its name, unique in the graph.
    pub name: String,
    /// `placeholder`, `call_function` or `output`.
    pub op: &'static str,
    /// The operator with its overload, `aten.add.Tensor`, or the name again.
    pub target: String,
    /// Nodes that it reads, each once, in the order of the arguments.
    pub inputs: Vec<String>,
    /// Its debug handle; none where it was never given one.
    pub handle: Option<i64>,
    /// The modules that it is inside, outermost first.
    pub modules: Vec<ModuleRef>,
    /// `file.py:line`.
    pub loc: Option<String>,
    /// The nodes of the exported program that it was made from.
    pub origins: Vec<String>,
}

impl SourceNode {
    /// Path of the innermost module; empty for the outermost.
    pub fn scope(&self) -> Option<String> {
        self.modules.last().map(|module| metadata::plain_path(&module.path))
    }

    /// The node as a record of the graph in an entry.
    pub fn record(&self, graph: &str) -> NodeRecord {
        NodeRecord {
            graph: graph.to_owned(),
            node: self.name.clone(),
            op: self.op.to_owned(),
            target: self.target.clone(),
            inputs: self.inputs.clone(),
            debug_handle: self.handle,
            scope: self.scope(),
            modules: self.modules.clone(),
            loc: self.loc.clone(),
            origins: self.origins.clone(),
        }
    }
}

/// A graph of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceGraph {
    /// The entry that holds it.
    pub entry: String,
    /// All nodes in order.
    pub nodes: Vec<SourceNode>,
    /// How many graphs are nested in it, whose nodes are not read.
    pub nested: usize,
}

impl SourceGraph {
    /// Reads the text of an entry.
    pub(crate) fn parse(entry: &str, text: &[u8]) -> serde_json::Result<Self> {
        let program: Program<'_> = serde_json::from_slice(text)?;
        let mut builder = Builder::default();
        builder.build(&program.graph_module)?;
        Ok(SourceGraph { entry: entry.to_owned(), nodes: builder.nodes, nested: builder.nested })
    }

    /// Positions of nodes by debug handle.
    pub fn by_handle(&self) -> BTreeMap<i64, Vec<usize>> {
        let mut index: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (position, node) in self.nodes.iter().enumerate() {
            if let Some(handle) = node.handle {
                index.entry(handle).or_default().push(position);
            }
        }
        index
    }
}

#[derive(Deserialize)]
struct Program<'a> {
    #[serde(borrow)]
    graph_module: GraphModule<'a>,
}

#[derive(Deserialize)]
struct GraphModule<'a> {
    #[serde(borrow)]
    graph: Graph<'a>,
    #[serde(borrow, default)]
    signature: Signature<'a>,
}

#[derive(Deserialize)]
struct Graph<'a> {
    inputs: Vec<Argument>,
    outputs: Vec<Argument>,
    #[serde(borrow)]
    nodes: Vec<Node<'a>>,
}

#[derive(Deserialize)]
struct Node<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    target: Cow<'a, str>,
    inputs: Vec<NamedArgument>,
    outputs: Vec<Argument>,
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct NamedArgument {
    arg: Argument,
}

#[derive(Default, Deserialize)]
struct Signature<'a> {
    #[serde(borrow, default)]
    input_specs: Vec<InputSpec<'a>>,
}

/// Only constant inputs have their names in the signature alone.
#[derive(Deserialize)]
struct InputSpec<'a> {
    #[serde(borrow, default)]
    constant_input: Option<ConstantInput<'a>>,
}

#[derive(Deserialize)]
struct ConstantInput<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Default)]
struct Builder {
    nodes: Vec<SourceNode>,
    names: HashSet<String>,
    nested: usize,
}

impl Builder {
    fn build(&mut self, module: &GraphModule<'_>) -> serde_json::Result<()> {
        for (i, input) in module.graph.inputs.iter().enumerate() {
            let constant = || module.signature.input_specs.get(i)?.constant_input.as_ref();
            let name = match input {
                Argument::Value(Some(name)) => name.clone(),
                _ => constant().map_or_else(|| format!("input_{i}"), |constant| constant.name.clone().into_owned()),
            };
            self.push(SourceNode { target: name.clone(), name, op: "placeholder", ..SourceNode::default() })?;
        }
        for (i, node) in module.graph.nodes.iter().enumerate() {
            self.call(node)
                .map_err(|error| serde_json::Error::custom(format!("node {i} ({}): {error}", node.target)))?;
        }
        let mut inputs = Vec::new();
        module.graph.outputs.iter().for_each(|output| output.collect(&mut inputs));
        let output = SourceNode { name: "output".into(), op: "output", target: "output".into(), ..Default::default() };
        self.push(SourceNode { inputs: distinct(inputs), ..output })
    }

    fn call(&mut self, node: &Node<'_>) -> serde_json::Result<()> {
        let mut inputs = Vec::new();
        for input in &node.inputs {
            input.arg.collect(&mut inputs);
            self.nested += usize::from(input.arg == Argument::Graph);
        }
        let target = plain_target(&node.target);
        let name = match (&node.name, node.outputs.as_slice()) {
            (Some(name), _) => name.clone().into_owned(),
            (None, [Argument::Value(Some(name))]) => name.clone(),
            (None, _) => self.free_name(&target.replace('.', "_")),
        };
        let made = SourceNode {
            name,
            op: "call_function",
            target: target.to_owned(),
            inputs: distinct(inputs),
            handle: node.metadata.handle()?,
            modules: node.metadata.modules(),
            loc: node.metadata.location(),
            origins: node.metadata.origins()?,
        };
        let items: &[Argument] = match node.outputs.as_slice() {
            [Argument::Value(_)] => &[],
            [Argument::List(items)] => items,
            outputs => outputs,
        };
        self.push(made.clone())?;
        self.items(&made, items)
    }

    /// The nodes that take the values of `made` apart.
    fn items(&mut self, made: &SourceNode, items: &[Argument]) -> serde_json::Result<()> {
        let getitem = |name: String| SourceNode {
            name,
            target: GETITEM.to_owned(),
            inputs: vec![made.name.clone()],
            ..made.clone()
        };
        for item in items {
            match item {
                Argument::Value(Some(name)) => self.push(getitem(name.clone()))?,
                Argument::List(inner) => {
                    let list = getitem(self.free_name("getitem"));
                    self.push(list.clone())?;
                    self.items(&list, inner)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, node: SourceNode) -> serde_json::Result<()> {
        if !self.names.insert(node.name.clone()) {
            return Err(serde_json::Error::custom(format!("two nodes are called {:?}", node.name)));
        }
        self.nodes.push(node);
        Ok(())
    }

    /// A name that is not taken: `wanted`, or with a number behind it.
    fn free_name(&self, wanted: &str) -> String {
        let numbered = (1..).map(|number| format!("{wanted}_{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names.find(|name| !self.names.contains(name)).unwrap_or_default()
    }
}

/// Keeps the first of equal names.
fn distinct(names: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}

/// The operator without the Python around it.
fn plain_target(target: &str) -> &str {
    let edge = target.strip_prefix("executorch.exir.dialects.edge.ops.");
    edge.or_else(|| target.strip_prefix("torch.ops.")).unwrap_or(target)
}
