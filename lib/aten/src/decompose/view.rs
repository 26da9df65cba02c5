//! Other names for reshaping, permuting, slicing and stretching.

use super::{exact, pieces};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::{slice_size, wrap_dim};
use crate::value::{V, size_arg, sizes_arg};
use m2m_record::{Arg, Node};
use m2m_tensor::{Expr, expr};

/// From here on an end means the end of the dimension, as exporters write `x[1:]`.
const OPEN_END: i64 = i64::MAX / 2;

fn first_tensor(e: &Expander<'_, '_>, b: &Bound<'_>) -> Result<V, Error> {
    e.tensor(b, b.schema.args.first().map_or("self", |a| a.name))
}

fn emit_or_same(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: V, op: &str, args: Vec<Arg>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    if shape == x.shape && dtype == x.dtype {
        e.prove("identity", format!("it changes no size of {}", x.name));
        return one(x);
    }
    if e.is_lowerable(op) {
        return e.emit(&Node { op: op.to_owned(), args, results: b.node.results.clone(), ..Node::default() });
    }
    Err(Error::unsupported(format!("the target does not lower {op}")))
}

/// `view reshape flatten unflatten squeeze unsqueeze`: the elements in order, in the shape that the node says.
pub(super) fn reshape(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let (_, shape) = e.result(b, 0)?;
    let args = vec![x.arg(), sizes_arg(&shape)];
    emit_or_same(e, b, x, "aten.view.default", args)
}

/// `expand expand_as broadcast_to`: stretched to the shape that the node says.
pub(super) fn expand(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let (_, shape) = e.result(b, 0)?;
    let args = vec![x.arg(), sizes_arg(&shape)];
    emit_or_same(e, b, x, "aten.expand.default", args)
}

/// `broadcast_tensors(list)`: each stretched to the common shape.
pub(super) fn broadcast_tensors(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = e.tensors(b, "tensors")?;
    let mut out = Vec::with_capacity(items.len());
    for (k, x) in items.iter().enumerate() {
        let (_, shape) = e.result(b, k)?;
        out.push(Some(e.expand_to(x, &shape)?));
    }
    Ok(out)
}

/// `permute(dims)`; of a permutation it is one.
pub(super) fn permute(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let dims = b.ints("dims")?;
    let dims = dims.iter().map(|d| wrap_dim(b.op(), *d, x.rank())).collect::<Result<Vec<_>, _>>()?;
    permuted(e, &x, &dims)
}

fn permuted(e: &mut Expander<'_, '_>, x: &V, dims: &[usize]) -> Results {
    let y = e.permute(x, dims)?;
    if y == *x {
        e.prove("identity", format!("it moves no dimension of {}", x.name));
    }
    one(y)
}

/// `transpose(dim0, dim1)`
pub(super) fn transpose(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let (a, c) = if b.has("axis0") { ("axis0", "axis1") } else { ("dim0", "dim1") };
    let (a, c) = (wrap_dim(b.op(), b.int(a)?, x.rank())?, wrap_dim(b.op(), b.int(c)?, x.rank())?);
    let mut dims: Vec<usize> = (0..x.rank()).collect();
    if !dims.is_empty() {
        dims.swap(a, c);
    }
    permuted(e, &x, &dims)
}

/// `t`, `numpy_T`, `mT`: all dimensions reversed; `mT` the last two.
pub(super) fn reversed(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let mut dims: Vec<usize> = (0..x.rank()).collect();
    if b.op() == "aten.mT.default" && x.rank() >= 2 {
        dims.swap(x.rank() - 1, x.rank() - 2);
    } else {
        dims.reverse();
    }
    permuted(e, &x, &dims)
}

/// `movedim(source, destination)`: named dimensions go to named places, the others keep their order.
pub(super) fn movedim(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let wrap = |dims: Vec<i64>| dims.iter().map(|d| wrap_dim(b.op(), *d, x.rank())).collect::<Result<Vec<_>, _>>();
    let (source, target) = (wrap(b.ints("source")?)?, wrap(b.ints("destination")?)?);
    if source.len() != target.len() {
        return Err(Error::shape(b.op(), "source and destination differ in length"));
    }
    let mut rest = (0..x.rank()).filter(|d| !source.contains(d));
    let place = |at: usize| target.iter().position(|t| *t == at).and_then(|k| source.get(k).copied());
    let dims: Option<Vec<usize>> = (0..x.rank()).map(|at| place(at).or_else(|| rest.next())).collect();
    let dims = dims.ok_or_else(|| Error::shape(b.op(), "destination names a dimension twice"))?;
    permuted(e, &x, &dims)
}

