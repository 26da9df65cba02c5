//! Small graphs for tests, and prepared ones as text.

#![allow(dead_code, reason = "each test uses its part")]

pub mod calls;

use m2m_aten::{Prepared, Unsupported, prepare};
use m2m_graph::{Graph, Program, verify};
use m2m_record::{
    Arg, Data, Dim, Input, InputRole, Node, OutputItem, OutputRole, Symbol, TensorType, Type, TypedValue,
};

/// What the tests' target lowers.
pub const CORE: &[&str] = &[
    "aten._to_copy.default",
    "aten.add.Scalar",
    "aten.add.Tensor",
    "aten.amax.default",
    "aten.arange.start_step",
    "aten.bmm.default",
    "aten.cat.default",
    "aten.clone.default",
    "aten.div.Tensor",
    "aten.exp.default",
    "aten.expand.default",
    "aten.full.default",
    "aten.linear.default",
    "aten.mean.dim",
    "aten.mm.default",
    "aten.mul.Scalar",
    "aten.mul.Tensor",
    "aten.neg.default",
    "aten.permute.default",
    "aten.relu.default",
    "aten.rsqrt.default",
    "aten.scatter.src",
    "aten.select.int",
    "aten.slice.Tensor",
    "aten.sub.Tensor",
    "aten.sum.dim_IntList",
    "aten.view.default",
];

/// `f32[2,s0]`
pub fn ty(text: &str) -> Type {
    let (dtype, rest) = text.split_once('[').expect("dtype[sizes]");
    let sizes = rest.trim_end_matches(']').split(',').filter(|s| !s.is_empty());
    let shape = sizes.map(|s| s.parse().map_or(Dim::Expr(s.to_owned()), Dim::Int)).collect();
    TensorType::new(dtype.parse().expect("a dtype"), shape).into()
}

pub fn v(name: &str) -> Arg {
    Arg::value(name)
}

/// A graph of stage `original` that grows.
pub struct Build(pub Program);

impl Build {
    pub fn new(inputs: &[(&str, &str)]) -> Self {
        let mut build = Build(Program::default());
        build.0.root = Graph { id: "original".into(), stage: "original".into(), ..Graph::default() };
        build.0.stages = vec!["original".into()];
        for (name, text) in inputs {
            build.input(name, InputRole::UserInput, ty(text), None);
        }
        build
    }

    pub fn input(&mut self, name: &str, role: InputRole, ty: Type, data: Option<Data>) {
        let target = (role != InputRole::UserInput).then(|| name.replace('_', "."));
        self.0.root.inputs.push(Input {
            graph: "original".into(),
            value: name.into(),
            role,
            target,
            ty,
            data,
            literal: None,
            persistent: None,
            origins: vec![],
        });
    }

    pub fn symbol(&mut self, name: &str) {
        let (graph, name) = ("original".into(), name.into());
        self.0.root.symbols.push(Symbol { graph, name, min: Some(2), max: None, hint: None });
    }

    pub fn node(&mut self, op: &str, args: Vec<Arg>, results: &[(&str, Type)]) {
        let at = self.0.root.nodes.len();
        let named = |(name, ty): &(&str, Type)| TypedValue { value: Some((*name).into()), ty: ty.clone() };
        let returns = (results.len() != 1).then(|| vec![m2m_record::Return::One; results.len()]);
        self.0.root.nodes.push(Node {
            graph: "original".into(),
            stage: "original".into(),
            node: format!("original:{at}"),
            op: op.into(),
            args,
            results: results.iter().map(named).collect(),
            returns,
            ..Node::default()
        });
    }

    pub fn call(&mut self, op: &str, args: Vec<Arg>, result: &str, text: &str) {
        self.node(op, args, &[(result, ty(text))]);
    }

    pub fn outputs(&mut self, names: &[&str]) {
        let item = |name: &&str| OutputItem {
            value: Some((*name).into()),
            literal: None,
            role: OutputRole::UserOutput,
            target: None,
        };
        self.0.root.outputs = names.iter().map(item).collect();
    }

    pub fn prepare(&self) -> Result<Prepared, Vec<Unsupported>> {
        self.prepare_for(&[])
    }

    /// For a target that lowers `more` than [`CORE`].
    pub fn prepare_for(&self, more: &[&str]) -> Result<Prepared, Vec<Unsupported>> {
        verify(&self.0).expect("the test's graph is well formed");
        let prepared = prepare(&self.0, &|op| CORE.contains(&op) || more.contains(&op))?;
        let program = Program { root: prepared.graph.clone(), ..Program::default() };
        verify(&program).expect("the prepared graph is well formed");
        account(&self.0, &prepared, more);
        Ok(prepared)
    }
}

/// Every old node has a successor or an elimination, never both; every operator is the target's.
fn account(program: &Program, prepared: &Prepared, more: &[&str]) {
    for node in &program.root.nodes {
        let has_successor = prepared.graph.nodes.iter().any(|n| n.origins.contains(&node.node));
        let eliminations = prepared.eliminations.iter().filter(|e| e.node == node.node).count();
        assert_eq!(usize::from(has_successor) + eliminations, 1, "{} {}", node.node, node.op);
    }
    for node in &prepared.graph.nodes {
        assert!(CORE.contains(&node.op.as_str()) || more.contains(&node.op.as_str()), "{}", node.op);
        assert!(!node.origins.is_empty(), "{}", node.node);
    }
}

fn arg(a: &Arg) -> String {
    match a {
        Arg::Value(name) => name.clone(),
        Arg::Int(n) => n.to_string(),
        Arg::Float(x) => format!("{:?}", x.0),
        Arg::Sym(e) => e.clone(),
        Arg::DType(d) => d.to_string(),
        Arg::List(items) => format!("[{}]", items.iter().map(arg).collect::<Vec<_>>().join(",")),
        other => format!("{other:?}"),
    }
}

/// One line a node: `y f32[2,3] = relu.default x`.
pub fn text(prepared: &Prepared) -> Vec<String> {
    let ty = |t: &Type| match t {
        Type::Tensor(t) => {
            format!("{}[{}]", t.dtype, t.shape.iter().map(Dim::to_string).collect::<Vec<_>>().join(","))
        }
        other => format!("{other:?}"),
    };
    let line = |n: &Node| {
        let results: Vec<String> =
            n.results.iter().map(|r| format!("{} {}", r.value.as_deref().unwrap_or("-"), ty(&r.ty))).collect();
        let args = n.args.iter().map(arg).chain(n.kwargs.iter().map(|(k, a)| format!("{k}={}", arg(a))));
        let op = n.op.trim_start_matches("aten.");
        format!("{} = {op} {}", results.join(", "), args.collect::<Vec<_>>().join(" "))
    };
    prepared.graph.nodes.iter().map(line).collect()
}
