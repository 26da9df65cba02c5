//! Chains of views, each of the one before, ended by arithmetic or a copy.

use super::{ALL, axes, axis};
use crate::dice::Range;
use crate::draw::{Draw, Drawn, Illegal, Tensor};
use m2m_record::Arg;

/// Some views in a row.
pub fn view(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(0, 5);
    let (shape, dtype) = (draw.shape(rank), draw.dice.one(ALL));
    let mut x = draw.input(dtype, &shape, Range::Plain);
    for _ in 0..draw.dice.between(1, 4) {
        x = one(draw, &x)?;
    }
    if draw.dice.once_in(2) { draw.call("aten.mul.Tensor", vec![x.arg(), x.arg()]).map(drop) } else { Ok(()) }
}

/// The sizes of another shape with as many elements.
fn regrouped(draw: &mut Draw<'_>, shape: &[i64]) -> Vec<i64> {
    let mut sizes = Vec::new();
    let mut open = 1;
    for size in shape {
        open *= size;
        if draw.dice.once_in(2) {
            sizes.push(std::mem::replace(&mut open, 1));
        }
    }
    sizes.push(open);
    if draw.dice.once_in(3) && !sizes.contains(&0) {
        let at = draw.dice.between(0, sizes.len() as i64) as usize;
        sizes[at] = -1;
    }
    sizes
}

fn one(draw: &mut Draw<'_>, x: &Tensor) -> Result<Tensor, Illegal> {
    let rank = x.rank();
    let dim = Arg::Int(axis(draw, rank));
    let other = Arg::Int(axis(draw, rank));
    let (op, rest) = match draw.dice.between(0, 15) {
        0 => ("permute.default", vec![Arg::ints(draw.dice.shuffled((0..rank).collect()))]),
        1 => ("transpose.int", vec![dim, other]),
        2 | 3 => ("reshape.default", vec![Arg::ints(regrouped(draw, &x.shape))]),
        4 => ("unsqueeze.default", vec![Arg::Int(axis(draw, rank + 1))]),
        5 => ("squeeze.dim", vec![dim]),
        6 => ("squeeze.dims", vec![Arg::ints(axes(draw, rank))]),
        7 | 8 => {
            let bounds = [draw.dice.between(-4, 5), draw.dice.between(-4, 8)].map(Arg::Int);
            let [start, end] = bounds;
            let end = if draw.dice.once_in(4) { Arg::Int(i64::MAX) } else { end };
            let start = if draw.dice.once_in(4) { Arg::Null } else { start };
            ("slice.Tensor", vec![dim, start, end, Arg::Int(draw.dice.between(1, 4))])
        }
        9 => ("select.int", vec![dim, Arg::Int(draw.dice.between(-2, 2))]),
        10 => {
            let mut shape: Vec<i64> = x.shape.iter().map(|size| if *size == 1 { 3 } else { *size }).collect();
            if draw.dice.once_in(3) {
                shape.insert(0, 2);
            }
            ("expand.default", vec![Arg::ints(shape)])
        }
        11 => ("flip.default", vec![Arg::ints(axes(draw, rank))]),
        12 => ("diagonal.default", vec![Arg::Int(draw.dice.between(-2, 3)), dim, other]),
        13 => ("unfold.default", vec![dim, Arg::Int(draw.dice.between(0, 4)), Arg::Int(draw.dice.between(1, 3))]),
        _ => ("movedim.int", vec![dim, other]),
    };
    draw.call(&format!("aten.{op}"), std::iter::once(x.arg()).chain(rest).collect())
}
