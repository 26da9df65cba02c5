//! Builds a graph from a program: the producer's side of the dialect.
//!
//! A builder takes arguments, weights and operations in order and checks each against the schema table as it comes; what
//! [`Builder::finish`] gives has passed every rule of the verifier, and what [`Builder::finish_with`] gives those about
//! stored tensors too.
//!
//! ```
//! use m2m_lattice::build::{Attr, Builder, tensor};
//! use m2m_lattice::plan::ValueType;
//! use m2m_lattice::schema::{Family, InputRole, Op, OutputRole};
//! use m2m_record::DType;
//!
//! let mut b = Builder::new();
//! let coords = b.argument("x_coords", InputRole::SparseCoords, tensor(&[None, Some(4)], DType::I32));
//! let features = b.argument("x_features", InputRole::SparseFeatures, tensor(&[None, Some(8)], DType::F32));
//! let active = b.argument("x_active", InputRole::SparseActive, tensor(&[Some(1)], DType::I32));
//! let sparse = ValueType::Sparse { dtype: DType::F32 };
//! let stride = Attr::Ints([1; 3]);
//! let order = Attr::Keyword("batch_x_y_z");
//! let x = b.op(Op::SparseMake, &[coords, features, active], &[("stride", stride), ("coord_order", order)], &[sparse.clone()])?[0];
//! let weight = b.weight("conv", "conv.weight", Family::Conv3d, DType::F32, None)?;
//! let attrs = [("kernel_size", Attr::Ints([3; 3])), ("dilation", Attr::Ints([1; 3])), ("accumulation", Attr::Str("canonical_f32"))];
//! let y = b.op(Op::SubmConv3d, &[x, weight], &attrs, &[sparse])?[0];
//! b.output("y", OutputRole::SparseTensor, y);
//! assert!(b.finish()?.starts_with("module attributes {"));
//! # Ok::<(), m2m_lattice::build::Error>(())
//! ```

use crate::finding::{Finding, Findings, Offset, Severity};
use crate::ir::{Attribute, Block, Entry, Function, Graph, Name, Operation, Packing, Region, Type, TypeId, Use, Value};
use crate::plan::{ValueType, element_name};
use crate::print::print;
use crate::schema::{
    AFFINE, ATTRIBUTES, Coord, ENTRY, Family, FeatureLayout, IR_VERSION, InputRole, Kind, Op, OutputRole, PackingKind,
    RANK, SCHEMA_DIGEST, SYMBOL, WEIGHT_FILE,
};
use crate::verify::{Weights, verify};
use m2m_record::DType;

/// Why a graph cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation does not fit its row of the table.
    #[error("{}: {message}", .op.def().full_name())]
    Operation {
        /// Which.
        op: Op,
        /// What is wrong and what would be right.
        message: String,
    },
    /// The whole does not satisfy the contract. The place of a finding is the number of its operation.
    #[error("{}", list(.0))]
    Refused(Vec<Finding>),
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|each| format!("{}: {}", each.code, each.message)).collect::<Vec<_>>().join("; ")
}

/// An attribute to be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attr<'s> {
    /// `array<i64: …>`.
    Ints([i64; 3]),
    /// `array<f64: …>`.
    Floats([f64; 3]),
    /// An f32.
    F32(f32),
    /// An i64.
    Int(i64),
    /// A string.
    Str(&'s str),
    /// A keyword of one of the dialect's attributes.
    Keyword(&'s str),
}

/// How a weight is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// `int4` or `int8`.
    pub kind: PackingKind,
    /// 32, 64 or 128.
    pub group_size: u32,
    /// F16 or F32.
    pub scale_dtype: DType,
}

/// A tensor type; `None` is a size that is known only at run time.
pub fn tensor(shape: &[Option<u64>], dtype: DType) -> ValueType {
    ValueType::Tensor { shape: shape.to_vec(), dtype }
}

/// A graph under construction.
#[derive(Default)]
pub struct Builder {
    graph: Graph<'static>,
    arguments: Vec<Value>,
    ops: Vec<Operation<'static>>,
    inputs: Vec<(String, InputRole)>,
    outputs: Vec<(String, OutputRole, Value)>,
}

impl Builder {
    /// An empty graph.
    pub fn new() -> Self {
        Builder::default()
    }

