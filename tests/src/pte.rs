//! ExecuTorch programs and data files made from nothing: the fixtures of `m2m-pte`, and a large one for the benchmark.
//!
//! They hold every table, every kind of value, instruction and placement of the schema, with numbers that are all
//! different, so that a field that is read in place of another shows. Nothing here comes out of ExecuTorch itself.

use m2m_executorch::flatbuffer::write::{Object, Value, Vtables, finish};

/// Bytes that segments begin at multiples of.
const ALIGNMENT: usize = 128;

/// The extended header of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// No header, no segments.
    None,
    /// The first version, which does not say where the segments end.
    First,
    /// The current one.
    Current,
}

/// Field and index of the root table's parts.
const PLANS: u16 = 1;
const CONSTANT_BUFFER: u16 = 2;
const INLINE_DATA: u16 = 3;
const SEGMENTS: u16 = 4;
const CONSTANT_SEGMENT: u16 = 5;
const MUTABLE_DATA: u16 = 6;
const NAMED_DATA: u16 = 7;

/// A program file of its tables, all but the segments, and the bytes of those.
fn program(root: Object, segments: &[Vec<u8>], head: Head) -> Vec<u8> {
    let mut end = 0;
    let mut tables = Vec::new();
    for segment in segments {
        let offset = usize::next_multiple_of(end, ALIGNMENT);
        tables.push(Object::new().with(0, offset as u64).with(1, segment.len() as u64));
        end = offset + segment.len();
    }
    let root = root.with(SEGMENTS, tables);
    let gap = if head == Head::None { 0 } else { 32 };
    let mut file = finish(&root, b"ET12", gap, Vtables::Before);
    if head == Head::None {
        return file;
    }
    let size = file.len();
    let base = size.next_multiple_of(ALIGNMENT);
    let length: u32 = if head == Head::First { 24 } else { 32 };
    file[8..12].copy_from_slice(b"eh00");
    file[12..16].copy_from_slice(&length.to_le_bytes());
    file[16..24].copy_from_slice(&(size as u64).to_le_bytes());
    file[24..32].copy_from_slice(&(base as u64).to_le_bytes());
    if head == Head::Current {
        file[32..40].copy_from_slice(&(end as u64).to_le_bytes());
    }
    for segment in segments {
        let start = file.len().next_multiple_of(ALIGNMENT);
        file.resize(start, 0);
        file.extend_from_slice(segment);
    }
    file
}

/// A value of a union type.
fn value(kind: u8, table: Object) -> Object {
    Object::new().with(0, kind).with(1, table)
}

fn int(x: i64) -> Object {
    value(2, Object::new().with(0, x))
}

/// A dense f32 tensor with its data at an index, or none at 0.
fn tensor(sizes: &[i32], data: u32) -> Object {
    let order: Vec<u8> = (0..sizes.len() as u8).collect();
    Object::new().with(0, 6i8).with(2, sizes).with(3, order.as_slice()).with(5, data)
}

/// Puts a tensor at an offset of planned memory.
fn planned(tensor: Object, memory: u32, low: u32) -> Object {
    tensor.with(6, Object::new().with(0, memory).with(1, low))
}

fn operator(name: &str, overload: &str) -> Object {
    Object::new().with(0, name).with(1, overload)
}

fn kernel(op: i32, args: &[i32]) -> Object {
    value(1, Object::new().with(0, op).with(1, args))
}

fn call(delegate: i32, args: &[i32]) -> Object {
    value(2, Object::new().with(0, delegate).with(1, args))
}

fn chain(instructions: Vec<Object>) -> Object {
    let none: [i32; 0] = [];
    Object::new().with(0, none).with(1, none).with(2, instructions)
}

/// A delegate with its payload inline (0) or in a segment (1).
fn delegate(id: &str, location: i8, index: u32, specs: &[(&str, &[u8])]) -> Object {
    let spec = |(key, value): &(&str, &[u8])| Object::new().with(0, *key).with(1, *value);
    let place = Object::new().with(0, location).with(1, index);
    Object::new().with(0, id).with(1, place).with(2, specs.iter().map(spec).collect::<Vec<_>>())
}

