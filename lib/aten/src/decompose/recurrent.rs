//! Recurrent layers, unrolled over a static number of steps.
//!
//! Each layer and direction has weights `w_ih [G·H, I]`, `w_hh [G·H, H]` and, with biases, `b_ih`, `b_hh [G·H]`; the
//! input is `[T, B, I]`. Equations: `torch.nn.LSTM`, `torch.nn.GRU`, `torch.nn.RNN`.

use super::{need_rank, random};
use crate::bind::Bound;
use crate::error::Error;
use crate::expand::{Expander, Results};
use crate::value::V;
use m2m_record::Arg;
use m2m_tensor::Expr;

/// Most steps that are unrolled.
const MAX_STEPS: i64 = 1024;

/// The kind of cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

/// The weights of one layer in one direction.
struct Weights<'a> {
    input: &'a V,
    hidden: &'a V,
    bias: Option<(&'a V, &'a V)>,
}

/// `lstm`: results the outputs, the last hidden states and the last cells.
pub(super) fn lstm(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    layers(e, b, Cell::Lstm)
}

/// `gru`, `rnn_tanh`, `rnn_relu`: results the outputs and the last hidden states.
pub(super) fn rnn(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let cell = match b.op() {
        "aten.gru.input" => Cell::Gru,
        "aten.rnn_relu.input" => Cell::Relu,
        _ => Cell::Tanh,
    };
    layers(e, b, cell)
}

/// `lstm_cell`, `gru_cell`, `rnn_tanh_cell`, `rnn_relu_cell`: one step of a layer.
pub(super) fn cell(e: &mut Expander<'_, '_>, b: &Bound<'_>) -> Results {
    let cell = match b.op() {
        "aten.lstm_cell.default" => Cell::Lstm,
        "aten.gru_cell.default" => Cell::Gru,
        "aten.rnn_relu_cell.default" => Cell::Relu,
        _ => Cell::Tanh,
    };
    let states = if cell == Cell::Lstm { e.tensors(b, "hx")? } else { vec![e.tensor(b, "hx")?] };
    let (x, input, hidden) = (e.tensor(b, "input")?, e.tensor(b, "w_ih")?, e.tensor(b, "w_hh")?);
    let bias = e.opt_tensor(b, "b_ih")?.zip(e.opt_tensor(b, "b_hh")?);
    [&x, &input, &hidden].into_iter().chain(&states).try_for_each(|v| need_rank(b.op(), v, 1))?;
    let weights = Weights { input: &input, hidden: &hidden, bias: bias.as_ref().map(|(i, h)| (i, h)) };
    let now = affine(e, &x, &input, weights.bias.map(|(b, _)| b))?;
    Ok(step(e, cell, &now, &states, &weights)?.into_iter().map(Some).collect())
}

fn layers(e: &mut Expander<'_, '_>, b: &Bound<'_>, cell: Cell) -> Results {
    let mut x = e.tensor(b, "input")?;
    let dropout = if b.bool("train")? { b.float("dropout")? } else { 0.0 };
    let states = if cell == Cell::Lstm { e.tensors(b, "hx")? } else { vec![e.tensor(b, "hx")?] };
    let params = e.tensors(b, "params")?;
    [&x].into_iter().chain(&states).try_for_each(|v| need_rank(b.op(), v, 3))?;
    params.iter().try_for_each(|v| need_rank(b.op(), v, 1))?;
    let (has_biases, directions) = (b.bool("has_biases")?, 1 + usize::from(b.bool("bidirectional")?));
    let count = usize::try_from(b.int("num_layers")?).unwrap_or(0);
    let per = if has_biases { 4 } else { 2 };
    if count.checked_mul(directions).and_then(|n| n.checked_mul(per)) != Some(params.len()) {
        let message = format!("{} weights for {count} layers of {per}; projections have no rule", params.len());
        return Err(Error::unsupported(message));
    }
    let batch_first = b.bool("batch_first")?;
    if batch_first {
        x = e.transpose(&x, 0, 1)?;
    }
    let mut lasts: Vec<Vec<V>> = vec![Vec::new(); states.len()];
    for layer in 0..count {
        let mut outputs = Vec::new();
        for direction in 0..directions {
            let at = layer * directions + direction;
            let [input, hidden, bias @ ..] = params.get(at * per..(at + 1) * per).unwrap_or(&[]) else {
                return Err(Error::shape(b.op(), "too few weights"));
            };
            let bias = if let [bi, bh] = bias { Some((bi, bh)) } else { None };
            let index = Expr::Int(i64::try_from(at).unwrap_or(0));
            let start = states.iter().map(|s| e.select(s, 0, &index)).collect::<Result<Vec<_>, _>>()?;
            let weights = Weights { input, hidden, bias };
            let (y, last) = run(e, cell, &x, start, &weights, direction == 1)?;
            outputs.push(y);
            lasts.iter_mut().zip(last).for_each(|(all, one)| all.push(one));
        }
        x = e.cat(&outputs, 2)?;
        // Dropout stands between layers, not behind the last.
        if dropout != 0.0 && layer + 1 < count {
            let mask = random::kept(e, &x.shape, dropout)?;
            x = random::scaled(e, &x, &mask, dropout)?;
        }
    }
    if batch_first {
        x = e.transpose(&x, 0, 1)?;
    }
    let mut out = vec![Some(x)];
    for all in lasts {
        let rows = all.iter().map(|v| e.unsqueeze(v, 0)).collect::<Result<Vec<_>, _>>()?;
        out.push(Some(e.cat(&rows, 0)?));
    }
    Ok(out)
}

