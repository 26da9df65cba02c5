//! One contiguous part of a tensor replaced: `slice_scatter`, `select_scatter`.

use crate::error::{Error, Result};
use crate::linalg::cx::{Cx, Tensor, Val};
use crate::linalg::view::{clamp_position, convert, reshape};
use m2m_aten::bind::Bound;
use m2m_mlir::Size;
use m2m_record::{Arg, Dim, Node, TensorType};

/// `t` with the part of extent and step along an axis replaced by `part`.
fn replace<'c>(
    cx: &mut Cx<'c>,
    t: &Tensor<'c>,
    part: &Tensor<'c>,
    axis: usize,
    start: Size<'c>,
    step: i64,
) -> Result<Vec<Val<'c>>> {
    let like = TensorType::new(t.dtype, part.shape.clone());
    let part = convert(cx, part.clone(), &like)?;
    let sizes = cx.sizes(&part.shape)?;
    let mut offsets = vec![Size::Static(0); t.rank()];
    let mut strides = vec![Size::Static(1); t.rank()];
    offsets[axis] = start;
    strides[axis] = Size::Static(step);
    let value = cx.b.insert_slice(part.value, t.value, &offsets, &sizes, &strides)?;
    Ok(vec![Val::Tensor(cx.conform(value, t.dtype, &t.shape)?)])
}

/// `slice_scatter(self, src, dim, start, end, step)`: the slice that `slice` would give, replaced by `src`.
pub fn slice_scatter<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, part) = (cx.tensor(bound.tensor("self")?)?, cx.tensor(bound.tensor("src")?)?);
    if t.rank() != part.rank() {
        return Err(Error::Graph(format!("{}: {:?} into {:?}", node.node, part.shape, t.shape)));
    }
    let axis = t.real_axis(bound.int("dim")?)?;
    let start = match bound.arg("start")? {
        Arg::Null => Size::Static(0),
        position => clamp_position(cx, position, &t.shape[axis])?,
    };
    replace(cx, &t, &part, axis, start, bound.int("step")?)
}

/// `select_scatter(self, src, dim, index)`: one position of an axis, which `src` lacks, replaced.
pub fn select_scatter<'c>(cx: &mut Cx<'c>, _: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, part) = (cx.tensor(bound.tensor("self")?)?, cx.tensor(bound.tensor("src")?)?);
    let axis = t.real_axis(bound.int("dim")?)?;
    let start = clamp_position(cx, bound.arg("index")?, &t.shape[axis])?;
    let mut shape = t.shape.clone();
    shape[axis] = Dim::Int(1);
    let part = reshape(cx, &part, &shape)?;
    replace(cx, &t, &part, axis, start, 1)
}
