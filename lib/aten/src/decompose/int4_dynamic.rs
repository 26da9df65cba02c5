//! Products whose first factor is quantized when they run, to 8 bits a row, and whose second is stored in 4 bits.
//!
//! Source: the reference kernels of PyTorch 2.13, `int4mm_kernel.cpp`, which run wherever Arm's KleidiAI does not.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::Expr;

/// The greatest number to which results in `bf16` are cut.
const BF16_MOST: f64 = 3.389_531_39e38;

/// What both operators are told of the matrix `[n, k]`: its sizes, and the columns that share a scale.
struct Sizes {
    rows: i64,
    columns: i64,
    group: i64,
}

impl Sizes {
    fn of(b: &Bound<'_>) -> Result<Sizes, Error> {
        let sizes = Sizes { rows: b.int("out_features")?, columns: b.int("in_features")?, group: b.int("block_size")? };
        let Sizes { rows, columns, group } = sizes;
        let is_whole = rows > 0 && columns > 0 && columns % 2 == 0 && group > 0 && columns % group == 0;
        if !is_whole || rows.checked_mul(columns).is_none() {
            let message = format!(
                "block_size={group}, in_features={columns} and out_features={rows}; expected an even number of features, \
                 in whole blocks"
            );
            return Err(Error::shape(b.op(), message));
        }
        Ok(sizes)
    }

    fn groups(&self) -> i64 {
        self.columns / self.group
    }

    /// Bytes of the matrix.
    fn bytes(&self) -> i64 {
        self.rows * (self.columns / 2)
    }
}

/// `_dyn_quant_pack_4bit_weight(w u8 [n, k/2], scales, bias?)`: all of them one after the other, in `f32`.
pub(super) fn pack(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    Sizes::of(b)?;
    let (dtype, shape) = e.result(b, 0)?;
    if dtype != DType::F32 {
        return Err(not_kleidi(b, dtype));
    }
    let given = [e.tensor(b, "weights")?, e.tensor(b, "scales_zeros")?];
    let bias = e.opt_tensor(b, "bias")?;
    let mut flat = Vec::new();
    for v in given.iter().chain(&bias) {
        let v = e.to_dtype(v, DType::F32)?;
        flat.push(e.view(&v, &[Expr::Int(-1)])?);
    }
    let all = e.cat(&flat, 0)?;
    one(e.view(&all, &shape)?)
}

fn not_kleidi(b: &Bound<'_>, dtype: DType) -> Error {
    let why = "what KleidiAI packs on Arm has a layout of its own";
    Error::unsupported(format!("{} of weights packed in {dtype}; expected f32: {why}", b.op()))
}

/// `x` to the nearest integer, halves away from 0, as C's `round`.
fn round_away(e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
    let size = e.unary("abs", x)?;
    let whole = e.unary("floor", &size)?;
    let rest = e.sub(&size, &whole)?;
    let is_up = e.compare("ge", &rest, 0.5)?;
    let next = e.add(&whole, 1.0)?;
    let whole = e.select_where(&is_up, &next, &whole)?;
    let sign = e.unary("sign", x)?;
    e.mul(&whole, &sign)
}

fn clamped(e: &mut Expander<'_, '_>, x: &V, least: f64, most: f64) -> Result<V, Error> {
    let args = vec![x.arg(), Arg::from(least), Arg::from(most)];
    e.call1("aten.clamp.default", args, &[], x.dtype, &x.shape)
}

/// A row-wise quantized matrix: `(q - zero point)` in `i32` and the scale of each row, `[m, 1]`.
///
/// With `least` and `most` of a row and 0, `s = 255/(most - least)`, 1 where they are equal; the zero point is that end of
/// -128 and 127 that errs less, moved by its bound times `s`; `q = round(x·s) + zero point` within -128 and 127.
fn quantized(e: &mut Expander<'_, '_>, x: &V) -> Result<(V, V), Error> {
    let zero = e.full(&[], DType::F32, Arg::from(0.0))?;
    let least = e.extreme("amin", x, &[1], true)?;
    let least = e.binary_default("minimum", &least, &zero)?;
    let most = e.extreme("amax", x, &[1], true)?;
    let most = e.binary_default("maximum", &most, &zero)?;
    let span = e.sub(&most, &least)?;
    let scale = e.full(&[], DType::F32, Arg::from(255.0))?;
    let scale = e.div(&scale, &span)?;
    let is_flat = e.compare("eq", &most, &least)?;
    let scale = e.select_where(&is_flat, 1.0, &scale)?;
    let inverse = e.unary_float("reciprocal", &scale)?;
    let is_none = e.compare("eq", &scale, 0.0)?;
    let inverse = e.select_where(&is_none, 0.0, &inverse)?;

    let (low, high) = (e.mul(&least, &scale)?, e.mul(&most, &scale)?);
    let (under, over) = (e.add(&low, -128.0)?, e.add(&high, 127.0)?);
    let errors = e.add(&under, &over)?;
    let is_low = e.compare("gt", &errors, 0.0)?;
    let (low, high) = (e.unary("neg", &low)?, e.unary("neg", &high)?);
    let (low, high) = (e.add(&low, -128.0)?, e.add(&high, 127.0)?);
    let place = e.select_where(&is_low, &low, &high)?;
    let place = clamped(e, &place, -128.0, 127.0)?;
    let place = e.unary("round", &place)?;

    let steps = e.mul(x, &scale)?;
    let steps = round_away(e, &steps)?;
    let steps = e.add(&steps, &place)?;
    let steps = clamped(e, &steps, -128.0, 127.0)?;
    let steps = e.sub(&steps, &place)?;
    Ok((e.to_dtype(&steps, DType::I32)?, inverse))
}

