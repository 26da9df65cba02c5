//! Packed weights, exactly: codes are unpacked by shifting a bit stream, one bit at a time, and every number here is one
//! that f32 holds.

use crate::model::{Model, Tensor, floats, halves};
use crate::scene::Random;
use m2m_lattice::plan::{Convolution, Kind, Relation, Window};
use m2m_lattice::schema::{Family, Op};
use m2m_record::DType;

/// A packed weight and the elements that it stands for, `[position][out][in]`.
struct Packed {
    parts: [Tensor; 3],
    elements: Vec<Vec<Vec<f32>>>,
}

/// `channels` are padded to whole groups. Scales are quarters, biases whole numbers.
fn pack(random: &mut Random, bits: usize, group: usize, [positions, out, channels]: [usize; 3], half: bool) -> Packed {
    let stored = channels.next_multiple_of(group);
    let (words, groups) = (stored * bits / 32, stored / group);
    let count = positions * out;
    let rows: Vec<Vec<u32>> = (0..count * stored / 32 * bits)
        .map(|_| random.next() as u32)
        .collect::<Vec<_>>()
        .chunks(words)
        .map(<[_]>::to_vec)
        .collect();
    let scales: Vec<Vec<f32>> = (0..count).map(|_| random.whole(groups).iter().map(|x| x / 4.0).collect()).collect();
    let biases: Vec<Vec<f32>> = (0..count).map(|_| random.whole(groups)).collect();
    let bit = |row: &[u32], at: usize| row[at / 32] >> (at % 32) & 1;
    let elements = (0..positions)
        .map(|k| {
            let each = |o: usize| {
                let row = k * out + o;
                let element = |c: usize| {
                    let code: u32 = (0..bits).map(|b| bit(&rows[row], c * bits + b) << b).sum();
                    scales[row][c / group] * code as f32 + biases[row][c / group]
                };
                (0..channels).map(element).collect()
            };
            (0..out).map(each).collect()
        })
        .collect();
    // One position lies `[1, out, size]`, several `[positions, size, out]`.
    let place = |size: usize| {
        let mut order = Vec::new();
        for k in 0..positions {
            if positions == 1 {
                order.extend((0..out).flat_map(|o| (0..size).map(move |at| (o, at))));
            } else {
                order.extend((0..size).flat_map(|at| (0..out).map(move |o| (k * out + o, at))));
            }
        }
        let shape = if positions == 1 { vec![1, out, size] } else { vec![positions, size, out] };
        (shape, order)
    };
    let (shape, order) = place(words);
    let bytes = order.iter().flat_map(|(row, at)| rows[*row][*at].to_le_bytes()).collect();
    let weight = Tensor { dtype: DType::U32, shape: shape.iter().map(|n| *n as u64).collect(), bytes };
    let (shape, order) = place(groups);
    let affine = |values: &[Vec<f32>]| {
        let values: Vec<f32> = order.iter().map(|(row, at)| values[*row][*at]).collect();
        if half { halves(&shape, &values) } else { floats(&shape, &values) }
    };
    let parts = [weight, affine(&scales), affine(&biases)];
    Packed { parts, elements }
}

#[test]
fn packed_linear_is_exact() {
    for (at, (bits, group, channels)) in
        [(4, 32, 40), (4, 64, 64), (4, 128, 1), (8, 32, 33), (8, 64, 70), (8, 128, 128)].into_iter().enumerate()
    {
        let mut random = Random(at as u64);
        let (rows, out) = (6, 3);
        let packed = pack(&mut random, bits, group, [1, out, channels], false);
        let (x, b) = (random.whole(rows * channels), random.whole(out));
        let mut model = Model::new();
        let input = model.tensor("x", floats(&[rows, channels], &x));
        let weight = model.packed(Family::Linear, bits as u32, group as u32, packed.parts.each_ref());
        let bias = Some(model.weight(Family::Bias, &floats(&[out], &b)));
        let y = model.dense(Op::Linear, Kind::Linear { input, weight, bias }, DType::F32, 2);
        model.returns("y", y);
        let expected: Vec<f32> = (0..rows * out)
            .map(|at| {
                let (row, o) = (at / out, at % out);
                let products = (0..channels).map(|c| x[row * channels + c] * packed.elements[0][o][c]);
                products.sum::<f32>() + b[o]
            })
            .collect();
        assert_eq!(model.run().floats("y"), expected, "{bits} {group} {channels}");
    }
}

