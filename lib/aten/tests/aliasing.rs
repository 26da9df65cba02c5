//! Random programs of views and writes compute the same with memory and as values.
//!
//! The old graph runs on strided memory, as PyTorch runs it; the prepared one on immutable arrays. Every value still
//! alive and every input at the end must agree, exactly.

mod support;

use m2m_record::{Arg, Node, OutputRole};
use proptest::prelude::*;
use std::collections::HashMap;
use support::{Build, v};

/// A view of a memory.
#[derive(Clone, Debug)]
struct Strided {
    memory: usize,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

/// An immutable array.
#[derive(Clone, Debug, PartialEq)]
struct Dense {
    shape: Vec<usize>,
    data: Vec<i64>,
}

fn places(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut out = vec![vec![]];
    for size in shape {
        out = out.into_iter().flat_map(|p| (0..*size).map(move |k| [p.as_slice(), &[k]].concat())).collect();
    }
    out
}

impl Strided {
    fn contiguous(memory: usize, shape: &[usize]) -> Self {
        let mut strides = vec![1; shape.len()];
        for k in (1..shape.len()).rev() {
            strides[k - 1] = strides[k] * shape[k];
        }
        Strided { memory, offset: 0, shape: shape.to_vec(), strides }
    }

    fn addresses(&self) -> Vec<usize> {
        let at = |p: &Vec<usize>| self.offset + p.iter().zip(&self.strides).map(|(k, s)| k * s).sum::<usize>();
        places(&self.shape).iter().map(at).collect()
    }
}

/// What one step of a random program does.
#[derive(Clone, Debug)]
enum Op {
    Clone,
    Transpose,
    Select(usize, usize),
    Slice(usize, usize, usize, usize),
    Unsqueeze,
    Flatten,
    AddInPlace(i64),
    NegInPlace,
    Copy(usize),
    Add(i64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        Just(Op::Clone),
        Just(Op::Transpose),
        (0..3usize, 0..4usize).prop_map(|(d, k)| Op::Select(d, k)),
        (0..3usize, 0..3usize, 1..4usize, 1..3usize).prop_map(|(d, a, n, s)| Op::Slice(d, a, n, s)),
        Just(Op::Unsqueeze),
        Just(Op::Flatten),
        (1..9i64).prop_map(Op::AddInPlace),
        Just(Op::NegInPlace),
        (0..8usize).prop_map(Op::Copy),
        (1..9i64).prop_map(Op::Add),
    ]
}

/// The program as a graph, and run on memory.
struct Run {
    build: Build,
    memories: Vec<Vec<i64>>,
    values: Vec<(String, Strided)>,
}

fn text(shape: &[usize]) -> String {
    format!("i64[{}]", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
}

impl Run {
    fn new() -> Self {
        let build = Build::new(&[("x", "i64[3,4]"), ("y", "i64[4]")]);
        let memories = vec![(0..12).collect(), (100..104).collect()];
        let values =
            vec![("x".to_owned(), Strided::contiguous(0, &[3, 4])), ("y".to_owned(), Strided::contiguous(1, &[4]))];
        Run { build, memories, values }
    }

    fn read(&self, s: &Strided) -> Vec<i64> {
        s.addresses().into_iter().map(|a| self.memories[s.memory][a]).collect()
    }

    fn push(&mut self, op: &str, args: Vec<Arg>, value: Strided) {
        let name = format!("v{}", self.values.len());
        let at = self.build.0.root.nodes.len();
        self.build.call(op, args, &name, &text(&value.shape));
        let strides = value.strides.iter().map(|s| m2m_record::Dim::Int(*s as i64)).collect();
        if let m2m_record::Type::Tensor(t) = &mut self.build.0.root.nodes[at].results[0].ty {
            let plain = Strided::contiguous(0, &value.shape).strides;
            t.strides = (plain != value.strides).then_some(strides);
        }
        self.values.push((name, value));
    }

    fn fresh(&mut self, op: &str, args: Vec<Arg>, shape: &[usize], data: Vec<i64>) {
        self.memories.push(data);
        let value = Strided::contiguous(self.memories.len() - 1, shape);
        self.push(op, args, value);
    }

    fn write(&mut self, op: &str, args: Vec<Arg>, s: Strided, data: Vec<i64>) {
        for (address, x) in s.addresses().into_iter().zip(data) {
            self.memories[s.memory][address] = x;
        }
        self.push(op, args, s);
    }

    /// Applies a step to the value at `at`, or nothing where its shape does not allow it.
    fn step(&mut self, at: usize, op: &Op) {
        let (name, s) = self.values[at % self.values.len()].clone();
        let (data, rank) = (self.read(&s), s.shape.len());
        let int = |n: usize| Arg::Int(n as i64);
        match op {
            Op::Clone => self.fresh("aten.clone.default", vec![v(&name)], &s.shape, data),
            Op::Add(n) => {
                let data = data.iter().map(|x| x + n).collect();
                self.fresh("aten.add.Tensor", vec![v(&name), Arg::Int(*n)], &s.shape, data);
            }
            Op::Transpose if rank >= 2 => {
                let mut t = s;
                t.shape.swap(0, rank - 1);
                t.strides.swap(0, rank - 1);
                self.push("aten.transpose.int", vec![v(&name), int(0), int(rank - 1)], t);
            }
            Op::Select(d, k) if rank >= 1 => {
                let (d, mut t) = (d % rank, s);
                let k = k % t.shape[d];
                t.offset += k * t.strides.remove(d);
                t.shape.remove(d);
                self.push("aten.select.int", vec![v(&name), int(d), int(k)], t);
            }
            Op::Slice(d, start, count, step) if rank >= 1 => {
                let (d, mut t) = (d % rank, s);
                let start = start % t.shape[d];
                let end = (start + count * step).min(t.shape[d]);
                t.offset += start * t.strides[d];
                t.shape[d] = (end - start).div_ceil(*step);
                t.strides[d] *= step;
                self.push("aten.slice.Tensor", vec![v(&name), int(d), int(start), int(end), int(*step)], t);
            }
            Op::Unsqueeze if rank < 3 => {
                let mut t = s;
                t.strides.insert(0, t.shape.first().map_or(1, |n| n * t.strides[0]));
                t.shape.insert(0, 1);
                self.push("aten.unsqueeze.default", vec![v(&name), int(0)], t);
            }
            Op::Flatten => {
                // PyTorch shares memory where strides allow, and copies otherwise; only the plain cases are taken.
                let count = data.len();
                let args = vec![v(&name), Arg::ints([-1])];
                if s.strides == Strided::contiguous(0, &s.shape).strides {
                    let t = Strided { shape: vec![count], strides: vec![1], ..s };
                    self.push("aten.reshape.default", args, t);
                }
            }
            Op::AddInPlace(n) => {
                let data = data.iter().map(|x| x + n).collect();
                self.write("aten.add_.Tensor", vec![v(&name), Arg::Int(*n)], s, data);
            }
            Op::NegInPlace => {
                let data = data.iter().map(|x| -x).collect();
                self.write("aten.neg_.default", vec![v(&name)], s, data);
            }
            Op::Copy(from) => {
                let (other, t) = self.values[from % self.values.len()].clone();
                if t.shape == s.shape && t.memory != s.memory {
                    let data = self.read(&t);
                    self.write("aten.copy_.default", vec![v(&name), v(&other)], s, data);
                }
            }
            _ => {}
        }
    }
}

/// Runs a prepared graph on arrays.
fn evaluate(nodes: &[Node], inputs: Vec<(&str, Dense)>) -> HashMap<String, Dense> {
    let mut env: HashMap<String, Dense> = inputs.into_iter().map(|(k, d)| (k.to_owned(), d)).collect();
    for node in nodes {
        let get = |k: usize| match &node.args[k] {
            Arg::Value(name) => env[name].clone(),
            other => panic!("{other:?}"),
        };
        let int = |k: usize| match &node.args[k] {
            Arg::Int(n) => usize::try_from(*n).expect("no negative sizes"),
            other => panic!("{other:?}"),
        };
        let ints = |k: usize| match &node.args[k] {
            Arg::List(items) => {
                items.iter().map(|a| if let Arg::Int(n) = a { *n as usize } else { panic!() }).collect()
            }
            other => panic!("{other:?}"),
        };
        let out = match node.op.as_str() {
            "aten.neg.default" => map(get(0), |x| -x),
            "aten.add.Tensor" => match &node.args[1] {
                Arg::Int(n) => map(get(0), |x| x + n),
                _ => Dense { data: get(0).data.iter().zip(&get(1).data).map(|(a, b)| a + b).collect(), ..get(0) },
            },
            "aten.add.Scalar" => map(get(0), |x| x + int(1) as i64),
            "aten.mul.Scalar" => map(get(0), |x| x * int(1) as i64),
            "aten.view.default" => Dense { shape: ints(1), ..get(0) },
            "aten.permute.default" => permute(&get(0), &ints(1)),
            "aten.slice.Tensor" => slice(&get(0), int(1), int(2), int(3), int(4)),
            "aten.select.int" => {
                let mut out = slice(&get(0), int(1), int(2), int(2) + 1, 1);
                out.shape.remove(int(1));
                out
            }
            "aten.cat.default" => {
                let Arg::List(items) = &node.args[0] else { panic!() };
                let parts = items.iter().map(|a| if let Arg::Value(n) = a { env[n].clone() } else { panic!() });
                cat(&parts.collect::<Vec<_>>(), int(1))
            }
            "aten.arange.start_step" => Dense { shape: vec![int(1)], data: (0..int(1) as i64).collect() },
            "aten.expand.default" => expand(&get(0), &ints(1)),
            "aten.slice_scatter.default" => {
                let (mut out, src, dim, step) = (get(0), get(1), int(2), int(5));
                let strides = Strided::contiguous(0, &out.shape).strides;
                assert_eq!((int(4) - int(3)).div_ceil(step), src.shape[dim], "the slice has the size of its source");
                for p in places(&src.shape) {
                    let mut place = p.clone();
                    place[dim] = int(3) + p[dim] * step;
                    out.data[strides.iter().zip(&place).map(|(s, k)| s * k).sum::<usize>()] = at(&src, &p);
                }
                out
            }
            "aten.scatter.src" => scatter(&get(0), int(1), &get(2), &get(3)),
            other => panic!("{other}"),
        };
        env.insert(node.results[0].value.clone().expect("a named result"), out);
    }
    env
}

fn map(d: Dense, f: impl Fn(i64) -> i64) -> Dense {
    Dense { data: d.data.into_iter().map(f).collect(), ..d }
}

fn at(d: &Dense, place: &[usize]) -> i64 {
    d.data[Strided::contiguous(0, &d.shape).strides.iter().zip(place).map(|(s, k)| s * k).sum::<usize>()]
}

fn make(shape: Vec<usize>, f: impl Fn(&[usize]) -> i64) -> Dense {
    Dense { data: places(&shape).iter().map(|p| f(p)).collect(), shape }
}

fn permute(d: &Dense, dims: &[usize]) -> Dense {
    make(dims.iter().map(|k| d.shape[*k]).collect(), |p| {
        let mut place = vec![0; p.len()];
        dims.iter().zip(p).for_each(|(k, at)| place[*k] = *at);
        at(d, &place)
    })
}

fn slice(d: &Dense, dim: usize, start: usize, end: usize, step: usize) -> Dense {
    let mut shape = d.shape.clone();
    shape[dim] = (end - start).div_ceil(step);
    make(shape, |p| {
        let mut place = p.to_vec();
        place[dim] = start + place[dim] * step;
        at(d, &place)
    })
}

fn expand(d: &Dense, shape: &[usize]) -> Dense {
    let lead = shape.len() - d.shape.len();
    make(shape.to_vec(), |p| {
        let place: Vec<usize> = p[lead..].iter().zip(&d.shape).map(|(k, n)| if *n == 1 { 0 } else { *k }).collect();
        at(d, &place)
    })
}

fn cat(parts: &[Dense], dim: usize) -> Dense {
    let mut shape = parts[0].shape.clone();
    shape[dim] = parts.iter().map(|d| d.shape[dim]).sum();
    make(shape, |p| {
        let mut place = p.to_vec();
        for part in parts {
            if place[dim] < part.shape[dim] {
                return at(part, &place);
            }
            place[dim] -= part.shape[dim];
        }
        unreachable!("inside the sum of sizes")
    })
}

fn scatter(d: &Dense, dim: usize, index: &Dense, src: &Dense) -> Dense {
    let mut out = d.clone();
    let strides = Strided::contiguous(0, &d.shape).strides;
    for p in places(&index.shape) {
        let mut place = p.clone();
        place[dim] = at(index, &p) as usize;
        out.data[strides.iter().zip(&place).map(|(s, k)| s * k).sum::<usize>()] = at(src, &p);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_values_agree(has_scatter in any::<bool>(), steps in prop::collection::vec((0..20usize, op()), 1..14)) {
        let mut run = Run::new();
        for (at, op) in &steps {
            run.step(*at, op);
        }
        let names: Vec<String> = run.values.iter().map(|(n, _)| n.clone()).collect();
        run.build.outputs(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let more: &[&str] = if has_scatter { &["aten.slice_scatter.default"] } else { &[] };
        let prepared = run.build.prepare_for(more).unwrap();
        let x = Dense { shape: vec![3, 4], data: (0..12).collect() };
        let y = Dense { shape: vec![4], data: (100..104).collect() };
        let env = evaluate(&prepared.graph.nodes, vec![("x", x), ("y", y)]);
        let mut outputs = prepared.graph.outputs.iter();
        for output in outputs.by_ref().take_while(|o| o.role != OutputRole::UserOutput) {
            let memory = usize::from(output.target.as_deref() == Some("y"));
            prop_assert_eq!(&env[output.value.as_deref().unwrap()].data, &run.memories[memory]);
        }
        let users = prepared.graph.outputs.iter().filter(|o| o.role == OutputRole::UserOutput);
        for (output, (name, value)) in users.zip(&run.values) {
            let found = &env[output.value.as_deref().unwrap()];
            prop_assert_eq!(&found.shape, &value.shape, "{}", name);
            prop_assert_eq!(&found.data, &run.read(value), "{}", name);
        }
        let mutated = |name: &str| prepared.graph.outputs.iter().any(|o| o.target.as_deref() == Some(name));
        prop_assert!(mutated("x") || run.memories[0] == (0..12).collect::<Vec<_>>());
        prop_assert!(mutated("y") || run.memories[1] == (100..104).collect::<Vec<_>>());
    }
}
