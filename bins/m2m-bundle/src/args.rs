//! The flags of m2m-bundle.

use m2m_cli::{InputArgs, RootArgs};
use std::path::PathBuf;

const ABOUT: &str = "Write a folder with all that is needed to consume, check and reproduce a lowered model";

const LONG_ABOUT: &str = "\
Write a folder with all that is needed to consume, check and reproduce a lowered model.

Reads a record stream with a module. The folder holds model.mlir (model.mlirbc for bytecode, graph.mlir for a sparse model, as m2m-lattice-verify reads it), weights.safetensors, \
manifest.json (which argument takes which tensor), trace.ndjson (the stream), inputs/ and goldens/ where the stream names \
executions, meta.json, and receipt.json with the size and SHA-256 of every other file. Its bytes depend on the stream and \
the tensors alone. It appears whole or not at all.";

const EXAMPLES: &str = "\
Examples:
  m2m-capture model.pt2 | m2m-lower | m2m-bundle -o out/ && m2m-hash --check out/
  m2m-bundle -o out/ --force lowered.ndjson
  m2m-bundle -o out/ --root /data/models < lowered.ndjson";

/// One stream in, one folder out.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-bundle", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// The stream.
    #[command(flatten)]
    pub input: InputArgs,

    /// Folder to write; it must not exist, or be empty
    #[arg(long, short, value_name = "DIR", required = true)]
    pub output: PathBuf,

    /// Replace DIR with all that is in it
    #[arg(long)]
    pub force: bool,

    /// Where the stream's files are.
    #[command(flatten)]
    pub root: RootArgs,
}
