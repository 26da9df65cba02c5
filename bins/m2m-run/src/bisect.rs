//! The first node of the current graph whose value differs between two executions.
//!
//! Values are compared by their places in the order of execution, those of nested graphs before the node that calls them
//! where both sides have them. A module has none of those, and of its nodes what operations give to others: a result is
//! right if one of the tensors of its type is.

use crate::again::again;
use crate::args::Args;
use crate::compare::{Tolerance, Verdict, compare};
use crate::golden::Named;
use crate::outputs::Outputs;
use crate::plan::Story;
use crate::smallest;
use crate::tensors::{TensorFile, TensorView};
use crate::trace::{Origin, Origins, reached};
use m2m_cli::{Content, Failure, Message, Messages, Status};
use m2m_graph::Program;
use m2m_record::Node;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

/// The reference's values.
pub enum References {
    /// Of another engine.
    Engine(Box<Outputs>),
    /// Of a file.
    File(TensorFile),
}

/// Values of one of the two executions.
enum Side<'a> {
    Engine(&'a Outputs, HashMap<&'a str, Vec<&'a Named>>),
    File(&'a TensorFile),
}

impl<'a> Side<'a> {
    fn of(outputs: &'a Outputs) -> Self {
        let mut values: HashMap<&str, Vec<&Named>> = HashMap::new();
        outputs.values.iter().for_each(|named| values.entry(&named.key).or_default().push(named));
        Self::Engine(outputs, values)
    }

    fn name(&self) -> String {
        match self {
            Self::Engine(outputs, _) => format!("engine {}", outputs.engine),
            Self::File(file) => file.path().display().to_string(),
        }
    }

    fn is_module(&self) -> bool {
        matches!(self, Self::Engine(outputs, _) if outputs.engine == "mlir")
    }

    /// What may be the value of a place.
    fn get(&self, place: &str) -> Vec<TensorView<'a>> {
        match self {
            Self::Engine(_, values) => values.get(place).into_iter().flatten().map(|named| named.view()).collect(),
            Self::File(file) => file.get(place).into_iter().collect(),
        }
    }

    /// The value of a place, if only one may be it.
    fn only(&self, place: &str) -> Option<Named> {
        match self.get(place).as_slice() {
            [view] => Some(named(place, view)),
            _ => None,
        }
    }

    /// Places in the order of execution.
    fn places(&self, graphs: &'a Program) -> Vec<&'a str> {
        match self {
            Self::Engine(outputs, _) if outputs.engine == "torch" => {
                outputs.values.iter().map(|named| named.key.as_str()).collect()
            }
            _ => {
                let results = graphs.root.nodes.iter().flat_map(|node| &node.results);
                results.filter_map(|result| result.value.as_deref()).collect()
            }
        }
    }
}

fn named(key: &str, view: &TensorView<'_>) -> Named {
    Named { key: key.to_owned(), dtype: view.dtype, dims: view.dims(), data: view.bytes.to_vec() }
}

/// Where two executions part.
struct Parting<'a> {
    /// The node, and the value that differs.
    node: &'a Node,
    place: &'a str,
    verdict: Verdict,
    /// The node of the root graph that executes it: itself unless it is of a nested graph.
    root: &'a Node,
    /// Whether it calls graphs of which no value was compared.
    is_closed: bool,
}

