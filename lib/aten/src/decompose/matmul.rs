//! Products of matrices of every rank, in terms of `mm`, `bmm` and `linear`.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::broadcast;
use crate::promote::accumulate_dtype;
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// `a @ b` of any ranks: vectors become matrices for the product; leading dimensions broadcast.
/// Source: `torch.matmul`.
pub(super) fn product(e: &mut Expander<'_, '_>, a: &V, b: &V) -> Result<V, Error> {
    match (a.rank(), b.rank()) {
        (0, _) | (_, 0) => Err(Error::shape("matmul", "an operand without dimensions; expected at least 1")),
        (1, 1) => {
            let row = e.unsqueeze(a, 0)?;
            let col = e.unsqueeze(b, 1)?;
            let y = e.mm(&row, &col)?;
            e.view(&y, &[])
        }
        (1, _) => {
            let row = e.unsqueeze(a, 0)?;
            let y = product(e, &row, b)?;
            e.squeeze(&y, y.from_end(2)?)
        }
        (_, 1) => {
            let col = e.unsqueeze(b, 1)?;
            let y = product(e, a, &col)?;
            e.squeeze(&y, y.from_end(1)?)
        }
        (2, 2) => e.mm(a, b),
        (n, 2) => {
            let rows = expr::mul(a.shape.iter().take(n - 1).cloned());
            let flat = e.view(a, &[rows, a.dim(n - 1)])?;
            let y = e.mm(&flat, b)?;
            let mut shape: Vec<Expr> = a.shape.iter().take(n - 1).cloned().collect();
            shape.push(b.dim(1));
            e.view(&y, &shape)
        }
        (n, m) => {
            let lead = broadcast("matmul", lead(a), lead(b))?;
            let (a3, b3) = (batched(e, a, &lead)?, batched(e, b, &lead)?);
            let y = e.bmm(&a3, &b3)?;
            let mut shape = lead;
            shape.extend([a.dim(n - 2), b.dim(m - 1)]);
            e.view(&y, &shape)
        }
    }
}

fn lead(v: &V) -> &[Expr] {
    v.shape.get(..v.rank().saturating_sub(2)).unwrap_or(&[])
}

/// `[…, m, n]` stretched to the leading sizes and flattened to `[batch, m, n]`.
fn batched(e: &mut Expander<'_, '_>, v: &V, lead: &[Expr]) -> Result<V, Error> {
    let inner = [v.dim(v.from_end(2)?), v.dim(v.from_end(1)?)];
    let full: Vec<Expr> = lead.iter().cloned().chain(inner.clone()).collect();
    let wide = e.expand_to(v, &full)?;
    let [m, n] = inner;
    e.view(&wide, &[expr::mul(lead.iter().cloned()), m, n])
}

/// `matmul mv dot vdot inner-like`: the operands are the first two arguments; `vdot` conjugates the first one.
pub(super) fn matmul(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let name = |k: usize| b.schema.args.get(k).map_or("self", |a| a.name);
    let (mut x, y) = (e.tensor(b, name(0))?, e.tensor(b, name(1))?);
    if b.op() == "aten.vdot.default" && x.dtype.is_complex() {
        x = e.unary("conj_physical", &x)?;
    }
    one(product(e, &x, &y)?)
}

/// `_int_mm`: the product of `i8` matrices in `i32`.
pub(super) fn int_mm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "mat2")?);
    let (dtype, _) = e.result(b, 0)?;
    let (x, y) = (e.to_dtype(&x, dtype)?, e.to_dtype(&y, dtype)?);
    one(e.mm(&x, &y)?)
}

/// `outer`: `y[i, j] = a[i] · b[j]`
pub(super) fn outer(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "vec2")?);
    let x = e.unsqueeze(&x, 1)?;
    one(e.mul(&x, &y)?)
}

