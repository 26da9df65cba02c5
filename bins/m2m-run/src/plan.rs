//! What is to be executed: the module's bytes, and for every argument and result of its entry where its value comes
//! from or goes to.
//!
//! Keys of inputs count the flattened leaves of the original program, constants included, as `in_0 …` of a file of
//! inputs does; outputs likewise.

use crate::error::Error;
use m2m_digest::Digest;
use m2m_lattice::plan::Freezer;
use m2m_record::{DType, Data, Input, InputRole, Line, Lowered, Module, ModuleResult, OutputRole, Seal, Type};
use m2m_record::{File, Golden, Graph, Tensor};
use m2m_tensor::MappedFile;
use std::collections::HashMap;
use std::path::Path;

/// The name of the argument that a module with random operators takes its seed by.
pub const SEED: &str = "seed";

/// An argument of the entry.
#[derive(Debug, Clone)]
pub struct Slot {
    /// `in_0`, or the qualified name of state.
    pub name: String,
    /// Where its bytes are; none for an input, which is looked up by name.
    pub data: Option<Data>,
    /// Its dtype and shape, when it is a tensor of a stream.
    pub ty: Option<Type>,
}

/// A result of the entry.
#[derive(Debug, Clone)]
pub struct Target {
    /// `out_0`, `mutated.NAME`, ….
    pub key: String,
    /// Its dtype, where a record states it.
    pub dtype: Option<DType>,
}

/// All of it.
#[derive(Debug)]
pub struct Plan {
    /// Text or bytecode.
    pub module: Vec<u8>,
    /// The function.
    pub entry: String,
    /// In the function's order; none where the module is all that is known.
    pub slots: Option<Vec<Slot>>,
    /// In the function's order, likewise.
    pub targets: Option<Vec<Target>>,
}

/// What a stream says, gathered while it passes.
#[derive(Debug, Default)]
pub struct Story {
    module: Option<Module>,
    /// The last `file` record of each id.
    pub files: HashMap<String, File>,
    /// The `tensor` records by name.
    pub tensors: HashMap<String, Tensor>,
    /// The last `golden` record.
    golden: Option<Golden>,
    /// What became of the nodes of the prepared graph, for the module.
    pub lowered: Vec<Lowered>,
    /// Inputs of each root graph, the original one first.
    roots: Vec<Vec<Input>>,
    open: Vec<Input>,
    is_root: bool,
    /// The plan of a sparse model, and the first error in it, which matters to its engine only.
    sparse: Freezer,
    sparse_error: Option<m2m_lattice::plan::Error>,
}

impl Story {
    /// Takes what matters of one line.
    pub fn take(&mut self, line: &Line<'_>) -> Result<(), m2m_record::reader::Error> {
        if self.sparse_error.is_none() {
            self.sparse_error = self.sparse.line(line).err();
        }
        match line.kind {
            "file" => {
                let file: File = line.parse()?;
                self.files.insert(file.id.clone(), file);
            }
            "graph" => {
                self.is_root = line.parse::<Graph>()?.parent.is_none();
                self.open.clear();
            }
            "input" if self.is_root => self.open.push(line.parse()?),
            "seal" => {
                line.parse::<Seal>()?;
                if self.is_root {
                    self.roots.push(std::mem::take(&mut self.open));
                }
            }
            "tensor" => {
                let tensor: Tensor = line.parse()?;
                self.tensors.insert(tensor.name.clone(), tensor);
            }
            "golden" => self.golden = Some(line.parse()?),
            "module" => {
                self.module = Some(line.parse()?);
                self.lowered.clear();
            }
            "lowered" => self.lowered.push(line.parse()?),
            _ => {}
        }
        Ok(())
    }

    /// The module record.
    pub fn module(&self) -> Result<&Module, Error> {
        self.module.as_ref().ok_or(Error::NoModule)
    }

    /// The plan of the stream's sparse model.
    pub fn sparse(&mut self) -> Result<m2m_lattice::plan::Plan, m2m_lattice::plan::Error> {
        let freezer = std::mem::take(&mut self.sparse);
        self.sparse_error.take().map_or_else(|| freezer.finish(), Err)
    }

    /// The file of the last golden record's inputs, if it has one and states some.
    pub fn golden_inputs(&self) -> Option<&File> {
        self.file_of(&self.golden.as_ref()?.inputs)
    }

    /// The file of the last golden record's outputs.
    pub fn golden_outputs(&self) -> Result<&File, Error> {
        let golden = self.golden.as_ref();
        let golden = golden.ok_or_else(|| {
            Error::Golden("the stream has no golden record; --golden makes one, --compare FILE needs none".to_owned())
        })?;
        self.file_of(&golden.outputs)
            .ok_or_else(|| Error::Golden("the stream's golden record names no output in a file".to_owned()))
    }

