//! Operators that write, as functions: `auto_functionalized` and `auto_functionalized_v2` of PyTorch.
//!
//! The operator is called on copies of what it writes to, and the copies are results after its own. In the first form they
//! are of the arguments themselves, in the order of the schema. In the second they are of `_all_bases`; an argument NAME is
//! then a view of the base of number `_NAME_base_index`: the base itself (`_NAME_alias`), a slice (`_NAME_slice_dim`,
//! `_NAME_slice_start`, `_NAME_slice_end`), or by strides (`_NAME_size`, `_NAME_stride`, `_NAME_storage_offset`); of a list
//! of `_NAME_length` tensors, the same of `_NAME_0`, `_NAME_1`, and so on.

use crate::body::Template;
use crate::engine::{Engine, Operator, Scratch};
use crate::error::Error;
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::{Arg, Kwargs, Node};
use std::rc::Rc;

/// A call on copies.
pub struct Functional {
    operator: Rc<Operator>,
    /// In the order of the schema; those that are views of a base are absent.
    args: Vec<Template>,
    /// Arguments that are written to, in the order of the schema.
    written: Vec<usize>,
    /// The bases and how arguments are views of them, in the second form.
    bases: Option<Bases>,
}

struct Bases {
    all: Template,
    views: Vec<(usize, View)>,
}

/// How an argument comes from the bases.
enum View {
    None,
    Base(Template),
    Slice(Template, [Template; 3]),
    Strided(Template, [Template; 3]),
    List(Vec<View>),
}

/// Makes a template of an argument.
type Make<'a> = dyn Fn(&Arg) -> Result<Template, Error> + 'a;

impl Functional {
    /// Reads the arguments of a node: an operator, and its arguments by name.
    pub fn new(engine: &Engine, node: &Node, make: &Make<'_>) -> Result<Functional, Error> {
        let [Arg::Op(op)] = node.args.as_slice() else {
            return Err(Error::value("expected an operator and arguments by name"));
        };
        let operator = engine.operator(op);
        let operator = operator.ok_or_else(|| Error::value(format!("the operator {op} is not in libtorch")))?;
        let schema = operator.schema();
        let written = written(&schema, operator.arguments());
        let mut args = Vec::new();
        for name in operator.arguments() {
            args.push(node.kwargs.get(name).map_or(Ok(Template::Absent), make)?);
        }
        let bases = match node.kwargs.get("_all_bases") {
            None => None,
            Some(all) => {
                let mut views = Vec::new();
                for at in &written {
                    let name = operator.arguments().get(*at).map_or("", String::as_str);
                    views.push((*at, View::new(&node.kwargs, name, make)?));
                }
                Some(Bases { all: make(all)?, views })
            }
        };
        Ok(Functional { operator, args, written, bases })
    }

    /// Everything that it reads.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.args.iter().chain(self.bases.iter().flat_map(|bases| {
            let mut all = vec![&bases.all];
            bases.views.iter().for_each(|(_, view)| view.templates(&mut all));
            all
        }))
    }

    /// Calls it. An operator that returns nothing has a first result that is none.
    pub fn run(
        &self,
        engine: &Engine,
        fill: &mut dyn FnMut(&Template) -> Result<Value, Error>,
    ) -> Result<Vec<Value>, Error> {
        let mut values: Vec<Option<Value>> = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            values.push(if matches!(arg, Template::Absent) { None } else { Some(fill(arg)?) });
        }
        let copies = match &self.bases {
            Some(bases) => {
                let Value::List(copies) = copy(engine, &fill(&bases.all)?)? else {
                    return Err(Error::value("_all_bases is no list"));
                };
                for (at, view) in &bases.views {
                    values[*at] = Some(view.of(engine, &copies, fill)?);
                }
                copies
            }
            None => {
                let mut copies = Vec::new();
                for at in &self.written {
                    if let Some(value) = values.get_mut(*at).and_then(Option::as_mut) {
                        *value = copy(engine, value)?;
                        copies.push(value.clone());
                    }
                }
                copies
            }
        };
        let mut results = Vec::new();
        Scratch::default().call(&self.operator, &mut results, |scratch, raws| {
            raws.extend(values.iter().map(|value| scratch.given(value.as_ref())));
            Ok(())
        })?;
        if results.is_empty() {
            results.push(Value::None);
        }
        // An operator in place returns what it wrote to; as a function it must not share it.
        for result in &mut results {
            *result = copy(engine, result)?;
        }
        results.extend(copies);
        Ok(results)
    }
}

