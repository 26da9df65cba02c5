//! Bodies of the fuzz targets: any bytes may be refused, none may panic, hang or take memory beyond their size.

mod profile;

use crate::pte::extract::{Selection, plan, plan_single};
use crate::pte::records::{Stream, Wanted};
use crate::pte::{DataFile, Program, Stored, diff, raw, view};
use m2m_record::Kwargs;
use std::io::sink;

pub use profile::{etdump, etrecord};

/// Reads bytes as a program and as a data file, and shows what they hold in every way; a sink cannot fail.
pub fn pte(bytes: &[u8]) {
    let stream = Stream { path: "fuzz", tool: ("fuzz", "0"), options: Kwargs::new() };
    if let Ok(data) = DataFile::open(bytes) {
        stream.write_data(&data, true, sink()).expect("a sink takes everything");
        view::write_data(&data, "fuzz", &mut sink()).expect("a sink takes everything");
        raw::write_data(&data, sink()).expect("a sink takes everything");
    }
    let Ok(stored) = Stored::read(bytes) else { return };
    raw::write(&stored, sink()).expect("a sink takes everything");
    let Ok(program) = Program::check(stored) else { return };
    stream.write(&program, Wanted { method: None, digests: true }, sink()).expect("a sink takes everything");
    view::write(&program, "fuzz", None, &mut sink()).expect("a sink takes everything");
    for plan in [plan(&program, Selection::default()), plan_single(&program)] {
        stream.write_plan(&program, &plan, false, sink()).expect("a sink takes everything");
        for (delegate, name) in &plan.files {
            assert_eq!(delegate.payload.len() as u64, delegate.range.bytes, "a payload is all of its range");
            assert!(!name.contains('/') && !name.starts_with('.'), "{name} leaves its folder");
        }
    }
    assert_eq!(diff::compare(&program, &program), [], "a program is as itself");
}
