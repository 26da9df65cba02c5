//! Modules compiled and run: results by hand, shapes known late, aliases, small floats, failing assertions.
#![allow(clippy::unwrap_used)]

use m2m_mlir::Error;
use m2m_mlir::jit::{Argument, Options, Outcome, Output, Program};

type Reference = fn(f64) -> f64;
type IsNan = fn(u8) -> bool;

fn run(source: &str, arguments: &[Argument<'_>]) -> Result<Outcome, Error> {
    Program::compile(source.as_bytes(), "forward", Options::default())?.run(arguments)
}

/// Little-endian bytes of numbers of one type.
macro_rules! bytes {
    ($kind:ty: $($value:expr),* $(,)?) => {{
        let mut data: Vec<u8> = Vec::new();
        $( data.extend(<$kind>::to_le_bytes($value)); )*
        data
    }};
}

macro_rules! numbers {
    ($kind:ty, $output:expr) => {
        $output
            .data
            .chunks_exact(size_of::<$kind>())
            .map(|chunk| <$kind>::from_le_bytes(chunk.try_into().unwrap()))
            .collect::<Vec<$kind>>()
    };
}

fn tensor<'a>(data: &'a [u8], dims: &'a [i64]) -> Argument<'a> {
    Argument::Tensor { data, dims }
}

fn only(outcome: Result<Outcome, Error>) -> Output {
    let mut outputs = outcome.unwrap().outputs;
    assert_eq!(outputs.len(), 1);
    outputs.remove(0)
}

#[test]
fn elementwise_on_tensors() {
    let source = "func.func @forward(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
        %0 = arith.addf %a, %b : tensor<2xf32>
        return %0 : tensor<2xf32>
    }";
    let (a, b) = (bytes!(f32: 1.0, 2.0), bytes!(f32: 10.0, 20.0));
    let output = only(run(source, &[tensor(&a, &[2]), tensor(&b, &[2])]));
    assert_eq!(numbers!(f32, output), [11.0, 22.0]);
    assert_eq!((output.dims.as_slice(), output.element.as_str()), ([2].as_slice(), "f32"));
}

/// A product with the second operand as stored by a linear layer, and as a plain matrix; shapes static and dynamic.
#[test]
fn products_in_every_orientation() {
    let transposed = "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]";
    let plain = "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]";
    let (rows, inner, columns) = (3_i64, 17_i64, 19_i64);
    let a: Vec<f32> = (0..rows * inner).map(|i| (i % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..inner * columns).map(|i| (i % 5) as f32 - 1.5).collect();
    let data = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    for (maps, is_transposed) in [(transposed, true), (plain, false)] {
        for dynamic in [false, true] {
            let dim = |size: i64| if dynamic { "?".to_owned() } else { size.to_string() };
            let b_dims = if is_transposed { [columns, inner] } else { [inner, columns] };
            let (ta, tb, tc) = (
                format!("tensor<{}x{}xf32>", dim(rows), dim(inner)),
                format!("tensor<{}x{}xf32>", dim(b_dims[0]), dim(b_dims[1])),
                format!("tensor<{}x{}xf32>", dim(rows), dim(columns)),
            );
            let empty = if dynamic {
                format!(
                    "%m = tensor.dim %a, %c0 : {ta}
                %n = tensor.dim %b, %axis : {tb}
                %e = tensor.empty(%m, %n) : {tc}"
                )
            } else {
                format!("%e = tensor.empty() : {tc}")
            };
            let source = format!(
                "func.func @forward(%a: {ta}, %b: {tb}) -> {tc} {{
                %c0 = arith.constant 0 : index
                %axis = arith.constant {} : index
                %z = arith.constant 0.0 : f32
                {empty}
                %f = linalg.fill ins(%z : f32) outs(%e : {tc}) -> {tc}
                %r = linalg.matmul {maps} ins(%a, %b : {ta}, {tb}) outs(%f : {tc}) -> {tc}
                return %r : {tc}
            }}",
                if is_transposed { 0 } else { 1 }
            );
            let output = only(run(&source, &[tensor(&data(&a), &[rows, inner]), tensor(&data(&b), &b_dims)]));
            assert_eq!(output.dims, [rows, columns]);
            let at = |k: i64, n: i64| b[(if is_transposed { n * inner + k } else { k * columns + n }) as usize];
            let expected: Vec<f32> = (0..rows * columns)
                .map(|i| (0..inner).map(|k| a[(i / columns * inner + k) as usize] * at(k, i % columns)).sum())
                .collect();
            // Every product and sum is a small multiple of 0.5, so any order gives the same result.
            assert_eq!(numbers!(f32, output), expected, "transposed {is_transposed}, dynamic {dynamic}");
        }
    }
}

