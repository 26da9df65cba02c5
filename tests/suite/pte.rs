//! ExecuTorch programs: the fixtures are what `make-pte` makes, and where M2M_EXECUTORCH names a folder of samples, with
//! the answers of the official reader in `*/expected/*.pte.json`, every field of every answer is found by `m2m-pte`.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::path::{Path, PathBuf};

use m2m_tests::{pte, tools};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

#[test]
fn the_fixtures_are_what_make_pte_makes() {
    for (name, made) in pte::fixtures() {
        let kept = std::fs::read(tools::fixtures().join("pte").join(name)).unwrap();
        assert!(kept == made, "tests/fixtures/pte/{name} differs; `make-pte tests/fixtures/pte` rewrites it");
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn run(args: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let output = tools::run("m2m-pte", args, folder.path(), b"").unwrap();
    tools::expect_success(&format!("m2m-pte {}", args.join(" ")), output).unwrap()
}

/// An answer's tables in the spelling of `--raw`: enums by name, unions with their type beside them, bytes as size and digest.
fn respelled(answer: &Value) -> Value {
    match answer {
        Value::Array(items) => items.iter().map(respelled).collect(),
        Value::Object(map) => {
            if let Some(name) = map.get("enum") {
                return name.clone();
            }
            if let Some(bytes) = map.get("nbytes") {
                let digest = |hex: &str| {
                    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
                    sha256(&(0..hex.len()).step_by(2).map(digits).collect::<Vec<_>>())
                };
                let digest =
                    map.get("hex").map_or_else(|| map["sha256"].clone(), |hex| json!(digest(hex.as_str().unwrap())));
                return json!({ "bytes": bytes, "sha256": digest });
            }
            let mut out = Map::new();
            for (key, value) in map.iter().filter(|(key, _)| *key != "__type__") {
                if ["val", "instr_args"].contains(&key.as_str()) {
                    out.insert(format!("{key}_type"), value.get("__type__").cloned().unwrap_or(json!("NONE")));
                }
                out.insert(key.clone(), respelled(value));
            }
            Value::Object(out)
        }
        plain => plain.clone(),
    }
}

/// Our own tables without what an answer does not tell: places of bytes, and the tags of numbers.
fn untagged(ours: &Value) -> Value {
    match ours {
        Value::Array(items) => items.iter().map(untagged).collect(),
        Value::Object(map) => {
            if let Some(x) = map.get("float").filter(|_| map.len() == 1) {
                return x.as_str().map_or_else(|| json!(x.as_f64().unwrap()), |word| json!(word));
            }
            if let Some(x) = map.get("int").filter(|_| map.len() == 1) {
                return json!(x.as_str().unwrap().parse::<i64>().unwrap());
            }
            let is_bytes = map.contains_key("sha256");
            let kept = map.iter().filter(|(key, _)| !(is_bytes && *key == "offset"));
            Value::Object(kept.map(|(key, value)| (key.clone(), untagged(value))).collect())
        }
        plain => plain.clone(),
    }
}

/// The first place where two values differ.
fn difference(place: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            x.iter().zip(y).enumerate().find_map(|(at, (x, y))| difference(&format!("{place}[{at}]"), x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            let mut keys = x.keys().chain(y.keys());
            keys.find_map(|key| {
                let (x, y) = (x.get(key).unwrap_or(&Value::Null), y.get(key).unwrap_or(&Value::Null));
                difference(&format!("{place}.{key}"), x, y)
            })
        }
        (Value::Number(x), Value::Number(y)) if x.as_f64() == y.as_f64() => None,
        _ if a == b => None,
        _ => Some(format!("{place}: {a} expected, {b} found")),
    }
}

fn same(what: &str, expected: &Value, found: &Value) {
    if let Some(text) = difference(what, expected, found) {
        panic!("{text}");
    }
}

/// The records of a kind.
fn records(stream: &[u8], kind: &str) -> Vec<Value> {
    let lines = stream.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()).filter(|it| it["record"] == kind).collect()
}

/// Everything of an answer but the tables, as the records tell it.
fn retold(stream: &[u8], file: &[u8]) -> Value {
    let slice = |it: &Value| {
        let start = it["offset"].as_u64().unwrap() as usize;
        &file[start..start + it["bytes"].as_u64().unwrap() as usize]
    };
    let hex = |bytes: &[u8]| bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
    let base = records(stream, "program")[0]["header"]["segment_base_offset"].as_u64().unwrap_or(file.len() as u64);
    let segment = |it: &Value| {
        let offset = it["offset"].as_u64().unwrap() - base;
        json!({ "offset": offset, "size": it["bytes"], "sha256": it["sha256"], "head_hex": hex(slice(it)) })
    };
    let specs = |it: &Value| -> Value {
        let all = it["compile_specs"].as_array().unwrap().iter();
        all.map(|it| {
            it["text"].as_str().map_or_else(
                || it["hex"].clone(),
                |text| json!(text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()),
            )
        })
        .collect()
    };
    let delegate = |it: &Value| {
        json!({ "method": it["method"], "delegate_index": it["delegate"], "id": it["id"],
            "stored_location": it["location"].as_str().unwrap().to_uppercase(), "stored_index": it["index"],
            "payload_size": it["bytes"], "payload_sha256": it["sha256"], "payload_head_hex": hex(slice(it)),
            "compile_specs": specs(it), "calls": it["calls"] })
    };
    let constants = records(stream, "constant");
    let (states, constants): (Vec<&Value>, Vec<&Value>) =
        constants.iter().partition(|it| it.get("mutable_data").is_some());
    let constant = |it: &&Value| json!({ "index": it["constant"], "nbytes": it["bytes"], "sha256": it["sha256"] });
    let state = |it: &&Value| json!({ "nbytes": it["bytes"], "sha256": it["sha256"] });
    let named = records(stream, "named_data");
    let named: Map<String, Value> = named
        .iter()
        .map(|it| (it["key"].as_str().unwrap().to_owned(), json!({ "nbytes": it["bytes"], "sha256": it["sha256"] })))
        .collect();
    json!({
        "segments": records(stream, "segment").iter().map(segment).collect::<Value>(),
        "delegates": records(stream, "delegate").iter().map(delegate).collect::<Value>(),
        "constant_buffers": constants.iter().map(constant).collect::<Value>(),
        "mutable_buffers": if states.is_empty() { Value::Null } else { states.iter().map(state).collect() },
        "named_data": if named.is_empty() { Value::Null } else { Value::Object(named) },
    })
}

/// The same part of an answer.
fn told(answer: &Value) -> Value {
    let mut told = answer.clone();
    for it in told["delegates"].as_array_mut().unwrap() {
        let specs = it["compile_specs"].as_array().unwrap().iter().map(|it| it["value_hex"].clone()).collect();
        it["compile_specs"] = specs;
    }
    for (_, it) in told["named_data"].as_object_mut().into_iter().flatten() {
        it.as_object_mut().unwrap().remove("buffer_index");
    }
    let offsets = &told["program_as_stored"]["constant_segment"]["offsets"];
    if told["extended_header"].is_null() && *offsets == json!([0]) {
        // Without segment data the official reader resolves no offsets, not even that of the placeholder.
        told["constant_buffers"] = json!([{ "index": 0, "nbytes": 0, "sha256": sha256(b"") }]);
    }
    let part = |key: &str| told[key].clone();
    json!({
        "segments": part("segments"), "delegates": part("delegates"), "constant_buffers": part("constant_buffers"),
        "mutable_buffers": part("mutable_buffers"), "named_data": part("named_data"),
    })
}

/// Compares everything that an answer says of one program.
fn check(answer_path: &Path) {
    let name = answer_path.file_name().unwrap().to_str().unwrap().strip_suffix(".json").unwrap().to_owned();
    let folder = answer_path.parent().unwrap().parent().unwrap();
    let path = folder.join(&name);
    let (file, shown) = (std::fs::read(&path).unwrap(), path.to_str().unwrap());
    let answer: Value = serde_json::from_slice(&std::fs::read(answer_path).unwrap()).unwrap();
    let raw: Value = serde_json::from_slice(&run(&["--raw", shown])).unwrap();
    for key in ["file_size", "root_offset", "file_identifier"] {
        same(&format!("{shown}: {key}"), &answer[key], &raw[key]);
    }
    let mut header = answer["extended_header"].clone();
    header.as_object_mut().map(|map| map.remove("magic"));
    same(&format!("{shown}: extended_header"), &header, &raw["extended_header"]);
    same(shown, &respelled(&answer["program_as_stored"]), &untagged(&raw["program"]));
    let stream = run(&[shown, "--digests"]);
    same(shown, &told(&answer), &retold(&stream, &file));
    let delegates = answer["delegates"].as_array().unwrap();
    if !delegates.is_empty() {
        extracted(&path, delegates);
    }
}

/// Compares extracted payloads with the answer's digests, and with the official reader's own files where they are kept.
fn extracted(path: &Path, delegates: &[Value]) {
    let work = tempfile::tempdir().unwrap();
    let out = work.path().join("out");
    let stream = run(&[path.to_str().unwrap(), "--extract-delegates", out.to_str().unwrap()]);
    let written = records(&stream, "delegate");
    assert_eq!((written.len(), std::fs::read_dir(&out).unwrap().count()), (delegates.len(), delegates.len()));
    for (it, expected) in written.iter().zip(delegates) {
        let payload = std::fs::read(out.join(it["written"].as_str().unwrap())).unwrap();
        same(path.to_str().unwrap(), &expected["payload_sha256"], &json!(sha256(&payload)));
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let (method, index) = (it["method"].as_str().unwrap(), &it["delegate"]);
        let kept = path.with_file_name(format!("{stem}.{method}.{index}.{}", it["format"].as_str().unwrap()));
        if kept.is_file() {
            assert!(payload == std::fs::read(&kept).unwrap(), "{} differs", kept.display());
        }
    }
}

#[test]
fn every_answer_of_the_official_reader_is_found() {
    let Some(root) = std::env::var_os("M2M_EXECUTORCH").map(PathBuf::from) else { return };
    let mut answers = Vec::new();
    for folder in std::fs::read_dir(&root).unwrap() {
        let Ok(entries) = std::fs::read_dir(folder.unwrap().path().join("expected")) else { continue };
        answers.extend(
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.to_string_lossy().ends_with(".pte.json")),
        );
    }
    answers.sort();
    assert!(!answers.is_empty(), "{} holds no */expected/*.pte.json", root.display());
    answers.iter().for_each(|path| check(path));
}
