//! Collects the current graph while a stream passes.
//!
//! The current graph is the root sealed last, with the nested graphs that came before it. Only its bytes are kept; of the
//! stage before, where each node comes from in the source.

use crate::graph::Graph;
use crate::place::Places;
use crate::verify::{Fault, verify};
use indexmap::IndexMap;
use m2m_record::{Body, File, Line, Node, NodePlace, Tensor, graph, reader};

/// Why a stream's graphs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of a graph is malformed.
    #[error("{message}")]
    Line {
        /// The line.
        number: u64,
        /// What is wrong.
        message: String,
    },
    /// The stream has no root graph.
    #[error("the stream has no graph; expected one, as m2m-capture writes it")]
    NoGraph,
    /// A graph contradicts itself.
    #[error("{0}")]
    Invalid(#[from] Fault),
}

/// The current graph of a stream, parsed and verified.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The root.
    pub root: Graph,
    /// Nested graphs by id, callees before callers.
    pub nested: IndexMap<String, Graph>,
    /// Files by id, the last record of each.
    pub files: IndexMap<String, File>,
    /// Tensors that records name beside the inputs, the last record of each.
    pub tensors: IndexMap<String, Tensor>,
    /// Stages of all root graphs so far.
    pub stages: Vec<String>,
    /// Scope and location of the nodes that a node of the current graph may come from, and of its own nodes.
    pub places: Places,
}

impl Program {
    /// A node with the scope and location that it or its origins have: what `--where` sees.
    pub fn completed(&self, node: &Node) -> Node {
        let (scope, loc) = self.places.of_node(node);
        Node { scope: scope.map(str::to_owned), loc: loc.map(str::to_owned), ..node.clone() }
    }
}

/// The kinds of lines that a graph has.
const KINDS: [&str; 6] = ["graph", "symbol", "guard", "input", "node", "output"];

/// A kind, as its place in [`KINDS`].
type Kind = usize;

/// Lines of one graph, kept unparsed.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    ends: Vec<(u64, Kind, usize)>,
}

/// Takes the lines of a stream one by one.
#[derive(Default)]
pub struct Collector {
    lines: Lines,
    is_complete: bool,
    is_root: bool,
    files: IndexMap<String, File>,
    tensors: IndexMap<String, Tensor>,
    stages: Vec<String>,
    places: Places,
}

impl Collector {
    /// Nothing collected yet.
    pub fn new() -> Self {
        Collector::default()
    }

    /// Takes the next line.
    pub fn push(&mut self, line: &Line<'_>) -> Result<(), Error> {
        match line.kind {
            graph::Graph::KIND => {
                let opened: graph::Graph = self.parse(line)?;
                if self.is_complete {
                    self.places = self.places_of_nodes()?;
                    self.lines = Lines::default();
                    self.is_complete = false;
                }
                self.is_root = opened.parent.is_none();
                if self.is_root {
                    self.stages.push(opened.stage);
                }
                self.keep(line);
            }
            "symbol" | "guard" | "input" | "node" | "output" => self.keep(line),
            "seal" => self.is_complete |= self.is_root,
            File::KIND => {
                let file: File = self.parse(line)?;
                self.files.insert(file.id.clone(), file);
            }
            Tensor::KIND => {
                let tensor: Tensor = self.parse(line)?;
                self.tensors.insert(tensor.name.clone(), tensor);
            }
            _ => {}
        }
        Ok(())
    }

    /// Where the nodes of the graphs that are kept come from.
    fn places_of_nodes(&self) -> Result<Places, Error> {
        let mut places = Places::default();
        let mut start = 0;
        for (number, kind, end) in &self.lines.ends {
            let bytes = self.lines.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            if KINDS.get(*kind) == Some(&Node::KIND) {
                let fail = |message: String| Error::Line { number: *number, message };
                let node: NodePlace = reader::parse_line(bytes).map_err(fail)?;
                places.add(&node, &self.places);
            }
        }
        Ok(places)
    }

    fn parse<R: Body>(&self, line: &Line<'_>) -> Result<R, Error> {
        reader::parse_line(line.bytes).map_err(|message| Error::Line { number: line.number, message })
    }

    fn keep(&mut self, line: &Line<'_>) {
        self.lines.bytes.extend_from_slice(line.bytes);
        let kind = KINDS.iter().position(|kind| *kind == line.kind).unwrap_or_default();
        self.lines.ends.push((line.number, kind, self.lines.bytes.len()));
    }

    /// Parses and verifies what was collected.
    pub fn finish(self) -> Result<Program, Error> {
        if !self.is_complete {
            return Err(Error::NoGraph);
        }
        let mut graphs: IndexMap<String, Graph> = IndexMap::new();
        let mut start = 0;
        for (number, kind, end) in self.lines.ends {
            let bytes = &self.lines.bytes[start..end];
            start = end;
            let fail = |message: String| Error::Line { number, message };
            if KINDS[kind] == graph::Graph::KIND {
                let opened: graph::Graph = reader::parse_line(bytes).map_err(fail)?;
                if graphs.insert(opened.graph.clone(), Graph::default()).is_some() {
                    return Err(fail(format!("graph {:?} is there twice", opened.graph)));
                }
            }
            if let Some((_, graph)) = graphs.last_mut() {
                graph.push_line(KINDS[kind], bytes).map_err(fail)?;
            }
        }
        let (_, root) = graphs.pop().ok_or(Error::NoGraph)?;
        let places = self.places.with_nodes(graphs.values().chain([&root]).flat_map(|graph| &graph.nodes));
        let program =
            Program { root, nested: graphs, files: self.files, tensors: self.tensors, stages: self.stages, places };
        verify(&program)?;
        Ok(program)
    }
}
