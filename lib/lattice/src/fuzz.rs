//! The body of the fuzz target, which an ordinary test also runs over the saved corpus.
//!
//! Bytes are read as a graph, text or bytecode. After a marker they choose, instead, one operation of the table and a literal
//! for each of its parts, good or hostile, so that most of what is tried gets past the parser. Whatever is accepted must
//! freeze into a plan and read back from its own print as the same.

use crate::emit::{self, Lines, Plan};
use crate::finding::{Findings, line_column};
use crate::ir::Graph;
use crate::plan::Freezer;
use crate::print::print;
use crate::schema::{ATTRIBUTES, Class, Kind, OPS, OpDef, SCHEMA_DIGEST};
use crate::verify::verify;
use crate::{bytecode, text};
use std::fmt::Write as _;

/// What begins bytes that choose rather than spell.
const CHOICES: &[u8] = b"\x01choose";

/// Reads `bytes` and checks what must hold of any graph.
#[doc(hidden)]
pub fn graph(bytes: &[u8]) {
    match bytes.strip_prefix(CHOICES) {
        Some(choices) => {
            let text = chosen(choices);
            check(text.as_bytes());
        }
        None => {
            check(bytes);
        }
    }
}

/// Whether a graph is accepted, after the checks.
fn check(bytes: &[u8]) -> bool {
    let mut findings = Findings::default();
    let graph: Graph<'_> = match bytecode::is_bytecode(bytes) {
        true => bytecode::parse(bytes, &mut findings),
        false => text::parse(bytes, &mut findings),
    };
    let Some(model) = verify(&graph, None, &mut findings) else { return false };
    let is_right = !findings.has_errors();
    let lines = Lines::new(bytes);
    for finding in findings.into_sorted() {
        let at = finding.at.unwrap_or(0);
        assert_eq!(lines.place(at), line_column(bytes, at), "places are the same by either way");
    }
    if !is_right {
        return false;
    }
    let plan = Plan::new(&model, None);
    let mut freezer = Freezer::default();
    freezer.source(&emit::source()).expect("our own source");
    plan.arguments().for_each(|record| freezer.argument(record).expect("what is verified freezes"));
    for record in plan.ops("f0").filter(|record| record.name != "lattice.weight") {
        // Without a weights file no weight freezes, and nothing that takes one.
        if !record.operand_types.iter().any(|ty| ty.starts_with("!lattice.weight"))
            && record.operands.iter().all(|o| o.starts_with("arg"))
        {
            freezer.op(record).expect("what is verified freezes");
        }
    }
    let mut native = Vec::new();
    plan.write_native(&mut native).expect("a vector takes every byte");
    assert!(serde_json::from_slice::<serde_json::Value>(&native).is_ok(), "the payload is JSON");
    let printed = print(&model);
    let mut findings = Findings::default();
    let again = text::parse(printed.as_bytes(), &mut findings);
    let model = verify(&again, None, &mut findings).expect("what was printed reads back");
    assert!(!findings.has_errors(), "what was printed is accepted: {printed}");
    assert_eq!(print(&model), printed);
    true
}

/// Choices from bytes, the first ones where they run out.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn of<'s>(&mut self, items: &[&'s str]) -> &'s str {
        let at = usize::from(self.0.next().copied().unwrap_or(0));
        items.get(at % items.len().max(1)).copied().unwrap_or("")
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count.max(1)
    }
}

const SPARSE: &str = "!lattice.sparse_tensor<rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f32>";
const TENSORS: &[&str] = &[
    "tensor<?x4xf32>",
    "tensor<?x3xf32>",
    "tensor<?x4xi32>",
    "tensor<1xi32>",
    "tensor<?xi32>",
    "tensor<?x?xf16>",
    "tensor<*xf32>",
    "tensor<9223372036854775807x4xf32>",
    "tensor<f32>",
    "tensor<0x4xf32, 1>",
    "i32",
    "none",
];
const INTS: &[&str] =
    &["1", "0", "3", "2", "-1", "9223372036854775807", "-9223372036854775808", "2147483647", "0x7fffffff", "65536"];
const FLOATS: &[&str] =
    &["0.5", "1.0", "0.0", "-1.0", "1.0e-50", "1.0e300", "0x7FC00000", "0x7F800000", "3.4028235e38"];

