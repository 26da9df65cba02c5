//! Padding and resampling.

use super::{ALL, FLOATS, coin, sizes};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::Arg;

/// Padding by a number, by reflection, by repetition and around.
pub fn pad(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(1, 5);
    let dtype = draw.dice.one(ALL);
    if draw.dice.once_in(2) {
        let shape = draw.shape(rank);
        let x = draw.input(dtype, &shape, Range::Plain);
        let axes = draw.dice.between(0, rank + 1);
        let pads = Arg::ints(sizes(draw, 2 * axes, -1, 4));
        let args = vec![x.arg(), pads, Arg::Int(draw.dice.between(0, 3))];
        return draw.call("aten.constant_pad_nd.default", args).map(drop);
    }
    let axes = draw.dice.between(1, 4);
    let mut shape = draw.dice.one(&[vec![2, 3], vec![1, 2], vec![3]]);
    shape.extend(sizes(draw, axes, 2, 6));
    let dtype = draw.dice.one(FLOATS);
    let x = draw.input(dtype, &shape, Range::Plain);
    let pads = sizes(draw, 2 * axes, 0, 3);
    let mode = draw.dice.one(&["reflect", "replicate", "circular"]);
    draw.call("aten.pad.default", vec![x.arg(), Arg::ints(pads), Arg::from(mode)]).map(drop)
}

/// Resampling to a size or by a factor.
pub fn upsample(draw: &mut Draw<'_>) -> Drawn {
    let dtype = draw.dice.one(FLOATS);
    let rank = draw.dice.between(1, 4);
    let mut shape = vec![draw.dice.between(1, 3), draw.dice.between(1, 4)];
    shape.extend(sizes(draw, rank, 1, 6));
    let x = draw.input(dtype, &shape, Range::Plain);
    let is_smooth = draw.dice.once_in(2);
    let kind = match (is_smooth, rank) {
        (false, _) => draw.dice.one(&["upsample_nearest", "_upsample_nearest_exact"]),
        (true, 1) => "upsample_linear",
        (true, 2) => draw.dice.one(&["upsample_bilinear", "upsample_bicubic"]),
        (true, _) => "upsample_trilinear",
    };
    let (size, factors) = if draw.dice.once_in(2) {
        (Arg::ints(sizes(draw, rank, 1, 8)), Arg::Null)
    } else {
        let factors = (0..rank).map(|_| Arg::from(draw.dice.one(&[0.5, 1.0, 1.5, 2.0, 2.7])));
        (Arg::Null, Arg::List(factors.collect()))
    };
    let args = if is_smooth { vec![x.arg(), size, coin(draw), factors] } else { vec![x.arg(), size, factors] };
    draw.call(&format!("aten.{kind}{rank}d.vec"), args).map(drop)
}
