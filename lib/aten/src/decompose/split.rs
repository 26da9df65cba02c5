//! Lists of parts, and joins.

use super::{exact, pieces};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::wrap_dim;
use crate::promote::{Participant, result_type};
use crate::value::V;
use m2m_record::DType;
use m2m_tensor::{Expr, expr};

/// `split split_with_sizes chunk tensor_split`: slices that follow one another, as long as the node's types say.
pub(super) fn split(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    split_along(e, b, &x, dim)
}

fn split_along(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, dim: usize) -> Results {
    let mut start = Expr::Int(0);
    let mut parts = Vec::with_capacity(b.node.results.len());
    for k in 0..b.node.results.len() {
        let (_, shape) = e.result(b, k)?;
        let size = shape.get(dim).cloned().unwrap_or(Expr::Int(0));
        let end = expr::add([start.clone(), size]);
        parts.push(Some(e.slice(x, dim, &start, &end, 1)?));
        start = end;
    }
    Ok(parts)
}

/// `unbind(dim)`: every slice of a dimension, without it.
pub(super) fn unbind(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let mut parts = Vec::with_capacity(b.node.results.len());
    for k in 0..b.node.results.len() {
        let index = i64::try_from(k).unwrap_or(i64::MAX);
        parts.push(Some(e.select(&x, dim, &Expr::Int(index))?));
    }
    Ok(parts)
}

/// Tensors cast to the dtype that they promote to.
pub(super) fn cast_all(e: &mut Expander<'_, '_>, items: Vec<V>) -> Result<Vec<V>, Error> {
    let participants: Vec<Participant> = items.iter().map(|v| Participant::tensor(v.dtype, v.rank())).collect();
    let Some(dtype) = result_type(&participants)? else { return Ok(items) };
    items.iter().map(|v| e.to_dtype(v, dtype)).collect()
}

/// `cat(tensors, dim)`: of one dtype; empty vectors, which PyTorch ignores whatever the rank of the others, left out.
pub(super) fn cat(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = cast_all(e, e.tensors(b, "tensors")?)?;
    let rank = items.iter().map(V::rank).max().unwrap_or(0);
    let is_void = |v: &V| v.rank() == 1 && v.dim(0) == Expr::Int(0) && rank != 1;
    let items: Vec<V> = items.into_iter().filter(|v| !is_void(v)).collect();
    let dim = wrap_dim(b.op(), b.int("dim")?, rank)?;
    if let [only] = items.as_slice() {
        e.prove("identity", format!("it joins nothing to {}", only.name));
        return one(only.clone());
    }
    if !e.is_lowerable("aten.cat.default") {
        return Err(Error::unsupported("the target does not lower aten.cat.default"));
    }
    let list = m2m_record::Arg::List(items.iter().map(V::arg).collect());
    e.emit(&m2m_record::Node {
        op: "aten.cat.default".into(),
        args: vec![list, m2m_record::Arg::Int(i64::try_from(dim).unwrap_or(0))],
        results: b.node.results.clone(),
        ..m2m_record::Node::default()
    })
}

/// `stack(tensors, dim)`: joined along a new dimension.
pub(super) fn stack(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = cast_all(e, e.tensors(b, "tensors")?)?;
    let rank = items.first().map_or(0, V::rank);
    let dim = wrap_dim(b.op(), b.int("dim")?, rank + 1)?;
    let items = items.iter().map(|v| e.unsqueeze(v, dim)).collect::<Result<Vec<_>, _>>()?;
    one(e.cat(&items, dim)?)
}

/// `hstack`: joined along dimension 1, vectors along 0; `vstack`: along 0, vectors as rows. Numbers become vectors.
pub(super) fn stack_sides(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = cast_all(e, e.tensors(b, "tensors")?)?;
    let is_rows = b.op() == "aten.vstack.default";
    let mut parts = Vec::with_capacity(items.len());
    for x in &items {
        let x = if x.rank() == 0 { e.unsqueeze(x, 0)? } else { x.clone() };
        parts.push(if is_rows && x.rank() == 1 { e.unsqueeze(&x, 0)? } else { x });
    }
    let dim = usize::from(!is_rows && parts.first().is_some_and(|v| v.rank() > 1));
    one(e.cat(&parts, dim)?)
}

