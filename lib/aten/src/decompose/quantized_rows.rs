//! Quantization of rows (tokens) and of groups of columns, each with a scale and a zero point.
//!
//! Source: the definitions that PyTorch 2.13 registers for `quantized_decomposed`, whose order of roundings is kept.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

fn clamped(e: &mut Expander<'_, '_>, x: &V, least: Arg, most: Arg) -> Result<V, Error> {
    e.call1("aten.clamp.default", vec![x.arg(), least, most], &[], x.dtype, &x.shape)
}

/// What shares parameters as a row, with the parameters beside it: tokens as they are, groups of columns as `[-1, group]`.
struct Rows {
    x: V,
    scales: V,
    zeros: Option<V>,
}

impl Rows {
    fn of(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Result<Rows, Error> {
        let (x, scales, zeros) = (e.tensor(b, "input")?, e.tensor(b, "scales")?, e.opt_tensor(b, "zero_points")?);
        if !b.has("group_size") {
            return Ok(Rows { x, scales, zeros });
        }
        let (Some(columns), 2, mut group) = (x.dim(1).as_int(), x.rank(), b.int("group_size")?) else {
            let message = format!("{} of [{}]; expected a matrix whose columns are counted", b.op(), x.sizes());
            return Err(Error::unsupported(message));
        };
        if group > columns && scales.shape.last() == Some(&Expr::Int(1)) {
            group = columns;
        }
        if group < 1 || columns % group != 0 {
            let message = format!("group_size={group} of {columns} columns; expected a number that divides them");
            return Err(Error::shape(b.op(), message));
        }
        let (every, single) = (Expr::Int(-1), Expr::Int(1));
        let x = e.view(&x, &[every.clone(), Expr::Int(group)])?;
        let scales = e.view(&scales, &[every.clone(), single.clone()])?;
        let zeros = zeros.map(|v| e.view(&v, &[every, single])).transpose()?;
        Ok(Rows { x, scales, zeros })
    }
}

/// `quantize_per_token`, `quantize_per_channel_group`: `clamp(round(x·(1/scale) + zero_point), quant_min, quant_max)`.
pub(super) fn quantize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let rows = Rows::of(e, b)?;
    let inverse = e.unary_float("reciprocal", &rows.scales)?;
    let mut y = e.mul(&rows.x, &inverse)?;
    if let Some(zeros) = &rows.zeros {
        y = e.add(&y, zeros)?;
    }
    let y = e.unary("round", &y)?;
    let y = clamped(e, &y, b.arg("quant_min")?.clone(), b.arg("quant_max")?.clone())?;
    let y = e.to_dtype(&y, dtype)?;
    one(e.view(&y, &shape)?)
}

/// `dequantize_per_token`, `dequantize_per_channel_group`: `(q - zero_point)·scale`, the difference in integers.
pub(super) fn dequantize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let rows = Rows::of(e, b)?;
    let none = e.full(&[], DType::I32, Arg::Int(0))?;
    let y = e.sub(&rows.x, rows.zeros.as_ref().unwrap_or(&none))?;
    let y = e.mul(&y, &rows.scales)?;
    let y = e.to_dtype(&y, dtype)?;
    one(e.view(&y, &shape)?)
}

/// `choose_qparams_per_token(x, dtype)`: `scale = max(max |x|, 1e-5) / 127` of each row, zero points 0.
pub(super) fn choose(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    if b.dtype("dtype")? != Some(DType::I8) {
        return Err(Error::unsupported(format!("{} for another dtype than i8", b.op())));
    }
    let last = x.from_end(1)?;
    let size = e.unary("abs", &x)?;
    let most = e.extreme("amax", &size, &[last], true)?;
    let most = if most.dtype == DType::F16 { e.to_dtype(&most, DType::F32)? } else { most };
    let most = clamped(e, &most, Arg::from(1e-5), Arg::Null)?;
    let scale = e.div(&most, 127i64)?;
    let zero = e.full(&scale.shape, scale.dtype, Arg::Int(0))?;
    given(e, b, [scale, zero])
}

/// `choose_qparams_per_token_asymmetric(x, dtype)`: `scale = (max⁺ - min⁻)/255` of each row with 0 among its numbers, at least
/// the rounding of 1; the zero point is `-128 - min⁻/scale` or `127 - max⁺/scale`, whichever errs less, rounded.
pub(super) fn choose_asymmetric(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let last = x.from_end(1)?;
    let zero = e.full(&[], x.dtype, Arg::Int(0))?;
    let (least, most) = (e.extreme("amin", &x, &[last], true)?, e.extreme("amax", &x, &[last], true)?);
    let (least, most) = (e.binary_default("minimum", &least, &zero)?, e.binary_default("maximum", &most, &zero)?);
    let span = e.sub(&most, &least)?;
    let scale = e.div(&span, 255.0)?;
    let scale = clamped(e, &scale, Arg::from(f64::from(f32::EPSILON)), Arg::Null)?;
    let (low, high) = (e.div(&least, &scale)?, e.div(&most, &scale)?);
    let (under, over) = (e.add(&low, -128i64)?, e.add(&high, 127i64)?);
    let errors = e.add(&under, &over)?;
    let is_low = e.compare("gt", &errors, 0i64)?;
    let (low, high) = (e.unary("neg", &low)?, e.unary("neg", &high)?);
    let (low, high) = (e.add(&low, -128i64)?, e.add(&high, 127i64)?);
    let place = e.select_where(&is_low, &low, &high)?;
    let place = clamped(e, &place, Arg::Int(-128), Arg::Int(127))?;
    let place = e.unary("round", &place)?;
    given(e, b, [scale, place])
}

/// `choose_qparams_symmetric(x, quant_min, quant_max, eps, dtype)`: `scale = max(-min⁻, max⁺)` over half of the range, at least
/// `eps`; the zero point is 0, or 128 of `u8`.
pub(super) fn choose_symmetric(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let all: Vec<usize> = (0..x.rank()).collect();
    let zero = e.full(&[], x.dtype, Arg::Int(0))?;
    let (least, most) = (e.extreme("amin", &x, &all, false)?, e.extreme("amax", &x, &all, false)?);
    let (least, most) = (e.binary_default("minimum", &least, &zero)?, e.binary_default("maximum", &most, &zero)?);
    let least = e.unary("neg", &least)?;
    let most = e.binary_default("maximum", &least, &most)?;
    let levels = super::exact(b.op(), b.int("quant_max")?.checked_sub(b.int("quant_min")?))?;
    let scale = e.div(&most, levels as f64 / 2.0)?;
    let eps = e.full(&[Expr::Int(1)], DType::F32, Arg::from(b.float("eps")?))?;
    let scale = e.binary_default("maximum", &scale, &eps)?;
    let middle = if b.dtype("dtype")? == Some(DType::U8) { 128 } else { 0 };
    let place = e.full(&scale.shape, DType::I64, Arg::Int(middle))?;
    given(e, b, [scale, place])
}

/// A scale and a zero point in the dtypes and shapes of the results.
fn given(e: &mut Expander<'_, '_>, b: &Bound<'_>, made: [V; 2]) -> Results {
    let mut out = Vec::new();
    for (k, v) in made.iter().enumerate() {
        let (dtype, shape) = e.result(b, k)?;
        let v = e.to_dtype(v, dtype)?;
        out.push(Some(e.view(&v, &shape)?));
    }
    Ok(out)
}

/// `convert_element_type.no_fuse(x, dtype)`.
pub(super) fn convert(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let (dtype, _) = e.result(b, 0)?;
    one(e.to_dtype(&x, dtype)?)
}