/// `slice(dim, start, end, step)`: bounds count from the end when negative and stop at it.
pub(super) fn slice(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let (_, shape) = e.result(b, 0)?;
    let step = b.int("step")?;
    let size = x.dim(dim);
    let (start, end) = slice_bounds(e, b.arg("start")?, b.arg("end")?, &size)?;
    let wanted = shape.get(dim).cloned().unwrap_or(Expr::Int(0));
    // An end that may be beyond a symbolic size is that size where the result says so.
    let end = if slice_size(&start, &size, step.max(1)) == wanted { size } else { end };
    if step >= 1 && slice_size(&start, &end, step) == wanted {
        let args = vec![x.arg(), size_arg(&Expr::Int(dim as i64)), size_arg(&start), size_arg(&end), Arg::Int(step)];
        return emit_or_same(e, b, x, "aten.slice.Tensor", args);
    }
    if !e.is_lowerable("aten.slice.Tensor") {
        return Err(Error::unsupported("the target does not lower aten.slice.Tensor"));
    }
    e.emit(b.node)
}

/// The bounds of a slice inside a dimension of this size; of a symbolic one, as far as they are known.
pub(crate) fn slice_bounds(e: &Expander<'_, '_>, start: &Arg, end: &Arg, size: &Expr) -> Result<(Expr, Expr), Error> {
    let bound = |arg: &Arg, absent: Expr| -> Result<Expr, Error> {
        let value = match arg {
            Arg::Null => return Ok(absent),
            other => e.size(other)?,
        };
        Ok(match (value.as_int(), size.as_int()) {
            (Some(n), Some(size)) if n < 0 => Expr::Int(n.saturating_add(size).clamp(0, size)),
            (Some(n), Some(size)) => Expr::Int(n.min(size)),
            (Some(n), None) if n >= OPEN_END => size.clone(),
            (Some(n), None) if n < 0 => expr::add([size.clone(), Expr::Int(n)]),
            _ => value,
        })
    };
    let start = bound(start, Expr::Int(0))?;
    let end = bound(end, size.clone())?;
    Ok(match (start.as_int(), end.as_int()) {
        (Some(a), Some(b)) if b < a => (start.clone(), start),
        _ => (start, end),
    })
}

/// `select(dim, index)`, a negative index counting from the end.
pub(super) fn select(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let index = e.size(b.arg("index")?)?;
    let index = match index.as_int() {
        Some(n) if n < 0 => expr::add([x.dim(dim), Expr::Int(n)]),
        _ => index,
    };
    if let (Some(n), Some(size)) = (index.as_int(), x.dim(dim).as_int())
        && !(0..size).contains(&n)
    {
        return Err(Error::shape(b.op(), format!("index {n} of a dimension of size {size}")));
    }
    let args = vec![x.arg(), Arg::Int(dim as i64), size_arg(&index)];
    emit_or_same(e, b, x, "aten.select.int", args)
}

/// `narrow(dim, start, length)`
pub(super) fn narrow(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let start = e.size(b.arg("start")?)?;
    let start = if start.as_int().is_some_and(|n| n < 0) { expr::add([x.dim(dim), start]) } else { start };
    let end = expr::add([start.clone(), e.size(b.arg("length")?)?]);
    one(e.slice(&x, dim, &start, &end, 1)?)
}

/// `repeat(repeats)`, `tile`: `[a, b]` as `[1, a, 1, b]`, stretched to `[r, a, s, b]`, joined.
pub(super) fn repeat(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = first_tensor(e, b)?;
    let mut repeats = e.sizes(b, if b.has("repeats") { "repeats" } else { "dims" })?;
    while repeats.len() < x.rank() {
        repeats.insert(0, Expr::Int(1));
    }
    let lead = repeats.len() - x.rank();
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (k, r) in repeats.iter().enumerate() {
        let size = k.checked_sub(lead).map(|d| x.dim(d));
        if *r != Expr::Int(1) || size.is_none() {
            from.push(Expr::Int(1));
            to.push(r.clone());
        }
        from.extend(size.clone());
        to.extend(size);
    }
    let (_, shape) = e.result(b, 0)?;
    let y = e.view(&x, &from)?;
    let y = e.expand_to(&y, &to)?;
    one(e.view(&y, &shape)?)
}

