//! `bench-records`: what the benchmark times of the record library, each as a filter from a file to standard output:
//! passing lines through, parsing every node into its struct, and running a jq predicate over every node.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use m2m_record::select::Predicate;
use m2m_record::{Body, Graph, Node, Pipe, Reader, Status, Writer};

#[derive(Clone, Copy, ValueEnum)]
enum Work {
    /// Write a stream of one graph that repeats the nodes of the given one.
    Make,
    /// Pass every line through.
    Pass,
    /// Pass, and parse the nodes.
    Nodes,
    /// Pass, and select nodes.
    Where,
}

/// Time the record library.
#[derive(Parser)]
struct Args {
    work: Work,
    /// A whole stream.
    stream: PathBuf,
    /// How many bytes to make.
    #[arg(long, default_value_t = 200_000_000)]
    bytes: usize,
    /// What to select.
    #[arg(long, default_value = ".op == \"aten.linear.default\"")]
    filter: String,
}

type Failure = Box<dyn std::error::Error>;

/// Writes at least `bytes` of nodes, each numbered anew, as a graph that could have been captured.
fn make(args: &Args, out: impl Write) -> Result<(), Failure> {
    let mut reader = Reader::new(File::open(&args.stream)?);
    let mut nodes = Vec::new();
    while let Some(line) = reader.next_line()? {
        if line.kind == Node::KIND {
            nodes.push((line.parse::<Node>()?, line.bytes.len()));
        }
    }
    if nodes.is_empty() {
        return Err("the stream holds no node".into());
    }
    let mut writer = Writer::begin(out)?;
    let graph =
        Graph { graph: "original".into(), stage: "original".into(), entry: Some("forward".into()), parent: None };
    writer.write(&graph)?;
    let mut written = 0;
    for (number, index) in (0..nodes.len()).cycle().enumerate() {
        let (node, len_bytes) = &mut nodes[index];
        node.node = format!("original:{number}");
        writer.write(node)?;
        written += *len_bytes;
        if written >= args.bytes {
            break;
        }
    }
    writer.seal()?;
    writer.finish(Status::Ok)?;
    Ok(())
}

/// Passes the stream, doing the work that is timed for every node, and returns how many nodes it found.
fn pass(args: &Args, out: impl Write) -> Result<u64, Failure> {
    let predicate = Predicate::new(&args.filter)?;
    let mut pipe = Pipe::new(Reader::new(File::open(&args.stream)?), out);
    let mut found = 0;
    while let Some(line) = pipe.next_line()? {
        found += u64::from(match args.work {
            _ if line.kind != Node::KIND => false,
            Work::Make | Work::Pass => true,
            Work::Nodes => !line.parse::<Node>()?.op.is_empty(),
            Work::Where => predicate.selects_line(line.bytes)?,
        });
    }
    pipe.into_writer().finish(Status::Ok)?;
    Ok(found)
}

fn main() -> ExitCode {
    let args = Args::parse();
    let out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    let done = match args.work {
        Work::Make => make(&args, out).map(|()| String::new()),
        _ => pass(&args, out).map(|found| format!("bench-records: note: {found} nodes\n")),
    };
    let (text, code) = match done {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(error) => (format!("bench-records: {}: error: {error}\n", args.stream.display()), ExitCode::from(2)),
    };
    // Nothing is left to do when standard error is closed.
    let _ = io::stderr().write_all(text.as_bytes());
    code
}
