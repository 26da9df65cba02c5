//! Convolutions over random windows, compiled, against plain loops: strides and dilations, sizes on both sides of a
//! vector, bodies that widen and shift, shapes known late.
//!
//! Values are small integers, so every order of summation is exact and the results must be equal.
#![allow(clippy::unwrap_used)]

use m2m_mlir::jit::{Argument, Options, Program};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Body {
    /// f32 products, summed in f32.
    F32,
    /// f64 products, summed in f64.
    F64,
    /// Products of i8, each less a zero point of its own, summed in i32.
    I8,
    /// bf16 products, summed in f32.
    Bf16,
    /// The largest f32 of the window, whatever the filter holds.
    Largest,
}

/// `out[f, y, x] = sum(in[c, y * stride + ky * dilation, x * stride + kx * dilation] * filter[f, c, ky, kx])`
#[derive(Debug, Clone)]
struct Case {
    channels: i64,
    filters: i64,
    out: [i64; 2],
    window: [i64; 2],
    stride: i64,
    dilation: i64,
    body: Body,
    is_dynamic: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let body = prop_oneof![Just(Body::F32), Just(Body::F64), Just(Body::I8), Just(Body::Bf16), Just(Body::Largest)];
    let width = prop_oneof![1..10_i64, 14..40_i64, 60..70_i64];
    let (filters, window) = (prop_oneof![1..4_i64, 7..18_i64], (1..4_i64, 1..4_i64));
    (1..4_i64, filters, (1..4_i64, width), window, 1..4_i64, 1..3_i64, body, any::<bool>()).prop_map(
        |(channels, filters, out, window, stride, dilation, body, is_dynamic)| Case {
            channels,
            filters,
            out: out.into(),
            window: window.into(),
            stride,
            dilation,
            body,
            is_dynamic,
        },
    )
}

impl Case {
    fn input_dims(&self) -> Vec<i64> {
        let reach = |at: usize| (self.out[at] - 1) * self.stride + (self.window[at] - 1) * self.dilation + 1;
        vec![self.channels, reach(0), reach(1)]
    }

    fn filter_dims(&self) -> Vec<i64> {
        vec![self.filters, self.channels, self.window[0], self.window[1]]
    }

    fn out_dims(&self) -> Vec<i64> {
        vec![self.filters, self.out[0], self.out[1]]
    }

    /// Element types of operands and of the output, its first value, and the body from %x, %w and %o to %s.
    fn types(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self.body {
            Body::F32 => ("f32", "f32", "0.0", "%p = arith.mulf %x, %w : f32 %s = arith.addf %p, %o : f32"),
            Body::F64 => ("f64", "f64", "0.0", "%p = arith.mulf %x, %w : f64 %s = arith.addf %o, %p : f64"),
            Body::I8 => (
                "i8",
                "i32",
                "0",
                "%a = arith.extsi %x : i8 to i32 %b = arith.extsi %w : i8 to i32 %i = arith.subi %a, %two : i32 \
                 %j = arith.addi %b, %two : i32 %p = arith.muli %i, %j : i32 %s = arith.addi %o, %p : i32",
            ),
            Body::Bf16 => (
                "bf16",
                "f32",
                "0.0",
                "%a = arith.extf %x : bf16 to f32 %b = arith.extf %w : bf16 to f32 %p = arith.mulf %a, %b : f32 \
                 %s = arith.addf %o, %p : f32",
            ),
            Body::Largest => ("f32", "f32", "-9.0", "%s = arith.maximumf %o, %x : f32"),
        }
    }

