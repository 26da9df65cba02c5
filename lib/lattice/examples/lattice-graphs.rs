//! Graphs for MLIR's own tools, made from the schema table, and what we find in them. Used by scripts/lattice-mlir.
//!
//!     lattice-graphs FOLDER                   a graph for every operation, pretty and generic
//!     lattice-graphs --damage COUNT FOLDER    damaged copies of those, one text with separators
//!     lattice-graphs --compare TEXT ERRORS    MLIR's errors in that text against ours
//!     lattice-graphs --fuzz SECONDS FOLDER    the body of the fuzz target over choices and damaged files, without libfuzzer

#[path = "../tests/common/mod.rs"]
mod common;

use m2m_lattice::finding::{Code, Findings, Severity};
use m2m_lattice::{schema, text, verify};
use std::io::{self, Write as _};
use std::path::Path;

const SEPARATOR: &str = "// -----";

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--damage", count, folder] => damage(count.parse().map_err(io::Error::other)?, Path::new(folder)),
        ["--compare", text, errors] => compare(text, errors),
        ["--fuzz", seconds, folder] => fuzz(seconds.parse().map_err(io::Error::other)?, Path::new(folder)),
        [folder] => graphs(Path::new(folder)),
        _ => Err(io::Error::other(
            "give a folder, or --damage COUNT FOLDER, --compare TEXT ERRORS, or --fuzz SECONDS FOLDER",
        )),
    }
}

fn graphs(folder: &Path) -> io::Result<()> {
    for def in schema::OPS {
        let example = common::Example::new(def, true);
        for (form, operation) in [("pretty", example.pretty()), ("generic", example.generic())] {
            let name = format!("{}.{form}.mlir", def.name.replace('.', "_"));
            std::fs::write(folder.join(name), example.graph(&operation))?;
        }
    }
    Ok(())
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % count.max(1)
    }
}

const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    "[",
    "]",
    ",",
    ":",
    "::",
    "=",
    "->",
    "-",
    "?",
    "x",
    "\"",
    "%",
    "%a0",
    "%r0",
    "@",
    "@f",
    "#",
    "!",
    "^bb1:",
    "0",
    "1",
    "-1",
    "0x10",
    "1.5",
    "2.",
    "1e5",
    "1.0e-5",
    "9999999999999999999999",
    "true",
    "unit",
    "i32",
    "f32",
    "i64",
    "tensor<?x4xf32>",
    "array<i64: 1, 2>",
    "dense<1> : tensor<2xi32>",
    "loc(unknown)",
    "#lattice.join<inner>",
    "!lattice.weight<bias, f32>",
    "// c\n",
    " ",
    "\n",
    "\t",
    "a = 1",
    "\"s\"",
    "\\",
    "affine_map<(d0) -> (d0)>",
    "@a::@b",
    "[1, 2]",
    "{a}",
    "index",
    "none",
    "tensor<*xi32>",
    ";",
];

fn damage(count: usize, folder: &Path) -> io::Result<()> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    files.retain(|file| file.path().extension().is_some_and(|end| end == "mlir"));
    files.sort_by_key(std::fs::DirEntry::path);
    let mut out = io::stdout().lock();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for number in 0..count {
        let Some(file) = files.get(number % files.len().max(1)) else { return Ok(()) };
        let mut text = std::fs::read_to_string(file.path())?;
        for _ in 0..1 + dice.below(3) {
            // Most of the damage goes where the operation is, not the metadata.
            let body = text.find("func.func").unwrap_or(0);
            let from = if dice.below(4) == 0 { 0 } else { body };
            let at = from + dice.below(text.len() - from);
            let end = (at + dice.below(6)).min(text.len());
            if !text.is_char_boundary(at) || !text.is_char_boundary(end) {
                continue;
            }
            let piece = PIECES.get(dice.below(PIECES.len())).copied().unwrap_or("");
            match dice.below(3) {
                0 => text.replace_range(at..end, ""),
                1 => text.insert_str(at, piece),
                _ => text.replace_range(at..end, piece),
            }
        }
        writeln!(out, "{}\n{SEPARATOR}", text.replace(SEPARATOR, ""))?;
    }
    Ok(())
}

/// Codes of what is no MLIR at all, rather than no graph.
const SYNTAX: &[Code] = &[
    Code::Syntax,
    Code::UnknownAlias,
    Code::Redefinition,
    Code::DuplicateAttribute,
    Code::UndefinedValue,
    Code::UseBeforeDefinition,
    Code::ValueType,
    Code::ForeignOp,
];

