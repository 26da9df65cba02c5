//! The engine lattice: plans of sparse models, found in a stream, run on named inputs, compared and passed on.
#![allow(clippy::unwrap_used)]

mod tool;

use m2m_lattice::build::{Attr, Builder, tensor};
use m2m_lattice::bundle::Bundle;
use m2m_lattice::finding::Findings;
use m2m_lattice::plan::ValueType;
use m2m_lattice::schema::{Family, InputRole, Op, OutputRole};
use m2m_record::{DType, Golden, Reader};
use std::path::Path;
use tool::{f32s, run, tensors, text};

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The stream of one submanifold convolution, kernel (3, 1, 5) with weights 1 to 15, beside its weights.
fn stream(folder: &Path) -> Vec<u8> {
    let mut b = Builder::new();
    let coords = b.argument("x_coords", InputRole::SparseCoords, tensor(&[None, Some(4)], DType::I32));
    let features = b.argument("x_features", InputRole::SparseFeatures, tensor(&[None, Some(1)], DType::F32));
    let active = b.argument("x_active", InputRole::SparseActive, tensor(&[Some(1)], DType::I32));
    let sparse = ValueType::Sparse { dtype: DType::F32 };
    let made = [("stride", Attr::Ints([2, 1, 1])), ("coord_order", Attr::Keyword("batch_x_y_z"))];
    let x = b.op(Op::SparseMake, &[coords, features, active], &made, std::slice::from_ref(&sparse)).unwrap()[0];
    let weight = b.weight("w", "w", Family::Conv3d, DType::F32, None).unwrap();
    let window = [
        ("kernel_size", Attr::Ints([3, 1, 5])),
        ("dilation", Attr::Ints([1; 3])),
        ("accumulation", Attr::Str("canonical_f32")),
    ];
    let y = b.op(Op::SubmConv3d, &[x, weight], &window, &[sparse]).unwrap()[0];
    b.output("y", OutputRole::SparseTensor, y);
    std::fs::write(folder.join("graph.mlir"), b.finish().unwrap()).unwrap();
    let weights: Vec<f32> = (1..=15).map(|n| n as f32).collect();
    tensors(&folder.join("weights.safetensors"), &[("w", DType::F32, &[1, 3, 1, 5, 1], f32s(&weights))]);
    let bundle = Bundle::open(folder, None).unwrap();
    let mut findings = Findings::default();
    let graph = bundle.parse(&mut findings);
    let report = bundle.check(&graph, findings, false);
    assert!(report.model.is_some(), "{:?}", report.findings);
    let mut records = Vec::new();
    bundle.write_records(&report, ("test", "0"), &mut records).unwrap();
    records
}

const COORDS: [i32; 12] = [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1];

fn inputs(folder: &Path, coords: &[i32], keys: [&str; 3]) {
    tensors(
        &folder.join("in.safetensors"),
        &[
            (keys[0], DType::I32, &[3, 4], i32s(coords)),
            (keys[1], DType::F32, &[3, 1], f32s(&[1.0, 2.0, 4.0])),
            (keys[2], DType::I32, &[1], i32s(&[3])),
        ],
    );
}

/// The expected rows: 8 + 2 * 13 + 4 * 9, 2 * 8 + 3 + 4 * 4, 4 * 8 + 7 + 2 * 12.
fn references(folder: &Path, last: f32) {
    tensors(
        &folder.join("ref.safetensors"),
        &[
            ("y.coords", DType::I32, &[3, 4], i32s(&COORDS)),
            ("y.features", DType::F32, &[3, 1], f32s(&[70.0, 35.0, last])),
            ("y.active", DType::I32, &[1], i32s(&[3])),
            ("y.stride", DType::I32, &[3], i32s(&[2, 1, 1])),
        ],
    );
}

const ABI: [&str; 3] = ["x_coords", "x_features", "x_active"];

#[test]
fn a_plan_is_run_compared_and_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let records = stream(folder);
    references(folder, 63.0);
    let flags = ["--engine", "lattice", "--inputs", "in.safetensors"];
    for keys in [ABI, ["in_0", "in_1", "in_2"]] {
        inputs(folder, &COORDS, keys);
        let args = [&flags[..], &["--compare", "ref.safetensors", "--exact", "--threads", "2"]].concat();
        let output = run(folder, &args, &records);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("y.features: f32 [3, 1]: max abs 0.000e0"), "{}", text(&output.stdout));
    }
    let args = [&flags[..], &["--golden", "out.safetensors"]].concat();
    let output = run(folder, &args, &records);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut reader = Reader::new(output.stdout.as_slice());
    let mut golden = None;
    while let Some(line) = reader.next_line().unwrap() {
        if line.kind == "golden" {
            golden = Some(line.parse::<Golden>().unwrap());
        }
    }
    let golden = golden.unwrap();
    assert_eq!(golden.engine, "lattice");
    assert_eq!(golden.outputs, ["y.coords", "y.features", "y.active", "y.stride"]);
    // The stream's own golden record is what a second run is compared with.
    let output = run(folder, &["--engine", "lattice", "--compare"], &output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    references(folder, 64.0);
    let args = [&flags[..], &["--compare", "ref.safetensors"]].concat();
    let output = run(folder, &args, &records);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("y.features: max abs 1.000e0") && stderr.contains("[2, 0]: 6.3e1"), "{stderr}");
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let records = stream(folder);
    let flags = ["--engine", "lattice", "--inputs", "in.safetensors", "--golden", "out.safetensors"];
    let refused = |records: &[u8], expected: &str| {
        let output = run(folder, &flags, records);
        assert_eq!(output.status.code(), Some(2));
        let stderr = text(&output.stderr);
        assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{expected:?} expected, found {stderr}");
        assert!(!folder.join("out.safetensors").exists());
    };
    let mut odd = COORDS;
    odd[5] = 3;
    inputs(folder, &odd, ABI);
    refused(&records, "lattice.sparse.make at");
    refused(&records, "x_coords: row 1: coordinate (batch 0, x 3, y 0, z 0) is no multiple of the stride [2, 1, 1]");
    inputs(folder, &COORDS, ["x_coords", "x_features", "x_count"]);
    refused(&records, "x_active: no value; expected tensor<1xi32>");
    inputs(folder, &COORDS, ABI);
    // The same stream with another kernel, sealed anew.
    let changed = text(&records).replacen("[3,1,5]", "[3,1]", 1);
    let (body, _) = changed.trim_end().rsplit_once('\n').unwrap();
    let body = format!("{body}\n");
    let (count, digest) = (body.lines().count(), m2m_digest::Digest::of(body.as_bytes()));
    let end = format!("{{\"record\":\"end\",\"status\":\"ok\",\"records\":{count},\"sha256\":\"{digest}\"}}\n");
    let line = body.lines().position(|line| line.contains("lattice.subm_conv3d")).unwrap() + 1;
    let expected = format!("<stdin>:{line}: error: lattice.subm_conv3d: attribute \"kernel_size\"");
    refused(format!("{body}{end}").as_bytes(), &expected);
    let empty = m2m_record::Writer::begin(Vec::new()).unwrap().finish(m2m_record::Status::Ok).unwrap();
    refused(&empty, "the stream has no source record of format lattice");
    std::fs::remove_file(folder.join("weights.safetensors")).unwrap();
    refused(&records, "weights.safetensors");
}
