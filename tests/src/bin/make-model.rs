//! `make-model`: puts a `.pt2` archive together from a program's JSON and counter-based weights, without PyTorch.
//! The demo makes its ResNet-18 with it, the benchmark its models of billions of parameters (as holes).

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use m2m_tests::model::{Error, Model};
use m2m_tests::repeat::repeat;

/// Make a .pt2 file of a program and counter-based weights.
#[derive(Parser)]
struct Args {
    /// The program's JSON, `-` for standard input.
    program: PathBuf,
    /// The archive to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write inputs for the program, as safetensors.
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Chain that many copies of the program, each with its own weights, its first input being the output of the one before.
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    repeat: usize,
    /// Leave the weights as holes of the file, which read as zeros.
    #[arg(long)]
    hollow: bool,
}

fn make(args: &Args) -> Result<(), Error> {
    let mut text = String::new();
    if args.program.as_os_str() == "-" {
        io::stdin().read_to_string(&mut text)?;
    } else {
        File::open(&args.program)?.read_to_string(&mut text)?;
    }
    if args.repeat != 1 {
        text = repeat(&text, args.repeat)?;
    }
    let model = Model::parse(&text)?;
    model.write_archive(BufWriter::new(File::create(&args.output)?), args.hollow)?;
    if let Some(path) = &args.inputs {
        let mut out = BufWriter::new(File::create(path)?);
        model.write_inputs(&mut out)?;
        out.flush()?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match make(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when standard error is closed.
            let _ = writeln!(io::stderr(), "make-model: {}: error: {error}", args.program.display());
            ExitCode::from(2)
        }
    }
}