#[test]
fn strided_dilated_convolution() {
    let source = "func.func @forward(%x: tensor<1x2x9x12xf32>, %w: tensor<3x2x2x3xf32>) -> tensor<1x3x4x9xf32> {
        %z = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<1x3x4x9xf32>
        %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x3x4x9xf32>) -> tensor<1x3x4x9xf32>
        %r = linalg.conv_2d_nchw_fchw {strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<[2, 1]> : tensor<2xi64>}
            ins(%x, %w : tensor<1x2x9x12xf32>, tensor<3x2x2x3xf32>) outs(%f : tensor<1x3x4x9xf32>) -> tensor<1x3x4x9xf32>
        return %r : tensor<1x3x4x9xf32>
    }";
    let x: Vec<f32> = (0..2 * 9 * 12).map(|i| (i % 11) as f32 - 5.0).collect();
    let w: Vec<f32> = (0..3 * 2 * 2 * 3).map(|i| (i % 4) as f32 - 1.0).collect();
    let data = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let mut expected = Vec::new();
    for f in 0..3 {
        for oh in 0..4 {
            for ow in 0..9 {
                let mut sum = 0.0;
                for c in 0..2 {
                    for kh in 0..2 {
                        for kw in 0..3 {
                            sum += x[(c * 9 + oh * 2 + kh * 2) * 12 + ow + kw] * w[((f * 2 + c) * 2 + kh) * 3 + kw];
                        }
                    }
                }
                expected.push(sum);
            }
        }
    }
    let output = only(run(source, &[tensor(&data(&x), &[1, 2, 9, 12]), tensor(&data(&w), &[3, 2, 2, 3])]));
    assert_eq!(numbers!(f32, output), expected);
}

/// The number of results depends on the data.
#[test]
fn shapes_that_depend_on_data() {
    let source = "func.func @forward(%n: i64, %x: f64) -> (tensor<?xf64>, index) {
        %size = arith.index_cast %n : i64 to index
        %e = tensor.empty(%size) : tensor<?xf64>
        %r = linalg.fill ins(%x : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
        return %r, %size : tensor<?xf64>, index
    }";
    let program = Program::compile(source.as_bytes(), "forward", Options::default()).unwrap();
    for size in [3, 0] {
        let outcome = program.run(&[Argument::Int(size), Argument::Float(0.1)]).unwrap();
        assert_eq!(numbers!(f64, outcome.outputs[0]), vec![0.1; size as usize]);
        assert_eq!(outcome.outputs[0].dims, [size]);
        assert_eq!(numbers!(i64, outcome.outputs[1]), [size]);
        assert!(outcome.outputs[1].dims.is_empty());
    }
}

#[test]
fn results_that_are_arguments_constants_or_each_other() {
    let source = "func.func @forward(%a: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<1xi64>, tensor<2xi64>) {
        %c = arith.constant dense<[7, 8]> : tensor<2xi64>
        %one = arith.constant dense<1> : tensor<2xi64>
        %s = arith.addi %a, %one : tensor<2xi64>
        %t = tensor.extract_slice %a[1] [1] [1] : tensor<2xi64> to tensor<1xi64>
        return %a, %s, %s, %t, %c : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<1xi64>, tensor<2xi64>
    }";
    let a = bytes!(i64: 5, -6);
    let outcome = run(source, &[tensor(&a, &[2])]).unwrap();
    let all: Vec<Vec<i64>> = outcome.outputs.iter().map(|output| numbers!(i64, output)).collect();
    assert_eq!(all, [vec![5, -6], vec![6, -5], vec![6, -5], vec![-6], vec![7, 8]]);
    assert_eq!(a, bytes!(i64: 5, -6));
}

#[test]
fn arguments_are_never_written() {
    let source = "func.func @forward(%a: tensor<3xf32>) -> tensor<3xf32> {
        %z = arith.constant 9.0 : f32
        %i = arith.constant 1 : index
        %r = tensor.insert %z into %a[%i] : tensor<3xf32>
        return %r : tensor<3xf32>
    }";
    let a = bytes!(f32: 1.0, 2.0, 3.0);
    let output = only(run(source, &[tensor(&a, &[3])]));
    assert_eq!(numbers!(f32, output), [1.0, 9.0, 3.0]);
    assert_eq!(a, bytes!(f32: 1.0, 2.0, 3.0));
}

