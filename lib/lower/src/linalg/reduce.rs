//! Reductions over axes: one `linalg.reduce` with an accumulator, then one elementwise step where the result is not the
//! accumulator itself.
//!
//! Sums and products accumulate in f32 for half types, in f64 where f32 elements are very many, in i64 for small integers (the recorded result type says so).
//! `arg` holds reductions that give positions, `moments` means and variances, `norm` vector norms.

pub mod arg;
pub mod moments;
pub mod norm;

use super::cx::{Cx, Tensor, Val};
use super::elementwise::{self, Operand, into_mlir};
use super::scalar::{Compare, Scalars, accumulate_dtype, compute_dtype, convert};
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_aten::bind::Bound;
use m2m_mlir::{Iter, Map, Value};
use m2m_record::{Arg, DType, Dim, Node, TensorType};
use m2m_tensor::{Expr, expr};

/// The axes that a reduction removes, and those that stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// Removed, ascending.
    pub reduced: Vec<usize>,
    /// Left, ascending.
    pub kept: Vec<usize>,
}

impl Axes {
    /// From the removed axes of a tensor of `rank` dimensions. Axis 0 of a 0-d tensor is no axis.
    pub fn new(rank: usize, mut reduced: Vec<usize>) -> Self {
        reduced.retain(|axis| *axis < rank);
        reduced.sort_unstable();
        reduced.dedup();
        let kept = (0..rank).filter(|axis| !reduced.contains(axis)).collect();
        Axes { reduced, kept }
    }

    /// From the argument `dim`: none, a number, or a list, whose empty form means all axes as none does.
    pub fn of(t: &Tensor<'_>, bound: &Bound) -> Result<Self> {
        let all = || Axes::new(t.rank(), (0..t.rank()).collect());
        if !bound.has("dim") || *bound.arg("dim")? == Arg::Null {
            return Ok(all());
        }
        let dims = bound.ints("dim")?;
        if dims.is_empty() {
            return Ok(all());
        }
        let reduced = dims.into_iter().map(|dim| t.axis(dim)).collect::<Result<Vec<_>>>()?;
        Ok(Axes::new(t.rank(), reduced))
    }

    /// The shape of what is left of a tensor.
    pub fn shape(&self, t: &Tensor<'_>) -> Vec<Dim> {
        self.kept.iter().map(|axis| t.shape[*axis].clone()).collect()
    }

    /// Number of elements that fold into one.
    pub fn count(&self, t: &Tensor<'_>) -> Result<Dim> {
        product(self.reduced.iter().map(|axis| &t.shape[*axis]))
    }

    /// What each loop over the whole tensor does.
    pub fn iterators(&self) -> Vec<Iter> {
        let rank = self.reduced.len() + self.kept.len();
        (0..rank).map(|k| if self.reduced.contains(&k) { Iter::Reduction } else { Iter::Parallel }).collect()
    }

    /// How the result is read in a loop over the whole tensor.
    pub fn map(&self) -> Map {
        Map::dims(self.reduced.len() + self.kept.len(), &self.kept)
    }
}

/// The product of dimensions.
pub fn product<'d>(dims: impl Iterator<Item = &'d Dim>) -> Result<Dim> {
    let factors = dims.map(Expr::try_from).collect::<std::result::Result<Vec<_>, _>>();
    Ok(Dim::from(&expr::mul(factors.map_err(|e| Error::Graph(e.to_string()))?)))
}

/// A dimension as an operand of an elementwise step.
pub fn dim_operand<'c>(cx: &mut Cx<'c>, dim: &Dim) -> Result<Operand<'c>> {
    Operand::of(cx, &dim.as_int().map_or_else(|| Arg::Sym(dim.to_string()), Arg::Int))
}

/// The argument `self`; complex elements are refused.
pub fn input<'c>(cx: &Cx<'c>, bound: &Bound) -> Result<Tensor<'c>> {
    let t = cx.tensor(bound.tensor("self")?)?;
    if t.dtype.is_complex() {
        return Err(Error::unsupported(format!("{} of complex elements ({})", bound.op(), t.dtype)));
    }
    Ok(t)
}

