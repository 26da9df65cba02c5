//! Holds `lib/README.md` and the code together: the map lists every crate with what it may use of the workspace, and
//! this reads `cargo metadata` and fails when they disagree, or when a crate other than `lib/mlir` links LLVM.

#![expect(clippy::unwrap_used, reason = "what cargo writes is what these helpers expect, or the test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use m2m_tests::tools;
use serde_json::Value;

type Map = BTreeMap<String, BTreeSet<String>>;

/// What only one crate may use, and which.
const RESERVED: [(&str, &str); 3] = [("melior", "lib/mlir"), ("mlir-sys", "lib/mlir"), ("memmap2", "lib/tensor")];

/// The rows `| `CRATE` | `USES`, … | … |` of the map.
fn documented() -> Map {
    let text = std::fs::read_to_string(tools::workspace().join("lib/README.md")).unwrap();
    let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|');
        let name = quoted(cells.next()?).pop()?;
        Some((name, quoted(cells.next()?).into_iter().collect()))
    });
    rows.collect()
}

fn metadata() -> Value {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(tools::workspace());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The folder of a package below the workspace, which is how the map names it.
fn place(path: &str) -> String {
    let below = std::path::Path::new(path).strip_prefix(tools::workspace()).unwrap();
    below.to_string_lossy().trim_end_matches("/Cargo.toml").to_owned()
}

/// The dependencies of every package that are not only for its tests: by folder those of the workspace, else by name.
fn dependencies(local: bool) -> Map {
    let metadata = metadata();
    let mut map = Map::new();
    for package in metadata["packages"].as_array().unwrap() {
        let used = map.entry(place(package["manifest_path"].as_str().unwrap())).or_default();
        for dependency in package["dependencies"].as_array().unwrap().iter().filter(|each| each["kind"] != "dev") {
            match dependency["path"].as_str() {
                Some(path) if local => used.insert(place(path)),
                None if !local => used.insert(dependency["name"].as_str().unwrap().to_owned()),
                _ => continue,
            };
        }
    }
    map
}

#[test]
fn the_map_says_what_the_crates_use() {
    let (documented, found) = (documented(), dependencies(true));
    let mut wrong = Vec::new();
    for (name, uses) in &found {
        match documented.get(name) {
            None => wrong.push(format!("{name} has no row; it uses {uses:?}")),
            Some(row) if row != uses => wrong.push(format!("{name}: the row says {row:?}, Cargo.toml says {uses:?}")),
            Some(_) => {}
        }
    }
    wrong.extend(
        documented.keys().filter(|name| !found.contains_key(*name)).map(|name| format!("{name} does not exist")),
    );
    assert!(wrong.is_empty(), "lib/README.md and the code disagree:\n{}", wrong.join("\n"));
}

#[test]
fn heavy_and_unsafe_dependencies_stay_where_they_belong() {
    for (name, uses) in dependencies(false) {
        for (dependency, owner) in RESERVED {
            assert!(name == owner || !uses.contains(dependency), "{name} uses {dependency}; only {owner} may");
        }
    }
}

#[test]
fn what_builds_by_default_does_not_reach_mlir() {
    let (map, metadata) = (dependencies(true), metadata());
    let places: BTreeMap<&str, String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), place(package["manifest_path"].as_str().unwrap())))
        .collect();
    let defaults = metadata["workspace_default_members"].as_array().unwrap();
    let mut open: Vec<String> = defaults.iter().map(|id| places[id.as_str().unwrap()].clone()).collect();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        assert_ne!(name, "lib/mlir", "a default member reaches the crate that links LLVM");
        if seen.insert(name.clone()) {
            open.extend(map[&name].iter().cloned());
        }
    }
    assert!(seen.len() >= defaults.len());
}
