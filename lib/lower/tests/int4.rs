//! Packed matrices of 4-bit weights: the layouts of PyTorch's CPU kernels and of tensor cores, and products with them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod support;

use m2m_aten::PackedFor;
use m2m_aten::prepare::{Lowerable, prepare_opaque};
use m2m_graph::{Graph, Places, Program};
use m2m_lower::linalg::{Options, emit, find};
use m2m_mlir::jit;
use m2m_record::{Arg, DType, Node, Type, TypedValue};
use support::{Tensor, assert_close, elements, graph, result, tensor, x};

/// What `torch.ops.aten._convert_weight_to_int4pack_for_cpu` of PyTorch 2.13 gives for [`numbers`] of 80 rows and 2 columns
/// under `ATEN_CPU_CAPABILITY=avx512`, `avx2` and `default`.
const PACKED: [(PackedFor, &str); 3] = [
    (
        PackedFor::Avx512,
        "a09e7c5b492706f4d2b1af8d6c5a381705e3c2b09e7d6b492816f4d3c1af8e7c\
         1705e3c2b09e7d6b492816f4d3c1af8e7c5a392705e4d2b09f8d6b4a3816f5e3\
         3502de9b6834f1ceac794502dfab6835",
    ),
    (
        PackedFor::Avx2,
        "503e2c0be9d7b69482614f3d1cfae8c7c7a59372504e2d0bf9d8b6a483615f3e\
         0ae9c7b59472604f2d1bfad8c6a5837171503e2c0be9d7b69482614f3d1cfae8\
         3502de9b6834f1ceac794502dfab6835",
    ),
    (
        PackedFor::Default,
        "e0bc794612dfac783502de9b6834f1ce5723e0bd894613efac794502dfab6835\
         9a5724f0bd8a5613e0bc794612dfac7801ce9b6724f1cd8a5723e0bd894613ef\
         3502de9b6834f1ceac794502dfab6835",
    ),
];

/// Every machine there is a layout for.
const MACHINES: [PackedFor; 5] =
    [PackedFor::Avx512, PackedFor::Avx2, PackedFor::Sve256, PackedFor::Neon, PackedFor::Default];

/// Numbers from 0 to 15, row after row.
fn numbers(rows: i32, columns: i32) -> Vec<i32> {
    let at = |row: i32, column: i32| ((row * columns + column) * 7 + row / 3) % 16;
    (0..rows).flat_map(|row| (0..columns).map(move |column| at(row, column))).collect()
}

/// Runs a graph that is decomposed first, for weights packed on a machine.
fn run(graph: Graph, inputs: &[Tensor], packed_for: PackedFor) -> Vec<jit::Output> {
    let program = Program { root: graph, stages: vec!["original".into()], ..Program::default() };
    let target = Lowerable { directly: &|op| find(op).is_some(), opaquely: &|_| false, packed_for };
    let prepared = prepare_opaque(&program, target).unwrap();
    let context = m2m_mlir::context();
    let emitted = emit(&context, &prepared, &Places::default(), Options::default()).unwrap();
    m2m_mlir::verify(&context, &emitted.module).unwrap();
    let text = m2m_mlir::print(&emitted.module, m2m_mlir::Form::Generic, m2m_mlir::Locations::Omit).unwrap();
    let arguments: Vec<_> = inputs.iter().map(Tensor::argument).collect();
    jit::Program::compile(&text, "forward", jit::Options::default()).unwrap().run(&arguments).unwrap().outputs
}

/// A program that packs `x0` and gives `x1` times it, with `x2` for scales and offsets.
fn packed_product(packing: &str, product: &str, packed: Type, inputs: &[Tensor], to: Type) -> Graph {
    let mut made = graph(packing, vec![x(0), Arg::Int(4)], inputs, &[packed]);
    made.nodes.push(Node {
        graph: made.id.clone(),
        stage: made.stage.clone(),
        node: "prepared:1".into(),
        op: product.into(),
        args: vec![x(1), Arg::value("y0"), Arg::Int(32), x(2)],
        results: vec![TypedValue { value: Some("z".into()), ty: to }],
        ..Node::default()
    });
    made.outputs[0].value = Some("z".into());
    made
}

