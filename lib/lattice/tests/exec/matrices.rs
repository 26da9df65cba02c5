//! Operations on matrices, against formulas in f64.

use crate::model::{Model, floats, halves, ints};
use crate::scene::Random;
use m2m_lattice::plan::{Kind, ValueId};
use m2m_lattice::schema::{Activation, Elementwise, Family, GeluApprox, Op};
use m2m_record::DType;

/// What a function of one number is.
type Formula<'a> = &'a dyn Fn(f64) -> f64;

/// A value and what it should be, within so many roundings of its size.
fn close(found: &[f32], expected: &[f64], roundings: f64) {
    assert_eq!(found.len(), expected.len());
    for (at, (x, y)) in found.iter().zip(expected).enumerate() {
        let bound = roundings * f64::from(f32::EPSILON) * y.abs().max(1e-3);
        assert!((f64::from(*x) - y).abs() <= bound || f64::from(*x) == *y, "element {at}: {x}, expected {y}");
    }
}

/// One operation on a matrix of `x`.
fn unary(shape: &[usize], x: &[f32], make: impl FnOnce(&mut Model, ValueId) -> (Op, Kind)) -> Vec<f32> {
    let mut model = Model::new();
    let input = model.tensor("x", floats(shape, x));
    let (op, kind) = make(&mut model, input);
    let y = model.dense(op, kind, DType::F32, 2);
    model.returns("y", y);
    model.run().floats("y")
}

fn activation(x: &[f32], function: Activation, approximate: GeluApprox) -> Vec<f32> {
    unary(&[1, x.len()], x, |_, input| {
        let (alpha, beta, threshold) = (0.25, 1.5, 10.0);
        (Op::Activation, Kind::Activation { input, function, approximate, alpha, beta, threshold })
    })
}

#[test]
fn activations_are_their_formulas() {
    let x: Vec<f32> = (-64..=64).map(|n| n as f32 / 8.0).collect();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let cases: [(Activation, GeluApprox, Formula); 8] = [
        (Activation::Relu, GeluApprox::None, &|x| if x > 0.0 { x } else { 0.0 }),
        (Activation::Sigmoid, GeluApprox::None, &sigmoid),
        (Activation::Silu, GeluApprox::None, &|x| x * sigmoid(x)),
        (Activation::LeakyRelu, GeluApprox::None, &|x| if x < 0.0 { 0.25 * x } else { x }),
        (Activation::Tanh, GeluApprox::None, &f64::tanh),
        (Activation::Softplus, GeluApprox::None, &|x| if 1.5 * x > 10.0 { x } else { (1.5 * x).exp().ln_1p() / 1.5 }),
        (Activation::Gelu, GeluApprox::Fast, &|x| x * sigmoid(1.702 * x)),
        (Activation::Gelu, GeluApprox::Tanh, &|x| {
            0.5 * x * (1.0 + (0.7978845608028654 * (x + 0.044715 * x.powi(3))).tanh())
        }),
    ];
    for (function, approximate, formula) in cases {
        let expected: Vec<f64> = x.iter().map(|x| formula(f64::from(*x))).collect();
        close(&activation(&x, function, approximate), &expected, 1.0);
    }
    // x * Phi(x), with Phi from tables of the normal distribution.
    for approximate in [GeluApprox::None, GeluApprox::Precise] {
        let found = activation(&[0.0, 1.0, -1.0, 2.0], Activation::Gelu, approximate);
        close(&found, &[0.0, 0.841_344_746_068_543, -0.158_655_253_931_457, 2.0 * 0.977_249_868_051_821], 1.0);
    }
}

#[test]
fn rounding_is_to_even_and_exp_is_exp() {
    let x = [0.5, 1.5, 2.5, -0.5, -1.5, 1.2, -7.7];
    let of = |function| unary(&[1, 7], &x, move |_, input| (Op::Elementwise, Kind::Elementwise { input, function }));
    assert_eq!(of(Elementwise::Round), [0.0, 2.0, 2.0, -0.0, -2.0, 1.0, -8.0]);
    close(&of(Elementwise::Exp), &x.map(|x| f64::from(x).exp()), 1.0);
}

#[test]
fn softmax_survives_large_numbers() {
    let x = [1000.0, 999.0, -1000.0, 0.0, 0.0, 0.0];
    let found = unary(&[2, 3], &x, |_, input| (Op::Softmax, Kind::Softmax { input }));
    let e = 1.0 / (1.0 + (-1.0f64).exp());
    close(&found, &[e, 1.0 - e, 0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], 4.0);
}