/// `column_stack`: tensors of less than two dimensions as columns, all side by side.
pub(super) fn column_stack(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = cast_all(e, e.tensors(b, "tensors")?)?;
    let mut parts = Vec::with_capacity(items.len());
    for x in &items {
        parts.push(if x.rank() <= 1 { e.view(x, &[crate::infer::numel(&x.shape), Expr::Int(1)])? } else { x.clone() });
    }
    one(e.cat(&parts, 1)?)
}

/// `meshgrid(vectors, indexing)`: each vector along its own dimension, stretched over the others; `xy` exchanges the
/// first two.
pub(super) fn meshgrid(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = e.tensors(b, "tensors")?;
    let is_xy = b.has("indexing") && b.str("indexing")? == "xy";
    let rank = items.len();
    let mut out = Vec::with_capacity(rank);
    for (k, x) in items.iter().enumerate() {
        let place = match k {
            0 | 1 if is_xy && rank >= 2 => 1 - k,
            _ => k,
        };
        let (_, shape) = e.result(b, k)?;
        let x = e.view(x, &[Expr::Int(-1)])?;
        let x = e.along(&x, place, rank)?;
        out.push(Some(e.expand_to(&x, &shape)?));
    }
    Ok(out)
}

/// `block_diag(tensors)`: matrices along the diagonal, zeros elsewhere.
pub(super) fn block_diag(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = cast_all(e, e.tensors(b, "tensors")?)?;
    let (_, shape) = e.result(b, 0)?;
    let cols = shape.get(1).cloned().unwrap_or(Expr::Int(0));
    let (mut rows, mut left) = (Vec::new(), Expr::Int(0));
    for x in &items {
        let lead = vec![Expr::Int(1); 2usize.saturating_sub(x.rank())];
        let x = e.view(x, &lead.into_iter().chain(x.shape.iter().cloned()).collect::<Vec<_>>())?;
        let right = expr::sub(cols.clone(), expr::add([left.clone(), x.dim(1)]));
        let zero = (Expr::Int(0), Expr::Int(0));
        rows.push(e.pad(&x, &[zero, (left.clone(), right)], m2m_record::Arg::Int(0))?);
        left = expr::add([left, x.dim(1)]);
    }
    one(e.cat(&rows, 0)?)
}

/// `glu(dim)`: `a · sigmoid(b)` of the two halves.
pub(super) fn glu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
    let half = shape.get(dim).cloned().unwrap_or(Expr::Int(0));
    let x = e.widen(&x)?;
    let a = e.slice(&x, dim, &Expr::Int(0), &half, 1)?;
    // The dimension is even, which its symbols need not show.
    let c = e.slice(&x, dim, &half, &expr::mul([Expr::Int(2), half.clone()]), 1)?;
    let gate = e.unary("sigmoid", &c)?;
    let y = e.mul(&a, &gate)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `tril triu` are the target's; `diag_embed` puts the last dimension on a diagonal of two new ones.
