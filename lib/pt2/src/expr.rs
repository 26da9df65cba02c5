//! Symbolic expressions of program files, in the three spellings that they come in.
//!
//! Up to torch 2.5 infix (`2*s0 + 1`), later sympy constructors (`Add(Symbol('s0', integer=True), Integer(1))`), and in
//! guards Python over inputs (`L['x'].size()[0] > 2`). One parser reads all of them into the canonical expressions of
//! `m2m_tensor`; what a guard's `L[…]` means is asked of the caller.

use m2m_tensor::Expr;
use m2m_tensor::expr::{self as build, Cmp};
use thiserror::Error;

use crate::function;

/// Longest expression that is read; those of real programs have a few hundred characters.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

/// Deepest nesting of brackets and calls.
pub const MAX_DEPTH: usize = 100;

/// Most divisions and powers, which nest the result once each.
const MAX_CHAIN: usize = 200;

/// Why an expression was not read.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum Error {
    /// Longer or deeper than the limits.
    #[error(
        "expression of {len} bytes is too long or too deep; at most {MAX_TEXT_BYTES} bytes and {MAX_DEPTH} levels are read"
    )]
    TooLarge {
        /// Its length.
        len: usize,
    },
    /// Malformed.
    #[error("character {at}: expected {expected}, found {found:?}")]
    Syntax {
        /// Offset in the text.
        at: usize,
        /// What would be right.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A function without a counterpart in the expressions of records.
    #[error("function {name} with {count} operands has no counterpart in the expressions of records")]
    Function {
        /// Its name.
        name: String,
        /// How many operands.
        count: usize,
    },
}

/// What `L['x'][0].size()[1]` stands for, if that is known.
pub type Resolve<'r> = &'r dyn Fn(&str) -> Option<Expr>;

/// Reads an expression over symbols.
///
/// # Errors
/// [`Error`], with the place in the text.
pub fn parse(text: &str) -> Result<Expr, Error> {
    parse_with(text, &|_| None)
}

/// Reads an expression in which `resolve` knows what inputs are.
///
/// # Errors
/// As for [`parse`]; an unknown input is a syntax error.
pub fn parse_with(text: &str, resolve: Resolve<'_>) -> Result<Expr, Error> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Error::TooLarge { len: text.len() });
    }
    let mut parser = Parser { text, at: 0, depth: 0, chain: 0, resolve };
    let expr = parser.or()?;
    parser.blanks();
    if parser.at < text.len() { Err(parser.expected("the end")) } else { Ok(expr) }
}

struct Parser<'t, 'r> {
    text: &'t str,
    at: usize,
    depth: usize,
    chain: usize,
    resolve: Resolve<'r>,
}

