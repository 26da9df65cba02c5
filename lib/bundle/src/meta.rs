//! `meta.json`: what the model is and which tools made the bundle of it.

use crate::story::Story;
use crate::trace::Traced;
use crate::{Error, ModelFile, TRACE_NAME, WeightsFile};
use m2m_record::{Source, Tool};
use serde::Serialize;

/// The version of the layout, in the field `schema`.
pub const META_SCHEMA: &str = "m2m.meta.v1";

/// What the file says.
#[derive(Clone, Debug, Serialize)]
pub struct Meta {
    schema: &'static str,
    /// What the artifact says of itself.
    source: Option<Source>,
    /// The tools of the pipe, in order, with their options and what they read.
    tools: Vec<Tool>,
    /// The root graphs, in order, with their seals.
    stages: Vec<StageLine>,
    model: ModelFile,
    weights: WeightsFile,
    trace: TraceFile,
}

#[derive(Clone, Debug, Serialize)]
struct StageLine {
    graph: String,
    nodes: u64,
    sha256: String,
}

#[derive(Clone, Debug, Serialize)]
struct TraceFile {
    file: &'static str,
    records: u64,
    bytes: u64,
    sha256: String,
}

impl Meta {
    pub(crate) fn new(story: Story, own: Tool, traced: Traced, model: ModelFile, weights: WeightsFile) -> Self {
        let stages = story.stages.into_iter();
        let trace = TraceFile {
            file: TRACE_NAME,
            records: traced.records,
            bytes: traced.hashed.bytes,
            sha256: traced.hashed.digest.to_string(),
        };
        Meta {
            schema: META_SCHEMA,
            source: story.source,
            tools: story.tools.into_iter().chain([own]).collect(),
            stages: stages.map(|s| StageLine { graph: s.graph, nodes: s.nodes, sha256: s.sha256 }).collect(),
            model,
            weights,
            trace,
        }
    }

    /// The bytes of the file.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        crate::manifest::to_json(self)
    }
}
