//! Reading text: everything that MLIR lets one write, every error in one run, and nothing that hostile input can do.

#![allow(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

mod common;

use common::{SPARSE, check, codes, module};
use m2m_lattice::finding::{Code, Findings, MAX_FINDINGS};
use m2m_lattice::print::print;
use m2m_lattice::text::{self, MAX_NESTING};
use m2m_lattice::verify::verify;

/// A graph of one dense operation, in pieces that the tests vary.
fn activation(attributes: &str) -> String {
    let ty = "tensor<?x4xf32>";
    module(
        &format!(
            "  func.func @forward(%x: {ty}) -> {ty} {{\n    %y = lattice.activation %x {{{attributes}}} : ({ty}) -> {ty}\n    return %y \
             : {ty}\n  }}\n"
        ),
        1,
        1,
    )
}

const RELU: &str = "kind = #lattice.activation<relu>, approximate = #lattice.gelu_approx<none>, alpha = 0.5 : f32, beta = 1.0 : \
                    f32, threshold = 20.0 : f32";

fn accepted(text: &str) {
    assert_eq!(check(text).0, [] as [String; 0], "{text}");
}

#[test]
fn any_spelling_of_attributes_is_read() {
    accepted(&activation(RELU));
    for (from, to) in [
        ("#lattice.activation<relu>", "#lattice.activation<\"relu\">"),
        ("#lattice.activation<relu>", "#lattice<activation<relu>>"),
        ("#lattice.activation<relu>", "#lattice< activation < relu > >"),
        ("#lattice.activation<relu>", "#lattice.activation< // why not\n relu\n>"),
        ("#lattice.activation<relu>", "#lattice.activation<relu> : i32"),
        ("kind =", "\"kind\"="),
        ("0.5 : f32", "0x3F000000 : f32"),
        ("0.5 : f32", "5.e-1:f32"),
        ("alpha = 0.5 : f32, ", "alpha = 0.5 : f32,\n\t\r\n"),
    ] {
        let text = activation(RELU).replacen(from, to, 1);
        assert_ne!(text, activation(RELU), "{from}");
        accepted(&text);
    }
}

#[test]
fn aliases_stand_for_types_and_attributes() {
    let text = activation(RELU).replace("tensor<?x4xf32>", "!t").replace("#lattice.activation<relu>", "#k");
    accepted(&format!("!t = tensor<?x4xf32>\n#k = #lattice.activation<relu>\n{text}"));
    assert_eq!(codes(&text)[0].0, Code::UnknownAlias);
    let twice = format!("!t = f32\n!t = f32\n{}", activation(RELU));
    assert_eq!(codes(&twice), [(Code::Redefinition, 2)]);
}

#[test]
fn locations_are_read_and_dropped() {
    for location in [
        "unknown",
        "\"model.py\":12:3",
        "\"model.py\":12:3 to 14:1",
        "\"model.py\":12:3 to :9",
        "\"name\"",
        "\"name\"(\"model.py\":1:1)",
        "callsite(\"a\" at \"b\":1:2)",
        "fused[\"a\", unknown]",
        "fused<\"pass\">[\"a\"]",
        "#loc1",
    ] {
        let text = activation(RELU).replace("    return", &format!("    loc({location})\n    return"));
        let text = text.replace(&format!("\n    loc({location})"), &format!(" loc({location})"));
        let text = text.replace("%x: tensor<?x4xf32>)", &format!("%x: tensor<?x4xf32> loc({location}))"));
        accepted(&format!("{text}#loc1 = loc(\"model.py\":1:1)\n"));
    }
    let text = activation(RELU).replace("\n  }\n", " loc(#gone)\n  }\n");
    assert_eq!(codes(&text).last().unwrap().0, Code::UnknownAlias);
    for location in ["", "\"f\":1", "\"f\":1:99999999999", "nowhere", "fused<>[]", "callsite(\"a\")"] {
        let text = activation(RELU).replace("\n    return", &format!(" loc({location})\n    return"));
        let found = codes(&text);
        assert!(matches!(found[0].0, Code::Syntax | Code::NumberRange), "{location}: {found:?}");
        assert_eq!(found[0].1, 11, "{location}");
    }
}

#[test]
fn result_packs_and_shortened_types_are_read() {
    let types = "(tensor<?x4xi32>, tensor<?x4xf32>, tensor<1xi32>)";
    let text = module(
        &format!(
            "  func.func @forward(%0: tensor<?x4xi32>, %1: tensor<?x4xf32>, %2: tensor<1xi32>) -> {types} {{
    %s = lattice.sparse.make %0, %1, %2 {{stride = array<i64: 1, 1, 1>, coord_order = #lattice.coord<batch_x_y_z>}} : {types} -> {SPARSE}
    %w = lattice.weight @\"a b\" {{storage_key = \"w\", layout = #lattice.weight_layout<bias_c>, packing = #lattice.packing<dense>}} : <bias, f32>
    %p:3 = lattice.sparse.decompose %s : <rank = 3, coord = batch_x_y_z, feature = row_channel, dtype = f32> -> {types}
    func.return %p#0, %p#1, %p #2 : tensor<?x4xi32>, tensor<?x4xf32>, tensor<1xi32>
  }}\n"
        ),
        3,
        3,
    );
    accepted(&text);
    assert_eq!(codes(&text.replace("%p#1", "%p#3"))[0].0, Code::UndefinedValue);
    assert_eq!(codes(&text.replace("%p:3", "%p:2"))[0].0, Code::ResultCount);
    assert_eq!(codes(&text.replace("!lattice.sparse_tensor<", "!lattice.sparse_tensor <"))[0].0, Code::Syntax);
}

