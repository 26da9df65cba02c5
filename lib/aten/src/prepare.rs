//! From a captured graph to one that a target can lower: no writes, only the target's operators, all accounted for.
//!
//! One walk over the old nodes: writes become values (`functional`), operators that the target does not lower become
//! others (`decompose`), what does nothing goes with a proof, and so does, at the end, what nothing uses. Every node
//! that cannot be handled is reported, not only the first. Graphs that nodes call are prepared alike (`region`).

mod effect;
mod memory;
mod region;
mod strided;

use crate::decompose;
use crate::error::Error;
use crate::expand::{Expander, State, without_strides};
use crate::functional::{self, Aliases};
use crate::inline::{Cast, inline};
use crate::packing::PackedFor;
use crate::schema;
use crate::subclass;
use crate::value::{V, shape_of};
use m2m_graph::{Accounting, Emit, Graph, Program, Rewriter};
use m2m_record::{Arg, DType, Elimination, Node, Type, TypedValue};
use std::collections::HashMap;

/// What became of a program.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The prepared graph.
    pub graph: Graph,
    /// The graphs that it calls, callees before callers.
    pub nested: Vec<Graph>,
    /// The old nodes without a successor.
    pub eliminations: Vec<Elimination>,
}

/// A node that cannot be prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Its id.
    pub node: String,
    /// Its operator.
    pub op: String,
    /// Its module path.
    pub scope: Option<String>,
    /// Its place in the source.
    pub loc: Option<String>,
    /// What has no rule, and what would be right.
    pub reason: String,
}

/// Operators that check something when they run. They stay, whoever uses them.
const CHECKS: &[&str] = &[
    "aten._assert_async.default",
    "aten._assert_async.msg",
    "aten._assert_scalar.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
];

/// Operators that give a size as a number, which is a literal or an expression wherever it is used.
const SIZES: &[&str] = &["aten.numel.default", "aten.size.int"];

/// Whether an operator checks something.
fn is_check(op: &str) -> bool {
    CHECKS.contains(&op)
}

/// Which operators a target takes.
#[derive(Clone, Copy)]
pub struct Lowerable<'t> {
    /// Those that it lowers.
    pub directly: &'t dyn Fn(&str) -> bool,
    /// Those that it takes as they are where nothing else is known of them, as calls of functions from elsewhere.
    pub opaquely: &'t dyn Fn(&str) -> bool,
    /// Where matrices of 4-bit weights were packed.
    pub packed_for: PackedFor,
}

/// Prepares a program for a target that lowers the operators `is_lowerable` tells.
pub fn prepare(program: &Program, is_lowerable: &dyn Fn(&str) -> bool) -> Result<Prepared, Vec<Unsupported>> {
    let target = Lowerable { directly: is_lowerable, opaquely: &|_| false, packed_for: PackedFor::default() };
    prepare_opaque(program, target)
}

/// Prepares a program for a target that also takes operators without a rule.
pub fn prepare_opaque(program: &Program, target: Lowerable<'_>) -> Result<Prepared, Vec<Unsupported>> {
    let stage = stage(program);
    let task = Task { program, stage: &stage, target };
    let done = task.graph(&program.root, &stage, None, None)?;
    let mut prepared = Prepared { graph: done.graph, nested: done.called, eliminations: done.eliminations };
    // Nodes are numbered in the order in which they are written.
    let graphs = prepared.nested.iter_mut().chain([&mut prepared.graph]);
    for (k, node) in graphs.flat_map(|graph| &mut graph.nodes).enumerate() {
        node.node = format!("{stage}:{k}");
    }
    Ok(prepared)
}

/// What all graphs of a program have in common.
#[derive(Clone, Copy)]
struct Task<'p> {
    program: &'p Program,
    stage: &'p str,
    target: Lowerable<'p>,
}

/// A prepared graph, with those that it calls.
struct Done {
    graph: Graph,
    called: Vec<Graph>,
    eliminations: Vec<Elimination>,
}

