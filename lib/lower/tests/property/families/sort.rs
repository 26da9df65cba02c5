//! Order: sorting, the first of it, places in it, and scans.

use super::{ALL, FLOATS, INTS, axis, coin, perhaps};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Sorting. Equal elements have an order only where it is stable.
pub fn sort(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(0, 4);
    let (shape, dtype, dim) = (draw.shape(rank), draw.dice.one(ALL), axis(draw, rank));
    let is_any = dtype != DType::Bool;
    match draw.dice.between(0, 6) {
        0 | 1 => {
            let x = draw.input(dtype, &shape, Range::Plain);
            let op = draw.dice.one(&["sort.stable", "argsort.stable"]);
            let args = vec![x.arg(), Arg::Bool(true), Arg::Int(dim), coin(draw)];
            draw.call(&format!("aten.{op}"), args).map(drop)
        }
        2 if is_any => {
            let x = draw.input(dtype, &shape, Range::Distinct);
            let args = vec![x.arg(), Arg::Int(dim), coin(draw)];
            draw.call("aten.sort.default", args).map(drop)
        }
        3 if is_any => {
            let x = draw.input(dtype, &shape, Range::Distinct);
            let count = draw.dice.between(0, 5);
            // Without order only which elements they are is defined.
            let args = vec![x.arg(), Arg::Int(count), Arg::Int(dim), coin(draw), Arg::Bool(true)];
            draw.call("aten.topk.default", args).map(drop)
        }
        4 if is_any => {
            let x = draw.input(dtype, &shape, Range::Distinct);
            let args = vec![x.arg(), Arg::Int(draw.dice.between(1, 4)), Arg::Int(dim), coin(draw)];
            draw.call("aten.kthvalue.default", args).map(drop)
        }
        _ => {
            let dtype = draw.dice.one(&[DType::F32, DType::I64, DType::F64]);
            let count = draw.dice.between(0, 6);
            let edges = draw.input(dtype, &[count], Range::Plain);
            let edges = draw.call("aten.sort.default", vec![edges.arg()])?;
            let x = draw.input(dtype, &shape, Range::Plain);
            let args = vec![x.arg(), edges.arg(), coin(draw), coin(draw)];
            draw.call("aten.bucketize.Tensor", args).map(drop)
        }
    }
}

/// Scans along an axis.
pub fn scan(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(0, 4);
    let (shape, dim) = (draw.shape(rank), axis(draw, rank));
    let op = draw.dice.one(&["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]);
    let dtype = match op {
        "logcumsumexp" => draw.dice.one(FLOATS),
        _ if draw.dice.once_in(2) => draw.dice.one(INTS),
        _ => draw.dice.one(ALL),
    };
    let range = if op.starts_with("cumm") { draw.dice.one(&[Range::Plain, Range::Special]) } else { Range::Plain };
    let x = draw.input(dtype, &shape, range);
    let mut args = vec![x.arg(), Arg::Int(dim)];
    if matches!(op, "cumsum" | "cumprod") {
        args.push(perhaps(draw, |draw| Arg::DType(draw.dice.one(&[DType::F64, DType::F32, DType::I64]))));
    }
    draw.call(&format!("aten.{op}.default"), args).map(drop)
}
