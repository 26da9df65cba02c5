//! Every model of a folder, from its `.pt2` file to executed numbers: the fixtures, or the folder that M2M_MODELS names.
//!
//! What is known to fail stands in `tests/known-failures.txt` with its reason; passing unexpectedly fails too. Of a
//! foreign folder only what `m2m-lower` accepts must run, but the models that the table marks `must` must be accepted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use m2m_tests::check::{self, Expected, Reached, Set};
use m2m_tests::tools;

/// The lines of the table that are about one kind of check: model and reason.
struct Known {
    rows: Vec<(String, String, String)>,
    foreign: bool,
}

impl Known {
    fn read(foreign: bool) -> std::io::Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("known-failures.txt");
        let text = std::fs::read_to_string(path)?;
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let rows = lines.map(|line| {
            let mut words = line.splitn(3, ' ').map(str::to_owned);
            let mut next = || words.next().unwrap_or_default();
            (next(), next(), next())
        });
        Ok(Known { rows: rows.collect(), foreign })
    }

    fn reason(&self, check: &str, name: &str) -> Option<&str> {
        let row = self.rows.iter().find(|(kind, model, _)| kind == check && model == name);
        row.map(|(_, _, reason)| reason.as_str())
    }

    /// Whether the result is the one that the table leads to expect.
    fn judge(&self, check: &str, name: &str, result: Result<Reached, String>) -> Result<(), Failed> {
        match (result, self.reason(check, name)) {
            (Ok(Reached::Equal), None) => Ok(()),
            (Ok(Reached::Equal), Some(reason)) => {
                Err(format!("passes, though the table says: {reason}; take its line out").into())
            }
            (Ok(Reached::Unsupported(_)), Some(_)) => Ok(()),
            (Ok(Reached::Unsupported(_)), None) if self.foreign && self.reason("must", name).is_none() => Ok(()),
            (Ok(Reached::Unsupported(said)), None) => Err(format!("m2m-lower answered no:\n{said}").into()),
            (Err(_), Some(_)) => Ok(()),
            (Err(message), None) => Err(message.into()),
        }
    }
}

/// A folder whose link `fixtures` leads to the models.
fn work_dir(root: &Path) -> Result<tempfile::TempDir, Failed> {
    let work = tempfile::tempdir()?;
    std::os::unix::fs::symlink(root, work.path().join("fixtures"))?;
    Ok(work)
}

fn capture(root: &Path, name: &str, known: &Known) -> Result<(), Failed> {
    let work = work_dir(root)?;
    let expected = Expected::read(&root.join(name))?;
    let result = tools::capture(name, work.path()).map_err(|error| error.to_string());
    known.judge("capture", name, result.and_then(|stream| expected.compare(&stream)).map(|()| Reached::Equal))
}

fn execute(root: &Path, name: &str, set: &Set, known: &Known) -> Result<(), Failed> {
    let work = work_dir(root)?;
    let expected = Expected::read(&root.join(name))?;
    let stream = tools::capture_for(name, &set.suffix, work.path())?;
    known.judge("run", name, check::execute(&stream, name, &expected, set, work.path()))
}

fn trials(root: PathBuf, known: Known) -> Result<Vec<Trial>, Failed> {
    let (root, known) = (Arc::new(root), Arc::new(known));
    let mut trials = Vec::new();
    for name in tools::model_names(&root)? {
        let (here, table, model) = (root.clone(), known.clone(), name.clone());
        trials.push(Trial::test(format!("capture/{name}"), move || capture(&here, &model, &table)));
        for set in Expected::read(&root.join(&name))?.sets {
            let (here, table, model) = (root.clone(), known.clone(), name.clone());
            let title = format!("run/{name}{}", set.suffix.replace('_', "/"));
            let run = move || execute(&here, &model, &set, &table);
            trials.push(Trial::test(title, run).with_ignored_flag(tools::without_mlir()));
        }
    }
    Ok(trials)
}

fn main() -> Result<(), Failed> {
    let args = Arguments::from_args();
    let foreign = std::env::var_os("M2M_MODELS").map(PathBuf::from);
    let known = Known::read(foreign.is_some())?;
    let root = foreign.unwrap_or_else(tools::fixtures).canonicalize()?;
    libtest_mimic::run(&args, trials(root, known)?).exit()
}
