//! Writes a model that was found right: as plan records, or as the one-document payload of the contract.
//!
//! Labels are `arg0`, `arg1`, … and, numbering on, `v3`, `v4`, … for every result in order. Types are canonical text,
//! attributes sorted by key, an f32 its value as a double.

use crate::finding::line_column;
use crate::ir::{Attribute, Operation, Value};
use crate::schema::{ENTRY, IR_VERSION, NAMESPACE, Op, SCHEMA_DIGEST, WEIGHT_FILE};
use crate::verify::{Bound, Model};
use m2m_record::{
    Arg, ByteOrder, Data, Dim, Kwargs, PlanArgument, PlanOp, PlanOutput, PlanWeight, Source, TensorType, Type, Writer,
};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};

/// The `source` record of a graph.
pub fn source() -> Source {
    Source {
        format: NAMESPACE.to_owned(),
        schema: Some(SCHEMA_DIGEST.to_owned()),
        opset: [(NAMESPACE.to_owned(), IR_VERSION)].into_iter().collect(),
        ..Source::default()
    }
}

/// A model with the labels of its values.
pub struct Plan<'m, 'g, 'a> {
    model: &'m Model<'g, 'a>,
    labels: Vec<u32>,
    lines: Option<Lines<'m>>,
    bound: HashMap<usize, &'m [Bound]>,
}

impl<'m, 'g, 'a> Plan<'m, 'g, 'a> {
    /// Labels the values of a model without errors. `text` is what its places are in; `None` for bytecode.
    pub fn new(model: &'m Model<'g, 'a>, text: Option<&'m [u8]>) -> Self {
        let mut labels = vec![0; model.graph.values.len()];
        let arguments = model.block.arguments.iter().copied();
        let values = arguments.chain(model.ops().flat_map(|(_, op, _)| op.result_values()));
        for (number, value) in values.enumerate() {
            if let Some(slot) = labels.get_mut(value.0 as usize) {
                *slot = number as u32;
            }
        }
        let bound = model.weights.iter().map(|(place, bound)| (*place, bound.as_slice())).collect();
        Plan { model, labels, lines: text.map(Lines::new), bound }
    }

    fn label(&self, value: Value) -> String {
        let number = self.labels.get(value.0 as usize).copied().unwrap_or_default();
        let prefix = if (number as usize) < self.model.block.arguments.len() { "arg" } else { "v" };
        format!("{prefix}{number}")
    }

    fn ty(&self, value: Value) -> String {
        self.model.graph.types.text(self.model.graph.type_of(value)).to_owned()
    }

    /// The arguments in order.
    pub fn arguments(&self) -> impl Iterator<Item = PlanArgument> + '_ {
        self.model.block.arguments.iter().zip(&self.model.inputs).map(|(value, abi)| PlanArgument {
            name: self.label(*value),
            abi_name: abi.name.clone(),
            ty: self.ty(*value),
            role: abi.role.name().to_owned(),
        })
    }

    /// The operations in order; `file` is the id of the weights file's record.
    pub fn ops<'p>(&'p self, file: &'p str) -> impl Iterator<Item = PlanOp> + 'p {
        self.model.ops().map(move |(place, op, own)| self.op(place, op, own, file))
    }

    fn op(&self, place: usize, op: &Operation<'_>, own: Op, file: &str) -> PlanOp {
        let results: Vec<Value> = op.result_values().collect();
        let mut attrs: Vec<(&str, Arg)> =
            op.attributes.iter().filter_map(|entry| Some((entry.key.as_ref(), self.argument(&entry.value)?))).collect();
        attrs.sort_by_key(|(key, _)| *key);
        let bound = self.bound.get(&place).copied().unwrap_or_default();
        PlanOp {
            name: own.def().full_name(),
            operands: op.operands.iter().map(|operand| self.label(operand.value)).collect(),
            operand_types: op.operands.iter().map(|operand| self.ty(operand.value)).collect(),
            results: results.iter().map(|value| self.label(*value)).collect(),
            result_types: results.iter().map(|value| self.ty(*value)).collect(),
            attrs: attrs.into_iter().map(|(key, arg)| (key.to_owned(), arg)).collect::<Kwargs>(),
            weights: bound.iter().map(|each| weight(each, file)).collect(),
            loc: self.lines.as_ref().zip(op.at).map(|(lines, at)| lines.text(at)),
        }
    }

    /// The results in order.
    pub fn outputs(&self) -> impl Iterator<Item = PlanOutput> + '_ {
        let operands = self.model.returned().map(|op| op.operands.as_slice()).unwrap_or_default();
        operands.iter().zip(&self.model.outputs).map(|(operand, abi)| PlanOutput {
            name: self.label(operand.value),
            abi_name: abi.name.clone(),
            ty: self.ty(operand.value),
            role: abi.role.name().to_owned(),
        })
    }

    /// An attribute as plans hold it; `None` for what a model without errors does not have.
    fn argument(&self, value: &Attribute<'_>) -> Option<Arg> {
        Some(match value {
            Attribute::Str(text) => Arg::from(text.as_ref()),
            Attribute::Keyword { keyword, .. } => Arg::from(keyword.as_ref()),
            Attribute::Int { value, .. } => Arg::Int(i64::try_from(*value).ok()?),
            Attribute::Float { value, .. } => Arg::from(*value),
            Attribute::I64s(items) => Arg::ints(items.iter().copied()),
            Attribute::F64s(items) => Arg::List(items.iter().map(|x| Arg::from(*x)).collect()),
            Attribute::Packing(packing) => {
                let mut map = Kwargs::new();
                map.insert("kind".into(), Arg::from(packing.kind.as_ref()));
                map.insert("group_size".into(), Arg::Int(i64::try_from(packing.group_size).ok()?));
                if let Some(ty) = packing.scale_dtype {
                    map.insert("scale_dtype".into(), Arg::from(self.model.graph.types.text(ty)));
                }
                map.insert("mode".into(), Arg::from(packing.mode.as_ref()));
                Arg::Map(map)
            }
            _ => return None,
        })
    }

    /// Appends the plan's records to a stream.
    pub fn write_records<W: Write>(&self, writer: &mut Writer<W>, file: &str) -> io::Result<()> {
        self.arguments().try_for_each(|record| writer.write(&record))?;
        self.ops(file).try_for_each(|record| writer.write(&record))?;
        self.outputs().try_for_each(|record| writer.write(&record))
    }

    /// Writes the payload that the contract's runtime takes: one JSON object on one line.
    pub fn write_native<W: Write>(&self, mut out: W) -> io::Result<()> {
        write!(
            out,
            "{{\"ir_version\":{IR_VERSION},\"schema_digest\":\"{SCHEMA_DIGEST}\",\"weight_file\":\"{WEIGHT_FILE}\","
        )?;
        write!(out, "\"name\":\"{ENTRY}\",\"args\":")?;
        array(&mut out, self.arguments())?;
        out.write_all(b",\"ops\":")?;
        array(&mut out, self.ops("").map(NativeOp::from))?;
        out.write_all(b",\"returns\":")?;
        array(&mut out, self.outputs().map(|output| output.name))?;
        out.write_all(b",\"outputs\":")?;
        array(&mut out, self.outputs())?;
        out.write_all(b"}\n")
    }
}

