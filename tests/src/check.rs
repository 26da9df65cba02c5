//! What must be true of a model's folder: its program is captured as `expected.json` says, and its module, executed
//! with each set of inputs, gives the outputs beside them. Serves the fixtures and any folder of that form.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::tools;

/// An operator and the types of its results, flat, spelled `f32[2,?]`, `int`, `none`.
pub type Node = (String, Vec<String>);

/// What `expected.json` says.
pub struct Expected {
    /// The top graph's nodes.
    pub nodes: Vec<Node>,
    /// Role, target, value and type of each input; only where the file tells.
    pub signature: Vec<[String; 4]>,
    /// How far an element may be off, relatively and absolutely.
    pub tolerance: (f64, f64),
    /// The input sets.
    pub sets: Vec<Set>,
}

/// One set of inputs.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// What follows `inputs` and `outputs` in its files' names: nothing, `_2`, `_3`.
    pub suffix: String,
    /// The inputs that are no tensors, as `in_N` and value.
    pub scalars: Vec<(String, String)>,
}

impl Expected {
    /// Reads `expected.json` of a folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("expected.json");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let body: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let number = |key: &str| body[key].as_f64().or(body["tolerance"][key].as_f64()).ok_or(format!("no {key}"));
        let list = |key: &str| body[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let sets = (1..).zip(list("sets")).map(|(number, body)| set(number, body));
        Ok(Expected {
            nodes: list("nodes").iter().map(node).collect(),
            signature: list("signature").iter().map(|row| [0, 1, 2, 3].map(|index| word(&row[index]))).collect(),
            tolerance: (number("rtol")?, number("atol")?),
            sets: sets.collect(),
        })
    }

    /// Compares with the `original` graph of a stream; the error lists every difference.
    pub fn compare(&self, stream: &[u8]) -> Result<(), String> {
        let (mut nodes, mut inputs) = (Vec::new(), Vec::new());
        for line in stream.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: Value = serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}"))?;
            if record["graph"] != "original" {
                continue;
            }
            if record["record"] == "node" {
                let results = record["results"].as_array().map(Vec::as_slice).unwrap_or_default();
                nodes.push((word(&record["op"]), results.iter().map(|result| record_type(&result["type"])).collect()));
            } else if record["record"] == "input" {
                let kind = record_type(&record["type"]);
                inputs.push([word(&record["role"]), word(&record["target"]), word(&record["value"]), kind]);
            }
        }
        let mut differences = differing("node", &self.nodes, &nodes);
        if !self.signature.is_empty() {
            // A constant's type is that of its literal, which the record holds in place of a type.
            let constants = |rows: &[[String; 4]]| -> Vec<[String; 4]> {
                let plain = |row: &[String; 4]| [row[0].clone(), row[1].clone(), row[2].clone(), String::new()];
                rows.iter().map(|row| if row[0] == "constant_input" { plain(row) } else { row.clone() }).collect()
            };
            differences += &differing("input", &constants(&self.signature), &constants(&inputs));
        }
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }
}

