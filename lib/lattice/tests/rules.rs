//! Every operation and every rule of the schema table: a graph that is right is accepted, and one that breaks a rule is
//! refused with the rule's code, at the operation.

#![allow(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

mod common;

use common::{Example, check, codes, module};
use m2m_lattice::finding::Code;
use m2m_lattice::schema::{Class, GROUP_SIZES, Kind, OPS, OpDef, Rule};

#[test]
fn every_operation_is_accepted_in_both_forms() {
    for def in OPS {
        for is_full in [false, true] {
            let example = Example::new(def, is_full);
            for text in [example.pretty(), example.generic()] {
                let text = example.graph(&text);
                let (errors, plan) = check(&text);
                assert_eq!(errors, [] as [String; 0], "{text}");
                let plan = plan.unwrap();
                assert!(plan.ops.iter().any(|op| op.op == def.op), "{}", def.name);
            }
        }
    }
}

/// The first error of a code in a graph whose operation of interest is the first of the body, with its line.
fn refused(def: &'static OpDef, example: &Example, code: Code) {
    for text in [example.pretty(), example.generic()] {
        let text = example.bare(&text);
        let found = codes(&text);
        let line = text.lines().position(|line| line.trim_start().starts_with("%r0")).unwrap() as u64 + 1;
        let what = format!("{}: {code} expected on line {line}, found {found:?} in\n{text}", def.name);
        assert!(found.contains(&(code, line)), "{what}");
    }
}

#[test]
fn every_rule_refuses_what_breaks_it() {
    for def in OPS {
        for rule in def.rules {
            let mut example = Example::new(def, true);
            let code = break_rule(&mut example, rule);
            refused(def, &example, code);
        }
    }
}

/// Changes an example so that it breaks a rule, and gives the code.
fn break_rule(example: &mut Example, rule: &Rule) -> Code {
    match *rule {
        Rule::Convention(name) => {
            example.retype(name, |ty| ty.replace("rank = 3", "rank = 2"));
            Code::Convention
        }
        Rule::SameConvention(_, name) => {
            example.retype(name, |ty| ty.replace("row_channel", "channel_row"));
            Code::SameConvention
        }
        Rule::Family(name, family) => {
            let other = if family.name() == "linear" { "bias" } else { "linear" };
            example.retype(name, |ty| ty.replace(family.name(), other));
            Code::WeightFamily
        }
        Rule::Rank(name, _) => {
            example.retype(name, |ty| ty.replacen("tensor<", "tensor<?x7x", 1));
            Code::Rank
        }
        Rule::Size(name, axis, size) => {
            let from = if axis == 0 { format!("<{size}x") } else { format!("x{size}x") };
            let to = from.replace(&size.to_string(), "?");
            example.retype(name, |ty| ty.replacen(&from, &to, 1));
            Code::AxisSize
        }
        Rule::SameRows(a, b) => {
            example.retype(a, |ty| ty.replacen("?x", "5x", 1));
            example.retype(b, |ty| ty.replacen("?x", "6x", 1));
            Code::SameRows
        }
        Rule::SameElement(_, name) => {
            example.retype(name, |ty| ty.replace("f32", "f16"));
            Code::SameElement
        }
        Rule::Element(name, _) => {
            example.retype(name, |ty| ty.replace("f32", "f64").replace("i32", "i64"));
            Code::Element
        }
        Rule::Positive(name) => {
            example.set(name, number(example.kind(name), "0", "0.0"));
            Code::Positive
        }
        Rule::NonNegative(name) => {
            example.set(name, number(example.kind(name), "-1", "-1.0"));
            Code::NonNegative
        }
        Rule::Finite(name) => {
            let nan = if example.kind(name) == Kind::F32 { "0x7FC00000" } else { "0x7FF0000000000000" };
            example.set(name, number(example.kind(name), "0", nan));
            Code::Finite
        }
        Rule::Odd(name) => {
            example.set(name, "array<i64: 3, 2, 3>".into());
            Code::Odd
        }
        Rule::AtLeast(name, least) => {
            example.set(name, (least - 1).to_string());
            Code::Value
        }
        Rule::OneOf(name, values) => {
            example.set(name, (values.iter().max().unwrap() + 1).to_string());
            Code::Value
        }
        Rule::Words(name, _) => {
            example.set(name, "\"other\"".into());
            Code::Value
        }
        Rule::NonEmpty(name) => {
            example.set(name, "\"\"".into());
            Code::EmptyString
        }
        Rule::Absent(name) => {
            example.set(name, "array<i64: 1, 1, 1>".into());
            Code::ForbiddenAttribute
        }
        Rule::CoordOrder => {
            example.set("coord_order", "#lattice.coord<x_y_z_batch>".into());
            Code::CoordOrder
        }
        Rule::Storage => {
            example.set("layout", "#lattice.weight_layout<linear_o_i>".into());
            Code::WeightLayout
        }
    }
}

