//! The Cholesky factorisation of symmetric positive definite matrices.

use super::{Batch, by_matrix, by_row, line, read, renew, repeat, result};
use crate::error::Result;
use crate::linalg::cx::{Cx, Val};
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_mlir::{CmpI, Iter, Map, Value};
use m2m_record::{DType, Node};

/// `linalg_cholesky_ex(self [*, n, n], upper) -> (L, info)`: `L @ L^H = self`, read from the lower triangle; `info` is the
/// first step (from 1) whose pivot is not positive, or 0. Step `k` divides column `k` by the root of its diagonal and takes
/// the product of it with itself from what is left.
///
/// C1: `upper` is false; the decomposition sees to that.
pub fn cholesky<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let a = Batch::of(cx, bound.tensor("self")?)?;
    let (dtype, batch) = (a.dtype, a.shape[0].clone());
    let zero = Scalars::new(&cx.b, DType::I32).int(0)?;
    let info = cx.filled(DType::I32, std::slice::from_ref(&batch), zero)?;
    let done = repeat(cx, &a.shape[1], &[a.value, info], |b, k, v| {
        let column = line(b, v[0], 2, k)?;
        let pivot = line(b, column, 1, k)?;
        let ins = [(column, by_row()), (column, read(&[Some(0), Some(2), None])), (pivot, by_matrix())];
        let next = renew(b, dtype, v[0], &ins, &|s, row, col, v: &[Value<'c>], own| {
            let root = s.as_complex(s.b.unary("math.sqrt", s.real_part(v[2])?)?)?;
            let (left, right) = (s.div(v[0], root)?, s.conj(s.div(v[1], root)?)?);
            let rest = s.sub(own, s.mul(left, right)?)?;
            let (is_row, is_col) = (s.b.cmpi(CmpI::Sgt, row, k)?, s.b.cmpi(CmpI::Sgt, col, k)?);
            let next = s.b.select(s.b.andi(is_row, is_col)?, rest, own)?;
            let is_column = s.b.cmpi(CmpI::Eq, col, k)?;
            let next = s.b.select(s.b.andi(is_row, is_column)?, left, next)?;
            let is_pivot = s.b.andi(is_column, s.b.cmpi(CmpI::Eq, row, k)?)?;
            Ok(s.b.select(is_pivot, root, next)?)
        })?;
        let step = b.index_cast(b.addi(k, b.const_index(1)?)?, b.elem("i32")?)?;
        Ok(vec![next, noted(b, dtype, pivot, v[1], step, Compare::Gt)?])
    })?;
    let lower = renew(&cx.b, dtype, done[0], &[], &|s, row, col, _, own| {
        Ok(s.b.select(s.b.cmpi(CmpI::Sle, col, row)?, own, s.number(0.0)?)?)
    })?;
    let factor = result(cx, node, 0, lower, dtype, &a.shape)?;
    Ok(vec![factor, result(cx, node, 1, done[1], DType::I32, &[batch])?])
}

/// `info` with `step` where it is 0 still and the pivot does not compare with 0 as it should; an order is that of real parts.
pub fn noted<'c>(
    b: &m2m_mlir::Builder<'c>,
    dtype: DType,
    pivot: Value<'c>,
    info: Value<'c>,
    step: Value<'c>,
    good: Compare,
) -> Result<Value<'c>> {
    let at =
        Map::new(1, vec![m2m_mlir::map::Expr::Dim(0), m2m_mlir::map::Expr::Const(0), m2m_mlir::map::Expr::Const(0)]);
    let results = b.generic(&[(pivot, at)], &[(info, Map::identity(1))], &[Iter::Parallel], |b, v| {
        let run = || {
            let s = Scalars::new(b, dtype);
            let is_good = if matches!(good, Compare::Eq | Compare::Ne) {
                s.compare(good, v[0], s.number(0.0)?)?
            } else {
                let parts = s.of_parts();
                parts.compare(good, s.real_part(v[0])?, parts.number(0.0)?)?
            };
            let is_noted = b.cmpi(CmpI::Ne, v[1], Scalars::new(b, DType::I32).int(0)?)?;
            Ok(vec![b.select(b.ori(is_good, is_noted)?, v[1], step)?])
        };
        run().map_err(crate::linalg::elementwise::into_mlir)
    })?;
    Ok(results[0])
}
