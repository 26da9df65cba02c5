//! Python's arithmetic over symbols, `sym.add` and kin, with Python's rules.

use crate::error::Error;
use crate::value::Value;

/// The value of a `sym.*` operator.
pub fn apply(op: &str, args: &[Value]) -> Result<Value, Error> {
    match (op, args) {
        ("sym.sum", [Value::List(items)]) => items.iter().try_fold(Value::Int(0), |sum, x| binary("sym.add", &sum, x)),
        ("sym.ite", [condition, a, b]) => Ok(if is_true(condition)? { a.clone() } else { b.clone() }),
        (_, [a]) => unary(op, a),
        (_, [a, b]) => binary(op, a, b),
        _ => Err(unknown(op, args)),
    }
}

/// Whether there is such an operator.
pub fn is_known(op: &str) -> bool {
    const KNOWN: &[&str] = &[
        "add", "and", "ceil", "eq", "float", "floor", "floordiv", "ge", "gt", "int", "ite", "le", "lshift", "lt",
        "max", "min", "mod", "mul", "ne", "neg", "not", "or", "pos", "pow", "rshift", "sqrt", "sub", "sum", "truediv",
        "trunc",
    ];
    op.strip_prefix("sym.").is_some_and(|name| KNOWN.contains(&name))
}

fn unknown(op: &str, args: &[Value]) -> Error {
    let args: Vec<String> = args.iter().map(Value::describe).collect();
    Error::value(format!("{op} of {}", args.join(", ")))
}

fn is_true(value: &Value) -> Result<bool, Error> {
    Ok(match value {
        Value::Bool(b) => *b,
        other => other.float()? != 0.0,
    })
}

fn unary(op: &str, a: &Value) -> Result<Value, Error> {
    let rounded = |x: f64| {
        if x.abs() < i64::MAX as f64 { Ok(Value::Int(x as i64)) } else { Err(Error::value(format!("{op} of {x}"))) }
    };
    match (op, a) {
        ("sym.pos", _) => Ok(a.clone()),
        ("sym.neg", Value::Float(x)) => Ok(Value::Float(-x)),
        ("sym.neg", _) => a.int()?.checked_neg().map(Value::Int).ok_or_else(|| overflow(op)),
        ("sym.not", _) => Ok(Value::Bool(!is_true(a)?)),
        ("sym.float", _) => a.float().map(Value::Float),
        ("sym.sqrt", _) => a.float().map(|x| Value::Float(x.sqrt())),
        ("sym.int" | "sym.trunc", Value::Float(x)) => rounded(x.trunc()),
        ("sym.floor", Value::Float(x)) => rounded(x.floor()),
        ("sym.ceil", Value::Float(x)) => rounded(x.ceil()),
        ("sym.int" | "sym.trunc" | "sym.floor" | "sym.ceil", _) => a.int().map(Value::Int),
        _ => Err(unknown(op, std::slice::from_ref(a))),
    }
}

/// Quotient rounded down; none for a zero divisor and on overflow.
fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Remainder with the divisor's sign.
fn modulo(a: i64, b: i64) -> Option<i64> {
    floor_div(a, b).map(|quotient| a.wrapping_sub(quotient.wrapping_mul(b)))
}

fn overflow(op: &str) -> Error {
    Error::value(format!("{op} leaves 64 bits"))
}

fn binary(op: &str, a: &Value, b: &Value) -> Result<Value, Error> {
    let is_float = matches!(a, Value::Float(_)) || matches!(b, Value::Float(_));
    match op {
        "sym.eq" => return Ok(Value::Bool(a.float()? == b.float()?)),
        "sym.ne" => return Ok(Value::Bool(a.float()? != b.float()?)),
        "sym.lt" => return Ok(Value::Bool(a.float()? < b.float()?)),
        "sym.le" => return Ok(Value::Bool(a.float()? <= b.float()?)),
        "sym.gt" => return Ok(Value::Bool(a.float()? > b.float()?)),
        "sym.ge" => return Ok(Value::Bool(a.float()? >= b.float()?)),
        "sym.truediv" if b.float()? == 0.0 => return Err(Error::value(format!("{op} by zero"))),
        "sym.truediv" => return Ok(Value::Float(a.float()? / b.float()?)),
        "sym.pow" if is_float || b.int()? < 0 => return Ok(Value::Float(a.float()?.powf(b.float()?))),
        _ => {}
    }
    if let (Value::Bool(x), Value::Bool(y)) = (a, b) {
        match op {
            "sym.and" => return Ok(Value::Bool(*x && *y)),
            "sym.or" => return Ok(Value::Bool(*x || *y)),
            _ => {}
        }
    }
    if is_float { floats(op, a.float()?, b.float()?) } else { integers(op, a.int()?, b.int()?) }
}

