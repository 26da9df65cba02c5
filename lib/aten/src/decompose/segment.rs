//! Sums over runs of rows, overlapping patches.

use super::exact;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{V, size_arg};
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

/// `col2im(x [N, C·kh·kw, L], output_size, kernel, dilation, padding, stride)`: every element added to the place of the
/// picture `[N, C, H, W]` that it was taken from.
pub(super) fn col2im(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let (kernel, dilation) = (b.ints("kernel_size")?, b.ints("dilation")?);
    let (padding, stride, size) = (b.ints("padding")?, b.ints("stride")?, e.sizes(b, "output_size")?);
    let mut places = Vec::new();
    let mut padded = Vec::new();
    for k in 0..2 {
        let get = |v: &[i64]| v.get(k).copied().ok_or_else(|| Error::shape(b.op(), "two numbers for each dimension"));
        let (kern, dil, pad, step) = (get(&kernel)?, get(&dilation)?, get(&padding)?, get(&stride)?);
        let n = size.get(k).cloned().ok_or_else(|| Error::shape(b.op(), "two sizes of the picture"))?;
        let margin = exact(b.op(), pad.checked_mul(2))?;
        let wide = expr::add([n.clone(), Expr::Int(margin)]);
        let reach = exact(b.op(), kern.checked_sub(1).and_then(|k| k.checked_mul(dil)?.checked_add(1)))?;
        let room = expr::sub(wide.clone(), Expr::Int(reach));
        let windows = expr::add([expr::floor_div(room, Expr::Int(step.max(1))), Expr::Int(1)]);
        let inner = e.iota(&Expr::Int(kern), DType::I64)?;
        let inner = e.mul(&inner, dil)?;
        let inner = e.unsqueeze(&inner, 1)?;
        let outer = e.iota(&windows, DType::I64)?;
        let outer = e.mul(&outer, step)?;
        places.push(e.add(&inner, &outer)?);
        padded.push((wide, Expr::Int(pad), n));
    }
    let ([rows, cols], [(h, ph, nh), (w, pw, nw)]) = (places.as_slice(), padded.as_slice()) else {
        return Err(Error::shape(b.op(), "two dimensions"));
    };
    let rows = e.view(rows, &[rows.dim(0), Expr::Int(1), rows.dim(1), Expr::Int(1)])?;
    let rows = e.mul(&rows, &size_arg(w))?;
    let cols = e.view(cols, &[Expr::Int(1), cols.dim(0), Expr::Int(1), cols.dim(1)])?;
    let index = e.add(&rows, &cols)?;
    let index = e.view(&index, &[Expr::Int(1), Expr::Int(1), Expr::Int(-1)])?;
    let lead = if x.rank() == 3 { x.dim(0) } else { Expr::Int(1) };
    let channels = shape.get(shape.len().saturating_sub(3)).cloned().unwrap_or(Expr::Int(1));
    let flat = [lead.clone(), channels.clone(), index.dim(2)];
    let x = e.view(&x, &flat)?;
    let index = e.expand_to(&index, &flat)?;
    let plane = [lead.clone(), channels.clone(), expr::mul([h.clone(), w.clone()])];
    let zeros = e.full(&plane, dtype, Arg::Int(0))?;
    let args = vec![zeros.arg(), Arg::Int(2), index.arg(), x.arg()];
    let y = e.call1("aten.scatter_add.default", args, &[], dtype, &plane)?;
    let y = e.view(&y, &[lead, channels, h.clone(), w.clone()])?;
    let y = e.slice(&y, 2, ph, &expr::add([ph.clone(), nh.clone()]), 1)?;
    let y = e.slice(&y, 3, pw, &expr::add([pw.clone(), nw.clone()]), 1)?;
    one(e.view(&y, &shape)?)
}

