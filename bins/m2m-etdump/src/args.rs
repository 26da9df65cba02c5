//! The flags of m2m-etdump.

use m2m_cli::OutputArgs;
use m2m_record::TimeScale;
use std::path::PathBuf;

const ABOUT: &str = "Tell what a runtime measured, and which source node it was";

const LONG_ABOUT: &str = "\
Tell what a runtime measured, and which source node it was.

Reads the ETDump that an ExecuTorch runtime with its event tracer on writes, and joins its events to the graph that the \
program was made from: by the ETRecord of the export, or by a stream of records that carries debug handles. Without either \
the events alone are told. A record alone can be looked at too.";

const EXAMPLES: &str = "\
Examples:
  m2m-etdump --etrecord model.etrecord run.etdump | jq -c 'select(.record==\"event\") | [.name, .samples_ms[0], .nodes]'
  m2m-etdump --etrecord model.etrecord run.etdump --format tsv > run.tsv
  m2m-etdump --etrecord model.etrecord run.etdump --by-module --format md
  m2m-etdump --etrecord model.etrecord run.etdump --html -o run.html
  m2m-etdump --etrecord model.etrecord run.etdump --debug-buffer run.bin --tensors logged.safetensors > run.ndjson
  m2m-etdump --compare before.etdump after.etdump --etrecord model.etrecord --format md";

/// What to read, how to join it, and how to tell it.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-etdump", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// The ETDump; `-` means stdin. Without one, what --etrecord holds is told
    #[arg(value_name = "DUMP", required_unless_present_any = ["etrecord", "compare"])]
    pub dump: Option<PathBuf>,

    /// The ETRecord of the export: graphs, debug handles and delegate maps
    #[arg(long, value_name = "FILE")]
    pub etrecord: Option<PathBuf>,

    /// A stream of records whose `instruction` and `handle` records carry the debug handles; it is passed through
    #[arg(long, value_name = "STREAM", conflicts_with = "etrecord", requires = "dump")]
    pub trace: Option<PathBuf>,

    /// Which method of a program with several; the dump itself does not say
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,

    /// What messages call the option that names a method, for programs that have another name for it
    #[arg(long, value_name = "OPTION", default_value = "--method", hide_default_value = true)]
    pub method_option: String,

    /// What a tick of the runtime's clock is: ns, us, ms, s or cycles
    #[arg(long, value_name = "UNIT", value_enum, default_value = "ns", hide_possible_values = true)]
    pub source_time_scale: Scale,

    /// What times are told in: ns, us, ms, s or cycles
    #[arg(long, value_name = "UNIT", value_enum, default_value = "ms", hide_possible_values = true)]
    pub target_time_scale: Scale,

    /// What to do with an event that repeats within a run: keep the last, as ExecuTorch's own inspector does, or all
    #[arg(long, value_name = "WHICH", value_enum, default_value = "last", hide_possible_values = true)]
    pub occurrences: Which,

    /// The buffer with the tensors that the runtime logged
    #[arg(long, value_name = "FILE", requires = "dump")]
    pub debug_buffer: Option<PathBuf>,

    /// Write the logged tensors to a safetensors FILE, to which the records then point
    #[arg(long, value_name = "FILE", requires = "debug_buffer")]
    pub tensors: Option<PathBuf>,

    /// How to tell it
    ///
    /// ndjson: records. tsv: the table of ExecuTorch's own inspector, with its columns; csv and md: the same table.
    /// chrome-trace: for chrome://tracing and Perfetto. pprof: for pprof. model-explorer: a graph for Model Explorer with
    /// the times on its nodes.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "ndjson")]
    pub format: Format,

    /// One row or record for each module of the source model instead of each event; each instant of a run counts once
    #[arg(long, requires = "dump", conflicts_with_all = ["compare", "raw", "html"])]
    pub by_module: bool,

    /// A page with a flame chart, which needs nothing but a browser
    #[arg(long, requires = "dump", conflicts_with_all = ["format", "raw", "compare"])]
    pub html: bool,

    /// Every field of the files as they are stored, unjoined
    #[arg(long, conflicts_with_all = ["format", "compare", "trace"])]
    pub raw: bool,

    /// Compare two dumps event by event, and end with 1 when something became slower
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["dump", "trace"])]
    pub compare: Option<Vec<PathBuf>>,

    /// Differences of medians below this many percent are not worth a verdict
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    pub threshold: f64,

    /// Where to write
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scale {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
    /// Seconds
    S,
    /// Cycles of a clock, which convert to nothing else
    Cycles,
}

impl From<Scale> for TimeScale {
    fn from(scale: Scale) -> Self {
        match scale {
            Scale::Ns => TimeScale::Ns,
            Scale::Us => TimeScale::Us,
            Scale::Ms => TimeScale::Ms,
            Scale::S => TimeScale::S,
            Scale::Cycles => TimeScale::Cycles,
        }
    }
}

/// Which of an event's repetitions within a run to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// The last
    Last,
    /// All, numbered
    All,
}

/// How to tell a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs, reason = "the help of --format says what each is")]
pub enum Format {
    Ndjson,
    Tsv,
    Csv,
    Md,
    ChromeTrace,
    Pprof,
    ModelExplorer,
}
