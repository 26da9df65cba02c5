//! Factorisations, against values worked out by hand.

use crate::support::{assert_close, elements, result, run, tensor, x};
use m2m_record::{Arg, DType};

#[test]
fn cholesky_says_where_a_matrix_is_not_positive() {
    // [2 0; 1 2] times its transpose is [4 2; 2 5]; the second matrix has a leading minor of 1 - 4 at 2.
    let matrices = tensor::<f32>(&[2, 2, 2], &[4.0, 2.0, 2.0, 5.0, 1.0, 2.0, 2.0, 1.0]);
    let types = [result(DType::F32, &["2", "2", "2"]), result(DType::I32, &["2"])];
    let found = run("aten.linalg_cholesky_ex.default", vec![x(0)], &[matrices], &types);
    assert_close(&elements::<f32>(&found[0])[..4], &[2.0, 0.0, 1.0, 2.0]);
    assert_eq!(elements::<i32>(&found[1]), [0, 2]);
}

#[test]
fn lu_exchanges_rows_for_the_largest_pivot() {
    // Rows 1 and 2 change places, counted from 1; then l = 0 / 3.
    let types = [result(DType::F32, &["2", "2"]), result(DType::I32, &["2"]), result(DType::I32, &[])];
    let matrix = tensor::<f32>(&[2, 2], &[0.0, 2.0, 3.0, 4.0]);
    let found = run("aten.linalg_lu_factor_ex.default", vec![x(0)], &[matrix], &types);
    assert_close(&elements(&found[0]), &[3.0, 4.0, 0.0, 2.0]);
    assert_eq!((elements::<i32>(&found[1]), elements::<i32>(&found[2])), (vec![2, 2], vec![0]));
    let singular = tensor::<f32>(&[2, 2], &[1.0, 2.0, 2.0, 4.0]);
    let found = run("aten.linalg_lu_factor_ex.default", vec![x(0)], &[singular], &types);
    assert_eq!(elements::<i32>(&found[2]), [2]);
}

#[test]
fn qr_reflects_as_lapack_does() {
    // The first column [3 4] has length 5 and is reflected to -5; q = [-3 -4; -4 3] / 5.
    let types = [result(DType::F32, &["2", "2"]), result(DType::F32, &["2", "2"])];
    let found = run("aten.linalg_qr.default", vec![x(0)], &[tensor::<f32>(&[2, 2], &[3.0, 0.0, 4.0, 5.0])], &types);
    assert_close(&elements(&found[0]), &[-0.6, -0.8, -0.8, 0.6]);
    assert_close(&elements(&found[1]), &[-5.0, -4.0, 0.0, 3.0]);
}

#[test]
fn eigenvalues_ascend() {
    let types = [result(DType::F64, &["2"]), result(DType::F64, &["2", "2"])];
    let matrix = tensor::<f64>(&[2, 2], &[2.0, 1.0, 1.0, 2.0]);
    let found = run("aten._linalg_eigh.default", vec![x(0)], &[matrix], &types);
    let values: Vec<f32> = elements::<f64>(&found[0]).iter().map(|value| *value as f32).collect();
    assert_close(&values, &[1.0, 3.0]);
    // Of the greater one the vector is [1 1] / sqrt 2, of either sign: column 1.
    let vectors = elements::<f64>(&found[1]);
    assert!((vectors[1] - vectors[3]).abs() < 1e-12 && (vectors[1] * vectors[1] - 0.5).abs() < 1e-12, "{vectors:?}");
}

#[test]
fn triangular_systems_read_one_triangle() {
    // 2 a + b = 4, 4 b = 8; the element below the diagonal is not read.
    let matrix = || tensor::<f32>(&[2, 2], &[2.0, 1.0, 9.0, 4.0]);
    let types = [result(DType::F32, &["2", "1"])];
    let solve = |kwargs: [bool; 3]| {
        let mut args = vec![x(0), x(1)];
        args.extend(kwargs.map(Arg::Bool));
        let right = tensor::<f32>(&[2, 1], &[4.0, 8.0]);
        elements::<f32>(&run("aten.linalg_solve_triangular.default", args, &[matrix(), right], &types)[0])
    };
    assert_close(&solve([true, true, false]), &[1.0, 2.0]);
    // As if the diagonal were 1: b = 8, a = 4 - 8.
    assert_close(&solve([true, true, true]), &[-4.0, 8.0]);
    // The lower one: 2 a = 4, 9 a + 4 b = 8.
    assert_close(&solve([false, true, false]), &[2.0, -2.5]);
}
