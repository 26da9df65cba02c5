//! Makes a plan from its records, and refuses one that is not whole and consistent.

use super::attrs::Attrs;
use super::{Argument, Convolution, Kind, Operation, Output, Packed, Part, Plan, Relation, Stored, ValueId, ValueType};
use super::{Weight, Window};
use crate::schema::{
    Activation, BinaryOp, CANONICAL_F32, Class, Elementwise, GeluApprox, IR_VERSION, InputRole, Join, NAMESPACE, Op,
    OutputRole, PointInterpolation, PoolMode, SCHEMA_DIGEST, VoxelReduction, WeightLayout,
};
use m2m_record::{
    Body as _, Dim, File, Line, PlanArgument, PlanOp, PlanOutput, PlanWeight, Reader, Source, Type, reader,
};
use std::collections::{HashMap, HashSet};
use std::io::Read;

/// Why records are not a plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream cannot be read.
    #[error(transparent)]
    Stream(#[from] reader::Error),
    /// A record of the plan is wrong.
    #[error("{message}")]
    Record {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong and what would be right.
        message: String,
    },
    /// The records together are not a plan.
    #[error("{0}")]
    Plan(String),
}

impl Error {
    /// The line that the error is about.
    pub fn line(&self) -> Option<u64> {
        match self {
            Error::Stream(error) => error.line(),
            Error::Record { line, .. } => Some(*line),
            Error::Plan(_) => None,
        }
    }
}

/// Reads a stream to its end and makes its plan.
pub fn read(input: impl Read) -> Result<Plan, Error> {
    let mut reader = Reader::new(input);
    let mut freezer = Freezer::default();
    while let Some(line) = reader.next_line()? {
        freezer.line(&line)?;
    }
    freezer.finish()
}

/// Gathers a plan, record by record.
#[derive(Debug, Default)]
pub struct Freezer {
    arguments: Vec<Argument>,
    values: Vec<ValueType>,
    labels: HashMap<String, ValueId>,
    names: HashSet<String>,
    ops: Vec<Operation>,
    outputs: Vec<Output>,
    output_names: HashSet<String>,
    files: Vec<File>,
    is_lattice: bool,
}

impl Freezer {
    /// Takes a line of the stream; those that are not about the plan are passed over.
    pub fn line(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let number = line.number;
        let done = match line.kind {
            Source::KIND => self.source(&line.parse()?),
            File::KIND => {
                self.file(line.parse()?);
                Ok(())
            }
            PlanArgument::KIND => self.argument(line.parse()?),
            PlanOp::KIND => self.op(line.parse()?),
            PlanOutput::KIND => self.output(line.parse()?),
            _ => Ok(()),
        };
        done.map_err(|message| Error::Record { line: number, message })
    }

    /// The plan, once every record has been taken.
    pub fn finish(self) -> Result<Plan, Error> {
        if !self.is_lattice {
            return Err(Error::Plan("the stream has no source record of format lattice".into()));
        }
        if self.outputs.is_empty() {
            return Err(Error::Plan("the plan has no plan_output record; it must return at least one value".into()));
        }
        let Freezer { arguments, values, ops, outputs, files, .. } = self;
        Ok(Plan { arguments, values, ops, outputs, files })
    }

    /// Takes what the stream says of its artifact.
    pub fn source(&mut self, source: &Source) -> Result<(), String> {
        if source.format != NAMESPACE {
            return Ok(());
        }
        self.is_lattice = true;
        let version = source.opset.get(NAMESPACE).copied();
        if version != Some(IR_VERSION) {
            return Err(format!("IR version {version:?}; expected {IR_VERSION}"));
        }
        match source.schema.as_deref() {
            Some(SCHEMA_DIGEST) => Ok(()),
            other => Err(format!("schema digest {:?}; expected {SCHEMA_DIGEST}", other.unwrap_or("none"))),
        }
    }

    /// Takes a file; a later one with the same id replaces it.
    pub fn file(&mut self, file: File) {
        match self.files.iter_mut().find(|each| each.id == file.id) {
            Some(old) => *old = file,
            None => self.files.push(file),
        }
    }

