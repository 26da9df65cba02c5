//! Nodes of later stages know their scope and location through origins, of which the stream's earlier stages tell.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use m2m_graph::{Collector, Program};
use m2m_record::Line;

/// The program of a stream of these lines.
fn collect(lines: &[&str]) -> Program {
    let mut collector = Collector::new();
    for (at, text) in lines.iter().enumerate() {
        let text = format!("{{\"record\":{text}}}\n");
        let kind = text.split('"').nth(3).unwrap();
        collector.push(&Line { number: at as u64 + 1, kind, bytes: text.as_bytes() }).unwrap();
    }
    collector.finish().unwrap()
}

const GRAPH: &str = r#""graph","graph":"STAGE","stage":"STAGE""#;

fn node(stage: &str, id: u32, result: &str, more: &str) -> String {
    let ty = r#"{"tensor":"f32","shape":[2]}"#;
    format!(
        r#""node","graph":"{stage}","stage":"{stage}","node":"{stage}:{id}","op":"aten.neg.default","args":[{{"v":"x"}}],"results":[{{"value":"{result}","type":{ty}}}]{more}"#
    )
}

/// A stage with these nodes.
fn stage(name: &str, nodes: &[String]) -> Vec<String> {
    let input =
        format!(r#""input","graph":"{name}","value":"x","role":"user_input","type":{{"tensor":"f32","shape":[2]}}"#);
    let output = format!(r#""output","graph":"{name}","outputs":[{{"value":"x","role":"user_output"}}]"#);
    let seal = format!(r#""seal","graph":"{name}","nodes":{},"sha256":"""#, nodes.len());
    [vec![GRAPH.replace("STAGE", name), input], nodes.to_vec(), vec![output, seal]].concat()
}

#[test]
fn origins_are_followed_from_stage_to_stage() {
    let original = stage(
        "original",
        &[
            node("original", 0, "a", r#","scope":"encoder.fc","loc":"model.py:7""#),
            node("original", 1, "b", r#","loc":"model.py:9""#),
            node("original", 2, "c", ""),
        ],
    );
    let quantized = stage(
        "quantized",
        &[
            node("quantized", 0, "a", r#","origins":["original:0"]"#),
            node("quantized", 1, "b", r#","origins":["x","original:2","original:1"]"#),
            node("quantized", 2, "c", r#","origins":["original:2"]"#),
        ],
    );
    let integer = stage(
        "integer",
        &[
            node("integer", 0, "a", r#","origins":["quantized:1","quantized:0"]"#),
            node("integer", 1, "b", r#","origins":["quantized:2"]"#),
        ],
    );
    let lines = [original, quantized, integer].concat();
    let program = collect(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    // The location of the first origin that has one, and the scope of the first that has one.
    assert_eq!(program.places.get("integer:0"), (Some("encoder.fc"), Some("model.py:9")));
    assert_eq!(program.places.get("integer:1"), (None, None));
    assert_eq!(program.places.get("quantized:0"), (Some("encoder.fc"), Some("model.py:7")));
    let completed = program.completed(&program.root.nodes[0]);
    assert_eq!((completed.scope.as_deref(), completed.loc.as_deref()), (Some("encoder.fc"), Some("model.py:9")));
    let filter = m2m_record::select::Predicate::new(r#".scope == "encoder.fc""#).unwrap();
    assert!(filter.selects(&completed).unwrap() && !filter.selects(&program.root.nodes[0]).unwrap());
}
