//! Whatever the arguments of an operator are, preparing gives a graph or a reason, never a panic or an endless loop.

mod support;

use support::{CORE, calls};

/// Of each operator.
const CASES: u64 = 40;

#[test]
fn every_rule_survives_any_arguments() {
    let all = m2m_aten::decompose::operators();
    let is_lowerable = |op: &str| CORE.contains(&op) || all.binary_search(&op).is_err();
    calls::survive(&all, CASES, &|program| {
        let nodes = m2m_aten::prepare(&program.0, &is_lowerable).map_or(0, |prepared| prepared.graph.nodes.len());
        if nodes < 200_000 { Ok(()) } else { Err(format!("{nodes} nodes")) }
    });
}
