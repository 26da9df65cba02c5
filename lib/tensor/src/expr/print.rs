//! The canonical text.

use super::Expr;
use std::fmt;

/// How tightly an operation binds; a looser operand of a tighter operation gets brackets.
fn precedence(e: &Expr) -> u8 {
    match e {
        Expr::Or(_) => 1,
        Expr::And(_) => 2,
        Expr::Not(_) => 3,
        Expr::Cmp(..) => 4,
        Expr::Add(_) => 5,
        Expr::Mul(_) | Expr::Div(..) | Expr::FloorDiv(..) | Expr::Mod(..) => 6,
        Expr::Int(n) if *n < 0 => 7,
        Expr::Float(x) if *x < 0.0 => 7,
        Expr::Pow(..) => 8,
        _ => 9,
    }
}

fn at_least(f: &mut fmt::Formatter<'_>, e: &Expr, level: u8) -> fmt::Result {
    if precedence(e) < level { write!(f, "({e})") } else { write!(f, "{e}") }
}

fn joined(f: &mut fmt::Formatter<'_>, items: &[Expr], word: &str, level: u8) -> fmt::Result {
    for (k, item) in items.iter().enumerate() {
        if k > 0 {
            f.write_str(word)?;
        }
        at_least(f, item, level)?;
    }
    Ok(())
}

fn call(f: &mut fmt::Formatter<'_>, name: &str, items: &[&Expr]) -> fmt::Result {
    write!(f, "{name}(")?;
    for (k, item) in items.iter().enumerate() {
        if k > 0 {
            f.write_str(",")?;
        }
        write!(f, "{item}")?;
    }
    f.write_str(")")
}

fn sum(f: &mut fmt::Formatter<'_>, terms: &[Expr]) -> fmt::Result {
    for (k, term) in terms.iter().enumerate() {
        let text = term.to_string();
        if k > 0 && !text.starts_with('-') {
            f.write_str("+")?;
        }
        if precedence(term) < 6 { write!(f, "({text})")? } else { f.write_str(&text)? }
    }
    Ok(())
}

fn product(f: &mut fmt::Formatter<'_>, factors: &[Expr]) -> fmt::Result {
    let factors = match factors {
        [Expr::Int(-1), rest @ ..] if !rest.is_empty() => {
            f.write_str("-")?;
            rest
        }
        all => all,
    };
    joined(f, factors, "*", 7)
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Int(n) => write!(f, "{n}"),
            Expr::Float(x) => write!(f, "{x:?}"),
            Expr::Bool(b) => write!(f, "{b}"),
            Expr::Sym(name) => f.write_str(name),
            Expr::Add(terms) => sum(f, terms),
            Expr::Mul(factors) => product(f, factors),
            Expr::Pow(a, b) => {
                at_least(f, a, 9)?;
                f.write_str("**")?;
                at_least(f, b, 9)
            }
            Expr::Div(a, b) => binary(f, a, "/", b),
            Expr::FloorDiv(a, b) => binary(f, a, "//", b),
            Expr::Mod(a, b) => binary(f, a, "%", b),
            Expr::Max(v) => call(f, "max", &v.iter().collect::<Vec<_>>()),
            Expr::Min(v) => call(f, "min", &v.iter().collect::<Vec<_>>()),
            Expr::Ceil(a) => call(f, "ceil", &[a]),
            Expr::Floor(a) => call(f, "floor", &[a]),
            Expr::Trunc(a) => call(f, "trunc", &[a]),
            Expr::Where(c, a, b) => call(f, "where", &[c, a, b]),
            Expr::Cmp(op, a, b) => {
                at_least(f, a, 5)?;
                f.write_str(op.sign())?;
                at_least(f, b, 5)
            }
            Expr::And(v) => joined(f, v, " and ", 3),
            Expr::Or(v) => joined(f, v, " or ", 2),
            Expr::Not(a) => {
                f.write_str("not ")?;
                at_least(f, a, 4)
            }
        }
    }
}

fn binary(f: &mut fmt::Formatter<'_>, a: &Expr, sign: &str, b: &Expr) -> fmt::Result {
    // `-1//s` in a sum would read as minus `1//s`.
    at_least(f, a, 8)?;
    f.write_str(sign)?;
    at_least(f, b, 7)
}
