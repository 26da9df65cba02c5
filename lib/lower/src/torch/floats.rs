//! Arithmetic on numbers that are floats: `item()` of a float tensor, and what is computed of it.

use super::args::Cx;
use crate::error::{Error, Result};
use m2m_mlir::Value;
use m2m_tensor::Expr;
use m2m_tensor::expr::Cmp;

impl<'c> Cx<'c> {
    /// Whether an expression is a float: one is in it, or a symbol that stands for one, or a true division.
    pub fn is_float(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Float(_) | Expr::Div(..) => true,
            Expr::Sym(name) => self.scope.floats.contains(name),
            Expr::Add(items) | Expr::Mul(items) | Expr::Max(items) | Expr::Min(items) => {
                items.iter().any(|item| self.is_float(item))
            }
            _ => false,
        }
    }

    /// An expression as a `!torch.float`, whole numbers converted.
    pub fn float_number(&mut self, expr: &Expr) -> Result<Value<'c>> {
        if !self.is_float(expr) {
            let whole = self.number(expr)?;
            return self.op1("torch.aten.Float.Scalar", &[whole], "!torch.float", &[]);
        }
        match expr {
            Expr::Float(x) => self.float(*x),
            Expr::Sym(_) => self.number(expr),
            Expr::Add(items) => self.fold_floats("torch.aten.add.float", items),
            Expr::Mul(items) => self.fold_floats("torch.aten.mul.float", items),
            Expr::Div(x, y) => {
                let operands = [self.float_number(x)?, self.float_number(y)?];
                self.op1("torch.aten.div.float", &operands, "!torch.float", &[])
            }
            other => Err(Error::unsupported(format!("the expression {other} of floats in the torch dialect"))),
        }
    }

    fn fold_floats(&mut self, name: &str, items: &[Expr]) -> Result<Value<'c>> {
        let mut result = None;
        for item in items {
            let value = self.float_number(item)?;
            result = Some(match result {
                None => value,
                Some(so_far) => self.op1(name, &[so_far, value], "!torch.float", &[])?,
            });
        }
        result.ok_or_else(|| Error::Graph("an operation over no operands".into()))
    }

    /// A comparison of which a side is a float.
    pub fn compare_floats(&mut self, op: Cmp, x: &Expr, y: &Expr) -> Result<Value<'c>> {
        let (name, x, y) = match op {
            Cmp::Eq => ("eq", x, y),
            Cmp::Gt => ("gt", x, y),
            Cmp::Ge => ("ge", x, y),
            Cmp::Lt => ("lt", x, y),
            Cmp::Le => ("ge", y, x),
            Cmp::Ne => return Err(Error::unsupported("floats that differ in the torch dialect")),
        };
        let operands = [self.float_number(x)?, self.float_number(y)?];
        self.op1(&format!("torch.aten.{name}.float"), &operands, "!torch.bool", &[])
    }
}
