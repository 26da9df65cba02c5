//! Histograms: how many elements, or how much weight, fall between edges.

use super::{exact, pieces};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::{V, size_arg};
use m2m_record::{Arg, DType, Type};
use m2m_tensor::{Expr, expr};

/// Edges of `bins` equal intervals: between the numbers of `range`, or the least and the largest element; half a step
/// apart from a lone number.
fn even_edges(e: &mut Expander<'_, '_>, x: &V, bins: i64, range: Option<(f64, f64)>) -> Result<V, Error> {
    let (low, high) = match range {
        Some((low, high)) => (e.full(&[], x.dtype, Arg::from(low))?, e.full(&[], x.dtype, Arg::from(high))?),
        None if x.dim(0) == Expr::Int(0) => {
            (e.full(&[], x.dtype, Arg::from(0.0))?, e.full(&[], x.dtype, Arg::from(1.0))?)
        }
        None => (e.extreme("amin", x, &[0], false)?, e.extreme("amax", x, &[0], false)?),
    };
    let is_lone = e.compare("eq", &low, &high)?;
    let (below, above) = (e.sub(&low, 0.5)?, e.add(&high, 0.5)?);
    let (low, high) = (e.select_where(&is_lone, &below, &low)?, e.select_where(&is_lone, &above, &high)?);
    let count = exact("histogram", bins.checked_add(1))?;
    let args = vec![low.arg(), high.arg(), Arg::Int(count)];
    let kwargs = [("dtype", Arg::DType(x.dtype))];
    e.call1("aten.linspace.Tensor_Tensor", args, &kwargs, x.dtype, &[Expr::Int(count)])
}

/// The interval of each element of `x [n]`, the last one closed; and which elements are in any.
fn places(e: &mut Expander<'_, '_>, x: &V, edges: &V) -> Result<(V, V), Error> {
    let bins = expr::sub(edges.dim(0), Expr::Int(1));
    let wide = e.unsqueeze(x, 1)?;
    let passed = e.compare("le", edges, &wide)?;
    let passed = e.sum(&passed, &[1], false)?;
    let at = e.sub(&passed, 1i64)?;
    let last = e.select(edges, 0, &bins)?;
    let is_last = e.compare("eq", x, &last)?;
    let end = e.full(&[], DType::I64, size_arg(&expr::sub(bins.clone(), Expr::Int(1))))?;
    let at = e.select_where(&is_last, &end, &at)?;
    let above = e.compare("ge", &at, 0i64)?;
    let below = e.compare("le", x, &last)?;
    let is_inside = e.binary_default("logical_and", &above, &below)?;
    Ok((at, is_inside))
}

/// Sums of the weights, or counts, in each box of the edges of each column; over their volumes and their total with
/// `density`.
fn fill(e: &mut Expander<'_, '_>, b: &Bound<'_>, columns: &[V], edges: &[V]) -> Result<V, Error> {
    let dtype = columns.first().map_or(DType::F32, |c| c.dtype);
    let sizes: Vec<Expr> = edges.iter().map(|v| expr::sub(v.dim(0), Expr::Int(1))).collect();
    let mut flat: Option<(V, V)> = None;
    for ((x, edges), size) in columns.iter().zip(edges).zip(&sizes) {
        let (at, is_inside) = places(e, x, edges)?;
        flat = Some(match flat {
            None => (at, is_inside),
            Some((before, is_before)) => {
                let scaled = e.mul(&before, &size_arg(size))?;
                (e.add(&scaled, &at)?, e.binary_default("logical_and", &is_before, &is_inside)?)
            }
        });
    }
    let (at, is_inside) = flat.ok_or_else(|| Error::shape(b.op(), "no column"))?;
    let mut weight = e.to_dtype(&is_inside, dtype)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.view(&w, &[Expr::Int(-1)])?;
        let zero = e.full(&[], dtype, Arg::Int(0))?;
        weight = e.select_where(&is_inside, &w, &zero)?;
    }
    let zero = e.full(&[], DType::I64, Arg::Int(0))?;
    let at = e.select_where(&is_inside, &at, &zero)?;
    let count = expr::mul(sizes.iter().cloned());
    let sums = super::segment::add_rows(e, &weight, &at, &count)?;
    let mut y = e.view(&sums, &sizes)?;
    if b.bool("density")? {
        let total = e.sum(&sums, &[0], false)?;
        y = e.div(&y, &total)?;
        for (dim, edges) in edges.iter().enumerate() {
            let end = edges.dim(0);
            let after = e.slice(edges, 0, &Expr::Int(1), &end, 1)?;
            let before = e.slice(edges, 0, &Expr::Int(0), &expr::sub(end, Expr::Int(1)), 1)?;
            let step = e.sub(&after, &before)?;
            let step = e.along(&step, dim, sizes.len())?;
            y = e.div(&y, &step)?;
        }
    }
    Ok(y)
}

