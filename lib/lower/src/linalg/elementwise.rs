//! Elementwise operators: one `linalg.generic` each, with the arithmetic of `scalar` as its body.
//!
//! Shapes broadcast as in PyTorch (aligned at the last axis); operands are converted to the common dtype first.
//! Definitions: the operator's page in PyTorch's documentation and its CPU kernel.

pub mod binary;
pub mod select;
pub mod special;
pub mod unary;

use super::cx::{Cx, Tensor, Val};
use super::scalar::{Scalars, compute_dtype, convert};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_aten::promote::{Participant, result_type};
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Map, Value};
use m2m_record::{Arg, DType, Dim, ScalarKind, TensorType};

/// An operand of an elementwise operator.
#[derive(Clone, Debug)]
pub enum Operand<'c> {
    /// A tensor, broadcast as needed.
    Tensor(Tensor<'c>),
    /// A number computed by the graph.
    Scalar(ScalarKind, Value<'c>),
    /// A number in the call.
    Literal(Arg),
}

impl<'c> Operand<'c> {
    /// The operand that an argument names or is.
    pub fn of(cx: &mut Cx<'c>, arg: &Arg) -> Result<Self> {
        match arg {
            Arg::Value(name) => match cx.value(name)? {
                Val::Tensor(t) => Ok(Operand::Tensor(t.clone())),
                Val::Scalar(kind, value) => Ok(Operand::Scalar(*kind, *value)),
                Val::None => Err(Error::Graph(format!("value {name:?} is none"))),
            },
            Arg::Sym(text) => {
                let (kind, value) = cx.number(text)?;
                Ok(Operand::Scalar(kind, value))
            }
            literal => Ok(Operand::Literal(literal.clone())),
        }
    }

    /// How it takes part in type promotion.
    pub fn participant(&self) -> Result<Participant> {
        Ok(match self {
            Operand::Tensor(t) if t.rank() == 0 => Participant::ZeroDim(t.dtype),
            Operand::Tensor(t) => Participant::Tensor(t.dtype),
            Operand::Scalar(kind, _) => Participant::Number(*kind),
            Operand::Literal(Arg::Bool(_)) => Participant::Number(ScalarKind::Bool),
            Operand::Literal(Arg::Int(_)) => Participant::Number(ScalarKind::Int),
            Operand::Literal(Arg::Float(_)) => Participant::Number(ScalarKind::Float),
            Operand::Literal(Arg::Complex(..)) => Participant::Number(ScalarKind::Complex),
            Operand::Literal(other) => return Err(Error::Graph(format!("{other:?} is not a number"))),
        })
    }
}

/// The dtype that operands are brought to before the operation.
pub fn common_dtype(operands: &[Operand<'_>]) -> Result<DType> {
    let participants = operands.iter().map(Operand::participant).collect::<Result<Vec<_>>>()?;
    result_type(&participants)?.ok_or_else(|| Error::Graph("an operator without operands".into()))
}

/// How an operand of `shape` is read in a loop over `result`: axes of extent 1 are read at 0 where the result's extent
/// is another.
pub fn broadcast_map(shape: &[Dim], result: &[Dim]) -> Map {
    let lead = result.len().saturating_sub(shape.len());
    let results = shape.iter().enumerate().map(|(axis, dim)| {
        let is_read_once = *dim == Dim::Int(1) && result.get(lead + axis) != Some(&Dim::Int(1));
        if is_read_once { MapExpr::Const(0) } else { MapExpr::Dim(lead + axis) }
    });
    Map::new(result.len(), results.collect())
}

/// The argument at a place of the operator's schema.
pub fn arg_at<'b>(bound: &'b Bound<'_>, place: usize) -> Result<&'b Arg> {
    let name = bound.schema.args.get(place).map(|a| a.name);
    let name = name.ok_or_else(|| Error::Graph(format!("{} has no argument {place}", bound.op())))?;
    Ok(bound.arg(name)?)
}

/// Emits one elementwise loop. Operands are converted to `common`; the body computes in `compute_dtype(common)` and
/// yields a value of `body_dtype`, which is converted to the result's.
pub fn emit<'c>(
    cx: &mut Cx<'c>,
    result: &TensorType,
    operands: &[Operand<'c>],
    common: DType,
    body_dtype: DType,
    body: impl Fn(&Scalars<'_, 'c>, &[Value<'c>]) -> Result<Value<'c>>,
) -> Result<Tensor<'c>> {
    let out = cx.empty(result.dtype, &result.shape)?;
    let ins: Vec<(Value<'c>, Map)> = operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::Tensor(t) => Some((t.value, broadcast_map(&t.shape, &result.shape))),
            _ => None,
        })
        .collect();
    let value = cx.b.elementwise(&ins, out, |b, elements| {
        let scalars = Scalars::new(b, compute_dtype(common));
        let mut elements = elements.iter();
        let mut run = || -> Result<Value<'c>> {
            let mut values = Vec::with_capacity(operands.len());
            for operand in operands {
                values.push(match operand {
                    Operand::Tensor(t) => {
                        let element = *elements.next().ok_or_else(|| Error::Graph("an operand is missing".into()))?;
                        let element = convert(b, element, t.dtype, common)?;
                        convert(b, element, common, scalars.dtype)?
                    }
                    Operand::Scalar(kind, value) => scalar_value(&scalars, *kind, *value)?,
                    Operand::Literal(arg) => scalars.literal(arg)?,
                });
            }
            let result_value = body(&scalars, &values)?;
            convert(b, result_value, body_dtype, result.dtype)
        };
        run().map_err(into_mlir)
    });
    Ok(Tensor { value: value?, dtype: result.dtype, shape: result.shape.clone() })
}

/// A number of the graph as an element.
pub fn scalar_value<'c>(s: &Scalars<'_, 'c>, kind: ScalarKind, value: Value<'c>) -> Result<Value<'c>> {
    match kind {
        ScalarKind::Int => {
            let wide = s.b.index_cast(value, s.b.elem("i64")?)?;
            convert(s.b, wide, DType::I64, s.dtype)
        }
        ScalarKind::Float => convert(s.b, value, DType::F64, s.dtype),
        ScalarKind::Bool => convert(s.b, value, DType::Bool, s.dtype),
        other => Err(Error::unsupported(format!("a {other:?} number in a tensor operation"))),
    }
}

/// Bodies run inside the builder, which knows only its own errors; ours travel through as text.
pub fn into_mlir(error: Error) -> m2m_mlir::Error {
    match error {
        Error::Mlir(e) => e,
        other => {
            m2m_mlir::Error::Operand { name: "element".into(), expected: other.to_string(), found: "this node".into() }
        }
    }
}
