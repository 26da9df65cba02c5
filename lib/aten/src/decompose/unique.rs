//! Distinct elements, and places of true ones in a tensor of a known size.

use super::segment::add_rows;
use super::{exact, pieces};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::value::{V, tensor_type};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// The places that rows would have in ascending order, equal ones in the order they have.
fn order(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let types = vec![x.ty(), tensor_type(DType::I64, &x.shape)];
    let kwargs = [("stable", Arg::Bool(true)), ("dim", Arg::Int(0)), ("descending", Arg::Bool(false))];
    let sorted = e.call("aten.sort.stable", vec![x.arg()], &kwargs, types)?;
    sorted.into_iter().nth(1).flatten().ok_or_else(|| Error::shape("sort", "no places"))
}

/// Whether each row of `[n]` or `[n, m]` differs from the one before it; the first does.
fn begins(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let n = x.dim(0);
    let last = expr::sub(n.clone(), Expr::Int(1));
    let (head, tail) = (e.slice(x, 0, &Expr::Int(0), &last, 1)?, e.slice(x, 0, &Expr::Int(1), &n, 1)?);
    let mut differs = e.compare("ne", &tail, &head)?;
    if x.rank() == 2 {
        let args = vec![differs.arg(), Arg::Int(1)];
        differs = e.call1("aten.any.dim", args, &[], DType::Bool, &[last])?;
    }
    let first = e.full(&[Expr::Int(1)], DType::Bool, true)?;
    e.cat(&[first, differs], 0)
}

/// The number of each row's run.
fn runs(e: &mut Expander<'_, '_>, begins: &V) -> Result<V, Error> {
    let ones = e.to_dtype(begins, DType::I64)?;
    let count = e.call1("aten.cumsum.default", vec![ones.arg(), Arg::Int(0)], &[], DType::I64, &ones.shape)?;
    e.sub(&count, 1i64)
}

/// The last results of the family: the run of each element of the input, and the length of each run, where asked for.
fn tallies(e: &mut Expander<'_, '_>, b: &Bound<'_>, run: &V, order: Option<&V>, count: &Expr) -> Results {
    let mut out = Vec::new();
    let wants = |name: &str| if b.has(name) { b.bool(name) } else { Ok(false) };
    let (dtype, shape) = e.result(b, 1)?;
    out.push(Some(if wants("return_inverse")? {
        let placed = match order {
            Some(order) => {
                let zeros = e.full(&run.shape, run.dtype, Arg::Int(0))?;
                let args = vec![zeros.arg(), Arg::Int(0), order.arg(), run.arg()];
                e.call1("aten.scatter.src", args, &[], run.dtype, &run.shape)?
            }
            None => run.clone(),
        };
        e.view(&placed, &shape)?
    } else {
        e.full(&shape, dtype, Arg::Int(0))?
    }));
    if b.node.results.len() > 2 {
        let (dtype, shape) = e.result(b, 2)?;
        out.push(Some(if wants("return_counts")? {
            let ones = e.full(&run.shape, DType::I64, Arg::Int(1))?;
            add_rows(e, &ones, run, count)?
        } else {
            e.full(&shape, dtype, Arg::Int(0))?
        }));
    }
    Ok(out)
}

/// `_unique2`, `unique_consecutive`: distinct elements in ascending order, or one of each run of equal ones; the number
/// of each element's, and how often each occurs. A NaN equals nothing.
pub(super) fn unique(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if b.has("dim") && b.int_or("dim")?.is_some() {
        return unique_dim(e, b);
    }
    let x = e.tensor(b, "self")?;
    let (_, shape) = e.result(b, 0)?;
    let count = shape.first().cloned().unwrap_or(Expr::Int(1));
    let mut flat = e.view(&x, &[Expr::Int(-1)])?;
    let order = if b.op().contains("consecutive") { None } else { Some(order(e, &flat)?) };
    if let Some(order) = &order {
        flat = e.index_select(&flat, 0, order)?;
    }
    let begins = begins(e, &flat)?;
    let args = vec![flat.arg(), begins.arg()];
    let values = e.call1("aten.masked_select.default", args, &[], flat.dtype, &shape)?;
    let run = runs(e, &begins)?;
    let mut out = vec![Some(values)];
    out.extend(tallies(e, b, &run, order.as_ref(), &count)?);
    Ok(out)
}

