//! Makes a deep program of a shallow one: copies whose hidden state goes from one to the next, as the layers of a
//! decoder do. Each copy has weights of its own; inputs after the first are shared.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::Error;

/// The lists that grow.
#[derive(Default)]
struct Lists {
    nodes: Vec<Value>,
    inputs: Vec<Value>,
    specs: Vec<Value>,
    values: serde_json::Map<String, Value>,
}

/// Chains `times` copies of a program of static shapes, whose first user input and only output have one type.
pub fn repeat(text: &str, times: usize) -> Result<String, Error> {
    let mut program: Value = serde_json::from_str(text)?;
    let module = program["graph_module"].clone();
    let (graph, signature) = (&module["graph"], &module["signature"]);
    let list = |value: &Value, name: &str| value.as_array().cloned().ok_or_else(|| Error::Missing(name.into()));
    let specs = list(&signature["input_specs"], "signature.input_specs")?;
    let inputs = list(&graph["inputs"], "graph.inputs")?;
    let nodes = list(&graph["nodes"], "graph.nodes")?;
    let output = string(&graph["outputs"][0]["as_tensor"]["name"], "tensor as its output")?;
    let state = |spec: &Value| spec.get("user_input").is_none();
    let user = specs.iter().zip(&inputs).filter(|(spec, _)| !state(spec));
    let user: Vec<String> =
        user.map(|(_, input)| string(&input["as_tensor"]["name"], "tensor as its input")).collect::<Result<_, _>>()?;
    let first = user.first().ok_or_else(|| Error::Missing("input".into()))?;

    let mut lists = Lists::default();
    let mut hidden = first.clone();
    for copy in 0..times {
        let mut names: HashMap<&str, String> = user.iter().map(|name| (name.as_str(), name.clone())).collect();
        names.insert(first, hidden);
        let values = graph["tensor_values"].as_object().ok_or_else(|| Error::Missing("graph.tensor_values".into()))?;
        for (name, meta) in values {
            let new = names.entry(name).or_insert_with(|| format!("{name}_c{copy}")).clone();
            lists.values.entry(new).or_insert_with(|| meta.clone());
        }
        for (spec, input) in specs.iter().zip(&inputs).filter(|(spec, _)| state(spec)) {
            let mut spec = renamed(spec, &names);
            for (field, text) in
                spec.as_object_mut().into_iter().flatten().flat_map(|(_, body)| body.as_object_mut()).flatten()
            {
                if let (true, Value::String(text)) = (field.ends_with("_name"), text) {
                    *text = format!("layers.{copy}.{text}");
                }
            }
            lists.specs.push(spec);
            lists.inputs.push(renamed(input, &names));
        }
        for node in &nodes {
            let mut node = renamed(node, &names);
            node["name"] = format!("{}_c{copy}", string(&node["name"], "name of a node")?).into();
            lists.nodes.push(node);
        }
        hidden = names.remove(output.as_str()).unwrap_or(output.clone());
    }
    for (spec, input) in specs.iter().zip(&inputs).filter(|(spec, _)| !state(spec)) {
        lists.specs.push(spec.clone());
        lists.inputs.push(input.clone());
    }
    let last = HashMap::from([(output.as_str(), hidden)]);
    let module = &mut program["graph_module"];
    module["graph"]["outputs"] = renamed(&graph["outputs"], &last);
    module["signature"]["output_specs"] = renamed(&signature["output_specs"], &last);
    module["graph"]["inputs"] = lists.inputs.into();
    module["graph"]["nodes"] = lists.nodes.into();
    module["graph"]["tensor_values"] = lists.values.into();
    module["signature"]["input_specs"] = lists.specs.into();
    Ok(program.to_string())
}

fn string(value: &Value, what: &str) -> Result<String, Error> {
    value.as_str().map(str::to_owned).ok_or_else(|| Error::Missing(what.into()))
}

/// The same JSON with its tensors called by their new names.
fn renamed(value: &Value, names: &HashMap<&str, String>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| renamed(item, names)).collect(),
        // `{"name": …}` alone is a tensor; nodes and named arguments have more fields.
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("name") => {
            let new = value["name"].as_str().and_then(|name| names.get(name));
            new.map_or_else(|| value.clone(), |new| serde_json::json!({ "name": new }))
        }
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(field, body)| (field.clone(), renamed(body, names))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn copies_are_chained_and_have_weights_of_their_own() -> Result<(), Box<dyn std::error::Error>> {
        let tensor = |name: &str| json!({"as_tensor": {"name": name}});
        let program = json!({"graph_module": {
            "graph": {
                "inputs": [tensor("p_w"), tensor("x"), tensor("mask")],
                "nodes": [{"name": "add", "inputs": [
                    {"name": "x", "arg": tensor("x"), "kind": 1}, {"name": "w", "arg": tensor("p_w"), "kind": 1},
                    {"name": "mask", "arg": tensor("mask"), "kind": 1},
                ], "outputs": [tensor("y")]}],
                "outputs": [tensor("y")],
                "tensor_values": {"p_w": {}, "x": {}, "mask": {}, "y": {}},
            },
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                    {"user_input": {"arg": tensor("x")}}, {"user_input": {"arg": tensor("mask")}},
                ],
                "output_specs": [{"user_output": {"arg": tensor("y")}}],
            },
        }});
        let made: Value = serde_json::from_str(&super::repeat(&program.to_string(), 2)?)?;
        let (graph, signature) = (&made["graph_module"]["graph"], &made["graph_module"]["signature"]);
        let args = |node: usize| -> Vec<&Value> {
            (0..3).map(|at| &graph["nodes"][node]["inputs"][at]["arg"]["as_tensor"]["name"]).collect()
        };
        assert_eq!(args(0), ["x", "p_w_c0", "mask"]);
        assert_eq!(args(1), ["y_c0", "p_w_c1", "mask"]);
        assert_eq!(graph["inputs"], json!([tensor("p_w_c0"), tensor("p_w_c1"), tensor("x"), tensor("mask")]));
        assert_eq!(signature["input_specs"][1]["parameter"]["parameter_name"], "layers.1.w");
        assert_eq!(signature["output_specs"][0]["user_output"]["arg"], tensor("y_c1"));
        Ok(())
    }
}
