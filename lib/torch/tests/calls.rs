//! Calls by name: arguments of every kind, results of every kind, refusals in clean words.
#![allow(clippy::unwrap_used)]

mod common;

use common::{engine, floats, ints, to_floats};
use m2m_record::DType;
use m2m_torch::{Error, Value};

#[test]
fn numbers_promote_as_python_numbers_do() {
    let Some(engine) = engine() else { return };
    let x = ints(&engine, &[2], &[1, 2]);
    let sum = engine.tensor("aten.add.Tensor", &[(&x).into(), Value::Int(3)]).unwrap();
    assert_eq!((sum.dtype().unwrap(), sum.to_bytes().unwrap()), (DType::I64, common::i64s(&[4, 5])));
    // An f64 tensor without dimensions would leave f32 as well, but a number must not widen f16 or turn i64 to f64.
    let sum = engine.tensor("aten.add.Tensor", &[x.into(), Value::Float(0.5)]).unwrap();
    assert_eq!(to_floats(&sum), [1.5, 2.5]);
}

#[test]
fn lists_stretch_options_are_absent_and_defaults_fill() {
    let Some(engine) = engine() else { return };
    let x = floats(&engine, &[1, 1, 3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let w = floats(&engine, &[1, 1, 2, 2], &[1.0, 10.0, 100.0, 1000.0]);
    let args = [(&x).into(), w.into(), Value::None, Value::Int(1)];
    let y = engine.tensor("aten.conv2d.default", &args).unwrap();
    assert_eq!(to_floats(&y), [5421.0, 6532.0, 8754.0, 9865.0]);
    // Tensor?[] with an absent entry: the second column.
    let rows = engine.tensor("aten.reshape.default", &[x.into(), [3i64, 3].as_slice().into()]).unwrap();
    let indices = Value::List(vec![Value::None, ints(&engine, &[1], &[1]).into()]);
    let column = engine.tensor("aten.index.Tensor", &[rows.into(), indices]).unwrap();
    assert_eq!((column.shape().unwrap(), to_floats(&column)), (vec![3, 1], vec![2.0, 5.0, 8.0]));
}

#[test]
fn results_are_one_a_return_and_lists_stay_lists() {
    let Some(engine) = engine() else { return };
    let x = floats(&engine, &[4], &[3.0, 1.0, 4.0, 1.5]);
    let sorted = engine.call("aten.sort.default", &[(&x).into()]).unwrap();
    let [Value::Tensor(values), Value::Tensor(order)] = sorted.as_slice() else { panic!("{sorted:?}") };
    assert_eq!(to_floats(values), [1.0, 1.5, 3.0, 4.0]);
    assert_eq!(order.to_bytes().unwrap(), common::i64s(&[1, 3, 0, 2]));
    let parts = engine.call("aten.split.Tensor", &[(&x).into(), Value::Int(3)]).unwrap();
    assert!(matches!(parts.as_slice(), [Value::List(items)] if items.len() == 2), "{parts:?}");
    let size = engine.call("aten.sym_size.int", &[(&x).into(), Value::Int(0)]).unwrap();
    assert!(matches!(size.as_slice(), [Value::Int(4)]), "{size:?}");
    let item = engine.call("aten.item.default", &[engine.copied(DType::Bool, &[], &[1]).unwrap().into()]).unwrap();
    assert!(matches!(item.as_slice(), [Value::Bool(true)]), "{item:?}");
}

#[test]
fn every_dtype_goes_in_and_comes_out() {
    let Some(engine) = engine() else { return };
    let lacking = [DType::F8E4M3, DType::F8E3M4, DType::F8E4M3B11FNUZ, DType::F4E2M1FN];
    for dtype in DType::ALL.iter().copied().filter(|dtype| dtype.bits() >= 8) {
        let bytes = vec![0u8; 3 * dtype.size().unwrap() as usize];
        match engine.copied(dtype, &[3], &bytes) {
            Ok(tensor) => assert_eq!((tensor.dtype().unwrap(), tensor.to_bytes().unwrap()), (dtype, bytes)),
            Err(error) => {
                assert!(lacking.contains(&dtype) && matches!(error, Error::DType(_)), "{dtype}: {error}");
            }
        }
    }
}

#[test]
fn refusals_say_which_argument_and_why() {
    let Some(engine) = engine() else { return };
    let x = floats(&engine, &[2], &[1.0, 2.0]);
    let said = |op: &str, args: &[Value]| engine.call(op, args).unwrap_err().to_string();
    assert_eq!(said("aten.relu.default", &[Value::None]), "argument self: expected a tensor, it is None");
    assert_eq!(said("aten.relu.default", &[]), "argument self is missing");
    assert_eq!(
        said("aten.permute.default", &[(&x).into(), Value::Str("x".into())]),
        "argument dims: expected a list, it is a string"
    );
    let message = said("aten.mm.default", &[(&x).into(), (&x).into()]);
    assert!(message.contains("matrix") && !message.contains('\n') && !message.contains("frame #"), "{message}");
    assert_eq!(said("aten.no_such.default", &[]), "libtorch has no operator aten.no_such.default");
}

#[test]
fn schemas_are_read_from_the_registry() {
    let Some(engine) = engine() else { return };
    let add = engine.operator("aten.add.Tensor").unwrap();
    assert_eq!(add.schema(), "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
    assert_eq!(add.arguments(), ["self", "other", "alpha"]);
    let all = engine.operators();
    assert!(all.len() > 3000 && all.contains(&"aten.conv2d.default".to_owned()), "{}", all.len());
}

#[test]
fn seeds_repeat_random_operators() {
    let Some(engine) = engine() else { return };
    let draw = |seed| {
        engine.seed(seed).unwrap();
        to_floats(&engine.tensor("aten.rand.default", &[[4i64].as_slice().into()]).unwrap())
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}