fn array<W: Write, T: Serialize>(mut out: W, items: impl Iterator<Item = T>) -> io::Result<()> {
    out.write_all(b"[")?;
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut out, &item)?;
    }
    out.write_all(b"]")
}

/// An operation of the payload: plain JSON, where records tag numbers.
#[derive(Serialize)]
struct NativeOp {
    name: String,
    operands: Vec<String>,
    operand_types: Vec<String>,
    results: Vec<String>,
    result_types: Vec<String>,
    attrs: serde_json::Map<String, serde_json::Value>,
}

impl From<PlanOp> for NativeOp {
    fn from(op: PlanOp) -> Self {
        let attrs = op.attrs.iter().map(|(key, arg)| (key.clone(), plain(arg))).collect();
        let PlanOp { name, operands, operand_types, results, result_types, .. } = op;
        NativeOp { name, operands, operand_types, results, result_types, attrs }
    }
}

fn plain(arg: &Arg) -> serde_json::Value {
    match arg {
        Arg::Int(n) => (*n).into(),
        Arg::Float(x) => x.0.into(),
        Arg::Str(text) => text.as_str().into(),
        Arg::List(items) => items.iter().map(plain).collect::<Vec<_>>().into(),
        Arg::Map(map) => {
            map.iter().map(|(key, arg)| (key.clone(), plain(arg))).collect::<serde_json::Map<_, _>>().into()
        }
        _ => serde_json::Value::Null,
    }
}

fn weight(bound: &Bound, file: &str) -> PlanWeight {
    let shape = bound.shape.iter().map(|size| Dim::Int(i64::try_from(*size).unwrap_or(i64::MAX))).collect();
    PlanWeight {
        name: bound.name.clone(),
        ty: Type::Tensor(TensorType::new(bound.dtype, shape)),
        data: Data::Range {
            file: file.to_owned(),
            offset: bound.offset,
            bytes: bound.bytes,
            storage: None,
            strides: None,
            byteorder: ByteOrder::Little,
        },
    }
}

/// How much of a line is shown on either side of a place.
const EXCERPT_BYTES: usize = 512;

/// Where the lines of a text begin.
pub struct Lines<'t> {
    text: &'t [u8],
    starts: Vec<u32>,
}

impl<'t> Lines<'t> {
    /// Finds the lines.
    pub fn new(text: &'t [u8]) -> Self {
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u32 + 1);
        Lines { text, starts: std::iter::once(0).chain(newlines).collect() }
    }

    /// Line and column of a place, from 1.
    pub fn place(&self, at: u32) -> (u64, u64) {
        let line = self.starts.partition_point(|start| *start <= at);
        match self.starts.get(line.saturating_sub(1)) {
            Some(start) => (line as u64, u64::from(at - start) + 1),
            None => line_column(self.text, at),
        }
    }

    /// `line:column`.
    pub fn text(&self, at: u32) -> String {
        let (line, column) = self.place(at);
        format!("{line}:{column}")
    }

    /// The line that a place is on, as far as it is near, and where the place is in that.
    pub fn excerpt(&self, at: u32) -> (&'t [u8], usize) {
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).map_or(0, |start| *start as usize);
        let at = at as usize;
        let mut near = at.saturating_sub(EXCERPT_BYTES).max(start);
        // Not in the middle of a character.
        while near < at && self.text.get(near).is_some_and(|byte| byte & 0xC0 == 0x80) {
            near += 1;
        }
        let rest = self.text.get(near..self.text.len().min(at + EXCERPT_BYTES)).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        (rest.get(..end).unwrap_or_default(), at - near)
    }
}
