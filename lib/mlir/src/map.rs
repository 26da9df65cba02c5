//! Affine maps from plain data: which element of an operand a loop point reads or writes.
//!
//! Results are dimensions, constants, and sums of dimensions with coefficients, which is all that lowered loops need.

use melior::Context;
use melior::ir::{AffineExpr, AffineMap};

/// One result of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// A loop dimension.
    Dim(usize),
    /// A constant, such as 0 along a broadcast axis.
    Const(i64),
    /// `offset + sum of coefficient * dimension`: `Expr::linear(&[(oh, stride), (kh, dilation)], 0)`.
    Linear(Vec<(usize, i64)>, i64),
}

impl Expr {
    /// `offset + sum of coefficient * dimension`.
    pub fn linear(terms: &[(usize, i64)], offset: i64) -> Self {
        Self::Linear(terms.to_vec(), offset)
    }

    fn build<'c>(&self, context: &'c Context) -> AffineExpr<'c> {
        match self {
            Self::Dim(dim) => AffineExpr::dim(context, *dim),
            Self::Const(value) => AffineExpr::constant(context, *value),
            Self::Linear(terms, offset) => terms
                .iter()
                .map(|&(dim, coefficient)| AffineExpr::dim(context, dim) * AffineExpr::constant(context, coefficient))
                .chain((*offset != 0).then(|| AffineExpr::constant(context, *offset)))
                .reduce(|sum, term| sum + term)
                .unwrap_or_else(|| AffineExpr::constant(context, 0)),
        }
    }
}

/// `(d0, …, dn) -> (results)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Number of loop dimensions.
    pub loops: usize,
    /// What each axis of the operand is indexed by.
    pub results: Vec<Expr>,
}

impl Map {
    /// `(d0, …, dn) -> (d0, …, dn)`.
    pub fn identity(loops: usize) -> Self {
        Self { loops, results: (0..loops).map(Expr::Dim).collect() }
    }

    /// `(d0, …, dn) -> (d[dims[0]], …)`; with no dims, a 0-d operand read at every point.
    pub fn dims(loops: usize, dims: &[usize]) -> Self {
        Self { loops, results: dims.iter().copied().map(Expr::Dim).collect() }
    }

    /// Any results.
    pub fn new(loops: usize, results: Vec<Expr>) -> Self {
        Self { loops, results }
    }

    /// How an operand of `shape` is read under broadcasting to `loops` dimensions: aligned at the last axis, axes of
    /// size 1 read at 0 unless `keep` says that the loop has size 1 there too.
    pub fn broadcast(loops: usize, shape: &[i64], keep: impl Fn(usize) -> bool) -> Self {
        let lead = loops.saturating_sub(shape.len());
        let results = shape.iter().enumerate().map(|(axis, &size)| {
            let dim = lead + axis;
            if size == 1 && !keep(dim) { Expr::Const(0) } else { Expr::Dim(dim) }
        });
        Self { loops, results: results.collect() }
    }

    /// The MLIR map.
    pub fn build<'c>(&self, context: &'c Context) -> AffineMap<'c> {
        let results: Vec<_> = self.results.iter().map(|result| result.build(context)).collect();
        AffineMap::new(context, self.loops, 0, &results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(map: &Map) -> String {
        map.build(&Context::new()).to_string()
    }

    #[test]
    fn maps_print_as_mlir_writes_them() {
        assert_eq!(shown(&Map::identity(2)), "(d0, d1) -> (d0, d1)");
        assert_eq!(shown(&Map::dims(3, &[2, 0])), "(d0, d1, d2) -> (d2, d0)");
        assert_eq!(shown(&Map::dims(1, &[])), "(d0) -> ()");
        let conv = Map::new(3, vec![Expr::Dim(0), Expr::linear(&[(1, 2), (2, 1)], 0), Expr::linear(&[(1, 1)], -3)]);
        assert_eq!(shown(&conv), "(d0, d1, d2) -> (d0, d1 * 2 + d2, d1 - 3)");
        assert_eq!(shown(&Map::new(1, vec![Expr::Linear(vec![], 0)])), "(d0) -> (0)");
    }

    #[test]
    fn broadcasting_aligns_at_the_last_axis() {
        assert_eq!(shown(&Map::broadcast(3, &[1, 4], |_| false)), "(d0, d1, d2) -> (0, d2)");
        assert_eq!(shown(&Map::broadcast(3, &[1, 4], |dim| dim == 1)), "(d0, d1, d2) -> (d1, d2)");
    }
}
