//! Which rows a sparse result has: those of an operand, in the same order, or its own.

use m2m_lattice::build::Attr;
use m2m_lattice::schema::{Join, Op};

/// The operand whose rows the result has; `None` where it has its own. `is_given` tells whether an operand is there,
/// `is_same` whether two have the same rows.
///
/// What has a target has the target's rows, and what neither strides nor pads those of its input: that is the support of a
/// submanifold and of a forward relation. A join of the same rows has them; else `left` and `right` have that side's.
pub fn kept(
    op: Op,
    attributes: &[(&str, Attr<'_>)],
    is_given: impl Fn(&str) -> bool,
    is_same: impl Fn(&str, &str) -> bool,
) -> Option<&'static str> {
    let attribute = |name: &str| attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    if is_given("target") {
        return Some("target");
    }
    match op {
        Op::SparseWithFeatures | Op::SubmConv3d | Op::NormalizedSubmConv3d => Some("input"),
        Op::Conv3d | Op::Pool3d => {
            let is_still =
                attribute("stride") == Some(Attr::Ints([1; 3])) && attribute("padding") == Some(Attr::Ints([0; 3]));
            is_still.then_some("input")
        }
        Op::SparseBinary | Op::SparseCat => match attribute("join") {
            Some(Attr::Keyword(join)) if join == Join::Right.name() => Some("rhs"),
            Some(Attr::Keyword(join)) if join == Join::Left.name() => Some("lhs"),
            _ => is_same("lhs", "rhs").then_some("lhs"),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_where_the_support_is() {
        let still = [("stride", Attr::Ints([1; 3])), ("padding", Attr::Ints([0; 3]))];
        let down = [("stride", Attr::Ints([2, 1, 1])), ("padding", Attr::Ints([0; 3]))];
        let shifted = [("stride", Attr::Ints([1; 3])), ("padding", Attr::Ints([0, 0, 1]))];
        let of = |op, attributes: &[(&str, Attr<'_>)]| kept(op, attributes, |_| false, |_, _| false);
        assert_eq!(of(Op::Conv3d, &still), Some("input"));
        assert_eq!(of(Op::Conv3d, &down), None);
        assert_eq!(of(Op::Pool3d, &shifted), None);
        assert_eq!(of(Op::ConvTranspose3d, &still), None);
        assert_eq!(of(Op::SubmConv3d, &[]), Some("input"));
        assert_eq!(kept(Op::PoolTranspose3d, &down, |name| name == "target", |_, _| false), Some("target"));
        let join = |join: Join, is_same: bool| {
            kept(Op::SparseCat, &[("join", Attr::Keyword(join.name()))], |_| false, |_, _| is_same)
        };
        assert_eq!((join(Join::Left, false), join(Join::Right, false)), (Some("lhs"), Some("rhs")));
        assert_eq!((join(Join::Inner, false), join(Join::Outer, true)), (None, Some("lhs")));
    }
}
