//! What a delegate's payload looks like, by its first bytes, and which payloads a consumer of TOSA and VGF takes.

use super::{Delegate, Program};
use thiserror::Error;

/// A format of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A TOSA flatbuffer.
    Tosa,
    /// A VGF container.
    Vgf,
    /// XNNPACK's graph, with or without its header.
    Xnnpack,
    /// The stream of an Ethos-U, as Vela writes it.
    Vela,
    /// No bytes at all.
    Empty,
    /// Anything else.
    Unknown,
}

impl Format {
    /// Recognises a payload.
    pub fn of(payload: &[u8]) -> Self {
        let at = |offset: usize, word: &[u8]| payload.get(offset..).is_some_and(|rest| rest.starts_with(word));
        if payload.is_empty() {
            Format::Empty
        } else if at(4, b"TOSA") {
            Format::Tosa
        } else if at(0, b"VGF1") {
            Format::Vgf
        } else if at(4, b"XH00") || at(4, b"XN01") || at(4, b"XN00") {
            Format::Xnnpack
        } else if at(0, b"vela_bin_stream\0") {
            Format::Vela
        } else {
            Format::Unknown
        }
    }

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Format::Tosa => "tosa",
            Format::Vgf => "vgf",
            Format::Xnnpack => "xnnpack",
            Format::Vela => "vela",
            Format::Empty => "empty",
            Format::Unknown => "unknown",
        }
    }

    /// What ends the name of a file with such a payload.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Empty | Format::Unknown => "bin",
            known => known.name(),
        }
    }
}

/// Why a payload is not handed out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No delegate was chosen.
    #[error("no delegate to extract: the program has none, or none that was asked for")]
    Nothing,
    /// More than one method, or none, where one payload stands for the program.
    #[error("{found} methods; expected exactly one, whose delegate stands for the program")]
    Methods {
        /// How many.
        found: usize,
    },
    /// More than one delegate, or none, where one payload stands for the program.
    #[error("{found} delegates; expected exactly one, which stands for the program")]
    Delegates {
        /// How many.
        found: usize,
    },
    /// A backend whose payload nobody but its runtime can use.
    #[error("backend {id}; expected TOSABackend or VgfBackend, whose payloads are portable")]
    Backend {
        /// The method.
        method: String,
        /// The delegate.
        index: usize,
        /// The backend.
        id: String,
    },
    /// The payload has no bytes.
    #[error("{id}: the payload is empty")]
    Empty {
        /// The method.
        method: String,
        /// The delegate.
        index: usize,
        /// The backend.
        id: String,
    },
    /// The payload of a TOSA delegate is something else.
    #[error("TOSABackend: the payload is no TOSA flatbuffer: bytes 4 to 8 are {found}; expected \"TOSA\"")]
    NotTosa {
        /// The method.
        method: String,
        /// The delegate.
        index: usize,
        /// The bytes where the identifier must be.
        found: String,
    },
    /// The payload of a VGF delegate is something else.
    #[error("VgfBackend: the payload is no VGF file: bytes 0 to 4 are {found}; expected \"VGF1\"")]
    NotVgf {
        /// The method.
        method: String,
        /// The delegate.
        index: usize,
        /// The bytes where the identifier must be.
        found: String,
    },
}

impl Refusal {
    /// A stable word for it, the `code` of its diagnostic.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Nothing => "no-delegate",
            Refusal::Methods { .. } => "not-one-method",
            Refusal::Delegates { .. } => "not-one-delegate",
            Refusal::Backend { .. } => "unsupported-backend",
            Refusal::Empty { .. } => "empty-payload",
            Refusal::NotTosa { .. } => "not-tosa",
            Refusal::NotVgf { .. } => "not-vgf",
        }
    }

    /// The delegate that it is about, as `METHOD.INDEX`.
    pub fn delegate(&self) -> Option<String> {
        match self {
            Refusal::Nothing | Refusal::Methods { .. } | Refusal::Delegates { .. } => None,
            Refusal::Backend { method, index, .. }
            | Refusal::Empty { method, index, .. }
            | Refusal::NotTosa { method, index, .. }
            | Refusal::NotVgf { method, index, .. } => Some(format!("{method}.{index}")),
        }
    }
}

/// Whether a payload is what its backend's name promises. Backends other than TOSABackend and VgfBackend promise nothing.
///
/// # Errors
/// [`Refusal::Empty`], [`Refusal::NotTosa`], [`Refusal::NotVgf`].
pub fn check(delegate: &Delegate<'_, '_>) -> Result<Format, Refusal> {
    let format = Format::of(delegate.payload);
    let (method, index) = (delegate.method.to_owned(), delegate.index);
    match (delegate.id, format) {
        ("TOSABackend" | "VgfBackend", Format::Empty) => {
            Err(Refusal::Empty { method, index, id: delegate.id.to_owned() })
        }
        ("TOSABackend", Format::Tosa) | ("VgfBackend", Format::Vgf) => Ok(format),
        ("TOSABackend", _) => Err(Refusal::NotTosa { method, index, found: shown(delegate.payload, 4) }),
        ("VgfBackend", _) => Err(Refusal::NotVgf { method, index, found: shown(delegate.payload, 0) }),
        _ => Ok(format),
    }
}

/// The one delegate that stands for the whole program, as converters of programs to TOSA or VGF take it: one method, one
/// delegate, of a backend whose payload is a portable format, and in that format. The rules are tried in that order.
///
/// # Errors
/// The first rule that is broken.
pub fn single<'p, 'a>(program: &'p Program<'a>) -> Result<Delegate<'p, 'a>, Refusal> {
    if program.plans().len() != 1 {
        return Err(Refusal::Methods { found: program.plans().len() });
    }
    let mut all: Vec<Delegate<'p, 'a>> = program.delegates().collect();
    let found = all.len();
    let delegate = all.pop().filter(|_| found == 1).ok_or(Refusal::Delegates { found })?;
    if !["TOSABackend", "VgfBackend"].contains(&delegate.id) {
        let (method, index) = (delegate.method.to_owned(), delegate.index);
        return Err(Refusal::Backend { method, index, id: delegate.id.to_owned() });
    }
    check(&delegate).map(|_| delegate)
}

/// Four bytes of a payload, as text or in hexadecimal.
fn shown(payload: &[u8], offset: usize) -> String {
    let bytes = payload.get(offset..).unwrap_or_default();
    let bytes = bytes.get(..4).unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => format!("{text:?}"),
        _ if bytes.is_empty() => "not there".to_owned(),
        _ => m2m_record::writer::hex(bytes),
    }
}

/// Longest part of a file name that a method's name may become.
const NAME_BYTES: usize = 120;

/// The name of the file for a delegate's payload: `METHOD.INDEX.EXTENSION`. Different methods have different names: every
/// byte of the method's name but ASCII letters, digits, `_` and `-` is written `%XX`, and a long one is cut and ends with
/// part of its digest; no name is `%`.
pub fn file_name(delegate: &Delegate<'_, '_>, format: Format) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut name = String::new();
    for byte in delegate.method.bytes() {
        if plain(byte) { name.push(char::from(byte)) } else { name.push_str(&format!("%{byte:02X}")) }
    }
    // A `%` alone is in no other name, so that neither of these is ever another's whole one.
    if name.is_empty() {
        name.push('%');
    } else if name.len() > NAME_BYTES {
        let digest = super::sha256(delegate.method.as_bytes());
        name.truncate(NAME_BYTES);
        name = format!("{name}%-{}", digest.get(..16).unwrap_or_default());
    }
    format!("{name}.{}.{}", delegate.index, format.extension())
}
