//! Numbers: functions of floats, roundings of small floats, integer division.

use super::*;

type Reference = fn(f64) -> f64;
type IsNan = fn(u8) -> bool;

fn unary(op: &str, kind: &str, values: &[u8], count: i64) -> Output {
    let source = format!(
        "func.func @forward(%a: tensor<{count}x{kind}>) -> tensor<{count}x{kind}> {{
        %r = {op} %a : tensor<{count}x{kind}>
        return %r : tensor<{count}x{kind}>
    }}"
    );
    only(run(&source, &[tensor(values, &[count])]))
}

/// Differences to f64 arithmetic, in units of the last place of f32.
#[test]
fn math_functions_are_accurate() {
    let inputs: Vec<f32> =
        vec![-1e-6, -0.0, 1e-10, 3e-5, 0.1, 0.5, 0.75, -0.999, 0.9999, -0.3, 1e-38, 0.125, -0.25, 0.7081, 0.01, 0.6];
    let functions: [(&str, Reference); 12] = [
        ("math.expm1", f64::exp_m1),
        ("math.log1p", f64::ln_1p),
        ("math.exp", f64::exp),
        ("math.tanh", f64::tanh),
        ("math.sin", f64::sin),
        ("math.cos", f64::cos),
        ("math.atan", f64::atan),
        ("math.asinh", f64::asinh),
        ("math.sinh", f64::sinh),
        ("math.exp2", f64::exp2),
        ("math.floor", f64::floor),
        ("math.tan", f64::tan),
    ];
    let data: Vec<u8> = inputs.iter().flat_map(|value| value.to_le_bytes()).collect();
    for (name, reference) in functions {
        let got = numbers!(f32, unary(name, "f32", &data, inputs.len() as i64));
        for (&x, &y) in inputs.iter().zip(&got) {
            let expected = reference(f64::from(x)) as f32;
            let distance = (i64::from(y.to_bits()) - i64::from(expected.to_bits())).abs();
            assert!(distance <= 2, "{name}({x:e}) = {y:e}, not {expected:e}");
        }
    }
    let data: Vec<u8> = inputs.iter().flat_map(|&value| f64::from(value).to_le_bytes()).collect();
    for (name, reference) in functions {
        let got = numbers!(f64, unary(name, "f64", &data, inputs.len() as i64));
        for (&x, &y) in inputs.iter().zip(&got) {
            let expected = reference(f64::from(x));
            assert!((y - expected).abs() <= 1e-15 * expected.abs(), "{name}({x:e}) = {y:e}, not {expected:e}");
        }
    }
}

#[test]
fn nan_and_signed_zero_survive() {
    let data = bytes!(f32: f32::NAN, -0.0, f32::NEG_INFINITY, 1.0);
    let source = "func.func @forward(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>) {
        %max = arith.maximumf %a, %b : tensor<4xf32>
        %num = arith.maxnumf %a, %b : tensor<4xf32>
        %lt = arith.cmpf olt, %a, %b : tensor<4xf32>
        %ne = arith.cmpf une, %a, %a : tensor<4xf32>
        return %max, %num, %lt, %ne : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>
    }";
    let b = bytes!(f32: 1.0, -0.0, f32::NAN, 0.5);
    let outputs = run(source, &[tensor(&data, &[4]), tensor(&b, &[4])]).unwrap().outputs;
    let max = numbers!(f32, outputs[0]);
    assert!(max[0].is_nan() && max[2].is_nan());
    assert_eq!((max[1].to_bits(), max[3]), ((-0.0_f32).to_bits(), 1.0));
    let num = numbers!(f32, outputs[1]);
    assert_eq!((num[0], num[2]), (1.0, f32::NEG_INFINITY));
    assert_eq!(outputs[2].data, [0, 0, 0, 0]);
    assert_eq!(outputs[3].data, [1, 0, 0, 0]);
    let floor = numbers!(f32, unary("math.ceil", "f32", &bytes!(f32: -0.5, 2.5), 2));
    assert_eq!(floor[0].to_bits(), (-0.0_f32).to_bits());
    let even = numbers!(f32, unary("math.roundeven", "f32", &bytes!(f32: 0.5, 1.5, 2.5, -0.5), 4));
    assert_eq!(even, [0.0, 2.0, 2.0, -0.0]);
}

/// bf16: every f32 whose rounding is a special case, and sums rounded after each operation.
#[test]
fn bf16_rounds_to_nearest_even() {
    let source = "func.func @forward(%a: tensor<8xf32>) -> (tensor<8xbf16>, tensor<8xbf16>) {
        %r = arith.truncf %a : tensor<8xf32> to tensor<8xbf16>
        %s = arith.addf %r, %r : tensor<8xbf16>
        return %r, %s : tensor<8xbf16>, tensor<8xbf16>
    }";
    let cases: [(u32, u16); 8] = [
        (0x3F80_8000, 0x3F80), // a tie goes to the even one
        (0x3F81_8000, 0x3F82),
        (0x3F80_8001, 0x3F81),
        (0x7F7F_FFFF, 0x7F80), // beyond the largest: infinity
        (0x0000_8001, 0x0001), // a denormal is not flushed
        (0x8000_0000, 0x8000),
        (0xFF80_0000, 0xFF80),
        (0x0001_0000, 0x0001),
    ];
    let data: Vec<u8> = cases.iter().flat_map(|(bits, _)| bits.to_le_bytes()).collect();
    let outputs = run(source, &[tensor(&data, &[8])]).unwrap().outputs;
    let expected: Vec<u16> = cases.iter().map(|&(_, bits)| bits).collect();
    assert_eq!(numbers!(u16, outputs[0]), expected);
    assert_eq!(numbers!(u16, outputs[1])[0], 0x4000);
    assert_eq!(numbers!(u16, outputs[1])[7], 0x0002);
    let nan = unary("math.exp", "bf16", &bytes!(u16: 0x7FC0, 0xFF80, 0x3F80), 3);
    let nan = numbers!(u16, nan);
    assert_eq!((nan[0] & 0x7FC0, nan[1], nan[2]), (0x7FC0, 0, 0x402E));
}

