//! The files of a folder, sorted by the bytes of their names.

use crate::{Error, Name};
use std::fs::{self, FileType};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a folder holds, each list sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Regular files.
    pub files: Vec<Name>,
    /// Symbolic links, pipes, sockets, devices, with what they are. Links are never followed.
    pub others: Vec<(Name, &'static str)>,
    /// Folders with nothing in them.
    pub empty_folders: Vec<Name>,
}

impl Tree {
    /// An error for the first entry that an inventory cannot state.
    pub fn only_files(self, root: &Path) -> Result<Vec<Name>, Error> {
        match self.others.first() {
            Some((name, kind)) => Err(Error::NotRegular { path: root.join(name.as_path()), kind }),
            None => Ok(self.files),
        }
    }
}

pub(crate) fn kind_of(kind: FileType) -> &'static str {
    if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else {
        "not a regular file"
    }
}

/// Lists everything below `root`, without following links and without recursion.
pub fn walk(root: &Path) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    let mut folders = vec![(root.to_path_buf(), Vec::new())];
    while let Some((path, prefix)) = folders.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&path).map_err(|e| Error::io(&path, "list", e))? {
            is_empty = false;
            let entry = entry.map_err(|e| Error::io(&path, "list", e))?;
            let kind = entry.file_type().map_err(|e| Error::io(entry.path(), "look at", e))?;
            let name = joined(&prefix, entry.file_name().as_bytes());
            sort_in(&mut tree, &mut folders, entry.path(), name, kind);
        }
        if is_empty && !prefix.is_empty() {
            tree.empty_folders.push(Name::from_bytes(prefix));
        }
    }
    tree.files.sort();
    tree.others.sort();
    tree.empty_folders.sort();
    Ok(tree)
}

fn joined(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if prefix.is_empty() { name.to_vec() } else { [prefix, name].join(&b'/') }
}

fn sort_in(tree: &mut Tree, folders: &mut Vec<(PathBuf, Vec<u8>)>, path: PathBuf, name: Vec<u8>, kind: FileType) {
    if kind.is_dir() {
        folders.push((path, name));
    } else if kind.is_file() {
        tree.files.push(Name::from_bytes(name));
    } else {
        tree.others.push((Name::from_bytes(name), kind_of(kind)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_by_whole_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a/z", "a.b", "a-b", "b"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        fs::create_dir(dir.path().join("none")).unwrap();
        std::os::unix::fs::symlink("b", dir.path().join("link")).unwrap();
        let tree = walk(dir.path()).unwrap();
        assert_eq!(tree.files, ["a-b", "a.b", "a/z", "b"].map(Name::from_bytes));
        assert_eq!(tree.others, [(Name::from_bytes("link"), "a symbolic link")]);
        assert_eq!(tree.empty_folders, [Name::from_bytes("none")]);
    }
}
