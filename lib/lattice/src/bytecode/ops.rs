//! Operations, regions and values.

use super::cursor::{Cursor, Read};
use super::tables::{OpName, Tables};
use super::{WITH_FLAGGED_ARGUMENTS, WITH_PROPERTIES, WITH_SECTIONS, WITH_USE_ORDERS, section};
use crate::finding::{Code, Findings};
use crate::ir::{Attribute, Block, Entry, Function, Graph, Name, Operation, Region, Type, TypeId, Types, Use, Value};
use crate::schema::{Class, Op, SYMBOL};
use crate::text::MAX_NESTING;

/// What an operation has, a bit each.
mod has {
    pub const ATTRIBUTES: u8 = 1;
    pub const RESULTS: u8 = 2;
    pub const OPERANDS: u8 = 4;
    pub const SUCCESSORS: u8 = 8;
    pub const REGIONS: u8 = 16;
    pub const USE_ORDERS: u8 = 32;
    pub const PROPERTIES: u8 = 64;
}

/// The properties of functions, sorted by name, and whether they may be missing.
const FUNCTION_PROPERTIES: &[(&str, bool)] = &[
    ("arg_attrs", true),
    ("function_type", false),
    ("no_inline", true),
    ("res_attrs", true),
    ("sym_name", false),
    ("sym_visibility", true),
];

const MODULE_PROPERTIES: &[(&str, bool)] = &[("sym_name", true), ("sym_visibility", true)];

/// The values of an isolated operation's regions.
#[derive(Default)]
struct Scope {
    values: Vec<Value>,
    is_defined: Vec<bool>,
}

pub(super) struct Ops<'a, 'f> {
    version: u64,
    tables: Tables<'a>,
    names: Vec<OpName>,
    properties: Vec<Cursor<'a>>,
    findings: &'f mut Findings,
    values: Vec<TypeId>,
    scopes: Vec<Scope>,
    /// Number of the next value in each open region.
    next: Vec<usize>,
    depth: usize,
}

impl<'a, 'f> Ops<'a, 'f> {
    pub fn new(
        version: u64,
        tables: Tables<'a>,
        names: Vec<OpName>,
        properties: Vec<Cursor<'a>>,
        findings: &'f mut Findings,
    ) -> Self {
        Ops {
            version,
            tables,
            names,
            properties,
            findings,
            values: Vec::new(),
            scopes: Vec::new(),
            next: Vec::new(),
            depth: 0,
        }
    }

