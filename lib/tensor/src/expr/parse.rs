//! Reads infix text, canonical or not, into a canonical expression.

use super::{Cmp, Expr, MAX_DEPTH, MAX_DIVISIONS, MAX_TEXT_BYTES, build};
use std::str::FromStr;

/// Why a text is not an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expression {text:?}, byte {at}: expected {expected}")]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// Where it stops making sense.
    pub at: usize,
    /// What would be right there.
    pub expected: String,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    divisions: usize,
}

impl FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Expr, ParseError> {
        if text.len() > MAX_TEXT_BYTES {
            let head: String = text.chars().take(40).collect();
            let expected = format!("at most {MAX_TEXT_BYTES} bytes, found {}", text.len());
            return Err(ParseError { text: format!("{head}…"), at: MAX_TEXT_BYTES, expected });
        }
        let mut parser = Parser { text, at: 0, depth: 0, divisions: 0 };
        let expr = parser.or()?;
        parser.blanks();
        if parser.at < text.len() {
            return Err(parser.expected("an operator or the end"));
        }
        Ok(expr)
    }
}

impl Parser<'_> {
    fn expected(&self, what: &str) -> ParseError {
        ParseError { text: self.text.to_owned(), at: self.at, expected: what.to_owned() }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Takes a sign, unless it is the beginning of a longer one in `not`.
    fn take(&mut self, sign: &str, not: &[&str]) -> bool {
        self.blanks();
        let found = self.rest().starts_with(sign) && !not.iter().any(|longer| self.rest().starts_with(longer));
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Takes a word that no letter, digit or underscore follows.
    fn take_word(&mut self, word: &str) -> bool {
        self.blanks();
        let found = self.rest().strip_prefix(word).is_some_and(|r| !r.starts_with(is_name));
        if found {
            self.at += word.len();
        }
        found
    }

    fn or(&mut self) -> Result<Expr, ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.expected(&format!("at most {MAX_DEPTH} levels of nesting")));
        }
        let mut items = vec![self.and()?];
        while self.take_word("or") {
            items.push(self.and()?);
        }
        self.depth -= 1;
        Ok(if items.len() == 1 { items.remove(0) } else { build::or(items) })
    }

    fn and(&mut self) -> Result<Expr, ParseError> {
        let mut items = vec![self.not()?];
        while self.take_word("and") {
            items.push(self.not()?);
        }
        Ok(if items.len() == 1 { items.remove(0) } else { build::and(items) })
    }

    fn not(&mut self) -> Result<Expr, ParseError> {
        let mut negations = 0usize;
        while self.take_word("not") {
            negations += 1;
        }
        let inner = self.comparison()?;
        Ok((0..negations).fold(inner, |e, _| build::not(e)))
    }

    fn comparison(&mut self) -> Result<Expr, ParseError> {
        let left = self.sum()?;
        let signs =
            [("==", Cmp::Eq), ("!=", Cmp::Ne), ("<=", Cmp::Le), (">=", Cmp::Ge), ("<", Cmp::Lt), (">", Cmp::Gt)];
        for (sign, op) in signs {
            if self.take(sign, &[]) {
                return Ok(build::cmp(op, left, self.sum()?));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, ParseError> {
        let mut terms = vec![self.product()?];
        loop {
            if self.take("+", &[]) {
                terms.push(self.product()?);
            } else if self.take("-", &[]) {
                terms.push(build::mul([Expr::Int(-1), self.product()?]));
            } else {
                return Ok(if terms.len() == 1 { terms.remove(0) } else { build::add(terms) });
            }
        }
    }

    fn product(&mut self) -> Result<Expr, ParseError> {
        let mut factors = vec![self.unary()?];
        loop {
            let divide = if self.take("//", &[]) {
                build::floor_div
            } else if self.take("/", &["//"]) {
                build::div
            } else if self.take("%", &[]) {
                build::modulo
            } else if self.take("*", &["**"]) {
                factors.push(self.unary()?);
                continue;
            } else {
                return Ok(product_of(factors));
            };
            self.divisions += 1;
            if self.divisions > MAX_DIVISIONS {
                return Err(self.expected(&format!("at most {MAX_DIVISIONS} divisions")));
            }
            factors = vec![divide(product_of(factors), self.unary()?)];
        }
    }

    fn unary(&mut self) -> Result<Expr, ParseError> {
        let mut negative = false;
        while self.take("-", &[]) {
            negative = !negative;
        }
        if negative && let Some(n) = self.minus_integer() {
            return Ok(n);
        }
        let base = self.power()?;
        Ok(if negative { build::mul([Expr::Int(-1), base]) } else { base })
    }

    /// The digits of an integer after a minus sign, which reach one further than a positive one.
    fn minus_integer(&mut self) -> Option<Expr> {
        self.blanks();
        let digits: String = self.rest().chars().take_while(char::is_ascii_digit).collect();
        let after = self.rest().get(digits.len()..).unwrap_or("").trim_start();
        if digits.is_empty() || after.starts_with(['.', 'e', 'E']) || after.starts_with("**") {
            return None;
        }
        let n = format!("-{digits}").parse().ok()?;
        self.at += digits.len();
        Some(Expr::Int(n))
    }

    fn power(&mut self) -> Result<Expr, ParseError> {
        let base = self.atom()?;
        if self.take("**", &[]) {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.expected(&format!("at most {MAX_DEPTH} levels of nesting")));
            }
            let exponent = self.unary()?;
            self.depth -= 1;
            return Ok(build::pow(base, exponent));
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<Expr, ParseError> {
        if self.take("(", &[]) {
            let inner = self.or()?;
            return if self.take(")", &[]) { Ok(inner) } else { Err(self.expected("\")\"")) };
        }
        self.blanks();
        match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if is_name(c) => self.name(),
            _ => Err(self.expected("a number, a symbol or \"(\"")),
        }
    }

    fn number(&mut self) -> Result<Expr, ParseError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while let Some(c) = bytes.get(end) {
            let exponent_sign =
                matches!(c, b'+' | b'-') && matches!(bytes.get(end - 1), Some(b'e' | b'E')) && end > start;
            if !(c.is_ascii_digit() || matches!(c, b'.' | b'e' | b'E') || exponent_sign) {
                break;
            }
            end += 1;
        }
        let text = self.text.get(start..end).unwrap_or("");
        let number = text.parse().map(Expr::Int).or_else(|_| {
            if text.contains(['.', 'e', 'E']) { text.parse().map(Expr::Float).map_err(|_| ()) } else { Err(()) }
        });
        let number = number.map_err(|()| self.expected("a number of at most 64 bits"))?;
        self.at = end;
        Ok(number)
    }

    fn name(&mut self) -> Result<Expr, ParseError> {
        let length = self.rest().find(|c: char| !is_name(c)).unwrap_or(self.rest().len());
        let name = self.rest().get(..length).unwrap_or("").to_owned();
        if matches!(name.as_str(), "and" | "or" | "not") {
            return Err(self.expected("a symbol; and, or and not are operators"));
        }
        let start = self.at;
        self.at += length;
        if !self.take("(", &[]) {
            return Ok(match name.as_str() {
                "true" => Expr::Bool(true),
                "false" => Expr::Bool(false),
                "inf" => Expr::Float(f64::INFINITY),
                "NaN" => Expr::Float(f64::NAN),
                _ => Expr::Sym(name),
            });
        }
        let mut items = vec![self.or()?];
        while self.take(",", &[]) {
            items.push(self.or()?);
        }
        if !self.take(")", &[]) {
            return Err(self.expected("\",\" or \")\""));
        }
        call(&name, items).ok_or_else(|| {
            self.at = start;
            self.expected("max, min, ceil, floor, trunc or where, with its operands")
        })
    }
}

fn product_of(mut factors: Vec<Expr>) -> Expr {
    if factors.len() == 1 { factors.remove(0) } else { build::mul(factors) }
}

fn call(name: &str, mut items: Vec<Expr>) -> Option<Expr> {
    match (name, items.len()) {
        ("max", _) => Some(build::max(items)),
        ("min", _) => Some(build::min(items)),
        ("ceil", 1) => Some(build::ceil(items.remove(0))),
        ("floor", 1) => Some(build::floor(items.remove(0))),
        ("trunc", 1) => Some(build::trunc(items.remove(0))),
        ("where", 3) => {
            let (c, a, b) = (items.remove(0), items.remove(0), items.remove(0));
            Some(build::select(c, a, b))
        }
        _ => None,
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
