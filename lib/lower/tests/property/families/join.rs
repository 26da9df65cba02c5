//! Tensors out of several, several out of one, and one repeated or cut to a triangle.

use super::{ALL, axis, list, sizes};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, Return};

/// One out of several, or out of itself.
pub fn join(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(0, 4);
    let (shape, dtype) = (draw.shape(rank), draw.dice.one(ALL));
    let dim = axis(draw, rank);
    match draw.dice.between(0, 8) {
        0 | 1 => {
            let at = if dim < 0 { dim + rank } else { dim } as usize;
            let mut parts = Vec::new();
            for _ in 0..draw.dice.between(1, 4) {
                let (mut shape, mut kind) = (shape.clone(), dtype);
                if let Some(size) = shape.get_mut(at) {
                    *size = draw.dice.between(0, 4);
                }
                if draw.dice.once_in(4) {
                    kind = draw.dice.one(ALL);
                }
                parts.push(draw.input(kind, &shape, Range::Plain));
            }
            draw.call("aten.cat.default", vec![list(&parts), Arg::Int(dim)]).map(drop)
        }
        2 => {
            let parts: Vec<_> = (0..draw.dice.between(1, 4)).map(|_| draw.input(dtype, &shape, Range::Plain)).collect();
            let args = vec![list(&parts), Arg::Int(axis(draw, rank + 1))];
            draw.call("aten.stack.default", args).map(drop)
        }
        3 => {
            let x = draw.input(dtype, &shape, Range::Plain);
            let more = draw.dice.between(0, 2);
            let op = draw.dice.one(&["repeat", "tile"]);
            let args = vec![x.arg(), Arg::ints(sizes(draw, rank + more, 0, 4))];
            draw.call(&format!("aten.{op}.default"), args).map(drop)
        }
        4 => {
            let x = draw.input(dtype, &shape, Range::Plain);
            let count = draw.dice.between(0, rank + 1);
            let axes = (0..count).collect::<Vec<i64>>();
            let args = vec![x.arg(), Arg::ints(sizes(draw, count.max(1), -5, 6)), Arg::ints(axes)];
            draw.call("aten.roll.default", args).map(drop)
        }
        5 => {
            let x = draw.input(dtype, &shape, Range::Plain);
            let op = draw.dice.one(&["tril", "triu"]);
            let args = vec![x.arg(), Arg::Int(draw.dice.between(-3, 4))];
            draw.call(&format!("aten.{op}.default"), args).map(drop)
        }
        6 => {
            let x = draw.input(dtype, &shape, Range::Plain);
            let (count, other) = (Arg::Int(draw.dice.between(-3, 5)), (dim + 1).rem_euclid(rank.max(1)));
            draw.call("aten.rot90.default", vec![x.arg(), count, Arg::ints([dim, other])]).map(drop)
        }
        _ => {
            let x = draw.input(dtype, &shape, Range::Plain);
            let args = vec![x.arg(), Arg::Int(draw.dice.between(0, 4)), Arg::Int(dim)];
            draw.call("aten.repeat_interleave.self_int", args).map(drop)
        }
    }
}

/// Several out of one.
pub fn split(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(1, 4);
    let (shape, dtype) = (draw.filled_shape(rank), draw.dice.one(ALL));
    let x = draw.input(dtype, &shape, Range::Plain);
    let dim = axis(draw, rank);
    let size = shape[(if dim < 0 { dim + rank } else { dim }) as usize];
    let (op, how, count) = match draw.dice.between(0, 5) {
        0 => {
            let each = draw.dice.between(1, 4);
            ("split.Tensor", vec![Arg::Int(each)], (size + each - 1) / each)
        }
        1 => {
            let first = draw.dice.between(0, size + 1);
            ("split_with_sizes.default", vec![Arg::ints([first, size - first])], 2)
        }
        2 => {
            let wanted = draw.dice.between(1, 4);
            let each = (size + wanted - 1) / wanted;
            ("chunk.default", vec![Arg::Int(wanted)], (size + each - 1) / each)
        }
        3 => {
            let sections = draw.dice.between(1, 4);
            ("tensor_split.sections", vec![Arg::Int(sections)], sections)
        }
        _ => ("unbind.int", Vec::new(), size),
    };
    let args = std::iter::once(x.arg()).chain(how).chain([Arg::Int(dim)]).collect();
    draw.call_many(&format!("aten.{op}"), args, vec![Return::List(count as u32)]).map(drop)
}