pub(super) fn diag_embed(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let rank = x.rank() + 1;
    let (a, c) = (wrap_dim(b.op(), b.int("dim1")?, rank)?, wrap_dim(b.op(), b.int("dim2")?, rank)?);
    let offset = b.int("offset")?;
    let reach = exact(b.op(), offset.checked_abs())?;
    let size = expr::add([x.dim(x.from_end(1)?), Expr::Int(reach)]);
    let (before, after) = if offset > 0 { (reach, 0) } else { (0, reach) };
    let (before, after) = (Expr::Int(before), Expr::Int(after));
    let mut pads = vec![(Expr::Int(0), Expr::Int(0)); x.rank()];
    if let Some(last) = pads.last_mut() {
        *last = (before, after);
    }
    let wide = e.pad(&x, &pads, m2m_record::Arg::Int(0))?;
    let wide = e.unsqueeze(&wide, wide.from_end(1)?)?;
    let row = e.iota(&size, DType::I64)?;
    let row = e.unsqueeze(&row, 1)?;
    let row = e.add(&row, offset)?;
    let col = e.iota(&size, DType::I64)?;
    let mask = e.compare("eq", &col, &row)?;
    let zero = e.full(&[], x.dtype, m2m_record::Arg::Int(0))?;
    let y = e.select_where(&mask, &wide, &zero)?;
    let mut rest = 0..x.from_end(1)?;
    let pick = |d: usize| {
        if d == a {
            Some(x.rank() - 1)
        } else if d == c {
            Some(x.rank())
        } else {
            rest.next()
        }
    };
    let dims: Option<Vec<usize>> = (0..rank).map(pick).collect();
    one(e.permute(&y, &dims.unwrap_or_default())?)
}

/// `hsplit vsplit dsplit`: `split` along dimension 1 (0 of a vector), 0 and 2.
pub(super) fn split_sides(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let dim = match b.op() {
        op if op.contains("vsplit") => 0,
        op if op.contains("dsplit") => 2,
        _ => usize::from(x.rank() > 1),
    };
    split_along(e, b, &x, dim)
}

/// `dstack`: joined along dimension 2; vectors are rows of it, numbers vectors.
pub(super) fn dstack(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = cast_all(e, e.tensors(b, "tensors")?)?;
    let mut parts = Vec::with_capacity(items.len());
    for x in &items {
        parts.push(at_least_3d(e, x)?);
    }
    one(e.cat(&parts, 2)?)
}

fn at_least_3d(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let one = Expr::Int(1);
    match x.shape.as_slice() {
        [] => e.view(x, &[one.clone(), one.clone(), one]),
        [n] => e.view(x, &[one.clone(), n.clone(), one]),
        [n, m] => e.view(x, &[n.clone(), m.clone(), one]),
        _ => Ok(x.clone()),
    }
}

/// `atleast_1d 2d 3d` of several tensors: each in the shape that the node says.
pub(super) fn at_least_each(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = e.tensors(b, "tensors")?;
    let mut out = Vec::with_capacity(items.len());
    for (k, x) in items.iter().enumerate() {
        let (_, shape) = e.result(b, k)?;
        out.push(Some(e.view(x, &shape)?));
    }
    Ok(out)
}

/// `cartesian_prod(vectors)`: every choice of one element of each, a row each; of one vector itself.
pub(super) fn cartesian(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = e.tensors(b, "tensors")?;
    if let [only] = items.as_slice() {
        return one(only.clone());
    }
    let grid: Vec<Expr> = items.iter().map(|v| v.dim(0)).collect();
    let mut columns = Vec::with_capacity(items.len());
    for (k, x) in items.iter().enumerate() {
        let x = e.along(x, k, items.len())?;
        let x = e.expand_to(&x, &grid)?;
        columns.push(e.view(&x, &[expr::mul(grid.iter().cloned()), Expr::Int(1)])?);
    }
    let columns = cast_all(e, columns)?;
    one(e.cat(&columns, 1)?)
}

/// Most elements of a choice, each of which is a dimension while the choices are made.
const MAX_CHOSEN: usize = 16;

