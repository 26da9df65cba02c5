//! One execution from a stream's records to outputs by name: state from files, inputs from the caller, results and the
//! state that changed as bytes.

use crate::body::constant;
use crate::engine::Engine;
use crate::error::Error;
use crate::program::{Program, Watch};
use crate::state::{Original, Piece, State, Supply};
use crate::tensor::Tensor;
use crate::value::Value;
use m2m_record::{DType, File, Input, InputRole, OutputItem, OutputRole, Type};
use std::collections::HashMap;
use std::path::Path;

/// What is executed, and on what.
pub struct Session<'a> {
    /// The current graph.
    pub graphs: &'a m2m_graph::Program,
    /// The stream's `tensor` records, for tensor subclasses.
    pub tensors: &'a [m2m_record::Tensor],
    /// What relative paths are relative to.
    pub root: Option<&'a Path>,
    /// The key of a user's input by its value's name, `in_0`.
    pub key: &'a dyn Fn(&str) -> Option<String>,
    /// The values of inputs.
    pub given: &'a Given<'a>,
}

/// Where the values of inputs come from; each is asked by key, then by name.
pub struct Given<'a> {
    /// Tensors; asked twice for an input, it gives two tensors.
    pub tensor: &'a Supply<'a>,
    /// Numbers, bools and strings.
    pub scalar: &'a dyn Fn(&str) -> Option<Value>,
}

/// A tensor that came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// `out_0`, `mutated.NAME`, `grad.NAME`.
    pub key: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Vec<i64>,
    /// Row-major little-endian elements.
    pub bytes: Vec<u8>,
}

impl Output {
    /// A value as an output; numbers are tensors without dimensions, other values are none.
    pub fn of(key: String, value: &Value) -> Result<Option<Output>, Error> {
        let scalar =
            |dtype, bytes: &[u8]| Some(Output { key: key.clone(), dtype, shape: Vec::new(), bytes: bytes.to_vec() });
        Ok(match value {
            Value::Tensor(t) => Some(Output { dtype: t.dtype()?, shape: t.shape()?, bytes: t.to_bytes()?, key }),
            Value::Int(n) => scalar(DType::I64, &n.to_le_bytes()),
            Value::Float(x) => scalar(DType::F64, &x.to_le_bytes()),
            Value::Bool(b) => scalar(DType::Bool, &[u8::from(*b)]),
            _ => None,
        })
    }
}

/// What an execution gave.
#[derive(Debug)]
pub struct Outcome {
    /// Outputs in signature order, then state that the program changed without an output for it.
    pub outputs: Vec<Output>,
    /// Guards that could not be read, as they are worded.
    pub unread_guards: Vec<String>,
    /// Seconds of this process's processor time that executing the nodes took, without finding state and operators.
    pub seconds: f64,
}

/// Executes the current graph. `watch` sees every intermediate.
pub fn run(engine: &Engine, session: &Session<'_>, watch: &mut Watch<'_>) -> Result<Outcome, Vec<Error>> {
    let graph = &session.graphs.root;
    let inner = inner_tensors(session);
    let mut pieces: Vec<Piece<'_>> = graph.inputs.iter().filter_map(Piece::of).collect();
    pieces.extend(inner.iter().map(|t| Piece { name: &t.name, shown: &t.name, ty: &t.ty, data: &t.data }));
    let files: Vec<&File> = session.graphs.files.values().collect();
    let state =
        State::load(engine, &pieces, &files, session.root, session.given.tensor).map_err(|error| vec![error])?;
    let inner = inner.iter().filter_map(|t| Some((t.name.clone(), state.get(&t.name)?))).collect();
    let program = Program::new(engine, session.graphs, inner)?;
    let outcome = (|| {
        let mut inputs = Vec::with_capacity(graph.inputs.len());
        for input in &graph.inputs {
            inputs.push(value(engine, session, &state, input)?);
        }
        let kept = inputs.clone();
        let begin = processor_seconds();
        let result = program.run(inputs, watch)?;
        let seconds = processor_seconds() - begin;
        let mut outputs = named(session, &graph.outputs, &result.outputs)?;
        let known: Vec<String> = outputs.iter().map(|output| output.key.clone()).collect();
        let mut changed = changed(engine, session, &kept, &pieces, &files)?;
        changed.retain(|output| !known.contains(&output.key));
        outputs.append(&mut changed);
        Ok(Outcome { outputs, unread_guards: result.unread_guards, seconds })
    })();
    outcome.map_err(|error| vec![error])
}

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The records of inner tensors that the graph takes.
fn inner_tensors<'a>(session: &Session<'a>) -> Vec<&'a m2m_record::Tensor> {
    let targets: Vec<&str> =
        session.graphs.root.inputs.iter().filter(|i| i.data.is_none()).filter_map(|i| i.target.as_deref()).collect();
    let is_inner = |name: &str| targets.iter().any(|t| name.strip_prefix(t).is_some_and(|rest| rest.starts_with('.')));
    session.tensors.iter().filter(|tensor| is_inner(&tensor.name)).collect()
}

/// The value of an input of the root graph.
fn value(engine: &Engine, session: &Session<'_>, state: &State, input: &Input) -> Result<Value, Error> {
    match input.role {
        InputRole::Parameter | InputRole::Buffer | InputRole::TensorConstant => {
            Ok(state.get(&input.value).unwrap_or(Value::None))
        }
        InputRole::ConstantInput => input.literal.as_ref().map_or(Ok(Value::None), constant),
        InputRole::UserInput => user_input(engine, session, input),
        InputRole::CustomObj | InputRole::Token | InputRole::Seed => Ok(Value::None),
    }
}

