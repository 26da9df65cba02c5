//! Values of a graph's symbols: bound from inputs and from results, checked against ranges and guards.

use crate::error::Error;
use crate::value::Value;
use m2m_graph::Graph;
use m2m_record::{Dim, Type};
use m2m_tensor::expr::{Expr, Value as Number};
use std::collections::HashMap;

/// What symbols are known to be, by name.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    values: HashMap<String, Number>,
}

impl Symbols {
    /// A symbol's value.
    pub fn get(&self, name: &str) -> Option<Number> {
        self.values.get(name).copied()
    }

    /// Whether a symbol has a value.
    pub fn is_bound(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Gives a symbol its value.
    pub fn bind(&mut self, name: &str, value: Number) {
        self.values.insert(name.to_owned(), value);
    }

    /// The value of an expression.
    pub fn eval(&self, expr: &Expr) -> Result<Number, Error> {
        expr.eval(&|name| self.get(name)).map_err(|error| Error::value(error.to_string()))
    }

    /// Binds symbols from one value of a stated type: those that stand alone, then those in `a*s + b`. Unbound ones
    /// that stand in other expressions are left.
    pub fn bind_type(&mut self, ty: &Type, value: &Value) -> Result<(), Error> {
        for (expr, found) in stated(ty, value)? {
            match &expr {
                Expr::Sym(name) if !self.is_bound(name) => self.bind(name, found),
                _ => self.solve(&expr, found),
            }
        }
        Ok(())
    }

    /// Solves `expr == found` for its only unbound symbol, where the expression is linear in it.
    fn solve(&mut self, expr: &Expr, found: Number) {
        let mut unbound: Vec<&str> = Vec::new();
        expr.for_each_symbol(&mut |name| {
            if !self.is_bound(name) && !unbound.contains(&name) {
                unbound.push(name);
            }
        });
        let (&[name], Number::Int(found)) = (unbound.as_slice(), found) else { return };
        let at = |x: i64| expr.eval_int(&|n| if n == name { Some(x) } else { self.int(n) }).ok();
        let (Some(zero), Some(one), Some(two)) = (at(0), at(1), at(2)) else { return };
        let slope = one.wrapping_sub(zero);
        if slope == 0 || two.wrapping_sub(one) != slope {
            return;
        }
        let x = found.wrapping_sub(zero) / slope;
        if at(x) == Some(found) {
            self.bind(name, Number::Int(x));
        }
    }

    fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Number::Int(n) => Some(n),
            _ => None,
        }
    }

    /// Checks a value against its type: dtype, rank and every dimension whose symbols are known.
    pub fn check_type(&self, ty: &Type, value: &Value) -> Result<(), Error> {
        if let (Type::Tensor(tensor), Value::Tensor(found)) = (ty, value) {
            let (dtype, shape) = (found.dtype()?, found.shape()?);
            if dtype != tensor.dtype || shape.len() != tensor.shape.len() {
                return Err(Error::value(format!("expected {}; got {dtype} {shape:?}", self.shown(ty))));
            }
        }
        for (expr, found) in stated(ty, value)? {
            if let Ok(expected) = self.eval(&expr)
                && !is_same(expected, found)
            {
                return Err(Error::value(format!("expected {}; got {}", self.shown(ty), value.describe())));
            }
        }
        Ok(())
    }

    /// A type with what its symbols are.
    fn shown(&self, ty: &Type) -> String {
        let Type::Tensor(tensor) = ty else { return format!("a value of type {ty:?}") };
        let dims: Vec<String> = tensor.shape.iter().map(Dim::to_string).collect();
        let mut text = format!("{} [{}]", tensor.dtype, dims.join(", "));
        let mut known: Vec<String> = Vec::new();
        for expr in tensor.shape.iter().filter_map(|dim| Expr::try_from(dim).ok()) {
            expr.for_each_symbol(&mut |name| known.extend(self.int(name).map(|n| format!("{name}={n}"))));
        }
        known.sort();
        known.dedup();
        if !known.is_empty() {
            text += &format!(" with {}", known.join(", "));
        }
        text
    }

    /// Checks the ranges of the symbols that are bound.
    pub fn check_ranges(&self, graph: &Graph) -> Result<(), Error> {
        for symbol in &graph.symbols {
            let Some(Number::Int(value)) = self.get(&symbol.name) else { continue };
            if symbol.min.is_some_and(|min| value < min) || symbol.max.is_some_and(|max| value > max) {
                let bound = |b: Option<i64>| b.map_or("unbounded".to_owned(), |b| b.to_string());
                let (min, max) = (bound(symbol.min), bound(symbol.max));
                return Err(Error::Guard(format!("{} is {value}; its range is {min} to {max}", symbol.name)));
            }
        }
        Ok(())
    }

    /// Checks the guards of a graph, and says which cannot be read.
    pub fn check_guards(&self, graph: &Graph) -> Result<Vec<String>, Error> {
        let mut unread = Vec::new();
        for guard in &graph.guards {
            let shown = guard.message.as_deref().unwrap_or(&guard.expr);
            let Some(value) = guard.expr.parse::<Expr>().ok().and_then(|expr| self.eval(&expr).ok()) else {
                unread.push(shown.to_owned());
                continue;
            };
            if !value.is_true() {
                let mut names: Vec<&str> =
                    self.values.keys().map(String::as_str).filter(|n| guard.expr.contains(n)).collect();
                names.sort_unstable();
                let known: Vec<String> = names.iter().filter_map(|n| Some(format!("{n}={}", self.int(n)?))).collect();
                return Err(Error::Guard(format!("the guard {shown} does not hold with {}", known.join(", "))));
            }
        }
        Ok(unread)
    }
}

/// What a type states of a value's dimensions, or of a scalar, beside what they are.
fn stated(ty: &Type, value: &Value) -> Result<Vec<(Expr, Number)>, Error> {
    let parse = |text: &str| text.parse::<Expr>().map_err(|error| Error::value(error.to_string()));
    match (ty, value) {
        (Type::Tensor(tensor), Value::Tensor(found)) => {
            let dims = tensor.shape.iter().zip(found.shape()?);
            dims.map(|(dim, size)| match dim {
                Dim::Int(n) => Ok((Expr::Int(*n), Number::Int(size))),
                Dim::Expr(text) => Ok((parse(text)?, Number::Int(size))),
            })
            .collect()
        }
        (Type::Scalar { expr: Some(text), .. }, found) => match number(found) {
            Some(found) => Ok(vec![(parse(text)?, found)]),
            None => Ok(Vec::new()),
        },
        _ => Ok(Vec::new()),
    }
}

/// A scalar as a number of expressions.
pub fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Int(n) => Some(Number::Int(*n)),
        Value::Float(x) => Some(Number::Float(*x)),
        Value::Bool(b) => Some(Number::Bool(*b)),
        _ => None,
    }
}

fn is_same(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a == b,
        (Number::Bool(a), Number::Bool(b)) => a == b,
        (Number::Float(a), Number::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        // A bool may be stated as 0 or 1, an integer as a float.
        _ => a.is_true() == b.is_true(),
    }
}
