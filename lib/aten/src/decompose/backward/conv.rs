//! The gradients of a convolution, which are convolutions themselves.

use super::norm::{as_result, wants};
use crate::bind::Bound;
use crate::decompose::exact;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::infer::{divide, numel};
use crate::value::V;
use m2m_record::Arg;
use m2m_tensor::{Expr, expr};

/// The numbers of the forward call, one for each spatial dimension.
struct Window {
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
}

impl Window {
    fn read(b: &Bound<'_>, spatial: usize) -> Result<Self, Error> {
        let spread = |name: &str| -> Result<Vec<i64>, Error> {
            let v = b.ints(name)?;
            match v.as_slice() {
                [n] => Ok(vec![*n; spatial]),
                _ if v.len() == spatial => Ok(v),
                _ => Err(Error::shape(b.op(), format!("{name} has {} numbers for {spatial} dimensions", v.len()))),
            }
        };
        let groups = b.int("groups")?;
        Ok(Window { stride: spread("stride")?, padding: spread("padding")?, dilation: spread("dilation")?, groups })
    }
}

/// `x` without what is beyond `sizes` in its spatial dimensions.
fn cut(e: &mut Expander<'_, '_>, x: V, sizes: &[Expr]) -> Result<V, Error> {
    let mut y = x;
    for (k, size) in sizes.iter().enumerate() {
        y = e.slice(&y, k + 2, &Expr::Int(0), size, 1)?;
    }
    Ok(y)
}

/// `convolution(x, w)` whose result has the leading sizes `lead`; without a bias.
fn convolve(
    e: &mut Expander<'_, '_>,
    (x, w): (&V, &V),
    lead: [Expr; 2],
    window: &Window,
    transposed: Option<&[i64]>,
) -> Result<V, Error> {
    let op = "aten.convolution.default";
    let mut shape = lead.to_vec();
    for (k, ((s, p), d)) in window.stride.iter().zip(&window.padding).zip(&window.dilation).enumerate() {
        let reach = expr::add([expr::mul([Expr::Int(*d), expr::sub(w.dim(k + 2), Expr::Int(1))]), Expr::Int(1)]);
        let border = Expr::Int(exact(op, p.checked_mul(2))?);
        shape.push(match transposed {
            Some(more) => {
                let steps = expr::mul([expr::sub(x.dim(k + 2), Expr::Int(1)), Expr::Int(*s)]);
                let more = Expr::Int(more.get(k).copied().unwrap_or(0));
                expr::add([expr::sub(steps, border), reach, more])
            }
            None => {
                let room = expr::sub(expr::add([x.dim(k + 2), border]), reach);
                expr::add([expr::floor_div(room, Expr::Int(*s)), Expr::Int(1)])
            }
        });
    }
    let more = transposed.map_or_else(|| vec![0; window.stride.len()], <[i64]>::to_vec);
    let args = vec![
        x.arg(),
        w.arg(),
        Arg::Null,
        Arg::ints(window.stride.iter().copied()),
        Arg::ints(window.padding.iter().copied()),
        Arg::ints(window.dilation.iter().copied()),
        Arg::Bool(transposed.is_some()),
        Arg::ints(more),
        Arg::Int(window.groups),
    ];
    e.call1(op, args, &[], x.dtype, &shape)
}

/// By the input of a plain convolution: the transposed one of `g`, as long as the input. That ends anywhere in the last
/// stride, so that one as long as can be is cut.
fn of_input(e: &mut Expander<'_, '_>, (g, w, x): (&V, &V, &V), window: &Window) -> Result<V, Error> {
    let more: Vec<i64> = window.stride.iter().map(|s| s.saturating_sub(1)).collect();
    let y = convolve(e, (g, w), [x.dim(0), x.dim(1)], window, Some(&more))?;
    cut(e, y, x.shape.get(2..).unwrap_or_default())
}

/// By the weight `[F, C/groups, *kernel]` of `out[n, f, o] = Σ w[f, c, k]·x[n, c, o·stride + k·dilation - padding]`:
/// `Σ_{n, o} g[n, f, o]·x[n, c, o·stride + k·dilation - padding]`, a convolution in which samples are channels, and in
/// which stride and dilation change places.
fn of_weight(e: &mut Expander<'_, '_>, (g, w, x): (&V, &V, &V), window: &Window) -> Result<V, Error> {
    let groups = Expr::Int(window.groups);
    let (n, own) = (x.dim(0), divide(&x.dim(1), &groups));
    let space = x.shape.get(2..).unwrap_or_default().to_vec();
    let mut split = vec![n.clone(), groups.clone(), own.clone()];
    split.extend(space.iter().cloned());
    let x = e.view(x, &split)?;
    let dims: Vec<usize> = [2, 1, 0].into_iter().chain(3..split.len()).collect();
    let x = e.permute(&x, &dims)?;
    let mut joined = vec![own.clone(), expr::mul([groups, n])];
    joined.extend(space);
    let x = e.view(&x, &joined)?;
    let g = e.transpose(g, 0, 1)?;
    let turned = Window {
        stride: window.dilation.clone(),
        padding: window.padding.clone(),
        dilation: window.stride.clone(),
        groups: window.groups,
    };
    let y = convolve(e, (&x, &g), [own, g.dim(0)], &turned, None)?;
    let y = cut(e, y, w.shape.get(2..).unwrap_or_default())?;
    e.transpose(&y, 0, 1)
}

/// `convolution_backward(g, input, weight, …, output_mask)`: by input, weight and bias. Of a transposed convolution,
/// whose weight is `[C, F/groups, *kernel]`, input and gradient change places.
pub(crate) fn convolution(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let (g, x, w) = (e.tensor(b, "grad_output")?, e.tensor(b, "input")?, e.tensor(b, "weight")?);
    let window = Window::read(b, w.rank().saturating_sub(2))?;
    if g.rank() != w.rank() || x.rank() != w.rank() {
        return Err(Error::shape(
            b.op(),
            format!("ranks {}, {} and {}; expected equal ones", g.rank(), x.rank(), w.rank()),
        ));
    }
    let is_transposed = b.bool("transposed")?;
    let is_empty = numel(&g.shape) == Expr::Int(0) || numel(&x.shape) == Expr::Int(0);
    let mut out = Vec::new();
    for k in 0..3 {
        if !wants(b, k) {
            out.push(None);
            continue;
        }
        let y = match (k, is_transposed) {
            (2, _) => {
                let wide = e.widen(&g)?;
                let dims: Vec<usize> = (0..g.rank()).filter(|d| *d != 1).collect();
                e.sum(&wide, &dims, false)?
            }
            _ if is_empty => {
                let (dtype, shape) = e.result(b, k)?;
                e.full(&shape, dtype, Arg::Int(0))?
            }
            (0, false) => of_input(e, (&g, &w, &x), &window)?,
            (0, true) => {
                let y = convolve(e, (&g, &w), [x.dim(0), x.dim(1)], &window, None)?;
                cut(e, y, x.shape.get(2..).unwrap_or_default())?
            }
            (_, false) => of_weight(e, (&g, &w, &x), &window)?,
            (_, true) => of_weight(e, (&x, &w, &g), &window)?,
        };
        out.push(as_result(e, b, k, &y)?);
    }
    Ok(out)
}
