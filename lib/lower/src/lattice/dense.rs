//! Operators of ATen that an operation of the dialect computes exactly, on matrices or on the features of a sparse value.
//!
//! Two sparse values are added, multiplied, … and concatenated where they are known to have the same rows, which is what
//! their stand-ins are to ATen; else it takes an operator of `lattice`, which says how rows are joined.

use super::cx::{Cx, Dense, SparseId, Val, one, row_type};
use crate::error::{Error, Result};
use m2m_aten::Bound;
use m2m_aten::bind::describe;
use m2m_lattice::build::Attr;
use m2m_lattice::plan::ValueType;
use m2m_lattice::schema::{Activation, BinaryOp, Elementwise, Family, GeluApprox, Join, Op};
use m2m_record::{Arg, DType, Type};

/// Gives the first result of a call; the others are there for training and have no counterpart.
pub type Rule = fn(&mut Cx<'_>, &Bound<'_>) -> Result<Val>;

/// Every operator with its rule, sorted.
const TABLE: &[(&str, Rule)] = &[
    ("aten._native_batch_norm_legit_no_training.default", batch_norm),
    ("aten._softmax.default", softmax),
    ("aten.add.Tensor", |cx, b| binary(cx, b, BinaryOp::Add)),
    ("aten.addmm.default", addmm),
    ("aten.batch_norm.default", batch_norm),
    ("aten.cat.default", cat),
    ("aten.embedding.default", embedding),
    ("aten.exp.default", |cx, b| elementwise(cx, b, Elementwise::Exp)),
    ("aten.gelu.default", gelu),
    ("aten.layer_norm.default", layer_norm),
    ("aten.leaky_relu.default", leaky_relu),
    ("aten.linear.default", linear),
    ("aten.maximum.default", |cx, b| binary(cx, b, BinaryOp::Maximum)),
    ("aten.minimum.default", |cx, b| binary(cx, b, BinaryOp::Minimum)),
    ("aten.mm.default", mm),
    ("aten.mul.Tensor", |cx, b| binary(cx, b, BinaryOp::Mul)),
    ("aten.native_layer_norm.default", layer_norm),
    ("aten.permute.default", transpose),
    ("aten.relu.default", |cx, b| activation(cx, b, Activation::Relu)),
    ("aten.rms_norm.default", rms_norm),
    ("aten.round.default", |cx, b| elementwise(cx, b, Elementwise::Round)),
    ("aten.sigmoid.default", |cx, b| activation(cx, b, Activation::Sigmoid)),
    ("aten.silu.default", |cx, b| activation(cx, b, Activation::Silu)),
    ("aten.softmax.int", softmax),
    ("aten.softplus.default", softplus),
    ("aten.sub.Tensor", |cx, b| binary(cx, b, BinaryOp::Sub)),
    ("aten.t.default", transpose),
    ("aten.tanh.default", |cx, b| activation(cx, b, Activation::Tanh)),
    ("aten.transpose.int", transpose),
];

/// The rule of an operator.
pub fn find(op: &str) -> Option<Rule> {
    let at = TABLE.binary_search_by_key(&op, |(name, _)| name).ok()?;
    TABLE.get(at).map(|(_, rule)| *rule)
}

/// The operators of ATen that have a counterpart, sorted.
pub fn operators() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(op, _)| *op)
}

fn result<'b>(b: &'b Bound<'_>) -> Result<&'b Type> {
    let result = b.node.results.first().map(|result| &result.ty);
    result.ok_or_else(|| Error::Graph("a call without a result".into()))
}

/// A weight operand that the dialect's operation cannot do without.
fn required<'b>(b: &'b Bound<'_>, name: &str) -> Result<&'b str> {
    let missing = || Error::unsupported(format!("{name} is None; the dialect's operation has no form without it"));
    b.opt_tensor(name)?.ok_or_else(missing)
}

