//! Matrix products: `linalg.matmul` and `linalg.batch_matmul`, half types accumulated in f32.

use super::cx::{Cx, Tensor, Val};
use super::elementwise::{self, Operand};
use super::scalar::{Scalars, accumulate_dtype};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Attribute, Map, attr};
use m2m_record::{Dim, Node, TensorType};
use m2m_tensor::{Expr, expr};

/// A product in the accumulator's type, from a zero start.
fn product<'c>(
    cx: &mut Cx<'c>,
    name: &str,
    a: &Tensor<'c>,
    b: &Tensor<'c>,
    shape: &[Dim],
    attributes: &[(&str, Attribute<'c>)],
) -> Result<Tensor<'c>> {
    if a.dtype != b.dtype {
        return Err(Error::unsupported(format!("a product of {} and {}", a.dtype, b.dtype)));
    }
    let dtype = accumulate_dtype(a.dtype);
    let zero = Scalars::new(&cx.b, dtype).int(0)?;
    let init = cx.filled(dtype, shape, zero)?;
    let results = cx.b.named(name, &[a.value, b.value], &[init], attributes)?;
    let value = *results.first().ok_or_else(|| Error::Graph(format!("{name} without a result")))?;
    Ok(Tensor { value, dtype, shape: shape.to_vec() })
}

/// Rounds an accumulator to the result's type, adding `bias` first where there is one.
fn finish<'c>(cx: &mut Cx<'c>, sum: Tensor<'c>, bias: Option<Tensor<'c>>, result: &TensorType) -> Result<Tensor<'c>> {
    let (acc, shape) = (sum.dtype, sum.shape.clone());
    let ty = TensorType::new(result.dtype, shape);
    match bias {
        None if acc == result.dtype => Ok(sum),
        None => elementwise::emit(cx, &ty, &[Operand::Tensor(sum)], acc, acc, |_, v| Ok(v[0])),
        Some(bias) => {
            let operands = [Operand::Tensor(sum), Operand::Tensor(bias)];
            elementwise::emit(cx, &ty, &operands, acc, acc, |s, v| s.add(v[0], v[1]))
        }
    }
}

/// `mm(self, mat2)`: `[m, k] x [k, n] -> [m, n]`
pub fn mm<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    named(cx, node, bound, "linalg.matmul")
}

/// `bmm(self, mat2)`: `[b, m, k] x [b, k, n] -> [b, m, n]`
pub fn bmm<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    named(cx, node, bound, "linalg.batch_matmul")
}

fn named<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, name: &str) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let (a, b) = (cx.tensor(bound.tensor("self")?)?, cx.tensor(bound.tensor("mat2")?)?);
    let sum = product(cx, name, &a, &b, &result.shape, &[])?;
    Ok(vec![Val::Tensor(finish(cx, sum, None, result)?)])
}

/// `linear(input, weight, bias)`: `input: [*, k]`, `weight: [n, k]`, `bias: [n]` give `[*, n]`, `input @ weight.T + bias`.
/// Leading axes are collapsed to one; the weight is read transposed, not copied. A weight `[k]` is one of `[1, k]` whose
/// axis the result lacks.
pub fn linear<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?;
    let (input, weight) = (cx.tensor(bound.tensor("input")?)?, cx.tensor(bound.tensor("weight")?)?);
    let bias = bound.opt_tensor("bias")?.map(|name| cx.tensor(name)).transpose()?;
    let weight = match weight.shape.as_slice() {
        [inner] => reshape(cx, &weight, &[Dim::Int(1), inner.clone()])?,
        _ => weight,
    };
    if weight.rank() != 2 || input.rank() == 0 {
        return Err(Error::unsupported(format!("linear of {:?} with weight {:?}", input.shape, weight.shape)));
    }
    let lead = &input.shape[..input.rank() - 1];
    let rows = lead.iter().map(Expr::try_from).collect::<std::result::Result<Vec<_>, _>>();
    let rows = Dim::from(&expr::mul(rows.map_err(|e| Error::Graph(e.to_string()))?));
    let flat = reshape(cx, &input, &[rows.clone(), input.shape[input.rank() - 1].clone()])?;
    let maps = [Map::dims(3, &[0, 2]), Map::dims(3, &[1, 2]), Map::dims(3, &[0, 1])];
    let maps = attr::maps(cx.b.context(), &maps);
    let shape = [rows, weight.shape[0].clone()];
    let sum = product(cx, "linalg.matmul", &flat, &weight, &shape, &[("indexing_maps", maps)])?;
    let rounded = finish(cx, sum, bias, result)?;
    Ok(vec![Val::Tensor(reshape(cx, &rounded, &result.shape)?)])
}
