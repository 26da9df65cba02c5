//! The weights file against the graph: only the header is read.

use super::Model;
use super::op::View;
use crate::finding::{Code, Findings, Offset};
use crate::ir::{Attribute, Operation, Type};
use crate::plan::element;
use crate::schema::{Family, Op, PackingKind};
use m2m_record::DType;
use m2m_tensor::safetensors::{Entry, Header};
use std::collections::HashSet;

/// The header of a weights file.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    /// Its tensors.
    pub header: Header,
}

/// A tensor that a weight binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Its key.
    pub name: String,
    /// Its element.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Position of its first byte in the file.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
}

/// How a weight is stored, as its operation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Storage<'g> {
    pub key: &'g str,
    pub family: Family,
    /// Element that the graph declares; `None` where it is no number.
    pub dtype: Option<DType>,
    /// Bits, group size and element of scales.
    pub packing: Option<(u64, u64, DType)>,
    pub at: Option<Offset>,
}

/// What a `weight` says, where all of it is right.
pub(super) fn storage<'g>(model: &Model<'g, '_>, op: &'g Operation<'_>) -> Option<Storage<'g>> {
    let view = View { graph: model.graph, op, def: Op::Weight.def() };
    let result = view.value("result")?;
    let Type::Weight { family, dtype } = view.get(result.ty) else { return None };
    let key = op.attribute("storage_key")?;
    let Attribute::Str(text) = &key.value else { return None };
    let Attribute::Packing(packing) = &op.attribute("packing")?.value else { return None };
    let bits = match PackingKind::parse(&packing.kind)? {
        PackingKind::Dense => None,
        PackingKind::Int4 => Some(4),
        PackingKind::Int8 => Some(8),
    };
    let packing = match bits {
        None => None,
        Some(bits) => {
            let scale = element(view.text(packing.scale_dtype?))?;
            Some((bits, u64::try_from(packing.group_size).ok().filter(|size| *size > 0)?, scale))
        }
    };
    Some(Storage {
        key: text,
        family: Family::parse(family)?,
        dtype: element(view.text(*dtype)),
        packing,
        at: key.at.or(op.at),
    })
}

/// Finds the tensors of every weight, and says which of the file are not bound.
pub(super) fn check(model: &Model<'_, '_>, weights: &Weights, findings: &mut Findings) -> Vec<(usize, Vec<Bound>)> {
    let mut all = Vec::new();
    let mut used = HashSet::new();
    for (place, op, _) in model.ops().filter(|(_, _, own)| *own == Op::Weight) {
        let Some(storage) = storage(model, op).filter(|storage| !storage.key.is_empty()) else { continue };
        let names = match storage.packing {
            None => vec![storage.key.to_owned()],
            Some(_) => ["weight", "scales", "biases"].iter().map(|part| format!("{}.{part}", storage.key)).collect(),
        };
        let mut bound = Vec::new();
        for name in &names {
            used.insert(name.clone());
            match weights.header.tensors.get(name) {
                Some(entry) => bound.push(bind(name, entry)),
                None => {
                    let hint = near(&storage, weights);
                    let message = format!("lattice.weight: {name:?} is not in the weights file{hint}");
                    findings.push(Code::WeightMissing, storage.at, message);
                }
            }
        }
        if bound.len() == names.len() {
            dtypes(&storage, &bound, findings);
            ranks(&storage, &bound, findings);
            all.push((place, bound));
        }
    }
    let unused = weights.header.tensors.keys().filter(|name| !used.contains(*name));
    for name in unused {
        findings.push(Code::UnusedTensor, None, format!("tensor {name:?} of the weights file is bound by no weight"));
    }
    all
}

fn bind(name: &str, entry: &Entry) -> Bound {
    Bound {
        name: name.to_owned(),
        dtype: entry.dtype,
        shape: entry.shape.clone(),
        offset: entry.offset,
        bytes: entry.bytes,
    }
}

/// What the file has under a key that was meant otherwise.
fn near(storage: &Storage<'_>, weights: &Weights) -> &'static str {
    let has = |name: &str| weights.header.tensors.contains_key(name);
    match storage.packing {
        None if has(&format!("{}.scales", storage.key)) => "; it has a packed weight of that key",
        Some(_) if has(storage.key) => "; it has a dense weight of that key",
        _ => "",
    }
}

fn dtypes(storage: &Storage<'_>, bound: &[Bound], findings: &mut Findings) {
    let expected: Vec<Option<DType>> = match storage.packing {
        None => vec![storage.dtype],
        Some((_, _, scale)) => vec![Some(DType::U32), Some(scale), Some(scale)],
    };
    for (each, wanted) in bound.iter().zip(expected) {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != each.dtype) {
            let message = format!("lattice.weight: {:?} holds {}; the graph says {wanted}", each.name, each.dtype);
            findings.push(Code::WeightDtype, storage.at, message);
        }
    }
}

