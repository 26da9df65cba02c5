//! The engine lattice: executes the plan of a sparse model.
//!
//! Arguments are found by their ABI names, or as `in_0`, `in_1`, … in their order. A sparse output gives `NAME.coords`,
//! `NAME.features`, `NAME.active` and `NAME.stride`.

use crate::args::Args;
use crate::error::Error;
use crate::golden::Named;
use crate::inputs::Inputs;
use crate::timing::{Times, timed};
use m2m_lattice::exec::{Given, Options, Returned, run};
use m2m_lattice::plan::Plan;
use std::path::Path;
use std::time::Instant;

/// What a plan gave, and what that took.
pub struct Done {
    /// Its outputs.
    pub outputs: Vec<Named>,
    /// Once, or as often as `--repeat` says.
    pub times: Times,
}

/// Runs a plan.
pub fn execute(args: &Args, plan: &Plan, inputs: &Inputs, root: Option<&Path>) -> Result<Done, Error> {
    let find = |(at, name): (usize, &str)| inputs.get(name).or_else(|| inputs.get(&format!("in_{at}")));
    let views: Vec<_> =
        plan.arguments.iter().map(|argument| argument.abi_name.as_str()).enumerate().map(find).collect();
    let given = |at: usize, _: &str| {
        let view = views.get(at)?.as_ref()?;
        Some(Given { dtype: view.dtype, shape: &view.shape, bytes: view.bytes })
    };
    let mut times = Times::default();
    let mut outputs = Vec::new();
    for _ in 0..args.repeat.map_or(1, |count| count.max(1)) {
        let begin = Instant::now();
        let (returned, seconds) = timed(|| run(plan, &given, Options { root, threads: args.threads }));
        times.by_clock.push(begin.elapsed().as_secs_f64());
        times.runs.push(seconds);
        outputs = returned?.into_iter().map(named).collect();
    }
    Ok(Done { outputs, times })
}

fn named(output: Returned) -> Named {
    let dims = output.shape.iter().map(|size| i64::try_from(*size).unwrap_or(i64::MAX)).collect();
    Named { key: output.name, dtype: output.dtype, dims, data: output.bytes }
}
