//! Pooling over windows and batches, and upsampling, against dense grids.

use crate::convolutions::windows;
use crate::dense;
use crate::model::{Model, floats};
use crate::scene::Random;
use m2m_lattice::plan::{Kind, Relation, Window};
use m2m_lattice::schema::{Op, PoolMode};
use m2m_record::DType;

const CHANNELS: usize = 2;
const STRIDE: [i64; 3] = [6, 12, 6];

/// A random sparse input of whole numbers.
struct Scene {
    model: Model,
    coords: Vec<[i32; 4]>,
    features: Vec<f32>,
    components: [m2m_lattice::plan::ValueId; 3],
    active: usize,
}

fn scene(random: &mut Random) -> Scene {
    let count = random.int(1, 20) as usize;
    let (coords, active) = (random.coords(count, 2, STRIDE), random.int(0, count as i32));
    let features = random.whole(count * CHANNELS);
    let mut model = Model::new();
    let components = model.components("x", &coords, floats(&[count, CHANNELS], &features), active);
    Scene { model, coords, features, components, active: active as usize }
}

#[test]
fn pool3d_reduces_windows() {
    for mode in [PoolMode::Sum, PoolMode::Max, PoolMode::Avg] {
        for (at, window) in windows(Relation::Forward).into_iter().enumerate() {
            let mut random = Random(at as u64 * 31 + 7);
            let Scene { mut model, coords, features, components, active } = scene(&mut random);
            let input = model.make(components, STRIDE);
            let y = model.sparse(Op::Pool3d, Kind::Pool { input, mode, window }, DType::F32);
            model.returns("y", y);
            let found = model.run();
            let logical = dense::logical(&coords[..active], STRIDE);
            let (outputs, edges) = dense::relation(Relation::Forward, &window, &logical, None);
            let keeps = window.stride == [1; 3] && window.padding == [0; 3];
            let rows = if keeps { coords.len() } else { outputs.len() };
            let mut expected = vec![0.0f32; rows * CHANNELS];
            for row in 0..outputs.len() {
                for channel in 0..CHANNELS {
                    let into: Vec<f32> = edges
                        .iter()
                        .filter(|edge| edge.output == row)
                        .map(|edge| features[edge.input * CHANNELS + channel])
                        .collect();
                    let sum: f32 = into.iter().sum();
                    expected[row * CHANNELS + channel] = match mode {
                        PoolMode::Sum => sum,
                        PoolMode::Avg if into.is_empty() => 0.0,
                        PoolMode::Avg => sum / into.len() as f32,
                        PoolMode::Max => into.into_iter().fold(f32::NEG_INFINITY, f32::max),
                    };
                }
            }
            assert_eq!(found.features("y"), expected, "{mode} {window:?}");
            let stride: [i64; 3] = std::array::from_fn(|a| STRIDE[a] * window.stride[a]);
            let expected = if keeps { coords } else { dense::physical(&outputs, stride) };
            assert_eq!(found.coords("y"), expected, "{mode} {window:?}");
        }
    }
}

/// The mean over the edges of a transposed relation, weighted; rows out as given by the target or by the relation.
fn check_transposed(seed: u64, window: Window, with_target: bool, upsample: Option<[i64; 3]>) {
    let mut random = Random(seed);
    let Scene { mut model, coords, features, components, active } = scene(&mut random);
    let stride_out: [i64; 3] = std::array::from_fn(|a| STRIDE[a] / window.stride[a]);
    let target = with_target.then(|| {
        let rows = random.int(1, 30) as usize;
        let coords = random.coords(rows, 6, stride_out);
        let active = random.int(0, rows as i32);
        (model.components("t", &coords, floats(&[rows, 1], &vec![1.0; rows]), active), coords, active as usize)
    });
    let input = model.make(components, STRIDE);
    let target_id = target.as_ref().map(|(components, ..)| model.make(*components, stride_out));
    let y = match upsample {
        Some(stride) => {
            model.sparse(Op::TrilinearUpsample3d, Kind::Upsample { input, target: target_id, stride }, DType::F32)
        }
        None => model.sparse(Op::PoolTranspose3d, Kind::PoolTranspose { input, target: target_id, window }, DType::F32),
    };
    model.returns("y", y);
    let found = model.run();
    let logical = dense::logical(&coords[..active], STRIDE);
    let targets = target.as_ref().map(|(_, coords, active)| dense::logical(&coords[..*active], stride_out));
    let relation = if with_target { Relation::TargetTransposed } else { Relation::Transposed };
    let (outputs, edges) = dense::relation(relation, &window, &logical, targets.as_deref());
    let all = target.map_or_else(|| dense::physical(&outputs, stride_out), |(_, coords, _)| coords);
    assert_eq!(found.coords("y"), all, "{window:?} {seed}");
    assert_eq!(found.ints("y.active"), [outputs.len() as i32], "{window:?} {seed}");
    let values = found.features("y");
    for row in 0..all.len() {
        for channel in 0..CHANNELS {
            let (mut sum, mut total, mut size) = (0.0f64, 0.0f64, 0.0f64);
            for edge in edges.iter().filter(|edge| edge.output == row && row < outputs.len()) {
                let weight: f64 = upsample.map_or(1.0, |s| {
                    let axes = edge.position.iter().zip(s).map(|(p, s)| 1.0 - (p - (s - 1)).abs() as f64 / s as f64);
                    axes.product()
                });
                let x = f64::from(features[edge.input * CHANNELS + channel]);
                sum += weight * x;
                size += weight * x.abs();
                total += weight;
            }
            let expected = if total == 0.0 { 0.0 } else { sum / total };
            let value = f64::from(values[row * CHANNELS + channel]);
            // Whole numbers divide to one rounding. Weights are rounded three times, sums once an edge, at most 27 edges.
            let roundings = if upsample.is_some() { 64.0 } else { 1.0 };
            let bound = roundings * f64::from(f32::EPSILON) * size / total.max(1e-9);
            assert!((value - expected).abs() <= bound, "{value} {expected} {window:?} {seed}");
        }
    }
}

