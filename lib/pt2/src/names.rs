//! Operator names: from the file's targets to those of records.
//!
//! `torch.ops.NAMESPACE.OP.OVERLOAD` loses its prefix. Python arithmetic over symbols (`_operator`, `math`, `torch.sym_*`)
//! becomes `sym.NAME` by the one table below. Anything else keeps its spelling and is reported.

use std::borrow::Cow;

const SYMBOLIC: &[(&str, &str)] = &[
    ("_operator.add", "sym.add"),
    ("_operator.and_", "sym.and"),
    ("_operator.eq", "sym.eq"),
    ("_operator.floordiv", "sym.floordiv"),
    ("_operator.ge", "sym.ge"),
    ("_operator.gt", "sym.gt"),
    ("_operator.le", "sym.le"),
    ("_operator.lshift", "sym.lshift"),
    ("_operator.lt", "sym.lt"),
    ("_operator.mod", "sym.mod"),
    ("_operator.mul", "sym.mul"),
    ("_operator.ne", "sym.ne"),
    ("_operator.neg", "sym.neg"),
    ("_operator.or_", "sym.or"),
    ("_operator.pos", "sym.pos"),
    ("_operator.pow", "sym.pow"),
    ("_operator.rshift", "sym.rshift"),
    ("_operator.sub", "sym.sub"),
    ("_operator.truediv", "sym.truediv"),
    ("math.ceil", "sym.ceil"),
    ("math.floor", "sym.floor"),
    ("math.trunc", "sym.trunc"),
    ("torch._sym_sqrt", "sym.sqrt"),
    ("torch.sym_float", "sym.float"),
    ("torch.sym_int", "sym.int"),
    ("torch.sym_ite", "sym.ite"),
    ("torch.sym_max", "sym.max"),
    ("torch.sym_min", "sym.min"),
    ("torch.sym_not", "sym.not"),
    ("torch.sym_sqrt", "sym.sqrt"),
    ("torch.sym_sum", "sym.sum"),
];

/// The operator's name in records, and whether the target was of a known form.
pub fn operator(target: &str) -> (Cow<'_, str>, bool) {
    if let Some(name) = target.strip_prefix("torch.ops.") {
        return (Cow::Borrowed(name), name.contains('.'));
    }
    match SYMBOLIC.binary_search_by_key(&target, |(from, _)| from) {
        Ok(found) => (Cow::Borrowed(SYMBOLIC[found].1), true),
        Err(_) => (Cow::Borrowed(target), false),
    }
}

/// What torch writes where it has lost the module.
const NO_SCOPE: &str = "_empty_nn_module_stack";

/// The module path of the innermost entry of `nn_module_stack`: `encoder.layers.0.fc1`.
pub fn scope(stack: &str) -> Option<String> {
    let innermost = stack.rsplit(';').next()?;
    let (_, rest) = innermost.split_once(',')?;
    let (path, _class) = rest.rsplit_once(',')?;
    let path = plain_path(path);
    (!path.is_empty() && !path.starts_with(NO_SCOPE)).then_some(path)
}

/// A module path without the Python around it: strict exports write `L['self'].encoder._modules['0']`, and modules that
/// are called again get `@1` behind their path.
pub fn plain_path(path: &str) -> String {
    let mut path = path.split('@').next().unwrap_or(path).replace("getattr(", "").replace("_modules", "");
    if let Some(rest) = path.strip_prefix("L['").or_else(|| path.strip_prefix("L[\"")) {
        path = rest.split_once(']').map_or(String::new(), |(_, rest)| rest.to_owned());
    }
    let parts = path.split(['.', '[', ']', '\'', '"', ',', ' ', '(', ')']);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

/// `file.py:line` of the innermost Python frame of a stack trace, PyTorch's own machinery left out: what is wanted is
/// the model's code, or the module of `torch.nn` that it calls.
pub fn location(trace: &str) -> Option<String> {
    let frames = || trace.rsplit("File \"").filter_map(frame);
    let chosen = frames().find(|(path, _)| !is_machinery(path)).or_else(|| frames().next());
    let (path, line) = chosen?;
    let file = path.rsplit(['/', '\\']).next()?;
    (!file.is_empty()).then(|| format!("{file}:{line}"))
}

/// Path and line of a frame whose text begins behind `File "`.
fn frame(text: &str) -> Option<(&str, &str)> {
    let (path, rest) = text.split_once('"')?;
    let rest = rest.strip_prefix(", line ")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (digits > 0).then(|| (path, &rest[..digits]))
}

fn is_machinery(path: &str) -> bool {
    path.rsplit_once("/site-packages/torch/").is_some_and(|(_, inside)| !inside.starts_with("nn/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(SYMBOLIC.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn targets() {
        assert_eq!(operator("torch.ops.aten.add.Tensor"), ("aten.add.Tensor".into(), true));
        assert_eq!(operator("torch.ops.higher_order.cond"), ("higher_order.cond".into(), true));
        assert_eq!(operator("_operator.floordiv"), ("sym.floordiv".into(), true));
        assert_eq!(operator("#ext:thing"), ("#ext:thing".into(), false));
    }

    #[test]
    fn scopes() {
        assert_eq!(scope("L__self__,,m.Net;L__self__fc,layers.0.fc,torch.nn.Linear").as_deref(), Some("layers.0.fc"));
        assert_eq!(scope("L__self__,,__main__.Net"), None);
        assert_eq!(scope("_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_from_metadata_hook,"), None);
        assert_eq!(scope("k,L['s'].c,torch.nn.Conv2d").as_deref(), Some("c"));
        assert_eq!(plain_path("L['self'].net._modules['0'].fc@1"), "net.0.fc");
        assert_eq!(plain_path("getattr(L['self'].layers, '0').fc"), "layers.0.fc");
    }

    #[test]
    fn locations() {
        let trace =
            "  File \"/a/b/model.py\", line 12, in forward\n    y\n  File \"/x/linear.py\", line 134, in forward\n";
        assert_eq!(location(trace).as_deref(), Some("linear.py:134"));
        assert_eq!(location("File \"<eval_with_key>.4\", line 5, in f").as_deref(), Some("<eval_with_key>.4:5"));
        let inside = "File \"/m.py\", line 3, in f\n  File \"/x/site-packages/torch/_dynamo/e.py\", line 9, in g\n";
        assert_eq!(location(inside).as_deref(), Some("m.py:3"));
        assert_eq!(location("no frames"), None);
    }
}
