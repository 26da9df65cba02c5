//! Whatever the arguments of an operator are, lowering gives a module or a reason, never a panic.

#[path = "../../aten/tests/support/mod.rs"]
mod support;

use m2m_graph::Places;
use m2m_lower::{linalg, torch};
use support::calls;

/// Of each operator.
const CASES: u64 = 20;

#[test]
fn every_rule_of_linalg_survives_any_arguments() {
    let rows = linalg::TABLE.iter().map(|row| row.op);
    let rows = rows.filter(|op| !op.starts_with("higher_order."));
    let all: Vec<&str> = rows.chain(m2m_aten::decompose::operators()).collect();
    calls::survive(&all, CASES, &|program| {
        if let Ok(prepared) = m2m_aten::prepare(&program.0, &|op| linalg::find(op).is_some()) {
            let context = m2m_mlir::context();
            let _module_or_reason = linalg::emit(&context, &prepared, &Places::default(), linalg::Options::default());
        }
        Ok(())
    });
}

#[test]
fn every_operator_of_the_torch_dialect_survives_any_arguments() {
    calls::survive(torch::OPERATORS, CASES, &|program| {
        if let Ok(prepared) = m2m_aten::prepare(&program.0, &torch::has) {
            let context = m2m_mlir::open_context();
            let _module_or_reason = torch::emit(&context, &prepared, &Places::default(), linalg::Options::default());
        }
        Ok(())
    });
}