/// `combinations(self [n], r, with_replacement)`: every choice of `r` elements in the order that they have, a row each:
/// the places of a grid of `r` dimensions at which the indices rise, or do not fall.
pub(super) fn combinations(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let order = if b.bool("with_replacement")? { "le" } else { "lt" };
    let r = usize::try_from(b.int("r")?).unwrap_or(0);
    if r > MAX_CHOSEN {
        return Err(Error::unsupported(format!("choices of {r} elements; expected at most {MAX_CHOSEN}")));
    }
    if r == 0 || x.dim(0) == Expr::Int(0) {
        return one(e.full(&shape, dtype, m2m_record::Arg::Int(0))?);
    }
    let line = e.iota(&x.dim(0), DType::I64)?;
    let mut mask = e.full(&vec![x.dim(0); r], DType::Bool, true)?;
    for k in 1..r {
        let (before, after) = (e.along(&line, k - 1, r)?, e.along(&line, k, r)?);
        let rises = e.compare(order, &before, &after)?;
        mask = e.binary_default("logical_and", &mask, &rises)?;
    }
    let places = e.call1("aten.nonzero.default", vec![mask.arg()], &[], DType::I64, &shape)?;
    let places = e.view(&places, &[crate::infer::numel(&shape)])?;
    let y = e.index_select(&x, 0, &places)?;
    one(e.view(&y, &shape)?)
}

/// `_chunk_cat(tensors, dim, num_chunks)`: each padded with zeros to a multiple of `num_chunks` along `dim`, cut into
/// so many chunks, each flat; chunks of the same number side by side.
pub(super) fn chunk_cat(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = e.tensors(b, "tensors")?;
    let chunks = pieces(b.op(), b.int("num_chunks")?)?;
    if chunks < 1 {
        return Err(Error::shape(b.op(), format!("{chunks} chunks; expected at least 1")));
    }
    let mut parts = Vec::with_capacity(items.len());
    let mut at = 0;
    for x in &items {
        let dim = wrap_dim(b.op(), b.int("dim")?, x.rank())?;
        at = dim;
        let size = expr::add([x.dim(dim), Expr::Int(chunks - 1)]);
        let whole = expr::mul([expr::floor_div(size, Expr::Int(chunks)), Expr::Int(chunks)]);
        let mut pads = vec![(Expr::Int(0), Expr::Int(0)); x.rank()];
        if let Some(pad) = pads.get_mut(dim) {
            pad.1 = expr::sub(whole, x.dim(dim));
        }
        let x = e.pad(x, &pads, m2m_record::Arg::Int(0))?;
        let lead = x.shape.iter().take(dim).cloned();
        let sizes: Vec<Expr> = lead.chain([Expr::Int(chunks), Expr::Int(-1)]).collect();
        parts.push(e.view(&x, &sizes)?);
    }
    one(e.cat(&parts, at + 1)?)
}

/// `diagflat(self, offset)`: all elements on a diagonal.
pub(super) fn diagflat(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let x = e.view(&x, &[crate::infer::numel(&x.shape)])?;
    let args = vec![x.arg(), b.arg("offset")?.clone()];
    one(e.call1("aten.diag_embed.default", args, &[], dtype, &shape)?)
}

/// `pad_sequence(sequences [l, *], batch_first, padding_value, padding_side)`: all as long as the longest, stacked.
pub(super) fn pad_sequence(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let items = e.tensors(b, "sequences")?;
    items.iter().try_for_each(|v| super::need_rank(b.op(), v, 1))?;
    let longest = expr::max(items.iter().map(|v| v.dim(0)));
    let (value, is_left) = (b.arg("padding_value")?.clone(), b.str("padding_side")? == "left");
    let mut rows = Vec::new();
    for v in &items {
        let missing = expr::sub(longest.clone(), v.dim(0));
        let mut pads = vec![(Expr::Int(0), Expr::Int(0)); v.rank()];
        if let Some(pad) = pads.first_mut() {
            *pad = if is_left { (missing, Expr::Int(0)) } else { (Expr::Int(0), missing) };
        }
        let row = e.pad(v, &pads, value.clone())?;
        rows.push(e.unsqueeze(&row, usize::from(!b.bool("batch_first")?))?);
    }
    let (_, shape) = e.result(b, 0)?;
    let all = e.cat(&rows, usize::from(!b.bool("batch_first")?))?;
    one(e.view(&all, &shape)?)
}
