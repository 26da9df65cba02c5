//! ETRecords: what `to_executorch` remembers of a program, for who wants to explain what a runtime measured.
//!
//! A zip archive with the graphs from before partitioning, and maps from instructions to the debug handles of their nodes.
//! The archive has no version beyond its identifier. Graphs are read when they are asked for; weights, which a record
//! also holds, never.

mod graph;
mod maps;

use std::borrow::Cow;

use m2m_record::raw::Entry as EntryRecord;
use m2m_zip::{Entry, Zip};
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use graph::{GETITEM, SourceGraph, SourceNode};
pub use maps::{Delegate, Instruction, Maps};

/// Name of the entry that makes an archive an ETRecord.
pub const IDENTIFIER: &str = "ETRECORD_V0";

/// Folder of the graphs from before partitioning; without a method behind it in records of one graph.
pub const EDGE: &str = "edge_dialect_exported_program";

/// Entry of the program before any of ExecuTorch's own passes.
pub const EXPORTED: &str = "exported_program";

/// What follows a graph's name in the names of what belongs to it.
const COMPANIONS: [&str; 3] = ["_state_dict", "_constants", "_example_inputs"];

/// Most bytes that a graph or a map may have: a record's graph is text, and takes several times its size to read.
pub const MAX_TEXT_BYTES: u64 = 1 << 30;

/// Why an ETRecord cannot be read.
#[derive(Debug, Error)]
pub enum Error {
    /// The archive is broken.
    #[error(transparent)]
    Zip(#[from] m2m_zip::Error),
    /// The archive is of another kind.
    #[error("entry {IDENTIFIER:?} is missing, so this is no ETRecord; {hint}")]
    Identifier {
        /// What it may be instead.
        hint: &'static str,
    },
    /// A map that every record has is not there.
    #[error("entry {name:?} is missing; the ETRecord was not made by to_executorch(), or was cut")]
    Missing {
        /// The entry.
        name: &'static str,
    },
    /// An entry is not the JSON that it should be.
    #[error("entry {entry:?}: {detail}")]
    Json {
        /// The entry.
        entry: String,
        /// Line, column and what was found.
        detail: String,
    },
    /// An entry is too large to be read as text.
    #[error("entry {entry:?} has {bytes} bytes; at most {MAX_TEXT_BYTES} are read")]
    TooLarge {
        /// The entry.
        entry: String,
        /// Its unpacked size.
        bytes: u64,
    },
    /// The record has no graph for a method.
    #[error("no graph for method {method:?}; the ETRecord has {}", names(.graphs))]
    NoGraph {
        /// The method.
        method: String,
        /// The graphs that are there.
        graphs: Vec<String>,
    },
}

/// A list of names for a message.
pub(crate) fn names(list: &[String]) -> String {
    match list {
        [] => "none".to_owned(),
        list => list.join(", "),
    }
}

/// An opened record.
#[derive(Debug)]
pub struct EtRecord<'a> {
    zip: Zip<'a>,
    maps: Maps,
    export_graph_id: i64,
}

