//! Graphs made from the schema table, as text of the tests' own, and what is found in them.

#![allow(dead_code, reason = "each test program uses a part")]

use m2m_lattice::emit;
use m2m_lattice::finding::{Code, Findings, Severity};
use m2m_lattice::plan::{Freezer, Plan};
use m2m_lattice::schema::{ATTRIBUTES, Class, Field, Kind, OpDef, Rule, SCHEMA_DIGEST, Value};
use m2m_lattice::text;
use m2m_lattice::verify::verify;
use m2m_record::DType;
use std::fmt::Write as _;

pub const SPARSE: &str = "!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f32>";

/// One operation with everything that its row of the table asks for.
#[derive(Clone)]
pub struct Example {
    def: &'static OpDef,
    pub operands: Vec<String>,
    pub results: Vec<String>,
    pub attributes: Vec<(String, String)>,
}

impl Example {
    /// With the optional operand, or without.
    pub fn new(def: &'static OpDef, is_full: bool) -> Self {
        let values = def.values().filter(|value| is_full || !value.is_optional);
        Example {
            def,
            operands: values.map(|value| type_of(def, value)).collect(),
            results: def.results.iter().map(|value| type_of(def, value)).collect(),
            attributes: def.attributes.iter().map(|field| (field.name.to_owned(), literal(def, field))).collect(),
        }
    }

    /// Changes the type of a value by name.
    pub fn retype(&mut self, name: &str, change: impl Fn(&str) -> String) {
        let operand = self.def.values().position(|value| value.name == name);
        let result = self.def.results.iter().position(|value| value.name == name);
        let slot = match (operand, result) {
            (Some(at), _) => self.operands.get_mut(at),
            (_, Some(at)) => self.results.get_mut(at),
            _ => None,
        };
        let slot = slot.expect("the rule names a value of the operation");
        let changed = change(slot);
        assert_ne!(changed, *slot, "{}: {name}", self.def.name);
        *slot = changed;
    }

    pub fn set(&mut self, name: &str, literal: String) {
        match self.attributes.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = literal,
            None => self.attributes.push((name.to_owned(), literal)),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.attributes.retain(|(key, _)| key != name);
    }

    pub fn kind(&self, name: &str) -> Kind {
        self.def.attribute(name).expect("the rule names an attribute of the operation").kind
    }

    fn names(&self, prefix: &str, count: usize) -> String {
        (0..count).map(|at| format!("%{prefix}{at}")).collect::<Vec<_>>().join(", ")
    }

    fn dictionary(&self) -> String {
        self.attributes.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
    }

    /// The operation on operands `%a0`, `%a1`, … with results `%r0`, ….
    pub fn pretty(&self) -> String {
        let (given, taken) = (self.names("a", self.operands.len()), self.operands.join(", "));
        let (made, results) = (self.names("r", self.results.len()), self.results.join(", "));
        let (name, attributes) = (self.def.name, self.dictionary());
        match name {
            "weight" => format!("{made} = lattice.weight @w {{{attributes}}} : {results}"),
            "sparse.decompose" if self.operands.len() == 1 => {
                format!("{made} = lattice.{name} {given} {{{attributes}}} : {taken} -> ({results})")
            }
            "sparse.decompose" => self.generic(),
            _ => format!("{made} = lattice.{name} {given} {{{attributes}}} : ({taken}) -> {results}"),
        }
    }

    pub fn generic(&self) -> String {
        let (given, taken) = (self.names("a", self.operands.len()), self.operands.join(", "));
        let (made, results) = (self.names("r", self.results.len()), self.results.join(", "));
        let (name, mut attributes) = (self.def.name, self.dictionary());
        if name == "weight" {
            attributes = format!("sym_name = \"w\", {attributes}");
        }
        let properties = if attributes.is_empty() { String::new() } else { format!("<{{{attributes}}}> ") };
        format!("{made} = \"lattice.{name}\"({given}) {properties}: ({taken}) -> ({results})")
    }

    /// A graph of nothing but the operation, whose operands are arguments whatever their type. It returns one of them, or
    /// where there is none the result.
    pub fn bare(&self, operation: &str) -> String {
        let arguments: Vec<String> = self.operands.iter().enumerate().map(|(at, ty)| format!("%a{at}: {ty}")).collect();
        let (value, ty) = match self.operands.first() {
            Some(ty) => ("%a0", ty),
            None => ("%r0", &self.results[0]),
        };
        let arguments = arguments.join(", ");
        let body =
            format!("  func.func @forward({arguments}) -> {ty} {{\n    {operation}\n    return {value} : {ty}\n  }}\n");
        module(&body, self.operands.len(), 1)
    }

