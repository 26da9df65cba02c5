//! Places of elements that are not zero, or that are to be repeated: counted first, so that the results have their size,
//! then each found by bisecting the running count.

use super::super::scan::scan;
use super::super::sort::bisection_rounds;
use super::{broadcast_shape, read, shaped};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::into_mlir;
use crate::linalg::reduce::{Axes, count_true, fold, product};
use crate::linalg::scalar::{Scalars, convert};
use crate::linalg::view::{broadcast, convert as convert_tensor, reshape};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, CmpI, Iter, Map, Value};
use m2m_record::{DType, Dim, Node, TensorType};

/// `out[i]`: how many of the elements `0..=i` of a 1-d tensor are not zero.
fn running_count<'c>(cx: &mut Cx<'c>, flat: &Tensor<'c>) -> Result<Tensor<'c>> {
    let from = flat.dtype;
    running_sum(cx, flat, |b, x| convert(b, Scalars::new(b, from).truth(x)?, DType::Bool, DType::I64))
}

/// `out[i]`: the sum of what the body makes of the elements `0..=i` of a 1-d tensor, i64.
fn running_sum<'c>(
    cx: &mut Cx<'c>,
    flat: &Tensor<'c>,
    body: impl Fn(&Builder<'c>, Value<'c>) -> Result<Value<'c>>,
) -> Result<Tensor<'c>> {
    let zero = Scalars::new(&cx.b, DType::I64).int(0)?;
    let counts = scan(cx, flat, 0, &[(DType::I64, zero)], &[DType::I64], |b, x, _, so_far| {
        Ok(vec![b.addi(so_far[0], body(b, x)?)?])
    })?;
    counts.into_iter().next().ok_or_else(|| Error::Graph("a scan without a result".into()))
}

/// All elements in one axis.
fn flattened<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>) -> Result<Tensor<'c>> {
    let count = product(t.shape.iter())?;
    reshape(cx, t, &[count])
}

/// Row-major numbers of the elements that are not zero, i64, with an axis whose size is a new symbol.
pub fn places<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>) -> Result<Tensor<'c>> {
    let flat = flattened(cx, t)?;
    let counts = running_count(cx, &flat)?;
    let total = count_true(cx, &flat, &Axes::new(1, vec![0]), DType::I64)?;
    let total = cx.b.index_cast(cx.b.extract(total.value, &[])?, cx.b.index_type())?;
    let name = format!("nonzero_{}", cx.b.ordinal());
    cx.symbols.bind(&name, total);
    placed(cx, &counts, Dim::Expr(name))
}

/// For each of `total` results, the least place whose running count exceeds the number of results before it.
fn placed<'c>(cx: &mut Cx<'c>, counts: &Tensor<'c>, total: Dim) -> Result<Tensor<'c>> {
    let shape = vec![total];
    let extent = cx.size_value(&counts.shape[0])?;
    let rounds = bisection_rounds(cx, &counts.shape[0])?;
    let out = cx.empty(DType::I64, &shape)?;
    let value = cx.b.elementwise(&[], out, |b, _| {
        let wanted = b.index(0)?;
        let (zero, one) = (b.const_index(0)?, b.const_index(1)?);
        let last = b.subi(extent, one)?;
        let found = b.for_loop((zero, rounds, one), &[zero, extent], |b, _, carried| {
            let (low, high) = (carried[0], carried[1]);
            let open = b.cmpi(CmpI::Slt, low, high)?;
            let probe = b.minsi(b.shrui(b.addi(low, high)?, one)?, last)?;
            let count = b.index_cast(b.extract(counts.value, &[probe])?, b.index_type())?;
            let is_left = b.cmpi(CmpI::Sle, count, wanted)?;
            let up = b.andi(open, is_left)?;
            let stays = b.ori(up, b.xori(open, b.const_bool(true)?)?)?;
            Ok(vec![b.select(up, b.addi(probe, one)?, low)?, b.select(stays, high, probe)?])
        })?;
        b.index_cast(found[0], b.elem("i64")?)
    })?;
    Ok(Tensor { value, dtype: DType::I64, shape })
}

