//! Places in sorted sequences, by bisection: `searchsorted`, `bucketize`, and membership, `isin`.

use super::{Tensor, shaped};
use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Val};
use crate::linalg::elementwise::{Operand, into_mlir};
use crate::linalg::reduce::product;
use crate::linalg::scalar::{Compare, Scalars, compute_dtype, convert};
use crate::linalg::sort::bisection_rounds;
use crate::linalg::view::reshape;
use m2m_aten::bind::Bound;
use m2m_aten::promote::promote_types;
use m2m_mlir::{Builder, CmpI, Map, Value};
use m2m_record::{Arg, DType, Node};

/// A search: sequences along their last axis, and on which side of equal elements places are.
struct Search<'c> {
    sequence: Tensor<'c>,
    /// The order of the sequence's elements, where they are not in order themselves.
    sorter: Option<Tensor<'c>>,
    is_right: bool,
    dtype: DType,
}

impl<'c> Search<'c> {
    /// The number of elements before the wanted one: those below it, or not above it on the right side.
    fn emit(
        &self,
        b: &Builder<'c>,
        row: &[Value<'c>],
        wanted: Value<'c>,
        extent: Value<'c>,
        rounds: Value<'c>,
    ) -> Result<Value<'c>> {
        let (zero, one) = (b.const_index(0)?, b.const_index(1)?);
        let last = b.subi(extent, one)?;
        let found = b.for_loop((zero, rounds, one), &[zero, extent], |b, _, carried| {
            let (low, high) = (carried[0], carried[1]);
            let open = b.cmpi(CmpI::Slt, low, high)?;
            let probe = b.minsi(b.shrui(b.addi(low, high)?, one)?, last)?;
            let is_reached = self.is_reached(b, row, probe, wanted).map_err(into_mlir)?;
            let up = b.andi(open, b.xori(is_reached, b.const_bool(true)?)?)?;
            let stays = b.ori(up, b.xori(open, b.const_bool(true)?)?)?;
            Ok(vec![b.select(up, b.addi(probe, one)?, low)?, b.select(stays, high, probe)?])
        })?;
        Ok(found[0])
    }

    /// Whether the element at `probe` is at or above (on the right side: above) the wanted one.
    fn is_reached(&self, b: &Builder<'c>, row: &[Value<'c>], probe: Value<'c>, wanted: Value<'c>) -> Result<Value<'c>> {
        let s = Scalars::new(b, compute_dtype(self.dtype));
        let mut place = row.to_vec();
        place.push(probe);
        if let Some(sorter) = &self.sorter {
            let at = convert(b, b.extract(sorter.value, &place)?, sorter.dtype, DType::I64)?;
            place.pop();
            place.push(b.index_cast(at, b.index_type())?);
        }
        let element = convert(b, b.extract(self.sequence.value, &place)?, self.sequence.dtype, s.dtype)?;
        s.compare(if self.is_right { Compare::Gt } else { Compare::Ge }, element, wanted)
    }
}

/// Searches for every element of `wanted`. A 1-d sequence serves all of them, others have their leading axes.
fn search<'c>(cx: &mut Cx<'c>, node: &Node, search: &Search<'c>, wanted: &Operand<'c>) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let axis = search.sequence.real_axis(-1)?;
    let extent = cx.size_value(&search.sequence.shape[axis])?;
    let rounds = bisection_rounds(cx, &search.sequence.shape[axis])?;
    let (ins, shape, from) = match wanted {
        Operand::Tensor(t) => (vec![(t.value, Map::identity(t.rank()))], t.shape.clone(), t.dtype),
        _ => (Vec::new(), Vec::new(), search.dtype),
    };
    let out = cx.empty(result.dtype, &shape)?;
    let value = cx.b.elementwise(&ins, out, |b, v| {
        let run = || {
            let s = Scalars::new(b, compute_dtype(search.dtype));
            let wanted = match wanted {
                Operand::Tensor(_) => convert(b, v[0], from, s.dtype)?,
                Operand::Literal(arg) => s.literal(arg)?,
                Operand::Scalar(kind, value) => crate::linalg::elementwise::scalar_value(&s, *kind, *value)?,
            };
            let row = (0..axis).map(|k| Ok(b.index(k)?)).collect::<Result<Vec<_>>>()?;
            let place = search.emit(b, &row, wanted, extent, rounds)?;
            Ok(b.index_cast(place, b.elem(result.dtype.name())?)?)
        };
        run().map_err(into_mlir)
    })?;
    shaped(cx, node, &Tensor { value, dtype: result.dtype, shape })
}

