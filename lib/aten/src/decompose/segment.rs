//! Sums over runs of rows: products by expert, overlapping patches.

use super::{exact, pieces};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// Adds row `i` of `src` to row `index[i]` of zeros `[count, …]`.
pub(super) fn add_rows(e: &mut Expander<'_, '_>, src: &V, index: &V, count: &Expr) -> Result<V, Error> {
    let mut shape = src.shape.clone();
    if let Some(rows) = shape.first_mut() {
        *rows = count.clone();
    }
    let zeros = e.full(&shape, src.dtype, Arg::Int(0))?;
    let index = e.along(index, 0, src.rank())?;
    let index = e.expand_to(&index, &src.shape)?;
    let args = vec![zeros.arg(), Arg::Int(0), index.arg(), src.arg()];
    e.call1("aten.scatter_add.default", args, &[], src.dtype, &shape)
}

/// `grouped_mm_fallback(x [S, K], weight [E, K, N], offs [E])`: row `s` times the weight of the expert whose rows it is
/// among, `offs` being the running counts of rows; 0 for rows after the last. Source: transformers' reference.
pub(super) fn grouped_mm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, weight, offs) = (e.tensor(b, "input")?, e.tensor(b, "weight")?, e.tensor(b, "offs")?);
    let (dtype, shape) = e.result(b, 0)?;
    let Some(experts) = weight.dim(0).as_int() else {
        return Err(Error::unsupported(format!("a symbolic number of experts, {}", weight.dim(0))));
    };
    let row = e.iota(&x.dim(0), offs.dtype)?;
    let row = e.unsqueeze(&row, 1)?;
    let passed = e.compare("le", &offs, &row)?;
    let expert = e.sum(&passed, &[1], true)?;
    let mut y = e.full(&shape, dtype, Arg::Int(0))?;
    for k in 0..pieces(b.op(), experts)? {
        let own = e.select(&weight, 0, &Expr::Int(k))?;
        let product = e.mm(&x, &own)?;
        let is_own = e.compare("eq", &expert, k)?;
        y = e.select_where(&is_own, &product, &y)?;
    }
    one(y)
}

/// `col2im(x [N, C·kh·kw, L], output_size, kernel, dilation, padding, stride)`: every element added to the place of the
/// picture `[N, C, H, W]` that it was taken from.
pub(super) fn col2im(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let (kernel, dilation) = (b.ints("kernel_size")?, b.ints("dilation")?);
    let (padding, stride, size) = (b.ints("padding")?, b.ints("stride")?, b.ints("output_size")?);
    let mut places = Vec::new();
    let mut padded = Vec::new();
    for k in 0..2 {
        let get = |v: &[i64]| v.get(k).copied().ok_or_else(|| Error::shape(b.op(), "two numbers for each dimension"));
        let (n, kern, dil, pad, step) = (get(&size)?, get(&kernel)?, get(&dilation)?, get(&padding)?, get(&stride)?);
        let wide = exact(b.op(), pad.checked_mul(2).and_then(|p| p.checked_add(n)))?;
        let reach = exact(b.op(), kern.checked_sub(1).and_then(|k| k.checked_mul(dil)))?;
        let room = exact(b.op(), wide.checked_sub(reach).and_then(|r| r.checked_sub(1)))?;
        let windows = room / step.max(1) + 1;
        let inner = e.iota(&Expr::Int(kern), DType::I64)?;
        let inner = e.mul(&inner, dil)?;
        let inner = e.unsqueeze(&inner, 1)?;
        let outer = e.iota(&Expr::Int(windows), DType::I64)?;
        let outer = e.mul(&outer, step)?;
        places.push(e.add(&inner, &outer)?);
        padded.push((wide, pad, n));
    }
    let ([rows, cols], [(h, ph, nh), (w, pw, nw)]) = (places.as_slice(), padded.as_slice()) else {
        return Err(Error::shape(b.op(), "two dimensions"));
    };
    let rows = e.view(rows, &[rows.dim(0), Expr::Int(1), rows.dim(1), Expr::Int(1)])?;
    let rows = e.mul(&rows, *w)?;
    let cols = e.view(cols, &[Expr::Int(1), cols.dim(0), Expr::Int(1), cols.dim(1)])?;
    let index = e.add(&rows, &cols)?;
    let index = e.view(&index, &[Expr::Int(1), Expr::Int(1), Expr::Int(-1)])?;
    let lead = if x.rank() == 3 { x.dim(0) } else { Expr::Int(1) };
    let channels = shape.get(shape.len().saturating_sub(3)).cloned().unwrap_or(Expr::Int(1));
    let flat = [lead.clone(), channels.clone(), index.dim(2)];
    let x = e.view(&x, &flat)?;
    let index = e.expand_to(&index, &flat)?;
    let plane = [lead.clone(), channels.clone(), Expr::Int(exact(b.op(), h.checked_mul(*w))?)];
    let zeros = e.full(&plane, dtype, Arg::Int(0))?;
    let args = vec![zeros.arg(), Arg::Int(2), index.arg(), x.arg()];
    let y = e.call1("aten.scatter_add.default", args, &[], dtype, &plane)?;
    let y = e.view(&y, &[lead, channels, Expr::Int(*h), Expr::Int(*w)])?;
    let y = e.slice(&y, 2, &Expr::Int(*ph), &expr::add([Expr::Int(*ph), Expr::Int(*nh)]), 1)?;
    let y = e.slice(&y, 3, &Expr::Int(*pw), &expr::add([Expr::Int(*pw), Expr::Int(*nw)]), 1)?;
    one(e.view(&y, &shape)?)
}
