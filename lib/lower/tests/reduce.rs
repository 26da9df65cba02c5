//! Reductions, against values that PyTorch computes.

mod support;

use m2m_record::{Arg, DType};
use support::{assert_close, elements, result, run, tensor, x};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

#[test]
fn sums_widen_and_keep_axes_where_asked() {
    let x0 = || tensor::<i8>(&[2, 3], &[100, 100, 100, -1, -2, -3]);
    let all = run("aten.sum.default", vec![x(0)], &[x0()], &[result(DType::I64, &[])]);
    assert_eq!(elements::<i64>(&all[0]), [294]);
    let args = vec![x(0), Arg::ints([-1]), Arg::Bool(true)];
    let rows = run("aten.sum.dim_IntList", args, &[x0()], &[result(DType::I64, &["2", "1"])]);
    assert_eq!((elements::<i64>(&rows[0]), rows[0].dims.as_slice()), (vec![300, -6], [2, 1].as_slice()));
    let none = run("aten.sum.dim_IntList", vec![x(0), Arg::ints([])], &[x0()], &[result(DType::I64, &[])]);
    assert_eq!(elements::<i64>(&none[0]), [294]);
}

/// 4096 ones and a small one in half precision: sums in half precision would stop at 2048.
#[test]
fn halves_accumulate_in_f32() {
    let ones: Vec<f32> = vec![1.0; 4097];
    let args = vec![x(0), Arg::ints([0]), Arg::Bool(false), Arg::DType(DType::F16)];
    let sum = run("aten.sum.dim_IntList", args, &[tensor(&[4097], &ones)], &[result(DType::F16, &[])]);
    // 4096 as f16: 4097 is a tie that goes to even.
    assert_eq!(sum[0].data, 0x6c00_u16.to_le_bytes());
}

#[test]
fn no_elements() {
    let empty = || tensor::<f32>(&[0, 2], &[]);
    let f32s = |op: &str, args| elements::<f32>(&run(op, args, &[empty()], &[result(DType::F32, &["2"])])[0]);
    assert_close(&f32s("aten.sum.dim_IntList", vec![x(0), Arg::ints([0])]), &[0.0, 0.0]);
    assert_close(&f32s("aten.mean.dim", vec![x(0), Arg::ints([0])]), &[NAN, NAN]);
    assert_close(&f32s("aten.prod.dim_int", vec![x(0), Arg::Int(0)]), &[1.0, 1.0]);
    assert_close(&f32s("aten.var.correction", vec![x(0), Arg::ints([0])]), &[NAN, NAN]);
    let all = run("aten.all.default", vec![x(0)], &[empty()], &[result(DType::Bool, &[])]);
    assert_eq!(elements::<bool>(&all[0]), [true]);
}

#[test]
fn nan_is_the_extreme_and_the_first_one_counts() {
    let data = [1.0, NAN, INF, NAN, -INF, -INF, -INF, -INF, 5.0, 5.0, 2.0, 5.0];
    let x0 = || tensor::<f32>(&[3, 4], &data);
    let pair = [result(DType::F32, &["3"]), result(DType::I64, &["3"])];
    let greatest = run("aten.max.dim", vec![x(0), Arg::Int(1)], &[x0()], &pair);
    assert_close(&elements(&greatest[0]), &[NAN, -INF, 5.0]);
    assert_eq!(elements::<i64>(&greatest[1]), [1, 0, 0]);
    let least = run("aten.min.dim", vec![x(0), Arg::Int(-1)], &[x0()], &pair);
    assert_close(&elements(&least[0]), &[NAN, -INF, 2.0]);
    assert_eq!(elements::<i64>(&least[1]), [1, 0, 2]);
    let flat = run("aten.argmax.default", vec![x(0)], &[x0()], &[result(DType::I64, &[])]);
    assert_eq!(elements::<i64>(&flat[0]), [1]);
    let amin = run("aten.amin.default", vec![x(0), Arg::ints([1])], &[x0()], &pair[..1]);
    assert_close(&elements(&amin[0]), &[NAN, -INF, 2.0]);
}

/// The mean is far from 0: the difference of sums of squares would have no correct digit.
#[test]
fn variance_of_large_numbers() {
    let data: Vec<f32> = (0..8).map(|k| 10_000.0 + k as f32).collect();
    let both = [result(DType::F32, &[]), result(DType::F32, &[])];
    let moments = run("aten.var_mean.correction", vec![x(0)], &[tensor(&[8], &data)], &both);
    assert_close(&elements(&moments[0]), &[6.0]);
    assert_close(&elements(&moments[1]), &[10_003.5]);
}

#[test]
fn norms_of_every_order() {
    let x0 = || tensor::<f32>(&[4], &[3.0, 0.0, -4.0, 1.0]);
    let norm = |order| {
        let args = vec![x(0), support::float(order)];
        elements::<f32>(&run("aten.linalg_vector_norm.default", args, &[x0()], &[result(DType::F32, &[])])[0])
    };
    assert_close(&norm(0.0), &[3.0]);
    assert_close(&norm(1.0), &[8.0]);
    assert_close(&norm(2.0), &[5.099_019_5]);
    assert_close(&norm(3.0), &[4.514_357]);
    assert_close(&norm(f64::INFINITY), &[4.0]);
    assert_close(&norm(f64::NEG_INFINITY), &[0.0]);
}

#[test]
fn sizes_known_late() {
    for rows in [1, 3] {
        let data: Vec<f32> = (0..rows * 2).map(|k| k as f32).collect();
        let x0 = tensor(&[rows, 2], &data).declared(&["s0", "2"]);
        let mean = run("aten.mean.dim", vec![x(0), Arg::ints([0])], &[x0], &[result(DType::F32, &["2"])]);
        assert_close(&elements(&mean[0]), &[rows as f32 - 1.0, rows as f32]);
    }
}

#[test]
fn what_has_no_meaning_is_refused() {
    let x0 = tensor::<f32>(&[2], &[0.0, 0.0]);
    let why =
        support::refusal("aten.var.correction", vec![x(0)], &[tensor::<i64>(&[1], &[1])], &[result(DType::F32, &[])]);
    assert!(why.contains("i64"), "{why}");
    let why = support::refusal(
        "aten.linalg_vector_norm.default",
        vec![x(0), Arg::Str("fro".into())],
        &[x0],
        &[result(DType::F32, &[])],
    );
    assert!(why.contains("fro"), "{why}");
}
