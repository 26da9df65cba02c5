//! A node's arguments by their schema's names, defaults filled in.

use crate::error::Error;
use crate::schema::{self, Schema};
use m2m_record::{Arg, DType, Node};

/// A call whose arguments are matched to its operator's schema.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    /// The call.
    pub node: &'a Node,
    /// The operator's schema.
    pub schema: Schema,
    given: Vec<Option<&'a Arg>>,
}

/// What stands where a schema says `Tensor`: a value, or a Python number that promotes as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A value of the graph.
    Value(&'a str),
    /// A number: an integer, a float, a bool, a complex number or an expression.
    Number(&'a Arg),
}

/// Matches a node's arguments to its operator's schema.
pub fn bind(node: &Node) -> Result<Bound<'_>, Error> {
    let schema = schema::find(&node.op).ok_or_else(|| Error::NoSchema { op: node.op.clone() })?;
    let mut given: Vec<Option<&Arg>> = vec![None; schema.args.len()];
    if node.args.len() > schema.args.len() {
        let (found, expected) = (node.args.len(), schema.args.len());
        return Err(Error::TooMany { op: node.op.clone(), found, expected });
    }
    for (slot, arg) in given.iter_mut().zip(&node.args) {
        *slot = Some(arg);
    }
    for (name, arg) in &node.kwargs {
        let Some(slot) = schema.position(name).and_then(|at| given.get_mut(at)) else {
            let expected = schema.args.iter().map(|a| a.name).collect::<Vec<_>>().join(", ");
            return Err(Error::UnknownKeyword { op: node.op.clone(), name: name.clone(), expected });
        };
        if slot.replace(arg).is_some() {
            return Err(Error::Twice { op: node.op.clone(), name: name.clone() });
        }
    }
    for (slot, arg) in given.iter().zip(&schema.args) {
        if slot.is_none() && arg.default.is_none() {
            return Err(Error::Missing { op: node.op.clone(), name: arg.name.to_owned() });
        }
    }
    Ok(Bound { node, schema, given })
}

/// An argument's kind and, where it is short, its text.
pub fn describe(arg: &Arg) -> String {
    match arg {
        Arg::Null => "None".into(),
        Arg::Bool(b) => format!("the bool {b}"),
        Arg::Int(n) => format!("the integer {n}"),
        Arg::Float(x) => format!("the float {:?}", x.0),
        Arg::Str(s) => format!("the string {s:?}"),
        Arg::List(items) => format!("a list of {}", items.len()),
        Arg::Value(name) => format!("the value {name}"),
        Arg::Sym(expr) => format!("the expression {expr}"),
        Arg::DType(d) => format!("the dtype {d}"),
        Arg::Complex(re, im) => format!("the complex number {:?}+{:?}j", re.0, im.0),
        Arg::Device(d) => format!("the device {d:?}"),
        Arg::Layout(l) => format!("the layout {l:?}"),
        Arg::MemoryFormat(m) => format!("the memory format {m:?}"),
        Arg::Graph(g) => format!("the graph {g:?}"),
        Arg::Op(op) => format!("the operator {op}"),
        Arg::Object { name, class } => format!("the object {name} of class {class}"),
        Arg::Map(map) => format!("a map of {}", map.len()),
    }
}

