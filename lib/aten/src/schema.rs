//! Operator schemas, read on demand from the table that `scripts/make-schemas` writes.
//!
//! The table is PyTorch's own registry in text, one schema a line, sorted by the spelling of records; operators that
//! other libraries register are in a small one beside it, written by hand. A lookup is a binary search and the parse
//! of one line; a schema borrows everything from the table.

use m2m_record::{Arg, Float};
use std::sync::OnceLock;

static TEXT: &str = include_str!("schemas.txt");

static EXTRA: &str = include_str!("schemas_extra.txt");

/// What a tensor argument or result shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The alias set, as `a`; `a -> *` for one whose elements become parts of a list.
    pub set: &'static str,
    /// Whether the operator writes to it.
    pub is_write: bool,
}

/// One argument of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaArg {
    /// Its name.
    pub name: &'static str,
    /// Its element's type: `Tensor`, `SymInt`, `int`, `float`, `bool`, `str`, `Scalar`, `ScalarType`, `Device`, …
    pub ty: &'static str,
    /// Whether it is a list of them.
    pub is_list: bool,
    /// The length to which one number stretches, as of `SymInt[2]`.
    pub size: Option<usize>,
    /// Whether it may be `None`.
    pub is_optional: bool,
    /// Whether its elements may be `None`.
    pub is_element_optional: bool,
    /// Its value when it is not given.
    pub default: Option<Arg>,
    /// Whether it can only be given by keyword.
    pub is_kwarg_only: bool,
    /// What it shares.
    pub alias: Option<Alias>,
}

/// One return of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaReturn {
    /// Its name, where it has one.
    pub name: Option<&'static str>,
    /// Its element's type.
    pub ty: &'static str,
    /// Whether it is a list of them.
    pub is_list: bool,
    /// What it shares.
    pub alias: Option<Alias>,
}

/// An operator's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The operator with its overload.
    pub op: &'static str,
    /// Its arguments, positional ones first.
    pub args: Vec<SchemaArg>,
    /// Its returns.
    pub returns: Vec<SchemaReturn>,
}

impl Schema {
    /// True when the operator writes to one of its arguments.
    pub fn is_mutable(&self) -> bool {
        self.args.iter().any(|a| a.alias.is_some_and(|alias| alias.is_write))
    }

    /// True when a result may share memory with an argument.
    pub fn is_view(&self) -> bool {
        self.returns.iter().any(|r| r.alias.is_some())
    }

    /// The place of an argument.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.args.iter().position(|a| a.name == name)
    }
}

/// The lines of the table.
pub fn lines() -> &'static [&'static str] {
    static LINES: OnceLock<Vec<&'static str>> = OnceLock::new();
    LINES.get_or_init(|| {
        let mut lines: Vec<&str> = TEXT.lines().chain(EXTRA.lines()).collect();
        lines.sort_by_key(|line| op_of(line));
        lines
    })
}

fn op_of(line: &'static str) -> &'static str {
    line.split_once('(').map_or(line, |(op, _)| op)
}

/// The schema of an operator spelled as in records (`aten.add.Tensor`).
pub fn find(op: &str) -> Option<Schema> {
    let at = lines().binary_search_by(|line| op_of(line).cmp(op)).ok()?;
    lines().get(at).and_then(|line| parse(line))
}

/// Reads one line of the table; `None` where it is not a schema, which a test excludes.
fn parse(line: &'static str) -> Option<Schema> {
    let (op, rest) = line.split_once('(')?;
    let close = closing(rest)?;
    let args = parse_args(rest.get(..close)?)?;
    let returns = rest.get(close + 1..)?.strip_prefix(" -> ")?;
    let items = match returns.strip_prefix('(') {
        Some(inner) => split(inner.get(..closing(inner)?)?),
        None => vec![returns],
    };
    let returns = items.into_iter().map(parse_return).collect::<Option<_>>()?;
    Some(Schema { op, args, returns })
}

/// The place of the bracket that closes one already open.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' if depth > 0 => depth -= 1,
            ')' | ']' => return Some(at),
            _ => {}
        }
    }
    None
}

