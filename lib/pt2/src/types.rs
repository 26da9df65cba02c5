//! Types of values, and the expressions in them.
//!
//! Every distinct expression text of a program is read once. Contiguous strides, the CPU and the strided layout are the
//! defaults of records and are left out.

use std::collections::{HashMap, HashSet};

use m2m_record::{Arg, Dim, Float, ScalarKind, TensorType, Type};
use m2m_tensor::{Expr, expr as build, layout};

use crate::schema::{Device, Graph, SymBool, SymExpr, SymFloat, SymHint, SymInt, TensorMeta};
use crate::{enums, expr};

/// The expressions of a program, and the symbols in them.
#[derive(Debug, Default)]
pub struct Exprs<'p> {
    read: HashMap<&'p str, Result<Expr, expr::Error>>,
    /// Symbols in order of appearance.
    symbols: Vec<String>,
    seen: HashSet<String>,
    hints: HashMap<String, Arg>,
}

/// Why a type cannot be stated.
#[derive(Debug)]
pub enum Fault {
    /// An expression is not read: its text and the reason.
    Expr(String, expr::Error),
    /// Something else, in words.
    Other(String),
}

impl<'p> Exprs<'p> {
    /// Reads every expression of a graph.
    pub fn collect(&mut self, graph: &'p Graph<'_>) {
        for_each_expr(graph, &mut |e| self.add(e));
    }

    /// The symbols in the types of one graph, in order of appearance.
    pub fn symbols_of(&self, graph: &'p Graph<'_>) -> Vec<String> {
        let (mut symbols, mut texts, mut seen) = (Vec::new(), HashSet::new(), HashSet::new());
        for_each_expr(graph, &mut |e| {
            let text = e.expr_str.as_ref();
            if let Some(Ok(found)) = self.read.get(text).filter(|_| texts.insert(text)) {
                found.for_each_symbol(&mut |name| {
                    if seen.insert(name.to_owned()) {
                        symbols.push(name.to_owned());
                    }
                });
            }
        });
        symbols
    }

    fn add(&mut self, e: &'p SymExpr<'_>) {
        let text = e.expr_str.as_ref();
        if !self.read.contains_key(text) {
            let found = expr::parse(text);
            if let Ok(found) = &found {
                found.for_each_symbol(&mut |name| {
                    if self.seen.insert(name.to_owned()) {
                        self.symbols.push(name.to_owned());
                    }
                });
            }
            self.read.insert(text, found);
        }
        if let (Some(hint), Some(Ok(Expr::Sym(name)))) = (&e.hint, self.read.get(text))
            && !self.hints.contains_key(name)
        {
            self.hints.insert(name.clone(), hint_value(hint));
        }
    }

    /// Symbols in order of appearance.
    pub fn symbols(&self) -> &[String] {
        &self.symbols
    }

    /// The value that a symbol had at export.
    pub fn hint(&self, symbol: &str) -> Option<&Arg> {
        self.hints.get(symbol)
    }

    fn get(&self, e: &SymExpr<'_>) -> Result<&Expr, Fault> {
        let text = e.expr_str.as_ref();
        match self.read.get(text) {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => Err(Fault::Expr(cut(text), error.clone())),
            None => Err(Fault::Other(format!("expression {:?} was not collected", cut(text)))),
        }
    }

    fn int(&self, n: &SymInt<'_>) -> Result<Expr, Fault> {
        match n {
            SymInt::Int(n) => Ok(Expr::Int(*n)),
            SymInt::Expr(e) => self.get(e).cloned(),
        }
    }

    /// The type of a tensor.
    pub fn tensor(&self, meta: &TensorMeta<'_>) -> Result<Type, Fault> {
        let dtype = enums::scalar_type(meta.dtype)
            .ok_or_else(|| Fault::Other(format!("ScalarType {} is not known", meta.dtype)))?;
        let sizes = meta.sizes.iter().map(|n| self.int(n)).collect::<Result<Vec<_>, _>>()?;
        let strides = meta.strides.iter().map(|n| self.int(n)).collect::<Result<Vec<_>, _>>()?;
        let layout = match meta.layout {
            None | Some(0 | 7) => None,
            Some(n) => {
                Some(enums::layout(n).ok_or_else(|| Fault::Other(format!("Layout {n} is not known")))?.to_owned())
            }
        };
        if !strides.is_empty() && strides.len() != sizes.len() {
            let (given, rank) = (strides.len(), sizes.len());
            return Err(Fault::Other(format!("{given} strides for {rank} sizes; one a dimension is right")));
        }
        let is_default = layout.is_some() || strides.is_empty() || is_contiguous(&sizes, &strides);
        Ok(Type::Tensor(TensorType {
            dtype,
            shape: sizes.iter().map(Dim::from).collect(),
            strides: (!is_default).then(|| strides.iter().map(Dim::from).collect()),
            device: meta.device.as_ref().map(device).filter(|name| name != "cpu"),
            layout,
        }))
    }

