//! Random numbers are those of Philox 4x32-10, held to its published answers and to an implementation of its own here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use m2m_aten::Prepared;
use m2m_graph::{Graph, Places};
use m2m_lower::linalg::{Options, emit};
use m2m_mlir::jit::{Argument, Output, Program};
use m2m_mlir::{Form, Locations};
use m2m_record::{Arg, DType, InputRole, Node, Type, TypedValue};
use support::{Tensor, elements, graph, result, tensor, x};

/// One block, as the paper defines it.
fn philox(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
        }
        let (a, b) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        let split = |x: u64| ((x >> 32) as u32, x as u32);
        let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
        c = [b_high ^ c[1] ^ key[0], b_low, a_high ^ c[3] ^ key[1], a_low];
    }
    c
}

/// The answers of the authors' test vectors (`kat_vectors` of Random123).
#[test]
fn the_reference_gives_the_published_answers() {
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
    assert_eq!(philox(pi, [0xa409_3822, 0x299f_31d0]), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
}

/// The block of element `i` of operator `k`.
fn block(seed: i64, i: u64, k: u32, last: u32) -> [u32; 4] {
    philox([i as u32, (i >> 32) as u32, k, last], [seed as u32, (seed >> 32) as u32])
}

fn uniform(word: u32) -> f32 {
    (word >> 8) as f32 / 16_777_216.0
}

fn run(prepared: &Prepared, inputs: &[Tensor], seed: i64) -> Vec<Output> {
    let context = m2m_mlir::context();
    let emitted = emit(&context, prepared, &Places::default(), Options::default()).unwrap();
    m2m_mlir::verify(&context, &emitted.module).unwrap();
    let last = emitted.arguments.last().unwrap();
    assert_eq!((last.role, last.value.as_str()), (InputRole::Seed, "seed"));
    let text = m2m_mlir::print(&emitted.module, Form::Generic, Locations::Omit).unwrap();
    let program = Program::compile(&text, "forward", m2m_mlir::jit::Options::default()).unwrap();
    let seed = [Argument::Int(seed)];
    program.run(&inputs.iter().map(Tensor::argument).chain(seed).collect::<Vec<_>>()).unwrap().outputs
}

fn sizes(sizes: &[i64]) -> Arg {
    Arg::ints(sizes.iter().copied())
}

/// Two random operators, the second of which gives `ty`.
fn after_one(op: &str, args: Vec<Arg>, ty: Type) -> Prepared {
    let mut graph = graph("aten.rand.default", vec![sizes(&[2])], &[], &[result(DType::F32, &["2"])]);
    add(&mut graph, op, args, "z", ty);
    Prepared { graph, ..Prepared::default() }
}

fn add(graph: &mut Graph, op: &str, args: Vec<Arg>, value: &str, ty: Type) {
    let results = vec![TypedValue { value: Some(value.into()), ty }];
    let node = format!("{}:{}", graph.id, graph.nodes.len());
    graph.nodes.push(Node { node, op: op.into(), args, results, ..graph.nodes[0].clone() });
    let output = m2m_record::OutputItem { value: Some(value.into()), ..graph.outputs[0].clone() };
    graph.outputs.push(output);
}

#[test]
fn uniform_numbers_are_the_highest_bits_of_their_block() {
    for seed in [0, 7, -1, 0x1234_5678_9abc_def0] {
        let ty = result(DType::F32, &["3", "5"]);
        let outputs = run(&after_one("aten.rand.default", vec![sizes(&[3, 5])], ty), &[], seed);
        let first: Vec<f32> = (0..2).map(|i| uniform(block(seed, i, 0, 0)[0])).collect();
        let second: Vec<f32> = (0..15).map(|i| uniform(block(seed, i, 1, 0)[0])).collect();
        assert_eq!(elements::<f32>(&outputs[0]), first);
        assert_eq!(elements::<f32>(&outputs[1]), second);
    }
    let ty = result(DType::F64, &["4"]);
    let outputs = run(&after_one("aten.rand.default", vec![sizes(&[4])], ty), &[], 3);
    let double = |w: [u32; 4]| ((u64::from(w[0] >> 5) << 26) | u64::from(w[1] >> 6)) as f64 / (1_u64 << 53) as f64;
    let expected: Vec<f64> = (0..4).map(|i| double(block(3, i, 1, 0))).collect();
    assert_eq!(elements::<f64>(&outputs[1]), expected);
}

#[test]
fn normal_numbers_are_those_of_box_and_muller() {
    let outputs = run(&after_one("aten.randn.default", vec![sizes(&[50])], result(DType::F32, &["50"])), &[], 11);
    let expected: Vec<f32> = (0..50)
        .map(|i| {
            let words = block(11, i, 1, 0);
            let (u, v) = ((f64::from(words[0]) + 1.0) / 4_294_967_296.0, f64::from(words[1] >> 8) / 16_777_216.0);
            ((-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()) as f32
        })
        .collect();
    for (found, expected) in elements::<f32>(&outputs[1]).iter().zip(&expected) {
        assert!((found - expected).abs() < 2e-6, "{found}, expected {expected}");
    }
}

#[test]
fn integers_are_remainders_of_64_bits() {
    let args = vec![Arg::Int(-3), Arg::Int(4), sizes(&[30])];
    let outputs = run(&after_one("aten.randint.low", args, result(DType::I64, &["30"])), &[], 5);
    let expected: Vec<i64> = (0..30)
        .map(|i| {
            let words = block(5, i, 1, 0);
            ((u64::from(words[0]) | (u64::from(words[1]) << 32)) % 7) as i64 - 3
        })
        .collect();
    assert_eq!(elements::<i64>(&outputs[1]), expected);
}

/// A map whose graph draws numbers: each row has the seed of its round.
#[test]
fn every_round_of_a_loop_has_a_seed_of_its_own() {
    let row = tensor::<f32>(&[2], &[0.0; 2]);
    let mut body = graph("aten.rand.default", vec![sizes(&[2])], &[row], &[result(DType::F32, &["2"])]);
    body.id = "prepared/body".into();
    body.parent = Some("prepared".into());
    body.nodes[0].node = "prepared:9".into();
    let whole = || tensor::<f32>(&[3, 2], &[0.0; 6]);
    let args = vec![Arg::Graph("prepared/body".into()), Arg::List(vec![x(0)]), Arg::List(vec![])];
    let root = graph("higher_order.map_impl", args, &[whole()], &[result(DType::F32, &["3", "2"])]);
    let outputs = run(&Prepared { graph: root, nested: vec![body], eliminations: vec![] }, &[whole()], 42);
    let mut expected = Vec::new();
    for round in 0..3 {
        let words = block(42, round, 0, 1);
        let seed = (u64::from(words[0]) | (u64::from(words[1]) << 32)).cast_signed();
        expected.extend((0..2).map(|i| uniform(block(seed, i, 0, 0)[0])));
    }
    assert_eq!(elements::<f32>(&outputs[0]), expected);
}

/// Buckets of many numbers, of neighbours and of two seeds, by the chi-squared statistic: with 255 degrees of freedom it is
/// above 400 in one of 10^8 runs.
#[test]
fn numbers_are_spread_evenly_and_do_not_depend_on_one_another() {
    let draw = |seed| {
        let program = after_one("aten.rand.default", vec![sizes(&[65536])], result(DType::F32, &["65536"]));
        elements::<f32>(&run(&program, &[], seed)[1])
    };
    let (one, other) = (draw(1), draw(2));
    assert_eq!(one, draw(1));
    let chi_squared = |pairs: Vec<(f32, f32)>| {
        let mut buckets = [0_u32; 256];
        for (a, b) in &pairs {
            buckets[(a * 16.0) as usize * 16 + (b * 16.0) as usize] += 1;
        }
        let expected = pairs.len() as f64 / 256.0;
        buckets.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum::<f64>()
    };
    let seeds = chi_squared(one.iter().copied().zip(other.iter().copied()).collect());
    let neighbours = chi_squared(one.chunks(2).map(|pair| (pair[0], pair[1])).collect());
    let parts = chi_squared(one.iter().map(|x| (*x, (x * 16.0).fract())).collect());
    for statistic in [seeds, neighbours, parts] {
        assert!((130.0..400.0).contains(&statistic), "{seeds} {neighbours} {parts}");
    }
}