/// A TOSA graph that hands its input on.
pub fn tosa() -> Vec<u8> {
    let tensor = |name: &str| Object::new().with(0, name).with(1, [2i32, 3]).with(2, 7u32);
    let names = |name: &str| Value::Texts(vec![name.to_owned()]);
    let identity =
        Object::new().with(0, 68u32).with(1, 68u8).with(2, Object::new()).with(3, names("x")).with(4, names("y"));
    let block = Object::new()
        .with(0, "main")
        .with(1, vec![identity])
        .with(2, vec![tensor("x"), tensor("y")])
        .with(3, names("x"))
        .with(4, names("y"));
    let region = Object::new().with(0, "main").with(1, vec![block]);
    let version = Object::new().with(0, 1i32).with(1, 0i32).with(2, 0i32).with(3, false);
    finish(&Object::new().with(0, version).with(1, vec![region]), b"TOSA", 0, Vtables::Before)
}

/// The head of a VGF file without modules.
fn vgf() -> Vec<u8> {
    let mut bytes = b"VGF1\0\0\0\0\0\x04\0\0".to_vec();
    bytes.resize(128, 0);
    bytes
}

/// XNNPACK's header before a flatbuffer of four bytes.
fn xnnpack() -> Vec<u8> {
    let mut bytes = b"\0\0\0\0XH00\x1e\0\x20\0\0\0\x04\0\0\0".to_vec();
    bytes.resize(36, 0x58);
    bytes
}

/// The first and last blocks of what Vela writes.
fn vela() -> Vec<u8> {
    [b"vela_bin_stream\0".as_slice(), &[0; 16], b"vela_end_stream\0", &[0; 16]].concat()
}

/// `relu(x + w)`, whose w is constant 1; the constants go where the caller puts them.
fn add_relu(name: &str) -> Object {
    let values = vec![
        value(5, planned(tensor(&[2, 3], 0), 1, 0)),
        value(5, tensor(&[2, 3], 1)),
        int(1),
        value(5, planned(tensor(&[2, 3], 0), 1, 32)),
        value(5, planned(tensor(&[2, 3], 0), 1, 64)),
    ];
    Object::new()
        .with(0, name)
        .with(2, values)
        .with(3, [0i32])
        .with(4, [4i32])
        .with(5, vec![chain(vec![kernel(0, &[0, 1, 2, 3, 3]), kernel(1, &[3, 4, 4])])])
        .with(6, vec![operator("aten::add", "out"), operator("aten::relu", "out")])
        .with(7, Vec::<Object>::new())
        .with(8, [0i64, 96])
}

