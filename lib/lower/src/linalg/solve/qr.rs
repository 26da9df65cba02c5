//! The QR factorisation by Householder's reflections.

use super::{
    Batch, by_column, by_matrix, by_row, line, lu, read, renew, repeat, result, total, type_of, units, widened,
};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::Scalars;
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, CmpF, CmpI, Iter, Map, Size, Value};
use m2m_record::{DType, Dim, Node};

/// `linalg_qr(A [*, m, n], mode) -> (Q, R)`: `Q @ R = A`, `R` upper triangular. Step `k` reflects column `k` so that nothing
/// is left below its diagonal, which takes the sign opposite to its own, or keeps it where nothing is below: the signs of
/// LAPACK's `geqrf`. `mode` is `reduced` (`Q` of `min(m, n)` columns), `complete`, or `r` (no `Q`).
pub fn qr<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let a = Batch::of(cx, bound.tensor("A")?)?;
    let mode = bound.str("mode")?;
    if !["reduced", "complete", "r"].contains(&mode) {
        return Err(Error::Graph(format!("mode {mode:?}; expected reduced, complete or r")));
    }
    let (dtype, steps) = (a.dtype, a.steps()?);
    let [batch, rows, cols] = a.shape.clone();
    let square = [batch.clone(), rows.clone(), rows.clone()];
    let unit = units(cx, dtype, &square)?;
    let done = repeat(cx, &steps, &[a.value, unit], |b, k, v| {
        let reflection = Reflection::of(b, dtype, v[0], k)?;
        Ok(vec![reflection.rows(b, v[0])?, reflection.columns(b, v[1])?])
    })?;
    let upper = renew(&cx.b, dtype, done[0], &[], &|s, row, col, _, own| {
        Ok(s.b.select(s.b.cmpi(CmpI::Sle, row, col)?, own, s.number(0.0)?)?)
    })?;
    let (q_cols, r_rows) = if mode == "complete" { (rows.clone(), rows.clone()) } else { (steps.clone(), steps) };
    let q_shape = [batch.clone(), rows, q_cols];
    let r_shape = [batch, r_rows, cols];
    let q = match mode {
        "r" => lu::nothing(cx, node, 0, dtype)?,
        _ => {
            let q = head(cx, done[1], &q_shape)?;
            result(cx, node, 0, q, dtype, &q_shape)?
        }
    };
    let r = head(cx, upper, &r_shape)?;
    Ok(vec![q, result(cx, node, 1, r, dtype, &r_shape)?])
}

/// The leading part of every matrix.
fn head<'c>(cx: &mut Cx<'c>, m: Value<'c>, shape: &[Dim; 3]) -> Result<Value<'c>> {
    let sizes = cx.sizes(shape)?;
    Ok(cx.b.extract_slice(m, &[Size::Static(0); 3], &sizes, &[Size::Static(1); 3])?)
}

/// `I - tau · v · v.T`
struct Reflection<'c> {
    dtype: DType,
    /// `[batch, rows, 1]`
    v: Value<'c>,
    /// `[batch]`
    tau: Value<'c>,
}

