//! A bundle folder as a source of plans: module and weights of the folder instead of the files that the trace names.

use crate::error::Error;
use crate::plan::{Plan, Slot, Story, check_module};
use m2m_bundle::{MANIFEST_NAME, Manifest, WEIGHTS_NAME};
use m2m_record::{Data, File};
use std::path::Path;

/// The id under which the weights are known here; ids in streams have no blanks.
const WEIGHTS_ID: &str = "bundle weights";

/// The plan of a bundle, whose trace `story` has read.
pub fn plan(folder: &Path, story: &mut Story) -> Result<Plan, Error> {
    let manifest = read_manifest(&folder.join(MANIFEST_NAME))?;
    let weights = crate::plan::map(&folder.join(WEIGHTS_NAME))?.bytes().len() as u64;
    let name = WEIGHTS_NAME.to_owned();
    let file =
        File { id: WEIGHTS_ID.to_owned(), path: name.clone(), name, format: "safetensors".to_owned(), bytes: weights };
    story.files.insert(WEIGHTS_ID.to_owned(), file);
    let bytes = crate::plan::map(&folder.join(&manifest.model.file))?.bytes().to_vec();
    let module = check_module(story.module()?, bytes)?;
    let mut plan = story.plan_with(module)?;
    for argument in &manifest.arguments {
        let (Some(index), Some(tensor)) = (argument.index, &argument.tensor) else { continue };
        if let Some(slot) = slot(&mut plan, index) {
            slot.data = Some(Data::Tensor { file: WEIGHTS_ID.to_owned(), tensor: tensor.clone() });
        }
    }
    Ok(plan)
}

fn slot(plan: &mut Plan, index: u64) -> Option<&mut Slot> {
    plan.slots.as_mut()?.get_mut(usize::try_from(index).ok()?)
}

fn read_manifest(path: &Path) -> Result<Manifest, Error> {
    let map = crate::plan::map(path)?;
    serde_json::from_slice(map.bytes())
        .map_err(|error| Error::Manifest { path: path.to_owned(), message: error.to_string() })
}