#[test]
fn unaligned_arguments_are_read() {
    let source = "func.func @forward(%a: tensor<2xf64>) -> tensor<2xf64> {
        %r = arith.negf %a : tensor<2xf64>
        return %r : tensor<2xf64>
    }";
    let mut padded = vec![0_u8; 3];
    padded.extend(bytes!(f64: 1.5, -2.5));
    assert_eq!(numbers!(f64, only(run(source, &[tensor(&padded[3..], &[2])]))), [-1.5, 2.5]);
}

#[test]
fn scalars_bools_and_0d_tensors() {
    let source =
        "func.func @forward(%flag: i1, %t: tensor<i1>, %x: tensor<f32>, %v: tensor<3xi1>) -> (i1, tensor<3xi1>, f32) {
        %a = tensor.extract %t[] : tensor<i1>
        %b = arith.xori %flag, %a : i1
        %n = arith.constant dense<true> : tensor<3xi1>
        %w = arith.xori %v, %n : tensor<3xi1>
        %y = tensor.extract %x[] : tensor<f32>
        return %b, %w, %y : i1, tensor<3xi1>, f32
    }";
    let x = bytes!(f32: 2.5);
    let arguments = [Argument::Bool(true), tensor(&[0], &[]), tensor(&x, &[]), tensor(&[1, 0, 1], &[3])];
    let outcome = run(source, &arguments).unwrap();
    assert_eq!(outcome.outputs[0].data, [1]);
    assert_eq!(outcome.outputs[1].data, [0, 1, 0]);
    assert_eq!(numbers!(f32, outcome.outputs[2]), [2.5]);
    let error = run(source, &[Argument::Bool(true), tensor(&[2], &[]), tensor(&x, &[]), tensor(&[1, 0, 1], &[3])]);
    assert_eq!(error.unwrap_err().to_string(), "argument 1: a bool is neither 0 nor 1");
}

#[test]
fn failed_assertions_end_the_call_with_their_message() {
    let source = "func.func @forward(%a: tensor<?xf32>) -> tensor<?xf32> {
        %c0 = arith.constant 0 : index
        %c4 = arith.constant 4 : index
        %r = arith.addf %a, %a : tensor<?xf32>
        %n = tensor.dim %r, %c0 : tensor<?xf32>
        %ok = arith.cmpi sle, %n, %c4 : index
        cf.assert %ok, \"s0 <= 4\"
        return %r : tensor<?xf32>
    }";
    let program = Program::compile(source.as_bytes(), "forward", Options::default()).unwrap();
    let data = bytes!(f32: 1.0, 2.0, 3.0, 4.0, 5.0);
    for _ in 0..3 {
        assert_eq!(program.run(&[tensor(&data, &[5])]).unwrap_err().to_string(), "s0 <= 4");
        let outcome = program.run(&[tensor(&data[..8], &[2])]).unwrap();
        assert_eq!(numbers!(f32, outcome.outputs[0]), [2.0, 4.0]);
    }
}

#[test]
fn allocation_beyond_the_limit_is_an_error() {
    let source = "func.func @forward(%n: i64) -> tensor<?xf64> {
        %size = arith.index_cast %n : i64 to index
        %x = arith.constant 1.0 : f64
        %e = tensor.empty(%size) : tensor<?xf64>
        %r = linalg.fill ins(%x : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
        return %r : tensor<?xf64>
    }";
    let options = Options { memory_limit: 1 << 20, ..Options::default() };
    let program = Program::compile(source.as_bytes(), "forward", options).unwrap();
    assert_eq!(program.run(&[Argument::Int(1000)]).unwrap().peak_bytes, 8000_usize.next_multiple_of(64));
    let error = program.run(&[Argument::Int(1 << 20)]).unwrap_err().to_string();
    assert!(error.starts_with("cannot allocate 8388608 bytes"), "{error}");
}

