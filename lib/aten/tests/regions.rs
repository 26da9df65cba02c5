//! Graphs that nodes call: prepared as the root is, with every node accounted for; and regions put in their place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use m2m_aten::{Prepared, Unsupported, prepare};
use m2m_graph::{Graph, Program, verify};

const TARGET: &[&str] = &[
    "aten._assert_async.msg",
    "aten._to_copy.default",
    "aten.add.Tensor",
    "aten.cat.default",
    "aten.linear.default",
    "aten.relu.default",
    "aten.sub.Tensor",
    "higher_order.cond",
];

/// A program from the lines of its graphs, nested ones first; `graph ID` opens one.
fn program(text: &str) -> Program {
    let mut program = Program { stages: vec!["original".into()], ..Program::default() };
    let mut graphs: Vec<Graph> = Vec::new();
    let mut nodes = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (kind, rest) = line.split_once(' ').unwrap();
        if kind == "graph" {
            let parent = rest.rsplit_once('/').map(|(parent, _)| parent.to_owned());
            graphs.push(Graph { id: rest.into(), stage: "original".into(), parent, ..Graph::default() });
            continue;
        }
        let graph = graphs.last_mut().unwrap();
        let head = match kind {
            "node" => {
                nodes += 1;
                format!(r#""graph":"{}","stage":"original","node":"original:{}","#, graph.id, nodes - 1)
            }
            "input" => format!(r#""graph":"{}","role":"user_input","#, graph.id),
            _ => format!(r#""graph":"{}","#, graph.id),
        };
        let line = format!(r#"{{"record":"{kind}",{head}{rest}}}"#);
        graph.push_line(kind, line.as_bytes()).unwrap();
    }
    program.root = graphs.pop().unwrap();
    program.nested = graphs.into_iter().map(|graph| (graph.id.clone(), graph)).collect();
    verify(&program).unwrap();
    program
}

/// Prepares a program, and checks that all its nodes are accounted for once.
fn prepared(program: &Program) -> Result<Prepared, Vec<Unsupported>> {
    let prepared = prepare(program, &|op| TARGET.contains(&op))?;
    let nested = prepared.nested.iter().map(|graph| (graph.id.clone(), graph.clone())).collect();
    let derived = Program { root: prepared.graph.clone(), nested, ..Program::default() };
    verify(&derived).unwrap();
    let new = || prepared.nested.iter().chain([&prepared.graph]).flat_map(|graph| &graph.nodes);
    for node in program.nested.values().chain([&program.root]).flat_map(|graph| &graph.nodes) {
        let successor = usize::from(new().any(|n| n.origins.contains(&node.node)));
        let gone = prepared.eliminations.iter().filter(|e| e.node == node.node).count();
        assert_eq!(successor + gone, 1, "{} {}", node.node, node.op);
    }
    for (k, node) in new().enumerate() {
        assert_eq!(node.node, format!("prepared:{k}"));
    }
    Ok(prepared)
}

const F: &str = r#"{"tensor":"f32","shape":[2]}"#;

fn tensor(name: &str) -> String {
    format!(r#"{{"value":"{name}","type":{F}}}"#)
}

/// A condition on `x`, whose first graph has these lines.
fn branch(yes: &str, output: &str) -> String {
    format!(
        r#"
        graph original/yes
        input "value":"x","type":{F}
        {yes}
        output "outputs":[{{"value":"{output}","role":"user_output"}}]
        graph original/no
        input "value":"x","type":{F}
        node "op":"aten.dropout.default","args":[{{"v":"x"}},0.5,false],"results":[{same}]
        output "outputs":[{{"value":"same","role":"user_output"}}]
        graph original
        input "value":"p","type":{{"tensor":"bool","shape":[]}}
        input "value":"x","type":{F}
        node "op":"higher_order.cond","args":[{{"v":"p"}},{{"graph":"original/yes"}},{{"graph":"original/no"}},[{{"v":"x"}}]],"results":[{got}]
        "#,
        same = tensor("same"),
        got = tensor("got"),
    )
}

#[test]
fn called_graphs_are_functional_and_decomposed_with_ids_of_the_new_stage() {
    let writes = format!(
        r#"node "op":"aten.relu.default","args":[{{"v":"x"}}],"results":[{}]
        node "op":"aten.add_.Tensor","args":[{{"v":"a"}},{{"v":"x"}}],"results":[{}]"#,
        tensor("a"),
        tensor("b")
    );
    let text = branch(&writes, "b") + r#"output "outputs":[{"value":"got","role":"user_output"}]"#;
    let prepared = prepared(&program(&text)).unwrap();
    let ids: Vec<_> = prepared.nested.iter().map(|g| (g.id.as_str(), g.parent.as_deref())).collect();
    assert_eq!(ids, [("prepared/yes", Some("prepared")), ("prepared/no", Some("prepared"))]);
    let ops: Vec<_> = prepared.nested[0].nodes.iter().map(|n| n.op.as_str()).collect();
    assert_eq!(ops, ["aten.relu.default", "aten.add.Tensor"]);
    assert!(prepared.nested[1].nodes.is_empty());
    assert_eq!(prepared.nested[1].outputs[0].value.as_deref(), Some("x"));
    let call = &prepared.graph.nodes[0];
    assert_eq!((call.op.as_str(), call.via.as_deref()), ("higher_order.cond", Some("identity")));
    assert!(format!("{:?}", call.args).contains("prepared/yes"));
}

#[test]
fn a_graph_that_nothing_calls_any_more_goes_with_all_its_nodes() {
    let yes = format!(r#"node "op":"aten.relu.default","args":[{{"v":"x"}}],"results":[{}]"#, tensor("a"));
    let text = branch(&yes, "a") + r#"output "outputs":[{"value":"x","role":"user_output"}]"#;
    let prepared = prepared(&program(&text)).unwrap();
    assert!(prepared.nested.is_empty() && prepared.graph.nodes.is_empty());
    let gone: Vec<_> = prepared.eliminations.iter().map(|e| (e.node.as_str(), e.reason.as_str())).collect();
    assert_eq!(gone, [("original:2", "unused"), ("original:0", "unused"), ("original:1", "identity")]);
}

#[test]
fn a_call_stays_for_what_its_graphs_check() {
    let checks = r#"node "op":"aten._assert_async.msg","args":[{"v":"x"},"no"],"results":[],"returns":[]"#;
    let text = branch(checks, "x") + r#"output "outputs":[{"value":"x","role":"user_output"}]"#;
    let prepared = prepared(&program(&text)).unwrap();
    assert_eq!((prepared.nested.len(), prepared.graph.nodes.len()), (2, 1));
}

#[test]
fn what_a_called_graph_has_no_rule_for_is_told_by_its_own_node() {
    let yes = format!(r#"node "op":"mine.custom.default","args":[{{"v":"x"}}],"results":[{}]"#, tensor("a"));
    let text = branch(&yes, "a") + r#"output "outputs":[{"value":"got","role":"user_output"}]"#;
    let all = prepared(&program(&text)).unwrap_err();
    let named: Vec<_> = all.iter().map(|u| (u.node.as_str(), u.op.as_str())).collect();
    assert_eq!(named, [("original:0", "mine.custom.default")]);
}

#[test]
fn a_called_graph_may_not_write_to_its_operands() {
    let yes = format!(r#"node "op":"aten.add_.Tensor","args":[{{"v":"x"}},{{"v":"x"}}],"results":[{}]"#, tensor("a"));
    let text = branch(&yes, "a") + r#"output "outputs":[{"value":"got","role":"user_output"}]"#;
    let all = prepared(&program(&text)).unwrap_err();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].reason, "graph original/yes writes to its operand x");
}

/// A region under autocast of a device, with a linear and a join.
fn region(device: &str, more: &str) -> String {
    let matrix = r#"{"tensor":"f32","shape":[2,2]}"#;
    format!(
        r#"
        graph original/body
        input "value":"x","type":{matrix}
        node "op":"aten.linear.default","args":[{{"v":"x"}},{{"v":"x"}}],"results":[{{"value":"y","type":{{"tensor":"bf16","shape":[2,2]{more}}}}}]
        node "op":"aten.cat.default","args":[[{{"v":"y"}},{{"v":"x"}}]],"results":[{{"value":"z","type":{{"tensor":"f32","shape":[4,2]}}}}]
        output "outputs":[{{"value":"z","role":"user_output"}}]
        graph original
        input "value":"x","type":{matrix}
        node "op":"higher_order.wrap_with_autocast","args":["{device}",{{"dtype":"bf16"}},true,true,{{"graph":"original/body"}},{{"v":"x"}}],"results":[{{"value":"got","type":{{"tensor":"f32","shape":[4,2]}}}}]
        output "outputs":[{{"value":"got","role":"user_output"}}]
        "#
    )
}

#[test]
fn casts_of_autocast_are_nodes_with_the_origin_of_what_they_feed() {
    let prepared = prepared(&program(&region("cpu", ""))).unwrap();
    let nodes = prepared.graph.nodes.iter();
    let told: Vec<_> = nodes.map(|n| (n.op.as_str(), n.origins[0].as_str(), n.via.as_deref().unwrap())).collect();
    let expected = [
        ("aten._to_copy.default", "original:0", "autocast"),
        ("aten.linear.default", "original:0", "identity"),
        ("aten._to_copy.default", "original:1", "autocast"),
        ("aten.cat.default", "original:1", "identity"),
    ];
    assert_eq!(told, expected);
    assert_eq!(prepared.graph.outputs[0].value.as_deref(), Some("z"));
    assert!(prepared.eliminations[0].proof.contains("its casts are nodes of their own"));
}

#[test]
fn autocast_of_another_device_matters_where_that_device_is_used() {
    let all = prepared(&program(&region("cuda", r#","device":"cuda:0""#))).unwrap_err();
    assert!(all.iter().any(|u| u.op == "higher_order.wrap_with_autocast"), "{all:?}");
}