impl<'t> Parser<'t, '_> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn expected(&self, expected: &'static str) -> Error {
        Error::Syntax { at: self.at, expected, found: self.rest().chars().take(12).collect() }
    }

    fn take(&mut self, sign: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Takes a sign of which `longer` would be another one.
    fn take_but(&mut self, sign: &str, longer: &str) -> bool {
        self.blanks();
        !self.rest().starts_with(longer) && self.take(sign)
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.blanks();
        let after = self.rest().strip_prefix(word);
        let found = after.is_some_and(|after| !after.starts_with(is_name));
        if found {
            self.at += word.len();
        }
        found
    }

    fn deeper(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Error::TooLarge { len: self.text.len() }) } else { Ok(()) }
    }

    fn or(&mut self) -> Result<Expr, Error> {
        self.deeper()?;
        let mut items = vec![self.and()?];
        while self.take_word("or") || self.take_but("|", "||") {
            items.push(self.and()?);
        }
        self.depth -= 1;
        Ok(only_or(items, build::or))
    }

    fn and(&mut self) -> Result<Expr, Error> {
        let mut items = vec![self.not()?];
        while self.take_word("and") || self.take_but("&", "&&") {
            items.push(self.not()?);
        }
        Ok(only_or(items, build::and))
    }

    fn not(&mut self) -> Result<Expr, Error> {
        let mut negated = false;
        while self.take_word("not") || self.take("~") {
            negated = !negated;
        }
        let inner = self.comparison()?;
        Ok(if negated { build::not(inner) } else { inner })
    }

    /// A comparison; a chain of them (`0 <= x <= 8`) is their conjunction, as in Python.
    fn comparison(&mut self) -> Result<Expr, Error> {
        const SIGNS: [(&str, Cmp); 6] =
            [("==", Cmp::Eq), ("!=", Cmp::Ne), ("<=", Cmp::Le), (">=", Cmp::Ge), ("<", Cmp::Lt), (">", Cmp::Gt)];
        let mut left = self.sum()?;
        let mut links = Vec::new();
        while let Some(&(_, op)) = SIGNS.iter().find(|(sign, _)| self.take(sign)) {
            let right = self.sum()?;
            links.push(build::cmp(op, left, right.clone()));
            left = right;
        }
        Ok(if links.is_empty() { left } else { only_or(links, build::and) })
    }

    fn sum(&mut self) -> Result<Expr, Error> {
        let mut terms = vec![self.product()?];
        loop {
            if self.take("+") {
                terms.push(self.product()?);
            } else if self.take("-") {
                terms.push(negate(self.product()?));
            } else {
                return Ok(only_or(terms, build::add));
            }
        }
    }

    fn product(&mut self) -> Result<Expr, Error> {
        let mut factors = vec![self.unary()?];
        loop {
            if self.take_but("*", "**") {
                factors.push(self.unary()?);
                continue;
            }
            let combine = if self.take("//") {
                build::floor_div
            } else if self.take("/") {
                build::div
            } else if self.take("%") {
                build::modulo
            } else {
                return Ok(only_or(factors, build::mul));
            };
            self.link()?;
            let left = only_or(std::mem::take(&mut factors), build::mul);
            factors.push(combine(left, self.unary()?));
        }
    }

    /// Accounts for an operation that nests the result one level deeper without nesting this parser.
    fn link(&mut self) -> Result<(), Error> {
        self.chain += 1;
        if self.chain > MAX_CHAIN { Err(Error::TooLarge { len: self.text.len() }) } else { Ok(()) }
    }

    fn unary(&mut self) -> Result<Expr, Error> {
        let mut negative = false;
        while self.take("-") {
            negative = !negative;
        }
        if negative && self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            // The sign belongs to the digits: the smallest integer has no positive counterpart.
            return self.power(true);
        }
        let base = self.power(false)?;
        Ok(if negative { negate(base) } else { base })
    }

    fn power(&mut self, negative: bool) -> Result<Expr, Error> {
        let base = if negative { self.number(true)? } else { self.atom()? };
        if !self.take("**") {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.unary()?;
        self.depth -= 1;
        Ok(if negative { negate(build::pow(negate(base), exponent)) } else { build::pow(base, exponent) })
    }

    fn atom(&mut self) -> Result<Expr, Error> {
        if self.take("(") {
            let inner = self.or()?;
            return if self.take(")") { Ok(inner) } else { Err(self.expected("\")\"")) };
        }
        self.blanks();
        match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(false),
            Some(c) if is_name(c) => self.name(),
            _ => Err(self.expected("a number, a symbol or a bracket")),
        }
    }

    fn number(&mut self, negative: bool) -> Result<Expr, Error> {
        let rest = self.rest();
        let mut end = 0;
        let mut previous = ' ';
        for (i, c) in rest.char_indices() {
            let exponent_sign = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
            if !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || exponent_sign) {
                break;
            }
            (end, previous) = (i + 1, c);
        }
        let sign = if negative { "-" } else { "" };
        let number =
            number(&format!("{sign}{}", &rest[..end])).ok_or_else(|| self.expected("a number of at most 64 bits"))?;
        self.at += end;
        Ok(number)
    }

    fn name(&mut self) -> Result<Expr, Error> {
        let start = self.at;
        let len = self.rest().find(|c: char| !is_name(c) && c != '.').unwrap_or(self.rest().len());
        let name = &self.rest()[..len];
        self.at += len;
        match name {
            "True" | "true" => return Ok(Expr::Bool(true)),
            "False" | "false" => return Ok(Expr::Bool(false)),
            "L" if self.rest().starts_with('[') => return self.input(start),
            _ => {}
        }
        if !self.take("(") {
            let symbol = name.strip_suffix('.').is_none() && !name.contains('.');
            return if symbol { Ok(Expr::sym(name)) } else { Err(self.expected("a symbol without dots")) };
        }
        match name {
            "Symbol" => self.quoted().map(Expr::sym),
            "Float" => {
                let text = self.quoted()?;
                text.parse().map(Expr::Float).map_err(|_| self.expected("a float"))
            }
            _ => {
                let operands = self.operands()?;
                let count = operands.len();
                function::call(name, operands).ok_or_else(|| Error::Function { name: name.to_owned(), count })
            }
        }
    }

    /// `'s0', positive=True)` behind `Symbol(`: assumptions do not change what a symbol is.
    fn quoted(&mut self) -> Result<&'t str, Error> {
        if !self.take("'") {
            return Err(self.expected("a quoted name"));
        }
        let len = self.rest().find('\'').ok_or_else(|| self.expected("a closing quote"))?;
        let name = &self.rest()[..len];
        if name.is_empty() || !name.chars().all(|c| is_name(c) || matches!(c, '.' | '-' | '+')) {
            return Err(self.expected("a name of letters, digits and underscores"));
        }
        let close = self.rest().find(')').ok_or_else(|| self.expected("\")\""))?;
        self.at += close + 1;
        Ok(name)
    }

    fn operands(&mut self) -> Result<Vec<Expr>, Error> {
        let mut items = Vec::new();
        if self.take(")") {
            return Ok(items);
        }
        loop {
            items.push(self.or()?);
            if self.take(")") {
                return Ok(items);
            }
            if !self.take(",") {
                return Err(self.expected("\",\" or \")\""));
            }
        }
    }

    /// `L['x'][0].size()[1]`: everything that is glued to `L`.
    fn input(&mut self, start: usize) -> Result<Expr, Error> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b'[') => match self.rest().find(']') {
                    Some(len) => self.at += len + 1,
                    None => return Err(self.expected("\"]\"")),
                },
                Some(b'(') if self.rest().starts_with("()") => self.at += 2,
                Some(b'.') => {
                    let rest = &self.rest()[1..];
                    self.at += 1 + rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        let found = (self.resolve)(&self.text[start..self.at]);
        found.ok_or_else(|| {
            self.at = start;
            self.expected("an input of the program")
        })
    }
}