/// A chain of elementwise operations needs two buffers at a time, not one an operation.
#[test]
fn buffers_are_freed_after_their_last_use() {
    let mut source =
        "func.func @forward(%x0: tensor<1024xf32>, %w: tensor<1024xf32>) -> tensor<1024xf32> {\n".to_owned();
    for step in 0..20 {
        source.push_str(&format!("%x{} = arith.mulf %x{step}, %w : tensor<1024xf32>\n", step + 1));
        source.push_str(&format!("%y{step} = math.exp %x{} : tensor<1024xf32>\n", step + 1));
        source.push_str(&format!("%i{step} = arith.constant {step} : index\n"));
    }
    source.push_str("return %x20 : tensor<1024xf32> }");
    let x = bytes!(f32: 1.0).repeat(1024);
    let outcome = run(&source, &[tensor(&x, &[1024]), tensor(&x, &[1024])]).unwrap();
    assert!(outcome.peak_bytes <= 3 * 4096, "{}", outcome.peak_bytes);
}

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

#[test]
fn control_flow_carries_tensors() {
    let source = "func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
        %r = arith.addf %x, %x : tensor<2xf32>
        return %r : tensor<2xf32>
    }
    func.func @forward(%x: tensor<2xf32>, %flag: i1, %n: index) -> (tensor<2xf32>, tensor<2xf32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %a = scf.if %flag -> tensor<2xf32> {
            %d = func.call @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
            scf.yield %d : tensor<2xf32>
        } else {
            scf.yield %x : tensor<2xf32>
        }
        %b = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<2xf32> {
            %d = func.call @double(%t) : (tensor<2xf32>) -> tensor<2xf32>
            scf.yield %d : tensor<2xf32>
        }
        return %a, %b : tensor<2xf32>, tensor<2xf32>
    }";
    let x = bytes!(f32: 1.0, 3.0);
    let program = Program::compile(source.as_bytes(), "forward", Options::default()).unwrap();
    for (flag, expected) in [(true, [2.0, 6.0]), (false, [1.0, 3.0])] {
        let outputs = program.run(&[tensor(&x, &[2]), Argument::Bool(flag), Argument::Int(3)]).unwrap().outputs;
        assert_eq!(numbers!(f32, outputs[0]), expected);
        assert_eq!(numbers!(f32, outputs[1]), [8.0, 24.0]);
    }
}

#[test]
fn pads_slices_and_reshapes() {
    let source = "func.func @forward(%x: tensor<2x3xi8>, %n: index) -> (tensor<4x5xi8>, tensor<3x2xi8>, tensor<?x3xi8>) {
        %c = arith.constant 9 : i8
        %p = tensor.pad %x low[1, 0] high[1, 2] { ^bb0(%i: index, %j: index): tensor.yield %c : i8 } : tensor<2x3xi8> to tensor<4x5xi8>
        %f = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xi8> into tensor<6xi8>
        %e = tensor.expand_shape %f [[0, 1]] output_shape [3, 2] : tensor<6xi8> into tensor<3x2xi8>
        %s = tensor.extract_slice %p[0, 0] [%n, 3] [1, 2] : tensor<4x5xi8> to tensor<?x3xi8>
        return %p, %e, %s : tensor<4x5xi8>, tensor<3x2xi8>, tensor<?x3xi8>
    }";
    let outputs = run(source, &[tensor(&[1, 2, 3, 4, 5, 6], &[2, 3]), Argument::Int(2)]).unwrap().outputs;
    assert_eq!(outputs[0].data, [9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 4, 5, 6, 9, 9, 9, 9, 9, 9, 9]);
    assert_eq!(outputs[1].data, [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        (outputs[2].dims.as_slice(), outputs[2].data.as_slice()),
        ([2, 3].as_slice(), [9, 9, 9, 1, 3, 9].as_slice())
    );
}

/// The first of equal maxima wins, although loops are reordered: reductions keep their own order.
#[test]
fn argmax_takes_the_first() {
    let source = "func.func @forward(%x: tensor<3x16xf32>) -> tensor<16xi64> {
        %low = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0 : i64
        %e0 = tensor.empty() : tensor<16xf32>
        %e1 = tensor.empty() : tensor<16xi64>
        %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<16xf32>) -> tensor<16xf32>
        %f1 = linalg.fill ins(%zero : i64) outs(%e1 : tensor<16xi64>) -> tensor<16xi64>
        %r:2 = linalg.generic {indexing_maps = [affine_map<(c, r) -> (r, c)>, affine_map<(c, r) -> (c)>, affine_map<(c, r) -> (c)>], iterator_types = [\"parallel\", \"reduction\"]}
            ins(%x : tensor<3x16xf32>) outs(%f0, %f1 : tensor<16xf32>, tensor<16xi64>) {
          ^bb0(%v: f32, %m: f32, %i: i64):
            %at = linalg.index 1 : index
            %at64 = arith.index_cast %at : index to i64
            %gt = arith.cmpf ogt, %v, %m : f32
            %nm = arith.select %gt, %v, %m : f32
            %ni = arith.select %gt, %at64, %i : i64
            linalg.yield %nm, %ni : f32, i64
        } -> (tensor<16xf32>, tensor<16xi64>)
        return %r#1 : tensor<16xi64>
    }";
    let mut x = [0.0_f32; 48];
    x[16] = 5.0; // column 0: row 1
    x[32] = 5.0;
    x[33] = 1.0; // column 1: row 2
    let data: Vec<u8> = x.iter().flat_map(|value| value.to_le_bytes()).collect();
    let expected: Vec<i64> = [1, 2].into_iter().chain([0; 14]).collect();
    assert_eq!(numbers!(i64, only(run(source, &[tensor(&data, &[3, 16])]))), expected);
}

