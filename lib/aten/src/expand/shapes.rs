//! Views and joins: what moves elements without computing with them.

use super::Expander;
use crate::error::Error;
use crate::infer::{permuted, slice_size, view_shape, wrap_dim};
use crate::value::{V, size_arg, sizes_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::expr::Cmp;
use m2m_tensor::{Expr, expr};

fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl Expander<'_, '_> {
    /// `x` with another shape, elements in the same order; one size may be -1.
    pub fn view(&mut self, x: &V, sizes: &[Expr]) -> Result<V, Error> {
        let shape = view_shape("aten.view.default", &x.shape, sizes)?;
        if shape == x.shape {
            return Ok(x.clone());
        }
        self.call1("aten.view.default", vec![x.arg(), sizes_arg(&shape)], &[], x.dtype, &shape)
    }

    /// `x` with a dimension of size 1 put in before `dim`.
    pub fn unsqueeze(&mut self, x: &V, dim: usize) -> Result<V, Error> {
        let mut shape = x.shape.clone();
        shape.insert(dim.min(shape.len()), Expr::Int(1));
        self.view(x, &shape)
    }

    /// `x` without dimension `dim`, whose size must be 1.
    pub fn squeeze(&mut self, x: &V, dim: usize) -> Result<V, Error> {
        let mut shape = x.shape.clone();
        if shape.get(dim) != Some(&Expr::Int(1)) {
            return Err(Error::shape("squeeze", format!("dimension {dim} has size {}; expected 1", x.dim(dim))));
        }
        shape.remove(dim);
        self.view(x, &shape)
    }

    /// `x` with its dimensions in the order `dims`. A permutation of a permutation becomes one.
    pub fn permute(&mut self, x: &V, dims: &[usize]) -> Result<V, Error> {
        if dims.iter().enumerate().all(|(k, d)| k == *d) && dims.len() == x.rank() {
            return Ok(x.clone());
        }
        if self.state.is_folding
            && let Some((inner, before)) = self.permuted_from(x)
        {
            let joined: Option<Vec<usize>> = dims.iter().map(|d| before.get(*d).copied()).collect();
            if let Some(joined) = joined {
                return self.permute(&inner, &joined);
            }
        }
        let shape = permuted("aten.permute.default", &x.shape, dims)?;
        let dims = Arg::ints(dims.iter().map(|d| int(*d)));
        self.call1("aten.permute.default", vec![x.arg(), dims], &[], x.dtype, &shape)
    }

    /// What `x` is a permutation of, and how.
    fn permuted_from(&self, x: &V) -> Option<(V, Vec<usize>)> {
        let node = self.producer(x).filter(|n| n.op == "aten.permute.default")?;
        let (Some(Arg::Value(inner)), Some(Arg::List(dims))) = (node.args.first(), node.args.get(1)) else {
            return None;
        };
        let wrap = |d: &Arg| match d {
            Arg::Int(d) => wrap_dim("permute", *d, x.rank()).ok(),
            _ => None,
        };
        Some((self.value(inner).ok()?, dims.iter().map(wrap).collect::<Option<_>>()?))
    }

    /// `x` with two dimensions exchanged.
    pub fn transpose(&mut self, x: &V, a: usize, b: usize) -> Result<V, Error> {
        let mut dims: Vec<usize> = (0..x.rank()).collect();
        if a.max(b) >= dims.len() {
            return Err(Error::shape("transpose", format!("dimensions {a} and {b} of a tensor of rank {}", x.rank())));
        }
        dims.swap(a, b);
        self.permute(x, &dims)
    }

    /// `x` stretched to a shape it broadcasts to.
    pub fn expand_to(&mut self, x: &V, shape: &[Expr]) -> Result<V, Error> {
        if x.shape == shape {
            return Ok(x.clone());
        }
        if crate::infer::broadcast("aten.expand.default", &x.shape, shape)? != shape {
            return Err(Error::shape("aten.expand.default", "a size shrinks; expected a size of 1 or the same one"));
        }
        self.call1("aten.expand.default", vec![x.arg(), sizes_arg(shape)], &[], x.dtype, shape)
    }

    /// `x[start:end:step]` along `dim`; bounds are inside the dimension.
    pub fn slice(&mut self, x: &V, dim: usize, start: &Expr, end: &Expr, step: i64) -> Result<V, Error> {
        if *start == Expr::Int(0) && *end == x.dim(dim) && step == 1 {
            return Ok(x.clone());
        }
        let mut shape = x.shape.clone();
        match shape.get_mut(dim) {
            Some(size) => *size = slice_size(start, end, step),
            None => return Err(Error::shape("slice", format!("dimension {dim} of a tensor of rank {}", x.rank()))),
        }
        let args = vec![x.arg(), Arg::Int(int(dim)), size_arg(start), size_arg(end), Arg::Int(step)];
        self.call1("aten.slice.Tensor", args, &[], x.dtype, &shape)
    }

    /// `x` with sizes that must be those of `shape` where both are more than 1. What symbols do not show the program checks.
    pub fn of_sizes(&mut self, x: &V, shape: &[Expr]) -> Result<V, Error> {
        let mut y = x.clone();
        for (back, wanted) in shape.iter().rev().enumerate().take(x.rank()) {
            let dim = x.from_end(back + 1)?;
            let size = x.dim(dim);
            let is_known = size == *wanted || [&size, wanted].iter().any(|s| s.as_int() == Some(1));
            if is_known || (size.as_int().is_some() && wanted.as_int().is_some()) {
                continue;
            }
            let message = format!("dimension {dim} is {size} where {wanted} is needed");
            self.require(Cmp::Eq, &size, wanted, message)?;
            y = self.slice(&y, dim, &Expr::Int(0), wanted, 1)?;
        }
        Ok(y)
    }

    /// Has the program check a comparison of sizes.
    pub fn require(&mut self, op: Cmp, a: &Expr, b: &Expr, message: String) -> Result<(), Error> {
        let holds = Expr::Cmp(op, Box::new(a.clone()), Box::new(b.clone())).to_string();
        self.call("aten._assert_scalar.default", vec![Arg::Sym(holds), Arg::Str(message)], &[], Vec::new()).map(drop)
    }

    /// `x[index]` along `dim`, which goes.
    pub fn select(&mut self, x: &V, dim: usize, index: &Expr) -> Result<V, Error> {
        let mut shape = x.shape.clone();
        if dim >= shape.len() {
            return Err(Error::shape("select", format!("dimension {dim} of a tensor of rank {}", x.rank())));
        }
        shape.remove(dim);
        self.call1("aten.select.int", vec![x.arg(), Arg::Int(int(dim)), size_arg(index)], &[], x.dtype, &shape)
    }

    /// Tensors of one dtype joined along `dim`.
    pub fn cat(&mut self, items: &[V], dim: usize) -> Result<V, Error> {
        let [first, rest @ ..] = items else {
            return Err(Error::shape("aten.cat.default", "no tensors; expected at least one"));
        };
        if rest.is_empty() {
            return Ok(first.clone());
        }
        let mut shape = first.shape.clone();
        let Some(size) = shape.get_mut(dim) else {
            return Err(Error::shape(
                "aten.cat.default",
                format!("dimension {dim} of a tensor of rank {}", first.rank()),
            ));
        };
        *size = expr::add(items.iter().map(|v| v.dim(dim)));
        let list = Arg::List(items.iter().map(V::arg).collect());
        self.call1("aten.cat.default", vec![list, Arg::Int(int(dim))], &[], first.dtype, &shape)
    }

    /// `x` with constant elements put around it: `(before, after)` for each dimension, negative ones cut.
    pub fn pad(&mut self, x: &V, pads: &[(Expr, Expr)], value: Arg) -> Result<V, Error> {
        let zero = Expr::Int(0);
        if pads.iter().all(|(a, b)| *a == zero && *b == zero) {
            return Ok(x.clone());
        }
        let grow = |(size, (a, b)): (&Expr, &(Expr, Expr))| expr::add([size.clone(), a.clone(), b.clone()]);
        let shape: Vec<Expr> = x.shape.iter().zip(pads).map(grow).collect();
        let flat = pads.iter().rev().flat_map(|(a, b)| [size_arg(a), size_arg(b)]).collect();
        self.call1("aten.constant_pad_nd.default", vec![x.arg(), Arg::List(flat), value], &[], x.dtype, &shape)
    }

    /// `x[..., index, ...]` along `dim` for a vector of indices.
    pub fn index_select(&mut self, x: &V, dim: usize, index: &V) -> Result<V, Error> {
        let mut shape = x.shape.clone();
        if let Some(size) = shape.get_mut(dim) {
            *size = index.dim(0);
        }
        let args = vec![x.arg(), Arg::Int(int(dim)), index.arg()];
        self.call1("aten.index_select.default", args, &[], x.dtype, &shape)
    }

    /// The elements in reverse order along `dims`.
    pub fn flip(&mut self, x: &V, dims: &[usize]) -> Result<V, Error> {
        let dims = Arg::ints(dims.iter().map(|d| int(*d)));
        self.call1("aten.flip.default", vec![x.arg(), dims], &[], x.dtype, &x.shape)
    }

    /// `[1, C, 1, …]`: a vector laid along dimension `dim` of a tensor of rank `rank`.
    pub fn along(&mut self, x: &V, dim: usize, rank: usize) -> Result<V, Error> {
        let mut shape = vec![Expr::Int(1); rank];
        if let Some(size) = shape.get_mut(dim) {
            *size = x.dim(0);
        }
        self.view(x, &shape)
    }

    /// A bool tensor `[rows, cols]` that is true where `column <= row + diagonal`.
    pub fn lower_triangle(&mut self, rows: &Expr, cols: &Expr, diagonal: i64) -> Result<V, Error> {
        let row = self.iota(rows, DType::I64)?;
        let row = self.unsqueeze(&row, 1)?;
        let row = if diagonal == 0 { row } else { self.add(&row, diagonal)? };
        let col = self.iota(cols, DType::I64)?;
        self.compare("le", &col, &row)
    }
}