/// Each place `i` of a 1-d tensor, `repeats[i]` times, with an axis whose size is a new symbol.
fn repeated<'c>(cx: &mut Cx<'c>, repeats: &Tensor<'c>) -> Result<Tensor<'c>> {
    let from = repeats.dtype;
    let counts = running_sum(cx, repeats, |b, x| convert(b, x, from, DType::I64))?;
    let zero = Scalars::new(&cx.b, DType::I64).int(0)?;
    let total = fold(cx, repeats, &Axes::new(1, vec![0]), DType::I64, zero, |s, x, so_far| {
        s.add(so_far, convert(s.b, x, from, DType::I64)?)
    })?;
    let total = cx.b.index_cast(cx.b.extract(total.value, &[])?, cx.b.index_type())?;
    let name = format!("repeated_{}", cx.b.ordinal());
    cx.symbols.bind(&name, total);
    placed(cx, &counts, Dim::Expr(name))
}

/// `repeat_interleave(repeats, output_size)`: each place `i` of a 1-d tensor, `repeats[i]` times.
pub fn repeated_places<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let repeats = super::integers(cx, bound.tensor("repeats")?)?;
    let places = repeated(cx, &repeats)?;
    let like = TensorType::new(result.dtype, places.shape.clone());
    let places = convert_tensor(cx, places, &like)?;
    Ok(vec![Val::Tensor(cx.conform(places.value, result.dtype, &result.shape)?)])
}

/// `repeat_interleave(self, repeats, dim, output_size)`: position `i` of an axis (without `dim`, of all elements in
/// row-major order) `repeats[i]` times; one number of repeats is for all.
pub fn repeated_elements<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let t = cx.tensor(bound.tensor("self")?)?;
    let (t, axis) = match bound.int_or("dim")? {
        None => (flattened(cx, &t)?, 0),
        Some(dim) => (t.clone(), t.axis(dim)?),
    };
    let repeats = super::integers(cx, bound.tensor("repeats")?)?;
    let along = t.shape.get(axis).cloned().unwrap_or(Dim::Int(1));
    let narrow = if repeats.rank() == 0 { reshape(cx, &repeats, &[Dim::Int(1)])? } else { repeats };
    let repeats = broadcast(cx, &narrow, &[along])?;
    let places = repeated(cx, &repeats)?;
    let chosen = super::along(cx, &t, axis, &places)?;
    Ok(vec![Val::Tensor(cx.conform(chosen.value, result.dtype, &result.shape)?)])
}

/// The coordinate along `axis` of a row-major number.
fn coordinate<'c>(b: &Builder<'c>, number: Value<'c>, sizes: &[Value<'c>], axis: usize) -> Result<Value<'c>> {
    let mut rest = number;
    for size in sizes.iter().skip(axis + 1).rev() {
        rest = b.divui(rest, *size)?;
    }
    Ok(if axis == 0 { rest } else { b.remui(rest, sizes[axis])? })
}

/// For each axis, the coordinates of the elements that are not zero, in row-major order; each tensor is 1-d.
pub fn columns<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>) -> Result<Vec<Tensor<'c>>> {
    if t.rank() == 0 {
        return Err(Error::unsupported("a mask without axes as an index"));
    }
    let places = places(cx, t)?;
    let sizes = super::extents(cx, t)?;
    let mut outs = Vec::new();
    for _ in 0..t.rank() {
        outs.push((cx.empty(DType::I64, &places.shape)?, Map::identity(1)));
    }
    let values = cx.b.generic(&[(places.value, Map::identity(1))], &outs, &[Iter::Parallel], |b, v| {
        let number = b.index_cast(v[0], b.index_type())?;
        let long = b.elem("i64")?;
        let axes = 0..sizes.len();
        axes.map(|axis| {
            let at = coordinate(b, number, &sizes, axis).map_err(into_mlir)?;
            b.index_cast(at, long)
        })
        .collect()
    })?;
    let column = |value| Tensor { value, dtype: DType::I64, shape: places.shape.clone() };
    Ok(values.into_iter().map(column).collect())
}

