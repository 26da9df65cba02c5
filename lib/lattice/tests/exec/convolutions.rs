//! The ten convolutions over every kind of window, against sums over dense grids.

use crate::dense::{self, Edge};
use crate::model::{Model, floats, halves};
use crate::scene::Random;
use m2m_lattice::plan::{Convolution, Kind, Relation, Window};
use m2m_lattice::schema::{Family, Op};
use m2m_record::DType;

const IN: usize = 3;
const OUT: usize = 5;

/// The stride of the inputs, which every stride of a window divides.
const STRIDE: [i64; 3] = [6, 12, 6];

/// What a case is about.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub relation: Relation,
    pub window: Window,
    pub eps: Option<f32>,
    pub dtype: DType,
}

impl Case {
    fn op(&self) -> Op {
        match (self.relation, self.eps.is_some()) {
            (Relation::Forward, _) => Op::Conv3d,
            (Relation::Submanifold, false) => Op::SubmConv3d,
            (Relation::Submanifold, true) => Op::NormalizedSubmConv3d,
            (Relation::Target, _) => Op::TargetConv3d,
            (Relation::Transposed, false) => Op::ConvTranspose3d,
            (Relation::Transposed, true) => Op::NormalizedConvTranspose3d,
            (Relation::TargetTransposed, false) => Op::TargetConvTranspose3d,
            (Relation::TargetTransposed, true) => Op::TargetNormalizedConvTranspose3d,
            (Relation::Generative, false) => Op::GenerativeConvTranspose3d,
            (Relation::Generative, true) => Op::NormalizedGenerativeConvTranspose3d,
        }
    }

    fn is_transposed(&self) -> bool {
        matches!(self.relation, Relation::Transposed | Relation::TargetTransposed | Relation::Generative)
    }

    /// The stride of the result.
    pub fn stride_out(&self) -> [i64; 3] {
        let w = self.window.stride;
        std::array::from_fn(|a| if self.is_transposed() { STRIDE[a] / w[a] } else { STRIDE[a] * w[a] })
    }
}

/// Round to the element type.
fn round(x: f32, dtype: DType) -> f32 {
    if dtype == DType::F16 { half::f16::from_f32(x).to_f32() } else { x }
}

/// What a convolution gives on dense grids, of `active` rows of `rows`.
fn reference(
    case: &Case,
    rows: (usize, usize),
    edges: &[Edge],
    features: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let [kx, ky, kz] = case.window.kernel_size.map(|k| k as usize);
    let mut out = vec![0.0f32; rows.0 * OUT];
    for row in 0..rows.1 {
        for o in 0..OUT {
            // Whole numbers below 2^53: exact.
            let (mut sum, mut energy) = (0.0f64, 0.0f64);
            for edge in edges.iter().filter(|edge| edge.output == row) {
                let [i, j, k] = edge.position.map(|p| p as usize);
                for c in 0..IN {
                    let w = f64::from(weight[(((o * kx + i) * ky + j) * kz + k) * IN + c]);
                    sum += f64::from(features[edge.input * IN + c]) * w;
                    energy += w * w;
                }
            }
            let sum = match case.eps {
                Some(eps) => sum as f32 / (energy as f32 + eps).sqrt(),
                None => sum as f32,
            };
            let sum = round(sum, case.dtype);
            out[row * OUT + o] = round(bias.map_or(sum, |bias| sum + bias[o]), case.dtype);
        }
    }
    out
}