    /// Takes an argument. All of them come before the first operation.
    pub fn argument(&mut self, record: PlanArgument) -> Result<(), String> {
        if !self.ops.is_empty() {
            return Err("an argument after an operation".into());
        }
        let role = InputRole::parse(&record.role)
            .ok_or_else(|| format!("input role {:?}; expected {}", record.role, InputRole::NAMES.join(", ")))?;
        abi_name(&record.abi_name, &mut self.names)?;
        self.define(record.name, &record.ty)?;
        self.arguments.push(Argument { abi_name: record.abi_name, role });
        Ok(())
    }

    /// Takes an operation.
    pub fn op(&mut self, record: PlanOp) -> Result<(), String> {
        let op = Op::parse_full(&record.name)
            .ok_or_else(|| format!("operation {:?} is not one of {NAMESPACE}", record.name))?;
        let wrong = |message: String| format!("{}: {message}", record.name);
        let operands = self.operands(op, &record).map_err(wrong)?;
        let def = op.def();
        if record.results.len() != def.results.len() || record.result_types.len() != def.results.len() {
            let (names, types) = (record.results.len(), record.result_types.len());
            return Err(wrong(format!("{names} results and {types} types; expected {}", def.results.len())));
        }
        let attrs = Attrs::new(def, &record.attrs).map_err(wrong)?;
        let take = Taken { op, operands: &operands, attrs: &attrs };
        let mut kind = take.kind().map_err(wrong)?;
        let mut results = Vec::with_capacity(record.results.len());
        for ((label, ty), value) in record.results.iter().zip(&record.result_types).zip(def.results) {
            let id = self.define(label.clone(), ty).map_err(wrong)?;
            self.expect_class(id, value.class).map_err(|found| wrong(format!("{} is {found}", value.name)))?;
            results.push(id);
        }
        if let Kind::Weight(weight) = &mut kind {
            weight.stored = stored(&record, &attrs).map_err(wrong)?;
            if let Some(ValueType::Weight { family, dtype }) = results.first().and_then(|id| self.values.get(id.0)) {
                let layout = attrs.keyword("layout", WeightLayout::parse)?;
                if family.layout() != layout {
                    return Err(wrong(format!("family {family} with layout {layout}; expected {}", family.layout())));
                }
                (weight.family, weight.dtype) = (*family, *dtype);
            }
        }
        self.ops.push(Operation { op, kind, results, loc: record.loc });
        Ok(())
    }

    /// Takes a result of the function.
    pub fn output(&mut self, record: PlanOutput) -> Result<(), String> {
        let role = OutputRole::parse(&record.role)
            .ok_or_else(|| format!("output role {:?}; expected {}", record.role, OutputRole::NAMES.join(", ")))?;
        abi_name(&record.abi_name, &mut self.output_names)?;
        let value = self.labels.get(&record.name).copied();
        let value = value.ok_or_else(|| format!("returns {:?}, which nothing defines", record.name))?;
        let ty = self.values.get(value.0).map(ToString::to_string).unwrap_or_default();
        if ty != record.ty {
            return Err(format!("returns {:?} as {}; it is {ty}", record.name, record.ty));
        }
        self.outputs.push(Output { value, abi_name: record.abi_name, role });
        Ok(())
    }

    fn define(&mut self, label: String, ty: &str) -> Result<ValueId, String> {
        let ty =
            ValueType::parse(ty).ok_or_else(|| format!("type {ty:?} of {label:?} is not one that a plan holds"))?;
        if label.is_empty() {
            return Err("a value without a label".into());
        }
        let id = ValueId(self.values.len());
        match self.labels.entry(label) {
            std::collections::hash_map::Entry::Occupied(entry) => {
                Err(format!("label {:?} is defined twice", entry.key()))
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(id);
                self.values.push(ty);
                Ok(id)
            }
        }
    }

