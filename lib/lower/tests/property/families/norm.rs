//! Normalizations and softmax.

use super::{FLOATS, axis, coin, perhaps};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Normalizations.
pub fn norm(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(2, 5);
    let mut shape = draw.shape(rank);
    let dtype = draw.dice.one(FLOATS);
    let eps = Arg::from(draw.dice.one(&[1e-5, 1e-2]));
    match draw.dice.between(0, 6) {
        0 => {
            let (op, rank) = (draw.dice.one(&["softmax.int", "log_softmax.int", "_safe_softmax.default"]), rank - 2);
            let shape = draw.shape(rank);
            let x = {
                let range = draw.dice.one(&[Range::Plain, Range::Between(-20, 20)]);
                draw.input(dtype, &shape, range)
            };
            let wide = if draw.dice.once_in(4) { Arg::DType(DType::F32) } else { Arg::Null };
            let args = vec![x.arg(), Arg::Int(axis(draw, rank)), wide];
            draw.call(&format!("aten.{op}"), args).map(drop)
        }
        1 | 2 => {
            let op = draw.dice.one(&["rms_norm", "layer_norm", "native_layer_norm"]);
            let inner = shape[draw.dice.between(0, rank) as usize..].to_vec();
            let x = draw.input(dtype, &shape, Range::Plain);
            let weight = perhaps(draw, |draw| draw.input(dtype, &inner, Range::Positive).arg());
            let bias = perhaps(draw, |draw| draw.input(dtype, &inner, Range::Plain).arg());
            let sizes = Arg::ints(inner);
            let scaling = if op == "rms_norm" { vec![weight] } else { vec![weight, bias] };
            let args = [x.arg(), sizes].into_iter().chain(scaling).chain([eps]).collect();
            draw.call(&format!("aten.{op}.default"), args).map(drop)
        }
        3 => {
            let groups = draw.dice.between(1, 4);
            shape[1] = groups * draw.dice.between(1, 4);
            let channels = [shape[1]];
            let x = draw.input(dtype, &shape, Range::Plain);
            let weight = perhaps(draw, |draw| draw.input(dtype, &channels, Range::Positive).arg());
            let bias = perhaps(draw, |draw| draw.input(dtype, &channels, Range::Plain).arg());
            draw.call("aten.group_norm.default", vec![x.arg(), Arg::Int(groups), weight, bias, eps]).map(drop)
        }
        _ => {
            let channels = [shape[1]];
            let x = draw.input(dtype, &shape, Range::Plain);
            let weight = perhaps(draw, |draw| draw.input(dtype, &channels, Range::Positive).arg());
            let bias = perhaps(draw, |draw| draw.input(dtype, &channels, Range::Plain).arg());
            let mean = draw.input(dtype, &channels, Range::Plain).arg();
            let var = draw.input(dtype, &channels, Range::Positive).arg();
            let momentum = Arg::from(0.1);
            if draw.dice.once_in(2) {
                let args = vec![x.arg(), weight, bias, mean, var, momentum, eps];
                return draw.call("aten._native_batch_norm_legit_no_training.default", args).map(drop);
            }
            let args = vec![x.arg(), weight, bias, Arg::Null, Arg::Null, coin(draw), momentum, eps, Arg::Bool(false)];
            draw.call("aten.instance_norm.default", args).map(drop)
        }
    }
}