/// `input · weightᵀ + bias`.
fn linear(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let mut weights = vec![cx.weight_operand("weight", b.tensor("weight")?, Family::Linear, false)?];
    if let Some(bias) = b.opt_tensor("bias")? {
        weights.push(cx.weight_operand("bias", bias, Family::Bias, false)?);
    }
    cx.by_rows(Op::Linear, b.tensor("input")?, &weights, &[], result(b)?)
}

/// `self · mat2` for a stored `mat2` that is a transposition.
fn mm(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let weight = cx.weight_operand("mat2", b.tensor("mat2")?, Family::Linear, true)?;
    cx.by_rows(Op::Linear, b.tensor("self")?, &[weight], &[], result(b)?)
}

/// `self + mat1 · mat2`, likewise.
fn addmm(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    for name in ["beta", "alpha"] {
        unit(b, name)?;
    }
    let weight = cx.weight_operand("mat2", b.tensor("mat2")?, Family::Linear, true)?;
    let bias = cx.weight_operand("self", b.tensor("self")?, Family::Bias, false)?;
    cx.by_rows(Op::Linear, b.tensor("mat1")?, &[weight, bias], &[], result(b)?)
}

fn unit(b: &Bound<'_>, name: &str) -> Result<()> {
    let factor = b.float(name)?;
    if factor == 1.0 { Ok(()) } else { Err(Error::unsupported(format!("{name} is {factor}; expected 1"))) }
}

/// A stored matrix whose axes are exchanged.
fn transpose(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let name = b.tensor("self")?;
    let Val::Stored(stored) = cx.get(name)? else {
        return Err(Error::unsupported(format!("{name} is no stored tensor; the dialect transposes nothing")));
    };
    let mut stored = stored.clone();
    let axes = |dims: &[i64]| dims.iter().map(|dim| dim.rem_euclid(2)).collect::<Vec<_>>();
    let is_exchange = match () {
        () if b.has("dims") => axes(&b.ints("dims")?) == [1, 0],
        () if b.has("dim0") => axes(&[b.int("dim0")?, b.int("dim1")?]).iter().sum::<i64>() == 1,
        () => true,
    };
    if stored.rank() != 2 || !is_exchange {
        return Err(Error::unsupported(format!("{} is not a matrix with its axes exchanged", stored.name())));
    }
    stored.is_transposed = !stored.is_transposed;
    Ok(Val::Stored(stored))
}

/// `(x - mean) / sqrt(var + eps) · weight + bias` with the statistics that are stored.
fn batch_norm(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    if b.has("training") && b.bool("training")? {
        return Err(Error::unsupported("training is true; the dialect normalizes by stored statistics only"));
    }
    let families = [
        ("weight", Family::Channel),
        ("bias", Family::Bias),
        ("running_mean", Family::Channel),
        ("running_var", Family::Channel),
    ];
    let weights = families.into_iter().map(|(name, family)| cx.weight_operand(name, required(b, name)?, family, false));
    let weights = weights.collect::<Result<Vec<_>>>()?;
    let eps = [("eps", Attr::F32(b.float("eps")? as f32))];
    cx.by_rows(Op::BatchNorm, b.tensor("input")?, &weights, &eps, result(b)?)
}

/// `normalized_shape` is the last axis.
fn last_axis(b: &Bound<'_>) -> Result<()> {
    let (_, channels) = row_type(result(b)?)?;
    let found = b.sym_ints("normalized_shape")?;
    match found.as_slice() {
        [Arg::Int(n)] if channels.is_none_or(|channels| u64::try_from(*n) == Ok(channels)) => Ok(()),
        _ => Err(Error::unsupported(format!("normalized_shape has {} axes; expected the last one", found.len()))),
    }
}

fn layer_norm(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    last_axis(b)?;
    let scale = cx.weight_operand("weight", required(b, "weight")?, Family::Channel, false)?;
    let bias = cx.weight_operand("bias", required(b, "bias")?, Family::Bias, false)?;
    let eps = [("eps", Attr::F32(b.float("eps")? as f32))];
    cx.by_rows(Op::LayerNorm, b.tensor("input")?, &[scale, bias], &eps, result(b)?)
}