fn only_or(mut items: Vec<Expr>, join: impl Fn(Vec<Expr>) -> Expr) -> Expr {
    if items.len() == 1 { items.remove(0) } else { join(items) }
}

fn negate(e: Expr) -> Expr {
    build::mul([Expr::Int(-1), e])
}

fn number(text: &str) -> Option<Expr> {
    if text.contains(['.', 'e', 'E']) { text.parse().ok().map(Expr::Float) } else { text.parse().ok().map(Expr::Int) }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_string()
    }

    #[test]
    fn the_two_spellings_agree() {
        let sympy = "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))";
        assert_eq!(canonical(sympy), canonical("2*s0 + 1"));
        assert_eq!(canonical("GreaterThan(Symbol('u0', integer=True), Integer(0))"), canonical("u0 >= 0"));
        assert_eq!(canonical("Pow(Symbol('s0'), Integer(2))"), canonical("s0**2"));
        assert_eq!(canonical("FloorDiv(Add(Symbol('s0'), Integer(-1)), Integer(2))"), canonical("(s0 - 1)//2"));
        assert_eq!(canonical("Max(Integer(1), Symbol('s0'))"), canonical("Max(1, s0)"));
        assert_eq!(canonical("Mul(Float('2.0', precision=53), Symbol('zuf0'))"), "2.0*zuf0");
        assert_eq!(canonical("CeilDiv(Symbol('s0'), Integer(4))"), canonical("-((-s0)//4)"));
    }

    #[test]
    fn python_rules() {
        assert_eq!(canonical("-2**2"), "-4");
        assert_eq!(canonical("7 // 2 * 2"), "6");
        assert_eq!(canonical("-9223372036854775808"), "-9223372036854775808");
        assert_eq!(canonical("0 <= s0 <= 8"), canonical("0 <= s0 and s0 <= 8"));
    }

    #[test]
    fn inputs_are_asked_for() {
        let know = |name: &str| (name == "L['a'][0].size()[1]").then(|| Expr::sym("s1"));
        assert_eq!(parse_with("L['a'][0].size()[1] % 4 == 0", &know).unwrap().to_string(), "s1%4==0");
        assert!(matches!(parse_with("L['b'] > 2", &know), Err(Error::Syntax { at: 0, .. })));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(matches!(parse("RoundToInt(s0)"), Err(Error::Function { count: 1, .. })));
        assert!(matches!(parse("Add(s0, "), Err(Error::Syntax { at: 8, .. })));
        assert!(matches!(parse(&"(".repeat(200)), Err(Error::TooLarge { .. })));
        assert!(matches!(parse(&"s0//".repeat(2000)), Err(Error::TooLarge { .. })));
        assert!(canonical(&format!("s0{}", "//s1".repeat(200))).ends_with("//s1"));
        assert!(matches!(parse("99999999999999999999"), Err(Error::Syntax { .. })));
    }
}
