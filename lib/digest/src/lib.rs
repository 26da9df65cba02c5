//! SHA-256 over bytes, files and folders; inventories and receipts and the check of them; canonical JSON; seals.
//!
//! Everything here is a function of bytes and names: no clock, owner, mode or order of a folder enters a digest.
//! Files are hashed in parallel; memory does not grow with their size.

mod check;
mod error;
mod inventory;
mod json;
mod name;
mod receipt;
mod seal;
mod sha;
mod tree;

pub use check::{Finding, Report, Scope, check};
pub use error::Error;
pub use inventory::{Entry, read_list, write_entry};
pub use json::{MAX_DEPTH, canonical_json};
pub use name::Name;
pub use receipt::{BoundFile, RECEIPT_NAME, RECEIPT_SCHEMA, Receipt};
pub use seal::reseal;
pub use sha::{Digest, Hashed, Hasher, hash_file, hash_files, hash_reader};
pub use tree::{Tree, walk};

/// Told how many more bytes are hashed; called from several threads.
pub type Advance<'a> = &'a (dyn Fn(u64) + Sync);
