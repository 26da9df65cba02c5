//! Operators on every element alone, with broadcasting and promotion.

use super::{ALL, FLOATS, INTS, broadcast, coin, perhaps};
use crate::dice::Range;
use crate::draw::{Draw, Drawn};
use m2m_record::{Arg, DType};

const UNARY: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_not",
    "ceil",
    "celu",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "elu",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "isfinite",
    "isinf",
    "isnan",
    "leaky_relu",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_sigmoid",
    "logical_not",
    "logit",
    "mish",
    "nan_to_num",
    "neg",
    "positive",
    "rad2deg",
    "reciprocal",
    "relu",
    "relu6",
    "round",
    "rsqrt",
    "selu",
    "sgn",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "softplus",
    "softshrink",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "zeros_like",
    "ones_like",
];

/// Operators of one tensor.
pub fn unary(draw: &mut Draw<'_>) -> Drawn {
    let (op, dtype, rank) = (draw.dice.one(UNARY), draw.dice.one(ALL), draw.dice.between(0, 4));
    let range = draw.dice.one(&[Range::Plain, Range::Special, Range::Positive, Range::Unit]);
    let shape = draw.shape(rank);
    let x = draw.input(dtype, &shape, range);
    let mut args = vec![x.arg()];
    if op == "gelu" {
        args.push(Arg::from(draw.dice.one(&["none", "tanh"])));
    }
    draw.call(&format!("aten.{op}.default"), args).map(drop)
}

/// Operators of two tensors of any types.
const PAIRS: &[&str] = &[
    "add.Tensor",
    "sub.Tensor",
    "mul.Tensor",
    "div.Tensor",
    "div.Tensor_mode",
    "floor_divide.default",
    "remainder.Tensor",
    "fmod.Tensor",
    "pow.Tensor_Tensor",
    "maximum.default",
    "minimum.default",
    "fmax.default",
    "fmin.default",
    "atan2.default",
    "copysign.Tensor",
    "hypot.default",
    "xlogy.Tensor",
    "logaddexp.default",
    "logaddexp2.default",
    "eq.Tensor",
    "ne.Tensor",
    "lt.Tensor",
    "le.Tensor",
    "gt.Tensor",
    "ge.Tensor",
    "logical_and.default",
    "logical_or.default",
    "logical_xor.default",
    "heaviside.default",
    "rsub.Tensor",
    "isclose.default",
];

/// Operators of two tensors of integers.
const WHOLE_PAIRS: &[&str] = &[
    "bitwise_and.Tensor",
    "bitwise_or.Tensor",
    "bitwise_xor.Tensor",
    "bitwise_left_shift.Tensor",
    "bitwise_right_shift.Tensor",
    "gcd.default",
    "lcm.default",
];

/// Operators of two tensors, whose shapes broadcast and whose types promote.
pub fn binary(draw: &mut Draw<'_>) -> Drawn {
    let is_whole = draw.dice.once_in(5);
    let op = draw.dice.one(if is_whole { WHOLE_PAIRS } else { PAIRS });
    let dtypes = if is_whole { INTS } else { ALL };
    let (a, b) = (draw.dice.one(dtypes), draw.dice.one(dtypes));
    let rank = draw.dice.between(0, 4);
    let shape = draw.shape(rank);
    let (left, right) = (broadcast(draw, &shape), broadcast(draw, &shape));
    let ranges = match op {
        "bitwise_left_shift.Tensor" | "bitwise_right_shift.Tensor" => [Range::Positive; 2],
        // The least integer has no quotient by -1.
        "div.Tensor_mode" | "floor_divide.default" | "remainder.Tensor" | "fmod.Tensor" => {
            let divisor = draw.dice.one(&[Range::Positive, Range::Plain]);
            [draw.dice.one(&[Range::Plain, Range::Between(-50, 50)]), divisor]
        }
        "gcd.default" | "lcm.default" => [Range::Plain; 2],
        _ => [draw.dice.one(&[Range::Plain, Range::Special]), draw.dice.one(&[Range::Plain, Range::Special])],
    };
    let (x, y) = (draw.input(a, &left, ranges[0]), draw.input(b, &right, ranges[1]));
    let mut args = vec![x.arg(), y.arg()];
    match op {
        "add.Tensor" | "sub.Tensor" | "rsub.Tensor" => args.push(Arg::Int(draw.dice.between(-2, 3))),
        "div.Tensor_mode" => args.push(Arg::from(draw.dice.one(&["floor", "trunc"]))),
        _ => {}
    }
    draw.call(&format!("aten.{op}"), args).map(drop)
}

const SCALAR: &[&str] = &[
    "add.Scalar",
    "sub.Scalar",
    "mul.Scalar",
    "div.Scalar",
    "div.Scalar_mode",
    "floor_divide.Scalar",
    "remainder.Scalar",
    "remainder.Scalar_Tensor",
    "fmod.Scalar",
    "pow.Tensor_Scalar",
    "pow.Scalar",
    "eq.Scalar",
    "ne.Scalar",
    "lt.Scalar",
    "le.Scalar",
    "gt.Scalar",
    "ge.Scalar",
    "rsub.Scalar",
    "bitwise_and.Scalar",
    "bitwise_or.Scalar",
    "bitwise_xor.Scalar",
    "clamp.default",
    "clamp_min.default",
    "clamp_max.default",
    "threshold.default",
    "fill.Scalar",
    "copysign.Scalar",
    "xlogy.Scalar_Self",
    "xlogy.Scalar_Other",
];

