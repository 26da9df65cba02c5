//! Quantiles: elements of a sorted row, or between two of them.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::{numel, wrap_dim};
use crate::value::{V, size_arg, tensor_type};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `quantile(self, q, dim, keepdim, interpolation)`: of each row sorted, the element at the rank `q·(n - 1)`; where
/// that lies between two, what `interpolation` says. A row with NaN gives NaN; `nanquantile` leaves NaN out of account.
/// A vector of `q` becomes the first dimension.
pub(super) fn quantile(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let q =
        if b.op().ends_with(".scalar") { e.full(&[], x.dtype, Arg::from(b.float("q")?))? } else { e.tensor(b, "q")? };
    let is_single = q.rank() == 0;
    let q = e.view(&q, &[numel(&q.shape)])?;
    let (x, dim) = rows(e, b, &x)?;
    let last = x.from_end(1)?;
    let n = x.dim(last);
    let types = vec![x.ty(), tensor_type(DType::I64, &x.shape)];
    let args = vec![x.arg(), Arg::Int(-1), Arg::Bool(false)];
    let sorted = crate::expand::first(b.op(), e.call("aten.sort.default", args, &[], types)?)?;
    let is_nan = e.test("isnan", &sorted)?;
    let most = size_arg(&expr::sub(n, Expr::Int(1)));
    let ranks = if b.op().contains("nanquantile") {
        let is_number = e.test("logical_not", &is_nan)?;
        let count = e.sum(&is_number, &[last], true)?;
        let most = e.sub(&count, 1i64)?;
        let most = e.to_dtype(&most, x.dtype)?;
        let ranks = e.mul(&most, &q)?;
        e.unary("relu", &ranks)?
    } else {
        let ranks = e.mul(&q, &most)?;
        let lead = x.shape.iter().take(last).cloned().chain([ranks.dim(0)]);
        let ranks = e.expand_to(&ranks, &lead.collect::<Vec<_>>())?;
        let args = vec![is_nan.arg(), Arg::Int(-1), Arg::Bool(true)];
        let kept = crate::infer::reduced(&x.shape, &[last], true);
        let has_nan = e.call1("aten.any.dim", args, &[], DType::Bool, &kept)?;
        let top = e.full(&[], ranks.dtype, most)?;
        e.select_where(&has_nan, &top, &ranks)?
    };
    let y = at_ranks(e, b, &sorted, &ranks)?;
    // `[…, q]` with the reduced dimension gone, or of size 1 in its place.
    let mut y = e.permute(&y, &(0..last).fold(vec![last], |dims, d| [dims, vec![d]].concat()))?;
    if is_single {
        y = e.squeeze(&y, 0)?;
    }
    if let Some(dim) = dim.filter(|_| b.bool("keepdim").unwrap_or(false)) {
        y = e.unsqueeze(&y, dim + usize::from(!is_single))?;
    }
    let y = e.view(&y, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}

/// The tensor with the dimension in question last, and which that was; all elements as one row where none is named.
fn rows(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Result<(V, Option<usize>), Error> {
    match b.int_or("dim")? {
        Some(dim) if x.rank() > 0 => {
            let dim = wrap_dim(b.op(), dim, x.rank())?;
            let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != dim).chain([dim]).collect();
            Ok((e.permute(x, &dims)?, Some(dim)))
        }
        _ => Ok((e.view(x, &[numel(&x.shape)])?, None)),
    }
}

/// The elements of sorted rows `[…, n]` at ranks `[…, q]`.
fn at_ranks(e: &mut Expander<'_, '_>, b: &Bound<'_>, sorted: &V, ranks: &V) -> Result<V, Error> {
    let pick = |e: &mut Expander<'_, '_>, ranks: &V| {
        let index = e.to_dtype(ranks, DType::I64)?;
        let args = vec![sorted.arg(), Arg::Int(-1), index.arg()];
        e.call1("aten.gather.default", args, &[], sorted.dtype, &index.shape)
    };
    let interpolation = b.str("interpolation")?;
    let whole = match interpolation {
        "linear" | "midpoint" | "lower" => e.unary("floor", ranks)?,
        "higher" => e.unary("ceil", ranks)?,
        "nearest" => e.unary("round", ranks)?,
        other => return Err(Error::shape(b.op(), format!("the interpolation {other:?}"))),
    };
    let below = pick(e, &whole)?;
    if !matches!(interpolation, "linear" | "midpoint") {
        return Ok(below);
    }
    let above = e.unary("ceil", ranks)?;
    let above = pick(e, &above)?;
    let weight = if interpolation == "midpoint" {
        e.full(&ranks.shape, sorted.dtype, Arg::from(0.5))?
    } else {
        let part = e.sub(ranks, &whole)?;
        e.to_dtype(&part, sorted.dtype)?
    };
    let args = vec![below.arg(), above.arg(), weight.arg()];
    e.call1("aten.lerp.Tensor", args, &[], below.dtype, &below.shape)
}