/// An input set of either form of the file.
fn set(number: usize, body: &Value) -> Set {
    let suffix = if number == 1 { String::new() } else { format!("_{number}") };
    let inputs = body["inputs"].as_array().or(body["in"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let scalars = inputs.iter().enumerate().filter_map(|(index, input)| {
        let value = input.get("value").or(input.get("python"))?;
        (value.is_number() || value.is_boolean()).then(|| (format!("in_{index}"), value.to_string()))
    });
    Set { suffix, scalars: scalars.collect() }
}

/// The user inputs of a stream that are scalars to be given, as `in_N`. Constant inputs take a number, too.
fn scalar_inputs(stream: &[u8]) -> Vec<String> {
    let records = stream.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let given = records.filter(|record| record["graph"] == "original" && record["record"] == "input");
    let users = given.filter(|record| matches!(record["role"].as_str(), Some("user_input" | "constant_input")));
    let numbered =
        users.enumerate().filter(|(_, input)| input["role"] == "user_input" && !input["type"]["scalar"].is_null());
    numbered.map(|(index, _)| format!("in_{index}")).collect()
}

/// The differences between two lists, a line each.
fn differing<T: PartialEq + std::fmt::Debug>(what: &str, expected: &[T], found: &[T]) -> String {
    let mut text = String::new();
    if expected.len() != found.len() {
        let _ = writeln!(text, "{} {what}s expected, {} found", expected.len(), found.len());
    }
    for (index, (left, right)) in expected.iter().zip(found).enumerate().filter(|(_, (left, right))| left != right) {
        let _ = writeln!(text, "{what} {index}: expected {left:?}\n{what} {index}:    found {right:?}");
    }
    text
}

/// The text of a string, and nothing for null.
fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A node of either form of the file: `[op, type or types]`, or `{target, outputs}` in the export schema's words.
fn node(value: &Value) -> Node {
    if let Some(row) = value.as_array() {
        let mut types = Vec::new();
        // A node whose only result is none has no result; one of several that is none is absent.
        match row.get(1) {
            Some(Value::String(text)) if text == "none" || text == "NoneType" => {}
            other => flatten(other.unwrap_or(&Value::Null), &mut types),
        }
        return (word(&row[0]), types);
    }
    let target = word(&value["target"]);
    let symbolic = ["_operator.", "math.", "torch.sym_"].iter().find_map(|prefix| target.strip_prefix(prefix));
    let op = match symbolic {
        Some(name) => format!("sym.{}", name.trim_end_matches('_')),
        None => target.trim_start_matches("torch.ops.").to_owned(),
    };
    let mut types = Vec::new();
    for output in value["outputs"].as_array().map(Vec::as_slice).unwrap_or_default() {
        match output.as_array() {
            Some(elements) => types.extend(elements.iter().map(schema_type)),
            None => types.push(schema_type(output)),
        }
    }
    (op, types)
}

fn flatten(value: &Value, types: &mut Vec<String>) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| flatten(element, types)),
        Value::String(text) => types.push(text.replace("NoneType", "none")),
        _ => {}
    }
}

/// The type of an output as the samples describe it.
fn schema_type(output: &Value) -> String {
    if let Some(dtype) = output["dtype"].as_str() {
        return tensor_type(dtype, &output["shape"]);
    }
    let key = output.as_object().and_then(|fields| fields.keys().next()).map_or("", String::as_str);
    key.trim_start_matches("as_sym_").trim_start_matches("as_").to_owned()
}

/// The type of a record.
fn record_type(value: &Value) -> String {
    match value["tensor"].as_str() {
        Some(dtype) => tensor_type(dtype, &value["shape"]),
        None if value["none"] == true => "none".into(),
        None if value["token"] == true => "token".into(),
        None => word(&value["scalar"]),
    }
}

fn tensor_type(dtype: &str, shape: &Value) -> String {
    let dims = shape.as_array().map(Vec::as_slice).unwrap_or_default();
    let dims: Vec<String> = dims.iter().map(|dim| dim.as_u64().map_or("?".into(), |size| size.to_string())).collect();
    format!("{dtype}[{}]", dims.join(","))
}

/// How far a model came.
#[derive(Debug, PartialEq, Eq)]
pub enum Reached {
    /// Executed, and equal within the tolerance.
    Equal,
    /// `m2m-lower` answered no, with these diagnostics.
    Unsupported(String),
}

/// Lowers the captured stream and executes the module with an input set.
pub fn execute(stream: &[u8], name: &str, expected: &Expected, set: &Set, work: &Path) -> Result<Reached, String> {
    let lowered = tools::run::<&str>("m2m-lower", &[], work, stream).map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&lowered.stderr).into_owned();
    match lowered.status.code() {
        Some(0) => {}
        Some(1) if !said.is_empty() => return Ok(Reached::Unsupported(said)),
        _ => return Err(format!("m2m-lower: {}\n{said}", lowered.status)),
    }
    let (rtol, atol) = expected.tolerance;
    let suffix = &set.suffix;
    let mut args = vec![
        "--engine".into(),
        "mlir".into(),
        "--inputs".into(),
        format!("fixtures/{name}/inputs{suffix}.safetensors"),
        "--compare".into(),
        format!("fixtures/{name}/outputs{suffix}.safetensors"),
        format!("--rtol={rtol}"),
        format!("--atol={atol}"),
    ];
    let wanted = scalar_inputs(stream);
    for (key, value) in set.scalars.iter().filter(|(key, _)| wanted.contains(key)) {
        args.push(format!("--scalar={key}={value}"));
    }
    let run = tools::run("m2m-run", &args, work, &lowered.stdout).map_err(|error| error.to_string())?;
    if run.status.success() {
        return Ok(Reached::Equal);
    }
    let told = [&run.stdout[..], &run.stderr].concat();
    Err(format!("m2m-run {}: {}\n{}", args.join(" "), run.status, String::from_utf8_lossy(&told)))
}
