//! Holds a graph against the contract: every rule, all findings in one run.
//!
//! The order is that of the contract, but nothing hides anything else: metadata of the module, the function and its ABI,
//! each operation by itself ([`op`]), what follows from how operations meet ([`flow`]), and the weights file ([`weights`]).
//! [`Model`] is what a graph without errors is: the parts that a plan is written from.

mod abi;
mod flow;
mod op;
mod weights;

pub use weights::{Bound, Weights};

use crate::finding::{Code, Findings, Offset};
use crate::ir::{Attribute, Block, Entry, Function, Graph, Name, Operation};
use crate::schema::{ENTRY, IR_VERSION, InputRole, OutputRole, SCHEMA_DIGEST, WEIGHT_FILE, known_version};
use op::View;

/// An argument or a result, as its caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abi<R> {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: R,
}

/// A graph's function and what its module says about it.
pub struct Model<'g, 'a> {
    /// The graph.
    pub graph: &'g Graph<'a>,
    /// The signature.
    pub function: &'g Function,
    /// Arguments and operations.
    pub block: &'g Block<'a>,
    /// Of each argument.
    pub inputs: Vec<Abi<InputRole>>,
    /// Of each result.
    pub outputs: Vec<Abi<OutputRole>>,
    /// The stored tensors of each `weight`, by its place in the block; empty without a weights file.
    pub weights: Vec<(usize, Vec<Bound>)>,
}

impl<'g, 'a> Model<'g, 'a> {
    /// The operations of the dialect, in order.
    pub fn ops(&self) -> impl Iterator<Item = (usize, &'g Operation<'a>, crate::schema::Op)> + use<'g, 'a> {
        self.block.ops.iter().enumerate().filter_map(|(at, op)| match op.name {
            Name::Own(own) => Some((at, op, own)),
            _ => None,
        })
    }

    /// What ends the block.
    pub fn returned(&self) -> Option<&'g Operation<'a>> {
        self.block.ops.last().filter(|op| op.name == Name::Return)
    }
}

/// Checks a graph, and its weights where they are given. The model is there when the function and its ABI could be read.
pub fn verify<'g, 'a>(
    graph: &'g Graph<'a>,
    weights: Option<&Weights>,
    findings: &mut Findings,
) -> Option<Model<'g, 'a>> {
    walk(graph, &graph.ops, findings);
    let module = module(graph, findings)?;
    metadata(module, findings);
    let entry = entry(module, findings)?;
    let function = entry.function.as_deref()?;
    let block = body(entry, function, findings)?;
    let (inputs, outputs) = abi::check(graph, module, function, block, findings);
    let mut model = Model { graph, function, block, inputs, outputs, weights: Vec::new() };
    if let Some(weights) = weights {
        model.weights = weights::check(&model, weights, findings);
    }
    flow::check(&model, findings);
    Some(model)
}

/// Checks every operation of the dialect, wherever it stands.
fn walk(graph: &Graph<'_>, ops: &[Operation<'_>], findings: &mut Findings) {
    for each in ops {
        if let Name::Own(own) = each.name {
            op::check(&View { graph, op: each, def: own.def() }, findings);
        }
        for block in each.regions.iter().flat_map(|region| &region.blocks) {
            walk(graph, &block.ops, findings);
        }
    }
}

/// The module, which is all that a file holds.
fn module<'g, 'a>(graph: &'g Graph<'a>, findings: &mut Findings) -> Option<&'g Operation<'a>> {
    let mut modules = graph.ops.iter().filter(|op| op.name == Name::Module);
    let Some(module) = modules.next() else {
        // Where nothing could be read, the reason has been told.
        if !findings.has_errors() {
            let at = graph.ops.first().and_then(|op| op.at).unwrap_or(0);
            findings.push(Code::Module, at, "the file holds no module with the attributes of lattice");
        }
        return None;
    };
    for other in graph.ops.iter().filter(|op| !std::ptr::eq(*op, module)) {
        let message = format!("{} beside the module; a file is one module", other.name.text());
        findings.push(Code::Module, other.at, message);
    }
    Some(module)
}

