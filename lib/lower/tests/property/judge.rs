//! Cases lowered, compiled and run, many in one module, and held to what libtorch gave.

use crate::compare::difference;
use crate::draw::{Case, Tensor, graph};
use m2m_aten::PackedFor;
use m2m_aten::prepare::{Lowerable, prepare_opaque};
use m2m_graph::{Places, Program};
use m2m_lower::linalg::{Failure, Options, emit, find};
use m2m_mlir::jit;

/// What is wrong with each case, if anything is. Where a module of all of them has no results, each has one of its own.
pub fn judge(cases: &[&Case]) -> Vec<Option<String>> {
    match run(cases) {
        Ok(outputs) => {
            let mut outputs = outputs.into_iter();
            cases.iter().map(|case| wrong(case, &mut outputs)).collect()
        }
        Err(why) if cases.len() < 2 => vec![Some(why)],
        Err(_) => {
            let (first, second) = cases.split_at(cases.len() / 2);
            judge(first).into_iter().chain(judge(second)).collect()
        }
    }
}

/// What is wrong with the results of one case, the next of `outputs`: they are held to libtorch's, and where they differ
/// from those in f32, to those that it computes in f64.
fn wrong(case: &Case, outputs: &mut impl Iterator<Item = jit::Output>) -> Option<String> {
    let mut first = None;
    for (k, ((tensor, expected), found)) in case.results.iter().zip(outputs).enumerate() {
        let why = if found.dims == tensor.shape {
            let is_exact = |exact: &Vec<u8>| difference(tensor.dtype, &found.data, exact).is_none();
            difference(tensor.dtype, &found.data, expected)
                .filter(|_| !case.exact.get(k).and_then(Option::as_ref).is_some_and(is_exact))
        } else {
            Some(format!("shape {:?}, expected {:?}", found.dims, tensor.shape))
        };
        first = first.or(why.map(|why| format!("result {k}: {why}")));
    }
    first
}

/// The results of all cases, or why there are none.
fn run(cases: &[&Case]) -> Result<Vec<jit::Output>, String> {
    let inputs: Vec<&Tensor> = cases.iter().flat_map(|case| &case.inputs).map(|(tensor, _)| tensor).collect();
    let nodes: Vec<_> = cases.iter().flat_map(|case| &case.nodes).cloned().collect();
    let outputs = cases.iter().flat_map(|case| &case.results).map(|(tensor, _)| tensor.name.clone());
    let program =
        Program { root: graph(&inputs, &nodes, outputs), stages: vec!["original".into()], ..Program::default() };
    m2m_graph::verify(&program).map_err(|e| format!("the case itself: {e}"))?;
    let packed_for = PackedFor::of_this_machine();
    let target = Lowerable { directly: &|op| find(op).is_some(), opaquely: &|_| false, packed_for };
    let prepared = prepare_opaque(&program, target).map_err(|refused| format!("refused: {}", refused[0].reason))?;
    let context = m2m_mlir::context();
    let emitted =
        emit(&context, &prepared, &Places::default(), Options::default()).map_err(|failure| match failure {
            Failure::Refused(refusals) => format!("refused: {}: {}", refusals[0].op, refusals[0].reason),
            Failure::Broken(error) => format!("broken: {error}"),
        })?;
    m2m_mlir::verify(&context, &emitted.module).map_err(|e| format!("not verified: {e}"))?;
    let text = m2m_mlir::print(&emitted.module, m2m_mlir::Form::Generic, m2m_mlir::Locations::Omit)
        .map_err(|e| format!("not printed: {e}"))?;
    let compiled = jit::Program::compile(&text, "forward", jit::Options::default());
    let compiled = compiled.map_err(|e| format!("not compiled: {e}"))?;
    let given = cases.iter().flat_map(|case| &case.inputs);
    let given: Vec<_> = given.map(|(tensor, data)| jit::Argument::Tensor { data, dims: &tensor.shape }).collect();
    Ok(compiled.run(&given).map_err(|e| format!("not run: {e}"))?.outputs)
}
