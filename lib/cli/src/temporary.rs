//! Temporary files and folders that never outlive the program: dropped ones are removed, and so are those of a program
//! that is ended by SIGINT, SIGTERM or SIGHUP.
//!
//! The list of what is to be removed is locked while a name appears or becomes final, so a signal finds all or nothing.

use crate::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Begins every temporary name, so that a person finds what a killed program left.
const PREFIX: &str = ".m2m-";

static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(path: &Path) {
    // Best effort: the program is ending, and there is nobody left to tell.
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Removes everything that is pending; the lock stays held, so nothing new appears before the program ends.
pub(crate) fn remove_all() -> MutexGuard<'static, Vec<PathBuf>> {
    let mut list = pending();
    for path in list.drain(..) {
        remove(&path);
    }
    list
}

/// Starts the thread that waits for signals, once, and only in a program that has something to clean up.
fn watch_signals() {
    static START: Once = Once::new();
    START.call_once(|| {
        let ignored = ignored_signals();
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let Ok(mut signals) = Signals::new(wanted) else { return };
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _held = remove_all();
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    });
}

/// The signals that whoever started us asked to ignore (`nohup`, a background job): those stay ignored.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A file beside its destination, under a temporary name until it is kept.
#[derive(Debug)]
pub struct TempFile {
    inner: Option<tempfile::NamedTempFile>,
    target: PathBuf,
}

impl TempFile {
    /// Makes it in the folder of `target`, with the permissions that `target` has or would get.
    pub fn beside(target: &Path) -> Result<Self, Error> {
        watch_signals();
        let mode = fs::metadata(target).map_or(0o666, |meta| meta.permissions().mode() & 0o777);
        let folder = folder_of(target);
        let mut list = pending();
        let made =
            tempfile::Builder::new().prefix(PREFIX).permissions(Permissions::from_mode(mode)).tempfile_in(&folder);
        let inner = made.map_err(|e| Error::file(target, "create", e))?;
        list.push(inner.path().to_path_buf());
        Ok(TempFile { inner: Some(inner), target: target.to_path_buf() })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        self.named().as_file()
    }

    fn named(&self) -> &tempfile::NamedTempFile {
        self.inner.as_ref().expect("taken only by `keep` and `drop`, which consume the value")
    }

    /// Makes the content durable and gives the file its final name, replacing what has it.
    pub fn keep(mut self) -> Result<(), Error> {
        self.file().sync_all().map_err(|e| Error::file(&self.target, "write", e))?;
        let mut list = pending();
        let Some(inner) = self.inner.take() else { return Ok(()) };
        let temporary = inner.path().to_path_buf();
        let renamed = inner.persist(&self.target);
        list.retain(|path| *path != temporary);
        renamed.map_err(|e| Error::file(&self.target, "rename", e.error))?;
        sync_folder(&folder_of(&self.target)).map_err(|e| Error::file(&self.target, "sync the folder of", e))
    }
}

impl Write for TempFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            let mut list = pending();
            let temporary = inner.path().to_path_buf();
            drop(inner);
            list.retain(|path| *path != temporary);
        }
    }
}

/// A folder beside its destination, under a temporary name until it is kept.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
    target: PathBuf,
    is_kept: bool,
}

impl TempDir {
    /// Makes it beside `target`. A `target` that is there, other than an empty folder, is refused unless `force`.
    pub fn beside(target: &Path, force: bool) -> Result<Self, Error> {
        if !force && !is_free(target)? {
            return Err(Error::NotEmpty(target.to_path_buf()));
        }
        // `out/` and `out` are the same folder; a rename needs the second spelling.
        let target: PathBuf = target.components().collect();
        if target.file_name().is_none() {
            return Err(Error::Nameless(target));
        }
        watch_signals();
        let mut list = pending();
        let mode = Permissions::from_mode(0o777);
        let made = tempfile::Builder::new().prefix(PREFIX).permissions(mode).tempdir_in(folder_of(&target));
        let path = made.map_err(|e| Error::file(&target, "create", e))?.keep();
        list.push(path.clone());
        Ok(TempDir { path, target, is_kept: false })
    }

    /// Where to write the content.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder durable and gives it its final name. What had the name is moved aside first and removed last, so
    /// a failure leaves one of the two whole.
    pub fn keep(mut self) -> Result<(), Error> {
        sync_folder(&self.path).map_err(|e| Error::file(&self.target, "write", e))?;
        let mut list = pending();
        let aside = self.move_aside()?;
        if let Err(error) = fs::rename(&self.path, &self.target) {
            if let Some(aside) = &aside {
                let _ = fs::rename(aside, &self.target);
            }
            return Err(Error::file(&self.target, "rename", error));
        }
        self.is_kept = true;
        list.retain(|path| *path != self.path);
        sync_folder(&folder_of(&self.target)).map_err(|e| Error::file(&self.target, "sync the folder of", e))?;
        match aside {
            Some(old) if old.is_dir() => fs::remove_dir_all(&old).map_err(|e| Error::file(&old, "remove", e)),
            Some(old) => fs::remove_file(&old).map_err(|e| Error::file(&old, "remove", e)),
            None => Ok(()),
        }
    }

    fn move_aside(&self) -> Result<Option<PathBuf>, Error> {
        // A rename replaces an empty folder by itself.
        if is_free(&self.target)? {
            return Ok(None);
        }
        let mut name = self.path.file_name().unwrap_or_default().to_os_string();
        name.push(".old");
        let aside = self.path.with_file_name(name);
        fs::rename(&self.target, &aside).map_err(|e| Error::file(&self.target, "replace", e))?;
        Ok(Some(aside))
    }
}

/// Whether nothing is at `path`, or an empty folder. A link is something, wherever it points.
fn is_free(path: &Path) -> Result<bool, Error> {
    let plain: PathBuf = path.components().collect();
    match fs::symlink_metadata(&plain) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::file(path, "look at", error)),
        Ok(meta) if meta.is_dir() => {
            let mut entries = fs::read_dir(&plain).map_err(|e| Error::file(path, "read", e))?;
            Ok(entries.next().is_none())
        }
        Ok(_) => Ok(false),
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !self.is_kept {
            let mut list = pending();
            remove(&self.path);
            list.retain(|path| *path != self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_appears_whole() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        let made = TempDir::beside(&target, false).unwrap();
        fs::write(made.path().join("a"), b"1").unwrap();
        assert!(!target.exists());
        made.keep().unwrap();
        assert_eq!(fs::read(target.join("a")).unwrap(), b"1");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_folder_needs_force() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("mine"), b"1").unwrap();
        assert!(matches!(TempDir::beside(&target, false), Err(Error::NotEmpty(_))));
        let made = TempDir::beside(&target, true).unwrap();
        drop(made);
        assert!(target.join("mine").exists(), "a dropped folder replaces nothing");
        TempDir::beside(&target, true).unwrap().keep().unwrap();
        assert!(!target.join("mine").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn permissions_follow_the_file_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        TempFile::beside(&path).unwrap().keep().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
