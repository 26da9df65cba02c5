//! Runs every `tests/file/**/*.test` as a test of its own. `M2M_BLESS=1` rewrites what the files expect.

use std::io;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Trial};
use m2m_tests::{case, tools};

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "test") {
            found.push(path);
        }
    }
    Ok(())
}

fn trial(path: PathBuf, bless: bool) -> io::Result<Trial> {
    let name = case::test_name(&path);
    let parsed = case::Case::parse(&std::fs::read_to_string(&path)?);
    let left_out = tools::without_mlir() && parsed.as_ref().is_ok_and(case::Case::needs_mlir);
    let run = move || parsed.and_then(|case| case.check(&path, bless)).map_err(Into::into);
    Ok(Trial::test(name, run).with_ignored_flag(left_out))
}

fn main() -> io::Result<()> {
    let args = Arguments::from_args();
    let bless = std::env::var_os("M2M_BLESS").is_some_and(|value| !value.is_empty() && value != "0");
    let mut paths = Vec::new();
    collect(&case::root(), &mut paths)?;
    paths.sort();
    let trials = paths.into_iter().map(|path| trial(path, bless)).collect::<io::Result<_>>()?;
    libtest_mimic::run(&args, trials).exit()
}
