//! ETDumps and ETRecords made from nothing: the fixtures of `m2m-etdump`, and large dumps for the benchmark.
//!
//! Times, ids and handles are all different, so that one read in place of another shows. Nothing here comes out of
//! ExecuTorch itself.

mod large;
mod record;

use m2m_executorch::flatbuffer::write::{Object, Value, Vtables, finish};

pub use large::large;
pub use record::{Method, NET, deflated, program, record, stored};

/// A run of a dump: its name and its events.
struct Run(Object);

/// A measured scope.
#[derive(Clone, Copy, Default)]
struct Scope<'s> {
    name: Option<&'s str>,
    chain: i32,
    instruction: i32,
    int: Option<i32>,
    text: Option<&'s str>,
    metadata: Option<&'s [u8]>,
    start: u64,
    end: u64,
}

impl Scope<'_> {
    fn event(self) -> Object {
        let mut table = Object::new();
        if let Some(name) = self.name {
            table = table.with(0, name);
        }
        table = table.with(1, self.chain).with(2, self.instruction).with(3, self.int.unwrap_or(-1));
        if let Some(text) = self.text {
            table = table.with(4, text);
        }
        if let Some(bytes) = self.metadata {
            table = table.with(5, Value::Bytes(1, bytes.to_vec()));
        }
        Object::new().with(0, table.with(6, self.start).with(7, self.end))
    }
}

/// The runtime's own scope.
fn framework(name: &str, start: u64, end: u64) -> Object {
    Scope { name: Some(name), chain: -1, start, end, ..Scope::default() }.event()
}

fn call(name: &str, instruction: i32, start: u64, end: u64) -> Object {
    Scope { name: Some(name), instruction, start, end, ..Scope::default() }.event()
}

/// A kernel's own scope and the call around it.
fn kernel(operator: &str, instruction: i32, start: u64, end: u64) -> [Object; 2] {
    let name = format!("native_call_{operator}");
    [call(&name, instruction, start + 10, end - 7), call("OPERATOR_CALL", instruction, start, end)]
}

fn run(name: &str, events: Vec<Object>) -> Run {
    Run(Object::new().with(0, name).with(1, -1i32).with(3, events))
}

fn load() -> Run {
    run("Default", vec![framework("Method::init", 1100, 31_000), framework("Program::load_method", 1000, 33_333)])
}

/// A file with its size before it.
fn dump(runs: Vec<Run>) -> Vec<u8> {
    let runs: Vec<Object> = runs.into_iter().map(|run| run.0).collect();
    let body = finish(&Object::new().with(0, 0u32).with(1, runs), b"ED00", 0, Vtables::After);
    let mut file = (body.len() as u32).to_le_bytes().to_vec();
    file.extend(body);
    file
}

/// One execution of the method that [`record::NET`] is the record of, beginning at `t`, `slow` ticks slower.
fn execute(t: u64, slow: u64, number: usize) -> Run {
    let own = |instruction, int, text, metadata, start, end| {
        Scope { name: None, chain: 0, instruction, int, text, metadata, start: t + start, end: t + end }.event()
    };
    let mut events = Vec::new();
    events.extend(kernel("convolution.out", 0, t + 100, t + 1100 + slow));
    // Ids as numbers: two that are recorded, one whose text contains that of a recorded one.
    events.push(own(1, Some(0), None, Some(b"{\"cycles\":7}".as_slice()), 1300, 1500));
    events.push(own(1, Some(9), None, Some(b"".as_slice()), 1510, 1600));
    events.push(own(1, Some(99), None, Some(b"\xff\x00\x80".as_slice()), 1610, 1650));
    events.push(call("DELEGATE_CALL", 1, t + 1250, t + 1700));
    events.extend(kernel("addmm.out", 2, t + 1800, t + 2400));
    // Ids as texts: one that is recorded, with metadata in some runs only, and one that is not.
    let now_and_then = if number == 1 { Some(b"".as_slice()) } else { Some(b"step".as_slice()) };
    events.push(own(3, None, Some("gemm"), now_and_then, 2600, 2700));
    events.push(own(3, None, Some("gemm #2"), Some(b"".as_slice()), 2700, 2705));
    events.push(call("DELEGATE_CALL", 3, t + 2500, t + 2800));
    events.push(framework("Method::execute", t, t + 3000 + slow));
    run("Execute", events)
}

/// Loading and three executions.
fn net() -> Vec<u8> {
    let mut runs = vec![load()];
    runs.extend(
        [(100_000, 100), (200_000, 20), (300_000, 0)].iter().enumerate().map(|(i, (t, slow))| execute(*t, *slow, i)),
    );
    dump(runs)
}

/// Twelve executions, each `slow` ticks slower in one kernel, with some noise.
fn many(slow: u64) -> Vec<u8> {
    let noise = [0, 13, 5, 29, 2, 17, 8, 23, 11, 3, 19, 7];
    let mut runs = vec![load()];
    runs.extend((0..12u64).map(|i| execute(100_000 * (i + 1), noise[i as usize] + slow, 0)));
    dump(runs)
}

/// A loop that executes one instruction three times in the first run and twice in the second.
fn repeated() -> Vec<u8> {
    let turn = |t: u64, times: u64| {
        let mut events = Vec::new();
        for turn in 0..times {
            events.extend(kernel("add.out", 0, t + 100 * (turn + 1), t + 100 * (turn + 1) + 50 + turn));
        }
        events.push(framework("Method::execute", t, t + 1000));
        run("Execute", events)
    };
    dump(vec![load(), turn(50_000, 3), turn(60_000, 2)])
}

