//! Distances of vectors, and losses that ask for a margin between them.

use super::identity::number;
use super::loss::reduced;
use super::reduce::vector_norm;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::numel;
use crate::promote::real_of;
use crate::value::{O, V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// An argument as a float, widened.
fn float(e: &mut Expander<'_, '_>, b: &Bound<'_>, name: &str) -> Result<V, Error> {
    let x = e.tensor(b, name)?;
    e.widen_float(&x)
}

/// The `p`-norm over dimensions; of complex elements that of their absolute values.
fn norm(e: &mut Expander<'_, '_>, x: &V, p: f64, dims: &[usize], keepdim: bool) -> Result<V, Error> {
    let real = real_of(x.dtype);
    let x = if real == x.dtype { x.clone() } else { e.call1("aten.abs.default", vec![x.arg()], &[], real, &x.shape)? };
    vector_norm(e, &x, p, dims, keepdim)
}

/// An argument: a float widened, whole numbers as they are, whose differences may leave their type.
fn plain(e: &mut Expander<'_, '_>, b: &Bound<'_>, name: &str) -> Result<V, Error> {
    let x = e.tensor(b, name)?;
    e.widen(&x)
}

/// The `p`-norm of `x - y + eps` along the last dimension.
fn gap(e: &mut Expander<'_, '_>, x: &V, y: &V, p: f64, eps: f64, keepdim: bool) -> Result<V, Error> {
    let d = e.sub(x, y)?;
    let d = e.widen_float(&d)?;
    let d = e.add(&d, eps)?;
    let last = d.from_end(1)?;
    norm(e, &d, p, &[last], keepdim)
}

/// `max(x, 0)`
fn positive(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    e.unary("relu", x)
}

/// `where(c, x, 0)`
pub(super) fn only_where(e: &mut Expander<'_, '_>, c: &V, x: &V) -> Result<V, Error> {
    let zero = e.full(&[], x.dtype, Arg::Int(0))?;
    e.select_where(c, x, &zero)
}

/// `pairwise_distance(x1, x2, p, eps, keepdim)`
pub(super) fn pairwise(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (plain(e, b, "x1")?, plain(e, b, "x2")?);
    let (dtype, _) = e.result(b, 0)?;
    let d = gap(e, &x, &y, b.float("p")?, b.float("eps")?, b.bool("keepdim")?)?;
    one(e.to_dtype(&d, dtype)?)
}

/// `dist(self, other, p)`: the `p`-norm of all elements of the difference.
pub(super) fn dist(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (float(e, b, "self")?, float(e, b, "other")?);
    let (dtype, _) = e.result(b, 0)?;
    let d = e.sub(&x, &y)?;
    let all: Vec<usize> = (0..d.rank()).collect();
    let d = norm(e, &d, number(b, "p")?, &all, false)?;
    one(e.to_dtype(&d, dtype)?)
}

/// `pdist(x [n, d], p)`: the distance of each two rows, `[n·(n-1)/2]`, in the order of the upper triangle.
pub(super) fn pdist(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = float(e, b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    if numel(&shape) == Expr::Int(0) {
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    let (first, second) = match x.dim(0) {
        Expr::Int(rows) => {
            let args = vec![Arg::Int(rows), Arg::Int(rows), Arg::Int(1)];
            let kwargs = [("dtype", Arg::DType(DType::I64))];
            let pairs = [Expr::Int(2), numel(&shape)];
            let pairs = e.call1("aten.triu_indices.default", args, &kwargs, DType::I64, &pairs)?;
            (e.select(&pairs, 0, &Expr::Int(0))?, e.select(&pairs, 0, &Expr::Int(1))?)
        }
        rows => pairs(e, &rows, &numel(&shape))?,
    };
    let (x, y) = (e.index_select(&x, 0, &first)?, e.index_select(&x, 0, &second)?);
    let d = e.sub(&x, &y)?;
    let d = norm(e, &d, b.float("p")?, &[1], false)?;
    one(e.to_dtype(&d, dtype)?)
}

/// Rows and columns of the triangle above the diagonal of a square of `n` rows, of which `count` elements there are. From its
/// end element `r` is in row `n - 2 - i` for the greatest `i` with `i·(i+1)/2 <= r`: in `f64`, exact for 2^25 rows.
fn pairs(e: &mut Expander<'_, '_>, n: &Expr, count: &Expr) -> Result<(V, V), Error> {
    let k = e.iota(count, DType::I64)?;
    let most = e.full(&[], DType::I64, size_arg(&expr::sub(count.clone(), Expr::Int(1))))?;
    let from_end = e.sub(&most, &k)?;
    let wide = e.to_dtype(&from_end, DType::F64)?;
    let root = e.mul(&wide, 8.0)?;
    let root = e.add(&root, 1.0)?;
    let root = e.unary_float("sqrt", &root)?;
    let i = e.sub(&root, 1.0)?;
    let i = e.mul(&i, 0.5)?;
    let i = e.unary("floor", &i)?;
    let i = e.to_dtype(&i, DType::I64)?;
    let next = e.add(&i, 1i64)?;
    let before = e.mul(&i, &next)?;
    let args = vec![before.arg(), Arg::Int(1)];
    let before = e.call1("aten.bitwise_right_shift.Tensor_Scalar", args, &[], DType::I64, &i.shape)?;
    let last = e.full(&[], DType::I64, size_arg(&expr::sub(n.clone(), Expr::Int(1))))?;
    let row = e.sub(&last, &next)?;
    let column = e.sub(&from_end, &before)?;
    Ok((row, e.sub(&last, &column)?))
}

/// `triplet_margin_loss`: `max(d(anchor, positive) - d(anchor, negative) + margin, 0)` with pairwise distances; with
/// `swap` the negative one is the lesser of those to anchor and positive.
pub(super) fn triplet(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (a, near, far) = (plain(e, b, "anchor")?, plain(e, b, "positive")?, plain(e, b, "negative")?);
    let (p, eps) = (b.float("p")?, b.float("eps")?);
    let d = gap(e, &a, &near, p, eps, false)?;
    let mut away = gap(e, &a, &far, p, eps, false)?;
    if b.bool("swap")? {
        let other = gap(e, &near, &far, p, eps, false)?;
        away = e.binary_default("minimum", &away, &other)?;
    }
    let y = e.add(&d, b.float("margin")?)?;
    let y = e.sub(&y, &away)?;
    let y = positive(e, &y)?;
    reduced(e, b, &y)
}

/// Added to squared lengths, so that no cosine is of nothing.
const COSINE_EPS: f64 = 1e-12;

/// `cosine_embedding_loss`: with the cosine `c` of both along the last dimension, `1 - c` where the target is 1,
/// `max(c - margin, 0)` where it is -1.
pub(super) fn cosine(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (float(e, b, "input1")?, float(e, b, "input2")?);
    let t = e.tensor(b, "target")?;
    let dims = [t.rank()];
    let product = e.mul(&x, &y)?;
    let product = e.sum(&product, &dims, false)?;
    let mut area: Option<V> = None;
    for v in [&x, &y] {
        let square = e.mul(v, v)?;
        let length = e.sum(&square, &[v.from_end(1)?], false)?;
        let length = e.add(&length, COSINE_EPS)?;
        area = Some(match area {
            Some(area) => e.mul(&area, &length)?,
            None => length,
        });
    }
    let area = area.ok_or_else(|| Error::shape(b.op(), "two tensors"))?;
    let area = e.unary_float("sqrt", &area)?;
    let c = e.div(&product, &area)?;
    let near = e.unary("neg", &c)?;
    let near = e.add(&near, 1.0)?;
    let far = e.sub(&c, b.float("margin")?)?;
    let far = positive(e, &far)?;
    let (is_near, is_far) = (e.compare("eq", &t, 1i64)?, e.compare("eq", &t, -1i64)?);
    let (near, far) = (only_where(e, &is_near, &near)?, only_where(e, &is_far, &far)?);
    let loss = e.add(&near, &far)?;
    reduced(e, b, &loss)
}

/// `margin_ranking_loss`: `max(-t·(x1 - x2) + margin, 0)`
pub(super) fn ranking(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y, t) = (plain(e, b, "input1")?, plain(e, b, "input2")?, plain(e, b, "target")?);
    let d = e.sub(&y, &x)?;
    let d = e.mul(&t, &d)?;
    let d = e.widen_float(&d)?;
    let d = e.add(&d, b.float("margin")?)?;
    let loss = positive(e, &d)?;
    reduced(e, b, &loss)
}

/// `hinge_embedding_loss`: `x` where the target is 1, `max(margin - x, 0)` where it is -1, both added elsewhere.
pub(super) fn hinge(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = float(e, b, "self")?;
    let t = e.tensor(b, "target")?;
    let rest = e.unary("neg", &x)?;
    let rest = e.add(&rest, b.float("margin")?)?;
    let rest = positive(e, &rest)?;
    let (not_near, not_far) = (e.compare("ne", &t, 1i64)?, e.compare("ne", &t, -1i64)?);
    let (far, near) = (only_where(e, &not_near, &rest)?, only_where(e, &not_far, &x)?);
    let loss = e.add(&far, &near)?;
    reduced(e, b, &loss)
}

/// `soft_margin_loss`: `log1p(exp(-t·x))`
pub(super) fn soft(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t) = (float(e, b, "self")?, float(e, b, "target")?);
    let y = e.unary("neg", &x)?;
    let y = e.mul(&y, &t)?;
    let y = e.unary_float("exp", &y)?;
    let loss = e.unary_float("log1p", &y)?;
    reduced(e, b, &loss)
}

/// `[C]` or a number as `[1, C]`; `[N, C]` as it is.
pub(super) fn rows(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    if x.rank() == 2 { Ok(x.clone()) } else { e.view(x, &[Expr::Int(1), numel(&x.shape)]) }
}

/// A loss of each row, reduced; alone it has the shape that the node says.
fn of_rows(e: &mut Expander<'_, '_>, b: &Bound<'_>, loss: &V) -> Results {
    if b.int("reduction")? == 0 {
        let (dtype, shape) = e.result(b, 0)?;
        let y = e.view(loss, &shape)?;
        return one(e.to_dtype(&y, dtype)?);
    }
    reduced(e, b, loss)
}

/// `multi_margin_loss(x [N, C], t [N], p, margin, weight)`: `Σ_{c ≠ t} w[t]·max(margin - x[t] + x[c], 0)^p / C`.
pub(super) fn multi(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = float(e, b, "self")?;
    let x = rows(e, &x)?;
    let t = e.tensor(b, "target")?;
    let t = e.to_dtype(&t, DType::I64)?;
    let t = e.view(&t, &[x.dim(0), Expr::Int(1)])?;
    let own = e.call1("aten.gather.default", vec![x.arg(), Arg::Int(1), t.arg()], &[], x.dtype, &t.shape)?;
    let y = e.sub(&x, &own)?;
    let y = e.add(&y, number(b, "margin")?)?;
    let mut y = positive(e, &y)?;
    if number(b, "p")? == 2.0 {
        y = e.mul(&y, &y)?;
    }
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        let flat = e.view(&t, &[x.dim(0)])?;
        let w = e.index_select(&w, 0, &flat)?;
        let w = e.unsqueeze(&w, 1)?;
        y = e.mul(&y, &w)?;
    }
    let class = e.iota(&x.dim(1), DType::I64)?;
    let is_other = e.compare("ne", &class, &t)?;
    let y = only_where(e, &is_other, &y)?;
    let y = e.sum(&y, &[1], false)?;
    let loss = e.div(&y, O::N(size_arg(&x.dim(1))))?;
    of_rows(e, b, &loss)
}

