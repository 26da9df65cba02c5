//! Pools, resampling and padding by the tensor's own elements, against values that PyTorch computes.

mod support;

use m2m_record::{Arg, DType};
use support::{Tensor, assert_close, elements, float, graph, pretty, refusal, result, run, tensor, x};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn counted(dims: &[i64]) -> Tensor {
    let count: i64 = dims.iter().product();
    tensor(dims, &(0..count).map(|k| (k + 1) as f32).collect::<Vec<_>>())
}

fn line() -> Tensor {
    tensor(&[1, 1, 4], &[1.0f32, 2.0, 4.0, 8.0])
}

/// Calls an operator with one input and gives its one result.
fn one(op: &str, input: Tensor, args: Vec<Arg>, shape: &[&str]) -> Vec<f32> {
    let args = std::iter::once(x(0)).chain(args).collect();
    elements(&run(op, args, &[input], &[result(DType::F32, shape)])[0])
}

#[test]
fn the_greatest_and_its_place() {
    let data = [NAN, -INF, INF, INF, -INF, NAN, 1.0, 1.0, 2.0, 5.0, 5.0, -1.0, 5.0, 5.0, 3.0, 3.0];
    let args = vec![x(0), Arg::ints([2, 2]), Arg::ints([2, 2])];
    let both = [result(DType::F32, &["1", "1", "2", "2"]), result(DType::I64, &["1", "1", "2", "2"])];
    let found = run("aten.max_pool2d_with_indices.default", args, &[tensor(&[1, 1, 4, 4], &data)], &both);
    assert_close(&elements(&found[0]), &[NAN, INF, 5.0, 5.0]);
    // The first of equal elements, but the last NaN.
    assert_eq!(elements::<i64>(&found[1]), [5, 2, 9, 10]);
}

#[test]
fn elements_outside_never_win() {
    let args = vec![x(0), Arg::ints([3, 3]), Arg::ints([2, 2]), Arg::ints([1, 1])];
    let both = [result(DType::F32, &["1", "1", "2", "2"]), result(DType::I64, &["1", "1", "2", "2"])];
    let found = run("aten.max_pool2d_with_indices.default", args, &[tensor(&[1, 1, 3, 3], &[-INF; 9])], &both);
    assert_close(&elements(&found[0]), &[-INF; 4]);
    assert_eq!(elements::<i64>(&found[1]), [0, 1, 3, 4]);
}

#[test]
fn a_window_without_elements_has_the_place_where_it_would_begin() {
    let args = vec![x(0), Arg::ints([2, 2]), Arg::ints([1, 2]), Arg::ints([1, 1]), Arg::ints([2, 2]), Arg::Bool(true)];
    let both = [result(DType::F32, &["1", "1", "3", "1"]), result(DType::I64, &["1", "1", "3", "1"])];
    let found = run("aten.max_pool2d_with_indices.default", args, &[counted(&[1, 1, 3, 1])], &both);
    assert_close(&elements(&found[0]), &[-INF; 3]);
    assert_eq!(elements::<i64>(&found[1]), [2, 1, 2]);
}

#[test]
fn unused_places_are_not_computed() {
    let args = vec![x(0), Arg::ints([2, 2])];
    let both = [result(DType::F32, &["1", "1", "2", "2"]), result(DType::I64, &["1", "1", "2", "2"])];
    let mut graph = graph("aten.max_pool2d_with_indices.default", args, &[counted(&[1, 1, 4, 4])], &both);
    let with_places = pretty(&graph);
    assert!(with_places.contains("linalg.index") && !with_places.contains("linalg.pooling_nchw_max"));
    graph.outputs.truncate(1);
    let without = pretty(&graph);
    assert!(without.contains("linalg.pooling_nchw_max") && !without.contains("linalg.index"), "{without}");
}

#[test]
fn elements_go_back_to_their_places() {
    let values = tensor(&[1, 1, 2], &[5.0f32, 7.0]);
    let places = tensor(&[1, 1, 2], &[4i64, 1]);
    let args = vec![x(0), x(1), Arg::ints([2, 3])];
    let shape = [result(DType::F32, &["1", "2", "3"])];
    let found = run("aten.max_unpool2d.default", args, &[values, places], &shape);
    assert_close(&elements(&found[0]), &[0.0, 7.0, 0.0, 0.0, 5.0, 0.0]);
}

