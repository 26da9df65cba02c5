//! What m2m-bundle refuses, and that it then leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod sample;

use m2m_record::{Data, Status};
use sample::{arguments, bundle, file, module, passes, prepare, raw_file, stream, stream_of, text};
use std::fs;
use std::path::Path;

fn raw_record() -> m2m_record::File {
    file("f0", "raw.bin", "raw", raw_file().len() as u64)
}

/// Runs on `input`, expects status 2 and an empty folder, and gives the one message.
fn refused(input: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("raw.bin"), raw_file()).unwrap();
    let out = bundle(dir.path(), &["-o", "out"], input);
    let message = text(&out.stderr);
    assert_eq!((out.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something was left behind");
    message
}

#[test]
fn a_cut_stream_leaves_nothing() {
    let whole = stream("raw.bin");
    let dir = sample::scratch();
    fs::write(dir.path().join("raw.bin"), raw_file()).unwrap();
    let target = dir.path().join("out");
    let options = m2m_bundle::Options { root: Some(dir.path()), force: false, tool: ("t", "1") };
    for cut in 0..whole.len() {
        let result = m2m_bundle::write(&whole[..cut], &target, options, &|_, _| ());
        assert!(result.is_err(), "cut at {cut}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "cut at {cut}");
    }
    assert!(refused(&whole[..whole.len() - 1]).starts_with("m2m-bundle: <stdin>:"));
    assert!(refused(b"").contains("empty input"));
}

#[test]
fn a_stream_must_be_good_for_a_bundle() {
    let without = stream_of(raw_record(), None, false, Status::Ok);
    assert!(refused(&without).contains("no module record"));
    let failed = stream_of(raw_record(), Some(module(arguments())), false, Status::Failed);
    assert!(refused(&failed).contains("status failed"));
    let whole = text(&stream("raw.bin"));
    let (before, _) = whole.trim_end().rsplit_once('\n').unwrap();
    let unsealed = format!("{before}\n{{\"record\":\"end\",\"status\":\"ok\"}}\n");
    assert!(refused(unsealed.as_bytes()).contains("m2m-hash --seal"));
}

#[test]
fn a_module_must_be_the_one_that_is_stated() {
    let mut other = module(arguments());
    other.text = Some("module {}".into());
    let message = refused(&stream_of(raw_record(), Some(other), false, Status::Ok));
    assert!(message.contains("sha256"), "{message}");
}

#[test]
fn missing_data_is_named() {
    let mut list = arguments();
    list[0].data = Some(Data::Missing);
    list[2].data = None;
    let message = refused(&stream_of(raw_record(), Some(module(list)), false, Status::Ok));
    assert!(message.contains("without the data of w, t (2 in all)"), "{message}");
}

#[test]
fn another_file_than_the_stream_names_is_refused() {
    let gone = stream_of(file("f0", "gone.bin", "raw", 54), Some(module(arguments())), false, Status::Ok);
    assert!(refused(&gone).contains("gone.bin"));
    let shorter = stream_of(file("f0", "raw.bin", "raw", 53), Some(module(arguments())), false, Status::Ok);
    assert!(refused(&shorter).contains("the stream says 53"));
}

#[test]
fn tensors_must_be_the_ones_that_are_stated() {
    let whole = text(&stream("raw.bin"));
    let stated = |digest: &str| {
        let edited = whole.replace("\"storage\":0}}\n", &format!("\"storage\":0}},\"sha256\":\"{digest}\"}}\n"));
        m2m_digest::reseal(edited.as_bytes()).unwrap()
    };
    let right = m2m_digest::Digest::of(&raw_file()[..12]).to_string();
    let message = refused(&stated(&right));
    assert!(message.contains("out_0: the stream says sha256"), "only y0 has other data: {message}");
}

/// A zip of one stored entry; the data begin at byte 35.
fn archive(data: &[u8]) -> Vec<u8> {
    let (name, size) = (b"w.bin", (data.len() as u32).to_le_bytes());
    let crc = crc32(data).to_le_bytes();
    let fields = [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &crc, &size, &size, &[5, 0, 0, 0]].concat();
    let local = [&b"PK\x03\x04"[..], &fields, name, data].concat();
    let central = [&b"PK\x01\x02\x14\0"[..], &fields, &[0; 14], name].concat();
    let (start, length) = ((local.len() as u32).to_le_bytes(), (central.len() as u32).to_le_bytes());
    let end = [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &length, &start, &[0, 0]].concat();
    [local, central, end].concat()
}

/// CRC-32 as the zip format defines it, bit by bit.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { (c >> 1) ^ 0xedb8_8320 } else { c >> 1 })
    })
}

