//! Reductions over some, all or no axes.

use super::{ALL, FLOATS, axes, axis, coin};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

/// Of all elements.
const WHOLE: &[&str] =
    &["sum", "mean", "prod", "max", "min", "all", "any", "nansum", "count_nonzero", "median", "std", "var"];

/// Over one axis: which, and whether it is kept.
const OVER_ONE: &[&str] =
    &["argmax.default", "argmin.default", "all.dim", "any.dim", "prod.dim_int", "max.dim", "min.dim", "median.dim"];

/// Over several axes: which, and whether they are kept.
const OVER_SOME: &[&str] = &[
    "sum.dim_IntList",
    "mean.dim",
    "amax.default",
    "amin.default",
    "nansum.default",
    "logsumexp.default",
    "count_nonzero.dim_IntList",
    "all.dims",
    "any.dims",
];

/// Reductions.
pub fn reduce(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(0, 5);
    let shape = draw.shape(rank);
    let (dtype, float) = (draw.dice.one(ALL), draw.dice.one(FLOATS));
    match draw.dice.between(0, 6) {
        0 => {
            let op = draw.dice.one(WHOLE);
            let dtype = if matches!(op, "mean" | "std" | "var") { float } else { dtype };
            let range = if matches!(op, "max" | "min" | "median") { Range::Distinct } else { Range::Plain };
            let x = draw.input(dtype, &shape, range);
            draw.call(&format!("aten.{op}.default"), vec![x.arg()]).map(drop)
        }
        1 => {
            let op = draw.dice.one(OVER_ONE);
            let x = draw.input(dtype, &shape, if op.starts_with("prod") { Range::Plain } else { Range::Distinct });
            let args = vec![x.arg(), Arg::Int(axis(draw, rank)), coin(draw)];
            draw.call(&format!("aten.{op}"), args).map(drop)
        }
        2 | 3 => {
            let op = draw.dice.one(OVER_SOME);
            let range = draw.dice.one(&[Range::Plain, Range::Special]);
            let range = if op.starts_with("sum") || op.starts_with("mean") { Range::Plain } else { range };
            let x = draw.input(dtype, &shape, range);
            let axes = Arg::ints(axes(draw, rank));
            let args = if op.starts_with("count") { vec![x.arg(), axes] } else { vec![x.arg(), axes, coin(draw)] };
            draw.call(&format!("aten.{op}"), args).map(drop)
        }
        4 => {
            let op = draw.dice.one(&["var.correction", "std.correction", "var_mean.correction", "std_mean.correction"]);
            let x = draw.input(float, &shape, Range::Plain);
            let correction = draw.dice.one(&[Arg::Null, Arg::Int(0), Arg::Int(1), Arg::from(0.5)]);
            let args = vec![x.arg(), Arg::ints(axes(draw, rank)), correction, coin(draw)];
            draw.call(&format!("aten.{op}"), args).map(drop)
        }
        _ => {
            let x = draw.input(float, &shape, Range::Plain);
            let order = draw.dice.one(&[0.0, 1.0, 2.0, 3.0, 0.5, -1.0, f64::INFINITY, f64::NEG_INFINITY]);
            let wide = if float == DType::F32 && draw.dice.once_in(3) { Arg::DType(DType::F64) } else { Arg::Null };
            let args = vec![x.arg(), Arg::from(order), Arg::ints(axes(draw, rank)), coin(draw), wide];
            draw.call("aten.linalg_vector_norm.default", args).map(drop)
        }
    }
}