    fn intern(&mut self, ty: &ValueType) -> TypeId {
        let types = &mut self.graph.types;
        let dtype = types.scalar(element_name(ty.dtype()));
        types.intern(match ty {
            ValueType::Sparse { .. } => Type::Sparse {
                rank: RANK.into(),
                coord: Coord::BatchXyz.name().into(),
                feature: FeatureLayout::RowChannel.name().into(),
                dtype,
            },
            ValueType::Weight { family, .. } => Type::Weight { family: family.name().into(), dtype },
            ValueType::Tensor { shape, .. } => {
                Type::Tensor { shape: Some(shape.clone().into()), element: dtype, encoding: None }
            }
        })
    }

    fn value(&mut self, ty: &ValueType) -> Value {
        let ty = self.intern(ty);
        let value = Value(self.graph.values.len() as u32);
        self.graph.values.push(ty);
        value
    }

    /// How many operations there are, which is the number that the next one gets.
    pub fn count(&self) -> usize {
        self.ops.len()
    }

    /// Adds an argument of the function. All of them come before the first operation.
    pub fn argument(&mut self, name: &str, role: InputRole, ty: ValueType) -> Value {
        let value = self.value(&ty);
        self.arguments.push(value);
        self.inputs.push((name.to_owned(), role));
        value
    }

    /// Adds a weight: its symbol, its key in the weights file, what it is for, and how it is packed where it is not dense.
    pub fn weight(
        &mut self,
        symbol: &str,
        key: &str,
        family: Family,
        dtype: DType,
        packed: Option<Packed>,
    ) -> Result<Value, Error> {
        let packing = match packed {
            None => {
                Packing { kind: PackingKind::Dense.name().into(), group_size: 0, scale_dtype: None, mode: "".into() }
            }
            Some(packed) => Packing {
                kind: packed.kind.name().into(),
                group_size: packed.group_size.into(),
                scale_dtype: Some(self.graph.types.scalar(element_name(packed.scale_dtype))),
                mode: AFFINE.into(),
            },
        };
        let layout = keyword("weight_layout", family.layout().name()).unwrap_or(Attribute::Unknown);
        let attributes = vec![
            entry(SYMBOL, Attribute::Str(symbol.to_owned().into())),
            entry("storage_key", Attribute::Str(key.to_owned().into())),
            entry("layout", layout),
            entry("packing", Attribute::Packing(Box::new(packing))),
        ];
        let values = self.push(Op::Weight, &[], attributes, &[ValueType::Weight { family, dtype }])?;
        Ok(values.first().copied().unwrap_or(Value(u32::MAX)))
    }