/// Finds the first node that differs, says so, writes the stream of it, and says whether that shows the difference.
pub fn bisect(
    args: &Args,
    file: &Path,
    (graphs, story): (&Program, &Story),
    outputs: &Outputs,
    references: &References,
    messages: &Messages,
) -> Result<Status, Failure> {
    let own = Side::of(outputs);
    let reference = match references {
        References::Engine(outputs) => Side::of(outputs),
        References::File(file) => Side::File(file),
    };
    let (parting, compared) = first_parting(args, graphs, &own, &reference);
    let mut output = args.output.open(Content::Text, &[])?;
    let Some(parting) = parting else {
        if compared == 0 {
            return Err(Failure::new(format!("has no value that {} also has", own.name())).input(reference.name()));
        }
        writeln!(output, "{compared} values compared, none differs").map_err(|error| output.error(error))?;
        output.finish()?;
        return Ok(Status::Done);
    };
    // What the reference gives for a node is what it makes of its own values.
    let operand =
        |name: &str| reference.only(name).or_else(|| own.only(name)).or_else(|| given(graphs, story, outputs, name));
    let written = smallest::write(args, file, graphs, parting.root, &operand, &|name| reference.only(name))?;
    let Parting { node, place, verdict, root, is_closed } = parting;
    messages.send(&Message::error(format!("{place}: {}: {verdict}", node.op)).input(reference.name()).node(&node.node));
    let alone = if node.node == root.node { "it".to_owned() } else { format!("{}, which executes it,", root.node) };
    let (file, tensors) = (file.display(), written.tensors.display());
    let found = format!("{} of {compared} values agree before {}; {alone} is alone in {file}", compared - 1, node.node);
    let found = format!("{found}, its tensors in {tensors}, {}", again(args, outputs.engine, &written));
    let closed = "; the graphs that it calls were not entered, since only one side has values of their nodes";
    writeln!(output, "{found}{}", if is_closed { closed } else { "" }).map_err(|error| output.error(error))?;
    output.finish()?;
    Ok(Status::No)
}

/// The first value outside of its tolerance, and how many were compared up to it.
fn first_parting<'a>(
    args: &Args,
    graphs: &'a Program,
    own: &Side<'a>,
    reference: &Side<'a>,
) -> (Option<Parting<'a>>, usize) {
    let origins = Origins::of(graphs);
    let places = own.places(graphs);
    let mut entered: HashSet<&str> = HashSet::new();
    let mut compared = 0;
    for (at, &place) in places.iter().enumerate() {
        let Some(origin) = origins.get(place) else { continue };
        let Some(verdict) = verdict(args, place, own, reference) else { continue };
        compared += 1;
        entered.insert(&origin.graph.id);
        if verdict.is_right() {
            continue;
        }
        let Origin { graph, node } = *origin;
        // A graph may be called from several places; the call that executed it is the next one.
        let later = places[at..].iter().filter_map(|place| Some(origins.get(place)?.node));
        let calls = |other: &&Node| other.node == node.node || reached(graphs, other).contains(&graph.id);
        let root = later.chain(&graphs.root.nodes).filter(|other| other.graph == graphs.root.id).find(calls);
        let reached = reached(graphs, node);
        let is_closed = !reached.is_empty() && !reached.iter().any(|id| entered.contains(id.as_str()));
        return (Some(Parting { node, place, verdict, root: root.unwrap_or(node), is_closed }), compared);
    }
    (None, compared)
}

/// What comparing a value finds, if both sides have it: the best of what may be it.
fn verdict(args: &Args, place: &str, own: &Side<'_>, reference: &Side<'_>) -> Option<Verdict> {
    let (rtol, atol) = args.tolerances();
    let has_module = own.is_module() || reference.is_module();
    let mut best: Option<Verdict> = None;
    for mine in own.get(place) {
        for other in reference.get(place) {
            // What operations gave that shape the value otherwise is not the value.
            if has_module && mine.shape != other.shape {
                continue;
            }
            let tolerance = Tolerance::of(mine.dtype).overridden(rtol, atol);
            let found = compare(mine.dtype, &mine.dims(), mine.bytes, &other, tolerance);
            if best.as_ref().is_none_or(|best| wrongs(&found) < wrongs(best)) {
                best = Some(found);
            }
        }
    }
    best
}

/// How many elements are wrong.
fn wrongs(verdict: &Verdict) -> usize {
    match verdict {
        Verdict::Numbers(difference) => difference.outside,
        Verdict::Mismatch(_) => usize::MAX,
    }
}

/// The value of an input that a user gave, or of state that the stream lacks.
fn given(graphs: &Program, story: &Story, own: &Outputs, name: &str) -> Option<Named> {
    let input = graphs.root.inputs.iter().find(|input| input.value == name)?;
    let key = story.leaf(name).or_else(|| input.target.clone()).unwrap_or_else(|| name.to_owned());
    if let Some(scalar) = own.inputs.scalars.get(&key) {
        return Some(scalar.named(name));
    }
    let view = own.inputs.get(&key).or_else(|| own.inputs.get(name))?;
    Some(named(name, &view))
}
