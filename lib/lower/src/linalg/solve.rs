//! Factorisations of matrices and what is solved by them: one `scf.for` over the steps of the algorithm, each step a few
//! `linalg.generic` over whole matrices of a batch.
//!
//! Matrices are the last two axes, all others are one batch axis. Elements are f32 or f64, or complex numbers of these, and
//! are computed in their own type, as LAPACK does. `triangular` solves, `cholesky`, `lu` and `qr` factorise, `jacobi` rotates to eigenvalues and
//! singular values.

pub mod cholesky;
pub mod jacobi;
pub mod lu;
pub mod qr;
pub mod triangular;

use super::cx::{Cx, Val};
use super::elementwise::into_mlir;
use super::reduce::product;
use super::scalar::Scalars;
use super::view::reshape;
use crate::error::{Error, Result};
use m2m_mlir::map::Expr as MapExpr;
use m2m_mlir::{Builder, Iter, Map, Size, Value, types};
use m2m_record::{DType, Dim, Node};
use m2m_tensor::{Expr, expr};
use std::rc::Rc;

/// A batch of matrices `[batch, rows, cols]`.
#[derive(Clone)]
pub struct Batch<'c> {
    /// The tensor of rank 3.
    pub value: Value<'c>,
    /// Its element type.
    pub dtype: DType,
    /// Its three sizes.
    pub shape: [Dim; 3],
}

impl<'c> Batch<'c> {
    /// A real tensor argument with all axes but the last two as one.
    pub fn real(cx: &mut Cx<'c>, name: &str) -> Result<Self> {
        let t = cx.tensor(name)?;
        if t.dtype.is_complex() {
            return Err(Error::unsupported(format!("this factorisation of {} elements; expected f32 or f64", t.dtype)));
        }
        Batch::of(cx, name)
    }

    /// A tensor argument with all axes but the last two as one.
    pub fn of(cx: &mut Cx<'c>, name: &str) -> Result<Self> {
        let t = cx.tensor(name)?;
        if !matches!(t.dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128) {
            let message = format!("a factorisation of {} elements; expected f32, f64, c64 or c128", t.dtype);
            return Err(Error::unsupported(message));
        }
        let [lead @ .., rows, cols] = t.shape.as_slice() else {
            return Err(Error::Graph(format!("matrices of rank {}", t.rank())));
        };
        let shape = [product(lead.iter())?, rows.clone(), cols.clone()];
        let flat = reshape(cx, &t, &shape)?;
        Ok(Batch { value: flat.value, dtype: t.dtype, shape })
    }

    /// The smaller one of its two sizes.
    pub fn steps(&self) -> Result<Dim> {
        let [_, rows, cols] = &self.shape;
        let sizes = [rows, cols].map(Expr::try_from);
        let sizes: Vec<Expr> =
            sizes.into_iter().collect::<std::result::Result<_, _>>().map_err(|e| Error::Graph(e.to_string()))?;
        Ok(Dim::from(&expr::min(sizes)))
    }
}

/// A value of any shape and type as result `k` of a node.
pub fn result<'c>(
    cx: &mut Cx<'c>,
    node: &Node,
    k: usize,
    value: Value<'c>,
    dtype: DType,
    shape: &[Dim],
) -> Result<Val<'c>> {
    let stated = cx.result_type(node, k)?.shape.clone();
    let t = cx.conform(value, dtype, shape)?;
    Ok(Val::Tensor(reshape(cx, &t, &stated)?))
}

/// Runs `body` for `0 .. count`, carrying tensors.
pub fn repeat<'c>(
    cx: &mut Cx<'c>,
    count: &Dim,
    carried: &[Value<'c>],
    body: impl Fn(&Builder<'c>, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>>,
) -> Result<Vec<Value<'c>>> {
    let count = cx.size_value(count)?;
    let (zero, one) = (cx.b.const_index(0)?, cx.b.const_index(1)?);
    let b = Rc::clone(&cx.b);
    Ok(b.for_loop((zero, count, one), carried, |b, k, carried| body(b, k, carried).map_err(into_mlir))?)
}

/// Row or column `at` of every matrix, with an axis of size 1 in its place.
pub fn line<'c>(b: &Builder<'c>, m: Value<'c>, axis: usize, at: Value<'c>) -> Result<Value<'c>> {
    let mut sizes = b.sizes(m)?;
    let mut offsets = vec![Size::Static(0); sizes.len()];
    (sizes[axis], offsets[axis]) = (Size::Static(1), Size::Value(at));
    let ones = vec![Size::Static(1); sizes.len()];
    Ok(b.extract_slice(m, &offsets, &sizes, &ones)?)
}

