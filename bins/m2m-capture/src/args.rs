//! The flags of m2m-capture.

use m2m_cli::OutputArgs;
use serde::Serialize;
use std::path::PathBuf;

const ABOUT: &str = "Write a model's program as records";

const LONG_ABOUT: &str = "\
Write a model's program as records.

Reads the .pt2 files that torch.export.save writes (torch 2.4 to 2.13), without Python and without executing anything in \
them. A Python loader (.py) is run by an interpreter with PyTorch instead: it defines get_model_and_inputs(), which returns \
a torch.nn.Module and its example inputs (a tuple of positional ones, a dict of those with keywords, or both), and may have \
dynamic_shapes and methods (names of the model's methods, or a dict of names with their inputs), each a value or a function. \
What torch.export makes of it is saved as a .pt2 file, which is then read like any other. Weights stay where they are: the records point into the file. What has no place in records is named in a diagnostic \
at the end of the stream, and on stderr.";

const EXAMPLES: &str = "\
Examples:
  m2m-capture model.pt2 | jq -r 'select(.record==\"node\").op' | sort | uniq -c
  m2m-capture resnet.pt2 | m2m-lower | m2m-bundle -o out/
  m2m-capture llm.pt2 --program decode -o decode.ndjson
  m2m-capture loader.py --python venv/bin/python --save-pt2 model.pt2 --dynamic x:0=batch:1..64 | m2m-lower > model.ndjson
  m2m-capture model.pt2 --weights model.safetensors --sample-inputs inputs.safetensors -o model.ndjson";

/// What to read, and where the parts go.
#[derive(Debug, clap::Parser)]
#[command(name = "m2m-capture", about = ABOUT, long_about = LONG_ABOUT, after_long_help = EXAMPLES)]
pub struct Args {
    /// The .pt2 file, or a Python loader
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

    /// The interpreter that runs a loader
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,

    /// Where to save the archive of a loader; without it LOADER.pt2 in the working directory, if that is not there yet
    #[arg(long, value_name = "FILE")]
    pub save_pt2: Option<PathBuf>,

    /// Export a loader's model in torch.export's strict mode
    #[arg(long)]
    pub strict: bool,

    /// A dimension of a loader's input that is dynamic: `x:0=batch:1..64`, `x:0=batch`, or `x:0` for what export finds out
    ///
    /// x is the parameter's name in forward, 0 the dimension. Dimensions of one name are equal.
    #[arg(long, value_name = "INPUT:DIM", value_parser = dynamic)]
    pub dynamic: Vec<Dynamic>,

    /// Where to write the records.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A dynamic dimension of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dynamic {
    /// The parameter of forward.
    pub input: String,
    /// Which of its dimensions.
    pub dim: u32,
    /// What it is called; none leaves it to torch.export.
    pub name: Option<String>,
    /// The least size.
    pub min: Option<u64>,
    /// The greatest size.
    pub max: Option<u64>,
}

/// Reads `INPUT:DIM[=NAME[:[MIN]..[MAX]]]`.
fn dynamic(text: &str) -> Result<Dynamic, String> {
    let wrong = || "expected INPUT:DIM, INPUT:DIM=NAME or INPUT:DIM=NAME:MIN..MAX".to_owned();
    let (place, name) = text.split_once('=').map_or((text, None), |(place, name)| (place, Some(name)));
    let (input, dim) = place.rsplit_once(':').filter(|(input, _)| !input.is_empty()).ok_or_else(wrong)?;
    let dim = dim.parse().map_err(|_| wrong())?;
    let (name, range) = match name.map(|name| name.split_once(':').map_or((name, None), |(n, range)| (n, Some(range))))
    {
        None => (None, None),
        Some(("", _)) => return Err(wrong()),
        Some((name, range)) => (Some(name.to_owned()), range),
    };
    let bound = |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| wrong()) };
    let (min, max): (Option<u64>, Option<u64>) = match range {
        None => (None, None),
        Some(range) => {
            let (min, max) = range.split_once("..").ok_or_else(wrong)?;
            (bound(min)?, bound(max)?)
        }
    };
    match (min, max) {
        (Some(min), Some(max)) if min > max => Err(format!("the range {min}..{max} is empty")),
        _ => Ok(Dynamic { input: input.to_owned(), dim, name, min, max }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_dimensions_are_read() {
        let read = |text: &str| dynamic(text).unwrap();
        let batch = Dynamic { input: "x".into(), dim: 0, name: Some("batch".into()), min: Some(1), max: Some(64) };
        assert_eq!(read("x:0=batch:1..64"), batch);
        assert_eq!(read("x:0=batch:..64"), Dynamic { min: None, ..batch.clone() });
        assert_eq!(read("x:0=batch"), Dynamic { min: None, max: None, ..batch.clone() });
        assert_eq!(read("x:0"), Dynamic { name: None, min: None, max: None, ..batch });
        for wrong in ["x", "x:a", ":0", "x:0=", "x:0=b:5", "x:0=b:1..z", "x:0=b:5..4"] {
            assert!(dynamic(wrong).is_err(), "{wrong}");
        }
    }
}
