//! Compiles a plan's module, gives its entry the arguments, and returns what it gives back.
//!
//! State stays where it is mapped unless it is strided or big-endian. A file is mapped once, whatever number of tensors it
//! holds: pages that several mappings touch count as often.

use crate::error::Error;
use crate::golden::Named;
use crate::inputs::Inputs;
use crate::plan::{Plan, Slot};
use crate::tensors::TensorView;
use crate::timing::{Times, timed};
use m2m_mlir::jit::{Argument, Kind, Options, Output, Program};
use m2m_record::{DType, Data, File, Type};
use m2m_tensor::source::{Files, View};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

/// Where values come from.
pub struct Sources<'a> {
    /// The stream's files by id.
    pub files: &'a HashMap<String, File>,
    /// What relative paths are relative to.
    pub root: Option<&'a Path>,
    /// The values of inputs.
    pub inputs: &'a Inputs,
}

/// A value of `--scalar`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// `true`, `false`.
    Bool(bool),
    /// `5`.
    Int(i64),
    /// `0.5`.
    Float(f64),
}

impl Scalar {
    /// As a tensor without axes.
    pub fn named(self, key: &str) -> Named {
        let (dtype, data) = match self {
            Self::Bool(b) => (DType::Bool, vec![u8::from(b)]),
            Self::Int(n) => (DType::I64, n.to_le_bytes().to_vec()),
            Self::Float(x) => (DType::F64, x.to_le_bytes().to_vec()),
        };
        Named { key: key.to_owned(), dtype, dims: Vec::new(), data }
    }
}

/// Reads `KEY=VALUE`.
pub fn parse_scalar(text: &str) -> Result<(String, Scalar), Error> {
    let wrong = || Error::Scalar(text.to_owned());
    let (key, value) = text.split_once('=').ok_or_else(wrong)?;
    let scalar = match value {
        "true" => Scalar::Bool(true),
        "false" => Scalar::Bool(false),
        _ => match value.parse() {
            Ok(int) => Scalar::Int(int),
            Err(_) => Scalar::Float(value.parse().map_err(|_| wrong())?),
        },
    };
    Ok((key.to_owned(), scalar))
}

/// How a module is executed.
#[derive(Default)]
pub struct How {
    /// Of the compiler.
    pub options: Options,
    /// Times.
    pub repeat: Option<u32>,
    /// Ranges of operations, by their ordinals in the module, whose results are wanted too.
    pub exposed: Vec<RangeInclusive<usize>>,
}

/// What executing a module gave.
pub struct Ran {
    /// In the order of the entry's results.
    pub outputs: Vec<Output>,
    /// Of each range that was wanted what can be had.
    pub exposed: Vec<Vec<Output>>,
    /// What it took.
    pub times: Times,
}

/// Runs the module.
pub fn execute(plan: &Plan, sources: &Sources<'_>, how: &How) -> Result<Ran, Error> {
    let compile = || Program::compile_exposing(&plan.module, &plan.entry, how.options, &how.exposed);
    let (program, prepare) = timed(compile);
    let (program, exposed) = program?;
    let extra = exposed.iter().sum::<usize>();
    let kinds = program.arguments();
    let slots = plan.slots.clone().unwrap_or_else(|| numbered(kinds.len()));
    check_count(plan, "arguments", kinds.len(), slots.len())?;
    if let Some(targets) = &plan.targets {
        check_count(plan, "results", program.results().len() - extra, targets.len())?;
    }
    let files = open(&slots, sources)?;
    let views: Vec<Option<View<'_>>> = slots.iter().map(|slot| state(slot, &files)).collect::<Result<_, _>>()?;
    let mut values = Vec::with_capacity(slots.len());
    for ((slot, view), kind) in slots.iter().zip(&views).zip(kinds) {
        values.push(value(slot, view.as_ref(), kind, sources)?);
    }
    let arguments: Vec<Argument<'_>> = values.iter().map(Value::argument).collect();
    let mut times = Times { prepare, ..Times::default() };
    let mut outputs = Vec::new();
    for _ in 0..how.repeat.unwrap_or(1) {
        let (outcome, seconds) = timed(|| program.run(&arguments));
        outputs = outcome?.outputs;
        times.runs.push(seconds);
    }
    let mut extras = outputs.split_off(outputs.len() - extra).into_iter();
    let exposed = exposed.into_iter().map(|count| extras.by_ref().take(count).collect()).collect();
    Ok(Ran { outputs, exposed, times })
}

fn check_count(plan: &Plan, what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Signature { entry: plan.entry.clone(), what, found, expected })
}

/// The slots of a module of which nothing else is known.
fn numbered(count: usize) -> Vec<Slot> {
    (0..count).map(|index| Slot { name: format!("in_{index}"), data: None, ty: None }).collect()
}

/// A value on its way into the call.
enum Value<'a> {
    Tensor(Cow<'a, [u8]>, Vec<i64>),
    Scalar(Scalar),
}

impl Value<'_> {
    fn argument(&self) -> Argument<'_> {
        match self {
            Self::Tensor(data, dims) => Argument::Tensor { data, dims },
            Self::Scalar(Scalar::Bool(value)) => Argument::Bool(*value),
            Self::Scalar(Scalar::Int(value)) => Argument::Int(*value),
            Self::Scalar(Scalar::Float(value)) => Argument::Float(*value),
        }
    }
}