/// A literal of an attribute that holds numbers.
fn number(kind: Kind, int: &str, float: &str) -> String {
    match kind {
        Kind::I64Triple => format!("array<i64: 1, {int}, 1>"),
        Kind::F64Triple => format!("array<f64: 1.0, 1.0, {float}>"),
        Kind::F32 => format!("{float} : f32"),
        other => panic!("{other:?} holds no numbers"),
    }
}

#[test]
fn not_a_number_is_no_number_anywhere() {
    for def in OPS {
        for field in def.attributes.iter().filter(|field| matches!(field.kind, Kind::F32 | Kind::F64Triple)) {
            let wide = ["0x7FF8000000000000", "0x7FF0000000000000", "1.0e300"];
            let narrow = ["0x7FC00000", "0x7F800000", "1.0e300"];
            for bits in if field.kind == Kind::F32 { narrow } else { wide } {
                let mut example = Example::new(def, true);
                example.set(field.name, number(field.kind, "0", bits));
                let found = codes(&example.bare(&example.pretty()));
                let expected = [Code::Positive, Code::NonNegative, Code::Finite];
                assert!(found.iter().any(|(code, _)| expected.contains(code)), "{}: {} {bits}", def.name, field.name);
            }
        }
    }
}

#[test]
fn attributes_are_required_and_of_their_kind() {
    for def in OPS {
        for field in def.attributes {
            let mut example = Example::new(def, true);
            example.remove(field.name);
            refused(def, &example, Code::MissingAttribute);
            let mut example = Example::new(def, true);
            example.set(field.name, "unit".into());
            refused(def, &example, Code::AttributeKind);
            if let Kind::Own(mnemonic) = field.kind {
                if mnemonic == "packing" {
                    continue;
                }
                let mut example = Example::new(def, true);
                example.set(field.name, format!("#lattice.{mnemonic}<\"no such word\">"));
                refused(def, &example, Code::Keyword);
            }
        }
        let mut example = Example::new(def, true);
        example.set("extra", "1 : i8".into());
        refused(def, &example, Code::UnknownAttribute);
    }
}

#[test]
fn operands_and_results_are_counted_and_classed() {
    for def in OPS {
        if def.values().count() > 0 {
            let mut example = Example::new(def, true);
            let first = example.operands[0].clone();
            example.operands.push(first);
            refused(def, &example, Code::OperandCount);
        }
        for (at, value) in def.values().enumerate() {
            let mut example = Example::new(def, true);
            example.operands[at] = match value.class {
                Class::Weight => "tensor<?x4xf32>".into(),
                _ => "!lattice.weight<conv3d, f32>".into(),
            };
            refused(def, &example, Code::OperandClass);
            if matches!(value.class, Class::Tensor | Class::Indices) {
                example.operands[at] =
                    if value.class == Class::Tensor { "tensor<*xf32>" } else { "tensor<*xi32>" }.into();
                refused(def, &example, Code::OperandClass);
            }
        }
        for (at, value) in def.results.iter().enumerate() {
            let mut example = Example::new(def, true);
            example.results[at] = if value.class == Class::Sparse { "tensor<?x4xf32>" } else { "i32" }.into();
            refused(def, &example, Code::ResultClass);
        }
    }
    for ty in ["tensor<?x4xf32, 1>", "tensor<?x4xindex>", "tensor<?x4x!lattice.weight<bias, f32>>"] {
        let def = m2m_lattice::schema::Op::Linear.def();
        let mut example = Example::new(def, true);
        example.results[0] = ty.into();
        refused(def, &example, Code::ResultClass);
    }
    let def = m2m_lattice::schema::Op::GlobalPool.def();
    let mut example = Example::new(def, true);
    example.results.push("tensor<?x4xf32>".into());
    let text = example.bare(&example.generic());
    assert!(codes(&text).iter().any(|(code, _)| *code == Code::ResultCount), "{text}");
}

#[test]
fn packings_are_checked_field_by_field() {
    let def = m2m_lattice::schema::Op::Weight.def();
    let good = |bits: u32, group: u32, scale: &str| {
        format!("#lattice.packing<int{bits}, group_size = {group}, scale_dtype = {scale}, mode = affine>")
    };
    for group in GROUP_SIZES {
        for scale in ["f16", "f32"] {
            let mut example = Example::new(def, true);
            example.set("packing", good(4, *group, scale));
            assert_eq!(check(&example.graph(&example.pretty())).0, [] as [String; 0]);
        }
    }
    for bad in [
        good(4, 33, "f32"),
        good(4, 0, "f32"),
        good(2, 32, "f32"),
        good(8, 32, "bf16"),
        good(8, 32, "f32").replace("affine", "symmetric"),
        good(8, 32, "f32").replace("= 32", "= -1"),
    ] {
        let mut example = Example::new(def, true);
        example.set("packing", bad);
        refused(def, &example, Code::Packing);
    }
    let mut example = Example::new(def, true);
    example.set("packing", good(4, 32, "f32"));
    example.set("layout", "#lattice.weight_layout<bias_c>".into());
    example.results[0] = "!lattice.weight<bias, f32>".into();
    refused(def, &example, Code::Packing);
}

