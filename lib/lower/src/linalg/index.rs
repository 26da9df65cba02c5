//! Reading from places that tensors name: `index_select`, `gather`, `embedding`, `index` with tensors and masks.
//!
//! Each is one parallel `linalg.generic` that reads the source at computed places. Indices count from the end where
//! negative; what is still outside is brought to the nearest element, so that no memory outside is read. `nonzero` finds
//! the places of true elements, `search` bisects sorted ones, `shift` turns axes.

pub mod nms;
pub mod nonzero;
pub mod search;
pub mod shift;

use super::cx::{Cx, Tensor, Val, axis_of, need_rank};
use super::elementwise::into_mlir;
use super::reduce::arg::at_least_1d;
use super::reduce::product;
use super::scalar::convert;
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Builder, CmpI, Map, Value};
use m2m_record::{DType, Dim, Node};

/// An index element as a place on an axis of `extent`.
pub fn wrapped<'c>(b: &Builder<'c>, x: Value<'c>, dtype: DType, extent: Value<'c>) -> Result<Value<'c>> {
    let at = b.index_cast(convert(b, x, dtype, DType::I64)?, b.index_type())?;
    let (zero, one) = (b.const_index(0)?, b.const_index(1)?);
    let is_negative = b.cmpi(CmpI::Slt, at, zero)?;
    let from_start = b.select(is_negative, b.addi(at, extent)?, at)?;
    let last = b.subi(extent, one)?;
    Ok(b.maxsi(b.minsi(from_start, last)?, zero)?)
}

/// Reads `source` at computed places: `place` gets the output's indices and the elements of `ins`.
pub fn read<'c>(
    cx: &mut Cx<'c>,
    source: &Tensor<'c>,
    shape: &[Dim],
    ins: &[(Value<'c>, Map)],
    place: impl FnOnce(&Builder<'c>, &[Value<'c>], &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> Result<Tensor<'c>> {
    let out = cx.empty(source.dtype, shape)?;
    let value = cx.b.elementwise(ins, out, |b, elements| {
        let run = || {
            let at = (0..shape.len()).map(|axis| Ok(b.index(axis)?)).collect::<Result<Vec<_>>>()?;
            Ok(b.extract(source.value, &place(b, &at, elements)?)?)
        };
        run().map_err(into_mlir)
    })?;
    Ok(Tensor { value, dtype: source.dtype, shape: shape.to_vec() })
}

/// A tensor argument whose elements are integers.
pub fn integers<'c>(cx: &Cx<'c>, name: &str) -> Result<Tensor<'c>> {
    let t = cx.tensor(name)?;
    if t.dtype.is_float() || t.dtype.is_complex() || t.dtype == DType::Bool {
        return Err(Error::unsupported(format!("indices of type {}", t.dtype)));
    }
    Ok(t)
}

/// Elements along an axis chosen by a 1-d (or 0-d) index tensor, which takes the axis's place.
fn along<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axis: usize, index: &Tensor<'c>) -> Result<Tensor<'c>> {
    if axis >= t.rank() {
        return Err(Error::Graph(format!("axis {axis} of a tensor of rank {}", t.rank())));
    }
    let mut shape = t.shape.clone();
    shape.splice(axis..=axis, index.shape.iter().cloned());
    let extent = cx.size_value(&t.shape[axis])?;
    let taken: Vec<usize> = (axis..axis + index.rank()).collect();
    let ins = [(index.value, Map::dims(shape.len(), &taken))];
    read(cx, t, &shape, &ins, |b, at, x| {
        let mut place = at.to_vec();
        place.splice(axis..axis + index.rank(), [wrapped(b, x[0], index.dtype, extent)?]);
        Ok(place)
    })
}

/// A tensor in the recorded shape of the node's result.
fn shaped<'c>(cx: &mut Cx<'c>, node: &Node, t: &Tensor<'c>) -> Result<Vec<Val<'c>>> {
    let shape = cx.result_type(node, 0)?.shape.clone();
    Ok(vec![Val::Tensor(reshape(cx, t, &shape)?)])
}

