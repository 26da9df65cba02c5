//! Operations in generic and pretty form, modules, and what stands at the top of a file.

use super::lexer::Kind;
use super::parser::{Parser, Read, Scope, Stop};
use crate::finding::{Code, Offset};
use crate::ir::{Attribute, Entry, Graph, Name, Operation, TypeId, Types};
use crate::schema::{Assembly, Op};

/// Most results that one operation may name.
const MAX_RESULTS: u32 = 1 << 16;

/// What stands before the name of an operation: the names of its results.
pub(super) struct Results<'a> {
    pub names: Vec<(&'a str, u32, Offset)>,
}

impl Results<'_> {
    pub fn count(&self) -> u32 {
        self.names.iter().map(|(_, count, _)| *count).fold(0, u32::saturating_add)
    }
}

/// An operation whose types are still to come.
pub(super) struct Draft<'a> {
    pub op: Operation<'a>,
    /// The types that the text gives operands and results, once it has.
    pub types: Option<(Vec<TypeId>, Vec<TypeId>)>,
}

impl<'a> Draft<'a> {
    fn new(name: Name<'a>, at: Offset) -> Self {
        Draft { op: Operation { at: Some(at), ..Operation::named(name) }, types: None }
    }
}

impl<'a> Parser<'a, '_> {
    /// The whole text.
    pub fn file(mut self) -> Graph<'a> {
        self.scopes.push(Scope { is_isolated: true, ..Scope::default() });
        while self.token.kind != Kind::End && !self.findings.is_full() {
            let start = self.token.start;
            let done = match self.token.kind {
                Kind::Hash | Kind::Bang => self.alias(),
                Kind::Mark(b'{') if self.slice(start, start + 3) == "{-#" => self.metadata(),
                _ => match self.operation() {
                    Ok(op) => {
                        self.graph.ops.push(op);
                        Ok(())
                    }
                    Err(stop) => Err(stop),
                },
            };
            if done.is_err() {
                self.skip_operation(start);
                if self.is_mark(b'}') {
                    self.advance();
                }
            }
        }
        self.close_scope();
        for (name, at) in std::mem::take(&mut self.locations) {
            if !self.attributes.contains_key(name) {
                self.findings.push(Code::UnknownAlias, at, format!("location alias #{name} is not defined"));
            }
        }
        if let Some(count) = self.over {
            self.findings.truncate(count);
        }
        self.graph
    }

    /// `!name = type` or `#name = attribute`.
    fn alias(&mut self) -> Read<()> {
        let token = self.advance();
        let at = token.start as Offset;
        let name = self.slice(token.start + 1, token.end);
        if name.contains('.') {
            return self.fail(Code::Syntax, at, format!("alias {name} has a point; those names belong to dialects"));
        }
        let is_type = token.kind == Kind::Bang;
        let is_known = if is_type { self.types.contains_key(name) } else { self.attributes.contains_key(name) };
        if is_known {
            return self.fail(Code::Redefinition, at, format!("alias {name} is defined twice"));
        }
        self.mark(b'=')?;
        if is_type {
            let ty = self.ty().unwrap_or(Types::UNKNOWN);
            self.types.insert(name, ty);
            if ty == Types::UNKNOWN { Err(Stop) } else { Ok(()) }
        } else {
            let value = self.attribute();
            let done = value.as_ref().map(drop).map_err(|stop| *stop);
            self.attributes.insert(name, value.unwrap_or(Attribute::Unknown));
            done
        }
    }

    /// `{-# … #-}`, which holds resources that no operation here uses.
    fn metadata(&mut self) -> Read<()> {
        let start = self.token.start;
        match self.text.get(start..).and_then(|rest| rest.find("#-}")) {
            Some(length) => {
                self.jump(start + length + 3);
                Ok(())
            }
            None => self.fail(Code::Syntax, start as Offset, "{-# is not closed by #-}"),
        }
    }

    /// An operation. An error within it gives a broken one where its name is known.
    pub fn operation(&mut self) -> Read<Operation<'a>> {
        let start = self.token.start;
        let mut results = Results { names: Vec::new() };
        let mut draft = None;
        let done = self.operation_parts(&mut results, &mut draft);
        let is_broken = done.is_err();
        if is_broken {
            self.skip_operation(start);
        }
        let Some(mut draft) = draft else {
            let unknown = vec![Types::UNKNOWN; results.count() as usize];
            self.define_results(&results, &unknown);
            return Err(Stop);
        };
        draft.op.is_broken |= is_broken;
        let found = match draft.types.take().filter(|_| !is_broken) {
            Some((operands, found)) => {
                self.compare_types(&draft.op, &operands);
                found
            }
            None => vec![Types::UNKNOWN; results.count() as usize],
        };
        draft.op.results = found.len() as u32;
        draft.op.first_result = self.define_results(&results, &found);
        if !results.names.is_empty() && results.count() as usize != found.len() {
            let (named, given) = (results.count(), found.len());
            let name = draft.op.name.text().into_owned();
            let message = format!("{name}: {named} results are named and it gives {given}");
            self.findings.push(Code::ResultCount, draft.op.at, message);
            draft.op.is_broken = true;
        }
        Ok(draft.op)
    }

    fn operation_parts(&mut self, results: &mut Results<'a>, draft: &mut Option<Draft<'a>>) -> Read<()> {
        if self.token.kind == Kind::Percent {
            loop {
                if self.token.kind != Kind::Percent {
                    return self.expected("the name of a result, %name");
                }
                let (token, at) = (self.token, self.here());
                self.advance();
                let mut count = 1;
                if self.take_mark(b':') {
                    let at = self.here();
                    let value = self.integer()?;
                    count = match u32::try_from(value).ok().filter(|n| (1..=MAX_RESULTS).contains(n)) {
                        Some(count) => count,
                        None => {
                            return self.fail(Code::NumberRange, at, format!("{value} results; expected 1 or more"));
                        }
                    };
                }
                results.names.push((self.spelling(token), count, at));
                if !self.take_mark(b',') {
                    break;
                }
            }
            self.mark(b'=')?;
        }
        let at = self.here();
        match self.token.kind {
            Kind::Str => self.generic(draft, at),
            Kind::Word => self.pretty(draft, at),
            _ => self.expected("an operation"),
        }?;
        self.trailing_location()
    }

    fn generic(&mut self, slot: &mut Option<Draft<'a>>, at: Offset) -> Read<()> {
        let name = self.string()?;
        let name = match name.as_ref() {
            "builtin.module" => Name::Module,
            "func.func" => Name::Function,
            "func.return" => Name::Return,
            other => match Op::parse_full(other) {
                Some(op) => Name::Own(op),
                None => {
                    self.findings.push(Code::ForeignOp, at, foreign(other));
                    Name::Foreign(name)
                }
            },
        };
        let is_isolated = matches!(name, Name::Module | Name::Function);
        let draft = slot.insert(Draft::new(name, at));
        self.mark(b'(')?;
        self.nested(|parser| {
            parser.list(b')', |parser| {
                draft.op.operands.push(parser.operand()?);
                Ok(())
            })
        })?;
        if self.is_mark(b'[') {
            let at = self.here();
            self.balanced()?;
            self.findings.push(Code::EntryBody, at, "an operation with successors; a graph has none");
        }
        if self.is_mark(b'<') {
            let at = self.here();
            self.advance();
            draft.op.attributes = self.nested(Self::dictionary)?;
            self.mark(b'>')?;
            if let Name::Own(op) = &draft.op.name
                && op.def().attributes.is_empty()
            {
                let message = format!("<{{…}}> on {}, which has no attributes of its own", draft.op.name.text());
                self.findings.push(Code::Syntax, at, message);
            }
        }
        if self.take_mark(b'(') {
            self.nested(|parser| {
                parser.list(b')', |parser| {
                    let region = parser.region(is_isolated, None)?;
                    draft.op.regions.push(region);
                    Ok(())
                })
            })?;
        }
        if self.is_mark(b'{') {
            self.add_attributes(&mut draft.op)?;
        }
        self.mark(b':')?;
        draft.types = Some(self.nested(Self::signature)?);
        if draft.op.name == Name::Function {
            draft.op.function = Some(Box::new(self.generic_function(&draft.op)));
        }
        Ok(())
    }

    /// Adds a dictionary to what an operation has already.
    fn add_attributes(&mut self, op: &mut Operation<'a>) -> Read<()> {
        let before = op.attributes.len();
        for entry in self.dictionary()? {
            if op.attributes.iter().take(before).any(|each| each.key == entry.key) {
                let message = format!("key {:?} is given twice", entry.key);
                self.findings.push(Code::DuplicateAttribute, entry.at, message);
            }
            op.attributes.push(entry);
        }
        Ok(())
    }

    fn pretty(&mut self, slot: &mut Option<Draft<'a>>, at: Offset) -> Read<()> {
        let token = self.advance();
        match self.spelling(token) {
            "module" | "builtin.module" => self.module(slot.insert(Draft::new(Name::Module, at))),
            "func.func" => self.function(slot.insert(Draft::new(Name::Function, at))),
            "return" | "func.return" => self.returned(slot.insert(Draft::new(Name::Return, at))),
            other => match Op::parse_full(other) {
                Some(op) => {
                    let draft = slot.insert(Draft::new(Name::Own(op), at));
                    match op.def().assembly {
                        Assembly::Weight => self.weight(draft),
                        Assembly::Decompose => self.decompose(draft),
                        Assembly::Functional => self.functional(draft),
                    }
                }
                None => {
                    *slot = Some(Draft::new(Name::Foreign(other.into()), at));
                    self.fail(Code::ForeignOp, at, foreign(other))
                }
            },
        }
    }

    /// `[@name] [attributes {…}] {…}`.
    fn module(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        if self.token.kind == Kind::Symbol {
            let at = self.here();
            let name = self.symbol()?;
            draft.op.attributes.push(Entry { key: "sym_name".into(), at: Some(at), value: Attribute::Str(name) });
        }
        if self.take_word("attributes") {
            self.add_attributes(&mut draft.op)?;
        }
        let region = self.nested(|parser| parser.region(true, None))?;
        draft.op.regions.push(region);
        draft.types = Some(Default::default());
        Ok(())
    }

    /// `%a, %b : types`.
    fn returned(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        if self.is_mark(b'{') {
            draft.op.attributes = self.dictionary()?;
        }
        if self.token.kind != Kind::Percent {
            draft.types = Some(Default::default());
            return Ok(());
        }
        self.operands(draft)?;
        self.mark(b':')?;
        let mut types = vec![self.ty()?];
        while self.take_mark(b',') {
            types.push(self.ty()?);
        }
        draft.types = Some((types, Vec::new()));
        Ok(())
    }

    /// `@symbol {…} : type`.
    fn weight(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        let at = self.here();
        let name = self.symbol()?;
        if self.token.kind == Kind::Colons {
            return self.fail(Code::Syntax, at, "a nested symbol; expected one name, @name");
        }
        draft.op.attributes.push(Entry { key: "sym_name".into(), at: Some(at), value: Attribute::Str(name) });
        self.attribute_dictionary(draft)?;
        self.mark(b':')?;
        let ty = if self.is_mark(b'<') { self.weight_type()? } else { self.ty()? };
        draft.types = Some((Vec::new(), vec![ty]));
        Ok(())
    }

    /// `%x {…} : type -> (types)`.
    fn decompose(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        let operand = self.operand()?;
        draft.op.operands.push(operand);
        self.attribute_dictionary(draft)?;
        self.mark(b':')?;
        let ty = if self.is_mark(b'<') { self.sparse_type()? } else { self.ty()? };
        self.arrow()?;
        let results = self.type_list()?;
        draft.types = Some((vec![ty], results));
        Ok(())
    }

    /// `%a, %b {…} : (types) -> type`.
    fn functional(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        self.operands(draft)?;
        self.attribute_dictionary(draft)?;
        self.mark(b':')?;
        draft.types = Some(self.signature()?);
        Ok(())
    }

    fn operands(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        loop {
            let operand = self.operand()?;
            draft.op.operands.push(operand);
            if !self.take_mark(b',') {
                return Ok(());
            }
        }
    }

    fn attribute_dictionary(&mut self, draft: &mut Draft<'a>) -> Read<()> {
        if self.is_mark(b'{') {
            self.add_attributes(&mut draft.op)?;
        }
        Ok(())
    }

    /// Compares the types that an operation's text gives its operands with those that they have.
    fn compare_types(&mut self, op: &Operation<'a>, types: &[TypeId]) {
        if matches!(op.name, Name::Module | Name::Function) {
            return;
        }
        if op.operands.len() != types.len() {
            let (given, typed) = (op.operands.len(), types.len());
            let message = format!("{}: {given} operands and {typed} types; expected one for each", op.name.text());
            self.findings.push(Code::OperandCount, op.at, message);
            return;
        }
        for (operand, ty) in op.operands.iter().zip(types) {
            let found = self.graph.type_of(operand.value);
            if found != *ty && found != Types::UNKNOWN && *ty != Types::UNKNOWN {
                let (said, is) = (self.graph.types.text(*ty), self.graph.types.text(found));
                let message = format!("{}: an operand is said to be {said}; it is {is}", op.name.text());
                self.findings.push(Code::ValueType, operand.at, message);
            }
        }
    }
}

fn foreign(name: &str) -> String {
    if let Some(own) = name.strip_prefix("lattice.") {
        let near =
            crate::schema::OPS.iter().map(|each| each.name).find(|each| each.contains(own) || own.contains(each));
        let hint = near.map(|near| format!("; there is lattice.{near}")).unwrap_or_default();
        return format!("{name} is not an operation of IR version 2{hint}");
    }
    format!("{name}; a graph holds only operations of lattice and func.return")
}