fn floats(op: &str, a: f64, b: f64) -> Result<Value, Error> {
    Ok(Value::Float(match op {
        "sym.add" => a + b,
        "sym.sub" => a - b,
        "sym.mul" => a * b,
        "sym.floordiv" => (a / b).floor(),
        "sym.mod" => a - b * (a / b).floor(),
        "sym.max" => a.max(b),
        "sym.min" => a.min(b),
        _ => return Err(unknown(op, &[Value::Float(a), Value::Float(b)])),
    }))
}

fn integers(op: &str, a: i64, b: i64) -> Result<Value, Error> {
    let shift = u32::try_from(b).ok();
    let result = match op {
        "sym.add" => a.checked_add(b),
        "sym.sub" => a.checked_sub(b),
        "sym.mul" => a.checked_mul(b),
        "sym.floordiv" => floor_div(a, b),
        "sym.mod" => modulo(a, b),
        "sym.max" => Some(a.max(b)),
        "sym.min" => Some(a.min(b)),
        "sym.and" => Some(a & b),
        "sym.or" => Some(a | b),
        "sym.pow" => shift.and_then(|b| a.checked_pow(b)),
        "sym.lshift" => shift.filter(|b| *b < 63).and_then(|b| a.checked_mul(1 << b)),
        "sym.rshift" => shift.map(|b| a >> b.min(63)),
        _ => return Err(unknown(op, &[Value::Int(a), Value::Int(b)])),
    };
    result.map(Value::Int).ok_or_else(|| Error::value(format!("{op} of {a} and {b} has no value in 64 bits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: &str, a: i64, b: i64) -> Option<i64> {
        apply(op, &[Value::Int(a), Value::Int(b)]).ok()?.int().ok()
    }

    #[test]
    fn division_rounds_down_as_in_python() {
        assert_eq!(int("sym.floordiv", -7, 2), Some(-4));
        assert_eq!(int("sym.mod", -7, 2), Some(1));
        assert_eq!(int("sym.floordiv", 7, 0), None);
        assert_eq!(int("sym.rshift", -8, 70), Some(-1));
        assert_eq!(int("sym.mul", i64::MAX, 2), None);
    }

    #[test]
    fn kinds_follow_the_operands() {
        assert!(matches!(apply("sym.truediv", &[Value::Int(1), Value::Int(2)]), Ok(Value::Float(0.5))));
        assert!(matches!(apply("sym.pow", &[Value::Int(2), Value::Int(-1)]), Ok(Value::Float(0.5))));
        assert!(matches!(apply("sym.trunc", &[Value::Float(-2.5)]), Ok(Value::Int(-2))));
        assert!(matches!(apply("sym.add", &[Value::Int(1), Value::Float(0.5)]), Ok(Value::Float(1.5))));
        assert!(matches!(apply("sym.not", &[Value::Bool(false)]), Ok(Value::Bool(true))));
    }

    #[test]
    fn every_known_operator_is_computed() {
        let list = Value::List(vec![Value::Int(2), Value::Int(3)]);
        assert!(matches!(apply("sym.sum", &[list]), Ok(Value::Int(5))));
        let (a, b) = (Value::Int(5), Value::Int(2));
        for op in [
            "add", "and", "eq", "floordiv", "ge", "gt", "le", "lshift", "lt", "max", "min", "mod", "mul", "ne", "or",
            "pow",
        ] {
            assert!(apply(&format!("sym.{op}"), &[a.clone(), b.clone()]).is_ok(), "{op}");
        }
        for op in ["ceil", "float", "floor", "int", "neg", "not", "pos", "sqrt", "trunc"] {
            assert!(apply(&format!("sym.{op}"), std::slice::from_ref(&a)).is_ok(), "{op}");
        }
    }
}
