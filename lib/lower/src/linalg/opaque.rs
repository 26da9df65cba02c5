//! Operators that no rule covers, as calls of functions that are only declared: on request, for whoever brings them.
//!
//! The function's name is the operator's with a digest of the call's literal arguments and types, so that equal calls of
//! any program call the same function. Its parameters are the call's tensors, and numbers that are known when it runs
//! (`i64`, `f64`, `i1`), in order; the module's record says what else the call has. It is taken to write nothing.

use super::control::as_val;
use super::cx::{Cx, Val};
use super::entry::signature_type;
use crate::error::{Error, Result};
use m2m_mlir::Value;
use m2m_record::writer::hex;
use m2m_record::{Arg, Dim, External, Node, ScalarKind, TensorType, Type as RecordType};
use sha2::{Digest, Sha256};

/// Bytes of the digest that a name has.
const DIGEST_BYTES: usize = 8;

/// Calls a node's function; gives the node's results, and the function.
pub fn call<'c>(cx: &mut Cx<'c>, node: &Node) -> Result<(Vec<Val<'c>>, External)> {
    let mut operands = Operands::default();
    let args = node.args.iter().map(|arg| operands.take(cx, arg)).collect::<Result<Vec<_>>>()?;
    let kwargs = node.kwargs.iter().map(|(name, arg)| Ok((name.clone(), operands.take(cx, arg)?)));
    let kwargs = kwargs.collect::<Result<_>>()?;
    let shown: Vec<&RecordType> = node.results.iter().map(|r| &r.ty).filter(|ty| **ty != RecordType::None).collect();
    let results = shown.iter().map(|ty| signature_type(cx, ty)).collect::<Result<Vec<_>>>()?;
    let mut external = External {
        symbol: String::new(),
        op: node.op.clone(),
        args,
        kwargs,
        operands: operands.types,
        results: shown.iter().map(|ty| without_symbols(ty)).collect(),
    };
    external.symbol = symbol(&external);
    let values = cx.b.call(&external.symbol, &operands.values, &results)?;
    let mut values = values.into_iter();
    let mut vals = Vec::with_capacity(node.results.len());
    for result in &node.results {
        let value = if result.ty == RecordType::None { None } else { values.next() };
        vals.push(match (value, &result.ty) {
            (None, _) => Val::None,
            (Some(value), RecordType::Scalar { kind: ScalarKind::Int, .. }) => {
                Val::Scalar(ScalarKind::Int, cx.b.index_cast(value, cx.b.index_type())?)
            }
            (Some(value), ty) => as_val(ty, value)?,
        });
    }
    Ok((vals, external))
}

/// The operator's name and a digest of what else is known of the call.
fn symbol(external: &External) -> String {
    let digest = hex(&Sha256::digest(external.text()));
    format!("{}.{}", external.op, digest.get(..2 * DIGEST_BYTES).unwrap_or_default())
}

/// A type as a function sees it: what a size is over the program's symbols does not matter to it.
fn without_symbols(ty: &RecordType) -> RecordType {
    match ty {
        RecordType::Tensor(t) => {
            let shape = t.shape.iter().map(|d| d.as_int().map_or_else(|| Dim::Expr("?".into()), Dim::Int));
            RecordType::Tensor(TensorType::new(t.dtype, shape.collect()))
        }
        RecordType::Scalar { kind, .. } => RecordType::Scalar { kind: *kind, expr: None },
        other => other.clone(),
    }
}

/// The values of a call, in order.
#[derive(Default)]
struct Operands<'c> {
    values: Vec<Value<'c>>,
    types: Vec<RecordType>,
}

impl<'c> Operands<'c> {
    /// An argument in which values are numbered as the function's parameters are.
    fn take(&mut self, cx: &mut Cx<'c>, arg: &Arg) -> Result<Arg> {
        match arg {
            Arg::Value(name) => {
                let val = cx.value(name)?.clone();
                self.add(cx, val)
            }
            Arg::Sym(text) => {
                let (kind, value) = cx.number(text)?;
                self.add(cx, Val::Scalar(kind, value))
            }
            Arg::List(items) => Ok(Arg::List(items.iter().map(|item| self.take(cx, item)).collect::<Result<_>>()?)),
            Arg::Graph(id) => Err(Error::unsupported(format!("it calls the graph {id}, which no function can take"))),
            literal => Ok(literal.clone()),
        }
    }

    fn add(&mut self, cx: &Cx<'c>, val: Val<'c>) -> Result<Arg> {
        let (value, ty) = match val {
            Val::Tensor(t) => (t.value, without_symbols(&TensorType::new(t.dtype, t.shape).into())),
            Val::Scalar(kind, value) => {
                let value = if kind == ScalarKind::Int { cx.b.index_cast(value, cx.b.elem("i64")?)? } else { value };
                (value, RecordType::Scalar { kind, expr: None })
            }
            Val::None => return Ok(Arg::Null),
        };
        self.values.push(value);
        self.types.push(ty);
        Ok(Arg::value((self.values.len() - 1).to_string()))
    }
}
