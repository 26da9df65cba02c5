//! Graphs over operators of namespace `lattice`, lowered and read again: every operation of the schema, what ATen's operators
//! become, how weights are bound, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use m2m_aten::Prepared;
use m2m_graph::{Graph, Places};
use m2m_lattice::finding::{Findings, Severity};
use m2m_lattice::schema::{ATTRIBUTES, Class, Family, Field, Kind, OPS, Op, OpDef, Rule, Value};
use m2m_lattice::{text, verify::verify};
use m2m_lower::lattice::{Emitted, emit};
use m2m_lower::linalg::Failure;
use m2m_record::{Arg, DType, Data, Dim, Input, InputRole, Node, OutputItem, OutputRole, TensorType, Type, TypedValue};

/// A graph under construction; every value has rows `s0`.
#[derive(Default)]
struct Net {
    graph: Graph,
}

fn shape(sizes: &[i64]) -> Vec<Dim> {
    sizes.iter().map(|n| if *n < 0 { Dim::Expr("s0".into()) } else { Dim::Int(*n) }).collect()
}

fn tensor(dtype: DType, sizes: &[i64]) -> Type {
    Type::Tensor(TensorType::new(dtype, shape(sizes)))
}

/// `[rows, channels]`.
fn rows(channels: i64) -> Type {
    tensor(DType::F32, &[-1, channels])
}

fn v(name: &str) -> Arg {
    Arg::value(name)
}

impl Net {
    fn input(&mut self, name: &str, dtype: DType, sizes: &[i64]) -> Arg {
        let ty = tensor(dtype, sizes);
        self.push_input(name, InputRole::UserInput, None, ty, None)
    }

    fn stored(&mut self, target: &str, dtype: DType, sizes: &[i64]) -> Arg {
        let offset = self.graph.inputs.len() as u64 * 4096;
        self.stored_at(target, dtype, sizes, offset)
    }

    fn stored_at(&mut self, target: &str, dtype: DType, sizes: &[i64], offset: u64) -> Arg {
        let ty = TensorType::new(dtype, shape(sizes));
        let bytes = dtype.bytes_of(sizes.iter().product::<i64>().unsigned_abs()).unwrap();
        let (file, byteorder) = ("f0".into(), Default::default());
        let data = Data::Range { file, offset, bytes, storage: None, strides: None, byteorder };
        let name = format!("p_{}", target.replace('.', "_"));
        self.push_input(&name, InputRole::Parameter, Some(target), ty.into(), Some(data))
    }

    fn push_input(&mut self, name: &str, role: InputRole, target: Option<&str>, ty: Type, data: Option<Data>) -> Arg {
        self.graph.inputs.push(Input {
            graph: "prepared".into(),
            value: name.into(),
            role,
            target: target.map(str::to_owned),
            ty,
            data,
            literal: None,
            persistent: None,
            origins: Vec::new(),
        });
        v(name)
    }

    fn node(&mut self, op: &str, args: Vec<Arg>, kwargs: Vec<(&str, Arg)>, results: &[(&str, Type)]) -> Arg {
        let results = results.iter().map(|(name, ty)| TypedValue { value: Some((*name).into()), ty: ty.clone() });
        self.graph.nodes.push(Node {
            graph: "prepared".into(),
            stage: "prepared".into(),
            node: format!("prepared:{}", self.graph.nodes.len()),
            op: op.into(),
            args,
            kwargs: kwargs.into_iter().map(|(key, arg)| (key.to_owned(), arg)).collect(),
            results: results.collect(),
            ..Node::default()
        });
        let last = self.graph.nodes.last().unwrap();
        v(last.results[0].value.as_deref().unwrap())
    }

