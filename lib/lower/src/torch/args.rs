//! Arguments of operators as values: constants, lists, and sizes over symbols.

use super::types;
use crate::error::{Error, Result};
use m2m_aten::Bound;
use m2m_aten::schema::SchemaArg;
use m2m_mlir::{Attribute, Builder, Value, attr};
use m2m_record::{Arg, Dim, ScalarKind, Type as RecordType};
use m2m_tensor::Expr;
use m2m_tensor::expr::Cmp;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What is known in one graph.
#[derive(Clone, Default)]
pub struct Scope<'c> {
    values: HashMap<String, (Value<'c>, RecordType)>,
    numbers: HashMap<String, Value<'c>>,
    constants: HashMap<String, Value<'c>>,
    /// The symbols that stand for floats.
    pub floats: HashSet<String>,
}

/// The state of an emission.
pub struct Cx<'c> {
    /// Where operations go.
    pub b: Rc<Builder<'c>>,
    /// What is known here.
    pub scope: Scope<'c>,
}

impl<'c> Scope<'c> {
    /// What a called graph knows at its begin: sizes and constants, no values.
    pub fn inside(outer: &Scope<'c>) -> Scope<'c> {
        Scope { values: HashMap::new(), ..outer.clone() }
    }
}

impl<'c> Cx<'c> {
    /// Nothing known yet.
    pub fn new(b: Builder<'c>) -> Self {
        Cx { b: Rc::new(b), scope: Scope::default() }
    }

    /// An operation with one result of a type given by its text.
    pub fn op1(
        &self,
        name: &str,
        operands: &[Value<'c>],
        ty: &str,
        attrs: &[(&str, Attribute<'c>)],
    ) -> Result<Value<'c>> {
        Ok(self.b.op1(name, operands, types::parse(&self.b, ty)?, attrs)?)
    }

    /// Defines a value, and the symbols that first appear in its type.
    pub fn define(&mut self, name: &str, value: Value<'c>, ty: &RecordType) -> Result<()> {
        match ty {
            RecordType::Tensor(t) => {
                for (axis, dim) in t.shape.iter().enumerate() {
                    let Dim::Expr(text) = dim else { continue };
                    if let Ok(Expr::Sym(symbol)) = text.parse::<Expr>()
                        && !self.scope.numbers.contains_key(&symbol)
                    {
                        let axis = self.int(axis as i64)?;
                        let size = self.op1("torch.aten.size.int", &[value, axis], "!torch.int", &[])?;
                        self.scope.numbers.insert(symbol, size);
                    }
                }
            }
            RecordType::Scalar { expr: Some(text), kind } => {
                if let Ok(Expr::Sym(symbol)) = text.parse::<Expr>() {
                    if *kind == ScalarKind::Float {
                        self.scope.floats.insert(symbol.clone());
                    }
                    self.scope.numbers.entry(symbol).or_insert(value);
                }
            }
            _ => {}
        }
        self.scope.values.insert(name.to_owned(), (value, ty.clone()));
        Ok(())
    }

    /// A value of the graph.
    pub fn value(&self, name: &str) -> Result<(Value<'c>, &RecordType)> {
        let found = self.scope.values.get(name);
        found.map(|(value, ty)| (*value, ty)).ok_or_else(|| Error::Graph(format!("value {name:?} is not defined")))
    }

    /// A constant, once in each graph.
    fn constant(&mut self, kind: &str, ty: &str, value: Option<(&str, Attribute<'c>)>) -> Result<Value<'c>> {
        let key = format!("{kind} {}", value.map_or_else(String::new, |(_, value)| value.to_string()));
        if let Some(known) = self.scope.constants.get(&key) {
            return Ok(*known);
        }
        let attrs: Vec<_> = value.into_iter().collect();
        let made = self.op1(&format!("torch.constant.{kind}"), &[], ty, &attrs)?;
        self.scope.constants.insert(key, made);
        Ok(made)
    }

    /// `torch.constant.int`
    pub fn int(&mut self, n: i64) -> Result<Value<'c>> {
        let value = attr::int(self.b.elem("i64")?, n);
        self.constant("int", "!torch.int", Some(("value", value)))
    }

    /// `torch.constant.float`
    pub fn float(&mut self, x: f64) -> Result<Value<'c>> {
        let value = attr::float(self.b.context(), self.b.elem("f64")?, x);
        self.constant("float", "!torch.float", Some(("value", value)))
    }

    /// `torch.constant.bool`
    pub fn bool(&mut self, x: bool) -> Result<Value<'c>> {
        let value = attr::int(self.b.elem("bool")?, i64::from(x));
        self.constant("bool", "!torch.bool", Some(("value", value)))
    }

    /// `torch.constant.none`
    pub fn none(&mut self) -> Result<Value<'c>> {
        self.constant("none", "!torch.none", None)
    }