    fn operands(&self, op: Op, record: &PlanOp) -> Result<Vec<ValueId>, String> {
        let (least, most) = op.def().arity();
        let count = record.operands.len();
        if !(least..=most).contains(&count) || record.operand_types.len() != count {
            let types = record.operand_types.len();
            return Err(format!("{count} operands and {types} types; expected {least} to {most} of each"));
        }
        let mut ids = Vec::with_capacity(count);
        for ((label, ty), value) in record.operands.iter().zip(&record.operand_types).zip(op.def().values()) {
            let id = self.labels.get(label).copied();
            let id = id.ok_or_else(|| format!("operand {label:?} is not defined before"))?;
            let found = self.values.get(id.0).map(ToString::to_string).unwrap_or_default();
            if found != *ty {
                return Err(format!("operand {label:?} is said to be {ty}; it is {found}"));
            }
            self.expect_class(id, value.class).map_err(|found| format!("{} is {found}", value.name))?;
            ids.push(id);
        }
        Ok(ids)
    }

    fn expect_class(&self, id: ValueId, class: Class) -> Result<(), String> {
        let ty = self.values.get(id.0);
        let fits = match (class, ty) {
            (Class::Sparse, Some(ValueType::Sparse { .. })) | (Class::Weight, Some(ValueType::Weight { .. })) => true,
            (Class::Tensor, Some(ValueType::Tensor { .. })) => true,
            (Class::Indices, Some(ValueType::Tensor { dtype, .. })) => *dtype == m2m_record::DType::I32,
            _ => false,
        };
        let found = ty.map(ToString::to_string).unwrap_or_default();
        if fits { Ok(()) } else { Err(format!("{found}; expected {}", class.name())) }
    }
}

fn abi_name(name: &str, seen: &mut HashSet<String>) -> Result<(), String> {
    if name.is_empty() {
        return Err("an empty ABI name".into());
    }
    if seen.insert(name.to_owned()) { Ok(()) } else { Err(format!("ABI name {name:?} is given twice")) }
}

/// An operation whose operands and attributes are known to be there.
struct Taken<'a> {
    op: Op,
    operands: &'a [ValueId],
    attrs: &'a Attrs<'a>,
}

