//! What is told of matrices by their singular values, norms and inverses; products of reflections.
//!
//! A complex matrix `A + iB` of `[m, n]` is the real one `[[A, -B], [B, A]]` of `[2m, 2n]`: it has each singular value
//! twice, and its pseudoinverse is that of the complex one, written the same way.

use super::complex::Pair;
use super::matmul::product;
use super::pieces;
use super::reduce::vector_norm;
use super::solve::{all, eye, given, has_substitution, matrices, split, substitute, thin, transposed, with};

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::{numel, reduced, wrap_dim};
use crate::promote::{float_of, real_of};
use crate::value::{O, V, size_arg, tensor_type};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// The conjugate of the transposed matrices.
pub(super) fn adjoint(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let y = transposed(e, x)?;
    if y.dtype.is_complex() { e.unary("conj_physical", &y) } else { Ok(y) }
}

/// `[[A, -B], [B, A]]` of `A + iB`; real matrices as they are.
fn doubled(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let Pair { re, im: Some(im) } = Pair::of(e, x)? else { return Ok(x.clone()) };
    let (rows, cols) = (x.from_end(2)?, x.from_end(1)?);
    let minus = e.unary("neg", &im)?;
    let (top, bottom) = (e.cat(&[re.clone(), minus], cols)?, e.cat(&[im, re], cols)?);
    e.cat(&[top, bottom], rows)
}

/// Hermitian matrices of which only the lower triangle is read, or the upper one, and of the diagonal the real part.
fn hermitian(e: &mut Expander<'_, '_>, x: &V, is_upper: bool) -> Result<V, Error> {
    let x = if is_upper { adjoint(e, x)? } else { x.clone() };
    let lower = |e: &mut Expander<'_, '_>, v: &V, diagonal: i64| {
        e.call1("aten.tril.default", vec![v.arg(), Arg::Int(diagonal)], &[], v.dtype, &v.shape)
    };
    let Pair { re, im } = Pair::of(e, &x)?;
    let (with_diagonal, below) = (lower(e, &re, 0)?, lower(e, &re, -1)?);
    let above = transposed(e, &below)?;
    let re = e.add(&with_diagonal, &above)?;
    let Some(im) = im else { return Ok(re) };
    let below = lower(e, &im, -1)?;
    let above = transposed(e, &below)?;
    let im = Some(e.sub(&below, &above)?);
    Pair { re, im }.join(e)
}

/// Every second element of the last dimension of what complex matrices have twice.
fn single(e: &mut Expander<'_, '_>, values: V, of: &V) -> Result<V, Error> {
    if !of.dtype.is_complex() {
        return Ok(values);
    }
    let last = values.from_end(1)?;
    let size = values.dim(last);
    e.slice(&values, last, &Expr::Int(0), &size, 2)
}

/// Singular values `[*, min(m, n)]`, the largest first.
pub(super) fn singular(e: &mut Expander<'_, '_>, a: &V) -> Result<V, Error> {
    let real = doubled(e, a)?;
    let [_, s, _] = thin(e, &real)?;
    single(e, s, a)
}

/// Eigenvalues `[*, n]` of Hermitian matrices, the least first.
pub(super) fn eigenvalues(e: &mut Expander<'_, '_>, b: &Bound<'_>, a: &V, is_upper: bool) -> Result<V, Error> {
    let whole = hermitian(e, a, is_upper)?;
    let real = doubled(e, &whole)?;
    let [w, _] = symmetric(e, b, &real)?;
    single(e, w, a)
}

/// Eigenvalues and eigenvectors of real symmetric matrices.
fn symmetric(e: &mut Expander<'_, '_>, b: &Bound<'_>, a: &V) -> Result<[V; 2], Error> {
    let (lead, n, _) = split(a);
    let types = vec![tensor_type(a.dtype, &with(&lead, &[&n])), a.ty()];
    all(b.op(), e.call("aten._linalg_eigh.default", vec![a.arg(), Arg::from("L")], &[], types)?)
}

/// A norm of matrices.
enum Norm {
    /// The root of the sum of squares.
    Frobenius,
    /// The sum of the singular values.
    Nuclear,
    /// By the order: 2 the largest singular value, 1 the largest sum of a column, infinity that of a row; negative ones
    /// the least.
    Order(f64),
}

