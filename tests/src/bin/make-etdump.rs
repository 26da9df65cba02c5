//! `make-etdump`: writes the fixtures of m2m-etdump into a folder, or one large dump with its record for the benchmark.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use m2m_tests::etdump;

/// Make ETDumps and ETRecords from nothing.
#[derive(Parser)]
struct Args {
    /// The folder to write the fixtures to; with --large, the dump to write, beside which the record will be.
    output: PathBuf,
    /// Write one dump of RUNS runs of 19 events instead.
    #[arg(long, value_name = "RUNS")]
    large: Option<usize>,
}

fn make(args: &Args) -> std::io::Result<()> {
    if let Some(runs) = args.large {
        std::fs::write(args.output.with_extension("etrecord"), etdump::large_record())?;
        return std::fs::write(&args.output, etdump::large(runs));
    }
    std::fs::create_dir_all(&args.output)?;
    let write = |(name, bytes): (&str, Vec<u8>)| std::fs::write(Path::new(&args.output).join(name), bytes);
    etdump::fixtures().into_iter().try_for_each(write)
}

fn main() -> ExitCode {
    let args = Args::parse();
    match make(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when standard error is closed.
            let _ = writeln!(std::io::stderr(), "make-etdump: {}: error: {error}", args.output.display());
            ExitCode::from(2)
        }
    }
}
