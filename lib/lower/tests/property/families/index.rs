//! Reading and writing at places that a tensor names.

use super::{ALL, axis, coin, perhaps};
use crate::dice::Range;
use crate::draw::{Draw, Drawn, Tensor};
use m2m_record::{Arg, DType};

/// Places in an axis of so many, from the end too where that is allowed.
fn places(draw: &mut Draw<'_>, shape: &[i64], size: i64, low: i64) -> Tensor {
    draw.input(DType::I64, shape, Range::Between(low, size.max(1)))
}

fn size_of(shape: &[i64], axis: i64) -> i64 {
    let at = if axis < 0 { axis + shape.len() as i64 } else { axis };
    shape.get(at as usize).copied().unwrap_or(1)
}

/// Reads.
pub fn gather(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(1, 5);
    let (shape, dtype) = (draw.filled_shape(rank), draw.dice.one(ALL));
    let x = draw.input(dtype, &shape, Range::Plain);
    let dim = axis(draw, rank);
    let size = size_of(&shape, dim);
    match draw.dice.between(0, 7) {
        0 => {
            let inner: Vec<i64> = shape.iter().map(|size| draw.dice.between(0, size + 1)).collect();
            let index = places(draw, &inner, size, 0);
            draw.call("aten.gather.default", vec![x.arg(), Arg::Int(dim), index.arg()]).map(drop)
        }
        1 => {
            let count = draw.dice.between(0, 6);
            let index = places(draw, &[count], size, 0);
            draw.call("aten.index_select.default", vec![x.arg(), Arg::Int(dim), index.arg()]).map(drop)
        }
        2 | 3 => {
            let common = draw.shape(2);
            let mut indices = Vec::new();
            for size in &shape {
                let skipped = draw.dice.between(0, 3) as usize;
                let is_given = draw.dice.once_in(2);
                let index = |draw: &mut Draw<'_>| places(draw, &common[skipped.min(2)..], *size, -size).arg();
                indices.push(if is_given { index(draw) } else { Arg::Null });
            }
            draw.call("aten.index.Tensor", vec![x.arg(), Arg::List(indices)]).map(drop)
        }
        4 => {
            let rows = draw.dice.between(1, 6);
            let inner = draw.dice.between(0, 3);
            let inner = draw.shape(inner);
            let weight = draw.input(DType::F32, &[rows, 3], Range::Plain);
            let index = places(draw, &inner, rows, 0);
            draw.call("aten.embedding.default", vec![weight.arg(), index.arg()]).map(drop)
        }
        5 => {
            let inner = draw.shape(2);
            let count: i64 = shape.iter().product();
            let index = places(draw, &inner, count, -count);
            draw.call("aten.take.default", vec![x.arg(), index.arg()]).map(drop)
        }
        _ => {
            let mut inner = shape.clone();
            let at = if dim < 0 { dim + rank } else { dim } as usize;
            inner[at] = draw.dice.between(0, 5);
            let index = places(draw, &inner, size, 0);
            let args = vec![x.arg(), index.arg(), perhaps(draw, |_| Arg::Int(dim))];
            draw.call("aten.take_along_dim.default", args).map(drop)
        }
    }
}

/// Places of which none is named twice along an axis.
fn distinct(draw: &mut Draw<'_>, size: i64, count: i64) -> Tensor {
    let places: Vec<i64> = draw.dice.shuffled((0..size).collect()).into_iter().take(count as usize).collect();
    draw.given(&[count], &places)
}

/// Writes.
pub fn scatter(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(1, 4);
    let (shape, dtype) = (draw.filled_shape(rank), draw.dice.one(ALL));
    let x = draw.input(dtype, &shape, Range::Plain);
    let dim = axis(draw, rank);
    let at = if dim < 0 { dim + rank } else { dim } as usize;
    let size = size_of(&shape, dim);
    let inner: Vec<i64> = shape.iter().map(|size| draw.dice.between(0, size + 1)).collect();
    let mut line = shape.clone();
    line[at] = draw.dice.between(0, size + 1);
    match draw.dice.between(0, 9) {
        0 => {
            let (index, source) = (places(draw, &inner, size, 0), draw.input(dtype, &inner, Range::Plain));
            draw.call("aten.scatter_add.default", vec![x.arg(), Arg::Int(dim), index.arg(), source.arg()]).map(drop)
        }
        1 | 2 => {
            let (index, source) = (places(draw, &inner, size, 0), draw.input(dtype, &inner, Range::Plain));
            let how = Arg::from(draw.dice.one(&["sum", "prod", "amax", "amin", "mean"]));
            let args = vec![x.arg(), Arg::Int(dim), index.arg(), source.arg(), how, coin(draw)];
            draw.call("aten.scatter_reduce.two", args).map(drop)
        }
        3 => {
            let index = places(draw, &inner, size, 0);
            let args = vec![x.arg(), Arg::Int(dim), index.arg(), Arg::Int(draw.dice.between(0, 3))];
            draw.call("aten.scatter.value", args).map(drop)
        }
        4 => {
            // Of a place that is named twice, either value may stay: a line of places, the same in every other axis.
            let index = distinct(draw, size, line[at]);
            let mut lone = vec![1; rank as usize];
            lone[at] = line[at];
            let index = draw.call("aten.view.default", vec![index.arg(), Arg::ints(lone)])?;
            let index = draw.call("aten.expand.default", vec![index.arg(), Arg::ints(line.clone())])?;
            let source = draw.input(dtype, &line, Range::Plain);
            draw.call("aten.scatter.src", vec![x.arg(), Arg::Int(dim), index.arg(), source.arg()]).map(drop)
        }
        5 => {
            let (index, source) = (places(draw, &[line[at]], size, 0), draw.input(dtype, &line, Range::Plain));
            draw.call("aten.index_add.default", vec![x.arg(), Arg::Int(dim), index.arg(), source.arg()]).map(drop)
        }
        6 => {
            let (index, source) = (distinct(draw, size, line[at]), draw.input(dtype, &line, Range::Plain));
            draw.call("aten.index_copy.default", vec![x.arg(), Arg::Int(dim), index.arg(), source.arg()]).map(drop)
        }
        7 => {
            let index = distinct(draw, size, line[at]);
            let mut indices = vec![Arg::Null; at];
            indices.push(index.arg());
            let source = draw.input(dtype, &line, Range::Plain);
            let args = vec![x.arg(), Arg::List(indices), source.arg(), coin(draw)];
            draw.call("aten.index_put.default", args).map(drop)
        }
        _ => {
            let mask = draw.input(DType::Bool, &shape, Range::Plain);
            let source = draw.input(dtype, &shape, Range::Plain);
            draw.call("aten.masked_scatter.default", vec![x.arg(), mask.arg(), source.arg()]).map(drop)
        }
    }
}