fn from_archive(folder: &Path, flip: Option<usize>) -> std::process::Output {
    let mut bytes = archive(&raw_file()[..48]);
    if let Some(at) = flip {
        bytes[at] ^= 1;
    }
    fs::write(folder.join("m.pt2"), &bytes).unwrap();
    let mut list = arguments();
    list.truncate(1);
    let little = m2m_record::ByteOrder::Little;
    list[0].data = Some(sample::range(35, 24, None, little));
    let source = file("f0", "m.pt2", "pt2", bytes.len() as u64);
    bundle(folder, &["-o", "out"], &stream_of(source, Some(module(list)), false, Status::Ok))
}

#[test]
fn a_flip_inside_a_weight_of_an_archive_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let out = from_archive(dir.path(), None);
    assert_eq!((text(&out.stderr).as_str(), out.status.code()), ("", Some(0)));
    for at in 35..35 + 48 {
        let dir = tempfile::tempdir().unwrap();
        let out = from_archive(dir.path(), Some(at));
        assert_eq!(out.status.code(), Some(2), "byte {at}");
        assert!(text(&out.stderr).contains("w.bin"), "{}", text(&out.stderr));
        assert!(!dir.path().join("out").exists());
    }
}

#[test]
fn what_is_there_is_replaced_only_by_force() {
    let dir = tempfile::tempdir().unwrap();
    let input = prepare(dir.path());
    let target = dir.path().join("out");
    fs::create_dir(&target).unwrap();
    assert_eq!(bundle(dir.path(), &["-o", "out"], &input).status.code(), Some(0), "an empty folder is free");
    let out = bundle(dir.path(), &["-o", "out"], &input);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).starts_with("m2m-bundle: out: error: exists"), "{}", text(&out.stderr));
    fs::write(target.join("mine"), "x").unwrap();
    assert_eq!(bundle(dir.path(), &["-o", "out", "--force"], &input[..100]).status.code(), Some(2));
    assert!(target.join("mine").exists(), "a failure replaces nothing");
    assert_eq!(bundle(dir.path(), &["-o", "out", "--force"], &input).status.code(), Some(0));
    assert!(passes(&target) && !target.join("mine").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    assert_eq!(bundle(dir.path(), &["-o", ".", "--force"], &input).status.code(), Some(2));
    assert_eq!(bundle(dir.path(), &[], &input).status.code(), Some(2), "-o is required");
}

#[test]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_m2m-bundle"));
    let out = command.arg("--help").stdout(full).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
}

/// A small generator (splitmix64), so that a failure can be repeated.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 1) as usize
}

/// Only what means the same, such as a space in the last line, may pass; and then the trace is the same.
#[test]
fn ten_thousand_corrupted_streams_make_no_other_bundle() {
    let dir = sample::scratch();
    let whole = prepare(dir.path());
    let target = dir.path().join("out");
    let options = m2m_bundle::Options { root: Some(dir.path()), force: true, tool: ("t", "1") };
    m2m_bundle::write(&whole[..], &target, options, &|_, _| ()).unwrap();
    let before = sample::contents(&target);
    let mut state = 2;
    for round in 0..10_000 {
        let mut bytes = whole.clone();
        let at = next(&mut state) % bytes.len();
        match next(&mut state) % 4 {
            0 => bytes[at] ^= 1 << (next(&mut state) % 8),
            1 => bytes.insert(at, next(&mut state) as u8),
            2 => bytes.truncate(at),
            _ => drop(bytes.remove(at)),
        }
        if m2m_bundle::write(&bytes[..], &target, options, &|_, _| ()).is_ok() {
            assert_eq!(sample::contents(&target), before, "round {round}: byte {at}");
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "something was left behind");
}
