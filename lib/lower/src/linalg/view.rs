//! Operators that move elements without computing: reshapes, transposes, slices, joins, broadcasts.

use super::cx::{Cx, Tensor, Val, need_rank};
use super::elementwise::{self, Operand};
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::types::DYNAMIC;
use m2m_mlir::{CmpI, Size, Value};
use m2m_record::{Arg, DType, Dim, Node, TensorType};
use m2m_tensor::Expr;
use m2m_tensor::expr;

fn self_tensor<'c>(cx: &Cx<'c>, bound: &Bound) -> Result<Tensor<'c>> {
    cx.tensor(bound.tensor("self")?)
}

fn one<'c>(t: Tensor<'c>) -> Result<Vec<Val<'c>>> {
    Ok(vec![Val::Tensor(t)])
}

/// `view(self, size)`: the same elements in row-major order under another shape. The result's shape is the recorded
/// one, in which -1 is already resolved.
pub fn view<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let shape = cx.result_type(node, 0)?.shape.clone();
    let input = self_tensor(cx, bound)?;
    one(reshape(cx, &input, &shape)?)
}

/// Gives a tensor another shape of as many elements, by collapsing and expanding the smallest groups of axes.
pub fn reshape<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, shape: &[Dim]) -> Result<Tensor<'c>> {
    if t.shape == shape {
        return Ok(t.clone());
    }
    let from = exprs(&t.shape)?;
    let to = exprs(shape)?;
    let groups = groups(&from, &to);
    let collapsed: Vec<Dim> = groups.iter().map(|(a, _)| Dim::from(&product(&from[a.clone()]))).collect();
    let mut value = t.value;
    if groups.iter().any(|(a, _)| a.len() != 1) || groups.is_empty() {
        let axes: Vec<Vec<usize>> = groups.iter().map(|(a, _)| a.clone().collect()).collect();
        value = if from.is_empty() { value } else { cx.b.collapse_shape(value, &axes)? };
    }
    // Between the two steps an axis is static exactly when all that it expands to is.
    let between: Vec<Dim> = groups
        .iter()
        .zip(&collapsed)
        .map(|((_, z), dim)| {
            let parts = &shape[z.clone()];
            let all_static = parts.iter().all(|d| d.as_int().is_some());
            match (all_static, dim) {
                (true, Dim::Expr(_)) => Dim::from(&product(&to[z.clone()])),
                (false, Dim::Int(n)) => Dim::Expr(n.to_string()),
                _ => dim.clone(),
            }
        })
        .collect();
    value = cx.conform(value, t.dtype, &between)?.value;
    let unknown = |z: &Range| shape[z.clone()].iter().filter(|d| d.as_int().is_none()).count();
    if groups.iter().any(|(_, z)| unknown(z) > 1) {
        return by_sizes(cx, value, t.dtype, shape);
    }
    if groups.iter().any(|(_, z)| z.len() != 1) || (groups.is_empty() && !to.is_empty()) {
        let axes: Vec<Vec<usize>> = groups.iter().map(|(_, z)| z.clone().collect()).collect();
        let sizes = cx.sizes(shape)?;
        value = cx.b.expand_shape(value, &axes, &sizes)?;
    }
    cx.conform(value, t.dtype, shape)
}

/// A reshape that is told its sizes: LLVM 22 crashes where `expand_shape` makes two unknown sizes of one.
fn by_sizes<'c>(cx: &mut Cx<'c>, value: Value<'c>, dtype: DType, shape: &[Dim]) -> Result<Tensor<'c>> {
    let sizes = shape.iter().map(|dim| cx.size_value(dim)).collect::<Result<Vec<_>>>()?;
    let sizes = cx.b.from_elements(&[shape.len() as i64], &sizes)?;
    let dims: Vec<i64> = shape.iter().map(|d| d.as_int().unwrap_or(DYNAMIC)).collect();
    let value = cx.b.reshape(value, sizes, &dims)?;
    cx.conform(value, dtype, shape)
}

fn exprs(shape: &[Dim]) -> Result<Vec<Expr>> {
    shape.iter().map(|d| Expr::try_from(d).map_err(|e| Error::Graph(e.to_string()))).collect()
}