impl Norm {
    fn of(b: &Bound<'_>, arg: &Arg) -> Result<Norm, Error> {
        match arg {
            Arg::Null => Ok(Norm::Frobenius),
            Arg::Str(name) if name == "fro" => Ok(Norm::Frobenius),
            Arg::Str(name) if name == "nuc" => Ok(Norm::Nuclear),
            Arg::Int(n) if [1, 2].contains(&n.unsigned_abs()) => Ok(Norm::Order(*n as f64)),
            Arg::Float(x) if [1.0, 2.0, f64::INFINITY].contains(&x.0.abs()) => Ok(Norm::Order(x.0)),
            other => {
                let found = crate::bind::describe(other);
                let message = format!("{} of order {found}; expected 1, 2, inf, their negatives, fro or nuc", b.op());
                Err(Error::unsupported(message))
            }
        }
    }

    /// The norm of matrices in two dimensions of a tensor.
    fn take(&self, e: &mut Expander<'_, '_>, x: &V, [row, col]: [usize; 2], keepdim: bool) -> Result<V, Error> {
        let (mut first, mut second) = (row.min(col), row.max(col));
        let y = match self {
            Norm::Frobenius => return vector_norm(e, x, 2.0, &[first, second], keepdim),
            Norm::Order(order) if order.abs() != 2.0 => {
                (first, second) = if order.abs() == 1.0 { (row, col) } else { (col, row) };
                let size = e.unary("abs", x)?;
                let sums = e.sum(&size, &[first], true)?;
                e.extreme(if *order > 0.0 { "amax" } else { "amin" }, &sums, &[second], true)?
            }
            by_values => {
                let dims: Vec<usize> = (0..x.rank()).filter(|d| *d != row && *d != col).chain([row, col]).collect();
                let y = e.permute(x, &dims)?;
                let s = singular(e, &y)?;
                let last = s.from_end(1)?;
                match by_values {
                    Norm::Order(order) => e.extreme(if *order > 0.0 { "amax" } else { "amin" }, &s, &[last], false)?,
                    _ => e.sum(&s, &[last], false)?,
                }
            }
        };
        e.view(&y, &reduced(&x.shape, &[first, second], keepdim))
    }
}

