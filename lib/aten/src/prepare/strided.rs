//! Operators that read memory by strides: their argument becomes the memory that it lies in, in the order of addresses.
//!
//! The walk goes from the argument through views to the tensor that owns the memory, and adds up where the view begins.
//! An owner must fill its memory without gaps and without overlap, in whatever order of its dimensions.

use super::Preparer;
use crate::bind::{Bound, bind};
use crate::error::Error;
use crate::infer::wrap_dim;
use crate::schema;
use crate::value::V;
use m2m_record::{Arg, Dim, Node, TensorType, Type};
use m2m_tensor::Expr;

/// Operators whose result depends on how their argument lies in memory.
const BY_STRIDES: &[&str] =
    &["aten.as_strided.default", "aten.as_strided_copy.default", "aten.as_strided_scatter.default"];

/// Where a view lies.
struct Place {
    /// The tensor that owns the memory.
    owner: String,
    /// The element of it that the view begins with, where it is known.
    offset: Option<i64>,
}

impl Preparer<'_> {
    /// The node reading its memory's owner in the order of addresses, from a stated offset; other nodes as they are.
    pub(super) fn by_address(&mut self, node: &Node, mapped: &Node) -> Result<Option<Node>, Error> {
        if !BY_STRIDES.contains(&node.op.as_str()) {
            return Ok(None);
        }
        let bound = bind(node)?;
        let input = bound.tensor("self")?.to_owned();
        let place = self.place(&input);
        let Some(Type::Tensor(own)) = self.old_types.get(input.as_str()) else {
            return Err(Error::unsupported(format!("{input} is no tensor")));
        };
        if place.owner == input && own.strides.is_none() {
            return Ok(None);
        }
        if node.op.contains("scatter") {
            return Err(Error::unsupported(format!(
                "{} of {input}, which is no contiguous tensor of its own",
                node.op
            )));
        }
        let offset = match (bound.arg("storage_offset")?, place.offset) {
            (Arg::Null, Some(offset)) => Arg::Int(offset),
            (Arg::Null, None) => {
                return Err(Error::unsupported(format!(
                    "{} of {input}, whose beginning in memory is not known",
                    node.op
                )));
            }
            (given, _) => given.clone(),
        };
        if let Some(aliases) = &mut self.aliases {
            aliases.sync(&mut self.state, &place.owner)?;
        }
        let whole = self.in_order(node, &place.owner)?;
        let call = bind(mapped)?;
        let args = vec![whole.arg(), call.arg("size")?.clone(), call.arg("stride")?.clone(), offset];
        Ok(Some(Node { args, kwargs: m2m_record::Kwargs::new(), ..mapped.clone() }))
    }

    /// Goes from a tensor to the owner of its memory.
    fn place(&self, name: &str) -> Place {
        let mut place = Place { owner: name.to_owned(), offset: Some(0) };
        // Values are made before they are used, so that one pass backwards meets all that are passed through.
        for node in self.old.nodes.iter().rev() {
            let Some(at) = node.results.iter().position(|r| r.value.as_deref() == Some(place.owner.as_str())) else {
                continue;
            };
            let Ok(bound) = bind(node) else { break };
            let Some((base, offset)) = self.step(&bound, at) else { break };
            place.offset = place.offset.zip(offset).and_then(|(a, b)| a.checked_add(b));
            place.owner = base;
        }
        place
    }

    /// The tensor that a result is a view of, and where in it the view begins.
    fn step(&self, b: &Bound<'_>, at: usize) -> Option<(String, Option<i64>)> {
        let base = super::memory::base_of(b, at)?;
        let Some(Type::Tensor(from)) = self.old_types.get(base.as_str()) else { return None };
        let is_shared = match b.op() {
            "aten._unsafe_view.default" | "aten._reshape_alias.default" => true,
            _ => crate::functional::shares(b, from, &b.node.results.get(at)?.ty)?,
        };
        if !is_shared || schema::find(b.op()).is_some_and(|s| s.is_mutable()) {
            return None;
        }
        Some((base, begins(b, from)))
    }

    /// The elements of a tensor in the order of their addresses, as a vector.
    fn in_order(&mut self, node: &Node, owner: &str) -> Result<V, Error> {
        let Some(Type::Tensor(ty)) = self.old_types.get(owner) else {
            return Err(Error::unsupported(format!("{owner} is no tensor")));
        };
        let order = match &ty.strides {
            None => (0..ty.shape.len()).collect(),
            Some(strides) => dense_order(&ty.shape, strides)
                .ok_or_else(|| Error::unsupported(format!("{} of {owner}, whose memory has gaps", node.op)))?,
        };
        let value = self.current(owner)?;
        let mut e = self.expander(node);
        let y = e.permute(&value, &order)?;
        e.view(&y, &[Expr::Int(-1)])
    }
}

