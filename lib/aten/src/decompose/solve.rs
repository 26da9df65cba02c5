//! Linear algebra in terms of the target's factorisations: LU with pivots, Cholesky, QR, symmetric eigenvalues, singular
//! values, and triangular systems.

use super::matrix::{adjoint, complex_eigenvalues, complex_singular};
use super::need_rank;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::broadcast;
use crate::value::{V, size_arg, tensor_type};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// The first argument, which is a batch of matrices.
pub(super) fn matrices(e: &Expander<'_, '_>, b: &Bound<'_>) -> Result<V, Error> {
    let x = e.tensor(b, b.schema.args.first().map_or("self", |a| a.name))?;
    need_rank(b.op(), &x, 2)?;
    Ok(x)
}

/// `_linalg_check_errors(info, api_name, *, is_matrix)`: fails unless all of `info` is 0.
pub(super) fn check_errors(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let info = e.tensor(b, "info")?;
    let is_right = e.compare("eq", &info, 0_i64)?;
    let is_right = e.call1("aten.all.default", vec![is_right.arg()], &[], DType::Bool, &[])?;
    let message = Arg::from(format!("{}: the input has no such factorization", b.str("api_name")?).as_str());
    e.call("aten._assert_async.msg", vec![is_right.arg(), message], &[], Vec::new())
}

/// The leading sizes, the rows and the columns.
pub(super) fn split(x: &V) -> (Vec<Expr>, Expr, Expr) {
    let lead = x.rank().saturating_sub(2);
    (x.shape.iter().take(lead).cloned().collect(), x.dim(lead), x.dim(lead + 1))
}

pub(super) fn with(lead: &[Expr], more: &[&Expr]) -> Vec<Expr> {
    lead.iter().chain(more.iter().copied()).cloned().collect()
}

/// The smaller of two sizes.
pub(super) fn least(rows: &Expr, cols: &Expr) -> Expr {
    expr::min([rows.clone(), cols.clone()])
}

/// `x` with its last two dimensions exchanged.
pub(super) fn transposed(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    e.transpose(x, x.from_end(2)?, x.from_end(1)?)
}

pub(super) fn all<const N: usize>(op: &str, results: Vec<Option<V>>) -> Result<[V; N], Error> {
    let values: Option<Vec<V>> = results.into_iter().collect();
    values.and_then(|v| v.try_into().ok()).ok_or_else(|| Error::shape(op, format!("expected {N} results")))
}

/// `LU`, pivots and info.
fn lu(e: &mut Expander<'_, '_>, a: &V) -> Result<[V; 3], Error> {
    let (lead, rows, cols) = split(a);
    let steps = least(&rows, &cols);
    let types = vec![a.ty(), tensor_type(DType::I32, &with(&lead, &[&steps])), tensor_type(DType::I32, &lead)];
    let op = "aten.linalg_lu_factor_ex.default";
    all(op, e.call(op, vec![a.arg()], &[("pivot", Arg::Bool(true))], types)?)
}

/// `P`, `L` and `U` of a packed factorisation.
fn unpack(e: &mut Expander<'_, '_>, packed: &V, pivots: &V) -> Result<[V; 3], Error> {
    let (lead, rows, cols) = split(packed);
    let steps = least(&rows, &cols);
    let ty = |a: &Expr, c: &Expr| tensor_type(packed.dtype, &with(&lead, &[a, c]));
    let types = vec![ty(&rows, &rows), ty(&rows, &steps), ty(&steps, &cols)];
    all("aten.lu_unpack.default", e.call("aten.lu_unpack.default", vec![packed.arg(), pivots.arg()], &[], types)?)
}

/// The operator that [`substitute`] ends in.
const SUBSTITUTE: &str = "aten.linalg_solve_triangular.default";

/// Whether the target solves triangular systems.
pub(super) fn has_substitution(e: &Expander<'_, '_>) -> bool {
    e.is_lowerable(SUBSTITUTE)
}

/// An operator that the target must lower itself, as nothing simpler says what it does.
fn needed(e: &Expander<'_, '_>, op: &str) -> Result<(), Error> {
    if e.is_lowerable(op) {
        Ok(())
    } else {
        Err(Error::unsupported(format!("{op} is neither lowered by the target nor decomposed")))
    }
}