/// `unique_dim`, and `unique_consecutive` along a dimension: distinct slices along a dimension, in the order of their elements.
pub(super) fn unique_dim(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (_, shape) = e.result(b, 0)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let front: Vec<usize> = std::iter::once(dim).chain((0..x.rank()).filter(|d| *d != dim)).collect();
    let moved = e.permute(&x, &front)?;
    let width = expr::mul(moved.shape.iter().skip(1).cloned());
    let mut rows = e.view(&moved, &[x.dim(dim), width.clone()])?;
    let mut order = None;
    if !b.op().contains("consecutive") {
        let Some(columns) = width.as_int() else {
            return Err(Error::unsupported(format!("{} of slices of {width} elements", b.op())));
        };
        let mut places = e.iota(&x.dim(dim), DType::I64)?;
        // Stable sorts by each column, the last one first, sort by all of them.
        for column in (0..pieces(b.op(), columns)?).rev() {
            let key = e.select(&rows, 1, &Expr::Int(column))?;
            let step = self::order(e, &key)?;
            rows = e.index_select(&rows, 0, &step)?;
            places = e.index_select(&places, 0, &step)?;
        }
        order = Some(places);
    }
    let begins = begins(e, &rows)?;
    let count = shape.get(dim).cloned().unwrap_or(Expr::Int(1));
    let at = e.call1("aten.nonzero.default", vec![begins.arg()], &[], DType::I64, &[count.clone(), Expr::Int(1)])?;
    let at = e.view(&at, std::slice::from_ref(&count))?;
    let values = e.index_select(&rows, 0, &at)?;
    let mut split = moved.shape.clone();
    if let Some(size) = split.first_mut() {
        *size = count.clone();
    }
    let values = e.view(&values, &split)?;
    let back: Option<Vec<usize>> = (0..front.len()).map(|d| front.iter().position(|f| *f == d)).collect();
    let values = e.permute(&values, &back.ok_or_else(|| Error::shape(b.op(), "no dimension"))?)?;
    let run = runs(e, &begins)?;
    let mut out = vec![Some(values)];
    out.extend(tallies(e, b, &run, order.as_ref(), &count)?);
    Ok(out)
}

/// `nonzero_static(x, size, fill_value)`: the places `[size, rank]` of the first elements that are not 0, in row-major
/// order; what is left over holds `fill_value`.
pub(super) fn nonzero_static(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let size = e.size(b.arg("size")?)?;
    let fill = b.int("fill_value")?;
    let flat = e.view(&x, &[Expr::Int(-1)])?;
    let is_set = e.compare("ne", &flat, 0i64)?;
    let rank = runs(e, &is_set)?;
    let is_within = e.compare("lt", &rank, &crate::value::size_arg(&size))?;
    let is_taken = e.binary_default("logical_and", &is_set, &is_within)?;
    // One place more takes what is not wanted.
    let room = expr::add([size.clone(), Expr::Int(1)]);
    let spare = e.full(&[], DType::I64, crate::value::size_arg(&size))?;
    let to = e.select_where(&is_taken, &rank, &spare)?;
    let line = e.iota(&flat.dim(0), DType::I64)?;
    let start = e.full(&[room], DType::I64, Arg::Int(-1))?;
    let args = vec![start.arg(), Arg::Int(0), to.arg(), line.arg()];
    let found = e.call1("aten.scatter.src", args, &[], DType::I64, &start.shape)?;
    let found = e.slice(&found, 0, &Expr::Int(0), &size, 1)?;
    let is_found = e.compare("ge", &found, 0i64)?;
    let filler = e.full(&[], DType::I64, fill)?;
    let mut columns = Vec::new();
    for axis in 0..x.rank() {
        let inner = expr::mul(x.shape.iter().skip(axis + 1).cloned());
        let whole = |e: &mut Expander<'_, '_>, op: &str, v: &V, n: &Expr| {
            e.call1(op, vec![v.arg(), crate::value::size_arg(n)], &[], DType::I64, &v.shape)
        };
        let at = whole(e, "aten.floor_divide.Scalar", &found, &inner)?;
        let at = whole(e, "aten.remainder.Scalar", &at, &x.dim(axis))?;
        let at = e.select_where(&is_found, &at, &filler)?;
        columns.push(e.unsqueeze(&at, 1)?);
    }
    if columns.is_empty() {
        let (dtype, shape) = e.result(b, 0)?;
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    exact(b.op(), i64::try_from(columns.len()).ok())?;
    one(e.cat(&columns, 1)?)
}
