//! One graph: its records in order.

use m2m_record::{Body, Guard, Input, Node, OutputItem, Symbol, Type, Writer, graph, reader};
use std::collections::HashMap;
use std::io::{self, Write};

/// A graph of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the records of a graph")]
pub struct Graph {
    pub id: String,
    pub stage: String,
    pub entry: Option<String>,
    pub parent: Option<String>,
    pub symbols: Vec<Symbol>,
    pub guards: Vec<Guard>,
    pub inputs: Vec<Input>,
    pub nodes: Vec<Node>,
    pub outputs: Vec<OutputItem>,
}

impl Graph {
    /// Takes one line of this graph.
    pub fn push_line(&mut self, kind: &str, bytes: &[u8]) -> Result<(), String> {
        match kind {
            graph::Graph::KIND => {
                let opened: graph::Graph = reader::parse_line(bytes)?;
                self.id = opened.graph;
                self.stage = opened.stage;
                self.entry = opened.entry;
                self.parent = opened.parent;
                return Ok(());
            }
            Symbol::KIND => self.symbols.push(reader::parse_line(bytes)?),
            Guard::KIND => self.guards.push(reader::parse_line(bytes)?),
            Input::KIND => self.inputs.push(reader::parse_line(bytes)?),
            Node::KIND => self.nodes.push(reader::parse_line(bytes)?),
            graph::Output::KIND => {
                let output: graph::Output = reader::parse_line(bytes)?;
                if !self.outputs.is_empty() {
                    return Err(format!("graph {:?} has two output records", self.id));
                }
                self.outputs = output.outputs;
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the graph's records and its seal.
    pub fn write<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        writer.write(&graph::Graph {
            graph: self.id.clone(),
            stage: self.stage.clone(),
            entry: self.entry.clone(),
            parent: self.parent.clone(),
        })?;
        self.symbols.iter().try_for_each(|r| writer.write(r))?;
        self.guards.iter().try_for_each(|r| writer.write(r))?;
        self.inputs.iter().try_for_each(|r| writer.write(r))?;
        self.nodes.iter().try_for_each(|r| writer.write(r))?;
        writer.write(&graph::Output { graph: self.id.clone(), outputs: self.outputs.clone() })?;
        writer.seal()
    }

    /// The type of every value, by name.
    pub fn types(&self) -> HashMap<&str, &Type> {
        let inputs = self.inputs.iter().map(|i| (i.value.as_str(), &i.ty));
        let results = self.nodes.iter().flat_map(|n| &n.results);
        inputs.chain(results.filter_map(|r| r.value.as_deref().map(|v| (v, &r.ty)))).collect()
    }
}
