//! Sorting and what picks by rank, against the standard library's stable sort and PyTorch's order of NaN.

mod support;

use m2m_record::{Arg, DType};
use std::cmp::Ordering;
use support::{assert_close, elements, float, result, run, tensor, x};

const NAN: f32 = f32::NAN;

/// NaN above everything; equal zeros.
fn order(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn check(data: &[f32], shape: &[&str], is_descending: bool) {
    let size = data.len() as i64;
    let mut expected: Vec<usize> = (0..data.len()).collect();
    let flipped = |o: Ordering| if is_descending { o.reverse() } else { o };
    expected.sort_by(|a, b| flipped(order(data[*a], data[*b])));
    let args = vec![x(0), Arg::Bool(true), Arg::Int(0), Arg::Bool(is_descending)];
    let types = [result(DType::F32, shape), result(DType::I64, shape)];
    let sorted = run("aten.sort.stable", args, &[tensor(&[size], data).declared(shape)], &types);
    let indices: Vec<i64> = expected.iter().map(|k| *k as i64).collect();
    assert_eq!(elements::<i64>(&sorted[1]), indices, "{data:?}");
    let values: Vec<f32> = expected.iter().map(|k| data[*k]).collect();
    assert_close(&elements(&sorted[0]), &values);
}

#[test]
fn every_small_size_with_ties_and_nan() {
    let few = [
        2.0,
        -0.0,
        NAN,
        1.0,
        0.0,
        f32::INFINITY,
        2.0,
        f32::NEG_INFINITY,
        NAN,
        1.0,
        2.0,
        -1.0,
        7.0,
        2.0,
        0.5,
        1.0,
        -3.0,
    ];
    for size in [0, 1, 2, 3, 5, 8, 9, 17] {
        let shape = [size.to_string()];
        check(&few[..size], &[shape[0].as_str()], false);
        check(&few[..size], &["s0"], true);
    }
}

#[test]
fn many_elements() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as f32
    };
    let data: Vec<f32> = (0..3000).map(|_| next()).collect();
    check(&data, &["3000"], false);
    check(&data, &["3000"], true);
}

#[test]
fn an_inner_axis_of_integers() {
    let x0 = tensor::<u8>(&[2, 3, 2], &[200, 1, 3, 2, 100, 3, 5, 5, 5, 5, 4, 6]);
    let types = [result(DType::U8, &["2", "3", "2"]), result(DType::I64, &["2", "3", "2"])];
    let sorted = run("aten.sort.default", vec![x(0), Arg::Int(1)], &[x0], &types);
    assert_eq!(elements::<u8>(&sorted[0]), [3, 1, 100, 2, 200, 3, 4, 5, 5, 5, 5, 6]);
    assert_eq!(elements::<i64>(&sorted[1]), [1, 0, 2, 1, 0, 2, 2, 0, 0, 1, 1, 2]);
}

#[test]
fn the_first_few() {
    let x0 = || tensor::<f32>(&[5], &[1.0, NAN, 3.0, -2.0, 0.0]);
    let types = [result(DType::F32, &["2"]), result(DType::I64, &["2"])];
    let top =
        |largest| run("aten.topk.default", vec![x(0), Arg::Int(2), Arg::Int(-1), Arg::Bool(largest)], &[x0()], &types);
    let (greatest, least) = (top(true), top(false));
    assert_close(&elements(&greatest[0]), &[NAN, 3.0]);
    assert_eq!(elements::<i64>(&greatest[1]), [1, 2]);
    assert_close(&elements(&least[0]), &[-2.0, 0.0]);
    assert_eq!(elements::<i64>(&least[1]), [3, 4]);
}

#[test]
fn medians() {
    let x0 = || tensor::<f32>(&[2, 4], &[4.0, 1.0, 3.0, 2.0, 7.0, NAN, 5.0, NAN]);
    let types = [result(DType::F32, &["2"]), result(DType::I64, &["2"])];
    let all = run("aten.median.dim", vec![x(0), Arg::Int(1)], &[x0()], &types);
    assert_close(&elements(&all[0]), &[2.0, NAN]);
    assert_eq!(elements::<i64>(&all[1]), [3, 1]);
    let numbers = run("aten.nanmedian.dim", vec![x(0), Arg::Int(1)], &[x0()], &types);
    assert_close(&elements(&numbers[0]), &[2.0, 5.0]);
    let third = run("aten.kthvalue.default", vec![x(0), Arg::Int(3), Arg::Int(1)], &[x0()], &types);
    assert_close(&elements(&third[0]), &[3.0, NAN]);
}

#[test]
fn places_in_sorted_sequences() {
    let sequence = || tensor::<f32>(&[6], &[1.0, 2.0, 2.0, 3.0, 5.0, 9.0]);
    let wanted = || tensor::<f32>(&[5], &[0.0, 2.0, 2.5, 10.0, NAN]);
    let search = |is_right| {
        let args = vec![x(1), x(0), Arg::Bool(false), Arg::Bool(is_right)];
        elements::<i64>(&run("aten.bucketize.Tensor", args, &[sequence(), wanted()], &[result(DType::I64, &["5"])])[0])
    };
    assert_eq!(search(false), [0, 1, 3, 6, 6]);
    assert_eq!(search(true), [0, 3, 3, 6, 6]);
    let one = run("aten.searchsorted.Scalar", vec![x(0), float(3.0)], &[sequence()], &[result(DType::I64, &[])]);
    assert_eq!(elements::<i64>(&one[0]), [3]);
}