/// `addmm addbmm addmv baddbmm`: `beta · self + alpha · (a @ b)`, rounded once. With a bias row, which is how a linear
/// layer decomposes, `linear` says the same and keeps the sum unrounded. Factors of integer products are whole numbers:
/// fractions are cut off, as `Scalar::to` does.
pub(super) fn add_product(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, _) = e.result(b, 0)?;
    let bias = e.tensor(b, "self")?;
    let name = |k: usize| b.schema.args.get(k).map_or("self", |a| a.name);
    let (x, y) = (e.tensor(b, name(1))?, e.tensor(b, name(2))?);
    let factor = |name| -> Result<Arg, Error> {
        Ok(match b.scalar(name)? {
            Arg::Float(x) if dtype.is_integer() => Arg::Int(x.0 as i64),
            other => other.clone(),
        })
    };
    let (beta, alpha) = (factor("beta")?, factor("alpha")?);
    let is_one = |n: &Arg| matches!(n, Arg::Int(1)) || matches!(n, Arg::Float(f) if f.0 == 1.0);
    let is_zero = |n: &Arg| matches!(n, Arg::Int(0)) || matches!(n, Arg::Float(f) if f.0 == 0.0);
    let is_plain = is_one(&beta) && is_one(&alpha);
    if b.op() == "aten.addmm.default"
        && is_plain
        && bias.rank() == 1
        && bias.dim(0) == y.dim(1)
        && e.is_lowerable("aten.linear.default")
    {
        let weight = e.transpose(&y, 0, 1)?;
        let args = vec![x.arg(), weight.arg(), bias.arg()];
        return one(e.call1("aten.linear.default", args, &[], dtype, &[x.dim(0), y.dim(1)])?);
    }
    let wide = accumulate_dtype(dtype);
    let (x, y) = (e.to_dtype(&x, wide)?, e.to_dtype(&y, wide)?);
    let product = product(e, &x, &y)?;
    let product = if b.op() == "aten.addbmm.default" { e.sum(&product, &[0], false)? } else { product };
    let product = if is_one(&alpha) { product } else { e.mul(&product, &alpha)? };
    if is_zero(&beta) {
        // PyTorch ignores the bias then, NaN included.
        return one(e.to_dtype(&product, dtype)?);
    }
    let bias = e.to_dtype(&bias, wide)?;
    let bias = if is_one(&beta) { bias } else { e.mul(&bias, &beta)? };
    let sum = e.add(&product, &bias)?;
    one(e.to_dtype(&sum, dtype)?)
}

/// `linear` for a target without it: `x @ weightᵀ + bias`.
pub(super) fn linear(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, weight) = (e.tensor(b, "input")?, e.tensor(b, "weight")?);
    let (dtype, _) = e.result(b, 0)?;
    let (x, weight) = (e.widen(&x)?, e.widen(&weight)?);
    let weight = if weight.rank() == 2 { e.transpose(&weight, 0, 1)? } else { weight };
    let mut y = product(e, &x, &weight)?;
    if let Some(bias) = e.opt_tensor(b, "bias")? {
        let bias = e.widen(&bias)?;
        y = e.add(&y, &bias)?;
    }
    one(e.to_dtype(&y, dtype)?)
}

/// `bilinear(x1, x2, weight, bias)`: `y[…, o] = Σ_ij x1[…, i] · w[o, i, j] · x2[…, j] + bias[o]`.
pub(super) fn bilinear(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y, w) = (e.tensor(b, "input1")?, e.tensor(b, "input2")?, e.tensor(b, "weight")?);
    let (dtype, shape) = e.result(b, 0)?;
    super::need_rank(b.op(), &w, 3)?;
    let (o, i, j) = (w.dim(0), w.dim(1), w.dim(2));
    let rows = expr::mul(x.shape.iter().take(x.from_end(1)?).cloned());
    let x = e.view(&x, &[rows.clone(), i.clone()])?;
    let y = e.view(&y, &[rows.clone(), j.clone()])?;
    let (x, y, w) = (e.widen(&x)?, e.widen(&y)?, e.widen(&w)?);
    let w = e.permute(&w, &[1, 0, 2])?;
    let w = e.view(&w, &[i, expr::mul([o.clone(), j.clone()])])?;
    let part = e.mm(&x, &w)?;
    let part = e.view(&part, &[rows.clone(), o, j])?;
    let y = e.unsqueeze(&y, 1)?;
    let z = e.mul(&part, &y)?;
    let mut z = e.sum(&z, &[2], false)?;
    if let Some(bias) = e.opt_tensor(b, "bias")? {
        let bias = e.widen(&bias)?;
        z = e.add(&z, &bias)?;
    }
    let z = e.view(&z, &shape)?;
    one(e.to_dtype(&z, dtype)?)
}

/// `linalg_multi_dot`, `chain_matmul`: products from the left.
pub(super) fn multi_dot(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let name = b.schema.args.first().map_or("tensors", |a| a.name);
    let items = e.tensors(b, name)?;
    let mut items = items.iter();
    let mut y = items.next().cloned().ok_or_else(|| Error::shape(b.op(), "no matrices"))?;
    for x in items {
        y = product(e, &y, x)?;
    }
    one(y)
}