/// `nonzero(self)`: `[n, rank]`, the coordinates of each element that is not zero, in row-major order.
pub fn nonzero<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let t = cx.tensor(bound.tensor("self")?)?;
    let places = places(cx, &t)?;
    let shape = [places.shape[0].clone(), Dim::Int(t.rank() as i64)];
    let sizes = super::extents(cx, &t)?;
    let out = cx.empty(DType::I64, &shape)?;
    let value = cx.b.elementwise(&[(places.value, Map::dims(2, &[0]))], out, |b, v| {
        let run = || {
            let number = b.index_cast(v[0], b.index_type())?;
            let column = b.index(1)?;
            let mut at = number;
            for axis in 0..sizes.len() {
                let is_axis = b.cmpi(CmpI::Eq, column, b.const_index(axis as i64)?)?;
                at = b.select(is_axis, coordinate(b, number, &sizes, axis)?, at)?;
            }
            Ok(b.index_cast(at, b.elem("i64")?)?)
        };
        run().map_err(into_mlir)
    })?;
    Ok(vec![Val::Tensor(cx.conform(value, result.dtype, &result.shape)?)])
}

/// `masked_select(self, mask)`: the elements under true ones of the mask, the two broadcast against one another.
pub fn masked_select<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let (t, mask) = (cx.tensor(bound.tensor("self")?)?, cx.tensor(bound.tensor("mask")?)?);
    let common = broadcast_shape(&t.shape, &mask.shape)?;
    let (t, mask) = (broadcast(cx, &t, &common)?, broadcast(cx, &mask, &common)?);
    let places = places(cx, &mask)?;
    let flat = flattened(cx, &t)?;
    let ins = [(places.value, Map::identity(1))];
    let chosen = read(cx, &flat, &places.shape, &ins, |b, _, x| Ok(vec![b.index_cast(x[0], b.index_type())?]))?;
    Ok(vec![Val::Tensor(cx.conform(chosen.value, result.dtype, &result.shape)?)])
}

/// `masked_scatter(self, mask, source)`: the elements under true ones of the mask replaced by those of `source`, in
/// order.
pub fn masked_scatter<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let (t, mask) = (cx.tensor(bound.tensor("self")?)?, cx.tensor(bound.tensor("mask")?)?);
    let source = cx.tensor(bound.tensor("source")?)?;
    if source.shape.contains(&Dim::Int(0)) || source.dtype != t.dtype {
        let (found, wanted) = (source.dtype, t.dtype);
        return Err(Error::unsupported(format!("a source of {found} {:?} for {wanted}", source.shape)));
    }
    let (t, mask) = (broadcast(cx, &t, &result.shape)?, broadcast(cx, &mask, &result.shape)?);
    let (flat, mask, source) = (flattened(cx, &t)?, flattened(cx, &mask)?, flattened(cx, &source)?);
    let counts = running_count(cx, &mask)?;
    let extent = cx.size_value(&source.shape[0])?;
    let out = cx.empty(t.dtype, &flat.shape)?;
    let ins = [flat.value, mask.value, counts.value].map(|value| (value, Map::identity(1)));
    let mask_dtype = mask.dtype;
    let value = cx.b.elementwise(&ins, out, |b, v| {
        let run = || {
            let before = b.subi(v[2], Scalars::new(b, DType::I64).int(1)?)?;
            // Counts of 0 give -1, which would wrap to the end; any element will do where the mask is false.
            let at = super::wrapped(b, before, DType::I64, extent)?;
            let taken = b.extract(source.value, &[at])?;
            Ok(b.select(Scalars::new(b, mask_dtype).truth(v[1])?, taken, v[0])?)
        };
        run().map_err(into_mlir)
    })?;
    let filled = Tensor { value, dtype: t.dtype, shape: flat.shape.clone() };
    shaped(cx, node, &filled)
}
