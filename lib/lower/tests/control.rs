//! Called graphs that no export of PyTorch on a CPU contains, and those that several calls share.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use m2m_aten::Prepared;
use m2m_graph::{Graph, Places};
use m2m_lower::linalg::{Options, emit};
use m2m_mlir::jit::Program;
use m2m_mlir::{Form, Locations};
use m2m_record::{Arg, DType, Lowered, Node, Type, TypedValue};
use support::{Tensor, elements, graph, result, tensor, x};

/// A graph `prepared/NAME` of one operator.
fn called(name: &str, op: &str, args: Vec<Arg>, inputs: &[Tensor], results: &[Type]) -> Graph {
    let mut graph = graph(op, args, inputs, results);
    graph.id = format!("prepared/{name}");
    graph.parent = Some("prepared".into());
    graph
}

/// Adds a node to a graph, whose result becomes its output.
fn then(graph: &mut Graph, op: &str, args: Vec<Arg>, value: &str, ty: Type) {
    let results = vec![TypedValue { value: Some(value.into()), ty }];
    let node = format!("{}:{}", graph.id, graph.nodes.len());
    graph.nodes.push(Node { node, op: op.into(), args, results, ..graph.nodes[0].clone() });
    graph.outputs[0].value = Some(value.into());
}

/// The module's text and what became of each node.
fn lower(prepared: &Prepared) -> (String, Vec<Lowered>) {
    let context = m2m_mlir::context();
    let emitted = emit(&context, prepared, &Places::default(), Options::default()).unwrap();
    m2m_mlir::verify(&context, &emitted.module).unwrap();
    let text = m2m_mlir::print(&emitted.module, Form::Generic, Locations::Omit).unwrap();
    (String::from_utf8(text).unwrap(), emitted.lowered)
}

fn run(module: &str, inputs: &[Tensor]) -> Vec<f32> {
    let arguments: Vec<_> = inputs.iter().map(Tensor::argument).collect();
    let program = Program::compile(module.as_bytes(), "forward", m2m_mlir::jit::Options::default()).unwrap();
    elements(&program.run(&arguments).unwrap().outputs[0])
}

fn graph_arg(name: &str) -> Arg {
    Arg::Graph(format!("prepared/{name}"))
}

/// `y[i] = y[i-1] * 2 + x[i]`, which is no sum: the order of the operands counts.
#[test]
fn an_associative_scan_begins_with_the_first_row() {
    for rows in [3_i64, 1, 0] {
        let data: Vec<f32> = (0..rows * 2).map(|k| k as f32 + 1.0).collect();
        let whole = || tensor(&[rows, 2], &data);
        let row = || tensor::<f32>(&[2], &[0.0, 0.0]);
        let ty = || result(DType::F32, &["2"]);
        let mut combine = called("combine", "aten.mul.Scalar", vec![x(0), Arg::Int(2)], &[row(), row()], &[ty()]);
        then(&mut combine, "aten.add.Tensor", vec![Arg::value("y0"), x(1)], "sum", ty());
        let args = vec![graph_arg("combine"), Arg::List(vec![x(0)]), Arg::List(vec![])];
        let size = rows.to_string();
        let root = graph("higher_order.associative_scan", args, &[whole()], &[result(DType::F32, &[&size, "2"])]);
        let (module, _) = lower(&Prepared { graph: root, nested: vec![combine], eliminations: vec![] });
        let expected: &[f32] = &[1.0, 2.0, 5.0, 8.0, 15.0, 22.0];
        assert_eq!(run(&module, &[whole()]), expected[..data.len()]);
    }
}

/// Two calls of equal graphs, under other names, and what they are called with.
fn twice(symbolic: bool) -> Prepared {
    let declared = |t: Tensor| if symbolic { t.declared(&["s0"]) } else { t };
    let size = if symbolic { "s0" } else { "3" };
    let ty = || result(DType::F32, &[size]);
    let operand = || declared(tensor::<f32>(&[3], &[0.0; 3]));
    let body = |name: &str, prefix: &str| {
        let mut graph = called(name, "aten.relu.default", vec![x(0)], &[operand()], &[ty()]);
        graph.nodes[0].node = format!("{name}:0");
        for (k, op) in ["aten.neg.default", "aten.exp.default", "aten.sqrt.default"].iter().enumerate() {
            let before = if k == 0 { "y0".to_owned() } else { format!("{prefix}{}", k - 1) };
            then(&mut graph, op, vec![Arg::value(before)], &format!("{prefix}{k}"), ty());
        }
        graph
    };
    let call = |name: &str, arg: Arg| vec![graph_arg(name), Arg::Str("shared".into()), arg];
    let mut root = graph("higher_order.invoke_subgraph", call("one", x(0)), &[operand()], &[ty()]);
    then(&mut root, "higher_order.invoke_subgraph", call("two", Arg::value("y0")), "z", ty());
    Prepared { graph: root, nested: vec![body("one", "a"), body("two", "b")], eliminations: vec![] }
}

#[test]
fn equal_graphs_are_one_function_and_share_its_operations() {
    for symbolic in [false, true] {
        let (module, lowered) = lower(&twice(symbolic));
        assert_eq!(module.matches("\"func.func\"").count(), 2, "{module}");
        assert_eq!(module.matches("callee = @one").count(), 2, "{module}");
        let ops = |node: &str| lowered.iter().find(|l| l.node == node).and_then(|l| l.ops.clone()).unwrap();
        assert_eq!(ops("one:0"), ops("two:0"));
        assert_eq!(ops("prepared:0").len(), 1);
        // exp and sqrt of -relu: sqrt(exp(-max(x, 0))), twice; the second time of a positive number below 1.
        let once = |x: f32| (-x.max(0.0)).exp().sqrt();
        let data = [-1.0, 0.5, 2.0];
        support::assert_close(&run(&module, &[tensor(&[3], &data)]), &data.map(|x| once(once(x))));
    }
}

#[test]
fn a_graph_with_a_size_that_no_input_of_its_own_gives_stays_in_place() {
    let mut prepared = twice(true);
    for graph in &mut prepared.nested {
        for ty in graph.inputs.iter_mut().map(|i| &mut i.ty) {
            *ty = result(DType::F32, &["s0+1"]);
        }
        for r in graph.nodes.iter_mut().flat_map(|n| &mut n.results) {
            r.ty = result(DType::F32, &["s0+1"]);
        }
    }
    for input in &mut prepared.graph.inputs {
        input.ty = result(DType::F32, &["s0+1"]);
    }
    for r in prepared.graph.nodes.iter_mut().flat_map(|n| &mut n.results) {
        r.ty = result(DType::F32, &["s0+1"]);
    }
    let (module, lowered) = lower(&prepared);
    assert_eq!(module.matches("\"func.func\"").count(), 1);
    let mut all: Vec<u64> = lowered.iter().filter_map(|l| l.ops.as_ref()).flatten().copied().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "an operation belongs to two nodes");
}
