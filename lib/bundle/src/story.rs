//! What a stream says that a bundle needs, gathered while it is read to its end.

use crate::Error;
use m2m_digest::Digest;
use m2m_record::{Data, File, Golden, Graph, Line, Module, Seal, Source, Tensor, Tool};
use std::collections::HashMap;

/// A sealed root graph.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) graph: String,
    pub(crate) nodes: u64,
    pub(crate) sha256: String,
}

/// The records that matter, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) source: Option<Source>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) files: HashMap<String, File>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) module: Option<Module>,
    pub(crate) tensors: HashMap<String, Tensor>,
    pub(crate) goldens: Vec<Golden>,
    /// Digests that tools stated for data, by the data's JSON.
    stated: HashMap<String, String>,
    /// Whether the graph that is passing is a root.
    open: Option<bool>,
}

impl Story {
    /// Takes what is needed from one line.
    pub(crate) fn take(&mut self, line: &Line) -> Result<(), Error> {
        match line.kind {
            "source" => self.source = Some(line.parse()?),
            "tool" => self.tools.push(line.parse()?),
            "file" => {
                let file: File = line.parse()?;
                self.files.insert(file.id.clone(), file);
            }
            "graph" => {
                let graph: Graph = line.parse()?;
                self.open = Some(graph.parent.is_none());
            }
            "seal" => self.seal(line)?,
            "module" => self.module = Some(line.parse()?),
            "tensor" => {
                let tensor: Tensor = line.parse()?;
                if let Some(sha256) = &tensor.sha256 {
                    self.stated.insert(key_of(&tensor.data), sha256.clone());
                }
                self.tensors.insert(tensor.name.clone(), tensor);
            }
            "golden" => self.goldens.push(line.parse()?),
            _ => {}
        }
        Ok(())
    }

    fn seal(&mut self, line: &Line) -> Result<(), Error> {
        let seal: Seal = line.parse()?;
        if self.open.take() != Some(true) {
            return Ok(());
        }
        if self.module.is_some() {
            let message = format!(
                "graph {:?} comes after the module, which is therefore not of the current graph; \
                 lower it again",
                seal.graph
            );
            return Err(Error::Content { line: Some(line.number), message });
        }
        self.stages.push(Stage { graph: seal.graph, nodes: seal.nodes, sha256: seal.sha256 });
        Ok(())
    }

    /// Compares the digest of data with the one that the tool that made them stated, if it did.
    pub(crate) fn verify(&self, name: &str, data: &Data, found: Digest) -> Result<(), Error> {
        match self.stated.get(&key_of(data)) {
            Some(stated) if *stated != found.to_string() => {
                let message = format!("{name}: the stream says sha256 {stated}; its data have {found}");
                Err(Error::content(message))
            }
            _ => Ok(()),
        }
    }

    /// The module, without which there is nothing to bundle.
    pub(crate) fn module(&self) -> Result<&Module, Error> {
        self.module.as_ref().ok_or_else(|| Error::content("the stream has no module record; m2m-lower makes one"))
    }

    /// A tensor record by name.
    pub(crate) fn tensor(&self, name: &str) -> Result<&Tensor, Error> {
        let missing = || Error::content(format!("a golden names tensor {name:?}, which no tensor record introduces"));
        self.tensors.get(name).ok_or_else(missing)
    }
}

fn key_of(data: &Data) -> String {
    serde_json::to_string(data).expect("data are plain JSON: no map keys, no floats that JSON lacks")
}
