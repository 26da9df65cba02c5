//! Reads and checks a header.

use super::{METADATA_KEY, Notes, from_format_name, stored};
use indexmap::IndexMap;
use m2m_record::DType;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use std::fmt;

/// Largest header that is read, the format's own limit.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Why bytes are not a safetensors file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Shorter than the header's length field.
    #[error("{0} bytes; a safetensors file has at least 8")]
    Short(usize),
    /// The header does not fit.
    #[error("header of {length} bytes at offset 8 in a file of {file} bytes; at most {} are read", MAX_HEADER_BYTES)]
    HeaderLength {
        /// As stated.
        length: u64,
        /// The file's size.
        file: usize,
    },
    /// The header is not the JSON it should be.
    #[error("header, byte {at}: {message}")]
    Header {
        /// Position in the file.
        at: usize,
        /// What is wrong.
        message: String,
    },
    /// A tensor does not agree with itself or the file.
    #[error("tensor {name:?}: {message}")]
    Tensor {
        /// Its name.
        name: String,
        /// What was found and what would be right.
        message: String,
    },
    /// Bytes that belong to no tensor.
    #[error("data ends at byte {end} of {file}; the file has bytes of no tensor or lacks some")]
    Length {
        /// Where the tensors say the data ends.
        end: u64,
        /// The file's size.
        file: usize,
    },
}

/// A tensor in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Element type; the real one where the file's notes state it.
    pub dtype: DType,
    /// Shape, likewise.
    pub shape: Vec<u64>,
    /// Position of its first byte in the file.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
}

/// A checked header.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Tensors by name, aliases included.
    pub tensors: IndexMap<String, Entry>,
    /// All of `__metadata__`.
    pub metadata: IndexMap<String, String>,
    /// What our own metadata key says.
    pub notes: Notes,
}

/// The value of a header key.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// An object with distinct keys; `__metadata__` apart.
struct RawHeader {
    tensors: IndexMap<String, RawEntry>,
    metadata: IndexMap<String, String>,
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = RawHeader;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut out = RawHeader { tensors: IndexMap::new(), metadata: IndexMap::new() };
                let mut has_metadata = false;
                while let Some(key) = map.next_key::<String>()? {
                    let again = if key == "__metadata__" {
                        // Writers that have none to state may say so by null.
                        out.metadata = map.next_value::<Option<_>>()?.unwrap_or_default();
                        std::mem::replace(&mut has_metadata, true)
                    } else {
                        out.tensors.insert(key.clone(), map.next_value()?).is_some()
                    };
                    if again {
                        return Err(A::Error::custom(format!("duplicate key {key:?}")));
                    }
                }
                Ok(out)
            }
        }
        d.deserialize_map(V)
    }
}

impl Header {
    /// Reads the header of a whole file's bytes. No tensor data is touched.
    pub fn read(file: &[u8]) -> Result<Header, Error> {
        let length: [u8; 8] = file.first_chunk().copied().ok_or(Error::Short(file.len()))?;
        let length = u64::from_le_bytes(length);
        let wrong_length = Error::HeaderLength { length, file: file.len() };
        if length > MAX_HEADER_BYTES {
            return Err(wrong_length);
        }
        let text = file.get(8..8 + length as usize).ok_or(wrong_length)?;
        let fail = |at: usize, message: String| Error::Header { at: 8 + at, message };
        if text.first() != Some(&b'{') {
            return Err(fail(0, "expected a JSON object".into()));
        }
        let raw: RawHeader =
            serde_json::from_slice(text).map_err(|e| fail(e.column().saturating_sub(1), e.to_string()))?;
        let notes = match raw.metadata.get(METADATA_KEY) {
            Some(text) => {
                serde_json::from_str(text).map_err(|e| fail(0, format!("metadata key {METADATA_KEY:?}: {e}")))?
            }
            None => Notes::default(),
        };
        let mut header =
            Header { tensors: entries(raw.tensors, 8 + length, file.len())?, metadata: raw.metadata, notes };
        header.apply_notes()?;
        Ok(header)
    }

    /// Gives tensors the types that the notes state, and adds aliases.
    fn apply_notes(&mut self) -> Result<(), Error> {
        let fail = |name: &str, message: &str| Error::Tensor { name: name.to_owned(), message: message.to_owned() };
        for (name, real) in &self.notes.types {
            let entry = self.tensors.get_mut(name).ok_or_else(|| fail(name, "is noted but not in the file"))?;
            if stored(real.dtype, &real.shape).as_ref() != Some(&(entry.dtype, entry.shape.clone())) {
                return Err(fail(name, "its noted type does not fit what is stored"));
            }
            entry.dtype = real.dtype;
            entry.shape.clone_from(&real.shape);
        }
        for (alias, name) in &self.notes.aliases {
            let entry =
                self.tensors.get(name).cloned().ok_or_else(|| fail(name, "has an alias but is not in the file"))?;
            if self.tensors.insert(alias.clone(), entry).is_some() {
                return Err(fail(alias, "is an alias and a tensor"));
            }
        }
        Ok(())
    }
}

/// Checks every tensor, and that together they cover the data without holes.
fn entries(raw: IndexMap<String, RawEntry>, start: u64, file: usize) -> Result<IndexMap<String, Entry>, Error> {
    let mut order: Vec<(&String, [u64; 2])> = raw.iter().map(|(name, e)| (name, e.data_offsets)).collect();
    order.sort_by_key(|(_, offsets)| *offsets);
    let mut end = 0;
    for (name, [from, to]) in order {
        if from != end || to < from {
            let message = format!("data_offsets [{from},{to}]; expected to begin at {end}, without holes or overlaps");
            return Err(Error::Tensor { name: name.clone(), message });
        }
        end = to;
    }
    match end.checked_add(start) {
        Some(total) if total == file as u64 => {}
        total => return Err(Error::Length { end: total.unwrap_or(u64::MAX), file }),
    }
    raw.into_iter().map(|(name, e)| Ok((name.clone(), entry(&name, e, start)?))).collect()
}

fn entry(name: &str, raw: RawEntry, start: u64) -> Result<Entry, Error> {
    let fail = |message: String| Error::Tensor { name: name.to_owned(), message };
    let dtype =
        from_format_name(&raw.dtype).ok_or_else(|| fail(format!("dtype {:?} is not one we read", raw.dtype)))?;
    let [from, to] = raw.data_offsets;
    let count = raw.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let needed =
        count.and_then(|n| dtype.bytes_of(n)).ok_or_else(|| fail(format!("shape {:?} overflows", raw.shape)))?;
    if needed != to - from {
        return Err(fail(format!("{dtype} {:?} takes {needed} bytes; data_offsets give {}", raw.shape, to - from)));
    }
    Ok(Entry { dtype, shape: raw.shape, offset: start + from, bytes: needed })
}
