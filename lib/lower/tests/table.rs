//! What must hold of the table itself.

use m2m_lower::linalg::{TABLE, find};

#[test]
fn rows_are_sorted_and_distinct() {
    for pair in TABLE.windows(2) {
        assert!(pair[0].op < pair[1].op, "{} stands before {}", pair[0].op, pair[1].op);
    }
}

#[test]
fn every_row_is_an_operator_of_the_registry_and_is_found() {
    for row in TABLE {
        // The registry has no schemas of what calls graphs.
        let is_known = row.op.starts_with("higher_order.") || m2m_aten::schema::find(row.op).is_some();
        assert!(is_known, "{} is not in PyTorch's registry", row.op);
        assert!(find(row.op).is_some_and(|found| found.op == row.op));
    }
}

#[test]
fn rows_emit_only_what_newer_releases_still_read() {
    let elementwise = ["add", "sub", "mul", "div", "exp", "log", "abs", "negf", "sqrt", "tanh", "erf", "elementwise"];
    for row in TABLE {
        let is_known = ["linalg.", "tensor.", "scf.", "cf.", "func."].iter().any(|d| row.emits.starts_with(d));
        assert!(is_known, "{} emits {}", row.op, row.emits);
        assert!(
            !elementwise.iter().any(|name| row.emits == format!("linalg.{name}")),
            "{} emits {}",
            row.op,
            row.emits
        );
    }
}
