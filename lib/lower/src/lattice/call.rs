//! Any operator of namespace `lattice`, by the row of its operation in the schema table.

use super::PREFIX;
use super::cx::{Cx, Dense, Val, one, row_type, shown, sizes, tensor_type};
use super::rows;
use super::weights::{PARTS, Packed, Stored};
use crate::error::{Error, Result};
use m2m_aten::bind::describe;
use m2m_lattice::build::{Attr, tensor};
use m2m_lattice::plan::ValueType;
use m2m_lattice::schema::{ATTRIBUTES, Class, Field, Kind, Op, OpDef, Rule};
use m2m_record::{Arg, DType, Node};

/// The operator that stands for a packed weight.
pub const PACKED: &str = "weight_packed";

/// The values that a node gives, one for each result.
pub fn call(cx: &mut Cx<'_>, node: &Node) -> Result<Vec<Val>> {
    let name = node.op.strip_prefix(PREFIX).unwrap_or(&node.op);
    let name = name.strip_suffix(".default").unwrap_or(name);
    if name == PACKED {
        return packed(cx, node).map(|val| vec![val]);
    }
    let op = Op::parse_python(name).filter(|op| *op != Op::Weight).ok_or_else(|| {
        Error::unsupported("no operation of the dialect is called so; m2m-lattice-verify --list ops lists them")
    })?;
    Call::new(op.def(), node)?.emit(cx)
}

/// The operands of a `sparse.make`, in order, where `node` calls it with values.
pub fn made_of(node: &Node) -> Option<[&str; 3]> {
    let name = node.op.strip_prefix(PREFIX)?;
    (name.strip_suffix(".default") == Some(&Op::SparseMake.def().python_name())).then_some(())?;
    let call = Call::new(Op::SparseMake.def(), node).ok()?;
    let value = |name: &str| match call.given(name) {
        Some(Arg::Value(value)) => Some(value.as_str()),
        _ => None,
    };
    Some([value("coords")?, value("features")?, value("active")?])
}

/// Arguments by name; `names` is their order.
fn matched<'n>(names: &[&'static str], node: &'n Node) -> Result<Vec<(&'static str, &'n Arg)>> {
    let expected = || names.join(", ");
    if node.args.len() > names.len() {
        let found = node.args.len();
        return Err(Error::unsupported(format!("{found} arguments; expected at most {}: {}", names.len(), expected())));
    }
    let mut given: Vec<(&'static str, &Arg)> = names.iter().copied().zip(&node.args).collect();
    for (key, arg) in &node.kwargs {
        let name = names.iter().copied().find(|name| name == key);
        let name = name.ok_or_else(|| Error::unsupported(format!("an argument {key:?}; it has {}", expected())))?;
        if given.iter().any(|(known, _)| *known == name) {
            return Err(Error::unsupported(format!("{name} is given twice")));
        }
        given.push((name, arg));
    }
    given.retain(|(_, arg)| **arg != Arg::Null);
    Ok(given)
}

/// A call whose arguments have the schema's names.
struct Call<'n> {
    def: &'static OpDef,
    node: &'n Node,
    given: Vec<(&'static str, &'n Arg)>,
}

impl<'n> Call<'n> {
    fn new(def: &'static OpDef, node: &'n Node) -> Result<Self> {
        let names = def.values().map(|value| value.name).chain(def.attributes.iter().map(|field| field.name));
        let given = matched(&names.collect::<Vec<_>>(), node)?;
        if node.results.len() != def.results.len() {
            let (found, expected) = (node.results.len(), def.results.len());
            return Err(Error::unsupported(format!("{found} results; expected {expected}, as the operation gives")));
        }
        Ok(Call { def, node, given })
    }

