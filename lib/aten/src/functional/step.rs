//! One step from a tensor to a view of it, forwards and backwards.

use crate::decompose::put_slice;
use crate::error::Error;
use crate::expand::Expander;
use crate::infer::numel;
use crate::value::V;
use m2m_record::{Arg, Node};
use m2m_tensor::Expr;

/// How a view sees its parent, and the old node that made it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub node: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Permute(Vec<usize>),
    View { from: Vec<Expr>, to: Vec<Expr> },
    Slice { dim: usize, start: Expr, end: Expr, step: i64 },
    Select { dim: usize, index: Expr },
    Expand { from: Vec<Expr>, to: Vec<Expr> },
    Opaque(String),
}

impl Step {
    /// A view that can be read but not followed.
    pub fn opaque(node: &str, op: &str) -> Step {
        Step { node: node.to_owned(), kind: Kind::Opaque(op.to_owned()) }
    }

    /// The view of a value.
    pub fn apply(&self, e: &mut Expander<'_, '_>, x: &V) -> Result<V, Error> {
        match &self.kind {
            Kind::Permute(dims) => e.permute(x, dims),
            Kind::View { to, .. } => e.view(x, to),
            Kind::Slice { dim, start, end, step } => e.slice(x, *dim, start, end, *step),
            Kind::Select { dim, index } => e.select(x, *dim, index),
            Kind::Expand { to, .. } => e.expand_to(x, to),
            Kind::Opaque(op) => Err(refuse(op)),
        }
    }

    /// The parent after the view has become `new`.
    pub fn invert(&self, e: &mut Expander<'_, '_>, parent: &V, new: &V) -> Result<V, Error> {
        match &self.kind {
            Kind::Permute(dims) => {
                let inverse: Option<Vec<usize>> =
                    (0..dims.len()).map(|d| dims.iter().position(|at| *at == d)).collect();
                e.permute(new, &inverse.ok_or_else(|| refuse("aten.permute.default"))?)
            }
            Kind::View { from, .. } => e.view(new, from),
            Kind::Slice { dim, start, step, .. } => put_slice(e, parent, new, *dim, (start, *step)),
            Kind::Select { dim, index } => {
                let new = e.unsqueeze(new, *dim)?;
                put_slice(e, parent, &new, *dim, (index, 1))
            }
            Kind::Expand { from, to } if numel(from) == numel(to) => e.view(new, from),
            Kind::Expand { .. } => Err(Error::unsupported(
                "a write through an expanded tensor, several elements of which are one place in memory",
            )),
            Kind::Opaque(op) => Err(refuse(op)),
        }
    }
}

fn refuse(op: &str) -> Error {
    Error::unsupported(format!("memory is written to that a result of {op} shares, and {op} cannot be followed"))
}

/// The steps from value `from` to value `to`, read off the nodes that the old node became, which are those from place
/// `mark` on; one opaque step where they are no chain of views.
pub(crate) fn steps_between(e: &Expander<'_, '_>, mark: usize, from: &V, to: &V, old: &Node) -> Vec<Step> {
    let rewriter = &e.state.rewriter;
    let mut steps = Vec::new();
    let mut at = to.name.clone();
    while at != from.name {
        let place = rewriter.place(&at).filter(|place| *place >= mark);
        let read = place.and_then(|place| read(e, rewriter.nodes().get(place)?));
        let Some((parent, kind)) = read else {
            return vec![Step::opaque(&old.node, &old.op)];
        };
        steps.push(Step { node: old.node.clone(), kind });
        at = parent;
    }
    steps.reverse();
    steps
}

fn read(e: &Expander<'_, '_>, node: &Node) -> Option<(String, Kind)> {
    let Some(Arg::Value(parent)) = node.args.first() else { return None };
    let from = e.value(parent).ok()?;
    let to = node.results.first().and_then(|r| r.value.as_deref()).and_then(|v| e.value(v).ok())?;
    let size = |k: usize| node.args.get(k).and_then(|a| e.size(a).ok());
    let place = |k: usize| size(k).and_then(|s| s.as_int()).and_then(|d| usize::try_from(d).ok());
    let kind = match node.op.as_str() {
        "aten.view.default" => Kind::View { from: from.shape, to: to.shape.clone() },
        "aten.expand.default" => Kind::Expand { from: from.shape, to: to.shape.clone() },
        "aten.permute.default" => {
            let Some(Arg::List(dims)) = node.args.get(1) else { return None };
            let dims = dims.iter().map(|d| if let Arg::Int(d) = d { usize::try_from(*d).ok() } else { None });
            Kind::Permute(dims.collect::<Option<_>>()?)
        }
        "aten.slice.Tensor" if node.args.len() == 5 => {
            Kind::Slice { dim: place(1)?, start: size(2)?, end: size(3)?, step: size(4)?.as_int()? }
        }
        "aten.select.int" => Kind::Select { dim: place(1)?, index: size(2)? },
        _ => return None,
    };
    // A slice whose bounds are not inside the dimension would be put back in the wrong place.
    if let Kind::Slice { dim, start, end, step } = &kind
        && (*step < 1 || crate::infer::slice_size(start, end, *step) != to.dim(*dim) || is_negative(start))
    {
        return None;
    }
    if let Kind::Select { index, .. } = &kind
        && is_negative(index)
    {
        return None;
    }
    Some((parent.clone(), kind))
}

fn is_negative(e: &Expr) -> bool {
    e.as_int().is_some_and(|n| n < 0)
}
