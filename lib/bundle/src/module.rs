//! The module's own file.

use crate::folder::Folder;
use crate::story::Story;
use crate::weights::open_files;
use crate::{Error, GRAPH_NAME, ModelFile};
use m2m_digest::Digest;
use m2m_record::{DType, Data, File, Module};
use std::path::Path;

/// Writes the module as it stands in the stream or in the file that the stream names, after checking its digest. Gives
/// what the manifest says of it, and the `file` record that replaces the stream's, where there is one.
pub(crate) fn write(
    folder: &mut Folder,
    story: &Story,
    root: Option<&Path>,
) -> Result<(ModelFile, Option<File>), Error> {
    let module = story.module()?;
    let name = match (module.dialect.as_str(), module.form.as_str()) {
        ("lattice", _) => GRAPH_NAME,
        (_, "bytecode") => "model.mlirbc",
        _ => "model.mlir",
    };
    match (&module.text, &module.file) {
        (Some(text), None) => copy(folder, name, module, text.as_bytes())?,
        (None, Some(id)) => {
            let data = whole_file(id, module.bytes);
            let files = open_files(story, std::iter::once(&data), root)?;
            let fail = |error| Error::Tensor { name: format!("module file {id}"), error };
            let length = i64::try_from(module.bytes)
                .map_err(|_| Error::content(format!("the module has {} bytes, which is no size", module.bytes)))?;
            let view = files.view(&data, DType::U8, &[length]).map_err(fail)?;
            copy(folder, name, module, &view.to_contiguous().map_err(fail)?)?;
        }
        _ => return Err(Error::content("the module record needs exactly one of text and file")),
    }
    let model = ModelFile {
        bytes: module.bytes,
        dialect: module.dialect.clone(),
        entry: module.entry.clone(),
        file: name.to_owned(),
        form: module.form.clone(),
        sha256: module.sha256.clone(),
    };
    let record = module.file.as_ref().map(|id| File {
        id: id.clone(),
        name: name.to_owned(),
        path: name.to_owned(),
        format: story.files.get(id).map_or_else(|| "mlir".to_owned(), |file| file.format.clone()),
        bytes: module.bytes,
    });
    Ok((model, record))
}

fn whole_file(id: &str, bytes: u64) -> Data {
    Data::Range { file: id.to_owned(), offset: 0, bytes, storage: None, strides: None, byteorder: Default::default() }
}

fn copy(folder: &mut Folder, name: &str, module: &Module, bytes: &[u8]) -> Result<(), Error> {
    let found = Digest::of(bytes).to_string();
    if bytes.len() as u64 != module.bytes || found != module.sha256 {
        return Err(Error::content(format!(
            "the module record says {} bytes and sha256 {}; found {} and {found}",
            module.bytes,
            module.sha256,
            bytes.len()
        )));
    }
    folder.write(name, bytes)?;
    Ok(())
}
