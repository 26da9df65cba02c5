//! The files that are read: mapped, or read whole from stdin.

use m2m_cli::{AtInput as _, Failure, Input};
use m2m_record::ToolInput;
use m2m_tensor::MappedFile;
use sha2::{Digest, Sha256};
use std::io::Read as _;
use std::path::Path;

/// The bytes of a file with the name that messages use.
#[derive(Debug)]
pub struct Bytes {
    /// The path as given, or `<stdin>`.
    pub name: String,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Mapped(MappedFile),
    Read(Vec<u8>),
}

impl Bytes {
    /// Maps a file; reads what cannot be mapped, as stdin or a named pipe.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path.is_file() {
            let name = path.display().to_string();
            let mapped = MappedFile::open(path).at_input(&name)?;
            return Ok(Bytes { name, held: Held::Mapped(mapped) });
        }
        let mut input = Input::open(Some(path))?;
        let name = input.name().to_owned();
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).at_input(&name)?;
        Ok(Bytes { name, held: Held::Read(bytes) })
    }

    /// The bytes.
    pub fn get(&self) -> &[u8] {
        match &self.held {
            Held::Mapped(mapped) => mapped.bytes(),
            Held::Read(bytes) => bytes,
        }
    }

    /// The path without folders; empty for stdin.
    pub fn base_name(&self) -> String {
        match &self.held {
            Held::Mapped(mapped) => base_name(mapped.path()),
            Held::Read(_) => String::new(),
        }
    }

    /// What a `tool` record says of it; `sha256` where the file's own digest would read what nobody needs.
    pub fn tool_input(&self, sha256: Option<String>) -> ToolInput {
        let own = || m2m_record::writer::hex(&Sha256::digest(self.get()));
        ToolInput { name: self.base_name(), bytes: self.get().len() as u64, sha256: sha256.unwrap_or_else(own) }
    }
}

/// A path without folders.
pub fn base_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