/// Strides of a tensor, in elements.
fn strides(t: &TensorType) -> Option<Vec<i64>> {
    if let Some(strides) = &t.strides {
        return strides.iter().map(Dim::as_int).collect();
    }
    let mut out = vec![1i64; t.shape.len()];
    for axis in (1..t.shape.len()).rev() {
        let next = out.get(axis)?.checked_mul(t.shape.get(axis)?.as_int()?.max(1))?;
        *out.get_mut(axis - 1)? = next;
    }
    Some(out)
}

/// The element of `from` that a view begins with; `None` where that is not known.
fn begins(b: &Bound<'_>, from: &TensorType) -> Option<i64> {
    let along = |dim: i64, index: i64| {
        let dim = wrap_dim(b.op(), dim, from.shape.len()).ok()?;
        let index = if index < 0 { index.checked_add(from.shape.get(dim)?.as_int()?)? } else { index };
        strides(from)?.get(dim)?.checked_mul(index)
    };
    match b.op() {
        "aten.slice.Tensor" => match b.arg("start").ok()? {
            Arg::Null | Arg::Int(0) => Some(0),
            Arg::Int(start) => along(b.int("dim").ok()?, *start),
            _ => None,
        },
        "aten.select.int" => along(b.int("dim").ok()?, b.int("index").ok()?),
        "aten.narrow.default" => along(b.int("dim").ok()?, b.int("start").ok()?),
        "aten.diagonal.default" => match b.int("offset").ok()? {
            0 => Some(0),
            offset if offset > 0 => along(b.int("dim2").ok()?, offset),
            offset => along(b.int("dim1").ok()?, offset.checked_neg()?),
        },
        "aten.as_strided.default" => b.int_or("storage_offset").ok()?,
        // Parts of a tensor begin where their sizes say, which is not followed.
        op if ["split", "chunk", "unbind", "tensor_split", "unfold"].iter().any(|name| op.contains(name)) => None,
        _ => Some(0),
    }
}

/// The dimensions from the widest stride to the narrowest, if together they fill memory.
fn dense_order(shape: &[Dim], strides: &[Dim]) -> Option<Vec<usize>> {
    let sizes: Vec<i64> = shape.iter().map(Dim::as_int).collect::<Option<_>>()?;
    let strides: Vec<i64> = strides.iter().map(Dim::as_int).collect::<Option<_>>()?;
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|d| (std::cmp::Reverse(strides.get(*d).copied()), std::cmp::Reverse(sizes.get(*d).copied())));
    let mut step = 1i64;
    for dim in order.iter().rev() {
        let (size, stride) = (*sizes.get(*dim)?, *strides.get(*dim)?);
        if size != 1 && stride != step {
            return None;
        }
        step = step.checked_mul(size)?;
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(sizes: &[i64]) -> Vec<Dim> {
        sizes.iter().map(|n| Dim::Int(*n)).collect()
    }

    #[test]
    fn memory_is_filled_in_some_order_or_has_gaps() {
        assert_eq!(dense_order(&dims(&[1, 3, 4, 5]), &dims(&[60, 1, 15, 3])), Some(vec![0, 2, 3, 1]));
        assert_eq!(dense_order(&dims(&[2, 3]), &dims(&[1, 2])), Some(vec![1, 0]));
        assert_eq!(dense_order(&dims(&[2, 3]), &dims(&[4, 1])), None);
        assert_eq!(dense_order(&dims(&[2, 3]), &dims(&[0, 1])), None);
        let sliced = TensorType::new(m2m_record::DType::F32, dims(&[3, 5, 6]));
        assert_eq!(strides(&sliced), Some(vec![30, 6, 1]));
    }
}
