//! Einstein summation: products of tensors whose dimensions are named by letters.

use super::split::cast_all;
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results, one};
use crate::value::V;
use m2m_record::Arg;
use m2m_tensor::{Expr, expr};

/// A dimension's name: a letter, or a place in the dots counted from the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(char),
    Dots(usize),
}

/// A tensor whose dimensions have names.
#[derive(Clone)]
struct Term {
    labels: Vec<Label>,
    value: V,
}

/// `einsum(equation, tensors)`: operands are multiplied from the left; each dimension that neither a later operand nor
/// the result names is summed over as soon as it can be. Source: `torch.einsum`.
pub(super) fn einsum(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let equation: String = b.str("equation")?.chars().filter(|c| !c.is_whitespace()).collect();
    let values = cast_all(e, e.tensors(b, "tensors")?)?;
    let (left, right) = equation.split_once("->").map_or((equation.as_str(), None), |(l, r)| (l, Some(r)));
    let parts: Vec<&str> = left.split(',').collect();
    if parts.len() != values.len() {
        return Err(Error::shape(b.op(), format!("{} operands for {:?}", values.len(), left)));
    }
    let (mut terms, mut written) = (Vec::new(), Vec::new());
    for (part, value) in parts.iter().zip(values) {
        let labels = labels(part, Some(value.rank()), 0).ok_or_else(|| bad(part, &value))?;
        written.extend(labels.iter().copied());
        terms.push(diagonals(e, Term { labels, value })?);
    }
    let dots =
        terms.iter().flat_map(|t| &t.labels).filter_map(|l| if let Label::Dots(k) = l { Some(k + 1) } else { None });
    let dots = dots.max().unwrap_or(0);
    let out = match right {
        Some(text) => labels(text, None, dots).ok_or_else(|| Error::shape(b.op(), format!("result {text:?}")))?,
        None => implicit(&written, dots),
    };
    broadcast(e, &mut terms)?;
    let mut rest = terms.into_iter();
    let mut acc = rest.next().ok_or_else(|| Error::shape(b.op(), "no operands"))?;
    while let Some(next) = rest.next() {
        let later: Vec<Label> = out.iter().chain(rest.as_slice().iter().flat_map(|t| &t.labels)).copied().collect();
        acc = multiply(e, acc, next, &later)?;
    }
    let acc = sum_out(e, acc, &|l| out.contains(l))?;
    let dims: Option<Vec<usize>> = out.iter().map(|l| acc.labels.iter().position(|m| m == l)).collect();
    let dims = dims.ok_or_else(|| Error::shape(b.op(), "the result names a dimension that no operand has"))?;
    one(e.permute(&acc.value, &dims)?)
}

/// Dimensions of one name become their diagonal.
fn diagonals(e: &mut Expander<'_, '_>, mut term: Term) -> Result<Term, Error> {
    let repeated = |labels: &[Label]| {
        let pairs = labels.iter().enumerate().map(|(k, l)| (k, labels.iter().skip(k + 1).position(|m| m == l)));
        pairs.into_iter().find_map(|(k, at)| at.map(|at| (k, k + 1 + at)))
    };
    while let Some((first, second)) = repeated(&term.labels) {
        let mut shape = term.value.shape.clone();
        let size = shape.remove(second);
        shape.remove(first);
        shape.push(size);
        let args = vec![term.value.arg(), Arg::Int(0), Arg::Int(first as i64), Arg::Int(second as i64)];
        term.value = e.call1("aten.diagonal.default", args, &[], term.value.dtype, &shape)?;
        let label = term.labels.remove(second);
        term.labels.remove(first);
        term.labels.push(label);
    }
    Ok(term)
}

fn bad(part: &str, value: &V) -> Error {
    Error::shape("aten.einsum.default", format!("{part:?} for an operand of rank {}", value.rank()))
}

/// The labels of one part; dots stand for what letters leave of `rank`, or for `dots` dimensions.
fn labels(part: &str, rank: Option<usize>, dots: usize) -> Option<Vec<Label>> {
    let letters = |text: &str| {
        let all_letters = text.chars().all(|c| c.is_ascii_alphabetic());
        all_letters.then(|| text.chars().map(Label::Letter).collect::<Vec<_>>())
    };
    let out = match part.split_once("...") {
        None => letters(part)?,
        Some((before, after)) => {
            let (before, after) = (letters(before)?, letters(after)?);
            let count = rank.map_or(Some(dots), |r| r.checked_sub(before.len() + after.len()))?;
            let middle = (0..count).rev().map(Label::Dots);
            before.into_iter().chain(middle).chain(after).collect()
        }
    };
    (rank.is_none() || rank == Some(out.len())).then_some(out)
}

