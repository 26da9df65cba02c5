//! Types.

use super::lexer::Kind;
use super::parser::{Parser, Read, after_blank};
use crate::finding::{Code, Offset};
use crate::ir::{Type, TypeId};

/// Widest integer type that MLIR knows.
const MAX_WIDTH: u64 = (1 << 24) - 1;

/// Types by name alone.
const SCALARS: &[&str] = &[
    "index",
    "none",
    "f16",
    "bf16",
    "tf32",
    "f32",
    "f64",
    "f80",
    "f128",
    "f4E2M1FN",
    "f6E2M3FN",
    "f6E3M2FN",
    "f8E3M4",
    "f8E4M3",
    "f8E4M3B11FNUZ",
    "f8E4M3FN",
    "f8E4M3FNUZ",
    "f8E5M2",
    "f8E5M2FNUZ",
    "f8E8M0FNU",
];

/// Sign and width of `i32`, `si8`, `ui16`.
pub(crate) fn integer(name: &str) -> Option<(&str, u64)> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let sign = name.strip_suffix(digits).filter(|sign| matches!(*sign, "i" | "si" | "ui"))?;
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    Some((sign, digits.parse().ok().filter(|_| is_plain)?))
}

impl<'a> Parser<'a, '_> {
    /// Whether a type may begin here.
    pub fn is_type(&self) -> bool {
        match self.token.kind {
            Kind::Bang | Kind::Mark(b'(') => true,
            Kind::Word => {
                let name = self.spelling(self.token);
                SCALARS.contains(&name)
                    || integer(name).is_some()
                    || matches!(name, "tensor" | "vector" | "memref" | "complex" | "tuple")
            }
            _ => false,
        }
    }

    /// Any type.
    pub fn ty(&mut self) -> Read<TypeId> {
        match self.token.kind {
            Kind::Mark(b'(') => {
                let (arguments, results) = self.nested(Self::signature)?;
                let (arguments, results) = (arguments.into(), results.into());
                Ok(self.graph.types.intern(Type::Function { arguments, results }))
            }
            Kind::Bang => self.bang(),
            Kind::Word => self.builtin(),
            _ => self.expected("a type"),
        }
    }

    /// `(types) -> type` or `(types) -> (types)`.
    pub fn signature(&mut self) -> Read<(Vec<TypeId>, Vec<TypeId>)> {
        let operands = self.type_list()?;
        self.arrow()?;
        let results = if self.is_mark(b'(') { self.type_list()? } else { vec![self.ty()?] };
        Ok((operands, results))
    }

    /// `(types)`.
    pub fn type_list(&mut self) -> Read<Vec<TypeId>> {
        self.mark(b'(')?;
        let mut types = Vec::new();
        self.nested(|parser| {
            parser.list(b')', |parser| {
                types.push(parser.ty()?);
                Ok(())
            })
        })?;
        Ok(types)
    }

    fn builtin(&mut self) -> Read<TypeId> {
        let token = self.token;
        let name = self.spelling(token);
        let at = self.here();
        if SCALARS.contains(&name) {
            self.advance();
            return Ok(self.graph.types.scalar(name));
        }
        if let Some((_, width)) = integer(name) {
            self.advance();
            if width > MAX_WIDTH {
                return self.fail(Code::NumberRange, at, format!("type {name} is wider than {MAX_WIDTH} bits"));
            }
            return Ok(self.graph.types.scalar(name));
        }
        match name {
            "tensor" => {
                self.advance();
                self.mark(b'<')?;
                self.nested(Self::tensor)
            }
            "vector" | "memref" | "complex" | "tuple" => {
                self.advance();
                if !self.is_mark(b'<') {
                    return self.expected("<");
                }
                self.balanced()?;
                let text = self.slice(token.start, self.last);
                Ok(self.graph.types.intern(Type::Other(text.into())))
            }
            _ => self.expected("a type"),
        }
    }

    /// What follows `tensor<`.
    fn tensor(&mut self) -> Read<TypeId> {
        let shape = if self.take_mark(b'*') {
            self.times()?;
            None
        } else {
            let mut sizes = Vec::new();
            while let Some(size) = self.size()? {
                sizes.push(size);
                self.times()?;
            }
            Some(sizes.into_boxed_slice())
        };
        let at = self.here();
        let element = self.ty()?;
        let text = self.graph.types.text(element);
        if text.starts_with("tensor") || text.starts_with("memref") || text.starts_with("tuple") || text == "none" {
            let message =
                format!("a tensor has no element {text}; expected an integer, a float or a type of a dialect");
            return self.fail(Code::Syntax, at, message);
        }
        let encoding = if self.take_mark(b',') {
            let start = self.token.start;
            self.attribute()?;
            Some(self.slice(start, self.last).into())
        } else {
            None
        };
        self.mark(b'>')?;
        Ok(self.graph.types.intern(Type::Tensor { shape, element, encoding }))
    }

    /// A size, `?` or decimal digits; nothing where the element begins.
    fn size(&mut self) -> Read<Option<Option<u64>>> {
        if self.is_mark(b'?') {
            self.advance();
            return Ok(Some(None));
        }
        if self.token.kind != Kind::Integer {
            return Ok(None);
        }
        // `0x4` is a hexadecimal number elsewhere; here it is a size, the sign of a product, and a size.
        let start = self.token.start;
        let rest = self.bytes().get(start..).unwrap_or_default();
        let end = start + rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let digits = self.slice(start, end);
        match digits.parse::<i64>() {
            Ok(size) => {
                self.jump(end);
                Ok(Some(Some(size.unsigned_abs())))
            }
            Err(_) => self.fail(Code::NumberRange, start as Offset, format!("size {digits} is beyond 64 bits")),
        }
    }

    /// The `x` after a size. What follows may be glued to it.
    fn times(&mut self) -> Read<()> {
        let at = after_blank(self.text, self.last);
        if self.bytes().get(at) != Some(&b'x') {
            return self.expected("x");
        }
        self.jump(at + 1);
        Ok(())
    }

    /// A type of a dialect, or an alias.
    fn bang(&mut self) -> Read<TypeId> {
        let token = self.advance();
        let at = token.start as Offset;
        let name = self.slice(token.start + 1, token.end);
        match name.split_once('.') {
            Some(("lattice", mnemonic)) => {
                // MLIR wants the bracket right behind the name.
                if !self.is_mark(b'<') || self.token.start != token.end {
                    let message = format!("found a space after !{name}; expected <");
                    return if self.is_mark(b'<') { self.fail(Code::Syntax, at, message) } else { self.expected("<") };
                }
                self.own_type(mnemonic, at)
            }
            Some((dialect, _)) => {
                self.fail(Code::Syntax, at, format!("dialect {dialect} is not known; expected a type of lattice"))
            }
            None if name == "lattice" => self.of_dialect("sparse_tensor or weight", Self::own_type),
            None => match self.types.get(name) {
                Some(ty) => Ok(*ty),
                None => self.fail(Code::UnknownAlias, at, format!("type alias !{name} is not defined")),
            },
        }
    }

    fn own_type(&mut self, mnemonic: &str, at: Offset) -> Read<TypeId> {
        match mnemonic {
            "sparse_tensor" => self.sparse_type(),
            "weight" => self.weight_type(),
            _ => {
                let message = format!("type {mnemonic} is not one of lattice; expected sparse_tensor or weight");
                self.fail(Code::Syntax, at, message)
            }
        }
    }

    /// `<rank = 3, coord = …, feature = …, dtype = …>`.
    pub fn sparse_type(&mut self) -> Read<TypeId> {
        self.mark(b'<')?;
        self.nested(|parser| {
            parser.field("rank")?;
            let at = parser.here();
            let rank = parser.integer()?;
            let Some(rank) = u32::try_from(rank).ok() else {
                return parser.fail(Code::NumberRange, at, format!("rank {rank}; expected 3"));
            };
            parser.mark(b',')?;
            parser.field("coord")?;
            let coord = parser.keyword()?;
            parser.mark(b',')?;
            parser.field("feature")?;
            let feature = parser.keyword()?;
            parser.mark(b',')?;
            parser.field("dtype")?;
            let dtype = parser.ty()?;
            parser.mark(b'>')?;
            let (coord, feature) = (coord.as_ref().into(), feature.as_ref().into());
            Ok(parser.graph.types.intern(Type::Sparse { rank: rank.into(), coord, feature, dtype }))
        })
    }

    /// `<family, dtype>`.
    pub fn weight_type(&mut self) -> Read<TypeId> {
        self.mark(b'<')?;
        self.nested(|parser| {
            let family = parser.keyword()?;
            parser.mark(b',')?;
            let dtype = parser.ty()?;
            parser.mark(b'>')?;
            Ok(parser.graph.types.intern(Type::Weight { family: family.as_ref().into(), dtype }))
        })
    }

    /// `name =`.
    pub fn field(&mut self, name: &str) -> Read<()> {
        self.word(name)?;
        self.mark(b'=')
    }
}
