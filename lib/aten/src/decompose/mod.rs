//! Decompositions: operators written in terms of simpler ones.
//!
//! `table` and `renames` name every operator that has a rule, one row each; the families hold the rules. A rule begins with its
//! equation and shapes; definitions are PyTorch's operator documentation unless it says otherwise. Half types compute
//! in `f32` and round once at the end wherever PyTorch's CPU kernels do.

mod antialias;
mod attention;
mod backward;
mod bag;
mod bits;
mod calculus;
mod complex;
mod conv;
mod create;
mod einsum;
mod elementwise;
mod experts;
mod fft;
mod grid;
mod histogram;
mod identity;
mod int4;
mod int4_dynamic;
mod loss;
mod margin;
mod matmul;
mod matrix;
mod norm;
mod pool;
mod prims;
mod quantile;
mod quantized;
mod quantized_rows;
mod random;
mod recurrent;
mod reduce;
mod renames;
mod resample;
mod scaled;
mod scatter;
mod segment;
mod softmax;
mod solve;
mod special;
mod split;
mod table;
mod torchao;
mod unique;
mod view;
mod window;

pub(crate) use norm::train_instance_norm;
pub(crate) use scatter::put_slice;

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::V;

/// Most pieces that a rule unrolls a call into.
const MAX_PIECES: i64 = 4096;

/// A number of pieces, if it is one that may be unrolled.
fn pieces(op: &str, count: i64) -> Result<i64, Error> {
    if count > MAX_PIECES {
        return Err(Error::unsupported(format!("{op} unrolls into {count} pieces; expected at most {MAX_PIECES}")));
    }
    Ok(count)
}

/// The result of checked arithmetic on a call's numbers.
fn exact(op: &str, number: Option<i64>) -> Result<i64, Error> {
    number.ok_or_else(|| Error::shape(op, "its numbers leave 64 bits"))
}

/// Fails unless a tensor has at least `rank` dimensions.
fn need_rank(op: &str, v: &V, rank: usize) -> Result<(), Error> {
    if v.rank() < rank {
        return Err(Error::shape(op, format!("{} has rank {}; expected at least {rank}", v.name, v.rank())));
    }
    Ok(())
}

/// The call as it is, which the target must lower itself.
fn own(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if !e.is_lowerable(b.op()) {
        return Err(Error::unsupported("neither lowered by the target nor decomposed"));
    }
    e.emit(b.node)
}

/// Makes the nodes that a call becomes and gives its results.
pub(crate) type Rule = fn(&mut Expander<'_, '_>, &Bound<'_>) -> Results;

/// The rule of an operator.
pub(crate) fn find(op: &str) -> Option<Rule> {
    if let Ok(at) = table::RULES.binary_search_by(|(name, _)| (*name).cmp(op)) {
        return table::RULES.get(at).map(|(_, rule)| *rule);
    }
    renames::renamed(op).map(|_| elementwise::rename as Rule)
}

/// Whether the rule comes first even where the target lowers the operator: it drops calls that do nothing.
pub(crate) fn is_eager(op: &str) -> bool {
    table::EAGER.binary_search(&op).is_ok()
}

/// Operators with a rule, sorted.
pub fn operators() -> Vec<&'static str> {
    let mut all: Vec<&str> =
        table::RULES.iter().map(|(op, _)| *op).chain(renames::RENAMES.iter().map(|(op, _)| *op)).collect();
    all.sort_unstable();
    all
}
