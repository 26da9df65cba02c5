//! Gradients of pooling.

use super::finish;
use crate::bind::Bound;
use crate::decompose::exact;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::{V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// One spatial dimension of a pooling.
struct Axis {
    size: Expr,
    out: Expr,
    kernel: i64,
    stride: i64,
    padding: i64,
}

/// The dimensions of a call.
fn axes(b: &Bound<'_>, g: &V, shape: &[Expr], spatial: usize) -> Result<Vec<Axis>, Error> {
    let kernel = b.ints("kernel_size")?;
    let stride = b.ints("stride")?;
    let stride = if stride.is_empty() { kernel.clone() } else { stride };
    let padding = b.ints("padding")?;
    let lead = g.from_end(spatial)?;
    let axis = |k: usize| -> Option<Axis> {
        let (kernel, stride, padding) = (*kernel.get(k)?, *stride.get(k)?, *padding.get(k)?);
        Some(Axis { size: shape.get(lead + k)?.clone(), out: g.dim(lead + k), kernel, stride, padding })
    };
    let axes: Option<Vec<Axis>> = (0..spatial).map(axis).collect();
    let axes = axes.ok_or_else(|| Error::shape(b.op(), format!("numbers for {spatial} dimensions")))?;
    if let Some(a) = axes.iter().find(|a| a.kernel < 1 || a.stride < 1 || a.padding < 0 || a.padding > a.kernel / 2) {
        let found = format!("a window of {} elements, {} apart, with a padding of {}", a.kernel, a.stride, a.padding);
        let message = format!("{found}; expected positive ones and at most half a window of padding");
        return Err(Error::shape(b.op(), message));
    }
    Ok(axes)
}

/// How many elements each window along an axis counts: those inside of the input, or inside of its padding.
fn window_lengths(e: &mut Expander<'_, '_>, axis: &Axis, counts_padding: bool) -> Result<V, Error> {
    let start = e.iota(&axis.out, DType::I64)?;
    let start = e.mul(&start, axis.stride)?;
    let start = e.sub(&start, axis.padding)?;
    let end = e.add(&start, axis.kernel)?;
    let border = if counts_padding { axis.padding } else { 0 };
    let last = e.full(&[], DType::I64, size_arg(&expr::add([axis.size.clone(), Expr::Int(border)])))?;
    let end = e.binary_default("minimum", &end, &last)?;
    let first = e.full(&[], DType::I64, Arg::Int(if counts_padding { -axis.padding } else { 0 }))?;
    let start = e.binary_default("maximum", &start, &first)?;
    e.sub(&end, &start)
}

/// `g` over the divisor of each window.
fn shares(e: &mut Expander<'_, '_>, b: &Bound<'_>, g: &V, axes: &[Axis]) -> Result<V, Error> {
    if let Some(divisor) = b.int_or("divisor_override")? {
        return e.div(g, divisor as f64);
    }
    if !b.bool("ceil_mode")? && axes.iter().all(|a| a.padding == 0) {
        let area = axes.iter().try_fold(1i64, |area, a| area.checked_mul(a.kernel));
        return e.div(g, exact(b.op(), area)? as f64);
    }
    let counts_padding = b.bool("count_include_pad")?;
    let lead = g.from_end(axes.len())?;
    let mut area: Option<V> = None;
    for (k, axis) in axes.iter().enumerate() {
        let n = window_lengths(e, axis, counts_padding)?;
        let n = e.to_dtype(&n, g.dtype)?;
        let n = e.along(&n, lead + k, g.rank())?;
        area = Some(match area {
            Some(area) => e.mul(&area, &n)?,
            None => n,
        });
    }
    match area {
        Some(area) => e.div(g, &area),
        None => Ok(g.clone()),
    }
}

/// `avg_pool2d_backward`, `avg_pool3d_backward`: each element, over the divisor of its window, is added to all places
/// of the window; which a transposed convolution with ones does, channel by channel.
pub(crate) fn average(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let g = e.tensor(b, "grad_output")?;
    let (_, shape) = e.result(b, 0)?;
    let spatial = if b.op().contains("3d") { 3 } else { 2 };
    let axes = axes(b, &g, &shape, spatial)?;
    let g = e.widen(&g)?;
    let share = shares(e, b, &g, &axes)?;
    let planes = expr::mul(shape.iter().take(g.from_end(spatial)?).cloned());
    let mut flat = vec![planes.clone(), Expr::Int(1)];
    flat.extend(axes.iter().map(|a| a.out.clone()));
    let share = e.view(&share, &flat)?;
    let mut kernel = vec![Expr::Int(1); 2];
    kernel.extend(axes.iter().map(|a| Expr::Int(a.kernel)));
    let ones = e.full(&kernel, g.dtype, Arg::Int(1))?;
    let mut wide = vec![planes, Expr::Int(1)];
    let mut pads = vec![(Expr::Int(0), Expr::Int(0)); 2];
    for axis in &axes {
        let steps = expr::mul([expr::sub(axis.out.clone(), Expr::Int(1)), Expr::Int(axis.stride)]);
        let size = expr::add([steps, Expr::Int(axis.kernel)]);
        let end = expr::sub(expr::add([axis.size.clone(), Expr::Int(axis.padding)]), size.clone());
        pads.push((Expr::Int(exact(b.op(), axis.padding.checked_neg())?), end));
        wide.push(size);
    }
    let (zeros, units) = (Arg::ints(vec![0; spatial]), Arg::ints(vec![1; spatial]));
    let stride = Arg::ints(axes.iter().map(|a| a.stride));
    let args =
        vec![share.arg(), ones.arg(), Arg::Null, stride, zeros.clone(), units, Arg::Bool(true), zeros, Arg::Int(1)];
    let y = e.call1("aten.convolution.default", args, &[], g.dtype, &wide)?;
    let y = e.pad(&y, &pads, Arg::from(0.0))?;
    let y = e.view(&y, &shape)?;
    finish(e, b, &y)
}

/// `adaptive_max_poolNd_backward`, `fractional_max_poolNd_backward`: each element is added where its index says, as
/// that of `max_poolNd` does.
pub(crate) fn by_index(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, index) = (e.tensor(b, "grad_output")?, e.tensor(b, "self")?, e.tensor(b, "indices")?);
    let (dtype, shape) = e.result(b, 0)?;
    let spatial = if b.op().contains("3d") { 3 } else { 2 };
    let op = format!("aten.max_pool{spatial}d_with_indices_backward.default");
    let (zeros, units) = (Arg::ints(vec![0; spatial]), Arg::ints(vec![1; spatial]));
    let args = vec![g.arg(), x.arg(), units.clone(), units.clone(), zeros, units, Arg::Bool(false), index.arg()];
    one(e.call1(&op, args, &[], dtype, &shape)?)
}
