//! Writes into a copy of a tensor, and reads by index.

use super::view::slice_bounds;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `x` with `x[start : start + len(src) · step : step]` along `dim` replaced by `src`.
pub(crate) fn put_slice(
    e: &mut Expander<'_, '_>,
    x: &V,
    src: &V,
    dim: usize,
    (start, step): (&Expr, i64),
) -> Result<V, Error> {
    let src = e.to_dtype(src, x.dtype)?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(dim) {
        *size = src.dim(dim);
    }
    let src = e.expand_to(&src, &shape)?;
    if e.is_lowerable("aten.slice_scatter.default") {
        let steps = expr::mul([expr::sub(src.dim(dim), Expr::Int(1)), Expr::Int(step)]);
        let end = expr::add([start.clone(), steps, Expr::Int(1)]);
        let bounds = [crate::value::size_arg(start), crate::value::size_arg(&end), Arg::Int(step)];
        let args: Vec<Arg> = [x.arg(), src.arg(), Arg::Int(dim as i64)].into_iter().chain(bounds).collect();
        return e.call1("aten.slice_scatter.default", args, &[], x.dtype, &x.shape);
    }
    if step == 1 {
        let end = expr::add([start.clone(), src.dim(dim)]);
        let mut parts = Vec::new();
        if *start != Expr::Int(0) {
            parts.push(e.slice(x, dim, &Expr::Int(0), start, 1)?);
        }
        parts.push(src);
        if end != x.dim(dim) {
            parts.push(e.slice(x, dim, &end, &x.dim(dim), 1)?);
        }
        return e.cat(&parts, dim);
    }
    let index = e.iota(&src.dim(dim), DType::I64)?;
    let index = e.mul(&index, step)?;
    let index = match start {
        Expr::Int(0) => index,
        start => e.add(&index, &crate::value::size_arg(start))?,
    };
    let index = e.along(&index, dim, x.rank())?;
    let index = e.expand_to(&index, &src.shape)?;
    let args = vec![x.arg(), Arg::Int(dim as i64), index.arg(), src.arg()];
    e.call1("aten.scatter.src", args, &[], x.dtype, &x.shape)
}

/// `slice_scatter(self, src, dim, start, end, step)`
pub(super) fn slice_scatter(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, src) = (e.tensor(b, "self")?, e.tensor(b, "src")?);
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let (start, _) = slice_bounds(e, b.arg("start")?, b.arg("end")?, &x.dim(dim))?;
    one(put_slice(e, &x, &src, dim, (&start, b.int("step")?))?)
}

/// `select_scatter(self, src, dim, index)`
pub(super) fn select_scatter(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, src) = (e.tensor(b, "self")?, e.tensor(b, "src")?);
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let index = e.size(b.arg("index")?)?;
    let index = if index.as_int().is_some_and(|n| n < 0) { expr::add([x.dim(dim), index]) } else { index };
    let src = e.unsqueeze(&src, dim)?;
    one(put_slice(e, &x, &src, dim, (&index, 1))?)
}

/// A vector of indices laid along `dim` and stretched to a shape.
fn index_like(e: &mut Expander<'_, '_>, index: &V, dim: usize, shape: &[Expr]) -> Result<V, Error> {
    let index = e.view(index, &[Expr::Int(-1)])?;
    let index = e.to_dtype(&index, DType::I64)?;
    let index = e.along(&index, dim, shape.len())?;
    e.expand_to(&index, shape)
}

/// `index_copy(self, dim, index, source)`: row `index[i]` becomes row `i` of `source`; the last one wins.
pub(super) fn index_copy(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, index, src) = (e.tensor(b, "self")?, e.tensor(b, "index")?, e.tensor(b, "source")?);
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let index = index_like(e, &index, dim, &src.shape)?;
    let args = vec![x.arg(), Arg::Int(dim as i64), index.arg(), src.arg()];
    one(e.call1("aten.scatter.src", args, &[], x.dtype, &x.shape)?)
}