impl Taken<'_> {
    /// The operand of a name; the position of a missing optional one is past the end.
    fn value(&self, name: &str) -> Result<ValueId, String> {
        self.maybe(name).ok_or_else(|| format!("operand {name} is missing"))
    }

    fn maybe(&self, name: &str) -> Option<ValueId> {
        let at = self.op.def().values().position(|each| each.name == name)?;
        self.operands.get(at).copied()
    }

    fn window(&self) -> Result<Window, String> {
        let def = self.op.def();
        let get = |name: &str, absent: i64, least: i64| -> Result<[i64; 3], String> {
            let triple = if def.attribute(name).is_some() { self.attrs.ints(name)? } else { [absent; 3] };
            match triple.iter().all(|n| (least..=i64::from(i32::MAX)).contains(n)) {
                true => Ok(triple),
                false => Err(format!("attribute {name:?} is {triple:?}; expected {least} to {}", i32::MAX)),
            }
        };
        let kernel_size = get("kernel_size", 1, 1)?;
        let volume = kernel_size.iter().try_fold(1i64, |n, k| n.checked_mul(*k));
        if volume.is_none_or(|n| n > i64::from(i32::MAX)) {
            return Err(format!("attribute \"kernel_size\" is {kernel_size:?}, more than 2^31-1 positions"));
        }
        Ok(Window {
            kernel_size,
            stride: get("stride", 1, 1)?,
            padding: get("padding", 0, 0)?,
            dilation: get("dilation", 1, 1)?,
        })
    }

    fn convolution(&self, relation: Relation) -> Result<Kind, String> {
        if self.attrs.text("accumulation")? != CANONICAL_F32 {
            return Err(format!("attribute \"accumulation\" is not {CANONICAL_F32:?}"));
        }
        let is_normalized = self.op.def().attribute("eps").is_some();
        Ok(Kind::Convolution(Convolution {
            relation,
            input: self.value("input")?,
            target: self.maybe("target"),
            weight: self.value("weight")?,
            bias: self.maybe("bias"),
            window: self.window()?,
            eps: is_normalized.then(|| self.attrs.f32("eps")).transpose()?,
        }))
    }

    fn kind(&self) -> Result<Kind, String> {
        let attrs = self.attrs;
        Ok(match self.op {
            Op::Weight => Kind::Weight(Box::new(Weight {
                symbol: attrs.symbol(),
                storage_key: attrs.text("storage_key")?.to_owned(),
                family: crate::schema::Family::Conv3d,
                dtype: m2m_record::DType::F32,
                stored: Stored::Dense(nothing()),
            })),
            Op::SparseMake => Kind::Make {
                coords: self.value("coords")?,
                features: self.value("features")?,
                active: self.value("active")?,
                stride: attrs.ints("stride")?,
            },
            Op::SparseDecompose => Kind::Decompose { input: self.value("input")? },
            Op::SparseWithFeatures => {
                Kind::WithFeatures { input: self.value("input")?, features: self.value("features")? }
            }
            Op::SparseReindex => {
                Kind::Reindex { input: self.value("input")?, target: self.value("target")?, fill: attrs.f32("fill")? }
            }
            Op::Conv3d => self.convolution(Relation::Forward)?,
            Op::SubmConv3d | Op::NormalizedSubmConv3d => self.convolution(Relation::Submanifold)?,
            Op::TargetConv3d => self.convolution(Relation::Target)?,
            Op::ConvTranspose3d | Op::NormalizedConvTranspose3d => self.convolution(Relation::Transposed)?,
            Op::TargetConvTranspose3d | Op::TargetNormalizedConvTranspose3d => {
                self.convolution(Relation::TargetTransposed)?
            }
            Op::GenerativeConvTranspose3d | Op::NormalizedGenerativeConvTranspose3d => {
                self.convolution(Relation::Generative)?
            }
            Op::Pool3d => Kind::Pool {
                input: self.value("input")?,
                mode: attrs.keyword("mode", PoolMode::parse)?,
                window: self.window()?,
            },
            Op::PoolTranspose3d => Kind::PoolTranspose {
                input: self.value("input")?,
                target: self.maybe("target"),
                window: self.window()?,
            },
            Op::TrilinearUpsample3d => Kind::Upsample {
                input: self.value("input")?,
                target: self.maybe("target"),
                stride: attrs.ints("stride")?,
            },
            Op::GlobalPool => Kind::GlobalPool {
                input: self.value("input")?,
                mode: attrs.keyword("mode", PoolMode::parse)?,
                batch_size: match attrs.int("batch_size")? {
                    -1 => None,
                    size => Some(u64::try_from(size).map_err(|_| format!("batch_size {size}; expected at least -1"))?),
                },
            },
            Op::Voxelize => Kind::Voxelize {
                points: self.value("points")?,
                features: self.value("features")?,
                batch_indices: self.value("batch_indices")?,
                active_rows: self.value("active_rows")?,
                voxel_size: attrs.floats("voxel_size")?,
                origin: attrs.floats("origin")?,
                reduction: attrs.keyword("reduction", VoxelReduction::parse)?,
                stride: attrs.ints("stride")?,
            },
            Op::Devoxelize => Kind::Devoxelize {
                points: self.value("points")?,
                voxels: self.value("voxels")?,
                batch_indices: self.value("batch_indices")?,
                point_active_rows: self.value("point_active_rows")?,
                voxel_size: attrs.floats("voxel_size")?,
                origin: attrs.floats("origin")?,
                interpolation: attrs.keyword("interpolation", PointInterpolation::parse)?,
            },
            _ => return self.dense(),
        })
    }

    /// The operations on dense tensors, and sparse algebra.
    fn dense(&self) -> Result<Kind, String> {
        let attrs = self.attrs;
        Ok(match self.op {
            Op::Linear => {
                Kind::Linear { input: self.value("input")?, weight: self.value("weight")?, bias: self.maybe("bias") }
            }
            Op::EmbeddingLookup => Kind::EmbeddingLookup { input: self.value("input")?, weight: self.value("weight")? },
            Op::Elementwise => {
                Kind::Elementwise { input: self.value("input")?, function: attrs.keyword("kind", Elementwise::parse)? }
            }
            Op::Softmax => match attrs.int("axis")? {
                -1 | 1 => Kind::Softmax { input: self.value("input")? },
                axis => return Err(format!("attribute \"axis\" is {axis}; expected -1 or 1")),
            },
            Op::Activation => Kind::Activation {
                input: self.value("input")?,
                function: attrs.keyword("kind", Activation::parse)?,
                approximate: attrs.keyword("approximate", GeluApprox::parse)?,
                alpha: attrs.f32("alpha")?,
                beta: attrs.f32("beta")?,
                threshold: attrs.f32("threshold")?,
            },
            Op::BatchNorm => Kind::BatchNorm {
                input: self.value("input")?,
                scale: self.value("scale")?,
                bias: self.value("bias")?,
                mean: self.value("mean")?,
                var: self.value("var")?,
                eps: attrs.f32("eps")?,
            },
            Op::LayerNorm => Kind::LayerNorm {
                input: self.value("input")?,
                scale: self.value("scale")?,
                bias: self.value("bias")?,
                eps: attrs.f32("eps")?,
            },
            Op::RmsNorm => {
                Kind::RmsNorm { input: self.value("input")?, scale: self.value("scale")?, eps: attrs.f32("eps")? }
            }
            Op::SparseBinary => Kind::Binary {
                lhs: self.value("lhs")?,
                rhs: self.value("rhs")?,
                op: attrs.keyword("op", BinaryOp::parse)?,
                join: attrs.keyword("join", Join::parse)?,
                lhs_fill: attrs.f32("lhs_fill")?,
                rhs_fill: attrs.f32("rhs_fill")?,
            },
            Op::SparseCat => Kind::Cat {
                lhs: self.value("lhs")?,
                rhs: self.value("rhs")?,
                join: attrs.keyword("join", Join::parse)?,
            },
            op => return Err(format!("operation {op:?} has no place in a plan")),
        })
    }
}

