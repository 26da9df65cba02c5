//! What graphs become: shapes of decompositions, eliminations, writes, refusals.

mod support;

use m2m_record::{Arg, Data, Input, InputRole, OutputRole, Type};
use support::{Build, text, ty, v};

fn eliminations(p: &m2m_aten::Prepared) -> Vec<(String, String)> {
    p.eliminations.iter().map(|e| (e.node.clone(), e.reason.clone())).collect()
}

#[test]
fn layer_norm_is_written_out_and_keeps_its_name() {
    let mut b = Build::new(&[("x", "f32[2,3]"), ("w", "f32[3]")]);
    b.call("aten.layer_norm.default", vec![v("x"), Arg::ints([3]), v("w")], "y", "f32[2,3]");
    b.outputs(&["y"]);
    let p = b.prepare().unwrap();
    assert_eq!(
        text(&p),
        [
            "y.1 f32[2,1] = mean.dim x [1] Bool(true)",
            "y.2 f32[2,3] = sub.Tensor x y.1",
            "y.3 f32[2,3] = mul.Tensor y.2 y.2",
            "y.4 f32[2,1] = mean.dim y.3 [1] Bool(true)",
            "y.5 f32[2,1] = add.Scalar y.4 1e-5",
            "y.6 f32[2,1] = rsqrt.default y.5",
            "y.7 f32[2,3] = mul.Tensor y.2 y.6",
            "y f32[2,3] = mul.Tensor y.7 w",
        ]
    );
    assert!(p.graph.nodes.iter().all(|n| n.via.as_deref() == Some("decompose:aten.layer_norm.default")));
}

#[test]
fn half_types_compute_in_f32_and_round_once() {
    let mut b = Build::new(&[("x", "bf16[2,3]")]);
    b.call("aten.softmax.int", vec![v("x"), Arg::Int(-1)], "y", "bf16[2,3]");
    b.outputs(&["y"]);
    let lines = text(&b.prepare().unwrap());
    assert_eq!(lines.first().unwrap(), "y.1 f32[2,3] = _to_copy.default x dtype=f32");
    assert_eq!(lines.last().unwrap(), "y bf16[2,3] = _to_copy.default y.6 dtype=bf16");
    assert_eq!(lines.iter().filter(|l| l.contains("_to_copy")).count(), 2);
}