/// `index_add(self, dim, index, source, alpha)`: row `i` of `source`, times `alpha`, is added to row `index[i]`.
pub(super) fn index_add(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, index, src) = (e.tensor(b, "self")?, e.tensor(b, "index")?, e.tensor(b, "source")?);
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let index = index_like(e, &index, dim, &src.shape)?;
    let alpha = b.scalar("alpha")?.clone();
    let src = if alpha == Arg::Int(1) { src } else { e.mul(&src, &alpha)? };
    let args = vec![x.arg(), Arg::Int(dim as i64), index.arg(), src.arg()];
    one(e.call1("aten.scatter_add.default", args, &[], x.dtype, &x.shape)?)
}

/// `index_fill(self, dim, index, value)`
pub(super) fn index_fill(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, index) = (e.tensor(b, "self")?, e.tensor(b, "index")?);
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let mut shape = x.shape.clone();
    if let Some(size) = shape.get_mut(dim) {
        *size = index.dim(0);
    }
    let index = index_like(e, &index, dim, &shape)?;
    let args = vec![x.arg(), Arg::Int(dim as i64), index.arg(), b.scalar("value")?.clone()];
    one(e.call1("aten.scatter.value", args, &[], x.dtype, &x.shape)?)
}

/// `take(self, index)`: elements of the flattened tensor; a negative index counts from the end.
pub(super) fn take(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, index) = (e.tensor(b, "self")?, e.tensor(b, "index")?);
    let flat = e.view(&x, &[Expr::Int(-1)])?;
    let wrapped = e.add(&index, &crate::value::size_arg(&flat.dim(0)))?;
    let is_negative = e.compare("lt", &index, 0i64)?;
    let at = e.select_where(&is_negative, &wrapped, &index)?;
    let at = e.view(&at, &[Expr::Int(-1)])?;
    let y = e.index_select(&flat, 0, &at)?;
    one(e.view(&y, &index.shape)?)
}

/// `take_along_dim(self, indices, dim)`: `gather` with both stretched to a common shape outside `dim`.
pub(super) fn take_along_dim(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (mut x, mut index) = (e.tensor(b, "self")?, e.tensor(b, "indices")?);
    let dim = match b.int_or("dim")? {
        Some(dim) => wrap_dim(b.op(), dim, x.rank())?,
        None => {
            x = e.view(&x, &[Expr::Int(-1)])?;
            index = e.view(&index, &[Expr::Int(-1)])?;
            0
        }
    };
    let (mut sx, mut si) = (x.shape.clone(), index.shape.clone());
    for k in (0..x.rank()).filter(|k| *k != dim) {
        let size = if x.dim(k) == Expr::Int(1) { index.dim(k) } else { x.dim(k) };
        if let (Some(a), Some(c)) = (sx.get_mut(k), si.get_mut(k)) {
            (*a, *c) = (size.clone(), size);
        }
    }
    let (x, index) = (e.expand_to(&x, &sx)?, e.expand_to(&index, &si)?);
    let args = vec![x.arg(), Arg::Int(dim as i64), index.arg()];
    one(e.call1("aten.gather.default", args, &[], x.dtype, &index.shape)?)
}

/// `isin(elements, test)`: whether any test element is equal.
pub(super) fn isin(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.operand(b, if b.has("elements") { "elements" } else { "element" })?;
    let t = e.operand(b, if b.has("test_elements") { "test_elements" } else { "test_element" })?;
    let dtype = e.promote(&[&x, &t])?;
    let (x, t) = (e.lift(&x, dtype)?, e.lift(&t, dtype)?);
    let wide = e.unsqueeze(&x, x.rank())?;
    let t = e.view(&t, &[Expr::Int(-1)])?;
    let y = e.compare("eq", &wide, &t)?;
    let args = vec![y.arg(), Arg::Int(x.rank() as i64)];
    let y = e.call1("aten.any.dim", args, &[], DType::Bool, &x.shape)?;
    one(if b.bool("invert")? { e.test("logical_not", &y)? } else { y })
}

/// `bucketize(x, edges, right)`: how many edges are below `x`, those equal to it included when `right`.
pub(super) fn bucketize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, edges) = (e.tensor(b, "self")?, e.tensor(b, "boundaries")?);
    let (dtype, _) = e.result(b, 0)?;
    let wide = e.unsqueeze(&x, x.rank())?;
    let below = e.compare(if b.bool("right")? { "le" } else { "lt" }, &edges, &wide)?;
    let y = e.sum(&below, &[x.rank()], false)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `searchsorted(edges, x)`: along the last dimension, for edges of the same leading sizes or of one dimension.
