//! Event dumps: the fixtures are what `make-etdump` makes, damage is refused, views are sound, and where M2M_EXECUTORCH names
//! a folder of samples with the answers of the official readers, `scripts/check-etdump` finds every field of every answer.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::collections::HashMap;
use std::process::Command;

use m2m_executorch::capture::{Capture, Methods, Options, Source};
use m2m_executorch::etdump::Dump;
use m2m_executorch::etrecord::EtRecord;
use m2m_executorch::flatbuffer::write::{Object, Vtables, finish};
use m2m_executorch::view::{compare, page, pprof};
use m2m_tests::{etdump, tools};

fn fixture(name: &str) -> Vec<u8> {
    etdump::fixtures().into_iter().find(|fixture| fixture.0 == name).unwrap().1
}

#[test]
fn the_fixtures_are_what_make_etdump_makes() {
    for (name, made) in etdump::fixtures() {
        let kept = std::fs::read(tools::fixtures().join("etdump").join(name)).unwrap();
        assert!(kept == made, "tests/fixtures/etdump/{name} differs; `make-etdump tests/fixtures/etdump` rewrites it");
    }
}

#[test]
fn every_truncation_is_refused() {
    let (dump, record) = (fixture("values.etdump"), fixture("net.etrecord"));
    for len in 0..dump.len() {
        Dump::open(&dump[..len]).expect_err("a cut dump");
    }
    for len in 0..record.len() {
        EtRecord::open(&record[..len]).map(drop).expect_err("a cut record");
    }
}

#[test]
fn every_byte_of_a_record_is_checked() {
    let record = fixture("net.etrecord");
    let graph = "edge_dialect_exported_program/forward";
    let at = record.windows(12).position(|window| window == b"graph_module").unwrap();
    let mut wrong = record.clone();
    wrong[at] ^= 1;
    let error = EtRecord::open(&wrong).unwrap().graph(graph).unwrap_err().to_string();
    assert!(error.contains("CRC-32") && error.contains(graph), "{error}");
}

#[test]
fn errors_name_byte_table_and_field() {
    let dump = fixture("values.etdump");
    let name = dump.windows(8).rposition(|window| window == b"Execute\0").unwrap();
    let mut wrong = dump.clone();
    wrong[name] = 0xff;
    let error = Dump::open(&wrong).unwrap_err().to_string();
    assert_eq!(error, format!("byte {}: RunData.name: a string of 7 bytes is not UTF-8 from its byte 0 on", name - 4));
}

#[test]
fn an_event_is_exactly_one_thing() {
    let scope = || Object::new().with(6, 1u64).with(7, 2u64);
    let error = |event: Object| {
        let run = Object::new().with(0, "Execute").with(3, vec![event]);
        let body = finish(&Object::new().with(1, vec![run]), b"ED00", 0, Vtables::After);
        let file = [(body.len() as u32).to_le_bytes().as_slice(), &body].concat();
        Dump::open(&file).unwrap_err().to_string()
    };
    let none = error(Object::new());
    assert!(none.contains("run 0, event 0: 0 of profile_event, allocation_event and debug_event"), "{none}");
    let two = error(Object::new().with(0, scope()).with(2, Object::new()));
    assert!(two.contains("run 0, event 0: 2 of profile_event"), "{two}");
    let empty = error(Object::new().with(2, Object::new()));
    assert!(empty.contains("a debug event without its debug_entry"), "{empty}");
}

fn joined<'a>(dump: &'a [u8], record: &[u8]) -> Capture<'a> {
    let record = EtRecord::open(record).unwrap();
    let source = Source::from_record(&record, Methods { asked: None, option: "--method" }).unwrap();
    Capture::new(Dump::open(dump).unwrap(), source, Options::default()).unwrap()
}

/// The fields of a message of a protocol buffer: number and value, of which a varint is eight bytes here.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let varint = |bytes: &mut &[u8]| {
        let len = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let (head, rest) = bytes.split_at(len);
        *bytes = rest;
        head.iter().rev().fold(0u64, |x, byte| x << 7 | u64::from(byte & 0x7f))
    };
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => varint(&mut bytes).to_le_bytes().to_vec(),
            2 => {
                let len = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(len);
                bytes = rest;
                value.to_vec()
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, value));
    }
    found
}