/// `repeat_interleave(n, dim)`: each slice `n` times in a row; without `dim` of the flattened tensor.
pub(super) fn repeat_interleave(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let mut x = e.tensor(b, "self")?;
    let dim = match b.int_or("dim")? {
        Some(dim) => wrap_dim(b.op(), dim, x.rank())?,
        None => {
            x = e.view(&x, &[Expr::Int(-1)])?;
            0
        }
    };
    let n = e.size(b.arg("repeats")?)?;
    let (_, shape) = e.result(b, 0)?;
    let y = e.unsqueeze(&x, dim + 1)?;
    let mut wide = y.shape.clone();
    if let Some(size) = wide.get_mut(dim + 1) {
        *size = n;
    }
    let y = e.expand_to(&y, &wide)?;
    one(e.view(&y, &shape)?)
}

/// `roll(shifts, dims)`: the last `shift` slices come first; without `dims` of the flattened tensor.
pub(super) fn roll(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (shifts, dims) = (b.ints("shifts")?, b.ints("dims")?);
    let shape = x.shape.clone();
    let (mut y, dims) = if dims.is_empty() { (e.view(&x, &[Expr::Int(-1)])?, vec![0]) } else { (x, dims) };
    if shifts.len() != dims.len() {
        return Err(Error::shape(
            b.op(),
            format!("{} shifts for {} dims; expected equal numbers", shifts.len(), dims.len()),
        ));
    }
    for (shift, dim) in shifts.iter().zip(dims) {
        let dim = wrap_dim(b.op(), dim, y.rank())?;
        let size = y.dim(dim);
        if size == Expr::Int(0) {
            continue;
        }
        let cut = expr::modulo(Expr::Int(exact(b.op(), shift.checked_neg())?), size.clone());
        if cut != Expr::Int(0) {
            let tail = e.slice(&y, dim, &cut, &size, 1)?;
            let head = e.slice(&y, dim, &Expr::Int(0), &cut, 1)?;
            y = e.cat(&[tail, head], dim)?;
        }
    }
    one(e.view(&y, &shape)?)
}

/// `diff(n, dim)`: `y[i] = x[i+1] - x[i]`, `n` times; `!=` for bool. What is to be prepended and appended is joined
/// first.
pub(super) fn diff(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    if b.int("n")? == 0 {
        return one(x);
    }
    let mut parts: Vec<V> = e.opt_tensor(b, "prepend")?.into_iter().collect();
    parts.push(x);
    parts.extend(e.opt_tensor(b, "append")?);
    let mut y = e.cat(&parts, dim)?;
    for _ in 0..pieces(b.op(), b.int("n")?)? {
        let size = y.dim(dim);
        let last = expr::sub(size.clone(), Expr::Int(1));
        let after = e.slice(&y, dim, &Expr::Int(1), &size, 1)?;
        let before = e.slice(&y, dim, &Expr::Int(0), &last, 1)?;
        let is_bool = y.dtype == m2m_record::DType::Bool;
        y = if is_bool { e.compare("ne", &after, &before)? } else { e.sub(&after, &before)? };
    }
    one(y)
}

/// `pixel_shuffle(r)`: `[…, C·r², H, W]` to `[…, C, H·r, W·r]`.
pub(super) fn pixel_shuffle(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let r = Expr::Int(b.int("upscale_factor")?);
    let (_, shape) = e.result(b, 0)?;
    let n = x.rank();
    if n < 3 {
        return Err(Error::shape(b.op(), format!("a tensor of rank {n}; expected at least 3")));
    }
    let lead = n - 3;
    let mut split: Vec<Expr> = x.shape.iter().take(lead).cloned().collect();
    split.extend([shape.get(lead).cloned().unwrap_or(Expr::Int(1)), r.clone(), r, x.dim(n - 2), x.dim(n - 1)]);
    let y = e.view(&x, &split)?;
    let dims: Vec<usize> = (0..lead).chain([0, 3, 1, 4, 2].map(|d| d + lead)).collect();
    let y = e.permute(&y, &dims)?;
    one(e.view(&y, &shape)?)
}

