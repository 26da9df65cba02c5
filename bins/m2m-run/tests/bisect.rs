//! The first node where two executions part: results of which there are several, nested graphs, and whether the stream of
//! that node alone shows the difference.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_record::{
    Arg, Argument, DType, Graph, Input, InputRole, Lowered, Module, ModuleResult, Node, Output, OutputItem, OutputRole,
    Status, Type, TypedValue, Writer,
};
use std::path::Path;
use tool::{f32s, is_there, run, tensor_type, tensors, text};

fn f32x(count: i64) -> Type {
    tensor_type(DType::F32, &[count])
}

fn node(graph: &str, number: usize, op: &str, args: Vec<Arg>, results: &[(&str, Type)]) -> Node {
    let result = |(name, ty): &(&str, Type)| TypedValue { value: Some((*name).to_owned()), ty: ty.clone() };
    Node {
        graph: graph.to_owned(),
        stage: "prepared".to_owned(),
        node: format!("prepared:{number}"),
        op: op.to_owned(),
        args,
        results: results.iter().map(result).collect(),
        ..Node::default()
    }
}

/// A graph of `x: [2]` and more inputs.
fn graph(writer: &mut Writer<Vec<u8>>, id: &str, inputs: &[(&str, Type)], nodes: &[Node], outputs: &[&str]) {
    let parent = id.split_once('/').map(|(parent, _)| parent.to_owned());
    let entry = parent.is_none().then(|| "forward".to_owned());
    writer.write(&Graph { graph: id.to_owned(), stage: "prepared".to_owned(), entry, parent }).unwrap();
    for (name, ty) in inputs {
        writer.write(&Input::new(id, *name, InputRole::UserInput, ty.clone())).unwrap();
    }
    nodes.iter().for_each(|node| writer.write(node).unwrap());
    let item = |name: &&str| {
        let (value, role) = (Some((*name).to_owned()), OutputRole::UserOutput);
        OutputItem { value, literal: None, role, target: None }
    };
    writer.write(&Output { graph: id.to_owned(), outputs: outputs.iter().map(item).collect() }).unwrap();
    writer.seal().unwrap();
}

/// A module of `x: [2]`, and the ordinals of the operations of each node.
fn module(writer: &mut Writer<Vec<u8>>, text: &str, results: &[(&str, Type)], nodes: &[(&str, &[u64])]) {
    let (value, role, ty) = ("x".to_owned(), InputRole::UserInput, f32x(2));
    let result = |(name, ty): &(&str, Type)| {
        let (value, role, ty) = (Some((*name).to_owned()), OutputRole::UserOutput, Some(ty.clone()));
        ModuleResult { value, literal: None, role, target: None, ty }
    };
    let module = Module {
        dialect: "linalg".into(),
        form: "pretty".into(),
        bytes: text.len() as u64,
        sha256: m2m_digest::Digest::of(text.as_bytes()).to_string(),
        text: Some(text.to_owned()),
        file: None,
        entry: "forward".into(),
        arguments: vec![Argument { value, role, target: None, ty, data: None, global: None }],
        results: results.iter().map(result).collect(),
        externals: Vec::new(),
    };
    writer.write(&module).unwrap();
    for (node, ops) in nodes {
        let lowered = Lowered { node: (*node).to_owned(), ops: Some(ops.to_vec()), ..Lowered::default() };
        writer.write(&lowered).unwrap();
    }
}

/// The two halves of x, in a module that takes them from where it is told, in the order that it is told.
fn halves(slices: &str, returned: &str) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let both = [("a", f32x(1)), ("b", f32x(1))];
    let mut split = node("prepared", 0, "aten.split.Tensor", vec![Arg::value("x"), Arg::Int(1)], &both);
    split.returns = Some(vec![m2m_record::Return::List(2)]);
    graph(&mut writer, "prepared", &[("x", f32x(2))], &[split], &["a", "b"]);
    let text = format!(
        "func.func @forward(%x: tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>) {{
{slices}
    return {returned} : tensor<1xf32>, tensor<1xf32>
}}"
    );
    module(&mut writer, &text, &both, &[("prepared:0", &[2, 3])]);
    writer.finish(Status::Ok).unwrap()
}

fn slice(name: &str, at: usize) -> String {
    format!("    %{name} = tensor.extract_slice %x[{at}] [1] [1] : tensor<2xf32> to tensor<1xf32>\n")
}

fn inputs(folder: &Path) {
    tensors(&folder.join("in.safetensors"), &[("in_0", DType::F32, &[2], f32s(&[1.0, 3.0]))]);
}

const MLIR: [&str; 8] =
    ["--engine", "mlir", "--against", "torch", "--inputs", "in.safetensors", "--bisect", "one.ndjson"];

#[test]
fn each_of_several_results_is_compared() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path());
    // Which operation gives which half is not recorded, so their order does not matter.
    for (slices, returned) in [(slice("a", 0) + &slice("b", 1), "%a, %b"), (slice("b", 1) + &slice("a", 0), "%a, %b")] {
        let same = run(folder.path(), &MLIR, &halves(&slices, returned));
        assert_eq!(
            (text(&same.stderr).as_str(), text(&same.stdout).as_str()),
            ("", "2 values compared, none differs\n")
        );
    }
    // Both are the first half: 1, where the second is 3.
    let wrong = run(folder.path(), &MLIR, &halves(&(slice("a", 0) + &slice("b", 0)), "%a, %b"));
    let said = text(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("m2m-run: engine torch: error: prepared:0: b: aten.split.Tensor: max abs 2.000e0"),
        "{said}"
    );
    assert_eq!(
        text(&wrong.stdout),
        "1 of 2 values agree before prepared:0; it is alone in one.ndjson, its tensors in one.safetensors, but agrees \
         there, lowered anew and on the reference's values\n"
    );
}

