//! Programs that are flatbuffers without fault and yet say what cannot be: each is refused with its place in the tables.

use m2m_executorch::flatbuffer::write::{Object, Value, Vtables, finish};
use m2m_executorch::pte::payload::{Format, file_name};
use m2m_executorch::pte::{DataFile, Location, Program};

fn tensor(sizes: &[i32], order: &[u8], data: u32) -> Object {
    Object::new().with(0, 6i8).with(2, sizes).with(3, order).with(5, data)
}

fn value(kind: u8, table: Object) -> Object {
    Object::new().with(0, kind).with(1, table)
}

/// A tensor of 24 bytes in buffer `memory` at `offset`.
fn planned(memory: u32, offset: u32) -> Object {
    let place = Object::new().with(0, memory).with(1, offset);
    value(5, tensor(&[2, 3], &[0, 1], 0).with(6, place))
}

/// A method over a planned tensor (value 0), an int (value 1) and what else is given.
struct Plan {
    name: Option<&'static str>,
    values: Vec<Object>,
    inputs: [i32; 1],
    instructions: Vec<Object>,
    delegates: Vec<Object>,
}

impl Plan {
    fn new() -> Self {
        let values = vec![planned(1, 8), value(2, Object::new().with(0, 5i64))];
        Plan { name: Some("forward"), values, inputs: [0], instructions: Vec::new(), delegates: Vec::new() }
    }

    fn with_value(mut self, value: Object) -> Self {
        self.values.push(value);
        self
    }

    fn with_call(mut self, kind: u8, table: Object) -> Self {
        self.instructions.push(value(kind, table));
        self
    }

    fn table(self) -> Object {
        let chain = Object::new().with(2, self.instructions);
        let plan = Object::new()
            .with(2, self.values)
            .with(3, self.inputs)
            .with(4, [1i32])
            .with(5, vec![chain])
            .with(6, vec![Object::new().with(0, "aten::relu").with(1, "out")])
            .with(7, self.delegates)
            .with(8, [0i64, 32]);
        self.name.into_iter().fold(plan, |plan, name| plan.with(0, name))
    }
}

/// A program without header of one method; `more` adds to the root.
fn file(plan: Plan, more: impl Fn(Object) -> Object) -> Vec<u8> {
    finish(&more(Object::new().with(1, vec![plan.table()])), b"ET12", 0, Vtables::Before)
}

fn refusal(bytes: &[u8]) -> String {
    let text = Program::open(bytes).expect_err("it is broken").to_string();
    text.strip_prefix("broken ExecuTorch program: ").expect("the kind of file is told").to_owned()
}

fn plain(plan: Plan) -> String {
    refusal(&file(plan, |root| root))
}

#[test]
fn the_program_that_the_others_break_is_right() {
    let bytes = file(Plan::new().with_call(1, Object::new().with(1, [0i32, 0])), |root| root);
    assert_eq!(Program::open(&bytes).expect("nothing is wrong").plans().len(), 1);
}

#[test]
fn indices_lead_somewhere() {
    let mut plan = Plan::new();
    plan.inputs = [2];
    assert_eq!(plain(plan), "execution_plan[0].inputs: index 2, but there are 2 values");
    let call = Plan::new().with_call(1, Object::new().with(0, 1i32));
    assert_eq!(plain(call), "execution_plan[0].chains[0].instructions[0]: index 1, but there are 1 operators");
    let call = Plan::new().with_call(1, Object::new().with(1, [0i32, -1]));
    assert_eq!(plain(call), "execution_plan[0].chains[0].instructions[0]: index -1, but there are 2 values");
    let call = Plan::new().with_call(2, Object::new());
    assert_eq!(plain(call), "execution_plan[0].chains[0].instructions[0]: index 0, but there are 0 delegates");
    let jump = Plan::new().with_call(4, Object::new().with(1, 2i32));
    assert_eq!(plain(jump), "execution_plan[0].chains[0].instructions[0]: index 2, but there are 2 places to jump to");
    let moved = Plan::new().with_call(3, Object::new().with(1, 9i32));
    assert_eq!(plain(moved), "execution_plan[0].chains[0].instructions[0]: index 9, but there are 2 values");
    let freed = Plan::new().with_call(5, Object::new().with(0, 2i32));
    assert_eq!(plain(freed), "execution_plan[0].chains[0].instructions[0]: index 2, but there are 2 values");
}