    /// A graph in which the operands come from where they come in a model. It returns all results.
    pub fn graph(&self, operation: &str) -> String {
        let mut arguments = Vec::new();
        let mut body = String::new();
        for (at, ty) in self.operands.iter().enumerate() {
            if ty.starts_with("tensor") {
                arguments.push(format!("%a{at}: {ty}"));
            } else if ty == SPARSE {
                let types = ["tensor<?x4xi32>", "tensor<?x4xf32>", "tensor<1xi32>"];
                arguments.extend(types.iter().zip(["c", "f", "n"]).map(|(ty, name)| format!("%{name}{at}: {ty}")));
                let attributes = "{stride = array<i64: 2, 2, 2>, coord_order = #lattice.coord<batch_x_y_z>}";
                let types = types.join(", ");
                let _ = writeln!(
                    body,
                    "    %a{at} = lattice.sparse.make %c{at}, %f{at}, %n{at} {attributes} : ({types}) -> {SPARSE}"
                );
            } else {
                let family =
                    ty.strip_prefix("!lattice.weight<").and_then(|rest| rest.split(',').next()).expect("a weight");
                let layout = match family {
                    "conv3d" => "conv3d_o_xyz_i",
                    "linear" => "linear_o_i",
                    "embedding" => "embedding_n_c",
                    "channel" => "channel_c",
                    _ => "bias_c",
                };
                let _ = writeln!(
                    body,
                    "    %a{at} = lattice.weight @a{at} {{storage_key = \"a{at}\", layout = #lattice.weight_layout<{layout}>, packing = \
                     #lattice.packing<dense>}} : {ty}"
                );
            }
        }
        let _ = writeln!(body, "    {operation}");
        // A weight is no result of a function; an input stands for it.
        let is_weight = self.def.name == "weight";
        if is_weight {
            arguments.push("%x: tensor<?x4xf32>".to_owned());
        }
        let names = if is_weight { "%x".to_owned() } else { self.names("r", self.results.len()) };
        let types = if is_weight { "tensor<?x4xf32>".to_owned() } else { self.results.join(", ") };
        let count = if is_weight { 1 } else { self.results.len() };
        let _ = writeln!(body, "    return {names} : {types}");
        let function = format!("  func.func @forward({}) -> ({types}) {{\n{body}  }}\n", arguments.join(", "));
        module(&function, arguments.len(), count)
    }
}

/// A module with its metadata around a function.
pub fn module(function: &str, inputs: usize, outputs: usize) -> String {
    let names = |prefix: &str, count| (0..count).map(|at| format!("\"{prefix}{at}\"")).collect::<Vec<_>>().join(", ");
    let roles = |count| vec!["\"tensor\""; count].join(", ");
    format!(
        "module attributes {{\n  lattice.ir_version = 2,\n  lattice.schema_digest = \"{SCHEMA_DIGEST}\",\n  lattice.input_names = \
         [{}],\n  lattice.input_roles = [{}],\n  lattice.output_names = [{}],\n  lattice.output_roles = [{}],\n  lattice.weight_file \
         = \"weights.safetensors\"\n}} {{\n{function}}}\n",
        names("i", inputs),
        roles(inputs),
        names("o", outputs),
        roles(outputs)
    )
}

/// A type that satisfies the rules of a value.
fn type_of(def: &OpDef, value: &Value) -> String {
    let is_about = |name: &str| name == value.name;
    match value.class {
        Class::Sparse => return SPARSE.to_owned(),
        Class::Weight => {
            let family = def.rules.iter().find_map(|rule| match rule {
                Rule::Family(name, family) if is_about(name) => Some(family.name()),
                _ => None,
            });
            return format!("!lattice.weight<{}, f32>", family.unwrap_or("conv3d"));
        }
        _ => {}
    }
    let rank = def.rules.iter().find_map(|rule| match rule {
        Rule::Rank(name, rank) if is_about(name) => Some(*rank),
        _ => None,
    });
    let mut sizes: Vec<String> =
        (0..rank.unwrap_or(2)).map(|axis| if axis == 1 { "4" } else { "?" }.to_owned()).collect();
    let mut element = if value.class == Class::Indices { "i32" } else { "f32" };
    for rule in def.rules {
        match rule {
            Rule::Size(name, axis, size) if is_about(name) => sizes[*axis] = size.to_string(),
            Rule::Element(name, DType::I32) if is_about(name) => element = "i32",
            _ => {}
        }
    }
    format!("tensor<{}x{element}>", sizes.join("x"))
}