/// `X` with `a @ X = x`, `a` triangular, of the same leading sizes.
pub(super) fn substitute(e: &mut Expander<'_, '_>, a: &V, x: &V, upper: bool, unit: bool) -> Result<V, Error> {
    needed(e, SUBSTITUTE)?;
    let kwargs = [("upper", Arg::Bool(upper)), ("left", Arg::Bool(true)), ("unitriangular", Arg::Bool(unit))];
    e.call1(SUBSTITUTE, vec![a.arg(), x.arg()], &kwargs, x.dtype, &x.shape)
}

/// Both with their common leading sizes.
fn aligned(e: &mut Expander<'_, '_>, b: &Bound<'_>, a: &V, x: &V) -> Result<(V, V), Error> {
    let ((la, ma, na), (lx, mx, nx)) = (split(a), split(x));
    let lead = broadcast(b.op(), &la, &lx)?;
    Ok((e.expand_to(a, &with(&lead, &[&ma, &na]))?, e.expand_to(x, &with(&lead, &[&mx, &nx]))?))
}

/// `X` with `a @ X = x`: `P.T @ x`, then `L`, then `U`; for the adjoint of `a` the other way round.
fn solved(
    e: &mut Expander<'_, '_>,
    b: &Bound<'_>,
    (packed, pivots): (&V, &V),
    x: &V,
    is_adjoint: bool,
) -> Result<V, Error> {
    let [p, _, _] = unpack(e, packed, pivots)?;
    let p = if is_adjoint { p } else { transposed(e, &p)? };
    let (p, x) = aligned(e, b, &p, x)?;
    let packed = if is_adjoint { adjoint(e, packed)? } else { packed.clone() };
    let (packed, _) = aligned(e, b, &packed, &x)?;
    if is_adjoint {
        let y = substitute(e, &packed, &x, false, false)?;
        let y = substitute(e, &packed, &y, true, true)?;
        return super::matmul::product(e, &p, &y);
    }
    let y = super::matmul::product(e, &p, &x)?;
    let y = substitute(e, &packed, &y, false, true)?;
    substitute(e, &packed, &y, true, false)
}

/// Results as the node says: in its order, those that it lacks left out.
pub(super) fn given(e: &mut Expander<'_, '_>, b: &Bound<'_>, values: &[&V]) -> Results {
    let mut out = Vec::new();
    for (k, v) in values.iter().enumerate().take(b.node.results.len()) {
        let (dtype, _) = e.result(b, k)?;
        out.push(Some(e.to_dtype(v, dtype)?));
    }
    Ok(out)
}

/// `linalg_lu_factor`, `linalg_lu`.
pub(super) fn factor(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if !b.bool("pivot")? {
        return Err(Error::unsupported(format!("{} without pivots", b.op())));
    }
    let a = matrices(e, b)?;
    let [packed, pivots, _] = lu(e, &a)?;
    if b.op() == "aten.linalg_lu.default" {
        let [p, l, u] = unpack(e, &packed, &pivots)?;
        return given(e, b, &[&p, &l, &u]);
    }
    given(e, b, &[&packed, &pivots])
}

/// The signs of the permutations that pivots are, and the diagonals of the factors.
fn diagonal(e: &mut Expander<'_, '_>, packed: &V, pivots: &V) -> Result<(V, V), Error> {
    let (lead, n, _) = split(packed);
    let line = e.iota(&n, pivots.dtype)?;
    let line = e.add(&line, 1i64)?;
    let is_moved = e.compare("ne", pivots, &line)?;
    let (minus, plus) = (e.full(&[], packed.dtype, Arg::Int(-1))?, e.full(&[], packed.dtype, Arg::Int(1))?);
    let signs = e.select_where(&is_moved, &minus, &plus)?;
    let last = Arg::Int(lead.len() as i64);
    let sign = e.call1("aten.prod.dim_int", vec![signs.arg(), last], &[], packed.dtype, &lead)?;
    let (first, second) = (lead.len() as i64, lead.len() as i64 + 1);
    let args = vec![packed.arg(), Arg::Int(0), Arg::Int(first), Arg::Int(second)];
    let diagonal = e.call1("aten.diagonal.default", args, &[], packed.dtype, &with(&lead, &[&n]))?;
    Ok((sign, diagonal))
}

/// `det`: the product of the diagonal of `U`, negative for an odd number of exchanges; with `LU` and pivots.
pub(super) fn det(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let [packed, pivots, _] = lu(e, &a)?;
    let (sign, line) = diagonal(e, &packed, &pivots)?;
    let last = Arg::Int(line.rank() as i64 - 1);
    let size = e.call1("aten.prod.dim_int", vec![line.arg(), last], &[], line.dtype, &sign.shape)?;
    let y = e.mul(&size, &sign)?;
    given(e, b, &[&y, &packed, &pivots])
}