/// A number, whole or not.
fn number(draw: &mut Draw<'_>) -> Arg {
    match draw.dice.between(0, 3) {
        0 => Arg::Int(draw.dice.between(-4, 5)),
        1 => Arg::from(draw.dice.one(&[0.5, -1.0, 2.0, 0.0, 3.25, -0.75])),
        _ => Arg::Int(draw.dice.one(&[2, 3, 1, 7])),
    }
}

/// Operators of a tensor and numbers.
pub fn scalar(draw: &mut Draw<'_>) -> Drawn {
    let (op, dtype, rank) = (draw.dice.one(SCALAR), draw.dice.one(ALL), draw.dice.between(0, 4));
    let shape = draw.shape(rank);
    let is_division = op.contains("div") || op.contains("remainder") || op.contains("fmod");
    let range =
        if is_division { Range::Plain } else { draw.dice.one(&[Range::Plain, Range::Special, Range::Positive]) };
    let x = draw.input(dtype, &shape, range);
    let n = number(draw);
    let args = match op {
        "remainder.Scalar_Tensor" | "pow.Scalar" | "xlogy.Scalar_Self" => vec![n, x.arg()],
        "clamp.default" => vec![x.arg(), perhaps(draw, number), n],
        "threshold.default" => vec![x.arg(), n, number(draw)],
        "add.Scalar" | "sub.Scalar" | "rsub.Scalar" => vec![x.arg(), n, Arg::Int(draw.dice.between(-2, 3))],
        "div.Scalar_mode" => vec![x.arg(), n, Arg::from(draw.dice.one(&["floor", "trunc"]))],
        _ => vec![x.arg(), n],
    };
    draw.call(&format!("aten.{op}"), args).map(drop)
}

/// Operators of three tensors.
pub fn select(draw: &mut Draw<'_>) -> Drawn {
    let rank = draw.dice.between(0, 4);
    let shape = draw.shape(rank);
    let shapes = [broadcast(draw, &shape), broadcast(draw, &shape), broadcast(draw, &shape)];
    let (a, b, f) = (draw.dice.one(ALL), draw.dice.one(ALL), draw.dice.one(FLOATS));
    let range = draw.dice.one(&[Range::Plain, Range::Special]);
    let args = match draw.dice.between(0, 9) {
        0 | 1 => {
            let condition = draw.input(DType::Bool, &shapes[0], range);
            let (x, y) = (draw.input(a, &shapes[1], range), draw.input(b, &shapes[2], range));
            ("where.self", vec![condition.arg(), x.arg(), y.arg()])
        }
        2 => {
            let condition = draw.input(DType::Bool, &shapes[0], range);
            let x = draw.input(a, &shapes[1], range);
            ("where.ScalarOther", vec![condition.arg(), x.arg(), number(draw)])
        }
        3 => {
            let (x, mask) = (draw.input(a, &shapes[1], range), draw.input(DType::Bool, &shapes[0], range));
            ("masked_fill.Scalar", vec![x.arg(), mask.arg(), number(draw)])
        }
        4 => {
            let x = draw.input(a, &shape, range);
            let (low, high) = (draw.input(a, &shapes[1], range), draw.input(b, &shapes[2], range));
            ("clamp.Tensor", vec![x.arg(), perhaps(draw, |_| low.arg()), high.arg()])
        }
        5 => {
            let [x, y, weight] = shapes.each_ref().map(|shape| draw.input(f, shape, Range::Plain));
            ("lerp.Tensor", vec![x.arg(), y.arg(), weight.arg()])
        }
        6 => {
            let [x, y] = [&shape, &shapes[1]].map(|shape| draw.input(f, shape, Range::Plain));
            ("lerp.Scalar", vec![x.arg(), y.arg(), Arg::from(draw.dice.unit() * 2.0)])
        }
        7 => {
            let [x, y, z] = shapes.each_ref().map(|shape| draw.input(a, shape, Range::Plain));
            ("addcmul.default", vec![x.arg(), y.arg(), z.arg(), Arg::Int(draw.dice.between(-2, 3))])
        }
        _ => {
            let [x, y, z] = shapes.each_ref().map(|shape| draw.input(f, shape, Range::Positive));
            ("addcdiv.default", vec![x.arg(), y.arg(), z.arg(), Arg::from(draw.dice.unit())])
        }
    };
    draw.call(&format!("aten.{}", args.0), args.1).map(drop)
}

/// Conversions, to types that hold the numbers: what others give is undefined.
pub fn cast(draw: &mut Draw<'_>) -> Drawn {
    let (from, to, rank) = (draw.dice.one(ALL), draw.dice.one(ALL), draw.dice.between(0, 4));
    let shape = draw.shape(rank);
    let range = match (from.is_float(), to.is_float()) {
        (_, true) => Range::Special,
        (false, _) => Range::Plain,
        _ if to == DType::Bool => Range::Special,
        _ => Range::Positive,
    };
    let x = draw.input(from, &shape, range);
    match draw.dice.between(0, 3) {
        0 => {
            let args = vec![x.arg(), Arg::DType(to), coin(draw), coin(draw)];
            draw.call("aten.to.dtype", args).map(drop)
        }
        1 => {
            let other = draw.input(to, &[2], Range::Plain);
            draw.call("aten.type_as.default", vec![x.arg(), other.arg()]).map(drop)
        }
        _ => draw.call("aten._to_copy.default", vec![x.arg(), Arg::DType(to)]).map(drop),
    }
}