impl<'a> Bound<'a> {
    /// The operator.
    pub fn op(&self) -> &'a str {
        &self.node.op
    }

    fn kind(&self, name: &str, found: &Arg, expected: &'static str) -> Error {
        Error::Kind { op: self.node.op.clone(), name: name.to_owned(), found: describe(found), expected }
    }

    /// An argument, its default where it is not given.
    pub fn arg(&self, name: &str) -> Result<&Arg, Error> {
        let missing = || Error::Missing { op: self.node.op.clone(), name: name.to_owned() };
        let at = self.schema.position(name).ok_or_else(missing)?;
        let default = self.schema.args.get(at).and_then(|a| a.default.as_ref());
        self.given.get(at).copied().flatten().or(default).ok_or_else(missing)
    }

    /// Whether the schema has the argument.
    pub fn has(&self, name: &str) -> bool {
        self.schema.position(name).is_some()
    }

    /// An integer.
    pub fn int(&self, name: &str) -> Result<i64, Error> {
        match self.arg(name)? {
            Arg::Int(n) => Ok(*n),
            Arg::Bool(b) => Ok(i64::from(*b)),
            other => Err(self.kind(name, other, "an integer")),
        }
    }

    /// An integer, or none.
    pub fn int_or(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.arg(name)? {
            Arg::Null => Ok(None),
            _ => self.int(name).map(Some),
        }
    }

    /// A list of integers; one number stretches to the length that the schema states, as `SymInt[2]`.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, Error> {
        let items = self.sym_ints(name)?;
        let number = |item: &Arg| match item {
            Arg::Int(n) => Ok(*n),
            other => Err(self.kind(name, other, "a list of integers")),
        };
        items.iter().map(number).collect()
    }

    /// A list of integers, or none.
    pub fn ints_or(&self, name: &str) -> Result<Option<Vec<i64>>, Error> {
        match self.arg(name)? {
            Arg::Null => Ok(None),
            _ => self.ints(name).map(Some),
        }
    }

    /// A list of integers and expressions; one number stretches as in [`Bound::ints`].
    pub fn sym_ints(&self, name: &str) -> Result<Vec<Arg>, Error> {
        let size = self.schema.position(name).and_then(|at| self.schema.args.get(at)).and_then(|a| a.size);
        match (self.arg(name)?, size) {
            (Arg::List(items), Some(n)) if items.len() == 1 => Ok(vec![items.first().cloned().unwrap_or(Arg::Null); n]),
            (Arg::List(items), _) => Ok(items.clone()),
            (one @ (Arg::Int(_) | Arg::Sym(_) | Arg::Value(_)), n) => Ok(vec![one.clone(); n.unwrap_or(1)]),
            (other, _) => Err(self.kind(name, other, "a list of integers")),
        }
    }

    /// A bool.
    pub fn bool(&self, name: &str) -> Result<bool, Error> {
        match self.arg(name)? {
            Arg::Bool(b) => Ok(*b),
            Arg::Int(n @ (0 | 1)) => Ok(*n == 1),
            other => Err(self.kind(name, other, "a bool")),
        }
    }

    /// A float; an integer counts as one.
    pub fn float(&self, name: &str) -> Result<f64, Error> {
        match self.arg(name)? {
            Arg::Float(x) => Ok(x.0),
            Arg::Int(n) => Ok(*n as f64),
            Arg::Bool(b) => Ok(f64::from(u8::from(*b))),
            other => Err(self.kind(name, other, "a float")),
        }
    }

    /// A float, or none.
    pub fn float_or(&self, name: &str) -> Result<Option<f64>, Error> {
        match self.arg(name)? {
            Arg::Null => Ok(None),
            _ => self.float(name).map(Some),
        }
    }

    /// A string.
    pub fn str(&self, name: &str) -> Result<&str, Error> {
        match self.arg(name)? {
            Arg::Str(s) => Ok(s),
            other => Err(self.kind(name, other, "a string")),
        }
    }

    /// A string, or none.
    pub fn str_or(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.arg(name)? {
            Arg::Null => Ok(None),
            _ => self.str(name).map(Some),
        }
    }

    /// A dtype, or none.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>, Error> {
        match self.arg(name)? {
            Arg::Null => Ok(None),
            Arg::DType(d) => Ok(Some(*d)),
            other => Err(self.kind(name, other, "a dtype")),
        }
    }

    /// The name of a tensor value.
    pub fn tensor(&self, name: &str) -> Result<&str, Error> {
        match self.arg(name)? {
            Arg::Value(v) => Ok(v),
            other => Err(self.kind(name, other, "a tensor value")),
        }
    }

    /// The name of a tensor value, or none.
    pub fn opt_tensor(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.arg(name)? {
            Arg::Null => Ok(None),
            _ => self.tensor(name).map(Some),
        }
    }

    /// A tensor value, or the Python number that stands for one.
    pub fn operand(&self, name: &str) -> Result<Operand<'_>, Error> {
        match self.arg(name)? {
            Arg::Value(v) => Ok(Operand::Value(v)),
            number @ (Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) | Arg::Complex(..) | Arg::Sym(_)) => {
                Ok(Operand::Number(number))
            }
            other => Err(self.kind(name, other, "a tensor value or a number")),
        }
    }

    /// The names of a list of tensor values.
    pub fn tensors(&self, name: &str) -> Result<Vec<&str>, Error> {
        self.opt_tensors(name)?
            .into_iter()
            .map(|item| item.ok_or_else(|| self.kind(name, &Arg::Null, "a list of tensor values")))
            .collect()
    }

    /// The names of a list of tensor values, some of which may be absent.
    pub fn opt_tensors(&self, name: &str) -> Result<Vec<Option<&str>>, Error> {
        let Arg::List(items) = self.arg(name)? else {
            return Err(self.kind(name, self.arg(name)?, "a list of tensor values"));
        };
        let value = |item: &'_ Arg| match item {
            Arg::Null => Ok(None),
            Arg::Value(v) => Ok(Some(v.clone())),
            other => Err(self.kind(name, other, "a list of tensor values")),
        };
        items.iter().try_for_each(|item| value(item).map(drop))?;
        Ok(items.iter().map(|item| if let Arg::Value(v) = item { Some(v.as_str()) } else { None }).collect())
    }

    /// A number: an integer, a float, a bool, a complex number, an expression, or a scalar value.
    pub fn scalar(&self, name: &str) -> Result<&Arg, Error> {
        match self.arg(name)? {
            n @ (Arg::Int(_) | Arg::Float(_) | Arg::Bool(_) | Arg::Complex(..) | Arg::Sym(_) | Arg::Value(_)) => Ok(n),
            other => Err(self.kind(name, other, "a number")),
        }
    }

    /// A number, or none.
    pub fn opt_scalar(&self, name: &str) -> Result<Option<&Arg>, Error> {
        match self.arg(name)? {
            Arg::Null => Ok(None),
            _ => self.scalar(name).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m2m_record::Kwargs;

    fn node(op: &str, args: Vec<Arg>, kwargs: &[(&str, Arg)]) -> Node {
        let kwargs: Kwargs = kwargs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        Node { op: op.into(), args, kwargs, ..Node::default() }
    }

    #[test]
    fn defaults_fill_and_one_number_stretches() {
        let call = node("aten.conv2d.default", vec![Arg::value("x"), Arg::value("w")], &[("stride", Arg::ints([2]))]);
        let bound = bind(&call).unwrap();
        assert_eq!(bound.tensor("input").unwrap(), "x");
        assert_eq!(bound.opt_tensor("bias").unwrap(), None);
        assert_eq!(bound.ints("stride").unwrap(), [2, 2]);
        assert_eq!(bound.ints("padding").unwrap(), [0, 0]);
        assert_eq!(bound.int("groups").unwrap(), 1);
    }

    #[test]
    fn an_error_names_operator_argument_and_both_kinds() {
        let call = node("aten.permute.default", vec![Arg::value("x"), Arg::Bool(true)], &[]);
        let message = bind(&call).unwrap().ints("dims").unwrap_err().to_string();
        let expected = "aten.permute.default: argument \"dims\" is the bool true; expected a list of integers";
        assert_eq!(message, expected);
        assert!(matches!(bind(&node("aten.permute.default", vec![], &[])), Err(Error::Missing { .. })));
        let twice = node("aten.relu.default", vec![Arg::value("x")], &[("self", Arg::value("x"))]);
        assert!(matches!(bind(&twice), Err(Error::Twice { .. })));
        let unknown = node("aten.relu.default", vec![Arg::value("x")], &[("input", Arg::value("x"))]);
        assert!(matches!(bind(&unknown), Err(Error::UnknownKeyword { .. })));
        assert!(matches!(bind(&node("no.such.op", vec![], &[])), Err(Error::NoSchema { .. })));
    }

    #[test]
    fn a_number_may_stand_for_a_tensor() {
        let call = node("aten.add.Tensor", vec![Arg::value("x"), Arg::Int(2)], &[]);
        let bound = bind(&call).unwrap();
        assert_eq!(bound.operand("other").unwrap(), Operand::Number(&Arg::Int(2)));
        assert!(bound.tensor("other").is_err());
    }
}