/// `slogdet`: the sign of the determinant and the logarithm of its magnitude; `logdet`: its logarithm.
pub(super) fn slogdet(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let [packed, pivots, _] = lu(e, &a)?;
    let (sign, line) = diagonal(e, &packed, &pivots)?;
    let last = line.from_end(1)?;
    let signs = e.unary("sgn", &line)?;
    let own = e.call1("aten.prod.dim_int", vec![signs.arg(), Arg::Int(last as i64)], &[], line.dtype, &sign.shape)?;
    let sign = e.mul(&own, &sign)?;
    let size = e.unary("abs", &line)?;
    let log = e.unary("log", &size)?;
    let log = e.sum(&log, &[last], false)?;
    if b.op() == "aten.logdet.default" && log.dtype != sign.dtype {
        let angle = e.call1("aten.angle.default", vec![sign.arg()], &[], log.dtype, &sign.shape)?;
        return one(super::complex::Pair { re: log, im: Some(angle) }.join(e)?);
    }
    if b.op() == "aten.logdet.default" {
        let is_negative = e.compare("lt", &sign, 0i64)?;
        let nan = e.full(&[], log.dtype, Arg::from(f64::NAN))?;
        return one(e.select_where(&is_negative, &nan, &log)?);
    }
    given(e, b, &[&sign, &log, &packed, &pivots])
}

/// `linalg_solve…(A, B, left)`: `X` with `A @ X = B`, or `X @ A = B`; vectors where `B` has the shape of a batch of them.
pub(super) fn solve(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (a, x) = (matrices(e, b)?, e.tensor(b, "B")?);
    let (lead, n, _) = split(&a);
    let left = b.bool("left")?;
    let is_vector = x.rank() == 1 || (x.rank() + 1 == a.rank() && x.shape == with(&lead, &[&n]));
    let [packed, pivots, info] = lu(e, &a)?;
    let columns = if is_vector { e.unsqueeze(&x, x.rank())? } else { x };
    let y = if left {
        solved(e, b, (&packed, &pivots), &columns, false)?
    } else {
        let turned = transposed(e, &a)?;
        let [packed, pivots, _] = lu(e, &turned)?;
        let columns = transposed(e, &columns)?;
        let y = solved(e, b, (&packed, &pivots), &columns, false)?;
        transposed(e, &y)?
    };
    let y = if is_vector { e.squeeze(&y, y.from_end(1)?)? } else { y };
    if b.node.results.len() == 2 {
        return given(e, b, &[&y, &info]);
    }
    given(e, b, &[&y, &packed, &pivots, &info])
}

/// `linalg_lu_solve(LU, pivots, B, left, adjoint)`, `lu_solve(B, LU, pivots)`; from the right as the adjoint of the system
/// with the adjoint of `B` from the left.
pub(super) fn lu_solve(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if !b.has("left") {
        let (x, packed, pivots) = (matrices(e, b)?, e.tensor(b, "LU_data")?, e.tensor(b, "LU_pivots")?);
        return one(solved(e, b, (&packed, &pivots), &x, false)?);
    }
    let (packed, pivots, x) = (matrices(e, b)?, e.tensor(b, "pivots")?, e.tensor(b, "B")?);
    let is_adjoint = b.bool("adjoint")?;
    if b.bool("left")? {
        return one(solved(e, b, (&packed, &pivots), &x, is_adjoint)?);
    }
    let x = adjoint(e, &x)?;
    let y = solved(e, b, (&packed, &pivots), &x, !is_adjoint)?;
    one(adjoint(e, &y)?)
}

/// `_lu_with_info(A, pivot)`
pub(super) fn lu_with_info(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    if !b.bool("pivot")? {
        return Err(Error::unsupported(format!("{} without pivots", b.op())));
    }
    let a = matrices(e, b)?;
    let [packed, pivots, info] = lu(e, &a)?;
    given(e, b, &[&packed, &pivots, &info])
}

/// `inverse`: what solves for the unit matrix; with info.
pub(super) fn inverse(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let (_, n, _) = split(&a);
    let unit = eye(e, &n, a.dtype)?;
    let unit = e.expand_to(&unit, &a.shape)?;
    let [packed, pivots, info] = lu(e, &a)?;
    let y = solved(e, b, (&packed, &pivots), &unit, false)?;
    given(e, b, &[&y, &info])
}

