//! What m2m-hash writes without judging: digests, inventories, canonical JSON, sealed streams.

use crate::args::Args;
use m2m_cli::{AtInput, Content, Failure, Input, Messages, Output, Progress, Status};
use m2m_digest::{Error, Name, canonical_json, hash_files, hash_reader, reseal, walk, write_entry};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Digests of files, of stdin, or the inventory of one folder.
pub fn digests(args: &Args, messages: &Messages) -> Result<Status, Failure> {
    let inputs: Vec<&Path> = args.paths.iter().map(PathBuf::as_path).collect();
    match inputs.as_slice() {
        [] => files(args, &[Path::new("-")], messages),
        [folder] if folder.is_dir() => inventory(args, folder, messages),
        _ => files(args, &inputs, messages),
    }
}

fn inventory(args: &Args, folder: &Path, messages: &Messages) -> Result<Status, Failure> {
    let names = walk(folder).and_then(|tree| tree.only_files(folder)).map_err(at_path)?;
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name.as_path())).collect();
    let mut output = args.output.open(Content::Text, &[])?;
    let progress = Progress::new(messages, "hashing", total(&paths));
    for (name, result) in names.iter().zip(hash_files(&paths, &|bytes| progress.advance(bytes))) {
        write_entry(&mut output, name, &result.map_err(at_path)?.digest).map_err(|e| output.error(e))?;
    }
    output.finish()?;
    Ok(Status::Done)
}

/// Like `sha256sum`, hashes what can be read and reports the rest.
fn files(args: &Args, paths: &[&Path], messages: &Messages) -> Result<Status, Failure> {
    let mut output = args.output.open(Content::Text, paths)?;
    let on_disk: Vec<&Path> = paths.iter().copied().filter(|path| *path != Path::new("-")).collect();
    let progress = Progress::new(messages, "hashing", total(&on_disk));
    let mut from_disk = hash_files(&on_disk, &|bytes| progress.advance(bytes)).into_iter();
    let mut status = Status::Done;
    for path in paths {
        let hashed = if *path == Path::new("-") {
            let input = Input::open(None)?;
            Some(hash_reader(input, &|_| ()).map_err(Error::from).at_input("<stdin>")?)
        } else {
            from_disk.next().and_then(|result| match result {
                Ok(hashed) => Some(hashed),
                Err(error) => {
                    messages.send(&at_path(error).0);
                    status = Status::Failed;
                    None
                }
            })
        };
        if let Some(hashed) = hashed {
            let name = Name::from_bytes(path.as_os_str().as_bytes());
            write_entry(&mut output, &name, &hashed.digest).map_err(|e| output.error(e))?;
        }
    }
    output.finish()?;
    Ok(status)
}

fn total<P: AsRef<Path>>(paths: &[P]) -> u64 {
    paths.iter().filter_map(|path| path.as_ref().metadata().ok()).map(|meta| meta.len()).sum()
}

/// The one path of an action that takes one.
fn single(args: &Args) -> Result<Option<&Path>, Failure> {
    match args.paths.as_slice() {
        [] => Ok(None),
        [path] => Ok(Some(path)),
        more => Err(Failure::new(format!("{} files given; this action takes one; see --help", more.len()))),
    }
}

/// A JSON file in canonical form, and a newline.
pub fn canonical(args: &Args) -> Result<Status, Failure> {
    let path = single(args)?;
    let mut input = Input::open(path)?;
    let name = input.name().to_owned();
    let mut text = Vec::new();
    input.read_to_end(&mut text).at_input(&name)?;
    let canonical = canonical_json(&text).map_err(|e| at_line(e, &name))? + "\n";
    write_all(args, path, canonical.as_bytes())
}

/// A stream with new seals and a new end.
pub fn seal(args: &Args) -> Result<Status, Failure> {
    let path = single(args)?;
    let input = Input::open(path)?;
    let name = input.name().to_owned();
    let sealed = reseal(input).map_err(|e| at_line(e, &name))?;
    write_all(args, path, &sealed)
}

fn write_all(args: &Args, input: Option<&Path>, bytes: &[u8]) -> Result<Status, Failure> {
    let inputs: Vec<&Path> = input.into_iter().collect();
    let mut output: Output = args.output.open(Content::Text, &inputs)?;
    output.write_all(bytes).map_err(|e| output.error(e))?;
    output.finish()?;
    Ok(Status::Done)
}

/// An error about a file that it names itself.
pub fn at_path(error: Error) -> Failure {
    let path = error.path().map(|path| path.display().to_string());
    match path {
        Some(path) => Failure::from(error).input(path),
        None => error.into(),
    }
}

/// An error with the input that it is about and, where it has one, the line.
pub fn at_line(error: Error, name: &str) -> Failure {
    let line = error.line();
    let failure = Failure::from(error).input(name);
    match line {
        Some(line) => failure.line(line),
        None => failure,
    }
}