/// Puts a row or a column back.
pub fn put_line<'c>(b: &Builder<'c>, part: Value<'c>, m: Value<'c>, axis: usize, at: Value<'c>) -> Result<Value<'c>> {
    let sizes = b.sizes(part)?;
    let mut offsets = vec![Size::Static(0); sizes.len()];
    offsets[axis] = Size::Value(at);
    let ones = vec![Size::Static(1); sizes.len()];
    Ok(b.insert_slice(part, m, &offsets, &sizes, &ones)?)
}

/// How a tensor of up to three axes is read in a loop over (batch, row, column): `along[k]` is the loop of its axis `k`, or
/// none where it has size 1.
pub fn read(along: &[Option<usize>]) -> Map {
    Map::new(3, along.iter().map(|axis| axis.map_or(MapExpr::Const(0), MapExpr::Dim)).collect())
}

/// The element of each row: `[batch, rows, 1]`.
pub fn by_row() -> Map {
    read(&[Some(0), Some(1), None])
}

/// The element of each column: `[batch, 1, cols]`.
pub fn by_column() -> Map {
    read(&[Some(0), None, Some(2)])
}

/// One element a matrix: `[batch, 1, 1]`.
pub fn by_matrix() -> Map {
    read(&[Some(0), None, None])
}

/// What a step computes: code, row and column, elements read, the element so far.
type Elements<'a, 'c> =
    dyn Fn(&Scalars<'_, 'c>, Value<'c>, Value<'c>, &[Value<'c>], Value<'c>) -> Result<Value<'c>> + 'a;

/// Every element of a batch of matrices anew.
pub fn renew<'c>(
    b: &Builder<'c>,
    dtype: DType,
    m: Value<'c>,
    ins: &[(Value<'c>, Map)],
    body: &Elements<'_, 'c>,
) -> Result<Value<'c>> {
    let outs = [(m, Map::identity(3))];
    let results = b.generic(ins, &outs, &[Iter::Parallel; 3], |b, v| {
        let run = || {
            let (row, col) = (b.index(1)?, b.index(2)?);
            let (read, own) = v.split_at(ins.len());
            Ok(vec![body(&Scalars::new(b, dtype), row, col, read, own[0])?])
        };
        run().map_err(into_mlir)
    })?;
    Ok(results[0])
}

/// Sums over the rows (axis 1) or columns (axis 2) of every matrix: `[batch, cols]` or `[batch, rows]`. The body gives each
/// term.
pub fn total<'c>(
    b: &Builder<'c>,
    dtype: DType,
    axis: usize,
    over: Value<'c>,
    ins: &[(Value<'c>, Map)],
    body: &Elements<'_, 'c>,
) -> Result<Value<'c>> {
    let sizes = b.sizes(over)?;
    let kept = 3 - axis;
    let element = b.elem(dtype.name())?;
    let zero = Scalars::new(b, dtype).number(0.0)?;
    let start = b.fill(zero, b.empty(&[sizes[0], sizes[kept]], element)?)?;
    let mut iterators = [Iter::Parallel; 3];
    iterators[axis] = Iter::Reduction;
    let mut all = vec![(over, Map::identity(3))];
    all.extend(ins.iter().cloned());
    let results = b.generic(&all, &[(start, Map::dims(3, &[0, kept]))], &iterators, |b, v| {
        let run = || {
            let s = Scalars::new(b, dtype);
            let (row, col) = (b.index(1)?, b.index(2)?);
            let term = body(&s, row, col, &v[1..all.len()], v[0])?;
            Ok(vec![s.add(v[all.len()], term)?])
        };
        run().map_err(into_mlir)
    })?;
    Ok(results[0])
}

/// `[batch, n]` with an axis of size 1 put in before its last one (axis 1) or after it (axis 2).
pub fn widened<'c>(b: &Builder<'c>, v: Value<'c>, axis: usize) -> Result<Value<'c>> {
    let mut sizes = b.sizes(v)?;
    sizes.insert(axis, Size::Static(1));
    Ok(b.expand_shape(v, &[vec![0], vec![1, 2]], &sizes)?)
}

/// The unit matrix of every matrix of a batch.
pub fn units<'c>(cx: &mut Cx<'c>, dtype: DType, shape: &[Dim; 3]) -> Result<Value<'c>> {
    let out = cx.empty(dtype, shape)?;
    renew(&cx.b, dtype, out, &[], &|s, row, col, _, _| {
        let is_on = s.b.cmpi(m2m_mlir::CmpI::Eq, row, col)?;
        Ok(s.b.select(is_on, s.number(1.0)?, s.number(0.0)?)?)
    })
}

/// The type of a value.
pub fn type_of<'c>(value: Value<'c>) -> m2m_mlir::Type<'c> {
    types::of(value)
}