/// Folds axes of a tensor: `acc = body(x, acc)`, from `init`, in `acc`'s type. The result lacks the axes.
pub fn fold<'c>(
    cx: &mut Cx<'c>,
    t: &Tensor<'c>,
    axes: &Axes,
    acc: DType,
    init: Value<'c>,
    body: impl Fn(&Scalars<'_, 'c>, Value<'c>, Value<'c>) -> Result<Value<'c>>,
) -> Result<Tensor<'c>> {
    let shape = axes.shape(t);
    let start = cx.filled(acc, &shape, init)?;
    let step = |b: &m2m_mlir::Builder<'c>, v: &[Value<'c>]| {
        body(&Scalars::new(b, acc), v[0], v[1]).map(|next| vec![next]).map_err(into_mlir)
    };
    let values = if axes.reduced.is_empty() {
        let identity = Map::identity(t.rank());
        cx.b.generic(&[(t.value, identity.clone())], &[(start, identity)], &axes.iterators(), step)?
    } else {
        let reduced: Vec<i64> = axes.reduced.iter().map(|axis| *axis as i64).collect();
        cx.b.reduce(&[t.value], &[start], &reduced, step)?
    };
    Ok(Tensor { value: values[0], dtype: acc, shape })
}

/// Brings an accumulator to a result: `body` of each element with the operands, rounded once, in the recorded shape.
pub fn finish<'c>(
    cx: &mut Cx<'c>,
    acc: Tensor<'c>,
    others: &[Operand<'c>],
    result: &TensorType,
    body: impl Fn(&Scalars<'_, 'c>, &[Value<'c>]) -> Result<Value<'c>>,
) -> Result<Tensor<'c>> {
    let ty = TensorType::new(result.dtype, acc.shape.clone());
    let dtype = acc.dtype;
    let operands: Vec<_> = std::iter::once(Operand::Tensor(acc)).chain(others.iter().cloned()).collect();
    let rounded = elementwise::emit(cx, &ty, &operands, dtype, dtype, body)?;
    reshape(cx, &rounded, &result.shape)
}

/// An accumulator as a result, converted where the types differ.
pub fn finish_plain<'c>(cx: &mut Cx<'c>, acc: Tensor<'c>, result: &TensorType) -> Result<Tensor<'c>> {
    if acc.dtype == result.dtype {
        return reshape(cx, &acc, &result.shape);
    }
    finish(cx, acc, &[], result, |_, v| Ok(v[0]))
}

fn one<'c>(t: Tensor<'c>) -> Vec<Val<'c>> {
    vec![Val::Tensor(t)]
}

/// Elements above which f32 sums are taken in f64: rounding errors of that many steps would show.
const MANY: i64 = 1 << 16;

/// The type in which so many elements of a dtype accumulate.
pub fn accumulator(dtype: DType, count: &Dim) -> DType {
    let acc = accumulate_dtype(dtype);
    let is_many = count.as_int().is_some_and(|n| n > MANY);
    if acc == DType::F32 && is_many { DType::F64 } else { acc }
}

/// What a row of the table folds with: the first accumulator and the step.
type Start = for<'b, 'c> fn(&Scalars<'b, 'c>) -> Result<Value<'c>>;
type Step = for<'b, 'c> fn(&Scalars<'b, 'c>, Value<'c>, Value<'c>) -> Result<Value<'c>>;

/// Folds converted elements: to the result's type first, as PyTorch does where `dtype` is given, then to the
/// accumulator's.
fn accumulated<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, start: Start, step: Step) -> Result<Vec<Val<'c>>> {
    let result = cx.result_type(node, 0)?.clone();
    let t = cx.tensor(bound.tensor("self")?)?;
    let axes = Axes::of(&t, bound)?;
    let acc = accumulator(result.dtype, &axes.count(&t)?);
    let init = start(&Scalars::new(&cx.b, acc))?;
    let (from, to) = (t.dtype, result.dtype);
    let sum = fold(cx, &t, &axes, acc, init, |s, x, so_far| {
        let x = convert(s.b, convert(s.b, x, from, to)?, to, acc)?;
        step(s, so_far, x)
    })?;
    Ok(one(finish_plain(cx, sum, &result)?))
}

/// `sum(self, dim, keepdim, dtype)`: 0 over no elements.
pub fn sum<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    accumulated(cx, node, bound, |s| s.int(0), |s, acc, x| s.add(acc, x))
}

/// `nansum(self, dim, keepdim, dtype)`: the sum with NaN counted as 0.
pub fn nansum<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let step: Step = |s, acc, x| {
        let term = s.b.select(s.is_nan(x)?, s.int(0)?, x)?;
        s.add(acc, term)
    };
    accumulated(cx, node, bound, |s| s.int(0), step)
}

