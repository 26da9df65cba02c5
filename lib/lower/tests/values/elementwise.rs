//! Arithmetic on elements where PyTorch's differs from the hardware's, against values worked out by hand.

use crate::support::{Element, Tensor, assert_close, elements, float, result, run, tensor, x};
use m2m_record::{Arg, DType};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn pair<T: Element>(op: &str, a: &[T], b: &[T], more: Vec<Arg>, dtype: DType) -> Vec<T> {
    let size = [a.len().to_string()];
    let shape: Vec<&str> = size.iter().map(String::as_str).collect();
    let inputs: [Tensor; 2] = [a, b].map(|items| tensor(&[items.len() as i64], items));
    let args = [x(0), x(1)].into_iter().chain(more).collect();
    elements(&run(op, args, &inputs, &[result(dtype, &shape)])[0])
}

#[test]
fn quotients_and_remainders_of_negative_integers() {
    let (a, b) = ([7, -7, 7, -7], [2, 2, -2, -2]);
    assert_eq!(pair::<i64>("aten.floor_divide.default", &a, &b, vec![], DType::I64), [3, -4, -4, 3]);
    assert_eq!(pair::<i64>("aten.remainder.Tensor", &a, &b, vec![], DType::I64), [1, 1, -1, -1]);
    assert_eq!(pair::<i64>("aten.fmod.Tensor", &a, &b, vec![], DType::I64), [1, -1, 1, -1]);
}

#[test]
fn integers_wrap_and_unsigned_ones_compare_without_sign() {
    assert_eq!(pair::<u8>("aten.add.Tensor", &[250, 1], &[10, 2], vec![], DType::U8), [4, 3]);
    assert_eq!(pair::<i8>("aten.mul.Tensor", &[100, -128], &[2, -1], vec![], DType::I8), [-56, -128]);
    assert_eq!(pair::<u8>("aten.maximum.default", &[200, 3], &[100, 4], vec![], DType::U8), [200, 4]);
}

#[test]
fn extremes_keep_nan_or_leave_it_out() {
    let (a, b) = ([NAN, 1.0, -INF], [1.0, NAN, 2.0]);
    assert_close(&pair("aten.maximum.default", &a, &b, vec![], DType::F32), &[NAN, NAN, 2.0]);
    let limits = vec![float(-1.0), float(1.0)];
    let clamped = run(
        "aten.clamp.default",
        std::iter::once(x(0)).chain(limits).collect(),
        &[tensor::<f32>(&[4], &[NAN, INF, -INF, 0.5])],
        &[result(DType::F32, &["4"])],
    );
    assert_close(&elements(&clamped[0]), &[NAN, 1.0, -1.0, 0.5]);
}

#[test]
fn halves_round_to_even_and_signs_of_zero_stay() {
    let unary = |op: &str, items: &[f32]| -> Vec<f32> {
        let size = items.len().to_string();
        elements(&run(op, vec![x(0)], &[tensor(&[items.len() as i64], items)], &[result(DType::F32, &[&size])])[0])
    };
    assert_eq!(unary("aten.round.default", &[0.5, 1.5, 2.5, -0.5]), [0.0, 2.0, 2.0, -0.0]);
    assert!(unary("aten.trunc.default", &[-0.7])[0].is_sign_negative());
    assert_eq!(unary("aten.sign.default", &[-3.0, 0.0, INF]), [-1.0, 0.0, 1.0]);
    assert!(unary("aten.sqrt.default", &[-1.0])[0].is_nan());
}

#[test]
fn bools_are_numbers_only_where_they_must() {
    let found = pair("aten.add.Tensor", &[true, true, false], &[true, false, false], vec![], DType::Bool);
    assert_eq!(found, [true, true, false]);
    let found = pair("aten.bitwise_xor.Tensor", &[true, true], &[true, false], vec![], DType::Bool);
    assert_eq!(found, [false, true]);
    let bools = tensor(&[2], &[true, false]);
    let found = run("aten.clamp.default", vec![x(0), Arg::Null, Arg::Int(-3)], &[bools], &[result(DType::I64, &["2"])]);
    assert_eq!(elements::<i64>(&found[0]), [-3, -3]);
}
