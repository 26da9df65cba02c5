//! Reductions in terms of the target's: sums, means, extremes, variances.

use super::exact;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::promote::real_of;
use crate::value::V;
use m2m_record::{Arg, DType, Node};
use m2m_tensor::Expr;

/// The dimensions that a call names: `dim` as an integer, a list, or none for all.
pub(super) fn dims_of(e: &Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Result<Vec<usize>, Error> {
    let dims = if b.has("dim") { b.ints_or("dim")? } else { None };
    e.dims(b.op(), dims.as_deref(), x)
}

fn keepdim(b: &Bound<'_>) -> Result<bool, Error> {
    if b.has("keepdim") { b.bool("keepdim") } else { Ok(false) }
}

/// `max(x)`, `min(x)`: over all dimensions.
pub(super) fn extreme_all(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let op = if b.op() == "aten.max.default" { "amax" } else { "amin" };
    let dims = e.dims(b.op(), None, &x)?;
    one(e.extreme(op, &x, &dims, false)?)
}

/// `aminmax(dim, keepdim)`, `_aminmax`: both extremes.
pub(super) fn aminmax(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = match if b.has("dim") { b.int_or("dim")? } else { None } {
        Some(dim) => e.dims(b.op(), Some(&[dim]), &x)?,
        None => e.dims(b.op(), None, &x)?,
    };
    let low = e.extreme("amin", &x, &dims, keepdim(b)?)?;
    let high = e.extreme("amax", &x, &dims, keepdim(b)?)?;
    Ok(vec![Some(low), Some(high)])
}

/// The number that a variance's divisor is less than the count by: `correction`, or 1 when `unbiased`.
fn correction(b: &Bound<'_>) -> Result<Arg, Error> {
    if b.has("correction") {
        return Ok(match b.arg("correction")? {
            Arg::Null => Arg::Int(1),
            other => other.clone(),
        });
    }
    Ok(Arg::Int(i64::from(!b.has("unbiased") || b.bool("unbiased")?)))
}

fn spread(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, op: &str) -> Results {
    let dims = if b.has("dim") { b.ints_or("dim")? } else { None };
    let dims = dims.map_or(Arg::Null, Arg::ints);
    let kwargs = [("correction", correction(b)?), ("keepdim", Arg::Bool(keepdim(b)?))];
    // A variance is real.
    let dtypes = [real_of(x.dtype), x.dtype];
    let wide = |(r, dtype): (&m2m_record::TypedValue, DType)| match &r.ty {
        m2m_record::Type::Tensor(t) => m2m_record::Type::Tensor(m2m_record::TensorType { dtype, ..t.clone() }),
        other => other.clone(),
    };
    let types = b.node.results.iter().zip(dtypes).map(wide).collect();
    e.call(op, vec![x.arg(), dims], &kwargs, types)
}

/// `var(dim, unbiased, keepdim)`: `sum((x - mean)²) / (n - correction)`, the target's `var.correction`.
pub(super) fn var(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    spread(e, b, &x, "aten.var.correction")
}

/// `var_mean(…)`, the target's `var_mean.correction`.
pub(super) fn var_mean(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    spread(e, b, &x, "aten.var_mean.correction")
}

/// `std = sqrt(var)`, rounded once.
pub(super) fn std(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let x = e.widen(&x)?;
    let is_pair = b.op().starts_with("aten.std_mean");
    let op = if is_pair { "aten.var_mean.correction" } else { "aten.var.correction" };
    let mut out = Vec::new();
    for (k, v) in spread(e, b, &x, op)?.into_iter().enumerate() {
        let v = v.ok_or_else(|| Error::shape(b.op(), "no variance"))?;
        let v = if k == 0 { e.unary_float("sqrt", &v)? } else { v };
        let (dtype, _) = e.result(b, k)?;
        out.push(Some(e.to_dtype(&v, dtype)?));
    }
    Ok(out)
}

/// `count_nonzero`: the sum of `x != 0`, i64.
pub(super) fn count_nonzero(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = dims_of(e, b, &x)?;
    let is_set = if x.dtype == DType::Bool { x } else { e.compare("ne", &x, 0i64)? };
    one(e.sum(&is_set, &dims, false)?)
}

/// `logsumexp`: `m + log(sum(exp(x - m)))` with the maximum `m` of the real parts, taken as 0 where it is
/// infinite.
pub(super) fn logsumexp(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let x = e.widen_float(&x)?;
    let dims = dims_of(e, b, &x)?;
    let real = e.to_dtype(&x, real_of(x.dtype))?;
    let m = e.extreme("amax", &real, &dims, true)?;
    let is_infinite = e.test("isinf", &m)?;
    let zero = e.full(&[], m.dtype, Arg::Int(0))?;
    let m = e.select_where(&is_infinite, &zero, &m)?;
    let y = e.sub(&x, &m)?;
    let y = e.unary_float("exp", &y)?;
    let y = e.sum(&y, &dims, true)?;
    let y = e.unary_float("log", &y)?;
    let y = e.add(&y, &m)?;
    let shape = crate::infer::reduced(&x.shape, &dims, keepdim(b)?);
    let y = e.view(&y, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `|x|` summed to the power `ord` over dimensions, and the root of it; the extremes for infinite orders, the count of
/// nonzeros for 0. The matrix norms (`fro` of two dimensions) are the 2-norm of all elements.
pub(super) fn vector_norm(
    e: &mut Expander<'_, '_>,
    x: &V,
    ord: f64,
    dims: &[usize],
    keepdim: bool,
) -> Result<V, Error> {
    if ord == 2.0 && !x.dtype.is_complex() {
        let y = e.mul(x, x)?;
        let y = e.sum(&y, dims, keepdim)?;
        return e.unary_float("sqrt", &y);
    }
    let size = e.unary("abs", x)?;
    if ord == 2.0 {
        return vector_norm(e, &size, ord, dims, keepdim);
    }
    if ord.is_infinite() {
        return e.extreme(if ord > 0.0 { "amax" } else { "amin" }, &size, dims, keepdim);
    }
    if ord == 0.0 {
        let is_set = e.compare("ne", x, 0i64)?;
        let is_set = e.to_dtype(&is_set, size.dtype)?;
        return e.sum(&is_set, dims, keepdim);
    }
    if ord == 1.0 {
        return e.sum(&size, dims, keepdim);
    }
    let y = e.pow(&size, ord)?;
    let y = e.sum(&y, dims, keepdim)?;
    e.pow(&y, 1.0 / ord)
}

/// `linalg_vector_norm`, and `norm` of the orders that are vector norms.
pub(super) fn norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let x = e.widen_float(&x)?;
    let name = if b.has("ord") { "ord" } else { "p" };
    let dims = dims_of(e, b, &x)?;
    let ord = match b.arg(name)? {
        Arg::Null => 2.0,
        Arg::Str(s) if s == "fro" => 2.0,
        _ => b.float(name)?,
    };
    let y = vector_norm(e, &x, ord, &dims, keepdim(b)?)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `argsort(dim, descending)`: the indices of `sort`.
pub(super) fn argsort(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let types = vec![x.ty(), crate::value::tensor_type(DType::I64, &x.shape)];
    let (dim, descending) = (b.arg("dim")?.clone(), b.arg("descending")?.clone());
    let results = if b.has("stable") {
        let kwargs = [("stable", b.arg("stable")?.clone()), ("dim", dim), ("descending", descending)];
        e.call("aten.sort.stable", vec![x.arg()], &kwargs, types)?
    } else {
        e.call("aten.sort.default", vec![x.arg(), dim, descending], &[], types)?
    };
    results.into_iter().nth(1).flatten().map_or_else(|| Err(Error::shape(b.op(), "no indices")), one)
}

/// `median(dim)`: the lower of the two middle elements, NaN where there is one; `kthvalue(k, dim)`: the `k`th smallest,
/// NaN being the largest. Which of equal elements the index names is unspecified.
pub(super) fn ranked(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = e.dims(b.op(), Some(&[b.int("dim")?]), &x)?;
    let Some(dim) = dims.first().copied() else {
        let zero = e.full(&[], DType::I64, Arg::Int(0))?;
        return Ok(vec![Some(x), Some(zero)]);
    };
    let Some(size) = x.dim(dim).as_int() else {
        return Err(Error::unsupported(format!("{} along a symbolic size {}", b.op(), x.dim(dim))));
    };
    let types = vec![x.ty(), crate::value::tensor_type(DType::I64, &x.shape)];
    let args = vec![x.arg(), Arg::Int(dim as i64), Arg::Bool(false)];
    let sorted = e.call("aten.sort.default", args, &[], types)?;
    let shape = crate::infer::reduced(&x.shape, &[dim], true);
    let at = if b.has("k") { exact(b.op(), b.int("k")?.checked_sub(1))? } else { (size - 1) / 2 };
    let mut place = e.full(&shape, DType::I64, at)?;
    if x.dtype.is_float() && !b.has("k") {
        // NaNs are sorted to the end: the first of them is the median.
        let is_nan = e.test("isnan", &x)?;
        let nans = e.sum(&is_nan, &[dim], true)?;
        let has_nan = e.compare("gt", &nans, 0i64)?;
        let first = e.unary("neg", &nans)?;
        let first = e.add(&first, size)?;
        place = e.select_where(&has_nan, &first, &place)?;
    }
    let mut out = Vec::new();
    for v in sorted.into_iter().flatten() {
        let args = vec![v.arg(), Arg::Int(dim as i64), place.arg()];
        let y = e.call1("aten.gather.default", args, &[], v.dtype, &shape)?;
        out.push(Some(if b.bool("keepdim")? { y } else { e.squeeze(&y, dim)? }));
    }
    Ok(out)
}

/// `cdist(x [.., P, M], y [.., R, M], p)`, `_cdist_forward`: the norm of each difference of rows.
pub(super) fn cdist(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "x1")?, e.tensor(b, "x2")?);
    let (x, y) = (e.unsqueeze(&x, x.from_end(1)?)?, e.unsqueeze(&y, y.from_end(2)?)?);
    let d = e.sub(&x, &y)?;
    let last = d.from_end(1)?;
    one(vector_norm(e, &d, b.float("p")?, &[last], false)?)
}

/// `_weight_norm(v, g, dim)`: `v · g / |v|`, the norm over all dimensions but `dim`.
pub(super) fn weight_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (v, g) = (e.tensor(b, "v")?, e.tensor(b, "g")?);
    let kept = crate::infer::wrap_dim(b.op(), b.int("dim")?, v.rank())?;
    let dims: Vec<usize> = (0..v.rank()).filter(|d| *d != kept).collect();
    let (wide, g) = (e.widen(&v)?, e.widen(&g)?);
    let norm = vector_norm(e, &wide, 2.0, &dims, true)?;
    let scale = e.div(&g, &norm)?;
    let y = e.mul(&wide, &scale)?;
    one(e.to_dtype(&y, v.dtype)?)
}