#[test]
fn coordinates_fit_32_bits() {
    for (op, name, value) in [
        (m2m_lattice::schema::Op::Conv3d, "kernel_size", "array<i64: 9223372036854775807, 1, 1>"),
        (m2m_lattice::schema::Op::Conv3d, "kernel_size", "array<i64: 65536, 65536, 1>"),
        (m2m_lattice::schema::Op::Pool3d, "dilation", "array<i64: 1, 1, 4294967296>"),
        (m2m_lattice::schema::Op::SparseMake, "stride", "array<i64: 2147483648, 1, 1>"),
    ] {
        let mut example = Example::new(op.def(), true);
        example.set(name, value.into());
        refused(op.def(), &example, Code::KernelVolume);
    }
}

/// Codes of a module whose metadata or body has been changed.
fn changed(from: &str, to: &str) -> Vec<Code> {
    let text = module(
        "  func.func @forward(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n    return %x : tensor<?x4xf32>\n  }\n",
        1,
        1,
    );
    assert_eq!(codes(&text), []);
    let edited = text.replacen(from, to, 1);
    assert_ne!(text, edited, "{from} is not there");
    codes(&edited).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn metadata_and_function_are_checked() {
    let digest = m2m_lattice::schema::SCHEMA_DIGEST;
    for (from, to, code) in [
        ("lattice.ir_version = 2,", "", Code::IrVersion),
        ("ir_version = 2", "ir_version = 3", Code::IrVersion),
        ("ir_version = 2", "ir_version = true", Code::IrVersion),
        ("ir_version = 2", "ir_version = \"2\"", Code::IrVersion),
        (digest, "0", Code::SchemaDigest),
        ("lattice.schema_digest", "lattice.digest", Code::SchemaDigest),
        ("weights.safetensors", "other.safetensors", Code::WeightFile),
        ("lattice.weight_file", "lattice.file", Code::WeightFile),
        ("[\"i0\"]", "[\"i0\", \"i1\"]", Code::AbiNames),
        ("[\"i0\"]", "[\"\"]", Code::AbiNames),
        ("[\"i0\"]", "[1]", Code::AbiNames),
        ("[\"i0\"]", "\"i0\"", Code::AbiNames),
        ("lattice.input_names", "lattice.names", Code::AbiNames),
        ("input_roles = [\"tensor\"]", "input_roles = [\"dense\"]", Code::AbiRoles),
        ("input_roles = [\"tensor\"]", "input_roles = []", Code::AbiRoles),
        ("input_roles = [\"tensor\"]", "input_roles = [\"sparse_active\"]", Code::RoleType),
        ("output_roles = [\"tensor\"]", "output_roles = [\"sparse_tensor\"]", Code::RoleType),
        ("output_roles = [\"tensor\"]", "output_roles = [\"sparse_coords\"]", Code::AbiRoles),
        ("@forward", "@main", Code::EntryName),
        ("-> tensor<?x4xf32> {\n    return %x : tensor<?x4xf32>", "{\n    return", Code::EntryResults),
        ("-> tensor<?x4xf32>", "-> tensor<?x5xf32>", Code::ReturnTypes),
        ("return %x : tensor<?x4xf32>", "return", Code::ReturnTypes),
        ("    return %x : tensor<?x4xf32>\n", "", Code::EntryBody),
        ("    return", "    return %x : tensor<?x4xf32>\n    return", Code::EntryBody),
        ("    return", "    %y = arith.constant 1 : i32\n    return", Code::ForeignOp),
        ("    return", "    \"test.op\"() : () -> ()\n    return", Code::ForeignOp),
        ("    return", "    module {}\n    return", Code::ForeignOp),
        (
            "    return",
            "    %y = lattice.quantized_conv3d %x : (tensor<?x4xf32>) -> tensor<?x4xf32>\n    return",
            Code::ForeignOp,
        ),
        ("(%x: tensor<?x4xf32>)", "(%x: !lattice.weight<bias, f32>)", Code::ArgumentType),
        ("(%x: tensor<?x4xf32>)", "(%x: tensor<*xf32>)", Code::ArgumentType),
        ("  func.func", "  func.func @other() -> ()\n  func.func", Code::EntryCount),
        ("return %x", "return %y", Code::UndefinedValue),
        ("return %x : tensor<?x4xf32>", "return %x : tensor<?x4xf16>", Code::ValueType),
    ] {
        let found = changed(from, to);
        assert!(found.contains(&code), "{from} -> {to}: {code} expected, found {found:?}");
    }
}

#[test]
fn earlier_versions_are_named() {
    let one = "eb5aaff9fc917038f49f4c62f9e19c2d78d2b3540035de55c270b9513d3156aa";
    let text = module(
        "  func.func @forward(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n    return %x : tensor<?x4xf32>\n  }\n",
        1,
        1,
    )
    .replace(m2m_lattice::schema::SCHEMA_DIGEST, one)
    .replace("ir_version = 2", "ir_version = 1");
    let (errors, plan) = check(&text);
    assert!(plan.is_none());
    assert!(errors.iter().all(|error| error.contains("written for IR version 1")), "{errors:?}");
    assert_eq!(errors.len(), 2);
}
