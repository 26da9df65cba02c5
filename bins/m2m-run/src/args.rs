//! The flags of m2m-run.

use m2m_cli::{OutputArgs, RootArgs};
use std::path::PathBuf;

const ABOUT: &str = "Execute the graph or the module of a stream, write its outputs, compare them with references";

const LONG_ABOUT: &str = "\
Execute the graph or the module of a stream, write its outputs, compare them with references.

Reads a record stream, or a bundle folder. The engine torch executes the current graph with libtorch, which is loaded only \
then: any PyTorch 2.13 from pip serves, found in the folder that LIBTORCH names (site-packages/torch) or beside the active \
Python. The engine mlir compiles the stream's module in this process and calls its entry. Without --engine it is torch where \
libtorch is found, else mlir; modules without a graph are mlir's. The engine lattice executes the plan of a sparse model, which \
m2m-lattice-verify writes; its inputs have their ABI names, or in_0, in_1, ..., and a sparse output is NAME.coords, \
NAME.features, NAME.active and NAME.stride.

State is read in place from the files that the stream names, or from the bundle's weights; inputs come from a safetensors or \
npz file with the keys in_0, in_1, ... in the order of the flattened inputs, or with the inputs' names; from --random; or \
from the stream's last golden record. Complex numbers may be stored as pairs of floats along a last axis of 2, in references too.

--compare prints a line for each output: the largest absolute, relative and ULP difference, the signal-to-noise ratio, and \
how many elements are outside of atol + rtol * |reference|. NaN equals NaN; integers and bools must be equal. Without FILE it \
compares with the stream's last golden record. --golden writes the outputs, out_0 ... and mutated.NAME for state that \
changed, and passes the stream on to stdout with a golden record; then the comparison goes to stderr.

--against compares with another engine on the same inputs, and --bisect finds the first node where the two part. --observe \
passes the stream on with an observation record for every float value.";

const EXAMPLES: &str = "\
Examples:
  m2m-capture model.pt2 | m2m-run --engine torch --inputs in.safetensors --compare out.safetensors
  m2m-capture model.pt2 | m2m-run --engine torch --random 1 --golden golden.safetensors | m2m-lower | m2m-run --engine mlir --compare
  m2m-lower < model.ndjson | m2m-run --engine mlir --inputs in.safetensors --golden golden.safetensors | m2m-bundle -o out/
  m2m-run out/ --inputs in.safetensors --compare reference.safetensors --rtol 1e-3 --atol 1e-4
  m2m-lattice-verify model.lattice/ | m2m-run --engine lattice --inputs in.safetensors --golden out.safetensors
  m2m-run --engine mlir --against torch --random 1 --bisect first.ndjson < lowered.ndjson
  m2m-capture model.pt2 | m2m-run --observe histogram --inputs a.safetensors --inputs b.safetensors > observed.ndjson
  m2m-run --module add.mlir --inputs in.safetensors --golden result.safetensors";

/// What executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// The module, compiled through MLIR in this process
    Mlir,
    /// The current graph, through libtorch
    Torch,
    /// The plan of a sparse model, on the CPU
    Lattice,
}

/// What `--observe` records of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// The least and the greatest element
    Minmax,
    /// Also how often elements fell where
    Histogram,
    /// Also the range without the tails, found through a histogram
    Percentile,
}

impl Method {
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Method::Minmax => "minmax",
            Method::Histogram => "histogram",
            Method::Percentile => "percentile",
        }
    }
}

/// What `--against` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Against {
    /// The other engine, on the same inputs.
    Engine(Engine),
    /// A file of `--trace-values`.
    Values(PathBuf),
}

fn against(text: &str) -> Result<Against, String> {
    match text {
        "" => Err("expected mlir, torch or a file of values".to_owned()),
        "mlir" => Ok(Against::Engine(Engine::Mlir)),
        "torch" => Ok(Against::Engine(Engine::Torch)),
        file => Ok(Against::Values(file.into())),
    }
}

