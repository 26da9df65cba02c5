//! The bodies of the fuzz targets over what is saved: seeds, fixtures, and some damage to each. What fuzzing finds is put
//! into `tests/fuzz/seeds/TARGET` and stays found.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::path::Path;

use m2m_tests::{corrupt, tools};

const DAMAGES: u64 = 20;

/// Every file of a folder, if it exists.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

/// One file of every fixture that has it.
fn of_fixtures(name: &str) -> Vec<Vec<u8>> {
    let fixtures = std::fs::read_dir(tools::fixtures()).unwrap().map(|entry| entry.unwrap().path().join(name));
    fixtures.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect()
}

/// Runs a body over the seeds of a target, over `more`, and over damaged copies of both.
fn over(target: &str, more: Vec<Vec<u8>>, body: impl Fn(&[u8])) {
    let mut corpus = files(&tools::workspace().join("tests/fuzz/seeds").join(target));
    corpus.extend(more);
    assert!(!corpus.is_empty(), "{target} has no corpus");
    for (number, bytes) in (0..).zip(&corpus) {
        body(bytes);
        (0..DAMAGES).for_each(|damage| body(&corrupt::damage(bytes, number * DAMAGES + damage)));
    }
}

#[test]
fn records() {
    let folder = tools::work_dir().unwrap();
    let names = ["mlp", "cond", "dyn_derived", "pytree_io", "big_args", "while_loop"];
    let streams = names.map(|name| tools::capture(name, folder.path()).unwrap());
    over("records", streams.into(), m2m_record::fuzz::stream);
}

#[test]
fn pt2() {
    over("pt2", of_fixtures("model.pt2"), m2m_pt2::fuzz::archive);
}

#[test]
fn pickle() {
    over("pickle", Vec::new(), m2m_pt2::fuzz::pickle);
}

#[test]
fn safetensors() {
    over("safetensors", of_fixtures("outputs.safetensors"), m2m_tensor::fuzz::safetensors);
}

#[test]
fn expression() {
    over("expression", Vec::new(), |bytes| m2m_tensor::fuzz::expression(&String::from_utf8_lossy(bytes)));
}

#[test]
fn pte() {
    over("pte", files(&tools::fixtures().join("pte")), m2m_executorch::fuzz::pte);
}

#[test]
fn etdump() {
    over("etdump", etdump_fixtures("etdump"), m2m_executorch::fuzz::etdump);
}

#[test]
fn etrecord() {
    let mut corpus = etdump_fixtures("etrecord");
    corpus.push(m2m_tests::etdump::program(&m2m_tests::etdump::NET).into_bytes());
    over("etrecord", corpus, m2m_executorch::fuzz::etrecord);
}

/// The fixtures of `m2m-etdump` with one extension.
fn etdump_fixtures(extension: &str) -> Vec<Vec<u8>> {
    let all = m2m_tests::etdump::fixtures().into_iter();
    all.filter(|(name, _)| name.ends_with(&format!(".{extension}"))).map(|(_, bytes)| bytes).collect()
}

#[test]
fn lattice() {
    over("lattice", Vec::new(), m2m_lattice::fuzz::graph);
}
