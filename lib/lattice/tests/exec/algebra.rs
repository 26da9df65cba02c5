//! Values made, taken apart and joined by their coordinates, against lookups in dense grids.

use crate::dense::{Grid, logical};
use crate::model::{Model, floats, halves};
use crate::scene::Random;
use m2m_lattice::plan::{Kind, ValueId};
use m2m_lattice::schema::{BinaryOp, Join, Op};
use m2m_record::DType;

const STRIDE: [i64; 3] = [2, 1, 3];

/// Two sparse values with rows in common, some rows of either not active.
struct Pair {
    model: Model,
    coords: [Vec<[i32; 4]>; 2],
    features: [Vec<f32>; 2],
    active: [usize; 2],
    values: [ValueId; 2],
}

fn pair(seed: u64, channels: [usize; 2]) -> Pair {
    let mut random = Random(seed);
    let mut model = Model::new();
    let sides = channels.map(|channels| {
        let count = random.int(1, 20) as usize;
        let coords = random.coords(count, 1, STRIDE);
        (coords, random.whole(count * channels), random.int(0, count as i32), channels)
    });
    let names = ["a", "b"];
    let components = [0, 1].map(|at| {
        let (coords, features, active, channels) = &sides[at];
        model.components(names[at], coords, floats(&[coords.len(), *channels], features), *active)
    });
    let values = components.map(|components| model.make(components, STRIDE));
    let [a, b] = sides;
    Pair { model, coords: [a.0, b.0], features: [a.1, b.1], active: [a.2 as usize, b.2 as usize], values }
}

/// Rows of a join: coordinates, and the row of either side.
type Rows = Vec<([i32; 4], Option<usize>, Option<usize>)>;

fn joined(pair: &Pair, join: Join) -> Rows {
    let active = [0, 1].map(|side| logical(&pair.coords[side][..pair.active[side]], STRIDE));
    let grids = active.each_ref().map(|coords| Grid::new(coords));
    let of_left = active[0].iter().enumerate().map(|(row, c)| (pair.coords[0][row], Some(row), grids[1].at(c)));
    let of_right = active[1].iter().enumerate().map(|(row, c)| (pair.coords[1][row], grids[0].at(c), Some(row)));
    // Empty grids have a cell of their own, which holds nothing.
    match join {
        Join::Left => of_left.collect(),
        Join::Right => of_right.collect(),
        Join::Inner => of_left.filter(|(_, _, b)| b.is_some()).collect(),
        Join::Outer => of_left.chain(of_right.filter(|(_, a, _)| a.is_none())).collect(),
    }
}

/// The coordinates of a join, with those rows of a side behind them that are not active.
fn support(pair: &Pair, join: Join, rows: &Rows) -> Vec<[i32; 4]> {
    match join {
        Join::Left => pair.coords[0].clone(),
        Join::Right => pair.coords[1].clone(),
        _ => rows.iter().map(|row| row.0).collect(),
    }
}

#[test]
fn binary_joins_rows() {
    for seed in 0..40 {
        for join in Join::ALL.iter().copied() {
            for op in BinaryOp::ALL.iter().copied() {
                let mut pair = pair(seed, [2, 2]);
                let [lhs, rhs] = pair.values;
                let kind = Kind::Binary { lhs, rhs, op, join, lhs_fill: 0.5, rhs_fill: -2.0 };
                let y = pair.model.sparse(Op::SparseBinary, kind, DType::F32);
                pair.model.returns("y", y);
                let found = pair.model.run();
                let rows = joined(&pair, join);
                let all = support(&pair, join, &rows);
                assert_eq!(found.coords("y"), all, "{op} {join} {seed}");
                assert_eq!(found.ints("y.active"), [rows.len() as i32], "{op} {join} {seed}");
                let mut expected = vec![0.0; all.len() * 2];
                for (row, (_, a, b)) in rows.iter().enumerate() {
                    for channel in 0..2 {
                        let x = a.map_or(0.5, |a| pair.features[0][a * 2 + channel]);
                        let y = b.map_or(-2.0, |b| pair.features[1][b * 2 + channel]);
                        expected[row * 2 + channel] = match op {
                            BinaryOp::Add => x + y,
                            BinaryOp::Sub => x - y,
                            BinaryOp::Mul => x * y,
                            BinaryOp::Maximum => x.max(y),
                            BinaryOp::Minimum => x.min(y),
                        };
                    }
                }
                assert_eq!(found.features("y"), expected, "{op} {join} {seed}");
            }
        }
    }
}

#[test]
fn cat_puts_channels_together() {
    for seed in 100..140 {
        for join in Join::ALL.iter().copied() {
            let mut pair = pair(seed, [2, 3]);
            let [lhs, rhs] = pair.values;
            let y = pair.model.sparse(Op::SparseCat, Kind::Cat { lhs, rhs, join }, DType::F32);
            pair.model.returns("y", y);
            let found = pair.model.run();
            let rows = joined(&pair, join);
            let all = support(&pair, join, &rows);
            assert_eq!(found.coords("y"), all, "{join} {seed}");
            let mut expected = vec![0.0; all.len() * 5];
            for (row, (_, a, b)) in rows.iter().enumerate() {
                for channel in 0..2 {
                    expected[row * 5 + channel] = a.map_or(0.0, |a| pair.features[0][a * 2 + channel]);
                }
                for channel in 0..3 {
                    expected[row * 5 + 2 + channel] = b.map_or(0.0, |b| pair.features[1][b * 3 + channel]);
                }
            }
            assert_eq!(found.features("y"), expected, "{join} {seed}");
        }
    }
}