/// The labels of rows, which are those before the first negative one.
pub(super) struct Labels {
    /// Which places hold one.
    pub is_label: V,
    /// The class at each place, 0 where there is no label.
    pub at: V,
    /// The score of that class.
    pub own: V,
}

/// The labels `t [N, C]` of scores `x [N, C]`.
pub(super) fn labels(e: &mut Expander<'_, '_>, x: &V, t: &V) -> Result<Labels, Error> {
    let is_end = e.compare("lt", t, 0i64)?;
    let is_end = e.to_dtype(&is_end, DType::I64)?;
    let ends = e.call1("aten.cumsum.default", vec![is_end.arg(), Arg::Int(1)], &[], DType::I64, &t.shape)?;
    let is_label = e.compare("eq", &ends, 0i64)?;
    let zero = e.full(&[], DType::I64, Arg::Int(0))?;
    let at = e.select_where(&is_label, t, &zero)?;
    let own = e.call1("aten.gather.default", vec![x.arg(), Arg::Int(1), at.arg()], &[], x.dtype, &at.shape)?;
    Ok(Labels { is_label, at, own })
}

/// `multilabel_margin_loss(x [N, C], t [N, C])`: the labels of a row are those before its first negative one;
/// `Σ_{j, c no label} max(1 - (x[t[j]] - x[c]), 0) / C`. With two results, where the labels are, too.
pub(super) fn multilabel(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = float(e, b, "self")?;
    let x = rows(e, &x)?;
    let t = e.tensor(b, "target")?;
    let t = e.to_dtype(&t, DType::I64)?;
    let t = rows(e, &t)?;
    let Labels { is_label, at, own } = labels(e, &x, &t)?;
    let (own, at, is_label) = (e.unsqueeze(&own, 2)?, e.unsqueeze(&at, 2)?, e.unsqueeze(&is_label, 2)?);
    let class = e.iota(&x.dim(1), DType::I64)?;
    let is_own = e.compare("eq", &class, &at)?;
    let is_own = e.binary_default("logical_and", &is_own, &is_label)?;
    let args = vec![is_own.arg(), Arg::Int(1), Arg::Bool(true)];
    let any = [x.dim(0), Expr::Int(1), x.dim(1)];
    let is_target = e.call1("aten.any.dim", args, &[], DType::Bool, &any)?;
    let wide = e.unsqueeze(&x, 1)?;
    let y = e.sub(&wide, &own)?;
    let y = e.add(&y, 1.0)?;
    let y = positive(e, &y)?;
    let is_rest = e.test("logical_not", &is_target)?;
    let counts = e.binary_default("logical_and", &is_label, &is_rest)?;
    let y = only_where(e, &counts, &y)?;
    let y = e.sum(&y, &[1, 2], false)?;
    let loss = e.div(&y, O::N(size_arg(&x.dim(1))))?;
    let mut out = of_rows(e, b, &loss)?;
    if b.node.results.len() == 2 {
        let (dtype, shape) = e.result(b, 1)?;
        let is_target = e.view(&is_target, &shape)?;
        out.push(Some(e.to_dtype(&is_target, dtype)?));
    }
    Ok(out)
}
