//! Programs of one operator, emitted, verified, compiled and run.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use m2m_aten::Prepared;
use m2m_graph::{Graph, Places};
use m2m_lower::linalg::{Failure, Options, emit};
use m2m_mlir::jit::{Argument, Outcome, Output, Program};
use m2m_record::{
    Arg, DType, Dim, Float, Input, InputRole, Node, OutputItem, OutputRole, Symbol, TensorType, Type, TypedValue,
};

/// A tensor given to a program: how it is declared, and what it is.
pub struct Tensor {
    dtype: DType,
    shape: Vec<Dim>,
    dims: Vec<i64>,
    bytes: Vec<u8>,
}

/// Little-endian elements of a type.
pub trait Element: Copy {
    /// Its dtype.
    const DTYPE: DType;
    /// Its bytes.
    fn bytes(self) -> Vec<u8>;
    /// From its bytes.
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($($kind:ty: $dtype:ident),*) => { $(
        impl Element for $kind {
            const DTYPE: DType = DType::$dtype;
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )* };
}

element! { f32: F32, f64: F64, i64: I64, i32: I32, i8: I8, u8: U8 }

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    fn bytes(self) -> Vec<u8> {
        vec![u8::from(self)]
    }
    fn of(bytes: &[u8]) -> Self {
        bytes == [1]
    }
}

/// A tensor of a static shape.
pub fn tensor<T: Element>(dims: &[i64], elements: &[T]) -> Tensor {
    let shape = dims.iter().map(|d| Dim::Int(*d)).collect();
    Tensor { dtype: T::DTYPE, shape, dims: dims.to_vec(), bytes: elements.iter().flat_map(|x| x.bytes()).collect() }
}

impl Tensor {
    /// It as an argument of a call.
    pub fn argument(&self) -> Argument<'_> {
        Argument::Tensor { data: &self.bytes, dims: &self.dims }
    }

    /// The same, declared with expressions for its dimensions.
    pub fn declared(self, shape: &[&str]) -> Self {
        Tensor { shape: dims(shape), ..self }
    }
}

/// Dimensions by their text.
pub fn dims(shape: &[&str]) -> Vec<Dim> {
    shape.iter().map(|d| d.parse().map_or_else(|_| Dim::Expr((*d).to_owned()), Dim::Int)).collect()
}

/// The type of a result.
pub fn result(dtype: DType, shape: &[&str]) -> Type {
    TensorType::new(dtype, dims(shape)).into()
}

/// The `k`-th tensor as an argument.
pub fn x(k: usize) -> Arg {
    Arg::value(format!("x{k}"))
}

/// A float as an argument.
pub fn float(value: f64) -> Arg {
    Arg::Float(Float(value))
}

/// A program of one operator.
pub fn graph(op: &str, args: Vec<Arg>, inputs: &[Tensor], results: &[Type]) -> Graph {
    let name = |k: usize| format!("y{k}");
    let mut graph = Graph { id: "prepared".into(), stage: "prepared".into(), ..Graph::default() };
    for (k, input) in inputs.iter().enumerate() {
        for dim in &input.shape {
            if let Dim::Expr(symbol) = dim
                && graph.symbols.iter().all(|s| s.name != *symbol)
            {
                let (graph_id, name) = (graph.id.clone(), symbol.clone());
                graph.symbols.push(Symbol { graph: graph_id, name, min: None, max: None, hint: None });
            }
        }
        graph.inputs.push(Input {
            graph: graph.id.clone(),
            value: format!("x{k}"),
            role: InputRole::UserInput,
            target: None,
            ty: TensorType::new(input.dtype, input.shape.clone()).into(),
            data: None,
            literal: None,
            persistent: None,
            origins: Vec::new(),
        });
    }
    let values = results.iter().enumerate().map(|(k, ty)| TypedValue { value: Some(name(k)), ty: ty.clone() });
    graph.nodes.push(Node {
        graph: graph.id.clone(),
        stage: graph.stage.clone(),
        node: "prepared:0".into(),
        op: op.into(),
        args,
        results: values.collect(),
        ..Node::default()
    });
    let output = |k| OutputItem { value: Some(name(k)), literal: None, role: OutputRole::UserOutput, target: None };
    graph.outputs = (0..results.len()).map(output).collect();
    graph
}

/// The generic text of a program's module, verified.
fn module(op: &str, args: Vec<Arg>, inputs: &[Tensor], results: &[Type]) -> Result<Vec<u8>, Failure> {
    print(&graph(op, args, inputs, results), m2m_mlir::Form::Generic)
}

/// The text of a graph's module, verified.
pub fn print(graph: &Graph, form: m2m_mlir::Form) -> Result<Vec<u8>, Failure> {
    let context = m2m_mlir::context();
    let prepared = Prepared { graph: graph.clone(), ..Prepared::default() };
    let emitted = emit(&context, &prepared, &Places::default(), Options::default())?;
    m2m_mlir::verify(&context, &emitted.module).unwrap_or_else(|e| panic!("{}: {e}", graph.nodes[0].op));
    Ok(m2m_mlir::print(&emitted.module, form, m2m_mlir::Locations::Omit).unwrap())
}

/// Runs an operator; all its results.
pub fn run(op: &str, args: Vec<Arg>, inputs: &[Tensor], results: &[Type]) -> Vec<Output> {
    outcome(op, args, inputs, results).unwrap_or_else(|e| panic!("{op}: {e}")).outputs
}

/// Runs an operator, which may fail.
pub fn outcome(op: &str, args: Vec<Arg>, inputs: &[Tensor], results: &[Type]) -> Result<Outcome, m2m_mlir::Error> {
    let module = module(op, args, inputs, results).unwrap_or_else(|e| panic!("{op}: {e:?}"));
    let arguments: Vec<_> = inputs.iter().map(Tensor::argument).collect();
    Program::compile(&module, "forward", m2m_mlir::jit::Options::default())?.run(&arguments)
}

/// Why an operator is refused.
pub fn refusal(op: &str, args: Vec<Arg>, inputs: &[Tensor], results: &[Type]) -> String {
    match module(op, args, inputs, results) {
        Err(Failure::Refused(refusals)) => refusals[0].reason.clone(),
        Err(failure) => panic!("{op}: {failure:?}"),
        Ok(_) => panic!("{op} is lowered"),
    }
}

/// A result's elements.
pub fn elements<T: Element>(output: &Output) -> Vec<T> {
    output.data.chunks_exact(size_of::<T>()).map(T::of).collect()
}

/// Whether floats are equal but for rounding; NaN equals NaN.
#[track_caller]
pub fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{found:?}, expected {expected:?}");
    for (x, y) in found.iter().zip(expected) {
        let is_close = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-6 + 1e-5 * y.abs();
        assert!(is_close, "{found:?}, expected {expected:?}");
    }
}

/// The text of a graph's module as people write it.
pub fn pretty(graph: &Graph) -> String {
    String::from_utf8(print(graph, m2m_mlir::Form::Pretty).unwrap()).unwrap()
}