/// Splits at commas outside brackets and quotes.
fn split(text: &'static str) -> Vec<&'static str> {
    let (mut depth, mut quoted, mut escaped, mut start) = (0i32, false, false, 0);
    let mut items = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                items.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    items.extend(text.get(start..));
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn parse_args(text: &'static str) -> Option<Vec<SchemaArg>> {
    let mut is_kwarg_only = false;
    let mut args = Vec::new();
    for item in split(text) {
        if item == "*" {
            is_kwarg_only = true;
            continue;
        }
        let (decl, default) = item.split_once('=').map_or((item, None), |(d, v)| (d, Some(v)));
        let (ty, name) = decl.rsplit_once(' ')?;
        let t = parse_type(ty)?;
        let default = match default {
            Some(text) => Some(parse_default(text, t.base)?),
            None => None,
        };
        args.push(SchemaArg {
            name,
            ty: t.base,
            is_list: t.is_list,
            size: t.size,
            is_optional: t.is_optional,
            is_element_optional: t.is_element_optional,
            default,
            is_kwarg_only,
            alias: t.alias,
        });
    }
    Some(args)
}

fn parse_return(text: &'static str) -> Option<SchemaReturn> {
    let end = type_end(text)?;
    let t = parse_type(text.get(..end)?)?;
    let name = text.get(end..).map(str::trim).filter(|n| !n.is_empty());
    Some(SchemaReturn { name, ty: t.base, is_list: t.is_list, alias: t.alias })
}

/// Where a type ends and a blank outside brackets begins.
fn type_end(text: &str) -> Option<usize> {
    let mut depth = 0i32;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ' ' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    Some(text.len())
}

#[derive(Default)]
struct TypeText {
    base: &'static str,
    is_list: bool,
    size: Option<usize>,
    is_optional: bool,
    is_element_optional: bool,
    alias: Option<Alias>,
}

fn parse_type(text: &'static str) -> Option<TypeText> {
    let end = text.find(['(', '[', '?']).unwrap_or(text.len());
    let mut t = TypeText { base: text.get(..end)?, ..TypeText::default() };
    let mut rest = text.get(end..)?;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(1..)?;
        match c {
            '?' => t.is_optional = true,
            '[' | '(' => {
                let close = closing(rest)?;
                let inner = rest.get(..close)?;
                rest = rest.get(close + 1..)?;
                if c == '[' {
                    t.is_element_optional = std::mem::take(&mut t.is_optional);
                    t.is_list = true;
                    t.size = inner.parse().ok();
                } else if t.base == "Tensor" {
                    t.alias = Some(Alias { set: inner.trim_end_matches('!'), is_write: inner.contains('!') });
                }
            }
            _ => return None,
        }
    }
    Some(t)
}

fn parse_default(text: &'static str, base: &str) -> Option<Arg> {
    Some(match text {
        "None" => Arg::Null,
        "True" => Arg::Bool(true),
        "False" => Arg::Bool(false),
        "0" if base == "MemoryFormat" => Arg::MemoryFormat("contiguous".into()),
        _ => {
            if let Some(inner) = text.strip_prefix('[') {
                let items = split(inner.strip_suffix(']')?).into_iter().map(|item| parse_default(item, base));
                return items.collect::<Option<_>>().map(Arg::List);
            }
            if let Some(inner) = text.strip_prefix('"') {
                return Some(Arg::Str(unescape(inner.strip_suffix('"')?)));
            }
            match text.parse::<i64>() {
                Ok(n) => Arg::Int(n),
                Err(_) => Arg::Float(Float(text.parse().ok()?)),
            }
        }
    })
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_parses() {
        assert!(lines().len() > 2000);
        for pair in lines().windows(2) {
            assert!(op_of(pair[0]) < op_of(pair[1]), "{} before {}", op_of(pair[0]), op_of(pair[1]));
        }
        for line in lines() {
            let schema = parse(line).unwrap_or_else(|| panic!("does not parse: {line}"));
            for arg in &schema.args {
                assert!(!arg.name.is_empty() && !arg.name.contains([' ', '(', ')', ',']), "{line}: {arg:?}");
            }
            assert_eq!(find(schema.op).as_ref(), Some(&schema));
        }
    }

    #[test]
    fn a_schema_tells_types_defaults_and_aliases() {
        let add = find("aten.add.Tensor").unwrap();
        let alpha = &add.args[2];
        assert_eq!((alpha.name, alpha.ty, alpha.is_kwarg_only), ("alpha", "Scalar", true));
        assert_eq!(alpha.default, Some(Arg::Int(1)));
        let conv = find("aten.conv2d.default").unwrap();
        assert!(conv.args[2].is_optional && conv.args[2].default == Some(Arg::Null));
        assert_eq!((conv.args[3].size, conv.args[3].default.clone()), (Some(2), Some(Arg::ints([1, 1]))));
        let relu = find("aten.relu_.default").unwrap();
        assert_eq!(relu.args[0].alias, Some(Alias { set: "a", is_write: true }));
        assert!(relu.is_mutable() && relu.is_view());
        let split = find("aten.split.Tensor").unwrap();
        assert_eq!(split.args[0].alias, Some(Alias { set: "a -> *", is_write: false }));
        assert!(split.returns[0].is_list);
        let index = find("aten.index.Tensor").unwrap();
        assert!(index.args[1].is_list && index.args[1].is_element_optional && !index.args[1].is_optional);
        let max = find("aten.max.dim").unwrap();
        assert_eq!(max.returns.iter().map(|r| r.name).collect::<Vec<_>>(), [Some("values"), Some("indices")]);
        assert!(find("aten.no_such.default").is_none());
        assert!(find("aten._assert_scalar.default").unwrap().returns.is_empty());
    }
}