/// A module of one operation, or of two that follow one another.
fn chosen(bytes: &[u8]) -> String {
    let mut choices = Choices(bytes.iter());
    let mut body = String::new();
    let mut arguments: Vec<String> = Vec::new();
    let mut sparse: Vec<String> = Vec::new();
    let make = "{stride = array<i64: 2, 2, 2>, coord_order = #lattice.coord<batch_x_y_z>}";
    let types = "(tensor<?x4xi32>, tensor<?x4xf32>, tensor<1xi32>)";
    arguments.extend(["%c: tensor<?x4xi32>".into(), "%f: tensor<?x4xf32>".into(), "%n: tensor<1xi32>".into()]);
    let _ = writeln!(body, "%s = lattice.sparse.make %c, %f, %n {make} : {types} -> {SPARSE}");
    sparse.push("%s".into());
    let mut result = ("%f".to_owned(), "tensor<?x4xf32>".to_owned());
    for number in 0..1 + choices.below(3) {
        let Some(def) = OPS.get(choices.below(OPS.len())) else { continue };
        result = operation(&mut choices, def, number, &mut body, &mut arguments, &mut sparse);
    }
    let (name, ty) = result;
    let quoted = |count: usize, word: &str| {
        (0..count).map(|at| word.replace('#', &at.to_string())).collect::<Vec<_>>().join(", ")
    };
    let count = arguments.len();
    format!(
        "module attributes {{lattice.ir_version = 2, lattice.schema_digest = \"{SCHEMA_DIGEST}\", lattice.input_names = [{}], \
         lattice.input_roles = [{}], lattice.output_names = [\"o\"], lattice.output_roles = [\"{}\"], lattice.weight_file = \
         \"weights.safetensors\"}} {{\nfunc.func @forward({}) -> {ty} {{\n{body}return {name} : {ty}\n}}\n}}\n",
        quoted(count, "\"i#\""),
        quoted(count, "\"tensor\""),
        choices.of(&["tensor", "sparse_tensor"]),
        arguments.join(", "),
    )
}

/// One operation with its weights and arguments; gives its first result.
fn operation(
    choices: &mut Choices<'_>,
    def: &OpDef,
    number: usize,
    body: &mut String,
    arguments: &mut Vec<String>,
    sparse: &mut Vec<String>,
) -> (String, String) {
    let (mut names, mut types) = (Vec::new(), Vec::new());
    for (at, value) in def.values().enumerate() {
        if value.is_optional && choices.below(2) == 0 {
            break;
        }
        match value.class {
            Class::Sparse => {
                names.push(sparse.get(choices.below(sparse.len())).cloned().unwrap_or_default());
                types.push(SPARSE.to_owned());
            }
            Class::Weight => {
                let (family, layout) = [
                    ("conv3d", "conv3d_o_xyz_i"),
                    ("linear", "linear_o_i"),
                    ("bias", "bias_c"),
                    ("channel", "channel_c"),
                ][choices.below(4)];
                let name = format!("%w{number}_{at}");
                let packing = choices.of(&["dense", "int4, group_size = 32, scale_dtype = f32, mode = affine"]);
                let _ = writeln!(
                    body,
                    "{name} = lattice.weight @w {{storage_key = \"w\", layout = #lattice.weight_layout<{layout}>, packing = \
                     #lattice.packing<{packing}>}} : <{family}, f32>"
                );
                names.push(name);
                types.push(format!("!lattice.weight<{family}, f32>"));
            }
            _ => {
                let ty = choices.of(TENSORS);
                let name = format!("%a{number}_{at}");
                arguments.push(format!("{name}: {ty}"));
                names.push(name);
                types.push(ty.to_owned());
            }
        }
    }
    let attributes: Vec<String> =
        def.attributes.iter().map(|field| format!("{} = {}", field.name, literal(choices, field.kind))).collect();
    let results: Vec<&str> = def
        .results
        .iter()
        .map(|value| match value.class {
            Class::Sparse => SPARSE,
            Class::Weight => "!lattice.weight<conv3d, f32>",
            _ => choices.of(TENSORS),
        })
        .collect();
    let made: Vec<String> = (0..results.len()).map(|at| format!("%r{number}_{at}")).collect();
    let symbol = if def.name == "weight" { "sym_name = \"s\", " } else { "" };
    let _ = writeln!(
        body,
        "{} = \"lattice.{}\"({}) {{{symbol}{}}} : ({}) -> ({})",
        made.join(", "),
        def.name,
        names.join(", "),
        attributes.join(", "),
        types.join(", "),
        results.join(", ")
    );
    let first = made.first().cloned().unwrap_or_default();
    if results.first() == Some(&SPARSE) {
        sparse.push(first.clone());
    }
    (first, results.first().copied().unwrap_or_default().to_owned())
}

fn literal(choices: &mut Choices<'_>, kind: Kind) -> String {
    match kind {
        Kind::I64Triple => format!("array<i64: {}, {}, {}>", choices.of(INTS), choices.of(INTS), choices.of(INTS)),
        Kind::F64Triple => {
            let wide = &FLOATS[..6];
            format!("array<f64: {}, {}, {}>", choices.of(wide), choices.of(wide), choices.of(wide))
        }
        Kind::F32 => format!("{} : f32", choices.of(FLOATS)),
        Kind::I64 => choices.of(INTS).to_owned(),
        Kind::Str => choices.of(&["\"canonical_f32\"", "\"exp\"", "\"w\"", "\"\""]).to_owned(),
        Kind::Own(mnemonic) => {
            let values = ATTRIBUTES.iter().find(|each| each.mnemonic == mnemonic).map_or(&[][..], |each| each.values);
            format!("#lattice.{mnemonic}<{}>", choices.of(values))
        }
    }
}