/// Two windows that share their greatest element give it both of their gradients.
#[test]
fn gradients_meet() {
    let gradient = tensor(&[1, 1, 2], &[5.0f32, 7.0]);
    let places = tensor(&[1, 1, 2], &[1i64, 1]);
    let lists = [[1, 2], [1, 1], [0, 0], [1, 1]].map(Arg::ints);
    let args = [x(0), x(1)].into_iter().chain(lists).chain([Arg::Bool(false), x(2)]).collect();
    let inputs = [gradient, counted(&[1, 1, 3]), places];
    let op = "aten.max_pool2d_with_indices_backward.default";
    let found = run(op, args, &inputs, &[result(DType::F32, &["1", "1", "3"])]);
    assert_close(&elements(&found[0]), &[0.0, 12.0, 0.0]);
}

#[test]
fn means_count_padding_or_do_not() {
    let mean = |kernel: i64, stride: i64, padding: i64, ceil: bool, include: bool| {
        let sizes = [kernel, stride, padding].map(|n| Arg::ints([n]));
        let args = sizes.into_iter().chain([Arg::Bool(ceil), Arg::Bool(include)]).collect();
        one("aten.avg_pool1d.default", counted(&[1, 1, 8]), args, &["1", "1", "4"])
    };
    assert_close(&mean(3, 2, 1, false, true), &[1.0, 3.0, 5.0, 7.0]);
    assert_close(&mean(3, 2, 1, false, false), &[1.5, 3.0, 5.0, 7.0]);
    assert_close(&mean(4, 3, 2, true, true), &[0.75, 3.5, 6.5, 2.666_666_7]);
    assert_close(&mean(4, 3, 2, true, false), &[1.5, 3.5, 6.5, 8.0]);
}

#[test]
fn means_of_integers_round_toward_zero() {
    let input = tensor(&[1, 3, 3], &[-7i64, -4, -1, 2, 5, 8, 11, 14, 17]);
    let (kernel, stride, padding) = (Arg::ints([2, 2]), Arg::ints([1, 1]), Arg::ints([0, 0]));
    let args = vec![x(0), kernel, stride, padding, Arg::Bool(false), Arg::Bool(true), Arg::Int(-3)];
    let found = run("aten.avg_pool2d.default", args, &[input], &[result(DType::I64, &["1", "2", "2"])]);
    assert_eq!(elements::<i64>(&found[0]), [1, -2, -10, -14]);
}

#[test]
fn adaptive_windows_of_different_extents() {
    let mean = |from: i64, to: &str| {
        let to_size = Arg::ints([to.parse().expect("a number")]);
        one("aten.adaptive_avg_pool1d.default", counted(&[1, 1, from]), vec![to_size], &["1", "1", to])
    };
    assert_close(&mean(7, "3"), &[2.0, 4.0, 6.0]);
    assert_close(&mean(3, "5"), &[1.0, 1.5, 2.0, 2.5, 3.0]);
    assert_close(&mean(6, "3"), &[1.5, 3.5, 5.5]);
    let input = tensor(&[1, 1, 7], &[3.0f32, 1.0, 3.0, NAN, 7.0, NAN, 2.0]);
    let both = [result(DType::F32, &["1", "1", "3"]), result(DType::I64, &["1", "1", "3"])];
    let found = run("aten.adaptive_max_pool1d.default", vec![x(0), Arg::ints([3])], &[input], &both);
    assert_close(&elements(&found[0]), &[3.0, NAN, NAN]);
    assert_eq!(elements::<i64>(&found[1]), [0, 3, 5]);
}

#[test]
fn adaptive_means_of_sizes_known_only_when_it_runs() {
    let input = || counted(&[1, 1, 2, 3]).declared(&["n", "1", "h", "w"]);
    let mean =
        |to: [i64; 2], shape: &[&str]| one("aten._adaptive_avg_pool2d.default", input(), vec![Arg::ints(to)], shape);
    assert_close(&mean([1, 1], &["n", "1", "1", "1"]), &[3.5]);
    assert_close(&mean([1, 2], &["n", "1", "1", "2"]), &[3.0, 4.0]);
}

