//! Losses, with every reduction.

use super::{FLOATS, perhaps};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Losses.
pub fn loss(draw: &mut Draw<'_>) -> Drawn {
    let dtype = draw.dice.one(FLOATS);
    let rank = draw.dice.between(1, 4);
    let shape = draw.filled_shape(rank);
    let reduction = Arg::Int(draw.dice.between(0, 3));
    let (x, y) = (draw.input(dtype, &shape, Range::Unit), draw.input(dtype, &shape, Range::Unit));
    match draw.dice.between(0, 8) {
        0 => {
            let op = draw.dice.one(&["mse_loss", "l1_loss"]);
            draw.call(&format!("aten.{op}.default"), vec![x.arg(), y.arg(), reduction]).map(drop)
        }
        1 => {
            let op = draw.dice.one(&["smooth_l1_loss", "huber_loss"]);
            draw.call(&format!("aten.{op}.default"), vec![x.arg(), y.arg(), reduction, Arg::from(0.3)]).map(drop)
        }
        2 => {
            let weight = perhaps(draw, |draw| draw.input(dtype, &shape, Range::Positive).arg());
            let positive = perhaps(draw, |draw| draw.input(dtype, &shape[shape.len() - 1..], Range::Positive).arg());
            let args = vec![x.arg(), y.arg(), weight, positive, reduction];
            draw.call("aten.binary_cross_entropy_with_logits.default", args).map(drop)
        }
        3 => {
            let log = Arg::Bool(draw.dice.once_in(2));
            draw.call("aten.kl_div.default", vec![x.arg(), y.arg(), reduction, log]).map(drop)
        }
        4 => {
            let args = vec![x.arg(), y.arg(), Arg::Int(draw.dice.between(0, rank)), Arg::from(1e-8)];
            draw.call("aten.cosine_similarity.default", args).map(drop)
        }
        _ => {
            let classes = shape[usize::from(rank > 1)];
            let target: Vec<i64> = if rank == 1 { Vec::new() } else { [&shape[..1], &shape[2..]].concat() };
            let low = if draw.dice.once_in(3) { -1 } else { 0 };
            let target = draw.input(DType::I64, &target, Range::Between(low, classes));
            let weight = perhaps(draw, |draw| draw.input(dtype, &[classes], Range::Positive).arg());
            let mut args = vec![x.arg(), target.arg(), weight, reduction, Arg::Int(-1)];
            if draw.dice.once_in(3) {
                return draw.call("aten.nll_loss_nd.default", args).map(drop);
            }
            args.push(Arg::from(draw.dice.one(&[0.0, 0.1])));
            draw.call("aten.cross_entropy_loss.default", args).map(drop)
        }
    }
}
