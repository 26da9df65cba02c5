//! Graphs of sparse models to the dialect `lattice`.
//!
//! PyTorch has no type for a sparse value, so a model says what it computes by custom operators of namespace `lattice`. An
//! operator is called as its operation is in Python (`sparse.make` is `lattice::sparse_make`) and takes the operation's
//! operands, then its attributes, in the order of the schema or by name: weights are tensors, a triple is `int[]` or
//! `float[]`, a keyword is `str`. What can only be one thing (`coord_order`, `accumulation`) may be left out; nothing else
//! has a default. An export leaves arguments out that equal a default of PyTorch's schema, so operators declare none.
//!
//! | in the graph | in the module |
//! |---|---|
//! | a tensor `[rows, channels]` that an operator gives where its operation gives a sparse value | that sparse value |
//! | it where an operation takes a tensor, or a row-wise operator is applied to it | its features, by `sparse.decompose`; what comes of a row-wise operator is on the same rows, by `sparse.with_features` |
//! | a parameter, buffer or constant as a weight operand | `weight`, dense, by the operand's family; the storage key is its name, of tied ones the first's |
//! | `lattice::weight_packed(weight, scales, biases, packing, group_size)` as a weight operand | `weight`, packed; the three tensors are called `K.weight`, `K.scales`, `K.biases`, as the contract stores them, and `K` is the storage key |
//! | an operator of ATen that an operation computes exactly (`dense`) | that operation |
//!
//! `cx` is what values are, `call` maps any operator of the schema table, `dense` those of ATen, `weights` binds what is
//! stored, `rows` knows which sparse values have the same rows. Conditions on sizes are not checked: the contract has none.
//! What the module computes has passed every rule of `m2m-lattice-verify`, those about stored tensors too.

mod call;
mod cx;
mod dense;
mod emit;
mod rows;
mod weights;

pub use dense::operators;
pub use emit::{Emitted, emit};

use m2m_lattice::schema::{OPS, Op};

/// The namespace of operators, with the point behind it.
const PREFIX: &str = "lattice.";

/// Every operator that is lowered, a line each: those of ATen, and those of the schema table with their arguments.
pub fn list_ops() -> String {
    let aten = dense::operators().map(str::to_owned);
    let own = OPS.iter().filter(|def| def.op != Op::Weight).map(|def| {
        let values = def.values().map(|value| format!("{}{}", value.name, if value.is_optional { "?" } else { "" }));
        let fields = def.attributes.iter().map(|field| field.name.to_owned());
        format!("{PREFIX}{}({})", def.python_name(), values.chain(fields).collect::<Vec<_>>().join(", "))
    });
    let packed = format!("{PREFIX}{}({}, packing, group_size)", call::PACKED, weights::PARTS.join(", "));
    let mut lines: Vec<String> = aten.chain(own).chain([packed]).collect();
    lines.sort_unstable();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Whether an operator is looked at as it is, not decomposed.
pub fn has(op: &str) -> bool {
    op.starts_with(PREFIX) || dense::find(op).is_some()
}