#[test]
fn resampling_to_the_nearest() {
    let six = |op| one(op, line(), vec![Arg::ints([6])], &["1", "1", "6"]);
    assert_close(&six("aten.upsample_nearest1d.default"), &[1.0, 1.0, 2.0, 4.0, 4.0, 8.0]);
    assert_close(&six("aten._upsample_nearest_exact1d.default"), &[1.0, 2.0, 2.0, 4.0, 8.0, 8.0]);
    let args = vec![Arg::Null, Arg::List(vec![float(1.7)])];
    let found = one("aten.upsample_nearest1d.vec", line(), args, &["1", "1", "6"]);
    assert_close(&found, &[1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
}

#[test]
fn resampling_between_neighbours() {
    let linear = |args| one("aten.upsample_linear1d.default", line(), args, &["1", "1", "6"]);
    let found = linear(vec![Arg::ints([6]), Arg::Bool(false)]);
    assert_close(&found, &[1.0, 1.5, 2.333_333_5, 3.666_666_7, 6.0, 8.0]);
    let found = linear(vec![Arg::ints([6]), Arg::Bool(true)]);
    assert_close(&found, &[1.0, 1.6, 2.4, 3.6, 5.6, 8.0]);
    let found = linear(vec![Arg::ints([6]), Arg::Bool(false), float(1.7)]);
    assert_close(&found, &[1.0, 1.382_353, 1.970_588_3, 3.117_647_2, 4.588_236, 6.941_177]);
    let plane = tensor(&[1, 1, 1, 4], &[1.0f32, 2.0, 4.0, 8.0]);
    let args = vec![Arg::ints([1, 6]), Arg::Bool(false)];
    let found = one("aten.upsample_bicubic2d.default", plane, args, &["1", "1", "1", "6"]);
    assert_close(&found, &[0.913_194_66, 1.3125, 2.304_397_8, 3.383_102, 6.1875, 8.347_222]);
    let whole = tensor(&[1, 1, 2], &[1i32, 2]);
    let args = vec![x(0), Arg::ints([4]), Arg::Bool(false)];
    let reason = refusal("aten.upsample_linear1d.default", args, &[whole], &[result(DType::I32, &["1", "1", "4"])]);
    assert_eq!(reason, "interpolation of i32: only floats are covered");
}

#[test]
fn padding_by_mirror_and_by_the_ends() {
    let found = one("aten.reflection_pad1d.default", line(), vec![Arg::ints([2, 3])], &["1", "1", "9"]);
    assert_close(&found, &[4.0, 2.0, 1.0, 2.0, 4.0, 8.0, 4.0, 2.0, 1.0]);
    let found = one("aten.replication_pad1d.default", line(), vec![Arg::ints([2, -1])], &["1", "1", "5"]);
    assert_close(&found, &[1.0, 1.0, 1.0, 2.0, 4.0]);
}

#[test]
fn windows_as_columns() {
    let args = [[2, 2], [1, 1], [0, 1], [1, 2]].map(Arg::ints).to_vec();
    let found = one("aten.im2col.default", counted(&[1, 1, 3, 3]), args, &["1", "4", "4"]);
    let expected = [0.0, 2.0, 0.0, 5.0, 1.0, 3.0, 4.0, 6.0, 0.0, 5.0, 0.0, 8.0, 4.0, 6.0, 7.0, 9.0];
    assert_close(&found, &expected);
}

#[test]
fn sampling_at_coordinates() {
    let grid = || tensor(&[1, 1, 4, 2], &[-1.0f32, -1.0, 0.0, 0.0, 0.5, NAN, 3.0, 0.0]);
    let sample = |mode, outside| {
        let args = vec![x(0), x(1), Arg::Int(mode), Arg::Int(outside), Arg::Bool(true)];
        let inputs = [counted(&[1, 1, 3, 3]), grid()];
        elements::<f32>(
            &run("aten.grid_sampler_2d.default", args, &inputs, &[result(DType::F32, &["1", "1", "1", "4"])])[0],
        )
    };
    assert_close(&sample(0, 0), &[1.0, 5.0, NAN, 0.0]);
    assert_close(&sample(1, 0), &[1.0, 5.0, 0.0, 0.0]);
    let numbers = |found: Vec<f32>| [found[0], found[1], found[3]];
    assert_close(&numbers(sample(0, 1)), &[1.0, 5.0, 6.0]);
    assert_close(&numbers(sample(0, 2)), &[1.0, 5.0, 4.0]);
    assert_close(&numbers(sample(2, 2)), &[1.0, 5.0, 4.0]);
}