/// Without an epsilon, that of the element type is PyTorch's.
fn rms_norm(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    last_axis(b)?;
    let (dtype, _) = row_type(result(b)?)?;
    let eps = match (b.float_or("eps")?, dtype) {
        (Some(eps), _) => eps as f32,
        (None, DType::F32) => f32::EPSILON,
        (None, other) => return Err(Error::unsupported(format!("eps is None for {other}; expected a number"))),
    };
    let scale = cx.weight_operand("weight", required(b, "weight")?, Family::Channel, false)?;
    cx.by_rows(Op::RmsNorm, b.tensor("input")?, &[scale], &[("eps", Attr::F32(eps))], result(b)?)
}

/// What an activation has where its function does not use it.
const ALPHA: f32 = 0.0;
const BETA: f32 = 1.0;
const THRESHOLD: f32 = 20.0;

fn activated(
    cx: &mut Cx<'_>,
    b: &Bound<'_>,
    kind: Activation,
    approximate: GeluApprox,
    [alpha, beta, threshold]: [f32; 3],
) -> Result<Val> {
    let attributes = [
        ("kind", Attr::Keyword(kind.name())),
        ("approximate", Attr::Keyword(approximate.name())),
        ("alpha", Attr::F32(alpha)),
        ("beta", Attr::F32(beta)),
        ("threshold", Attr::F32(threshold)),
    ];
    cx.by_rows(Op::Activation, b.tensor("self")?, &[], &attributes, result(b)?)
}

fn activation(cx: &mut Cx<'_>, b: &Bound<'_>, kind: Activation) -> Result<Val> {
    activated(cx, b, kind, GeluApprox::None, [ALPHA, BETA, THRESHOLD])
}

fn gelu(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let approximate = match b.str("approximate")? {
        "none" => GeluApprox::None,
        "tanh" => GeluApprox::Tanh,
        other => return Err(Error::unsupported(format!("approximate is {other:?}; expected none or tanh"))),
    };
    activated(cx, b, Activation::Gelu, approximate, [ALPHA, BETA, THRESHOLD])
}

fn leaky_relu(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let slope = b.float("negative_slope")? as f32;
    activated(cx, b, Activation::LeakyRelu, GeluApprox::None, [slope, BETA, THRESHOLD])
}

fn softplus(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let (beta, threshold) = (b.float("beta")? as f32, b.float("threshold")? as f32);
    activated(cx, b, Activation::Softplus, GeluApprox::None, [ALPHA, beta, threshold])
}

fn elementwise(cx: &mut Cx<'_>, b: &Bound<'_>, kind: Elementwise) -> Result<Val> {
    cx.by_rows(Op::Elementwise, b.tensor("self")?, &[], &[("kind", Attr::Str(kind.name()))], result(b)?)
}

fn softmax(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    cx.by_rows(Op::Softmax, b.tensor("self")?, &[], &[("axis", Attr::Int(b.int("dim")?))], result(b)?)
}

/// A row of the table for each index.
fn embedding(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let weight = cx.weight_operand("weight", b.tensor("weight")?, Family::Embedding, false)?;
    let indices = b.tensor("indices")?;
    let input = cx.dense_operand("indices", indices)?;
    let ([rows], DType::I32) = (&input.shape[..], input.dtype) else {
        let (rank, dtype) = (input.shape.len(), input.dtype);
        return Err(Error::unsupported(format!(
            "indices is {indices}, {dtype} of rank {rank}; expected i32 of rank 1"
        )));
    };
    let (dtype, channels) = row_type(result(b)?)?;
    let shape = vec![*rows, channels];
    let ty = ValueType::Tensor { shape: shape.clone(), dtype };
    let value = one(&cx.op(Op::EmbeddingLookup, &[input.value, weight], &[], &[ty])?)?;
    Ok(Val::Dense(Dense { value, dtype, shape }))
}