/// `prod(self, dim, keepdim, dtype)`: 1 over no elements.
pub fn prod<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    accumulated(cx, node, bound, |s| s.int(1), |s, acc, x| s.mul(acc, x))
}

/// The extreme elements of a tensor over axes, in its compute type; NaN wins.
pub fn extreme<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axes: &Axes, is_max: bool) -> Result<Tensor<'c>> {
    let (from, acc) = (t.dtype, compute_dtype(t.dtype));
    let s = Scalars::new(&cx.b, acc);
    let init = if is_max { s.lowest()? } else { s.highest()? };
    fold(cx, t, axes, acc, init, |s, x, so_far| {
        let x = convert(s.b, x, from, acc)?;
        if is_max { s.maximum(so_far, x) } else { s.minimum(so_far, x) }
    })
}

/// `amax(self, dim, keepdim)`
pub fn amax<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, result) = (input(cx, bound)?, cx.result_type(node, 0)?);
    let greatest = extreme(cx, &t, &Axes::of(&t, bound)?, true)?;
    Ok(one(finish_plain(cx, greatest, result)?))
}

/// `amin(self, dim, keepdim)`
pub fn amin<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, result) = (input(cx, bound)?, cx.result_type(node, 0)?);
    let least = extreme(cx, &t, &Axes::of(&t, bound)?, false)?;
    Ok(one(finish_plain(cx, least, result)?))
}

/// `aminmax(self, dim, keepdim) -> (min, max)`
pub fn aminmax<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let mut least = amin(cx, node, bound)?;
    let t = input(cx, bound)?;
    let greatest = extreme(cx, &t, &Axes::of(&t, bound)?, true)?;
    let result = cx.result_type(node, 1)?;
    least.push(Val::Tensor(finish_plain(cx, greatest, result)?));
    Ok(least)
}

/// Folds truth values; an empty list of axes is none here, unlike elsewhere.
fn logical<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound, is_all: bool) -> Result<Vec<Val<'c>>> {
    let (t, result) = (cx.tensor(bound.tensor("self")?)?, cx.result_type(node, 0)?);
    let is_none = bound.has("dim") && matches!(bound.arg("dim")?, Arg::List(dims) if dims.is_empty());
    let axes = if is_none { Axes::new(t.rank(), Vec::new()) } else { Axes::of(&t, bound)? };
    let init = cx.b.const_bool(is_all)?;
    let from = t.dtype;
    let truth = fold(cx, &t, &axes, DType::Bool, init, |s, x, so_far| {
        let x = Scalars::new(s.b, from).truth(x)?;
        Ok(if is_all { s.b.andi(so_far, x)? } else { s.b.ori(so_far, x)? })
    })?;
    Ok(one(finish_plain(cx, truth, result)?))
}

/// `any(self, dim, keepdim)`: whether an element is not 0; NaN is not.
pub fn any<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    logical(cx, node, bound, false)
}

/// `all(self, dim, keepdim)`: whether no element is 0.
pub fn all<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    logical(cx, node, bound, true)
}

/// `count_nonzero(self, dim)`: the number of elements that are not 0, as i64.
pub fn count_nonzero<'c>(cx: &mut Cx<'c>, node: &Node, bound: &Bound) -> Result<Vec<Val<'c>>> {
    let (t, result) = (cx.tensor(bound.tensor("self")?)?, cx.result_type(node, 0)?);
    let axes = Axes::of(&t, bound)?;
    let count = count_true(cx, &t, &axes, DType::I64)?;
    Ok(one(finish_plain(cx, count, result)?))
}

/// The number of elements that are not 0, in a type.
pub fn count_true<'c>(cx: &mut Cx<'c>, t: &Tensor<'c>, axes: &Axes, acc: DType) -> Result<Tensor<'c>> {
    let zero = Scalars::new(&cx.b, acc).int(0)?;
    let from = t.dtype;
    fold(cx, t, axes, acc, zero, |s, x, so_far| {
        let elements = Scalars::new(s.b, from);
        let is_counted = elements.compare(Compare::Ne, x, elements.int(0)?)?;
        s.add(so_far, s.b.select(is_counted, s.int(1)?, s.int(0)?)?)
    })
}