/// A literal that satisfies the rules of an attribute.
fn literal(def: &OpDef, field: &Field) -> String {
    let words = def.rules.iter().find_map(|rule| match rule {
        Rule::Words(name, words) if *name == field.name => Some(words[0]),
        _ => None,
    });
    let value = def.rules.iter().find_map(|rule| match rule {
        Rule::OneOf(name, values) if *name == field.name => Some(values[0]),
        Rule::AtLeast(name, least) if *name == field.name => Some(*least),
        _ => None,
    });
    match field.kind {
        Kind::I64Triple if field.name == "padding" => "array<i64: 0, 0, 0>".into(),
        Kind::I64Triple if field.name == "kernel_size" => "array<i64: 1, 1, 1>".into(),
        Kind::I64Triple => "array<i64: 1, 1, 1>".into(),
        Kind::F64Triple => "array<f64: 0.5, 1.0, 2.5>".into(),
        Kind::F32 => "0.25 : f32".into(),
        Kind::I64 => value.unwrap_or(1).to_string(),
        Kind::Str => format!("\"{}\"", words.unwrap_or("w")),
        Kind::Own(mnemonic) => {
            let row = ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic).expect("the table knows its attributes");
            format!("#lattice.{mnemonic}<{}>", row.values[0])
        }
    }
}

/// The errors of a text, and the plan where there are none.
pub fn check(text: &str) -> (Vec<String>, Option<Plan>) {
    let mut findings = Findings::default();
    let graph = text::parse(text.as_bytes(), &mut findings);
    let model = verify(&graph, None, &mut findings);
    let errors: Vec<String> = findings
        .into_sorted()
        .into_iter()
        .filter(|finding| finding.severity() == Severity::Error)
        .map(|finding| format!("{}: {}", finding.code, finding.message))
        .collect();
    let plan = model.filter(|_| errors.is_empty()).map(|model| {
        let plan = emit::Plan::new(&model, Some(text.as_bytes()));
        let mut freezer = Freezer::default();
        freezer.source(&emit::source()).expect("our own source");
        plan.arguments().for_each(|record| freezer.argument(record).expect("what is verified freezes"));
        for mut record in plan.ops("f0") {
            give_weights(&mut record);
            freezer.op(record).expect("what is verified freezes");
        }
        plan.outputs().for_each(|record| freezer.output(record).expect("what is verified freezes"));
        freezer.finish().expect("what is verified freezes")
    });
    (errors, plan)
}

/// A plan without its weights file does not freeze; its stored tensors are made up.
fn give_weights(record: &mut m2m_record::PlanOp) {
    if record.name != "lattice.weight" {
        return;
    }
    let scale = match record.attrs.get("packing") {
        Some(m2m_record::Arg::Map(map)) => map.get("scale_dtype").cloned(),
        _ => None,
    };
    let dtypes = match scale {
        Some(m2m_record::Arg::Str(scale)) if scale == "f16" => vec![DType::U32, DType::F16, DType::F16],
        Some(_) => vec![DType::U32, DType::F32, DType::F32],
        None => vec![DType::F32],
    };
    let weight = |dtype| m2m_record::PlanWeight {
        name: "w".into(),
        ty: m2m_record::Type::Tensor(m2m_record::TensorType::new(dtype, vec![m2m_record::Dim::Int(1)])),
        data: m2m_record::Data::Missing,
    };
    record.weights = dtypes.into_iter().map(weight).collect();
}

/// The codes of all errors with their lines; 0 for those without a place.
pub fn codes(text: &str) -> Vec<(Code, u64)> {
    let mut findings = Findings::default();
    let graph = text::parse(text.as_bytes(), &mut findings);
    verify(&graph, None, &mut findings);
    let errors = findings.into_sorted().into_iter().filter(|finding| finding.severity() == Severity::Error);
    errors
        .map(|finding| {
            let line = finding.at.map_or(0, |at| m2m_lattice::finding::line_column(text.as_bytes(), at).0);
            (finding.code, line)
        })
        .collect()
}
