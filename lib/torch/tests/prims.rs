//! `prims` against their definitions: functions of the standard library in f64, tabulated values, shapes by hand.
#![allow(clippy::unwrap_used)]

mod common;

use common::{engine, floats, i64s, ints, program, run};
use m2m_record::DType;
use m2m_torch::{Engine, Output, Tensor, Value};

const F32: &str = r#"{"tensor":"f32","shape":["u0"]}"#;
const I64: &str = r#"{"tensor":"i64","shape":["u0"]}"#;
const BOOL: &str = r#"{"tensor":"bool","shape":["u0"]}"#;

/// Calls an operator with tensors `a`, `b`, … of which its arguments speak; what it gives, in the types that are stated.
fn call(engine: &Engine, op: &str, tensors: &[&Tensor], args: &str, results: &[&str]) -> Vec<Output> {
    let names = ["a", "b", "c"];
    let open = r#"{"record":"graph","graph":"original","stage":"original","entry":"forward"}"#;
    let symbol = r#"{"record":"symbol","graph":"original","name":"u0","min":0,"max":null}"#;
    let mut lines = vec![open.to_owned(), symbol.to_owned()];
    for (name, tensor) in names.iter().zip(tensors) {
        let (dtype, shape) = (tensor.dtype().unwrap(), tensor.shape().unwrap());
        lines.push(format!(
            r#"{{"record":"input","graph":"original","value":"{name}","role":"user_input","type":{{"tensor":"{dtype}","shape":{shape:?}}}}}"#
        ));
    }
    let typed: Vec<String> =
        results.iter().enumerate().map(|(k, ty)| format!(r#"{{"value":"y{k}","type":{ty}}}"#)).collect();
    let returns = if results.len() == 1 { "" } else { r#","returns":[1,1]"# };
    lines.push(format!(
        r#"{{"record":"node","graph":"original","stage":"original","node":"original:0","op":"{op}","args":{args},"results":[{}]{returns}}}"#,
        typed.join(",")
    ));
    let outputs: Vec<String> =
        (0..results.len()).map(|k| format!(r#"{{"value":"y{k}","role":"user_output"}}"#)).collect();
    lines.push(format!(r#"{{"record":"output","graph":"original","outputs":[{}]}}"#, outputs.join(",")));
    let inputs: Vec<(&str, Value)> =
        names.iter().zip(tensors).map(|(name, tensor)| (*name, Value::from(*tensor))).collect();
    let outcome = run(engine, &program(&lines.join("\n")), &inputs);
    outcome.unwrap_or_else(|errors| panic!("{op}: {errors:?}")).outputs
}

fn to_f32s(output: &Output) -> Vec<f32> {
    assert_eq!(output.dtype, DType::F32);
    output.bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// f32 has steps of 1.2e-7; libtorch's vector functions keep within a few of them.
fn is_near(found: f32, expected: f64) -> bool {
    (f64::from(found) - expected).abs() <= 1e-6 * expected.abs() + 1e-7
}

fn assert_near(op: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{op}");
    assert!(found.iter().zip(expected).all(|(f, e)| is_near(*f, *e)), "{op}: {found:?}, expected {expected:?}");
}

type Unary = (&'static str, fn(f64) -> f64);
type Binary<T> = (&'static str, fn(T, T) -> T);

#[test]
fn functions_of_one_number() {
    let Some(engine) = engine() else { return };
    let inside: &[Unary] = &[
        ("acos", f64::acos),
        ("asin", f64::asin),
        ("asinh", f64::asinh),
        ("atan", f64::atan),
        ("atanh", f64::atanh),
        ("cos", f64::cos),
        ("cosh", f64::cosh),
        ("exp", f64::exp),
        ("exp2", f64::exp2),
        ("expm1", f64::exp_m1),
        ("log", f64::ln),
        ("log10", f64::log10),
        ("log1p", f64::ln_1p),
        ("log2", f64::log2),
        ("reciprocal", f64::recip),
        ("rsqrt", |x| x.sqrt().recip()),
        ("sin", f64::sin),
        ("sinh", f64::sinh),
        ("sqrt", f64::sqrt),
        ("tan", f64::tan),
        ("tanh", f64::tanh),
    ];
    let anywhere: &[Unary] = &[
        ("abs", f64::abs),
        ("ceil", f64::ceil),
        ("floor", f64::floor),
        ("neg", |x| -x),
        ("round", f64::round_ties_even),
        ("sign", f64::signum),
        ("trunc", f64::trunc),
    ];
    let above_one: &[Unary] = &[("acosh", f64::acosh)];
    let all = [(inside, [0.25, 0.5, 0.875]), (anywhere, [-2.5, -0.75, 1.5]), (above_one, [1.25, 2.0, 8.0])];
    for (functions, x) in all {
        let a = floats(&engine, &[3], &x.map(|x| x as f32));
        for (name, function) in functions {
            let op = format!("prims.{name}.default");
            let found = to_f32s(&call(&engine, &op, &[&a], r#"[{"v":"a"}]"#, &[F32])[0]);
            assert_near(&op, &found, &x.map(function));
        }
    }
}

/// Values from Abramowitz and Stegun's tables and their closed forms.
#[test]
fn special_functions_at_known_places() {
    let Some(engine) = engine() else { return };
    let known: &[(&str, f32, f64)] = &[
        ("bessel_i0", 1.0, 1.266_065_877_752_008_4),
        ("bessel_i0e", 1.0, 0.465_759_607_593_640_43),
        ("bessel_i1", 1.0, 0.565_159_103_992_485_1),
        ("bessel_i1e", 1.0, 0.207_910_415_349_708_5),
        ("bessel_j0", 1.0, 0.765_197_686_557_966_6),
        ("bessel_j1", 1.0, 0.440_050_585_744_933_55),
        ("digamma", 1.0, -0.577_215_664_901_532_9),
        ("erf", 0.5, 0.520_499_877_813_046_5),
        ("erf_inv", 0.5, 0.476_936_276_204_469_9),
        ("erfc", 0.5, 0.479_500_122_186_953_5),
        ("erfcx", 1.0, 0.427_583_576_155_807),
        // ln sqrt(pi).
        ("lgamma", 0.5, 0.572_364_942_924_700_1),
        // The quartile of the normal distribution.
        ("ndtri", 0.75, 0.674_489_750_196_081_7),
        // sin(1) / 1.
        ("spherical_bessel_j0", 1.0, 0.841_470_984_807_896_5),
    ];
    for (name, x, expected) in known {
        let op = format!("prims.{name}.default");
        let a = floats(&engine, &[1], &[*x]);
        assert_near(&op, &to_f32s(&call(&engine, &op, &[&a], r#"[{"v":"a"}]"#, &[F32])[0]), &[*expected]);
    }
    let pairs: &[(&str, [f32; 2], f64)] = &[
        // Of shape 1: 1 - exp(-x), and exp(-x).
        ("igamma", [1.0, 0.5], 0.393_469_340_287_366_6),
        ("igammac", [1.0, 0.5], 0.606_530_659_712_633_4),
        // pi squared over six.
        ("zeta", [2.0, 1.0], 1.644_934_066_848_226_4),
        ("nextafter", [1.0, 2.0], 1.0 + f32::EPSILON as f64),
    ];
    for (name, [x, y], expected) in pairs {
        let op = format!("prims.{name}.default");
        let (a, b) = (floats(&engine, &[1], &[*x]), floats(&engine, &[1], &[*y]));
        let found = to_f32s(&call(&engine, &op, &[&a, &b], BOTH, &[F32])[0]);
        assert_near(&op, &found, &[*expected]);
        assert!(*name != "nextafter" || found == [1.0f32.next_up()]);
    }
}

const BOTH: &str = r#"[{"v":"a"},{"v":"b"}]"#;

#[test]
fn functions_of_two_numbers() {
    let Some(engine) = engine() else { return };
    let functions: &[Binary<f64>] = &[
        ("add", |a, b| a + b),
        ("atan2", f64::atan2),
        ("fmax", f64::max),
        ("fmin", f64::min),
        // The first keeps the sign of the dividend, the second that of the divisor.
        ("fmod", |a, b| a % b),
        ("remainder", |a, b| a - b * (a / b).floor()),
        ("hypot", f64::hypot),
        ("maximum", f64::max),
        ("minimum", f64::min),
        ("mul", |a, b| a * b),
        ("pow", f64::powf),
        ("sub", |a, b| a - b),
    ];
    let (x, y) = ([5.5, -7.25, 3.0], [2.0, 3.0, -2.0]);
    let tensor = |values: [f64; 3]| floats(&engine, &[3], &values.map(|x| x as f32));
    let (a, b) = (tensor(x), tensor(y));
    for (name, function) in functions {
        let op = format!("prims.{name}.default");
        let expected: Vec<f64> = x.iter().zip(y).map(|(x, y)| function(*x, y)).collect();
        assert_near(&op, &to_f32s(&call(&engine, &op, &[&a, &b], BOTH, &[F32])[0]), &expected);
    }
    // The ones pass over NaN, the others pass it on.
    let nan = floats(&engine, &[1], &[f32::NAN]);
    let one = floats(&engine, &[1], &[1.0]);
    for (name, is_nan) in [("fmax", false), ("fmin", false), ("maximum", true), ("minimum", true)] {
        let op = format!("prims.{name}.default");
        let found = to_f32s(&call(&engine, &op, &[&nan, &one], BOTH, &[F32])[0]);
        assert_eq!(found[0].is_nan(), is_nan, "{op}");
    }
}

#[test]
fn comparisons_and_tests() {
    let Some(engine) = engine() else { return };
    let (a, b) = (floats(&engine, &[3], &[1.0, 2.0, 3.0]), floats(&engine, &[3], &[2.0, 2.0, 2.0]));
    let known: &[(&str, [u8; 3])] = &[
        ("eq", [0, 1, 0]),
        ("ge", [0, 1, 1]),
        ("gt", [0, 0, 1]),
        ("le", [1, 1, 0]),
        ("lt", [1, 0, 0]),
        ("ne", [1, 0, 1]),
    ];
    for (name, expected) in known {
        let op = format!("prims.{name}.default");
        assert_eq!(call(&engine, &op, &[&a, &b], BOTH, &[BOOL])[0].bytes, expected, "{op}");
    }
    let x = floats(&engine, &[3], &[-0.0, f32::NEG_INFINITY, f32::NAN]);
    let of = |op: &str| call(&engine, op, &[&x], r#"[{"v":"a"}]"#, &[BOOL]).remove(0).bytes;
    assert_eq!(of("prims.isfinite.default"), [1, 0, 0]);
    assert_eq!(of("prims.signbit.default")[..2], [1, 1]);
    let condition = engine.copied(DType::Bool, &[3], &[1, 0, 1]).unwrap();
    let args = r#"[{"v":"c"},{"v":"a"},{"v":"b"}]"#;
    let chosen = call(&engine, "prims.where.default", &[&a, &b, &condition], args, &[F32]);
    assert_eq!(to_f32s(&chosen[0]), [1.0, 2.0, 3.0]);
}

#[test]
fn bits_of_integers() {
    let Some(engine) = engine() else { return };
    let (a, b) = (ints(&engine, &[3], &[12, -8, 6]), ints(&engine, &[3], &[10, 2, 3]));
    let functions: &[Binary<i64>] = &[
        ("bitwise_and", |a, b| a & b),
        ("bitwise_or", |a, b| a | b),
        ("bitwise_xor", |a, b| a ^ b),
        ("shift_left", |a, b| a << b),
        ("shift_right_arithmetic", |a, b| a >> b),
    ];
    for (name, function) in functions {
        let op = format!("prims.{name}.default");
        let expected = i64s(&[function(12, 10), function(-8, 2), function(6, 3)]);
        assert_eq!(call(&engine, &op, &[&a, &b], BOTH, &[I64])[0].bytes, expected, "{op}");
    }
    assert_eq!(call(&engine, "prims.gcd.default", &[&a, &b], BOTH, &[I64])[0].bytes, i64s(&[2, 2, 3]));
    let inverted = call(&engine, "prims.bitwise_not.default", &[&a], r#"[{"v":"a"}]"#, &[I64]);
    assert_eq!(inverted[0].bytes, i64s(&[-13, 7, -7]));
}

#[test]
fn parts_of_numbers() {
    let Some(engine) = engine() else { return };
    let c64 = r#"{"tensor":"c64","shape":[1]}"#;
    let z = engine.copied(DType::C64, &[1], &common::f32s(&[3.0, -4.0])).unwrap();
    let of = |op: &str, ty: &str| call(&engine, op, &[&z], r#"[{"v":"a"}]"#, &[ty]).remove(0);
    for op in ["prims.conj.default", "prims.conj_physical.default"] {
        assert_eq!(of(op, c64).bytes, common::f32s(&[3.0, 4.0]), "{op}");
    }
    assert_eq!(to_f32s(&of("prims.real.default", F32)), [3.0]);
    assert_eq!(to_f32s(&of("prims.imag.default", F32)), [-4.0]);
    assert_eq!(to_f32s(&of("prims.abs.default", F32)), [5.0]);
    // 6 = 0.75 * 2^3.
    let six = floats(&engine, &[1], &[6.0]);
    let parts = call(&engine, "prims.frexp.default", &[&six], r#"[{"v":"a"}]"#, &[F32, I64]);
    assert_eq!((to_f32s(&parts[0]), &parts[1].bytes), (vec![0.75], &3i32.to_le_bytes().to_vec()));
    let number = call(&engine, "prims.item.default", &[&six], r#"[{"v":"a"}]"#, &[r#"{"scalar":"float"}"#]);
    assert_eq!((number[0].dtype, &number[0].bytes), (DType::F64, &6f64.to_le_bytes().to_vec()));
    let bits = call(&engine, "prims.view_of_dtype.default", &[&six], r#"[{"v":"a"},{"dtype":"i32"}]"#, &[I64]);
    assert_eq!(bits[0].bytes, 6f32.to_le_bytes());
    let cast = call(&engine, "prims.convert_element_type.default", &[&six], r#"[{"v":"a"},{"dtype":"i64"}]"#, &[I64]);
    assert_eq!(cast[0].bytes, i64s(&[6]));
}

/// Of a = [[0, 1, 2], [3, 4, 5]].
#[test]
fn shapes_and_places() {
    let Some(engine) = engine() else { return };
    let a = floats(&engine, &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let known: &[(&str, &str, &[i64], &[f32])] = &[
        ("as_strided", "[2,2],[1,2],1", &[2, 2], &[1.0, 3.0, 2.0, 4.0]),
        ("clone", "", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("collapse", "0,1", &[6], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("collapse_view", "0,1", &[6], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("device_put", r#"{"device":"cpu"}"#, &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("fill", "7", &[2, 3], &[7.0; 6]),
        ("reshape", "[3,2]", &[3, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("rev", "[1]", &[2, 3], &[2.0, 1.0, 0.0, 5.0, 4.0, 3.0]),
        ("split_dim", "1,3", &[2, 3, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("transpose", "[1,0]", &[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]),
        ("view_of", "", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("prod", "[1]", &[2], &[0.0, 60.0]),
        ("prod", "[0,1]", &[], &[0.0]),
        ("sum", "[0]", &[3], &[3.0, 5.0, 7.0]),
        ("sum", "null", &[], &[15.0]),
        ("amax", "[1]", &[2], &[2.0, 5.0]),
        // Squares of the distances from 1 and from 4, over three.
        ("var", "[1],0", &[2], &[2.0 / 3.0, 2.0 / 3.0]),
    ];
    for (name, rest, shape, expected) in known {
        let op = format!("prims.{name}.default");
        let args = if rest.is_empty() { r#"[{"v":"a"}]"#.to_owned() } else { format!(r#"[{{"v":"a"}},{rest}]"#) };
        let ty = format!(r#"{{"tensor":"f32","shape":{shape:?}}}"#);
        let found = call(&engine, &op, &[&a], &args, &[&ty]).remove(0);
        assert_eq!((found.shape.as_slice(), to_f32s(&found).as_slice()), (*shape, *expected), "{op}");
    }
    let row = floats(&engine, &[1, 3], &[6.0, 7.0, 8.0]);
    let ty = r#"{"tensor":"f32","shape":[3,3]}"#;
    let both = call(&engine, "prims.cat.default", &[&a, &row], r#"[[{"v":"a"},{"v":"b"}],0]"#, &[ty]).remove(0);
    assert_eq!((both.shape.as_slice(), to_f32s(&both)[6..].to_vec()), ([3, 3].as_slice(), vec![6.0, 7.0, 8.0]));
    let flat = call(&engine, "prims.squeeze.default", &[&row], r#"[{"v":"a"},[0]]"#, &[F32]).remove(0);
    assert_eq!(flat.shape, [3]);
}

#[test]
fn tensors_of_nothing() {
    let Some(engine) = engine() else { return };
    let of = |op: &str, args: &str, ty: &str| call(&engine, op, &[], args, &[ty]).remove(0);
    let tail = r#"{"device":"cpu"},false"#;
    let iota = of("prims.iota.default", &format!(r#"[4,10,-3,{{"dtype":"i64"}},{tail}]"#), I64);
    assert_eq!(iota.bytes, i64s(&[10, 7, 4, 1]));
    let full = of("prims.full.default", &format!(r#"[[2],{{"float":3}},{{"dtype":"f32"}},{tail}]"#), F32);
    assert_eq!(to_f32s(&full), [3.0, 3.0]);
    let scalar = r#"{"tensor":"f32","shape":[]}"#;
    let number = of("prims.scalar_tensor.default", r#"[2.5,{"dtype":"f32"},{"device":"cpu"}]"#, scalar);
    assert_eq!((number.shape.len(), to_f32s(&number)), (0, vec![2.5]));
}
