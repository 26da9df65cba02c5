//! Products by expert: runs of rows or columns that each have a matrix of their own.

use super::pieces;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// `grouped_mm_fallback(x [S, K], weight [E, K, N], offs [E])`: `_grouped_mm` of rows. Source: transformers' reference.
pub(super) fn fallback(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, weight, offs) = (e.tensor(b, "input")?, e.tensor(b, "weight")?, e.tensor(b, "offs")?);
    let (dtype, shape) = e.result(b, 0)?;
    one(by_runs(e, b, [&x, &weight], &offs, Side::Rows, dtype, &shape)?)
}

/// `_grouped_mm(x, y, offs)`, runs ending at `offs [E]`, the running counts:
///
/// | `x` | `y` | result |
/// |---|---|---|
/// | `[S, K]` | `[E, K, N]` | `[S, N]`: each row times the matrix of its run; rows after the last are 0 |
/// | `[E, M, K]` | `[K, S]` | `[M, S]`: the same of columns |
/// | `[M, S]` | `[S, N]` | `[E, M, N]`: sums over each run |
/// | `[E, M, K]` | `[E, K, N]` | `[E, M, N]`: no runs |
pub(super) fn grouped(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "mat2")?);
    let (dtype, shape) = e.result(b, 0)?;
    if e.opt_tensor(b, "bias")?.is_some() {
        return Err(Error::unsupported(format!("{} with a bias, which PyTorch does not add either", b.op())));
    }
    let offs = e.opt_tensor(b, "offs")?;
    let product = match (x.rank(), y.rank(), offs) {
        (3, 3, None) => e.bmm(&x, &y)?,
        (2, 3, Some(offs)) => by_runs(e, b, [&x, &y], &offs, Side::Rows, dtype, &shape)?,
        (3, 2, Some(offs)) => by_runs(e, b, [&x, &y], &offs, Side::Columns, dtype, &shape)?,
        (2, 2, Some(offs)) => over_runs(e, b, &x, &y, &offs)?,
        (m, n, offs) => {
            let runs = if offs.is_some() { "with" } else { "without" };
            let message = format!("ranks {m} and {n} {runs} offs; expected ranks 2 or 3, and offs unless both are 3");
            return Err(Error::shape(b.op(), message));
        }
    };
    one(e.to_dtype(&product, dtype)?)
}

/// Which side of a product has runs.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Rows,
    Columns,
}

/// The run that each of `count` places is in, which after the last run is how many there are.
fn runs(e: &mut Expander<'_, '_>, b: &Bound<'_>, offs: &V, count: &Expr) -> Result<V, Error> {
    if offs.rank() != 1 {
        return Err(Error::shape(b.op(), format!("offs of rank {}; expected 1", offs.rank())));
    }
    let place = e.iota(count, offs.dtype)?;
    let place = e.unsqueeze(&place, 1)?;
    let passed = e.compare("le", offs, &place)?;
    e.sum(&passed, &[1], false)
}

/// One product with each expert's matrix, of which every row or column takes its own.
fn by_runs(
    e: &mut Expander<'_, '_>,
    b: &Bound<'_>,
    [x, y]: [&V; 2],
    offs: &V,
    side: Side,
    dtype: DType,
    shape: &[Expr],
) -> Result<V, Error> {
    let (matrices, count) = if side == Side::Rows { (y, x.dim(0)) } else { (x, y.dim(1)) };
    let Some(experts) = matrices.dim(0).as_int().filter(|_| matrices.rank() == 3) else {
        return Err(Error::unsupported(format!("{} of a symbolic number of experts, {}", b.op(), matrices.dim(0))));
    };
    let run = runs(e, b, offs, &count)?;
    let run = e.unsqueeze(&run, if side == Side::Rows { 1 } else { 0 })?;
    let mut all = e.full(shape, dtype, Arg::Int(0))?;
    for k in 0..pieces(b.op(), experts)? {
        let own = e.select(matrices, 0, &Expr::Int(k))?;
        let product = if side == Side::Rows { e.mm(x, &own)? } else { e.mm(&own, y)? };
        let product = e.to_dtype(&product, dtype)?;
        let is_own = e.compare("eq", &run, k)?;
        all = e.select_where(&is_own, &product, &all)?;
    }
    Ok(all)
}

/// The sums over each run, what is outside of it being 0.
fn over_runs(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, y: &V, offs: &V) -> Result<V, Error> {
    let run = runs(e, b, offs, &x.dim(1))?;
    let expert = e.iota(&offs.dim(0), run.dtype)?;
    let expert = e.unsqueeze(&expert, 1)?;
    let is_own = e.compare("eq", &expert, &run)?;
    let (columns, rows) = (e.unsqueeze(&is_own, 1)?, e.unsqueeze(&is_own, 2)?);
    let x = e.select_where(&columns, x, 0i64)?;
    let y = e.select_where(&rows, y, 0i64)?;
    e.bmm(&x, &y)
}
