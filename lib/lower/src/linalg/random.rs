//! Random numbers from a counter: Philox 4x32 with 10 rounds.
//!
//! Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. The entry function takes
//! the seed as its last argument, an `i64` whose bits are the key, low word first. Element `i` of the result of the
//! `k`-th random operator of a graph, both from 0 and in row-major order, is made of block
//! `(i mod 2^32, i div 2^32, k, 0)`. A call of a graph with random operators takes a `k` as they do, and in round `n` of
//! its loop gives that graph a seed of its own: the first two words of block `(n mod 2^32, n div 2^32, k, 1)`. So numbers
//! depend on the seed and on the program, and on nothing else.
//!
//! Of the words `w0 … w3` of its block an element takes: for uniform numbers the highest bits of `w0`, as many as the
//! type has in `[1/2, 1)`, and for `f64` 27 of `w0` and 26 of `w1`; for normal ones, by Box and Muller,
//! `sqrt(-2 ln u) cos(2 pi v)` with `u` in `(0, 1]` from `w0` and `v` in `[0, 1)` from `w1`, and for `f64` from two words
//! each; for integers the remainder of `w0 + 2^32 w1`.

use super::cx::{Cx, Tensor, Val};
use super::elementwise::into_mlir;
use super::scalar::{compute_dtype, convert};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{DType, Node, TensorType};

const ROUNDS: usize = 10;
const MULTIPLIERS: [i64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [i64; 2] = [0x9E37_79B9, 0xBB67_AE85];
const LOW: i64 = 0xFFFF_FFFF;

/// Where a graph's random numbers come from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'c> {
    /// The seed, an `i64`.
    pub seed: Value<'c>,
    /// How many operators and calls have taken a number.
    pub taken: i64,
}

impl<'c> Cx<'c> {
    /// The seed, and the number of the next operator or call.
    fn draw(&mut self) -> Result<(Value<'c>, i64)> {
        let source = self.random.as_mut().ok_or_else(|| Error::Graph("random numbers without a seed".into()))?;
        source.taken += 1;
        Ok((source.seed, source.taken - 1))
    }

    /// The seed for a called graph in round `n` of its loop, an `index`.
    pub fn fork(&mut self, n: Value<'c>) -> Result<Source<'c>> {
        let (seed, k) = self.draw()?;
        let b = &self.b;
        let n = b.index_cast(n, b.elem("i64")?)?;
        let words = philox(b, seed, n, k, 1)?;
        Ok(Source { seed: b.ori(words[0], shifted_up(b, words[1])?)?, taken: 0 })
    }
}

fn number<'c>(b: &Builder<'c>, n: i64) -> Result<Value<'c>> {
    Ok(b.const_int(b.elem("i64")?, n)?)
}

fn shifted_up<'c>(b: &Builder<'c>, word: Value<'c>) -> Result<Value<'c>> {
    Ok(b.shli(word, number(b, 32)?)?)
}

/// The four words of block `(n mod 2^32, n div 2^32, k, last)`, each an `i64` below 2^32.
fn philox<'c>(b: &Builder<'c>, seed: Value<'c>, n: Value<'c>, k: i64, last: i64) -> Result<[Value<'c>; 4]> {
    let (low, half) = (number(b, LOW)?, number(b, 32)?);
    let halves = |x| -> Result<[Value<'c>; 2]> { Ok([b.andi(x, low)?, b.shrui(x, half)?]) };
    let multipliers = [number(b, MULTIPLIERS[0])?, number(b, MULTIPLIERS[1])?];
    let weyl = [number(b, WEYL[0])?, number(b, WEYL[1])?];
    let mut key = halves(seed)?;
    let [n_low, n_high] = halves(n)?;
    let mut c = [n_low, n_high, number(b, k)?, number(b, last)?];
    for round in 0..ROUNDS {
        if round > 0 {
            for (word, step) in key.iter_mut().zip(weyl) {
                *word = b.andi(b.addi(*word, step)?, low)?;
            }
        }
        let [low0, high0] = halves(b.muli(c[0], multipliers[0])?)?;
        let [low1, high1] = halves(b.muli(c[2], multipliers[1])?)?;
        c = [b.xori(b.xori(high1, c[1])?, key[0])?, low1, b.xori(b.xori(high0, c[3])?, key[1])?, low0];
    }
    Ok(c)
}

/// A tensor of the node's type, each element made of its block's words.
fn fill<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    element: impl Fn(&Builder<'c>, &TensorType, [Value<'c>; 4]) -> Result<Value<'c>>,
) -> Result<Vec<Val<'c>>> {
    let ty = cx.result_type(node, 0)?.clone();
    let (seed, k) = cx.draw()?;
    let sizes = cx.sizes(&ty.shape)?;
    let sizes = sizes.into_iter().map(|size| cx.b.size_value(size)).collect::<std::result::Result<Vec<_>, _>>()?;
    let out = cx.empty(ty.dtype, &ty.shape)?;
    let value = cx.b.elementwise(&[], out, |b, _| {
        let run = || {
            let mut at = b.const_index(0)?;
            for (axis, size) in sizes.iter().enumerate() {
                at = if axis == 0 { b.index(0)? } else { b.addi(b.muli(at, *size)?, b.index(axis)?)? };
            }
            let words = philox(b, seed, b.index_cast(at, b.elem("i64")?)?, k, 0)?;
            element(b, &ty, words)
        };
        run().map_err(into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: ty.dtype, shape: ty.shape })])
}

