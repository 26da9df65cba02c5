//! Products with weights of 4 bits that are stored packed: unpacked, dequantized and multiplied.
//!
//! Numbers are unsigned, 8 stands for 0. Sources: PyTorch 2.13, `int4mm_kernel.cpp` for the CPU and `int4mm.cu` for
//! NVIDIA's tensor cores.

use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::infer::divide;
use crate::packing::Layout;
use crate::value::V;
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// A tensor's size, where it must be a number.
fn size(b: &Bound<'_>, v: &V, dim: usize) -> Result<i64, Error> {
    v.dim(dim).as_int().ok_or_else(|| {
        let sizes = v.sizes();
        Error::unsupported(format!("{} with a packed matrix [{sizes}]; expected sizes that are numbers", b.op()))
    })
}

/// A tensor of a rank and a dtype.
fn tensor(e: &Expander<'_, '_>, b: &Bound<'_>, name: &str, dtype: DType, rank: usize) -> Result<V, Error> {
    let v = e.tensor(b, name)?;
    if v.dtype != dtype || v.rank() != rank {
        let message = format!("{name} is {} of rank {}; expected {dtype} of rank {rank}", v.dtype, v.rank());
        return Err(Error::shape(b.op(), message));
    }
    Ok(v)
}

/// `x & mask`.
fn masked(e: &mut Expander<'_, '_>, x: &V, mask: i64) -> Result<V, Error> {
    e.call1("aten.bitwise_and.Scalar", vec![x.arg(), Arg::Int(mask)], &[], x.dtype, &x.shape)
}

/// `x << bits` or `x >> bits`, of an unsigned number.
fn shifted(e: &mut Expander<'_, '_>, x: &V, to: &str, bits: i64) -> Result<V, Error> {
    let op = format!("aten.bitwise_{to}_shift.Tensor_Scalar");
    e.call1(&op, vec![x.arg(), Arg::Int(bits)], &[], x.dtype, &x.shape)
}

/// The low and the high four bits of bytes.
pub(super) fn nibbles(e: &mut Expander<'_, '_>, bytes: &V) -> Result<[V; 2], Error> {
    Ok([masked(e, bytes, 15)?, shifted(e, bytes, "right", 4)?])
}

/// Tensors of one shape along a new last dimension.
pub(super) fn interleaved(e: &mut Expander<'_, '_>, items: &[V]) -> Result<V, Error> {
    let items = items.iter().map(|v| e.unsqueeze(v, v.rank())).collect::<Result<Vec<_>, _>>()?;
    let last = items.first().map_or(0, V::rank).saturating_sub(1);
    e.cat(&items, last)
}

/// The rows of whole blocks, and those of the last block where it has fewer; each with its layout.
fn parts(rows: i64, layout: Layout) -> impl Iterator<Item = (i64, i64, Layout)> {
    let whole = rows / layout.block * layout.block;
    let last = Layout { block: rows - whole, in_halves: false };
    [(0, whole, layout), (whole, rows, last)].into_iter().filter(|(from, to, _)| from < to)
}

/// The numbers `[k, n]`, as bytes, of a packed matrix `u8 [n, k/2]`.
fn unpacked(e: &mut Expander<'_, '_>, b: &Bound<'_>, packed: &V) -> Result<V, Error> {
    let (rows, columns) = (size(b, packed, 0)?, expr::mul([packed.dim(1), Expr::Int(2)]));
    let mut made = Vec::new();
    for (from, to, layout) in parts(rows, e.packed_for().layout()) {
        let part = e.slice(packed, 0, &Expr::Int(from), &Expr::Int(to), 1)?;
        let blocks = (to - from) / layout.block;
        let bytes = e.view(&part, &[Expr::Int(blocks), columns.clone(), Expr::Int(layout.block / 2)])?;
        let halves = nibbles(e, &bytes)?;
        let block = if layout.in_halves { e.cat(&halves, 2)? } else { interleaved(e, &halves)? };
        let block = e.view(&block, &[Expr::Int(blocks), columns.clone(), Expr::Int(layout.block)])?;
        let block = e.permute(&block, &[1, 0, 2])?;
        made.push(e.view(&block, &[columns.clone(), Expr::Int(to - from)])?);
    }
    e.cat(&made, 1)
}

