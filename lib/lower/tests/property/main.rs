//! Random calls of every family of operators, with shapes that have sizes of 0 and 1, dtypes and attributes as they come:
//! what the lowered module gives is held to what libtorch gives, in the case's dtypes, or in f64 where those are f32. Which
//! calls are legal, and what the types of their results are, libtorch says.
//!
//! Environment: `M2M_PROPERTY_CASES`, of each family; `M2M_PROPERTY_SEED`; `M2M_PROPERTY_CASE`, the only case to run.
//! Without libtorch the families are ignored, unless `M2M_NEED_LIBTORCH` makes that a failure.

#![expect(clippy::print_stderr, reason = "a test says why it does not run")]

mod compare;
mod dice;
mod draw;
mod exact;
mod families;
mod judge;

use dice::Dice;
use draw::{Case, Draw};
use families::{FAMILIES, Family};
use libtest_mimic::{Arguments, Failed, Trial};
use m2m_torch::Engine;
use std::process::ExitCode;

/// Cases of a family.
const CASES: u64 = 24;

/// How often a call that is not legal is drawn anew.
const ATTEMPTS: u64 = 40;

/// Cases in one module.
const BATCH: usize = 12;

fn main() -> ExitCode {
    let is_needed = std::env::var_os("M2M_NEED_LIBTORCH").is_some();
    let is_ignored = match Engine::start(Some(1)) {
        Err(error) if !is_needed => {
            eprintln!("operators are not held to libtorch: {error}");
            true
        }
        _ => false,
    };
    let trial = |family: &'static Family| Trial::test(family.name, move || check(family)).with_ignored_flag(is_ignored);
    libtest_mimic::run(&Arguments::from_args(), FAMILIES.iter().map(trial).collect()).exit_code()
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}; expected a number")))
}

/// Holds the cases of a family to libtorch.
fn check(family: &Family) -> Result<(), Failed> {
    let engine = Engine::start(Some(1)).map_err(|error| error.to_string())?;
    let seed = number("M2M_PROPERTY_SEED").unwrap_or(1);
    let numbers: Vec<u64> = match number("M2M_PROPERTY_CASE") {
        Some(only) => vec![only],
        None => (0..number("M2M_PROPERTY_CASES").unwrap_or(CASES)).collect(),
    };
    let mut cases = Vec::new();
    for number in numbers {
        cases.push((number, drawn(&engine, family, seed, number)?));
    }
    let mut wrong = Vec::new();
    for batch in cases.chunks(BATCH) {
        let verdicts = judge::judge(&batch.iter().map(|(_, case)| case).collect::<Vec<_>>());
        for ((number, case), why) in batch.iter().zip(verdicts) {
            let Some(why) = why else { continue };
            let again = format!("M2M_PROPERTY_SEED={seed} M2M_PROPERTY_CASE={number}");
            wrong.push(format!("{again}: {}: {why}", case.shown()));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// A case that libtorch takes.
fn drawn(engine: &Engine, family: &Family, seed: u64, number: u64) -> Result<Case, Failed> {
    let mut illegal = String::new();
    for attempt in 0..ATTEMPTS {
        let dice = Dice::new(seed, family.name, number, attempt);
        let mut draw = Draw::new(engine, dice, format!("c{number}_"));
        match (family.draw)(&mut draw) {
            Ok(()) => return draw.finish().ok_or_else(|| "a case that calls nothing".into()),
            Err(why) => illegal = why.0,
        }
    }
    Err(format!("libtorch takes none of {ATTEMPTS} calls, the last: {illegal}").into())
}
