//! What shows only where operations meet: strides, channels, elements, packed weights, and the weights file.

#![allow(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

mod common;

use common::{SPARSE, module};
use m2m_lattice::bundle::Bundle;
use m2m_lattice::finding::{Code, Findings};
use m2m_lattice::plan::{self, Kind, Stored};
use std::fmt::Write as _;
use std::path::Path;

const MAKE: &str = "(tensor<?x4xi32>, tensor<?x8xf32>, tensor<1xi32>)";
const DENSE: &str = "#lattice.packing<dense>";
const INT4: &str = "#lattice.packing<int4, group_size = 32, scale_dtype = f32, mode = affine>";

/// A graph under construction: two sparse inputs of 8 channels, `%s` and `%t`, and what is added.
struct Text {
    body: String,
}

impl Text {
    fn new(s: [i64; 3], t: [i64; 3]) -> Self {
        let mut body = String::new();
        for (name, stride) in [("s", s), ("t", t)] {
            let [x, y, z] = stride;
            let attributes =
                format!("{{stride = array<i64: {x}, {y}, {z}>, coord_order = #lattice.coord<batch_x_y_z>}}");
            let _ = writeln!(body, "    %{name} = lattice.sparse.make %c, %f, %n {attributes} : {MAKE} -> {SPARSE}");
        }
        Text { body }
    }

    fn weight(mut self, name: &str, family: &str, packing: &str) -> Self {
        let layout = match family {
            "conv3d" => "conv3d_o_xyz_i",
            "linear" => "linear_o_i",
            "embedding" => "embedding_n_c",
            "channel" => "channel_c",
            _ => "bias_c",
        };
        let _ = writeln!(
            self.body,
            "    %{name} = lattice.weight @{name} {{storage_key = \"{name}\", layout = #lattice.weight_layout<{layout}>, packing = \
             {packing}}} : !lattice.weight<{family}, f32>"
        );
        self
    }

    /// An operation whose name and attributes are one text, on operands with their types.
    fn op(mut self, result: &str, op: &str, operands: &[&str], attributes: &str, ty: &str) -> Self {
        let types: Vec<String> = operands.iter().map(|name| self.type_of(name)).collect();
        let operands = operands.join(", ");
        let _ = writeln!(
            self.body,
            "    %{result} = lattice.{op} {operands} {{{attributes}}} : ({}) -> {ty}",
            types.join(", ")
        );
        self
    }

    fn type_of(&self, name: &str) -> String {
        match name {
            "%f" => return "tensor<?x8xf32>".into(),
            "%i" => return "tensor<?xi32>".into(),
            _ => {}
        }
        let line = self.body.lines().find(|line| line.trim_start().starts_with(&format!("{name} ="))).unwrap();
        let tail = if line.contains("= lattice.weight @") { line.rsplit(" : ") } else { line.rsplit(" -> ") }.next();
        tail.unwrap().to_owned()
    }

    fn text(&self, result: &str) -> String {
        let ty = self.type_of(&format!("%{result}"));
        let arguments = "%c: tensor<?x4xi32>, %f: tensor<?x8xf32>, %n: tensor<1xi32>, %i: tensor<?xi32>";
        let function =
            format!("  func.func @forward({arguments}) -> {ty} {{\n{}    return %{result} : {ty}\n  }}\n", self.body);
        module(&function, 4, 1)
    }
}

/// The bytes of a weights file of zeros.
fn weights(tensors: &[(&str, &str, &[u64])]) -> Vec<u8> {
    let mut at = 0;
    let entries = tensors.iter().map(|(name, dtype, shape)| {
        let size = if *dtype == "F16" { 2 } else { 4 };
        let bytes = shape.iter().product::<u64>() * size;
        at += bytes;
        format!("\"{name}\":{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{},{at}]}}", at - bytes)
    });
    let header = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.resize(file.len() + at as usize, 0);
    file
}

fn write(folder: &Path, text: &str, weights: &[u8]) {
    std::fs::write(folder.join("graph.mlir"), text).unwrap();
    std::fs::write(folder.join("weights.safetensors"), weights).unwrap();
}

/// The codes of everything that is found in a bundle, notes included, and its stream.
fn bundle(text: &str, weights: &[u8]) -> (Vec<Code>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), text, weights);
    let bundle = Bundle::open(folder.path(), None).unwrap();
    let mut findings = Findings::default();
    let graph = bundle.parse(&mut findings);
    let report = bundle.check(&graph, findings, false);
    let stream = bundle.write_records(&report, ("test", "0"), Vec::new()).unwrap();
    (report.findings.iter().map(|finding| finding.code).collect(), stream)
}