    fn str(&mut self, text: &str) -> Result<Value<'c>> {
        let value = attr::string(self.b.context(), text);
        self.constant("str", "!torch.str", Some(("value", value)))
    }

    /// Whether every symbol of an expression has a value.
    pub fn knows(&self, expr: &Expr) -> bool {
        let mut all = true;
        expr.for_each_symbol(&mut |name| all &= self.scope.numbers.contains_key(name));
        all
    }

    /// An integer expression over symbols as a `!torch.int`, a condition as a `!torch.bool`.
    pub fn number(&mut self, expr: &Expr) -> Result<Value<'c>> {
        let key = expr.to_string();
        if let Some(known) = self.scope.numbers.get(&key) {
            return Ok(*known);
        }
        let value = self.compute(expr)?;
        if !matches!(expr, Expr::Int(_) | Expr::Bool(_)) {
            self.scope.numbers.insert(key, value);
        }
        Ok(value)
    }

    /// A dimension as a `!torch.int`.
    pub fn size(&mut self, dim: &Dim) -> Result<Value<'c>> {
        match dim {
            Dim::Int(n) => self.int(*n),
            Dim::Expr(text) => {
                let expr: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
                self.number(&expr)
            }
        }
    }

    fn compute(&mut self, expr: &Expr) -> Result<Value<'c>> {
        let pair = |cx: &mut Self, name: &str, ty: &str, x: &Expr, y: &Expr| {
            let operands = [cx.number(x)?, cx.number(y)?];
            cx.op1(&format!("torch.{name}"), &operands, ty, &[])
        };
        match expr {
            _ if self.is_float(expr) && !matches!(expr, Expr::Sym(_)) => self.float_number(expr),
            Expr::Cmp(op, x, y) if self.is_float(x) || self.is_float(y) => self.compare_floats(*op, x, y),
            Expr::Int(n) => self.int(*n),
            Expr::Bool(x) => self.bool(*x),
            Expr::Add(items) => self.fold("torch.aten.add.int", "!torch.int", items),
            Expr::Mul(items) => self.fold("torch.aten.mul.int", "!torch.int", items),
            Expr::Max(items) => self.fold("torch.prim.max.int", "!torch.int", items),
            Expr::Min(items) => self.fold("torch.prim.min.int", "!torch.int", items),
            Expr::FloorDiv(x, y) => pair(self, "aten.floordiv.int", "!torch.int", x, y),
            Expr::Mod(x, y) => pair(self, "aten.remainder.int", "!torch.int", x, y),
            Expr::Cmp(op, x, y) => {
                let name = match op {
                    Cmp::Eq => "aten.eq.int",
                    Cmp::Ne => "aten.ne.int",
                    Cmp::Lt => "aten.lt.int",
                    Cmp::Le => "aten.le.int",
                    Cmp::Gt => "aten.gt.int",
                    Cmp::Ge => "aten.ge.int",
                };
                pair(self, name, "!torch.bool", x, y)
            }
            Expr::And(items) => self.fold("torch.aten.__and__.bool", "!torch.bool", items),
            Expr::Or(items) => self.fold("torch.aten.__or__.bool", "!torch.bool", items),
            Expr::Not(x) => {
                let x = self.number(x)?;
                let operands = [self.whole(x)?, self.int(0)?];
                self.op1("torch.aten.eq.int", &operands, "!torch.bool", &[])
            }
            Expr::Sym(name) => Err(Error::unsupported(format!("symbol {name} has no value here"))),
            other => Err(Error::unsupported(format!("the expression {other} in the torch dialect"))),
        }
    }

    fn fold(&mut self, name: &str, ty: &str, items: &[Expr]) -> Result<Value<'c>> {
        let mut result = None;
        for item in items {
            let value = self.number(item)?;
            result = Some(match result {
                None => value,
                Some(so_far) => self.op1(name, &[so_far, value], ty, &[])?,
            });
        }
        result.ok_or_else(|| Error::Graph("an operation over no operands".into()))
    }

    /// A number, an expression or a value, with the text of its type.
    pub fn scalar(&mut self, arg: &Arg) -> Result<(Value<'c>, String)> {
        Ok(match arg {
            Arg::Int(n) => (self.int(*n)?, "!torch.int".into()),
            Arg::Float(x) => (self.float(x.0)?, "!torch.float".into()),
            Arg::Bool(x) => (self.bool(*x)?, "!torch.bool".into()),
            Arg::Sym(text) => {
                let expr: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
                let ty = match expr {
                    _ if self.is_float(&expr) => "!torch.float",
                    Expr::Cmp(..) | Expr::Bool(_) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) => "!torch.bool",
                    _ => "!torch.int",
                };
                (self.number(&expr)?, ty.to_owned())
            }
            Arg::Value(name) => {
                let (value, ty) = self.value(name)?;
                (value, types::text(ty)?)
            }
            other => return Err(Error::unsupported(format!("{other:?} as a number"))),
        })
    }

    /// An argument as the schema has it.
    pub fn operand(&mut self, bound: &Bound<'_>, schema: &SchemaArg) -> Result<Value<'c>> {
        match bound.arg(schema.name)? {
            Arg::Null => self.none(),
            Arg::List(items) if schema.is_list => {
                let stretched = schema.size.filter(|_| items.len() == 1);
                let items: Vec<Arg> = items.iter().cycle().take(stretched.unwrap_or(items.len())).cloned().collect();
                self.list(schema, &items)
            }
            one if schema.is_list => {
                let one = one.clone();
                self.list(schema, &vec![one; schema.size.unwrap_or(1)])
            }
            one => {
                let one = one.clone();
                self.element(schema.ty, &one)
            }
        }
    }

    fn list(&mut self, schema: &SchemaArg, items: &[Arg]) -> Result<Value<'c>> {
        let inner = match schema.ty {
            "Tensor" if schema.is_element_optional => "optional<vtensor>",
            "Tensor" => "vtensor",
            "int" | "SymInt" => "int",
            "float" => "float",
            "bool" => "bool",
            other => return Err(Error::unsupported(format!("a list of {other} in the torch dialect"))),
        };
        let values = items.iter().map(|item| self.element(schema.ty, item)).collect::<Result<Vec<_>>>()?;
        self.op1("torch.prim.ListConstruct", &values, &format!("!torch.list<{inner}>"), &[])
    }

    /// One value of a schema's type.
    fn element(&mut self, ty: &str, arg: &Arg) -> Result<Value<'c>> {
        match (ty, arg) {
            (_, Arg::Null) => self.none(),
            ("Tensor", Arg::Value(name)) => match self.value(name)? {
                (value, RecordType::Tensor(_)) => Ok(value),
                (value, RecordType::Scalar { kind, .. }) => {
                    let kind = *kind;
                    self.lifted(value, kind)
                }
                (_, other) => Err(Error::Graph(format!("{name} is {other:?}, no tensor"))),
            },
            ("Tensor", number) => {
                let (value, ty) = self.scalar(number)?;
                let kind = match ty.as_str() {
                    "!torch.int" => ScalarKind::Int,
                    "!torch.float" => ScalarKind::Float,
                    _ => ScalarKind::Bool,
                };
                self.lifted(value, kind)
            }
            ("int" | "SymInt", Arg::Bool(x)) => self.int(i64::from(*x)),
            ("int" | "SymInt", arg) => Ok(self.scalar(arg)?.0),
            ("float", Arg::Int(n)) => self.float(*n as f64),
            // A bool is no number in the dialect.
            ("Scalar", Arg::Bool(x)) => self.int(i64::from(*x)),
            ("Scalar", arg) => match self.scalar(arg)? {
                (value, ty) if ty == "!torch.bool" => self.whole(value),
                (value, _) => Ok(value),
            },
            ("float" | "bool", arg) => Ok(self.scalar(arg)?.0),
            ("str", Arg::Str(text)) => self.str(text),
            ("ScalarType", Arg::DType(dtype)) => {
                let code = types::code(*dtype)?;
                self.int(code)
            }
            ("ScalarType", Arg::Int(code)) => self.int(*code),
            ("Device" | "Layout" | "Generator", _) => self.none(),
            ("MemoryFormat", Arg::MemoryFormat(name)) => {
                let code = if name.starts_with("preserve") { 1 } else { 0 };
                self.int(code)
            }
            (ty, arg) => Err(Error::unsupported(format!("{arg:?} as {ty} in the torch dialect"))),
        }
    }

    /// A `!torch.bool` as a `!torch.int`.
    fn whole(&self, value: Value<'c>) -> Result<Value<'c>> {
        self.op1("torch.aten.Int.bool", &[value], "!torch.int", &[])
    }

    /// A number as a tensor without dimensions.
    fn lifted(&self, value: Value<'c>, kind: ScalarKind) -> Result<Value<'c>> {
        let element = match kind {
            ScalarKind::Int => "si64",
            ScalarKind::Float => "f64",
            ScalarKind::Bool => "i1",
            other => return Err(Error::unsupported(format!("a {other:?} number in the torch dialect"))),
        };
        self.op1("torch.prim.NumToTensor.Scalar", &[value], &format!("!torch.vtensor<[],{element}>"), &[])
    }
}
