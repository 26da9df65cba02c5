//! Locations: read for their form, not kept.

use super::lexer::Kind;
use super::parser::{Parser, Read};
use crate::finding::Code;

impl<'a> Parser<'a, '_> {
    /// `loc(…)` after an operation or an argument, where there is one.
    pub fn trailing_location(&mut self) -> Read<()> {
        if self.is_word("loc") { self.location() } else { Ok(()) }
    }

    /// `loc(…)`.
    pub fn location(&mut self) -> Read<()> {
        self.word("loc")?;
        self.mark(b'(')?;
        self.nested(Self::location_body)?;
        self.mark(b')')
    }

    /// What stands in the parentheses.
    fn location_body(&mut self) -> Read<()> {
        match self.token.kind {
            Kind::Hash => {
                let token = self.advance();
                let name = self.slice(token.start + 1, token.end);
                self.locations.push((name, token.start as u32));
                Ok(())
            }
            Kind::Str => self.named_location(),
            Kind::Word if self.is_word("unknown") => {
                self.advance();
                Ok(())
            }
            Kind::Word if self.is_word("callsite") => {
                self.advance();
                self.mark(b'(')?;
                self.nested(Self::location_body)?;
                self.word("at")?;
                self.nested(Self::location_body)?;
                self.mark(b')')
            }
            Kind::Word if self.is_word("fused") => {
                self.advance();
                if self.take_mark(b'<') {
                    self.nested(|parser| parser.attribute().map(drop))?;
                    self.mark(b'>')?;
                }
                self.mark(b'[')?;
                self.nested(|parser| parser.list(b']', Self::location_body))
            }
            Kind::Word if self.is_word("loc") => self.nested(Self::location),
            _ => self.expected("a location"),
        }
    }

    /// `"name"`, `"name"(location)`, `"file":line:column`, and a range of those.
    fn named_location(&mut self) -> Read<()> {
        self.string()?;
        if self.take_mark(b'(') {
            self.nested(Self::location_body)?;
            return self.mark(b')');
        }
        if !self.take_mark(b':') {
            return Ok(());
        }
        self.position()?;
        self.mark(b':')?;
        self.position()?;
        if self.take_word("to") {
            if self.token.kind == Kind::Integer {
                self.position()?;
            }
            self.mark(b':')?;
            self.position()?;
        }
        Ok(())
    }

    /// A line or column number.
    fn position(&mut self) -> Read<()> {
        if self.token.kind != Kind::Integer {
            return self.expected("a number");
        }
        let at = self.here();
        let token = self.advance();
        match self.spelling(token).parse::<u32>() {
            Ok(_) => Ok(()),
            Err(_) => self.fail(Code::NumberRange, at, "a line or column beyond 32 bits"),
        }
    }
}
