//! Elements in other places, against values worked out by hand.

use crate::support::{Tensor, elements, result, run, tensor, x};
use m2m_record::{Arg, DType};

fn counted(dims: &[i64]) -> Tensor {
    let count: i64 = dims.iter().product();
    tensor(dims, &(1..=count).collect::<Vec<i64>>())
}

fn one(op: &str, input: Tensor, args: Vec<Arg>, shape: &[&str]) -> Vec<i64> {
    let args = std::iter::once(x(0)).chain(args).collect();
    elements(&run(op, args, &[input], &[result(DType::I64, shape)])[0])
}

#[test]
fn slices_step_and_selections_drop_an_axis() {
    let args = [1, 1, 5, 2].map(Arg::Int).to_vec();
    assert_eq!(one("aten.slice.Tensor", counted(&[2, 5]), args, &["2", "2"]), [2, 4, 7, 9]);
    assert_eq!(one("aten.select.int", counted(&[2, 3]), vec![Arg::Int(1), Arg::Int(2)], &["2"]), [3, 6]);
    let args = vec![Arg::Int(0), Arg::Int(2), Arg::Int(2), Arg::Int(1)];
    assert!(one("aten.slice.Tensor", counted(&[2, 5]), args, &["0", "5"]).is_empty());
}

#[test]
fn axes_are_turned_and_elements_rolled() {
    assert_eq!(one("aten.flip.default", counted(&[2, 3]), vec![Arg::ints([1])], &["2", "3"]), [3, 2, 1, 6, 5, 4]);
    let args = vec![Arg::ints([1, -1]), Arg::ints([0, 1])];
    assert_eq!(one("aten.roll.default", counted(&[2, 3]), args, &["2", "3"]), [5, 6, 4, 2, 3, 1]);
    let args = vec![Arg::ints([2, 0, 1])];
    let turned = one("aten.permute.default", counted(&[1, 2, 3]), args, &["3", "1", "2"]);
    assert_eq!(turned, [1, 4, 2, 5, 3, 6]);
}

#[test]
fn triangles_keep_their_side_of_a_diagonal() {
    let lower = one("aten.tril.default", counted(&[2, 3]), vec![Arg::Int(-1)], &["2", "3"]);
    assert_eq!(lower, [0, 0, 0, 4, 0, 0]);
    let upper = one("aten.triu.default", counted(&[2, 3]), vec![Arg::Int(1)], &["2", "3"]);
    assert_eq!(upper, [0, 2, 3, 0, 0, 6]);
}

#[test]
fn parts_are_joined_and_padding_may_cut() {
    let parts = Arg::List(vec![x(0), x(1), x(0)]);
    let inputs = [counted(&[2, 1]), counted(&[2, 0])];
    let found = run("aten.cat.default", vec![parts, Arg::Int(1)], &inputs, &[result(DType::I64, &["2", "2"])]);
    assert_eq!(elements::<i64>(&found[0]), [1, 1, 2, 2]);
    let args = vec![Arg::ints([-1, 1, 1, 0]), Arg::Int(9)];
    let padded = one("aten.constant_pad_nd.default", counted(&[1, 3]), args, &["2", "3"]);
    assert_eq!(padded, [9, 9, 9, 2, 3, 9]);
}