/// Bits of a float type between two powers of two, the highest included.
fn precision(dtype: DType) -> Result<u32> {
    match dtype {
        DType::F64 => Ok(53),
        DType::F32 => Ok(24),
        DType::F16 => Ok(11),
        DType::BF16 => Ok(8),
        other => Err(Error::unsupported(format!("random numbers of {other}"))),
    }
}

/// An unsigned number below 2^`bits` from the highest bits of two words.
fn high_bits<'c>(b: &Builder<'c>, bits: u32, words: [Value<'c>; 2]) -> Result<Value<'c>> {
    if bits <= 32 {
        return Ok(b.shrui(words[0], number(b, 32 - i64::from(bits))?)?);
    }
    // 27 bits of the first word, then the rest of the second.
    let rest = i64::from(bits) - 27;
    let (first, second) = (b.shrui(words[0], number(b, 5)?)?, b.shrui(words[1], number(b, 32 - rest)?)?);
    Ok(b.ori(b.shli(first, number(b, rest)?)?, second)?)
}

/// `n * 2^-bits` as a float; exact where `n` has no more bits than the type.
fn fraction<'c>(b: &Builder<'c>, dtype: DType, n: Value<'c>, bits: u32) -> Result<Value<'c>> {
    let ty = b.elem(dtype.name())?;
    // Signed: the number is never negative, and every target has this conversion.
    let wide = b.cast("sitofp", n, ty)?;
    Ok(b.mulf(wide, b.const_float(ty, (-f64::from(bits)).exp2())?)?)
}

/// `rand(size)`: uniform in `[0, 1)`.
pub fn rand<'c>(cx: &mut Cx<'c>, node: &Node, _: &Bound) -> Result<Vec<Val<'c>>> {
    fill(cx, node, |b, ty, words| {
        let bits = precision(ty.dtype)?;
        let compute = compute_dtype(ty.dtype);
        let x = fraction(b, compute, high_bits(b, bits, [words[0], words[1]])?, bits)?;
        convert(b, x, compute, ty.dtype)
    })
}

/// `randn(size)`: normal, of mean 0 and variance 1.
pub fn randn<'c>(cx: &mut Cx<'c>, node: &Node, _: &Bound) -> Result<Vec<Val<'c>>> {
    fill(cx, node, |b, ty, words| {
        precision(ty.dtype)?;
        let compute = compute_dtype(ty.dtype);
        let (bits, pairs) = match compute {
            DType::F64 => ([53, 53], [[words[0], words[1]], [words[2], words[3]]]),
            _ => ([32, 24], [[words[0], words[0]], [words[1], words[1]]]),
        };
        let of = |x: f64| b.const_float(b.elem(compute.name())?, x);
        let above_zero = b.addi(high_bits(b, bits[0], pairs[0])?, number(b, 1)?)?;
        let u = fraction(b, compute, above_zero, bits[0])?;
        let v = fraction(b, compute, high_bits(b, bits[1], pairs[1])?, bits[1])?;
        let radius = b.unary("math.sqrt", b.mulf(b.unary("math.log", u)?, of(-2.0)?)?)?;
        let angle = b.unary("math.cos", b.mulf(v, of(std::f64::consts::TAU)?)?)?;
        convert(b, b.mulf(radius, angle)?, compute, ty.dtype)
    })
}

/// `randint(low, high, size)`: integers from `low` to below `high`. The remainder of 64 bits favours no number by more
/// than `(high - low) / 2^64`.
pub fn randint<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let mut ends = Vec::with_capacity(2);
    for name in ["low", "high"] {
        let size = cx.size_arg(bound.arg(name)?)?;
        let value = cx.b.size_value(size)?;
        ends.push(cx.b.index_cast(value, cx.b.elem("i64")?)?);
    }
    let [low, high] = [ends[0], ends[1]];
    // An empty range, which PyTorch refuses, must not divide by zero.
    let range = cx.b.maxui(cx.b.subi(high, low)?, number(&cx.b, 1)?)?;
    fill(cx, node, |b, ty, words| {
        let all = b.ori(words[0], shifted_up(b, words[1])?)?;
        let n = b.addi(low, b.remui(all, range)?)?;
        convert(b, n, DType::I64, ty.dtype)
    })
}