/// Every relation that takes a packed weight, with one position and with several.
#[test]
fn packed_convolutions_are_those_of_what_they_stand_for() {
    let relations = [
        (Relation::Forward, Op::Conv3d, [2, 1, 3]),
        (Relation::Forward, Op::Conv3d, [1, 1, 1]),
        (Relation::Submanifold, Op::SubmConv3d, [3, 1, 1]),
        (Relation::Target, Op::TargetConv3d, [2, 2, 1]),
        (Relation::Transposed, Op::ConvTranspose3d, [2, 1, 2]),
        (Relation::Generative, Op::GenerativeConvTranspose3d, [1, 2, 2]),
        (Relation::Generative, Op::GenerativeConvTranspose3d, [1, 1, 1]),
    ];
    for (at, (relation, op, kernel_size)) in relations.into_iter().enumerate() {
        for (bits, group) in [(4, 32), (8, 64)] {
            let mut random = Random(at as u64 + 50);
            let (channels, out, rows) = (37, 4, 12);
            let positions = kernel_size.iter().product::<i64>() as usize;
            let packed = pack(&mut random, bits, group, [positions, out, channels], false);
            let coords = random.coords(rows, 1, [1; 3]);
            let x = random.whole(rows * channels);
            let run = |is_packed: bool| {
                let mut model = Model::new();
                let components = model.components("x", &coords, floats(&[rows, channels], &x), rows as i32);
                let input = model.make(components, [1; 3]);
                let weight = if is_packed {
                    model.packed(Family::Conv3d, bits as u32, group as u32, packed.parts.each_ref())
                } else {
                    let element = |o: usize| packed.elements.iter().flat_map(move |each| each[o].clone());
                    let dense: Vec<f32> = (0..out).flat_map(element).collect();
                    let [kx, ky, kz] = kernel_size.map(|k| k as usize);
                    model.weight(Family::Conv3d, &floats(&[out, kx, ky, kz, channels], &dense))
                };
                let window = Window { kernel_size, stride: [1; 3], padding: [0; 3], dilation: [1; 3] };
                let target = (relation == Relation::Target).then_some(input);
                let conv = Convolution { relation, input, target, weight, bias: None, window, eps: None };
                let y = model.sparse(op, Kind::Convolution(conv), DType::F32);
                model.returns("y", y);
                model.run().features("y")
            };
            let found = run(true);
            assert!(found.iter().any(|x| *x != 0.0), "{op:?}");
            assert_eq!(found, run(false), "{op:?} {bits}");
        }
    }
}

/// Features are rounded to the element type of the scales before, sums after: with f16 scales, 2049 is taken as 2048, and
/// 2048 + 1 comes out as 2048, to which the f32 bias is added.
#[test]
fn f16_scales_round_features_and_sums() {
    let mut model = Model::new();
    let mut x = vec![0.0; 32];
    (x[0], x[1]) = (2049.0, 1.0);
    let input = model.tensor("x", floats(&[1, 32], &x));
    // Codes 1, 1 and zeros: the weight is 1, 1, 0, ….
    let words = [0x11, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let weight = Tensor { dtype: DType::U32, shape: vec![1, 1, 4], bytes: words };
    let one = |x: f32| halves(&[1, 1, 1], &[x]);
    let weight = model.packed(Family::Linear, 4, 32, [&weight, &one(1.0), &one(0.0)]);
    let bias = Some(model.weight(Family::Bias, &floats(&[1], &[0.5])));
    let y = model.dense(Op::Linear, Kind::Linear { input, weight, bias }, DType::F32, 2);
    model.returns("y", y);
    assert_eq!(model.run().floats("y"), [2048.5]);
}
