//! The flags of m2m-hash.

use m2m_cli::OutputArgs;
use std::path::PathBuf;

const ABOUT: &str = "Hash, check and seal files, folders, record streams and bundles";

const LONG_ABOUT: &str = "\
Hash, check and seal files, folders, record streams and bundles.

For FILES, or stdin, prints SHA-256 digests in the format of sha256sum. For a folder, prints its inventory: one such line \
for every file in it, sorted, with names relative to the folder.

--check compares and prints every difference: missing, added, changed, symlinked, or with an unsafe name. A bundle is checked \
against its receipt.json; a record stream against its seals and its end; a list of digests against the files that it names, \
relative to the working directory, or against all of FOLDER where that is given.";

const EXAMPLES: &str = "\
Examples:
  m2m-hash model.pt2 weights.safetensors
  m2m-hash out/ > out.sha256
  m2m-hash --check out.sha256 out/
  m2m-hash --check bundle/
  m2m-hash --canonical-json meta.json | m2m-hash
  jq -c 'select(.record != \"extra\")' model.ndjson | m2m-hash --seal | m2m-lower";

/// What to do is chosen by one flag; without one, hash.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-hash", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// Files, or one folder; `-` or nothing means stdin
    #[arg(value_name = "FILES")]
    pub paths: Vec<PathBuf>,

    /// Check a bundle, a stream, or a list of digests and its FOLDER
    #[arg(long, short, group = "action")]
    pub check: bool,

    /// Print a JSON file in canonical form (RFC 8785, 64-bit integers exact)
    ///
    /// One line: keys sorted by UTF-16 code units, no spaces, numbers as ECMAScript prints them, but integers that fit 64
    /// bits exactly as they are. Repeated keys are refused.
    #[arg(long, group = "action")]
    pub canonical_json: bool,

    /// Rewrite the seals and the end of a stream that was edited on purpose
    #[arg(long, group = "action")]
    pub seal: bool,

    /// Where to write the result.
    #[command(flatten)]
    pub output: OutputArgs,
}