/// `linalg_matrix_power(n)`: repeated squaring, of the inverse where `n` is negative; the unit matrix for 0.
pub(super) fn matrix_power(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let mut x = e.tensor(b, "self")?;
    let n = b.int("n")?;
    if n == 0 {
        let unit = super::solve::eye(e, &x.dim(x.from_end(1)?), x.dtype)?;
        return one(e.expand_to(&unit, &x.shape)?);
    }
    if n < 0 {
        x = e.call1("aten.linalg_inv.default", vec![x.arg()], &[], x.dtype, &x.shape)?;
    }
    let (mut n, mut square, mut y) = (n.unsigned_abs(), x, None::<V>);
    loop {
        if n % 2 == 1 {
            y = Some(match y {
                Some(y) => product(e, &y, &square)?,
                None => square.clone(),
            });
        }
        n /= 2;
        if n == 0 {
            break;
        }
        square = product(e, &square, &square)?;
    }
    one(y.ok_or_else(|| Error::shape(b.op(), "no factor"))?)
}

/// `tensordot(a, b, dims)`: the named dimensions are summed over, the others follow one another.
pub(super) fn tensordot(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (_, shape) = e.result(b, 0)?;
    let wrap = |dims: Vec<i64>, v: &V| {
        dims.iter().map(|d| crate::infer::wrap_dim(b.op(), *d, v.rank())).collect::<Result<Vec<_>, _>>()
    };
    let (dx, dy) = (wrap(b.ints("dims_self")?, &x)?, wrap(b.ints("dims_other")?, &y)?);
    // A dimension of size 1 meets every size: the other tensor is summed over it first.
    let (mut x, mut y) = (x, y);
    for (i, j) in dx.iter().zip(&dy) {
        match (x.dim(*i), y.dim(*j)) {
            (Expr::Int(1), Expr::Int(n)) if n != 1 => y = e.sum(&y, &[*j], true)?,
            (Expr::Int(n), Expr::Int(1)) if n != 1 => x = e.sum(&x, &[*i], true)?,
            _ => {}
        }
    }
    let rest = |v: &V, dims: &[usize]| (0..v.rank()).filter(|d| !dims.contains(d)).collect::<Vec<_>>();
    let (rx, ry) = (rest(&x, &dx), rest(&y, &dy));
    let size = |v: &V, dims: &[usize]| expr::mul(dims.iter().map(|d| v.dim(*d)));
    let (m, k, n) = (size(&x, &rx), size(&x, &dx), size(&y, &ry));
    let x = e.permute(&x, &[rx, dx].concat())?;
    let x = e.view(&x, &[m, k.clone()])?;
    let y = e.permute(&y, &[dy, ry].concat())?;
    let y = e.view(&y, &[k, n])?;
    let z = e.mm(&x, &y)?;
    one(e.view(&z, &shape)?)
}

/// `kron`: `[a, b]` and `[c, d]` to `[a·c, b·d]`, every product of elements.
pub(super) fn kron(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (_, shape) = e.result(b, 0)?;
    let rank = x.rank().max(y.rank());
    let (mut sx, mut sy) = (Vec::new(), Vec::new());
    for k in 0..rank {
        let at = |v: &V| (k + v.rank()).checked_sub(rank).map_or(Expr::Int(1), |d| v.dim(d));
        sx.extend([at(&x), Expr::Int(1)]);
        sy.extend([Expr::Int(1), at(&y)]);
    }
    let (x, y) = (e.view(&x, &sx)?, e.view(&y, &sy)?);
    let z = e.mul(&x, &y)?;
    one(e.view(&z, &shape)?)
}

/// `linalg_cross`, `cross`: along a dimension of size 3, `y_i = a_{i+1} b_{i+2} - a_{i+2} b_{i+1}`.
pub(super) fn cross(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (_, shape) = e.result(b, 0)?;
    let dim = match b.int_or("dim")? {
        Some(dim) => crate::infer::wrap_dim(b.op(), dim, x.rank())?,
        None => shape.iter().position(|s| *s == Expr::Int(3)).unwrap_or(0),
    };
    let (x, y) = (e.expand_to(&x, &shape)?, e.expand_to(&y, &shape)?);
    let mut turned = Vec::new();
    for (v, first) in [(&x, 1), (&y, 2), (&x, 2), (&y, 1)] {
        let head = e.slice(v, dim, &Expr::Int(first), &Expr::Int(3), 1)?;
        let tail = e.slice(v, dim, &Expr::Int(0), &Expr::Int(first), 1)?;
        turned.push(e.cat(&[head, tail], dim)?);
    }
    let [a, c, d, f] = turned.as_slice() else { return Err(Error::shape(b.op(), "four operands")) };
    let (plus, minus) = (e.mul(a, c)?, e.mul(d, f)?);
    one(e.sub(&plus, &minus)?)
}

