//! Gradients of losses that ask for a margin between classes, by the scores `x [N, C]`.

use crate::bind::Bound;
use crate::decompose::identity::number;
use crate::decompose::margin::{Labels, labels, only_where, rows};
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::infer::numel;
use crate::value::{O, V, size_arg};
use m2m_record::{Arg, DType};
use m2m_tensor::{Expr, expr};

/// The scores, the targets as rows of indices, and the gradient of each row's loss `[N, 1]`, over the number of classes
/// and of rows where that is its share.
fn read(e: &mut Expander<'_, '_>, b: &Bound<'_>, targets: &[Expr]) -> Result<(V, V, V), Error> {
    let (g, x, t) = (e.tensor(b, "grad_output")?, e.tensor(b, "self")?, e.tensor(b, "target")?);
    let (g, x, t) = (e.widen(&g)?, e.widen(&x)?, e.to_dtype(&t, DType::I64)?);
    let x = rows(e, &x)?;
    let count = if targets.is_empty() { Expr::Int(1) } else { x.dim(1) };
    let t = e.view(&t, &[x.dim(0), count])?;
    let mut divisor = x.dim(1);
    if b.int("reduction")? == 1 {
        divisor = expr::mul([divisor, x.dim(0)]);
    }
    let g = e.div(&g, O::N(size_arg(&divisor)))?;
    let g = if g.rank() == 0 { g } else { e.view(&g, &[numel(&g.shape), Expr::Int(1)])? };
    Ok((x, t, g))
}

/// Ends with the shape of the input.
fn shaped(e: &mut Expander<'_, '_>, b: &Bound<'_>, y: &V) -> Results {
    let (_, shape) = e.result(b, 0)?;
    let y = e.view(y, &shape)?;
    super::finish(e, b, &y)
}

/// `multi_margin_loss_backward`: with `z[c] = margin - x[t] + x[c]`, `w[t]·g/C` of each other class whose `z` is
/// positive, for the power 2 times `2·z`; of the target less the sum of those.
pub(crate) fn multi(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t, mut g) = read(e, b, &[])?;
    let own = e.call1("aten.gather.default", vec![x.arg(), Arg::Int(1), t.arg()], &[], x.dtype, &t.shape)?;
    let z = e.sub(&x, &own)?;
    let z = e.add(&z, number(b, "margin")?)?;
    if let Some(w) = e.opt_tensor(b, "weight")? {
        let w = e.widen(&w)?;
        let flat = e.view(&t, &[x.dim(0)])?;
        let w = e.index_select(&w, 0, &flat)?;
        let w = e.unsqueeze(&w, 1)?;
        g = e.mul(&g, &w)?;
    }
    let y = if number(b, "p")? == 2.0 {
        let twice = e.mul(&z, 2.0)?;
        e.mul(&twice, &g)?
    } else {
        e.expand_to(&g, &x.shape)?
    };
    let class = e.iota(&x.dim(1), DType::I64)?;
    let (is_near, is_other) = (e.compare("gt", &z, 0i64)?, e.compare("ne", &class, &t)?);
    let counts = e.binary_default("logical_and", &is_near, &is_other)?;
    let y = only_where(e, &counts, &y)?;
    let total = e.sum(&y, &[1], true)?;
    let total = e.unary("neg", &total)?;
    let y = e.select_where(&is_other, &y, &total)?;
    shaped(e, b, &y)
}

/// `multilabel_margin_loss_backward`: for each label `j` of a row and each class `c` that is none, where
/// `1 - x[t[j]] + x[c]` is positive, `g/C` to the class and from the label.
pub(crate) fn multilabel(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (x, t, g) = read(e, b, &[Expr::Int(1)])?;
    let Labels { is_label, at, own } = labels(e, &x, &t)?;
    let is_target = e.tensor(b, "is_target")?;
    let is_target = e.view(&is_target, &[x.dim(0), Expr::Int(1), x.dim(1)])?;
    let is_rest = e.compare("eq", &is_target, 0i64)?;
    let (own, is_label) = (e.unsqueeze(&own, 2)?, e.unsqueeze(&is_label, 2)?);
    let wide = e.unsqueeze(&x, 1)?;
    let z = e.sub(&wide, &own)?;
    let z = e.add(&z, 1.0)?;
    let is_near = e.compare("gt", &z, 0i64)?;
    let counts = e.binary_default("logical_and", &is_label, &is_rest)?;
    let counts = e.binary_default("logical_and", &counts, &is_near)?;
    let counts = e.to_dtype(&counts, x.dtype)?;
    let (of_class, of_label) = (e.sum(&counts, &[1], false)?, e.sum(&counts, &[2], false)?);
    let less = e.unary("neg", &of_label)?;
    let args = vec![of_class.arg(), Arg::Int(1), at.arg(), less.arg()];
    let y = e.call1("aten.scatter_add.default", args, &[], x.dtype, &x.shape)?;
    let y = e.mul(&y, &g)?;
    shaped(e, b, &y)
}
