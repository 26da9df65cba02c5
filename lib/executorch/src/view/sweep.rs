//! Which of several scopes that are open at an instant has that instant: the one that was opened last.
//!
//! Scopes of a runtime mostly nest, but a backend may lay its own out as it likes, so nothing is assumed. Each instant that
//! any scope covers counts for exactly one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A scope: when it was opened and closed, in ticks, and whether it is preferred to those that are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// When it was opened.
    pub start: u64,
    /// When it was closed; not before `start`.
    pub end: u64,
    /// Whether it takes instants from scopes that are not preferred, even if those were opened later.
    pub preferred: bool,
}

/// An open scope: of those opened at the same time the one that closes first is innermost, then the one told first, as a
/// runtime tells scopes when they close.
type Open = (u64, Reverse<u64>, Reverse<usize>);

/// For each scope the ticks that count for it.
pub fn own_ticks(scopes: &[Scope]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..scopes.len()).collect();
    order.sort_by_key(|at| scopes[*at].start);
    let mut bounds: Vec<u64> = scopes.iter().flat_map(|scope| [scope.start, scope.end]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut ticks = vec![0; scopes.len()];
    let mut waiting = order.into_iter().peekable();
    let mut open: [BinaryHeap<Open>; 2] = Default::default();
    for pair in bounds.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        while let Some(at) = waiting.next_if(|at| scopes[*at].start <= from) {
            let scope = &scopes[at];
            open[usize::from(scope.preferred)].push((scope.start, Reverse(scope.end), Reverse(at)));
        }
        for heap in &mut open {
            while heap.peek().is_some_and(|(_, Reverse(end), _)| *end <= from) {
                heap.pop();
            }
        }
        let [others, preferred] = &open;
        if let Some((_, _, Reverse(at))) = preferred.peek().or_else(|| others.peek()) {
            ticks[*at] += to - from;
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(start: u64, end: u64) -> Scope {
        Scope { start, end, preferred: true }
    }

    #[test]
    fn the_innermost_has_the_instant() {
        // native_call, OPERATOR_CALL around it, Method::execute around both: 10 + 5 + 5 = 20.
        assert_eq!(own_ticks(&[scope(12, 22), scope(10, 25), scope(8, 28)]), [10, 5, 5]);
    }

    #[test]
    fn of_equal_scopes_the_one_told_first_is_innermost() {
        assert_eq!(own_ticks(&[scope(5, 9), scope(5, 9)]), [4, 0]);
        assert_eq!(own_ticks(&[scope(5, 9), scope(5, 7)]), [2, 2]);
        assert_eq!(own_ticks(&[scope(5, 5), scope(5, 6)]), [0, 1]);
    }

    #[test]
    fn overlap_and_gaps_count_once() {
        // The second runs past the end of the first, and a third comes after a gap.
        assert_eq!(own_ticks(&[scope(0, 10), scope(4, 14), scope(20, 21)]), [4, 10, 1]);
    }

    #[test]
    fn preferred_scopes_take_from_later_ones() {
        let other = Scope { start: 3, end: 7, preferred: false };
        assert_eq!(own_ticks(&[scope(0, 10), other]), [10, 0]);
        assert_eq!(own_ticks(&[scope(5, 10), other]), [5, 2]);
    }
}