/// Sparse operands with the same rows.
fn same_rows(cx: &Cx<'_>, names: &[&str]) -> Result<Vec<SparseId>> {
    let why = "the dialect has this for sparse values that are known to have the same rows only; to join others, or tensors, is \
               lattice::sparse_binary's and lattice::sparse_cat's";
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        match cx.get(name)? {
            Val::Sparse(id) => found.push(*id),
            _ => return Err(Error::unsupported(format!("{name} is no sparse value; {why}"))),
        }
    }
    let rows = found.iter().map(|id| cx.rows_of(*id)).collect::<Result<Vec<_>>>()?;
    match rows.windows(2).position(|pair| pair[0] != pair[1]) {
        Some(at) => Err(Error::unsupported(format!("{} and {} may differ in rows; {why}", names[at], names[at + 1]))),
        None => Ok(found),
    }
}

fn binary(cx: &mut Cx<'_>, b: &Bound<'_>, op: BinaryOp) -> Result<Val> {
    if b.has("alpha") {
        unit(b, "alpha")?;
    }
    let name = |name: &str| match b.arg(name)? {
        Arg::Value(value) => Ok(value.clone()),
        other => Err(Error::unsupported(format!("{name} is {}; the dialect adds no numbers", describe(other)))),
    };
    let (lhs, rhs) = (name("self")?, name("other")?);
    let attributes = [
        ("op", Attr::Keyword(op.name())),
        ("join", Attr::Keyword(Join::Inner.name())),
        ("lhs_fill", Attr::F32(0.0)),
        ("rhs_fill", Attr::F32(0.0)),
    ];
    let row_type = row_type(result(b)?)?;
    joined(cx, Op::SparseBinary, &[&lhs, &rhs], &attributes, &|_| row_type)
}

/// `dim` is that of channels.
fn cat(cx: &mut Cx<'_>, b: &Bound<'_>) -> Result<Val> {
    let (dtype, _) = row_type(result(b)?)?;
    let dim = b.int("dim")?;
    if !matches!(dim, -1 | 1) {
        return Err(Error::unsupported(format!("dim is {dim}; expected 1, that of channels")));
    }
    let names = b.tensors("tensors")?;
    let ids = same_rows(cx, &names)?;
    let widths = ids.iter().map(|id| cx.channels(*id)).collect::<Result<Vec<_>>>()?;
    let width = |count: usize| {
        let sum = widths.iter().take(count).try_fold(0u64, |sum, width| width.and_then(|width| sum.checked_add(width)));
        (dtype, sum)
    };
    joined(cx, Op::SparseCat, &names, &[("join", Attr::Keyword(Join::Inner.name()))], &width)
}

/// An operation of two operands over all of them from the left; `row_type` tells what the first so many give.
fn joined(
    cx: &mut Cx<'_>,
    op: Op,
    names: &[&str],
    attributes: &[(&str, Attr<'_>)],
    row_type: &dyn Fn(usize) -> (DType, Option<u64>),
) -> Result<Val> {
    let ids = same_rows(cx, names)?;
    let [first, rest @ ..] = ids.as_slice() else { return Err(Error::unsupported("no tensors")) };
    let rows = cx.rows_of(*first)?;
    let mut so_far = *first;
    for (at, id) in rest.iter().enumerate() {
        let (dtype, channels) = row_type(at + 2);
        let operands = [cx.whole(so_far)?, cx.whole(*id)?];
        let value = one(&cx.op(op, &operands, attributes, &[ValueType::Sparse { dtype }])?)?;
        so_far = cx.sparse(value, rows, (dtype, channels));
    }
    Ok(Val::Sparse(so_far))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_of_the_registry() {
        assert!(TABLE.is_sorted_by(|a, b| a.0 < b.0));
        for op in operators() {
            assert!(m2m_aten::schema::find(op).is_some(), "{op}");
        }
    }
}
