//! The values of inputs: from a file, from a seed, from `--scalar`.

use crate::args::Args;
use crate::error::Error;
use crate::execute::{Scalar, parse_scalar};
use crate::golden::Named;
use crate::plan::{SEED, Story};
use crate::tensors::{TensorFile, TensorView};
use m2m_graph::Program;
use m2m_record::DType;
use m2m_torch::random::{self, Made};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Values by key.
#[derive(Default)]
pub struct Inputs {
    /// The file.
    pub file: Option<TensorFile>,
    /// Weights for a program that came without them.
    weights: Option<TensorFile>,
    /// What a seed made.
    pub made: Vec<Named>,
    /// Numbers and bools.
    pub scalars: HashMap<String, Scalar>,
}

impl Inputs {
    /// What the flags ask for; without any, what the stream's last golden record has.
    pub fn of(args: &Args, story: &Story, graph: Option<&Program>, root: Option<&Path>) -> Result<Self, Error> {
        Self::of_set(args, args.inputs.first().map(PathBuf::as_path), story, graph, root)
    }

    /// The same with the file of inputs that is named.
    pub fn of_set(
        args: &Args,
        file: Option<&Path>,
        story: &Story,
        graph: Option<&Program>,
        root: Option<&Path>,
    ) -> Result<Self, Error> {
        let mut inputs = Self::of_made(args, Vec::new())?;
        for text in &args.scalars {
            let (key, scalar) = parse_scalar(text)?;
            inputs.scalars.insert(key, scalar);
        }
        match (file, args.random) {
            (Some(path), _) => inputs.file = Some(TensorFile::open(path)?),
            (None, Some(seed)) => {
                let graph = graph.ok_or(Error::Graph(m2m_graph::Error::NoGraph))?;
                for (value, made) in random::inputs(&graph.root, seed)? {
                    inputs.add(story.leaf(&value).unwrap_or(value), made);
                }
            }
            (None, None) => {
                let file = story.golden_inputs();
                let path = file.map(|file| root.map_or_else(|| file.path.clone().into(), |root| root.join(&file.path)));
                inputs.file = path.map(|path| TensorFile::open(&path)).transpose()?;
            }
        }
        Ok(inputs)
    }

    /// Values that were made elsewhere, beside the seed and the weights of the flags.
    pub fn of_made(args: &Args, made: Vec<Named>) -> Result<Self, Error> {
        let scalars = [(SEED.to_owned(), Scalar::Int(args.seed.cast_signed()))].into();
        let weights = args.weights.as_deref().map(TensorFile::open).transpose()?;
        Ok(Inputs { scalars, weights, made, ..Inputs::default() })
    }

    fn add(&mut self, key: String, made: Made) {
        let scalar = |dtype, data: &[u8]| (dtype, Vec::new(), data.to_vec());
        let (dtype, dims, data) = match made {
            Made::Tensor { dtype, shape, bytes } => (dtype, shape, bytes),
            Made::Scalar(m2m_torch::Value::Int(n)) => scalar(DType::I64, &n.to_le_bytes()),
            Made::Scalar(m2m_torch::Value::Bool(b)) => scalar(DType::Bool, &[b.into()]),
            Made::Scalar(m2m_torch::Value::Float(x)) => scalar(DType::F64, &x.to_le_bytes()),
            Made::Scalar(_) => return,
        };
        self.made.push(Named { key, dtype, dims, data });
    }

    /// A tensor by key.
    pub fn get(&self, key: &str) -> Option<TensorView<'_>> {
        if let Some(found) =
            self.file.as_ref().and_then(|file| file.get(key)).or_else(|| self.weights.as_ref()?.get(key))
        {
            return Some(found);
        }
        self.made.iter().find(|named| named.key == key).map(Named::view)
    }
}
