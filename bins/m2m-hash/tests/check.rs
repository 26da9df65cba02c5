//! m2m-hash --check: what it finds, and that nothing wrong passes.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod tool;

use m2m_digest::{BoundFile, Digest, Receipt, reseal};
use std::fs;
use std::path::Path;
use tool::{hash, text};

const FILES: [(&str, &str); 3] = [("meta.json", "{\"a\":1}\n"), ("model.mlir", "module {}\n"), ("trace.ndjson", "…\n")];

fn bundle(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let bind = |(name, content): (&str, &str)| {
        fs::write(folder.join(name), content).unwrap();
        let sha256 = Digest::of(content.as_bytes()).to_string();
        BoundFile { bytes: content.len() as u64, name: name.into(), sha256 }
    };
    let receipt = Receipt::new(FILES.map(bind).to_vec());
    fs::write(folder.join("receipt.json"), receipt.to_bytes().unwrap()).unwrap();
}

/// Runs `--check bundle` after `change`; stdout without the part after the kind of finding, and the status.
fn after(change: impl Fn(&Path)) -> (String, Option<i32>) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("bundle");
    bundle(&folder);
    change(&folder);
    let out = hash(dir.path(), &["--check", "bundle"]);
    (text(&out.stdout), out.status.code())
}

#[test]
fn a_whole_bundle_passes() {
    let (out, status) = after(|_| ());
    assert!(out.starts_with("bundle: ok: 3 files, 22 bytes, receipt sha256 "), "{out}");
    assert_eq!(status, Some(0));
}

#[test]
fn each_difference_is_listed() {
    let (out, status) = after(|folder| {
        fs::write(folder.join("model.mlir"), "module {?\n").unwrap();
        fs::write(folder.join("extra"), "").unwrap();
        fs::create_dir(folder.join("none")).unwrap();
        fs::remove_file(folder.join("meta.json")).unwrap();
        fs::rename(folder.join("trace.ndjson"), folder.join("../trace")).unwrap();
        std::os::unix::fs::symlink("../trace", folder.join("trace.ndjson")).unwrap();
    });
    let kinds: Vec<_> = out.lines().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(" ")).collect();
    let want = ["extra added", "meta.json missing", "model.mlir changed", "none added", "trace.ndjson symlinked"];
    assert_eq!((kinds, status), (want.map(String::from).to_vec(), Some(1)), "{out}");
}

#[test]
fn a_receipt_may_not_reach_outside() {
    let (out, status) = after(|folder| {
        fs::write(folder.join("../outside"), "x").unwrap();
        let sha256 = Digest::of(b"x").to_string();
        let receipt = Receipt::new(vec![BoundFile { bytes: 1, name: "../outside".into(), sha256 }]);
        fs::write(folder.join("receipt.json"), receipt.to_bytes().unwrap()).unwrap();
    });
    assert!(out.contains("../outside: unsafe name"), "{out}");
    assert_eq!(status, Some(1));
}

#[test]
fn without_a_receipt_there_is_no_answer() {
    let (out, status) = after(|folder| fs::remove_file(folder.join("receipt.json")).unwrap());
    assert_eq!((out.as_str(), status), ("", Some(2)));
    let (_, status) = after(|folder| {
        fs::rename(folder.join("receipt.json"), folder.join("../r")).unwrap();
        std::os::unix::fs::symlink("../r", folder.join("receipt.json")).unwrap();
    });
    assert_eq!(status, Some(2), "a receipt that is a link is not believed");
}

