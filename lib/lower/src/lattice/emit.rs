//! Emits a prepared graph as the function of a lattice module.

use super::call::{call, made_of};
use super::cx::{Cx, Dense, Val, shown, sizes};
use super::dense;
use super::weights::Stored;
use super::{PREFIX, has};
use crate::error::{Error, Refusal, Result};
use crate::linalg::{Failure, account, entry};
use m2m_aten::{Prepared, bind};
use m2m_graph::{Graph, Places};
use m2m_lattice::build;
use m2m_lattice::plan::{ValueType, element_name};
use m2m_lattice::schema;
use m2m_record::{Argument, Input, InputRole, Lowered, ModuleResult, Node, OutputItem, OutputRole, Type};
use std::collections::{HashMap, HashSet};

/// Ordinals of the module and of its function, which come before those of operations.
const OUTER: usize = 2;

/// A module and what became of each node.
pub struct Emitted {
    /// The module's text.
    pub text: String,
    /// One record a node.
    pub lowered: Vec<Lowered>,
    /// The function's arguments, and the stored tensors that the module binds, each with its storage key as `global`.
    pub arguments: Vec<Argument>,
    /// The function's results.
    pub results: Vec<ModuleResult>,
    /// The function's name.
    pub entry: String,
}

/// Emits a prepared program. Refusals of all nodes, inputs and outputs are collected; with any of them there is no module.
pub fn emit(prepared: &Prepared, places: &Places) -> std::result::Result<Emitted, Failure> {
    let graph = &prepared.graph;
    let mut walk = Walk { graph, places, cx: Cx::default(), refusals: Vec::new(), arguments: Vec::new() };
    walk.inputs();
    walk.nodes()?;
    walk.outputs()?;
    walk.finish()
}

struct Walk<'g> {
    graph: &'g Graph,
    places: &'g Places,
    cx: Cx<'g>,
    refusals: Vec<Refusal>,
    arguments: Vec<Argument>,
}

impl<'g> Walk<'g> {
    fn refuse(&mut self, node: &str, op: &str, reason: impl Into<String>) {
        self.refusals.push(Refusal { node: node.to_owned(), op: op.to_owned(), reason: reason.into() });
    }

    /// The same of a node, with its place in the source behind the reason.
    fn refuse_node(&mut self, node: &Node, reason: String) {
        let (scope, loc) = self.places.of_node(node);
        let place = [scope, loc].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        self.refuse(&node.node, &node.op, reason + &place);
    }

    fn inputs(&mut self) {
        let graph = self.graph;
        let roles = roles(graph);
        for input in &graph.inputs {
            let val = match input.role {
                _ if entry::is_state(input.role) => Stored::new(input).map_or(Val::Other, Val::Stored),
                InputRole::UserInput if input.literal.is_none() => self.argument(input, &roles),
                _ => Val::Other,
            };
            self.cx.define(&input.value, val);
        }
    }

    fn argument(&mut self, input: &Input, roles: &HashMap<&str, schema::InputRole>) -> Val {
        let Some(ty) = input.ty.as_tensor().filter(|ty| element_name(ty.dtype) != "none") else {
            let found = input.ty.as_tensor().map_or("no tensor".into(), |ty| shown(ty.dtype, &ty.shape));
            self.refuse(
                &input.value,
                "input",
                format!("the argument is {found}; the contract binds tensors of MLIR's numbers"),
            );
            return Val::Broken;
        };
        let role = roles.get(input.value.as_str()).copied().unwrap_or(schema::InputRole::Tensor);
        let (dtype, shape) = (ty.dtype, sizes(ty));
        let value = self.cx.b.argument(&input.value, role, ValueType::Tensor { shape: shape.clone(), dtype });
        self.arguments.push(Argument {
            value: input.value.clone(),
            role: input.role,
            target: input.target.clone(),
            ty: input.ty.clone(),
            data: input.data.clone(),
            global: None,
        });
        Val::Dense(Dense { value, dtype, shape })
    }

    fn nodes(&mut self) -> std::result::Result<(), Failure> {
        let graph = self.graph;
        for (at, node) in graph.nodes.iter().enumerate() {
            self.cx.node = at;
            let made = if self.is_broken(node) { Ok(vec![Val::Broken; node.results.len()]) } else { self.node(node) };
            let vals = match made {
                Ok(vals) => vals,
                Err(error @ (Error::Unsupported(_) | Error::Bind(_))) => {
                    self.refuse_node(node, error.to_string());
                    vec![Val::Broken; node.results.len()]
                }
                Err(error) => return Err(Error::Graph(format!("{}: {}: {error}", node.node, node.op)).into()),
            };
            let vals = vals.into_iter().chain(std::iter::repeat(Val::Other));
            for (result, val) in node.results.iter().zip(vals) {
                if let Some(name) = &result.value {
                    self.cx.define(name, val);
                }
            }
        }
        Ok(())
    }

    /// Whether a node takes what a refused one would give: then nothing can be said of it.
    fn is_broken(&self, node: &Node) -> bool {
        let mut is_broken = false;
        let mut look = |name: &str| is_broken |= matches!(self.cx.get(name), Ok(Val::Broken));
        node.args.iter().chain(node.kwargs.values()).for_each(|arg| arg.for_each_value(&mut look));
        is_broken
    }

