//! `make-scene`: a sparse model and a scene for it, for the benchmark of its engine.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Write a bundle of a sparse model with inputs.safetensors of a scene beside its files.
#[derive(Parser)]
struct Args {
    /// The folder to write.
    folder: PathBuf,
    /// Voxels of the scene.
    #[arg(long, default_value_t = 200_000)]
    voxels: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match m2m_tests::scene::write(&args.folder, args.voxels) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when standard error is closed.
            let _ = writeln!(io::stderr(), "make-scene: {}: error: {error}", args.folder.display());
            ExitCode::from(2)
        }
    }
}