/// The codes that a graph has besides what its tests do not care for.
fn graph_codes(text: &Text, result: &str) -> Vec<Code> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("g.mlir"), text.text(result)).unwrap();
    let bundle = Bundle::open(&folder.path().join("g.mlir"), None).unwrap();
    let mut findings = Findings::default();
    let graph = bundle.parse(&mut findings);
    let report = bundle.check(&graph, findings, false);
    let ignored = [Code::LooseRole, Code::UnusedOp];
    report.findings.iter().map(|finding| finding.code).filter(|code| !ignored.contains(code)).collect()
}

const CONV: &str = "kernel_size = array<i64: 2, 2, 2>, stride = array<i64: 2, 2, 2>, padding = array<i64: 0, 0, 0>, dilation = \
                    array<i64: 1, 1, 1>, accumulation = \"canonical_f32\"";

fn window(kernel: [i64; 3], stride: [i64; 3]) -> String {
    CONV.replacen("2, 2, 2", &format!("{}, {}, {}", kernel[0], kernel[1], kernel[2]), 1).replacen(
        "stride = array<i64: 2, 2, 2>",
        &format!("stride = array<i64: {}, {}, {}>", stride[0], stride[1], stride[2]),
        1,
    )
}

#[test]
fn strides_multiply_divide_and_meet() {
    let conv = |op: &str, s: [i64; 3], t: [i64; 3], stride: [i64; 3]| {
        let operands: &[&str] = if op.starts_with("target") { &["%s", "%t", "%w"] } else { &["%s", "%w"] };
        let text = Text::new(s, t).weight("w", "conv3d", DENSE);
        graph_codes(&text.op("r", op, operands, &window([2, 2, 2], stride), SPARSE), "r")
    };
    assert_eq!(conv("conv3d", [1, 1, 1], [1, 1, 1], [2, 2, 2]), []);
    assert_eq!(conv("conv3d", [1 << 30, 1, 1], [1, 1, 1], [2, 2, 2]), [Code::KernelVolume]);
    assert_eq!(conv("conv_transpose3d", [2, 4, 6], [1, 1, 1], [2, 4, 3]), []);
    assert_eq!(conv("conv_transpose3d", [2, 4, 6], [1, 1, 1], [2, 4, 4]), [Code::StrideDivision]);
    assert_eq!(conv("target_conv3d", [1, 1, 1], [2, 2, 2], [2, 2, 2]), []);
    assert_eq!(conv("target_conv3d", [1, 1, 1], [2, 2, 1], [2, 2, 2]), [Code::StrideMatch]);
    assert_eq!(conv("target_conv_transpose3d", [4, 4, 4], [2, 2, 2], [2, 2, 2]), []);
    assert_eq!(conv("target_conv_transpose3d", [4, 4, 4], [4, 4, 4], [2, 2, 2]), [Code::StrideMatch]);
    let join = |op: &str, attributes: &str, t: [i64; 3]| {
        let text = Text::new([2, 2, 2], t);
        graph_codes(&text.op("r", op, &["%s", "%t"], attributes, SPARSE), "r")
    };
    assert_eq!(join("sparse.cat", "join = #lattice.join<outer>", [2, 2, 2]), []);
    assert_eq!(join("sparse.cat", "join = #lattice.join<outer>", [2, 1, 2]), [Code::StrideMatch]);
    assert_eq!(join("sparse.reindex", "fill = 0.0 : f32", [1, 2, 2]), [Code::StrideMatch]);
    let binary =
        "op = #lattice.binary_op<add>, join = #lattice.join<inner>, lhs_fill = 0.0 : f32, rhs_fill = 0.0 : f32";
    assert_eq!(join("sparse.binary", binary, [1, 2, 2]), [Code::StrideMatch]);
    let up = |stride: &str| {
        let text = Text::new([2, 2, 2], [1, 1, 1]);
        let attributes = format!("stride = array<i64: {stride}>");
        graph_codes(&text.op("r", "trilinear_upsample3d", &["%s"], &attributes, SPARSE), "r")
    };
    assert_eq!(up("2, 1, 2"), []);
    assert_eq!(up("2, 3, 2"), [Code::StrideDivision]);
}