/// `_convert_weight_to_int4pack_for_cpu(w i32 [n, k], innerKTiles)`: `u8 [n, k/2]`, whatever `innerKTiles`.
pub(super) fn pack(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let w = tensor(e, b, "self", DType::I32, 2)?;
    let (rows, columns) = (size(b, &w, 0)?, size(b, &w, 1)?);
    if rows % 16 != 0 || rows == 0 || columns % 2 != 0 {
        let message = format!("a matrix [{rows},{columns}]; expected a multiple of 16 rows and of 2 columns");
        return Err(Error::shape(b.op(), message));
    }
    let bytes = e.to_dtype(&w, DType::U8)?;
    let mut made = Vec::new();
    for (from, to, layout) in parts(rows, e.packed_for().layout()) {
        let part = e.slice(&bytes, 0, &Expr::Int(from), &Expr::Int(to), 1)?;
        let (blocks, half) = ((to - from) / layout.block, layout.block / 2);
        let (split, at) =
            if layout.in_halves { ([blocks, 2, half, columns], 1) } else { ([blocks, half, 2, columns], 2) };
        let part = e.view(&part, &split.map(Expr::Int))?;
        let (low, high) = (e.select(&part, at, &Expr::Int(0))?, e.select(&part, at, &Expr::Int(1))?);
        let high = shifted(e, &high, "left", 4)?;
        let joined = e.binary("bitwise_or", &low, &high)?;
        let joined = e.transpose(&joined, 1, 2)?;
        made.push(e.view(&joined, &[Expr::Int(to - from), Expr::Int(columns / 2)])?);
    }
    one(e.cat(&made, 0)?)
}

/// `x [m, k]` times numbers `[k, n]`, of which every `qGroupSize` rows have a scale and an offset a column,
/// `qScaleAndZeros [k/group, n, 2]`: `x @ ((q - 8)·scale + offset)`, in `f32`. `rounded` is the dtype of the weights
/// where the definition rounds them.
fn product(e: &mut Expander<'_, '_>, b: &Bound<'_>, numbers: &V, rounded: DType) -> Results {
    let x = e.tensor(b, "self")?;
    let (dtype, _) = e.result(b, 0)?;
    let (group, parameters) = (b.int("qGroupSize")?, e.tensor(b, "qScaleAndZeros")?);
    let (k, n) = (numbers.dim(0), numbers.dim(1));
    if ![32, 64, 128, 256].contains(&group) {
        return Err(Error::shape(b.op(), format!("qGroupSize={group}; expected 32, 64, 128 or 256")));
    }
    let groups = divide(&k, &Expr::Int(group));
    if parameters.shape != [groups.clone(), n.clone(), Expr::Int(2)] || x.rank() != 2 || x.dim(1) != k {
        let (x, parameters) = (x.sizes(), parameters.sizes());
        let message = format!("self [{x}] and qScaleAndZeros [{parameters}]; expected [m,{k}] and [{groups},{n},2]");
        return Err(Error::shape(b.op(), message));
    }
    let parameters = e.to_dtype(&parameters, DType::F32)?;
    let (scale, offset) = (e.select(&parameters, 2, &Expr::Int(0))?, e.select(&parameters, 2, &Expr::Int(1))?);
    let (scale, offset) = (e.unsqueeze(&scale, 1)?, e.unsqueeze(&offset, 1)?);
    let w = e.to_dtype(numbers, DType::F32)?;
    let w = e.sub(&w, 8i64)?;
    let w = e.view(&w, &[groups, Expr::Int(group), n.clone()])?;
    let w = e.mul(&w, &scale)?;
    let w = e.add(&w, &offset)?;
    let w = e.view(&w, &[k, n])?;
    let w = e.to_dtype(&w, rounded)?;
    let (x, w) = (e.to_dtype(&x, DType::F32)?, e.to_dtype(&w, DType::F32)?);
    let y = e.mm(&x, &w)?;
    one(e.to_dtype(&y, dtype)?)
}

/// `_weight_int4pack_mm_for_cpu(x [m, k], w u8 [n, k/2], qGroupSize, qScaleAndZeros)`.
pub(super) fn product_for_cpu(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let packed = tensor(e, b, "mat2", DType::U8, 2)?;
    let rows = size(b, &packed, 0)?;
    if rows % 16 != 0 || rows == 0 {
        return Err(Error::shape(b.op(), format!("{rows} packed rows; expected a multiple of 16")));
    }
    let numbers = unpacked(e, b, &packed)?;
    product(e, b, &numbers, DType::F32)
}

