//! A bundle on disk: the graph, its weights, and the report on both.
//!
//! A bundle is a folder with `graph.mlir` and `weights.safetensors`, which must be there even when it is empty; other files
//! are ignored. Both are mapped; of the weights only the header is read.

use crate::emit::{Lines, Plan, source};
use crate::finding::{Code, Finding, Findings, Severity};
use crate::ir::Graph;
use crate::schema::WEIGHT_FILE;
use crate::verify::{Model, Weights, verify};
use crate::{bytecode, text};
use m2m_record::{Arg, Diagnostic, File, Kwargs, Status, Tool, ToolInput, Writer, writer::hex};
use m2m_tensor::MappedFile;
use m2m_tensor::safetensors::Header;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The graph of a bundle.
pub const GRAPH_FILE: &str = "graph.mlir";

/// The id of the weights file's record.
const WEIGHTS_ID: &str = "f0";

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be opened.
    #[error("cannot open: {source}; {hint}")]
    Open {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
        /// What would be right.
        hint: &'static str,
    },
}

impl Error {
    /// The file that the error is about.
    pub fn path(&self) -> &Path {
        let Error::Open { path, .. } = self;
        path
    }
}

/// The bytes of a graph.
enum Bytes {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

/// A bundle, or a graph by itself.
pub struct Bundle {
    graph_path: String,
    graph: Bytes,
    weights: Option<MappedFile>,
}

impl Bundle {
    /// Opens a folder, or a graph with the weights that are named for it.
    pub fn open(path: &Path, weights: Option<&Path>) -> Result<Bundle, Error> {
        let (graph, beside) = match path.is_dir() {
            true => (path.join(GRAPH_FILE), Some(path.join(WEIGHT_FILE))),
            false => (path.to_owned(), None),
        };
        let hint = "a bundle is a folder with graph.mlir and weights.safetensors";
        let open =
            |path: &Path| MappedFile::open(path).map_err(|source| Error::Open { path: path.to_owned(), source, hint });
        let mapped = open(&graph)?;
        let weights = weights.map(Path::to_owned).or(beside);
        let weights = weights.map(|path| open(&path)).transpose()?;
        Ok(Bundle { graph_path: graph.display().to_string(), graph: Bytes::Mapped(mapped), weights })
    }

    /// A graph whose bytes are at hand, with the weights that are named for it.
    pub fn from_bytes(name: &str, graph: Vec<u8>, weights: Option<&Path>) -> Result<Bundle, Error> {
        let hint = "--weights names a safetensors file";
        let open =
            |path: &Path| MappedFile::open(path).map_err(|source| Error::Open { path: path.to_owned(), source, hint });
        let weights = weights.map(open).transpose()?;
        Ok(Bundle { graph_path: name.to_owned(), graph: Bytes::Owned(graph), weights })
    }

    /// The graph's bytes.
    pub fn graph(&self) -> &[u8] {
        match &self.graph {
            Bytes::Mapped(map) => map.bytes(),
            Bytes::Owned(bytes) => bytes,
        }
    }

    /// The path of the graph, for messages.
    pub fn graph_path(&self) -> &str {
        &self.graph_path
    }

    /// The files that are open, which an output must not replace.
    pub fn paths(&self) -> Vec<&Path> {
        let graph = match &self.graph {
            Bytes::Mapped(map) => Some(map.path()),
            Bytes::Owned(_) => None,
        };
        graph.into_iter().chain(self.weights.as_ref().map(MappedFile::path)).collect()
    }

    /// Whether the graph is bytecode, in which nothing has a line.
    pub fn is_bytecode(&self) -> bool {
        bytecode::is_bytecode(self.graph())
    }

    /// The text of the graph; `None` for bytecode.
    pub fn text(&self) -> Option<&[u8]> {
        (!self.is_bytecode()).then(|| self.graph())
    }

    /// Reads the graph. What is wrong with it goes to `findings`.
    pub fn parse(&self, findings: &mut Findings) -> Graph<'_> {
        if self.is_bytecode() { bytecode::parse(self.graph(), findings) } else { text::parse(self.graph(), findings) }
    }

    /// Reads the header of the weights; `None` without them, or where it is damaged, which goes to `findings`.
    fn header(&self, findings: &mut Findings) -> Option<Weights> {
        let map = self.weights.as_ref()?;
        match Header::read(map.bytes()) {
            Ok(header) => Some(Weights { header }),
            Err(error) => {
                findings.push(Code::WeightsFormat, None, format!("{}: {error}", map.path().display()));
                None
            }
        }
    }