pub(super) fn eye(e: &mut Expander<'_, '_>, n: &Expr, dtype: DType) -> Result<V, Error> {
    let args = vec![size_arg(n)];
    e.call1("aten.eye.default", args, &[("dtype", Arg::DType(dtype))], dtype, &[n.clone(), n.clone()])
}

/// `linalg_solve_triangular(A, B, upper, left, unitriangular)`: from the right as the transposed system from the left.
pub(super) fn triangular(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (a, x) = (matrices(e, b)?, e.tensor(b, "B")?);
    need_rank(b.op(), &x, 2)?;
    let (upper, left, unit) = (b.bool("upper")?, b.bool("left")?, b.bool("unitriangular")?);
    if left {
        let (a, x) = aligned(e, b, &a, &x)?;
        return one(substitute(e, &a, &x, upper, unit)?);
    }
    let (a, x) = (transposed(e, &a)?, transposed(e, &x)?);
    let (a, x) = aligned(e, b, &a, &x)?;
    let y = substitute(e, &a, &x, !upper, unit)?;
    one(transposed(e, &y)?)
}

/// `triangular_solve(B, A, upper, transpose, unitriangular) -> (X, A)`
pub(super) fn old_triangular(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, a) = (matrices(e, b)?, e.tensor(b, "A")?);
    let (upper, turns, unit) = (b.bool("upper")?, b.bool("transpose")?, b.bool("unitriangular")?);
    let m = if turns { transposed(e, &a)? } else { a.clone() };
    let (m, x) = aligned(e, b, &m, &x)?;
    let y = substitute(e, &m, &x, upper != turns, unit)?;
    Ok(vec![Some(y), Some(a)])
}

/// The lower Cholesky factor, and info.
fn lower_factor(e: &mut Expander<'_, '_>, a: &V) -> Result<[V; 2], Error> {
    needed(e, "aten.linalg_cholesky_ex.default")?;
    let (lead, ..) = split(a);
    let op = "aten.linalg_cholesky_ex.default";
    let types = vec![a.ty(), tensor_type(DType::I32, &lead)];
    all(op, e.call(op, vec![a.arg()], &[("upper", Arg::Bool(false))], types)?)
}

/// `linalg_cholesky`, `linalg_cholesky_ex`, `cholesky`: the upper factor is the adjoint of the lower one of the adjoint
/// matrix.
pub(super) fn cholesky(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let upper = b.bool("upper")?;
    let a = if upper { adjoint(e, &a)? } else { a };
    let [factor, info] = lower_factor(e, &a)?;
    let factor = if upper { adjoint(e, &factor)? } else { factor };
    given(e, b, &[&factor, &info])
}

/// `cholesky_solve(B, L, upper)`: `X` with `L @ L^H @ X = B`; `cholesky_inverse(L, upper)`: for the unit matrix.
pub(super) fn cholesky_solve(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let first = matrices(e, b)?;
    let (factor, x) = if b.has("input2") {
        (e.tensor(b, "input2")?, first)
    } else {
        let (_, n, _) = split(&first);
        let unit = eye(e, &n, first.dtype)?;
        let unit = e.expand_to(&unit, &first.shape)?;
        (first, unit)
    };
    let (factor, x) = aligned(e, b, &factor, &x)?;
    let turned = adjoint(e, &factor)?;
    let (lower, upper) = if b.bool("upper")? { (turned, factor) } else { (factor, turned) };
    let y = substitute(e, &lower, &x, false, false)?;
    one(substitute(e, &upper, &y, true, false)?)
}

/// `Q` and `R`.
fn qr(e: &mut Expander<'_, '_>, a: &V, mode: &str) -> Result<[V; 2], Error> {
    let (lead, rows, cols) = split(a);
    let inner = if mode == "complete" { rows.clone() } else { least(&rows, &cols) };
    let ty = |a_: &Expr, c: &Expr| tensor_type(a.dtype, &with(&lead, &[a_, c]));
    let types = vec![ty(&rows, &inner), ty(&inner, &cols)];
    all("aten.linalg_qr.default", e.call("aten.linalg_qr.default", vec![a.arg(), Arg::from(mode)], &[], types)?)
}

/// `linalg_eigh`, `linalg_eigvalsh`: `_linalg_eigh`.
pub(super) fn eigh(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    if a.dtype.is_complex() {
        return complex_eigenvalues(e, b, &a);
    }
    let (lead, n, _) = split(&a);
    let types = vec![tensor_type(a.dtype, &with(&lead, &[&n])), a.ty()];
    let args = vec![a.arg(), b.arg("UPLO")?.clone()];
    let [w, v] = all(b.op(), e.call("aten._linalg_eigh.default", args, &[], types)?)?;
    given(e, b, &[&w, &v])
}

