//! The QR factorisation by Householder's reflections.

use super::{
    Batch, by_column, by_matrix, by_row, line, lu, put_line, read, renew, repeat, result, total, type_of, units,
    widened,
};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::scalar::{Compare, Scalars};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, CmpF, CmpI, Iter, Map, Size, Value};
use m2m_record::{DType, Dim, Node};

/// `geqrf(A [*, m, n]) -> (A, tau [*, min(m, n)])`: `R` on and above the diagonal, the vectors of the reflections below it.
pub fn geqrf<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let a = Batch::of(cx, bound.tensor("self")?)?;
    let (dtype, steps, batch) = (a.dtype, a.steps()?, a.shape[0].clone());
    let zero = Scalars::new(&cx.b, dtype).number(0.0)?;
    let taus = cx.filled(dtype, &[batch.clone(), steps.clone()], zero)?;
    let done = repeat(cx, &steps, &[a.value, taus], |b, k, v| {
        let reflection = Reflection::of(b, dtype, v[0], k)?;
        let reflected = reflection.rows(b, v[0])?;
        let ins = [(v[0], Map::identity(3)), (reflection.v, by_row())];
        let next = renew(b, dtype, reflected, &ins, &|s, row, col, v: &[Value<'c>], own| {
            // Columns that are done hold vectors; column `k` gets its own.
            let (is_done, is_own) = (s.b.cmpi(CmpI::Slt, col, k)?, s.b.cmpi(CmpI::Eq, col, k)?);
            let is_vector = s.b.andi(is_own, s.b.cmpi(CmpI::Sgt, row, k)?)?;
            Ok(s.b.select(is_done, v[0], s.b.select(is_vector, v[1], own)?)?)
        })?;
        let sizes = [b.sizes(reflection.tau)?[0], Size::Static(1)];
        let tau = b.expand_shape(reflection.tau, &[vec![0, 1]], &sizes)?;
        Ok(vec![next, put_line(b, tau, v[1], 1, k)?])
    })?;
    let packed = result(cx, node, 0, done[0], dtype, &a.shape)?;
    Ok(vec![packed, result(cx, node, 1, done[1], dtype, &[batch, steps])?])
}

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

/// `I - tau · v · v^H`
struct Reflection<'c> {
    dtype: DType,
    /// `[batch, rows, 1]`
    v: Value<'c>,
    /// `[batch]`
    tau: Value<'c>,
}

impl<'c> Reflection<'c> {
    /// What takes the elements of column `k` below its diagonal to 0: with the diagonal `alpha`, the sum of squares below it
    /// and `beta = -sign(re alpha) · |column|`, `tau` is `(beta - alpha) / beta` and `v` is the column over `alpha - beta`, with
    /// 1 on the diagonal.
    fn of(b: &Builder<'c>, dtype: DType, m: Value<'c>, k: Value<'c>) -> Result<Self> {
        let column = line(b, m, 2, k)?;
        let alpha = line(b, column, 1, k)?;
        let below = total(b, dtype, 1, column, &[], &|s, row, _, _, x| {
            let square = s.mul(x, s.conj(x)?)?;
            Ok(s.b.select(s.b.cmpi(CmpI::Sgt, row, k)?, square, s.number(0.0)?)?)
        })?;
        let beta = |s: &Scalars<'_, 'c>, alpha: Value<'c>, below: Value<'c>| {
            let square = s.real_part(s.add(s.mul(alpha, s.conj(alpha)?)?, below)?)?;
            let norm = s.b.unary("math.sqrt", square)?;
            let norm = s.b.binary("math.copysign", norm, s.real_part(alpha)?)?;
            s.as_complex(s.b.negf(norm)?)
        };
        // Nothing is to be reflected where nothing is below a diagonal that is real.
        let is_nothing = |s: &Scalars<'_, 'c>, alpha: Value<'c>, below: Value<'c>| {
            let is_empty = s.compare(Compare::Eq, below, s.number(0.0)?)?;
            if !s.is_complex() {
                return Ok::<Value<'c>, Error>(is_empty);
            }
            let (_, im) = s.parts(alpha)?;
            Ok(s.b.andi(is_empty, s.b.cmpf(CmpF::Oeq, im, s.of_parts().number(0.0)?)?)?)
        };
        let below_each = widened(b, below, 1)?;
        let ins = [(alpha, by_matrix()), (below_each, by_matrix())];
        let copy = b.empty(&b.sizes(column)?, b.elem(dtype.name())?)?;
        let ins = [ins[0].clone(), ins[1].clone(), (column, by_row())];
        let v = renew(b, dtype, copy, &ins, &|s, row, _, v: &[Value<'c>], _| {
            let zero = s.number(0.0)?;
            let is_nothing = is_nothing(s, v[0], v[1])?;
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
                    let is_nothing = is_nothing(&s, v[0], v[1])?;
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

    /// The adjoint of the reflection times every matrix.
    fn rows(&self, b: &Builder<'c>, m: Value<'c>) -> Result<Value<'c>> {
        let w =
            total(b, self.dtype, 1, m, &[(self.v, by_row())], &|s, _, _, v: &[Value<'c>], x| s.mul(s.conj(v[0])?, x))?;
        let w = widened(b, w, 1)?;
        let ins = [(self.v, by_row()), (w, by_column()), (self.tau, read(&[Some(0)]))];
        renew(b, self.dtype, m, &ins, &|s, _, _, v: &[Value<'c>], own| {
            s.sub(own, s.mul(s.conj(v[2])?, s.mul(v[0], v[1])?)?)
        })
    }

    /// Every matrix times the reflection.
    fn columns(&self, b: &Builder<'c>, m: Value<'c>) -> Result<Value<'c>> {
        let across = read(&[Some(0), Some(2), None]);
        let u = total(b, self.dtype, 2, m, &[(self.v, across.clone())], &|s, _, _, v: &[Value<'c>], x| s.mul(v[0], x))?;
        let u = widened(b, u, 2)?;
        let ins = [(u, by_row()), (self.v, across), (self.tau, read(&[Some(0)]))];
        renew(b, self.dtype, m, &ins, &|s, _, _, v: &[Value<'c>], own| {
            s.sub(own, s.mul(v[2], s.mul(v[0], s.conj(v[1])?)?)?)
        })
    }
}