    /// A sparse value of four channels from three inputs of its own.
    fn sparse(&mut self, name: &str, stride: [i64; 3]) -> Arg {
        let parts = [
            self.input(&format!("{name}_coords"), DType::I32, &[-1, 4]),
            self.input(&format!("{name}_features"), DType::F32, &[-1, 4]),
            self.input(&format!("{name}_active"), DType::I32, &[1]),
        ];
        let args = parts.into_iter().chain([Arg::ints(stride)]).collect();
        self.node("lattice.sparse_make.default", args, vec![], &[(name, rows(4))])
    }

    fn returns(&mut self, names: &[&str]) {
        let outputs = names.iter().map(|name| OutputItem {
            value: Some((*name).into()),
            literal: None,
            role: OutputRole::UserOutput,
            target: None,
        });
        self.graph.outputs = outputs.collect();
    }

    fn emit(self) -> Result<Emitted, Failure> {
        emit(&Prepared { graph: self.graph, nested: Vec::new(), eliminations: Vec::new() }, &Places::default())
    }

    /// The module's text, which our own reader takes.
    fn text(self) -> String {
        let text = self.emit().unwrap_or_else(|failure| panic!("{failure:?}")).text;
        let mut findings = Findings::default();
        verify(&text::parse(text.as_bytes(), &mut findings), None, &mut findings);
        let errors: Vec<_> = findings.into_sorted().into_iter().filter(|f| f.severity() == Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
        text
    }

    /// Node and reason of every refusal.
    fn refusals(self) -> Vec<(String, String)> {
        match self.emit() {
            Err(Failure::Refused(refusals)) => refusals.into_iter().map(|r| (r.node, r.reason)).collect(),
            other => panic!("expected refusals; got {:?}", other.map(|emitted| emitted.text)),
        }
    }
}

/// The kernel that convolutions have here, no two sizes alike.
const KERNEL: [i64; 3] = [3, 1, 5];

/// The stride of a sparse value that stands for an operand.
fn stride_of(def: &OpDef, operand: &str) -> [i64; 3] {
    let is_target = operand == "target" && def.attribute("stride").is_some();
    match is_target {
        true if def.name.contains("transpose") || def.op == Op::TrilinearUpsample3d => [2, 2, 2],
        true => [8, 2, 2],
        false => [4, 2, 2],
    }
}

/// What satisfies the rules of an operand that is no sparse value.
fn type_of(def: &OpDef, value: &Value) -> (DType, Vec<i64>) {
    if value.class == Class::Weight {
        let [kx, ky, kz] = KERNEL;
        let sizes = match def.family(value.name).unwrap() {
            Family::Conv3d => vec![4, kx, ky, kz, 4],
            Family::Linear => vec![4, 4],
            Family::Embedding => vec![7, 4],
            Family::Channel | Family::Bias => vec![4],
        };
        return (DType::F32, sizes);
    }
    let (mut dtype, mut sizes) =
        if value.class == Class::Indices { (DType::I32, vec![-1, 4]) } else { (DType::F32, vec![-1, 4]) };
    for rule in def.rules {
        match *rule {
            Rule::Rank(name, rank) if name == value.name => sizes.truncate(rank),
            Rule::Size(name, axis, size) if name == value.name => sizes[axis] = size as i64,
            Rule::Element(name, element) if name == value.name => dtype = element,
            _ => {}
        }
    }
    (dtype, sizes)
}

/// An argument for an attribute, and how the module spells it.
fn attribute(def: &OpDef, field: &Field) -> (Arg, String) {
    let words = def.rules.iter().find_map(|rule| match rule {
        Rule::Words(name, words) if *name == field.name => Some(*words),
        _ => None,
    });
    match field.kind {
        Kind::I64Triple => {
            let items = match field.name {
                "kernel_size" => KERNEL,
                "stride" => [2, 1, 1],
                "padding" => [0, 1, 0],
                _ => [1, 2, 3],
            };
            let [a, b, c] = items;
            (Arg::ints(items), format!("array<i64: {a}, {b}, {c}>"))
        }
        Kind::F64Triple => (Arg::List([0.5, 1.0, 2.25].map(Arg::from).to_vec()), "array<f64: 0.5, 1.0, 2.25>".into()),
        Kind::F32 => (Arg::from(0.25), "0.25 : f32".into()),
        Kind::I64 => (Arg::Int(-1), "-1 : i64".into()),
        Kind::Str => (Arg::from(words.unwrap()[0]), format!("{:?}", words.unwrap()[0])),
        Kind::Own(mnemonic) => {
            let values = ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic).unwrap().values;
            let last = values.last().unwrap();
            (Arg::from(*last), format!("#lattice.{mnemonic}<{last}>"))
        }
    }
}

