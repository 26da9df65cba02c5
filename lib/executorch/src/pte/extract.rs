//! Payloads into files: all that were asked for, or none.
//!
//! A payload is written straight out of the mapped file, and the folder appears when every file in it is whole.

use super::payload::{self, Format, Refusal};
use super::{Delegate, Program};
use m2m_cli::TempDir;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// How often the bytes of a file may be written in all: delegates may share a payload, but not without bound.
const SHARING: u64 = 256;

/// Bytes written at a time, few enough to stay in the processor's caches on their way.
const CHUNK_BYTES: usize = 256 * 1024;

/// Which delegates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection<'s> {
    /// Only of this method.
    pub method: Option<&'s str>,
    /// Only with this index.
    pub delegate: Option<usize>,
    /// Only of this backend.
    pub backend: Option<&'s str>,
}

/// Delegates that will be written, each under its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan<'p, 'a> {
    /// The delegates with the names of their files.
    pub files: Vec<(Delegate<'p, 'a>, String)>,
    /// Those that will not be.
    pub refusals: Vec<Refusal>,
}

/// Chooses delegates and checks that their payloads are what their backends promise.
pub fn plan<'p, 'a>(program: &'p Program<'a>, selection: Selection<'_>) -> Plan<'p, 'a> {
    let mut plan = Plan::default();
    for delegate in program.delegates().filter(|it| selection.takes(it)) {
        match payload::check(&delegate) {
            Ok(format) => plan.push(delegate, format),
            Err(refusal) => plan.refusals.push(refusal),
        }
    }
    plan
}

/// Chooses the one delegate that stands for the whole program.
pub fn plan_single<'p, 'a>(program: &'p Program<'a>) -> Plan<'p, 'a> {
    let mut plan = Plan::default();
    match payload::single(program) {
        Ok(delegate) => {
            let format = Format::of(delegate.payload);
            plan.push(delegate, format);
        }
        Err(refusal) => plan.refusals.push(refusal),
    }
    plan
}

impl Selection<'_> {
    fn takes(&self, delegate: &Delegate<'_, '_>) -> bool {
        self.method.is_none_or(|method| method == delegate.method)
            && self.delegate.is_none_or(|index| index == delegate.index)
            && self.backend.is_none_or(|id| id == delegate.id)
    }
}

impl<'p, 'a> Plan<'p, 'a> {
    fn push(&mut self, delegate: Delegate<'p, 'a>, format: Format) {
        let name = payload::file_name(&delegate, format);
        self.files.push((delegate, name));
    }

    /// Why nothing is to be written; none when the files are.
    pub fn all_refusals(&self) -> Vec<Refusal> {
        let none = self.files.is_empty() && self.refusals.is_empty();
        if none { vec![Refusal::Nothing] } else { self.refusals.clone() }
    }

    /// Writes all payloads into a new folder `target`.
    ///
    /// # Errors
    /// Those of the file system, and delegates that share payloads until far more would be written than `file_bytes`, the
    /// size of the program.
    pub fn write(&self, target: &Path, force: bool, file_bytes: u64) -> Result<(), Error> {
        let bytes = self.files.iter().fold(0u64, |total, (it, _)| total.saturating_add(it.range.bytes));
        let limit = file_bytes.saturating_mul(SHARING);
        if bytes > limit {
            return Err(Error::Sharing { delegates: self.files.len(), bytes, limit });
        }
        let folder = TempDir::beside(target, force)?;
        for (delegate, name) in &self.files {
            let path = folder.path().join(name);
            let done = File::create(&path).and_then(|mut file| {
                delegate.payload.chunks(CHUNK_BYTES).try_for_each(|chunk| file.write_all(chunk))?;
                file.sync_all()
            });
            done.map_err(|e| m2m_cli::Error::file(target.join(name), "write", e))?;
        }
        Ok(folder.keep()?)
    }
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error(transparent)]
    File(#[from] m2m_cli::Error),
    /// Delegates share payloads beyond measure.
    #[error(
        "{delegates} delegates share payloads of {bytes} bytes in all; at most {limit} are written, choose with --method or --delegate"
    )]
    Sharing {
        /// How many delegates.
        delegates: usize,
        /// What would be written.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}
