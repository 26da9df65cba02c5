//! Pytrees of the calling convention, from the JSON that torch keeps inside strings.
//!
//! `[1, {type, context, children_spec}]`, where `context` is JSON text again: the keys of a dict, the name of a named
//! tuple, what a registered class remembers.

use std::collections::HashMap;

use m2m_record::{Arg, Tree};
use serde::Deserialize;
use serde_json::Value;

/// Deepest nesting, and most leaves, of a calling convention.
const MAX_DEPTH: usize = 60;

/// The version that torch writes.
const VERSION: i64 = 1;

#[derive(Deserialize)]
struct Spec {
    r#type: Option<String>,
    #[serde(default)]
    context: Value,
    #[serde(default)]
    children_spec: Vec<Spec>,
}

/// Field names of named tuples by registered name.
pub type NamedTuples = HashMap<String, Vec<String>>;

/// Reads a pytree; `leaves` gives the value of each leaf in order, or none where it is a constant.
///
/// # Errors
/// What is malformed, in words, or a number of leaves other than that of `leaves`.
pub fn parse(text: &str, leaves: &[Option<String>], named: &NamedTuples) -> Result<Tree, String> {
    let (version, spec): (i64, Spec) = serde_json::from_str(text).map_err(|e| format!("pytree {e}"))?;
    if version != VERSION {
        return Err(format!("pytree version {version}; {VERSION} is read"));
    }
    let mut next = leaves.iter();
    let tree = convert(spec, &mut next, named, MAX_DEPTH)?;
    match next.len() {
        0 => Ok(tree),
        left => Err(format!("the pytree has {} leaves for {} values", leaves.len() - left, leaves.len())),
    }
}

/// Reads a pytree for its containers alone; leaves stand for nothing.
///
/// # Errors
/// What is malformed, in words.
pub fn parse_any(text: &str, named: &NamedTuples) -> Result<Tree, String> {
    let leaves = vec![None; text.matches("\"type\"").count()];
    let (version, spec): (i64, Spec) = serde_json::from_str(text).map_err(|e| format!("pytree {e}"))?;
    if version != VERSION {
        return Err(format!("pytree version {version}; {VERSION} is read"));
    }
    convert(spec, &mut leaves.iter(), named, MAX_DEPTH)
}

fn convert(
    spec: Spec,
    leaves: &mut std::slice::Iter<'_, Option<String>>,
    named: &NamedTuples,
    depth: usize,
) -> Result<Tree, String> {
    let Some(kind) = spec.r#type else {
        let leaf = leaves.next().ok_or("the pytree has more leaves than there are values")?;
        return Ok(Tree::Leaf { leaf: leaf.clone() });
    };
    if depth == 0 {
        return Err(format!("the pytree is deeper than {MAX_DEPTH} levels"));
    }
    let (tree, keys, context) = describe(&kind, &spec.context, named)?;
    let children = spec.children_spec;
    if !keys.is_empty() && keys.len() != children.len() {
        return Err(format!("{kind} has {} keys for {} members", keys.len(), children.len()));
    }
    let children =
        children.into_iter().map(|child| convert(child, leaves, named, depth - 1)).collect::<Result<Vec<_>, _>>()?;
    Ok(Tree::Node { tree, keys, context, children })
}

/// The container's name in records, its keys, and the context that the two do not express.
fn describe(kind: &str, context: &Value, named: &NamedTuples) -> Result<(String, Vec<Arg>, Option<String>), String> {
    let inner = match context {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        other => other.clone(),
    };
    Ok(match kind {
        "builtins.tuple" => ("tuple".into(), vec![], None),
        "builtins.list" => ("list".into(), vec![], None),
        "builtins.dict" => ("dict".into(), keys(&inner)?, None),
        "collections.OrderedDict" => ("ordered_dict".into(), keys(&inner)?, None),
        "collections.namedtuple" => {
            let name = inner.as_str().unwrap_or_default();
            let fields = named.get(name).map(|fields| fields.iter().map(|f| Arg::Str(f.clone())).collect());
            ("namedtuple".into(), fields.unwrap_or_default(), Some(name.to_owned()))
        }
        other => {
            let members = inner.get("dict_context").map(keys).transpose()?.unwrap_or_default();
            let text = match context {
                Value::Null => None,
                Value::String(text) if text == "null" => None,
                Value::String(text) => Some(text.clone()),
                value => Some(value.to_string()),
            };
            (other.to_owned(), members, text)
        }
    })
}

fn keys(context: &Value) -> Result<Vec<Arg>, String> {
    let items = context.as_array().ok_or_else(|| format!("a dict's context should list its keys; found {context}"))?;
    items
        .iter()
        .map(|key| match key {
            Value::String(text) => Ok(Arg::Str(text.clone())),
            Value::Number(n) => n.as_i64().map(Arg::Int).ok_or_else(|| format!("dict key {n} is no integer")),
            Value::Bool(b) => Ok(Arg::Bool(*b)),
            Value::Null => Ok(Arg::Null),
            other => Err(format!("dict key {other} is no plain value")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dict_of_leaves() {
        let text = r#"[1, {"type": "builtins.dict", "context": "[\"x\", 2]", "children_spec": [
            {"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}]"#;
        let leaf = |name: &str| Tree::Leaf { leaf: Some(name.into()) };
        let tree = parse(text, &[Some("a".into()), Some("b".into())], &NamedTuples::new()).unwrap();
        let keys = vec![Arg::Str("x".into()), Arg::Int(2)];
        assert_eq!(tree, Tree::Node { tree: "dict".into(), keys, context: None, children: vec![leaf("a"), leaf("b")] });
        assert!(parse(text, &[None], &NamedTuples::new()).unwrap_err().contains("more leaves"));
        assert!(parse(text, &[None, None, None], &NamedTuples::new()).unwrap_err().contains("2 leaves for 3"));
    }
}