/// `embedding(weight, indices)`: `weight: [n, d]`, `indices: [*]` give `[*, d]`, row `indices[…]` of the weight.
pub fn embedding<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let weight = cx.tensor(bound.tensor("weight")?)?;
    let indices = integers(cx, bound.tensor("indices")?)?;
    let rows = along(cx, &weight, 0, &indices)?;
    shaped(cx, node, &rows)
}

/// `index_select(self, dim, index)`: positions `index` of an axis.
pub fn index_select<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let axis = t.axis(bound.int("dim")?)?;
    let t = at_least_1d(cx, &t)?;
    let index = integers(cx, bound.tensor("index")?)?;
    let chosen = along(cx, &t, axis, &index)?;
    shaped(cx, node, &chosen)
}

/// `gather(self, dim, index)`: `out[…, i, …] = self[…, index[…, i, …], …]`, of the index's shape.
pub fn gather<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let index = integers(cx, bound.tensor("index")?)?;
    let axis = axis_of(t.rank().max(index.rank()), bound.int("dim")?)?;
    if t.rank().max(1) != index.rank().max(1) && index.shape.contains(&Dim::Int(0)) {
        // No place is read, so the ranks may differ.
        let value = cx.empty(t.dtype, &index.shape)?;
        return shaped(cx, node, &Tensor { value, dtype: t.dtype, shape: index.shape });
    }
    let (t, index) = (at_least_1d(cx, &t)?, at_least_1d(cx, &index)?);
    need_rank("an index", &index.shape, t.rank())?;
    let extent = cx.size_value(&t.shape[axis])?;
    let ins = [(index.value, Map::identity(index.rank()))];
    let gathered = read(cx, &t, &index.shape, &ins, |b, at, x| {
        let mut place = at.to_vec();
        place[axis] = wrapped(b, x[0], index.dtype, extent)?;
        Ok(place)
    })?;
    shaped(cx, node, &gathered)
}

/// `take(self, index)`: elements by their row-major number.
pub fn take<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    let count = product(t.shape.iter())?;
    let flat = reshape(cx, &t, &[count])?;
    let index = integers(cx, bound.tensor("index")?)?;
    let taken = along(cx, &flat, 0, &index)?;
    shaped(cx, node, &taken)
}

/// Index tensors for the axes of a tensor, broadcast against one another, masks replaced by the places of their true
/// elements.
pub struct Places<'c> {
    /// An index tensor for each axis, or none where the axis is taken whole.
    pub axes: Vec<Option<Tensor<'c>>>,
    /// The shape that the index tensors broadcast to.
    pub block: Vec<Dim>,
    /// Where the block stands in the result: in place of the indexed axes if they are neighbours, else first.
    pub block_at: usize,
}

impl<'c> Places<'c> {
    /// From the argument `indices` of a tensor of `rank` dimensions.
    pub fn of(cx: &mut Cx<'c>, rank: usize, names: &[Option<&str>]) -> Result<Self> {
        let mut axes: Vec<Option<Tensor<'c>>> = Vec::new();
        for name in names {
            let Some(name) = name else {
                axes.push(None);
                continue;
            };
            let t = cx.tensor(name)?;
            if matches!(t.dtype, DType::Bool | DType::U8) {
                axes.extend(nonzero::columns(cx, &t)?.into_iter().map(Some));
            } else {
                axes.push(Some(integers(cx, name)?));
            }
        }
        if axes.len() > rank {
            return Err(Error::Graph(format!("{} indices for a tensor of rank {rank}", axes.len())));
        }
        axes.resize(rank, None);
        let mut block = Vec::new();
        for t in axes.iter().flatten() {
            block = broadcast_shape(&block, &t.shape)?;
        }
        let indexed: Vec<usize> = (0..rank).filter(|axis| axes[*axis].is_some()).collect();
        let first = indexed.first().copied().unwrap_or(0);
        let is_run = indexed.iter().enumerate().all(|(k, axis)| *axis == first + k);
        Ok(Places { axes, block, block_at: if is_run { first } else { 0 } })
    }

