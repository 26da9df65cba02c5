//! Event dumps and records, and every view of a profile.

use std::io;

use m2m_record::{TimeScale, Writer};

use crate::capture::{Capture, Methods, Names, Occurrences, Options, Source, write_raw_dump, write_raw_record};
use crate::etdump::Dump;
use crate::etrecord::{EtRecord, Instruction, Maps, SourceGraph, SourceNode};
use crate::view::{chrome, compare, explorer, modules, page, pprof, table};

/// Reads `bytes` as an ETDump, joins it to a small graph, and draws every view of it.
pub fn etdump(bytes: &[u8]) {
    let mut out = Writer::resume(io::sink(), Default::default(), 0);
    let Ok(dump) = Dump::open(bytes) else { return };
    write_raw_dump(&dump, &mut out).expect("a sink takes every byte");
    for (occurrences, target) in [(Occurrences::Last, TimeScale::Ms), (Occurrences::All, TimeScale::Ns)] {
        let options = Options { source: TimeScale::Ns, target, occurrences };
        let dump = Dump::open(bytes).expect("it was read before");
        let Ok(capture) = Capture::new(dump, small_source(), options) else { return };
        capture.write(&mut out).expect("a sink takes every byte");
        if let Ok(logged) = capture.logged(Some(bytes)) {
            capture.write_logged(&logged, Names::Nowhere, &mut out).expect("a sink takes every byte");
            capture.write_tensors(&logged, bytes, &mut io::sink()).expect("tensors inside the buffer can be written");
        }
        draw(&capture).expect("a sink takes every byte");
    }
}

fn draw(capture: &Capture<'_>) -> io::Result<()> {
    let mut out = io::sink();
    for form in [table::Form::Tsv, table::Form::Csv, table::Form::Markdown] {
        table::write(capture, form, &mut out)?;
        modules::write_table(capture, form, &mut out)?;
    }
    chrome::write(capture, &mut out)?;
    pprof::write(capture, &mut out)?;
    explorer::write(capture, &mut out)?;
    page::write(capture, "fuzz", &mut out)?;
    let all = compare::compare(capture, capture, 0.03);
    assert!(all.iter().all(|found| found.change.is_none_or(|change| change.0 == 0.0)), "a dump differs from itself");
    compare::write_table(&all, table::Form::Tsv, &mut out)
}

/// A source that explains the first instructions.
fn small_source() -> Source {
    let mut source = Source { has_delegates: true, ..Source::labelled(Some("forward")) };
    for number in 0..4 {
        let handles = Some(vec![i64::from(number) + 1, 1]);
        source.instructions.insert(number, Instruction { handles, ..Instruction::default() });
        let name = format!("n{number}");
        let node = SourceNode { target: "aten.add.Tensor".into(), name, ..SourceNode::default() };
        source.handles.insert(i64::from(number) + 1, vec![source.nodes.len()]);
        source.nodes.push(node);
    }
    source
}

/// Reads `bytes` as an ETRecord, or as one of the texts that are in one.
pub fn etrecord(bytes: &[u8]) {
    if !bytes.starts_with(b"PK") {
        let mut maps = Maps::default();
        let _ = SourceGraph::parse("fuzz", bytes).map(|graph| graph.by_handle());
        let _ = maps.read_handles(bytes);
        let _ = maps.read_delegates(bytes);
        let _ = maps.read_outputs(bytes);
        return;
    }
    let Ok(record) = EtRecord::open(bytes) else { return };
    let mut out = Writer::resume(io::sink(), Default::default(), 0);
    let _ = write_raw_record(&record, &mut out);
    for method in record.maps().methods() {
        if let Ok(source) = Source::from_record(&record, Methods { asked: Some(method), option: "--method" }) {
            source.write(&mut out).expect("a sink takes every byte");
        }
    }
}
