//! Bags of embeddings: rows of a table, reduced bag by bag.

use super::segment::add_rows;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// The rows that bags are made of.
struct Rows {
    /// `[n, D]`, widened; of padding neutral.
    rows: V,
    /// The bag of each, `[n]`.
    bag: V,
    /// Whether each counts, `[n]`.
    is_kept: Option<V>,
    /// How many bags there are.
    count: Expr,
}

/// `embedding_bag(weight [V, D], indices [n], offsets [B], …)`: the sum (mode 0), the mean (1) or the maximum (2) of the
/// rows of each bag; bag `b` begins at `offsets[b]`, and with `include_last_offset` the last offset is the end of the
/// last bag. Rows of `padding_idx` do not count, and a bag of nothing is 0. The further results serve the gradient: the
/// bag of each index, the sizes of bags (not of sums, which give 0), and of maxima the index that each comes from, else
/// the sizes once more.
pub(super) fn embedding_bag(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let mode = b.int("mode")?;
    if !(0..=2).contains(&mode) {
        return Err(Error::shape(
            b.op(),
            format!("mode {mode}; expected the sum (0), the mean (1) or the maximum (2)"),
        ));
    }
    let indices = e.tensor(b, "indices")?;
    if indices.rank() != 1 {
        return Err(Error::unsupported(format!("{} of indices of rank {}", b.op(), indices.rank())));
    }
    let (dtype, _) = e.result(b, 0)?;
    let rows = gather(e, b, &indices, mode)?;
    let sizes = sizes(e, &rows)?;
    let (y, places) = match mode {
        2 => {
            let (y, places) = maxima(e, &rows, &sizes, &indices)?;
            (y, Some(places))
        }
        _ => (add_rows(e, &rows.rows, &rows.bag, &rows.count)?, None),
    };
    let y = if mode == 1 {
        let args = vec![sizes.arg(), Arg::Int(1), Arg::Null];
        let divisor = e.call1("aten.clamp.default", args, &[], sizes.dtype, &sizes.shape)?;
        let divisor = e.to_dtype(&divisor, y.dtype)?;
        let divisor = e.unsqueeze(&divisor, 1)?;
        e.div(&y, &divisor)?
    } else {
        y
    };
    let mut out = vec![Some(e.to_dtype(&y, dtype)?)];
    let sizes = (mode != 0).then_some(sizes);
    for (k, known) in [Some(&rows.bag), sizes.as_ref(), places.as_ref().or(sizes.as_ref())].into_iter().enumerate() {
        let (dtype, shape) = e.result(b, k + 1)?;
        out.push(Some(match known {
            Some(v) if v.rank() == shape.len() && shape.first() != Some(&Expr::Int(0)) => {
                let v = e.to_dtype(v, dtype)?;
                stretched(e, &v, &shape)?
            }
            _ => e.full(&shape, dtype, Arg::Int(0))?,
        }));
    }
    Ok(out)
}

/// PyTorch's types count the last offset as a bag, of which nothing is known but that nobody reads it.
fn stretched(e: &mut Expander<'_, '_>, v: &V, shape: &[Expr]) -> Result<V, Error> {
    match (v.dim(0).as_int(), shape.first().and_then(Expr::as_int)) {
        (Some(found), Some(stated)) if found < stated => {
            let mut pads = vec![(Expr::Int(0), Expr::Int(0)); v.rank()];
            if let Some(pad) = pads.first_mut() {
                pad.1 = Expr::Int(stated - found);
            }
            e.pad(v, &pads, Arg::Int(0))
        }
        _ => Ok(v.clone()),
    }
}

fn gather(e: &mut Expander<'_, '_>, b: &Bound<'_>, indices: &V, mode: i64) -> Result<Rows, Error> {
    let (weight, mut offsets) = (e.tensor(b, "weight")?, e.tensor(b, "offsets")?);
    let (_, shape) = e.result(b, 0)?;
    let count = shape.first().cloned().unwrap_or(Expr::Int(0));
    if b.bool("include_last_offset")? {
        offsets = e.slice(&offsets, 0, &Expr::Int(0), &count, 1)?;
    }
    let place = e.iota(&indices.dim(0), offsets.dtype)?;
    let place = e.unsqueeze(&place, 1)?;
    let begun = e.compare("le", &offsets, &place)?;
    let bag = e.sum(&begun, &[1], false)?;
    let bag = e.sub(&bag, 1i64)?;
    let shape = [indices.dim(0), weight.dim(1)];
    let rows = e.call1("aten.embedding.default", vec![weight.arg(), indices.arg()], &[], weight.dtype, &shape)?;
    let mut rows = e.widen(&rows)?;
    if let Some(w) = e.opt_tensor(b, "per_sample_weights")? {
        let w = e.widen(&w)?;
        let w = e.unsqueeze(&w, 1)?;
        rows = e.mul(&rows, &w)?;
    }
    let padding = if b.has("padding_idx") { b.int_or("padding_idx")?.filter(|n| *n >= 0) } else { None };
    let mut is_kept = None;
    if let Some(n) = padding {
        let kept = e.compare("ne", indices, n)?;
        let wide = e.unsqueeze(&kept, 1)?;
        let nothing = if mode == 2 { f64::NEG_INFINITY } else { 0.0 };
        let nothing = e.full(&[], rows.dtype, Arg::from(nothing))?;
        rows = e.select_where(&wide, &rows, &nothing)?;
        is_kept = Some(kept);
    }
    Ok(Rows { rows, bag, is_kept, count })
}