/// `segment_reduce(data, reduce, lengths or offsets, axis, initial)`: `sum mean max min prod` of runs of `data` along
/// `axis`, `lengths [*, s]` having the leading dimensions of the data up to it. What `initial` is counts as an element
/// of each run, but not for the mean's divisor.
pub(super) fn reduce(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "data")?;
    let (dtype, _) = e.result(b, 0)?;
    let axis = crate::infer::wrap_dim(b.op(), b.int("axis")?, x.rank())?;
    let (start, end) = bounds(e, b)?;
    let line = e.iota(&x.dim(axis), DType::I64)?;
    let (start, end) = (e.unsqueeze(&start, start.rank())?, e.unsqueeze(&end, end.rank())?);
    let (after, before) = (e.compare("ge", &line, &start)?, e.compare("lt", &line, &end)?);
    let is_own = e.binary_default("logical_and", &after, &before)?;
    let tail = vec![Expr::Int(1); x.rank().saturating_sub(axis + 1)];
    let mut sizes = is_own.shape.clone();
    sizes.extend(tail.iter().cloned());
    let is_own = e.view(&is_own, &sizes)?;
    let wide = e.widen(&x)?;
    let rows = e.unsqueeze(&wide, axis)?;
    let reduce = b.str("reduce")?;
    let nothing = match reduce {
        "sum" | "mean" => 0.0,
        "prod" => 1.0,
        "max" => f64::NEG_INFINITY,
        "min" => f64::INFINITY,
        other => return Err(Error::shape(b.op(), format!("reduce {other:?}; expected sum, mean, max, min or prod"))),
    };
    let nothing = e.full(&[], wide.dtype, Arg::from(nothing))?;
    let own = e.select_where(&is_own, &rows, &nothing)?;
    let place = axis + 1;
    let mut y = match reduce {
        "max" => e.extreme("amax", &own, &[place], false)?,
        "min" => e.extreme("amin", &own, &[place], false)?,
        "prod" => {
            let shape = crate::infer::reduced(&own.shape, &[place], false);
            let args = vec![own.arg(), Arg::Int(i64::try_from(place).unwrap_or(0))];
            e.call1("aten.prod.dim_int", args, &[], own.dtype, &shape)?
        }
        _ => e.sum(&own, &[place], false)?,
    };
    let initial = b.opt_scalar("initial")?.cloned();
    if let Some(initial) = &initial {
        let initial = e.full(&[], y.dtype, initial.clone())?;
        y = match reduce {
            "max" => e.binary_default("maximum", &y, &initial)?,
            "min" => e.binary_default("minimum", &y, &initial)?,
            "prod" => e.mul(&y, &initial)?,
            _ => e.add(&y, &initial)?,
        };
    }
    if reduce == "mean" {
        let count = e.sub(&end, &start)?;
        let mut sizes = count.shape.clone();
        sizes.truncate(place);
        sizes.extend(tail);
        let count = e.view(&count, &sizes)?;
        let wide_count = e.to_dtype(&count, y.dtype)?;
        let mean = e.div(&y, &wide_count)?;
        let is_empty = e.compare("eq", &count, 0i64)?;
        y = if initial.is_some() { e.select_where(&is_empty, &y, &mean)? } else { mean };
    }
    one(e.to_dtype(&y, dtype)?)
}

/// Where each run begins and ends.
fn bounds(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<(V, V), Error> {
    if let Some(offsets) = e.opt_tensor(b, "offsets")? {
        let offsets = e.to_dtype(&offsets, DType::I64)?;
        let last = offsets.from_end(1)?;
        let size = offsets.dim(last);
        let start = e.slice(&offsets, last, &Expr::Int(0), &expr::sub(size.clone(), Expr::Int(1)), 1)?;
        return Ok((start, e.slice(&offsets, last, &Expr::Int(1), &size, 1)?));
    }
    let Some(lengths) = e.opt_tensor(b, "lengths")? else {
        return Err(Error::unsupported("segment_reduce by indices; expected lengths or offsets"));
    };
    let lengths = e.to_dtype(&lengths, DType::I64)?;
    let args = vec![lengths.arg(), Arg::Int(-1)];
    let end = e.call1("aten.cumsum.default", args, &[], DType::I64, &lengths.shape)?;
    Ok((e.sub(&end, &lengths)?, end))
}