fn product(dims: &[Expr]) -> Expr {
    expr::mul(dims.iter().cloned())
}

type Range = std::ops::Range<usize>;

/// Splits two shapes into the smallest runs of axes that hold the same number of elements; one run of all axes where
/// that cannot be seen from the expressions. Shapes without axes give no runs.
fn groups(from: &[Expr], to: &[Expr]) -> Vec<(Range, Range)> {
    if from.is_empty() || to.is_empty() {
        return Vec::new();
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < from.len() && j < to.len() {
        let Some((a, z)) = smallest_group(&from[i..], &to[j..]) else {
            return vec![(0..from.len(), 0..to.len())];
        };
        out.push((i..i + a, j..j + z));
        i += a;
        j += z;
    }
    let rest_is_one = |dims: &[Expr]| dims.iter().all(|d| d.as_int() == Some(1));
    if !rest_is_one(&from[i..]) || !rest_is_one(&to[j..]) {
        return vec![(0..from.len(), 0..to.len())];
    }
    if let Some((a, z)) = out.last_mut() {
        a.end = from.len();
        z.end = to.len();
    }
    out
}

/// The least numbers of leading axes with equal products.
fn smallest_group(from: &[Expr], to: &[Expr]) -> Option<(usize, usize)> {
    for total in 2..=from.len() + to.len() {
        for a in 1..total.min(from.len() + 1) {
            let z = total - a;
            if z <= to.len() && product(&from[..a]) == product(&to[..z]) {
                return Some((a, z));
            }
        }
    }
    None
}

/// `permute(self, dims)`: axis `i` of the result is axis `dims[i]` of `self`.
pub fn permute<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let shape = cx.result_type(node, 0)?.shape.clone();
    let input = self_tensor(cx, bound)?;
    let axes = bound.ints("dims")?.into_iter().map(|d| input.axis(d)).collect::<Result<Vec<_>>>()?;
    one(transpose(cx, &input, &axes, &shape)?)
}

/// A transposed tensor of the given (already permuted) shape; nothing where the order stays.
pub fn transpose<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axes: &[usize], shape: &[Dim]) -> Result<Tensor<'c>> {
    if axes.iter().enumerate().all(|(k, axis)| k == *axis) {
        return cx.conform(t.value, t.dtype, shape);
    }
    // What the result knows of a size of which the tensor has only an expression is told of the tensor first.
    let mut known = t.shape.clone();
    for (axis, size) in axes.iter().zip(shape) {
        if let (Some(own @ Dim::Expr(_)), Dim::Int(_)) = (known.get_mut(*axis), size) {
            *own = size.clone();
        }
    }
    let value = if known == t.shape { t.value } else { cx.conform(t.value, t.dtype, &known)?.value };
    let out = cx.empty(t.dtype, shape)?;
    let permutation: Vec<i64> = axes.iter().map(|a| *a as i64).collect();
    let value = cx.b.transpose(value, out, &permutation)?;
    Ok(Tensor { value, dtype: t.dtype, shape: shape.to_vec() })
}

/// `expand(self, size)`: axes of extent 1, and new leading ones, repeated.
pub fn expand<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let shape = cx.result_type(node, 0)?.shape.clone();
    let input = self_tensor(cx, bound)?;
    one(broadcast(cx, &input, &shape)?)
}

/// A tensor repeated to a shape that it broadcasts to.
pub fn broadcast<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, shape: &[Dim]) -> Result<Tensor<'c>> {
    let lead = shape
        .len()
        .checked_sub(t.rank())
        .ok_or_else(|| Error::Graph(format!("a tensor of rank {} expanded to rank {}", t.rank(), shape.len())))?;
    let is_repeated = |axis: usize| axis < lead || (t.shape[axis - lead] == Dim::Int(1) && shape[axis] != Dim::Int(1));
    let repeated: Vec<i64> = (0..shape.len()).filter(|a| is_repeated(*a)).map(|a| a as i64).collect();
    if repeated.is_empty() {
        return cx.conform(t.value, t.dtype, shape);
    }
    let kept: Vec<Dim> = (0..shape.len()).filter(|a| !is_repeated(*a)).map(|a| t.shape[a - lead].clone()).collect();
    let narrow = reshape(cx, t, &kept)?;
    let out = cx.empty(t.dtype, shape)?;
    let value = cx.b.broadcast(narrow.value, out, &repeated)?;
    Ok(Tensor { value, dtype: t.dtype, shape: shape.to_vec() })
}