/// How many rows of each bag count, i64.
fn sizes(e: &mut Expander<'_, '_>, rows: &Rows) -> Result<V, Error> {
    let counted = match &rows.is_kept {
        Some(kept) => e.to_dtype(kept, DType::I64)?,
        None => e.full(&[rows.bag.dim(0)], DType::I64, Arg::Int(1))?,
    };
    add_rows(e, &counted, &rows.bag, &rows.count)
}

/// Extremes of the rows of each bag, in place of what `start` holds.
fn extremes(e: &mut Expander<'_, '_>, rows: &Rows, src: &V, start: Arg, how: &str) -> Result<V, Error> {
    let shape = [rows.count.clone(), src.dim(1)];
    let start = e.full(&shape, src.dtype, start)?;
    let index = e.unsqueeze(&rows.bag, 1)?;
    let index = e.expand_to(&index, &src.shape)?;
    let args = vec![start.arg(), Arg::Int(0), index.arg(), src.arg(), Arg::from(how)];
    e.call1("aten.scatter_reduce.two", args, &[], src.dtype, &shape)
}

/// The maximum of each bag, and the index of the first row that it comes from; both 0 of a bag of nothing.
fn maxima(e: &mut Expander<'_, '_>, rows: &Rows, sizes: &V, indices: &V) -> Result<(V, V), Error> {
    let y = extremes(e, rows, &rows.rows, Arg::from(f64::NEG_INFINITY), "amax")?;
    let own = e.index_select(&y, 0, &rows.bag)?;
    let is_most = e.compare("eq", &rows.rows, &own)?;
    let line = e.iota(&indices.dim(0), DType::I64)?;
    let line = e.unsqueeze(&line, 1)?;
    let beyond = e.full(&[], DType::I64, Arg::Int(i64::MAX))?;
    let place = e.select_where(&is_most, &line, &beyond)?;
    let first = extremes(e, rows, &place, Arg::Int(i64::MAX), "amin")?;
    let is_empty = e.compare("eq", sizes, 0i64)?;
    let is_empty = e.unsqueeze(&is_empty, 1)?;
    let zero = e.full(&[], DType::I64, Arg::Int(0))?;
    let first = e.select_where(&is_empty, &zero, &first)?;
    let flat = e.view(&first, &[Expr::Int(-1)])?;
    let picked = e.index_select(indices, 0, &flat)?;
    let picked = e.view(&picked, &first.shape)?;
    let none = e.full(&[], picked.dtype, Arg::Int(0))?;
    let picked = e.select_where(&is_empty, &none, &picked)?;
    let nothing = e.full(&[], y.dtype, Arg::Int(0))?;
    Ok((e.select_where(&is_empty, &nothing, &y)?, picked))
}

/// `embedding_renorm(weight [n, d], indices, max_norm, norm_type)`: rows that are looked up and longer than `max_norm` are
/// scaled by `max_norm / (norm + 1e-7)`.
pub(super) fn renorm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (w, indices) = (e.tensor(b, "self")?, e.tensor(b, "indices")?);
    super::need_rank(b.op(), &w, 2)?;
    let most = b.float("max_norm")?;
    let wide = e.widen(&w)?;
    let norm = super::reduce::vector_norm(e, &wide, b.float("norm_type")?, &[1], true)?;
    let divisor = e.add(&norm, 1e-7)?;
    let factor = e.unary_float("reciprocal", &divisor)?;
    let factor = e.mul(&factor, most)?;
    let scaled = e.mul(&wide, &factor)?;
    let scaled = e.to_dtype(&scaled, w.dtype)?;
    let index = e.to_dtype(&indices, DType::I64)?;
    let index = e.view(&index, &[Expr::Int(-1)])?;
    let none = e.full(&[w.dim(0)], DType::I64, Arg::Int(0))?;
    let args = vec![none.arg(), Arg::Int(0), index.arg(), Arg::Int(1)];
    let used = e.call1("aten.scatter.value", args, &[], DType::I64, &none.shape)?;
    let is_used = e.compare("ne", &used, 0i64)?;
    let is_used = e.unsqueeze(&is_used, 1)?;
    let is_long = e.compare("gt", &norm, most)?;
    let is_scaled = e.binary_default("logical_and", &is_used, &is_long)?;
    one(e.select_where(&is_scaled, &scaled, &w)?)
}
