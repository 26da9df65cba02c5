//! Ten thousand damaged files, by the tools themselves with a gibibyte of address space: nothing may panic, be killed,
//! leave a file behind after an error, or accept what is not what it was. M2M_CORRUPTIONS sets another number.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::path::Path;
use std::process::{Command, Output};

use m2m_tests::{corrupt, tools};

const TOTAL: u64 = 10_000;
const ADDRESS_SPACE: &str = "--as=1073741824";

/// A part of the total, spread over the cores; `check` gets a seed and a folder of its own thread, and says what is wrong.
fn many(share: (u64, u64), check: impl Fn(u64, &Path) -> Result<(), String> + Sync) {
    let total = std::env::var("M2M_CORRUPTIONS").map_or(TOTAL, |text| text.parse().unwrap());
    let (from, to) = (total * share.0 / 10, total * share.1 / 10);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        let work = |thread| {
            let folder = tools::work_dir().unwrap();
            let seeds = (from + thread..to).step_by(threads as usize);
            let found =
                seeds.filter_map(|seed| check(seed, folder.path()).err().map(|text| format!("seed {seed}: {text}")));
            found.collect::<Vec<_>>()
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        wrong.extend(handles.into_iter().flat_map(|handle| handle.join().unwrap()));
    });
    assert!(
        wrong.is_empty(),
        "{} of {} went wrong:\n{}",
        wrong.len(),
        to - from,
        wrong[..wrong.len().min(10)].join("\n")
    );
}

fn limited(tool: &str, args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new("prlimit");
    command.arg(ADDRESS_SPACE).arg("--").arg(tools::tool(tool).unwrap()).args(args);
    tools::run_with(command, folder, b"").unwrap()
}

/// Status 0, or an error told in the one form of diagnostics.
fn orderly(tool: &str, output: &Output) -> Result<bool, String> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(true),
        Some(1 | 2) if said.starts_with(&format!("{tool}: ")) && said.contains("error: ") => Ok(false),
        _ => Err(format!("{}: {said}", output.status)),
    }
}

/// The lines of a stream that tell of the program, not of the file that it was in.
fn story(stream: &[u8]) -> Vec<&[u8]> {
    let told = |line: &&[u8]| {
        let about_file = [&b"{\"record\":\"tool\""[..], b"{\"record\":\"end\"", b"{\"record\":\"file\""];
        !about_file.iter().any(|kind| line.starts_with(kind))
    };
    stream.split(|byte| *byte == b'\n').filter(told).collect()
}

const CAPTURE: [&str; 5] = ["bad.pt2", "--weights", "bad.safetensors", "-o", "bad.ndjson"];

fn damaged_programs_are_refused_or_read_as_they_were() {
    let mut good = Vec::new();
    for fixture in ["mlp", "tied_shared", "layout_flat", "layout_pickled", "cond"] {
        let folder = tools::work_dir().unwrap();
        let bytes = std::fs::read(tools::fixtures().join(fixture).join("model.pt2")).unwrap();
        std::fs::write(folder.path().join("bad.pt2"), &bytes).unwrap();
        let output = limited("m2m-capture", &CAPTURE, folder.path());
        assert!(output.status.success(), "{fixture}: {}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        good.push((fixture, bytes, read("bad.ndjson"), read("bad.safetensors")));
    }
    many((0, 4), |seed, folder| {
        let (fixture, bytes, stream, weights) = &good[seed as usize % good.len()];
        let path = |name: &str| folder.join(name);
        std::fs::write(path("bad.pt2"), corrupt::damage(bytes, seed)).unwrap();
        for name in ["bad.ndjson", "bad.safetensors"] {
            let _ = std::fs::remove_file(path(name));
        }
        let output = limited("m2m-capture", &CAPTURE, folder);
        let accepted = orderly("m2m-capture", &output).map_err(|text| format!("{fixture}: {text}"))?;
        if !accepted {
            let left = ["bad.ndjson", "bad.safetensors"].iter().find(|name| path(name).exists());
            return left.map_or(Ok(()), |name| Err(format!("{fixture}: {name} was left behind after an error")));
        }
        if std::fs::read(path("bad.safetensors")).unwrap() != *weights {
            return Err(format!("{fixture}: accepted with other weights"));
        }
        let found = std::fs::read(path("bad.ndjson")).unwrap();
        if story(&found) == story(stream) { Ok(()) } else { Err(format!("{fixture}: accepted as another program")) }
    });
}

fn damaged_streams_are_refused() {
    let folder = tools::work_dir().unwrap();
    let streams = ["mlp", "cond", "dyn_derived"].map(|fixture| tools::capture(fixture, folder.path()).unwrap());
    many((4, 7), |seed, folder| {
        let stream = &streams[seed as usize % streams.len()];
        std::fs::write(folder.join("bad.ndjson"), corrupt::damage(stream, seed)).unwrap();
        match orderly("m2m-hash", &limited("m2m-hash", &["--check", "bad.ndjson"], folder))? {
            true => Err("a damaged stream was accepted".into()),
            false => Ok(()),
        }
    });
}

/// Copies a folder and damages one of its files.
fn damaged_copy(from: &Path, to: &Path, seed: u64) -> String {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(from).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    names.sort();
    let chosen = names[seed as usize / 7 % names.len()].clone();
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for name in names {
        let bytes = std::fs::read(from.join(&name)).unwrap();
        std::fs::write(to.join(&name), if name == chosen { corrupt::damage(&bytes, seed) } else { bytes }).unwrap();
    }
    chosen
}

fn damaged_bundles_are_refused() {
    let folder = tools::work_dir().unwrap();
    let stream = tools::capture("mlp", folder.path()).unwrap();
    let lowered = tools::run::<&str>("m2m-lower", &[], folder.path(), &stream).unwrap();
    let lowered = tools::expect_success("m2m-lower", lowered).unwrap();
    let bundled = tools::run("m2m-bundle", &["-o", "good"], folder.path(), &lowered).unwrap();
    tools::expect_success("m2m-bundle", bundled).unwrap();
    let good = folder.path().join("good");
    many((7, 10), |seed, folder| {
        let chosen = damaged_copy(&good, &folder.join("bad"), seed);
        match orderly("m2m-hash", &limited("m2m-hash", &["--check", "bad"], folder))? {
            true => Err(format!("a bundle whose {chosen} is damaged was accepted")),
            false => Ok(()),
        }
    });
}

m2m_tests::suite! {
    plain damaged_programs_are_refused_or_read_as_they_were,
    plain damaged_streams_are_refused,
    mlir damaged_bundles_are_refused,
}