/// `pixel_unshuffle(r)`: `[…, C, H·r, W·r]` to `[…, C·r², H, W]`.
pub(super) fn pixel_unshuffle(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let r = Expr::Int(b.int("downscale_factor")?);
    let (_, shape) = e.result(b, 0)?;
    let n = x.rank();
    if n < 3 {
        return Err(Error::shape(b.op(), format!("a tensor of rank {n}; expected at least 3")));
    }
    let lead = n - 3;
    let at = |k: usize| shape.get(k).cloned().unwrap_or(Expr::Int(1));
    let mut split: Vec<Expr> = x.shape.iter().take(lead + 1).cloned().collect();
    split.extend([at(lead + 1), r.clone(), at(lead + 2), r]);
    let y = e.view(&x, &split)?;
    let dims: Vec<usize> = (0..lead).chain([0, 2, 4, 1, 3].map(|d| d + lead)).collect();
    let y = e.permute(&y, &dims)?;
    one(e.view(&y, &shape)?)
}

/// `channel_shuffle(g)`: `[N, g·c, …]` as `[N, g, c, …]` with the two exchanged.
pub(super) fn channel_shuffle(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let groups = Expr::Int(b.int("groups")?);
    let per_group = crate::infer::divide(&x.dim(1), &groups);
    let mut split = vec![x.dim(0), groups, per_group];
    split.extend(x.shape.iter().skip(2).cloned());
    let y = e.view(&x, &split)?;
    let y = e.transpose(&y, 1, 2)?;
    one(e.view(&y, &x.shape)?)
}

/// `rot90(k, dims)`: `k` quarter turns in a plane, as flips and a transposition.
pub(super) fn rot90(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dims = b.ints("dims")?;
    let [a, c] = dims.as_slice() else {
        return Err(Error::shape(b.op(), format!("{} dims; expected two", dims.len())));
    };
    let (a, c) = (wrap_dim(b.op(), *a, x.rank())?, wrap_dim(b.op(), *c, x.rank())?);
    one(match b.int("k")?.rem_euclid(4) {
        0 => x,
        2 => e.flip(&x, &[a, c])?,
        1 => {
            let y = e.flip(&x, &[c])?;
            e.transpose(&y, a, c)?
        }
        _ => {
            let y = e.flip(&x, &[a])?;
            e.transpose(&y, a, c)?
        }
    })
}

/// `unfold(dim, size, step)`: `y[…, w, …, i] = x[…, w·step+i, …]`, gathered along the dimension.
pub(super) fn unfold(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dim = wrap_dim(b.op(), b.int("dimension")?, x.rank())?;
    let (size, step) = (b.int("size")?, b.int("step")?);
    let (_, shape) = e.result(b, 0)?;
    let windows = shape.get(dim).cloned().unwrap_or(Expr::Int(1));
    if x.rank() == 0 {
        let y = e.view(&x, &[Expr::Int(1)])?;
        return one(e.slice(&y, 0, &Expr::Int(0), &Expr::Int(size), 1)?);
    }
    let w = e.iota(&windows, m2m_record::DType::I64)?;
    let w = e.mul(&w, step)?;
    let w = e.unsqueeze(&w, 1)?;
    let i = e.iota(&Expr::Int(size), m2m_record::DType::I64)?;
    let index = e.add(&w, &i)?;
    let index = e.view(&index, &[expr::mul([windows.clone(), Expr::Int(size)])])?;
    let y = e.index_select(&x, dim, &index)?;
    let mut split = y.shape.clone();
    split.splice(dim..=dim, [windows, Expr::Int(size)]);
    let y = e.view(&y, &split)?;
    let dims: Vec<usize> = (0..y.rank()).filter(|d| *d != dim + 1).chain([dim + 1]).collect();
    one(e.permute(&y, &dims)?)
}

