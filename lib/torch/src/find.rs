//! Where libtorch is: a folder with `lib/` and, for building, `include/`, such as Python's `site-packages/torch`.
//!
//! Used by the build script and by the library. Python is asked only for the place of the package, which it tells
//! without importing it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the folder.
pub const VARIABLE: &str = "LIBTORCH";

/// The release whose headers and libraries go together.
pub const RELEASE: &str = "2.13";

/// The library that everything needs, inside the folder.
pub fn library(folder: &Path) -> PathBuf {
    folder.join("lib").join("libtorch_cpu.so")
}

/// Whether a folder is libtorch.
pub fn is_there(folder: &Path) -> bool {
    library(folder).is_file()
}

/// The version that a folder states, `2.13.0+cu130`.
pub fn version(folder: &Path) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(folder.join("version.py")) {
        let line = text.lines().find(|line| line.starts_with("__version__"))?;
        return line.split(['\'', '"']).nth(1).map(str::to_owned);
    }
    std::fs::read_to_string(folder.join("build-version")).ok().map(|text| text.trim().to_owned())
}

/// Whether a folder is of the release.
pub fn is_of_release(folder: &Path) -> bool {
    version(folder).is_none_or(|version| {
        version.strip_prefix(RELEASE).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The folder that the environment names.
pub fn named() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder of the active Python, by looking at the places where its packages are.
pub fn beside_python() -> Option<PathBuf> {
    let mut prefixes: Vec<PathBuf> = env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().collect();
    prefixes.extend(first_python().and_then(|python| Some(python.parent()?.parent()?.to_owned())));
    prefixes.iter().find_map(|prefix| under(&prefix.join("lib")).or_else(|| under(&prefix.join("local").join("lib"))))
}

/// The first `python3` of the search path.
fn first_python() -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join("python3")).find(|python| python.is_file())
}

/// torch in the packages of a Python, `lib/python3.11/site-packages`.
fn under(lib: &Path) -> Option<PathBuf> {
    let mut pythons: Vec<PathBuf> = std::fs::read_dir(lib).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    pythons.sort();
    let named = pythons
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"python3")));
    named
        .flat_map(|path| ["site-packages", "dist-packages"].map(|kind| path.join(kind).join("torch")))
        .find(|t| is_there(t))
}

/// The folder that the active Python tells, without importing it.
pub fn ask_python() -> Option<PathBuf> {
    let program =
        "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')";
    let output =
        Command::new("python3").args(["-c", program]).output().ok().filter(|output| output.status.success())?;
    let path = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(OsString::from(path.trim()))).filter(|folder| is_there(folder))
}