#[test]
fn a_stride_follows_a_chain() {
    let text = Text::new([1, 1, 1], [1, 1, 1]).weight("w", "conv3d", DENSE);
    let down = text.op("a", "conv3d", &["%s", "%w"], CONV, SPARSE);
    let with = down.op("b", "sparse.with_features", &["%a", "%f"], "", SPARSE);
    let up = with.op("r", "conv_transpose3d", &["%b", "%w"], CONV, SPARSE);
    let good = up.op("j", "sparse.cat", &["%r", "%s"], "join = #lattice.join<inner>", SPARSE);
    assert_eq!(graph_codes(&good, "j"), []);
    let text = Text::new([1, 1, 1], [1, 1, 1]).weight("w", "conv3d", DENSE);
    let down = text.op("a", "conv3d", &["%s", "%w"], CONV, SPARSE);
    let bad = down.op("j", "sparse.cat", &["%a", "%s"], "join = #lattice.join<inner>", SPARSE);
    assert_eq!(graph_codes(&bad, "j"), [Code::StrideMatch]);
}

#[test]
fn packed_weights_go_where_they_can_be_unpacked() {
    let eps = format!("{CONV}, eps = 0.5 : f32");
    for (op, operands, attributes, stride, is_right) in [
        ("conv3d", vec!["%s", "%w"], CONV, 2, true),
        ("target_conv3d", vec!["%s", "%t", "%w"], CONV, 4, true),
        ("target_conv_transpose3d", vec!["%s", "%t", "%w"], CONV, 1, false),
        ("normalized_conv_transpose3d", vec!["%s", "%w"], &eps, 1, false),
    ] {
        let text = Text::new([2, 2, 2], [stride; 3]).weight("w", "conv3d", INT4);
        let found = graph_codes(&text.op("r", op, &operands, attributes, SPARSE), "r");
        assert_eq!(found, if is_right { vec![] } else { vec![Code::PackedOperand] }, "{op}");
    }
}

#[test]
fn windows_that_surprise_are_warned_of() {
    let text = |op: &str, attributes: &str| {
        let text = Text::new([2, 2, 2], [1, 1, 1]).weight("w", "conv3d", DENSE);
        let operands: &[&str] = if op == "pool3d" { &["%s"] } else { &["%s", "%w"] };
        graph_codes(&text.op("r", op, operands, attributes, SPARSE), "r")
    };
    let padded = window([3, 3, 3], [1, 1, 1]).replace("0, 0, 0", "1, 1, 1");
    assert_eq!(text("conv3d", &padded), [Code::ShiftedWindow]);
    assert_eq!(text("conv_transpose3d", &padded), []);
    let generative = |kernel: i64| {
        format!(
            "kernel_size = array<i64: {kernel}, 2, 2>, stride = array<i64: 2, 2, 2>, accumulation = \"canonical_f32\""
        )
    };
    assert_eq!(text("generative_conv_transpose3d", &generative(2)), []);
    assert_eq!(text("generative_conv_transpose3d", &generative(3)), [Code::RepeatedRows]);
    let pool = |mode: &str, kernel: [i64; 3]| {
        let window = window(kernel, [2, 2, 2]).replace(", accumulation = \"canonical_f32\"", "");
        text("pool3d", &format!("mode = #lattice.pool_mode<{mode}>, {window}"))
    };
    assert_eq!(pool("max", [2, 2, 2]), []);
    assert_eq!(pool("max", [3, 3, 3]), []);
    assert_eq!(pool("max", [1, 2, 2]), [Code::EmptyRows]);
    assert_eq!(pool("sum", [1, 2, 2]), []);
}

#[test]
fn dense_results_have_the_sizes_that_follow() {
    let dense = |op: &str, attributes: &str, result: &str| {
        let text = Text::new([1, 1, 1], [1, 1, 1]);
        graph_codes(&text.op("r", op, &["%f"], attributes, result), "r")
    };
    assert_eq!(dense("softmax", "axis = 1", "tensor<?x8xf32>"), []);
    assert_eq!(dense("softmax", "axis = 1", "tensor<?x?xf32>"), []);
    assert_eq!(dense("softmax", "axis = 1", "tensor<?x9xf32>"), [Code::Channels]);
    let pool = |batch: i64, result: &str| {
        let text = Text::new([1, 1, 1], [1, 1, 1]);
        let attributes = format!("mode = #lattice.pool_mode<avg>, batch_size = {batch}");
        graph_codes(&text.op("r", "global_pool", &["%s"], &attributes, result), "r")
    };
    assert_eq!(pool(3, "tensor<3x8xf32>"), []);
    assert_eq!(pool(-1, "tensor<3x8xf32>"), []);
    assert_eq!(pool(3, "tensor<4x8xf32>"), [Code::SameRows]);
    assert_eq!(pool(3, "tensor<3x9xf32>"), [Code::Channels]);
}