#[test]
fn wrong_calls_and_modules_are_refused() {
    let source = "func.func @forward(%a: tensor<?x2xf32>, %n: i64) -> tensor<?x2xf32> { return %a : tensor<?x2xf32> }";
    let data = bytes!(f32: 1.0, 2.0);
    let fails = |arguments: &[Argument<'_>]| run(source, arguments).unwrap_err().to_string();
    assert_eq!(fails(&[]), "the entry takes 2 arguments; got 0");
    assert_eq!(fails(&[tensor(&data, &[2, 1]), Argument::Int(1)]), "argument 0: expected f32 [?, 2]; got shape [2, 1]");
    assert_eq!(
        fails(&[tensor(&data[..4], &[1, 2]), Argument::Int(1)]),
        "argument 0: 4 bytes are not f32 of shape [1, 2]"
    );
    assert!(fails(&[tensor(&data, &[1, 2]), Argument::Float(1.0)]).starts_with("argument 1: "));
    let missing = Program::compile(b"module {}", "forward", Options::default()).err().unwrap();
    assert_eq!(missing.to_string(), "the module defines no function @forward");
    let odd = "func.func @forward(%a: tensor<2xi4>) { return }";
    assert!(run(odd, &[]).unwrap_err().to_string().contains("tensor<2xi4>"));
}

/// Loop nests that look alike but differ in a constant, in a function they call or in what they read stay different.
#[test]
fn alike_loop_nests_are_told_apart() {
    let source = "func.func @forward(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>, tensor<4xf32>) {
        %two = arith.constant dense<2.0> : tensor<4xf32>
        %three = arith.constant dense<3.0> : tensor<4xf32>
        %x = arith.mulf %a, %two : tensor<4xf32>
        %y = arith.mulf %a, %three : tensor<4xf32>
        %p = arith.truncf %a : tensor<4xf32> to tensor<4xf8E4M3FN>
        %q = arith.truncf %a : tensor<4xf32> to tensor<4xf8E5M2>
        %d = arith.mulf %x, %b : tensor<4xf32>
        %e = arith.mulf %b, %d : tensor<4xf32>
        return %x, %y, %p, %q, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf8E4M3FN>, tensor<4xf8E5M2>, tensor<4xf32>
    }";
    let (a, b) = (bytes!(f32: 1.0, -2.0, 0.0, 448.0), bytes!(f32: 1.0, 0.5, 2.0, 0.25));
    let outputs = run(source, &[tensor(&a, &[4]), tensor(&b, &[4])]).unwrap().outputs;
    assert_eq!(numbers!(f32, outputs[0]), [2.0, -4.0, 0.0, 896.0]);
    assert_eq!(numbers!(f32, outputs[1]), [3.0, -6.0, 0.0, 1344.0]);
    assert_eq!(outputs[2].data, [0x38, 0xC0, 0x00, 0x7E]);
    assert_eq!(outputs[3].data, [0x3C, 0xC0, 0x00, 0x5F]);
    assert_eq!(numbers!(f32, outputs[4]), [2.0, -1.0, 0.0, 56.0]);
}