/// Two methods in turn: the dump itself does not tell them apart.
fn two() -> Vec<u8> {
    let encode = |t: u64| {
        let mut events: Vec<Object> = kernel("convolution.out", 0, t + 10, t + 510).to_vec();
        events.push(framework("Method::execute", t, t + 600));
        run("Execute", events)
    };
    let decode = |t: u64| {
        let mut events: Vec<Object> = kernel("addmm.out", 0, t + 10, t + 310).to_vec();
        events.extend(kernel("tanh.out", 1, t + 320, t + 420));
        events.push(framework("Method::execute", t, t + 500));
        run("Execute", events)
    };
    dump(vec![load(), encode(100_000), load(), decode(200_000), decode(300_000)])
}

/// What is rare: a clock of 32 bits that wraps, allocations, a run without events, one without a name, an event without an
/// instruction.
fn odd() -> Vec<u8> {
    let wrapped = Scope { name: Some("wrapped"), start: u64::from(u32::MAX) - 99, end: 400, ..Scope::default() };
    let loose = Scope { name: Some("loose"), instruction: -1, start: 5, end: 2_000_005, ..Scope::default() };
    let allocation = Object::new().with(1, Object::new().with(0, 1i32).with(1, 4096u64));
    let allocators = vec![Object::new().with(0, "pool"), Object::new()];
    let own = Object::new()
        .with(0, "custom")
        .with(1, 3i32)
        .with(2, allocators)
        .with(3, vec![allocation, wrapped.event(), loose.event()]);
    dump(vec![Run(own), Run(Object::new().with(0, "bare")), Run(Object::new().with(3, vec![loose.event()]))])
}

/// A clock that runs backwards.
fn backwards() -> Vec<u8> {
    let scope = Scope { name: Some("back"), start: 5_000_000_000, end: 7, ..Scope::default() };
    dump(vec![run("Execute", vec![scope.event()])])
}

fn tensor(scalar_type: i8, sizes: &[i64], offset: i64) -> Object {
    let strides: Vec<i64> = (0..sizes.len()).map(|at| sizes[at + 1..].iter().product()).collect();
    Object::new().with(0, scalar_type).with(1, sizes).with(2, strides.as_slice()).with(3, offset)
}

fn logged(instruction: i32, entry: Object) -> Object {
    Object::new().with(2, Object::new().with(0, 0u64).with(1, instruction).with(2, entry))
}

/// A value that is an output of the program.
fn output(entry: Object) -> Object {
    let entry = entry.with(7, Object::new().with(0, true));
    Object::new().with(2, Object::new().with(0, u64::MAX).with(1, 0i32).with(2, entry))
}

/// Values of every type that can be logged; the tensors lie in [`buffer`].
fn values() -> Vec<u8> {
    let boxed =
        |kind: i8, field: u16, value: Value| Object::new().with(0, kind).with(field, Object::new().with(0, value));
    let one = |t: Object| Object::new().with(0, 5i8).with(1, t);
    let list = Object::new().with(0, vec![tensor(1, &[3], 112), tensor(11, &[2], 115)]);
    let mut events = vec![logged(0, one(tensor(6, &[2, 3], 16)))];
    events.extend(kernel("convolution.out", 0, 1000, 2000));
    events.extend([
        logged(2, Object::new().with(0, 6i8).with(2, list)),
        logged(2, one(tensor(6, &[0, 4], -1))),
        logged(2, boxed(1, 3, (-5i64).into())),
        logged(2, boxed(3, 4, 0.1f32.into())),
        logged(2, boxed(4, 5, 2.0f64.into())),
        logged(2, boxed(2, 6, true.into())),
        logged(2, Object::new()),
        framework("Method::execute", 900, 3000),
        output(one(tensor(4, &[2], 48))),
    ]);
    dump(vec![run("Execute", events)])
}

/// The tensors of [`values`], each where it is said to be.
fn buffer() -> Vec<u8> {
    let mut bytes = vec![0; 117];
    let floats: Vec<u8> = [1.5f32, -2.0, 0.25, 8.0, 1e-3, 6.5].iter().flat_map(|x| x.to_le_bytes()).collect();
    bytes[16..40].copy_from_slice(&floats);
    let longs: Vec<u8> = [-7i64, 1 << 40].iter().flat_map(|x| x.to_le_bytes()).collect();
    bytes[48..64].copy_from_slice(&longs);
    bytes[112..].copy_from_slice(&[1, 0xfe, 3, 1, 0]);
    bytes
}

/// The record of the large dumps.
pub fn large_record() -> Vec<u8> {
    stored(&record(&[large::LARGE]))
}

/// All fixtures by name.
pub fn fixtures() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("net.etdump", net()),
        ("net.etrecord", stored(&record(&[record::NET]))),
        ("net_deflated.etrecord", deflated(&record(&[record::NET]))),
        ("many.etdump", many(0)),
        ("many_slower.etdump", many(100)),
        ("repeated.etdump", repeated()),
        ("two.etdump", two()),
        ("two.etrecord", stored(&record(&[record::ENCODE, record::DECODE]))),
        ("renamed.etrecord", stored(&record::renamed())),
        ("unmarked.etrecord", stored(&record::without("ETRECORD_V0"))),
        ("mapless.etrecord", stored(&record::without("debug_handle_map"))),
        ("graphless.etrecord", stored(&record::graphless())),
        ("odd.etdump", odd()),
        ("backwards.etdump", backwards()),
        ("values.etdump", values()),
        ("values.bin", buffer()),
    ]
}
