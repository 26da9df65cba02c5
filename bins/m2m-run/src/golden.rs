//! Outputs as a file and as records: what was run, on which inputs, and what came out.

use crate::error::Error;
use crate::tensors::{TensorFile, TensorView};
use m2m_digest::Digest;
use m2m_record::{Arg, DType, Data, Dim, File, Golden, Kwargs, Tensor, TensorType, Tool, ToolInput, Writer};
use m2m_tensor::safetensors::Plan;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

/// An output with its key and dtype.
#[derive(Clone)]
pub struct Named {
    /// `out_0`, ….
    pub key: String,
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub dims: Vec<i64>,
    /// Its elements, row-major and little-endian.
    pub data: Vec<u8>,
}

impl Named {
    /// The tensor.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { dtype: self.dtype, shape: self.shape().into(), bytes: &self.data }
    }

    fn shape(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.unsigned_abs()).collect()
    }
}

/// Writes the outputs as a safetensors file.
pub fn write_file(outputs: &[&Named], out: &mut impl Write) -> Result<(), Error> {
    let mut plan = Plan::new();
    for named in outputs {
        plan.tensor(&named.key, named.dtype, &named.shape())?;
    }
    let by_key: HashMap<&str, &[u8]> = outputs.iter().map(|named| (named.key.as_str(), &*named.data)).collect();
    plan.write(out, |key, sink| {
        let data = by_key.get(key).copied().unwrap_or_default();
        sink.write_all(data).map_err(|error| Error::Write(error.into()))
    })
}

/// What the records say besides the outputs.
pub struct Run<'a> {
    /// What executed: `torch`, `mlir` or `lattice`.
    pub engine: &'static str,
    /// The file of inputs.
    pub inputs: Option<&'a TensorFile>,
    /// Inputs that the seed made, which are written with the outputs.
    pub made: &'a [Named],
    /// The seed.
    pub seed: Option<u64>,
    /// The file of outputs, as given, and its size.
    pub golden: (&'a Path, u64),
    /// Ids of `file` records in the stream.
    pub files: &'a HashMap<String, File>,
    /// Names of `tensor` records in the stream.
    pub tensors: &'a HashMap<String, Tensor>,
}

/// Appends the tool's record and those of one execution.
pub fn append<W: Write>(writer: &mut Writer<W>, outputs: &[Named], run: &Run<'_>) -> io::Result<()> {
    let options = options(run);
    let (name, version) = ("m2m-run".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    writer.write(&Tool { name, version, options, inputs: run.inputs.map(tool_input).into_iter().collect() })?;
    append_execution(writer, outputs, run)
}

/// Appends the records of one execution.
pub fn append_execution<W: Write>(writer: &mut Writer<W>, outputs: &[Named], run: &Run<'_>) -> io::Result<()> {
    let mut ids = (0..).map(|index| format!("f{index}")).filter(|id| !run.files.contains_key(id));
    let mut file = |path: &Path, format: &str, bytes| File {
        id: ids.next().unwrap_or_default(),
        name: base_name(path),
        path: path.display().to_string(),
        format: format.to_owned(),
        bytes,
    };
    // Tensors of a second execution in the same stream need names of their own.
    let prefix = prefix(run, outputs);
    let (inputs, outputs_of_run) = (Vec::new(), Vec::new());
    let mut golden =
        Golden { engine: run.engine.to_owned(), inputs, outputs: outputs_of_run, seed: run.seed.map(seed) };
    if let Some(inputs) = run.inputs {
        let file = file(inputs.path(), inputs.format(), inputs.len_bytes());
        writer.write(&file)?;
        for (key, view) in inputs.names().filter_map(|key| Some((key, inputs.get(key)?))) {
            let Some(data) = inputs.data(&file.id, key) else { continue };
            let tensor = tensor(&prefix, key, data, view.dtype, &view.dims(), view.bytes);
            golden.inputs.push(tensor.name.clone());
            writer.write(&tensor)?;
        }
    }
    let file = file(run.golden.0, "safetensors", run.golden.1);
    writer.write(&file)?;
    for (named, list) in run.made.iter().map(|n| (n, true)).chain(outputs.iter().map(|n| (n, false))) {
        let data = Data::Tensor { file: file.id.clone(), tensor: named.key.clone() };
        let tensor = tensor(&prefix, &named.key, data, named.dtype, &named.dims, &named.data);
        if list { &mut golden.inputs } else { &mut golden.outputs }.push(tensor.name.clone());
        writer.write(&tensor)?;
    }
    writer.write(&golden)
}

/// Options that change what comes out.
fn options(run: &Run<'_>) -> Kwargs {
    let engine = [("engine".to_owned(), Arg::from(run.engine))];
    engine.into_iter().chain(run.seed.map(|n| ("random".to_owned(), seed(n)))).collect()
}

/// A seed in records, as a string where it is no signed integer.
pub fn seed(seed: u64) -> Arg {
    i64::try_from(seed).map_or_else(|_| Arg::Str(seed.to_string()), Arg::Int)
}

fn tensor(prefix: &str, key: &str, data: Data, dtype: DType, dims: &[i64], bytes: &[u8]) -> Tensor {
    Tensor {
        name: format!("{prefix}{key}"),
        ty: TensorType::new(dtype, dims.iter().copied().map(Dim::Int).collect()).into(),
        data,
        sha256: Some(Digest::of(bytes).to_string()),
        origin: None,
    }
}

fn prefix(run: &Run<'_>, outputs: &[Named]) -> String {
    let inputs = run.inputs.iter().flat_map(|inputs| inputs.names());
    let keys: Vec<&str> = inputs.chain(run.made.iter().chain(outputs).map(|named| named.key.as_str())).collect();
    let is_free = |prefix: &String| !keys.iter().any(|key| run.tensors.contains_key(&format!("{prefix}{key}")));
    std::iter::once(String::new()).chain((2..).map(|index| format!("{index}."))).find(is_free).unwrap_or_default()
}

pub fn tool_input(inputs: &TensorFile) -> ToolInput {
    let sha256 = Digest::of(inputs.bytes()).to_string();
    ToolInput { name: base_name(inputs.path()), bytes: inputs.len_bytes(), sha256 }
}

fn base_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
