//! `make-pte`: writes the ExecuTorch fixtures into a folder, or one large program for the benchmark.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use m2m_tests::pte;

/// Make ExecuTorch programs from nothing.
#[derive(Parser)]
struct Args {
    /// The folder to write the fixtures to; with --large, the file to write.
    output: PathBuf,
    /// Write one program with a payload of BYTES instead.
    #[arg(long, value_name = "BYTES")]
    large: Option<usize>,
}

fn make(args: &Args) -> std::io::Result<()> {
    if let Some(bytes) = args.large {
        return std::fs::write(&args.output, pte::large(bytes));
    }
    std::fs::create_dir_all(&args.output)?;
    let write = |(name, bytes): (&str, Vec<u8>)| std::fs::write(Path::new(&args.output).join(name), bytes);
    pte::fixtures().into_iter().try_for_each(write)
}

fn main() -> ExitCode {
    let args = Args::parse();
    match make(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when standard error is closed.
            let _ = writeln!(std::io::stderr(), "make-pte: {}: error: {error}", args.output.display());
            ExitCode::from(2)
        }
    }
}
