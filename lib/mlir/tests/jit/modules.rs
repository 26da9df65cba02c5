//! Control flow, whole modules, and what is refused.

use super::*;

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