#[test]
fn a_jump_may_lead_behind_the_last_instruction() {
    let bytes = file(Plan::new().with_call(4, Object::new().with(1, 1i32)), |root| root);
    Program::open(&bytes).expect("that ends the chain");
}

#[test]
fn lists_hold_what_their_type_says() {
    let list = |kind: u8, items: Value| Plan::new().with_value(value(kind, Object::new().with(0, items)));
    assert_eq!(
        plain(list(7, Value::from([0i64]))),
        "execution_plan[0].values[2]: value 0 is of type Tensor; expected Int"
    );
    assert_eq!(
        plain(list(10, Value::from([1i32]))),
        "execution_plan[0].values[2]: value 1 is of type Int; expected Tensor"
    );
    assert_eq!(
        plain(list(11, Value::from([1i32]))),
        "execution_plan[0].values[2]: value 1 is of type Int; expected Tensor or Null"
    );
    assert_eq!(
        plain(list(7, Value::from([i64::MAX]))),
        "execution_plan[0].values[2]: index 9223372036854775807, but there are 3 values"
    );
}

#[test]
fn tensors_fit_into_what_holds_them() {
    assert_eq!(
        plain(Plan::new().with_value(planned(1, 9))),
        "execution_plan[0].values[2]: 24 bytes at 9 of planned buffer 1, which has 32"
    );
    assert_eq!(
        plain(Plan::new().with_value(planned(2, 0))),
        "execution_plan[0].values[2].memory_id: index 2, but there are 2 planned buffers"
    );
    let high = Object::new().with(0, 1u32).with(2, u32::MAX);
    assert_eq!(
        plain(Plan::new().with_value(value(5, tensor(&[1], &[0], 0).with(6, high)))),
        "execution_plan[0].values[2]: 4 bytes at 18446744069414584320 of planned buffer 1, which has 32"
    );
    let constant = || Plan::new().with_value(value(5, tensor(&[2, 3], &[0, 1], 1)));
    assert_eq!(plain(constant()), "execution_plan[0].values[2].data_buffer_idx: index 1, but there are 0 constants");
    let buffers =
        |root: Object| root.with(2, vec![Object::new(), Object::new().with(0, Value::Bytes(16, vec![0; 23]))]);
    assert_eq!(
        refusal(&file(constant(), buffers)),
        "execution_plan[0].values[2]: 24 bytes at 0 of constant 1, which has 23"
    );
}

#[test]
fn shapes_make_sense() {
    let with = |sizes: &[i32], order: &[u8]| plain(Plan::new().with_value(value(5, tensor(sizes, order, 0))));
    assert_eq!(
        with(&[2, 3], &[0, 0]),
        "execution_plan[0].values[2]: 2 sizes and a dim_order of [0, 0]; expected a permutation of them"
    );
    assert_eq!(
        with(&[2], &[]),
        "execution_plan[0].values[2]: 1 sizes and a dim_order of []; expected a permutation of them"
    );
    assert_eq!(with(&[-1], &[0]), "execution_plan[0].values[2]: sizes [-1] make no number of bytes");
    let most = i32::MAX;
    assert_eq!(
        with(&[most, most, most], &[0, 1, 2]),
        format!("execution_plan[0].values[2]: sizes [{most}, {most}, {most}] make no number of bytes")
    );
}

