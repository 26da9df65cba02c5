//! Symbols and expressions as `index` values.
//!
//! A symbol is bound where its value first exists: at an input whose shape it stands in, or at a result that depends on
//! data. Expressions become `arith` on `index`, each canonical text once.

use crate::error::{Error, Result};
use m2m_mlir::{Builder, CmpF, CmpI, Size, Value};
use m2m_record::{Dim, ScalarKind};
use m2m_tensor::Expr;
use m2m_tensor::expr::Cmp;
use std::collections::HashMap;

/// Values of symbols and of expressions over them.
#[derive(Clone, Default)]
pub struct Symbols<'c> {
    values: HashMap<String, Value<'c>>,
    reals: HashMap<String, Value<'c>>,
}

impl<'c> Symbols<'c> {
    /// Says what a symbol is.
    pub fn bind(&mut self, name: &str, value: Value<'c>) {
        self.values.entry(name.to_owned()).or_insert(value);
    }

    /// Says what a symbol for a float is, as an `f64` value.
    pub fn bind_real(&mut self, name: &str, value: Value<'c>) {
        self.reals.entry(name.to_owned()).or_insert(value);
    }

    /// Says what a symbol is from here on, whatever it was: an input of a nested graph has a value of its own.
    pub fn rebind(&mut self, name: &str, kind: ScalarKind, value: Value<'c>) {
        if self.values.contains_key(name) || self.reals.contains_key(name) {
            // Expressions that were computed may depend on it; symbols do not.
            let is_symbol = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            self.values.retain(|text, _| is_symbol(text) && text != name);
            self.reals.remove(name);
        }
        let values = if kind == ScalarKind::Float { &mut self.reals } else { &mut self.values };
        values.insert(name.to_owned(), value);
    }

    /// Whether every symbol of an expression is bound.
    pub fn knows(&self, expr: &Expr) -> bool {
        let mut all = true;
        expr.for_each_symbol(&mut |name| all &= self.values.contains_key(name) || self.reals.contains_key(name));
        all
    }

