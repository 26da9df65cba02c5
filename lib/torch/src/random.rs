//! Inputs made from a seed: of the right type and shape, in the range that their use allows, the same on every machine.
//!
//! Floats are sums of twelve uniform numbers less six, close to a normal distribution and exact in f64. Integers are
//! below what indexes with them: rows of an embedding, sizes of a dimension, classes; else below ten. Symbols take the
//! value that they had at export.

use crate::error::Error;
use crate::value::Value;
use m2m_graph::Graph;
use m2m_record::{Arg, DType, Dim, InputRole, Node, ScalarKind, TensorType, Type};
use m2m_tensor::Expr;
use std::collections::HashMap;

/// Integers that nothing limits are below this.
const LIMIT: i64 = 10;

/// Most views between an input and what indexes with it.
const MAX_DEPTH: usize = 32;

/// A made input.
#[derive(Clone, Debug)]
pub enum Made {
    /// A tensor.
    Tensor {
        /// Element type.
        dtype: DType,
        /// Sizes.
        shape: Vec<i64>,
        /// Row-major little-endian elements.
        bytes: Vec<u8>,
    },
    /// A number or bool.
    Scalar(Value),
}

/// Makes all inputs of a graph that users give, by their values' names.
pub fn inputs(graph: &Graph, seed: u64) -> Result<Vec<(String, Made)>, Error> {
    let symbols = symbols(graph);
    let users = graph.inputs.iter().filter(|input| input.role == InputRole::UserInput);
    let mut generator = Generator(seed);
    users
        .map(|input| {
            let wrong = |message: String| Error::Input { name: input.value.clone(), message };
            let made = match &input.ty {
                Type::Tensor(ty) => {
                    let shape = shape(ty, &symbols).map_err(|error| wrong(error.to_string()))?;
                    let use_of = Use::of(graph, &input.value, &symbols, 0);
                    let bytes = elements(&mut generator, ty.dtype, &shape, &use_of);
                    Made::Tensor { dtype: ty.dtype, bytes: bytes.map_err(|error| wrong(error.to_string()))?, shape }
                }
                Type::Scalar { kind, expr } => Made::Scalar(scalar(&mut generator, *kind, expr.as_deref(), &symbols)),
                other => return Err(wrong(format!("an input of type {other:?} cannot be made"))),
            };
            Ok((input.value.clone(), made))
        })
        .collect()
}

/// A sequence of numbers by its seed (splitmix64).
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to below `limit`.
    fn below(&mut self, limit: i64) -> i64 {
        (self.next() % limit.max(1).unsigned_abs()).cast_signed()
    }

    fn normal(&mut self) -> f64 {
        let mut sum = 0;
        for _ in 0..3 {
            let bits = self.next();
            sum += (0..4).map(|k| (bits >> (16 * k)) & 0xFFFF).sum::<u64>();
        }
        sum as f64 / 65536.0 - 6.0
    }
}

/// What symbols stand for: what they were at export, else the least that is allowed from two on.
fn symbols(graph: &Graph) -> HashMap<&str, i64> {
    let value = |symbol: &m2m_record::Symbol| {
        let (min, max) = (symbol.min.unwrap_or(i64::MIN), symbol.max.unwrap_or(i64::MAX));
        match symbol.hint {
            Some(Arg::Int(hint)) if hint >= min && hint <= max => hint,
            _ => 2.clamp(min, max.max(min)),
        }
    };
    graph.symbols.iter().map(|symbol| (symbol.name.as_str(), value(symbol))).collect()
}

fn size(dim: &Dim, symbols: &HashMap<&str, i64>) -> Result<i64, Error> {
    let expr = Expr::try_from(dim).map_err(|error| Error::value(error.to_string()))?;
    expr.eval_int(&|name| symbols.get(name).copied()).map_err(|error| Error::value(error.to_string()))
}

fn shape(ty: &TensorType, symbols: &HashMap<&str, i64>) -> Result<Vec<i64>, Error> {
    ty.shape.iter().map(|dim| size(dim, symbols)).collect()
}

fn scalar(generator: &mut Generator, kind: ScalarKind, expr: Option<&str>, symbols: &HashMap<&str, i64>) -> Value {
    let known = expr.and_then(|text| size(&Dim::Expr(text.to_owned()), symbols).ok());
    match kind {
        ScalarKind::Int => Value::Int(known.unwrap_or_else(|| generator.below(LIMIT))),
        ScalarKind::Bool => Value::Bool(generator.below(2) == 1),
        ScalarKind::Float => Value::Float(generator.normal()),
        ScalarKind::Complex => Value::Complex(generator.normal(), generator.normal()),
        ScalarKind::Str => Value::Str(String::new()),
    }
}