/// The dtype in which a sequence and what is wanted are compared.
fn compared(sequence: DType, wanted: &Operand<'_>) -> Result<DType> {
    match wanted {
        Operand::Tensor(t) => promote_types(sequence, t.dtype).map_err(Error::from),
        Operand::Literal(Arg::Float(_)) if !sequence.is_float() => Ok(DType::F32),
        _ => Ok(sequence),
    }
}

/// `searchsorted(sorted_sequence, self, right, side, sorter)`: for each element, how many of the sequence are below it,
/// or on the right side not above it.
pub fn searchsorted<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let sequence = cx.tensor(bound.tensor("sorted_sequence")?)?;
    let wanted = Operand::of(cx, bound.arg("self")?)?;
    let sorter = bound.opt_tensor("sorter")?.map(|name| super::integers(cx, name)).transpose()?;
    let is_right = bound.bool("right")? || bound.str_or("side")? == Some("right");
    let dtype = compared(sequence.dtype, &wanted)?;
    search(cx, node, &Search { sequence, sorter, is_right, dtype }, &wanted)
}

/// `bucketize(self, boundaries, right)`: as `searchsorted(boundaries, self, right)`.
pub fn bucketize<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let sequence = cx.tensor(bound.tensor("boundaries")?)?;
    let wanted = Operand::of(cx, bound.arg("self")?)?;
    let is_right = bound.bool("right")?;
    let dtype = compared(sequence.dtype, &wanted)?;
    search(cx, node, &Search { sequence, sorter: None, is_right, dtype }, &wanted)
}

/// `isin(elements, test_elements, invert)`: whether each element is among the others: the test elements are sorted, and
/// the place that is found holds an equal one. NaN is in nothing.
pub fn isin<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let (t, tests) = (cx.tensor(bound.tensor("elements")?)?, cx.tensor(bound.tensor("test_elements")?)?);
    let is_inverted = bound.bool("invert")?;
    let count = product(tests.shape.iter())?;
    let flat = reshape(cx, &tests, &[count])?;
    let sequence = crate::linalg::sort::sorted(cx, &flat, 0, false)?.values;
    let dtype = promote_types(t.dtype, tests.dtype)?;
    let extent = cx.size_value(&sequence.shape[0])?;
    let rounds = bisection_rounds(cx, &sequence.shape[0])?;
    let bisection = Search { sequence, sorter: None, is_right: false, dtype };
    let out = cx.empty(DType::Bool, &t.shape)?;
    let value = cx.b.elementwise(&[(t.value, Map::identity(t.rank()))], out, |b, v| {
        let run = || {
            let s = Scalars::new(b, compute_dtype(dtype));
            let wanted = convert(b, v[0], t.dtype, s.dtype)?;
            let place = bisection.emit(b, &[], wanted, extent, rounds)?;
            let is_inside = b.cmpi(CmpI::Slt, place, extent)?;
            let place = b.maxsi(b.minsi(place, b.subi(extent, b.const_index(1)?)?)?, b.const_index(0)?)?;
            let element = b.extract(bisection.sequence.value, &[place])?;
            let element = convert(b, element, bisection.sequence.dtype, s.dtype)?;
            let is_found = b.andi(is_inside, s.compare(Compare::Eq, element, wanted)?)?;
            Ok(b.xori(is_found, b.const_bool(is_inverted)?)?)
        };
        run().map_err(into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: result.dtype, shape: result.shape })])
}