/// The bounds of each column, where the call has any.
fn ranges(b: &Bound<'_>, columns: usize) -> Result<Vec<Option<(f64, f64)>>, Error> {
    let items = match b.has("range").then(|| b.arg("range")).transpose()? {
        Some(Arg::List(items)) => items.as_slice(),
        _ => return Ok(vec![None; columns]),
    };
    let number = |arg: &Arg| match arg {
        Arg::Float(x) => Some(x.0),
        Arg::Int(n) => Some(*n as f64),
        _ => None,
    };
    let pairs: Option<Vec<_>> = items
        .chunks(2)
        .map(|pair| match pair {
            [low, high] => Some(Some((number(low)?, number(high)?))),
            _ => None,
        })
        .collect();
    pairs.filter(|p| p.len() == columns).ok_or_else(|| Error::shape(b.op(), "two bounds for each column"))
}

/// `histogram(self, bins, range, weight, density)`: of all elements; `bins` is a number, or the edges. Gives the
/// histogram and the edges.
pub(super) fn histogram(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let x = e.view(&x, &[Expr::Int(-1)])?;
    let edges = match b.arg("bins")? {
        Arg::Value(_) => e.tensor(b, "bins")?,
        _ => {
            let range = ranges(b, 1)?.into_iter().next().flatten();
            even_edges(e, &x, b.int("bins")?, range)?
        }
    };
    let y = fill(e, b, &[x], std::slice::from_ref(&edges))?;
    Ok(vec![Some(y), Some(edges)])
}

/// `histogramdd(self [n, d], bins, range, weight, density)`: a histogram of `d` dimensions, and the edges along each.
/// `_histogramdd_bin_edges` gives the edges, `_histogramdd_from_bin_cts` and `_histogramdd_from_bin_tensors` the
/// histogram.
pub(super) fn of_columns(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let last = x.from_end(1)?;
    let Some(count) = x.dim(last).as_int() else {
        return Err(Error::unsupported(format!("{} of a symbolic number of columns", b.op())));
    };
    let count = pieces(b.op(), count)?.unsigned_abs() as usize;
    let x = e.view(&x, &[Expr::Int(-1), x.dim(last)])?;
    let mut columns = Vec::new();
    for k in 0..count {
        columns.push(e.select(&x, 1, &Expr::Int(i64::try_from(k).unwrap_or(i64::MAX)))?);
    }
    let edges = match b.arg("bins")? {
        Arg::List(items) if matches!(items.first(), Some(Arg::Value(_))) => e.tensors(b, "bins")?,
        bins => {
            let bins = if matches!(bins, Arg::List(_)) { b.ints("bins")? } else { vec![b.int("bins")?; count] };
            let mut edges = Vec::new();
            for ((x, bins), range) in columns.iter().zip(bins).zip(ranges(b, count)?) {
                edges.push(even_edges(e, x, bins, range)?);
            }
            edges
        }
    };
    if edges.len() != count {
        return Err(Error::shape(b.op(), format!("{} bins for {count} columns", edges.len())));
    }
    let mut out = Vec::new();
    if !b.op().contains("bin_edges") {
        out.push(Some(fill(e, b, &columns, &edges)?));
    }
    let wants_edges = b.node.results.len() > 1 || out.is_empty();
    if wants_edges && b.node.results.iter().all(|r| matches!(r.ty, Type::Tensor(_))) {
        out.extend(edges.into_iter().map(Some));
    }
    Ok(out)
}