impl Task<'_> {
    /// Prepares one graph, which is called where autocast is `cast`.
    fn graph(&self, old: &Graph, id: &str, parent: Option<&str>, cast: Cast) -> Result<Done, Vec<Unsupported>> {
        let inlined = inline(self.program, old, cast);
        let old = inlined.as_ref().map_or(old, |i| &i.graph);
        let unwrapped = subclass::unwrap(old, &|name| self.program.tensors.get(name));
        let old = unwrapped.as_ref().map_or(old, |u| &u.graph);
        let mut preparer = Preparer::new(*self, old, id, parent);
        if let Some(inlined) = &inlined {
            preparer.casts = Some(&inlined.casts);
        }
        for node in &old.nodes {
            preparer.take(node);
        }
        let mut done = preparer.finish()?;
        if let Some(inlined) = inlined {
            done.eliminations.extend(inlined.eliminations);
        }
        if let Some(unwrapped) = unwrapped {
            for input in &mut done.graph.inputs {
                if let Some(outer) = unwrapped.origins.get(&input.value) {
                    input.origins = vec![outer.clone()];
                }
            }
            done.eliminations.extend(unwrapped.eliminations);
        }
        Ok(done)
    }
}

/// `prepared`, or `prepared.2` where there is one already.
fn stage(program: &Program) -> String {
    let is_taken = |name: &str| program.stages.iter().any(|s| s == name);
    let numbered = (2..).map(|n| format!("prepared.{n}"));
    std::iter::once("prepared".to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

/// What an old node became.
struct Made {
    values: Vec<Option<V>>,
    proof: Option<(&'static str, String)>,
}

struct Preparer<'p> {
    task: Task<'p>,
    old: &'p Graph,
    state: State<'p>,
    /// The nodes that run under autocast, and in which type.
    casts: Option<&'p HashMap<String, DType>>,
    called: region::Called,
    old_types: HashMap<&'p str, &'p Type>,
    /// Who shares memory; absent from a graph that writes nowhere.
    aliases: Option<Aliases>,
    unsupported: Vec<Unsupported>,
}

impl<'p> Preparer<'p> {
    fn new(task: Task<'p>, old: &'p Graph, id: &str, parent: Option<&str>) -> Self {
        let writes = |node: &Node| schema::find(&node.op).is_some_and(|s| functional::is_write(node, &s));
        let aliases = old.nodes.iter().any(writes).then(|| Aliases::new(&old.inputs));
        let types = old.inputs.iter().map(|i| (i.value.clone(), i.ty.clone())).collect();
        let rewriter = match parent {
            Some(parent) => Rewriter::nested(old, id, task.stage, parent),
            None => Rewriter::new(old, id),
        };
        let (is_lowerable, packed_for) = (task.target.directly, task.target.packed_for);
        let state = State { rewriter, types, is_lowerable, is_folding: aliases.is_none(), packed_for };
        let (called, unsupported) = (region::Called::default(), Vec::new());
        Preparer { task, old, state, casts: None, called, old_types: old.types(), aliases, unsupported }
    }

    /// Handles one old node, or notes why it cannot be.
    fn take(&mut self, node: &Node) {
        let mark = self.state.rewriter.nodes().len();
        let Err(error) = self.node(node, mark) else { return };
        self.state.rewriter.truncate(mark);
        let (scope, loc) = self.task.program.places.of_node(node);
        self.unsupported.push(Unsupported {
            node: node.node.clone(),
            op: node.op.clone(),
            scope: scope.map(str::to_owned),
            loc: loc.map(str::to_owned),
            reason: error.to_string(),
        });
        // The rest is still looked at, as if this node had been handled.
        for result in &node.results {
            let Some(name) = &result.value else { continue };
            let ty = without_strides(&result.ty);
            if let (Some(aliases), Type::Tensor(t)) = (&mut self.aliases, &ty)
                && let Ok(shape) = shape_of(t)
            {
                aliases.fresh(name, V { name: name.clone(), dtype: t.dtype, shape });
            }
            self.state.types.insert(name.clone(), ty);
        }
    }

    fn node(&mut self, node: &Node, mark: usize) -> Result<(), Error> {
        if let Some(done) = self.effect(node, mark) {
            return done;
        }
        self.sync_arguments(node)?;
        if region::is_call(node) && (self.state.is_lowerable)(&node.op) {
            return self.region(node);
        }
        let mut mapped = self.mapped(node);
        if let Some(own) = self.cast_of(node) {
            self.cast_operands(node, &mut mapped, own)?;
        }
        let mark = mark.max(self.state.rewriter.nodes().len());
        let schema = schema::find(&node.op);
        if self.aliases.is_some() && schema.as_ref().is_some_and(|s| functional::is_write(node, s)) {
            self.write(node, &mapped, mark)?;
        } else if is_scalar(node) && !has_rule(&self.state, &node.op) {
            return self.keep_scalar(node, mapped);
        } else {
            let mut made = self.expand(node, &mapped)?;
            self.adopt(node, mark, &mut made.values)?;
            if self.aliases.is_some() {
                self.note_aliases(node, mark, &made.values)?;
            }
            if self.state.rewriter.nodes().len() == mark {
                self.eliminate(node, &made);
            }
        }
        Ok(())
    }

    /// The node with arguments of the new graph; scalars that are known by an expression become it.
    fn mapped(&self, node: &Node) -> Node {
        let results = node.results.iter().map(|r| TypedValue { value: None, ty: without_strides(&r.ty) });
        Node {
            op: node.op.clone(),
            args: node.args.iter().map(|a| self.map(a)).collect(),
            kwargs: node.kwargs.iter().map(|(k, a)| (k.clone(), self.map(a))).collect(),
            results: results.collect(),
            returns: node.returns.clone(),
            ..Node::default()
        }
    }

    fn map(&self, arg: &Arg) -> Arg {
        match self.state.rewriter.map(arg) {
            Arg::List(items) => Arg::List(items.iter().map(|a| self.scalar(a)).collect()),
            other => self.scalar(&other),
        }
    }

    fn scalar(&self, arg: &Arg) -> Arg {
        match arg {
            Arg::Value(name) => match self.state.types.get(name) {
                Some(Type::Scalar { expr: Some(text), .. }) => literal(text),
                _ => arg.clone(),
            },
            Arg::List(items) => Arg::List(items.iter().map(|a| self.scalar(a)).collect()),
            other => other.clone(),
        }
    }

    fn expander(&mut self, node: &Node) -> Expander<'_, 'p> {
        let stem = node.results.iter().find_map(|r| r.value.clone()).unwrap_or_else(|| stem_of(&node.op));
        Expander::new(&mut self.state, vec![node.node.clone()], format!("decompose:{}", node.op), stem)
    }

    fn expand(&mut self, node: &Node, mapped: &Node) -> Result<Made, Error> {
        let is_opaque = (self.task.target.opaquely)(&node.op);
        let mark = self.state.rewriter.nodes().len();
        let by_address = self.by_address(node, mapped);
        let mut e = self.expander(node);
        let expanded = by_address.and_then(|by_address| {
            if !e.is_lowerable(&node.op) && decompose::find(&node.op).is_none() {
                return Err(unknown(node));
            }
            e.expand(by_address.as_ref().unwrap_or(mapped))
        });
        let values = match expanded {
            Err(_) if is_opaque => {
                e.state.rewriter.truncate(mark);
                e.emit(mapped)?
            }
            expanded => expanded?,
        };
        let proof = e.proof().cloned();
        Ok(Made { values, proof })
    }

    /// Gives the values of a node the names that its results have, and its types their spelling.
    fn adopt(&mut self, node: &Node, mark: usize, values: &mut [Option<V>]) -> Result<(), Error> {
        let mut renamed: HashMap<String, String> = HashMap::new();
        for (value, result) in values.iter_mut().zip(&node.results) {
            let (Some(value), Some(name)) = (value.as_mut(), &result.value) else { continue };
            if let Some(known) = renamed.get(&value.name) {
                value.name.clone_from(known);
            }
            let place = self.state.rewriter.place(&value.name).filter(|place| *place >= mark);
            let Some(place) = place.filter(|_| !renamed.values().any(|v| *v == value.name)) else {
                self.state.rewriter.bind(name, value.arg());
                continue;
            };
            let Type::Tensor(t) = &result.ty else { continue };
            self.state.rewriter.rename(place, &value.name, name);
            renamed.insert(value.name.clone(), name.clone());
            let ty = without_strides(&result.ty);
            for made in self.state.rewriter.nodes_since(place).iter_mut().take(1).flat_map(|n| &mut n.results) {
                if made.value.as_deref() == Some(name.as_str()) {
                    made.ty = ty.clone();
                }
            }
            *value = V { name: name.clone(), dtype: t.dtype, shape: shape_of(t)? };
            self.state.types.insert(name.clone(), ty);
        }
        if let [only] = self.state.rewriter.nodes_since(mark)
            && only.op == node.op
        {
            only.via = Some("identity".into());
        }
        Ok(())
    }

    fn eliminate(&mut self, node: &Node, made: &Made) {
        let names: Vec<&str> = made.values.iter().flatten().map(|v| v.name.as_str()).collect();
        let default = || ("identity", format!("its results are {}", names.join(", ")));
        let (reason, proof) = made.proof.clone().unwrap_or_else(default);
        self.state.rewriter.eliminate(&node.node, reason, proof);
    }

    /// A node that computes no tensor: arithmetic on sizes, a size, a check.
    fn keep_scalar(&mut self, node: &Node, mapped: Node) -> Result<(), Error> {
        if SIZES.contains(&node.op.as_str()) && node.results.iter().all(|r| r.value.is_none()) {
            let proof = "it computes nothing: its result is a literal where it is used";
            self.state.rewriter.eliminate(&node.node, "literal", proof.to_owned());
            return Ok(());
        }
        let is_known = node.op.starts_with("sym.")
            || SIZES.contains(&node.op.as_str())
            || node.op.starts_with("aten.sym_")
            || is_check(&node.op)
            || (self.state.is_lowerable)(&node.op)
            || (self.task.target.opaquely)(&node.op);
        if !is_known {
            return Err(unknown(node));
        }
        for result in &node.results {
            if let Some(name) = &result.value {
                self.state.types.insert(name.clone(), result.ty.clone());
            }
        }
        self.state.rewriter.emit(Emit {
            op: mapped.op,
            args: mapped.args,
            kwargs: mapped.kwargs,
            results: node.results.clone(),
            returns: mapped.returns,
            origins: vec![node.node.clone()],
            via: "identity".into(),
        });
        Ok(())
    }

    fn finish(mut self) -> Result<Done, Vec<Unsupported>> {
        if let Err(error) = self.finish_outputs() {
            self.unsupported.push(fault("output", error.to_string()));
        }
        if !self.unsupported.is_empty() {
            return Err(self.unsupported);
        }
        let called = self.called;
        let has_effect = |node: &Node| is_check(&node.op) || called.has_effect(node);
        let done = self.state.rewriter.finish(&has_effect).map_err(|f| vec![fault(&f.place, f.message)])?;
        let Accounting { graph, mut eliminations } = done;
        let called = called.finish(&graph, &mut eliminations);
        Ok(Done { graph, called, eliminations })
    }
}

/// An expression as an argument: a number, a bool or a symbolic size.
fn literal(text: &str) -> Arg {
    if let Ok(n) = text.parse::<i64>() {
        return Arg::Int(n);
    }
    let is_number = text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    if let (true, Ok(x)) = (is_number, text.parse::<f64>()) {
        return Arg::from(x);
    }
    match text {
        "true" => Arg::Bool(true),
        "false" => Arg::Bool(false),
        _ => Arg::Sym(text.to_owned()),
    }
}

fn is_scalar(node: &Node) -> bool {
    node.results.iter().all(|r| matches!(r.ty, Type::Scalar { .. } | Type::None))
}

fn has_rule(state: &State<'_>, op: &str) -> bool {
    decompose::find(op).is_some() && !(state.is_lowerable)(op)
}

fn stem_of(op: &str) -> String {
    op.split('.').nth(1).unwrap_or("value").to_owned()
}

fn unknown(node: &Node) -> Error {
    Error::unsupported(match node.op.split('.').next() {
        Some("higher_order") => format!("{} has nested graphs, which no rule handles", node.op),
        Some("aten" | "prims" | "sym" | "quantized_decomposed") => {
            format!("{} is neither lowered by the target nor decomposed", node.op)
        }
        _ => format!("{} is an operator of an extension, which no rule handles", node.op),
    })
}

fn fault(place: &str, reason: String) -> Unsupported {
    Unsupported { node: place.to_owned(), op: String::new(), scope: None, loc: None, reason }
}
