//! Convolutions of one to three axes, transposed ones among them.

use super::{FLOATS, sizes};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Convolutions.
pub fn conv(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(1, 4);
    let is_transposed = draw.dice.once_in(3);
    // Of halves PyTorch rounds every sum of a transposed one, which is no reference where they cancel.
    let dtype = draw.dice.one(if is_transposed { &[DType::F32, DType::F64] } else { FLOATS });
    let groups = draw.dice.one(&[1, 1, 2, 3]);
    let [per_in, per_out] = [draw.dice.between(1, 4), draw.dice.between(1, 3)];
    let (stride, dilation) = (sizes(draw, rank, 1, 4), sizes(draw, rank, 1, 3));
    let padding = sizes(draw, rank, 0, 3);
    let output_padding = if is_transposed { sizes(draw, rank, 0, 2) } else { vec![0; rank as usize] };
    let kernel = sizes(draw, rank, 1, 4);
    let images = draw.dice.one(&[1, 2, 2, 3, 0]);
    let mut x = vec![images, groups * per_in];
    x.extend(sizes(draw, rank, 1, if rank == 3 { 5 } else { 8 }));
    let mut weight = if is_transposed { vec![groups * per_in, per_out] } else { vec![groups * per_out, per_in] };
    weight.extend(kernel);
    let (x, weight) = (draw.input(dtype, &x, Range::Plain), draw.input(dtype, &weight, Range::Plain));
    let bias = super::perhaps(draw, |draw| draw.input(dtype, &[groups * per_out], Range::Plain).arg());
    let args = vec![
        x.arg(),
        weight.arg(),
        bias,
        Arg::ints(stride),
        Arg::ints(padding),
        Arg::ints(dilation),
        Arg::Bool(is_transposed),
        Arg::ints(output_padding),
        Arg::Int(groups),
    ];
    draw.call("aten.convolution.default", args).map(drop)
}