#[test]
fn properties_stand_only_where_there_are_some() {
    let def = m2m_lattice::schema::Op::Linear.def();
    let example = common::Example::new(def, false);
    let text = example.bare(&example.generic().replace(" : (", " <{}> : ("));
    assert!(codes(&text).iter().any(|(code, line)| (*code, *line) == (Code::Syntax, 11)), "{text}");
}

#[test]
fn a_whole_module_may_be_generic() {
    let body = "\"func.func\"() <{function_type = (tensor<?x4xf32>) -> tensor<?x4xf32>, sym_name = \"forward\"}> ({\n  ^bb0(%a: \
                tensor<?x4xf32>):\n    \"func.return\"(%a) : (tensor<?x4xf32>) -> ()\n  }) : () -> ()\n";
    let pretty = module(body, 1, 1);
    let attributes = &pretty["module attributes ".len()..pretty.find("} {").unwrap() + 1];
    let generic = format!("\"builtin.module\"() ({{\n  {body}}}) {attributes} : () -> ()\n");
    accepted(&pretty);
    accepted(&generic);
    let unnamed = generic.replace(", sym_name = \"forward\"", "");
    assert!(codes(&unnamed).iter().any(|(code, _)| *code == Code::MissingAttribute));
    let untyped = generic.replace("function_type = (tensor<?x4xf32>) -> tensor<?x4xf32>", "function_type = i32");
    assert!(codes(&untyped).iter().any(|(code, _)| *code == Code::AttributeKind));
}