fn compare(text: &str, errors: &str) -> io::Result<()> {
    let name = text;
    let text = std::fs::read_to_string(text)?;
    let errors = std::fs::read_to_string(errors)?;
    if errors.contains("Stack dump") {
        return Err(io::Error::other("mlir-opt crashed, so nothing can be compared"));
    }
    // Lines of MLIR's errors: `FILE:LINE:COLUMN: error: …`, or `within split at FILE:LINE offset :LINE:COLUMN: error: …`.
    let mut theirs = Vec::new();
    for line in errors.lines().filter(|line| line.contains("error:")) {
        let numbers =
            |part: &str| part.split(':').filter_map(|word| word.trim().parse::<usize>().ok()).collect::<Vec<_>>();
        let place = match line.split_once(" offset ") {
            Some((split, rest)) => {
                let base = numbers(split.rsplit('/').next().unwrap_or(split)).first().copied().unwrap_or(0);
                base + numbers(rest).first().copied().unwrap_or(1)
            }
            None => {
                numbers(line.rsplit_once("error:").map_or(line, |(head, _)| head)).first().copied().unwrap_or(0) + 1
            }
        };
        theirs.push((place, line));
    }
    let (mut first, mut both, mut apart, mut stricter) = (1, 0, 0, 0);
    for chunk in text.split_inclusive(&format!("{SEPARATOR}\n")) {
        let lines = chunk.lines().count();
        let own = chunk.strip_suffix(&format!("{SEPARATOR}\n")).unwrap_or(chunk);
        let refusal =
            theirs.iter().find(|(line, _)| (first + 1..first + 1 + lines).contains(line)).map(|(_, said)| *said);
        let mut findings = Findings::default();
        let graph = text::parse(own.as_bytes(), &mut findings);
        verify::verify(&graph, None, &mut findings);
        let errors: Vec<_> =
            findings.into_sorted().into_iter().filter(|finding| finding.severity() == Severity::Error).collect();
        let syntax = errors.iter().find(|finding| SYNTAX.contains(&finding.code));
        match (refusal, syntax) {
            (Some(said), _) if errors.is_empty() => {
                apart += 1;
                writeln!(io::stdout(), "{name}:{first}: we take it, MLIR says: {said}")?;
            }
            (None, Some(finding)) => {
                apart += 1;
                let at = finding.at.map_or((0, 0), |at| m2m_lattice::finding::line_column(own.as_bytes(), at));
                writeln!(
                    io::stdout(),
                    "{name}:{}: MLIR takes it, we say: {}",
                    first + at.0 as usize - 1,
                    finding.message
                )?;
            }
            (None, None) if !errors.is_empty() => stricter += 1,
            _ => both += 1,
        }
        first += lines;
    }
    writeln!(io::stdout(), "{both} judged alike, {stricter} refused by rules that are not of MLIR, {apart} apart")?;
    if apart > 0 { Err(io::Error::other("MLIR and we do not agree")) } else { Ok(()) }
}

/// Half of the cases choose from the table, half are files with a few bytes changed, cut, repeated or swapped for pieces.
fn fuzz(seconds: u64, folder: &Path) -> io::Result<()> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    let files: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file.path())).collect::<io::Result<_>>()?;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let mut dice = Dice(std::process::id().into());
    let mut cases = 0u64;
    while std::time::Instant::now() < end {
        let mut bytes = match (dice.below(2), files.get(dice.below(files.len()))) {
            (1, Some(file)) => file.clone(),
            _ => b"\x01choose".iter().copied().chain((0..40 + dice.below(60)).map(|_| dice.below(256) as u8)).collect(),
        };
        let is_choice = bytes.starts_with(b"\x01");
        for _ in 0..if is_choice { 0 } else { 1 + dice.below(4) } {
            let at = dice.below(bytes.len());
            let end = (at + dice.below(9)).min(bytes.len());
            let piece = PIECES.get(dice.below(PIECES.len())).copied().unwrap_or("").as_bytes();
            match dice.below(4) {
                0 => drop(bytes.splice(at..end, [])),
                1 => drop(bytes.splice(at..end, piece.iter().copied())),
                2 => bytes.extend_from_within(at..end),
                _ => bytes.get_mut(at..end).unwrap_or_default().iter_mut().for_each(|byte| *byte ^= 1 << (cases % 8)),
            }
        }
        // What brings the body down is there to be read.
        std::fs::write(folder.with_extension("last"), &bytes)?;
        m2m_lattice::fuzz::graph(&bytes);
        cases += 1;
    }
    writeln!(io::stdout(), "{cases} cases in {seconds} s")
}