    /// Checks all of it.
    pub fn check<'g, 'a>(&self, graph: &'g Graph<'a>, mut findings: Findings, is_strict: bool) -> Report<'g, 'a> {
        let weights = self.header(&mut findings);
        let model = verify(graph, weights.as_ref(), &mut findings);
        let findings = findings.into_sorted();
        let refuses = |finding: &Finding| match finding.severity() {
            Severity::Error => true,
            Severity::Warning => is_strict,
            Severity::Note => false,
        };
        let is_right = !findings.iter().any(refuses);
        Report { model: model.filter(|_| is_right), findings, is_strict }
    }

    /// The `file` record of the weights.
    fn file(&self) -> Option<File> {
        let map = self.weights.as_ref()?;
        Some(File {
            id: WEIGHTS_ID.to_owned(),
            name: name_of(map.path()),
            path: map.path().display().to_string(),
            format: "safetensors".to_owned(),
            bytes: map.bytes().len() as u64,
        })
    }

    /// What was read: the graph, and the header of the weights.
    fn inputs(&self) -> Vec<ToolInput> {
        let input =
            |name: String, bytes: u64, read: &[u8]| ToolInput { name, bytes, sha256: hex(&Sha256::digest(read)) };
        let graph = self.graph();
        let name = Path::new(&self.graph_path);
        let mut inputs = vec![input(name_of(name), graph.len() as u64, graph)];
        if let Some(map) = &self.weights {
            let bytes = map.bytes();
            let length = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
            let end =
                usize::try_from(length).ok().and_then(|n| n.checked_add(8)).unwrap_or(usize::MAX).min(bytes.len());
            inputs.push(input(name_of(map.path()), bytes.len() as u64, bytes.get(..end).unwrap_or(bytes)));
        }
        inputs
    }

    /// Writes the report as a stream: the plan where the graph is right, then every finding.
    pub fn write_records<W: Write>(&self, report: &Report<'_, '_>, tool: (&str, &str), out: W) -> io::Result<W> {
        let mut writer = Writer::begin(out)?;
        let mut options = Kwargs::new();
        if report.is_strict {
            options.insert("strict".to_owned(), Arg::Bool(true));
        }
        let (name, version) = (tool.0.to_owned(), tool.1.to_owned());
        writer.write(&Tool { name, version, options, inputs: self.inputs() })?;
        if report.model.is_some() {
            writer.write(&source())?;
        }
        if let Some(file) = self.file() {
            writer.write(&file)?;
        }
        if let Some(model) = &report.model {
            Plan::new(model, self.text()).write_records(&mut writer, WEIGHTS_ID)?;
        }
        let lines = self.text().map(Lines::new);
        for finding in &report.findings {
            let place = lines.as_ref().zip(finding.at).map(|(lines, at)| lines.text(at));
            writer.write(&Diagnostic {
                severity: severity(report.effective(finding)),
                code: finding.code.name().to_owned(),
                node: place.map(|place| format!("{}:{place}", name_of(Path::new(&self.graph_path)))),
                message: finding.message.clone(),
                hint: None,
            })?;
        }
        writer.finish(if report.model.is_some() { Status::Ok } else { Status::Failed })
    }

    /// Writes the contract's own payload. Nothing is written for a graph that is refused.
    pub fn write_native<W: Write>(&self, report: &Report<'_, '_>, out: W) -> io::Result<()> {
        match &report.model {
            Some(model) => Plan::new(model, self.text()).write_native(out),
            None => Ok(()),
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn severity(severity: Severity) -> m2m_record::Severity {
    match severity {
        Severity::Error => m2m_record::Severity::Error,
        Severity::Warning => m2m_record::Severity::Warning,
        Severity::Note => m2m_record::Severity::Note,
    }
}

/// What is to be said of a bundle.
pub struct Report<'g, 'a> {
    /// The model; `None` where the graph is refused.
    pub model: Option<Model<'g, 'a>>,
    /// Everything that was found, in the order of the text.
    pub findings: Vec<Finding>,
    is_strict: bool,
}

impl Report<'_, '_> {
    /// How bad a finding is under this check.
    pub fn effective(&self, finding: &Finding) -> Severity {
        match finding.severity() {
            Severity::Warning if self.is_strict => Severity::Error,
            severity => severity,
        }
    }
}