#[test]
fn what_must_be_there_is_there() {
    let mut plan = Plan::new();
    plan.name = None;
    assert_eq!(plain(plan), "execution_plan[0].name is missing");
    let mut plan = Plan::new();
    plan.delegates = vec![Object::new().with(0, "TOSABackend")];
    assert_eq!(plain(plan), "execution_plan[0].delegates[0].processed is missing");
    let mut plan = Plan::new();
    plan.instructions = vec![Object::new()];
    assert_eq!(plain(plan), "execution_plan[0].chains[0].instructions[0] is missing");
    let external = tensor(&[1], &[0], 0).with(9, Object::new().with(2, 1i8));
    assert_eq!(
        plain(Plan::new().with_value(value(5, external))),
        "execution_plan[0].values[2].extra_tensor_info.fully_qualified_name is missing"
    );
}

#[test]
fn what_a_newer_schema_adds_is_named() {
    let unknown = Plan::new().with_value(value(12, Object::new()));
    assert_eq!(plain(unknown), "execution_plan[0].values[2]: type 12 is not of the schema that is read here");
    let unknown = Plan::new().with_call(6, Object::new());
    assert_eq!(
        plain(unknown),
        "execution_plan[0].chains[0].instructions[0]: type 6 is not of the schema that is read here"
    );
    let mut plan = Plan::new();
    let place = Object::new().with(0, 2i8);
    plan.delegates = vec![Object::new().with(0, "TOSABackend").with(1, place)];
    assert_eq!(
        plain(plan),
        "execution_plan[0].delegates[0].processed.location: type 2 is not of the schema that is read here"
    );
}

#[test]
fn two_methods_have_two_names() {
    let plans = vec![Plan::new().table(), Plan::new().table()];
    let bytes = finish(&Object::new().with(1, plans), b"ET12", 0, Vtables::Before);
    assert_eq!(refusal(&bytes), "execution_plan[1] is called \"forward\", as is execution_plan[0]");
}

/// The same program behind a current header with these fields, and 64 bytes behind it.
fn headed(program_size: impl Fn(u64) -> u64, base: impl Fn(u64) -> u64, size: u64, segment: (u64, u64)) -> Vec<u8> {
    let segment = Object::new().with(0, segment.0).with(1, segment.1);
    let root = Object::new().with(1, vec![Plan::new().table()]).with(4, vec![segment]);
    let mut bytes = finish(&root, b"ET12", 32, Vtables::Before);
    let len = bytes.len() as u64;
    bytes[8..12].copy_from_slice(b"eh00");
    bytes[12..16].copy_from_slice(&32u32.to_le_bytes());
    bytes[16..24].copy_from_slice(&program_size(len).to_le_bytes());
    bytes[24..32].copy_from_slice(&base(len).to_le_bytes());
    bytes[32..40].copy_from_slice(&size.to_le_bytes());
    bytes.resize(bytes.len() + 64, 0);
    bytes
}

#[test]
fn segments_lie_inside_the_file() {
    let same = |len: u64| len;
    let right = headed(same, same, 64, (60, 4));
    let program = Program::open(&right).expect("the segment ends with the file");
    let range = program.segments()[0];
    assert_eq!((range.offset + range.bytes, range.bytes), (right.len() as u64, 4));
    let (len, file) = (right.len() as u64 - 64, right.len() as u64);
    let beyond = refusal(&headed(same, same, 64, (60, 5)));
    assert_eq!(
        beyond,
        format!("segments[0]: 5 bytes at 60 from byte {len} on leave the file, which ends at byte {file}")
    );
    let around = refusal(&headed(same, same, 64, (u64::MAX, 2)));
    assert!(around.starts_with("segments[0]: 2 bytes at 18446744073709551615 from byte "), "{around}");
    let torn = refusal(&headed(same, same, 65, (0, 0)));
    assert_eq!(
        torn,
        format!(
            "byte 32: extended header: 65 bytes of segments from byte {len} on, but the file ends at byte {file}: it is torn"
        )
    );
    let inside = refusal(&headed(same, |len| len - 1, 0, (0, 0)));
    assert!(
        inside.starts_with(&format!("byte 24: extended header: segments begin at byte {}; expected {len}", len - 1))
    );
    let large = refusal(&headed(|_| u64::MAX, same, 0, (0, 0)));
    assert!(large.ends_with(&format!(
        "a flatbuffer of 18446744073709551615 bytes; expected 40 to {file}, the size of the file: it is torn"
    )));
}

