//! Pooling by windows, and to given sizes.

use super::{FLOATS, coin, sizes};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::Arg;

/// Pooling.
pub fn pool(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(1, 4);
    let dtype = draw.dice.one(FLOATS);
    let mut shape = draw.dice.one(&[vec![2, 3], vec![1, 2], vec![3], vec![0, 2]]);
    shape.extend(sizes(draw, rank, 1, if rank == 3 { 5 } else { 9 }));
    let x = draw.input(dtype, &shape, Range::Distinct);
    let kernel = Arg::ints(sizes(draw, rank, 1, 4));
    let stride = if draw.dice.once_in(3) { Vec::new() } else { sizes(draw, rank, 1, 4) };
    let (stride, padding) = (Arg::ints(stride), Arg::ints(sizes(draw, rank, 0, 2)));
    match draw.dice.between(0, 5) {
        0 | 1 => {
            let dilation = Arg::ints(sizes(draw, rank, 1, 3));
            let args = vec![x.arg(), kernel, stride, padding, dilation, coin(draw)];
            draw.call(&format!("aten.max_pool{rank}d_with_indices.default"), args).map(drop)
        }
        2 | 3 => {
            let mut args = vec![x.arg(), kernel, stride, padding, coin(draw), coin(draw)];
            if rank > 1 {
                args.push(draw.dice.one(&[Arg::Null, Arg::Int(3), Arg::Int(-2)]));
            }
            draw.call(&format!("aten.avg_pool{rank}d.default"), args).map(drop)
        }
        _ => {
            let kind = draw.dice.one(&["avg", "max"]);
            let out = Arg::ints(sizes(draw, rank, 1, 5));
            draw.call(&format!("aten.adaptive_{kind}_pool{rank}d.default"), vec![x.arg(), out]).map(drop)
        }
    }
}