    fn given(&self, name: &str) -> Option<&'n Arg> {
        self.given.iter().find(|(known, _)| *known == name).map(|(_, arg)| *arg)
    }

    /// The name of an operand's value; `None` for an optional one that is not there.
    fn operand(&self, name: &str, is_optional: bool) -> Result<Option<&'n str>> {
        match self.given(name) {
            Some(Arg::Value(value)) => Ok(Some(value)),
            None if is_optional => Ok(None),
            None => Err(Error::unsupported(format!("{name} is missing; expected a tensor"))),
            Some(other) => Err(Error::unsupported(format!("{name} is {}; expected a tensor", describe(other)))),
        }
    }

    fn emit(&self, cx: &mut Cx<'_>) -> Result<Vec<Val>> {
        let attributes = self.def.attributes.iter().map(|field| Ok((field.name, self.attribute(field)?)));
        let attributes = attributes.collect::<Result<Vec<_>>>()?;
        if is_by_rows(self.def)
            && let Some(input) = self.operand("input", false)?
        {
            let weights = self.operands(cx, 1)?;
            let result = self.node.results.first().map(|result| &result.ty);
            let result = result.ok_or_else(|| Error::Graph("a call without a result".into()))?;
            return cx.by_rows(self.def.op, input, &weights.values, &attributes, result).map(|val| vec![val]);
        }
        let operands = self.operands(cx, 0)?;
        let types = self.result_types(operands.rows)?;
        let values = cx.op(self.def.op, &operands.values, &attributes, &types)?;
        if self.def.results.iter().any(|result| result.class == Class::Sparse) {
            let row_type = self.node.results.first().map(|result| row_type(&result.ty)).transpose()?;
            let row_type = row_type.ok_or_else(|| Error::Graph("a call without a result".into()))?;
            let rows = self.kept_rows(cx, &attributes)?;
            return Ok(vec![Val::Sparse(cx.sparse(one(&values)?, rows, row_type))]);
        }
        let dense = |(value, ty): (_, &ValueType)| match ty {
            ValueType::Tensor { shape, dtype } => Val::Dense(Dense { value, dtype: *dtype, shape: shape.clone() }),
            _ => Val::Other,
        };
        Ok(values.into_iter().zip(&types).map(dense).collect())
    }

    /// The operands behind the first `skipped`.
    fn operands(&self, cx: &mut Cx<'_>, skipped: usize) -> Result<Operands> {
        let mut operands = Operands { values: Vec::new(), rows: None };
        for value in self.def.values().skip(skipped) {
            let Some(name) = self.operand(value.name, value.is_optional)? else { continue };
            operands.values.push(match value.class {
                Class::Sparse => {
                    let id = cx.sparse_operand(value.name, name)?;
                    cx.whole(id)?
                }
                Class::Weight => {
                    let family = self.def.family(value.name);
                    let family = family.ok_or_else(|| Error::Graph(format!("{} has no family", value.name)))?;
                    cx.weight_operand(value.name, name, family, false)?
                }
                Class::Tensor | Class::Indices | Class::Symbol => {
                    let dense = cx.dense_operand(value.name, name)?;
                    if value.class == Class::Indices && dense.dtype != DType::I32 {
                        let found = dense.dtype;
                        return Err(Error::unsupported(format!("{} is {name} of {found}; expected i32", value.name)));
                    }
                    operands.rows = operands.rows.or(Some(dense.shape.first().copied().flatten()));
                    dense.value
                }
            });
        }
        Ok(operands)
    }

    /// Types of the results. Rows that come from a sparse value or a tensor are as many as it has, whatever the graph says
    /// of its stand-in.
    fn result_types(&self, rows: Option<Option<u64>>) -> Result<Vec<ValueType>> {
        let is_decompose = self.def.op == Op::SparseDecompose;
        let pairs = self.def.results.iter().zip(&self.node.results);
        let types = pairs.enumerate().map(|(at, (value, result))| {
            let ty = tensor_type(&result.ty)?;
            if value.class == Class::Sparse {
                return Ok(ValueType::Sparse { dtype: ty.dtype });
            }
            let mut shape = sizes(ty);
            let rows = if is_decompose && at < 2 { Some(None) } else { rows.filter(|_| !is_decompose) };
            if let (Some(rows), Some(slot)) = (rows, shape.first_mut()) {
                *slot = rows;
            }
            if value.class == Class::Indices && ty.dtype != DType::I32 {
                let found = shown(ty.dtype, &ty.shape);
                return Err(Error::unsupported(format!("{} is {found}; expected i32", value.name)));
            }
            Ok(tensor(&shape, ty.dtype))
        });
        types.collect()
    }

    fn kept_rows(&self, cx: &mut Cx<'_>, attributes: &[(&str, Attr<'_>)]) -> Result<super::cx::Rows> {
        let rows = |name: &str| match self.given(name) {
            Some(Arg::Value(value)) => cx.sparse_operand(name, value).and_then(|id| cx.rows_of(id)).ok(),
            _ => None,
        };
        let is_same = |a: &str, b: &str| rows(a).is_some() && rows(a) == rows(b);
        let kept = rows::kept(self.def.op, attributes, |name| rows(name).is_some(), is_same).and_then(rows);
        Ok(kept.unwrap_or_else(|| cx.new_rows()))
    }

    fn attribute(&self, field: &Field) -> Result<Attr<'n>> {
        let Some(arg) = self.given(field.name) else {
            let only = self.def.only_choice(field);
            let only = only.ok_or_else(|| {
                let why = "an export leaves out what equals a default, so operators declare none";
                Error::unsupported(format!("{} is missing; {why}", field.name))
            })?;
            return Ok(if field.kind == Kind::Str { Attr::Str(only) } else { Attr::Keyword(only) });
        };
        let wrong =
            |expected: String| Error::unsupported(format!("{} is {}; expected {expected}", field.name, describe(arg)));
        match field.kind {
            Kind::I64Triple => triple(arg, integer).map(Attr::Ints).ok_or_else(|| wrong("three integers".into())),
            Kind::F64Triple => triple(arg, number).map(Attr::Floats).ok_or_else(|| wrong("three numbers".into())),
            Kind::F32 => number(arg).map(|x| Attr::F32(x as f32)).ok_or_else(|| wrong("a number".into())),
            Kind::I64 => integer(arg).map(Attr::Int).ok_or_else(|| wrong("an integer".into())),
            Kind::Str => match arg {
                Arg::Str(text) => Ok(Attr::Str(text)),
                _ => Err(wrong("a string".into())),
            },
            Kind::Own(mnemonic) => {
                let def = ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic);
                let words = def.map_or(&[][..], |def| def.values);
                match arg {
                    Arg::Str(text) if words.contains(&text.as_str()) => Ok(Attr::Keyword(text)),
                    _ => Err(wrong(format!("one of {}", words.join(", ")))),
                }
            }
        }
    }
}