#[test]
fn norms_are_their_formulas() {
    let mut random = Random(3);
    let (rows, channels, eps) = (7, 5, 0.125f32);
    let x = random.reals(rows * channels, 3.0);
    let [scale, bias, mean] = [0, 1, 2].map(|_| random.reals(channels, 2.0));
    let var: Vec<f32> = random.reals(channels, 2.0).iter().map(|x| x.abs()).collect();
    let vector = |model: &mut Model, family, values: &[f32]| model.weight(family, &floats(&[channels], values));
    let wide: Vec<Vec<f64>> = x.chunks(channels).map(|row| row.iter().map(|x| f64::from(*x)).collect()).collect();
    let each = |formula: &dyn Fn(&[f64], usize) -> f64| -> Vec<f64> {
        wide.iter().flat_map(|row| (0..channels).map(move |c| formula(row, c))).collect()
    };
    let of = |values: &[f32], c: usize| f64::from(values[c]);
    let eps_wide = f64::from(eps);

    let found = unary(&[rows, channels], &x, |model, input| {
        let [scale, mean, var] = [&scale, &mean, &var].map(|values| vector(model, Family::Channel, values));
        let bias = vector(model, Family::Bias, &bias);
        (Op::BatchNorm, Kind::BatchNorm { input, scale, bias, mean, var, eps })
    });
    let norm = |row: &[f64], c: usize| {
        (row[c] - of(&mean, c)) / (of(&var, c) + eps_wide).sqrt() * of(&scale, c) + of(&bias, c)
    };
    // Differences may cancel, so what they are held to is the size of the terms, at most about 20.
    let bound = |found: &[f32], expected: &[f64]| {
        for (x, y) in found.iter().zip(expected) {
            assert!((f64::from(*x) - y).abs() <= 20.0 * 8.0 * f64::from(f32::EPSILON), "{x}, expected {y}");
        }
    };
    bound(&found, &each(&norm));

    let found = unary(&[rows, channels], &x, |model, input| {
        let (scale, bias) = (vector(model, Family::Channel, &scale), vector(model, Family::Bias, &bias));
        (Op::LayerNorm, Kind::LayerNorm { input, scale, bias, eps })
    });
    let norm = |row: &[f64], c: usize| {
        let mean = row.iter().sum::<f64>() / channels as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / channels as f64;
        (row[c] - mean) / (variance + eps_wide).sqrt() * of(&scale, c) + of(&bias, c)
    };
    bound(&found, &each(&norm));

    let found = unary(&[rows, channels], &x, |model, input| {
        let scale = vector(model, Family::Channel, &scale);
        (Op::RmsNorm, Kind::RmsNorm { input, scale, eps })
    });
    let norm = |row: &[f64], c: usize| {
        let square = row.iter().map(|x| x * x).sum::<f64>() / channels as f64;
        row[c] / (square + eps_wide).sqrt() * of(&scale, c)
    };
    bound(&found, &each(&norm));
}

#[test]
fn linear_is_a_product_with_the_transposed_weight() {
    let mut random = Random(11);
    for (rows, channels, out) in [(1, 1, 1), (9, 4, 3), (130, 33, 17), (0, 3, 2)] {
        for dtype in [DType::F32, DType::F16] {
            let tensor = if dtype == DType::F16 { halves } else { floats };
            let (x, w, b) = (random.whole(rows * channels), random.whole(out * channels), random.whole(out));
            let mut model = Model::new();
            let input = model.tensor("x", tensor(&[rows, channels], &x));
            let weight = model.weight(Family::Linear, &tensor(&[out, channels], &w));
            let bias = Some(model.weight(Family::Bias, &floats(&[out], &b)));
            let y = model.dense(Op::Linear, Kind::Linear { input, weight, bias }, dtype, 2);
            model.returns("y", y);
            let expected: Vec<f32> = (0..rows * out)
                .map(|at| {
                    let (row, o) = (at / out, at % out);
                    let products = (0..channels).map(|c| x[row * channels + c] * w[o * channels + c]);
                    products.sum::<f32>() + b[o]
                })
                .collect();
            assert_eq!(model.run().floats("y"), expected, "{rows} {channels} {out} {dtype}");
        }
    }
}

#[test]
fn embedding_gathers_rows() {
    let mut model = Model::new();
    let input = model.tensor("i", ints(&[3], &[2, 0, 2]));
    let weight = model.weight(Family::Embedding, &floats(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let y = model.dense(Op::EmbeddingLookup, Kind::EmbeddingLookup { input, weight }, DType::F32, 2);
    model.returns("y", y);
    assert_eq!(model.run().floats("y"), [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
}