/// How the elements of an input are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// As numbers.
    Numbers,
    /// As indices below a limit.
    Below(i64),
    /// As positions that never fall, starting at zero.
    Offsets,
}

impl Use {
    fn of(graph: &Graph, value: &str, symbols: &HashMap<&str, i64>, depth: usize) -> Use {
        let uses = graph.nodes.iter().filter(|node| mentions(node, value));
        let found = uses.map(|node| Use::in_node(graph, node, value, symbols, depth));
        found.fold(Use::Numbers, |known, found| match (known, found) {
            (Use::Below(a), Use::Below(b)) => Use::Below(a.min(b)),
            (Use::Numbers, other) | (other, Use::Numbers) => other,
            (Use::Offsets, _) | (_, Use::Offsets) => Use::Offsets,
        })
    }

    fn in_node(graph: &Graph, node: &Node, value: &str, symbols: &HashMap<&str, i64>, depth: usize) -> Use {
        let types = graph.types();
        let is_arg = |at: usize| matches!(node.args.get(at), Some(Arg::Value(name)) if name == value);
        let dims = |at: usize| match node.args.get(at) {
            Some(Arg::Value(name)) => types.get(name.as_str()).and_then(|ty| shape(ty.as_tensor()?, symbols).ok()),
            _ => None,
        };
        let size_at = |at: usize, dim: i64| {
            let dims = dims(at)?;
            let dim = if dim < 0 { dim + dims.len() as i64 } else { dim };
            dims.get(usize::try_from(dim).ok()?).copied()
        };
        let int = |at: usize| if let Some(Arg::Int(n)) = node.args.get(at) { Some(*n) } else { None };
        let below = |limit: Option<i64>| limit.map_or(Use::Numbers, Use::Below);
        let name = node.op.split('.').nth(1).unwrap_or_default().trim_end_matches('_');
        match name {
            "embedding" | "embedding_bag" | "_embedding_bag" | "_embedding_bag_forward_only" if is_arg(1) => {
                below(size_at(0, 0))
            }
            "embedding_bag" | "_embedding_bag" | "_embedding_bag_forward_only" if is_arg(2) => Use::Offsets,
            "gather" | "index_select" | "index_add" | "index_copy" | "index_fill" | "scatter" | "scatter_add"
            | "scatter_reduce"
                if is_arg(2) =>
            {
                below(int(1).and_then(|dim| size_at(0, dim)))
            }
            "take_along_dim" if is_arg(1) => below(int(2).and_then(|dim| size_at(0, dim))),
            "take" if is_arg(1) => below(dims(0).map(|dims| dims.iter().product())),
            "one_hot" if is_arg(0) => below(int(1).filter(|classes| *classes > 0)),
            "cross_entropy_loss" | "nll_loss" | "nll_loss_nd" | "nll_loss_forward" if is_arg(1) => {
                below(dims(0).and_then(|dims| dims.get(usize::from(dims.len() > 1)).copied()))
            }
            "index" | "index_put" | "_unsafe_index" => {
                let Some(Arg::List(indices)) = node.args.get(1) else { return Use::Numbers };
                let at = indices.iter().position(|arg| matches!(arg, Arg::Value(name) if name == value));
                below(at.and_then(|dim| size_at(0, dim as i64)))
            }
            "to" | "_to_copy" | "view" | "reshape" | "unsqueeze" | "squeeze" | "expand" | "flatten" | "permute"
            | "transpose" | "contiguous" | "clone" | "alias" | "detach" | "slice" | "select" | "t" | "unflatten"
            | "repeat"
                if is_arg(0) && depth < MAX_DEPTH =>
            {
                let result = node.results.first().and_then(|result| result.value.as_deref());
                result.map_or(Use::Numbers, |result| Use::of(graph, result, symbols, depth + 1))
            }
            _ => Use::Numbers,
        }
    }
}

fn mentions(node: &Node, value: &str) -> bool {
    let mut found = false;
    node.args.iter().chain(node.kwargs.values()).for_each(|arg| arg.for_each_value(&mut |name| found |= name == value));
    found
}

