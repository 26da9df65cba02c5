//! Random operators, written with the three that a target draws itself: uniform numbers in `[0, 1)` (`rand`), normal
//! ones (`randn`) and integers (`randint.low`).
//!
//! Results have the distribution that PyTorch's documentation states; the numbers themselves are the target's.

use super::identity::number;
use super::{need_rank, own};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::promote::real_of;
use crate::value::{O, V, size_arg, sizes_arg};
use m2m_record::{Arg, DType, Float};
use m2m_tensor::Expr;

/// A complex tensor of two real ones that are drawn one after the other.
fn drawn_pair(
    e: &mut Expander<'_, '_>,
    shape: &[Expr],
    dtype: DType,
    draw: fn(&mut Expander<'_, '_>, &[Expr], DType) -> Result<V, Error>,
) -> Result<V, Error> {
    let (re, im) = (draw(e, shape, real_of(dtype))?, draw(e, shape, real_of(dtype))?);
    e.call1("aten.complex.default", vec![re.arg(), im.arg()], &[], dtype, shape)
}

/// Uniform numbers in `[0, 1)`, both parts of a complex one.
pub(super) fn uniform_of(e: &mut Expander<'_, '_>, shape: &[Expr], dtype: DType) -> Result<V, Error> {
    if dtype.is_complex() {
        return drawn_pair(e, shape, dtype, uniform_of);
    }
    e.call1("aten.rand.default", vec![sizes_arg(shape)], &[("dtype", Arg::DType(dtype))], dtype, shape)
}

/// Normal numbers of mean 0 and variance 1; of a complex one each part has the variance 1/2.
fn normal_of(e: &mut Expander<'_, '_>, shape: &[Expr], dtype: DType) -> Result<V, Error> {
    if dtype.is_complex() {
        let z = drawn_pair(e, shape, dtype, normal_of)?;
        return e.mul(&z, std::f64::consts::FRAC_1_SQRT_2);
    }
    e.call1("aten.randn.default", vec![sizes_arg(shape)], &[("dtype", Arg::DType(dtype))], dtype, shape)
}

/// Integers from `low` to below `high`.
fn integers_of(e: &mut Expander<'_, '_>, low: Arg, high: Arg, shape: &[Expr], dtype: DType) -> Result<V, Error> {
    let args = vec![low, high, sizes_arg(shape)];
    e.call1("aten.randint.low", args, &[("dtype", Arg::DType(dtype))], dtype, shape)
}

/// The float type in which numbers for elements of a type are drawn.
fn drawn(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DType::F32 }
}

/// `rand`, `randn` of complex numbers; the target draws real ones itself.
pub(super) fn plain(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    if !dtype.is_complex() {
        return own(e, b);
    }
    let is_normal = b.op() == "aten.randn.default";
    one(if is_normal { normal_of(e, &shape, dtype)? } else { uniform_of(e, &shape, dtype)? })
}

/// `rand` of a generator, `rand_like`: uniform in `[0, 1)`, of the node's shape.
pub(super) fn rand(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    one(uniform_of(e, &shape, dtype)?)
}

/// `randn` of a generator, `randn_like`
pub(super) fn randn(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    one(normal_of(e, &shape, dtype)?)
}

/// `randint(high, …)`, `randint_like`: integers from `low`, or 0, to below `high`.
pub(super) fn randint(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let low = if b.has("low") { b.arg("low")?.clone() } else { Arg::Int(0) };
    one(integers_of(e, low, b.arg("high")?.clone(), &shape, dtype)?)
}

/// `randperm(n)`: the order that sorts random numbers. Equal ones among 2^53 keep their order.
pub(super) fn randperm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let keys = uniform_of(e, &shape, DType::F64)?;
    let types = vec![keys.ty(), crate::value::tensor_type(DType::I64, &shape)];
    let sorted = e.call("aten.sort.default", vec![keys.arg(), Arg::Int(0), Arg::Bool(false)], &[], types)?;
    let order = sorted.into_iter().nth(1).flatten().ok_or_else(|| Error::shape(b.op(), "a sort without an order"))?;
    one(e.to_dtype(&order, dtype)?)
}

