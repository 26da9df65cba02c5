//! The parser's state: the cursor, what has been defined, and how to go on after an error.

use super::MAX_NESTING;
use super::lexer::{Kind, Token, lex, skip_blank};
use crate::finding::{Code, Findings, Offset};
use crate::ir::{Attribute, Graph, TypeId, Value};
use std::borrow::Cow;
use std::collections::HashMap;

/// Something could not be read; it has been reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop;

pub(super) type Read<T> = Result<T, Stop>;

/// Results of one operation under one name.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub first: Value,
    pub count: u32,
    pub at: Offset,
}

/// A use of a name that was not defined when it was read.
pub(super) struct Pending<'a> {
    pub name: &'a str,
    pub at: Offset,
}

/// The names of a region.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub names: HashMap<&'a str, Named>,
    pub pending: Vec<Pending<'a>>,
    /// Names of enclosing regions are not seen.
    pub is_isolated: bool,
    /// Something that defines names could not be read, so unknown names are no news.
    pub is_lenient: bool,
}

pub(super) struct Parser<'a, 'f> {
    pub text: &'a str,
    pub token: Token,
    /// End of the token before.
    pub last: usize,
    pub depth: usize,
    /// How many findings there were when reading was given up.
    pub over: Option<usize>,
    pub graph: Graph<'a>,
    pub findings: &'f mut Findings,
    pub types: HashMap<&'a str, TypeId>,
    pub attributes: HashMap<&'a str, Attribute<'a>>,
    pub scopes: Vec<Scope<'a>>,
    /// Aliases of locations may be defined after their use.
    pub locations: Vec<(&'a str, Offset)>,
    /// Parts of attributes that aliases may still be copied to: a small text cannot be made to expand without end.
    pub budget: usize,
}

impl<'a, 'f> Parser<'a, 'f> {
    pub fn new(text: &'a str, findings: &'f mut Findings) -> Self {
        Parser {
            text,
            token: lex(text.as_bytes(), 0),
            last: 0,
            depth: 0,
            over: None,
            graph: Graph::default(),
            findings,
            types: HashMap::new(),
            attributes: HashMap::new(),
            scopes: Vec::new(),
            locations: Vec::new(),
            budget: text.len().saturating_mul(64).saturating_add(1 << 16),
        }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    pub fn spelling(&self, token: Token) -> &'a str {
        self.slice(token.start, token.end)
    }

    /// Where the current token stands.
    pub fn here(&self) -> Offset {
        self.token.start as Offset
    }

    /// Takes the current token.
    pub fn advance(&mut self) -> Token {
        let token = self.token;
        self.last = token.end;
        self.token = lex(self.bytes(), token.end);
        token
    }

    /// Goes on from a position inside the text.
    pub fn jump(&mut self, at: usize) {
        self.last = at;
        self.token = lex(self.bytes(), at);
    }

    pub fn fail<T>(&mut self, code: Code, at: Offset, message: impl Into<String>) -> Read<T> {
        self.findings.push(code, at, message);
        Err(Stop)
    }

    /// Reports that something else was expected here.
    pub fn expected<T>(&mut self, what: &str) -> Read<T> {
        let message = match self.token.kind {
            Kind::Wrong(why) => format!("{why}; expected {what}"),
            Kind::End => format!("the text ends; expected {what}"),
            _ => {
                let mut found = self.spelling(self.token);
                let is_long = found.chars().nth(40).is_some();
                if let Some((cut, _)) = found.char_indices().nth(40) {
                    found = found.get(..cut).unwrap_or(found);
                }
                format!("found {found}{}; expected {what}", if is_long { "…" } else { "" })
            }
        };
        self.fail(Code::Syntax, self.here(), message)
    }

    pub fn is_end(&self) -> bool {
        self.token.kind == Kind::End
    }

    pub fn is_mark(&self, mark: u8) -> bool {
        self.token.kind == Kind::Mark(mark)
    }

    pub fn take_mark(&mut self, mark: u8) -> bool {
        let found = self.is_mark(mark);
        if found {
            self.advance();
        }
        found
    }