/// An update in place through a view: the nest reads and writes one allocation, so nothing may be marked as unaliased.
#[test]
fn nests_that_update_a_view_in_place_are_right() {
    let source = "func.func @forward(%a: tensor<6xf32>) -> tensor<6xf32> {
        %twice = arith.addf %a, %a : tensor<6xf32>
        %part = tensor.extract_slice %twice[0] [5] [1] : tensor<6xf32> to tensor<5xf32>
        %moved = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}
            ins(%part : tensor<5xf32>) outs(%part : tensor<5xf32>) {
          ^bb0(%x: f32, %o: f32):
            %s = arith.addf %x, %o : f32
            linalg.yield %s : f32
        } -> tensor<5xf32>
        %r = tensor.insert_slice %moved into %twice[1] [5] [1] : tensor<5xf32> into tensor<6xf32>
        return %r : tensor<6xf32>
    }";
    let a = bytes!(f32: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    let output = only(run(source, &[tensor(&a, &[6])]));
    assert_eq!(numbers!(f32, output), [2.0, 4.0, 8.0, 12.0, 16.0, 20.0]);
}

#[test]
fn divisions_that_the_processor_refuses_are_errors() {
    let source = "func.func @forward(%a: tensor<2xi64>, %b: tensor<2xi64>) -> tensor<2xi64> {
        %r = arith.divsi %a, %b : tensor<2xi64>
        return %r : tensor<2xi64>
    }";
    let program = Program::compile(source.as_bytes(), "forward", Options::default()).unwrap();
    let divide = |a: &[u8], b: &[u8]| program.run(&[tensor(a, &[2]), tensor(b, &[2])]);
    for (a, b) in [(7, 0), (i64::MIN, -1)] {
        let error = divide(&bytes!(i64: 6, a), &bytes!(i64: 3, b)).unwrap_err().to_string();
        assert_eq!(error, "integer division by zero, or of the lowest integer by -1");
    }
    assert_eq!(numbers!(i64, only(divide(&bytes!(i64: 6, -7), &bytes!(i64: 3, 2)))), [2, -3]);
}

/// An index check in the body of a gather, as lowerings write it.
#[test]
fn assertions_inside_loops_end_the_call() {
    let source = "func.func @forward(%table: tensor<3x2xf32>, %at: tensor<4xi64>) -> tensor<4x2xf32> {
        %e = tensor.empty() : tensor<4x2xf32>
        %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}
            ins(%at : tensor<4xi64>) outs(%e : tensor<4x2xf32>) {
          ^bb0(%i: i64, %o: f32):
            %three = arith.constant 3 : i64
            %ok = arith.cmpi ult, %i, %three : i64
            cf.assert %ok, \"index out of range\"
            %row = arith.index_cast %i : i64 to index
            %column = linalg.index 1 : index
            %x = tensor.extract %table[%row, %column] : tensor<3x2xf32>
            linalg.yield %x : f32
        } -> tensor<4x2xf32>
        return %r : tensor<4x2xf32>
    }";
    let table = bytes!(f32: 0.0, 1.0, 10.0, 11.0, 20.0, 21.0);
    let program = Program::compile(source.as_bytes(), "forward", Options::default()).unwrap();
    let gather = |at: &[u8]| program.run(&[tensor(&table, &[3, 2]), tensor(at, &[4])]);
    let rows = only(gather(&bytes!(i64: 2, 0, 1, 2)));
    assert_eq!(numbers!(f32, rows), [20.0, 21.0, 0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
    assert_eq!(gather(&bytes!(i64: 2, 3, 1, 2)).unwrap_err().to_string(), "index out of range");
    assert_eq!(gather(&bytes!(i64: 2, -1, 1, 2)).unwrap_err().to_string(), "index out of range");
}

#[test]
fn complex_numbers_cross_and_multiply() {
    let source = "func.func @forward(%a: tensor<2xcomplex<f32>>, %b: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
        %e = tensor.empty() : tensor<2xcomplex<f32>>
        %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}
            ins(%a, %b : tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) outs(%e : tensor<2xcomplex<f32>>) {
          ^bb0(%x: complex<f32>, %y: complex<f32>, %o: complex<f32>):
            %p = complex.mul %x, %y : complex<f32>
            linalg.yield %p : complex<f32>
        } -> tensor<2xcomplex<f32>>
        return %r : tensor<2xcomplex<f32>>
    }";
    let (a, b) = (bytes!(f32: 1.0, 2.0, 0.0, 1.0), bytes!(f32: 3.0, -1.0, 0.0, 1.0));
    let output = only(run(source, &[tensor(&a, &[2]), tensor(&b, &[2])]));
    assert_eq!(numbers!(f32, output), [5.0, 5.0, -1.0, 0.0]);
    assert_eq!(output.element, "complex<f32>");
}
