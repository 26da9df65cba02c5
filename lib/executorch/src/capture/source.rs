//! What events are explained by: the instructions of one method, and the nodes of the graph that it came from.

use std::collections::BTreeMap;

use super::{BlockEvent, DELEGATE_CALL, Error};
use crate::etrecord::{EtRecord, Instruction, SourceNode};
use indexmap::IndexMap;

/// Which method is wanted, and how the caller's users name one.
#[derive(Clone, Copy, Debug)]
pub struct Methods<'o> {
    /// The method, where one was asked for.
    pub asked: Option<&'o str>,
    /// The option that the caller's users know.
    pub option: &'o str,
}

/// The one method there is, or the one that was asked for.
///
/// # Errors
/// [`Error::SeveralMethods`], [`Error::UnknownMethod`] and [`Error::NoMethods`].
pub fn choose_method(methods: &[String], wanted: Methods<'_>) -> Result<String, Error> {
    let (methods_owned, option) = (|| methods.to_vec(), wanted.option.to_owned());
    match (wanted.asked, methods) {
        (_, []) => Err(Error::NoMethods),
        (Some(asked), _) if methods.iter().any(|method| method == asked) => Ok(asked.to_owned()),
        (Some(asked), _) => Err(Error::UnknownMethod { method: asked.to_owned(), methods: methods_owned(), option }),
        (None, [only]) => Ok(only.clone()),
        (None, several) => Err(Error::SeveralMethods { found: several.len(), methods: methods_owned(), option }),
    }
}

/// The explanation of a method's events. The empty one explains nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The method.
    pub method: Option<String>,
    /// All methods that there were.
    pub methods: Vec<String>,
    /// Its instructions.
    pub instructions: IndexMap<i32, Instruction>,
    /// Whether calls of delegates are recorded at all.
    pub has_delegates: bool,
    /// The graph, by the name of its entry.
    pub graph: Option<String>,
    /// The nodes of the graph.
    pub nodes: Vec<SourceNode>,
    /// Positions of nodes by debug handle.
    pub handles: BTreeMap<i64, Vec<usize>>,
    /// How many graphs are nested in the graph, whose nodes are not there.
    pub nested: usize,
    /// Identity of the exported graph in the process that made the record.
    pub export_graph_id: Option<i64>,
}

impl Source {
    /// A source that only says which method events are taken to belong to.
    pub fn labelled(method: Option<&str>) -> Self {
        Source { method: method.map(str::to_owned), ..Source::default() }
    }

    /// Reads one method of a record.
    ///
    /// # Errors
    /// Those of [`choose_method`], and those of reading the graph.
    pub fn from_record(record: &EtRecord<'_>, wanted: Methods<'_>) -> Result<Self, Error> {
        let maps = record.maps();
        let methods: Vec<String> = maps.methods().map(str::to_owned).collect();
        let method = choose_method(&methods, wanted)?;
        let graph = record.graph(&record.edge_graph_of(&method)?)?;
        Ok(Source {
            instructions: maps.instructions(&method).cloned().unwrap_or_default(),
            has_delegates: maps.has_delegates,
            method: Some(method),
            methods,
            handles: graph.by_handle(),
            nested: graph.nested,
            graph: Some(graph.entry),
            nodes: graph.nodes,
            export_graph_id: Some(record.export_graph_id()),
        })
    }

    /// What is known of an instruction.
    pub fn instruction(&self, instruction: i32) -> Option<&Instruction> {
        self.instructions.get(&instruction)
    }

    /// Positions of the nodes with these handles, in the order of the handles; again for a handle that comes again.
    pub fn nodes_of(&self, handles: &[i64]) -> Vec<usize> {
        handles.iter().filter_map(|handle| self.handles.get(handle)).flatten().copied().collect()
    }

    /// The nodes of an instruction; none for one that is not known.
    pub fn nodes_for_instruction(&self, instruction: i32) -> Vec<usize> {
        let handles = self.instruction(instruction).and_then(|known| known.handles.as_deref());
        self.nodes_of(handles.unwrap_or_default())
    }

    /// Fills in the backend, the handles and the nodes of an event. A delegate's own event takes the handles of exactly the
    /// id that it carries, or none; any other event of an instruction takes the instruction's.
    pub(super) fn explain(&self, event: &mut BlockEvent<'_>) {
        let Some(known) = event.instruction.and_then(|instruction| self.instruction(instruction)) else { return };
        let delegate = known.delegate.as_ref();
        let handles = match &event.delegate {
            None => known.handles.clone(),
            // Ids are text in the record, whatever they were for the backend.
            Some(id) => delegate.and_then(|delegate| delegate.ids.as_ref()?.get(&id.to_string()).cloned()),
        };
        if event.is_delegated() || event.name == Some(DELEGATE_CALL) {
            event.backend = delegate.map(|delegate| delegate.name.clone());
        }
        event.handles = handles.unwrap_or_default();
        event.nodes = self.nodes_of(&event.handles);
    }
}
