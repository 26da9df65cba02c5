//! Canonical text, folding and Python's arithmetic of expressions.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use m2m_tensor::Expr;
use proptest::prelude::*;

fn canonical(text: &str) -> String {
    text.parse::<Expr>().unwrap().to_string()
}

#[test]
fn text_is_canonical() {
    for (given, expected) in [
        ("2*s0 + 1", "2*s0+1"),
        ("1 + s0*2", "2*s0+1"),
        ("s1 + s0", "s0+s1"),
        ("s0*s0", "s0**2"),
        ("s0 + s0", "2*s0"),
        ("s0 - s0", "0"),
        ("(s0 + 1)*2", "2*s0+2"),
        ("4*s0//4", "s0"),
        ("(4*s0+8)//4", "s0+2"),
        ("4*s0 % 4", "0"),
        ("7//2", "3"),
        ("-7//2", "-4"),
        ("-7 % 4", "1"),
        ("max(1, s0, 3)", "max(s0,3)"),
        ("s0 // 2 * 2", "2*(s0//2)"),
        ("s0>=0 and s0<=8", "s0>=0 and s0<=8"),
        ("not (a == b or c)", "not (a==b or c)"),
        ("where(a>0,b,c)", "where(a>0,b,c)"),
        ("-s0+2", "-s0+2"),
        ("s0-2", "s0-2"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("2.0*s0", "2.0*s0"),
        ("s0/2", "s0/2"),
        ("(-2)**s0", "(-2)**s0"),
        ("9223372036854775807+5+s0", "s0+9223372036854775807+5"),
        ("9223372036854775807*s0+5*s0-10*s0", "9223372036854775802*s0"),
        ("4611686018427387904*s0*4", "4*4611686018427387904*s0"),
    ] {
        assert_eq!(canonical(given), expected, "from {given:?}");
        assert_eq!(canonical(expected), expected);
    }
}

#[test]
fn nonsense_is_refused_with_a_place() {
    for text in ["", "1+", "(s0", "s0 s1", "f(1)", "99999999999999999999", "1..2", "s0 &", "0--not", "or"] {
        assert!(text.parse::<Expr>().is_err(), "{text:?}");
    }
    let error = "s0+*2".parse::<Expr>().unwrap_err();
    assert_eq!(error.to_string(), "expression \"s0+*2\", byte 3: expected a number, a symbol or \"(\"");
    assert!("a+".repeat(10_000).parse::<Expr>().unwrap_err().to_string().contains("at most 16384 bytes"));
    assert!(["a", &"//b".repeat(5_000)].concat().parse::<Expr>().unwrap_err().to_string().contains("500 divisions"));
    assert!("(".repeat(100_000).parse::<Expr>().is_err());
    assert!("-".repeat(100_000).parse::<Expr>().is_err());
    assert!(["2**"; 100_000].concat().parse::<Expr>().is_err());
}

#[derive(Clone, Debug)]
enum Term {
    Leaf(String),
    Binary(&'static str, Box<Term>, Box<Term>),
}

impl Term {
    fn text(&self) -> String {
        match self {
            Term::Leaf(t) => t.clone(),
            Term::Binary("max", a, b) => format!("max({}, {})", a.text(), b.text()),
            Term::Binary(op, a, b) => format!("({} {op} {})", a.text(), b.text()),
        }
    }

    /// The value by the definition of each operation.
    fn value(&self, s: i64, t: i64) -> Option<i64> {
        match self {
            Term::Leaf(l) => Some(match l.as_str() {
                "s" => s,
                "t" => t,
                n => n.parse().unwrap(),
            }),
            Term::Binary(op, a, b) => {
                let (a, b) = (a.value(s, t)?, b.value(s, t)?);
                match *op {
                    "+" => a.checked_add(b),
                    "-" => a.checked_sub(b),
                    "*" => a.checked_mul(b),
                    "//" => (b != 0).then(|| (a as f64 / b as f64).floor() as i64),
                    "%" => (b != 0).then(|| a - b * (a as f64 / b as f64).floor() as i64),
                    _ => Some(a.max(b)),
                }
            }
        }
    }
}

fn terms() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![Just("s".to_owned()), Just("t".to_owned()), (0i64..7).prop_map(|n| n.to_string())];
    leaf.prop_map(Term::Leaf).prop_recursive(4, 24, 2, |inner| {
        (prop::sample::select(vec!["+", "-", "*", "//", "%", "max"]), inner.clone(), inner)
            .prop_map(|(op, a, b)| Term::Binary(op, Box::new(a), Box::new(b)))
    })
}

proptest! {
    #[test]
    fn canonical_form_keeps_the_value(term in terms(), s in 1i64..20, t in 1i64..20) {
        let text = term.text();
        let expr: Expr = text.parse().unwrap();
        let canonical = expr.to_string();
        prop_assert_eq!(canonical.parse::<Expr>().unwrap().to_string(), canonical.clone());
        let lookup = |name: &str| Some(if name == "s" { s } else { t });
        if let Some(expected) = term.value(s, t)
            && let Ok(found) = expr.eval_int(&lookup)
        {
            prop_assert_eq!(found, expected, "{} became {}", text, canonical);
        }
    }
}
