//! The affine operators of torchao, as arithmetic.
//!
//! A block of elements shares a scale and a zero point; `block_size` has its extent along each dimension, so that 1
//! everywhere but the last dimension is per token, and smaller numbers there are groups. Source: the definitions of
//! torchao's `quant_primitives`.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::divide;
use crate::value::V;
use m2m_record::dtype::Class;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// A tensor cut into blocks: dimensions that hold several are two.
struct Blocks {
    /// The shape with such dimensions split.
    split: Vec<Expr>,
    /// The dimensions of it that lie inside of blocks.
    inside: Vec<usize>,
}

impl Blocks {
    fn of(e: &Expander<'_, '_>, b: &Bound<'_>, x: &V) -> Result<Blocks, Error> {
        let extents = e.sizes(b, "block_size")?;
        if extents.len() != x.rank() {
            return Err(Error::shape(b.op(), format!("{} block sizes for rank {}", extents.len(), x.rank())));
        }
        let mut blocks = Blocks { split: Vec::new(), inside: Vec::new() };
        for (size, extent) in x.shape.iter().zip(extents) {
            if extent == Expr::Int(1) {
                blocks.split.push(size.clone());
            } else {
                if extent != *size {
                    blocks.split.push(divide(size, &extent));
                }
                blocks.inside.push(blocks.split.len());
                blocks.split.push(extent);
            }
        }
        Ok(blocks)
    }

    /// The shape of one number a block, to broadcast over `split`.
    fn outer(&self) -> Vec<Expr> {
        let one = |(k, size): (usize, &Expr)| if self.inside.contains(&k) { Expr::Int(1) } else { size.clone() };
        self.split.iter().enumerate().map(one).collect()
    }
}

/// The least and the greatest integer: as given, or those of the dtype.
fn bounds(b: &Bound<'_>, dtype: DType) -> Result<(i64, i64), Error> {
    let given = |name: &str| match b.arg(name)? {
        Arg::Null => Ok(None),
        Arg::Int(n) => Ok(Some(*n)),
        Arg::Float(x) if x.0.fract() == 0.0 => Ok(Some(x.0 as i64)),
        other => Err(Error::unsupported(format!("{} with {name}={}", b.op(), crate::bind::describe(other)))),
    };
    let own = match dtype.class() {
        Class::Signed if dtype.bits() < 64 => (-(1i64 << (dtype.bits() - 1)), (1i64 << (dtype.bits() - 1)) - 1),
        Class::Unsigned if dtype.bits() < 63 => (0, (1i64 << dtype.bits()) - 1),
        _ => return Err(Error::unsupported(format!("{} to {dtype}", b.op()))),
    };
    Ok((given("quant_min")?.unwrap_or(own.0), given("quant_max")?.unwrap_or(own.1)))
}

fn integer_domain(b: &Bound<'_>) -> Result<(), Error> {
    match b.str_or("zero_point_domain")? {
        None | Some("INT" | "NONE") => Ok(()),
        Some(other) => Err(Error::unsupported(format!("{} with zero points in the domain {other}", b.op()))),
    }
}

