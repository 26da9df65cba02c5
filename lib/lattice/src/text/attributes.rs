//! Attributes and dictionaries.

use super::lexer::{Kind, Token};
use super::parser::{Parser, Read};
use super::types::integer;
use crate::finding::{Code, Offset};
use crate::ir::{Attribute, Entry, Packing, TypeId};
use crate::schema::{ATTRIBUTES, PackingKind};
use std::borrow::Cow;
use std::collections::HashSet;

impl<'a> Parser<'a, '_> {
    /// `{key = value, …}`. An entry that cannot be read is reported and stands in the result as unknown.
    pub fn dictionary(&mut self) -> Read<Vec<Entry<'a>>> {
        self.mark(b'{')?;
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        self.nested(|parser| {
            if parser.take_mark(b'}') {
                return Ok(());
            }
            loop {
                let entry = match parser.entry() {
                    Ok(entry) => entry,
                    Err((stop, entry)) => {
                        parser.skip_entry().map_err(|_| stop)?;
                        entry
                    }
                };
                if let Some(entry) = entry {
                    if !keys.insert(entry.key.clone()) {
                        let message = format!("key {:?} is given twice", entry.key);
                        parser.findings.push(Code::DuplicateAttribute, entry.at, message);
                    }
                    entries.push(entry);
                }
                if parser.take_mark(b'}') {
                    return Ok(());
                }
                if !parser.take_mark(b',') {
                    // One report for a missing comma, then on with what can be read.
                    let _: Read<()> = parser.expected(", or }");
                    parser.skip_entry()?;
                    if parser.take_mark(b'}') {
                        return Ok(());
                    }
                    parser.advance();
                }
            }
        })?;
        Ok(entries)
    }

    /// A key and its value. On an error, what of it is known.
    #[allow(clippy::type_complexity, reason = "the pair of an error and what is left is used once")]
    fn entry(&mut self) -> Result<Option<Entry<'a>>, (super::parser::Stop, Option<Entry<'a>>)> {
        let at = self.here();
        if !matches!(self.token.kind, Kind::Word | Kind::Str) {
            return self.expected("a key").map_err(|stop| (stop, None));
        }
        let key = self.keyword().map_err(|stop| (stop, None))?;
        if key.is_empty() {
            return self.fail(Code::Syntax, at, "an empty key").map_err(|stop| (stop, None));
        }
        if !self.take_mark(b'=') {
            return Ok(Some(Entry { key, at: Some(at), value: Attribute::Unit }));
        }
        match self.attribute() {
            Ok(value) => Ok(Some(Entry { key, at: Some(at), value })),
            Err(stop) => Err((stop, Some(Entry { key, at: Some(at), value: Attribute::Unknown }))),
        }
    }

    /// Any attribute.
    pub fn attribute(&mut self) -> Read<Attribute<'a>> {
        match self.token.kind {
            Kind::Integer | Kind::Float | Kind::Mark(b'-') => self.number(),
            Kind::Str => {
                let text = self.string()?;
                if self.take_mark(b':') {
                    self.ty()?;
                }
                Ok(Attribute::Str(text))
            }
            Kind::Mark(b'[') => {
                self.advance();
                let mut items = Vec::new();
                self.nested(|parser| {
                    parser.list(b']', |parser| {
                        items.push(parser.attribute()?);
                        Ok(())
                    })
                })?;
                Ok(Attribute::Array(items))
            }
            Kind::Mark(b'{') => {
                let start = self.token.start;
                self.dictionary()?;
                Ok(Attribute::Other(self.slice(start, self.last).into()))
            }
            Kind::Symbol => {
                let mut leaf = self.symbol()?;
                while self.token.kind == Kind::Colons {
                    self.advance();
                    leaf = self.symbol()?;
                }
                Ok(Attribute::Symbol(leaf))
            }
            Kind::Hash => self.hash(),
            Kind::Word => self.worded(),
            Kind::Bang | Kind::Mark(b'(') => self.nested(|parser| parser.ty().map(Attribute::Type)),
            _ => self.expected("an attribute"),
        }
    }

    /// An attribute that begins with a word.
    fn worded(&mut self) -> Read<Attribute<'a>> {
        let token = self.token;
        match self.spelling(token) {
            "true" | "false" => {
                self.advance();
                let ty = self.graph.types.scalar("i1");
                Ok(Attribute::Int { value: i128::from(self.spelling(token) == "true"), ty })
            }
            "unit" => {
                self.advance();
                Ok(Attribute::Unit)
            }
            "array" => self.array(),
            "loc" => {
                self.location()?;
                Ok(Attribute::Other(self.slice(token.start, self.last).into()))
            }
            "dense" | "sparse" | "dense_resource" => {
                self.advance();
                if !self.is_mark(b'<') {
                    return self.expected("<");
                }
                self.balanced()?;
                self.mark(b':')?;
                self.nested(|parser| parser.ty().map(drop))?;
                Ok(Attribute::Other(self.slice(token.start, self.last).into()))
            }
            "affine_map" | "affine_set" | "strided" | "opaque" => {
                self.advance();
                if !self.is_mark(b'<') {
                    return self.expected("<");
                }
                self.balanced()?;
                Ok(Attribute::Other(self.slice(token.start, self.last).into()))
            }
            "distinct" => {
                self.advance();
                if !self.is_mark(b'[') {
                    return self.expected("[");
                }
                self.balanced()?;
                if self.is_mark(b'<') {
                    self.balanced()?;
                }
                Ok(Attribute::Other(self.slice(token.start, self.last).into()))
            }
            _ if self.is_type() => self.nested(|parser| parser.ty().map(Attribute::Type)),
            _ => self.expected("an attribute"),
        }
    }

    /// A signed integer, decimal or hexadecimal, without a type.
    pub fn integer(&mut self) -> Read<i128> {
        let at = self.here();
        let is_negative = self.take_mark(b'-');
        if self.token.kind != Kind::Integer {
            return self.expected("an integer");
        }
        let token = self.advance();
        self.magnitude(token, at).map(|value| if is_negative { -value } else { value })
    }

    fn magnitude(&mut self, token: Token, at: Offset) -> Read<i128> {
        let digits = self.spelling(token);
        let value = match digits.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        match value {
            Ok(value) => Ok(value),
            Err(_) => {
                self.fail(Code::NumberRange, at, format!("{} digits are more than any integer here", digits.len()))
            }
        }
    }

    /// A number and its type: `2`, `2 : i32`, `0.5 : f32`, `0x7FC00000 : f32`.
    fn number(&mut self) -> Read<Attribute<'a>> {
        let at = self.here();
        let is_negative = self.take_mark(b'-');
        let token = self.token;
        if !matches!(token.kind, Kind::Integer | Kind::Float) {
            return self.expected("a number");
        }
        self.advance();
        let ty = if self.take_mark(b':') {
            self.nested(Self::ty)?
        } else {
            self.graph.types.scalar(if token.kind == Kind::Float { "f64" } else { "i64" })
        };
        let name = self.graph.types.text(ty).to_owned();
        if token.kind == Kind::Float {
            let value = self.decimal(token, is_negative, at)?;
            return match round_to(value, &name) {
                Some(value) => Ok(Attribute::Float { value, ty }),
                None => self.fail(Code::Syntax, at, format!("a float literal of type {name}; expected a float type")),
            };
        }
        if let Some(width) = float_width(&name) {
            let value = self.bit_pattern(token, is_negative, &name, width, at)?;
            return Ok(Attribute::Float { value, ty });
        }
        let width = match (name.as_str(), integer(&name)) {
            ("index", _) => Some(("i", 64)),
            (_, found) => found,
        };
        let Some((sign, width)) = width else {
            return self.fail(Code::Syntax, at, format!("an integer literal of type {name}; expected an integer type"));
        };
        let magnitude = self.magnitude(token, at)?;
        let value = if is_negative { -magnitude } else { magnitude };
        if sign == "ui" && is_negative && magnitude != 0 || !fits(value, sign, width) {
            return self.fail(Code::NumberRange, at, format!("{value} does not fit {name}"));
        }
        Ok(Attribute::Int { value, ty })
    }

    fn decimal(&mut self, token: Token, is_negative: bool, at: Offset) -> Read<f64> {
        match self.spelling(token).parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(if is_negative { -value } else { value }),
            _ => self.fail(Code::NumberRange, at, format!("{} is beyond a 64-bit float", self.spelling(token))),
        }
    }

    /// A hexadecimal literal of a float type: its bits.
    fn bit_pattern(&mut self, token: Token, is_negative: bool, name: &str, width: u32, at: Offset) -> Read<f64> {
        let is_hex = self.spelling(token).starts_with("0x");
        if !is_hex || is_negative {
            let message =
                format!("an integer where a {name} stands; expected digits with a point, or its bits in hexadecimal");
            return self.fail(Code::Syntax, at, message);
        }
        let bits = self.magnitude(token, at)?;
        match u64::try_from(bits).ok().filter(|bits| width == 64 || *bits >> width == 0) {
            None => self.fail(Code::NumberRange, at, format!("{} has more bits than {name}", self.spelling(token))),
            Some(bits) => match from_bits(bits, name) {
                Some(value) => Ok(value),
                None => self.fail(Code::Syntax, at, format!("bits of {name} are not read; write the number")),
            },
        }
    }

    /// `array<i64: 1, 2, 3>`.
    fn array(&mut self) -> Read<Attribute<'a>> {
        let start = self.advance().start;
        self.mark(b'<')?;
        let at = self.here();
        let ty = self.nested(Self::ty)?;
        let name = self.graph.types.text(ty).to_owned();
        if integer(&name).is_none_or(|(_, width)| width != 1 && width % 8 != 0) && float_width(&name).is_none() {
            let message = format!("an array of {name}; expected whole bytes of integers or floats, or i1");
            return self.fail(Code::Syntax, at, message);
        }
        let (mut ints, mut floats) = (Vec::new(), Vec::new());
        if !self.take_mark(b'>') {
            self.mark(b':')?;
            self.nested(|parser| parser.list(b'>', |parser| parser.item(&name, &mut ints, &mut floats)))?;
        }
        Ok(match name.as_str() {
            "i64" => Attribute::I64s(ints),
            "f64" => Attribute::F64s(floats),
            _ => Attribute::Other(self.slice(start, self.last).into()),
        })
    }

    /// One element of an array.
    fn item(&mut self, name: &str, ints: &mut Vec<i64>, floats: &mut Vec<f64>) -> Read<()> {
        let at = self.here();
        if let Some(width) = float_width(name) {
            let is_negative = self.take_mark(b'-');
            let token = self.token;
            let value = match token.kind {
                Kind::Float => {
                    self.advance();
                    self.decimal(token, is_negative, at)?
                }
                Kind::Integer => {
                    self.advance();
                    self.bit_pattern(token, is_negative, name, width, at)?
                }
                _ => return self.expected("a float, digits with a point"),
            };
            floats.push(value);
            return Ok(());
        }
        let value = match self.spelling(self.token) {
            word @ ("true" | "false") if name == "i1" => {
                self.advance();
                i128::from(word == "true")
            }
            _ => self.integer()?,
        };
        let (sign, width) = integer(name).unwrap_or(("i", 64));
        if !fits(value, sign, width) {
            return self.fail(Code::NumberRange, at, format!("{value} does not fit {name}"));
        }
        if name == "i64" {
            match i64::try_from(value) {
                Ok(value) => ints.push(value),
                // MLIR wraps such a number to a negative one.
                Err(_) => {
                    return self.fail(Code::NumberRange, at, format!("{value} is beyond a signed 64-bit integer"));
                }
            }
        }
        Ok(())
    }

    /// An attribute of a dialect, or an alias.
    fn hash(&mut self) -> Read<Attribute<'a>> {
        let token = self.advance();
        let at = token.start as Offset;
        let name = self.slice(token.start + 1, token.end);
        match name.split_once('.') {
            Some(("lattice", mnemonic)) => {
                if !self.is_mark(b'<') || self.token.start != token.end {
                    let message = format!("found a space after #{name}; expected <");
                    return if self.is_mark(b'<') { self.fail(Code::Syntax, at, message) } else { self.expected("<") };
                }
                let value = self.own_attribute(mnemonic, at)?;
                self.typed(value)
            }
            Some((dialect, _)) => {
                self.fail(Code::Syntax, at, format!("dialect {dialect} is not known; expected an attribute of lattice"))
            }
            None if name == "lattice" => {
                let value = self.of_dialect("the name of an attribute", Self::own_attribute)?;
                self.typed(value)
            }
            None => match self.attributes.get(name) {
                Some(value) => match self.budget.checked_sub(value.nodes()) {
                    Some(left) => {
                        self.budget = left;
                        Ok(value.clone())
                    }
                    None => self.fail(Code::Nesting, at, "aliases that expand to far more than the text"),
                },
                None => self.fail(Code::UnknownAlias, at, format!("attribute alias #{name} is not defined")),
            },
        }
    }

    /// A type may follow an attribute of a dialect; these have no use for it.
    fn typed(&mut self, value: Attribute<'a>) -> Read<Attribute<'a>> {
        if self.take_mark(b':') {
            self.nested(Self::ty)?;
        }
        Ok(value)
    }

    fn own_attribute(&mut self, mnemonic: &str, at: Offset) -> Read<Attribute<'a>> {
        let Some(def) = ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic) else {
            let known: Vec<&str> = ATTRIBUTES.iter().map(|each| each.mnemonic).collect();
            let message = format!("attribute {mnemonic} is not one of lattice; expected {}", known.join(", "));
            return self.fail(Code::Syntax, at, message);
        };
        self.mark(b'<')?;
        self.nested(|parser| {
            let keyword = parser.keyword()?;
            if mnemonic == "packing" {
                return parser.packing(keyword).map(|packing| Attribute::Packing(Box::new(packing)));
            }
            parser.mark(b'>')?;
            Ok(Attribute::Keyword { def, keyword })
        })
    }

    /// What follows the kind of a packing: nothing where it is dense, else all three fields.
    fn packing(&mut self, kind: Cow<'a, str>) -> Read<Packing<'a>> {
        if kind == PackingKind::Dense.name() {
            self.mark(b'>')?;
            return Ok(Packing { kind, group_size: 0, scale_dtype: None, mode: "".into() });
        }
        self.mark(b',')?;
        self.field("group_size")?;
        let group_size = self.integer()?;
        self.mark(b',')?;
        self.field("scale_dtype")?;
        let scale_dtype: TypeId = self.ty()?;
        self.mark(b',')?;
        self.field("mode")?;
        let mode = self.keyword()?;
        self.mark(b'>')?;
        Ok(Packing { kind, group_size, scale_dtype: Some(scale_dtype), mode })
    }
}