/// What the module says of its version.
fn metadata(module: &Operation<'_>, findings: &mut Findings) {
    if module.is_broken {
        return;
    }
    let missing = |key: &str, wanted: &str| format!("module attribute {key} is missing; expected {wanted}");
    let digest = match module.attribute("lattice.schema_digest") {
        None => {
            let message = missing("lattice.schema_digest", &format!("{SCHEMA_DIGEST:?}"));
            findings.push(Code::SchemaDigest, module.at, message);
            None
        }
        Some(Entry { value: Attribute::Str(text), at, .. }) => Some((text.as_ref(), *at)),
        Some(Entry { value: Attribute::Unknown, .. }) => None,
        Some(entry) => {
            findings.push(Code::SchemaDigest, entry.at, "lattice.schema_digest is no string");
            None
        }
    };
    let known = digest.and_then(|(text, _)| known_version(text));
    let earlier = known.filter(|version| *version != IR_VERSION);
    let hint = match earlier {
        Some(version) => {
            format!("; this graph was written for IR version {version}, export it again with a release of version 2")
        }
        None => String::new(),
    };
    match module.attribute("lattice.ir_version") {
        None => findings.push(Code::IrVersion, module.at, missing("lattice.ir_version", "2")),
        Some(Entry { value: Attribute::Int { value, ty: _ }, .. }) if *value == i128::from(IR_VERSION) => {}
        Some(Entry { value: Attribute::Int { value, .. }, at, .. }) => {
            findings.push(Code::IrVersion, *at, format!("lattice.ir_version is {value}; expected {IR_VERSION}{hint}"));
        }
        Some(Entry { value: Attribute::Unknown, .. }) => {}
        Some(entry) => findings.push(Code::IrVersion, entry.at, "lattice.ir_version is no integer; expected 2"),
    }
    if let Some((text, at)) = digest.filter(|(text, _)| *text != SCHEMA_DIGEST) {
        let case = if text.eq_ignore_ascii_case(SCHEMA_DIGEST) { "; the digits are lower case" } else { "" };
        let message = format!("lattice.schema_digest is {text:?}; expected {SCHEMA_DIGEST:?}{case}{hint}");
        findings.push(Code::SchemaDigest, at, message);
    }
    match module.attribute("lattice.weight_file") {
        None => findings.push(Code::WeightFile, module.at, missing("lattice.weight_file", WEIGHT_FILE)),
        Some(Entry { value: Attribute::Str(text), .. }) if text == WEIGHT_FILE => {}
        Some(Entry { value: Attribute::Unknown, .. }) => {}
        Some(Entry { value: Attribute::Str(text), at, .. }) => {
            findings.push(Code::WeightFile, *at, format!("lattice.weight_file is {text:?}; expected {WEIGHT_FILE:?}"));
        }
        Some(entry) => findings.push(
            Code::WeightFile,
            entry.at,
            format!("lattice.weight_file is no string; expected {WEIGHT_FILE:?}"),
        ),
    }
}

/// The one function of the module.
fn entry<'g, 'a>(module: &'g Operation<'a>, findings: &mut Findings) -> Option<&'g Operation<'a>> {
    let ops = module.regions.iter().flat_map(|region| &region.blocks).flat_map(|block| &block.ops);
    let (functions, others): (Vec<_>, Vec<_>) = ops.partition(|op| op.name == Name::Function);
    for other in others {
        match &other.name {
            Name::Foreign(_) => {}
            name => {
                let message = format!("{} beside the function, which nothing runs", name.text());
                findings.push(Code::StrayOp, other.at, message);
            }
        }
    }
    let Some(entry) = functions.first() else {
        if !module.is_broken {
            findings.push(Code::EntryCount, module.at, "the module has no function; expected func.func @forward");
        }
        return None;
    };
    for more in functions.iter().skip(1) {
        findings.push(Code::EntryCount, more.at, "a second function; expected func.func @forward alone");
    }
    let name = entry.function.as_ref().map_or("", |function| &function.name);
    if name != ENTRY && !entry.function.as_ref().is_some_and(|function| function.is_broken) {
        findings.push(Code::EntryName, entry.at, format!("the function is @{name}; expected @{ENTRY}"));
    }
    Some(entry)
}

/// The one block of the function.
fn body<'g, 'a>(entry: &'g Operation<'a>, function: &Function, findings: &mut Findings) -> Option<&'g Block<'a>> {
    if function.results.is_empty() && !function.is_broken {
        findings.push(Code::EntryResults, entry.at, "the function returns nothing; expected one value or more");
    }
    let blocks: Vec<&Block<'_>> = entry.regions.iter().flat_map(|region| &region.blocks).collect();
    let Some(block) = blocks.first() else {
        if !entry.is_broken {
            findings.push(Code::EntryBody, entry.at, "the function has no body");
        }
        return None;
    };
    if blocks.len() > 1 {
        let message = format!("the function has {} blocks; expected one", blocks.len());
        findings.push(Code::EntryBody, entry.at, message);
    }
    if block.arguments.len() != function.arguments.len() && !function.is_broken {
        let (given, typed) = (block.arguments.len(), function.arguments.len());
        findings.push(Code::EntryBody, entry.at, format!("the block has {given} arguments and the function {typed}"));
    }
    check_end(block, entry.at, findings);
    Some(block)
}

/// The block ends in a return, its only one, and holds nothing but operations of the dialect.
fn check_end(block: &Block<'_>, at: Option<Offset>, findings: &mut Findings) {
    let last = block.ops.len().saturating_sub(1);
    for (place, op) in block.ops.iter().enumerate() {
        match &op.name {
            Name::Return if place != last => {
                findings.push(Code::EntryBody, op.at, "return before the end of the block");
            }
            Name::Module | Name::Function => {
                let message =
                    format!("{} in the body; a graph holds only operations of lattice and func.return", op.name.text());
                findings.push(Code::ForeignOp, op.at, message);
            }
            _ => {}
        }
    }
    if block.ops.last().is_none_or(|op| op.name != Name::Return) && !findings.has_errors() {
        findings.push(Code::EntryBody, at, "the body does not end in return");
    }
}