/// `_trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim)`: the product of all three, each with dimensions of size 1
/// put in where its list says, summed over `sumdim`. A dimension that all three lack comes out without elements.
pub(super) fn trilinear(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (first, second, third) = (b.ints("expand1")?, b.ints("expand2")?, b.ints("expand3")?);
    if first.iter().any(|dim| second.contains(dim) && third.contains(dim)) && shape.contains(&Expr::Int(0)) {
        return one(e.full(&shape, dtype, Arg::Int(0))?);
    }
    let mut product: Option<V> = None;
    for (name, dims) in [("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")] {
        let x = e.tensor(b, name)?;
        let mut x = e.widen(&x)?;
        let mut dims = b.ints(dims)?;
        dims.sort_unstable();
        for dim in dims {
            let dim = crate::infer::wrap_dim(b.op(), dim, x.rank() + 1)?;
            x = e.unsqueeze(&x, dim)?;
        }
        product = Some(match product {
            Some(p) => e.mul(&p, &x)?,
            None => x,
        });
    }
    let product = product.ok_or_else(|| Error::shape(b.op(), "no operands"))?;
    let dims = b.ints("sumdim")?;
    let dims = if dims.is_empty() { Vec::new() } else { e.dims(b.op(), Some(&dims), &product)? };
    let y = e.sum(&product, &dims, false)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `addr(self, u, v, beta, alpha)`: `beta·self + alpha·u vᵀ`, without the first where `beta` is 0; for bool "and" and
/// "or" instead of both.
pub(super) fn addr(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, u, v) = (e.tensor(b, "self")?, e.tensor(b, "vec1")?, e.tensor(b, "vec2")?);
    let (dtype, shape) = e.result(b, 0)?;
    let (alpha, beta) = (b.scalar("alpha")?.clone(), b.scalar("beta")?.clone());
    let is = |arg: &Arg, n: i64| *arg == Arg::Int(n) || *arg == Arg::Bool(n == 1) || *arg == Arg::from(n as f64);
    let wide = accumulate_dtype(dtype);
    let (u, v) = (e.to_dtype(&u, wide)?, e.to_dtype(&v, wide)?);
    let u = e.unsqueeze(&u, 1)?;
    let times = |e: &mut Expander<'_, '_>, x: &V, n: &Arg| -> Result<V, Error> {
        match dtype {
            _ if is(n, 1) => Ok(x.clone()),
            DType::Bool => e.full(&x.shape, DType::Bool, false),
            _ => e.mul(x, n),
        }
    };
    let join = |e: &mut Expander<'_, '_>, op: &str, a: &V, c: &V| -> Result<V, Error> {
        match (dtype, op) {
            (DType::Bool, _) => e.binary_default(if op == "mul" { "logical_and" } else { "logical_or" }, a, c),
            (_, "mul") => e.mul(a, c),
            _ => e.add(a, c),
        }
    };
    let product = join(e, "mul", &u, &v)?;
    let product = times(e, &product, &alpha)?;
    let y = if is(&beta, 0) {
        product
    } else {
        let x = e.to_dtype(&x, wide)?;
        let x = times(e, &x, &beta)?;
        join(e, "add", &x, &product)?
    };
    let y = e.expand_to(&y, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `inner(a, b)`: the sum of products along the last dimension of both, for each two rows; of a number the product.
pub(super) fn inner(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "self")?, e.tensor(b, "other")?);
    let (dtype, shape) = e.result(b, 0)?;
    if x.rank() == 0 || y.rank() == 0 {
        return one(e.mul(&x, &y)?);
    }
    let last = Arg::ints([-1]);
    one(e.call1("aten.tensordot.default", vec![x.arg(), y.arg(), last.clone(), last], &[], dtype, &shape)?)
}

/// `linalg_vecdot(x, y, dim)`: `Σ conj(x)·y`
pub(super) fn vecdot(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, y) = (e.tensor(b, "x")?, e.tensor(b, "y")?);
    let (dtype, _) = e.result(b, 0)?;
    let (x, y) = (e.widen(&x)?, e.widen(&y)?);
    let x = if x.dtype.is_complex() { e.unary("conj_physical", &x)? } else { x };
    let z = e.mul(&x, &y)?;
    let dim = crate::infer::wrap_dim(b.op(), b.int("dim")?, z.rank())?;
    let z = e.sum(&z, &[dim], false)?;
    one(e.to_dtype(&z, dtype)?)
}

/// `_addmm_activation(self, mat1, mat2, beta, alpha, use_gelu)`: `relu` or `gelu` of `addmm`; on a GPU
/// PyTorch takes the tangent's `gelu`.
pub(super) fn add_product_activation(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let args = ["self", "mat1", "mat2"].map(|name| b.arg(name).cloned());
    let args = args.into_iter().collect::<Result<Vec<_>, _>>()?;
    let factors = [("beta", b.arg("beta")?.clone()), ("alpha", b.arg("alpha")?.clone())];
    let y = e.call1("aten.addmm.default", args, &factors, dtype, &shape)?;
    if !b.bool("use_gelu")? {
        return one(e.unary("relu", &y)?);
    }
    one(e.unary("gelu", &y)?)
}