/// What stands in a weight until its records have been read.
fn nothing() -> Part {
    Part { name: String::new(), dtype: m2m_record::DType::F32, shape: Vec::new(), data: m2m_record::Data::Missing }
}

/// The tensors of a weight record.
fn stored(record: &PlanOp, attrs: &Attrs<'_>) -> Result<Stored, String> {
    let parts: Vec<Part> = record.weights.iter().map(part).collect::<Result<_, _>>()?;
    match (attrs.packing()?, <[Part; 1]>::try_from(parts.clone()), <[Part; 3]>::try_from(parts)) {
        (None, Ok([dense]), _) => Ok(Stored::Dense(dense)),
        (Some(packing), _, Ok([weight, scales, biases])) => {
            for each in [&scales, &biases] {
                if each.dtype != packing.scale_dtype {
                    return Err(format!("{:?} is {}; the packing says {}", each.name, each.dtype, packing.scale_dtype));
                }
            }
            let (bits, group_size) = (packing.bits, packing.group_size);
            Ok(Stored::Packed(Box::new(Packed { bits, group_size, weight, scales, biases })))
        }
        (packing, ..) => {
            let (found, expected) = (record.weights.len(), if packing.is_some() { 3 } else { 1 });
            let hint = if found == 0 { "; the plan was made without its weights file" } else { "" };
            Err(format!("{found} stored tensors; expected {expected}{hint}"))
        }
    }
}

fn part(weight: &PlanWeight) -> Result<Part, String> {
    let wrong = || format!("stored tensor {:?} has no static tensor type", weight.name);
    let Type::Tensor(ty) = &weight.ty else { return Err(wrong()) };
    let sizes = ty.shape.iter().map(|dim| match dim {
        Dim::Int(size) if *size >= 0 => Some(*size),
        _ => None,
    });
    let shape = sizes.collect::<Option<Vec<i64>>>().ok_or_else(wrong)?;
    Ok(Part { name: weight.name.clone(), dtype: ty.dtype, shape, data: weight.data.clone() })
}