#[test]
fn the_pprof_profile_holds_all_time_once() {
    let (dump, record) = (fixture("net.etdump"), fixture("net.etrecord"));
    let capture = joined(&dump, &record);
    let mut bytes = Vec::new();
    pprof::write(&capture, &mut bytes).unwrap();
    let profile = fields(&bytes);
    let strings: Vec<String> = profile
        .iter()
        .filter(|(number, _)| *number == 6)
        .map(|(_, text)| String::from_utf8(text.clone()).unwrap())
        .collect();
    assert_eq!(strings[0], "");
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let all = |of: u64| profile.iter().filter(move |(number, _)| *number == of).map(|(_, inner)| fields(inner));
    let names: HashMap<u64, String> = all(5)
        .map(|function| {
            let get = |of| number(&function.iter().find(|(number, _)| *number == of).unwrap().1);
            (get(1), strings[get(2) as usize].clone())
        })
        .collect();
    // A run takes 3000 ticks, and 100, 20 and 0 more; loading takes 32333.
    let packed = |bytes: &[u8]| fields(&[[0x0a, bytes.len() as u8].as_slice(), bytes].concat())[0].1.clone();
    let mut total = 0;
    let mut stacks = Vec::new();
    for sample in all(2) {
        let list = |of: u64| {
            let bytes = packed(&sample.iter().find(|(number, _)| *number == of).unwrap().1);
            let mut numbers = Vec::new();
            let mut x = 0;
            let mut shift = 0;
            for byte in bytes {
                x |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    numbers.push(x);
                    (x, shift) = (0, 0);
                }
            }
            numbers
        };
        total += list(2)[1];
        stacks.push(list(1).iter().map(|id| names[id].clone()).collect::<Vec<_>>().join(" < "));
    }
    assert_eq!(total, 3 * 3000 + 120 + 32_333);
    assert!(stacks.contains(
        &"native_call_convolution.out @0 < stem.conv (CONV) < stem (STEM) < (model) (Net) < Execute".to_owned()
    ));
}

#[test]
fn foreign_text_does_not_break_out_of_the_page() {
    let evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\u{202e}";
    let scope = Object::new().with(0, evil).with(1, 0i32).with(2, 0i32).with(6, 10u64).with(7, 30u64);
    let run = Object::new().with(0, evil).with(3, vec![Object::new().with(0, scope)]);
    let body = finish(&Object::new().with(1, vec![run]), b"ED00", 0, Vtables::After);
    let file = [(body.len() as u32).to_le_bytes().as_slice(), &body].concat();
    let source = Source::labelled(Some(evil));
    let capture = Capture::new(Dump::open(&file).unwrap(), source, Options::default()).unwrap();
    let mut out = Vec::new();
    page::write(&capture, evil, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches("<script").count(), 2, "the page's own scripts alone");
    assert!(!text.contains("<img") && !text.contains("<!--"));
    let json = text.split("<script type=\"application/json\">").nth(1).unwrap().split("</script>").next().unwrap();
    let chart: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(chart["events"][0]["label"], evil);
    assert_eq!(chart["runs"][0]["scopes"][0], serde_json::json!([0, 0.0, 0.00002, 0]));
}

#[test]
fn a_large_dump_is_read_in_full() {
    let (dump, record) = (etdump::large(300), etdump::large_record());
    let capture = joined(&dump, &record);
    let block = &capture.blocks[0];
    assert_eq!((capture.blocks.len(), block.runs.len(), block.events.len()), (1, 300, 19));
    assert!(block.events.iter().all(|event| event.samples.len() == 300));
    assert_eq!(block.agreement.map(|found| (found.checked, found.matched)), Some((9, 9)));
    // Each run's outermost scope is open for 500100 ns.
    assert!(compare::run_times(&capture, block).iter().all(|time| *time == 0.5001));
}

#[test]
fn the_official_readers_say_the_same() {
    let Some(folder) = std::env::var_os("M2M_EXECUTORCH") else { return };
    let mut command = Command::new("python3");
    command.arg(tools::workspace().join("scripts/check-etdump")).arg(folder).arg(tools::tool("m2m-etdump").unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