/// One run.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-run", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// Record stream or bundle folder to read; `-` or nothing means stdin
    #[arg(value_name = "STREAM")]
    pub input: Option<PathBuf>,

    /// What executes; without it torch where libtorch is found, else mlir
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,

    /// Execute this MLIR file instead, all of whose arguments are inputs
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub module: Option<PathBuf>,

    /// The function to call in the file of --module
    #[arg(long, value_name = "NAME", default_value = "forward", requires = "module")]
    pub entry: String,

    /// safetensors or npz file with in_0, in_1, ... or the inputs' names; with --observe it may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "random")]
    pub inputs: Vec<PathBuf>,

    /// Make the inputs: typed, in the ranges that the graph allows, the same for the same seed
    #[arg(long, value_name = "SEED")]
    pub random: Option<u64>,

    /// Seed of the random operators; the numbers of the two engines differ
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,

    /// safetensors file with weights under their qualified names, for a program that came without them
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,

    /// A scalar input: `in_2=5`, `in_0=0.5`, `in_1=true`; may be repeated
    #[arg(long = "scalar", value_name = "KEY=VALUE")]
    pub scalars: Vec<String>,

    /// Write the outputs to a safetensors file
    #[arg(long, value_name = "FILE")]
    pub golden: Option<PathBuf>,

    /// Also write every intermediate of the graph to a safetensors file, by the name of its value (engine torch)
    ///
    /// Values of nested graphs are GRAPH/VALUE; what a loop computes again is VALUE#2, VALUE#3, ...
    #[arg(long, value_name = "FILE")]
    pub trace_values: Option<PathBuf>,

    /// Record what every float value is over all files of --inputs, and pass the stream on (engine torch)
    ///
    /// An observation record counts elements that are finite and those that are not. minmax has the least and the greatest
    /// of the former; histogram has bins of one width, a power of two, so that neither the order of files nor that of
    /// elements matters; percentile has the nearest ranks from both ends, known up to a bin.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["golden", "compare", "trace_values", "against", "bisect", "repeat"])]
    pub observe: Option<Method>,

    /// The most bins of a histogram
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(4..=65536))]
    pub bins: u64,

    /// How many percent of the elements are within each end of the range of --observe percentile
    #[arg(long, value_name = "P", default_value_t = 99.99, value_parser = percent)]
    pub percentile: f64,

    /// Compare with what this gives on the same inputs: mlir or torch, or with --bisect a file of --trace-values
    #[arg(long, value_name = "ENGINE|FILE", value_parser = against, conflicts_with = "compare")]
    pub against: Option<Against>,

    /// Find the first node whose value differs from that of --against, and write a stream of it alone
    ///
    /// The values are those of the current graph's nodes, compared in order; those of nested graphs where both sides have
    /// them, which a module has not. The stream has the node of the root graph that executes the first one which differs, what
    /// it reads as inputs, and a golden record of both; the tensors are beside it in FILE with the extension safetensors. So
    /// it can be lowered, executed and compared like any other. That is done at once, with --engine, and whether it differs
    /// again is said.
    #[arg(long, value_name = "FILE", requires = "against", conflicts_with_all = ["golden", "trace_values", "repeat"])]
    pub bisect: Option<PathBuf>,

    /// An output that has a NaN is wrong, whatever it is compared with
    #[arg(long)]
    pub refuse_nan: bool,

    /// Compare the outputs with those of a safetensors or npz file, or with the stream's last golden record
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub compare: Option<Option<PathBuf>>,

    /// Relative tolerance for floats, instead of the one of the output's dtype
    #[arg(long, value_name = "X")]
    pub rtol: Option<f64>,

    /// Absolute tolerance for floats, instead of the one of the output's dtype
    #[arg(long, value_name = "X")]
    pub atol: Option<f64>,

    /// Floats must be equal too
    #[arg(long, conflicts_with_all = ["rtol", "atol"])]
    pub exact: bool,

    /// Execute so many times, and say on stderr what compiling and the fastest execution took
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,

    /// Threads of the engines torch and lattice; as many as they like if absent
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

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

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if percent > 50.0 && percent <= 100.0 => Ok(percent),
        _ => Err("expected a number above 50 and up to 100".to_owned()),
    }
}

impl Args {
    /// What executes: a module without a graph is MLIR's, anything else libtorch's where there is one.
    pub fn engine(&self) -> Engine {
        let is_lone_module = self.module.is_some() || self.input.as_ref().is_some_and(|input| input.is_dir());
        match self.engine {
            Some(engine) => engine,
            None if is_lone_module || m2m_torch::present().is_none() => Engine::Mlir,
            None => Engine::Torch,
        }
    }

    /// Whether anything is done with the outputs.
    pub fn has_purpose(&self) -> bool {
        let files = self.golden.is_some() || self.trace_values.is_some() || self.bisect.is_some();
        files || self.observe.is_some() || self.repeat.is_some() || self.is_judged()
    }

    /// Whether outputs can be wrong.
    pub fn is_judged(&self) -> bool {
        self.compare.is_some() || self.against.is_some() || self.refuse_nan
    }

    /// The file of `--compare`, if it names one.
    pub fn references(&self) -> Option<&std::path::Path> {
        self.compare.as_ref()?.as_deref()
    }

    /// What floats are held to instead of their dtype's tolerance: relative, absolute.
    pub fn tolerances(&self) -> (Option<f64>, Option<f64>) {
        if self.exact { (Some(0.0), Some(0.0)) } else { (self.rtol, self.atol) }
    }
}
