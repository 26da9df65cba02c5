//! Compares a folder with what a list or a receipt says of it. Every difference is found, not only the first.

use crate::sha::{Hashed, hash_files};
use crate::tree::{kind_of, walk};
use crate::{Advance, Entry, Error, Name};
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Listed, but not there.
    Missing,
    /// There, but not listed; with what it is.
    Added(&'static str),
    /// There with other content; with what differs.
    Changed(String),
    /// Listed, but it or a folder on its way is a symbolic link.
    Symlinked,
    /// Listed, but there it is something else than a file.
    NotAFile(&'static str),
    /// The list names something outside the folder or ambiguous; with the reason. It was not looked at.
    Unsafe(&'static str),
    /// There, but it could not be read; with the system's answer.
    Unreadable(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Missing => f.write_str("missing"),
            Finding::Added(kind) => write!(f, "added: {kind} that is not listed"),
            Finding::Changed(what) => write!(f, "changed: {what}"),
            Finding::Symlinked => f.write_str("symlinked: a symbolic link stands on its path"),
            Finding::NotAFile(kind) => write!(f, "changed: {kind} where a regular file is listed"),
            Finding::Unsafe(why) => write!(f, "unsafe name: {why}"),
            Finding::Unreadable(why) => write!(f, "unreadable: {why}"),
        }
    }
}

/// How much of the folder the list speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// Only for the files that it names.
    Listed,
    /// For every file; what else is there is a finding, but for the file named here, which is the list itself.
    Whole {
        /// The list's own name, where it lies in the folder.
        except: Option<&'a Name>,
        /// Whether an empty folder is a finding too.
        empty_folders: bool,
    },
}

/// The outcome of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that are as listed.
    pub matched: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Differences, sorted by name.
    pub findings: Vec<(Name, Finding)>,
}

impl Report {
    /// Whether all is as listed.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether something could not be judged, so that the answer is neither yes nor no.
    pub fn is_incomplete(&self) -> bool {
        self.findings.iter().any(|(_, finding)| matches!(finding, Finding::Unreadable(_)))
    }
}

/// Checks the files of `root` against `entries`.
pub fn check(root: &Path, entries: &[Entry], scope: Scope, advance: Advance) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut to_hash = Vec::new();
    for entry in entries {
        match locate(root, entry) {
            Ok(path) => to_hash.push((entry, path)),
            Err(finding) => report.findings.push((entry.name.clone(), finding)),
        }
    }
    let paths: Vec<&PathBuf> = to_hash.iter().map(|(_, path)| path).collect();
    for ((entry, _), result) in to_hash.iter().zip(hash_files(&paths, advance)) {
        match compare(entry, result) {
            Ok(bytes) => {
                report.matched += 1;
                report.bytes = report.bytes.saturating_add(bytes);
            }
            Err(finding) => report.findings.push((entry.name.clone(), finding)),
        }
    }
    if let Scope::Whole { except, empty_folders } = scope {
        report.findings.extend(added(root, entries, except, empty_folders)?);
    }
    report.findings.sort();
    Ok(report)
}

/// Finds a listed file without following a link, and compares its size where the list states one.
fn locate(root: &Path, entry: &Entry) -> Result<PathBuf, Finding> {
    if let Some(why) = entry.name.danger() {
        return Err(Finding::Unsafe(why));
    }
    let mut path = root.to_path_buf();
    let mut last = None;
    for part in entry.name.as_path().components() {
        path.push(part);
        let meta = fs::symlink_metadata(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Finding::Missing,
            _ => Finding::Unreadable(error.to_string()),
        })?;
        if meta.is_symlink() {
            return Err(Finding::Symlinked);
        }
        last = Some(meta);
    }
    match last {
        Some(meta) if !meta.is_file() => Err(Finding::NotAFile(kind_of(meta.file_type()))),
        Some(meta) => match entry.bytes.filter(|bytes| *bytes != meta.len()) {
            Some(bytes) => Err(Finding::Changed(format!("{} bytes, listed with {bytes}", meta.len()))),
            None => Ok(path),
        },
        None => Err(Finding::Missing),
    }
}

fn compare(entry: &Entry, result: Result<Hashed, Error>) -> Result<u64, Finding> {
    let hashed = result.map_err(|error| Finding::Unreadable(error.to_string()))?;
    if entry.bytes.is_some_and(|bytes| bytes != hashed.bytes) || hashed.digest != entry.digest {
        return Err(Finding::Changed(format!("sha256 {}, listed with {}", hashed.digest, entry.digest)));
    }
    Ok(hashed.bytes)
}

fn added(
    root: &Path,
    entries: &[Entry],
    except: Option<&Name>,
    empty_folders: bool,
) -> Result<Vec<(Name, Finding)>, Error> {
    let tree = walk(root)?;
    let known: HashSet<&Name> = entries.iter().map(|entry| &entry.name).chain(except).collect();
    let files = tree.files.into_iter().map(|name| (name, "a file"));
    let folders = tree.empty_folders.into_iter().filter(|_| empty_folders).map(|name| (name, "an empty folder"));
    let all = files.chain(tree.others).chain(folders);
    Ok(all.filter(|(name, _)| !known.contains(name)).map(|(name, kind)| (name, Finding::Added(kind))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn entry(name: &str, content: &str) -> Entry {
        Entry {
            name: Name::from_bytes(name),
            bytes: Some(content.len() as u64),
            digest: Digest::of(content.as_bytes()),
        }
    }

    #[test]
    fn every_difference_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("sub")).unwrap();
        for (name, content) in [("same", "1"), ("longer", "22"), ("other", "x"), ("extra", "?"), ("sub/in", "3")] {
            fs::write(root.join(name), content).unwrap();
        }
        std::os::unix::fs::symlink("same", root.join("link")).unwrap();
        std::os::unix::fs::symlink("sub", root.join("door")).unwrap();
        let listed = [
            ("same", "1"),
            ("longer", "2"),
            ("other", "y"),
            ("gone", ""),
            ("link", "1"),
            ("door/in", "3"),
            ("sub", ""),
            ("../up", ""),
        ];
        let entries = listed.map(|(name, content)| entry(name, content));
        let scope = Scope::Whole { except: None, empty_folders: true };
        let report = check(root, &entries, scope, &|_| ()).unwrap();
        let found: Vec<_> =
            report.findings.iter().map(|(name, finding)| format!("{} {finding}", name.shown())).collect();
        let starts = [
            "../up unsafe name: leaves",
            "door added: a symbolic link",
            "door/in symlinked",
            "extra added: a file",
            "gone missing",
            "link symlinked",
            "longer changed: 2 bytes, listed with 1",
            "other changed: sha256",
            "sub changed: a folder",
            "sub/in added: a file",
        ];
        assert_eq!(found.len(), starts.len(), "{found:#?}");
        for (line, start) in found.iter().zip(starts) {
            assert!(line.starts_with(start), "{line:?} starts with {start:?}");
        }
        assert_eq!((report.matched, report.is_clean()), (1, false));
    }

    #[test]
    fn the_list_itself_may_lie_in_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("list"), "…").unwrap();
        let own = Name::from_bytes("list");
        let whole = |except| Scope::Whole { except, empty_folders: false };
        assert!(check(dir.path(), &[], whole(Some(&own)), &|_| ()).unwrap().is_clean());
        assert!(!check(dir.path(), &[], whole(None), &|_| ()).unwrap().is_clean());
        assert!(check(dir.path(), &[], Scope::Listed, &|_| ()).unwrap().is_clean());
    }
}