/// The types of an operation's results.
fn results(def: &OpDef) -> Vec<(&'static str, Type)> {
    let of = |value: &'static Value| match (value.class, def.op) {
        (Class::Sparse, Op::SparseCat) => (value.name, rows(8)),
        (Class::Sparse, _) => (value.name, rows(4)),
        _ => {
            let (dtype, sizes) = type_of(def, value);
            (value.name, tensor(dtype, &sizes))
        }
    };
    def.results.iter().map(of).collect()
}

/// One operation in a graph: by position or by name, with its optional operand or without.
fn example(def: &OpDef, by_name: bool, is_full: bool) -> (Net, Vec<String>) {
    let mut net = Net::default();
    let mut given: Vec<(&str, Arg)> = Vec::new();
    for value in def.values() {
        if value.is_optional && !is_full {
            if !by_name && !def.attributes.is_empty() {
                given.push((value.name, Arg::Null));
            }
            continue;
        }
        let arg = match value.class {
            Class::Sparse => net.sparse(&format!("x_{}", value.name), stride_of(def, value.name)),
            Class::Weight => {
                let (dtype, sizes) = type_of(def, value);
                net.stored(&format!("layer.{}", value.name), dtype, &sizes)
            }
            _ => {
                let (dtype, sizes) = type_of(def, value);
                net.input(&format!("in_{}", value.name), dtype, &sizes)
            }
        };
        given.push((value.name, arg));
    }
    let mut spelled = Vec::new();
    for field in def.attributes {
        let (arg, text) = attribute(def, field);
        given.push((field.name, arg));
        spelled.push(format!("{} = {text}", field.name));
    }
    let op = format!("lattice.{}.default", def.python_name());
    let results = results(def);
    match by_name {
        true => net.node(&op, vec![], given.into_iter().rev().collect(), &results),
        false => net.node(&op, given.into_iter().map(|(_, arg)| arg).collect(), vec![], &results),
    };
    net.returns(&results.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    (net, spelled)
}

#[test]
fn every_operation_of_the_schema_maps() {
    let mut count = 0;
    for def in OPS.iter().filter(|def| def.op != Op::Weight) {
        for (by_name, is_full) in [(false, true), (true, true), (false, false), (true, false)] {
            let (net, spelled) = example(def, by_name, is_full);
            let text = net.text();
            let line = text.lines().find(|line| line.contains(&format!(" = lattice.{} ", def.name)));
            let line = line.unwrap_or_else(|| panic!("no lattice.{} in\n{text}", def.name));
            for attribute in &spelled {
                assert!(line.contains(attribute), "{attribute}: {line}");
            }
            let operands = line.split(" {").next().unwrap().split(" : ").next().unwrap();
            let operands = operands.rsplit_once(&format!("lattice.{} ", def.name)).unwrap().1.split(", ").count();
            let (least, most) = def.arity();
            assert_eq!(operands, if is_full { most } else { least }, "{line}");
            // Weights are bound by name, each in its family's layout.
            for value in def.values().filter(|value| value.class == Class::Weight && (is_full || !value.is_optional)) {
                let layout = def.family(value.name).unwrap().layout();
                let bound = format!(
                    "lattice.weight @layer.{0} {{storage_key = \"layer.{0}\", layout = #lattice.weight_layout<{layout}>",
                    value.name
                );
                assert!(text.contains(&bound), "{bound}\n{text}");
            }
            count += 1;
        }
    }
    assert_eq!(count, 30 * 4);
}

#[test]
fn three_inputs_of_a_sparse_value_have_its_roles() {
    let mut net = Net::default();
    let spare = net.input("scale", DType::F32, &[-1, 4]);
    let x = net.sparse("x", [1; 3]);
    net.node("lattice.sparse_with_features.default", vec![x, spare], vec![], &[("y", rows(4))]);
    net.returns(&["y", "y", "x_features"]);
    let text = net.text();
    assert!(text.contains("input_names = [\"scale\", \"x_coords\", \"x_features\", \"x_active\"]"), "{text}");
    let roles = "input_roles = [\"tensor\", \"sparse_coords\", \"sparse_features\", \"sparse_active\"]";
    assert!(text.contains(roles), "{text}");
    assert!(text.contains("output_names = [\"y\", \"y_2\", \"x_features\"]"), "{text}");
    assert!(text.contains("output_roles = [\"sparse_tensor\", \"sparse_tensor\", \"tensor\"]"), "{text}");
}

/// The operations of a module in order, without `lattice.`.
fn names(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.split_once(" = lattice.").filter(|(left, _)| left.contains('%')));
    lines.map(|(_, rest)| rest.split(' ').next().unwrap()).collect()
}