/// What the caller gives for an input.
fn user_input(engine: &Engine, session: &Session<'_>, input: &Input) -> Result<Value, Error> {
    let key = (session.key)(&input.value).unwrap_or_else(|| input.value.clone());
    let wrong = |message: String| Error::Input { name: key.clone(), message };
    let scalar = (session.given.scalar)(&key).or_else(|| (session.given.scalar)(&input.value));
    if let Some(scalar) = scalar {
        return Ok(scalar);
    }
    let found = (session.given.tensor)(&key)?.map_or_else(|| (session.given.tensor)(&input.value), |t| Ok(Some(t)))?;
    let Some(tensor) = found else {
        return Err(wrong(format!("no value is given; expected {}", shown(&input.ty))));
    };
    match &input.ty {
        Type::Tensor(stated) => complex(engine, tensor, stated.dtype).map(Value::Tensor),
        Type::Scalar { .. } if tensor.shape()?.iter().product::<i64>() == 1 => {
            Ok(engine.call("aten.item.default", &[tensor.into()])?.pop().unwrap_or(Value::None))
        }
        other => Err(wrong(format!("a tensor; expected {}", shown(other)))),
    }
}

/// A type as messages show it.
fn shown(ty: &Type) -> String {
    match ty {
        Type::Tensor(t) => {
            let dims: Vec<String> = t.shape.iter().map(ToString::to_string).collect();
            format!("{} [{}]", t.dtype, dims.join(", "))
        }
        Type::Scalar { kind, .. } => format!("a scalar of kind {kind:?}").to_lowercase(),
        other => format!("{other:?}"),
    }
}

/// A complex tensor that is stored as pairs of its parts, put together.
fn complex(engine: &Engine, tensor: Tensor, stated: DType) -> Result<Tensor, Error> {
    let part = match stated {
        DType::C32 => DType::F16,
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        _ => return Ok(tensor),
    };
    if tensor.dtype()? == part && tensor.shape()?.last() == Some(&2) {
        return engine.tensor("aten.view_as_complex.default", &[tensor.into()]);
    }
    Ok(tensor)
}

/// Outputs by key; literals and absent values have none.
fn named(session: &Session<'_>, items: &[OutputItem], values: &[Value]) -> Result<Vec<Output>, Error> {
    let mut outputs = Vec::new();
    let mut user_outputs = 0;
    for (item, value) in items.iter().zip(values) {
        let target = item.target.as_deref().unwrap_or_default();
        let key = match item.role {
            OutputRole::UserOutput | OutputRole::LossOutput => {
                user_outputs += 1;
                format!("out_{}", user_outputs - 1)
            }
            OutputRole::GradientToParameter | OutputRole::GradientToUserInput => format!("grad.{target}"),
            OutputRole::UserInputMutation => {
                format!("mutated.{}", (session.key)(target).unwrap_or_else(|| target.to_owned()))
            }
            OutputRole::Token => continue,
            OutputRole::BufferMutation | OutputRole::ParameterMutation => format!("mutated.{target}"),
        };
        if item.literal.is_none() {
            outputs.extend(Output::of(key, value)?);
        }
    }
    Ok(outputs)
}

/// State and inputs that the program wrote to in place. Writes are counted by libtorch; buffers are compared whatever it
/// counts, since operators such as batch_norm update statistics without counting.
fn changed(
    engine: &Engine,
    session: &Session<'_>,
    values: &[Value],
    pieces: &[Piece<'_>],
    files: &[&File],
) -> Result<Vec<Output>, Error> {
    let inputs = &session.graphs.root.inputs;
    let mut written: Vec<(usize, usize)> = Vec::new();
    for value in values {
        if let Value::Tensor(tensor) = value
            && tensor.version()? > 0
        {
            written.extend(tensor.range()?);
        }
    }
    let by_name: HashMap<&str, &Piece<'_>> = pieces.iter().map(|piece| (piece.name, piece)).collect();
    let mut original: Option<Original> = None;
    let mut outputs = Vec::new();
    for (input, value) in inputs.iter().zip(values) {
        let Value::Tensor(tensor) = value else { continue };
        let range = tensor.range()?;
        let is_written = range.is_some_and(|(start, end)| written.iter().any(|(s, e)| start < *e && *s < end));
        if !is_written && input.role != InputRole::Buffer {
            continue;
        }
        let (before, name) = match by_name.get(input.value.as_str()) {
            Some(piece) => {
                if original.is_none() {
                    original = Some(Original::open(pieces, files, session.root)?);
                }
                let before = original.as_ref().map_or(Ok(None), |original| original.bytes(piece))?;
                (before, piece.shown.to_owned())
            }
            None => (None, (session.key)(&input.value).unwrap_or_else(|| input.value.clone())),
        };
        let before = match before {
            Some(bytes) => bytes,
            None => match (session.given.tensor)(&name)? {
                Some(tensor) => match &input.ty {
                    Type::Tensor(stated) => complex(engine, tensor, stated.dtype)?.to_bytes()?,
                    _ => tensor.to_bytes()?,
                },
                None => Vec::new(),
            },
        };
        if tensor.to_bytes()? != before {
            outputs.extend(Output::of(format!("mutated.{name}"), value)?);
        }
    }
    Ok(outputs)
}
