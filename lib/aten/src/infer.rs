//! Shapes of results: broadcasting, reductions, permutations, slices, over symbolic dimensions.
//!
//! Two sizes are equal when their canonical expressions are. A size that might be 1 but is not known to be is not
//! stretched: that is an error, never a guess.

use crate::error::Error;
use m2m_tensor::{Expr, expr};

/// Broadcasts two shapes from the right.
pub fn broadcast(op: &str, a: &[Expr], b: &[Expr]) -> Result<Vec<Expr>, Error> {
    let rank = a.len().max(b.len());
    let at = |shape: &[Expr], k: usize| (k + shape.len()).checked_sub(rank).and_then(|k| shape.get(k).cloned());
    (0..rank)
        .map(|k| match (at(a, k), at(b, k)) {
            (Some(x), None) | (None, Some(x)) => Ok(x),
            (Some(x), Some(y)) if x == y => Ok(x),
            (Some(Expr::Int(1)), Some(y)) => Ok(y),
            (Some(x), Some(Expr::Int(1))) => Ok(x),
            (Some(x), Some(y)) => Err(Error::shape(
                op,
                format!("dimension {k} is {x} in one operand and {y} in another; expected equal sizes or 1"),
            )),
            (None, None) => Ok(Expr::Int(1)),
        })
        .collect()
}

/// A dimension counted from the end when negative. A tensor without dimensions counts as one with one.
pub fn wrap_dim(op: &str, dim: i64, rank: usize) -> Result<usize, Error> {
    let count = i64::try_from(rank.max(1)).unwrap_or(i64::MAX);
    let wrapped = if dim < 0 { dim.saturating_add(count) } else { dim };
    match usize::try_from(wrapped) {
        Ok(d) if wrapped < count => Ok(d),
        _ => Err(Error::shape(
            op,
            format!("dimension {dim} of a tensor of rank {rank}; expected -{count}..{}", count - 1),
        )),
    }
}

/// Distinct dimensions counted from the start, sorted; all of them when none is named.
pub fn wrap_dims(op: &str, dims: &[i64], rank: usize) -> Result<Vec<usize>, Error> {
    if dims.is_empty() {
        return Ok((0..rank).collect());
    }
    let mut out = dims.iter().map(|d| wrap_dim(op, *d, rank)).collect::<Result<Vec<_>, _>>()?;
    out.sort_unstable();
    let count = out.len();
    out.dedup();
    if out.len() != count {
        return Err(Error::shape(op, format!("dimensions {dims:?} name one twice")));
    }
    out.retain(|d| *d < rank);
    Ok(out)
}

/// The shape after a reduction over `dims`.
pub fn reduced(shape: &[Expr], dims: &[usize], keepdim: bool) -> Vec<Expr> {
    let kept = shape.iter().enumerate().filter(|(k, _)| keepdim || !dims.contains(k));
    kept.map(|(k, s)| if dims.contains(&k) { Expr::Int(1) } else { s.clone() }).collect()
}

/// The number of elements.
pub fn numel(shape: &[Expr]) -> Expr {
    expr::mul(shape.iter().cloned())
}

/// The shape after a permutation.
pub fn permuted(op: &str, shape: &[Expr], dims: &[usize]) -> Result<Vec<Expr>, Error> {
    let mut seen = vec![false; shape.len()];
    let pick = |d: &usize| {
        let fresh = seen.get_mut(*d).is_some_and(|s| !std::mem::replace(s, true));
        shape.get(*d).filter(|_| fresh).cloned()
    };
    let out: Option<Vec<Expr>> = dims.iter().map(pick).collect();
    match out {
        Some(out) if out.len() == shape.len() => Ok(out),
        _ => Err(Error::shape(op, format!("dims {dims:?} of rank {}; expected a permutation", shape.len()))),
    }
}

/// The size of a slice from `start` to `end` by `step`, both already inside the dimension.
pub fn slice_size(start: &Expr, end: &Expr, step: i64) -> Expr {
    let span = expr::sub(end.clone(), start.clone());
    if step == 1 {
        span
    } else {
        expr::floor_div(expr::add([span, Expr::Int(step.saturating_sub(1))]), Expr::Int(step))
    }
}

