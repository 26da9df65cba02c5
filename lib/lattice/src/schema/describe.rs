//! The table in words: what each operation takes, gives and must satisfy.

use super::{OPS, OpDef, Rule};
use crate::plan::element_name;
use std::fmt::{self, Write as _};

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Convention(a) => write!(f, "{a} has rank 3, coord batch_x_y_z, feature row_channel"),
            Rule::SameConvention(a, b) => write!(f, "{a} and {b} agree in rank, coord and feature"),
            Rule::Family(a, family) => write!(f, "{a} is of family {family}"),
            Rule::Rank(a, rank) => write!(f, "{a} has rank {rank}"),
            Rule::Size(a, axis, size) => write!(f, "{a} has size {size} along axis {axis}"),
            Rule::SameRows(a, b) => write!(f, "{a} and {b} have as many rows where both are static"),
            Rule::SameElement(a, b) => write!(f, "{a} and {b} have the same element"),
            Rule::Element(a, dtype) => write!(f, "{a} holds {}", element_name(*dtype)),
            Rule::Positive(a) => write!(f, "{a} is more than 0 and finite"),
            Rule::NonNegative(a) => write!(f, "{a} is 0 or more and finite"),
            Rule::Finite(a) => write!(f, "{a} is finite"),
            Rule::Odd(a) => write!(f, "{a} is odd along every axis"),
            Rule::AtLeast(a, least) => write!(f, "{a} is {least} or more"),
            Rule::OneOf(a, values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "{a} is {}", values.join(" or "))
            }
            Rule::Words(a, words) => write!(f, "{a} is \"{}\"", words.join("\" or \"")),
            Rule::NonEmpty(a) => write!(f, "{a} is not empty"),
            Rule::Absent(a) => write!(f, "{a} is not given"),
            Rule::CoordOrder => f.write_str("coord_order is the result's coord"),
            Rule::Storage => f.write_str("family, layout and packing go together"),
        }
    }
}

/// One operation: its signature, then a rule a line.
pub fn describe(def: &OpDef) -> String {
    let values = def
        .operands
        .iter()
        .map(|value| format!("{}{}: {}", value.name, if value.is_optional { "?" } else { "" }, value.class.name()));
    let attributes = def.attributes.iter().map(|field| format!("{} = {}", field.name, field.kind.name()));
    let results = def.results.iter().map(|value| value.class.name());
    let join = |items: Vec<String>| items.join(", ");
    let mut out = format!(
        "{}({}) {{{}}} -> {}\n",
        def.full_name(),
        join(values.collect()),
        join(attributes.collect()),
        join(results.map(str::to_owned).collect())
    );
    for rule in def.rules {
        let _ = writeln!(out, "    {rule}");
    }
    out
}

/// Every operation.
pub fn describe_all() -> String {
    OPS.iter().map(describe).collect()
}
