//! Tensors as wholes: products, convolutions, shapes known late, aliases, memory, failing assertions.

use super::*;

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
