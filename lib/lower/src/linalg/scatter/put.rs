//! Writes to places that a list of index tensors names: `index_put`, `put`.

use super::{Combine, element_of, write};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::{Operand, broadcast_map, into_mlir};
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
    if t.dtype.is_complex() {
        return Err(Error::unsupported(format!("index_put of {} elements", t.dtype)));
    }
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
    let domain = places.shape(&t);
    if values.rank() > domain.len() {
        return Err(Error::Graph(format!("values {:?} for places {domain:?}", values.shape)));
    }
    let (extents, dtype) = (extents(cx, &t)?, combine.dtype(t.dtype));
    let maps = places.maps(domain.len());
    let read = broadcast_map(&values.shape, &domain);
    let place = |b: &Builder<'c>, at: &[Value<'c>]| {
        let elements = maps.iter().map(|(t, map)| Ok(b.extract(t.value, &mapped(b, map, at)?)?));
        let elements = elements.collect::<Result<Vec<_>>>()?;
        places.place(b, &extents, at, &elements)
    };
    let source = Operand::Tensor(values);
    let element = |b: &Builder<'c>, at: &[Value<'c>]| element_of(b, &source, &mapped(b, &read, at)?, dtype);
    Ok(vec![Val::Tensor(write(cx, &t, &domain, combine, true, &place, &element)?)])
}

/// The indices that a map of dimensions and constants gives.
fn mapped<'c>(b: &Builder<'c>, map: &Map, at: &[Value<'c>]) -> Result<Vec<Value<'c>>> {
    let missing = || Error::Graph("a map beyond the indices".into());
    map.results
        .iter()
        .map(|result| match result {
            MapExpr::Dim(k) => at.get(*k).copied().ok_or_else(missing),
            MapExpr::Const(n) => Ok(b.const_index(*n)?),
            MapExpr::Linear(..) => Err(missing()),
        })
        .collect()
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
    let (extent, dtype) = (cx.size_value(&whole.shape[0])?, combine.dtype(t.dtype));
    let place =
        |b: &Builder<'c>, at: &[Value<'c>]| Ok(vec![wrapped(b, b.extract(index.value, at)?, index.dtype, extent)?]);
    let source = Operand::Tensor(source);
    let element = |b: &Builder<'c>, at: &[Value<'c>]| element_of(b, &source, at, dtype);
    let written = write(cx, &whole, &index.shape.clone(), combine, true, &place, &element)?;
    Ok(vec![Val::Tensor(reshape(cx, &written, &t.shape)?)])
}
