//! Every operator that `m2m-lower --list-ops` claims is met by a fixture, which another suite executes: a row of the
//! target by a node of a prepared graph, a decomposition by a node that came of it or by a program that calls it.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use m2m_tests::tools;
use serde_json::Value;

/// What no fixture can meet, with the reason. A line that is met after all fails.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("aten._convert_weight_to_int4pack.default", "PyTorch has it on a GPU only; lib/lower/tests/int4.rs has its words"),
    ("aten._weight_int4pack_mm.default", "PyTorch has it on a GPU only; lib/lower/tests/int4.rs multiplies by them"),
    ("aten.clone.default", "values are immutable, so that preparation leaves none"),
    ("aten.lift_fresh.default", "export replaces it by lift_fresh_copy or by nothing"),
    ("aten.random.from", "export of PyTorch 2.13 cannot write it, as from is a word of Python"),
    ("aten.sym_constrain_range.default", "export of PyTorch 2.13 writes _assert_scalar in its place"),
    ("aten.sym_constrain_range_for_size.default", "export of PyTorch 2.13 writes _assert_scalar in its place"),
    ("higher_order.associative_scan", "export of PyTorch 2.13 for a CPU writes it out"),
    ("higher_order.invoke_subgraph", "export of PyTorch 2.13 puts its graph in place"),
    ("higher_order.map", "export of PyTorch 2.13 writes map_impl in its place"),
];

/// What the fixtures' programs and their prepared graphs consist of.
#[derive(Default)]
struct Met {
    /// Operators of original graphs, all of which became nodes or were eliminated with a proof.
    called: BTreeSet<String>,
    /// Operators of prepared graphs.
    prepared: BTreeSet<String>,
    /// Decompositions that gave nodes of prepared graphs.
    decomposed: BTreeSet<String>,
    /// Fixtures that were refused; another suite holds those to the table of known failures.
    refused: Vec<String>,
}

impl Met {
    /// Reads the stream of a lowered program.
    fn add(&mut self, stream: &[u8]) {
        for line in stream.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: Value = serde_json::from_slice(line).unwrap();
            let Some(op) = record["op"].as_str().filter(|_| record["record"] == "node") else { continue };
            if record["stage"] == "original" {
                self.called.insert(op.to_owned());
            } else {
                self.prepared.insert(op.to_owned());
                let via = record["via"].as_str().and_then(|via| via.strip_prefix("decompose:"));
                self.decomposed.extend(via.map(str::to_owned));
            }
        }
    }

    /// Whether an operator of a family is met.
    fn has(&self, op: &str, family: &str) -> bool {
        match family {
            "decomposed" => self.decomposed.contains(op) || self.called.contains(op),
            _ => self.prepared.contains(op),
        }
    }
}

/// Lowers every fixture, on all cores.
fn lower_all() -> Met {
    let names = tools::model_names(&tools::fixtures()).unwrap();
    let (next, met) = (AtomicUsize::new(0), Mutex::new(Met::default()));
    let work = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A folder of its own: long modules are kept in files of one name.
            let folder = tools::work_dir().unwrap();
            let stream = tools::capture(name, folder.path()).unwrap();
            let lowered = tools::run::<&str>("m2m-lower", &[], folder.path(), &stream).unwrap();
            let mut met = met.lock().unwrap();
            match lowered.status.code() {
                Some(0) => met.add(&lowered.stdout),
                _ => met.refused.push(name.clone()),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    met.into_inner().unwrap()
}

/// Operator and family of each line of the list.
fn listed() -> Vec<(String, String)> {
    let folder = tools::work_dir().unwrap();
    let output = tools::run("m2m-lower", &["--list-ops"], folder.path(), b"").unwrap();
    let text = String::from_utf8(tools::expect_success("m2m-lower --list-ops", output).unwrap()).unwrap();
    let rows = text.lines().map(|line| {
        let mut fields = line.split('\t').map(str::to_owned);
        (fields.next().unwrap_or_default(), fields.next().unwrap_or_default())
    });
    rows.collect()
}

fn every_listed_operator_is_met_by_a_fixture() {
    let (met, rows) = (lower_all(), listed());
    assert!(rows.len() > 400, "the list is too short to be whole: {} lines", rows.len());
    let mut wrong = Vec::new();
    for (op, family) in &rows {
        let exception = EXCEPTIONS.iter().find(|(name, _)| name == op);
        match (met.has(op, family), exception) {
            (false, None) => wrong.push(format!("{op} ({family}): no fixture meets it")),
            (true, Some((_, reason))) => wrong.push(format!("{op}: met, though excepted because {reason}")),
            _ => {}
        }
    }
    let unlisted = EXCEPTIONS.iter().filter(|(name, _)| !rows.iter().any(|(op, _)| op == name));
    wrong.extend(unlisted.map(|(name, _)| format!("{name}: excepted, but not in the list")));
    let refused = met.refused.join(", ");
    assert!(wrong.is_empty(), "{} of {} rows:\n{}\nrefused: {refused}", wrong.len(), rows.len(), wrong.join("\n"));
}

m2m_tests::suite! {
    mlir every_listed_operator_is_met_by_a_fixture,
}