    fn file_of(&self, names: &[String]) -> Option<&File> {
        let id = match &self.tensors.get(names.first()?)?.data {
            Data::Tensor { file, .. } | Data::Range { file, .. } => file,
            _ => return None,
        };
        self.files.get(id)
    }

    /// The key of a user's input by its value's name.
    pub fn leaf(&self, value: &str) -> Option<String> {
        // Stages keep the names of inputs; the original graph has all leaves, so it is asked first.
        self.roots.iter().find_map(|inputs| {
            let is_leaf = |input: &&Input| matches!(input.role, InputRole::UserInput | InputRole::ConstantInput);
            inputs.iter().filter(is_leaf).position(|input| input.value == value).map(|index| format!("in_{index}"))
        })
    }

    /// The `data` of an argument, from its record or from the current graph.
    fn data(&self, argument: &m2m_record::Argument) -> Option<Data> {
        let current = self.roots.last().map(Vec::as_slice).unwrap_or_default();
        let input = || current.iter().find(|input| input.value == argument.value);
        argument.data.clone().or_else(|| input().and_then(|input| input.data.clone()))
    }

    /// The plan of a stream; `root` is what paths in it are relative to.
    pub fn plan(&self, root: Option<&Path>) -> Result<Plan, Error> {
        let bytes = self.module_bytes(self.module()?, root)?;
        self.plan_with(bytes)
    }

    /// The plan with the module's bytes from elsewhere.
    pub fn plan_with(&self, bytes: Vec<u8>) -> Result<Plan, Error> {
        let module = self.module()?;
        if module.dialect != "linalg" {
            return Err(Error::Dialect(module.dialect.clone()));
        }
        if let Some(bound) = module.arguments.iter().find(|argument| argument.global.is_some()) {
            return Err(Error::Global(bound.target.clone().unwrap_or_else(|| bound.value.clone())));
        }
        let mut slots = Vec::new();
        for argument in &module.arguments {
            let is_input = matches!(argument.role, InputRole::UserInput | InputRole::ConstantInput);
            let key = if is_input { self.leaf(&argument.value) } else { argument.target.clone() };
            let data = if is_input { None } else { self.data(argument) };
            let is_seed = argument.role == InputRole::Seed;
            let name = if is_seed { SEED.to_owned() } else { key.unwrap_or_else(|| argument.value.clone()) };
            slots.push(Slot { name, data, ty: Some(argument.ty.clone()) });
        }
        let targets = self.targets(&module.results);
        Ok(Plan { module: bytes, entry: module.entry.clone(), slots: Some(slots), targets: Some(targets) })
    }

    fn targets(&self, results: &[ModuleResult]) -> Vec<Target> {
        let mut outputs = 0;
        let mut targets = Vec::new();
        for result in results {
            let key = match result.role {
                OutputRole::UserOutput | OutputRole::LossOutput => {
                    outputs += 1;
                    format!("out_{}", outputs - 1)
                }
                OutputRole::GradientToParameter | OutputRole::GradientToUserInput => {
                    format!("grad.{}", result.target.as_deref().unwrap_or_default())
                }
                OutputRole::UserInputMutation => {
                    let target = result.target.as_deref().unwrap_or_default();
                    format!("mutated.{}", self.leaf(target).unwrap_or_else(|| target.to_owned()))
                }
                _ => format!("mutated.{}", result.target.as_deref().unwrap_or_default()),
            };
            if result.literal.is_none() {
                let dtype = result.ty.as_ref().and_then(Type::as_tensor).map(|tensor| tensor.dtype);
                targets.push(Target { key, dtype });
            }
        }
        targets
    }

    fn module_bytes(&self, module: &Module, root: Option<&Path>) -> Result<Vec<u8>, Error> {
        let bytes = match (&module.text, &module.file) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(id)) => {
                let file = self.files.get(id).ok_or_else(|| Error::Argument {
                    name: "module".to_owned(),
                    message: format!("its record names file {id:?}, which no file record introduces"),
                })?;
                let path = root.map_or_else(|| Path::new(&file.path).to_owned(), |root| root.join(&file.path));
                map(&path)?.bytes().to_vec()
            }
            (None, None) => return Err(Error::NoModule),
        };
        check_module(module, bytes)
    }
}

/// The bytes, if they are those of the record.
pub fn check_module(module: &Module, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let found = Digest::of(&bytes).to_string();
    if bytes.len() as u64 == module.bytes && found == module.sha256 {
        return Ok(bytes);
    }
    let (stated, found_bytes) = (module.sha256.clone(), bytes.len());
    Err(Error::WrongModule { bytes: module.bytes, stated, found_bytes, found })
}

/// Maps a file, with its name in the error.
pub fn map(path: &Path) -> Result<MappedFile, Error> {
    MappedFile::open(path).map_err(|source| Error::Open { path: path.to_owned(), source })
}
