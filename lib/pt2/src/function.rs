//! What the functions of symbolic expressions mean: sympy's constructors, torch's own, and those of infix text.

use m2m_tensor::Expr;
use m2m_tensor::expr::{self as build, Cmp};

/// Builds a call. `None` when the function, or its number of operands, has no counterpart.
pub(crate) fn call(name: &str, mut operands: Vec<Expr>) -> Option<Expr> {
    match (name, operands.len()) {
        ("Integer" | "Identity", 1) => operands.pop(),
        ("Add", 1..) => Some(build::add(operands)),
        ("Mul", 1..) => Some(build::mul(operands)),
        ("Max" | "max", 1..) => Some(build::max(operands)),
        ("Min" | "min", 1..) => Some(build::min(operands)),
        ("And", 1..) => Some(build::and(operands)),
        ("Or", 1..) => Some(build::or(operands)),
        (_, 1) => unary(name, operands.pop()?),
        (_, 2) => {
            let b = operands.pop()?;
            binary(name, operands.pop()?, b)
        }
        (_, 3) => {
            let (c, b, a) = (operands.pop()?, operands.pop()?, operands.pop()?);
            ternary(name, a, b, c)
        }
        _ => None,
    }
}

fn unary(name: &str, a: Expr) -> Option<Expr> {
    Some(match name {
        "Not" => build::not(a),
        "CeilToInt" | "ceiling" | "math.ceil" => build::ceil(a),
        "FloorToInt" | "floor" | "math.floor" => build::floor(a),
        "TruncToInt" | "TruncToFloat" | "trunc" | "math.trunc" => build::trunc(a),
        "ToFloat" => build::mul([Expr::Float(1.0), a]),
        "Abs" | "abs" => build::max([a.clone(), negate(a)]),
        "OpaqueUnaryFn_sqrt" => build::pow(a, Expr::Float(0.5)),
        _ => return None,
    })
}

fn binary(name: &str, a: Expr, b: Expr) -> Option<Expr> {
    let comparison = match name {
        "Equality" | "Eq" => Some(Cmp::Eq),
        "Unequality" | "Ne" => Some(Cmp::Ne),
        "StrictLessThan" | "Lt" => Some(Cmp::Lt),
        "LessThan" | "Le" => Some(Cmp::Le),
        "StrictGreaterThan" | "Gt" => Some(Cmp::Gt),
        "GreaterThan" | "Ge" => Some(Cmp::Ge),
        _ => None,
    };
    if let Some(op) = comparison {
        return Some(build::cmp(op, a, b));
    }
    Some(match name {
        "FloorDiv" | "CleanDiv" => build::floor_div(a, b),
        "CeilDiv" => negate(build::floor_div(negate(a), b)),
        "Mod" | "PythonMod" => build::modulo(a, b),
        "Pow" | "PowByNatural" | "FloatPow" => build::pow(a, b),
        "IntTrueDiv" | "FloatTrueDiv" | "Rational" => build::div(a, b),
        "LShift" => build::mul([a, build::pow(Expr::Int(2), b)]),
        "RShift" => build::floor_div(a, build::pow(Expr::Int(2), b)),
        _ => return None,
    })
}

fn ternary(name: &str, a: Expr, b: Expr, c: Expr) -> Option<Expr> {
    match name {
        "Where" => Some(build::select(a, b, c)),
        "ModularIndexing" => Some(build::modulo(build::floor_div(a, b), c)),
        _ => None,
    }
}

fn negate(a: Expr) -> Expr {
    build::mul([Expr::Int(-1), a])
}