/// Dots first, then letters that occur once, in alphabetical order.
fn implicit(all: &[Label], dots: usize) -> Vec<Label> {
    let mut letters: Vec<char> =
        all.iter().filter_map(|l| if let Label::Letter(c) = l { Some(*c) } else { None }).collect();
    letters.sort_unstable();
    let once = |c: &char| letters.iter().filter(|d| *d == c).count() == 1;
    let single: Vec<Label> = letters.iter().filter(|c| once(c)).map(|c| Label::Letter(*c)).collect();
    (0..dots).rev().map(Label::Dots).chain(single).collect()
}

/// Stretches dimensions of size 1 to the size that others of the same name have. Of two sizes that symbols do not show to be
/// equal the known one counts, and the program checks the other.
fn broadcast(e: &mut Expander<'_, '_>, terms: &mut [Term]) -> Result<(), Error> {
    let sizes: Vec<(Label, Expr)> =
        terms.iter().flat_map(|t| t.labels.iter().copied().zip(t.value.shape.iter().cloned())).collect();
    let size_of = |label: &Label| {
        let all = sizes.iter().filter(|(l, _)| l == label).map(|(_, s)| s);
        let known = |s: &Expr| s.as_int().is_some_and(|n| n != 1);
        all.fold(Expr::Int(1), |found, s| if *s == Expr::Int(1) || known(&found) { found } else { s.clone() })
    };
    for term in terms {
        let shape: Vec<Expr> = term.labels.iter().map(size_of).collect();
        let value = e.of_sizes(&term.value, &shape)?;
        term.value = e.expand_to(&value, &shape)?;
    }
    Ok(())
}

/// Sums over the dimensions that are not to be kept.
fn sum_out(e: &mut Expander<'_, '_>, term: Term, keep: &dyn Fn(&Label) -> bool) -> Result<Term, Error> {
    let dims: Vec<usize> = (0..term.labels.len()).filter(|k| term.labels.get(*k).is_some_and(|l| !keep(l))).collect();
    if dims.is_empty() {
        return Ok(term);
    }
    let value = e.sum(&term.value, &dims, false)?;
    Ok(Term { labels: term.labels.into_iter().filter(|l| keep(l)).collect(), value })
}

/// One product: shared dimensions that are still needed are a batch, the other shared ones are summed over.
fn multiply(e: &mut Expander<'_, '_>, a: Term, b: Term, later: &[Label]) -> Result<Term, Error> {
    let (of_a, of_b) = (a.labels.clone(), b.labels.clone());
    let a = sum_out(e, a, &|l| of_b.contains(l) || later.contains(l))?;
    let b = sum_out(e, b, &|l| of_a.contains(l) || later.contains(l))?;
    let is_shared = |l: &&Label| a.labels.contains(l) && b.labels.contains(l);
    let batch: Vec<Label> = a.labels.iter().filter(is_shared).filter(|l| later.contains(l)).copied().collect();
    let inner: Vec<Label> = a.labels.iter().filter(is_shared).filter(|l| !later.contains(l)).copied().collect();
    let rows: Vec<Label> = a.labels.iter().filter(|l| !b.labels.contains(l)).copied().collect();
    let cols: Vec<Label> = b.labels.iter().filter(|l| !a.labels.contains(l)).copied().collect();
    let x = arrange(e, &a, &[&batch, &rows, &inner])?;
    let y = arrange(e, &b, &[&batch, &inner, &cols])?;
    let z = e.bmm(&x, &y)?;
    let size = |l: &Label| {
        let of = |t: &Term| t.labels.iter().position(|m| m == l).map(|k| t.value.dim(k));
        of(&a).or_else(|| of(&b)).unwrap_or(Expr::Int(1))
    };
    let labels: Vec<Label> = batch.into_iter().chain(rows).chain(cols).collect();
    let shape: Vec<Expr> = labels.iter().map(size).collect();
    Ok(Term { value: e.view(&z, &shape)?, labels })
}

/// The dimensions in three groups, each of them one dimension.
fn arrange(e: &mut Expander<'_, '_>, term: &Term, groups: &[&[Label]; 3]) -> Result<V, Error> {
    let place = |l: &Label| term.labels.iter().position(|m| m == l);
    let dims: Option<Vec<usize>> = groups.iter().flat_map(|g| g.iter()).map(place).collect();
    let dims = dims.ok_or_else(|| Error::shape("aten.einsum.default", "a dimension is lost"))?;
    let x = e.permute(&term.value, &dims)?;
    let size = |g: &&[Label]| expr::mul(g.iter().filter_map(place).map(|k| term.value.dim(k)));
    let shape: Vec<Expr> = groups.iter().map(size).collect();
    e.view(&x, &shape)
}
