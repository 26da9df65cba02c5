//! Writes at places that a tensor names, against values worked out by hand.

use crate::support::{assert_close, elements, result, run, tensor, x};
use m2m_record::{Arg, DType};

#[test]
fn sums_gather_in_one_place() {
    let inputs = [
        tensor::<f32>(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        tensor::<i64>(&[3, 1], &[1, 1, 0]),
        tensor::<f32>(&[3, 1], &[10.0, 20.0, 30.0]),
    ];
    let args = vec![x(0), Arg::Int(0), x(1), x(2)];
    let found = run("aten.scatter_add.default", args, &inputs, &[result(DType::F32, &["2", "2"])]);
    assert_close(&elements(&found[0]), &[31.0, 2.0, 33.0, 4.0]);
}

#[test]
fn reductions_leave_out_what_was_there_on_request() {
    let reduce = |how: &str, include: bool| {
        let inputs = [
            tensor::<f32>(&[3], &[5.0, 6.0, 7.0]),
            tensor::<i64>(&[3], &[0, 0, 2]),
            tensor::<f32>(&[3], &[2.0, 4.0, 9.0]),
        ];
        let args = vec![x(0), Arg::Int(0), x(1), x(2), Arg::from(how), Arg::Bool(include)];
        elements::<f32>(&run("aten.scatter_reduce.two", args, &inputs, &[result(DType::F32, &["3"])])[0])
    };
    assert_close(&reduce("prod", true), &[40.0, 6.0, 63.0]);
    assert_close(&reduce("prod", false), &[8.0, 6.0, 9.0]);
    assert_close(&reduce("amin", true), &[2.0, 6.0, 7.0]);
    assert_close(&reduce("mean", false), &[3.0, 6.0, 9.0]);
}

#[test]
fn masked_elements_are_taken_in_order() {
    let inputs = [
        tensor::<i64>(&[2, 2], &[1, 2, 3, 4]),
        tensor(&[2, 2], &[true, false, true, true]),
        tensor::<i64>(&[4], &[7, 8, 9, 10]),
    ];
    let found = run("aten.masked_scatter.default", vec![x(0), x(1), x(2)], &inputs, &[result(DType::I64, &["2", "2"])]);
    assert_eq!(elements::<i64>(&found[0]), [7, 2, 8, 9]);
}

#[test]
fn places_count_from_the_end_when_they_are_negative() {
    let put = |accumulate| {
        let inputs =
            [tensor::<i64>(&[2, 2], &[1, 2, 3, 4]), tensor::<i64>(&[2], &[-1, 0]), tensor::<i64>(&[2], &[7, 8])];
        let args = vec![x(0), x(1), x(2), Arg::Bool(accumulate)];
        elements::<i64>(&run("aten.put.default", args, &inputs, &[result(DType::I64, &["2", "2"])])[0])
    };
    assert_eq!(put(false), [8, 2, 3, 7]);
    assert_eq!(put(true), [9, 2, 3, 11]);
}
