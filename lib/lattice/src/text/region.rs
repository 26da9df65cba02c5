//! Regions, blocks, and the names of values in them.

use super::lexer::Kind;
use super::ops::Results;
use super::parser::{Named, Parser, Pending, Read, Scope, Stop};
use crate::finding::{Code, Offset, line_column};
use crate::ir::{Block, Region, TypeId, Types, Use, Value};

/// The arguments of a function, which its first block takes over.
pub(super) struct Arguments<'a> {
    pub names: Vec<(&'a str, Offset)>,
    pub types: Vec<TypeId>,
    /// Whether the signature could not be read, so that names may be missing.
    pub is_broken: bool,
}

impl<'a> Parser<'a, '_> {
    /// A region with its braces. A function's arguments are defined before its first block.
    pub fn region(&mut self, is_isolated: bool, function: Option<Arguments<'a>>) -> Read<Region<'a>> {
        self.mark(b'{')?;
        self.scopes.push(Scope { is_isolated, ..Scope::default() });
        let mut region = Region::default();
        let is_function = function.is_some();
        if let Some(Arguments { names, types, is_broken }) = function {
            let mut block = Block::default();
            for (at, ty) in types.iter().enumerate() {
                let value = self.new_value(*ty);
                block.arguments.push(value);
                if let Some((name, offset)) = names.get(at) {
                    self.define(name, value, 1, *offset);
                }
            }
            if let Some(scope) = self.scopes.last_mut() {
                scope.is_lenient = is_broken;
            }
            region.blocks.push(block);
        }
        let done = self.nested(|parser| parser.blocks(&mut region, is_function));
        self.close_scope();
        done.map(|()| region)
    }

    fn blocks(&mut self, region: &mut Region<'a>, is_function: bool) -> Read<()> {
        loop {
            if self.findings.is_full() {
                return Err(Stop);
            }
            match self.token.kind {
                Kind::Mark(b'}') => {
                    self.advance();
                    return Ok(());
                }
                Kind::End => return self.expected("}"),
                Kind::Caret => {
                    if is_function && region.blocks.len() == 1 && region.blocks.iter().all(|b| b.ops.is_empty()) {
                        let message = "a block name where the function's arguments are already named";
                        self.findings.push(Code::Syntax, self.here(), message);
                    }
                    let start = self.token.start;
                    match self.block_head() {
                        Ok(block) => region.blocks.push(block),
                        Err(_) => {
                            region.blocks.push(Block::default());
                            self.skip_operation(start);
                        }
                    }
                }
                _ => {
                    let start = self.token.start;
                    if region.blocks.is_empty() {
                        region.blocks.push(Block::default());
                    }
                    match (self.operation(), region.blocks.last_mut()) {
                        (Ok(op), Some(block)) => block.ops.push(op),
                        // A token that begins nothing must not be met again.
                        _ if self.token.start == start => {
                            self.advance();
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// `^name(%a: type, …):`.
    fn block_head(&mut self) -> Read<Block<'a>> {
        self.advance();
        let mut block = Block::default();
        if self.take_mark(b'(') {
            self.nested(|parser| {
                parser.list(b')', |parser| {
                    if parser.token.kind != Kind::Percent {
                        return parser.expected("the name of an argument, %name");
                    }
                    let (token, at) = (parser.token, parser.here());
                    parser.advance();
                    parser.mark(b':')?;
                    let ty = parser.ty()?;
                    let value = parser.new_value(ty);
                    block.arguments.push(value);
                    let name = parser.spelling(token);
                    parser.define(name, value, 1, at);
                    parser.trailing_location()
                })
            })?;
        }
        self.mark(b':')?;
        Ok(block)
    }

    fn new_value(&mut self, ty: TypeId) -> Value {
        let value = Value(self.graph.values.len() as u32);
        self.graph.values.push(ty);
        value
    }

    fn define(&mut self, name: &'a str, first: Value, count: u32, at: Offset) {
        let Some(scope) = self.scopes.last_mut() else { return };
        if scope.names.insert(name, Named { first, count, at }).is_some() {
            self.findings.push(Code::Redefinition, at, format!("{name} is defined twice"));
        }
    }

    /// Gives the results their values, and the names theirs.
    pub fn define_results(&mut self, results: &Results<'a>, types: &[TypeId]) -> Value {
        let first = Value(self.graph.values.len() as u32);
        self.graph.values.extend_from_slice(types);
        let mut next = first.0;
        for (name, count, at) in &results.names {
            self.define(name, Value(next), *count, *at);
            next = next.saturating_add(*count);
        }
        // Names without a result, which has been reported, still have a value.
        while (self.graph.values.len() as u32) < next {
            self.graph.values.push(Types::UNKNOWN);
        }
        first
    }

    /// `%name` or `%name#1`.
    pub fn operand(&mut self) -> Read<Use> {
        if self.token.kind != Kind::Percent {
            return self.expected("a value, %name");
        }
        let (token, at) = (self.token, self.here());
        self.advance();
        let name = self.spelling(token);
        let mut index = 0;
        if self.token.kind == Kind::Hash {
            let digits = self.slice(self.token.start + 1, self.token.end);
            index = match digits.parse::<u32>() {
                Ok(index) => index,
                Err(_) => return self.expected("the number of a result, #0"),
            };
            self.advance();
        }
        let Some(named) = self.lookup(name) else {
            if let Some(scope) = self.scopes.last_mut() {
                scope.pending.push(Pending { name, at });
            }
            return Ok(Use { value: Value(u32::MAX), at: Some(at) });
        };
        if index >= named.count {
            let message = format!("{name} has {} results; #{index} is none of them", named.count);
            self.findings.push(Code::UndefinedValue, at, message);
            return Ok(Use { value: Value(u32::MAX), at: Some(at) });
        }
        Ok(Use { value: Value(named.first.0 + index), at: Some(at) })
    }

    fn lookup(&self, name: &str) -> Option<Named> {
        for scope in self.scopes.iter().rev() {
            if let Some(named) = scope.names.get(name) {
                return Some(*named);
            }
            if scope.is_isolated {
                return None;
            }
        }
        None
    }

    /// Reports the uses that came before their definition, or without one.
    pub fn close_scope(&mut self) {
        let Some(mut scope) = self.scopes.pop() else { return };
        for pending in std::mem::take(&mut scope.pending) {
            // Finding the line of a definition reads the text from its beginning.
            if self.findings.is_full() {
                return;
            }
            let (name, at) = (pending.name, pending.at);
            match scope.names.get(name) {
                Some(named) => {
                    let (line, _) = line_column(self.bytes(), named.at);
                    let message = format!("{name} is used before it is defined, which is on line {line}");
                    self.findings.push(Code::UseBeforeDefinition, at, message);
                }
                None if scope.is_lenient => {}
                None => self.findings.push(Code::UndefinedValue, at, format!("{name} is not defined")),
            }
        }
    }
}