    /// Axes that are taken whole.
    fn whole(&self) -> impl Iterator<Item = usize> {
        self.axes.iter().enumerate().filter(|(_, t)| t.is_none()).map(|(axis, _)| axis)
    }

    /// The shape of all places: the block among the axes that are taken whole.
    pub fn shape(&self, t: &Tensor<'c>) -> Vec<Dim> {
        let mut shape: Vec<Dim> = self.whole().map(|axis| t.shape[axis].clone()).collect();
        shape.splice(self.block_at..self.block_at, self.block.iter().cloned());
        shape
    }

    /// How each index tensor is read over all places.
    pub fn maps(&self, rank: usize) -> Vec<(Tensor<'c>, Map)> {
        let map = |t: &Tensor<'c>| {
            let lead = self.block.len().saturating_sub(t.rank());
            let results = t.shape.iter().enumerate().map(|(k, dim)| {
                let is_repeated = *dim == Dim::Int(1) && self.block.get(lead + k) != Some(&Dim::Int(1));
                if is_repeated { MapExpr::Const(0) } else { MapExpr::Dim(self.block_at + lead + k) }
            });
            Map::new(rank, results.collect())
        };
        self.axes.iter().flatten().map(|t| (t.clone(), map(t))).collect()
    }

    /// The place in the tensor of a place among all: `elements` are those of the index tensors there.
    pub fn place(
        &self,
        b: &Builder<'c>,
        extents: &[Value<'c>],
        at: &[Value<'c>],
        elements: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>> {
        let mut elements = elements.iter();
        let mut whole = (0..at.len()).filter(|k| !(self.block_at..self.block_at + self.block.len()).contains(k));
        let missing = || Error::Graph("an index without its place".into());
        self.axes
            .iter()
            .zip(extents)
            .map(|(index, extent)| match index {
                Some(t) => wrapped(b, *elements.next().ok_or_else(missing)?, t.dtype, *extent),
                None => whole.next().and_then(|k| at.get(k)).copied().ok_or_else(missing),
            })
            .collect()
    }
}

/// The shape that two shapes broadcast to.
pub fn broadcast_shape(x: &[Dim], y: &[Dim]) -> Result<Vec<Dim>> {
    let rank = x.len().max(y.len());
    let one = Dim::Int(1);
    let get = |shape: &[Dim], k: usize| {
        let lead = rank - shape.len();
        k.checked_sub(lead).and_then(|k| shape.get(k)).cloned().unwrap_or(Dim::Int(1))
    };
    (0..rank)
        .map(|k| match (get(x, k), get(y, k)) {
            (a, b) if a == b || b == one => Ok(a),
            (a, b) if a == one => Ok(b),
            (Dim::Int(a), Dim::Int(b)) => Err(Error::Graph(format!("extents {a} and {b} do not broadcast"))),
            // Equal at run time, or the program would not have been exported; the known one says more.
            (Dim::Int(a), _) => Ok(Dim::Int(a)),
            (_, b) => Ok(b),
        })
        .collect()
}

/// Extents of all axes as values.
pub fn extents<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>) -> Result<Vec<Value<'c>>> {
    t.shape.iter().map(|dim| cx.size_value(dim)).collect()
}

/// `index(self, indices)`: `out[…] = self[i0[…], i1[…], …]`, the index tensors broadcast, axes without one whole.
pub fn index<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let t = cx.tensor(bound.tensor("self")?)?;
    let places = Places::of(cx, t.rank(), &bound.opt_tensors("indices")?)?;
    let shape = places.shape(&t);
    let maps = places.maps(shape.len());
    let extents = extents(cx, &t)?;
    let ins: Vec<_> = maps.iter().map(|(t, map)| (t.value, map.clone())).collect();
    let read = read(cx, &t, &shape, &ins, |b, at, x| places.place(b, &extents, at, x))?;
    Ok(vec![Val::Tensor(cx.conform(read.value, result.dtype, &result.shape)?)])
}