/// `U [*, m, k]`, `S [*, k]` and `Vh [*, k, n]`; of wide matrices by the transposed ones. Where symbols hide which they are, the
/// first `k` of what a tall one would give: as the values descend, they are the ones that are not 0.
pub(super) fn thin(e: &mut Expander<'_, '_>, a: &V) -> Result<[V; 3], Error> {
    let (lead, rows, cols) = split(a);
    let k = least(&rows, &cols);
    if k == rows && k != cols {
        let turned = transposed(e, a)?;
        let [u, s, vh] = thin(e, &turned)?;
        return Ok([transposed(e, &vh)?, s, transposed(e, &u)?]);
    }
    needed(e, "aten._linalg_svd.default")?;
    let ty = |sizes: &[&Expr]| tensor_type(a.dtype, &with(&lead, sizes));
    let types = vec![a.ty(), ty(&[&cols]), ty(&[&cols, &cols])];
    let args = vec![a.arg(), Arg::Bool(false)];
    let all: [V; 3] = all("aten._linalg_svd.default", e.call("aten._linalg_svd.default", args, &[], types)?)?;
    if k == cols {
        return Ok(all);
    }
    let ([u, s, vh], first) = (all, Expr::Int(0));
    let (column, row) = (u.from_end(1)?, vh.from_end(2)?);
    let u = e.slice(&u, column, &first, &k, 1)?;
    let s = e.slice(&s, row, &first, &k, 1)?;
    Ok([u, s, e.slice(&vh, row, &first, &k, 1)?])
}

/// Orthonormal columns `[*, m, k]` completed to `[*, m, m]` by those that a QR factorisation adds.
fn completed(e: &mut Expander<'_, '_>, u: &V) -> Result<V, Error> {
    let (_, rows, cols) = split(u);
    if rows == cols {
        return Ok(u.clone());
    }
    let [q, _] = qr(e, u, "complete")?;
    let last = q.from_end(1)?;
    let more = e.slice(&q, last, &cols, &rows, 1)?;
    e.cat(&[u.clone(), more], last)
}

/// `_linalg_svd`, `linalg_svd`, `linalg_svdvals`, `svd`: the last one gives `V`, not its transpose.
pub(super) fn svd(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    if a.dtype.is_complex() {
        return complex_singular(e, b, &a);
    }
    let [mut u, s, mut vh] = thin(e, &a)?;
    if b.op() == "aten.linalg_svdvals.default" {
        return one(s);
    }
    if b.has("compute_uv") && !b.bool("compute_uv")? {
        let mut out = Vec::new();
        for k in 0..3 {
            let (dtype, shape) = e.result(b, k)?;
            out.push(Some(if k == 1 { s.clone() } else { e.full(&shape, dtype, Arg::Int(0))? }));
        }
        return Ok(out);
    }
    let is_full = if b.has("some") { !b.bool("some")? } else { b.bool("full_matrices")? };
    if is_full {
        u = completed(e, &u)?;
        let v = transposed(e, &vh)?;
        let v = completed(e, &v)?;
        vh = transposed(e, &v)?;
    }
    if b.op() == "aten.svd.default" {
        vh = transposed(e, &vh)?;
    }
    given(e, b, &[&u, &s, &vh])
}

/// Squarings after the series of `exp(A / 2^SQUARINGS)`, which is exact to `f64` for norms up to that power.
const SQUARINGS: i32 = 10;

/// `matrix_exp`: the Taylor series of `A / 2^10` to the 13th power, squared ten times, in `f64`.
pub(super) fn exponential(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let a = matrices(e, b)?;
    let (dtype, _) = e.result(b, 0)?;
    let (_, n, _) = split(&a);
    let wide = e.to_dtype(&a, if a.dtype.is_complex() { DType::C128 } else { DType::F64 })?;
    let small = e.mul(&wide, 0.5f64.powi(SQUARINGS))?;
    let unit = eye(e, &n, wide.dtype)?;
    let unit = e.expand_to(&unit, &a.shape)?;
    let mut y = unit.clone();
    for k in (1..=13).rev() {
        let scaled = e.mul(&small, 1.0 / f64::from(k))?;
        let product = super::matmul::product(e, &scaled, &y)?;
        y = e.add(&unit, &product)?;
    }
    for _ in 0..SQUARINGS {
        y = super::matmul::product(e, &y, &y)?;
    }
    one(e.to_dtype(&y, dtype)?)
}