/// Six numbers.
fn weights() -> Vec<u8> {
    [-1.0f32, -0.5, 0.0, 0.25, 0.5, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// A file that is all flatbuffer, its constants inside.
fn plain() -> Vec<u8> {
    let buffers = vec![Object::new(), Object::new().with(0, Value::Bytes(16, weights()))];
    program(
        Object::new().with(0, 0u32).with(PLANS, vec![add_relu("forward")]).with(CONSTANT_BUFFER, buffers),
        &[],
        Head::None,
    )
}

/// The same with its constants in a segment, under either version of the header.
fn segmented(head: Head) -> Vec<u8> {
    let constants = Object::new().with(0, 0u32).with(1, [0u64, 0]);
    let root = Object::new().with(PLANS, vec![add_relu("forward")]).with(CONSTANT_SEGMENT, constants);
    program(root, &[weights()], head)
}

/// A method that is one call of a delegate.
fn delegated(name: &str, id: &str, location: i8, index: u32, specs: &[(&str, &[u8])]) -> Object {
    let values = vec![value(5, planned(tensor(&[2, 3], 0), 1, 0)), value(5, planned(tensor(&[2, 3], 0), 1, 32))];
    Object::new()
        .with(0, name)
        .with(2, values)
        .with(3, [0i32])
        .with(4, [1i32])
        .with(5, vec![chain(vec![call(0, &[0, 1])])])
        .with(6, Vec::<Object>::new())
        .with(7, vec![delegate(id, location, index, specs)])
        .with(8, [0i64, 64])
}

/// A program that is one delegate, its payload in segment 0.
fn single(id: &str, payload: Vec<u8>) -> Vec<u8> {
    let specs: [(&str, &[u8]); 2] = [("tosa_spec", b"TOSA-1.0+FP"), ("raw", b"\xff\x00")];
    program(Object::new().with(PLANS, vec![delegated("forward", id, 1, 0, &specs)]), &[payload], Head::Current)
}

/// A tree as exported programs spell it.
const TREE: &str = "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]";

/// The method that has everything.
fn everything() -> Object {
    let extra = Object::new();
    let external = extra.clone().with(1, "fc.weight").with(2, 1i8);
    let on_device = extra.clone().with(1, "cache").with(3, 1i8).with(4, 2i8);
    let list = |kind, items: &[i32]| value(kind, Object::new().with(0, items));
    let values = vec![
        value(5, planned(tensor(&[4, 2], 0), 1, 16).with(4, true).with(8, 1i8)),
        value(5, tensor(&[3], 2)),
        value(5, planned(tensor(&[2], 1), 2, 8).with(9, on_device)),
        value(5, tensor(&[5], 0).with(9, external)),
        value(5, Object::new().with(0, 4i8).with(2, [3i32, 2, 1]).with(3, [2u8, 0, 1])),
        value(1, Object::new()),
        int(i64::MAX),
        int(-7),
        value(3, Object::new().with(0, true)),
        value(4, Object::new().with(0, f64::NAN)),
        value(4, Object::new().with(0, 0.1f64)),
        value(6, Object::new().with(0, "naïve \u{202e} \"text\"")),
        value(7, Object::new().with(0, [6i64, 7])),
        value(8, Object::new().with(0, [1.5f64, -2.0])),
        value(9, Object::new().with(0, Value::Numbers(1, vec![1, 0]))),
        list(10, &[0, 1]),
        list(11, &[5, 2]),
    ];
    let instructions = vec![
        kernel(1, &[0, 1, 6, 4]),
        call(1, &[0, 2]),
        value(3, Object::new().with(0, 1i32).with(1, 2i32)),
        value(4, Object::new().with(0, 8i32).with(1, 6i32)),
        value(5, Object::new().with(0, 4i32)),
        call(0, &[2, 1]),
    ];
    let frame = |line: i32| {
        let text = format!("y = f{line}(x)");
        Object::new().with(0, "model.py").with(1, line).with(2, "forward").with(3, text.as_str())
    };
    let stack = |lines: &[i32]| Object::new().with(0, lines.iter().map(|line| frame(*line)).collect::<Vec<_>>());
    let stacks = vec![stack(&[10, 11]), stack(&[12]), stack(&[]), stack(&[13]), stack(&[14]), stack(&[15])];
    Object::new()
        .with(0, "a.b/ü")
        .with(1, Object::new().with(0, TREE).with(1, ""))
        .with(2, values)
        .with(3, [0i32, 6])
        .with(4, [2i32])
        .with(5, vec![chain(instructions).with(3, stacks)])
        .with(6, vec![operator("aten::relu", "out"), operator("executorch_prim::add", "")])
        .with(
            7,
            vec![
                delegate("XnnpackBackend", 0, 1, &[]),
                delegate("AcmeBackend", 0, 0, &[("level", b"3"), ("blob", b"\x00\x01")]),
            ],
        )
        .with(8, [0i64, 48, 16])
        .with(9, vec![Object::new().with(0, 2i32).with(1, 1i8).with(2, 2i8)])
}

/// A program of two methods with everything that the schema knows.
fn full() -> Vec<u8> {
    let constants = Object::new().with(0, 0u32).with(1, [0u64, 0, 24]);
    let states = vec![Object::new().with(0, 1u32).with(1, [0u64, 0])];
    let named = |key: &str, segment: u32| Object::new().with(0, key).with(1, segment);
    let inline = |bytes: Vec<u8>| Object::new().with(0, Value::Bytes(16, bytes));
    let root = Object::new()
        .with(0, 0u32)
        .with(PLANS, vec![everything(), delegated("forward", "TOSABackend", 1, 2, &[("tosa_spec", b"TOSA-1.0+FP")])])
        .with(INLINE_DATA, vec![inline(b"acme payload".to_vec()), inline(xnnpack())])
        .with(CONSTANT_SEGMENT, constants)
        .with(MUTABLE_DATA, states)
        .with(NAMED_DATA, vec![named("weight", 3), named("shared \u{1b}[31m", 3), named("bias", 4)]);
    let constant = [weights(), vec![7; 16]].concat();
    program(root, &[constant, vec![9; 8], tosa(), vec![1, 2, 3, 4, 5], vec![]], Head::Current)
}

/// A data file of two tensors and a blob.
fn data_file() -> Vec<u8> {
    let segments: [&[u8]; 3] = [&[1; 24], &[2; 6], &[3; 5]];
    let layout = |kind: i8, sizes: &[i32], order: &[u8]| Object::new().with(0, kind).with(1, sizes).with(2, order);
    let named = |key: &str, segment: u32| Object::new().with(0, key).with(1, segment);
    let mut offset = 0;
    let mut tables = Vec::new();
    for segment in segments {
        tables.push(Object::new().with(0, offset as u64).with(1, segment.len() as u64));
        offset = usize::next_multiple_of(offset + segment.len(), ALIGNMENT);
    }
    let root = Object::new().with(0, 0u32).with(1, tables).with(
        2,
        vec![
            named("fc.weight", 0).with(2, layout(6, &[2, 3], &[1, 0])),
            named("fc.bias", 1).with(2, layout(5, &[3], &[0])),
            named("blob", 2),
        ],
    );
    let mut file = finish(&root, b"FT01", 40, Vtables::Before);
    let (size, base) = (file.len(), file.len().next_multiple_of(ALIGNMENT));
    let end = base + 2 * ALIGNMENT + 5;
    file[8..12].copy_from_slice(b"FH01");
    file[12..16].copy_from_slice(&40u32.to_le_bytes());
    for (at, number) in [48, size - 48, base, end - base].into_iter().enumerate() {
        file[16 + 8 * at..24 + 8 * at].copy_from_slice(&(number as u64).to_le_bytes());
    }
    for (at, segment) in segments.iter().enumerate() {
        file.resize(base + at * ALIGNMENT, 0);
        file.extend_from_slice(segment);
    }
    file
}

/// The fixtures, by the name of their file.
pub fn fixtures() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("plain.pte", plain()),
        ("segments.pte", segmented(Head::Current)),
        ("first_header.pte", segmented(Head::First)),
        ("full.pte", full()),
        ("tosa.pte", single("TOSABackend", tosa())),
        ("vgf.pte", single("VgfBackend", vgf())),
        ("vela.pte", single("EthosUBackend", vela())),
        ("not_tosa.pte", single("TOSABackend", xnnpack())),
        ("not_vgf.pte", single("VgfBackend", tosa())),
        ("empty_tosa.pte", single("TOSABackend", Vec::new())),
        ("weights.ptd", data_file()),
    ]
}

/// A program whose one payload has `bytes` bytes, the first of them a TOSA graph.
pub fn large(bytes: usize) -> Vec<u8> {
    let mut payload = tosa();
    payload.extend((payload.len()..bytes).map(|at| (at % 251) as u8));
    single("TOSABackend", payload)
}