/// A position that may count from the end, brought into `0..=extent`.
pub fn clamp_position<'c>(cx: &mut Cx<'c>, position: &Arg, extent: &Dim) -> Result<Size<'c>> {
    if let (Arg::Int(n), Dim::Int(extent)) = (position, extent) {
        let from_start = if *n < 0 { n.saturating_add(*extent) } else { *n };
        return Ok(Size::Static(from_start.clamp(0, *extent)));
    }
    if *position == Arg::Int(0) {
        return Ok(Size::Static(0));
    }
    let extent = cx.size_value(extent)?;
    let size = cx.size_arg(position)?;
    let position = cx.b.size_value(size)?;
    let zero = cx.b.const_index(0)?;
    let negative = cx.b.cmpi(CmpI::Slt, position, zero)?;
    let from_start = cx.b.select(negative, cx.b.addi(position, extent)?, position)?;
    Ok(Size::Value(cx.b.minsi(cx.b.maxsi(from_start, zero)?, extent)?))
}

/// Part of a tensor along one axis; the result has the recorded extent there.
pub fn slice_axis<'c>(
    cx: &mut Cx<'c>,
    t: &Tensor<'c>,
    axis: usize,
    start: Size<'c>,
    step: i64,
    extent: &Dim,
) -> Result<Tensor<'c>> {
    let mut shape = t.shape.clone();
    shape[axis] = extent.clone();
    let sizes = cx.sizes(&shape)?;
    let mut offsets = vec![Size::Static(0); t.rank()];
    let mut strides = vec![Size::Static(1); t.rank()];
    offsets[axis] = start;
    strides[axis] = Size::Static(step);
    let value = cx.b.extract_slice(t.value, &offsets, &sizes, &strides)?;
    cx.conform(value, t.dtype, &shape)
}

/// `slice(self, dim, start, end, step)`
pub fn slice<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = self_tensor(cx, bound)?;
    let axis = input.real_axis(bound.int("dim")?)?;
    need_rank("a slice", &result.shape, input.rank())?;
    let step = bound.int("step")?;
    let start = match bound.arg("start")? {
        Arg::Null => Size::Static(0),
        position => clamp_position(cx, position, &input.shape[axis])?,
    };
    if input.shape == result.shape && step == 1 {
        return one(input);
    }
    one(slice_axis(cx, &input, axis, start, step, &result.shape[axis])?)
}

/// `select(self, dim, index)`: one position of an axis, which goes.
pub fn select<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let input = self_tensor(cx, bound)?;
    let axis = input.real_axis(bound.int("dim")?)?;
    let start = clamp_position(cx, bound.arg("index")?, &input.shape[axis])?;
    let part = slice_axis(cx, &input, axis, start, 1, &Dim::Int(1))?;
    one(reshape(cx, &part, &result.shape)?)
}

/// `cat(tensors, dim)`: tensors one after the other along an axis, in their common dtype. Empty 1-d tensors are left
/// out, as PyTorch does.
pub fn cat<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let axis = super::cx::axis_of(result.shape.len(), bound.int("dim")?)?;
    let mut parts = Vec::new();
    for name in bound.tensors("tensors")? {
        let t = cx.tensor(name)?;
        let is_legacy_empty = t.shape == [Dim::Int(0)] && result.shape.len() != 1;
        if !is_legacy_empty {
            parts.push(convert(cx, t, &result)?.value);
        }
    }
    let value = match parts.as_slice() {
        [] => cx.empty(result.dtype, &result.shape)?,
        [only] => *only,
        parts => cx.b.concat(parts, axis)?,
    };
    one(cx.conform(value, result.dtype, &result.shape)?)
}

