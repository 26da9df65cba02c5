//! Reads and writes at places that tensors name, against values that PyTorch computes.

mod support;

use m2m_record::{Arg, DType};
use support::{Tensor, assert_close, elements, float, result, run, tensor, x};

fn numbers(dims: &[i64]) -> Tensor {
    let data: Vec<f32> = (0..dims.iter().product()).map(|k| k as f32).collect();
    tensor(dims, &data)
}

fn long(dims: &[i64], data: &[i64]) -> Tensor {
    tensor(dims, data)
}

fn f32s(op: &str, args: Vec<Arg>, inputs: &[Tensor], shape: &[&str]) -> Vec<f32> {
    elements(&run(op, args, inputs, &[result(DType::F32, shape)])[0])
}

#[test]
fn index_tensors_broadcast_and_stand_where_the_axes_were() {
    let inputs = || [numbers(&[2, 3, 4]), long(&[2, 1], &[0, -1]), long(&[3], &[2, 0, -4])];
    // Neighbouring axes: the block of indices stands in their place.
    let args = vec![x(0), Arg::List(vec![x(1), Arg::Null, x(2)])];
    let apart = f32s("aten.index.Tensor", args, &inputs(), &["2", "3", "3"]);
    // Axes apart: the block stands first, then the whole axis.
    let expected = [2.0, 6.0, 10.0, 0.0, 4.0, 8.0, 0.0, 4.0, 8.0, 14.0, 18.0, 22.0, 12.0, 16.0, 20.0, 12.0, 16.0, 20.0];
    assert_close(&apart, &expected);
    let args = vec![x(0), Arg::List(vec![Arg::Null, x(1), x(2)])];
    let together = f32s("aten.index.Tensor", args, &inputs(), &["2", "2", "3"]);
    assert_close(&together, &[2.0, 0.0, 0.0, 10.0, 8.0, 8.0, 14.0, 12.0, 12.0, 22.0, 20.0, 20.0]);
}

#[test]
fn masks_choose_as_many_as_are_true() {
    let mask = || tensor(&[2, 3], &[true, false, false, false, true, true]);
    let args = vec![x(0), Arg::List(vec![x(1)])];
    let output = run("aten.index.Tensor", args, &[numbers(&[2, 3, 2]), mask()], &[result(DType::F32, &["u0", "2"])]);
    assert_eq!(output[0].dims, [3, 2]);
    assert_close(&elements(&output[0]), &[0.0, 1.0, 8.0, 9.0, 10.0, 11.0]);
    let places = run("aten.nonzero.default", vec![x(0)], &[mask()], &[result(DType::I64, &["u0", "2"])]);
    assert_eq!(elements::<i64>(&places[0]), [0, 0, 1, 1, 1, 2]);
    let none = tensor(&[3], &[0.0_f32, -0.0, 0.0]).declared(&["s0"]);
    let places = run("aten.nonzero.default", vec![x(0)], &[none], &[result(DType::I64, &["u0", "1"])]);
    assert_eq!((places[0].dims.as_slice(), places[0].data.len()), ([0, 1].as_slice(), 0));
}

#[test]
fn rows_elements_and_numbers() {
    let rows = f32s("aten.embedding.default", vec![x(0), x(1)], &[numbers(&[3, 2]), long(&[2], &[2, 0])], &["2", "2"]);
    assert_close(&rows, &[4.0, 5.0, 0.0, 1.0]);
    let args = vec![x(0), Arg::Int(1), x(1)];
    let gathered = f32s("aten.gather.default", args, &[numbers(&[2, 3]), long(&[2, 2], &[2, 0, 1, 1])], &["2", "2"]);
    assert_close(&gathered, &[2.0, 0.0, 4.0, 4.0]);
    let taken = f32s("aten.take.default", vec![x(0), x(1)], &[numbers(&[2, 3]), long(&[2], &[-1, 3])], &["2"]);
    assert_close(&taken, &[5.0, 3.0]);
}

/// Places outside are brought to the nearest element, so that nothing outside is read or written.
#[test]
fn places_outside_stay_inside() {
    let args = vec![x(0), Arg::Int(0), x(1)];
    let far = f32s("aten.index_select.default", args, &[numbers(&[3]), long(&[2], &[1 << 40, -(1 << 40)])], &["2"]);
    assert_close(&far, &[2.0, 0.0]);
    let args = vec![x(0), Arg::Int(0), x(1), float(9.0)];
    let written = f32s("aten.scatter.value", args, &[numbers(&[3]), long(&[1], &[1000])], &["3"]);
    assert_close(&written, &[0.0, 1.0, 9.0]);
}