    /// The operations at the top of the file.
    pub fn file(mut self, mut content: Cursor<'a>) -> Read<Graph<'a>> {
        self.scopes.push(Scope::default());
        self.next.push(0);
        let block = self.block(&mut content)?;
        if !content.is_empty() {
            return content.wrong("bytes after the last operation");
        }
        Ok(Graph { types: self.tables.types, values: self.values, ops: block.ops })
    }

    fn block(&mut self, from: &mut Cursor<'a>) -> Read<Block<'a>> {
        let (count, has_arguments) = from.flagged()?;
        let mut block = Block::default();
        if has_arguments {
            let count = from.count()?;
            let mut types = Vec::with_capacity(count);
            for _ in 0..count {
                let (index, has_location) = match self.version {
                    0..WITH_FLAGGED_ARGUMENTS => (from.varint()?, true),
                    _ => from.flagged()?,
                };
                types.push(self.tables.ty(from, index)?);
                if has_location {
                    from.varint()?;
                }
            }
            let first = self.define(from, &types)?;
            block.arguments = (first.0..).take(types.len()).map(Value).collect();
            if self.version >= WITH_USE_ORDERS && from.byte()? != 0 {
                use_orders(from, types.len())?;
            }
        }
        if count > from.len() as u64 {
            return from.wrong(format!("{count} operations in {} bytes", from.len()));
        }
        for _ in 0..count {
            let op = self.operation(from)?;
            block.ops.push(op);
        }
        Ok(block)
    }

    fn operation(&mut self, from: &mut Cursor<'a>) -> Read<Operation<'a>> {
        let at = from.varint()?;
        let Some(name) = usize::try_from(at).ok().and_then(|at| self.names.get(at)) else {
            return from.wrong(format!("operation name {at} of {}", self.names.len()));
        };
        let (text, is_registered) = (name.name.clone(), name.is_registered);
        let mask = from.byte()?;
        // The location, which nothing here uses.
        from.varint()?;
        let mut attributes = Vec::new();
        if mask & has::ATTRIBUTES != 0 {
            let index = from.varint()?;
            attributes = self.tables.dictionary(from, index)?;
        }
        let name = self.name(&text);
        if mask & has::PROPERTIES != 0 {
            if self.version < WITH_PROPERTIES {
                return from.wrong(format!("properties in version {}", self.version));
            }
            let index = from.varint()?;
            let Some(data) = usize::try_from(index).ok().and_then(|index| self.properties.get(index)).copied() else {
                return from.wrong(format!("properties {index} of {}", self.properties.len()));
            };
            attributes.extend(self.own_properties(&name, is_registered, data)?);
        }
        let mut types = Vec::new();
        if mask & has::RESULTS != 0 {
            let count = from.count()?;
            for _ in 0..count {
                types.push(self.tables.next_type(from)?);
            }
        }
        let mut operands = Vec::new();
        if mask & has::OPERANDS != 0 {
            let count = from.count()?;
            for _ in 0..count {
                operands.push(self.operand(from, &text)?);
            }
        }
        if mask & has::SUCCESSORS != 0 {
            for _ in 0..from.count()? {
                from.varint()?;
            }
            self.findings.push(
                Code::EntryBody,
                None,
                format!("{text}: an operation with successors; a graph has none"),
            );
        }
        if self.version >= WITH_USE_ORDERS && mask & has::USE_ORDERS != 0 {
            use_orders(from, types.len())?;
        }
        let regions = if mask & has::REGIONS != 0 { Some(from.flagged()?) } else { None };
        let first_result = self.define(from, &types)?;
        let regions = match regions {
            Some((count, is_isolated)) => self.regions(from, count, is_isolated)?,
            None => Vec::new(),
        };
        let results = types.len() as u32;
        let mut op = Operation { operands, first_result, results, attributes, regions, ..Operation::named(name) };
        if op.name == Name::Function {
            op.function = Some(Box::new(self.function(from, &op)?));
        }
        Ok(op)
    }

    fn name(&mut self, text: &str) -> Name<'a> {
        match text {
            "builtin.module" => Name::Module,
            "func.func" => Name::Function,
            "func.return" => Name::Return,
            _ => match Op::parse_full(text) {
                Some(op) => Name::Own(op),
                None => {
                    let message = format!("{text}; a graph holds only operations of lattice and func.return");
                    self.findings.push(Code::ForeignOp, None, message);
                    Name::Foreign(text.to_owned().into())
                }
            },
        }
    }

    /// The attributes that an operation keeps as properties.
    fn own_properties(&mut self, name: &Name<'a>, is_registered: bool, mut data: Cursor<'a>) -> Read<Vec<Entry<'a>>> {
        if !is_registered {
            let index = data.varint()?;
            return self.tables.dictionary(&data, index);
        }
        let own: Vec<(&'static str, bool)>;
        let keys = match name {
            Name::Function => FUNCTION_PROPERTIES,
            Name::Module => MODULE_PROPERTIES,
            Name::Own(op) => {
                let def = op.def();
                let symbol = def.operands.iter().any(|each| each.class == Class::Symbol).then_some(SYMBOL);
                let mut keys: Vec<&str> = def.attributes.iter().map(|field| field.name).chain(symbol).collect();
                keys.sort_unstable();
                own = keys.into_iter().map(|key| (key, false)).collect();
                &own
            }
            // What another operation keeps cannot be known, and it is refused anyway.
            _ => return Ok(Vec::new()),
        };
        let mut entries = Vec::with_capacity(keys.len());
        for (key, is_optional) in keys {
            let (index, is_there) = match is_optional {
                true => data.flagged()?,
                false => (data.varint()?, true),
            };
            if is_there {
                let value = self.tables.attribute(&data, index)?;
                entries.push(Entry { key: (*key).into(), at: None, value });
            }
        }
        if data.is_empty() { Ok(entries) } else { data.wrong(format!("more properties than {} has", name.text())) }
    }

    fn operand(&mut self, from: &mut Cursor<'a>, name: &str) -> Read<Use> {
        let index = from.varint()?;
        let scope = self.scopes.last();
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let found = scope.and_then(|scope| scope.values.get(place).zip(scope.is_defined.get(place)));
        match found {
            Some((value, true)) => Ok(Use { value: *value, at: None }),
            Some((value, false)) => {
                let message = format!("{name}: an operand is used before it is defined");
                self.findings.push(Code::UseBeforeDefinition, None, message);
                Ok(Use { value: *value, at: None })
            }
            None => from.wrong(format!("value {index} of {}", scope.map_or(0, |scope| scope.values.len()))),
        }
    }

    /// Gives the next values of the open region their types.
    fn define(&mut self, from: &Cursor<'a>, types: &[TypeId]) -> Read<Value> {
        let (Some(next), Some(scope)) = (self.next.last_mut(), self.scopes.last_mut()) else {
            return from.wrong("a value outside every region");
        };
        // Values at the top of the file have no numbers: nothing can use them.
        if self.depth == 0 {
            let first = Value(self.values.len() as u32);
            self.values.extend_from_slice(types);
            return Ok(first);
        }
        let first = scope.values.get(*next).copied().unwrap_or(Value(self.values.len() as u32));
        for ty in types {
            match (scope.values.get(*next), scope.is_defined.get_mut(*next)) {
                (Some(value), Some(is_defined)) => {
                    *is_defined = true;
                    if let Some(slot) = self.values.get_mut(value.0 as usize) {
                        *slot = *ty;
                    }
                }
                _ => return from.wrong("more values than their region says"),
            }
            *next += 1;
        }
        Ok(first)
    }

    fn regions(&mut self, from: &mut Cursor<'a>, count: u64, is_isolated: bool) -> Read<Vec<Region<'a>>> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return from.wrong(format!("regions nested deeper than {MAX_NESTING}"));
        }
        let mut regions = Vec::new();
        if is_isolated {
            self.scopes.push(Scope::default());
        }
        if is_isolated && self.version >= WITH_SECTIONS && count > 0 {
            let (id, mut content) = from.section()?;
            if id != section::IR {
                return from.wrong("the section of an operation's regions is expected here");
            }
            for _ in 0..count {
                regions.push(self.region(&mut content)?);
            }
            if !content.is_empty() {
                return content.wrong("bytes after the last region");
            }
        } else {
            for _ in 0..count {
                regions.push(self.region(from)?);
            }
        }
        if is_isolated {
            self.scopes.pop();
        }
        self.depth -= 1;
        Ok(regions)
    }

    fn region(&mut self, from: &mut Cursor<'a>) -> Read<Region<'a>> {
        let mut region = Region::default();
        let blocks = from.count()?;
        if blocks == 0 {
            return Ok(region);
        }
        let count = from.count()?;
        let first = self.values.len();
        self.values.resize(first + count, Types::UNKNOWN);
        let Some(scope) = self.scopes.last_mut() else { return from.wrong("a region outside every scope") };
        let before = scope.values.len();
        scope.values.extend((first..first + count).map(|at| Value(at as u32)));
        scope.is_defined.resize(before + count, false);
        self.next.push(before);
        for _ in 0..blocks {
            region.blocks.push(self.block(from)?);
        }
        self.next.pop();
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.truncate(before);
            scope.is_defined.truncate(before);
        }
        Ok(region)
    }

    /// The signature of a function, from its attributes.
    fn function(&self, from: &Cursor<'a>, op: &Operation<'a>) -> Read<Function> {
        let name = match op.attribute("sym_name").map(|entry| &entry.value) {
            Some(Attribute::Str(name)) => name.to_string(),
            _ => return from.wrong("a function without its name"),
        };
        let ty = match op.attribute("function_type").map(|entry| &entry.value) {
            Some(Attribute::Type(ty)) => self.tables.types.get(*ty),
            _ => return from.wrong("a function without its type"),
        };
        match ty {
            Type::Function { arguments, results } => {
                Ok(Function { name, arguments: arguments.to_vec(), results: results.to_vec(), is_broken: false })
            }
            _ => from.wrong("a function whose type is none of a function"),
        }
    }
}

/// Passes over the orders of uses of some values.
fn use_orders(from: &mut Cursor<'_>, values: usize) -> Read<()> {
    let count = if values > 1 { from.count()? } else { 1 };
    for _ in 0..count {
        if values > 1 {
            from.varint()?;
        }
        let (indices, _) = from.flagged()?;
        if indices > from.len() as u64 {
            return from.wrong(format!("{indices} entries in {} bytes", from.len()));
        }
        for _ in 0..indices {
            from.varint()?;
        }
    }
    Ok(())
}