/// A tensor in the dtype of `like`.
pub fn convert<'c>(cx: &mut Cx<'c>, t: Tensor<'c>, like: &TensorType) -> Result<Tensor<'c>> {
    if t.dtype == like.dtype {
        return Ok(t);
    }
    let ty = TensorType::new(like.dtype, t.shape.clone());
    let (from, common) = (t.dtype, super::scalar::compute_dtype(t.dtype));
    elementwise::emit(cx, &ty, &[Operand::Tensor(t)], from, common, |_, v: &[Value<'c>]| Ok(v[0]))
}

/// `constant_pad_nd(self, pad, value)`: pairs of (before, after) from the last axis on. Negative numbers crop; sizes known
/// only at run time are taken to be none of them.
pub fn constant_pad<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let mut t = self_tensor(cx, bound)?;
    let pads = bound.sym_ints("pad")?;
    let (mut low, mut high) = (vec![Size::Static(0); t.rank()], vec![Size::Static(0); t.rank()]);
    for (k, pair) in pads.chunks(2).enumerate() {
        let axis = t.rank().checked_sub(k + 1).ok_or_else(|| Error::Graph("more pads than axes".into()))?;
        let (before, after) = (cx.size_arg(&pair[0])?, pair.get(1).map_or(Ok(Size::Static(0)), |a| cx.size_arg(a))?);
        t = crop(cx, &t, axis, below_zero(before), below_zero(after))?;
        (low[axis], high[axis]) = (at_least_zero(before), at_least_zero(after));
    }
    let fill = super::scalar::Scalars::new(&cx.b, t.dtype).literal(bound.arg("value")?)?;
    let value = cx.b.pad(t.value, &low, &high, fill)?;
    one(cx.conform(value, t.dtype, &result.shape)?)
}

fn below_zero(size: Size<'_>) -> i64 {
    if let Size::Static(n) = size { n.min(0) } else { 0 }
}

fn at_least_zero(size: Size<'_>) -> Size<'_> {
    if let Size::Static(n) = size { Size::Static(n.max(0)) } else { size }
}

/// A tensor without `-before` leading and `-after` trailing positions of an axis.
fn crop<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axis: usize, before: i64, after: i64) -> Result<Tensor<'c>> {
    if before == 0 && after == 0 {
        return Ok(t.clone());
    }
    let old = Expr::try_from(&t.shape[axis]).map_err(|e| Error::Graph(e.to_string()))?;
    let extent = Dim::from(&expr::add([old, Expr::Int(before), Expr::Int(after)]));
    let start = before.checked_neg().ok_or_else(|| Error::unsupported(format!("a padding of {before}")))?;
    slice_axis(cx, t, axis, Size::Static(start), 1, &extent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shape: &[&str]) -> Vec<Expr> {
        shape.iter().map(|d| d.parse().unwrap()).collect()
    }

    fn found(from: &[&str], to: &[&str]) -> Vec<(Range, Range)> {
        groups(&of(from), &of(to))
    }

    #[test]
    fn groups_are_the_smallest_runs_of_equal_count() {
        assert_eq!(found(&["2", "3", "4"], &["6", "4"]), [(0..2, 0..1), (2..3, 1..2)]);
        assert_eq!(found(&["6", "4"], &["2", "3", "2", "2"]), [(0..1, 0..2), (1..2, 2..4)]);
        assert_eq!(found(&["s0", "12"], &["s0", "3", "4"]), [(0..1, 0..1), (1..2, 1..3)]);
        assert_eq!(found(&["s0", "s1", "8"], &["s0*s1", "8"]), [(0..2, 0..1), (2..3, 1..2)]);
        assert_eq!(found(&["2*s0", "3"], &["s0", "2", "3"]), [(0..1, 0..2), (1..2, 2..3)]);
    }

    #[test]
    fn ones_join_a_neighbour() {
        assert_eq!(found(&["5"], &["5", "1", "1"]), [(0..1, 0..3)]);
        assert_eq!(found(&["1", "5"], &["5"]), [(0..2, 0..1)]);
        assert_eq!(found(&[], &["1", "1"]), []);
    }

    #[test]
    fn what_cannot_be_seen_is_one_group() {
        assert_eq!(found(&["2", "3"], &["3", "2"]), [(0..2, 0..2)]);
        assert_eq!(found(&["u0", "4"], &["s0", "2"]), [(0..2, 0..2)]);
        assert_eq!(found(&["0", "3"], &["0", "5"]), [(0..2, 0..2)]);
    }
}