impl<'c> Reflection<'c> {
    /// What takes the elements of column `k` below its diagonal to 0: with the diagonal `alpha`, the sum of squares below it
    /// and `beta = -sign(alpha) · |column|`, `tau` is `(beta - alpha) / beta` and `v` is the column over `alpha - beta`, with
    /// 1 on the diagonal.
    fn of(b: &Builder<'c>, dtype: DType, m: Value<'c>, k: Value<'c>) -> Result<Self> {
        let column = line(b, m, 2, k)?;
        let alpha = line(b, column, 1, k)?;
        let below = total(b, dtype, 1, column, &[], &|s, row, _, _, x| {
            let square = s.mul(x, x)?;
            Ok(s.b.select(s.b.cmpi(CmpI::Sgt, row, k)?, square, s.number(0.0)?)?)
        })?;
        let beta = |s: &Scalars<'_, 'c>, alpha: Value<'c>, below: Value<'c>| {
            let norm = s.b.unary("math.sqrt", s.add(s.mul(alpha, alpha)?, below)?)?;
            Ok::<Value<'c>, Error>(s.b.negf(s.b.binary("math.copysign", norm, alpha)?)?)
        };
        let below_each = widened(b, below, 1)?;
        let ins = [(alpha, by_matrix()), (below_each, by_matrix())];
        let copy = b.empty(&b.sizes(column)?, b.elem(dtype.name())?)?;
        let ins = [ins[0].clone(), ins[1].clone(), (column, by_row())];
        let v = renew(b, dtype, copy, &ins, &|s, row, _, v: &[Value<'c>], _| {
            let zero = s.number(0.0)?;
            let is_nothing = s.b.cmpf(CmpF::Oeq, v[1], zero)?;
            let divisor = s.sub(v[0], beta(s, v[0], v[1])?)?;
            let divisor = s.b.select(is_nothing, s.number(1.0)?, divisor)?;
            let scaled = s.b.select(is_nothing, zero, s.div(v[2], divisor)?)?;
            let inner = s.b.select(s.b.cmpi(CmpI::Eq, row, k)?, s.number(1.0)?, zero)?;
            Ok(s.b.select(s.b.cmpi(CmpI::Sgt, row, k)?, scaled, inner)?)
        })?;
        let sizes = b.sizes(below)?;
        let out = b.empty(&sizes[..1], b.elem(dtype.name())?)?;
        let at = |rank: usize| {
            let first = std::iter::once(m2m_mlir::map::Expr::Dim(0));
            Map::new(1, first.chain((1..rank).map(|_| m2m_mlir::map::Expr::Const(0))).collect())
        };
        let tau =
            b.generic(&[(alpha, at(3)), (below, at(2))], &[(out, Map::identity(1))], &[Iter::Parallel], |b, v| {
                let run = || {
                    let s = Scalars::new(b, dtype);
                    let zero = s.number(0.0)?;
                    let is_nothing = b.cmpf(CmpF::Oeq, v[1], zero)?;
                    let beta = beta(&s, v[0], v[1])?;
                    let safe = b.select(is_nothing, s.number(1.0)?, beta)?;
                    let tau = s.div(s.sub(beta, v[0])?, safe)?;
                    Ok(vec![b.select(is_nothing, zero, tau)?])
                };
                run().map_err(into_mlir)
            })?;
        debug_assert_eq!(m2m_mlir::types::dims(type_of(tau[0])).len(), 1);
        Ok(Reflection { dtype, v, tau: tau[0] })
    }

    /// The reflection times every matrix.
    fn rows(&self, b: &Builder<'c>, m: Value<'c>) -> Result<Value<'c>> {
        let w = total(b, self.dtype, 1, m, &[(self.v, by_row())], &|s, _, _, v: &[Value<'c>], x| s.mul(v[0], x))?;
        let w = widened(b, w, 1)?;
        let ins = [(self.v, by_row()), (w, by_column()), (self.tau, read(&[Some(0)]))];
        self.less(b, m, &ins)
    }

    /// Every matrix times the reflection.
    fn columns(&self, b: &Builder<'c>, m: Value<'c>) -> Result<Value<'c>> {
        let across = read(&[Some(0), Some(2), None]);
        let u = total(b, self.dtype, 2, m, &[(self.v, across.clone())], &|s, _, _, v: &[Value<'c>], x| s.mul(v[0], x))?;
        let u = widened(b, u, 2)?;
        let ins = [(u, by_row()), (self.v, across), (self.tau, read(&[Some(0)]))];
        self.less(b, m, &ins)
    }

    /// `m - tau · left · right`
    fn less(&self, b: &Builder<'c>, m: Value<'c>, ins: &[(Value<'c>, Map)]) -> Result<Value<'c>> {
        renew(b, self.dtype, m, ins, &|s, _, _, v: &[Value<'c>], own| s.sub(own, s.mul(v[2], s.mul(v[0], v[1])?)?))
    }
}