    fn node(&mut self, node: &Node) -> Result<Vec<Val>> {
        if node.op.starts_with(PREFIX) {
            return call(&mut self.cx, node);
        }
        if let Some(rule) = dense::find(&node.op) {
            return rule(&mut self.cx, &bind(node)?).map(|val| vec![val]);
        }
        if is_about_sizes(node) {
            return Ok(Vec::new());
        }
        Err(Error::unsupported("no operation of the dialect computes this"))
    }

    fn outputs(&mut self) -> std::result::Result<(), Failure> {
        let mut taken = HashSet::new();
        let graph = self.graph;
        for output in &graph.outputs {
            let Some(value) = &output.value else { continue };
            if let Err(error) = self.output(output, value, &mut taken) {
                match error {
                    Error::Unsupported(reason) => self.refuse(value, "output", reason),
                    other => return Err(other.into()),
                }
            }
        }
        Ok(())
    }

    fn output(&mut self, output: &OutputItem, value: &str, taken: &mut HashSet<String>) -> Result<()> {
        if output.role != OutputRole::UserOutput {
            let target = output.target.as_deref().unwrap_or(value);
            return Err(Error::unsupported(format!("{target} is written to; a lattice module changes nothing")));
        }
        let names = (1..).map(|n| if n == 1 { value.to_owned() } else { format!("{value}_{n}") });
        let name = names.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
        taken.insert(name.clone());
        match self.cx.get(value)?.clone() {
            Val::Dense(dense) => self.cx.b.output(&name, schema::OutputRole::Tensor, dense.value),
            Val::Sparse(id) => {
                self.cx.node = self.cx.maker(id)?;
                let whole = self.cx.whole(id)?;
                self.cx.b.output(&name, schema::OutputRole::SparseTensor, whole);
            }
            Val::Broken => {}
            Val::Stored(stored) => {
                return Err(Error::unsupported(format!("it is {}, which the model stores", stored.name())));
            }
            Val::Packed(_) | Val::Other => return Err(Error::unsupported("it is no tensor of the module")),
        }
        Ok(())
    }

    /// The module, once it has passed the verifier.
    fn finish(mut self) -> std::result::Result<Emitted, Failure> {
        if !self.refusals.is_empty() {
            return Err(Failure::Refused(self.refusals));
        }
        let Cx { b, weights, owners, .. } = std::mem::take(&mut self.cx);
        let text = match b.finish_with(&weights.file) {
            Ok(text) => text,
            Err(build::Error::Refused(findings)) => {
                for finding in findings {
                    let reason = format!("{}: {}", finding.code.name(), finding.message);
                    let node = finding.at.and_then(|at| self.graph.nodes.get(*owners.get(at as usize)?));
                    match node {
                        Some(node) => self.refuse_node(node, reason),
                        None => self.refuse("module", "module", reason),
                    }
                }
                return Err(Failure::Refused(self.refusals));
            }
            Err(other) => return Err(Error::Graph(other.to_string()).into()),
        };
        let arguments = self.arguments.into_iter().chain(weights.arguments).collect();
        let (lowered, results) = (lowered(self.graph, &owners), entry::results(self.graph));
        Ok(Emitted { text, lowered, arguments, results, entry: schema::ENTRY.to_owned() })
    }
}

/// What an operation's node is told of it. Operations of one node need not lie together: a value that is returned may be
/// put together at the end.
fn lowered(graph: &Graph, owners: &[usize]) -> Vec<Lowered> {
    let mut ops: HashMap<usize, Vec<u64>> = HashMap::new();
    for (ordinal, owner) in owners.iter().enumerate() {
        ops.entry(*owner).or_default().push((ordinal + OUTER) as u64);
    }
    let of = |(at, node): (usize, &Node)| match ops.remove(&at) {
        Some(ops) => Lowered { node: node.node.clone(), ops: Some(ops), ..Lowered::default() },
        None if is_about_sizes(node) => {
            let eliminated = Some("the contract states no conditions on sizes".into());
            Lowered { node: node.node.clone(), eliminated, ..Lowered::default() }
        }
        None => account(node, 0, 0, Vec::new()),
    };
    graph.nodes.iter().enumerate().map(of).collect()
}

/// Whether a node only computes or checks sizes.
fn is_about_sizes(node: &Node) -> bool {
    let is_scalar = node.results.iter().all(|result| !matches!(result.ty, Type::Tensor(_)));
    let names = ["sym.", "aten.sym_", "aten._assert_scalar.", "aten.size.", "aten.numel."];
    is_scalar && !has(&node.op) && names.iter().any(|name| node.op.starts_with(name))
}

/// Roles of the inputs that make a sparse value by themselves.
fn roles(graph: &Graph) -> HashMap<&str, schema::InputRole> {
    use schema::InputRole::{SparseActive, SparseCoords, SparseFeatures};
    let is_argument = |name: &str| graph.inputs.iter().any(|i| i.value == name && i.role == InputRole::UserInput);
    let mut roles = HashMap::new();
    for parts in graph.nodes.iter().filter_map(made_of).filter(|parts| parts.iter().all(|name| is_argument(name))) {
        for (name, role) in parts.into_iter().zip([SparseCoords, SparseFeatures, SparseActive]) {
            roles.entry(name).or_insert(role);
        }
    }
    roles
}
