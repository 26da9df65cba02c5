//! Tensors from nothing: constants, ranges, triangles.

use super::cx::{Cx, Tensor, Val};
use super::elementwise::{Operand, into_mlir, scalar_value};
use super::scalar::{Scalars, convert};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{CmpI, Map, Value};
use m2m_record::{Arg, DType, Node, ScalarKind};

/// `full(size, fill_value)`: every element is the number.
pub fn full<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let scalar = match Operand::of(cx, bound.arg("fill_value")?)? {
        Operand::Literal(arg) => Scalars::new(&cx.b, result.dtype).literal(&arg)?,
        Operand::Scalar(kind, value) => scalar_value(&Scalars::new(&cx.b, result.dtype), kind, value)?,
        Operand::Tensor(t) => {
            let element = cx.b.extract(t.value, &[])?;
            convert(&cx.b, element, t.dtype, result.dtype)?
        }
    };
    let value = cx.filled(result.dtype, &result.shape, scalar)?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: result.dtype, shape: result.shape })])
}

/// `arange(start, end, step)`: element `i` is `start + i * step`, in i64 for integers, in f64 (f32 for halves) otherwise.
pub fn arange<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let start = Operand::of(cx, bound.arg("start")?)?;
    let step = Operand::of(cx, bound.arg("step")?)?;
    let dtype = if result.dtype.is_float() { DType::F64 } else { DType::I64 };
    let out = cx.empty(result.dtype, &result.shape)?;
    let value = cx.b.elementwise(&[], out, |b, _| {
        let s = Scalars::new(b, dtype);
        let run = || {
            let index = scalar_value(&s, ScalarKind::Int, b.index(0)?)?;
            let x = s.add(number(&s, &start)?, s.mul(index, number(&s, &step)?)?)?;
            convert(b, x, dtype, result.dtype)
        };
        run().map_err(into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: result.dtype, shape: result.shape })])
}

fn number<'c>(s: &Scalars<'_, 'c>, operand: &Operand<'c>) -> Result<Value<'c>> {
    match operand {
        Operand::Literal(arg) => s.literal(arg),
        Operand::Scalar(kind, value) => scalar_value(s, *kind, *value),
        Operand::Tensor(_) => Err(Error::unsupported("a range whose bounds are tensors")),
    }
}

/// `tril(self, diagonal)`: elements with `column - row <= diagonal`, zeros elsewhere.
pub fn tril<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    triangle(cx, node, bound, CmpI::Sle)
}

/// `triu(self, diagonal)`: elements with `column - row >= diagonal`, zeros elsewhere.
pub fn triu<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    triangle(cx, node, bound, CmpI::Sge)
}

fn triangle<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, keep: CmpI) -> Result<Vec<Val<'c>>> {
    let input = cx.tensor(bound.tensor("self")?)?;
    let shape = cx.result_type(node, 0)?.shape.clone();
    let diagonal = cx.size_arg(bound.arg("diagonal").unwrap_or(&Arg::Int(0)))?;
    let diagonal = cx.b.size_value(diagonal)?;
    let rank = input.rank();
    if rank < 2 {
        return Err(Error::Graph(format!("a triangle of a tensor of rank {rank}; expected 2 or more")));
    }
    let out = cx.empty(input.dtype, &shape)?;
    let value = cx.b.elementwise(&[(input.value, Map::identity(rank))], out, |b, x| {
        let run = || {
            let offset = b.subi(b.index(rank - 1)?, b.index(rank - 2)?)?;
            let inside = b.cmpi(keep, offset, diagonal)?;
            let zero = Scalars::new(b, input.dtype).int(0)?;
            Ok(b.select(inside, x[0], zero)?)
        };
        run().map_err(into_mlir)
    })?;
    Ok(vec![Val::Tensor(Tensor { value, dtype: input.dtype, shape })])
}
