//! Every fixture of the repository, executed from its archive: outputs and mutations against those of eager PyTorch.
#![allow(clippy::unwrap_used)]

mod common;

use m2m_graph::{Collector, Program};
use m2m_pt2::{Capture, Origin};
use m2m_record::{Body, DType, InputRole, Reader, Tensor as TensorRecord};
use m2m_tensor::MappedFile;
use m2m_tensor::safetensors::{Entry, Header};
use m2m_torch::{Engine, Error, Given, Outcome, Session, Tensor, Value};
use std::path::{Path, PathBuf};

/// The same PyTorch gives the same bits, unless another machine's kernels sum in another order.
const TOLERANCE: f64 = 1e-5;

/// Fixtures that cannot run, and what is said of them.
const REFUSED: &[(&str, &str)] = &[("weightless", "the program came without this tensor's data")];

/// A mapped safetensors file.
struct Tensors {
    map: MappedFile,
    header: Header,
}

impl Tensors {
    fn open(path: &Path) -> Option<Tensors> {
        let map = MappedFile::open(path).ok()?;
        let header = Header::read(map.bytes()).unwrap();
        Some(Tensors { map, header })
    }

    fn get(&self, engine: &Engine, name: &str) -> Result<Option<Tensor>, Error> {
        let Some(Entry { dtype, shape, offset, bytes }) = self.header.tensors.get(name) else { return Ok(None) };
        let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        engine.copied(*dtype, &shape, &self.map.bytes()[*offset as usize..(*offset + *bytes) as usize]).map(Some)
    }
}

/// The graphs and `tensor` records of an archive.
fn captured(path: &Path) -> (Program, Vec<TensorRecord>) {
    let map = MappedFile::open(path).unwrap();
    let mut buffer = String::new();
    let program = path.parent().is_some_and(|folder| folder.ends_with("two_programs")).then_some("prefill");
    let capture = Capture::open(map.bytes(), program, &mut buffer).unwrap();
    let origin = Origin { name: "model.pt2", path: path.to_str().unwrap() };
    let (stream, _) = capture.write(&origin, "0", None, Vec::new()).unwrap();
    let (mut reader, mut collector, mut tensors) = (Reader::new(stream.as_slice()), Collector::new(), Vec::new());
    while let Some(line) = reader.next_line().unwrap() {
        collector.push(&line).unwrap();
        if line.kind == TensorRecord::KIND {
            tensors.push(line.parse().unwrap());
        }
    }
    (collector.finish().unwrap(), tensors)
}

/// The folders of fixtures.
fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join("model.pt2").is_file() && folder.join("expected.json").is_file());
    folders.sort();
    folders
}

/// The scalar inputs of each set, by key.
fn sets(folder: &Path) -> Vec<Vec<(String, Value)>> {
    let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
    let set = |set: &serde_json::Value| {
        let inputs = set["inputs"].as_array().unwrap().iter().enumerate();
        let scalars = inputs.filter_map(|(k, input)| match input.get("value")? {
            serde_json::Value::Bool(b) => Some((format!("in_{k}"), Value::Bool(*b))),
            serde_json::Value::Number(n) => {
                let value = n.as_i64().map_or_else(|| Value::Float(n.as_f64().unwrap()), Value::Int);
                Some((format!("in_{k}"), value))
            }
            _ => None,
        });
        scalars.collect()
    };
    expected["sets"].as_array().unwrap().iter().map(set).collect()
}

/// Runs one set of a fixture and compares; what differs.
fn differences(engine: &Engine, folder: &Path, suffix: &str, scalars: &[(String, Value)]) -> Result<(), String> {
    let (graphs, tensors) = captured(&folder.join("model.pt2"));
    let inputs = Tensors::open(&folder.join(format!("inputs{suffix}.safetensors")));
    let is_user = |role| matches!(role, InputRole::UserInput | InputRole::ConstantInput);
    let key = |value: &str| {
        let users = graphs.root.inputs.iter().filter(|input| is_user(input.role));
        users.enumerate().find(|(_, input)| input.value == value).map(|(k, _)| format!("in_{k}"))
    };
    let tensor = |name: &str| inputs.as_ref().map_or(Ok(None), |inputs| inputs.get(engine, name));
    let scalar = |name: &str| scalars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let given = Given { tensor: &tensor, scalar: &scalar };
    let session = Session { graphs: &graphs, tensors: &tensors, root: None, key: &key, given: &given };
    let outcome = m2m_torch::run(engine, &session, &mut |_, _, _| Ok(()));
    let outcome = outcome.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let references = Tensors::open(&folder.join(format!("outputs{suffix}.safetensors"))).ok_or("no outputs")?;
    for (name, entry) in &references.header.tensors {
        let reference = references.get(engine, name).unwrap().unwrap();
        compare(engine, &outcome, name, entry.dtype, &reference).map_err(|message| format!("{name}: {message}"))?;
    }
    Ok(())
}

fn compare(engine: &Engine, outcome: &Outcome, name: &str, dtype: DType, reference: &Tensor) -> Result<(), String> {
    let found = outcome.outputs.iter().find(|output| output.key == name).ok_or("the graph has no such output")?;
    let mut shape = found.shape.clone();
    // References hold complex tensors as pairs of their parts.
    if found.dtype.is_complex() && !dtype.is_complex() {
        shape.push(2);
    }
    let text = |error: Error| error.to_string();
    if shape != reference.shape().map_err(text)? || (found.dtype != dtype && !found.dtype.is_complex()) {
        return Err(format!("{} {:?}; expected {reference:?}", found.dtype, found.shape));
    }
    if found.bytes == reference.to_bytes().map_err(text)? {
        return Ok(());
    }
    if !dtype.is_float() {
        return Err("other integers".to_owned());
    }
    let found = engine.copied(dtype, &shape, &found.bytes).map_err(text)?;
    let wide = |t: &Tensor| engine.tensor("aten.to.dtype", &[t.into(), Value::Int(7)]).map_err(text);
    let args = [wide(&found)?.into(), wide(reference)?.into(), TOLERANCE.into(), TOLERANCE.into(), Value::Bool(true)];
    match engine.call("aten.allclose.default", &args).map_err(text)?.as_slice() {
        [Value::Bool(true)] => Ok(()),
        _ => Err(format!("differs by more than {TOLERANCE:e}")),
    }
}

#[test]
fn every_fixture_gives_the_outputs_of_eager_pytorch() {
    let Some(engine) = common::engine() else { return };
    let mut wrong = Vec::new();
    let mut count = 0;
    for folder in fixtures() {
        for (index, scalars) in sets(&folder).iter().enumerate() {
            let suffix = if index == 0 { String::new() } else { format!("_{}", index + 1) };
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let refusal = REFUSED.iter().find(|(known, _)| *known == name).map(|(_, words)| *words);
            match differences(&engine, &folder, &suffix, scalars) {
                Err(message) if refusal.is_some_and(|words| message.contains(words)) => {}
                Ok(()) if refusal.is_some() => wrong.push(format!("{name}{suffix}: ran, and is listed as refused")),
                Ok(()) => count += 1,
                Err(message) => wrong.push(format!("{name}{suffix}: {message}")),
            }
        }
    }
    assert!(wrong.is_empty() && count > 0, "{count} right; {}", wrong.join("\n"));
}
