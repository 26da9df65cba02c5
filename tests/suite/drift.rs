//! What is generated and checked in must be what the programs generate: man pages, completions and the
//! JSON Schema of the record stream. `M2M_BLESS=1` rewrites the schema, `scripts/man` the rest.

#![expect(clippy::unwrap_used, reason = "what these helpers do not get fails the test")]

use std::process::Command;

use m2m_tests::tools;

fn man_pages_are_what_the_programs_make() {
    let mut command = Command::new(tools::workspace().join("scripts/man"));
    command.arg("--check").arg(tools::bin_dir().unwrap());
    let output = tools::run_with(command, &tools::workspace(), b"").unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    assert!(tools::without_mlir() || !said.contains("not built"), "a program was left out:\n{said}");
}

fn the_schema_is_what_the_structs_make() {
    let path = tools::workspace().join("man/m2m.stream.v1.schema.json");
    let made = m2m_record::schema::json_schema();
    if std::env::var_os("M2M_BLESS").is_some_and(|value| !value.is_empty() && value != "0") {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let line = found.lines().zip(made.lines()).take_while(|(left, right)| left == right).count() + 1;
    let again = "M2M_BLESS=1 cargo test -p m2m-tests --test drift";
    assert!(found == made, "{} differs from the structs at line {line}; {again} rewrites it", path.display());
}

m2m_tests::suite! {
    plain the_schema_is_what_the_structs_make,
    plain man_pages_are_what_the_programs_make,
}