    pub fn mark(&mut self, mark: u8) -> Read<()> {
        if self.take_mark(mark) { Ok(()) } else { self.expected(&char::from(mark).to_string()) }
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.token.kind == Kind::Word && self.spelling(self.token) == word
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub fn word(&mut self, word: &str) -> Read<()> {
        if self.take_word(word) { Ok(()) } else { self.expected(word) }
    }

    pub fn arrow(&mut self) -> Read<()> {
        if self.token.kind == Kind::Arrow {
            self.advance();
            return Ok(());
        }
        self.expected("->")
    }

    /// A string literal's value.
    pub fn string(&mut self) -> Read<Cow<'a, str>> {
        if self.token.kind != Kind::Str {
            return self.expected("a string");
        }
        let token = self.advance();
        self.unescape(token.start + 1, token.end - 1)
    }

    /// `@name`.
    pub fn symbol(&mut self) -> Read<Cow<'a, str>> {
        if self.token.kind != Kind::Symbol {
            return self.expected("a symbol, @name");
        }
        let token = self.advance();
        match self.bytes().get(token.start + 1) {
            Some(b'"') => self.unescape(token.start + 2, token.end - 1),
            _ => Ok(self.slice(token.start + 1, token.end).into()),
        }
    }

    /// A bare word or a string.
    pub fn keyword(&mut self) -> Read<Cow<'a, str>> {
        match self.token.kind {
            Kind::Word => {
                let token = self.advance();
                Ok(self.spelling(token).into())
            }
            Kind::Str => self.string(),
            _ => self.expected("a keyword"),
        }
    }

    fn unescape(&mut self, start: usize, end: usize) -> Read<Cow<'a, str>> {
        let raw = self.slice(start, end);
        if !raw.contains('\\') {
            return Ok(raw.into());
        }
        let mut out = Vec::with_capacity(raw.len());
        let mut rest = raw.bytes();
        let hex = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16)).unwrap_or(0) as u8;
        while let Some(byte) = rest.next() {
            if byte != b'\\' {
                out.push(byte);
                continue;
            }
            // The lexer lets only these escapes through.
            match rest.next() {
                Some(b'n') => out.push(b'\n'),
                Some(b't') => out.push(b'\t'),
                Some(byte @ (b'"' | b'\\')) => out.push(byte),
                high => out.push(hex(high) << 4 | hex(rest.next())),
            }
        }
        match String::from_utf8(out) {
            Ok(text) => Ok(text.into()),
            Err(_) => self.fail(Code::Encoding, start as Offset, "this string's escapes give bytes that are not UTF-8"),
        }
    }

    /// Stops at nesting that no graph has: whoever wrote that wants the reader's time, so the rest is not looked at.
    fn give_up<T>(&mut self) -> Read<T> {
        let message = format!("brackets are nested deeper than {MAX_NESTING}; the rest is not read");
        self.findings.push(Code::Nesting, self.here(), message);
        self.over.get_or_insert(self.findings.len());
        self.jump(self.text.len());
        Err(Stop)
    }

    /// Reads something inside brackets, unless they are nested too deep.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MAX_NESTING {
            return self.give_up();
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// `<NAME ...>`, the form in which a dialect spells a type or an attribute of its own: `read` takes what follows NAME.
    pub fn of_dialect<T>(&mut self, names: &str, read: impl FnOnce(&mut Self, &'a str, Offset) -> Read<T>) -> Read<T> {
        self.mark(b'<')?;
        self.nested(|parser| {
            if parser.token.kind != Kind::Word {
                return parser.expected(names);
            }
            let at = parser.here();
            let mnemonic = parser.advance();
            let found = read(parser, parser.spelling(mnemonic), at)?;
            parser.mark(b'>')?;
            Ok(found)
        })
    }

    /// Items between commas up to a closing mark, which is taken.
    pub fn list(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        if self.take_mark(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.take_mark(close) {
                return Ok(());
            }
            if !self.take_mark(b',') {
                return self.expected(&format!(", or {}", char::from(close)));
            }
        }
    }

    /// Passes over balanced brackets from the opening one here to its end, and gives their text.
    pub fn balanced(&mut self) -> Read<&'a str> {
        let start = self.token.start;
        let mut open = Vec::new();
        loop {
            match self.token.kind {
                Kind::Mark(mark @ (b'(' | b'[' | b'{' | b'<')) => {
                    if open.len() + self.depth >= MAX_NESTING {
                        return self.give_up();
                    }
                    open.push(closing(mark));
                }
                Kind::Mark(mark @ (b')' | b']' | b'}' | b'>')) if open.last() == Some(&mark) => {
                    open.pop();
                }
                Kind::Mark(b')' | b']' | b'}' | b'>') | Kind::End | Kind::Wrong(_) => {
                    let wanted = open.last().map_or("an opening bracket".to_owned(), |c| char::from(*c).to_string());
                    return self.expected(&wanted);
                }
                _ => {}
            }
            if open.is_empty() && self.token.start == start {
                return self.expected("an opening bracket");
            }
            self.advance();
            if open.is_empty() {
                return Ok(self.slice(start, self.last));
            }
        }
    }

    /// After an error inside a dictionary: goes to the comma or brace that ends the entry. Fails where an operation begins
    /// first, so that a brace that is missing does not swallow the rest of the text.
    pub fn skip_entry(&mut self) -> Read<()> {
        let mut open = 0usize;
        loop {
            match self.token.kind {
                Kind::Mark(b',' | b'}') if open == 0 => return Ok(()),
                Kind::Mark(b'(' | b'[' | b'{' | b'<') => open += 1,
                Kind::Mark(b')' | b']' | b'}' | b'>') => open = open.saturating_sub(1),
                Kind::End => return Err(Stop),
                _ if self.is_first_on_line() && is_statement(self.bytes(), self.token.start) => return Err(Stop),
                _ => {}
            }
            self.advance();
        }
    }

    /// Whether more of the same line follows.
    pub fn stays_on_line(&self) -> bool {
        self.token.kind != Kind::End && !self.is_first_on_line()
    }

    fn is_first_on_line(&self) -> bool {
        let before = self.bytes().get(..self.token.start).unwrap_or_default();
        let blank = before.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
        before.iter().rev().nth(blank).is_none_or(|b| matches!(b, b'\n' | b'\r'))
    }

    /// After an error inside an operation that began at `start`: goes to the next line on which a statement begins.
    pub fn skip_operation(&mut self, start: usize) {
        if self.token.start > start && self.is_first_on_line() && is_statement(self.bytes(), self.token.start) {
            return;
        }
        let mut at = self.token.start.max(start);
        loop {
            let rest = self.bytes().get(at..).unwrap_or_default();
            let Some(newline) = rest.iter().position(|b| *b == b'\n') else {
                self.jump(self.text.len());
                return;
            };
            at += newline + 1;
            let blank = self.bytes().get(at..).unwrap_or_default();
            let first = at + blank.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
            if is_statement(self.bytes(), first) {
                self.jump(first);
                return;
            }
        }
    }
}