/// `x [m, k]` times `(numbers [n, k] - 8)·scale + offset`, where `scales [k/32, n, 2]` has both.
fn expected(x: &[f32], w: &[i32], scales: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let weight = |row: usize, column: usize| {
        let at = (column / 32 * n + row) * 2;
        (w[row * k + column] - 8) as f32 * scales[at] + scales[at + 1]
    };
    let element = |i: usize, row: usize| (0..k).map(|column| x[i * k + column] * weight(row, column)).sum();
    (0..m).flat_map(|i| (0..n).map(move |row| element(i, row))).collect()
}

/// Factors and scales that products keep exact: small multiples of powers of two.
fn factors(count: usize, unit: f32) -> Vec<f32> {
    (0..count).map(|at| ((at * 11 + at / 5) % 9) as f32 * unit - 4.0 * unit).collect()
}

#[test]
fn every_machine_packs_as_its_pytorch_does() {
    let inputs = [tensor::<i32>(&[80, 2], &numbers(80, 2))];
    for (machine, expected) in PACKED {
        let (op, args) = ("aten._convert_weight_to_int4pack_for_cpu.default", vec![x(0), Arg::Int(2)]);
        let made = graph(op, args, &inputs, &[result(DType::U8, &["80", "1"])]);
        let found: String = run(made, &inputs, machine)[0].data.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, expected, "{machine:?}");
    }
}

#[test]
fn products_take_what_is_packed_on_the_same_machine() {
    let (m, n, k) = (3, 176, 64);
    let (w, left, scales) = (numbers(176, 64), factors(m * k, 0.5), factors(k / 32 * n * 2, 0.25));
    let inputs = [tensor::<i32>(&[176, 64], &w), tensor::<f32>(&[3, 64], &left), tensor::<f32>(&[2, 176, 2], &scales)];
    for machine in MACHINES {
        let made = packed_product(
            "aten._convert_weight_to_int4pack_for_cpu.default",
            "aten._weight_int4pack_mm_for_cpu.default",
            result(DType::U8, &["176", "32"]),
            &inputs,
            result(DType::F32, &["3", "176"]),
        );
        let found = run(made, &inputs, machine);
        assert_close(&elements(&found[0]), &expected(&left, &w, &scales, [m, n, k]));
    }
}

/// The word of a lane of 32, as the kernel that packs for tensor cores makes it: two tiles of 16 columns and 8 rows, of which
/// the lane has columns `2c`, `2c + 1`, `2c + 8` and `2c + 9` of one row, the second of each pair in the high half.
fn word(w: &[i32], columns: usize, block: usize, tile: usize, lane: usize) -> i32 {
    let row = block * 8 + lane / 4;
    let at = |column: usize| w[row * columns + column] as u32;
    let column = |i: usize| tile * 16 + i / 4 * 16 + i / 2 % 2 * 8 + lane % 4 * 2 + i % 2;
    let places = [0, 16, 4, 20, 8, 24, 12, 28];
    (0..8).fold(0u32, |word, i| word | at(column(i)) << places[i]).cast_signed()
}

#[test]
fn tensor_cores_have_their_own_words() {
    let (m, n, k) = (2, 16, 128);
    let (w, left, scales) = (numbers(16, 128), factors(m * k, 0.5), factors(k / 32 * n * 2, 0.25));
    let bytes: Vec<u8> = w.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    let inputs =
        [tensor::<u8>(&[16, 64], &bytes), tensor::<f32>(&[2, 128], &left), tensor::<f32>(&[4, 16, 2], &scales)];
    let (packing, packed) = ("aten._convert_weight_to_int4pack.default", result(DType::I32, &["2", "2", "32", "2"]));
    let made = graph(packing, vec![x(0), Arg::Int(4)], &inputs[..1], std::slice::from_ref(&packed));
    let found = run(made, &inputs[..1], PackedFor::default());
    let mut words = Vec::new();
    for block in 0..2 {
        for outer in 0..2 {
            for lane in 0..32 {
                words.extend([0, 2].map(|inner| word(&w, k, block, outer * 4 + inner, lane)));
            }
        }
    }
    assert_eq!(elements::<i32>(&found[0]), words);

    let product = "aten._weight_int4pack_mm.default";
    let made = packed_product(packing, product, packed, &inputs, result(DType::F32, &["2", "16"]));
    let found = run(made, &inputs, PackedFor::default());
    assert_close(&elements(&found[0]), &expected(&left, &w, &scales, [m, n, k]));
}
