//! The flags of m2m-lattice-verify.

use m2m_cli::OutputArgs;
use std::path::PathBuf;

const ABOUT: &str = "Parse and verify a sparse model and its weights, and write its plan";

const LONG_ABOUT: &str = "\
Parse and verify a sparse model and its weights, and write its plan.

MODEL is a folder with graph.mlir and weights.safetensors, or a graph alone: MLIR text in pretty or generic form, or \
bytecode, of the lattice dialect, IR version 2. Every rule of the contract is checked and all findings are listed in one \
run, each with a stable code, its line and column: of syntax, module metadata, operations, strides and channels along the \
graph, and of the weights file, of which only the header is read. A graph that is right is written as a runtime plan: \
plan_argument, plan_op and plan_output records, weights by their place in the file.";

const EXAMPLES: &str = "\
Examples:
  m2m-lattice-verify model.lattice/ | jq 'select(.record==\"plan_op\").name'
  m2m-lattice-verify --strict model.lattice/ -o plan.ndjson
  m2m-lattice-verify --native model.lattice/ > plan.json
  m2m-lattice-verify graph.mlir --weights weights.safetensors | m2m-run --engine lattice --inputs in.safetensors
  m2m-lattice-verify --list ops";

/// What to check, and what to write.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-lattice-verify", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// A bundle's folder, or a graph; `-` means a graph on stdin
    #[arg(value_name = "MODEL", required_unless_present_any = ["list", "generate"])]
    pub model: Option<PathBuf>,

    /// The weights of a graph that is given alone
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,

    /// Refuse what is only warned of, too: loose roles, unused operations, shifted windows
    #[arg(long)]
    pub strict: bool,

    /// Write the one JSON document that the contract's own runtime takes, instead of records
    #[arg(long)]
    pub native: bool,

    /// List the operations with their rules, or the codes of findings, and end
    #[arg(long, value_name = "WHAT", value_enum)]
    pub list: Option<List>,

    /// Where to write the plan.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A table to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum List {
    /// Every operation: what it takes, gives and must satisfy
    Ops,
    /// Every code of a finding: how bad it is and what it means
    Codes,
}