#[test]
fn writes_meet_in_every_way() {
    let inputs = || [tensor::<f32>(&[3], &[10.0, 20.0, 30.0]), long(&[4], &[0, 0, 2, 0]), numbers(&[4])];
    let reduce = |name: &str, includes_self| {
        let args = vec![x(0), Arg::Int(0), x(1), x(2), Arg::Str(name.into()), Arg::Bool(includes_self)];
        f32s("aten.scatter_reduce.two", args, &inputs(), &["3"])
    };
    assert_close(&reduce("sum", true), &[14.0, 20.0, 32.0]);
    assert_close(&reduce("prod", true), &[0.0, 20.0, 60.0]);
    assert_close(&reduce("mean", true), &[3.5, 20.0, 16.0]);
    assert_close(&reduce("mean", false), &[4.0 / 3.0, 20.0, 2.0]);
    assert_close(&reduce("amax", false), &[3.0, 20.0, 2.0]);
    assert_close(&reduce("amin", true), &[0.0, 20.0, 2.0]);
    let args = vec![x(0), Arg::Int(0), x(1), x(2)];
    assert_close(&f32s("aten.scatter.src", args, &inputs(), &["3"]), &[3.0, 20.0, 2.0]);
    let put = |accumulate| {
        let args = vec![x(0), Arg::List(vec![x(1)]), x(2), Arg::Bool(accumulate)];
        f32s("aten.index_put.default", args, &inputs(), &["3"])
    };
    assert_close(&put(false), &[3.0, 20.0, 2.0]);
    assert_close(&put(true), &[14.0, 20.0, 32.0]);
}

#[test]
fn one_value_under_a_mask() {
    let inputs = [numbers(&[2, 2]), tensor(&[2], &[false, true]), tensor::<f32>(&[], &[9.0])];
    let args = vec![x(0), Arg::List(vec![x(1)]), x(2)];
    assert_close(&f32s("aten.index_put.default", args, &inputs, &["2", "2"]), &[0.0, 1.0, 9.0, 9.0]);
}

#[test]
fn parts_replaced_and_axes_turned() {
    let part = tensor::<f32>(&[2], &[-1.0, -2.0]);
    let args = vec![x(0), x(1), Arg::Int(0), Arg::Int(-4), Arg::Null, Arg::Int(2)];
    assert_close(
        &f32s("aten.slice_scatter.default", args, &[numbers(&[5]), part], &["5"]),
        &[0.0, -1.0, 2.0, -2.0, 4.0],
    );
    let row = tensor::<f32>(&[2], &[-1.0, -2.0]);
    let args = vec![x(0), x(1), Arg::Int(0), Arg::Int(-1)];
    assert_close(
        &f32s("aten.select_scatter.default", args, &[numbers(&[2, 2]), row], &["2", "2"]),
        &[0.0, 1.0, -1.0, -2.0],
    );
    let flipped = f32s("aten.flip.default", vec![x(0), Arg::ints([0])], &[numbers(&[2, 2])], &["2", "2"]);
    assert_close(&flipped, &[2.0, 3.0, 0.0, 1.0]);
    let args = vec![x(0), Arg::ints([-3]), Arg::ints([])];
    assert_close(&f32s("aten.roll.default", args, &[numbers(&[2, 2])], &["2", "2"]), &[3.0, 0.0, 1.0, 2.0]);
}

#[test]
fn indices_must_be_integers() {
    let inputs = [numbers(&[3]), numbers(&[2])];
    let why = support::refusal("aten.take.default", vec![x(0), x(1)], &inputs, &[result(DType::F32, &["2"])]);
    assert!(why.contains("f32"), "{why}");
}

#[test]
fn results_whose_size_depends_on_counts() {
    let repeats = || long(&[4], &[2, 0, 3, 1]);
    let places = run("aten.repeat_interleave.Tensor", vec![x(0)], &[repeats()], &[result(DType::I64, &["u0"])]);
    assert_eq!(elements::<i64>(&places[0]), [0, 0, 2, 2, 2, 3]);
    let args = vec![x(0), x(1), Arg::Int(0)];
    let types = [result(DType::F32, &["u0", "1"])];
    let rows = run("aten.repeat_interleave.self_Tensor", args, &[numbers(&[4, 1]), repeats()], &types);
    assert_close(&elements(&rows[0]), &[0.0, 0.0, 2.0, 2.0, 2.0, 3.0]);
    let bins = run("aten.bincount.default", vec![x(0)], &[repeats()], &[result(DType::I64, &["u0"])]);
    assert_eq!(elements::<i64>(&bins[0]), [1, 1, 1, 1]);
    let args = vec![x(0), x(1), Arg::Int(5)];
    let weighted = run("aten.bincount.default", args, &[repeats(), numbers(&[4])], &[result(DType::F32, &["u0"])]);
    assert_close(&elements(&weighted[0]), &[1.0, 3.0, 0.0, 2.0, 0.0]);
}