/// All elements of a tensor.
fn elements(generator: &mut Generator, dtype: DType, shape: &[i64], use_of: &Use) -> Result<Vec<u8>, Error> {
    let count = m2m_tensor::layout::count(shape).and_then(|n| usize::try_from(n).ok());
    let count = count.filter(|_| m2m_tensor::layout::bytes(dtype, shape).is_some());
    let count = count.ok_or_else(|| Error::value(format!("{dtype} {shape:?} is too large")))?;
    let mut bytes = Vec::new();
    for _ in 0..count {
        element(generator, dtype, use_of, &mut bytes)?;
    }
    Ok(bytes)
}

fn element(generator: &mut Generator, dtype: DType, use_of: &Use, out: &mut Vec<u8>) -> Result<(), Error> {
    match dtype {
        DType::Bool => out.push(generator.below(2) as u8),
        DType::F16 => out.extend(half::f16::from_f64(generator.normal()).to_le_bytes()),
        DType::BF16 => out.extend(half::bf16::from_f64(generator.normal()).to_le_bytes()),
        DType::F32 => out.extend((generator.normal() as f32).to_le_bytes()),
        DType::F64 => out.extend(generator.normal().to_le_bytes()),
        DType::C32 => [0; 2].iter().for_each(|_| out.extend(half::f16::from_f64(generator.normal()).to_le_bytes())),
        DType::C64 => [0; 2].iter().for_each(|_| out.extend((generator.normal() as f32).to_le_bytes())),
        DType::C128 => [0; 2].iter().for_each(|_| out.extend(generator.normal().to_le_bytes())),
        // Powers of two around one; a sign and an exponent whose values stay below two.
        DType::F8E8M0FNU => out.push(125 + generator.below(5) as u8),
        dtype if dtype.is_float() && dtype.bits() == 8 => out.push(generator.next() as u8 & 0xBF),
        dtype if dtype.is_integer() && dtype.bits() >= 8 => {
            let most = if dtype.bits() == 8 {
                128
            } else if dtype.bits() == 16 {
                1 << 15
            } else {
                i64::MAX
            };
            let value = match use_of {
                Use::Numbers => generator.below(LIMIT),
                Use::Below(limit) => generator.below((*limit).min(most)),
                Use::Offsets => 0,
            };
            out.extend(&value.to_le_bytes()[..(dtype.bits() / 8) as usize]);
        }
        other => return Err(Error::value(format!("elements of {other} cannot be made"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use m2m_record::{Input, TypedValue};

    fn graph() -> Graph {
        let tensor =
            |dtype, shape: &[i64]| Type::from(TensorType::new(dtype, shape.iter().map(|n| Dim::Int(*n)).collect()));
        let input = |value: &str, role, ty: Type| Input::new("original", value, role, ty);
        let node = |op: &str, args, result: &str| Node {
            op: op.into(),
            args,
            results: vec![TypedValue { value: Some(result.into()), ty: tensor(DType::I64, &[40]) }],
            ..Node::default()
        };
        Graph {
            inputs: vec![
                input("w", InputRole::Parameter, tensor(DType::F32, &[5, 3])),
                input("ids", InputRole::UserInput, tensor(DType::I64, &[4, 10])),
                input("x", InputRole::UserInput, tensor(DType::F32, &[1000])),
            ],
            nodes: vec![
                node("aten.view.default", vec![Arg::value("ids"), Arg::ints([40])], "flat"),
                node("aten.embedding.default", vec![Arg::value("w"), Arg::value("flat")], "rows"),
            ],
            ..Graph::default()
        }
    }

    #[test]
    fn indices_stay_below_what_they_index() {
        let made = inputs(&graph(), 7).unwrap();
        let Made::Tensor { bytes, shape, .. } = &made[0].1 else { panic!("a tensor") };
        let rows: Vec<i64> = bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!((shape.as_slice(), rows.len()), ([4, 10].as_slice(), 40));
        assert!(rows.iter().all(|row| (0..5).contains(row)));
        assert!((0..5).all(|row| rows.contains(&row)), "{rows:?}");
    }

    #[test]
    fn floats_are_near_normal_and_the_same_for_the_same_seed() {
        let floats = |seed| {
            let Made::Tensor { bytes, .. } = inputs(&graph(), seed).unwrap().remove(1).1 else { panic!("a tensor") };
            bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
        };
        let x = floats(1);
        assert_eq!(x, floats(1));
        assert_ne!(x, floats(2));
        let mean = x.iter().sum::<f32>() / 1000.0;
        let variance = x.iter().map(|v| v * v).sum::<f32>() / 1000.0;
        assert!(mean.abs() < 0.15 && (variance - 1.0).abs() < 0.2, "{mean} {variance}");
    }
}
