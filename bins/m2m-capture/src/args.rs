//! The flags of m2m-capture.

use m2m_cli::OutputArgs;
use std::path::PathBuf;

const ABOUT: &str = "Write a model's program as records";

const LONG_ABOUT: &str = "\
Write a model's program as records.

Reads the .pt2 files that torch.export.save writes (torch 2.4 to 2.13), without Python and without executing anything in \
them. Weights stay where they are: the records point into the file. What has no place in records is named in a diagnostic \
at the end of the stream, and on stderr.";

const EXAMPLES: &str = "\
Examples:
  m2m-capture model.pt2 | jq -r 'select(.record==\"node\").op' | sort | uniq -c
  m2m-capture resnet.pt2 | m2m-lower | m2m-bundle -o out/
  m2m-capture llm.pt2 --program decode -o decode.ndjson
  m2m-capture model.pt2 --weights model.safetensors --sample-inputs inputs.safetensors -o model.ndjson";

/// What to read, and where the parts go.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-capture", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// The .pt2 file
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,

    /// Which program of an archive with several
    #[arg(long, short, value_name = "NAME")]
    pub program: Option<String>,

    /// Also write all weights and constants to a safetensors FILE, to which the records then point
    ///
    /// Contiguous and little-endian, data from a multiple of 64 bytes on, tied tensors once (their other names are in the
    /// file's metadata). The archive's checksums are verified on the way.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,

    /// Also write the sample inputs to a safetensors FILE, as in_0, in_1, ...
    #[arg(long, value_name = "FILE")]
    pub sample_inputs: Option<PathBuf>,

    /// Where to write the records.
    #[command(flatten)]
    pub output: OutputArgs,
}
