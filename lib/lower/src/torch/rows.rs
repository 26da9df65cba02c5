//! Graphs applied to the rows of tensors, one after the other: `map` and `scan` as `torch.prim.Loop` with a count.

use super::args::Cx;
use super::emit::{Walk, cast, cast_all, operands, regions};
use super::types;
use crate::error::{Error, Result};
use m2m_mlir::Value;
use m2m_record::{Arg, Dim, Node, TensorType, Type as RecordType};

/// The operands of a call by rows.
struct Rows<'n> {
    body: &'n str,
    carried: Option<&'n Arg>,
    mapped: &'n Arg,
    others: Option<&'n Arg>,
}

impl<'n> Rows<'n> {
    /// `map(body, [xs], others…)`, `scan(body, [init], [xs], [others])`; scans of PyTorch 2.5 and 2.6 state an axis and a
    /// direction too, of which only the first axis and forward are taken.
    fn of(node: &'n Node) -> Option<Self> {
        let [Arg::Graph(body), rest @ ..] = node.args.as_slice() else { return None };
        if node.op.contains("map") {
            let mapped = rest.first().filter(|arg| matches!(arg, Arg::List(_)))?;
            return Some(Rows { body, carried: None, mapped, others: rest.get(1) });
        }
        let is_forward = |arg: &&Arg| !matches!(arg, Arg::Int(0) | Arg::Bool(false));
        let lists: Vec<&Arg> = rest.iter().filter(is_forward).collect();
        match lists.as_slice() {
            [carried @ Arg::List(_), mapped @ Arg::List(_), others @ ..] if others.len() < 2 => {
                Some(Rows { body, carried: Some(carried), mapped, others: others.first().copied() })
            }
            _ => None,
        }
    }
}

/// A tensor type without its first dimension.
fn row_of(ty: &TensorType) -> Result<String> {
    types::tensor(ty.dtype, ty.shape.get(1..).unwrap_or_default())
}

impl Walk<'_> {
    /// Both of them: what is carried at the end, then the stacked rows.
    pub(super) fn by_rows<'c>(&mut self, cx: &mut Cx<'c>, node: &Node) -> Result<Vec<Value<'c>>> {
        let malformed = || Error::unsupported("arguments that are not a graph and lists of operands");
        let rows = Rows::of(node).ok_or_else(malformed)?;
        let texts = node.results.iter().map(|r| types::text(&r.ty)).collect::<Result<Vec<_>>>()?;
        let carried = operands(cx, rows.carried)?;
        let others = operands(cx, rows.others)?;
        let (kept, stacked) = texts.split_at_checked(carried.len()).ok_or_else(malformed)?;
        let mut inits = cast_all(cx, carried, kept)?;
        let Arg::List(mapped) = rows.mapped else { return Err(malformed()) };
        let mapped = mapped.iter().map(|arg| tensor(cx, arg)).collect::<Result<Vec<_>>>()?;
        let length = mapped.first().and_then(|(_, ty)| ty.shape.first()).ok_or_else(malformed)?;
        let count = cx.size(length)?;
        let row_texts: Vec<String> = row_types(node, kept.len()).map(row_of).collect::<Result<_>>()?;
        for (ty, text) in row_types(node, kept.len()).zip(stacked) {
            inits.push(zeros(cx, ty, text)?);
        }
        let loop_types = texts.iter().map(|text| types::parse(&cx.b, text)).collect::<Result<Vec<_>>>()?;
        let mut arguments = vec![types::parse(&cx.b, "!torch.int")?];
        arguments.extend(loop_types.iter().copied());
        let always = cx.bool(true)?;
        let inits: Vec<_> = [count, always].into_iter().chain(inits).collect();
        regions(cx, "torch.prim.Loop", &inits, &loop_types, &[arguments], |cx, _, values| {
            let Some((at, state)) = values.split_first() else { return Err(malformed()) };
            let (now, whole) = state.split_at_checked(kept.len()).ok_or_else(malformed)?;
            let mut given: Vec<_> = now.iter().copied().zip(kept.iter().cloned()).collect();
            let first = cx.int(0)?;
            for (value, ty) in &mapped {
                let text = row_of(ty)?;
                given.push((cx.op1("torch.aten.select.int", &[*value, first, *at], &text, &[])?, text));
            }
            given.extend(others.iter().cloned());
            let mut next = self.call(cx, rows.body, given)?;
            self.begin(cx, node);
            let made = next.split_off(kept.len().min(next.len()));
            let mut passed = vec![cx.bool(true)?];
            passed.extend(cast_all(cx, next, kept)?);
            let first = cx.int(0)?;
            let places = made.into_iter().zip(&row_texts).zip(whole.iter().zip(stacked));
            for (((row, found), wanted), (all, text)) in places {
                let row = cast(cx, row, &found, wanted)?;
                passed.push(cx.op1("torch.aten.select_scatter", &[*all, row, first, *at], text, &[])?);
            }
            Ok(cx.b.op("torch.prim.Loop.condition", &passed, &[], &[]).map(drop)?)
        })
    }
}

/// The types of the stacked results, which come after those that are carried.
fn row_types(node: &Node, carried: usize) -> impl Iterator<Item = &TensorType> {
    node.results.iter().skip(carried).filter_map(|result| result.ty.as_tensor())
}

fn tensor<'c>(cx: &Cx<'c>, arg: &Arg) -> Result<(Value<'c>, TensorType)> {
    let Arg::Value(name) = arg else { return Err(Error::unsupported(format!("rows of {arg:?}"))) };
    match cx.value(name)? {
        (value, RecordType::Tensor(ty)) => Ok((value, ty.clone())),
        (_, other) => Err(Error::unsupported(format!("rows of {other:?}"))),
    }
}

/// `torch.aten.zeros` of a type.
fn zeros<'c>(cx: &mut Cx<'c>, ty: &TensorType, text: &str) -> Result<Value<'c>> {
    let sizes = ty.shape.iter().map(|dim: &Dim| cx.size(dim)).collect::<Result<Vec<_>>>()?;
    let sizes = cx.op1("torch.prim.ListConstruct", &sizes, "!torch.list<int>", &[])?;
    let dtype = cx.int(types::code(ty.dtype)?)?;
    let none = cx.none()?;
    cx.op1("torch.aten.zeros", &[sizes, dtype, none, none, none], text, &[])
}