#[test]
fn what_reaches_no_result_is_warned_of() {
    let text = Text::new([1, 1, 1], [1, 1, 1]).op("r", "softmax", &["%f"], "axis = 1", "tensor<?x8xf32>");
    let (found, _) = bundle(&text.text("r"), &weights(&[]));
    assert_eq!(found.iter().filter(|code| **code == Code::UnusedOp).count(), 2);
    let twice = text.weight("w", "bias", DENSE).text("r").replace("    return", "    %v = lattice.weight @w {storage_key = \"w\", layout = #lattice.weight_layout<bias_c>, packing = #lattice.packing<dense>} : !lattice.weight<bias, f32>\n    return");
    let (found, _) = bundle(&twice, &weights(&[("w", "F32", &[4])]));
    assert!(found.contains(&Code::DuplicateSymbol));
}

/// What a convolution with kernel (2, 3, 1), one of 8 channels in, finds in a weights file. `w` is its weight, `b` its bias.
fn conv_weights(packing: &str, kernel: [i64; 3], tensors: &[(&str, &str, &[u64])]) -> (Vec<Code>, Vec<u8>) {
    let text = Text::new([1, 1, 1], [1, 1, 1]).weight("w", "conv3d", packing).weight("b", "bias", DENSE);
    let text = text.op("r", "conv3d", &["%s", "%w", "%b"], &window(kernel, [2, 2, 2]), SPARSE);
    let (mut found, stream) = bundle(&text.text("r"), &weights(tensors));
    found.retain(|code| !matches!(code, Code::LooseRole | Code::UnusedOp));
    (found, stream)
}

#[test]
fn dense_weights_are_held_against_the_graph() {
    let found = |w: &[u64], b: &[u64]| conv_weights(DENSE, [2, 3, 1], &[("w", "F32", w), ("b", "F32", b)]).0;
    assert_eq!(found(&[5, 2, 3, 1, 8], &[5]), []);
    assert_eq!(found(&[6, 8, 5], &[5]), []);
    assert_eq!(found(&[5, 3, 2, 1, 8], &[5]), [Code::WeightShape]);
    assert_eq!(found(&[5, 8], &[5]), [Code::WeightShape]);
    assert_eq!(found(&[5, 2, 3, 8], &[5]), [Code::WeightShape, Code::WeightShape]);
    assert_eq!(found(&[5, 2, 3, 1, 9], &[5]), [Code::Channels]);
    assert_eq!(found(&[5, 2, 3, 1, 8], &[6]), [Code::Channels]);
    assert_eq!(found(&[5, 2, 3, 1, 8], &[5, 1]), [Code::WeightShape]);
    let missing = conv_weights(DENSE, [2, 3, 1], &[("w", "F32", &[5, 2, 3, 1, 8]), ("c", "F32", &[5])]).0;
    assert_eq!(missing, [Code::WeightMissing, Code::UnusedTensor]);
    let half = conv_weights(DENSE, [2, 3, 1], &[("w", "F16", &[5, 2, 3, 1, 8]), ("b", "F32", &[5])]).0;
    assert_eq!(half, [Code::WeightDtype]);
}

#[test]
fn packed_weights_are_held_against_the_graph() {
    let found = |kernel: [i64; 3], words: &[u64], scales: &[u64]| {
        let parts: [(&str, &str, &[u64]); 4] =
            [("w.weight", "U32", words), ("w.scales", "F32", scales), ("w.biases", "F32", scales), ("b", "F32", &[5])];
        conv_weights(INT4, kernel, &parts).0
    };
    assert_eq!(found([2, 3, 1], &[6, 4, 5], &[6, 1, 5]), []);
    assert_eq!(found([1, 1, 1], &[1, 5, 4], &[1, 5, 1]), []);
    assert_eq!(found([2, 3, 1], &[8, 4, 5], &[8, 1, 5]), [Code::WeightShape]);
    assert_eq!(found([2, 3, 1], &[6, 4, 5], &[6, 2, 5]), [Code::WeightShape, Code::WeightShape]);
    assert_eq!(found([2, 3, 1], &[6, 3, 5], &[6, 1, 5]), [Code::WeightShape, Code::WeightShape]);
    assert_eq!(found([2, 3, 1], &[30, 4], &[6, 1, 5]), [Code::WeightShape, Code::WeightShape]);
    let dense = conv_weights(INT4, [2, 3, 1], &[("w", "F32", &[5, 2, 3, 1, 8]), ("b", "F32", &[5])]).0;
    assert_eq!(dense, [Code::WeightMissing, Code::WeightMissing, Code::WeightMissing, Code::UnusedTensor]);
    let scale: [(&str, &str, &[u64]); 4] = [
        ("w.weight", "I32", &[6, 4, 5]),
        ("w.scales", "F16", &[6, 1, 5]),
        ("w.biases", "F32", &[6, 1, 5]),
        ("b", "F32", &[5]),
    ];
    assert_eq!(conv_weights(INT4, [2, 3, 1], &scale).0, [Code::WeightDtype, Code::WeightDtype]);
}