fn closing(mark: u8) -> u8 {
    match mark {
        b'(' => b')',
        b'[' => b']',
        b'{' => b'}',
        _ => b'>',
    }
}

/// Whether what stands first on a line looks like the beginning of an operation, a block, an alias, or the end of a region.
fn is_statement(text: &[u8], at: usize) -> bool {
    let token = lex(text, at);
    if token.start != at {
        return false;
    }
    let spelling = text.get(token.start..token.end).unwrap_or_default();
    let after = lex(text, token.end);
    match token.kind {
        Kind::Mark(b'}') | Kind::Caret => true,
        Kind::Str => after.kind == Kind::Mark(b'('),
        Kind::Hash | Kind::Bang => after.kind == Kind::Mark(b'='),
        Kind::Word => {
            let is_name = matches!(spelling, b"return" | b"module" | b"builtin.module")
                || spelling.starts_with(b"func.")
                || spelling.starts_with(b"lattice.");
            is_name && after.kind != Kind::Mark(b'=')
        }
        Kind::Percent => {
            // Results of an operation: names, perhaps with counts, between commas, before an equals sign.
            let mut next = after;
            loop {
                if next.kind == Kind::Mark(b':') {
                    let count = lex(text, next.end);
                    if count.kind != Kind::Integer {
                        return false;
                    }
                    next = lex(text, count.end);
                }
                match next.kind {
                    Kind::Mark(b'=') => return true,
                    Kind::Mark(b',') => {
                        let name = lex(text, next.end);
                        if name.kind != Kind::Percent {
                            return false;
                        }
                        next = lex(text, name.end);
                    }
                    _ => return false,
                }
            }
        }
        _ => false,
    }
}

/// The position of the byte after blanks and comments, for the parts of the grammar that look at characters.
pub(super) fn after_blank(text: &str, at: usize) -> usize {
    skip_blank(text.as_bytes(), at)
}
