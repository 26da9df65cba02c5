//! A small lowered stream and the files that it names: every kind of data, a tie, a transposed view.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by test files that each use a part; a failed step fails the test"
)]

use m2m_digest::Digest;
use m2m_record::data::ByteOrder;
use m2m_record::{
    Argument, DType, Data, Dim, File, Golden, Graph, InputRole, Module, ModuleResult, OutputRole, Scalar, Status,
    Tensor, TensorType, Tool, Type, Writer,
};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const MLIR: &str = "module { func.func @forward() { return } }\n";
const NAME: &str = "raw.bin";

/// What the raw file holds: 0.0, 1.0, … 11.0 as f32, then the u16 values 1, 2, 3 in big-endian order.
pub fn raw_file() -> Vec<u8> {
    let floats = (0..12u8).flat_map(|n| f32::from(n).to_le_bytes());
    floats.chain([0, 1, 0, 2, 0, 3]).collect()
}

pub fn tensor(dtype: DType, shape: &[i64]) -> Type {
    Type::Tensor(TensorType::new(dtype, shape.iter().map(|d| Dim::Int(*d)).collect()))
}

pub fn range(offset: u64, bytes: u64, strides: Option<&[i64]>, byteorder: ByteOrder) -> Data {
    let strides = strides.map(<[i64]>::to_vec);
    Data::Range { file: "f0".into(), offset, bytes, storage: Some(0), strides, byteorder }
}

fn argument(value: &str, target: Option<&str>, ty: Type, data: Option<Data>) -> Argument {
    let role = if data.is_some() { InputRole::Parameter } else { InputRole::UserInput };
    Argument { value: value.into(), role, target: target.map(Into::into), ty, data, global: None }
}

pub fn arguments() -> Vec<Argument> {
    let little = ByteOrder::Little;
    vec![
        argument("p_w", Some("w"), tensor(DType::F32, &[2, 3]), Some(range(0, 24, None, little))),
        argument("p_tied", Some("tied"), tensor(DType::F32, &[2, 3]), Some(range(0, 24, None, little))),
        argument("p_t", Some("t"), tensor(DType::F32, &[3, 2]), Some(range(24, 24, Some(&[1, 3]), little))),
        argument("c_big", None, tensor(DType::U16, &[3]), Some(range(48, 6, None, ByteOrder::Big))),
        argument("c_in", None, tensor(DType::I64, &[2]), Some(Data::Inline(vec![Scalar::Int(7), Scalar::Int(-1)]))),
        argument("c_splat", None, tensor(DType::U8, &[3]), Some(Data::Splat(Scalar::Int(9)))),
        argument("x", None, tensor(DType::F32, &[1, 3]), None),
    ]
}

pub fn module(arguments: Vec<Argument>) -> Module {
    let result = ModuleResult {
        value: Some("y".into()),
        literal: None,
        role: OutputRole::UserOutput,
        target: None,
        ty: Some(tensor(DType::F32, &[1, 2])),
    };
    Module {
        dialect: "linalg".into(),
        form: "generic".into(),
        text: Some(MLIR.into()),
        file: None,
        bytes: MLIR.len() as u64,
        sha256: Digest::of(MLIR.as_bytes()).to_string(),
        entry: "forward".into(),
        arguments,
        results: vec![result],
        externals: vec![],
    }
}

pub fn file(id: &str, path: &str, format: &str, bytes: u64) -> File {
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    File { id: id.into(), name, path: path.into(), format: format.into(), bytes }
}

/// A stream whose raw file is at `path`, with an execution of one input and one output.
pub fn stream(path: &str) -> Vec<u8> {
    let source = file("f0", path, "raw", raw_file().len() as u64);
    stream_of(source, Some(module(arguments())), true, Status::Ok)
}

pub fn stream_of(source: File, module: Option<Module>, goldens: bool, status: Status) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let tool = Tool { name: "m2m-test".into(), version: "1".into(), options: Default::default(), inputs: Vec::new() };
    writer.write(&tool).unwrap();
    writer.write(&source).unwrap();
    let graph =
        Graph { graph: "original".into(), stage: "original".into(), entry: Some("forward".into()), parent: None };
    writer.write(&graph).unwrap();
    writer.seal().unwrap();
    if let Some(module) = module {
        writer.write(&module).unwrap();
    }
    if goldens {
        for (name, offset, shape) in [("x0", 0, &[1, 3]), ("y0", 12, &[1, 2])] {
            let ty = tensor(DType::F32, shape);
            let data = range(offset, 4 * shape[1] as u64, None, ByteOrder::Little);
            writer.write(&Tensor { name: name.into(), ty, data, sha256: None, origin: None }).unwrap();
        }
        let names = |name: &str| vec![name.to_owned()];
        writer
            .write(&Golden { engine: "torch".into(), inputs: names("x0"), outputs: names("y0"), seed: None })
            .unwrap();
    }
    writer.finish(status).unwrap()
}

/// A folder for thousands of small writes: in memory where there is such a file system.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Puts the raw file into `folder` and gives the stream that names it.
pub fn prepare(folder: &Path) -> Vec<u8> {
    fs::write(folder.join(NAME), raw_file()).unwrap();
    stream(NAME)
}

pub fn bundle(cwd: &Path, args: &[&str], input: &[u8]) -> Output {
    use std::io::Write;
    let mut command = Command::new(env!("CARGO_BIN_EXE_m2m-bundle"));
    let piped = command.current_dir(cwd).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A tool that refuses early closes the pipe; that is its right.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The names and contents of all files below a folder.
pub fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = m2m_digest::walk(folder).unwrap().only_files(folder).unwrap();
    names.iter().map(|name| (name.shown(), fs::read(folder.join(name.as_path())).unwrap())).collect()
}

pub fn passes(folder: &Path) -> bool {
    let own = m2m_digest::Name::from_bytes(m2m_digest::RECEIPT_NAME);
    let scope = m2m_digest::Scope::Whole { except: Some(&own), empty_folders: true };
    let bytes = fs::read(folder.join(m2m_digest::RECEIPT_NAME)).unwrap();
    let entries = m2m_digest::Receipt::from_bytes(&bytes).and_then(|receipt| receipt.entries());
    entries.is_ok_and(|entries| m2m_digest::check(folder, &entries, scope, &|_| ()).unwrap().is_clean())
}
