//! Writes to places that a list of index tensors names: `index_put`, `put`.

use super::{Along, Combine, Writes, write};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::{Operand, into_mlir};
use crate::linalg::index::{Places, extents, integers, wrapped};
use crate::linalg::reduce::product;
use crate::linalg::scalar::convert;
use crate::linalg::view::reshape;
use m2m_aten::bind::Bound;
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Builder, Map, Value};
use m2m_record::{DType, Dim, Node};

/// `index_put(self, indices, values, accumulate)`: `self[i0[…], i1[…], …] = values`, or `+= values`; the values broadcast
/// to the places.
pub fn index_put<'c>(cx: &mut Cx<'c>, _: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, values) = (cx.tensor(bound.tensor("self")?)?, cx.tensor(bound.tensor("values")?)?);
    let names = bound.opt_tensors("indices")?;
    let combine = if bound.bool("accumulate")? { Combine::Add } else { Combine::Replace };
    if let ([Some(name)], Combine::Replace) = (names.as_slice(), combine) {
        let mask = cx.tensor(name)?;
        let is_one = values.shape.iter().all(|dim| *dim == Dim::Int(1));
        if mask.dtype == DType::Bool && is_one {
            return Ok(vec![Val::Tensor(fill_where(cx, &t, &mask, &values)?)]);
        }
    }
    let places = Places::of(cx, t.rank(), &names)?;
    Ok(vec![Val::Tensor(put_at(cx, &t, &places, values, combine)?)])
}

/// Values written to all places, which they broadcast to: a write for each index of the block of index tensors.
fn put_at<'c>(
    cx: &mut Cx<'c>,
    t: &Tensor<'c>,
    places: &Places<'c>,
    values: Tensor<'c>,
    combine: Combine,
) -> Result<Tensor<'c>> {
    let shape = places.shape(t);
    if values.rank() > shape.len() {
        return Err(Error::Graph(format!("values {:?} for places {shape:?}", values.shape)));
    }
    let extents = extents(cx, t)?;
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        let axes = places.axes.iter().zip(&extents);
        axes.map(|(index, extent)| index.as_ref().map(|t| place_on(b, t, &places.block, at, *extent)).transpose())
            .collect()
    };
    let whole: Vec<usize> = (0..t.rank()).filter(|axis| places.axes[*axis].is_none()).collect();
    let lead = shape.len() - values.rank();
    let part = |b: &Builder<'c>, at: &[Value<'c>]| {
        let zero = b.const_index(0)?;
        let along = |(k, dim): (usize, &Dim)| {
            let k = lead + k;
            if *dim == Dim::Int(1) && shape[k] != Dim::Int(1) {
                return Along::At(zero);
            }
            match k.checked_sub(places.block_at) {
                None => Along::Axis(whole[k]),
                Some(inside) if inside < at.len() => Along::At(at[inside]),
                Some(_) => Along::Axis(whole[k - at.len()]),
            }
        };
        Ok(values.shape.iter().enumerate().map(along).collect())
    };
    let source = Operand::Tensor(values.clone());
    let writes = Writes { domain: places.block.clone(), place: &place, source, part: &part, scale: None };
    write(cx, t, &writes, combine, true)
}

/// The place on an axis that an index tensor gives at an index of the block that it broadcasts to.
fn place_on<'c>(
    b: &Builder<'c>,
    index: &Tensor<'c>,
    block: &[Dim],
    at: &[Value<'c>],
    extent: Value<'c>,
) -> Result<Value<'c>> {
    let lead = block.len() - index.rank();
    let zero = b.const_index(0)?;
    let own = index.shape.iter().enumerate().map(|(k, dim)| {
        let is_repeated = *dim == Dim::Int(1) && block[lead + k] != Dim::Int(1);
        if is_repeated { zero } else { at[lead + k] }
    });
    wrapped(b, b.extract(index.value, &own.collect::<Vec<_>>())?, index.dtype, extent)
}

/// One value under a mask over the leading axes: a choice between elements.
fn fill_where<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, mask: &Tensor<'c>, value: &Tensor<'c>) -> Result<Tensor<'c>> {
    let rank = t.rank();
    let out = cx.empty(t.dtype, &t.shape)?;
    let leading: Vec<usize> = (0..mask.rank()).collect();
    let first = Map::new(rank, vec![MapExpr::Const(0); value.rank()]);
    let ins = [(t.value, Map::identity(rank)), (mask.value, Map::dims(rank, &leading)), (value.value, first)];
    let filled = cx.b.elementwise(&ins, out, |b, v| {
        let run = || {
            let new = convert(b, v[2], value.dtype, t.dtype)?;
            Ok(b.select(v[1], new, v[0])?)
        };
        run().map_err(into_mlir)
    })?;
    Ok(Tensor { value: filled, dtype: t.dtype, shape: t.shape.clone() })
}

/// `put(self, index, source, accumulate)`: elements by their row-major number.
pub fn put<'c>(cx: &mut Cx<'c>, _: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, source) = (cx.tensor(bound.tensor("self")?)?, cx.tensor(bound.tensor("source")?)?);
    let combine = if bound.bool("accumulate")? { Combine::Add } else { Combine::Replace };
    let index = integers(cx, bound.tensor("index")?)?;
    let flat = |cx: &mut Cx<'c>, t: &Tensor<'c>| {
        let count = product(t.shape.iter())?;
        reshape(cx, t, &[count])
    };
    let (whole, index, source) = (flat(cx, &t)?, flat(cx, &index)?, flat(cx, &source)?);
    let extent = cx.size_value(&whole.shape[0])?;
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        Ok(vec![Some(wrapped(b, b.extract(index.value, at)?, index.dtype, extent)?)])
    };
    let part = |_: &Builder<'c>, at: &[Value<'c>]| Ok(vec![Along::At(at[0])]);
    let source = Operand::Tensor(source);
    let writes = Writes { domain: index.shape.clone(), place: &place, source, part: &part, scale: None };
    let written = write(cx, &whole, &writes, combine, true)?;
    Ok(vec![Val::Tensor(reshape(cx, &written, &t.shape)?)])
}