/// One layer in one direction: the outputs `[T, B, H]`, and the states after the last step.
fn run(
    e: &mut Expander<'_, '_>,
    cell: Cell,
    x: &V,
    mut states: Vec<V>,
    w: &Weights<'_>,
    is_backward: bool,
) -> Result<(V, Vec<V>), Error> {
    let steps = match x.dim(0).as_int() {
        Some(n) if (1..=MAX_STEPS).contains(&n) => n,
        _ => {
            let message =
                format!("a recurrent layer over {} steps; expected a static number up to {MAX_STEPS}", x.dim(0));
            return Err(Error::unsupported(message));
        }
    };
    // The inputs' share of all gates at once.
    let gates = affine(e, x, w.input, w.bias.map(|(b, _)| b))?;
    let mut outputs = Vec::new();
    for k in 0..steps {
        let at = if is_backward { steps - 1 - k } else { k };
        let now = e.select(&gates, 0, &Expr::Int(at))?;
        states = step(e, cell, &now, &states, w)?;
        let row = states.first().map(|h| e.unsqueeze(h, 0)).transpose()?;
        outputs.extend(row);
    }
    if is_backward {
        outputs.reverse();
    }
    Ok((e.cat(&outputs, 0)?, states))
}

/// `x @ weightᵀ + bias`
fn affine(e: &mut Expander<'_, '_>, x: &V, weight: &V, bias: Option<&V>) -> Result<V, Error> {
    let mut shape: Vec<Expr> = x.shape.iter().take(x.from_end(1)?).cloned().collect();
    shape.push(weight.dim(0));
    let args = vec![x.arg(), weight.arg(), bias.map_or(Arg::Null, V::arg)];
    e.call1("aten.linear.default", args, &[], x.dtype, &shape)
}

/// Gate `k` of `count` along the last dimension.
fn gate(e: &mut Expander<'_, '_>, x: &V, k: i64, count: i64) -> Result<V, Error> {
    let last = x.from_end(1)?;
    let size = crate::infer::divide(&x.dim(last), &Expr::Int(count));
    let start = m2m_tensor::expr::mul([Expr::Int(k), size.clone()]);
    let end = m2m_tensor::expr::mul([Expr::Int(k + 1), size]);
    e.slice(x, last, &start, &end, 1)
}

/// One step from states `h` (and `c`) to the next; `now` is the inputs' share of the gates.
fn step(e: &mut Expander<'_, '_>, cell: Cell, now: &V, states: &[V], w: &Weights<'_>) -> Result<Vec<V>, Error> {
    let h = states.first().ok_or_else(|| Error::unsupported("a recurrent layer without a state"))?;
    let own = affine(e, h, w.hidden, w.bias.map(|(_, b)| b))?;
    match cell {
        Cell::Tanh | Cell::Relu => {
            let sum = e.add(now, &own)?;
            Ok(vec![e.unary(if cell == Cell::Tanh { "tanh" } else { "relu" }, &sum)?])
        }
        Cell::Gru => {
            let mut open = Vec::new();
            for k in 0..2 {
                let (a, b) = (gate(e, now, k, 3)?, gate(e, &own, k, 3)?);
                let sum = e.add(&a, &b)?;
                open.push(e.unary("sigmoid", &sum)?);
            }
            let [reset, update] = open.as_slice() else { return Err(Error::unsupported("two gates")) };
            let (a, b) = (gate(e, now, 2, 3)?, gate(e, &own, 2, 3)?);
            let b = e.mul(reset, &b)?;
            let sum = e.add(&a, &b)?;
            let new = e.unary("tanh", &sum)?;
            let gap = e.sub(h, &new)?;
            let kept = e.mul(update, &gap)?;
            Ok(vec![e.add(&new, &kept)?])
        }
        Cell::Lstm => {
            let c = states.get(1).ok_or_else(|| Error::unsupported("an LSTM without cells"))?;
            let sum = e.add(now, &own)?;
            let mut gates = Vec::new();
            for k in 0..4 {
                let g = gate(e, &sum, k, 4)?;
                gates.push(e.unary(if k == 2 { "tanh" } else { "sigmoid" }, &g)?);
            }
            let [input, forget, new, output] = gates.as_slice() else { return Err(Error::unsupported("four gates")) };
            let (kept, added) = (e.mul(forget, c)?, e.mul(input, new)?);
            let c = e.add(&kept, &added)?;
            let shown = e.unary("tanh", &c)?;
            Ok(vec![e.mul(output, &shown)?, c])
        }
    }
}