    fn source(&self) -> String {
        let (element, sum, start, body) = self.types();
        let tensor = |dims: &[i64], element: &str| {
            let dim = |size: &i64| if self.is_dynamic { "?x".to_owned() } else { format!("{size}x") };
            format!("tensor<{}{element}>", dims.iter().map(dim).collect::<String>())
        };
        let input = tensor(&self.input_dims(), element);
        let filter = tensor(&self.filter_dims(), element);
        let out = tensor(&self.out_dims(), sum);
        let sizes = if self.is_dynamic { "%s0, %s1, %s2" } else { "" };
        let (stride, dilation) = (self.stride, self.dilation);
        let parts: Vec<&str> = body.split(" %").collect();
        let body = parts.join("\n        %");
        format!(
            "func.func @forward(%in: {input}, %filter: {filter}, %s0: index, %s1: index, %s2: index) -> {out} {{
              %z = arith.constant {start} : {sum}
              %two = arith.constant 2 : i32
              %e = tensor.empty({sizes}) : {out}
              %f = linalg.fill ins(%z : {sum}) outs(%e : {out}) -> {out}
              %r = linalg.generic {{indexing_maps = [
                  affine_map<(f, y, x, c, ky, kx) -> (c, y * {stride} + ky * {dilation}, x * {stride} + kx * {dilation})>,
                  affine_map<(f, y, x, c, ky, kx) -> (f, c, ky, kx)>, affine_map<(f, y, x, c, ky, kx) -> (f, y, x)>],
                  iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\", \"reduction\"]}}
                  ins(%in, %filter : {input}, {filter}) outs(%f : {out}) {{
                ^bb0(%x: {element}, %w: {element}, %o: {sum}):
                  {body}
                  linalg.yield %s : {sum}
              }} -> {out}
              return %r : {out}
            }}"
        )
    }

    fn reference(&self, input: &[i64], filter: &[i64]) -> Vec<i64> {
        let dims = self.input_dims();
        let mut out = Vec::new();
        for (f, y, x) in points(self.out_dims()) {
            let mut sum = if matches!(self.body, Body::Largest) { -9 } else { 0 };
            for (c, ky, kx) in points(vec![self.channels, self.window[0], self.window[1]]) {
                let (row, column) = (y * self.stride + ky * self.dilation, x * self.stride + kx * self.dilation);
                let a = input[((c * dims[1] + row) * dims[2] + column) as usize];
                let b = filter[(((f * self.channels + c) * self.window[0] + ky) * self.window[1] + kx) as usize];
                sum = match self.body {
                    Body::Largest => sum.max(a),
                    Body::I8 => sum + (a - 2) * (b + 2),
                    _ => sum + a * b,
                };
            }
            out.push(sum);
        }
        out
    }
}

fn points(dims: Vec<i64>) -> impl Iterator<Item = (i64, i64, i64)> {
    let [a, b, c] = dims.try_into().unwrap();
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

fn encode(element: &str, values: &[i64]) -> Vec<u8> {
    let bytes = |&value: &i64| match element {
        "f32" => (value as f32).to_le_bytes().to_vec(),
        "f64" => (value as f64).to_le_bytes().to_vec(),
        "i8" => (value as i8).to_le_bytes().to_vec(),
        "i32" => (value as i32).to_le_bytes().to_vec(),
        // Integers this small have no bits where bf16 ends.
        "bf16" => (value as f32).to_le_bytes()[2..].to_vec(),
        other => panic!("no numbers of {other}"),
    };
    values.iter().flat_map(bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_window_gives_the_sum(case in case(), seed in 0..97_usize) {
        let numbers = |dims: Vec<i64>, step: usize| -> Vec<i64> {
            (0..dims.iter().product::<i64>() as usize).map(|at| ((at * step + seed) % 7) as i64 - 3).collect()
        };
        let (input, filter) = (numbers(case.input_dims(), 3), numbers(case.filter_dims(), 5));
        let (element, sum, ..) = case.types();
        let (input_data, filter_data) = (encode(element, &input), encode(element, &filter));
        let program = Program::compile(case.source().as_bytes(), "forward", Options::default()).unwrap();
        let arguments = [
            Argument::Tensor { data: &input_data, dims: &case.input_dims() },
            Argument::Tensor { data: &filter_data, dims: &case.filter_dims() },
            Argument::Int(case.filters),
            Argument::Int(case.out[0]),
            Argument::Int(case.out[1]),
        ];
        let output = program.run(&arguments).unwrap().outputs.remove(0);
        prop_assert_eq!(&output.dims, &case.out_dims());
        prop_assert_eq!(output.data, encode(sum, &case.reference(&input, &filter)));
    }
}