fn wrong(slot: &Slot, message: impl Into<String>) -> Error {
    Error::Argument { name: slot.name.clone(), message: message.into() }
}

/// The files behind the data of slots.
fn open(slots: &[Slot], sources: &Sources<'_>) -> Result<Files, Error> {
    let mut files = Files::new();
    let mut done: HashSet<&str> = HashSet::new();
    for slot in slots {
        let Some(Data::Tensor { file, .. } | Data::Range { file, .. }) = &slot.data else { continue };
        if !done.insert(file) {
            continue;
        }
        let record = sources
            .files
            .get(file)
            .ok_or_else(|| wrong(slot, format!("its data names file {file:?}, which no file record introduces")))?;
        files.open(record, sources.root).map_err(|error| wrong(slot, error.to_string()))?;
    }
    Ok(files)
}

/// The elements of a slot that has data.
fn state<'a>(slot: &Slot, files: &'a Files) -> Result<Option<View<'a>>, Error> {
    let Some(data) = &slot.data else { return Ok(None) };
    let tensor = slot.ty.as_ref().and_then(Type::as_tensor).ok_or_else(|| wrong(slot, "state that is not a tensor"))?;
    let shape = tensor.static_shape().ok_or_else(|| wrong(slot, "state with a symbolic shape"))?;
    let view = files.view(data, tensor.dtype, &shape).map_err(|error| wrong(slot, error.to_string()))?;
    Ok(Some(view))
}

fn value<'a>(slot: &Slot, view: Option<&'a View<'a>>, kind: &Kind, sources: &Sources<'a>) -> Result<Value<'a>, Error> {
    if let Some(view) = view {
        let data = view.to_contiguous().map_err(|error| wrong(slot, error.to_string()))?;
        return Ok(Value::Tensor(data, view.shape().to_vec()));
    }
    if let Some(scalar) = sources.inputs.scalars.get(&slot.name) {
        return Ok(Value::Scalar(*scalar));
    }
    let tensor = sources.inputs.get(&slot.name).ok_or_else(|| {
        let way = if matches!(kind, Kind::Scalar(_)) { "--scalar or --inputs" } else { "--inputs" };
        wrong(slot, format!("no value; expected {} in {way}", kind.shape().shown()))
    })?;
    let stated = slot.ty.as_ref().and_then(Type::as_tensor).map(|ty| ty.dtype);
    let tensor = match stated.or_else(|| element_dtype(&kind.shape().element)) {
        Some(dtype) => tensor.paired(dtype),
        None => tensor,
    };
    check_type(slot, kind, &tensor)?;
    match kind {
        Kind::Tensor(_) => Ok(Value::Tensor(tensor.bytes.into(), tensor.dims())),
        Kind::Scalar(_) => scalar(slot, &tensor).map(Value::Scalar),
    }
}

fn check_type(slot: &Slot, kind: &Kind, tensor: &TensorView<'_>) -> Result<(), Error> {
    let stated = slot.ty.as_ref().and_then(Type::as_tensor).map(|ty| ty.dtype);
    let fits = match stated {
        Some(dtype) => dtype == tensor.dtype,
        // MLIR's integers have no sign, so both dtypes fit.
        None => element_dtype(&kind.shape().element)
            .is_none_or(|dtype| dtype == tensor.dtype || (dtype.is_integer() && dtype.bits() == tensor.dtype.bits())),
    };
    if fits {
        return Ok(());
    }
    let expected = stated.map_or_else(|| kind.shape().shown(), |dtype| dtype.to_string());
    Err(wrong(slot, format!("expected {expected}; got {} {:?}", tensor.dtype, tensor.shape)))
}

/// A 0-d tensor as a scalar argument.
fn scalar(slot: &Slot, tensor: &TensorView<'_>) -> Result<Scalar, Error> {
    let bytes = tensor.bytes;
    let fixed = |message: &str| wrong(slot, format!("{message}; got {} {:?}", tensor.dtype, tensor.shape));
    if !tensor.shape.is_empty() {
        return Err(fixed("expected a tensor without axes for a scalar"));
    }
    match (tensor.dtype, bytes.len()) {
        (DType::Bool, 1) => Ok(Scalar::Bool(bytes[0] != 0)),
        (DType::I64, 8) => Ok(Scalar::Int(i64::from_le_bytes(bytes.try_into().unwrap_or_default()))),
        (DType::I32, 4) => Ok(Scalar::Int(i32::from_le_bytes(bytes.try_into().unwrap_or_default()).into())),
        (DType::F64, 8) => Ok(Scalar::Float(f64::from_le_bytes(bytes.try_into().unwrap_or_default()))),
        (DType::F32, 4) => Ok(Scalar::Float(f32::from_le_bytes(bytes.try_into().unwrap_or_default()).into())),
        _ => Err(fixed("expected bool, i32, i64, f32 or f64 for a scalar")),
    }
}

/// The dtype of an MLIR element type; signed where the type does not say.
pub fn element_dtype(element: &str) -> Option<DType> {
    match element {
        "i1" => Some(DType::Bool),
        "index" => Some(DType::I64),
        "complex<f16>" => Some(DType::C32),
        "complex<f32>" => Some(DType::C64),
        "complex<f64>" => Some(DType::C128),
        _ => DType::from_str(&element.to_lowercase()).ok(),
    }
}