/// `choose_qparams_affine`: of the extremes of each block with 0 among them. `SYMMETRIC`: `max(max, -min)` over half of the
/// range, zero point in the middle; `SYMMETRIC_NO_CLIPPING_ERR`: the greater of `min/quant_min` and `max/quant_max`;
/// `ASYMMETRIC`: `(max - min)` over the range, zero point `quant_min - round(min/scale)`. Scales are at least `eps`.
pub(super) fn choose(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "input")?;
    let Some(target) = b.dtype("target_dtype")? else { return Err(Error::shape(b.op(), "no target dtype")) };
    let (low, high) = bounds(b, target)?;
    let range = high.checked_sub(low).ok_or_else(|| Error::shape(b.op(), "quant_max - quant_min overflows"))? as f64;
    let eps = b.float_or("eps")?.unwrap_or(match x.dtype {
        DType::F64 => f64::EPSILON,
        DType::BF16 => 0.007_812_5,
        DType::F16 => 0.000_976_562_5,
        _ => f64::from(f32::EPSILON),
    });
    let blocks = Blocks::of(e, b, &x)?;
    let cut = e.view(&x, &blocks.split)?;
    let (least, most) =
        (e.extreme("amin", &cut, &blocks.inside, true)?, e.extreme("amax", &cut, &blocks.inside, true)?);
    let zero = e.full(&[], x.dtype, Arg::Int(0))?;
    let (least, most) = (e.binary_default("minimum", &least, &zero)?, e.binary_default("maximum", &most, &zero)?);
    let middle = (high + low + 1).div_euclid(2);
    let (scale, zero_point) = match b.str("mapping_type")? {
        "SYMMETRIC" => {
            let other = e.unary("neg", &least)?;
            let most = e.binary_default("maximum", &other, &most)?;
            (e.div(&most, range / 2.0)?, None)
        }
        "SYMMETRIC_NO_CLIPPING_ERR" => {
            let (down, up) = (e.div(&least, low as f64)?, e.div(&most, high as f64)?);
            (e.binary_default("maximum", &down, &up)?, None)
        }
        "ASYMMETRIC" => {
            let span = e.sub(&most, &least)?;
            (e.div(&span, range)?, Some(least))
        }
        other => return Err(Error::unsupported(format!("{} by {other}", b.op()))),
    };
    let args = vec![scale.arg(), Arg::from(eps), Arg::Null];
    let scale = e.call1("aten.clamp.default", args, &[], scale.dtype, &scale.shape)?;
    let zero_point = match zero_point {
        None => e.full(&scale.shape, DType::I64, middle)?,
        Some(least) => {
            let steps = e.div(&least, &scale)?;
            let steps = e.unary("round", &steps)?;
            let steps = e.unary("neg", &steps)?;
            let place = e.add(&steps, low)?;
            let args = vec![place.arg(), Arg::Int(low), Arg::Int(high)];
            e.call1("aten.clamp.default", args, &[], place.dtype, &place.shape)?
        }
    };
    let mut out = Vec::new();
    for (k, v) in [scale, zero_point].iter().enumerate() {
        let (dtype, shape) = e.result(b, k)?;
        let v = e.to_dtype(v, dtype)?;
        out.push(Some(e.view(&v, &shape)?));
    }
    Ok(out)
}

/// `quantize_affine`: `clamp(round(x·(1/scale)) + zero_point, quant_min, quant_max)`.
pub(super) fn quantize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    integer_domain(b)?;
    let (x, scale) = (e.tensor(b, "input")?, e.tensor(b, "scale")?);
    let (dtype, shape) = e.result(b, 0)?;
    let (low, high) = bounds(b, dtype)?;
    let blocks = Blocks::of(e, b, &x)?;
    let cut = e.view(&x, &blocks.split)?;
    let scale = e.view(&scale, &blocks.outer())?;
    let inverse = e.unary_float("reciprocal", &scale)?;
    let y = e.mul(&cut, &inverse)?;
    let mut y = e.unary("round", &y)?;
    if let Some(zero) = e.opt_tensor(b, "zero_point")? {
        let zero = e.view(&zero, &blocks.outer())?;
        y = e.add(&y, &zero)?;
    }
    let args = vec![y.arg(), Arg::Int(low), Arg::Int(high)];
    let y = e.call1("aten.clamp.default", args, &[], y.dtype, &y.shape)?;
    let y = e.view(&y, &shape)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `dequantize_affine`: `(q - zero_point)·scale`, the difference in 32-bit integers.
pub(super) fn dequantize(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    integer_domain(b)?;
    let (x, scale) = (e.tensor(b, "input")?, e.tensor(b, "scale")?);
    let (dtype, shape) = e.result(b, 0)?;
    let blocks = Blocks::of(e, b, &x)?;
    let cut = e.to_dtype(&x, DType::I32)?;
    let mut cut = e.view(&cut, &blocks.split)?;
    if let Some(zero) = e.opt_tensor(b, "zero_point")? {
        let zero = e.to_dtype(&zero, DType::I32)?;
        let zero = e.view(&zero, &blocks.outer())?;
        cut = e.sub(&cut, &zero)?;
    }
    let y = e.to_dtype(&cut, dtype)?;
    let scale = e.view(&scale, &blocks.outer())?;
    let y = e.mul(&y, &scale)?;
    let y = e.to_dtype(&y, dtype)?;
    one(e.view(&y, &shape)?)
}