/// The argument in the dtype that is computed in.
fn norm_input(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Result<V, Error> {
    let x = match if b.has("dtype") { b.dtype("dtype")? } else { None } {
        Some(dtype) => e.to_dtype(x, dtype)?,
        None => x.clone(),
    };
    e.widen_float(&x)
}

/// `linalg_matrix_norm`, `frobenius_norm`, `nuclear_norm`: over the two dimensions `dim`; the Frobenius norm over any.
pub(super) fn matrix_norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let x = norm_input(e, b, &x)?;
    let norm = match b.op() {
        "aten.frobenius_norm.dim" => Norm::Frobenius,
        op if op.starts_with("aten.nuclear_norm") => Norm::Nuclear,
        _ => Norm::of(b, b.arg("ord")?)?,
    };
    let dims = if b.has("dim") { b.ints("dim")? } else { vec![-2, -1] };
    let dims = dims.iter().map(|d| wrap_dim(b.op(), *d, x.rank())).collect::<Result<Vec<_>, _>>()?;
    let y = match (dims.as_slice(), &norm) {
        ([row, col], _) if row != col => norm.take(e, &x, [*row, *col], b.bool("keepdim")?)?,
        (_, Norm::Frobenius) => {
            let dims = if dims.is_empty() { (0..x.rank()).collect() } else { dims };
            vector_norm(e, &x, 2.0, &dims, b.bool("keepdim")?)?
        }
        _ => return Err(Error::shape(b.op(), format!("dimensions {dims:?}; expected two different ones"))),
    };
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `linalg_norm(ord, dim)`: without an order the 2-norm of all elements; with one the norm of matrices over two dimensions,
/// that of vectors over one.
pub(super) fn norm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let x = norm_input(e, b, &x)?;
    let (order, keepdim) = (b.arg("ord")?, b.bool("keepdim")?);
    let dims = e.dims(b.op(), b.ints_or("dim")?.as_deref(), &x)?;
    let y = match (order, dims.as_slice()) {
        (Arg::Null, _) => vector_norm(e, &x, 2.0, &dims, keepdim)?,
        (order, [_, _]) => {
            // In the order in which the call names them, which tells rows from columns.
            let named = b.ints_or("dim")?.unwrap_or_else(|| vec![0, 1]);
            let [row, col] = named.as_slice() else {
                return Err(Error::shape(b.op(), format!("{} dimensions; expected two", named.len())));
            };
            let dims = [wrap_dim(b.op(), *row, x.rank())?, wrap_dim(b.op(), *col, x.rank())?];
            Norm::of(b, order)?.take(e, &x, dims, keepdim)?
        }
        _ => vector_norm(e, &x, b.float("ord")?, &dims, keepdim)?,
    };
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `linalg_cond(p)`: the norm of a matrix times that of its inverse, infinite where there is none; the quotient of the
/// extreme singular values for 2 and -2. Of matrices without elements it is 0.
pub(super) fn cond(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let (dtype, shape) = e.result(b, 0)?;
    if numel(&a.shape) == Expr::Int(0) {
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    let norm = match b.arg("p")? {
        Arg::Null => Norm::Order(2.0),
        order => Norm::of(b, order)?,
    };
    if let Norm::Order(order) = norm
        && order.abs() == 2.0
    {
        let s = singular(e, &a)?;
        let last = s.from_end(1)?;
        let (most, least) = (e.extreme("amax", &s, &[last], false)?, e.extreme("amin", &s, &[last], false)?);
        return one(if order > 0.0 { e.div(&most, &least)? } else { e.div(&least, &most)? });
    }
    let dims = [a.from_end(2)?, a.from_end(1)?];
    let (lead, ..) = split(&a);
    let types = vec![a.ty(), tensor_type(DType::I32, &lead)];
    let [inverse, info] = all(b.op(), e.call("aten.linalg_inv_ex.default", vec![a.arg()], &[], types)?)?;
    let (own, other) = (norm.take(e, &a, dims, false)?, norm.take(e, &inverse, dims, false)?);
    let y = e.mul(&own, &other)?;
    let is_singular = e.compare("ne", &info, 0i64)?;
    let infinity = e.full(&[], y.dtype, Arg::from(f64::INFINITY))?;
    one(e.select_where(&is_singular, &infinity, &y)?)
}

/// The tolerance below which singular values `[*, k]` count as 0, `[*, 1]`: `max(atol, rtol·most)`. The relative one is
/// that of the rounding of the largest size unless one of the two is given.
fn tolerance(e: &mut Expander<'_, '_>, b: &Bound<'_>, a: &V, s: &V) -> Result<V, Error> {
    let (_, rows, cols) = split(a);
    let epsilon = if s.dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let largest = expr::max([rows, cols]);
    let number = |e: &Expander<'_, '_>, name: &str| -> Result<Option<O>, Error> {
        if !b.has(name) || *b.arg(name)? == Arg::Null { Ok(None) } else { e.operand(b, name).map(Some) }
    };
    let (absolute, relative) = match (number(e, "tol")?, number(e, "rcond")?) {
        (Some(tol), _) => (Some(tol), Some(O::from(0.0))),
        (None, Some(rcond)) => (None, Some(rcond)),
        (None, None) => (number(e, "atol")?, number(e, "rtol")?),
    };
    let column = |e: &mut Expander<'_, '_>, o: O| -> Result<V, Error> {
        let v = e.lift(&o, s.dtype)?;
        let v = e.to_dtype(&v, s.dtype)?;
        if v.rank() == 0 { Ok(v) } else { e.unsqueeze(&v, v.rank()) }
    };
    let absolute = absolute.map(|o| column(e, o)).transpose()?;
    let default = e.full(&[], DType::I64, size_arg(&largest))?;
    let default = e.to_dtype(&default, s.dtype)?;
    let default = e.mul(&default, epsilon)?;
    let zero = e.full(&[], s.dtype, Arg::Int(0))?;
    let relative = match (relative, &absolute) {
        (Some(o), _) => column(e, o)?,
        (None, Some(absolute)) => {
            let is_given = e.compare("gt", absolute, 0i64)?;
            e.select_where(&is_given, &zero, &default)?
        }
        (None, None) => default,
    };
    let last = s.from_end(1)?;
    let most = e.extreme("amax", s, &[last], true)?;
    let limit = e.mul(&most, &relative)?;
    e.binary_default("maximum", &limit, absolute.as_ref().unwrap_or(&zero))
}

/// `linalg_matrix_rank`: how many singular values are above the tolerance; of Hermitian matrices the sizes of eigenvalues.
pub(super) fn rank(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let (dtype, shape) = e.result(b, 0)?;
    if numel(&a.shape) == Expr::Int(0) {
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    let s = if b.bool("hermitian")? {
        let w = eigenvalues(e, b, &a, false)?;
        e.unary("abs", &w)?
    } else {
        singular(e, &a)?
    };
    let limit = tolerance(e, b, &a, &s)?;
    let is_above = e.compare("gt", &s, &limit)?;
    let last = is_above.from_end(1)?;
    one(e.sum(&is_above, &[last], false)?)
}

/// `linalg_pinv`, `pinverse`: `V @ diag(1/S) @ U.T`, singular values up to the tolerance counting as 0. Of Hermitian
/// matrices the lower triangle is read.
pub(super) fn pinv(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let (dtype, shape) = e.result(b, 0)?;
    if numel(&a.shape) == Expr::Int(0) {
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    let is_hermitian = b.has("hermitian") && b.bool("hermitian")?;
    let whole = if is_hermitian { hermitian(e, &a, false)? } else { a.clone() };
    let real = doubled(e, &whole)?;
    let [u, s, vh] = thin(e, &real)?;
    let limit = tolerance(e, b, &a, &s)?;
    let is_kept = e.compare("gt", &s, &limit)?;
    let inverse = e.unary("reciprocal", &s)?;
    let zero = e.full(&[], s.dtype, Arg::Int(0))?;
    let inverse = e.select_where(&is_kept, &inverse, &zero)?;
    let inverse = e.unsqueeze(&inverse, inverse.from_end(1)?)?;
    let v = transposed(e, &vh)?;
    let v = e.mul(&v, &inverse)?;
    let ut = transposed(e, &u)?;
    let y = product(e, &v, &ut)?;
    if !a.dtype.is_complex() {
        return one(y);
    }
    let (_, rows, cols) = split(&a);
    let left = e.slice(&y, y.from_end(1)?, &Expr::Int(0), &rows, 1)?;
    let middle = left.from_end(2)?;
    let re = e.slice(&left, middle, &Expr::Int(0), &cols, 1)?;
    let im = e.slice(&left, middle, &cols, &left.dim(middle), 1)?;
    one(Pair { re, im: Some(im) }.join(e)?)
}

/// `linalg_diagonal(A, offset, dim1, dim2)`
pub(super) fn diagonal(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = e.tensor(b, "A")?;
    let (dtype, shape) = e.result(b, 0)?;
    let mut args = vec![a.arg()];
    for name in ["offset", "dim1", "dim2"] {
        args.push(b.arg(name)?.clone());
    }
    one(e.call1("aten.diagonal.default", args, &[], dtype, &shape)?)
}

/// `linalg_vander(x [*, n], N)`: `[*, n, N]` with `x^j` in column `j`, as products of so many `x`; `vander(x [n], N, increasing)`
/// the same, or with the last column first.
pub(super) fn vander(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let y = powers(e, b)?;
    if !b.has("increasing") || b.bool("increasing")? {
        return one(y);
    }
    let last = y.from_end(1)?;
    one(e.flip(&y, &[last])?)
}

fn powers(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<V, Error> {
    let x = e.tensor(b, "x")?;
    let (dtype, shape) = e.result(b, 0)?;
    let x = e.to_dtype(&x, dtype)?;
    let x = if x.rank() == 0 { e.unsqueeze(&x, 0)? } else { x };
    let last = x.rank();
    let count = shape.last().cloned().unwrap_or(Expr::Int(1));
    let mut first = shape.clone();
    first.pop();
    first.push(Expr::Int(1));
    let unit = e.full(&first, dtype, Arg::Int(1))?;
    if count == Expr::Int(1) {
        return Ok(unit);
    }
    let column = e.unsqueeze(&x, last)?;
    let mut wide = x.shape.clone();
    wide.push(expr::sub(count, Expr::Int(1)));
    let wide = e.expand_to(&column, &wide)?;
    let powers = e.call1("aten.cumprod.default", vec![wide.arg(), Arg::Int(last as i64)], &[], dtype, &wide.shape)?;
    e.cat(&[unit, powers], last)
}

/// `linalg_tensorsolve(A, B, dims)`: `X` with `tensordot(A, X) = B`: both flattened, `A` to a square matrix, after `dims` of
/// it have been moved to the end.
pub(super) fn tensorsolve(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (mut a, x) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (dtype, shape) = e.result(b, 0)?;
    if let Some(dims) = b.ints_or("dims")? {
        let moved = dims.iter().map(|d| wrap_dim(b.op(), *d, a.rank())).collect::<Result<Vec<_>, _>>()?;
        let order: Vec<usize> = (0..a.rank()).filter(|d| !moved.contains(d)).chain(moved.iter().copied()).collect();
        a = e.permute(&a, &order)?;
    }
    let n = numel(&shape);
    let (a, x) = (e.view(&a, &[n.clone(), n.clone()])?, e.view(&x, std::slice::from_ref(&n))?);
    let y = e.call1("aten.linalg_solve.default", vec![a.arg(), x.arg()], &[], dtype, &[n])?;
    one(e.view(&y, &shape)?)
}

/// `linalg_tensorinv(A, ind)`: the inverse of `A` as a square matrix, whose rows are the first `ind` dimensions.
pub(super) fn tensorinv(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let lead = usize::try_from(b.int("ind")?).unwrap_or(0).min(a.rank());
    let n = numel(a.shape.get(..lead).unwrap_or(&[]));
    let a = e.view(&a, &[n.clone(), n.clone()])?;
    let y = e.call1("aten.linalg_inv.default", vec![a.arg()], &[], dtype, &[n.clone(), n])?;
    one(e.view(&y, &shape)?)
}

/// `qr(A, some)`: `linalg_qr`, reduced or complete.
pub(super) fn qr(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let mode = if b.bool("some")? { "reduced" } else { "complete" };
    let types = b.node.results.iter().map(|r| r.ty.clone()).collect();
    e.call("aten.linalg_qr.default", vec![a.arg(), Arg::from(mode)], &[], types)
}

/// The product `Q` of the reflections `I - tau[i] · v[i] @ v[i]^H`, or its adjoint, and `x`. Column `i` of `packed` holds `v[i]`
/// below its diagonal, which stands for 1; what is above stands for 0. With all vectors in `V`, `Q = I - V @ T @ V^H` for
/// `T = (I + D @ U)^-1 @ D`, where `D` is the diagonal of `tau` and `U` what `V^H @ V` has above its own (Puglisi, 1992).
fn reflected(e: &mut Expander<'_, '_>, op: &str, (packed, tau): (&V, &V), x: V, is_adjoint: bool) -> Result<V, Error> {
    let (rows, cols) = (packed.from_end(2)?, packed.from_end(1)?);
    let last = tau.from_end(1)?;
    let count = tau.dim(last);
    let below = e.call1("aten.tril.default", vec![packed.arg(), Arg::Int(-1)], &[], packed.dtype, &packed.shape)?;
    let (row, col) = (e.iota(&packed.dim(rows), DType::I64)?, e.iota(&packed.dim(cols), DType::I64)?);
    let row = e.unsqueeze(&row, 1)?;
    let is_on = e.compare("eq", &row, &col)?;
    let unit = e.full(&[], packed.dtype, Arg::Int(1))?;
    let vectors = e.select_where(&is_on, &unit, &below)?;
    let vectors = e.slice(&vectors, cols, &Expr::Int(0), &count, 1)?;
    if !has_substitution(e) {
        return one_by_one(e, op, (&vectors, tau), x, is_adjoint);
    }
    let turned = adjoint(e, &vectors)?;
    let gram = product(e, &turned, &vectors)?;
    let above = e.call1("aten.triu.default", vec![gram.arg(), Arg::Int(1)], &[], gram.dtype, &gram.shape)?;
    let scale = e.unsqueeze(tau, last + 1)?;
    let scaled = e.mul(&above, &scale)?;
    let inner = product(e, &turned, &x)?;
    let inner = if is_adjoint {
        // T^H = D^H @ (I + D @ U)^-H, whose factor is lower triangular.
        let factor = adjoint(e, &scaled)?;
        let solved = substitute(e, &factor, &inner, false, true)?;
        let scale = if tau.dtype.is_complex() { e.unary("conj_physical", &scale)? } else { scale };
        e.mul(&solved, &scale)?
    } else {
        let inner = e.mul(&inner, &scale)?;
        substitute(e, &scaled, &inner, true, true)?
    };
    let step = product(e, &vectors, &inner)?;
    e.sub(&x, &step)
}

/// The same, one reflection after the other: the last one first, or the first one of the adjoint ones.
fn one_by_one(
    e: &mut Expander<'_, '_>,
    op: &str,
    (vectors, tau): (&V, &V),
    x: V,
    is_adjoint: bool,
) -> Result<V, Error> {
    let (cols, last) = (vectors.from_end(1)?, tau.from_end(1)?);
    let Some(count) = tau.dim(last).as_int() else {
        return Err(Error::unsupported(format!("{op} of {} reflections", tau.dim(last))));
    };
    let tau = if is_adjoint && tau.dtype.is_complex() { e.unary("conj_physical", tau)? } else { tau.clone() };
    let count = pieces(op, count)?;
    let order: Vec<i64> = if is_adjoint { (0..count).collect() } else { (0..count).rev().collect() };
    let mut y = x;
    for k in order {
        let (from, to) = (Expr::Int(k), Expr::Int(k + 1));
        let v = e.slice(vectors, cols, &from, &to, 1)?;
        let factor = e.slice(&tau, last, &from, &to, 1)?;
        let factor = e.unsqueeze(&factor, last)?;
        let turned = adjoint(e, &v)?;
        let inner = product(e, &turned, &y)?;
        let step = product(e, &v, &inner)?;
        let step = e.mul(&step, &factor)?;
        y = e.sub(&y, &step)?;
    }
    Ok(y)
}

/// `linalg_householder_product(A [*, m, n], tau [*, k])`, `orgqr`: the first `n` columns of the product of the reflections.
pub(super) fn householder(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let packed = matrices(e, b)?;
    let tau = e.tensor(b, if b.has("tau") { "tau" } else { "input2" })?;
    let (_, rows, cols) = split(&packed);
    let unit = eye(e, &rows, packed.dtype)?;
    let unit = e.slice(&unit, 1, &Expr::Int(0), &cols, 1)?;
    let unit = e.expand_to(&unit, &packed.shape)?;
    one(reflected(e, b.op(), (&packed, &tau), unit, false)?)
}

/// `ormqr(A, tau, C, left, transpose)`: the product of the reflections, or its adjoint, and `C`; from the right as the
/// adjoint of the product with the adjoint of `C` from the left.
pub(super) fn ormqr(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (packed, tau, x) = (matrices(e, b)?, e.tensor(b, "input2")?, e.tensor(b, "input3")?);
    let turns = b.bool("transpose")?;
    if b.bool("left")? {
        return one(reflected(e, b.op(), (&packed, &tau), x, turns)?);
    }
    let x = adjoint(e, &x)?;
    let y = reflected(e, b.op(), (&packed, &tau), x, !turns)?;
    one(adjoint(e, &y)?)
}

/// `linalg_eigvalsh` of complex matrices, by their real form.
pub(super) fn complex_eigenvalues(e: &mut Expander<'_, '_>, b: &Bound<'_>, a: &V) -> Results {
    if b.node.results.len() != 1 {
        return Err(Error::unsupported(format!("{} of {} matrices with eigenvectors", b.op(), a.dtype)));
    }
    let w = eigenvalues(e, b, a, b.str("UPLO")?.starts_with(['U', 'u']))?;
    given(e, b, &[&w])
}

/// `linalg_svdvals` of complex matrices.
pub(super) fn complex_singular(e: &mut Expander<'_, '_>, b: &Bound<'_>, a: &V) -> Results {
    if b.op() != "aten.linalg_svdvals.default" {
        return Err(Error::unsupported(format!("{} of {} matrices with singular vectors", b.op(), a.dtype)));
    }
    let s = singular(e, a)?;
    one(e.to_dtype(&s, real_of(float_of(a.dtype)))?)
}
