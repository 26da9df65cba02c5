//! The source graph for Model Explorer, with times on its nodes and on the groups that its modules make.
//!
//! A time that several nodes share stands on each of them, marked as shared: which of them had it is not known.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::Serialize;

use super::modules::roll_up;
use super::stats::{Summary, mean};
use super::table::rounded;
use crate::capture::{Capture, FRAMEWORK_EVENTS, OPERATOR_CALL};
use crate::etrecord::SourceNode;

#[derive(Serialize)]
struct Graph<'g> {
    id: &'g str,
    nodes: Vec<Node<'g>>,
    #[serde(rename = "groupNodeAttributes")]
    groups: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Serialize)]
struct Node<'g> {
    id: &'g str,
    label: &'g str,
    namespace: String,
    attrs: Vec<Attribute>,
    #[serde(rename = "incomingEdges")]
    edges: Vec<Edge<'g>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    style: Option<Style>,
}

#[derive(Serialize)]
struct Attribute {
    key: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Edge<'g> {
    #[serde(rename = "sourceNodeId")]
    source: &'g str,
    #[serde(rename = "sourceNodeOutputId")]
    output: &'static str,
    #[serde(rename = "targetNodeInputId")]
    input: String,
}

#[derive(Serialize)]
struct Style {
    #[serde(rename = "backgroundColor")]
    background: String,
}

/// The time that an instruction took, and who shares it.
struct Cost {
    label: String,
    avg: f64,
    p50: f64,
    shared: usize,
}

/// Writes a list of one graph.
///
/// # Errors
/// When the sink fails.
pub fn write<W: Write>(capture: &Capture<'_>, out: &mut W) -> io::Result<()> {
    let source = &capture.source;
    let costs = costs(capture);
    let most = costs.values().flatten().map(|cost| cost.avg).fold(0.0, f64::max);
    let unit = capture.options.target.name();
    let outputs: HashMap<&str, &SourceNode> = source.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    let node = |(at, node): (usize, &'_ SourceNode)| {
        let own = costs.get(&at).map(Vec::as_slice).unwrap_or_default();
        let heat = own.iter().map(|cost| cost.avg).fold(0.0, f64::max) / most;
        Node {
            id: &capture.source.nodes[at].name,
            label: &capture.source.nodes[at].target,
            namespace: namespace(node),
            attrs: attributes(node, own, unit),
            edges: edges(&capture.source.nodes[at], &outputs),
            style: (!own.is_empty() && heat.is_finite()).then(|| Style { background: colour(heat) }),
        }
    };
    let id = source.method.as_deref().unwrap_or("forward");
    let nodes = source.nodes.iter().enumerate().map(node).collect();
    serde_json::to_writer(&mut *out, &[Graph { id, nodes, groups: groups(capture) }])?;
    out.write_all(b"\n")
}

/// Times by node, of all blocks. What is inside a call is left to the call, so that nothing counts twice on a node.
fn costs(capture: &Capture<'_>) -> HashMap<usize, Vec<Cost>> {
    let mut costs: HashMap<usize, Vec<Cost>> = HashMap::new();
    for block in &capture.blocks {
        for event in &block.events {
            let framework = event.name.is_some_and(|name| FRAMEWORK_EVENTS.contains(&name));
            let (Some(summary), false) = (Summary::of(&event.samples), framework) else { continue };
            if event.name == Some(OPERATOR_CALL) {
                continue;
            }
            let mut nodes = event.nodes.clone();
            nodes.sort_unstable();
            nodes.dedup();
            for at in &nodes {
                let (label, shared) = (event.label(), nodes.len());
                let cost = Cost { label, avg: summary.avg, p50: summary.p50, shared };
                costs.entry(*at).or_default().push(cost);
            }
        }
    }
    costs
}

fn attributes(node: &SourceNode, costs: &[Cost], unit: &str) -> Vec<Attribute> {
    let mut attrs = Vec::new();
    let mut add = |key, value: String| attrs.push(Attribute { key, value });
    if let Some(handle) = node.handle {
        add("debug_handle", handle.to_string());
    }
    if let Some(loc) = &node.loc {
        add("loc", loc.clone());
    }
    for cost in costs {
        let with = if cost.shared > 1 { format!(", shared by {} nodes", cost.shared) } else { String::new() };
        let (avg, p50) = (rounded(cost.avg), rounded(cost.p50));
        add("time", format!("{}: avg {avg} {unit}, p50 {p50} {unit}{with}", cost.label));
    }
    attrs
}

fn edges<'g>(node: &'g SourceNode, known: &HashMap<&str, &SourceNode>) -> Vec<Edge<'g>> {
    let edge = |(number, name): (usize, &'g String)| Edge { source: name, output: "0", input: number.to_string() };
    node.inputs.iter().filter(|name| known.contains_key(name.as_str())).enumerate().map(edge).collect()
}

/// The modules around a node as a path; a slash in a module's name would begin another.
fn namespace(node: &SourceNode) -> String {
    let name = |path: &str| path.rsplit('.').next().unwrap_or_default().replace('/', "_");
    let inner = node.modules.iter().filter(|module| !module.path.is_empty());
    inner.map(|module| name(&module.path)).collect::<Vec<_>>().join("/")
}

fn groups(capture: &Capture<'_>) -> BTreeMap<String, BTreeMap<String, String>> {
    let unit = capture.options.target.name();
    let mut groups: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for row in roll_up(capture) {
        let Some(stack) = &row.stack else { continue };
        let node = SourceNode { modules: stack.clone(), ..SourceNode::default() };
        let block = capture.blocks.get(row.block).map_or("", |block| block.name);
        let value = format!("avg {} {unit}", rounded(mean(&row.total).unwrap_or(0.0)));
        groups.entry(namespace(&node)).or_default().insert(format!("time of block {} {block}", row.block), value);
    }
    groups
}

/// From white for nothing to red for the slowest.
fn colour(heat: f64) -> String {
    let rest = (255.0 * (1.0 - heat.clamp(0.0, 1.0))).round() as u8;
    format!("#ff{:02x}{rest:02x}", rest.saturating_add((255 - rest) / 4))
}
