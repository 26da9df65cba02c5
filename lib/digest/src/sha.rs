//! SHA-256 of bytes, streams and files.

use crate::{Advance, Error};
use rayon::iter::{ParallelBridge, ParallelIterator};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

/// Bytes read at a time: the block stays in the cache of the core that hashes it.
const BLOCK_BYTES: usize = 64 * 1024;

/// A SHA-256 digest; shown as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = String;

    /// Reads exactly 64 hexadecimal digits, of either case.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a SHA-256 digest; expected 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let pair = text.get(2 * at..2 * at + 2).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Digest(bytes))
    }
}

/// Digests bytes as they come.
#[derive(Clone, Debug, Default)]
pub struct Hasher {
    state: Sha256,
    bytes: u64,
}

impl Hasher {
    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The digest of all that was added, and its length.
    pub fn finish(self) -> Hashed {
        Hashed { bytes: self.bytes, digest: Digest(self.state.finalize().into()) }
    }
}

/// A length and a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed {
    /// Bytes read.
    pub bytes: u64,
    /// Their digest.
    pub digest: Digest,
}

/// Hashes what `reader` gives, to its end.
pub fn hash_reader(mut reader: impl Read, advance: Advance) -> io::Result<Hashed> {
    let mut block = vec![0; BLOCK_BYTES];
    let mut hasher = Hasher::default();
    loop {
        match reader.read(&mut block) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => {
                hasher.update(block.get(..count).unwrap_or_default());
                advance(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Hashes a file.
pub fn hash_file(path: &Path, advance: Advance) -> Result<Hashed, Error> {
    let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    hash_reader(file, advance).map_err(|e| Error::io(path, "read", e))
}

/// Hashes many files, each on one core, the largest first so that none is left for the end. Results are in the order of
/// `paths`, whatever the number of threads.
pub fn hash_files<P: AsRef<Path> + Sync>(paths: &[P], advance: Advance) -> Vec<Result<Hashed, Error>> {
    let size = |at: &usize| paths.get(*at).and_then(|path| path.as_ref().metadata().ok()).map_or(0, |meta| meta.len());
    let mut order: Vec<(u64, usize)> = (0..paths.len()).map(|at| (size(&at), at)).collect();
    order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let jobs = order.into_iter().filter_map(|(_, at)| paths.get(at).map(|path| (at, path.as_ref())));
    // The bridge hands jobs out in order; splitting the list in halves would not.
    let mut results: Vec<_> = jobs.par_bridge().map(|(at, path)| (at, hash_file(path, advance))).collect();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4 example: SHA-256 of "abc".
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn known_digests() {
        assert_eq!(Digest::of(b"abc").to_string(), ABC);
        let empty = hash_reader(io::empty(), &|_| ()).unwrap();
        assert_eq!(empty.digest.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn digests_are_read_strictly() {
        assert_eq!(ABC.parse::<Digest>().unwrap(), Digest::of(b"abc"));
        assert!(ABC[1..].parse::<Digest>().is_err());
        assert!(format!("+{}", &ABC[1..]).parse::<Digest>().is_err());
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }

    #[test]
    fn many_files_keep_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..20).map(|n| dir.path().join(n.to_string())).collect();
        for (n, path) in paths.iter().enumerate() {
            std::fs::write(path, vec![n as u8; n * 1000]).unwrap();
        }
        for (n, result) in hash_files(&paths, &|_| ()).into_iter().enumerate() {
            assert_eq!(
                result.unwrap(),
                Hashed { bytes: n as u64 * 1000, digest: Digest::of(&vec![n as u8; n * 1000]) }
            );
        }
    }
}
