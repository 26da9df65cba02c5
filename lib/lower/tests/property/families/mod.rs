//! The families, and what they draw in common: dtypes, axes, shapes that broadcast.

mod attention;
mod conv;
mod elementwise;
mod index;
mod join;
mod loss;
mod matmul;
mod norm;
mod packed;
mod pad;
mod pool;
mod quant;
mod reduce;
mod sort;
mod view;

use crate::draw::{Draw, Drawn, Tensor};
use m2m_record::{Arg, DType};

/// Operators that have arguments of one kind.
pub struct Family {
    /// Its name, which a test has.
    pub name: &'static str,
    /// Draws a case.
    pub draw: fn(&mut Draw<'_>) -> Drawn,
}

/// All of them.
pub const FAMILIES: &[Family] = &[
    Family { name: "attention", draw: attention::attention },
    Family { name: "binary", draw: elementwise::binary },
    Family { name: "cast", draw: elementwise::cast },
    Family { name: "conv", draw: conv::conv },
    Family { name: "gather", draw: index::gather },
    Family { name: "join", draw: join::join },
    Family { name: "loss", draw: loss::loss },
    Family { name: "matmul", draw: matmul::matmul },
    Family { name: "norm", draw: norm::norm },
    Family { name: "packed", draw: packed::packed },
    Family { name: "pad", draw: pad::pad },
    Family { name: "pool", draw: pool::pool },
    Family { name: "quant", draw: quant::quant },
    Family { name: "reduce", draw: reduce::reduce },
    Family { name: "scalar", draw: elementwise::scalar },
    Family { name: "scan", draw: sort::scan },
    Family { name: "scatter", draw: index::scatter },
    Family { name: "select", draw: elementwise::select },
    Family { name: "sort", draw: sort::sort },
    Family { name: "split", draw: join::split },
    Family { name: "unary", draw: elementwise::unary },
    Family { name: "upsample", draw: pad::upsample },
    Family { name: "view", draw: view::view },
];

/// Float types, f32 most often.
pub const FLOATS: &[DType] = &[DType::F32, DType::F32, DType::F32, DType::F64, DType::BF16, DType::F16];

/// Integer types.
pub const INTS: &[DType] = &[DType::I64, DType::I64, DType::I32, DType::I16, DType::I8, DType::U8];

/// Types of any kind.
pub const ALL: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::F64,
    DType::BF16,
    DType::F16,
    DType::I64,
    DType::I32,
    DType::I8,
    DType::U8,
    DType::Bool,
];

/// Tensors as an argument.
pub fn list(tensors: &[Tensor]) -> Arg {
    Arg::List(tensors.iter().map(Tensor::arg).collect())
}

/// An axis of a rank, counted from the end half of the time.
pub fn axis(draw: &mut Draw<'_>, rank: i64) -> i64 {
    let count = rank.max(1);
    draw.dice.between(-count, count)
}

/// Some axes of a rank, no two alike.
pub fn axes(draw: &mut Draw<'_>, rank: i64) -> Vec<i64> {
    let all = draw.dice.shuffled((0..rank).collect());
    let count = draw.dice.between(0, rank + 1) as usize;
    let wrap = |axis: i64| if draw.dice.once_in(2) { axis - rank } else { axis };
    all.into_iter().take(count).map(wrap).collect()
}

/// A shape that broadcasts with another.
pub fn broadcast(draw: &mut Draw<'_>, shape: &[i64]) -> Vec<i64> {
    let skipped = if draw.dice.once_in(3) { draw.dice.between(0, shape.len() as i64 + 1) as usize } else { 0 };
    shape[skipped..].iter().map(|size| if draw.dice.once_in(4) { 1 } else { *size }).collect()
}

/// A bool by the toss of a coin, as an argument.
pub fn coin(draw: &mut Draw<'_>) -> Arg {
    Arg::Bool(draw.dice.once_in(2))
}

/// A number of so many small ones, as an argument.
pub fn sizes(draw: &mut Draw<'_>, count: i64, low: i64, high: i64) -> Vec<i64> {
    (0..count).map(|_| draw.dice.between(low, high)).collect()
}

/// An optional argument: `None` half of the time.
pub fn perhaps(draw: &mut Draw<'_>, make: impl FnOnce(&mut Draw<'_>) -> Arg) -> Arg {
    if draw.dice.once_in(2) { Arg::Null } else { make(draw) }
}
