//! Histograms of integers: `bincount`.

use super::{Along, Combine, Writes, write};
use crate::error::Result;
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::elementwise::Operand;
use crate::linalg::index::{integers, wrapped};
use crate::linalg::reduce::{Axes, fold};
use crate::linalg::scalar::{Scalars, convert};
use m2m_aten::bind::Bound;
use m2m_mlir::{Builder, Value};
use m2m_record::{Arg, DType, Dim, Node};

/// `bincount(self, weights, minlength)`: `out[v]` is how many elements of `self` are `v`, or the sum of their weights, for
/// `v` from 0 to the greatest element, and to `minlength - 1` at least.
pub fn bincount<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let t = integers(cx, bound.tensor("self")?)?;
    let source = match bound.opt_tensor("weights")? {
        Some(name) => Operand::Tensor(cx.tensor(name)?),
        None => Operand::Literal(Arg::Int(1)),
    };
    let least = cx.size_arg(bound.arg("minlength")?)?;
    let least = cx.b.size_value(least)?;
    let greatest = greatest_and_one(cx, &t)?;
    let extent = cx.b.maxsi(greatest, least)?;
    let name = format!("bins_{}", cx.b.ordinal());
    cx.symbols.bind(&name, extent);
    let shape = vec![Dim::Expr(name)];
    let zero = Scalars::new(&cx.b, result.dtype).int(0)?;
    let zeros = Tensor { value: cx.filled(result.dtype, &shape, zero)?, dtype: result.dtype, shape };
    let place =
        |b: &Builder<'c>, at: &[Value<'c>]| Ok(vec![Some(wrapped(b, b.extract(t.value, at)?, t.dtype, extent)?)]);
    let part = |_: &Builder<'c>, at: &[Value<'c>]| Ok(vec![Along::At(at[0])]);
    let writes = Writes { domain: t.shape.clone(), place: &place, source, part: &part, scale: None };
    let counts = write(cx, &zeros, &writes, Combine::Add, true)?;
    Ok(vec![Val::Tensor(cx.conform(counts.value, result.dtype, &result.shape)?)])
}

/// The greatest element of a 1-d tensor and one, as an `index`; 0 where there is no element.
fn greatest_and_one<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>) -> Result<Value<'c>> {
    let none = Scalars::new(&cx.b, DType::I64).int(-1)?;
    let from = t.dtype;
    let greatest = fold(cx, t, &Axes::new(1, vec![0]), DType::I64, none, |s, x, so_far| {
        s.maximum(so_far, convert(s.b, x, from, DType::I64)?)
    })?;
    let greatest = cx.b.index_cast(cx.b.extract(greatest.value, &[])?, cx.b.index_type())?;
    Ok(cx.b.addi(greatest, cx.b.const_index(1)?)?)
}
