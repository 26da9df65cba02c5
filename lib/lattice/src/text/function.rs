//! Functions: signature and body in pretty form, and the signature in generic form.

use super::lexer::Kind;
use super::ops::Draft;
use super::parser::{Parser, Read, Stop};
use super::region::Arguments;
use crate::finding::{Code, Offset};
use crate::ir::{Attribute, Function, Operation, Type};

impl<'a> Parser<'a, '_> {
    /// `[visibility] @name(arguments) [-> results] [attributes {…}] [{…}]`.
    pub fn function(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        let mut function = Function::default();
        let mut names = Vec::new();
        if self.function_head(draft, &mut function, &mut names).is_err() {
            function.is_broken = true;
            self.skip_to_body();
        }
        let has_body = self.is_mark(b'{');
        let is_broken = function.is_broken;
        let arguments = function.arguments.clone();
        draft.op.function = Some(Box::new(function));
        if has_body {
            let arguments = Arguments { names, types: arguments, is_broken };
            let region = self.nested(|parser| parser.region(true, Some(arguments)))?;
            draft.op.regions.push(region);
        } else if is_broken {
            return Err(Stop);
        }
        draft.types = Some(Default::default());
        Ok(())
    }

    fn function_head(
        &mut self,
        draft: &mut Draft<'a>,
        function: &mut Function,
        names: &mut Vec<(&'a str, Offset)>,
    ) -> Read<()> {
        if self.is_word("private") || self.is_word("public") || self.is_word("nested") {
            self.advance();
        }
        function.name = self.symbol()?.into_owned();
        self.mark(b'(')?;
        self.nested(|parser| {
            parser.list(b')', |parser| {
                if parser.token.kind == Kind::Percent {
                    let (token, at) = (parser.token, parser.here());
                    parser.advance();
                    names.push((parser.spelling(token), at));
                    parser.mark(b':')?;
                } else if !names.is_empty() {
                    return parser.expected("the name of an argument, %name");
                }
                function.arguments.push(parser.ty()?);
                if !names.is_empty() && names.len() != function.arguments.len() {
                    return parser.expected("arguments that all have names, or none");
                }
                if parser.is_mark(b'{') {
                    parser.dictionary()?;
                }
                parser.trailing_location()
            })
        })?;
        if self.token.kind == Kind::Arrow {
            self.advance();
            if self.take_mark(b'(') {
                self.nested(|parser| {
                    parser.list(b')', |parser| {
                        function.results.push(parser.ty()?);
                        if parser.is_mark(b'{') { parser.dictionary().map(drop) } else { Ok(()) }
                    })
                })?;
            } else {
                function.results.push(self.ty()?);
            }
        }
        if self.take_word("attributes") {
            draft.op.attributes = self.dictionary()?;
        }
        if !self.is_mark(b'{') && !self.is_mark(b'}') && !self.is_word("loc") && self.stays_on_line() {
            return self.expected("{ or the end of the line");
        }
        let is_unnamed = names.is_empty() && !function.arguments.is_empty();
        if self.is_mark(b'{') && is_unnamed {
            return self.expected("names of the arguments before a body");
        }
        Ok(())
    }

    /// After an error in a signature: goes to the brace at the end of a line, which opens the body.
    fn skip_to_body(&mut self) {
        let mut at = self.token.start;
        while let Some(rest) = self.text.get(at..).filter(|rest| !rest.is_empty()) {
            let line = rest.split('\n').next().unwrap_or(rest);
            let end = line.trim_end();
            if end.ends_with('{') {
                self.jump(at + end.len() - 1);
                return;
            }
            at += line.len() + 1;
        }
        self.jump(self.text.len());
    }

    /// The signature of a function in generic form, from its attributes.
    pub fn generic_function(&mut self, op: &Operation<'a>) -> Function {
        let name = match op.attribute("sym_name").map(|entry| &entry.value) {
            Some(Attribute::Str(name)) => name.to_string(),
            _ => {
                self.findings.push(Code::MissingAttribute, op.at, "func.func: attribute sym_name is missing");
                String::new()
            }
        };
        let ty = match op.attribute("function_type").map(|entry| (&entry.value, entry.at)) {
            Some((Attribute::Type(ty), Some(at))) => Some((*ty, at)),
            _ => None,
        };
        let Some((ty, at)) = ty else {
            self.findings.push(Code::MissingAttribute, op.at, "func.func: attribute function_type is missing");
            return Function { name, is_broken: true, ..Function::default() };
        };
        match self.graph.types.get(ty) {
            Type::Function { arguments, results } => {
                Function { name, arguments: arguments.to_vec(), results: results.to_vec(), is_broken: false }
            }
            _ => {
                let found = self.graph.types.text(ty);
                let message = format!("func.func: function_type is {found}; expected a function type");
                self.findings.push(Code::AttributeKind, at, message);
                Function { name, is_broken: true, ..Function::default() }
            }
        }
    }
}
