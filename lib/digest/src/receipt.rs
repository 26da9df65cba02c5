//! The receipt of a bundle: the name, size and SHA-256 of every file beside it.
//!
//! A receipt is canonical JSON and a newline, and is accepted in no other spelling, so that no byte of it can change
//! unnoticed.

use crate::{Digest, Entry, Error, Name, canonical_json};
use serde::{Deserialize, Serialize};

/// The receipt's name in its bundle.
pub const RECEIPT_NAME: &str = "receipt.json";

/// The version of the layout, in the field `schema`.
pub const RECEIPT_SCHEMA: &str = "m2m.bundle.v1";

/// Largest receipt that is read, a bound on memory.
pub(crate) const MAX_RECEIPT_BYTES: usize = 64 << 20;

/// What a receipt says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Every file of the bundle but the receipt, sorted by name.
    pub files: Vec<BoundFile>,
    /// [`RECEIPT_SCHEMA`].
    pub schema: String,
}

/// One file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundFile {
    /// Its size.
    pub bytes: u64,
    /// Its name in the bundle.
    pub name: String,
    /// Its digest, 64 hexadecimal digits.
    pub sha256: String,
}

impl Receipt {
    /// A receipt for `files`, which are put in order.
    pub fn new(mut files: Vec<BoundFile>) -> Self {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Receipt { files, schema: RECEIPT_SCHEMA.to_owned() }
    }

    /// The bytes of `receipt.json`.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let plain = serde_json::to_vec(self).map_err(|e| Error::Receipt(e.to_string()))?;
        Ok((canonical_json(&plain)? + "\n").into_bytes())
    }

    /// Reads a receipt, strictly.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_RECEIPT_BYTES {
            let message = format!("the receipt has {} bytes; at most {MAX_RECEIPT_BYTES} are read", bytes.len());
            return Err(Error::Receipt(message));
        }
        let receipt: Receipt =
            serde_json::from_slice(bytes).map_err(|e| Error::Receipt(format!("not a receipt: {e}")))?;
        if receipt.schema != RECEIPT_SCHEMA {
            let message = format!("receipt schema {:?}; this version reads {RECEIPT_SCHEMA}", receipt.schema);
            return Err(Error::Receipt(message));
        }
        if let Some((a, b)) = receipt.files.iter().zip(receipt.files.iter().skip(1)).find(|(a, b)| a.name >= b.name) {
            let message = format!("{:?} follows {:?}; names must be sorted and appear once", b.name, a.name);
            return Err(Error::Receipt(message));
        }
        if receipt.to_bytes()? != bytes {
            return Err(Error::Receipt(
                "the receipt is not canonical JSON followed by a newline: it was edited".into(),
            ));
        }
        Ok(receipt)
    }

    /// The files as entries to check.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let entry = |file: &BoundFile| {
            let wrong = |e: String| Error::Receipt(format!("{:?}: {e}", file.name));
            let digest: Digest = file.sha256.parse().map_err(wrong)?;
            if digest.to_string() != file.sha256 {
                return Err(wrong("the digest must be in lower case".into()));
            }
            Ok(Entry { name: Name::from_bytes(file.name.as_bytes()), bytes: Some(file.bytes), digest })
        };
        self.files.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Receipt {
        let file = |name: &str| BoundFile { bytes: 3, name: name.into(), sha256: Digest::of(b"abc").to_string() };
        Receipt::new(vec![file("b"), file("a")])
    }

    #[test]
    fn round_trip() {
        let bytes = sample().to_bytes().unwrap();
        assert_eq!(Receipt::from_bytes(&bytes).unwrap(), sample());
        assert!(bytes.starts_with(b"{\"files\":[{\"bytes\":3,\"name\":\"a\""), "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_byte_may_change() {
        let bytes = sample().to_bytes().unwrap();
        for at in 0..bytes.len() {
            for flip in [1, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                let same = Receipt::from_bytes(&changed)
                    .and_then(|r| r.entries())
                    .is_ok_and(|e| e == sample().entries().unwrap());
                assert!(!same, "byte {at} xor {flip}");
            }
            assert!(Receipt::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
