//! Products and sums over random shapes and axis orders, compiled, against three plain loops.
//!
//! Values are small integers, so every order of summation is exact and the results must be equal.
#![allow(clippy::unwrap_used)]

use m2m_mlir::jit::{Argument, Options, Program};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

#[derive(Debug, Clone, Copy)]
enum Element {
    F32,
    I32,
    I8,
}

/// `out[…] += a[…] * b[…]` over three loops; operands list the loops that index their axes.
#[derive(Debug, Clone)]
struct Case {
    sizes: [i64; 3],
    a: Vec<usize>,
    b: Vec<usize>,
    out: Vec<usize>,
    element: Element,
    is_dynamic: bool,
}

fn axes() -> impl Strategy<Value = Vec<usize>> {
    subsequence(vec![0, 1, 2], 0..=3).prop_shuffle()
}

fn case() -> impl Strategy<Value = Case> {
    // Sizes on both sides of what counts as a short loop, and none at all.
    let size = prop_oneof![Just(0_i64), 1..5_i64, 8..24_i64];
    let all = Just(vec![0, 1, 2]).prop_shuffle();
    let element = prop_oneof![Just(Element::F32), Just(Element::I32), Just(Element::I8)];
    ([size.clone(), size.clone(), size], all, axes(), axes(), element, any::<bool>())
        .prop_map(|(sizes, a, b, out, element, is_dynamic)| Case { sizes, a, b, out, element, is_dynamic })
}

impl Case {
    fn dims(&self, axes: &[usize]) -> Vec<i64> {
        axes.iter().map(|&axis| self.sizes[axis]).collect()
    }

    fn count(&self, axes: &[usize]) -> usize {
        self.dims(axes).iter().product::<i64>() as usize
    }

    fn at(&self, axes: &[usize], point: [i64; 3]) -> usize {
        axes.iter().fold(0, |at, &axis| at * self.sizes[axis] + point[axis]) as usize
    }

    fn element(&self) -> &'static str {
        match self.element {
            Element::F32 => "f32",
            Element::I32 => "i32",
            Element::I8 => "i8",
        }
    }

    fn tensor(&self, axes: &[usize]) -> String {
        let dim = |size: i64| if self.is_dynamic { "?x".to_owned() } else { format!("{size}x") };
        let dims: String = self.dims(axes).into_iter().map(dim).collect();
        format!("tensor<{dims}{}>", self.element())
    }

    fn source(&self) -> String {
        let map = |axes: &[usize]| {
            let results: Vec<String> = axes.iter().map(|axis| format!("d{axis}")).collect();
            format!("affine_map<(d0, d1, d2) -> ({})>", results.join(", "))
        };
        let kind = |axis| if self.out.contains(&axis) { "\"parallel\"" } else { "\"reduction\"" };
        let (multiply, add, zero) = if matches!(self.element, Element::F32) {
            ("arith.mulf", "arith.addf", "0.0")
        } else {
            ("arith.muli", "arith.addi", "0")
        };
        let (element, a, b, out) = (self.element(), self.tensor(&self.a), self.tensor(&self.b), self.tensor(&self.out));
        // The output's sizes are arguments, so that dynamic ones need no lookup.
        let sizes: Vec<&str> = self.out.iter().map(|&axis| ["%s0", "%s1", "%s2"][axis]).collect();
        let sizes = if self.is_dynamic { sizes.join(", ") } else { String::new() };
        format!(
            "func.func @forward(%a: {a}, %b: {b}, %s0: index, %s1: index, %s2: index) -> {out} {{
                %z = arith.constant {zero} : {element}
                %e = tensor.empty({sizes}) : {out}
                %f = linalg.fill ins(%z : {element}) outs(%e : {out}) -> {out}
                %r = linalg.generic {{indexing_maps = [{}, {}, {}], iterator_types = [{}, {}, {}]}}
                    ins(%a, %b : {a}, {b}) outs(%f : {out}) {{
                  ^bb0(%x: {element}, %y: {element}, %o: {element}):
                    %p = {multiply} %x, %y : {element}
                    %s = {add} %p, %o : {element}
                    linalg.yield %s : {element}
                }} -> {out}
                return %r : {out}
            }}",
            map(&self.a),
            map(&self.b),
            map(&self.out),
            kind(0),
            kind(1),
            kind(2)
        )
    }

    fn encode(&self, values: &[i64]) -> Vec<u8> {
        let bytes = |&value: &i64| match self.element {
            Element::F32 => (value as f32).to_le_bytes().to_vec(),
            Element::I32 => (value as i32).to_le_bytes().to_vec(),
            Element::I8 => (value as i8).to_le_bytes().to_vec(),
        };
        values.iter().flat_map(bytes).collect()
    }

    fn reference(&self, a: &[i64], b: &[i64]) -> Vec<i64> {
        let mut out = vec![0; self.count(&self.out)];
        for i in 0..self.sizes[0] {
            for j in 0..self.sizes[1] {
                for k in 0..self.sizes[2] {
                    let point = [i, j, k];
                    out[self.at(&self.out, point)] += a[self.at(&self.a, point)] * b[self.at(&self.b, point)];
                }
            }
        }
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_axes_gives_the_sum(case in case(), seed in any::<Index>()) {
        let number = |at: usize, step: usize| ((at * step + seed.index(97)) % 7) as i64 - 3;
        let a: Vec<i64> = (0..case.count(&case.a)).map(|at| number(at, 3)).collect();
        let b: Vec<i64> = (0..case.count(&case.b)).map(|at| number(at, 5)).collect();
        let program = Program::compile(case.source().as_bytes(), "forward", Options::default()).unwrap();
        let (a_data, b_data) = (case.encode(&a), case.encode(&b));
        let arguments = [
            Argument::Tensor { data: &a_data, dims: &case.dims(&case.a) },
            Argument::Tensor { data: &b_data, dims: &case.dims(&case.b) },
            Argument::Int(case.sizes[0]),
            Argument::Int(case.sizes[1]),
            Argument::Int(case.sizes[2]),
        ];
        let output = program.run(&arguments).unwrap().outputs.remove(0);
        prop_assert_eq!(&output.dims, &case.dims(&case.out));
        prop_assert_eq!(output.data, case.encode(&case.reference(&a, &b)));
    }
}