pub(super) fn searchsorted(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (edges, x) = (e.tensor(b, "sorted_sequence")?, e.tensor(b, "self")?);
    let (dtype, _) = e.result(b, 0)?;
    if b.opt_tensor("sorter")?.is_some() {
        return Err(Error::unsupported("searchsorted with a sorter has no rule"));
    }
    let is_right = b.bool("right")? || b.str_or("side")? == Some("right");
    let wide = e.unsqueeze(&x, x.rank())?;
    let edges = if edges.rank() > 1 { e.unsqueeze(&edges, edges.from_end(1)?)? } else { edges };
    let below = e.compare(if is_right { "le" } else { "lt" }, &edges, &wide)?;
    let y = e.sum(&below, &[x.rank()], false)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `_index_put_impl(self, indices, values, accumulate, unsafe)`: `index_put`.
pub(super) fn index_put(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let arg = |name: &str| b.arg(name).cloned();
    let args = vec![x.arg(), arg("indices")?, arg("values")?, arg("accumulate")?];
    one(e.call1("aten.index_put.default", args, &[], x.dtype, &x.shape)?)
}

/// The indices of a masked read or write, each brought into its dimension: what is outside is masked.
fn clamped(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Result<Vec<Arg>, Error> {
    let mut out = Vec::new();
    for (dim, name) in b.opt_tensors("indices")?.into_iter().enumerate() {
        let Some(name) = name else {
            out.push(Arg::Null);
            continue;
        };
        let index = e.value(name)?;
        let index = e.to_dtype(&index, DType::I64)?;
        let size = x.dim(dim);
        let last = e.full(&[], DType::I64, crate::value::size_arg(&expr::sub(size.clone(), Expr::Int(1))))?;
        let first = e.full(&[], DType::I64, crate::value::size_arg(&expr::mul([Expr::Int(-1), size])))?;
        let index = e.binary_default("minimum", &index, &last)?;
        out.push(e.binary_default("maximum", &index, &first)?.arg());
    }
    Ok(out)
}

/// `_unsafe_masked_index(self, mask, indices, fill)`: `self[indices]` where the mask is true, else `fill`.
pub(super) fn masked_index(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, mask) = (e.tensor(b, "self")?, e.tensor(b, "mask")?);
    let (dtype, shape) = e.result(b, 0)?;
    let fill = e.full(&[], dtype, b.scalar("fill")?.clone())?;
    if crate::infer::numel(&x.shape) == Expr::Int(0) {
        return one(e.expand_to(&fill, &shape)?);
    }
    let indices = Arg::List(clamped(e, b, &x)?);
    let y = e.call1("aten.index.Tensor", vec![x.arg(), indices], &[], dtype, &shape)?;
    one(e.select_where(&mask, &y, &fill)?)
}

/// `_unsafe_masked_index_put_accumulate(self, mask, indices, values)`: the values where the mask is true are added at
/// their places.
pub(super) fn masked_put(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, mask, values) = (e.tensor(b, "self")?, e.tensor(b, "mask")?, e.tensor(b, "values")?);
    if crate::infer::numel(&x.shape) == Expr::Int(0) {
        return one(x);
    }
    let indices = Arg::List(clamped(e, b, &x)?);
    let zero = e.full(&[], values.dtype, Arg::Int(0))?;
    let values = e.select_where(&mask, &values, &zero)?;
    let args = vec![x.arg(), indices, values.arg(), Arg::Bool(true)];
    one(e.call1("aten.index_put.default", args, &[], x.dtype, &x.shape)?)
}

/// `nonzero_numpy`, `where(condition)`: the places of true elements, a vector for each dimension.
pub(super) fn nonzero_each(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, if b.has("self") { "self" } else { "condition" })?;
    let x = if x.rank() == 0 { e.view(&x, &[Expr::Int(1)])? } else { x };
    let (dtype, shape) = e.result(b, 0)?;
    let rank = i64::try_from(x.rank()).unwrap_or(i64::MAX);
    let shape: Vec<Expr> = shape.into_iter().chain([Expr::Int(rank)]).collect();
    let places = e.call1("aten.nonzero.default", vec![x.arg()], &[], dtype, &shape)?;
    (0..rank).map(|dim| e.select(&places, 1, &Expr::Int(dim)).map(Some)).collect()
}