    /// The type of an int value.
    pub fn int_type(&self, n: &SymInt<'_>) -> Result<Type, Fault> {
        Ok(scalar(ScalarKind::Int, self.int(n)?))
    }

    /// The type of a float value.
    pub fn float_type(&self, n: &SymFloat<'_>) -> Result<Type, Fault> {
        match n {
            SymFloat::Float(x) => Ok(scalar(ScalarKind::Float, Expr::Float(x.0))),
            SymFloat::Expr(e) => Ok(scalar(ScalarKind::Float, self.get(e)?.clone())),
        }
    }

    /// The type of a bool value.
    pub fn bool_type(&self, n: &SymBool<'_>) -> Result<Type, Fault> {
        match n {
            SymBool::Bool(b) => Ok(scalar(ScalarKind::Bool, Expr::Bool(*b))),
            SymBool::Expr(e) => Ok(scalar(ScalarKind::Bool, self.get(e)?.clone())),
        }
    }
}

/// Calls `f` with each expression in the types of a graph's values.
fn for_each_expr<'p>(graph: &'p Graph<'_>, f: &mut impl FnMut(&'p SymExpr<'p>)) {
    for (_, meta) in &graph.tensor_values.0 {
        for n in meta.sizes.iter().chain(&meta.strides) {
            if let SymInt::Expr(e) = n {
                f(e);
            }
        }
    }
    graph.sym_int_values.0.iter().for_each(|(_, n)| {
        if let SymInt::Expr(e) = n {
            f(e)
        }
    });
    graph.sym_float_values.0.iter().for_each(|(_, n)| {
        if let SymFloat::Expr(e) = n {
            f(e)
        }
    });
    graph.sym_bool_values.0.iter().for_each(|(_, n)| {
        if let SymBool::Expr(e) = n {
            f(e)
        }
    });
}

fn scalar(kind: ScalarKind, expr: Expr) -> Type {
    Type::Scalar { kind, expr: Some(expr.to_string()) }
}

fn hint_value(hint: &SymHint) -> Arg {
    match hint {
        SymHint::Int(n) => Arg::Int(*n),
        SymHint::Float(x) => Arg::Float(Float(x.0)),
        SymHint::Bool(b) => Arg::Bool(*b),
    }
}

/// `cpu`, `cuda:1`.
pub fn device(device: &Device<'_>) -> String {
    match device.index {
        Some(index) => format!("{}:{index}", device.kind),
        None => device.kind.to_string(),
    }
}

/// Whether strides are those of a row-major tensor without gaps, whatever values the symbols take.
fn is_contiguous(sizes: &[Expr], strides: &[Expr]) -> bool {
    let ints = |list: &[Expr]| list.iter().map(Expr::as_int).collect::<Option<Vec<_>>>();
    if let (Some(sizes), Some(strides)) = (ints(sizes), ints(strides)) {
        return layout::is_contiguous(&sizes, &strides);
    }
    if sizes.contains(&Expr::Int(0)) {
        return true;
    }
    // An extent that may be zero counts as one in strides, which torch writes as max(1, extent).
    let mut right = vec![Expr::Int(1)];
    for (size, stride) in sizes.iter().zip(strides).rev() {
        if *size == Expr::Int(1) {
            continue;
        }
        if !right.contains(stride) {
            return false;
        }
        let at_least_one = build::max([Expr::Int(1), size.clone()]);
        right = vec![build::mul([stride.clone(), size.clone()]), build::mul([stride.clone(), at_least_one])];
    }
    true
}

/// Longest expression that an error repeats.
const MAX_SHOWN: usize = 120;

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
