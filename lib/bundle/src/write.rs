//! Writes a bundle from a stream: whole, or not at all.

use crate::folder::Folder;
use crate::manifest::{Argument, Manifest, WeightsFile, to_json};
use crate::story::Story;
use crate::trace::Trace;
use crate::weights::{Sources, Weights, open_files};
use crate::{
    Error, Example, MANIFEST_NAME, MANIFEST_SCHEMA, META_NAME, Meta, ModelFile, WEIGHTS_NAME, example, module,
};
use m2m_digest::Hashed;
use m2m_record::{Data, File, Module, Tool};
use std::io::Read;
use std::path::Path;

/// The id of the bundle's own `file` record for its weights.
const WEIGHTS_ID: &str = "weights";

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Where files that the stream names are found, instead of the working directory.
    pub root: Option<&'a Path>,
    /// Whether to replace what is there.
    pub force: bool,
    /// The name and version of the tool that writes, for the trace.
    pub tool: (&'a str, &'a str),
}

/// Reads `input` to its end and writes the bundle to `target`. `advance` is told how many bytes more of so many in all are
/// written. Nothing appears at `target` unless everything succeeded.
pub fn write(input: impl Read, target: &Path, options: Options, advance: &dyn Fn(u64, u64)) -> Result<(), Error> {
    let mut folder = Folder::beside(target, options.force)?;
    let mut trace = Trace::begin(&folder)?;
    let story = trace.copy(input)?;
    let module = story.module()?;
    let files = open_files(&story, data_of(&story, module), options.root)?;
    let (model, module_file) = module::write(&mut folder, &story, options.root)?;
    let mut weights = Weights::plan(module, &files)?;
    let total = weights.bytes();
    let advance = |bytes| advance(bytes, total);
    let sources = Sources { files, story: &story, advance: &advance };
    let hashed = weights.write(&mut folder, &sources)?;
    let examples = example::write(&mut folder, &sources)?;
    let weights_file = weights_file(&weights, hashed);
    let manifest = manifest(module, &weights, model.clone(), weights_file.clone(), examples);
    folder.write(MANIFEST_NAME, &to_json(&manifest)?)?;
    let records: Vec<File> = [weights_record(hashed)].into_iter().chain(module_file).collect();
    let tool = own_tool(options.tool);
    let traced = trace.finish(&mut folder, &tool, &records)?;
    folder.write(META_NAME, &Meta::new(story, tool, traced, model, weights_file).to_bytes()?)?;
    folder.finish()
}

/// The data of all arguments and of all tensors of goldens.
fn data_of<'a>(story: &'a Story, module: &'a Module) -> impl Iterator<Item = &'a Data> {
    let names = story.goldens.iter().flat_map(|golden| golden.inputs.iter().chain(&golden.outputs));
    let tensors = names.filter_map(|name| story.tensors.get(name)).map(|tensor| &tensor.data);
    module.arguments.iter().filter_map(|argument| argument.data.as_ref()).chain(tensors)
}

fn weights_file(weights: &Weights, hashed: Hashed) -> WeightsFile {
    WeightsFile {
        file: WEIGHTS_NAME.to_owned(),
        tensors: weights.count(),
        bytes: hashed.bytes,
        sha256: hashed.digest.to_string(),
    }
}

fn weights_record(hashed: Hashed) -> File {
    File {
        id: WEIGHTS_ID.to_owned(),
        name: WEIGHTS_NAME.to_owned(),
        path: WEIGHTS_NAME.to_owned(),
        format: "safetensors".to_owned(),
        bytes: hashed.bytes,
    }
}

fn own_tool((name, version): (&str, &str)) -> Tool {
    Tool { name: name.to_owned(), version: version.to_owned(), options: Default::default(), inputs: Vec::new() }
}

fn manifest(
    module: &Module,
    weights: &Weights,
    model: ModelFile,
    file: WeightsFile,
    examples: Vec<Example>,
) -> Manifest {
    let mut next = 0;
    let mut arguments = Vec::new();
    for (argument, tensor) in module.arguments.iter().zip(&weights.by_argument) {
        let index = argument.global.is_none().then(|| {
            next += 1;
            next - 1
        });
        arguments.push(Argument {
            index,
            global: argument.global.clone(),
            value: argument.value.clone(),
            role: argument.role,
            target: argument.target.clone(),
            ty: argument.ty.clone(),
            tensor: tensor.clone(),
            sha256: tensor.as_deref().and_then(|name| weights.digest(name)).map(|digest| digest.to_string()),
        });
    }
    let (schema, results) = (MANIFEST_SCHEMA.to_owned(), module.results.clone());
    Manifest { schema, model, weights: file, arguments, results, examples }
}