/// `_dyn_quant_matmul_4bit(x [m, k], packed, block_size, in_features=k, out_features=n)`: for each block of columns the
/// product of integers times the block's scale of `w`, their sum times the scale of the row, and the bias. Results in `bf16` are
/// cut off, not rounded.
pub(super) fn product(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let sizes = Sizes::of(b)?;
    let (x, packed) = (e.tensor(b, "inp")?, e.tensor(b, "packed_weights")?);
    let (dtype, shape) = e.result(b, 0)?;
    if packed.dtype != DType::F32 {
        return Err(not_kleidi(b, packed.dtype));
    }
    let (rows, groups, bytes) = (sizes.rows, sizes.groups(), sizes.bytes());
    let without_bias = bytes + rows * groups;
    let with_bias = without_bias + rows;
    let stored = packed.dim(0).as_int().filter(|n| packed.rank() == 1 && [without_bias, with_bias].contains(n));
    if stored.is_none() || x.rank() != 2 || x.dim(1) != Expr::Int(sizes.columns) {
        let (x, packed, k) = (x.sizes(), packed.sizes(), sizes.columns);
        let message =
            format!("inp [{x}] and packed_weights [{packed}]; expected [m,{k}] and [{without_bias}] or [{with_bias}]");
        return Err(Error::shape(b.op(), message));
    }
    let x = e.to_dtype(&x, DType::F32)?;
    let (steps, inverse) = quantized(e, &x)?;
    let w = weights(e, &packed, &sizes)?;
    let split = [x.dim(0), Expr::Int(groups), Expr::Int(sizes.group)];
    let steps = e.view(&steps, &split)?;
    let steps = e.permute(&steps, &[1, 0, 2])?;
    let sums = e.bmm(&steps, &w)?;
    let sums = e.to_dtype(&sums, DType::F32)?;
    let scales = e.slice(&packed, 0, &Expr::Int(bytes), &Expr::Int(without_bias), 1)?;
    let scales = e.view(&scales, &[Expr::Int(rows), Expr::Int(groups)])?;
    let scales = e.transpose(&scales, 0, 1)?;
    let scales = e.unsqueeze(&scales, 1)?;
    let y = e.mul(&sums, &scales)?;
    let y = e.sum(&y, &[0], false)?;
    let mut y = e.mul(&y, &inverse)?;
    if stored == Some(with_bias) {
        let bias = e.slice(&packed, 0, &Expr::Int(without_bias), &Expr::Int(with_bias), 1)?;
        y = e.add(&y, &bias)?;
    }
    if dtype != DType::BF16 {
        let most = f64::from(f32::MAX);
        let y = clamped(e, &y, -most, most)?;
        return one(e.to_dtype(&y, dtype)?);
    }
    let y = clamped(e, &y, -BF16_MOST, BF16_MOST)?;
    let bits = e.call1("aten.view.dtype", vec![y.arg(), Arg::DType(DType::I32)], &[], DType::I32, &shape)?;
    let bits = e.call1("aten.bitwise_and.Scalar", vec![bits.arg(), Arg::Int(-65_536)], &[], DType::I32, &shape)?;
    let y = e.call1("aten.view.dtype", vec![bits.arg(), Arg::DType(DType::F32)], &[], DType::F32, &shape)?;
    one(e.to_dtype(&y, DType::BF16)?)
}

/// The numbers `[groups, k/groups, n]` of the matrix, in `i32`.
fn weights(e: &mut Expander<'_, '_>, packed: &V, sizes: &Sizes) -> Result<V, Error> {
    let bytes = e.slice(packed, 0, &Expr::Int(0), &Expr::Int(sizes.bytes()), 1)?;
    let bytes = e.view(&bytes, &[sizes.rows, sizes.columns / 2].map(Expr::Int))?;
    let bytes = e.to_dtype(&bytes, DType::I32)?;
    let halves = super::int4::nibbles(e, &bytes)?;
    let numbers = super::int4::interleaved(e, &halves)?;
    let numbers = e.view(&numbers, &[sizes.rows, sizes.groups(), sizes.group].map(Expr::Int))?;
    let numbers = e.permute(&numbers, &[1, 2, 0])?;
    e.sub(&numbers, 8i64)
}