/// Whether uniform numbers are below `p`: true with probability `p`.
fn below(e: &mut Expander<'_, '_>, shape: &[Expr], p: &O) -> Result<V, Error> {
    let dtype = match p {
        O::T(p) if p.dtype == DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let u = uniform_of(e, shape, dtype)?;
    e.compare("lt", &u, p)
}

/// `bernoulli(self)`, with the probabilities in `self`; `bernoulli(self, p)`, of the shape of `self`.
pub(super) fn bernoulli(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let p = if b.has("p") { e.operand(b, "p")? } else { O::T(e.tensor(b, "self")?) };
    let p = match p {
        O::T(p) => {
            let p = e.of_sizes(&p, &shape)?;
            O::T(e.widen_float(&p)?)
        }
        number => number,
    };
    let hit = below(e, &shape, &p)?;
    one(e.to_dtype(&hit, dtype)?)
}

/// `uniform(self, from, to)`: `from + (to - from) u`
pub(super) fn uniform(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (from, to) = (b.float("from")?, b.float("to")?);
    let u = uniform_of(e, &shape, dtype)?;
    if (from, to) == (0.0, 1.0) {
        return one(u);
    }
    let wide = e.widen(&u)?;
    let scaled = e.mul(&wide, to - from)?;
    let start = if dtype.is_complex() { O::N(Arg::Complex(Float(from), Float(from))) } else { O::from(from) };
    let y = e.add(&scaled, start)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `normal`: `mean + std z`, mean and deviation numbers or tensors.
pub(super) fn normal(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let (mean, std) = (e.operand(b, "mean")?, e.operand(b, "std")?);
    let z = normal_of(e, &shape, dtype)?;
    let z = e.widen(&z)?;
    let scaled = e.mul(&z, &std)?;
    let y = e.add(&scaled, &mean)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `-ln(1 - u)`, of which the exponential distribution and those made of it are multiples.
fn exponential_of(e: &mut Expander<'_, '_>, shape: &[Expr], dtype: DType) -> Result<V, Error> {
    let u = uniform_of(e, shape, dtype)?;
    let minus = e.unary("neg", &u)?;
    let log = e.unary("log1p", &minus)?;
    e.unary("neg", &log)
}

/// The type in which a distribution over elements of a type is computed.
fn wide(dtype: DType) -> DType {
    crate::promote::accumulate_dtype(drawn(dtype))
}

/// `exponential(self, lambd)`: `-ln(1 - u) / lambd`
pub(super) fn exponential(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let x = exponential_of(e, &shape, wide(dtype))?;
    let y = e.div(&x, b.float("lambd")?)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `geometric(self, p)`: the number of the first success, `floor(ln(1 - u) / ln(1 - p)) + 1`
pub(super) fn geometric(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let x = exponential_of(e, &shape, DType::F64)?;
    let y = e.div(&x, -(-b.float("p")?).ln_1p())?;
    let y = e.unary("floor", &y)?;
    let y = e.add(&y, 1.0)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `cauchy(self, median, sigma)`: `median + sigma tan(pi (u - 1/2))`
pub(super) fn cauchy(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let u = uniform_of(e, &shape, wide(dtype))?;
    let centred = e.sub(&u, 0.5)?;
    let angle = e.mul(&centred, std::f64::consts::PI)?;
    let tan = e.unary("tan", &angle)?;
    let scaled = e.mul(&tan, b.float("sigma")?)?;
    let y = e.add(&scaled, b.float("median")?)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `log_normal(self, mean, std)`: `exp(mean + std z)`
pub(super) fn log_normal(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let z = normal_of(e, &shape, wide(dtype))?;
    let scaled = e.mul(&z, b.float("std")?)?;
    let y = e.add(&scaled, b.float("mean")?)?;
    let y = e.unary("exp", &y)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `random(self, from, to)`: integers from `from` to below `to`; without them, all that the type holds from 0 on, of a
/// float type up to the last that it counts exactly.
pub(super) fn random(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (dtype, shape) = e.result(b, 0)?;
    let low = if b.has("from") { b.int("from")? } else { 0 };
    let end = match dtype {
        DType::Bool => 2,
        DType::F64 => (1 << 53) + 1,
        DType::F32 => (1 << 24) + 1,
        DType::F16 => (1 << 11) + 1,
        DType::BF16 => (1 << 8) + 1,
        DType::U8 => 256,
        other if other.is_integer() && other.bits() < 64 => 1 << (other.bits() - 1),
        // One less than the documentation's, whose end is no number of 64 bits.
        _ => i64::MAX,
    };
    let high = if b.has("to") { b.int_or("to")?.unwrap_or(end) } else { end };
    one(integers_of(e, Arg::Int(low), Arg::Int(high), &shape, dtype)?)
}

/// `multinomial(self, num_samples, replacement)`: columns of `[rows, columns]` or `[columns]`, in proportion to their
/// weights. Without replacement, and for one sample, those with the largest weight over an exponential number; with it,
/// the first column where the running sum of weights exceeds a uniform part of the whole.
pub(super) fn multinomial(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, shape) = e.result(b, 0)?;
    let weights = e.widen(&x)?;
    let last = x.from_end(1)?;
    let samples = e.size(b.arg("num_samples")?)?;
    if !b.bool("replacement")? || samples == Expr::Int(1) {
        let q = exponential_of(e, &weights.shape, weights.dtype)?;
        // Not zero, by which no weight could be divided: half of the least that is drawn otherwise.
        let least = vec![q.arg(), Arg::from((-25_f64).exp2())];
        let q = e.call1("aten.clamp_min.default", least, &[], q.dtype, &q.shape)?;
        let keys = e.div(&weights, &q)?;
        let args = vec![keys.arg(), size_arg(&samples), Arg::Int(-1), Arg::Bool(true), Arg::Bool(true)];
        let types = vec![crate::value::tensor_type(keys.dtype, &shape), crate::value::tensor_type(DType::I64, &shape)];
        let top = e.call("aten.topk.default", args, &[], types)?;
        let y = top.into_iter().nth(1).flatten().ok_or_else(|| Error::shape(b.op(), "a topk without indices"))?;
        return one(e.to_dtype(&y, dtype)?);
    }
    let axis = Arg::Int(i64::try_from(last).unwrap_or(i64::MAX));
    let running = e.call1("aten.cumsum.default", vec![weights.arg(), axis], &[], weights.dtype, &weights.shape)?;
    let total = e.sum(&weights, &[last], true)?;
    let u = uniform_of(e, &shape, weights.dtype)?;
    let part = e.mul(&u, &total)?;
    let (running, part) = (e.unsqueeze(&running, last)?, e.unsqueeze(&part, last + 1)?);
    let passed = e.compare("le", &running, &part)?;
    let count = e.sum(&passed, &[last + 1], false)?;
    // A running sum may round to less than the whole; the last column with weight is then meant.
    let final_column = m2m_tensor::expr::add([x.dim(last), Expr::Int(-1)]);
    let y = match final_column.as_int() {
        Some(n) => e.call1("aten.clamp_max.default", vec![count.arg(), Arg::Int(n)], &[], count.dtype, &count.shape)?,
        None => count,
    };
    one(e.to_dtype(&y, dtype)?)
}

/// Where dropout keeps: true with probability `1 - p`.
pub(super) fn kept(e: &mut Expander<'_, '_>, shape: &[Expr], p: f64) -> Result<V, Error> {
    below(e, shape, &O::from(1.0 - p))
}

/// `x mask / (1 - p)`; zeros where nothing is kept.
pub(super) fn scaled(e: &mut Expander<'_, '_>, x: &V, mask: &V, p: f64) -> Result<V, Error> {
    let wide = e.widen(x)?;
    let factor = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    let grown = e.mul(&wide, factor)?;
    let zero = e.full(&[], grown.dtype, Arg::from(0.0))?;
    let y = e.select_where(mask, &grown, &zero)?;
    e.to_dtype(&y, x.dtype)
}

/// Dropout with probability `p`: of elements, or of whole features (`[batch, channel, …]`).
pub(super) fn dropout(e: &mut Expander<'_, '_>, b: &Bound<'_>, x: &V, p: f64) -> Result<V, Error> {
    let name = b.op();
    let mut shape = x.shape.clone();
    if name.contains("feature_") {
        need_rank(name, x, 2)?;
        shape.iter_mut().skip(2).for_each(|size| *size = Expr::Int(1));
    }
    let mask = kept(e, &shape, p)?;
    if name.contains("alpha_") { alpha(e, x, &mask, p) } else { scaled(e, x, &mask, p) }
}

/// What SELU tends to for small numbers: `-scale * alpha` of its definition.
const SELU_LEAST: f64 = -1.758_099_340_847_376_6;

/// Dropout that keeps mean and variance of what SELU gives: dropped elements become `s`, and all are then scaled by `a`
/// and moved by `-a p s`, with `s` the least value of SELU and `a = 1 / sqrt((1 - p)(1 + p s^2))`. Source: Klambauer
/// and others, "Self-normalizing neural networks", 2017.
fn alpha(e: &mut Expander<'_, '_>, x: &V, mask: &V, p: f64) -> Result<V, Error> {
    let wide = e.widen(x)?;
    if p >= 1.0 {
        let zeros = e.full(&x.shape, x.dtype, Arg::from(0.0))?;
        return Ok(zeros);
    }
    let a = 1.0 / ((1.0 - p) * (1.0 + p * SELU_LEAST * SELU_LEAST)).sqrt();
    let least = e.full(&[], wide.dtype, Arg::from(SELU_LEAST))?;
    let y = e.select_where(mask, &wide, &least)?;
    let y = e.mul(&y, a)?;
    let y = e.sub(&y, a * p * SELU_LEAST)?;
    e.to_dtype(&y, x.dtype)
}

/// `rrelu(self, lower, upper, training)`: a negative element times a number uniform in `[lower, upper)`, in evaluation
/// times their mean.
pub(super) fn rrelu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let x = e.tensor(b, "self")?;
    let (lower, upper) = (b.float("lower")?, b.float("upper")?);
    let wide = e.widen(&x)?;
    let steep = if b.bool("training")? {
        let u = uniform_of(e, &x.shape, wide.dtype)?;
        let u = e.mul(&u, upper - lower)?;
        let slope = e.add(&u, lower)?;
        e.mul(&wide, &slope)?
    } else {
        e.mul(&wide, (lower + upper) / 2.0)?
    };
    let is_negative = e.compare("lt", &wide, 0.0)?;
    let y = e.select_where(&is_negative, &steep, &wide)?;
    one(e.to_dtype(&y, x.dtype)?)
}

/// `rrelu_with_noise_functional(self, noise, lower, upper, training)`: in training an element that is not positive
/// times a number uniform in `[lower, upper)`, which the noise tells, else 1; in evaluation the leaky ReLU with the
/// mean of both slopes, and the noise as it is.
pub(super) fn rrelu_with_noise(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, noise) = (e.tensor(b, "self")?, e.tensor(b, "noise")?);
    let (lower, upper) = (number(b, "lower")?, number(b, "upper")?);
    if !b.bool("training")? {
        let slope = Arg::from((lower + upper) / 2.0);
        let y = e.call1("aten.leaky_relu.default", vec![x.arg(), slope], &[], x.dtype, &x.shape)?;
        return Ok(vec![Some(y), Some(noise)]);
    }
    let wide = e.widen(&x)?;
    let u = uniform_of(e, &x.shape, wide.dtype)?;
    let u = e.mul(&u, upper - lower)?;
    let slope = e.add(&u, lower)?;
    let is_low = e.compare("le", &wide, 0.0)?;
    let unit = e.full(&[], wide.dtype, Arg::from(1.0))?;
    let slope = e.select_where(&is_low, &slope, &unit)?;
    let steep = e.mul(&wide, &slope)?;
    let y = e.select_where(&is_low, &steep, &wide)?;
    Ok(vec![Some(e.to_dtype(&y, x.dtype)?), Some(e.to_dtype(&slope, noise.dtype)?)])
}