/// What can be said of shapes without knowing the operation that uses them.
fn ranks(storage: &Storage<'_>, bound: &[Bound], findings: &mut Findings) {
    let mut wrong = |each: &Bound, expected: &str| {
        let message = format!("lattice.weight: {:?} has shape {:?}; expected {expected}", each.name, each.shape);
        findings.push(Code::WeightShape, storage.at, message);
    };
    if let Some((bits, group, _)) = storage.packing {
        let [weight, scales, biases] = bound else { return };
        if weight.shape.len() != 3 {
            return wrong(weight, "three axes, [1, out, words] or [k, words, out]");
        }
        if scales.shape.len() != 3 {
            return wrong(scales, "three axes, [1, out, groups] or [k, groups, out]");
        }
        if biases.shape != scales.shape {
            return wrong(biases, &format!("{:?}, as the scales", scales.shape));
        }
        // Which axis holds words depends on the kernel; one of both must fit.
        let fits = (1..3).any(|axis| groups(weight, scales, axis, bits, group).is_ok());
        if !fits {
            wrong(scales, &format!("groups of {group} for the words of {:?}, {:?}", weight.name, weight.shape));
        }
        return;
    }
    let [dense] = bound else { return };
    let rank = dense.shape.len();
    match storage.family {
        Family::Conv3d if !matches!(rank, 2 | 3 | 5) => wrong(dense, "five axes, [out, kx, ky, kz, in]"),
        Family::Linear if rank != 2 => wrong(dense, "two axes, [out, in]"),
        Family::Embedding if rank != 2 => wrong(dense, "two axes, [entries, channels]"),
        Family::Channel | Family::Bias if rank != 1 => wrong(dense, "one axis, [channels]"),
        _ => {}
    }
}

/// Input channels that the words along an axis hold, padding included, where scales agree.
fn groups(weight: &Bound, scales: &Bound, axis: usize, bits: u64, group: u64) -> Result<u64, String> {
    let words = weight.shape.get(axis).copied().unwrap_or(0);
    let inputs = words.checked_mul(32 / bits).ok_or("too many words")?;
    let found = scales.shape.get(axis).copied().unwrap_or(0);
    let others = (0..3).filter(|each| *each != axis).all(|each| weight.shape.get(each) == scales.shape.get(each));
    if inputs % group != 0 {
        return Err(format!("{words} words hold {inputs} inputs, no multiple of the group size {group}"));
    }
    if inputs / group != found || !others {
        return Err(format!(
            "{:?} has shape {:?} and {:?} {:?}; {inputs} inputs in groups of {group} have {} scales",
            weight.name,
            weight.shape,
            scales.name,
            scales.shape,
            inputs / group
        ));
    }
    Ok(inputs)
}

/// Channels of a weight: out, in, and whether there may be fewer in than that (a packed one is padded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Channels {
    pub output: u64,
    pub input: u64,
    pub is_padded: bool,
}

/// The channels of a convolution's weight, where its shape is right for the kernel.
pub(super) fn convolution(storage: &Storage<'_>, bound: &[Bound], kernel: [i64; 3]) -> Result<Channels, String> {
    let kernel = kernel.map(i64::unsigned_abs);
    let volume = kernel.iter().try_fold(1u64, |n, k| n.checked_mul(*k)).unwrap_or(u64::MAX);
    if let Some((bits, group, _)) = storage.packing {
        let [weight, scales, _] = bound else { return Err("a packed weight without its parts".into()) };
        let (axis, output) = if volume == 1 { (2, 1) } else { (1, 2) };
        if weight.shape.first() != Some(&volume) {
            return Err(format!(
                "{:?} has shape {:?}; expected {volume} kernel positions first",
                weight.name, weight.shape
            ));
        }
        let input = groups(weight, scales, axis, bits, group)?;
        let output = weight.shape.get(output).copied().unwrap_or(0);
        return Ok(Channels { output, input, is_padded: true });
    }
    let [dense] = bound else { return Err("a dense weight in parts".into()) };
    match dense.shape.as_slice() {
        [output, x, y, z, input] if [*x, *y, *z] == kernel => {
            Ok(Channels { output: *output, input: *input, is_padded: false })
        }
        [output, input] if volume == 1 => Ok(Channels { output: *output, input: *input, is_padded: false }),
        [positions, input, output] if *positions == volume => {
            Ok(Channels { output: *output, input: *input, is_padded: false })
        }
        shape => Err(format!(
            "{:?} has shape {shape:?}; expected [out, {}, {}, {}, in]",
            dense.name, kernel[0], kernel[1], kernel[2]
        )),
    }
}

/// The channels of a linear weight.
pub(super) fn linear(storage: &Storage<'_>, bound: &[Bound]) -> Result<Channels, String> {
    match storage.packing {
        Some(_) => convolution(storage, bound, [1; 3]),
        None => match bound {
            [dense] => match dense.shape.as_slice() {
                [output, input] => Ok(Channels { output: *output, input: *input, is_padded: false }),
                shape => Err(format!("{:?} has shape {shape:?}; expected [out, in]", dense.name)),
            },
            _ => Err("a dense weight in parts".into()),
        },
    }
}
