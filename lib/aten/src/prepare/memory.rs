//! The part of the walk that follows memory: views that are made anew, writes, inputs that were written to.

use super::Preparer;
use crate::bind::{Bound, bind};
use crate::decompose;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::functional;
use crate::value::{V, shape_of, tensor_type};
use m2m_record::{Arg, Input, InputRole, Node, OutputItem, OutputRole, Type, TypedValue};

impl Preparer<'_> {
    /// Brings views among the arguments up to date.
    pub(super) fn sync_arguments(&mut self, node: &Node) -> Result<(), Error> {
        let Some(aliases) = &mut self.aliases else { return Ok(()) };
        let mut names = Vec::new();
        for arg in node.args.iter().chain(node.kwargs.values()) {
            arg.for_each_value(&mut |name| names.push(name));
        }
        names.into_iter().try_for_each(|name| aliases.sync(&mut self.state, name))
    }

    /// Notes whose memory the results of a node see.
    pub(super) fn note_aliases(&mut self, node: &Node, mark: usize, values: &[Option<V>]) -> Result<(), Error> {
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

    pub(super) fn own(&mut self, name: &str, value: &V) {
        if let Some(aliases) = &mut self.aliases {
            aliases.fresh(name, value.clone());
        }
    }

    fn steps(&mut self, node: &Node, mark: usize, base: &str, to: &V) -> Result<Vec<functional::Step>, Error> {
        let from = self.current(base)?;
        let e = self.expander(node);
        Ok(functional::steps_between(&e, mark, &from, to, node))
    }

    /// The present value of an old tensor.
    pub(super) fn current(&mut self, old: &str) -> Result<V, Error> {
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
    pub(super) fn write(&mut self, node: &Node, mapped: &Node, mark: usize) -> Result<(), Error> {
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
        let mut kwargs = mapped.kwargs.clone();
        // A tensor that is only written to is no argument of the functional form.
        kwargs.shift_remove("out");
        let value = e.expand(&Node { op, results, kwargs, returns: None, ..mapped.clone() })?;
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

    /// A normalisation in training: its functional form gives the running statistics too, which are then written back.
    fn train_batch_norm(&mut self, node: &Node, mapped: &Node, mark: usize) -> Result<(), Error> {
        let bound = bind(node)?;
        let (mean, var) = (bound.tensor("running_mean")?.to_owned(), bound.tensor("running_var")?.to_owned());
        let old = [self.current(&mean)?, self.current(&var)?];
        let call = bind(mapped)?;
        let mut e = self.expander(node);
        let mut values = if node.op == "aten.instance_norm.default" {
            decompose::train_instance_norm(&mut e, &call)?
        } else {
            functional_batch_norm(&mut e, node, &call, old)?
        };
        // The statistics come last; what is before them are the results of the node.
        let running = values.split_off(values.len().saturating_sub(2));
        if let (4, Some(ty)) = (node.results.len(), node.results.get(3).and_then(|r| r.ty.as_tensor())) {
            values.push(Some(e.full(&shape_of(ty)?, ty.dtype, Arg::Int(0))?));
        }
        self.adopt(node, mark, &mut values)?;
        for (target, value) in [mean, var].iter().zip(running) {
            if let Some(value) = value {
                self.store(node, target, &value)?;
            }
        }
        for (value, result) in values.iter().zip(&node.results) {
            if let (Some(value), Some(name)) = (value, &result.value) {
                self.own(name, &value.clone());
            }
        }
        Ok(())
    }

    /// Values returned are present ones; inputs that were written to become outputs.
    pub(super) fn finish_outputs(&mut self) -> Result<(), Error> {
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

/// `_native_batch_norm_legit_functional` of the arguments of a call: result, mean, deviation, and the running
/// statistics.
fn functional_batch_norm(e: &mut Expander<'_, '_>, node: &Node, call: &Bound<'_>, old: [V; 2]) -> Results {
    let names = ["input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"];
    let arg = |name: &&str| if call.has(name) { call.arg(name).cloned() } else { Ok(Arg::Bool(true)) };
    let args = names.iter().map(arg).collect::<Result<Vec<_>, _>>()?;
    let x = e.tensor(call, "input")?;
    let stat = tensor_type(crate::promote::accumulate_dtype(x.dtype), &[x.dim(1)]);
    let told = |k: usize| match node.results.get(k).map(|r| &r.ty) {
        Some(ty @ Type::Tensor(_)) => ty.clone(),
        _ => stat.clone(),
    };
    let [mean, var] = old;
    let types = vec![x.ty(), told(1), told(2), mean.ty(), var.ty()];
    e.call("aten._native_batch_norm_legit_functional.default", args, &[], types)
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
pub(super) fn base_of(b: &Bound<'_>, at: usize) -> Option<String> {
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
