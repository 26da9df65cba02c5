//! The samples of the contract beside the repository: bundles, inputs and what they give. Where they are not, the test is
//! ignored, and counted as that.

#![allow(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use libtest_mimic::{Arguments, Trial};
use m2m_lattice::exec::{Given, Options, Returned, run};
use m2m_lattice::finding::Findings;
use m2m_lattice::{bundle::Bundle, plan};
use m2m_record::DType;
use m2m_tensor::safetensors::Header;
use std::path::{Path, PathBuf};

/// The folder of samples: that of the variable, or the one beside the repository.
fn samples() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/lattice/numerics");
    let folder = std::env::var_os("M2M_LATTICE_SAMPLES").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect(),
        DType::F16 => bytes.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).into()).collect(),
        DType::I32 => bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect(),
        other => panic!("{other}"),
    }
}

/// Runs a bundle through its records, as the programs do.
fn execute(folder: &Path) -> Vec<Returned> {
    let bundle = Bundle::open(folder, None).unwrap();
    let mut findings = Findings::default();
    let graph = bundle.parse(&mut findings);
    let report = bundle.check(&graph, findings, false);
    assert!(report.model.is_some(), "{}: {:?}", folder.display(), report.findings);
    let mut records = Vec::new();
    bundle.write_records(&report, ("test", "0"), &mut records).unwrap();
    let plan = plan::read(records.as_slice()).unwrap();
    let bytes = std::fs::read(folder.join("inputs.safetensors")).unwrap();
    let header = Header::read(&bytes).unwrap();
    let given = |_: usize, name: &str| {
        let entry = header.tensors.get(name)?;
        let bytes = &bytes[entry.offset as usize..(entry.offset + entry.bytes) as usize];
        Some(Given { dtype: entry.dtype, shape: &entry.shape, bytes })
    };
    run(&plan, &given, Options::default()).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

fn every_sample_is_within_its_tolerance(folder: &Path) {
    let tolerances: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("tolerance.json")).unwrap()).unwrap();
    let tolerances = tolerances.as_object().unwrap();
    assert!(!tolerances.is_empty());
    for (name, tolerance) in tolerances {
        let (rtol, atol) = (tolerance["rtol"].as_f64().unwrap(), tolerance["atol"].as_f64().unwrap());
        let folder = folder.join(name);
        let bytes = std::fs::read(folder.join("expected.safetensors")).unwrap();
        let header = Header::read(&bytes).unwrap();
        let returned = execute(&folder);
        assert_eq!(returned.len(), header.tensors.len(), "{name}");
        for found in returned {
            let entry = &header.tensors[&found.name];
            assert_eq!((found.dtype, &found.shape), (entry.dtype, &entry.shape), "{name} {}", found.name);
            let expected = &bytes[entry.offset as usize..(entry.offset + entry.bytes) as usize];
            let values = numbers(found.dtype, &found.bytes).into_iter().zip(numbers(entry.dtype, expected));
            for (at, (x, y)) in values.enumerate() {
                let allowed = if found.dtype == DType::I32 { 0.0 } else { atol + rtol * y.abs() };
                let is_right = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= allowed;
                assert!(is_right, "{name} {} element {at}: {x}, expected {y}", found.name);
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    let folder = samples();
    let is_absent = folder.is_none();
    let test = move || {
        every_sample_is_within_its_tolerance(
            &folder.ok_or("there are no samples; M2M_LATTICE_SAMPLES names their folder")?,
        );
        Ok(())
    };
    let trial = Trial::test("every_sample_is_within_its_tolerance", test).with_ignored_flag(is_absent);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}
