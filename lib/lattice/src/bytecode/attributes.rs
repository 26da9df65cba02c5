//! Types and attributes by number.

use super::cursor::{Cursor, Read};
use super::tables::Tables;
use crate::ir::{Attribute, Entry, Type, TypeId};
use crate::text::{self, MAX_NESTING};
use std::borrow::Cow;

impl<'a> Tables<'a> {
    /// The string of a number.
    fn string(&self, from: &mut Cursor<'a>) -> Read<&'a str> {
        let index = from.varint()?;
        match usize::try_from(index).ok().and_then(|index| self.strings.get(index)) {
            Some(text) => Ok(text),
            None => from.wrong(format!("string {index} of {}", self.strings.len())),
        }
    }

    fn deeper(&mut self, from: &Cursor<'a>) -> Read<()> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return from.wrong(format!("types or attributes nested deeper than {MAX_NESTING}"));
        }
        Ok(())
    }

    /// The type whose number comes next.
    pub fn next_type(&mut self, from: &mut Cursor<'a>) -> Read<TypeId> {
        let index = from.varint()?;
        self.ty(from, index)
    }

    /// A type by number.
    pub fn ty(&mut self, from: &Cursor<'a>, index: u64) -> Read<TypeId> {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        if let Some(Some(ty)) = self.read_types.get(place) {
            return Ok(*ty);
        }
        let Some(entry) = self.entries.types.get(place).copied() else {
            return from.wrong(format!("type {index} of {}", self.entries.types.len()));
        };
        self.deeper(from)?;
        let mut data = entry.data;
        let ty = if !entry.is_encoded {
            let text = data.terminated()?;
            match text::ty(text, &mut self.types) {
                Some(ty) => ty,
                None => return entry.data.wrong(format!("{text:?} is no type that is known here")),
            }
        } else if entry.is_builtin {
            self.builtin_type(&mut data)?
        } else {
            return entry.data.wrong("a type in the encoding of another dialect");
        };
        self.depth -= 1;
        if let Some(slot) = self.read_types.get_mut(place) {
            *slot = Some(ty);
        }
        Ok(ty)
    }

    fn types_of(&mut self, data: &mut Cursor<'a>) -> Read<Box<[TypeId]>> {
        let count = data.count()?;
        (0..count).map(|_| self.next_type(data)).collect()
    }

    fn builtin_type(&mut self, data: &mut Cursor<'a>) -> Read<TypeId> {
        let code = data.varint()?;
        let name = match code {
            0 => {
                let value = data.varint()?;
                let sign = ["i", "si", "ui"].get((value & 3) as usize).copied().unwrap_or("i");
                let width = value >> 2;
                if width == 0 || width >= 1 << 24 {
                    return data.wrong(format!("an integer type of {width} bits"));
                }
                return Ok(self.types.scalar(&format!("{sign}{width}")));
            }
            1 => "index",
            2 => {
                let arguments = self.types_of(data)?;
                let results = self.types_of(data)?;
                return Ok(self.types.intern(Type::Function { arguments, results }));
            }
            3 => "bf16",
            4 => "f16",
            5 => "f32",
            6 => "f64",
            7 => "f80",
            8 => "f128",
            12 => "none",
            13 | 14 => return self.tensor(data, code == 14),
            18 => {
                let element = self.next_type(data)?;
                return Ok(self.types.intern(Type::Tensor { shape: None, element, encoding: None }));
            }
            9 => return Ok(self.types.intern(Type::Other("complex<…>".into()))),
            10 | 11 | 16 | 17 => return Ok(self.types.intern(Type::Other("memref<…>".into()))),
            15 => return Ok(self.types.intern(Type::Other("tuple<…>".into()))),
            19 | 20 => return Ok(self.types.intern(Type::Other("vector<…>".into()))),
            _ => return data.wrong(format!("builtin type {code} is not known")),
        };
        Ok(self.types.scalar(name))
    }

    fn tensor(&mut self, data: &mut Cursor<'a>, is_encoded: bool) -> Read<TypeId> {
        let encoding = match is_encoded {
            true => {
                data.varint()?;
                Some("…".into())
            }
            false => None,
        };
        let rank = data.count()?;
        let mut shape = Vec::with_capacity(rank);
        for _ in 0..rank {
            let size = data.signed()?;
            // The least number of 64 bits stands for a size that is known only at run time.
            match u64::try_from(size) {
                Ok(size) => shape.push(Some(size)),
                Err(_) if size == i64::MIN => shape.push(None),
                Err(_) => return data.wrong(format!("a tensor of size {size}")),
            }
        }
        let element = self.next_type(data)?;
        Ok(self.types.intern(Type::Tensor { shape: Some(shape.into()), element, encoding }))
    }

    /// The attribute whose number comes next.
    pub fn next_attribute(&mut self, from: &mut Cursor<'a>) -> Read<Attribute<'a>> {
        let index = from.varint()?;
        self.attribute(from, index)
    }

    /// An attribute by number.
    pub fn attribute(&mut self, from: &Cursor<'a>, index: u64) -> Read<Attribute<'a>> {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        if matches!(self.read_attributes.get(place), Some(None)) {
            let read = self.read_attribute(from, place)?;
            let nodes = read.nodes();
            if let Some(slot) = self.read_attributes.get_mut(place) {
                *slot = Some((read, nodes));
            }
        }
        let Some(Some((value, nodes))) = self.read_attributes.get(place) else {
            return from.wrong(format!("attribute {index} of {}", self.read_attributes.len()));
        };
        match self.budget.checked_sub(*nodes) {
            Some(left) => {
                self.budget = left;
                Ok(value.clone())
            }
            None => from.wrong("attributes that expand to far more than the file"),
        }
    }

    fn read_attribute(&mut self, from: &Cursor<'a>, place: usize) -> Read<Attribute<'a>> {
        let Some(entry) = self.entries.attributes.get(place).copied() else {
            return from.wrong(format!("attribute {place} of {}", self.entries.attributes.len()));
        };
        self.deeper(from)?;
        let mut data = entry.data;
        let value = if !entry.is_encoded {
            let text = data.terminated()?;
            match text::attribute(text, &mut self.types) {
                Some(value) => value,
                None => return entry.data.wrong(format!("{text:?} is no attribute that is known here")),
            }
        } else if entry.is_builtin {
            self.builtin_attribute(&mut data)?
        } else {
            return entry.data.wrong("an attribute in the encoding of another dialect");
        };
        self.depth -= 1;
        Ok(value)
    }

    fn builtin_attribute(&mut self, data: &mut Cursor<'a>) -> Read<Attribute<'a>> {
        let code = data.varint()?;
        Ok(match code {
            0 => {
                let count = data.count()?;
                Attribute::Array((0..count).map(|_| self.next_attribute(data)).collect::<Read<_>>()?)
            }
            1 => Attribute::Other("{…}".into()),
            2 | 3 => Attribute::Str(self.string(data)?.into()),
            4 => Attribute::Symbol(self.text_of(data)?),
            5 => {
                let mut leaf = self.text_of(data)?;
                for _ in 0..data.count()? {
                    if let Attribute::Symbol(name) = self.next_attribute(data)? {
                        leaf = name;
                    }
                }
                Attribute::Symbol(leaf)
            }
            6 => Attribute::Type(self.next_type(data)?),
            7 => Attribute::Unit,
            8 => self.integer(data)?,
            9 => self.float(data)?,
            10..=15 | 22 => Attribute::Other("loc(…)".into()),
            16 => Attribute::Other("dense_resource<…>".into()),
            17 => self.dense_array(data)?,
            18 | 19 => Attribute::Other("dense<…>".into()),
            20 => Attribute::Other("sparse<…>".into()),
            21 => Attribute::Other("distinct[…]<…>".into()),
            _ => return data.wrong(format!("builtin attribute {code} is not known")),
        })
    }

    /// The value of a string attribute.
    fn text_of(&mut self, data: &mut Cursor<'a>) -> Read<Cow<'a, str>> {
        match self.next_attribute(data)? {
            Attribute::Str(text) => Ok(text),
            _ => data.wrong("a string is expected here"),
        }
    }

    /// Bits of a number of known width, as one byte or a signed number.
    fn bits(&mut self, data: &mut Cursor<'a>, width: u64) -> Read<u64> {
        let bits = if width <= 8 { u64::from(data.byte()?) } else { data.signed()? as u64 };
        Ok(if width < 64 { bits & ((1 << width) - 1) } else { bits })
    }

    fn integer(&mut self, data: &mut Cursor<'a>) -> Read<Attribute<'a>> {
        let ty = self.next_type(data)?;
        let name = self.types.text(ty);
        let (sign, width) = match name.trim_start_matches(|c: char| c.is_ascii_lowercase()) {
            "" if name == "index" => ("i", 64),
            digits => (name.strip_suffix(digits).unwrap_or(name), digits.parse::<u64>().unwrap_or(0)),
        };
        if !matches!(sign, "i" | "si" | "ui") || width == 0 {
            return data.wrong(format!("an integer of type {name}"));
        }
        if width > 64 {
            return Ok(Attribute::Other("an integer of more than 64 bits".into()));
        }
        let is_unsigned = sign == "ui" || width == 1;
        let bits = self.bits(data, width)?;
        let value = match is_unsigned {
            true => i128::from(bits),
            // The sign is the highest bit of the width.
            false => i128::from((bits << (64 - width)) as i64 >> (64 - width)),
        };
        Ok(Attribute::Int { value, ty })
    }

    fn float(&mut self, data: &mut Cursor<'a>) -> Read<Attribute<'a>> {
        let ty = self.next_type(data)?;
        let value = match self.types.text(ty) {
            "f64" => f64::from_bits(self.bits(data, 64)?),
            "f32" => f32::from_bits(self.bits(data, 32)? as u32).into(),
            "f16" => half::f16::from_bits(self.bits(data, 16)? as u16).to_f64(),
            "bf16" => half::bf16::from_bits(self.bits(data, 16)? as u16).to_f64(),
            _ => return Ok(Attribute::Other("a float of another type".into())),
        };
        Ok(Attribute::Float { value, ty })
    }

    fn dense_array(&mut self, data: &mut Cursor<'a>) -> Read<Attribute<'a>> {
        let ty = self.next_type(data)?;
        let count = data.varint()?;
        let size = data.varint()?;
        let raw = data.part(size)?.bytes();
        let name = self.types.text(ty);
        let (chunks, rest) = raw.as_chunks::<8>();
        let is_wide = matches!(name, "i64" | "f64");
        if is_wide && (chunks.len() as u64 != count || !rest.is_empty()) {
            return data.wrong(format!("{count} numbers of 8 bytes in {} bytes", raw.len()));
        }
        Ok(match name {
            "i64" => Attribute::I64s(chunks.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()),
            "f64" => Attribute::F64s(chunks.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()),
            _ => Attribute::Other(format!("array<{name}: …>").into()),
        })
    }

    /// A dictionary by number, entry by entry.
    pub fn dictionary(&mut self, from: &Cursor<'a>, index: u64) -> Read<Vec<Entry<'a>>> {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(entry) = self.entries.attributes.get(place).copied() else {
            return from.wrong(format!("attribute {index} of {}", self.entries.attributes.len()));
        };
        let mut data = entry.data;
        if !entry.is_encoded || !entry.is_builtin || data.varint()? != 1 {
            return from.wrong("a dictionary is expected here");
        }
        let count = data.count()?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let key = self.text_of(&mut data)?;
            let value = self.next_attribute(&mut data)?;
            entries.push(Entry { key, at: None, value });
        }
        Ok(entries)
    }
}