    /// Adds any other operation, and gives its results.
    pub fn op(
        &mut self,
        op: Op,
        operands: &[Value],
        attributes: &[(&str, Attr<'_>)],
        results: &[ValueType],
    ) -> Result<Vec<Value>, Error> {
        let mut entries = Vec::with_capacity(attributes.len());
        for (name, attr) in attributes {
            let field = op.def().attribute(name).ok_or_else(|| wrong(op, format!("it has no attribute {name:?}")))?;
            let value = self.attribute(field.kind, attr);
            let value = value
                .ok_or_else(|| wrong(op, format!("attribute {name:?} is {attr:?}; expected {}", field.kind.name())))?;
            entries.push(entry(field.name, value));
        }
        self.push(op, operands, entries, results)
    }

    fn attribute(&mut self, kind: Kind, attr: &Attr<'_>) -> Option<Attribute<'static>> {
        match (kind, *attr) {
            (Kind::I64Triple, Attr::Ints(items)) => Some(Attribute::I64s(items.to_vec())),
            (Kind::F64Triple, Attr::Floats(items)) => Some(Attribute::F64s(items.to_vec())),
            (Kind::F32, Attr::F32(value)) => {
                Some(Attribute::Float { value: value.into(), ty: self.graph.types.scalar("f32") })
            }
            (Kind::I64, Attr::Int(value)) => {
                Some(Attribute::Int { value: value.into(), ty: self.graph.types.scalar("i64") })
            }
            (Kind::Str, Attr::Str(text)) => Some(Attribute::Str(text.to_owned().into())),
            (Kind::Own(mnemonic), Attr::Keyword(text)) => keyword(mnemonic, text),
            _ => None,
        }
    }

    fn push(
        &mut self,
        op: Op,
        operands: &[Value],
        attributes: Vec<Entry<'static>>,
        results: &[ValueType],
    ) -> Result<Vec<Value>, Error> {
        let def = op.def();
        let (least, most) = def.arity();
        if !(least..=most).contains(&operands.len()) {
            return Err(wrong(op, format!("{} operands; expected {least} to {most}", operands.len())));
        }
        if results.len() != def.results.len() {
            return Err(wrong(op, format!("{} results; expected {}", results.len(), def.results.len())));
        }
        if let Some(field) = def.attributes.iter().find(|field| !attributes.iter().any(|each| each.key == field.name)) {
            return Err(wrong(op, format!("attribute {:?} is missing", field.name)));
        }
        if let Some(value) = operands.iter().find(|value| value.0 as usize >= self.graph.values.len()) {
            return Err(wrong(op, format!("operand {} is not of this builder", value.0)));
        }
        let values: Vec<Value> = results.iter().map(|ty| self.value(ty)).collect();
        self.ops.push(Operation {
            at: Offset::try_from(self.ops.len()).ok(),
            operands: operands.iter().map(|value| Use { value: *value, at: None }).collect(),
            first_result: values.first().copied().unwrap_or(Value(0)),
            results: values.len() as u32,
            attributes,
            ..Operation::named(Name::Own(op))
        });
        Ok(values)
    }

    /// Returns a value from the function under a name.
    pub fn output(&mut self, name: &str, role: OutputRole, value: Value) {
        self.outputs.push((name.to_owned(), role, value));
    }

    /// The text of the graph, once it has passed the verifier; warnings do not refuse it.
    pub fn finish(self) -> Result<String, Error> {
        self.verified(None)
    }

    /// The same, where `weights` is what the weights file will hold.
    pub fn finish_with(self, weights: &Weights) -> Result<String, Error> {
        self.verified(Some(weights))
    }

    fn verified(self, weights: Option<&Weights>) -> Result<String, Error> {
        let graph = self.graph();
        let mut findings = Findings::default();
        let model = verify(&graph, weights, &mut findings);
        match model.filter(|_| !findings.has_errors()) {
            Some(model) => Ok(print(&model)),
            None => {
                let all = findings.into_sorted().into_iter();
                Err(Error::Refused(all.filter(|each| each.severity() == Severity::Error).collect()))
            }
        }
    }

    /// The graph with its function and its module.
    fn graph(mut self) -> Graph<'static> {
        let strings = |items: Vec<&str>| {
            Attribute::Array(items.into_iter().map(|s| Attribute::Str(s.to_owned().into())).collect())
        };
        let integer = self.graph.types.scalar("i64");
        let attributes = vec![
            entry("lattice.ir_version", Attribute::Int { value: IR_VERSION.into(), ty: integer }),
            entry("lattice.schema_digest", Attribute::Str(SCHEMA_DIGEST.into())),
            entry("lattice.input_names", strings(self.inputs.iter().map(|(name, _)| name.as_str()).collect())),
            entry("lattice.input_roles", strings(self.inputs.iter().map(|(_, role)| role.name()).collect())),
            entry("lattice.output_names", strings(self.outputs.iter().map(|(name, ..)| name.as_str()).collect())),
            entry("lattice.output_roles", strings(self.outputs.iter().map(|(_, role, _)| role.name()).collect())),
            entry("lattice.weight_file", Attribute::Str(WEIGHT_FILE.into())),
        ];
        let types =
            |graph: &Graph<'_>, values: Vec<Value>| values.into_iter().map(|v| graph.type_of(v)).collect::<Vec<_>>();
        let returned: Vec<Value> = self.outputs.iter().map(|(.., value)| *value).collect();
        let function = Function {
            name: ENTRY.to_owned(),
            arguments: types(&self.graph, self.arguments.clone()),
            results: types(&self.graph, returned.clone()),
            is_broken: false,
        };
        let operands = returned.into_iter().map(|value| Use { value, at: None }).collect();
        self.ops.push(Operation { operands, ..Operation::named(Name::Return) });
        let region = |arguments, ops| Region { blocks: vec![Block { arguments, ops }] };
        let body = region(self.arguments, self.ops);
        let entry =
            Operation { regions: vec![body], function: Some(Box::new(function)), ..Operation::named(Name::Function) };
        let module =
            Operation { attributes, regions: vec![region(Vec::new(), vec![entry])], ..Operation::named(Name::Module) };
        self.graph.ops.push(module);
        self.graph
    }
}

fn wrong(op: Op, message: String) -> Error {
    Error::Operation { op, message }
}

fn entry(key: &'static str, value: Attribute<'static>) -> Entry<'static> {
    Entry { key: key.into(), at: None, value }
}

fn keyword(mnemonic: &str, text: &str) -> Option<Attribute<'static>> {
    let def = ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic && each.values.contains(&text))?;
    Some(Attribute::Keyword { def, keyword: text.to_owned().into() })
}
