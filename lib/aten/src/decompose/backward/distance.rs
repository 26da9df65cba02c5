//! Gradients of distances between rows by the rows.

use super::finish;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::numel;
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// By the difference `d` of two rows, of the gradient `g` of their `p`-norm `n`, both of size 1 along the last
/// dimension: `g·sign(d)·|d|^(p-1)/n^(p-1)`, for infinite `p` `g·sign(d)` of the elements as large as the norm; 0 where
/// the norm is.
fn slope(e: &mut Expander<'_, '_>, d: &V, g: &V, n: &V, p: f64) -> Result<V, Error> {
    if p == 0.0 {
        return e.full(&d.shape, d.dtype, Arg::Int(0));
    }
    let zero = e.full(&[], d.dtype, Arg::Int(0))?;
    let sign = e.unary("sign", d)?;
    let size = e.unary("abs", d)?;
    if p == 1.0 {
        return e.mul(&sign, g);
    }
    if p.is_infinite() {
        let is_most = e.compare("eq", &size, n)?;
        let y = e.mul(&sign, g)?;
        return e.select_where(&is_most, &y, &zero);
    }
    let y = if p == 2.0 {
        let share = e.div(g, n)?;
        e.mul(d, &share)?
    } else {
        let (power, scale) = (e.pow(&size, p - 1.0)?, e.pow(n, p - 1.0)?);
        let share = e.div(g, &scale)?;
        let y = e.mul(&sign, &power)?;
        e.mul(&y, &share)?
    };
    let is_none = e.compare("eq", n, 0i64)?;
    let y = e.select_where(&is_none, &zero, &y)?;
    if p >= 1.0 {
        return Ok(y);
    }
    // Of less than a first power the slope at 0 has no bound; it counts as none.
    let is_flat = e.compare("eq", d, 0i64)?;
    e.select_where(&is_flat, &zero, &y)
}

fn wide(e: &mut Expander<'_, '_>, b: &Bound<'_>, name: &str) -> Result<V, Error> {
    let v = e.tensor(b, name)?;
    e.widen(&v)
}

/// `_cdist_backward(g [.., P, R], x1 [.., P, M], x2 [.., R, M], p, cdist [.., P, R])`: by `x1`.
pub(crate) fn cdist(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, n) = (wide(e, b, "grad")?, wide(e, b, "cdist")?);
    let (x, y) = (wide(e, b, "x1")?, wide(e, b, "x2")?);
    let (dtype, shape) = e.result(b, 0)?;
    let (x, y) = (e.unsqueeze(&x, x.from_end(1)?)?, e.unsqueeze(&y, y.from_end(2)?)?);
    let d = e.sub(&x, &y)?;
    let (g, n) = (e.unsqueeze(&g, g.rank())?, e.unsqueeze(&n, n.rank())?);
    let z = slope(e, &d, &g, &n, b.float("p")?)?;
    let z = e.sum(&z, &[z.from_end(2)?], false)?;
    let z = e.view(&z, &shape)?;
    one(e.to_dtype(&z, dtype)?)
}

/// `_pdist_backward(g [n·(n-1)/2], x [n, d], p, pdist)`: added to the first row of each pair, taken from the second.
pub(crate) fn pdist(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, n, x) = (wide(e, b, "grad")?, wide(e, b, "pdist")?, wide(e, b, "self")?);
    let Some(rows) = x.dim(0).as_int() else {
        return Err(Error::unsupported(format!("{} of a symbolic number of rows", b.op())));
    };
    let count = numel(&g.shape);
    if count == Expr::Int(0) {
        let zeros = e.full(&x.shape, x.dtype, Arg::Int(0))?;
        return finish(e, b, &zeros);
    }
    let args = vec![Arg::Int(rows), Arg::Int(rows), Arg::Int(1)];
    let kwargs = [("dtype", Arg::DType(DType::I64))];
    let pairs = e.call1("aten.triu_indices.default", args, &kwargs, DType::I64, &[Expr::Int(2), count])?;
    let (first, second) = (e.select(&pairs, 0, &Expr::Int(0))?, e.select(&pairs, 0, &Expr::Int(1))?);
    let (from, to) = (e.index_select(&x, 0, &first)?, e.index_select(&x, 0, &second)?);
    let d = e.sub(&from, &to)?;
    let (g, n) = (e.unsqueeze(&g, 1)?, e.unsqueeze(&n, 1)?);
    let z = slope(e, &d, &g, &n, b.float("p")?)?;
    let added = super::index::add_along(e, &z, 0, &first, &x.dim(0))?;
    let taken = super::index::add_along(e, &z, 0, &second, &x.dim(0))?;
    let y = e.sub(&added, &taken)?;
    finish(e, b, &y)
}