/// Values of operands, and the rows of the first that is a tensor.
struct Operands {
    values: Vec<m2m_lattice::ir::Value>,
    rows: Option<Option<u64>>,
}

/// Whether an operation gives a row for each row of its input, a matrix.
fn is_by_rows(def: &OpDef) -> bool {
    let is_matrix = |name: &'static str| def.rules.contains(&Rule::Rank(name, 2));
    let takes = def.values().next().is_some_and(|value| value.class == Class::Tensor && value.name == "input");
    takes && is_matrix("input") && is_matrix("result")
}

fn integer(arg: &Arg) -> Option<i64> {
    match arg {
        Arg::Int(n) => Some(*n),
        _ => None,
    }
}

fn number(arg: &Arg) -> Option<f64> {
    match arg {
        Arg::Float(x) => Some(x.0),
        Arg::Int(n) => Some(*n as f64),
        _ => None,
    }
}

/// Three of something; one of it stands for three.
fn triple<T: Copy>(arg: &Arg, item: impl Fn(&Arg) -> Option<T>) -> Option<[T; 3]> {
    match arg {
        Arg::List(items) => match items.as_slice() {
            [a, b, c] => Some([item(a)?, item(b)?, item(c)?]),
            _ => None,
        },
        one => item(one).map(|x| [x; 3]),
    }
}

/// `lattice::weight_packed(weight, scales, biases, packing, group_size)`: no operation of its own.
fn packed(cx: &Cx<'_>, node: &Node) -> Result<Val> {
    let [weight, scales, biases] = PARTS;
    let given = matched(&[weight, scales, biases, "packing", "group_size"], node)?;
    let find = |name: &str| given.iter().find(|(known, _)| *known == name).map(|(_, arg)| *arg);
    let missing = |name: &str| Error::unsupported(format!("{name} is missing or of another kind"));
    let part = |name: &str| -> Result<Stored> {
        let Some(Arg::Value(value)) = find(name) else { return Err(missing(name)) };
        match cx.get(value)? {
            Val::Stored(stored) if !stored.is_transposed => Ok(stored.clone()),
            _ => Err(Error::unsupported(format!("{name} is {value}; expected a parameter, buffer or constant"))),
        }
    };
    let parts = [part(weight)?, part(scales)?, part(biases)?];
    let Some(Arg::Str(kind)) = find("packing") else { return Err(missing("packing")) };
    let group_size = find("group_size").and_then(integer).ok_or_else(|| missing("group_size"))?;
    let result = node.results.first().map(|result| &result.ty);
    let dtype = tensor_type(result.ok_or_else(|| Error::Graph("a call without a result".into()))?)?.dtype;
    Packed::new(parts, kind, group_size, dtype).map(|packed| Val::Packed(Box::new(packed)))
}
