//! The flags of m2m-pte.

use m2m_cli::OutputArgs;
use m2m_record::{Arg, Kwargs};
use std::path::PathBuf;

const ABOUT: &str = "Show what is in an ExecuTorch program, and take its delegates out";

const LONG_ABOUT: &str = "\
Show what is in an ExecuTorch program (.pte) or data file (.ptd), and take the delegates of a program out.

Without an action, writes what the file holds as records: header, segments, constants, named data, and for each method its \
inputs, outputs, planned memory, operators, instructions, values and delegates, all with their places in the file. Every \
offset, length and index is checked; a file that is torn or broken is refused with the byte or the table where it breaks.

--extract-delegates writes every payload as DIR/METHOD.INDEX.FORMAT, where FORMAT is what its first bytes say: tosa, vgf, \
xnnpack, vela, else bin. Nothing is written when a payload of TOSABackend or VgfBackend is empty or is not of that format. \
--single also refuses programs of several methods or delegates, and other backends: what is then written stands for the whole \
program.";

const EXAMPLES: &str = "\
Examples:
  m2m-pte model.pte --format table
  m2m-pte model.pte | jq -r 'select(.record==\"delegate\") | [.method, .id, .format, .bytes] | @tsv'
  m2m-pte model.pte --extract-delegates payloads/
  m2m-pte model.pte --extract-delegates payloads/ --single
  m2m-pte --diff before.pte after.pte --format table
  m2m-pte --raw model.pte | jq .program.execution_plan[0].operators";

/// How records are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A record stream
    #[default]
    Records,
    /// Tables for people
    Table,
}

/// What to read, and what to do with it.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-pte", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// The .pte or .ptd file; two of them for --diff
    #[arg(value_name = "FILES", required = true, num_args = 1..=2)]
    pub files: Vec<PathBuf>,

    /// Write delegate payloads to DIR, which is made whole or not at all
    #[arg(long, value_name = "DIR", group = "action")]
    pub extract_delegates: Option<PathBuf>,

    /// Print in what two programs differ, wherever things lie in the files
    #[arg(long, group = "action")]
    pub diff: bool,

    /// Print every field as stored, as one JSON object
    #[arg(long, group = "action", conflicts_with = "format")]
    pub raw: bool,

    /// When extracting: refuse what does not stand for the whole program
    ///
    /// Refused are, in this order: any number of methods but one, any number of delegates but one, a backend other than
    /// TOSABackend and VgfBackend, an empty payload, and a payload of another format.
    #[arg(long, requires = "extract_delegates", conflicts_with_all = ["method", "delegate", "backend"])]
    pub single: bool,

    /// Only this method
    #[arg(long, short, value_name = "NAME", conflicts_with_all = ["diff", "raw"])]
    pub method: Option<String>,

    /// When extracting: only delegates of this index
    #[arg(long, value_name = "INDEX", requires = "extract_delegates")]
    pub delegate: Option<usize>,

    /// When extracting: only delegates of this backend
    #[arg(long, hide_short_help = true, value_name = "ID", requires = "extract_delegates")]
    pub backend: Option<String>,

    /// When extracting: replace a DIR that is there
    #[arg(long, requires = "extract_delegates")]
    pub force: bool,

    /// Add SHA-256 digests of segments, constants, named data and payloads
    #[arg(long, conflicts_with_all = ["diff", "raw"])]
    pub digests: bool,

    /// Write `records`, or a `table` for people
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    pub format: Format,

    /// Where to write the result.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl Args {
    /// Those that change what is written, for the `tool` record.
    pub fn options(&self) -> Kwargs {
        let flag = |is_set: bool| is_set.then_some(Arg::Bool(true));
        let text = |text: &Option<String>| text.clone().map(Arg::Str);
        let all = [
            ("extract_delegates", flag(self.extract_delegates.is_some())),
            ("diff", flag(self.diff)),
            ("single", flag(self.single)),
            ("method", text(&self.method)),
            ("delegate", self.delegate.and_then(|index| i64::try_from(index).ok()).map(Arg::Int)),
            ("backend", text(&self.backend)),
            ("digests", flag(self.digests)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}
