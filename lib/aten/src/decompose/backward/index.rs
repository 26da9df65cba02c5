//! Gradients of reads: zeros of the input's shape, to which each element of the gradient `g` is put or added where it
//! was read.

use super::finish;
use crate::bind::Bound;
use crate::decompose::scatter::put_slice;
use crate::decompose::segment::add_rows;
use crate::decompose::view::slice_bounds;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::{numel, wrap_dim};
use crate::value::{V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// Zeros of the result's dtype and shape.
fn zeros(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<V, Error> {
    let (dtype, shape) = e.result(b, 0)?;
    e.full(&shape, dtype, Arg::Int(0))
}

/// The dimension that a call names, of its result.
fn result_dim(e: &Expander<'_, '_>, b: &Bound<'_>) -> Result<usize, Error> {
    let (_, shape) = e.result(b, 0)?;
    wrap_dim(b.op(), b.int("dim")?, shape.len())
}

/// `select_backward(g, input_sizes, dim, index)`
pub(crate) fn select(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (zeros, g) = (zeros(e, b)?, e.tensor(b, "grad_output")?);
    let dim = result_dim(e, b)?;
    let index = e.size(b.arg("index")?)?;
    let index = if index.as_int().is_some_and(|n| n < 0) { expr::add([zeros.dim(dim), index]) } else { index };
    let g = e.unsqueeze(&g, dim)?;
    one(put_slice(e, &zeros, &g, dim, (&index, 1))?)
}

/// `slice_backward(g, input_sizes, dim, start, end, step)`
pub(crate) fn slice(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (zeros, g) = (zeros(e, b)?, e.tensor(b, "grad_output")?);
    let dim = result_dim(e, b)?;
    if g.dim(dim) == Expr::Int(0) {
        return one(zeros);
    }
    let (start, _) = slice_bounds(e, b.arg("start")?, b.arg("end")?, &zeros.dim(dim))?;
    one(put_slice(e, &zeros, &g, dim, (&start, b.int("step")?))?)
}

/// `diagonal_backward(g, input_sizes, offset, dim1, dim2)`
pub(crate) fn diagonal(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (zeros, g) = (zeros(e, b)?, e.tensor(b, "grad_output")?);
    let numbers = ["offset", "dim1", "dim2"].map(|name| b.arg(name).cloned());
    let args = [Ok(zeros.arg()), Ok(g.arg())].into_iter().chain(numbers).collect::<Result<Vec<_>, _>>()?;
    one(e.call1("aten.diagonal_scatter.default", args, &[], zeros.dtype, &zeros.shape)?)
}

/// `unfold_backward(g, input_sizes, dim, size, step)`: element `i` of window `w` goes to `w·step + i`.
pub(crate) fn unfold(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (zeros, g) = (zeros(e, b)?, e.tensor(b, "grad_in")?);
    if zeros.rank() == 0 {
        let g = e.sum(&g, &[0], false)?;
        return finish(e, b, &g);
    }
    let dim = result_dim(e, b)?;
    let last = g.from_end(1)?;
    let dims: Vec<usize> = (0..=dim).chain([last]).chain(dim + 1..last).collect();
    let g = e.permute(&g, &dims)?;
    let (windows, size) = (g.dim(dim), g.dim(dim + 1));
    let w = e.iota(&windows, DType::I64)?;
    let w = e.mul(&w, b.int("step")?)?;
    let w = e.unsqueeze(&w, 1)?;
    let i = e.iota(&size, DType::I64)?;
    let index = e.add(&w, &i)?;
    let places = expr::mul([windows, size]);
    let index = e.view(&index, std::slice::from_ref(&places))?;
    let mut flat = g.shape.clone();
    flat.splice(dim..dim + 2, [places]);
    let g = e.view(&g, &flat)?;
    let g = e.widen(&g)?;
    let y = add_along(e, &g, dim, &index, &zeros.dim(dim))?;
    finish(e, b, &y)
}

/// Adds `g[…, i, …]` along `dim` to place `index[i]` of zeros of `size`.
pub(super) fn add_along(e: &mut Expander<'_, '_>, g: &V, dim: usize, index: &V, size: &Expr) -> Result<V, Error> {
    let mut shape = g.shape.clone();
    if let Some(slot) = shape.get_mut(dim) {
        *slot = size.clone();
    }
    let zeros = e.full(&shape, g.dtype, Arg::Int(0))?;
    let dim = i64::try_from(dim).unwrap_or(i64::MAX);
    let args = vec![zeros.arg(), Arg::Int(dim), index.arg(), g.arg()];
    e.call1("aten.index_add.default", args, &[], g.dtype, &shape)
}

/// `index_select_backward(g, self_sizes, dim, index)`
pub(crate) fn index_select(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, index) = (e.tensor(b, "grad")?, e.tensor(b, "index")?);
    let (_, shape) = e.result(b, 0)?;
    let g = e.widen(&g)?;
    if shape.is_empty() {
        let all: Vec<usize> = (0..g.rank()).collect();
        let y = e.sum(&g, &all, false)?;
        return finish(e, b, &y);
    }
    let dim = result_dim(e, b)?;
    let index = e.view(&index, &[Expr::Int(-1)])?;
    let y = add_along(e, &g, dim, &index, shape.get(dim).unwrap_or(&Expr::Int(0)))?;
    finish(e, b, &y)
}

/// `gather_backward(g, self, dim, index)`, `cummaxmin_backward(g, input, indices, dim)` and
/// `value_selecting_reduction_backward(g, dim, indices, sizes, keepdim)`, whose `g` may lack the dimension.
pub(crate) fn gather(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (mut g, mut index) = (e.tensor(b, "grad")?, e.tensor(b, if b.has("index") { "index" } else { "indices" })?);
    let (_, shape) = e.result(b, 0)?;
    let dim = result_dim(e, b)?;
    if b.has("keepdim") && !b.bool("keepdim")? && !shape.is_empty() {
        (g, index) = (e.unsqueeze(&g, dim)?, e.unsqueeze(&index, dim)?);
    }
    let g = e.widen(&g)?;
    let zeros = e.full(&shape, g.dtype, Arg::Int(0))?;
    let args = vec![zeros.arg(), Arg::Int(i64::try_from(dim).unwrap_or(0)), index.arg(), g.arg()];
    let y = e.call1("aten.scatter_add.default", args, &[], g.dtype, &shape)?;
    finish(e, b, &y)
}

/// `embedding_dense_backward(g [*, D], indices [*], num_weights, padding_idx, scale_grad_by_freq)`: each row added to
/// row `indices[…]` of zeros `[num_weights, D]`; none of the padding, each divided by how often its index occurs where
/// that is asked for.
pub(crate) fn embedding(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if b.has("sparse") && b.bool("sparse")? {
        return Err(Error::unsupported("embedding_backward with a sparse gradient"));
    }
    let (g, index) = (e.tensor(b, if b.has("grad") { "grad" } else { "grad_output" })?, e.tensor(b, "indices")?);
    let (_, shape) = e.result(b, 0)?;
    let (Some(rows), Some(width)) = (shape.first().cloned(), shape.get(1).cloned()) else {
        return Err(Error::shape(b.op(), "a result of another rank than 2"));
    };
    let count = numel(&index.shape);
    let index = e.to_dtype(&index, DType::I64)?;
    let index = e.view(&index, std::slice::from_ref(&count))?;
    let g = e.widen(&g)?;
    let mut g = e.view(&g, &[count.clone(), width])?;
    if b.bool("scale_grad_by_freq")? {
        let ones = e.full(std::slice::from_ref(&count), g.dtype, Arg::Int(1))?;
        let often = add_rows(e, &ones, &index, &rows)?;
        let often = e.index_select(&often, 0, &index)?;
        let often = e.unsqueeze(&often, 1)?;
        g = e.div(&g, &often)?;
    }
    let is_padding = match e.size(b.arg("padding_idx")?)? {
        Expr::Int(n) if n < 0 => None,
        padding => Some(e.compare("eq", &index, &size_arg(&padding))?),
    };
    if let Some(is_padding) = is_padding {
        let zero = e.full(&[], g.dtype, Arg::Int(0))?;
        let is_padding = e.unsqueeze(&is_padding, 1)?;
        g = e.select_where(&is_padding, &zero, &g)?;
    }
    let y = add_along(e, &g, 0, &index, &rows)?;
    finish(e, b, &y)
}

/// `Σ_{j >= i} x[j]` along `dim`.
fn sum_from(e: &mut Expander<'_, '_>, x: &V, dim: usize) -> Result<V, Error> {
    let x = e.flip(x, &[dim])?;
    let args = vec![x.arg(), Arg::Int(i64::try_from(dim).unwrap_or(0))];
    let y = e.call1("aten.cumsum.default", args, &[], x.dtype, &x.shape)?;
    e.flip(&y, &[dim])
}

/// `cumprod_backward(g, x, dim, y)`: `Σ_{j >= i} g[j]·y[j]/x[i]`. Up to the first zero of a row that is it; at this
/// zero the products are those without it, behind it all of them are 0.
pub(crate) fn cumprod(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, y) = (e.tensor(b, "grad")?, e.tensor(b, "input")?, e.tensor(b, "output")?);
    let (dtype, shape) = e.result(b, 0)?;
    let wide = crate::promote::accumulate_dtype(dtype);
    let (g, x, y) = (e.to_dtype(&g, wide)?, e.to_dtype(&x, wide)?, e.to_dtype(&y, wide)?);
    if shape.is_empty() {
        return finish(e, b, &g);
    }
    let dim = result_dim(e, b)?;
    let axis = Arg::Int(i64::try_from(dim).unwrap_or(0));
    let is_zero = e.compare("eq", &x, 0i64)?;
    let count = e.to_dtype(&is_zero, DType::I64)?;
    let count = e.call1("aten.cumsum.default", vec![count.arg(), axis.clone()], &[], DType::I64, &shape)?;
    let is_second = e.compare("eq", &count, 1i64)?;
    let is_first_zero = e.binary_default("logical_and", &is_zero, &is_second)?;
    let (zero, unit) = (e.full(&[], wide, Arg::Int(0))?, e.full(&[], wide, Arg::Int(1))?);
    let without = e.select_where(&is_first_zero, &unit, &x)?;
    let without = e.call1("aten.cumprod.default", vec![without.arg(), axis], &[], wide, &shape)?;
    let at_zero = e.mul(&g, &without)?;
    let at_zero = sum_from(e, &at_zero, dim)?;
    let before = e.mul(&g, &y)?;
    let before = sum_from(e, &before, dim)?;
    let before = e.div(&before, &x)?;
    let is_before = e.compare("eq", &count, 0i64)?;
    let behind = e.select_where(&is_first_zero, &at_zero, &zero)?;
    let z = e.select_where(&is_before, &before, &behind)?;
    finish(e, b, &z)
}