fn check(case: &Case, seed: u64) {
    let mut random = Random(seed);
    let count = random.int(1, 24) as usize;
    let reach = random.int(1, 3);
    let (coords, active) = (random.coords(count.min(2 * 3 * 3 * 3), reach, STRIDE), random.int(0, count as i32));
    let features = random.whole(count * IN);
    let positions = case.window.volume() as usize;
    let weight = random.whole(OUT * positions * IN);
    let bias = (random.int(0, 1) == 1).then(|| random.whole(OUT));

    let mut model = Model::new();
    let tensor = |shape: &[usize], values: &[f32]| match case.dtype {
        DType::F16 => halves(shape, values),
        _ => floats(shape, values),
    };
    let x = model.components("x", &coords, tensor(&[count, IN], &features), active);
    let has_target = matches!(case.relation, Relation::Target | Relation::TargetTransposed);
    let stride_out = case.stride_out();
    let target = has_target.then(|| {
        let rows = random.int(1, 40) as usize;
        let reach = if case.is_transposed() { 8 } else { 3 };
        let coords = random.coords(rows, reach, stride_out);
        let active = random.int(0, rows as i32);
        (model.components("t", &coords, floats(&[rows, 1], &vec![0.0; rows]), active), coords, active)
    });
    let input = model.make(x, STRIDE);
    let target_id = target.as_ref().map(|(components, ..)| model.make(*components, stride_out));
    let [kx, ky, kz] = case.window.kernel_size.map(|k| k as usize);
    let weight_id = model.weight(Family::Conv3d, &tensor(&[OUT, kx, ky, kz, IN], &weight));
    let bias_id = bias.as_ref().map(|bias| model.weight(Family::Bias, &tensor(&[OUT], bias)));
    let conv = Convolution {
        relation: case.relation,
        input,
        target: target_id,
        weight: weight_id,
        bias: bias_id,
        window: case.window,
        eps: case.eps,
    };
    let result = model.sparse(case.op(), Kind::Convolution(conv), case.dtype);
    model.returns("y", result);
    let found = model.run();

    let logical = dense::logical(&coords[..active as usize], STRIDE);
    let targets = target.as_ref().map(|(_, coords, active)| dense::logical(&coords[..*active as usize], stride_out));
    let (outputs, edges) = dense::relation(case.relation, &case.window, &logical, targets.as_deref());
    let is_pointwise = case.window.is_pointwise() && matches!(case.relation, Relation::Forward | Relation::Submanifold);
    let keeps = matches!(case.relation, Relation::Forward | Relation::Submanifold)
        && case.window.stride == [1; 3]
        && case.window.padding == [0; 3];
    // Rows behind the active ones stay where the rows are another value's, and are zeros.
    let all: Vec<[i32; 4]> = match &target {
        Some((_, coords, _)) => coords.clone(),
        None if keeps => coords.clone(),
        None => dense::physical(&outputs, stride_out),
    };
    assert_eq!(found.coords("y"), all, "{case:?} {seed}");
    assert_eq!(found.ints("y.active"), [outputs.len() as i32], "{case:?} {seed}");
    assert_eq!(found.ints("y.stride"), stride_out.map(|n| n as i32), "{case:?} {seed}");
    let expected = if is_pointwise {
        // A matrix product on every row; the normalized one is an ordinary one.
        let edges: Vec<Edge> = (0..count).map(|row| Edge { input: row, output: row, position: [0; 3] }).collect();
        reference(&Case { eps: None, ..*case }, (count, count), &edges, &features, &weight, bias.as_deref())
    } else {
        reference(case, (all.len(), outputs.len()), &edges, &features, &weight, bias.as_deref())
    };
    assert_eq!(found.features("y"), expected, "{case:?} {seed}");
}

const KERNELS: [[i64; 3]; 6] = [[1, 1, 1], [2, 2, 2], [3, 3, 3], [3, 1, 2], [1, 4, 1], [2, 3, 5]];
const STRIDES: [[i64; 3]; 4] = [[1, 1, 1], [2, 2, 2], [3, 1, 2], [1, 4, 3]];
const PADDINGS: [[i64; 3]; 3] = [[0, 0, 0], [1, 1, 1], [2, 0, 1]];
const DILATIONS: [[i64; 3]; 3] = [[1, 1, 1], [2, 2, 2], [1, 3, 2]];

/// Every window that the contract lets a relation have, of the sizes above.
pub fn windows(relation: Relation) -> Vec<Window> {
    let mut windows = Vec::new();
    for kernel_size in KERNELS {
        for stride in STRIDES {
            for padding in PADDINGS {
                for dilation in DILATIONS {
                    let plain = (padding, dilation) == ([0; 3], [1; 3]);
                    let odd = kernel_size.iter().all(|k| k % 2 == 1);
                    let allowed = match relation {
                        Relation::Submanifold => stride == [1; 3] && padding == [0; 3] && odd,
                        Relation::Generative => plain,
                        _ => true,
                    };
                    windows.extend(allowed.then_some(Window { kernel_size, stride, padding, dilation }));
                }
            }
        }
    }
    windows
}

