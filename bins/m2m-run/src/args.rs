//! The flags of m2m-run.

use m2m_cli::{OutputArgs, RootArgs};
use std::path::PathBuf;

const ABOUT: &str = "Execute the module of a stream, write its outputs, compare them with references";

const LONG_ABOUT: &str = "\
Execute the module of a stream, write its outputs, compare them with references.

Reads a record stream with a module record, or a bundle folder, compiles the module in this process and calls its entry. \
State is read in place from the files that the stream names, or from the bundle's weights; inputs come from a safetensors \
file with the keys in_0, in_1, ... in the order of the flattened inputs.

--compare prints a line for each output: the largest absolute and relative difference and how many elements are outside \
of atol + rtol * |reference|. NaN equals NaN; integers and bools must be equal. --golden writes the outputs, out_0 ... and \
mutated.NAME, and passes the stream on to stdout with a golden record; then the comparison goes to stderr.";

const EXAMPLES: &str = "\
Examples:
  m2m-capture model.pt2 | m2m-lower | m2m-run --inputs in.safetensors --compare out.safetensors
  m2m-lower < model.ndjson | m2m-run --inputs in.safetensors --golden golden.safetensors | m2m-bundle -o out/
  m2m-run out/ --inputs in.safetensors --compare reference.safetensors --rtol 1e-3 --atol 1e-4
  m2m-run --module add.mlir --inputs in.safetensors --golden result.safetensors";

/// What executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// The module, compiled through MLIR in this process
    Mlir,
    /// The current graph, through libtorch
    Torch,
}

/// One run.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-run", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// Record stream or bundle folder to read; `-` or nothing means stdin
    #[arg(value_name = "STREAM")]
    pub input: Option<PathBuf>,

    /// What executes
    #[arg(long, value_enum, default_value_t = Engine::Mlir)]
    pub engine: Engine,

    /// Execute this MLIR file instead, all of whose arguments are inputs
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub module: Option<PathBuf>,

    /// The function to call in the file of --module
    #[arg(long, value_name = "NAME", default_value = "forward", requires = "module")]
    pub entry: String,

    /// safetensors file with in_0, in_1, ...
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,

    /// A scalar input: `in_2=5`, `in_0=0.5`, `in_1=true`; may be repeated
    #[arg(long = "scalar", value_name = "KEY=VALUE")]
    pub scalars: Vec<String>,

    /// Write the outputs to a safetensors file
    #[arg(long, value_name = "FILE")]
    pub golden: Option<PathBuf>,

    /// Compare the outputs with those of a safetensors file
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,

    /// Relative tolerance for floats, instead of the one of the output's dtype
    #[arg(long, value_name = "X")]
    pub rtol: Option<f64>,

    /// Absolute tolerance for floats, instead of the one of the output's dtype
    #[arg(long, value_name = "X")]
    pub atol: Option<f64>,

    /// Most memory that compiled code may allocate, in MiB
    #[arg(long, value_name = "MIB")]
    pub memory: Option<usize>,

    /// Where the files that the stream names are found.
    #[command(flatten)]
    pub root: RootArgs,

    /// Where to write the stream or the comparison.
    #[command(flatten)]
    pub output: OutputArgs,
}