#[test]
fn row_wise_operators_one_after_another_work_on_features() {
    let mut net = Net::default();
    let x = net.sparse("x", [1; 3]);
    let norm = ["weight", "bias", "mean", "var"].map(|name| net.stored(&format!("norm.{name}"), DType::F32, &[4]));
    let [weight, bias, mean, var] = norm;
    let args =
        vec![x.clone(), weight, bias, mean, var, Arg::Bool(false), Arg::from(0.1), Arg::from(1e-5), Arg::Bool(true)];
    let y = net.node("aten.batch_norm.default", args, vec![], &[("n", rows(4))]);
    let y = net.node("aten.relu.default", vec![y], vec![], &[("r", rows(4))]);
    let w = net.stored("conv.weight", DType::F32, &[2, 1, 1, 1, 4]);
    let z = net.node(
        "lattice.subm_conv3d.default",
        vec![y, w, Arg::Null, Arg::Int(1), Arg::ints([1; 3])],
        vec![],
        &[("z", rows(2))],
    );
    net.node("aten.sigmoid.default", vec![z], vec![], &[("s", rows(2))]);
    net.returns(&["s"]);
    let emitted = net.emit().unwrap_or_else(|failure| panic!("{failure:?}"));
    let expected = [
        "sparse.make",
        "weight",
        "weight",
        "weight",
        "weight",
        "sparse.decompose",
        "batch_norm",
        "activation",
        "sparse.with_features",
        "weight",
        "subm_conv3d",
        "sparse.decompose",
        "activation",
        "sparse.with_features",
    ];
    assert_eq!(names(&emitted.text), expected, "{}", emitted.text);
    assert!(emitted.text.contains("eps = 1.0e-5 : f32"), "{}", emitted.text);
    // What is put together for the output is of the node that gave it.
    let lowered: Vec<_> = emitted.lowered.iter().map(|l| l.ops.clone().unwrap()).collect();
    assert_eq!(lowered, [vec![2], vec![3, 4, 5, 6, 7, 8], vec![9], vec![10, 11, 12], vec![13, 14, 15]]);
    let keys: Vec<_> = emitted.arguments.iter().filter_map(|a| a.global.as_deref()).collect();
    assert_eq!(keys, ["norm.weight", "norm.bias", "norm.mean", "norm.var", "conv.weight"]);
}