#[test]
fn f16_arithmetic_rounds_once() {
    // 2048 + 1 is a tie in f16, and 65504 + 32 overflows to infinity only from the tie upwards.
    let source = "func.func @forward(%a: tensor<3xf16>, %b: tensor<3xf16>) -> (tensor<3xf16>, tensor<3xf32>) {
        %s = arith.addf %a, %b : tensor<3xf16>
        %w = arith.extf %a : tensor<3xf16> to tensor<3xf32>
        return %s, %w : tensor<3xf16>, tensor<3xf32>
    }";
    let a = bytes!(u16: 0x6800, 0x7BFF, 0x0001);
    let b = bytes!(u16: 0x3C00, 0x4C00, 0x0001);
    let outputs = run(source, &[tensor(&a, &[3]), tensor(&b, &[3])]).unwrap().outputs;
    assert_eq!(numbers!(u16, outputs[0]), [0x6800, 0x7C00, 0x0002]);
    assert_eq!(numbers!(f32, outputs[1]), [2048.0, 65504.0, 2.0_f32.powi(-24)]);
}

/// All 256 patterns there and back, and the roundings that tell the formats apart.
#[test]
fn eight_bit_floats() {
    let source = |kind: &str| {
        format!("func.func @forward(%a: tensor<256x{kind}>, %x: tensor<4xf32>) -> (tensor<256xf32>, tensor<256x{kind}>, tensor<4x{kind}>, tensor<256x{kind}>) {{
        %w = arith.extf %a : tensor<256x{kind}> to tensor<256xf32>
        %n = arith.truncf %w : tensor<256xf32> to tensor<256x{kind}>
        %t = arith.truncf %x : tensor<4xf32> to tensor<4x{kind}>
        %one = arith.constant dense<1.0> : tensor<256x{kind}>
        %p = arith.mulf %a, %one : tensor<256x{kind}>
        return %w, %n, %t, %p : tensor<256xf32>, tensor<256x{kind}>, tensor<4x{kind}>, tensor<256x{kind}>
    }}")
    };
    let all: Vec<u8> = (0..=255).collect();
    let x = bytes!(f32: 448.0, 470.0, 1e9, 0.3);
    // 448 and 470 in each format, 1e9, 0.3: by the OCP FP8 and the FNUZ definitions.
    let cases: [(&str, [u8; 4], IsNan); 4] = [
        ("f8E4M3FN", [0x7E, 0x7F, 0x7F, 0x2A], |bits| bits & 0x7F == 0x7F),
        ("f8E5M2", [0x5F, 0x5F, 0x7C, 0x35], |bits| bits & 0x7F > 0x7C),
        ("f8E4M3FNUZ", [0x80, 0x80, 0x80, 0x32], |bits| bits == 0x80),
        ("f8E5M2FNUZ", [0x63, 0x63, 0x80, 0x39], |bits| bits == 0x80),
    ];
    for (kind, rounded, is_nan) in cases {
        let outputs = run(&source(kind), &[tensor(&all, &[256]), tensor(&x, &[4])]).unwrap().outputs;
        for (bits, &wide) in numbers!(f32, outputs[0]).iter().enumerate() {
            let bits = bits as u8;
            assert_eq!(wide.is_nan(), is_nan(bits), "{kind} {bits:02x}");
            if !wide.is_nan() {
                assert_eq!((outputs[1].data[bits as usize], outputs[3].data[bits as usize]), (bits, bits), "{kind}");
            }
        }
        assert_eq!(outputs[2].data, rounded, "{kind}");
        assert_eq!(
            numbers!(f32, outputs[0])[if kind.ends_with("UZ") {
                0x40
            } else if kind == "f8E5M2" {
                0x3C
            } else {
                0x38
            }],
            1.0
        );
    }
}

#[test]
fn integers_divide_as_written() {
    let source =
        "func.func @forward(%a: tensor<4xi32>, %b: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
        %f = arith.floordivsi %a, %b : tensor<4xi32>
        %t = arith.divsi %a, %b : tensor<4xi32>
        %u = arith.remui %a, %b : tensor<4xi32>
        return %f, %t, %u : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
    }";
    let (a, b) = (bytes!(i32: -7, 7, 7, -1), bytes!(i32: 2, -2, 2, 3));
    let outputs = run(source, &[tensor(&a, &[4]), tensor(&b, &[4])]).unwrap().outputs;
    assert_eq!(numbers!(i32, outputs[0]), [-4, -4, 3, -1]);
    assert_eq!(numbers!(i32, outputs[1]), [-3, -3, 3, 0]);
    assert_eq!(numbers!(u32, outputs[2])[3], u32::MAX % 3);
}
