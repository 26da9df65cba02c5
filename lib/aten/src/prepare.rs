//! From a captured graph to one that a target can lower: no writes, only the target's operators, all accounted for.
//!
//! One walk over the old nodes: writes become values (`functional`), operators that the target does not lower become
//! others (`decompose`), what does nothing goes with a proof, and so does, at the end, what nothing uses. Every node
//! that cannot be handled is reported, not only the first.

use crate::bind::bind;
use crate::decompose;
use crate::error::Error;
use crate::expand::{Expander, State, without_strides};
use crate::functional::{self, Aliases};
use crate::inline::inline;
use crate::schema;
use crate::value::{V, shape_of, tensor_type};
use m2m_graph::{Accounting, Emit, Graph, Program, Rewriter};
use m2m_record::{Arg, Input, InputRole, Node, OutputItem, OutputRole, Type, TypedValue};
use std::collections::HashMap;

/// The prepared graph, and the eliminations of the old nodes without a successor.
pub type Prepared = Accounting;

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

/// Prepares the root graph of a program for a target that lowers the operators `is_lowerable` tells.
pub fn prepare(program: &Program, is_lowerable: &dyn Fn(&str) -> bool) -> Result<Prepared, Vec<Unsupported>> {
    let inlined = inline(program);
    let old = inlined.as_ref().map_or(&program.root, |i| &i.graph);
    let mut preparer = Preparer::new(old, &stage(program), is_lowerable);
    for node in &old.nodes {
        preparer.take(node);
    }
    let mut prepared = preparer.finish()?;
    if let Some(inlined) = inlined {
        prepared.eliminations.extend(inlined.eliminations);
    }
    Ok(prepared)
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
    old: &'p Graph,
    state: State<'p>,
    old_types: HashMap<&'p str, &'p Type>,
    /// Who shares memory; absent from a graph that writes nowhere.
    aliases: Option<Aliases>,
    unsupported: Vec<Unsupported>,
}

impl<'p> Preparer<'p> {
    fn new(old: &'p Graph, stage: &str, is_lowerable: &'p dyn Fn(&str) -> bool) -> Self {
        let writes = |node: &Node| schema::find(&node.op).is_some_and(|s| functional::is_write(node, &s));
        let aliases = old.nodes.iter().any(writes).then(|| Aliases::new(&old.inputs));
        let types = old.inputs.iter().map(|i| (i.value.clone(), i.ty.clone())).collect();
        let rewriter = Rewriter::new(old, stage);
        let state = State { rewriter, types, is_lowerable, is_folding: aliases.is_none() };
        Preparer { old, state, old_types: old.types(), aliases, unsupported: Vec::new() }
    }