#[test]
fn matrices_that_are_stored_transposed_are_linear_weights() {
    let mut net = Net::default();
    let x = net.input("x", DType::F32, &[3, 4]);
    let (w, b) = (net.stored("fc.weight", DType::F32, &[2, 4]), net.stored("fc.bias", DType::F32, &[2]));
    let t = net.node("aten.permute.default", vec![w, Arg::ints([1, 0])], vec![], &[("t", tensor(DType::F32, &[4, 2]))]);
    let one = tensor(DType::F32, &[3, 2]);
    net.node("aten.addmm.default", vec![b, x.clone(), t.clone()], vec![], &[("a", one.clone())]);
    net.node("aten.mm.default", vec![x, t], vec![], &[("m", one)]);
    net.returns(&["a", "m"]);
    let text = net.text();
    assert_eq!(names(&text), ["weight", "weight", "linear", "linear"], "{text}");
    assert_eq!(
        text.matches(": (tensor<3x4xf32>, !lattice.weight<linear, f32>) -> tensor<3x2xf32>").count(),
        1,
        "{text}"
    );
}

#[test]
fn tied_weights_have_one_key_and_a_symbol_for_each_use() {
    let mut net = Net::default();
    let i = net.input("i", DType::I32, &[-1]);
    let a = net.stored_at("embed.weight", DType::F32, &[7, 4], 64);
    let b = net.stored_at("head.weight", DType::F32, &[7, 4], 64);
    let e = net.node("aten.embedding.default", vec![a, i], vec![], &[("e", rows(4))]);
    net.node("aten.linear.default", vec![e, b], vec![], &[("y", rows(7))]);
    net.returns(&["y"]);
    let emitted = net.emit().unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(emitted.arguments.iter().filter(|a| a.global.is_some()).count(), 1);
    for (symbol, layout) in [("embed.weight", "embedding_n_c"), ("embed.weight_2", "linear_o_i")] {
        let line = format!("@{symbol} {{storage_key = \"embed.weight\", layout = #lattice.weight_layout<{layout}>");
        assert!(emitted.text.contains(&line), "{line}\n{}", emitted.text);
    }
}

#[test]
fn packed_weights_are_bound_by_their_common_name() {
    let packed = |names: [&str; 3], words: DType, group_size: i64| {
        let mut net = Net::default();
        let x = net.sparse("x", [1; 3]);
        let parts = [
            net.stored(names[0], words, &[1, 2, 4]),
            net.stored(names[1], DType::F16, &[1, 2, 1]),
            net.stored(names[2], DType::F16, &[1, 2, 1]),
        ];
        let args = parts.into_iter().chain([Arg::from("int4"), Arg::Int(group_size)]).collect();
        let ty = tensor(DType::F32, &[2, 1, 1, 1, 4]);
        let w = net.node("lattice.weight_packed.default", args, vec![], &[("w", ty)]);
        let kwargs = vec![("input", x), ("weight", w), ("kernel_size", Arg::Int(1)), ("dilation", Arg::Int(1))];
        net.node("lattice.subm_conv3d.default", vec![], kwargs, &[("y", rows(2))]);
        net.returns(&["y"]);
        net
    };
    let names = ["conv.weight", "conv.scales", "conv.biases"];
    let text = packed(names, DType::U32, 32).text();
    let line = "lattice.weight @conv {storage_key = \"conv\", layout = #lattice.weight_layout<conv3d_o_xyz_i>, packing = \
                #lattice.packing<int4, group_size = 32, scale_dtype = f16, mode = affine>} : !lattice.weight<conv3d, f32>";
    assert!(text.contains(line), "{text}");
    let reason = |net: Net| net.refusals().remove(0).1;
    assert!(
        reason(packed(["conv.words", "conv.scales", "conv.biases"], DType::U32, 32))
            .contains("expected K.weight, K.scales, K.biases")
    );
    assert!(reason(packed(["a.weight", "b.scales", "b.biases"], DType::U32, 32)).contains("expected K.weight"));
    assert!(
        reason(packed(names, DType::I32, 32)).contains("conv.weight is i32 [1, 2, 4]; the contract packs into u32")
    );
    assert!(reason(packed(names, DType::U32, 48)).contains("group_size is 48; expected one of [32, 64, 128]"));
    // Two scales to a row are none of one group.
    assert!(reason(packed(names, DType::U32, 64)).contains("conv.scales"));
}