#[test]
fn operands_of_another_type_round_to_the_common_one_first() {
    let mut b = Build::new(&[("x", "f16[2]"), ("y", "i32[2]")]);
    b.call("aten.rsub.Tensor", vec![v("x"), v("y")], "z", "f16[2]");
    b.outputs(&["z"]);
    let lines = text(&b.prepare().unwrap());
    let expected = [
        "z.1 f32[2] = _to_copy.default x dtype=f32",
        "z.2 f16[2] = _to_copy.default y dtype=f16",
        "z.3 f32[2] = _to_copy.default z.2 dtype=f32",
        "z.4 f32[2] = sub.Tensor z.3 z.1",
        "z f16[2] = _to_copy.default z.4 dtype=f16",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_does_nothing_goes_with_a_proof_and_what_nothing_uses_too() {
    let mut b = Build::new(&[("x", "f32[2,3]")]);
    b.call("aten.dropout.default", vec![v("x"), Arg::from(0.5), Arg::Bool(false)], "a", "f32[2,3]");
    b.call("aten.to.dtype", vec![v("a"), Arg::DType(m2m_record::DType::F32)], "c", "f32[2,3]");
    b.call("aten.reshape.default", vec![v("c"), Arg::ints([2, 3])], "d", "f32[2,3]");
    b.call("aten.relu.default", vec![v("d")], "y", "f32[2,3]");
    b.call("aten.exp.default", vec![v("d")], "dead", "f32[2,3]");
    b.outputs(&["y"]);
    let p = b.prepare().unwrap();
    assert_eq!(text(&p), ["y f32[2,3] = relu.default x"]);
    assert_eq!(p.graph.nodes[0].via.as_deref(), Some("identity"));
    let expected =
        [("original:0", "identity"), ("original:1", "identity"), ("original:2", "identity"), ("original:4", "unused")];
    assert_eq!(eliminations(&p), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn sizes_become_expressions_and_their_nodes_go() {
    let mut b = Build::new(&[("x", "f32[s0,4]")]);
    b.symbol("s0");
    let int = |e: &str| Type::Scalar { kind: m2m_record::ScalarKind::Int, expr: Some(e.into()) };
    b.node("aten.sym_size.int", vec![v("x"), Arg::Int(0)], &[("n", int("s0"))]);
    b.node("sym.mul", vec![v("n"), Arg::Int(2)], &[("m", int("2*s0"))]);
    b.call("aten.view.default", vec![v("x"), Arg::List(vec![v("m"), Arg::Int(-1)])], "y", "f32[2*s0,2]");
    b.call("aten.transpose.int", vec![v("y"), Arg::Int(0), Arg::Int(1)], "z", "f32[2,2*s0]");
    b.call("aten.transpose.int", vec![v("z"), Arg::Int(0), Arg::Int(1)], "w", "f32[2*s0,2]");
    b.call("aten.neg.default", vec![v("w")], "r", "f32[2*s0,2]");
    b.outputs(&["r"]);
    let p = b.prepare().unwrap();
    assert_eq!(text(&p), ["y f32[2*s0,2] = view.default x [2*s0,2]", "r f32[2*s0,2] = neg.default y"]);
}

#[test]
fn a_write_to_an_input_becomes_an_output() {
    let mut b = Build::new(&[("x", "f32[2]")]);
    b.input("b_count", InputRole::Buffer, ty("f32[2]"), None);
    b.call("aten.add_.Tensor", vec![v("x"), v("b_count")], "add_", "f32[2]");
    b.call("aten.add_.Tensor", vec![v("b_count"), Arg::Int(1)], "add__1", "f32[2]");
    b.call("aten.neg.default", vec![v("x")], "y", "f32[2]");
    b.outputs(&["y", "x"]);
    let p = b.prepare().unwrap();
    let lines =
        ["add_ f32[2] = add.Tensor x b_count", "add__1 f32[2] = add.Tensor b_count 1", "y f32[2] = neg.default add_"];
    assert_eq!(text(&p), lines);
    let outputs: Vec<_> =
        p.graph.outputs.iter().map(|o| (o.role, o.value.as_deref().unwrap(), o.target.as_deref())).collect();
    let expected = [
        (OutputRole::UserInputMutation, "add_", Some("x")),
        (OutputRole::BufferMutation, "add__1", Some("b.count")),
        (OutputRole::UserOutput, "y", None),
        (OutputRole::UserOutput, "add_", None),
    ];
    assert_eq!(outputs, expected);
}

#[test]
fn a_write_through_a_view_reaches_base_and_other_views() {
    let mut b = Build::new(&[("x", "f32[3,2]")]);
    b.call("aten.clone.default", vec![v("x")], "c", "f32[3,2]");
    b.call("aten.select.int", vec![v("c"), Arg::Int(0), Arg::Int(0)], "row", "f32[2]");
    b.call("aten.t.default", vec![v("c")], "t", "f32[2,3]");
    b.call("aten.neg_.default", vec![v("row")], "neg_", "f32[2]");
    b.call("aten.exp.default", vec![v("t")], "y", "f32[2,3]");
    b.outputs(&["y", "row"]);
    let p = b.prepare().unwrap();
    assert_eq!(
        text(&p),
        [
            "row f32[2] = select.int x 0 0",
            "neg_ f32[2] = neg.default row",
            "neg_.1 f32[1,2] = view.default neg_ [1,2]",
            "neg_.2 f32[2,2] = slice.Tensor x 0 1 3 1",
            "neg_.3 f32[3,2] = cat.default [neg_.1,neg_.2] 0",
            "t.1 f32[2,3] = permute.default neg_.3 [1,0]",
            "y f32[2,3] = exp.default t.1",
        ]
    );
    assert_eq!(p.graph.nodes[5].origins, ["original:2"], "a view made anew comes from the view");
    assert_eq!(p.graph.outputs[1].value.as_deref(), Some("neg_"));
    assert!(p.graph.outputs.iter().all(|o| o.role == OutputRole::UserOutput), "the clone is no input");
}

#[test]
fn writes_that_cannot_be_followed_are_refused() {
    let mut b = Build::new(&[("x", "f32[1,2]")]);
    b.call("aten.clone.default", vec![v("x")], "c", "f32[1,2]");
    b.call("aten.expand.default", vec![v("c"), Arg::ints([3, 2])], "e", "f32[3,2]");
    b.call("aten.neg_.default", vec![v("e")], "n", "f32[3,2]");
    b.call("aten.no_such.default", vec![v("n")], "u", "f32[3,2]");
    b.call("aten.uniform_.default", vec![v("c")], "r", "f32[1,2]");
    b.outputs(&["u"]);
    let all = b.prepare().unwrap_err();
    let found: Vec<&str> = all.iter().map(|u| u.node.as_str()).collect();
    assert_eq!(found, ["original:2", "original:3", "original:4"], "every one is told in one run");
    assert!(all[0].reason.contains("expanded"), "{}", all[0].reason);
}

#[test]
fn inputs_of_the_same_bytes_are_one_memory_and_overlapping_ones_are_refused() {
    let range = |offset: u64, bytes: u64| {
        serde_json::from_str::<Data>(&format!(r#"{{"file":"f0","offset":{offset},"bytes":{bytes},"storage":0}}"#))
            .unwrap()
    };
    let build = |second: Data| {
        let mut b = Build::new(&[]);
        b.input("b_a", InputRole::Buffer, ty("f32[2]"), Some(range(0, 8)));
        b.input("c_b", InputRole::TensorConstant, ty("f32[2]"), Some(second));
        b.call("aten.neg_.default", vec![v("c_b")], "n", "f32[2]");
        b.outputs(&["b_a"]);
        b
    };
    let p = build(range(0, 8)).prepare().unwrap();
    let outputs: Vec<_> = p.graph.outputs.iter().map(|o| (o.role, o.value.as_deref())).collect();
    assert_eq!(outputs, [(OutputRole::BufferMutation, Some("n")), (OutputRole::UserOutput, Some("n"))]);
    let refused = build(range(4, 8)).prepare().unwrap_err();
    assert!(refused[0].reason.contains("shares some of its bytes"), "{}", refused[0].reason);
}

#[test]
fn autograd_regions_are_put_in_place_of_their_call() {
    let mut b = Build::new(&[("x", "f32[2]")]);
    let mut body = Build::new(&[]).0.root;
    body.id = "original/body".into();
    body.parent = Some("original".into());
    let input = Input { graph: body.id.clone(), value: "arg".into(), ..b.0.root.inputs[0].clone() };
    body.inputs.push(input);
    b.node(
        "higher_order.wrap_with_set_grad_enabled",
        vec![Arg::Bool(false), Arg::Graph(body.id.clone()), v("x")],
        &[("g", ty("f32[2]"))],
    );
    b.call("aten.neg.default", vec![v("g")], "y", "f32[2]");
    b.outputs(&["y"]);
    let mut inner = Build(b.0.clone());
    inner.0.root.nodes.clear();
    inner.call("aten.relu.default", vec![v("arg")], "x", "f32[2]");
    inner.outputs(&["x"]);
    let mut relu = inner.0.root.nodes.remove(0);
    relu.node = "original:7".into();
    relu.graph.clone_from(&body.id);
    body.nodes.push(relu);
    body.outputs = inner.0.root.outputs;
    b.0.nested.insert(body.id.clone(), body);
    let p = b.prepare().unwrap();
    assert_eq!(text(&p), ["x.1 f32[2] = relu.default x", "y f32[2] = neg.default x.1"]);
    assert_eq!(p.graph.nodes[0].origins, ["original:7"]);
    assert_eq!(eliminations(&p), [("original:0".to_owned(), "inlined".to_owned())]);
}

#[test]
fn checks_that_fail_are_refused() {
    let mut b = Build::new(&[("x", "f32[2]")]);
    let args = vec![v("x"), Arg::Null, Arg::Null, Arg::DType(m2m_record::DType::I64)];
    b.node("aten._assert_tensor_metadata.default", args, &[]);
    b.outputs(&["x"]);
    let all = b.prepare().unwrap_err();
    assert!(all[0].reason.contains("asserts that x is i64"), "{}", all[0].reason);
}

/// What dropout keeps in training is memory of its own: a write to it does not reach what it was made of.
#[test]
fn dropout_in_training_draws_uniform_numbers() {
    let mut b = Build::new(&[("x", "f32[2]")]);
    b.call("aten.dropout.default", vec![v("x"), Arg::from(0.5), Arg::Bool(true)], "a", "f32[2]");
    b.call("aten.add_.Tensor", vec![v("a"), v("x")], "c", "f32[2]");
    b.outputs(&["c", "x"]);
    let p = b.prepare_for(&["aten.lt.Scalar", "aten.rand.default", "aten.where.self"]).unwrap();
    let ops: Vec<_> = p.graph.nodes.iter().map(|n| n.op.as_str()).collect();
    let expected = ["rand.default", "lt.Scalar", "mul.Scalar", "full.default", "where.self", "add.Tensor"];
    assert_eq!(ops, expected.map(|op| format!("aten.{op}")));
    assert_eq!(p.graph.outputs[1].value.as_deref(), Some("x"));
}

#[test]
fn a_linear_layer_taken_apart_by_the_exporter_becomes_one_again() {
    let mut b = Build::new(&[("x", "f32[s0,3]"), ("w", "f32[4,3]"), ("bias", "f32[4]")]);
    b.symbol("s0");
    b.call("aten.permute.default", vec![v("w"), Arg::ints([1, 0])], "t", "f32[3,4]");
    b.call("aten.addmm.default", vec![v("bias"), v("x"), v("t")], "y", "f32[s0,4]");
    b.outputs(&["y"]);
    let p = b.prepare().unwrap();
    assert_eq!(text(&p), ["y f32[s0,4] = linear.default x w bias"]);
    assert_eq!(eliminations(&p), [("original:0".to_owned(), "unused".to_owned())]);
}

#[test]
fn lists_become_slices_one_for_each_name() {
    let mut b = Build::new(&[("x", "f32[2,s0,5]")]);
    b.symbol("s0");
    let parts = [("a", ty("f32[2,s0,2]")), ("b", ty("f32[2,s0,2]")), ("c", ty("f32[2,s0,1]"))];
    b.node("aten.split.Tensor", vec![v("x"), Arg::Int(2), Arg::Int(-1)], &parts);
    b.outputs(&["a", "c"]);
    let lines = text(&b.prepare().unwrap());
    assert_eq!(lines, ["a f32[2,s0,2] = slice.Tensor x 2 0 2 1", "c f32[2,s0,1] = slice.Tensor x 2 4 5 1"]);
}

#[test]
fn products_of_any_rank_keep_symbolic_sizes() {
    let mut b = Build::new(&[("x", "f32[s0,2,s1,8]"), ("y", "f32[2,8,s1]"), ("w", "f32[8,4]")]);
    b.symbol("s0");
    b.symbol("s1");
    b.call("aten.matmul.default", vec![v("x"), v("y")], "p", "f32[s0,2,s1,s1]");
    b.call("aten.matmul.default", vec![v("x"), v("w")], "q", "f32[s0,2,s1,4]");
    b.outputs(&["p", "q"]);
    let lines = text(&b.prepare().unwrap());
    let expected = [
        "p.1 f32[2*s0,s1,8] = view.default x [2*s0,s1,8]",
        "p.2 f32[s0,2,8,s1] = expand.default y [s0,2,8,s1]",
        "p.3 f32[2*s0,8,s1] = view.default p.2 [2*s0,8,s1]",
        "p.4 f32[2*s0,s1,s1] = bmm.default p.1 p.3",
        "p f32[s0,2,s1,s1] = view.default p.4 [s0,2,s1,s1]",
        "q.1 f32[2*s0*s1,8] = view.default x [2*s0*s1,8]",
        "q.2 f32[2*s0*s1,4] = mm.default q.1 w",
        "q f32[s0,2,s1,4] = view.default q.2 [s0,2,s1,4]",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn reading_by_strides_reads_the_owner_of_the_memory() {
    let mut b = Build::new(&[("x", "f32[2,3]")]);
    b.call("aten.t.default", vec![v("x")], "t", "f32[3,2]");
    if let Type::Tensor(t) = &mut b.0.root.nodes[0].results[0].ty {
        t.strides = Some(vec![1.into(), 3.into()]);
    }
    b.call("aten.as_strided.default", vec![v("t"), Arg::ints([2]), Arg::ints([1])], "y", "f32[2]");
    b.outputs(&["y"]);
    let lines = text(&b.prepare_for(&["aten.as_strided.default"]).unwrap());
    assert_eq!(lines, ["y.1 f32[6] = view.default x [6]", "y f32[2] = as_strided.default y.1 [2] [1] 0"]);
}

#[test]
fn reading_by_strides_needs_memory_without_gaps() {
    let mut b = Build::new(&[("x", "f32[2,3]")]);
    if let Type::Tensor(t) = &mut b.0.root.inputs[0].ty {
        t.strides = Some(vec![4.into(), 1.into()]);
    }
    b.call("aten.as_strided.default", vec![v("x"), Arg::ints([2]), Arg::ints([1])], "y", "f32[2]");
    b.outputs(&["y"]);
    let all = b.prepare().unwrap_err();
    assert!(all[0].reason.contains("gaps"), "{}", all[0].reason);
}

#[test]
fn a_rule_that_disagrees_with_the_node_is_told() {
    let mut b = Build::new(&[("x", "f32[2,3]")]);
    b.call("aten.softmax.int", vec![v("x"), Arg::Int(1)], "y", "f32[2,4]");
    b.call("aten.mse_loss.default", vec![v("x"), v("x")], "z", "f32[7]");
    b.outputs(&["y"]);
    let all = b.prepare().unwrap_err();
    assert!(all[0].reason.contains("gives f32[2,3]") && all[0].reason.contains("says f32[2,4]"), "{}", all[0].reason);
    assert!(all[1].reason.contains("gives f32[]"), "{}", all[1].reason);
}

#[test]
fn an_effect_stands_for_itself_and_its_token_is_the_one_before() {
    let mut b = Build::new(&[("a", "f32[2,3,3]"), ("info", "i32[2]")]);
    b.input("t", InputRole::Token, Type::Token, None);
    let check = Arg::Op("aten._linalg_check_errors.default".into());
    let args = vec![v("t"), check, v("info"), Arg::from("linalg.inv")];
    b.node("higher_order.with_effects", args, &[("t1", Type::Token)]);
    b.0.root.nodes[0].kwargs.insert("is_matrix".into(), Arg::Bool(false));
    let args = vec![v("t1"), Arg::Op("aten.neg.default".into()), v("a")];
    b.node("higher_order.with_effects", args, &[("t2", Type::Token), ("y", ty("f32[2,3,3]"))]);
    b.outputs(&["t2", "y"]);
    b.0.root.outputs[0].role = OutputRole::Token;
    let p = b.prepare_for(&["aten._assert_async.msg", "aten.all.default", "aten.eq.Scalar", "aten.eq.Tensor"]).unwrap();
    let lines = text(&p);
    assert_eq!(lines[1..2], ["_linalg_check_errors.2 bool[] = all.default _linalg_check_errors.1"]);
    assert!(lines[2].ends_with(&format!("_assert_async.msg _linalg_check_errors.2 {:?}", p.graph.nodes[2].args[1])));
    assert_eq!(lines[3..], ["y f32[2,3,3] = neg.default a"]);
    assert_eq!(p.graph.outputs[0].value.as_deref(), Some("t"));
}
