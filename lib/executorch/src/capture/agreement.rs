//! Whether what ran can be the method that it is taken for: a dump names no method, but its events name operators, and the
//! record says which operators and delegates each instruction came from.

use m2m_record::profile::Agreement;

use super::{Block, DELEGATE_CALL, NATIVE_CALL, Source};

/// Compares the kernels and delegate calls of a block with the instructions of a method; none where nothing compares.
pub(super) fn of(block: &Block<'_>, source: &Source) -> Option<Agreement> {
    let mut agreement = Agreement::default();
    for event in &block.events {
        let (Some(instruction), None, Some(name)) = (event.instruction, &event.delegate, event.name) else { continue };
        let Some(matched) = matches(source, instruction, name) else { continue };
        agreement.checked += 1;
        agreement.matched += u64::from(matched);
    }
    (agreement.checked > 0).then_some(agreement)
}

fn matches(source: &Source, instruction: i32, name: &str) -> Option<bool> {
    let known = source.instruction(instruction)?;
    if name == DELEGATE_CALL {
        return source.has_delegates.then_some(known.delegate.is_some());
    }
    // Overloads differ between a graph and its program, and passes may add casts; names of operators mostly stay.
    let ran = name.strip_prefix(NATIVE_CALL)?.split('.').next()?;
    if known.delegate.is_some() {
        return Some(false);
    }
    let nodes = source.nodes_of(known.handles.as_deref()?);
    let mut operators = nodes.iter().filter_map(|at| source.nodes.get(*at)?.target.split('.').nth(1)).peekable();
    operators.peek()?;
    Some(operators.any(|operator| operator == ran))
}
