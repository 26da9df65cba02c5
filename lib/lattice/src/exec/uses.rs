//! What an operation takes, so that a value can be dropped after its last use.

use crate::plan::{Kind, Plan, ValueId};

/// The operands of an operation.
fn operands(kind: &Kind) -> Vec<ValueId> {
    let with = |first: &[ValueId], last: Option<ValueId>| first.iter().copied().chain(last).collect();
    match *kind {
        Kind::Weight(_) => Vec::new(),
        Kind::Make { coords, features, active, .. } => vec![coords, features, active],
        Kind::Decompose { input }
        | Kind::Pool { input, .. }
        | Kind::GlobalPool { input, .. }
        | Kind::Elementwise { input, .. }
        | Kind::Softmax { input }
        | Kind::Activation { input, .. } => vec![input],
        Kind::WithFeatures { input, features } => vec![input, features],
        Kind::Reindex { input, target, .. } => vec![input, target],
        Kind::Convolution(ref conv) => {
            [conv.input, conv.weight].into_iter().chain(conv.target).chain(conv.bias).collect()
        }
        Kind::PoolTranspose { input, target, .. } | Kind::Upsample { input, target, .. } => with(&[input], target),
        Kind::Voxelize { points, features, batch_indices, active_rows, .. } => {
            vec![points, features, batch_indices, active_rows]
        }
        Kind::Devoxelize { points, voxels, batch_indices, point_active_rows, .. } => {
            vec![points, voxels, batch_indices, point_active_rows]
        }
        Kind::Linear { input, weight, bias } => with(&[input, weight], bias),
        Kind::EmbeddingLookup { input, weight } => vec![input, weight],
        Kind::BatchNorm { input, scale, bias, mean, var, .. } => vec![input, scale, bias, mean, var],
        Kind::LayerNorm { input, scale, bias, .. } => vec![input, scale, bias],
        Kind::RmsNorm { input, scale, .. } => vec![input, scale],
        Kind::Binary { lhs, rhs, .. } | Kind::Cat { lhs, rhs, .. } => vec![lhs, rhs],
    }
}

/// For each operation, the values that nothing needs once it has run; its own results may be among them.
pub(super) fn last_uses(plan: &Plan) -> Vec<Vec<ValueId>> {
    let mut last: Vec<Option<usize>> = vec![None; plan.values.len()];
    for (at, op) in plan.ops.iter().enumerate() {
        for value in operands(&op.kind).into_iter().chain(op.results.iter().copied()) {
            if let Some(slot) = last.get_mut(value.0) {
                *slot = Some(at);
            }
        }
    }
    for output in &plan.outputs {
        if let Some(slot) = last.get_mut(output.value.0) {
            *slot = None;
        }
    }
    let mut done = vec![Vec::new(); plan.ops.len()];
    for (value, at) in last.into_iter().enumerate() {
        if let Some(list) = at.and_then(|at| done.get_mut(at)) {
            list.push(ValueId(value));
        }
    }
    done
}
