//! The JSON Schema of a stream's lines, generated from the structs.

use crate::framing::{Begin, End, Tool};
use crate::graph::{Extra, File, Graph, Guard, Input, ModuleCall, Node, Output, Pytree, Seal, Source, Symbol};
use crate::outcome::{Diagnostic, Elimination, Golden, Lowered, Module, Observation, Tensor};
use crate::plan::{PlanArgument, PlanOp, PlanOutput};
use crate::profile::{Block, Capture, Comparison, DebugValue, Event, Handle, Instruction, ModuleTime, SourceNode};
use crate::pte;
use crate::raw::{Entry, RawEvent, Run};
use crate::{Body, SCHEMA};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

/// One alternative: the struct's schema with its `record` field.
fn one<R: Body + JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    let mut schema = R::json_schema(generator).to_value();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut with_kind = serde_json::Map::new();
    with_kind.insert("record".into(), json!({ "const": R::KIND }));
    with_kind.extend(properties);
    schema["properties"] = Value::Object(with_kind);
    let mut required = vec![json!("record")];
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    schema["required"] = Value::Array(required);
    schema
}

/// The schema of any one line, as pretty-printed JSON.
pub fn json_schema() -> String {
    let mut generator = SchemaGenerator::default();
    let g = &mut generator;
    let records = vec![
        one::<Begin>(g),
        one::<Tool>(g),
        one::<Source>(g),
        one::<File>(g),
        one::<Pytree>(g),
        one::<ModuleCall>(g),
        one::<Extra>(g),
        one::<Graph>(g),
        one::<Symbol>(g),
        one::<Guard>(g),
        one::<Input>(g),
        one::<Node>(g),
        one::<Output>(g),
        one::<Seal>(g),
        one::<Elimination>(g),
        one::<Tensor>(g),
        one::<Golden>(g),
        one::<Observation>(g),
        one::<Module>(g),
        one::<Lowered>(g),
        one::<PlanArgument>(g),
        one::<PlanOp>(g),
        one::<PlanOutput>(g),
        one::<pte::Program>(g),
        one::<pte::Segment>(g),
        one::<pte::NamedData>(g),
        one::<pte::Constant>(g),
        one::<pte::Method>(g),
        one::<pte::Value>(g),
        one::<pte::Delegate>(g),
        one::<pte::Difference>(g),
        one::<Capture>(g),
        one::<Block>(g),
        one::<Event>(g),
        one::<Handle>(g),
        one::<Instruction>(g),
        one::<SourceNode>(g),
        one::<DebugValue>(g),
        one::<ModuleTime>(g),
        one::<Comparison>(g),
        one::<Run>(g),
        one::<RawEvent>(g),
        one::<Entry>(g),
        one::<Diagnostic>(g),
        one::<End>(g),
    ];
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "One line of a record stream. Record kinds that are not listed are passed through.",
        "oneOf": records,
        "$defs": generator.take_definitions(true),
    });
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