/// Bits of a word of four bytes at which tensor cores want the numbers of two tiles: `[tile, half, which of a pair]`.
const PLACES: [[[i64; 2]; 2]; 2] = [[[0, 16], [4, 20]], [[8, 24], [12, 28]]];

/// Numbers of a packed matrix's dimensions: eight rows a block, sixteen columns a tile, for each row four lanes.
fn tiles(b: &Bound<'_>, words: &V) -> Result<[i64; 3], Error> {
    let [blocks, outer, lanes, inner] = [0, 1, 2, 3].map(|dim| size(b, words, dim));
    match (blocks?, outer?, lanes?, inner?) {
        (blocks, outer, 32, inner @ (1 | 2 | 4)) => Ok([blocks, outer, inner]),
        (blocks, outer, lanes, inner) => {
            let message = format!(
                "a packed matrix [{blocks},{outer},{lanes},{inner}]; expected [n/8,k/(16·i),32,i/2] and i of 2, 4 or 8"
            );
            Err(Error::shape(b.op(), message))
        }
    }
}

/// `_weight_int4pack_mm(x [m, k], w i32 [n/8, k/(16·i), 32, i/2], qGroupSize, qScaleAndZeros)`: weights are of the result's
/// dtype, as tensor cores multiply.
pub(super) fn product_for_tensor_cores(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let words = tensor(e, b, "mat2", DType::I32, 4)?;
    let (dtype, _) = e.result(b, 0)?;
    let [blocks, outer, inner] = tiles(b, &words)?;
    let mut numbers = Vec::new();
    for place in PLACES.as_flattened().as_flattened() {
        let moved = shifted(e, &words, "right", *place)?;
        numbers.push(masked(e, &moved, 15)?);
    }
    let numbers = interleaved(e, &numbers)?;
    // Block, outer tile, row, lane, inner pair of tiles, then tile, half and which of a pair.
    let split = [blocks, outer, 8, 4, inner, 2, 2, 2].map(Expr::Int);
    let numbers = e.view(&numbers, &split)?;
    let numbers = e.permute(&numbers, &[1, 4, 5, 6, 3, 7, 0, 2])?;
    let (k, n) = (super::exact(b.op(), outer.checked_mul(32 * inner))?, super::exact(b.op(), blocks.checked_mul(8))?);
    let numbers = e.view(&numbers, &[Expr::Int(k), Expr::Int(n)])?;
    product(e, b, &numbers, dtype)
}

/// `_convert_weight_to_int4pack(w u8 [n, k/2], innerKTiles)`: of bytes with the first of two numbers in their high bits to
/// words for tensor cores.
pub(super) fn pack_for_tensor_cores(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let w = tensor(e, b, "self", DType::U8, 2)?;
    let (rows, bytes, inner) = (size(b, &w, 0)?, size(b, &w, 1)?, b.int("innerKTiles")?);
    if ![2, 4, 8].contains(&inner) || rows % 8 != 0 || bytes % (8 * inner) != 0 {
        let message = format!(
            "a matrix [{rows},{bytes}] with innerKTiles={inner}; expected 2, 4 or 8, a multiple of 8 rows and of 8·innerKTiles bytes"
        );
        return Err(Error::shape(b.op(), message));
    }
    // Block, row, outer tile, inner pair of tiles, tile, half, lane.
    let split = [rows / 8, 8, bytes / (8 * inner), inner / 2, 2, 2, 4].map(Expr::Int);
    let bytes = e.view(&w, &split)?;
    let bytes = e.permute(&bytes, &[0, 2, 1, 6, 3, 4, 5])?;
    let words = e.to_dtype(&bytes, DType::I32)?;
    let [second, first] = nibbles(e, &words)?;
    let mut packed: Option<V> = None;
    for (tile, halves) in (0..).zip(PLACES) {
        for (half, places) in (0..).zip(halves) {
            for (numbers, place) in [&first, &second].into_iter().zip(places) {
                let of_tile = e.select(numbers, 5, &Expr::Int(tile))?;
                let of_half = e.select(&of_tile, 5, &Expr::Int(half))?;
                let moved = shifted(e, &of_half, "left", place)?;
                packed = Some(match packed {
                    Some(packed) => e.binary("bitwise_or", &packed, &moved)?,
                    None => moved,
                });
            }
        }
    }
    let packed = packed.ok_or_else(|| Error::shape(b.op(), "no places"))?;
    let (_, shape) = e.result(b, 0)?;
    one(e.view(&packed, &shape)?)
}