/// y = rand_like(x), whose numbers are not the same in the two engines.
#[test]
fn a_node_that_differs_alone_is_said_to() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    inputs(folder.path());
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let y = [("y", f32x(2))];
    let random = node("prepared", 0, "aten.rand_like.default", vec![Arg::value("x")], &y);
    graph(&mut writer, "prepared", &[("x", f32x(2))], &[random], &["y"]);
    let text_of_module = "func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = arith.subf %x, %x : tensor<2xf32>
    return %y : tensor<2xf32>
}";
    module(&mut writer, text_of_module, &y, &[("prepared:0", &[2])]);
    let found = run(folder.path(), &MLIR, &writer.finish(Status::Ok).unwrap());
    assert_eq!(
        text(&found.stdout),
        "0 of 1 values agree before prepared:0; it is alone in one.ndjson, its tensors in one.safetensors, and differs \
         there too\n",
        "{}",
        text(&found.stderr)
    );
}

/// If p, y = (x + x) * x, else y = x; then z = y - x.
fn branches() -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new()).unwrap();
    let (yes, no) = ("prepared/yes", "prepared/no");
    let inner = [
        node(yes, 0, "aten.add.Tensor", vec![Arg::value("u"), Arg::value("u")], &[("twice", f32x(2))]),
        node(yes, 1, "aten.mul.Tensor", vec![Arg::value("twice"), Arg::value("u")], &[("product", f32x(2))]),
    ];
    graph(&mut writer, yes, &[("u", f32x(2))], &inner, &["product"]);
    let copy = [node(no, 2, "aten.clone.default", vec![Arg::value("u")], &[("copy", f32x(2))])];
    graph(&mut writer, no, &[("u", f32x(2))], &copy, &["copy"]);
    let operands = Arg::List(vec![Arg::value("x")]);
    let args = vec![Arg::value("p"), Arg::Graph(yes.to_owned()), Arg::Graph(no.to_owned()), operands];
    let nodes = [
        node("prepared", 3, "higher_order.cond", args, &[("y", f32x(2))]),
        node("prepared", 4, "aten.sub.Tensor", vec![Arg::value("y"), Arg::value("x")], &[("z", f32x(2))]),
    ];
    let inputs = [("p", tensor_type(DType::Bool, &[])), ("x", f32x(2))];
    graph(&mut writer, "prepared", &inputs, &nodes, &["z"]);
    writer.finish(Status::Ok).unwrap()
}

#[test]
fn nodes_of_nested_graphs_are_found() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let given = [("in_0", DType::Bool, &[][..], vec![1]), ("in_1", DType::F32, &[2][..], f32s(&[1.0, 3.0]))];
    tensors(&folder.path().join("in.safetensors"), &given);
    let flags = ["--engine", "torch", "--inputs", "in.safetensors", "--against", "values.safetensors"];
    let bisect = [&flags[..], &["--bisect", "one.ndjson"]].concat();
    let trace = [&flags[..4], &["--trace-values", "values.safetensors"]].concat();
    assert!(run(folder.path(), &trace, &branches()).status.success());
    let same = run(folder.path(), &bisect, &branches());
    assert_eq!(text(&same.stdout), "4 values compared, none differs\n", "{}", text(&same.stderr));
    // As if the branch multiplied by 2: y = [4, 12] where (x + x) * x = [2, 18].
    let values = |product: &[f32]| {
        let value = |name, elements: &[f32]| (name, DType::F32, &[2][..], f32s(elements));
        let z: Vec<f32> = product.iter().zip([1.0, 3.0]).map(|(y, x)| y - x).collect();
        let all = [value("yes/twice", &[2.0, 6.0]), value("yes/product", product), value("y", product), value("z", &z)];
        tensors(&folder.path().join("values.safetensors"), &all);
    };
    values(&[4.0, 12.0]);
    let wrong = run(folder.path(), &bisect, &branches());
    let said = text(&wrong.stderr);
    assert!(
        said.starts_with(
            "m2m-run: values.safetensors: error: prepared:1: yes/product: aten.mul.Tensor: max abs 6.000e0"
        ),
        "{said}"
    );
    assert_eq!(
        text(&wrong.stdout),
        "1 of 2 values agree before prepared:1; prepared:3, which executes it, is alone in one.ndjson, its tensors in \
         one.safetensors, and differs there too\n"
    );
    let alone = run(folder.path(), &["one.ndjson", "--engine", "torch", "--compare"], b"");
    assert_eq!(alone.status.code(), Some(1), "{}", text(&alone.stderr));
    assert!(text(&alone.stderr).contains("error: out_0: max abs 6.000e0"), "{}", text(&alone.stderr));
}

/// Where the values of nested graphs are missing, the node that calls them is found, and that they were not entered.
#[test]
fn graphs_that_cannot_be_entered_are_named() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let given = [("in_0", DType::Bool, &[][..], vec![1]), ("in_1", DType::F32, &[2][..], f32s(&[1.0, 3.0]))];
    tensors(&folder.path().join("in.safetensors"), &given);
    tensors(&folder.path().join("values.safetensors"), &[("y", DType::F32, &[2], f32s(&[2.0, 19.0]))]);
    let flags = [
        "--engine",
        "torch",
        "--inputs",
        "in.safetensors",
        "--against",
        "values.safetensors",
        "--bisect",
        "one.ndjson",
    ];
    let wrong = run(folder.path(), &flags, &branches());
    assert_eq!(
        text(&wrong.stdout),
        "0 of 1 values agree before prepared:3; it is alone in one.ndjson, its tensors in one.safetensors, and differs \
         there too; the graphs that it calls were not entered, since only one side has values of their nodes\n",
        "{}",
        text(&wrong.stderr)
    );
}