#[test]
fn constants_are_in_order_and_in_their_segment() {
    let with = |segment: u32, offsets: &[u64]| {
        let parts = Object::new().with(0, segment).with(1, offsets);
        refusal(&file(Plan::new(), |root| root.with(5, parts.clone())))
    };
    assert_eq!(with(0, &[0, 1]), "constant_segment.segment_index: index 0, but there are 0 segments");
    let behind = |offsets: [u64; 3]| {
        let parts = Object::new().with(0, 0u32).with(1, offsets);
        let segment = Object::new().with(0, 0u64).with(1, 0u64);
        refusal(&file(Plan::new(), |root| root.with(4, vec![segment.clone()]).with(5, parts.clone())))
    };
    assert_eq!(behind([0, 1, 0]), "constant_segment.offsets[1]: 1; expected 0 to 0");
    let both = |root: Object| root.with(2, vec![Object::new()]).with(5, Object::new().with(1, [0u64]));
    assert_eq!(
        refusal(&file(Plan::new(), both)),
        "constant_buffer has 1 buffers and constant_segment 1 offsets; expected one of them to be empty"
    );
}

#[test]
fn payloads_are_borrowed_from_the_file() {
    let mut plan = Plan::new();
    let place = Object::new().with(0, 0i8).with(1, 0u32);
    plan.delegates = vec![Object::new().with(0, "Acme").with(1, place)];
    let inline = Object::new().with(0, Value::Bytes(16, b"payload".to_vec()));
    let bytes = file(plan, |root| root.with(3, vec![inline.clone()]));
    let program = Program::open(&bytes).expect("nothing is wrong");
    let delegate = program.delegates().next().expect("there is one");
    assert_eq!((delegate.location, delegate.payload), (Location::Inline(0), b"payload".as_slice()));
    let start = delegate.range.offset as usize;
    assert!(std::ptr::eq(&bytes[start..start + 7], delegate.payload), "it is a part of the file, not a copy");
}

#[test]
fn file_names_are_harmless_and_distinct() {
    let long = "x".repeat(200);
    let other = "x".repeat(199) + "y";
    let names = ["forward", "", ".", "..", "a/b", "a%2Fb", "é", "-rf", long.as_str(), other.as_str()];
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let delegate = Object::new().with(0, "Acme").with(1, Object::new());
        let table = Object::new().with(0, name).with(7, vec![delegate]);
        let inline = Object::new().with(0, Value::Bytes(1, vec![1]));
        let root = Object::new().with(1, vec![table]).with(3, vec![inline]);
        let bytes = finish(&root, b"ET12", 0, Vtables::Before);
        let program = Program::open(&bytes).expect("nothing is wrong");
        let delegate = program.delegates().next().expect("there is one");
        let file = file_name(&delegate, Format::Unknown);
        assert!(file.len() < 160 && !file.starts_with('.') && !file.contains('/'), "{file}");
        assert!(file.bytes().all(|byte| byte.is_ascii_graphic()), "{file}");
        assert!(seen.insert(file.clone()), "{file} is there twice");
    }
}

#[test]
fn a_data_file_needs_its_header() {
    let bytes = finish(&Object::new(), b"FT01", 40, Vtables::Before);
    let error = DataFile::open(&bytes).expect_err("there is no header").to_string();
    assert_eq!(error, "broken ExecuTorch data file: the header FH01 at byte 8 is missing");
}