#[test]
fn sparse_values_of_the_same_rows_are_added_and_joined() {
    let mut net = Net::default();
    let x = net.sparse("x", [1; 3]);
    let w = net.stored("w", DType::F32, &[4, 3, 3, 3, 4]);
    let window = || vec![Arg::Null, Arg::Int(3), Arg::Int(1)];
    let conv = [vec![x.clone(), w], window()].concat();
    let y = net.node("lattice.subm_conv3d.default", conv, vec![], &[("y", rows(4))]);
    let sum = net.node("aten.add.Tensor", vec![y.clone(), x.clone()], vec![], &[("sum", rows(4))]);
    let list = Arg::List(vec![sum, y, x]);
    net.node("aten.cat.default", vec![list, Arg::Int(1)], vec![], &[("cat", rows(12))]);
    net.returns(&["cat"]);
    let text = net.text();
    assert_eq!(names(&text)[3..], ["sparse.binary", "sparse.cat", "sparse.cat"], "{text}");
    assert!(text.contains("op = #lattice.binary_op<add>, join = #lattice.join<inner>"), "{text}");
}

#[test]
fn what_has_no_counterpart_is_refused_all_of_it() {
    let mut net = Net::default();
    let x = net.sparse("x", [1; 3]);
    let d = net.input("d", DType::F32, &[-1, 4]);
    let long = net.input("long", DType::I64, &[-1, 4]);
    let w = net.stored("conv.weight", DType::F32, &[4, 3, 3, 3, 4]);
    let active = v("x_active");
    let r = rows(4);
    let mut expected = Vec::new();
    let mut case = |net: &mut Net, op: &str, args: Vec<Arg>, kwargs: Vec<(&str, Arg)>, reason: &'static str| {
        let at = expected.len();
        net.node(op, args, kwargs, &[(&format!("r{at}"), r.clone())]);
        expected.push(reason);
    };
    case(&mut net, "aten.sin.default", vec![x.clone()], vec![], "no operation of the dialect computes this");
    case(&mut net, "lattice.subm_conv4d.default", vec![x.clone()], vec![], "no operation of the dialect is called so");
    case(&mut net, "lattice.weight.default", vec![x.clone()], vec![], "no operation of the dialect is called so");
    let conv = |input: &Arg, weight: &Arg| vec![input.clone(), weight.clone(), Arg::Null, Arg::Int(3)];
    case(&mut net, "lattice.subm_conv3d.default", conv(&x, &w), vec![], "dilation is missing; an export leaves out");
    let one = vec![("dilation", Arg::Int(1))];
    case(&mut net, "lattice.subm_conv3d.default", conv(&d, &w), one.clone(), "input is d, which is no sparse value");
    case(
        &mut net,
        "lattice.subm_conv3d.default",
        conv(&x, &d),
        one.clone(),
        "weight is d, which is computed or an input",
    );
    let pair = vec![("dilation", Arg::ints([1, 1]))];
    case(
        &mut net,
        "lattice.subm_conv3d.default",
        conv(&x, &w),
        pair,
        "dilation is a list of 2; expected three integers",
    );
    let twice = vec![("dilation", Arg::Int(1)), ("input", x.clone())];
    case(&mut net, "lattice.subm_conv3d.default", conv(&x, &w), twice, "input is given twice");
    let unknown = vec![("dilations", Arg::Int(1))];
    case(
        &mut net,
        "lattice.subm_conv3d.default",
        conv(&x, &w),
        unknown,
        "an argument \"dilations\"; it has input, weight",
    );
    let pool = vec![x.clone(), Arg::from("mean"), Arg::Int(-1)];
    case(
        &mut net,
        "lattice.global_pool.default",
        pool,
        vec![],
        "mode is the string \"mean\"; expected one of sum, max, avg",
    );
    let make = vec![long, d.clone(), active, Arg::Int(1)];
    case(&mut net, "lattice.sparse_make.default", make, vec![], "coords is long of i64; expected i32");
    let features = vec![x.clone(), w.clone()];
    case(
        &mut net,
        "lattice.sparse_with_features.default",
        features,
        vec![],
        "features is conv.weight, which the model stores",
    );
    case(&mut net, "aten.add.Tensor", vec![x.clone(), d.clone()], vec![], "d is no sparse value; the dialect has this");
    case(
        &mut net,
        "aten.mul.Tensor",
        vec![x, Arg::from(0.5)],
        vec![],
        "other is the float 0.5; the dialect adds no numbers",
    );
    case(&mut net, "aten.mm.default", vec![d, w], vec![], "mat2 is conv.weight as [out, in]; expected [in, out]");
    // What takes a refused value is not reported for that.
    net.node("aten.relu.default", vec![v("r0")], vec![], &[("after", rows(4))]);
    net.returns(&["after"]);
    let found = net.refusals();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (at, ((node, reason), expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(*node, format!("prepared:{}", at + 1), "{reason}");
        assert!(reason.contains(expected), "{node}: {reason}; expected {expected}");
    }
}