/// `diagonal(offset, dim1, dim2)`: the diagonal of two dimensions, last in the result.
pub(super) fn diagonal(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (a, c) = (wrap_dim(b.op(), b.int("dim1")?, x.rank())?, wrap_dim(b.op(), b.int("dim2")?, x.rank())?);
    let offset = b.int("offset")?;
    let (_, shape) = e.result(b, 0)?;
    let (Some(count), Some(cols)) = (shape.last().and_then(Expr::as_int), x.dim(c).as_int()) else {
        return symbolic_diagonal(e, &x, offset, (a, c), &shape);
    };
    let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != a && *d != c).chain([a, c]).collect();
    let y = e.permute(&x, &dims)?;
    let mut flat: Vec<Expr> = y.shape.iter().take(x.from_end(2)?).cloned().collect();
    flat.push(expr::mul([x.dim(a), x.dim(c)]));
    let y = e.view(&y, &flat)?;
    let start = if offset >= 0 { Some(offset) } else { offset.checked_neg().and_then(|o| o.checked_mul(cols)) };
    let start = exact(b.op(), start)?;
    let step = exact(b.op(), cols.checked_add(1))?;
    let reach = exact(b.op(), count.checked_sub(1).and_then(|c| c.checked_mul(step)))?;
    let end = exact(b.op(), start.checked_add(reach).and_then(|e| e.checked_add(1)))?.max(start);
    one(e.slice(&y, flat.len() - 1, &Expr::Int(start), &Expr::Int(end), step)?)
}

/// The same where sizes are symbols: a view has no room for them, so that the elements are picked.
fn symbolic_diagonal(e: &mut Expander<'_, '_>, x: &V, offset: i64, (a, c): (usize, usize), shape: &[Expr]) -> Results {
    let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != a && *d != c).chain([a, c]).collect();
    let y = e.permute(x, &dims)?;
    let mut flat: Vec<Expr> = y.shape.iter().take(x.from_end(2)?).cloned().collect();
    let last = flat.len();
    flat.push(expr::mul([x.dim(a), x.dim(c)]));
    let y = e.view(&y, &flat)?;
    let line = e.iota(shape.last().unwrap_or(&Expr::Int(0)), m2m_record::DType::I64)?;
    let row = if offset < 0 { e.add(&line, offset.saturating_neg())? } else { line.clone() };
    let col = if offset > 0 { e.add(&line, offset)? } else { line };
    let index = e.mul(&row, &size_arg(&x.dim(c)))?;
    let index = e.add(&index, &col)?;
    one(e.index_select(&y, last, &index)?)
}

/// `diag(x, offset)`: the diagonal of a matrix, or a matrix with a vector on its diagonal.
pub(super) fn diag(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let offset = b.arg(if b.has("offset") { "offset" } else { "diagonal" })?.clone();
    let op = if x.rank() == 1 { "aten.diag_embed.default" } else { "aten.diagonal.default" };
    one(e.call1(op, vec![x.arg(), offset], &[], dtype, &shape)?)
}

/// `diagonal_scatter(x, src, offset, dim1, dim2)`: `x` with `src` on a diagonal.
pub(super) fn diagonal_scatter(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, src) = (e.tensor(b, "self")?, e.tensor(b, "src")?);
    let (a, c) = (wrap_dim(b.op(), b.int("dim1")?, x.rank())?, wrap_dim(b.op(), b.int("dim2")?, x.rank())?);
    let offset = b.int("offset")?;
    let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != a && *d != c).chain([a, c]).collect();
    let y = e.permute(&x, &dims)?;
    let (rows, cols, last) = (x.dim(a), x.dim(c), y.rank().saturating_sub(2));
    let row = e.iota(&rows, m2m_record::DType::I64)?;
    let col = e.iota(&cols, m2m_record::DType::I64)?;
    let shifted = e.unsqueeze(&row, 1)?;
    let shifted = e.add(&shifted, offset)?;
    let is_on = e.compare("eq", &col, &shifted)?;
    // The element of `src` for a row, or for a column where the diagonal begins below the first row.
    let place = if offset >= 0 { row } else { col };
    // One element more, which no place of the diagonal has, keeps reads inside where the diagonal turns out empty.
    let mut pads = vec![(Expr::Int(0), Expr::Int(0)); src.rank()];
    if let Some(pad) = pads.get_mut(last).filter(|_| src.dim(last).as_int().is_none()) {
        pad.1 = Expr::Int(1);
    }
    let src = e.to_dtype(&src, x.dtype)?;
    let src = e.pad(&src, &pads, Arg::Int(0))?;
    let most = expr::sub(src.dim(last), Expr::Int(1));
    let args = vec![place.arg(), Arg::Null, size_arg(&most)];
    if most.as_int().is_some_and(|n| n < 0) {
        return one(x);
    }
    let place = e.call1("aten.clamp.default", args, &[], place.dtype, &place.shape)?;
    let spread = e.index_select(&src, last, &place)?;
    let spread = e.unsqueeze(&spread, if offset >= 0 { last + 1 } else { last })?;
    let y = e.select_where(&is_on, &spread, &y)?;
    let back: Option<Vec<usize>> = (0..dims.len()).map(|d| dims.iter().position(|at| *at == d)).collect();
    one(e.permute(&y, &back.ok_or_else(|| Error::shape(b.op(), "two dimensions"))?)?)
}

