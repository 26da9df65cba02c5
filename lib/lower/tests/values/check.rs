//! Checks that end a run, numbers that leave tensors, and complex elements.

use crate::support::{assert_close, elements, outcome, result, run, tensor, x};
use m2m_record::{Arg, DType};

#[test]
fn a_check_that_fails_says_its_message() {
    let check = |holds: bool| {
        let args = vec![x(0), Arg::from("sizes must agree")];
        outcome("aten._assert_async.msg", args, &[tensor(&[1], &[holds])], &[])
    };
    assert!(check(true).is_ok());
    let error = check(false).unwrap_err().to_string();
    assert!(error.contains("sizes must agree"), "{error}");
}

#[test]
fn complex_numbers_of_parts_and_of_polar_coordinates() {
    let inputs = || [tensor::<f32>(&[2], &[2.0, 1.0]), tensor::<f32>(&[2], &[0.0, std::f32::consts::FRAC_PI_2])];
    let types = [result(DType::C64, &["2"])];
    let parts = run("aten.complex.default", vec![x(0), x(1)], &inputs(), &types);
    assert_close(&elements(&parts[0]), &[2.0, 0.0, 1.0, std::f32::consts::FRAC_PI_2]);
    let turned = run("aten.polar.default", vec![x(0), x(1)], &inputs(), &types);
    assert_close(&elements(&turned[0]), &[2.0, 0.0, 0.0, 1.0]);
}
