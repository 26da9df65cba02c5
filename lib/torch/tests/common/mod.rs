//! What the tests of this crate share: libtorch if it is here, graphs written as records, tensors written as numbers.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by test files that each use a part; a failed step fails the test"
)]

use m2m_graph::{Collector, Program};
use m2m_record::{DType, Reader, Writer};
use m2m_torch::{Engine, Error, Given, Outcome, Output, Session, Tensor, Value};

/// libtorch, or nothing where there is none; then a test has nothing to show. `M2M_NEED_LIBTORCH` makes that a failure.
pub fn engine() -> Option<Engine> {
    match Engine::start(Some(1)) {
        Ok(engine) => Some(engine),
        Err(_) if std::env::var_os("M2M_NEED_LIBTORCH").is_none() => None,
        Err(error) => panic!("{error}"),
    }
}

pub fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn i64s(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn floats(engine: &Engine, shape: &[i64], values: &[f32]) -> Tensor {
    engine.copied(DType::F32, shape, &f32s(values)).unwrap()
}

pub fn ints(engine: &Engine, shape: &[i64], values: &[i64]) -> Tensor {
    engine.copied(DType::I64, shape, &i64s(values)).unwrap()
}

pub fn to_floats(tensor: &Tensor) -> Vec<f32> {
    assert_eq!(tensor.dtype().unwrap(), DType::F32);
    tensor.to_bytes().unwrap().chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// A program from its records without `begin`, seals and `end`: lines as they stand in a stream.
pub fn program(lines: &str) -> Program {
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let mut is_open = false;
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let bytes = line.as_bytes();
        macro_rules! write {
            ($($kind:literal => $ty:ty),*) => {
                match line.split('"').nth(3).unwrap() {
                    $($kind => writer.write(&m2m_record::reader::parse_line::<$ty>(bytes).unwrap()).unwrap(),)*
                    other => panic!("{other}"),
                }
            };
        }
        if line.starts_with("{\"record\":\"graph\"") && std::mem::replace(&mut is_open, true) {
            writer.seal().unwrap();
        }
        write!(
            "file" => m2m_record::File, "graph" => m2m_record::Graph, "symbol" => m2m_record::Symbol,
            "guard" => m2m_record::Guard, "input" => m2m_record::Input, "node" => m2m_record::Node,
            "output" => m2m_record::Output
        );
    }
    writer.seal().unwrap();
    let stream = writer.finish(m2m_record::Status::Ok).unwrap();
    let (mut reader, mut collector) = (Reader::new(stream.as_slice()), Collector::new());
    while let Some(line) = reader.next_line().unwrap() {
        collector.push(&line).unwrap();
    }
    collector.finish().unwrap()
}

/// Runs a program; inputs are by the names of their values.
pub fn run(engine: &Engine, graphs: &Program, inputs: &[(&str, Value)]) -> Result<Outcome, Vec<Error>> {
    let find = |name: &str| inputs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let tensor = |name: &str| match find(name) {
        Some(Value::Tensor(t)) => engine.copied(t.dtype()?, &t.shape()?, &t.to_bytes()?).map(Some),
        _ => Ok(None),
    };
    let scalar = |name: &str| find(name).filter(|value| !matches!(value, Value::Tensor(_)));
    let given = Given { tensor: &tensor, scalar: &scalar };
    let session = Session { graphs, tensors: &[], root: None, key: &|_| None, given: &given };
    m2m_torch::run(engine, &session, &mut |_, _, _| Ok(()))
}

/// The f32 elements of an output.
pub fn output(outcome: &Outcome, key: &str) -> Vec<f32> {
    let output: &Output = outcome.outputs.iter().find(|output| output.key == key).unwrap();
    output.bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

pub fn keys(outcome: &Outcome) -> Vec<&str> {
    outcome.outputs.iter().map(|output| output.key.as_str()).collect()
}

/// The only error of a run.
pub fn error(outcome: Result<Outcome, Vec<Error>>) -> String {
    let errors: Vec<String> = outcome.unwrap_err().iter().map(ToString::to_string).collect();
    errors.join("\n")
}