    /// Handles one old node, or notes why it cannot be.
    fn take(&mut self, node: &Node) {
        let mark = self.state.rewriter.nodes().len();
        let Err(error) = self.node(node, mark) else { return };
        self.state.rewriter.truncate(mark);
        self.unsupported.push(Unsupported {
            node: node.node.clone(),
            op: node.op.clone(),
            scope: node.scope.clone(),
            loc: node.loc.clone(),
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
        self.sync_arguments(node)?;
        let mark = mark.max(self.state.rewriter.nodes().len());
        let mapped = self.mapped(node);
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

    /// Brings views among the arguments up to date.
    fn sync_arguments(&mut self, node: &Node) -> Result<(), Error> {
        let Some(aliases) = &mut self.aliases else { return Ok(()) };
        let mut names = Vec::new();
        for arg in node.args.iter().chain(node.kwargs.values()) {
            arg.for_each_value(&mut |name| names.push(name));
        }
        names.into_iter().try_for_each(|name| aliases.sync(&mut self.state, name))
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
        let mut e = self.expander(node);
        if !e.is_lowerable(&node.op) && decompose::find(&node.op).is_none() {
            return Err(unknown(node));
        }
        let values = e.expand(mapped)?;
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
            let made = self.state.rewriter.nodes().get(mark..).unwrap_or_default();
            let is_made =
                made.iter().any(|n| n.results.iter().any(|r| r.value.as_deref() == Some(value.name.as_str())));
            if !is_made || renamed.values().any(|v| *v == value.name) {
                self.state.rewriter.bind(name, value.arg());
                continue;
            }
            let Type::Tensor(t) = &result.ty else { continue };
            self.state.rewriter.rename(mark, &value.name, name);
            renamed.insert(value.name.clone(), name.clone());
            let ty = without_strides(&result.ty);
            for made in self.state.rewriter.nodes_since(mark).iter_mut().flat_map(|n| &mut n.results) {
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
        let is_known = node.op.starts_with("sym.")
            || node.op.starts_with("aten.sym_")
            || CHECKS.contains(&node.op.as_str())
            || (self.state.is_lowerable)(&node.op);
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

    /// Notes whose memory the results of a node see.
    fn note_aliases(&mut self, node: &Node, mark: usize, values: &[Option<V>]) -> Result<(), Error> {
        let bound = bind(node).ok();
        for (k, (value, result)) in values.iter().zip(&node.results).enumerate() {
            let (Some(value), Some(name)) = (value, &result.value) else { continue };
            let base = bound.as_ref().and_then(|b| base_of(b, k));
            let old = base.as_ref().and_then(|b| self.old_types.get(b.as_str())).and_then(|t| t.as_tensor());
            let (Some(bound), Some(base), Some(old)) = (&bound, base, old) else {
                self.own(name, value);
                continue;
            };
            let shares = functional::shares(bound, old, &result.ty);
            if shares == Some(false) {
                self.own(name, value);
                continue;
            }
            let steps = if shares.is_none() {
                vec![functional::Step::opaque(&node.node, &node.op)]
            } else {
                self.steps(node, mark, &base, value)?
            };
            if let Some(aliases) = &mut self.aliases {
                aliases.view(name, &base, steps);
            }
        }
        Ok(())
    }

    fn own(&mut self, name: &str, value: &V) {
        if let Some(aliases) = &mut self.aliases {
            aliases.fresh(name, value.clone());
        }
    }

    fn steps(&mut self, node: &Node, mark: usize, base: &str, to: &V) -> Result<Vec<functional::Step>, Error> {
        let from = self.current(base)?;
        let nodes = self.state.rewriter.nodes().get(mark..).unwrap_or_default().to_vec();
        let e = self.expander(node);
        Ok(functional::steps_between(&e, &nodes, &from, to, node))
    }

    /// The present value of an old tensor.
    fn current(&mut self, old: &str) -> Result<V, Error> {
        let name = match self.state.rewriter.map(&Arg::value(old)) {
            Arg::Value(name) => name,
            other => return Err(Error::unsupported(format!("{old} is {}, no tensor", crate::bind::describe(&other)))),
        };
        match self.state.types.get(&name) {
            Some(Type::Tensor(t)) => Ok(V { dtype: t.dtype, shape: shape_of(t)?, name }),
            _ => Err(Error::unsupported(format!("{old} is no tensor"))),
        }
    }

    /// A node that writes to memory.
    fn write(&mut self, node: &Node, mapped: &Node, mark: usize) -> Result<(), Error> {
        if functional::batch_norm_writes(node) {
            return self.train_batch_norm(node, mapped, mark);
        }
        let bound = bind(node)?;
        let written: Vec<_> = bound.schema.args.iter().filter(|a| a.alias.is_some_and(|x| x.is_write)).collect();
        let [target] = written.as_slice() else {
            return Err(Error::unsupported(format!(
                "{} writes to {} arguments; only one is followed",
                node.op,
                written.len()
            )));
        };
        let target = bound.tensor(target.name)?.to_owned();
        let op = functional::functional_name(&node.op)?;
        let own = self.current(&target)?;
        let mut e = self.expander(node);
        let dtype = functional::written_dtype(&e, &bind(mapped)?, own.dtype)?;
        let results = vec![TypedValue { value: None, ty: tensor_type(dtype, &own.shape) }];
        let value = e.expand(&Node { op, results, returns: None, ..mapped.clone() })?;
        let value = crate::expand::first(&node.op, value)?;
        let value = e.to_dtype(&value, own.dtype)?;
        let value = e.expand_to(&value, &own.shape)?;
        let mut values = vec![Some(value)];
        self.adopt(node, mark, &mut values)?;
        let value = crate::expand::first(&node.op, values)?;
        self.store(node, &target, &value)?;
        if let Some(name) = node.results.first().and_then(|r| r.value.as_ref()) {
            if let Some(aliases) = &mut self.aliases {
                aliases.view(name, &target, Vec::new());
            }
            if *name != value.name {
                self.state.rewriter.bind(name, value.arg());
            }
        }
        if self.state.rewriter.nodes().len() == mark {
            let proof = format!("from here on {target} stands for {}", value.name);
            self.state.rewriter.eliminate(&node.node, "functionalized", proof);
        }
        Ok(())
    }

    fn store(&mut self, node: &Node, target: &str, value: &V) -> Result<(), Error> {
        let Some(mut aliases) = self.aliases.take() else { return Ok(()) };
        let mut e = self.expander(node);
        let done = aliases.write(&mut e, target, value);
        self.aliases = Some(aliases);
        done
    }

    /// `batch_norm` in training: the functional form gives the running statistics too, which are then written back.
    fn train_batch_norm(&mut self, node: &Node, mapped: &Node, mark: usize) -> Result<(), Error> {
        let bound = bind(node)?;
        let (mean, var) = (bound.tensor("running_mean")?.to_owned(), bound.tensor("running_var")?.to_owned());
        let (old_mean, old_var) = (self.current(&mean)?, self.current(&var)?);
        let call = bind(mapped)?;
        let arg = |name: &str| call.arg(name).cloned();
        let names = ["input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"];
        let args = names.iter().map(|n| arg(n)).collect::<Result<Vec<_>, _>>()?;
        let mut e = self.expander(node);
        let x = e.tensor(&call, "input")?;
        let stat = tensor_type(crate::promote::accumulate_dtype(x.dtype), &[x.dim(1)]);
        let types = vec![x.ty(), stat.clone(), stat, old_mean.ty(), old_var.ty()];
        let mut values = e.call("aten._native_batch_norm_legit_functional.default", args, &[], types)?;
        self.adopt(node, mark, &mut values)?;
        for (target, at) in [(mean, 3), (var, 4)] {
            if let Some(Some(value)) = values.get(at) {
                self.store(node, &target, &value.clone())?;
            }
        }
        if let (Some(Some(value)), Some(name)) = (values.first(), node.results.first().and_then(|r| r.value.as_ref())) {
            self.own(name, &value.clone());
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Prepared, Vec<Unsupported>> {
        if let Err(error) = self.finish_outputs() {
            self.unsupported.push(fault("output", error.to_string()));
        }
        if !self.unsupported.is_empty() {
            return Err(self.unsupported);
        }
        let has_effect = |node: &Node| CHECKS.contains(&node.op.as_str());
        self.state.rewriter.finish(&has_effect).map_err(|f| vec![fault(&f.place, f.message)])
    }

    /// Values returned are present ones; inputs that were written to become outputs.
    fn finish_outputs(&mut self) -> Result<(), Error> {
        let Some(mut aliases) = self.aliases.take() else { return Ok(()) };
        for output in self.old.outputs.iter().filter_map(|o| o.value.as_deref()) {
            aliases.sync(&mut self.state, output)?;
        }
        for (names, value) in aliases.written() {
            let inputs = self.old.inputs.iter().filter(|i| names.contains(&i.value));
            let outputs: Vec<OutputItem> = inputs.filter_map(|i| mutation(i, value)).collect();
            if outputs.is_empty() {
                let message = format!("{} is a constant of the program and is written to", names.join(", "));
                return Err(Error::unsupported(message));
            }
            outputs.into_iter().for_each(|output| self.state.rewriter.add_output(output));
        }
        Ok(())
    }
}

/// The output that tells an input's value at the end; none for a constant, which no caller sees.
fn mutation(input: &Input, value: &V) -> Option<OutputItem> {
    let target = input.target.clone().unwrap_or_else(|| input.value.clone());
    let (role, target) = match input.role {
        InputRole::Parameter => (OutputRole::ParameterMutation, target),
        InputRole::Buffer => (OutputRole::BufferMutation, target),
        InputRole::UserInput => (OutputRole::UserInputMutation, input.value.clone()),
        _ => return None,
    };
    Some(OutputItem { value: Some(value.name.clone()), literal: None, role, target: Some(target) })
}

/// The argument whose memory result `at` may share: the first of its alias set, else the first tensor.
fn base_of(b: &crate::bind::Bound<'_>, at: usize) -> Option<String> {
    let wanted = b.schema.returns.get(at).or(b.schema.returns.first()).and_then(|r| r.alias).map(|a| a.set);
    let is_of = |set: &str| wanted.is_some_and(|w| set == w || set.starts_with(&format!("{w} ")));
    let named = b.schema.args.iter().find(|a| a.alias.is_some_and(|x| is_of(x.set)));
    let arg = named.or_else(|| b.schema.args.iter().find(|a| a.ty == "Tensor"))?;
    match b.arg(arg.name).ok()? {
        Arg::Value(v) => Some(v.clone()),
        Arg::List(items) => match items.get(at)? {
            Arg::Value(v) => Some(v.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// An expression as an argument: a number, a bool or a symbolic size.
fn literal(text: &str) -> Arg {
    if let Ok(n) = text.parse::<i64>() {
        return Arg::Int(n);
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