#[test]
fn every_error_is_found_in_one_run() {
    let ty = "tensor<?x4xf32>";
    let text = module(
        &format!(
            "  func.func @forward(%x: {ty}) -> {ty} {{
    %a = lattice.elementwise %x {{kind = \"exp\"}} : ({ty} -> {ty}
    %b = lattice.elementwise %a {{kind = \"log\"}} : ({ty}) -> {ty}
    %c = lattice.softmax %b {{axis = , other = 3}} : ({ty}) -> {ty}
    %d = lattice.softmax %late {{axis = 1}} : ({ty}) -> {ty}
    %late = lattice.softmax %x {{axis = 1}} : ({ty}) -> {ty}
    %e = lattice.softmax %never {{axis = 5}} : ({ty}) -> {ty}
    %f = tosa.abs %x : ({ty}) -> {ty}
    %g = lattice.softmax %f
      {{axis = 1,
       axis = 1}} : ({ty}) -> {ty}
    return %g : {ty}
  }}\n"
        ),
        1,
        1,
    );
    let expected = [
        (Code::Syntax, 11),
        (Code::Value, 12),
        (Code::Syntax, 13),
        (Code::UnknownAttribute, 13),
        (Code::UseBeforeDefinition, 14),
        (Code::UndefinedValue, 16),
        (Code::Value, 16),
        (Code::ForeignOp, 17),
        (Code::DuplicateAttribute, 20),
    ];
    assert_eq!(codes(&text), expected);
}

#[test]
fn errors_of_the_head_do_not_hide_those_of_the_body() {
    let text = activation(&RELU.replace("relu", "swish")).replace("%x: tensor<?x4xf32>", "%x: tensor<?x4 f32>");
    assert_eq!(codes(&text), [(Code::Syntax, 10), (Code::Keyword, 11)]);
    let text = activation(&RELU.replace("relu", "swish")).replace("ir_version = 2", "ir_version = two");
    assert_eq!(codes(&text), [(Code::Syntax, 2), (Code::Keyword, 11)]);
}

#[test]
fn numbers_that_fit_nothing_are_refused() {
    for (from, to, code) in [
        ("0.5 : f32", "0.5", Code::AttributeKind),
        ("0.5 : f32", "1 : f32", Code::Syntax),
        ("0.5 : f32", "-0x3F000000 : f32", Code::Syntax),
        ("0.5 : f32", "0x3F0000000 : f32", Code::NumberRange),
        ("0.5 : f32", "0.5 : i32", Code::Syntax),
        ("0.5 : f32", "1.0e400 : f32", Code::NumberRange),
        ("0.5 : f32", &format!("{} : i64", "9".repeat(400)), Code::NumberRange),
        ("0.5 : f32", "300 : i8", Code::NumberRange),
        ("0.5 : f32", "-1 : ui8", Code::NumberRange),
        ("0.5 : f32", "1 : i99999999", Code::NumberRange),
    ] {
        let text = activation(RELU).replacen(from, to, 1);
        assert!(codes(&text).contains(&(code, 11)), "{to}: {:?}", codes(&text));
    }
    let size = activation(RELU).replace("?x4xf32", "?x99999999999999999999xf32");
    assert_eq!(codes(&size)[0], (Code::NumberRange, 10));
}

#[test]
fn strings_are_utf8() {
    let text = activation(RELU).replace("[\"i0\"]", "[\"\\C3\\A9\"]");
    accepted(&text);
    assert_eq!(codes(&text.replace("\\A9", ""))[0], (Code::Encoding, 4));
    let mut findings = Findings::default();
    text::parse(b"module {\n \xff }", &mut findings);
    let found = findings.into_sorted();
    assert_eq!((found[0].code, found[0].at), (Code::Encoding, Some(10)));
}

#[test]
fn nesting_is_bounded() {
    let deep = 1_000_000;
    let nests = [
        format!("x = {}", "[".repeat(deep)),
        format!("x = {}", "{a = ".repeat(deep)),
        format!("x = {}i32", "tensor<1x".repeat(deep)),
        format!("x = {}i32", "tuple<".repeat(deep)),
        format!("x = dense<{}", "[".repeat(deep)),
        format!("x = {}f32", "!lattice.weight<conv3d, ".repeat(deep)),
        format!("x = {}f32", "(".repeat(deep)),
        format!("x = {}", "loc(callsite(".repeat(deep)),
    ];
    for nest in nests {
        let found = codes(&activation(&nest));
        assert!(found.contains(&(Code::Nesting, 11)), "{}: {found:?}", &nest[..30]);
    }
    for nest in ["module {".repeat(deep), "\"a.b\"() ({".repeat(deep), "func.func @f() {".repeat(deep)] {
        let found = codes(&nest);
        assert!(found.iter().any(|(code, _)| matches!(code, Code::Nesting | Code::TooMany)), "{}", &nest[..30]);
    }
    let fine = MAX_NESTING - 20;
    let text = activation(&format!("{RELU}, x = {}{}", "[".repeat(fine), "]".repeat(fine)));
    assert_eq!(codes(&text), [(Code::UnknownAttribute, 11)]);
}

#[test]
fn aliases_do_not_expand_without_end() {
    let mut text = String::from("#a0 = [1, 1]\n!t0 = (i32, i32) -> (i32, i32)\n!w0 = f32\n");
    for at in 1..100 {
        let before = at - 1;
        text += &format!(
            "#a{at} = [#a{before}, #a{before}]\n!t{at} = (!t{before}, !t{before}) -> (!t{before}, !t{before})\n"
        );
        text += &format!("!w{at} = !lattice.weight<\"{}\", !w{before}>\n", "x".repeat(1000));
    }
    let found = codes(&format!("{text}{}", activation(&format!("{RELU}, x = #a99, t = !t99, w = !w99"))));
    assert!(found.iter().any(|(code, _)| *code == Code::Nesting), "{found:?}");
    assert!(found.contains(&(Code::UnknownAttribute, 311)), "{found:?}");
}

#[test]
fn findings_are_bounded() {
    let text = module(&"%x\n".repeat(100_000), 0, 0);
    let mut findings = Findings::default();
    text::parse(text.as_bytes(), &mut findings);
    let found = findings.into_sorted();
    assert!(found.len() <= MAX_FINDINGS + 1);
    let long = activation(&format!("x = {}", "1, x = ".repeat(100_000)));
    assert!(codes(&long).len() <= MAX_FINDINGS + 1);
}

#[test]
fn every_prefix_and_every_lost_byte_is_survived() {
    let text = format!("!t = f32\n#a = [1, 2.5, \"x\", @y::@z]\n{}#loc = loc(unknown)\n", activation(RELU));
    for at in 0..text.len() {
        codes(&text[..at]);
        let lost = format!("{}{}", &text[..at], &text[at + 1..]);
        codes(&lost);
        for other in ["}", "{", "\"", ">", "%", "(", "0x", "\0", "é"] {
            codes(&format!("{}{other}{}", &text[..at], &text[at + 1..]));
        }
    }
}

#[test]
fn what_is_printed_reads_back_the_same() {
    for def in m2m_lattice::schema::OPS {
        let example = common::Example::new(def, true);
        let text = example.graph(&example.pretty()).replace("0.25 : f32", "0x3A83126F : f32");
        let mut findings = Findings::default();
        let graph = text::parse(text.as_bytes(), &mut findings);
        let printed = print(&verify(&graph, None, &mut findings).unwrap());
        let (errors, again) = check(&printed);
        assert_eq!(errors, [] as [String; 0], "{printed}");
        let plan = check(&text).1.unwrap();
        let again = again.unwrap();
        assert_eq!(plan.values, again.values);
        assert!(plan.ops.iter().zip(&again.ops).all(|(a, b)| a.kind == b.kind), "{printed}");
        let mut findings = Findings::default();
        let graph = text::parse(printed.as_bytes(), &mut findings);
        assert_eq!(print(&verify(&graph, None, &mut findings).unwrap()), printed, "{}", def.name);
    }
}
