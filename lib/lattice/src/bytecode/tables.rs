//! The tables of a file: strings, dialects and names of operations, properties, and where types and attributes lie.

use super::cursor::{Cursor, Read};
use super::{WITH_DIALECT_VERSIONS, WITH_FLAGGED_ARGUMENTS, WITH_PROPERTIES, section};
use crate::ir::{Attribute, TypeId, Types};

/// The name of an operation.
pub(super) struct OpName {
    /// With its namespace.
    pub name: String,
    /// Whether it was registered where the file was written, so that its properties have its own encoding.
    pub is_registered: bool,
}

/// A type or attribute that has not been read yet.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub data: Cursor<'a>,
    pub is_builtin: bool,
    /// Whether it is in its dialect's encoding rather than text.
    pub is_encoded: bool,
}

/// Attributes and types, in the order of their numbers.
pub(super) struct Entries<'a> {
    pub attributes: Vec<Entry<'a>>,
    pub types: Vec<Entry<'a>>,
}

/// What operations refer to by number.
pub(super) struct Tables<'a> {
    pub strings: Vec<&'a str>,
    pub entries: Entries<'a>,
    pub types: Types,
    pub read_types: Vec<Option<TypeId>>,
    /// With the number of nodes that each has.
    pub read_attributes: Vec<Option<(Attribute<'a>, usize)>>,
    /// Nodes that may still be copied: a small file cannot be made to expand without end.
    pub budget: usize,
    pub depth: usize,
}

impl<'a> Tables<'a> {
    pub fn new(strings: Vec<&'a str>, entries: Entries<'a>, file_bytes: usize) -> Self {
        let (types, attributes) = (entries.types.len(), entries.attributes.len());
        Tables {
            strings,
            entries,
            types: Types::default(),
            read_types: vec![None; types],
            read_attributes: vec![None; attributes],
            budget: file_bytes.saturating_mul(64).saturating_add(1 << 20),
            depth: 0,
        }
    }
}

/// The strings: their sizes from the last to the first, then their bytes, each with a zero at its end.
pub(super) fn strings(mut content: Cursor<'_>) -> Read<Vec<&str>> {
    let count = content.count()?;
    let mut sizes = Vec::with_capacity(count);
    for _ in 0..count {
        sizes.push(content.varint()?);
    }
    let mut strings = Vec::with_capacity(count);
    for size in sizes.into_iter().rev() {
        let mut part = content.part(size)?;
        let text = part.terminated()?;
        if !part.is_empty() {
            return part.wrong("a string with a zero byte within");
        }
        strings.push(text);
    }
    if content.is_empty() { Ok(strings) } else { content.wrong("bytes after the last string") }
}

/// The properties of operations, each a part of its own.
pub(super) fn properties(mut content: Cursor<'_>) -> Read<Vec<Cursor<'_>>> {
    let count = content.count()?;
    let mut parts = Vec::with_capacity(count);
    for _ in 0..count {
        let size = content.varint()?;
        parts.push(content.part(size)?);
    }
    if content.is_empty() { Ok(parts) } else { content.wrong("bytes after the last properties") }
}

fn string<'a>(content: &Cursor<'a>, strings: &[&'a str], index: u64) -> Read<&'a str> {
    match usize::try_from(index).ok().and_then(|index| strings.get(index)) {
        Some(text) => Ok(text),
        None => content.wrong(format!("string {index} of {}", strings.len())),
    }
}

/// The dialects, and the names of operations in groups by dialect.
pub(super) fn dialects<'a>(
    mut content: Cursor<'a>,
    version: u64,
    strings: &[&'a str],
) -> Read<(Vec<&'a str>, Vec<OpName>)> {
    let count = content.count()?;
    let mut dialects = Vec::with_capacity(count);
    for _ in 0..count {
        let (index, has_version) = match version {
            0..WITH_DIALECT_VERSIONS => (content.varint()?, false),
            _ => content.flagged()?,
        };
        dialects.push(string(&content, strings, index)?);
        if has_version && content.section()?.0 != section::DIALECT_VERSIONS {
            return content.wrong("a dialect's version is expected here");
        }
    }
    if version >= WITH_FLAGGED_ARGUMENTS {
        content.varint()?;
    }
    let mut names = Vec::new();
    while !content.is_empty() {
        let dialect = group(&mut content, &dialects)?;
        for _ in 0..content.count()? {
            let (index, is_registered) = match version {
                0..WITH_PROPERTIES => (content.varint()?, false),
                _ => content.flagged()?,
            };
            let name = string(&content, strings, index)?;
            let name = if name.is_empty() { dialect.to_owned() } else { format!("{dialect}.{name}") };
            names.push(OpName { name, is_registered });
        }
    }
    Ok((dialects, names))
}

/// The dialect of a group.
fn group<'a>(content: &mut Cursor<'a>, dialects: &[&'a str]) -> Read<&'a str> {
    let index = content.varint()?;
    match usize::try_from(index).ok().and_then(|index| dialects.get(index)) {
        Some(dialect) => Ok(dialect),
        None => content.wrong(format!("dialect {index} of {}", dialects.len())),
    }
}

/// Where attributes and types lie: their sizes, in groups by dialect.
pub(super) fn entries<'a>(mut offsets: Cursor<'a>, mut content: Cursor<'a>, dialects: &[&'a str]) -> Read<Entries<'a>> {
    let attributes = offsets.count()?;
    let types = offsets.count()?;
    let mut read = |count: usize| {
        let mut entries = Vec::with_capacity(count);
        while entries.len() < count {
            let is_builtin = group(&mut offsets, dialects)? == "builtin";
            let members = offsets.count()?;
            if members > count - entries.len() {
                return offsets.wrong(format!("a group of {members} where {} are left", count - entries.len()));
            }
            for _ in 0..members {
                let (size, is_encoded) = offsets.flagged()?;
                entries.push(Entry { data: content.part(size)?, is_builtin, is_encoded });
            }
            if members == 0 {
                return offsets.wrong("an empty group");
            }
        }
        Ok(entries)
    };
    let attributes = read(attributes)?;
    let types = read(types)?;
    if offsets.is_empty() { Ok(Entries { attributes, types }) } else { offsets.wrong("bytes after the last entry") }
}
