//! Triangular systems, by substitution.

use super::{Batch, by_column, by_matrix, by_row, line, renew, repeat, result};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use m2m_aten::bind::Bound;
use m2m_mlir::{CmpI, Value};
use m2m_record::Node;

/// `linalg_solve_triangular(self [*, n, n], B [*, n, m], upper, left, unitriangular)`: `X` with `self @ X = B`. Step `k`
/// divides row `k` by the diagonal, unless that stands for ones, and takes its multiples from the rows that are left.
///
/// C1: `left` is true, and both have the same leading sizes; the decomposition sees to that.
pub fn solve<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (a, right) = (Batch::of(cx, bound.tensor("self")?)?, Batch::of(cx, bound.tensor("B")?)?);
    if !bound.bool("left")? || a.shape[0] != right.shape[0] || a.shape[1] != right.shape[1] {
        return Err(Error::Graph("a triangular system from the right, or of another batch".into()));
    }
    let (is_upper, is_unit) = (bound.bool("upper")?, bound.bool("unitriangular")?);
    let n = cx.size_value(&a.shape[1])?;
    let last = cx.b.subi(n, cx.b.const_index(1)?)?;
    let (matrix, dtype) = (a.value, a.dtype);
    let solved = repeat(cx, &a.shape[1], &[right.value], |b, step, x| {
        let k = if is_upper { b.subi(last, step)? } else { step };
        let column = line(b, matrix, 2, k)?;
        let ins = [(column, by_row()), (line(b, column, 1, k)?, by_matrix()), (line(b, x[0], 1, k)?, by_column())];
        let next = renew(b, dtype, x[0], &ins, &|s, row, _, v: &[Value<'c>], own| {
            let own_row = if is_unit { v[2] } else { s.div(v[2], v[1])? };
            let rest = s.sub(own, s.mul(v[0], own_row)?)?;
            let is_left = s.b.cmpi(if is_upper { CmpI::Slt } else { CmpI::Sgt }, row, k)?;
            let is_own = s.b.cmpi(CmpI::Eq, row, k)?;
            Ok(s.b.select(is_own, own_row, s.b.select(is_left, rest, own)?)?)
        })?;
        Ok(vec![next])
    })?;
    Ok(vec![result(cx, node, 0, solved[0], dtype, &right.shape)?])
}
