//! Running reductions, against values that PyTorch computes.

mod support;

use m2m_record::{Arg, DType};
use support::{assert_close, elements, result, run, tensor, x};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

#[test]
fn sums_and_products_along_every_axis() {
    let x0 = || tensor::<f32>(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let along = |op: &str, axis| {
        elements::<f32>(&run(op, vec![x(0), Arg::Int(axis)], &[x0()], &[result(DType::F32, &["2", "3"])])[0])
    };
    assert_close(&along("aten.cumsum.default", 0), &[1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    assert_close(&along("aten.cumsum.default", -1), &[1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    assert_close(&along("aten.cumprod.default", 1), &[1.0, 2.0, 6.0, 4.0, 20.0, 120.0]);
}

#[test]
fn integers_widen() {
    let x0 = tensor::<i8>(&[3], &[100, 100, -1]);
    let sums = run("aten.cumsum.default", vec![x(0), Arg::Int(0)], &[x0], &[result(DType::I64, &["3"])]);
    assert_eq!(elements::<i64>(&sums[0]), [100, 200, 199]);
    let mask = tensor(&[4], &[true, false, true, true]);
    let counts = run("aten.cumsum.default", vec![x(0), Arg::Int(0)], &[mask], &[result(DType::I64, &["4"])]);
    assert_eq!(elements::<i64>(&counts[0]), [1, 1, 2, 3]);
}

/// The last of equal elements counts, and after a NaN the last NaN.
#[test]
fn running_extremes_and_where_they_are() {
    let x0 = || tensor::<f32>(&[6], &[1.0, 1.0, 0.0, NAN, 5.0, NAN]);
    let types = [result(DType::F32, &["6"]), result(DType::I64, &["6"])];
    let greatest = run("aten.cummax.default", vec![x(0), Arg::Int(0)], &[x0()], &types);
    assert_close(&elements(&greatest[0]), &[1.0, 1.0, 1.0, NAN, NAN, NAN]);
    assert_eq!(elements::<i64>(&greatest[1]), [0, 1, 1, 3, 3, 5]);
    let least = run("aten.cummin.default", vec![x(0), Arg::Int(0)], &[x0()], &types);
    assert_close(&elements(&least[0]), &[1.0, 1.0, 0.0, NAN, NAN, NAN]);
    assert_eq!(elements::<i64>(&least[1]), [0, 1, 2, 3, 3, 5]);
}

#[test]
fn logarithms_of_sums_keep_infinities() {
    let x0 = tensor::<f32>(&[5], &[-INF, -INF, 0.0, 0.0, INF]);
    let sums = run("aten.logcumsumexp.default", vec![x(0), Arg::Int(0)], &[x0], &[result(DType::F32, &["5"])]);
    assert_close(&elements(&sums[0]), &[-INF, -INF, 0.0, std::f32::consts::LN_2, INF]);
}

#[test]
fn no_axis_no_elements_and_sizes_known_late() {
    let scalar = tensor::<f32>(&[], &[2.5]);
    let sum = run("aten.cumsum.default", vec![x(0), Arg::Int(-1)], &[scalar], &[result(DType::F32, &[])]);
    assert_close(&elements(&sum[0]), &[2.5]);
    let empty = tensor::<f32>(&[0, 3], &[]);
    let none = run("aten.cumsum.default", vec![x(0), Arg::Int(1)], &[empty], &[result(DType::F32, &["0", "3"])]);
    assert_eq!((none[0].data.len(), none[0].dims.as_slice()), (0, [0, 3].as_slice()));
    for size in [0, 1, 4] {
        let data: Vec<f32> = (0..size).map(|k| k as f32).collect();
        let x0 = tensor(&[size], &data).declared(&["s0"]);
        let sums = run("aten.cumsum.default", vec![x(0), Arg::Int(0)], &[x0], &[result(DType::F32, &["s0"])]);
        let expected: Vec<f32> = (0..size).map(|k| (k * (k + 1) / 2) as f32).collect();
        assert_close(&elements(&sums[0]), &expected);
    }
}
