//! Contractions, against values worked out by hand.

use crate::support::{assert_close, elements, result, run, tensor, x};
use m2m_record::DType;

#[test]
fn a_linear_layer_multiplies_by_rows_of_the_weight() {
    let inputs = [
        tensor::<f32>(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        tensor::<f32>(&[2, 3], &[1.0, 0.0, -1.0, 2.0, 1.0, 0.0]),
        tensor::<f32>(&[2], &[10.0, 20.0]),
    ];
    let found = run("aten.linear.default", vec![x(0), x(1), x(2)], &inputs, &[result(DType::F32, &["2", "2"])]);
    assert_close(&elements(&found[0]), &[8.0, 24.0, 8.0, 33.0]);
}

#[test]
fn batches_do_not_mix_and_integers_wrap() {
    let inputs = [tensor::<i8>(&[2, 1, 2], &[100, 1, 2, 3]), tensor::<i8>(&[2, 2, 1], &[2, 1, 4, 5])];
    let found = run("aten.bmm.default", vec![x(0), x(1)], &inputs, &[result(DType::I8, &["2", "1", "1"])]);
    assert_eq!(elements::<i8>(&found[0]), [-55, 23]);
}

#[test]
fn a_sum_over_nothing_is_zero() {
    let inputs = [tensor::<f32>(&[2, 0], &[]), tensor::<f32>(&[0, 1], &[])];
    let found = run("aten.mm.default", vec![x(0), x(1)], &inputs, &[result(DType::F32, &["2", "1"])]);
    assert_close(&elements(&found[0]), &[0.0, 0.0]);
}