impl<'a> EtRecord<'a> {
    /// Reads the directory and the maps of an archive.
    ///
    /// # Errors
    /// Whatever [`Error`] names, except `NoGraph`.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        let zip = Zip::open_packed(bytes)?;
        if zip.find(IDENTIFIER).is_none() {
            return Err(Error::Identifier { hint: hint(&zip) });
        }
        let (handles, delegates, outputs) = ("debug_handle_map", "delegate_map", "instruction_id_to_num_outs_map");
        let Some(found) = text_of(&zip, handles)? else { return Err(Error::Missing { name: handles }) };
        let mut maps = Maps::default();
        maps.read_handles(&found).map_err(json(handles))?;
        if let Some(found) = text_of(&zip, delegates)? {
            maps.read_delegates(&found).map_err(json(delegates))?;
        }
        if let Some(found) = text_of(&zip, outputs)? {
            maps.read_outputs(&found).map_err(json(outputs))?;
        }
        let id = "export_graph_id";
        let export_graph_id = match text_of(&zip, id)? {
            Some(found) => serde_json::from_slice(&found).map_err(json(id))?,
            None => 0,
        };
        Ok(EtRecord { zip, maps, export_graph_id })
    }

    /// The maps of all methods.
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Identity of the exported graph in the process that made the record; 0 where there is none.
    pub fn export_graph_id(&self) -> i64 {
        self.export_graph_id
    }

    /// Names of the entries that hold graphs, in the archive's order.
    pub fn graphs(&self) -> Vec<&str> {
        let is_companion = |name: &str| {
            COMPANIONS.iter().any(|end| name.strip_suffix(end).is_some_and(|stem| self.zip.find(stem).is_some()))
        };
        let has_state = |name: &str| self.zip.find(&format!("{name}{}", COMPANIONS[0])).is_some();
        let is_graph = |entry: &&Entry| {
            let name = entry.name.as_str();
            (is_edge(name) || name == EXPORTED || has_state(name)) && !is_companion(name)
        };
        self.zip.entries().iter().filter(is_graph).map(|entry| entry.name.as_str()).collect()
    }

    /// The entry with the graph of a method from before partitioning. Where the record has one graph and one method they
    /// belong together whatever they are called: a single method's graph is stored as `forward`.
    ///
    /// # Errors
    /// [`Error::NoGraph`].
    pub fn edge_graph_of(&self, method: &str) -> Result<String, Error> {
        let edge: Vec<&str> = self.graphs().into_iter().filter(|name| is_edge(name)).collect();
        let own = format!("{EDGE}/{method}");
        if edge.contains(&own.as_str()) {
            return Ok(own);
        }
        match edge.as_slice() {
            [only] if self.maps.methods().count() == 1 => Ok((*only).to_owned()),
            _ => {
                Err(Error::NoGraph { method: method.to_owned(), graphs: edge.into_iter().map(str::to_owned).collect() })
            }
        }
    }

    /// Reads the graph in an entry.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::TooLarge`] and [`Error::Zip`].
    pub fn graph(&self, entry: &str) -> Result<SourceGraph, Error> {
        let Some(text) = text_of(&self.zip, entry)? else {
            return Err(Error::NoGraph { method: entry.to_owned(), graphs: Vec::new() });
        };
        SourceGraph::parse(entry, &text).map_err(json(entry))
    }

    /// Every entry with its digest. Reads the whole archive.
    ///
    /// # Errors
    /// [`Error::Zip`] when an entry is damaged.
    pub fn entries(&self) -> impl Iterator<Item = Result<EntryRecord, Error>> + '_ {
        self.zip.entries().iter().map(|entry| {
            let contents = self.zip.contents(entry)?;
            Ok(EntryRecord {
                name: entry.name.clone(),
                compress_type: entry.packing.number(),
                bytes: entry.unpacked,
                crc32: format!("{:08x}", entry.crc),
                sha256: m2m_record::writer::hex(&Sha256::digest(&contents)),
            })
        })
    }

    /// What identifies the record: the digest of its directory's names, sizes and checksums.
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for entry in self.zip.entries() {
            digest.update(format!("{}\0{}\0{:08x}\n", entry.name, entry.unpacked, entry.crc));
        }
        m2m_record::writer::hex(&digest.finalize())
    }
}

fn is_edge(name: &str) -> bool {
    name.strip_prefix(EDGE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The contents of an entry that is small enough to be read as text.
fn text_of<'a>(zip: &Zip<'a>, name: &str) -> Result<Option<Cow<'a, [u8]>>, Error> {
    let Some(entry) = zip.find(name) else { return Ok(None) };
    if entry.unpacked > MAX_TEXT_BYTES {
        return Err(Error::TooLarge { entry: name.to_owned(), bytes: entry.unpacked });
    }
    Ok(Some(zip.contents(entry)?))
}

fn json(entry: &str) -> impl FnOnce(serde_json::Error) -> Error + '_ {
    move |error| Error::Json { entry: entry.to_owned(), detail: error.to_string() }
}

/// What an archive without the identifier is.
fn hint(zip: &Zip<'_>) -> &'static str {
    let has = |test: &dyn Fn(&str) -> bool| zip.entries().iter().any(|entry| test(&entry.name));
    if has(&|name| name == "debug_handle_map" || is_edge(name)) {
        return "the archive was changed since it was saved";
    }
    if has(&|name| name.ends_with("archive_format") || name == "serialized_exported_program.json") {
        return "it is a .pt2 file, which m2m-capture reads";
    }
    if has(&|name| name.ends_with("data.pkl")) {
        return "it is a file of torch.save";
    }
    "get_etrecord().save() makes one"
}