/// Resolves one `-1` of a view's sizes.
pub fn view_shape(op: &str, from: &[Expr], sizes: &[Expr]) -> Result<Vec<Expr>, Error> {
    let unknown: Vec<usize> = sizes.iter().enumerate().filter(|(_, s)| **s == Expr::Int(-1)).map(|(k, _)| k).collect();
    let mut out = sizes.to_vec();
    match unknown.as_slice() {
        [] => {}
        [at] => {
            let known = sizes.iter().enumerate().filter(|(k, _)| k != at).map(|(_, s)| s.clone());
            if let Some(slot) = out.get_mut(*at) {
                *slot = divide(&numel(from), &expr::mul(known));
            }
        }
        _ => return Err(Error::shape(op, "two sizes are -1; expected at most one")),
    }
    let (before, after) = (numel(from), numel(&out));
    if let (Some(a), Some(b)) = (before.as_int(), after.as_int())
        && a != b
    {
        return Err(Error::shape(op, format!("a view of {a} elements as {b}")));
    }
    Ok(out)
}

/// `a / b` for a product that divides: common factors cancel, the rest is a floor division.
pub fn divide(a: &Expr, b: &Expr) -> Expr {
    let factors = |e: &Expr| match e {
        Expr::Mul(v) => v.clone(),
        other => vec![other.clone()],
    };
    let mut top = factors(a);
    let mut bottom = Vec::new();
    for factor in factors(b) {
        match top.iter().position(|f| *f == factor) {
            Some(at) => drop(top.remove(at)),
            None => bottom.push(factor),
        }
    }
    let numbers = |v: &[Expr]| v.iter().filter_map(Expr::as_int).try_fold(1i64, i64::checked_mul);
    let (n, d) = (numbers(&top), numbers(&bottom));
    if let (Some(n), Some(d)) = (n, d)
        && d != 0
        && n % d == 0
    {
        top.retain(|e| e.as_int().is_none());
        bottom.retain(|e| e.as_int().is_none());
        top.push(Expr::Int(n / d));
    }
    let (top, bottom) = (expr::mul(top), expr::mul(bottom));
    if bottom == Expr::Int(1) { top } else { expr::floor_div(top, bottom) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Vec<Expr> {
        text.split_whitespace().map(|t| t.parse().unwrap()).collect()
    }

    #[test]
    fn shapes_broadcast_from_the_right() {
        assert_eq!(broadcast("op", &shape("s0 1 4"), &shape("3 1")).unwrap(), shape("s0 3 4"));
        assert_eq!(broadcast("op", &[], &shape("2*s0")).unwrap(), shape("2*s0"));
        let error = broadcast("op", &shape("s0 4"), &shape("s1 4")).unwrap_err().to_string();
        assert!(error.contains("s0") && error.contains("s1"), "{error}");
    }

    #[test]
    fn dimensions_wrap_and_are_distinct() {
        assert_eq!(wrap_dim("op", -1, 3).unwrap(), 2);
        assert_eq!(wrap_dim("op", -1, 0).unwrap(), 0);
        assert!(wrap_dim("op", 3, 3).is_err() && wrap_dim("op", -4, 3).is_err());
        assert_eq!(wrap_dims("op", &[-1, 0], 3).unwrap(), [0, 2]);
        assert_eq!(wrap_dims("op", &[], 3).unwrap(), [0, 1, 2]);
        assert_eq!(wrap_dims("op", &[-1], 0).unwrap(), [] as [usize; 0]);
        assert!(wrap_dims("op", &[2, -1], 3).is_err());
        assert_eq!(reduced(&shape("2 s0 4"), &[1], true), shape("2 1 4"));
        assert_eq!(reduced(&shape("2 s0 4"), &[0, 2], false), shape("s0"));
    }

    #[test]
    fn views_resolve_one_unknown_size() {
        assert_eq!(view_shape("view", &shape("s0 8 4"), &shape("-1 32")).unwrap(), shape("s0 32"));
        assert_eq!(view_shape("view", &shape("s0 s1 64"), &shape("s0 s1 4 -1")).unwrap(), shape("s0 s1 4 16"));
        assert_eq!(view_shape("view", &shape("6"), &shape("2 -1")).unwrap(), shape("2 3"));
        assert!(view_shape("view", &shape("6"), &shape("4")).is_err());
        assert!(view_shape("view", &shape("6"), &shape("-1 -1")).is_err());
    }

    #[test]
    fn slices_have_their_ceiling() {
        assert_eq!(slice_size(&Expr::Int(1), &Expr::Int(8), 3), Expr::Int(3));
        assert_eq!(slice_size(&Expr::Int(0), &"s0".parse().unwrap(), 2), "(s0+1)//2".parse().unwrap());
        assert_eq!(permuted("op", &shape("2 s0 4"), &[2, 0, 1]).unwrap(), shape("4 2 s0"));
        assert!(permuted("op", &shape("2 3"), &[0, 0]).is_err());
    }
}
