//! What a node remembers: its handle, its modules, its place in the source, and the nodes it was made from.

use std::borrow::Cow;
use std::collections::HashSet;

use m2m_record::profile::ModuleRef;
use serde::Deserialize;
use serde::de::Error as _;

#[derive(Default, Deserialize)]
pub(super) struct Metadata<'a> {
    #[serde(borrow, default)]
    debug_handle: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    nn_module_stack: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stack_trace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    from_node: Option<Cow<'a, str>>,
}

/// A node of an earlier graph; the last in each chain is one of the exported program.
#[derive(Deserialize)]
struct From<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    from_node: Vec<From<'a>>,
}

impl Metadata<'_> {
    /// The debug handle; 0 stands for none.
    pub fn handle(&self) -> serde_json::Result<Option<i64>> {
        let Some(text) = &self.debug_handle else { return Ok(None) };
        match text.parse() {
            Ok(0) => Ok(None),
            Ok(handle) => Ok(Some(handle)),
            Err(_) => Err(serde_json::Error::custom(format!("debug_handle {text:?} is no number"))),
        }
    }

    /// The modules: `key,path,class` for each, outermost first.
    pub fn modules(&self) -> Vec<ModuleRef> {
        let stack = self.nn_module_stack.as_deref().unwrap_or_default();
        let module = |entry: &str| {
            let (path, class) = entry.split_once(',')?.1.rsplit_once(',')?;
            Some(ModuleRef { path: path.to_owned(), class: class.to_owned() })
        };
        stack.split(';').filter_map(module).collect()
    }

    /// `file.py:line` of the innermost frame that is not PyTorch's own machinery.
    pub fn location(&self) -> Option<String> {
        let trace = self.stack_trace.as_deref()?;
        let frames = || trace.rsplit("File \"").filter_map(frame);
        let (path, line) = frames().find(|(path, _)| !is_machinery(path)).or_else(|| frames().next())?;
        let file = path.rsplit(['/', '\\']).next()?;
        (!file.is_empty()).then(|| format!("{file}:{line}"))
    }

    /// Names of the nodes of the exported program.
    pub fn origins(&self) -> serde_json::Result<Vec<String>> {
        let Some(text) = self.from_node.as_deref().filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
        let mut open: Vec<From<'_>> =
            serde_json::from_str(text).map_err(|e| serde_json::Error::custom(format!("from_node: {e}")))?;
        open.reverse();
        let (mut seen, mut names) = (HashSet::new(), Vec::new());
        while let Some(node) = open.pop() {
            if node.from_node.is_empty() && seen.insert(node.name.clone()) {
                names.push(node.name.into_owned());
            }
            open.extend(node.from_node.into_iter().rev());
        }
        Ok(names)
    }
}

/// Path and line of a frame whose text begins behind `File "`.
fn frame(text: &str) -> Option<(&str, &str)> {
    let (path, rest) = text.split_once('"')?;
    let rest = rest.strip_prefix(", line ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (digits > 0).then(|| (path, &rest[..digits]))
}

fn is_machinery(path: &str) -> bool {
    path.rsplit_once("/site-packages/torch/").is_some_and(|(_, inside)| !inside.starts_with("nn/"))
}

/// A module path without the Python that strict exports put around it: `L['self'].net._modules['0'].fc@1` is `net.0.fc`.
pub(super) fn plain_path(path: &str) -> String {
    let path = path.split('@').next().unwrap_or(path).replace("getattr(", "").replace("_modules", "");
    let path = match path.strip_prefix("L['").or_else(|| path.strip_prefix("L[\"")) {
        Some(rest) => rest.split_once(']').map_or("", |(_, rest)| rest),
        None => &path,
    };
    let parts = path.split(['.', '[', ']', '\'', '"', ',', ' ', '(', ')']);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}