#[test]
fn findings_of_the_verifier_name_their_node() {
    let mut net = Net::default();
    let x = net.sparse("x", [1; 3]);
    let w = net.stored("conv.weight", DType::F32, &[4, 3, 3, 3, 5]);
    let window = vec![Arg::Null, Arg::Int(3), Arg::Int(1)];
    net.node("lattice.subm_conv3d.default", [vec![x.clone(), w], window].concat(), vec![], &[("y", rows(4))]);
    let w = net.stored("even.weight", DType::F32, &[4, 2, 2, 2, 4]);
    let window = vec![Arg::Null, Arg::Int(2), Arg::Int(1)];
    net.node("lattice.subm_conv3d.default", [vec![x, w], window].concat(), vec![], &[("z", rows(4))]);
    net.returns(&["y", "z"]);
    let found = net.refusals();
    let of = |node: &str| found.iter().filter(|each| each.0 == node).map(|each| each.1.clone()).collect::<Vec<_>>();
    assert!(
        of("prepared:1")[0].contains("channels: lattice.subm_conv3d: the weight takes 5 channels and the input has 4"),
        "{found:?}"
    );
    assert!(of("prepared:2")[0].contains("odd: lattice.subm_conv3d: kernel_size is [2, 2, 2]"), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn outputs_that_a_module_cannot_give_are_refused() {
    let mut net = Net::default();
    let x = net.input("x", DType::F32, &[-1, 4]);
    let count = Type::scalar(m2m_record::ScalarKind::Int);
    net.push_input("count", InputRole::UserInput, None, count, None);
    net.stored("state", DType::F32, &[4]);
    net.node("aten.relu.default", vec![x], vec![], &[("y", rows(4))]);
    net.returns(&["y", "p_state"]);
    net.graph.outputs[0].role = OutputRole::BufferMutation;
    net.graph.outputs[0].target = Some("running".into());
    let found = net.refusals();
    let expected = [
        ("count", "the argument is no tensor"),
        ("y", "running is written to; a lattice module changes nothing"),
        ("p_state", "it is state, which the model stores"),
    ];
    assert_eq!(found.len(), 3, "{found:?}");
    for ((node, reason), (value, part)) in found.iter().zip(expected) {
        assert!(node == value && reason.contains(part), "{node}: {reason}");
    }
}