/// Whether an integer literal is accepted for a type: a signless one takes either reading of its bits.
fn fits(value: i128, sign: &str, width: u64) -> bool {
    if width >= 127 {
        return true;
    }
    let (half, full) = (1i128 << (width.max(1) - 1), 1i128 << width);
    match sign {
        "si" => (-half..half).contains(&value),
        "ui" => (0..full).contains(&value),
        _ => (-half..full).contains(&value),
    }
}

/// Bits of a float type that arrays and bit patterns may have.
fn float_width(name: &str) -> Option<u32> {
    match name {
        "f16" | "bf16" => Some(16),
        "f32" => Some(32),
        "f64" => Some(64),
        _ if name.starts_with("f8") && name != "f80" => Some(8),
        _ => None,
    }
}

/// A value rounded to a float type and widened again; `None` where it is no float type.
fn round_to(value: f64, name: &str) -> Option<f64> {
    match name {
        "f32" => Some(f64::from(value as f32)),
        "f16" => Some(half::f16::from_f64(value).to_f64()),
        "bf16" => Some(half::bf16::from_f64(value).to_f64()),
        "f64" | "f80" | "f128" | "tf32" => Some(value),
        _ if name.starts_with('f') && name.get(1..2).is_some_and(|c| c.starts_with(|c: char| c.is_ascii_digit())) => {
            Some(value)
        }
        _ => None,
    }
}

/// The value that bits of a float type have.
fn from_bits(bits: u64, name: &str) -> Option<f64> {
    match name {
        "f64" => Some(f64::from_bits(bits)),
        "f32" => u32::try_from(bits).ok().map(|bits| f64::from(f32::from_bits(bits))),
        "f16" => u16::try_from(bits).ok().map(|bits| half::f16::from_bits(bits).to_f64()),
        "bf16" => u16::try_from(bits).ok().map(|bits| half::bf16::from_bits(bits).to_f64()),
        _ => None,
    }
}
