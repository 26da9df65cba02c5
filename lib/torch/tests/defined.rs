//! Operators that PyTorch has in Python only, against numbers worked out by hand from their definitions.
#![allow(clippy::unwrap_used)]

mod common;

use common::{engine, floats, output, program, run};
use m2m_record::DType;
use m2m_torch::Value;

/// One node over `x: f32 shape` with what follows `x` among the arguments.
fn one(op: &str, shape: &str, rest: &str, results: &[(&str, &str)]) -> m2m_graph::Program {
    let types: Vec<String> = results
        .iter()
        .enumerate()
        .map(|(k, (dtype, shape))| format!(r#"{{"value":"y{k}","type":{{"tensor":"{dtype}","shape":{shape}}}}}"#))
        .collect();
    let returns = if results.len() == 1 { String::new() } else { r#","returns":[1,1]"#.to_owned() };
    let outputs: Vec<String> =
        (0..results.len()).map(|k| format!(r#"{{"value":"y{k}","role":"user_output"}}"#)).collect();
    program(&format!(
        r#"{{"record":"graph","graph":"original","stage":"original","entry":"forward"}}
        {{"record":"input","graph":"original","value":"x","role":"user_input","type":{{"tensor":"f32","shape":{shape}}}}}
        {{"record":"node","graph":"original","stage":"original","node":"original:0","op":"{op}","args":[{{"v":"x"}},{rest}],"results":[{}]{returns}}}
        {{"record":"output","graph":"original","outputs":[{}]}}"#,
        types.join(","),
        outputs.join(",")
    ))
}

#[test]
fn quantize_rounds_to_even_adds_the_zero_point_and_clamps() {
    let Some(engine) = engine() else { return };
    let program = one(
        "quantized_decomposed.quantize_per_tensor.default",
        "[5]",
        r#"0.5,3,-128,127,{"dtype":"i8"}"#,
        &[("i8", "[5]")],
    );
    // x / 0.5 = 0.5, 1.5, 2.5, -400, 400: rounded 0, 2, 2; plus 3; clamped.
    let x = floats(&engine, &[5], &[0.25, 0.75, 1.25, -200.0, 200.0]);
    let outcome = run(&engine, &program, &[("x", x.into())]).unwrap();
    assert_eq!(outcome.outputs[0].bytes, [3u8, 5, 5, 0x80, 0x7F]);
    assert_eq!(outcome.outputs[0].dtype, DType::I8);
}

#[test]
fn choose_qparams_spans_zero() {
    let Some(engine) = engine() else { return };
    let program = one(
        "quantized_decomposed.choose_qparams.tensor",
        "[2]",
        r#"-128,127,0.000244140625,{"dtype":"i8"}"#,
        &[("f64", "[1]"), ("i64", "[1]")],
    );
    // From 0 (which must be in the range) to 51: scale 51 / 255 = 0.2 in f32, zero point -128 - round(0 / 0.2).
    let x = floats(&engine, &[2], &[51.0, 10.0]);
    let outcome = run(&engine, &program, &[("x", x.into())]).unwrap();
    assert_eq!(outcome.outputs[0].bytes, f64::from(0.2f32).to_le_bytes());
    assert_eq!(outcome.outputs[1].bytes, (-128i64).to_le_bytes());
}

#[test]
fn channels_have_their_own_scales() {
    let Some(engine) = engine() else { return };
    let lines = r#"
        {"record":"graph","graph":"original","stage":"original","entry":"forward"}
        {"record":"input","graph":"original","value":"x","role":"user_input","type":{"tensor":"f32","shape":[2,2]}}
        {"record":"input","graph":"original","value":"s","role":"user_input","type":{"tensor":"f32","shape":[2]}}
        {"record":"input","graph":"original","value":"z","role":"user_input","type":{"tensor":"i64","shape":[2]}}
        {"record":"node","graph":"original","stage":"original","node":"original:0","op":"quantized_decomposed.quantize_per_channel.default","args":[{"v":"x"},{"v":"s"},{"v":"z"},1,-128,127,{"dtype":"i8"}],"results":[{"value":"q","type":{"tensor":"i8","shape":[2,2]}}]}
        {"record":"node","graph":"original","stage":"original","node":"original:1","op":"quantized_decomposed.dequantize_per_channel.default","args":[{"v":"q"},{"v":"s"},{"v":"z"},1,-128,127,{"dtype":"i8"}],"results":[{"value":"d","type":{"tensor":"f32","shape":[2,2]}}]}
        {"record":"output","graph":"original","outputs":[{"value":"q","role":"user_output"},{"value":"d","role":"user_output"}]}"#;
    let inputs = [
        ("x", Value::from(floats(&engine, &[2, 2], &[1.0, 1.0, -3.0, 7.0]))),
        ("s", floats(&engine, &[2], &[0.5, 2.0]).into()),
        ("z", common::ints(&engine, &[2], &[0, 10]).into()),
    ];
    let outcome = run(&engine, &program(lines), &inputs).unwrap();
    // Columns: x / 0.5, and x / 2 + 10, where 0.5 rounds to 0 and 3.5 to 4.
    assert_eq!(outcome.outputs[0].bytes, [2, 10, 0xFA, 14]);
    assert_eq!(output(&outcome, "out_1"), [1.0, 0.0, -3.0, 8.0]);
}

#[test]
fn affine_blocks_and_8_bit_floats() {
    let Some(engine) = engine() else { return };
    let choose = one(
        "torchao.choose_qparams_affine.default",
        "[2,4]",
        r#""SYMMETRIC",[1,2],{"dtype":"i8"},-127,127,null,null,{"dtype":"i32"}"#,
        &[("f32", "[2,2]"), ("i32", "[2,2]")],
    );
    let x = floats(&engine, &[2, 4], &[1.0, -127.0, 254.0, 0.0, 12.7, 1.0, 0.0, 0.0]);
    let outcome = run(&engine, &choose, &[("x", x.into())]).unwrap();
    // Each pair's greatest magnitude over 127; of zeros, the least normal f32.
    assert_eq!(output(&outcome, "out_0"), [1.0, 2.0, 12.7f32 / 127.0, f32::MIN_POSITIVE]);
    assert_eq!(outcome.outputs[1].bytes, [0; 16]);
    let scale = one("torchao.choose_scale_float8.default", "[2,2]", "[1,2]", &[("f32", "[2,1]")]);
    let x = floats(&engine, &[2, 2], &[448.0, -896.0, 0.0, 112.0]);
    let outcome = run(&engine, &scale, &[("x", x.into())]).unwrap();
    assert_eq!(output(&outcome, "out_0"), [2.0, 0.25]);
}

#[test]
fn prims_broadcast_divide_and_reduce_as_they_say() {
    let Some(engine) = engine() else { return };
    let x = || Value::from(floats(&engine, &[2], &[-7.0, 2.0]));
    let of = |op: &str, rest: &str, shape: &str| {
        let program = one(op, "[2]", rest, &[("f32", shape)]);
        output(&run(&engine, &program, &[("x", x())]).unwrap(), "out_0")
    };
    assert_eq!(of("prims.broadcast_in_dim.default", "[3,2],[1]", "[3,2]"), [-7.0, 2.0, -7.0, 2.0, -7.0, 2.0]);
    assert_eq!(of("prims.amax.default", "[0]", "[]"), [2.0]);
    assert_eq!(of("prims.amin.default", "[0]", "[]"), [-7.0]);
    // The mean is -2.5, each is 4.5 away, and the divisor is 2 - 1.
    assert_eq!(of("prims.var.default", "[0]", "[]"), [40.5]);
    assert_eq!(of("prims.rev.default", "[0]", "[2]"), [2.0, -7.0]);
    assert_eq!(of("prims.full_like.default", "3.5", "[2]"), [3.5, 3.5]);
    assert_eq!(of("prims.div.default", r#"{"v":"x"}"#, "[2]"), [1.0, 1.0]);
    let integers = program(
        r#"{"record":"graph","graph":"original","stage":"original","entry":"forward"}
        {"record":"input","graph":"original","value":"x","role":"user_input","type":{"tensor":"i64","shape":[2]}}
        {"record":"input","graph":"original","value":"w","role":"user_input","type":{"tensor":"i64","shape":[2]}}
        {"record":"node","graph":"original","stage":"original","node":"original:0","op":"prims.div.default","args":[{"v":"x"},{"v":"w"}],"results":[{"value":"y","type":{"tensor":"i64","shape":[2]}}]}
        {"record":"output","graph":"original","outputs":[{"value":"y","role":"user_output"}]}"#,
    );
    let ints = |values: &[i64]| Value::from(common::ints(&engine, &[2], values));
    let outcome = run(&engine, &integers, &[("x", ints(&[-7, 7])), ("w", ints(&[2, 2]))]).unwrap();
    assert_eq!(outcome.outputs[0].bytes, common::i64s(&[-3, 3]));
}
