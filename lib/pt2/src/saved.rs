//! Files of torch.save inside the archive: a zip in the zip, with a pickle and its storages.
//!
//! The storages are found by their position in the outer file, so that tensors are read in place like raw weights.

use m2m_zip::Zip;

use crate::Error;
use crate::archive::Archive;
use crate::pickle::{self, Pickle, Policy, Tensor};
use crate::place::{Placed, Storages};

/// An opened file of torch.save.
#[derive(Debug)]
pub struct Saved<'a> {
    entry: String,
    zip: Zip<'a>,
    /// Position of the inner zip in the outer file.
    base: u64,
    /// `archive/`, or whatever folder the file was saved with.
    root: String,
    is_big_endian: bool,
    pickle: Pickle<'a>,
}

impl<'a> Saved<'a> {
    /// Opens an entry and interprets its pickle. Storages are not touched.
    ///
    /// # Errors
    /// A missing or torn entry, a refused pickle.
    pub fn open(archive: &Archive<'a>, entry: &str, policy: Policy) -> Result<Self, Error> {
        let missing = || Error::MissingEntry { entry: entry.to_owned(), why: "a config names it".to_owned() };
        let outer = archive.zip().find(entry).ok_or_else(missing)?;
        let inner = |source| Error::Inner { entry: entry.to_owned(), source };
        let zip = Zip::open(archive.zip().bytes(outer)).map_err(inner)?;
        let root = zip
            .entries()
            .iter()
            .find_map(|e| e.name.strip_suffix("data.pkl").filter(|root| root.matches('/').count() == 1))
            .ok_or_else(|| Error::MissingEntry {
                entry: format!("{entry}!archive/data.pkl"),
                why: "torch.save writes it".into(),
            })?
            .to_owned();
        let name = format!("{root}data.pkl");
        let found = zip.find(&name).expect("its name was just read from the directory");
        let bytes = zip.checked_bytes(found).map_err(inner)?;
        let pickle =
            pickle::load(bytes, policy).map_err(|source| Error::Pickle { entry: format!("{entry}!{name}"), source })?;
        let is_big_endian = match zip.find(&format!("{root}byteorder")) {
            Some(order) => zip.checked_bytes(order).map_err(inner)? == b"big",
            None => false,
        };
        Ok(Self { entry: entry.to_owned(), base: outer.start, zip, root, is_big_endian, pickle })
    }

    /// What the file holds.
    pub fn pickle(&self) -> &Pickle<'a> {
        &self.pickle
    }

    /// The entry in the outer archive.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Where a tensor of this file lies. `None` when it has no storage.
    ///
    /// # Errors
    /// A storage that is not there or too small.
    pub fn place(&self, name: &str, tensor: &Tensor<'_>, storages: &mut Storages) -> Result<Option<Placed>, Error> {
        let Some(storage) = &tensor.storage else { return Ok(None) };
        let key = format!("{}data/{}", self.root, storage.key);
        let entry = format!("{}!{key}", self.entry);
        let fail = |detail: String| Error::Tensor { name: name.to_owned(), entry: entry.clone(), detail };
        let found = self.zip.find(&key).ok_or_else(|| fail("its storage is missing".to_owned()))?;
        let size = storage.dtype.map_or(Some(1), |dtype| dtype.size()).unwrap_or(1);
        let stated = u64::try_from(storage.len).ok().and_then(|len| len.checked_mul(size));
        if stated.is_none_or(|stated| stated > found.len) {
            return Err(fail(format!(
                "its storage of {} elements needs more than the entry's {} bytes",
                storage.len, found.len
            )));
        }
        let placed =
            Placed::new(tensor.dtype, &tensor.sizes, &tensor.strides, tensor.offset, found.len).map_err(fail)?;
        let start = self.base + found.start;
        Ok(Some(placed.at(start, storages.id(start, found.len), self.is_big_endian)))
    }
}
