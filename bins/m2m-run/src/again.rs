//! Executes the stream of one node with the engine that differed: whether the node alone shows the difference.
//!
//! Inputs and references come from memory. A module is lowered from the stream's graph, as whoever gets the stream does.

use crate::args::Args;
use crate::compare::{Tolerance, compare};
use crate::golden::Named;
use crate::graph;
use crate::inputs::Inputs;
use crate::outputs::Outputs;
use crate::plan::Story;
use crate::smallest::Written;
use m2m_graph::{Collector, Program};
use m2m_lower::PackedFor;
use m2m_lower::stream::{MODULE_FILE_ID, to_records};
use m2m_record::File;
use std::fmt;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It differs.
    Differs,
    /// It does not; whether a module of it was lowered for that.
    Agrees {
        /// Lowered anew.
        is_lowered: bool,
    },
    /// The engine cannot execute it, or there is nothing to compare with.
    Cannot(String),
}

impl fmt::Display for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs => f.write_str("and differs there too"),
            Self::Agrees { is_lowered: true } => {
                f.write_str("but agrees there, lowered anew and on the reference's values")
            }
            Self::Agrees { is_lowered: false } => f.write_str("but agrees there, on the reference's values"),
            Self::Cannot(why) => write!(f, "but cannot be executed there: {why}"),
        }
    }
}

/// Executes a stream again.
pub fn again(args: &Args, engine: &str, written: &Written) -> Again {
    if written.references.is_empty() {
        return Again::Cannot("the reference has no value of its results".to_owned());
    }
    let outputs = match execute(args, engine, written) {
        Ok(outputs) => outputs,
        Err(why) => return Again::Cannot(why),
    };
    let (rtol, atol) = args.tolerances();
    let is_right = |reference: &Named| {
        let tolerance = Tolerance::of(reference.dtype).overridden(rtol, atol);
        let output = outputs.iter().find(|output| output.key == reference.key);
        output.is_some_and(|o| compare(o.dtype, &o.dims, &o.data, &reference.view(), tolerance).is_right())
    };
    let is_lowered = engine == "mlir";
    if written.references.iter().all(is_right) { Again::Agrees { is_lowered } } else { Again::Differs }
}

fn execute(args: &Args, engine: &str, written: &Written) -> Result<Vec<Named>, String> {
    let root = args.root.path();
    let inputs = Inputs::of_made(args, written.inputs.clone()).map_err(|error| error.to_string())?;
    if engine == "mlir" {
        let (stream, module) = lowered(&written.stream)?;
        let (story, _) = told(&stream)?;
        let plan = module.map_or_else(|| story.plan(root), |module| story.plan_with(module));
        let outputs = plan.and_then(|plan| Outputs::of(args, &plan, &story, inputs, root, &[]));
        return outputs.map(|outputs| outputs.named).map_err(|error| error.to_string());
    }
    let (story, graphs) = told(&written.stream)?;
    let done = graph::execute(args, &graphs, &story, &inputs, root, false);
    done.map(|done| done.outputs).map_err(|errors| joined(errors.iter().map(ToString::to_string)))
}

fn joined(messages: impl Iterator<Item = String>) -> String {
    messages.collect::<Vec<_>>().join("; ")
}

/// What a stream says.
fn told(stream: &[u8]) -> Result<(Story, Program), String> {
    let (mut story, mut graphs) = (Story::default(), Collector::new());
    crate::read(stream, std::io::sink(), &mut story, &mut graphs).map_err(|failure| failure.to_string())?;
    Ok((story, graphs.finish().map_err(|error| error.to_string())?))
}

/// The stream with a module, and the module's bytes if they do not travel in it.
fn lowered(stream: &[u8]) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
    let mut module = None;
    let mut keep = |_: &Program, bytes: &[u8]| {
        module = Some(bytes.to_vec());
        let (id, format) = (MODULE_FILE_ID.to_owned(), "mlir".to_owned());
        Ok(File { name: id.clone(), path: id.clone(), id, format, bytes: bytes.len() as u64 })
    };
    // What PyTorch multiplies here it takes as packed here.
    let options =
        m2m_lower::Options { packed_for: Some(PackedFor::of_this_machine()), ..m2m_lower::Options::default() };
    let lowered = to_records(stream, Vec::new(), env!("CARGO_PKG_VERSION"), options, &mut keep);
    match lowered.map_err(|error| error.to_string())? {
        m2m_lower::Outcome::Done(stream, _) => Ok((stream, module)),
        m2m_lower::Outcome::Refused(refused, _) => Err(joined(refused.into_iter().map(|refusal| refusal.message))),
    }
}