#[test]
fn a_plan_says_where_its_weights_are() {
    let shape: &[u64] = &[5, 2, 3, 1, 8];
    let (_, stream) = conv_weights(DENSE, [2, 3, 1], &[("w", "F32", shape), ("b", "F32", &[5])]);
    let plan = plan::read(stream.as_slice()).unwrap();
    let weight = plan.ops.iter().find_map(|op| match &op.kind {
        Kind::Weight(weight) if weight.symbol == "b" => Some(weight),
        _ => None,
    });
    let Stored::Dense(part) = &weight.unwrap().stored else { panic!("{weight:?}") };
    let expected = weights(&[("w", "F32", shape), ("b", "F32", &[5])]).len() as u64 - 20;
    let m2m_record::Data::Range { offset, bytes, .. } = &part.data else { panic!("{part:?}") };
    assert_eq!((*offset, *bytes), (expected, 20));
    assert_eq!(plan.files[0].name, "weights.safetensors");
}

#[test]
fn dense_layers_and_norms_are_held_against_their_weights() {
    let found =
        |op: &str, family: &[(&str, &str)], attributes: &str, tensors: &[(&str, &str, &[u64])], result: &str| {
            let mut text = Text::new([1, 1, 1], [1, 1, 1]);
            let mut operands = vec![if op == "embedding_lookup" { "%i".to_owned() } else { "%f".to_owned() }];
            for (name, family) in family {
                text = text.weight(name, family, DENSE);
                operands.push(format!("%{name}"));
            }
            let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
            let text = text.op("r", op, &operands, attributes, result);
            let (mut found, _) = bundle(&text.text("r"), &weights(tensors));
            found.retain(|code| !matches!(code, Code::LooseRole | Code::UnusedOp));
            found
        };
    let linear = |w: &[u64], result: &str| found("linear", &[("w", "linear")], "", &[("w", "F32", w)], result);
    assert_eq!(linear(&[3, 8], "tensor<?x3xf32>"), []);
    assert_eq!(linear(&[8, 3], "tensor<?x3xf32>"), [Code::Channels, Code::Channels]);
    assert_eq!(linear(&[3, 8], "tensor<?x4xf32>"), [Code::Channels]);
    assert_eq!(linear(&[3, 8, 1], "tensor<?x3xf32>"), [Code::WeightShape, Code::WeightShape]);
    let norm =
        |w: &[u64]| found("rms_norm", &[("w", "channel")], "eps = 0.5 : f32", &[("w", "F32", w)], "tensor<?x8xf32>");
    assert_eq!(norm(&[8]), []);
    assert_eq!(norm(&[7]), [Code::Channels]);
    let embed = |w: &[u64]| found("embedding_lookup", &[("w", "embedding")], "", &[("w", "F32", w)], "tensor<?x6xf32>");
    assert_eq!(embed(&[100, 6]), []);
    assert_eq!(embed(&[100, 7]), [Code::Channels]);
}

#[test]
fn a_damaged_weights_file_is_a_defect() {
    let text = Text::new([1, 1, 1], [1, 1, 1]).op("r", "softmax", &["%f"], "axis = 1", "tensor<?x8xf32>").text("r");
    let mut file = weights(&[("w", "F32", &[4])]);
    file.pop();
    let (found, stream) = bundle(&text, &file);
    assert!(found.contains(&Code::WeightsFormat));
    assert!(plan::read(stream.as_slice()).is_err());
    for bytes in [&b""[..], b"{}", &[255; 16]] {
        assert!(bundle(&text, bytes).0.contains(&Code::WeightsFormat));
    }
}

#[test]
fn a_missing_file_is_not_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Bundle::open(folder.path(), None).is_err());
    std::fs::write(folder.path().join("graph.mlir"), "module {}").unwrap();
    let error = Bundle::open(folder.path(), None).err().unwrap();
    assert!(error.path().ends_with("weights.safetensors"), "{error}");
    assert!(Bundle::open(&folder.path().join("gone"), None).is_err());
}
