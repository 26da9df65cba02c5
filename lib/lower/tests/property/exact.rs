//! What libtorch gives in f64 for a case of f32: where its own steps in f32 lose digits, as where large terms cancel, the
//! module may be nearer to the truth than they are.

use crate::draw::{Tensor, executed};
use m2m_record::{Arg, DType, Node, Type};
use m2m_torch::Engine;

/// The results that are f32, computed in f64 and rounded once; none of the others, and none where libtorch does not take
/// the call in f64.
pub fn results(
    engine: &Engine,
    inputs: &[(Tensor, Vec<u8>)],
    nodes: &[Node],
    expected: &[Tensor],
) -> Vec<Option<Vec<u8>>> {
    let inputs: Vec<_> = inputs.iter().map(|(tensor, bytes)| wide(tensor, bytes)).collect();
    let nodes: Vec<Node> = nodes.iter().map(widened).collect();
    let Ok(outputs) = executed(engine, &inputs, &nodes) else { return vec![None; expected.len()] };
    let rounded = |(tensor, output): (&Tensor, m2m_torch::Output)| {
        let is_same = tensor.dtype == DType::F32 && output.dtype == DType::F64 && output.shape == tensor.shape;
        let numbers = output.bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32);
        is_same.then(|| numbers.flat_map(f32::to_le_bytes).collect())
    };
    expected.iter().zip(outputs).map(rounded).collect()
}

/// An input of f32 as one of f64.
fn wide(tensor: &Tensor, bytes: &[u8]) -> (Tensor, Vec<u8>) {
    if tensor.dtype != DType::F32 {
        return (tensor.clone(), bytes.to_vec());
    }
    let numbers = bytes.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b)));
    (Tensor { dtype: DType::F64, ..tensor.clone() }, numbers.flat_map(f64::to_le_bytes).collect())
}

/// A call with f64 wherever it says f32.
fn widened(node: &Node) -> Node {
    let mut node = node.clone();
    node.args.iter_mut().chain(node.kwargs.values_mut()).for_each(widen);
    for result in &mut node.results {
        if let Type::Tensor(t) = &mut result.ty
            && t.dtype == DType::F32
        {
            t.dtype = DType::F64;
        }
    }
    node
}

fn widen(arg: &mut Arg) {
    match arg {
        Arg::DType(dtype) if *dtype == DType::F32 => *dtype = DType::F64,
        Arg::List(items) => items.iter_mut().for_each(widen),
        _ => {}
    }
}