/// `histc(bins, min, max)`: how many elements fall into each of equal intervals, the last one closed. Equal bounds
/// stand for the extremes of the data, or, where these are equal too, for one below and one above.
pub(super) fn histc(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let (bins, low, high) = (b.int("bins")?, b.float("min")?, b.float("max")?);
    if low > high {
        return Err(Error::shape(b.op(), format!("bounds {low} and {high}; expected them to rise")));
    }
    let x = e.view(&x, &[Expr::Int(-1)])?;
    let wide = if x.dtype.is_float() { e.widen(&x)? } else { e.to_dtype(&x, DType::F32)? };
    let (first, last) = if low < high {
        (e.full(&[], wide.dtype, Arg::from(low))?, e.full(&[], wide.dtype, Arg::from(high))?)
    } else {
        let (least, most) = (e.extreme("amin", &wide, &[0], false)?, e.extreme("amax", &wide, &[0], false)?);
        let is_one = e.compare("eq", &least, &most)?;
        let (below, above) = (e.sub(&least, 1.0)?, e.add(&most, 1.0)?);
        (e.select_where(&is_one, &below, &least)?, e.select_where(&is_one, &above, &most)?)
    };
    let span = e.sub(&last, &first)?;
    let at = e.sub(&wide, &first)?;
    let at = e.div(&at, &span)?;
    let at = e.mul(&at, bins as f64)?;
    let at = e.unary("trunc", &at)?;
    let args = vec![at.arg(), Arg::Null, Arg::from(bins as f64 - 1.0)];
    let at = e.call1("aten.clamp.default", args, &[], at.dtype, &at.shape)?;
    let (above, below) = (e.compare("ge", &wide, &first)?, e.compare("le", &wide, &last)?);
    let inside = e.binary_default("logical_and", &above, &below)?;
    let bin = e.iota(&Expr::Int(bins), at.dtype)?;
    let bin = e.unsqueeze(&bin, 1)?;
    let hit = e.compare("eq", &bin, &at)?;
    let hit = e.binary_default("logical_and", &hit, &inside)?;
    let y = e.sum(&hit, &[1], false)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `trace`: the sum of the diagonal.
pub(super) fn trace(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let (Some(n), Some(m)) = (x.dim(0).as_int(), x.dim(1).as_int()) else {
        let (row, col) = (e.iota(&x.dim(0), DType::I64)?, e.iota(&x.dim(1), DType::I64)?);
        let row = e.unsqueeze(&row, 1)?;
        let is_on = e.compare("eq", &row, &col)?;
        let wide = e.widen(&x)?;
        let zero = e.full(&[], wide.dtype, Arg::Int(0))?;
        let y = e.select_where(&is_on, &wide, &zero)?;
        let y = e.sum(&y, &[0, 1], false)?;
        return one(e.to_dtype(&y, dtype)?);
    };
    let count = n.min(m);
    let flat = e.view(&x, &[Expr::Int(-1)])?;
    let step = exact(b.op(), m.checked_add(1))?;
    let end = exact(b.op(), count.checked_sub(1).and_then(|c| c.checked_mul(step)))?;
    let end = exact(b.op(), end.checked_add(1))?.max(0);
    let y = e.slice(&flat, 0, &Expr::Int(0), &Expr::Int(end), step)?;
    let y = e.widen(&y)?;
    let y = e.sum(&y, &[0], false)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `mode(dim, keepdim)`: the most frequent element, the least of equally frequent ones, and its last place.
pub(super) fn mode(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if x.rank() == 0 {
        let place = e.full(&[], DType::I64, Arg::Int(0))?;
        return Ok(vec![Some(x), Some(place)]);
    }
    let dim = crate::infer::wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let mut moved: Vec<usize> = (0..x.rank()).filter(|d| *d != dim).collect();
    moved.push(dim);
    let (last, y) = (x.from_end(1)?, e.permute(&x, &moved)?);
    let (across, down) = (e.unsqueeze(&y, last)?, e.unsqueeze(&y, last + 1)?);
    let same = e.compare("eq", &across, &down)?;
    let count = e.sum(&same, &[last + 1], false)?;
    let most = e.extreme("amax", &count, &[last], true)?;
    let is_most = e.compare("eq", &count, &most)?;
    // Sorting by value with the others moved out of the way: the least value among the most frequent ones.
    let highest = e.extreme("amax", &y, &[last], true)?;
    let candidate = e.select_where(&is_most, &y, &highest)?;
    let value = e.extreme("amin", &candidate, &[last], true)?;
    let is_value = e.compare("eq", &y, &value)?;
    let line = e.iota(&y.dim(last), DType::I64)?;
    let nowhere = e.full(&[], DType::I64, Arg::Int(-1))?;
    let place = e.select_where(&is_value, &line, &nowhere)?;
    let place = e.extreme("amax", &place, &[last], true)?;
    let mut out = Vec::new();
    for (k, v) in [value, place].iter().enumerate() {
        let (dtype, _) = e.result(b, k)?;
        let v = e.to_dtype(v, dtype)?;
        let mut back: Vec<usize> = (0..last).collect();
        back.insert(dim, last);
        out.push(Some(if b.bool("keepdim")? { e.permute(&v, &back)? } else { e.squeeze(&v, last)? }));
    }
    Ok(out)
}

/// `_is_all_true(x)` is `all(x)`.
pub(super) fn all_true(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let results = b.node.results.iter().map(|r| m2m_record::TypedValue { value: None, ..r.clone() }).collect();
    e.expand(&Node { op: "aten.all.default".into(), args: vec![x.arg()], results, ..Node::default() })
}

/// `cummax`, `cummin` for a target without them: of the elements up to each one the extreme, and the last place of it. NaN
/// is more extreme than any number. It takes as many elements as the dimension's square.
pub(super) fn running_extreme(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    if x.rank() == 0 {
        let place = e.full(&[], DType::I64, Arg::Int(0))?;
        return Ok(vec![Some(x), Some(place)]);
    }
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let (last, size) = (x.rank() - 1, x.dim(dim));
    let ordered = e.transpose(&x, dim, last)?;
    let line = e.iota(&size, DType::I64)?;
    let column = e.unsqueeze(&line, 1)?;
    let is_met = e.compare("le", &line, &column)?;
    let row = e.unsqueeze(&ordered, last)?;
    // Before the first element there is only that element itself.
    let first = e.slice(&row, last + 1, &Expr::Int(0), &Expr::Int(1), 1)?;
    let met = e.select_where(&is_met, &row, &first)?;
    let op = if b.op().contains("cummax") { "amax" } else { "amin" };
    let best = e.extreme(op, &met, &[last + 1], true)?;
    let mut is_best = e.compare("eq", &row, &best)?;
    if x.dtype.is_float() {
        let is_nan = e.test("isnan", &row)?;
        is_best = e.binary_default("logical_or", &is_best, &is_nan)?;
    }
    let is_best = e.binary_default("logical_and", &is_best, &is_met)?;
    let none = e.full(&[], DType::I64, Arg::Int(0))?;
    let place = e.select_where(&is_best, &line, &none)?;
    let place = e.extreme("amax", &place, &[last + 1], false)?;
    let best = e.squeeze(&best, last + 1)?;
    Ok(vec![Some(e.transpose(&best, dim, last)?), Some(e.transpose(&place, dim, last)?)])
}

/// `_weight_norm_interface(v, g, dim)`: `v·g/|v|`, and the norms, over all dimensions but `dim`.
pub(super) fn weight_norm_and_norms(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let v = e.tensor(b, "v")?;
    let (dtype, shape) = e.result(b, 1)?;
    let kept = crate::infer::wrap_dim(b.op(), b.int("dim")?, v.rank())?;
    let dims: Vec<usize> = (0..v.rank()).filter(|d| *d != kept).collect();
    let wide = e.widen(&v)?;
    let norm = vector_norm(e, &wide, 2.0, &dims, true)?;
    let norm = e.view(&norm, &shape)?;
    let norm = e.to_dtype(&norm, dtype)?;
    let mut out = weight_norm(e, b)?;
    out.push(Some(norm));
    Ok(out)
}

/// `sum_to_size(size)`: sums over the dimensions that `size` lacks or has as 1.
pub(super) fn sum_to_size(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let lead = x.rank().saturating_sub(shape.len());
    let is_summed = |d: &usize| match d.checked_sub(lead) {
        None => true,
        Some(k) => shape.get(k) == Some(&Expr::Int(1)) && x.dim(*d) != Expr::Int(1),
    };
    let dims: Vec<usize> = (0..x.rank()).filter(is_summed).collect();
    let wide = e.widen(&x)?;
    let y = if dims.is_empty() { wide } else { e.sum(&wide, &dims, true)? };
    let y = e.view(&y, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `nanmean`: the sum of what is no NaN over its count.
pub(super) fn nanmean(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let dims = dims_of(e, b, &x)?;
    let wide = e.to_dtype(&x, crate::promote::accumulate_dtype(dtype))?;
    let is_nan = e.test("isnan", &wide)?;
    let zero = e.full(&[], wide.dtype, Arg::Int(0))?;
    let numbers = e.select_where(&is_nan, &zero, &wide)?;
    let total = e.sum(&numbers, &dims, keepdim(b)?)?;
    let counts = e.test("logical_not", &is_nan)?;
    let counts = e.sum(&counts, &dims, keepdim(b)?)?;
    let counts = e.to_dtype(&counts, wide.dtype)?;
    let y = e.div(&total, &counts)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `msort`: sorted along dimension 0.
pub(super) fn msort(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let types = vec![x.ty(), crate::value::tensor_type(DType::I64, &x.shape)];
    let sorted = e.call("aten.sort.default", vec![x.arg(), Arg::Int(0), Arg::Bool(false)], &[], types)?;
    one(crate::expand::first(b.op(), sorted)?)
}