#[test]
fn lists_are_checked_alone_and_against_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("d");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a"), "1").unwrap();
    let list = hash(dir.path(), &["d", "-o", "list"]);
    assert_eq!(list.status.code(), Some(0));
    let run = |args: &[&str], cwd: &Path| hash(cwd, args).status.code();
    assert_eq!(run(&["--check", "list", "d"], dir.path()), Some(0));
    assert_eq!(run(&["--check", "../list"], &folder), Some(0));
    assert_eq!(run(&["--check", "list"], dir.path()), Some(1), "names are relative to the working directory");
    fs::write(folder.join("b"), "2").unwrap();
    assert_eq!(run(&["--check", "list", "d"], dir.path()), Some(1), "an added file");
    assert_eq!(run(&["--check", "../list"], &folder), Some(0), "only what is listed");
    fs::remove_file(folder.join("b")).unwrap();
    fs::rename(dir.path().join("list"), folder.join("list")).unwrap();
    assert_eq!(run(&["--check", "d/list", "d"], dir.path()), Some(0), "the list may lie in the folder");
    assert_eq!(run(&["--check", "/dev/null"], dir.path()), Some(2), "an empty list says nothing");
}

#[test]
fn a_stream_is_read_to_its_end() {
    let stream = "{\"record\":\"begin\",\"schema\":\"m2m.stream.v1\"}\n{\"record\":\"end\",\"status\":\"ok\"}\n";
    let unsealed = tool::with_stdin(&["--check"], stream.as_bytes());
    assert_eq!(unsealed.status.code(), Some(1), "{}", text(&unsealed.stderr));
    let sealed = tool::with_stdin(&["--seal"], stream.as_bytes());
    assert_eq!(sealed.stdout, reseal(stream.as_bytes()).unwrap());
    let whole = tool::with_stdin(&["--check", "-"], &sealed.stdout);
    assert!(text(&whole.stdout).starts_with("<stdin>: ok: 1 records, status ok, sha256 "), "{}", text(&whole.stdout));
    for cut in 1..sealed.stdout.len() {
        let out = tool::with_stdin(&["--check"], &sealed.stdout[..cut]);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "cut at {cut}");
    }
}

/// A small generator (splitmix64), so that a failure can be repeated.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Flips, cuts, grows or overwrites a file at random; true where its bytes differ afterwards.
fn corrupt(bytes: &mut Vec<u8>, state: &mut u64) -> bool {
    let before = bytes.clone();
    let at = usize::try_from(next(state)).unwrap_or(0) % bytes.len().max(1);
    let byte = (next(state) & 0xff) as u8;
    match next(state) % 5 {
        0 => bytes[at] ^= 1 << (byte & 7),
        1 => bytes[at] = byte,
        2 => bytes.truncate(at),
        3 => bytes.insert(at, byte),
        _ => drop(bytes.remove(at)),
    }
    *bytes != before
}

/// The check of the library is the one that the program runs; in process, ten thousand take a second.
#[test]
fn ten_thousand_corruptions_are_all_found() {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let folder = dir.path().join("bundle");
    bundle(&folder);
    let names = ["meta.json", "model.mlir", "trace.ndjson", "receipt.json"];
    let whole = names.map(|name| fs::read(folder.join(name)).unwrap());
    let mut state = 1;
    let mut wrong = 0;
    for round in 0..10_000 {
        let which = usize::try_from(next(&mut state) % 4).unwrap();
        let mut bytes = whole[which].clone();
        let differs = corrupt(&mut bytes, &mut state);
        fs::write(folder.join(names[which]), &bytes).unwrap();
        wrong += usize::from(passes(&folder) == differs);
        fs::write(folder.join(names[which]), &whole[which]).unwrap();
        assert_eq!(wrong, 0, "round {round}, {}", names[which]);
    }
}

fn passes(folder: &Path) -> bool {
    let own = m2m_digest::Name::from_bytes("receipt.json");
    let scope = m2m_digest::Scope::Whole { except: Some(&own), empty_folders: true };
    let bytes = fs::read(folder.join("receipt.json")).unwrap();
    let entries = Receipt::from_bytes(&bytes).and_then(|receipt| receipt.entries());
    entries.is_ok_and(|entries| m2m_digest::check(folder, &entries, scope, &|_| ()).unwrap().is_clean())
}