    /// The kind of number that an expression gives.
    pub fn kind(&self, expr: &Expr) -> ScalarKind {
        match expr {
            Expr::Bool(_) | Expr::Cmp(..) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) => ScalarKind::Bool,
            Expr::Float(_) | Expr::Div(..) => ScalarKind::Float,
            Expr::Sym(name) if self.reals.contains_key(name) => ScalarKind::Float,
            Expr::Ceil(_) | Expr::Floor(_) | Expr::Trunc(_) => ScalarKind::Int,
            other if other.operands().iter().any(|e| self.kind(e) == ScalarKind::Float) => ScalarKind::Float,
            _ => ScalarKind::Int,
        }
    }

    /// An expression of any kind: `index` for integers, `f64` for floats, `i1` for conditions.
    pub fn number(&mut self, b: &Builder<'c>, expr: &Expr) -> Result<(ScalarKind, Value<'c>)> {
        let kind = self.kind(expr);
        let value = match kind {
            ScalarKind::Bool => self.condition(b, expr)?,
            ScalarKind::Float => self.real(b, expr)?,
            _ => self.value(b, expr)?,
        };
        Ok((kind, value))
    }

    /// Binds the symbol of a shape entry from the run-time size at that place: `s0` directly, `2*s0+1` by inversion.
    /// Gives true if it bound one.
    pub fn bind_from(&mut self, b: &Builder<'c>, expr: &Expr, size: Value<'c>) -> Result<bool> {
        if self.knows(expr) {
            return Ok(false);
        }
        let bound = match expr {
            Expr::Sym(name) => Some((name.clone(), size)),
            Expr::Add(terms) => match terms.as_slice() {
                [term, Expr::Int(offset)] => {
                    let less = b.subi(size, b.const_index(*offset)?)?;
                    return self.bind_from(b, term, less);
                }
                _ => None,
            },
            Expr::Mul(factors) => match factors.as_slice() {
                [Expr::Int(n), Expr::Sym(name)] if *n > 0 => Some((name.clone(), b.divsi(size, b.const_index(*n)?)?)),
                _ => None,
            },
            _ => None,
        };
        match bound {
            Some((name, value)) => {
                self.bind(&name, value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// A dimension as a size.
    pub fn size(&mut self, b: &Builder<'c>, dim: &Dim) -> Result<Size<'c>> {
        match dim {
            Dim::Int(n) => Ok(Size::Static(*n)),
            Dim::Expr(text) => {
                if let Some(value) = self.values.get(text) {
                    return Ok(Size::Value(*value));
                }
                let expr: Expr = text.parse().map_err(|e| Error::Graph(format!("{e}")))?;
                Ok(match expr {
                    Expr::Int(n) => Size::Static(n),
                    expr => Size::Value(self.value(b, &expr)?),
                })
            }
        }
    }

    /// An integer expression as an `index` value.
    pub fn value(&mut self, b: &Builder<'c>, expr: &Expr) -> Result<Value<'c>> {
        let key = expr.to_string();
        if let Some(value) = self.values.get(&key) {
            return Ok(*value);
        }
        let value = self.compute(b, expr)?;
        if !matches!(expr, Expr::Int(_)) {
            self.values.insert(key, value);
        }
        Ok(value)
    }

    fn compute(&mut self, b: &Builder<'c>, expr: &Expr) -> Result<Value<'c>> {
        match expr {
            Expr::Int(n) => Ok(b.const_index(*n)?),
            Expr::Sym(name) => {
                Err(Error::unsupported(format!("symbol {name} has no value here: no input's shape gives it")))
            }
            Expr::Add(items) => self.fold(b, items, |b, x, y| b.addi(x, y)),
            Expr::Mul(items) => self.fold(b, items, |b, x, y| b.muli(x, y)),
            Expr::Max(items) => self.fold(b, items, |b, x, y| b.maxsi(x, y)),
            Expr::Min(items) => self.fold(b, items, |b, x, y| b.minsi(x, y)),
            Expr::FloorDiv(x, y) => Ok(b.floordivsi(self.value(b, x)?, self.divisor(b, y)?)?),
            Expr::Mod(x, y) => {
                let (x, y) = (self.value(b, x)?, self.divisor(b, y)?);
                let quotient = b.floordivsi(x, y)?;
                Ok(b.subi(x, b.muli(quotient, y)?)?)
            }
            Expr::Ceil(inner) | Expr::Floor(inner) | Expr::Trunc(inner) => {
                let Expr::Div(x, y) = inner.as_ref() else { return self.rounded(b, expr, inner) };
                let (x, y) = (self.value(b, x)?, self.divisor(b, y)?);
                Ok(match expr {
                    Expr::Ceil(_) => b.ceildivsi(x, y)?,
                    Expr::Floor(_) => b.floordivsi(x, y)?,
                    _ => b.divsi(x, y)?,
                })
            }
            Expr::Pow(base, exponent) => match exponent.as_int() {
                Some(n @ 1..=16) => {
                    let items = vec![base.as_ref().clone(); n as usize];
                    self.fold(b, &items, |b, x, y| b.muli(x, y))
                }
                _ => Err(not_integer(expr)),
            },
            Expr::Where(c, x, y) => {
                let condition = self.condition(b, c)?;
                Ok(b.select(condition, self.value(b, x)?, self.value(b, y)?)?)
            }
            _ => Err(not_integer(expr)),
        }
    }

    /// A float expression made an integer, computed in f64 as Python does.
    fn rounded(&mut self, b: &Builder<'c>, expr: &Expr, inner: &Expr) -> Result<Value<'c>> {
        let x = self.real(b, inner)?;
        let x = match expr {
            Expr::Ceil(_) => b.unary("math.ceil", x)?,
            Expr::Floor(_) => b.unary("math.floor", x)?,
            _ => x,
        };
        Ok(b.index_cast(b.cast("fptosi", x, b.elem("i64")?)?, b.index_type())?)
    }

    /// A float expression as an `f64` value. Expressions are nested no deeper than their parser allows.
    fn real(&mut self, b: &Builder<'c>, expr: &Expr) -> Result<Value<'c>> {
        let (items, op): (&[Expr], Real<'c>) = match expr {
            Expr::Float(x) => return Ok(b.const_float(b.elem("f64")?, *x)?),
            Expr::Sym(name) if self.reals.contains_key(name) => return Ok(self.reals[name]),
            Expr::Pow(x, y) => return Ok(b.binary("math.powf", self.real(b, x)?, self.real(b, y)?)?),
            Expr::Max(items) => (items, |b, x, y| b.maximumf(x, y)),
            Expr::Min(items) => (items, |b, x, y| b.minimumf(x, y)),
            Expr::Add(items) => (items, |b, x, y| b.addf(x, y)),
            Expr::Mul(items) => (items, |b, x, y| b.mulf(x, y)),
            Expr::Div(x, y) => return Ok(b.divf(self.real(b, x)?, self.real(b, y)?)?),
            whole => {
                let wide = b.index_cast(self.value(b, whole)?, b.elem("i64")?)?;
                return Ok(b.cast("sitofp", wide, b.elem("f64")?)?);
            }
        };
        let mut result = None;
        for item in items {
            let value = self.real(b, item)?;
            result = Some(match result {
                None => value,
                Some(so_far) => op(b, so_far, value)?,
            });
        }
        result.ok_or_else(|| Error::Graph("an operation over no operands".into()))
    }

    /// A divisor, with 1 in place of a 0 that only an input outside the program's ranges can give: a machine division
    /// by it would end the process before any assertion could speak.
    fn divisor(&mut self, b: &Builder<'c>, expr: &Expr) -> Result<Value<'c>> {
        let value = self.value(b, expr)?;
        if expr.as_int().is_some_and(|n| n != 0) {
            return Ok(value);
        }
        let is_zero = b.cmpi(CmpI::Eq, value, b.const_index(0)?)?;
        Ok(b.select(is_zero, b.const_index(1)?, value)?)
    }

    fn fold(
        &mut self,
        b: &Builder<'c>,
        items: &[Expr],
        op: fn(&Builder<'c>, Value<'c>, Value<'c>) -> std::result::Result<Value<'c>, m2m_mlir::Error>,
    ) -> Result<Value<'c>> {
        let mut result = None;
        for item in items {
            let value = self.value(b, item)?;
            result = Some(match result {
                None => value,
                Some(so_far) => op(b, so_far, value)?,
            });
        }
        result.ok_or_else(|| Error::Graph("an operation over no operands".into()))
    }

    /// A condition as an `i1` value.
    pub fn condition(&mut self, b: &Builder<'c>, expr: &Expr) -> Result<Value<'c>> {
        match expr {
            Expr::Bool(value) => Ok(b.const_bool(*value)?),
            Expr::Cmp(op, x, y) if self.kind(x) == ScalarKind::Float || self.kind(y) == ScalarKind::Float => {
                let predicate = match op {
                    Cmp::Eq => CmpF::Oeq,
                    Cmp::Ne => CmpF::Une,
                    Cmp::Lt => CmpF::Olt,
                    Cmp::Le => CmpF::Ole,
                    Cmp::Gt => CmpF::Ogt,
                    Cmp::Ge => CmpF::Oge,
                };
                Ok(b.cmpf(predicate, self.real(b, x)?, self.real(b, y)?)?)
            }
            Expr::Cmp(op, x, y) => {
                let predicate = match op {
                    Cmp::Eq => CmpI::Eq,
                    Cmp::Ne => CmpI::Ne,
                    Cmp::Lt => CmpI::Slt,
                    Cmp::Le => CmpI::Sle,
                    Cmp::Gt => CmpI::Sgt,
                    Cmp::Ge => CmpI::Sge,
                };
                Ok(b.cmpi(predicate, self.value(b, x)?, self.value(b, y)?)?)
            }
            Expr::And(items) => self.logical(b, items, |b, x, y| b.andi(x, y)),
            Expr::Or(items) => self.logical(b, items, |b, x, y| b.ori(x, y)),
            Expr::Not(inner) => Ok(b.xori(self.condition(b, inner)?, b.const_bool(true)?)?),
            other => {
                let value = self.value(b, other)?;
                Ok(b.cmpi(CmpI::Ne, value, b.const_index(0)?)?)
            }
        }
    }

    fn logical(
        &mut self,
        b: &Builder<'c>,
        items: &[Expr],
        op: fn(&Builder<'c>, Value<'c>, Value<'c>) -> std::result::Result<Value<'c>, m2m_mlir::Error>,
    ) -> Result<Value<'c>> {
        let mut result = b.const_bool(matches!(items, [Expr::Bool(true)]) || items.is_empty())?;
        for (k, item) in items.iter().enumerate() {
            let value = self.condition(b, item)?;
            result = if k == 0 { value } else { op(b, result, value)? };
        }
        Ok(result)
    }
}

/// Arithmetic of two floats.
type Real<'c> = fn(&Builder<'c>, Value<'c>, Value<'c>) -> std::result::Result<Value<'c>, m2m_mlir::Error>;

fn not_integer(expr: &Expr) -> Error {
    Error::unsupported(format!("{expr} is not integer arithmetic"))
}