#[test]
fn pool_transpose3d_is_the_mean_of_what_spreads() {
    for (at, window) in windows(Relation::Transposed).into_iter().enumerate() {
        check_transposed(at as u64 + 1000, window, false, None);
        check_transposed(at as u64 + 2000, window, true, None);
    }
}

#[test]
fn trilinear_upsampling_is_a_weighted_mean() {
    for (at, stride) in [[1, 1, 1], [2, 2, 2], [3, 3, 3], [1, 2, 3], [6, 4, 1]].into_iter().enumerate() {
        let kernel_size = stride.map(|s| 2 * s - 1);
        let window = Window { kernel_size, stride, padding: stride.map(|s| s - 1), dilation: [1; 3] };
        for seed in 0..8 {
            check_transposed(at as u64 * 100 + seed, window, seed % 2 == 0, Some(stride));
        }
    }
}

fn global_pool(coords: &[[i32; 4]], features: &[f32], active: i32, mode: PoolMode, batch_size: Option<u64>) -> Model {
    let mut model = Model::new();
    let components = model.components("x", coords, floats(&[coords.len(), 1], features), active);
    let input = model.make(components, [1; 3]);
    let y = model.dense(Op::GlobalPool, Kind::GlobalPool { input, mode, batch_size }, DType::F32, 2);
    model.returns("y", y);
    model
}

#[test]
fn global_pool_reduces_batches() {
    let coords = [[0, 0, 0, 0], [2, 0, 0, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [2, 5, 0, 0], [1, 0, 0, 0]];
    let features = [1.0, 2.0, 4.0, 100.0, 8.0, 1000.0];
    let run = |mode, batch_size| global_pool(&coords, &features, 5, mode, batch_size).run().floats("y");
    // The last row is not active, the fourth is in no batch; batch 1 is empty.
    assert_eq!(run(PoolMode::Sum, None), [5.0, 0.0, 10.0]);
    assert_eq!(run(PoolMode::Avg, Some(4)), [2.5, 0.0, 5.0, 0.0]);
    assert_eq!(run(PoolMode::Max, Some(1)), [4.0]);
    let refused = global_pool(&coords, &features, 5, PoolMode::Max, None).refused();
    assert_eq!(refused, "lattice.global_pool at 7:3: max over batch 1, which has no active row");
    let refused = global_pool(&coords, &features, 0, PoolMode::Max, None).refused();
    assert!(refused.contains("max over no batch"), "{refused}");
    assert_eq!(global_pool(&coords, &features, 0, PoolMode::Sum, None).run().get("y").shape, [0, 1]);
}

/// What is known of one relation is not taken for another on the same rows: other targets, another window, other rows.
#[test]
fn relations_are_kept_apart() {
    let mut model = Model::new();
    let x = model.components("x", &[[0, 0, 0, 0], [0, 2, 0, 0]], floats(&[2, 1], &[1.0, 2.0]), 2);
    let t = model.components("t", &[[0, 2, 0, 0]], floats(&[1, 1], &[0.0]), 1);
    let u = model.components("u", &[[0, 1, 0, 0], [0, 0, 0, 0]], floats(&[2, 1], &[0.0; 2]), 2);
    let (input, t, u) = (model.make(x, [2; 3]), model.make(t, [1; 3]), model.make(u, [1; 3]));
    let two = Window { kernel_size: [2; 3], stride: [2; 3], padding: [0; 3], dilation: [1; 3] };
    let one = Window { kernel_size: [1; 3], ..two };
    let cases = [
        ("t", input, Some(t), two, vec![2.0]),
        ("u", input, Some(u), two, vec![1.0, 1.0]),
        ("u again", input, Some(u), two, vec![1.0, 1.0]),
        ("u by one", input, Some(u), one, vec![0.0, 1.0]),
        ("t again", input, Some(t), two, vec![2.0]),
    ];
    for (name, input, target, window, _) in &cases {
        let kind = Kind::PoolTranspose { input: *input, target: *target, window: *window };
        let y = model.sparse(Op::PoolTranspose3d, kind, DType::F32);
        model.returns(name, y);
    }
    let kind = Kind::PoolTranspose { input, target: None, window: one };
    let spread = model.sparse(Op::PoolTranspose3d, kind, DType::F32);
    model.returns("spread", spread);
    let found = model.run();
    for (name, .., expected) in &cases {
        assert_eq!(found.features(name), *expected, "{name}");
    }
    assert_eq!(found.features("spread"), [1.0, 2.0]);
}
