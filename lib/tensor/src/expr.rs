//! Symbolic expressions: shapes, strides, conditions.
//!
//! The canonical text is infix. Sums stand in the order of falling degree, then of their symbols' names, the constant
//! last (`2*s0+1`); products have their number first, then their factors by name (`2*s0*s1`). There are no blanks but
//! around `and`, `or` and after `not`; brackets only where precedence needs them. `//` and `%` round toward negative
//! infinity, `/` is a division of floats, `**` a power. Equal canonical texts mean equal values.

mod build;
mod eval;
mod parse;
mod print;

pub use build::{add, and, ceil, cmp, div, floor, floor_div, max, min, modulo, mul, not, or, pow, select, sub, trunc};
pub use eval::{EvalError, Value};
pub use parse::ParseError;

use m2m_record::Dim;

/// Deepest nesting that is read.
pub const MAX_DEPTH: usize = 200;

/// Most divisions and remainders in one text: each of a row of them nests one deeper than the last.
pub const MAX_DIVISIONS: usize = 500;

/// Longest text that is read: bringing a text to its canonical form takes time with the square of its length.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the six comparisons")]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Cmp {
    /// Its sign.
    pub const fn sign(self) -> &'static str {
        match self {
            Cmp::Eq => "==",
            Cmp::Ne => "!=",
            Cmp::Lt => "<",
            Cmp::Le => "<=",
            Cmp::Gt => ">",
            Cmp::Ge => ">=",
        }
    }
}

/// An expression. Build it with this module's functions, which keep it canonical.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the operations of the module's text")]
pub enum Expr {
    Int(i64),
    Float(f64),
    Bool(bool),
    Sym(String),
    Add(Vec<Expr>),
    Mul(Vec<Expr>),
    Pow(Box<Expr>, Box<Expr>),
    Div(Box<Expr>, Box<Expr>),
    FloorDiv(Box<Expr>, Box<Expr>),
    Mod(Box<Expr>, Box<Expr>),
    Max(Vec<Expr>),
    Min(Vec<Expr>),
    Ceil(Box<Expr>),
    Floor(Box<Expr>),
    Trunc(Box<Expr>),
    Where(Box<Expr>, Box<Expr>, Box<Expr>),
    Cmp(Cmp, Box<Expr>, Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
}

impl Expr {
    /// A symbol.
    pub fn sym(name: impl Into<String>) -> Expr {
        Expr::Sym(name.into())
    }

    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// The direct operands.
    pub fn operands(&self) -> Vec<&Expr> {
        match self {
            Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) | Expr::Sym(_) => vec![],
            Expr::Add(v) | Expr::Mul(v) | Expr::Max(v) | Expr::Min(v) | Expr::And(v) | Expr::Or(v) => {
                v.iter().collect()
            }
            Expr::Pow(a, b) | Expr::Div(a, b) | Expr::FloorDiv(a, b) | Expr::Mod(a, b) | Expr::Cmp(_, a, b) => {
                vec![a, b]
            }
            Expr::Ceil(a) | Expr::Floor(a) | Expr::Trunc(a) | Expr::Not(a) => vec![a],
            Expr::Where(c, a, b) => vec![c, a, b],
        }
    }

    /// Calls `f` with the name of each symbol, repeats included.
    pub fn for_each_symbol<'a>(&'a self, f: &mut impl FnMut(&'a str)) {
        if let Expr::Sym(name) = self {
            f(name);
        }
        for operand in self.operands() {
            operand.for_each_symbol(f);
        }
    }
}

impl From<i64> for Expr {
    fn from(n: i64) -> Expr {
        Expr::Int(n)
    }
}

impl From<&Expr> for Dim {
    fn from(e: &Expr) -> Dim {
        match e {
            Expr::Int(n) => Dim::Int(*n),
            other => Dim::Expr(other.to_string()),
        }
    }
}

impl TryFrom<&Dim> for Expr {
    type Error = ParseError;

    fn try_from(dim: &Dim) -> Result<Expr, ParseError> {
        match dim {
            Dim::Int(n) => Ok(Expr::Int(*n)),
            Dim::Expr(text) => text.parse(),
        }
    }
}