#[test]
fn reindex_takes_the_rows_of_its_target() {
    for seed in 200..260 {
        let mut pair = pair(seed, [3, 1]);
        let [input, target] = pair.values;
        let y = pair.model.sparse(Op::SparseReindex, Kind::Reindex { input, target, fill: -3.5 }, DType::F32);
        pair.model.returns("y", y);
        let found = pair.model.run();
        let rows = joined(&pair, Join::Right);
        assert_eq!(found.coords("y"), pair.coords[1], "{seed}");
        assert_eq!(found.ints("y.active"), [pair.active[1] as i32], "{seed}");
        let mut expected = vec![0.0; pair.coords[1].len() * 3];
        for (row, (_, a, _)) in rows.iter().enumerate() {
            for channel in 0..3 {
                expected[row * 3 + channel] = a.map_or(-3.5, |a| pair.features[0][a * 3 + channel]);
            }
        }
        assert_eq!(found.features("y"), expected, "{seed}");
    }
}

/// Values on the same rows are joined row by row, those that are not active included.
#[test]
fn the_same_rows_need_no_join() {
    let coords = [[0, 0, 0, 0], [0, 1, 0, 0], [0, 9, 0, 0]];
    for join in Join::ALL.iter().copied() {
        let mut model = Model::new();
        let x = model.components("x", &coords, floats(&[3, 1], &[1.0, 2.0, 3.0]), 2);
        let other = model.tensor("f", floats(&[3, 1], &[10.0, 20.0, 30.0]));
        let lhs = model.make(x, [1; 3]);
        let kind = Kind::WithFeatures { input: lhs, features: other };
        let rhs = model.sparse(Op::SparseWithFeatures, kind, DType::F32);
        let kind = Kind::Binary { lhs, rhs, op: BinaryOp::Sub, join, lhs_fill: 0.0, rhs_fill: 0.0 };
        let y = model.sparse(Op::SparseBinary, kind, DType::F32);
        model.returns("y", y);
        let found = model.run();
        assert_eq!(found.features("y"), [-9.0, -18.0, -27.0], "{join}");
        assert_eq!((found.coords("y"), found.ints("y.active")), (coords.to_vec(), vec![2]), "{join}");
    }
}

/// A NaN of either side stays one; fills are rounded to the element type: 0.1 is 0.0999755859375 in f16.
#[test]
fn nan_and_f16_in_binary() {
    let mut model = Model::new();
    let a = model.components("a", &[[0, 0, 0, 0], [0, 1, 0, 0]], halves(&[2, 1], &[f32::NAN, 1.0]), 2);
    let b = model.components("b", &[[0, 0, 0, 0]], halves(&[1, 1], &[2.0]), 1);
    let (lhs, rhs) = (model.make(a, [1; 3]), model.make(b, [1; 3]));
    for (name, op) in [("max", BinaryOp::Maximum), ("mul", BinaryOp::Mul)] {
        let kind = Kind::Binary { lhs, rhs, op, join: Join::Left, lhs_fill: 0.0, rhs_fill: 0.1 };
        let y = model.sparse(Op::SparseBinary, kind, DType::F16);
        model.returns(name, y);
    }
    let found = model.run();
    let (max, mul) = (found.features("max"), found.features("mul"));
    assert!(max[0].is_nan() && mul[0].is_nan(), "{max:?} {mul:?}");
    assert_eq!((max[1], mul[1]), (1.0, 0.099_975_586));
    assert_eq!(found.get("max.features").dtype, DType::F16);
}

#[test]
fn decompose_gives_back_what_make_took() {
    let coords = [[0, -4, 2, 3], [1, 6, 0, -3], [0, 8, 8, 9]];
    let mut model = Model::new();
    let x = model.components("x", &coords, floats(&[3, 1], &[1.0, 2.0, 3.0]), 2);
    let input = model.make(x, [2, 1, 3]);
    let (i32s, f32s) = (model.plan.values[x[0].0].clone(), model.plan.values[x[1].0].clone());
    let one = model.plan.values[x[2].0].clone();
    let first = model.op(Op::SparseDecompose, Kind::Decompose { input }, i32s);
    model.plan.values.extend([f32s, one]);
    let all = [first, ValueId(first.0 + 1), ValueId(first.0 + 2)];
    model.plan.ops.last_mut().unwrap().results = all.to_vec();
    for (name, value) in ["c", "f", "a"].into_iter().zip(all) {
        model.returns(name, value);
    }
    let found = model.run();
    assert_eq!(found.ints("c"), coords.concat());
    assert_eq!((found.floats("f"), found.ints("a")), (vec![1.0, 2.0, 3.0], vec![2]));
}