/// `fliplr`, `flipud`: reversed along dimension 1 or 0.
pub(super) fn flip_side(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    one(e.flip(&x, &[usize::from(b.op() == "aten.fliplr.default")])?)
}

/// `narrow.Tensor(dim, start, length)`: the start is a tensor of one element, negative ones counting from the end.
pub(super) fn narrow_by_tensor(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, start) = (e.tensor(b, "self")?, e.tensor(b, "start")?);
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let length = e.size(b.arg("length")?)?;
    let start = e.to_dtype(&start, m2m_record::DType::I64)?;
    let start = e.view(&start, &[Expr::Int(1)])?;
    let from_end = e.add(&start, &size_arg(&x.dim(dim)))?;
    let is_negative = e.compare("lt", &start, 0i64)?;
    let start = e.select_where(&is_negative, &from_end, &start)?;
    let line = e.iota(&length, m2m_record::DType::I64)?;
    let index = e.add(&start, &line)?;
    one(e.index_select(&x, dim, &index)?)
}

/// `as_strided_scatter(x, src, size, stride, offset)` of a contiguous tensor: `flat[offset + Σ i·stride] = src[i…]`.
pub(super) fn as_strided_scatter(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, src) = (e.tensor(b, "self")?, e.tensor(b, "src")?);
    let index = strided_places(e, b, &e.sizes(b, "size")?)?;
    let flat = e.view(&x, &[Expr::Int(-1)])?;
    let src = e.to_dtype(&src, x.dtype)?;
    let src = e.view(&src, &[Expr::Int(-1)])?;
    let args = vec![flat.arg(), Arg::Int(0), index.arg(), src.arg()];
    let y = e.call1("aten.scatter.src", args, &[], x.dtype, &flat.shape)?;
    one(e.view(&y, &x.shape)?)
}

/// `offset + Σ i·stride` for each element of a shape, in a row.
fn strided_places(e: &mut Expander<'_, '_>, b: &Bound<'_>, shape: &[Expr]) -> Result<V, Error> {
    let strides = e.sizes(b, "stride")?;
    let offset = match b.arg("storage_offset")? {
        Arg::Null => Expr::Int(0),
        other => e.size(other)?,
    };
    let mut index = e.full(&[], m2m_record::DType::I64, size_arg(&offset))?;
    for (k, (size, stride)) in shape.iter().zip(&strides).enumerate() {
        let line = e.iota(size, m2m_record::DType::I64)?;
        let line = e.mul(&line, &size_arg(stride))?;
        let line = e.along(&line, k, shape.len())?;
        index = e.add(&index, &line)?;
    }
    e.view(&index, &[Expr::Int(-1)])
}

/// `as_strided(size, stride, offset)` of a contiguous tensor, which the caller has made sure of:
/// `y[i…] = flat[offset + Σ i·stride]`.
pub(super) fn as_strided(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (_, shape) = e.result(b, 0)?;
    let index = strided_places(e, b, &shape)?;
    let flat = e.view(&x, &[Expr::Int(-1)])?;
    let y = e.index_select(&flat, 0, &index)?;
    one(e.view(&y, &shape)?)
}