impl View {
    fn new(kwargs: &Kwargs, name: &str, make: &Make<'_>) -> Result<View, Error> {
        let get = |what: &str| kwargs.get(&format!("_{name}_{what}"));
        if let Some(Arg::Int(length)) = get("length") {
            let items = (0..*length).map(|k| View::new(kwargs, &format!("{name}_{k}"), make));
            return items.collect::<Result<_, _>>().map(View::List);
        }
        let base = match get("base_index") {
            None | Some(Arg::Null) => return Ok(View::None),
            Some(base) => make(base)?,
        };
        let three = |names: [&str; 3]| -> Result<Option<[Template; 3]>, Error> {
            let [Some(a), Some(b), Some(c)] = names.map(get) else { return Ok(None) };
            Ok(Some([make(a)?, make(b)?, make(c)?]))
        };
        if let Some(slice) = three(["slice_dim", "slice_start", "slice_end"])? {
            return Ok(View::Slice(base, slice));
        }
        if let Some(strided) = three(["size", "stride", "storage_offset"])? {
            return Ok(View::Strided(base, strided));
        }
        Ok(View::Base(base))
    }

    fn templates<'a>(&'a self, all: &mut Vec<&'a Template>) {
        match self {
            View::None => {}
            View::Base(base) => all.push(base),
            View::Slice(base, rest) | View::Strided(base, rest) => {
                all.push(base);
                all.extend(rest);
            }
            View::List(items) => items.iter().for_each(|item| item.templates(all)),
        }
    }

    fn of(
        &self,
        engine: &Engine,
        bases: &[Value],
        fill: &mut dyn FnMut(&Template) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        let base = |index: &Template, fill: &mut dyn FnMut(&Template) -> Result<Value, Error>| {
            let index = fill(index)?.int()?;
            let found = usize::try_from(index).ok().and_then(|index| bases.get(index));
            found.cloned().ok_or_else(|| Error::value(format!("base {index} of {}", bases.len())))
        };
        Ok(match self {
            View::None => Value::None,
            View::Base(index) => base(index, fill)?,
            View::Slice(index, rest) => {
                let args = [base(index, fill)?, fill(&rest[0])?, fill(&rest[1])?, fill(&rest[2])?];
                engine.tensor("aten.slice.Tensor", &args)?.into()
            }
            View::Strided(index, rest) => {
                let args = [base(index, fill)?, fill(&rest[0])?, fill(&rest[1])?, fill(&rest[2])?];
                engine.tensor("aten.as_strided.default", &args)?.into()
            }
            View::List(items) => {
                Value::List(items.iter().map(|item| item.of(engine, bases, fill)).collect::<Result<_, _>>()?)
            }
        })
    }
}

/// The same with tensors of its own.
fn copy(engine: &Engine, value: &Value) -> Result<Value, Error> {
    Ok(match value {
        Value::Tensor(tensor) => {
            let copied: Tensor = engine.tensor("aten.clone.default", &[tensor.into()])?;
            copied.into()
        }
        Value::List(items) => Value::List(items.iter().map(|item| copy(engine, item)).collect::<Result<_, _>>()?),
        other => other.clone(),
    })
}

/// Arguments that a schema says are written to: `Tensor(a!) self`.
fn written(schema: &str, names: &[String]) -> Vec<usize> {
    let arguments = schema.split_once('(').map_or("", |(_, rest)| rest);
    let arguments = arguments.rsplit_once(" -> ").map_or(arguments, |(arguments, _)| arguments);
    let is_written = |name: &String| {
        let found = arguments.split(", ").find(|part| argument(part) == name);
        found.is_some_and(|part| part.contains("!)"))
    };
    names.iter().enumerate().filter(|(_, name)| is_written(name)).map(|(at, _)| at).collect()
}

/// The name of an argument: `Tensor(a!)? out=None` is `out`.
fn argument(part: &str) -> &str {
    let part = part.trim_end_matches(')');
    let part = part.split('=').next().unwrap_or(part);
    part.rsplit(' ').next().unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_says_what_is_written_to() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let schema = "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)";
        assert_eq!(written(schema, &names(&["self", "other", "alpha"])), [0]);
        let schema = "lib::fill(Tensor x, Tensor(a!)[] outs, Tensor(b!)? y=None) -> ()";
        assert_eq!(written(schema, &names(&["x", "outs", "y"])), [1, 2]);
    }
}
