//! m2m-hash: digests, inventories, checks, canonical JSON and seals.
//!
//! A page: what is hashed and how it is compared lives in `m2m_digest`.

mod args;
mod check;
mod write;

use args::Args;
use m2m_cli::{About, Failure, Messages, Status, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        schema: m2m_record::SCHEMA,
        no: "--check found a difference; all of them are listed",
    };
    run(about, body)
}

fn body(args: Args, messages: &Messages) -> Result<Status, Failure> {
    if args.check {
        check::check(&args, messages)
    } else if args.canonical_json {
        write::canonical(&args)
    } else if args.seal {
        write::seal(&args)
    } else {
        write::digests(&args, messages)
    }
}
