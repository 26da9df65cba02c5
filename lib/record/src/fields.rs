//! Which members of a record a jq filter looks at, so that the others need not become values.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::path::{Part, Path};
use jaq_json::{Map, Val};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The members of its input that a filter can tell from `null`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    /// These at most.
    Named(BTreeSet<String>),
    /// Any: the filter handles its input as a whole, or does so for all that is known.
    All,
}

impl Fields {
    /// What a filter looks at.
    pub fn of(filter: &str) -> Self {
        let mut names = BTreeSet::new();
        match jaq_core::load::parse(filter, |parser| parser.term()) {
            Some(term) if reads_only_members(&term, &mut names) => Fields::Named(names),
            _ => Fields::All,
        }
    }

    /// The record of a line, without what the filter does not look at.
    pub fn read(&self, line: &[u8]) -> Result<Val, String> {
        if let Fields::Named(names) = self {
            // Whatever is wrong with the line, jaq is to say.
            if let Ok(value) = serde_json::Deserializer::from_slice(line).deserialize_map(Members(names)) {
                return Ok(value);
            }
        }
        jaq_json::read::parse_single(line).map_err(|e| e.to_string())
    }
}

/// Adds the members of the input that a term looks at; false when it may do more with the input than that.
fn reads_only_members<'s>(term: &Term<&'s str>, names: &mut BTreeSet<String>) -> bool {
    let mut all = |mut terms: &mut dyn Iterator<Item = &Term<&'s str>>| {
        Iterator::all(&mut terms, |term| reads_only_members(term, names))
    };
    match term {
        Term::Num(_) | Term::Var(_) | Term::Arr(None) => true,
        Term::Call(name, args) => args.is_empty() && matches!(*name, "true" | "false" | "null" | "empty"),
        Term::Str(_, parts) => all(&mut parts.iter().filter_map(|part| match part {
            StrPart::Term(term) => Some(term),
            StrPart::Str(_) | StrPart::Char(_) => None,
        })),
        Term::Arr(Some(inner)) | Term::Neg(inner) | Term::TryCatch(inner, None) => all(&mut std::iter::once(&**inner)),
        // What stands right of a pipe has another input.
        Term::BinOp(left, BinaryOp::Pipe(None), _) => all(&mut std::iter::once(&**left)),
        Term::BinOp(
            left,
            BinaryOp::Pipe(Some(Pattern::Var(_)))
            | BinaryOp::Comma
            | BinaryOp::Alt
            | BinaryOp::Or
            | BinaryOp::And
            | BinaryOp::Math(_)
            | BinaryOp::Cmp(_),
            right,
        ) => all(&mut [&**left, &**right].into_iter()),
        Term::IfThenElse(cases, Some(otherwise)) => {
            all(&mut cases.iter().flat_map(|(test, then)| [test, then]).chain([&**otherwise]))
        }
        Term::Path(base, Path(parts)) => path(base, parts, names),
        _ => false,
    }
}

/// The same of `BASE.a[b]...`, whose indices have the input of the whole.
fn path<'s, O>(base: &Term<&'s str>, parts: &[(Part<Term<&'s str>>, O)], names: &mut BTreeSet<String>) -> bool {
    let rest = match (base, parts) {
        (Term::Id, [(Part::Index(Term::Str(None, name)), _), rest @ ..]) => {
            let [StrPart::Str(name)] = name[..] else { return false };
            names.insert(name.to_owned());
            rest
        }
        (base, parts) if reads_only_members(base, names) => parts,
        _ => return false,
    };
    rest.iter().all(|(part, _)| match part {
        Part::Index(index) => reads_only_members(index, names),
        Part::Range(from, to) => [from, to].into_iter().flatten().all(|bound| reads_only_members(bound, names)),
    })
}

/// Takes the members of these names.
struct Members<'a>(&'a BTreeSet<String>);

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Val, A::Error> {
        let mut taken = Map::default();
        while let Some(Key(key)) = members.next_key()? {
            if !self.0.contains(&*key) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let text: &RawValue = members.next_value()?;
            let value = jaq_json::read::parse_single(text.get().as_bytes()).map_err(A::Error::custom)?;
            taken.insert(Val::utf8_str(key.into_owned()), value);
        }
        Ok(Val::obj(taken))
    }
}

/// A key, copied only where it has escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn named<const N: usize>(names: [&str; N]) -> Fields {
        Fields::Named(names.map(str::to_owned).into())
    }

    #[test]
    fn members_of_a_filter() {
        assert_eq!(Fields::of(r#".op == "aten.add.Tensor""#), named(["op"]));
        assert_eq!(Fields::of(r#"(.op|startswith("aten")) and (.scope // "" | test("head"))"#), named(["op", "scope"]));
        assert_eq!(Fields::of(".results[0].type.shape[1:2] | length > 1"), named(["results"]));
        assert_eq!(Fields::of("if .args then .loc else false end"), named(["args", "loc"]));
        assert_eq!(Fields::of(".op as $op | .node == $op"), named(["node", "op"]));
        assert_eq!(Fields::of(r#""\(.node).\(.op)" == "a""#), named(["node", "op"]));
        assert_eq!(Fields::of("true"), named([]));
        for whole in [".", ".. | . == 1", "keys", "select(.op)", "has(\"op\")", ".[\"o\" + \"p\"]", "if .op then 1 end"]
        {
            assert_eq!(Fields::of(whole), Fields::All, "{whole}");
        }
        assert_eq!(Fields::of("def f: .; f == 1"), Fields::All);
        assert_eq!(Fields::of("to_entries[0].key == .op"), Fields::All);
    }

    #[test]
    fn members_of_a_line() {
        let line = br#"{"record":"node","op":"a","x":{"op":[1]},"n":12345678901234567890,"op\u0073":1}"#;
        let read = |fields: Fields| fields.read(line).map(|value| value.to_string());
        assert_eq!(read(named(["op", "n"])).unwrap(), r#"{"op":"a","n":12345678901234567890}"#);
        assert_eq!(read(named(["ops"])).unwrap(), r#"{"ops":1}"#);
        assert_eq!(read(named(["none"])).unwrap(), "{}");
        assert!(named(["op"]).read(b"{\"op\":}").is_err());
        assert_eq!(named(["op"]).read(b"[1]").map(|value| value.to_string()).unwrap(), "[1]");
    }
}
