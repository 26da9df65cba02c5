//! The executions that a stream names, as files of inputs and outputs.

use crate::folder::Folder;
use crate::story::Story;
use crate::weights::{Sources, Weight, weight_of, write_tensors};
use crate::{Error, Example};
use std::collections::BTreeMap;

/// Writes `inputs/N.safetensors` and `goldens/N.safetensors` for each golden record, in their order.
pub(crate) fn write(folder: &mut Folder, sources: &Sources) -> Result<Vec<Example>, Error> {
    let story = sources.story;
    if story.goldens.is_empty() {
        return Ok(Vec::new());
    }
    folder.subfolder("inputs")?;
    folder.subfolder("goldens")?;
    let mut examples = Vec::new();
    for (n, golden) in story.goldens.iter().enumerate() {
        let (inputs, goldens) = (format!("inputs/{n}.safetensors"), format!("goldens/{n}.safetensors"));
        write_tensors(folder, &inputs, &gather(story, "in", &golden.inputs)?, &[], sources)?;
        write_tensors(folder, &goldens, &gather(story, "out", &golden.outputs)?, &[], sources)?;
        examples.push(Example {
            engine: golden.engine.clone(),
            inputs,
            input_names: golden.inputs.clone(),
            goldens,
            golden_names: golden.outputs.clone(),
        });
    }
    Ok(examples)
}

fn gather(story: &Story, prefix: &str, names: &[String]) -> Result<BTreeMap<String, Weight>, Error> {
    let named = |(n, name): (usize, &String)| {
        let tensor = story.tensor(name)?;
        Ok((format!("{prefix}_{n}"), weight_of(name, &tensor.data, &tensor.ty)?))
    };
    names.iter().enumerate().map(named).collect()
}