fn check_all(relation: Relation, eps: Option<f32>) {
    for (at, window) in windows(relation).into_iter().enumerate() {
        for seed in 0..2 {
            let dtype = if at % 3 == 2 { DType::F16 } else { DType::F32 };
            check(&Case { relation, window, eps, dtype }, (at * 2) as u64 + seed);
        }
    }
}

#[test]
fn conv3d_has_its_own_support() {
    check_all(Relation::Forward, None);
}

#[test]
fn subm_conv3d_keeps_its_rows() {
    check_all(Relation::Submanifold, None);
    check_all(Relation::Submanifold, Some(0.5));
}

#[test]
fn target_conv3d_has_the_rows_of_its_target() {
    check_all(Relation::Target, None);
}

#[test]
fn conv_transpose3d_spreads() {
    check_all(Relation::Transposed, None);
    check_all(Relation::Transposed, Some(0.01));
}

#[test]
fn target_conv_transpose3d_spreads_onto_its_target() {
    check_all(Relation::TargetTransposed, None);
    check_all(Relation::TargetTransposed, Some(0.25));
}

#[test]
fn generative_conv_transpose3d_gives_every_row_and_position() {
    check_all(Relation::Generative, None);
    check_all(Relation::Generative, Some(1e-5));
}

/// Kernel (3, 1, 5) at (0,0,0), (1,0,0), (0,0,1) with features 1, 2, 4 and weights 1 to 15. The first row's own position is
/// 7 (index), weight 8; (1,0,0) lies 5 positions on, weight 13; (0,0,1) one on, weight 9: 8 + 26 + 36 = 70. The second:
/// 2 * 8 + 1 * 3 + 4 * 4 = 35. The third: 4 * 8 + 1 * 7 + 2 * 12 = 63.
#[test]
fn offsets_run_z_fastest_and_are_centred() {
    let mut model = Model::new();
    let coords = [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]];
    let x = model.components("x", &coords, floats(&[3, 1], &[1.0, 2.0, 4.0]), 3);
    let input = model.make(x, [1; 3]);
    let weights: Vec<f32> = (1..=15).map(|n| n as f32).collect();
    let weight = model.weight(Family::Conv3d, &floats(&[1, 3, 1, 5, 1], &weights));
    let window = Window { kernel_size: [3, 1, 5], stride: [1; 3], padding: [0; 3], dilation: [1; 3] };
    let relation = Relation::Submanifold;
    let conv = Convolution { relation, input, target: None, weight, bias: None, window, eps: None };
    let y = model.sparse(Op::SubmConv3d, Kind::Convolution(conv), DType::F32);
    model.returns("y", y);
    assert_eq!(model.run().features("y"), [70.0, 35.0, 63.0]);
}

/// Weights stored as `[out, in]` for one position, and as `[position, in, out]`, mean what `[out, x, y, z, in]` does.
#[test]
fn other_layouts_of_a_weight_are_read() {
    let coords = [[0, 0, 0, 0], [0, 0, 0, 1]];
    let run = |kernel_size: [i64; 3], weight: &crate::model::Tensor| {
        let mut model = Model::new();
        let x = model.components("x", &coords, floats(&[2, 2], &[1.0, 10.0, 100.0, 1000.0]), 2);
        let input = model.make(x, [1; 3]);
        let weight = model.weight(Family::Conv3d, weight);
        let window = Window { kernel_size, stride: [1; 3], padding: [0; 3], dilation: [1; 3] };
        let relation = Relation::Forward;
        let conv = Convolution { relation, input, target: None, weight, bias: None, window, eps: None };
        let y = model.sparse(Op::Conv3d, Kind::Convolution(conv), DType::F32);
        model.returns("y", y);
        model.run().features("y")
    };
    let point = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let expected = [21.0, 43.0, 65.0, 2100.0, 4300.0, 6500.0];
    assert_eq!(run([1; 3], &floats(&[3, 2], &point)), expected);
    assert_eq!(run([1; 3], &floats(&[3, 1, 1, 1, 2], &point)), expected);
    assert_eq!(run([1; 3], &floats(&[1, 2, 3], &[1.0, 3.0, 5.0, 2.0, 4.0, 6.0])), expected);
    // Two positions along z, one channel out: weights 1, 2 at the first and 3, 4 at the second.
    let expected = [21.0 + 4300.0, 2100.0];
    assert_eq!(run([1, 1, 2], &floats(&[1, 1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])), expected);
    assert_eq!(run([1, 1, 2], &floats(&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0])), expected);
}
