//! Names of files in lists: relative, inside their folder, and written as `sha256sum` writes them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A relative name, as bytes: a file's name need not be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Vec<u8>);

impl Name {
    /// Takes the bytes as they are, whether safe or not.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Name(bytes.into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a path.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Why the name must not be followed, or `None` where it stays in its folder.
    pub fn danger(&self) -> Option<&'static str> {
        if self.0.is_empty() {
            return Some("empty");
        }
        if self.0.first() == Some(&b'/') {
            return Some("absolute; only names inside the folder are followed");
        }
        if self.0.contains(&0) {
            return Some("contains a zero byte");
        }
        for part in self.0.split(|b| *b == b'/') {
            match part {
                b".." => return Some("leaves the folder by `..`"),
                b"" | b"." => return Some("has an empty or `.` component"),
                _ => {}
            }
        }
        None
    }

    /// For people: invalid UTF-8 and control characters are escaped.
    pub fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
    }

    /// Writes the name as `sha256sum` does; true where the line then begins with a backslash.
    pub(crate) fn escaped(&self) -> (bool, Vec<u8>) {
        let mut out = Vec::with_capacity(self.0.len());
        for byte in &self.0 {
            match byte {
                b'\\' => out.extend(b"\\\\"),
                b'\n' => out.extend(b"\\n"),
                b'\r' => out.extend(b"\\r"),
                _ => out.push(*byte),
            }
        }
        (out.len() != self.0.len(), out)
    }

    /// Undoes [`Name::escaped`]; `None` for an escape that it does not write.
    pub(crate) fn unescape(text: &[u8]) -> Option<Self> {
        let mut out = Vec::with_capacity(text.len());
        let mut bytes = text.iter();
        while let Some(byte) = bytes.next() {
            out.push(match byte {
                b'\\' => match bytes.next()? {
                    b'\\' => b'\\',
                    b'n' => b'\n',
                    b'r' => b'\r',
                    _ => return None,
                },
                _ => *byte,
            });
        }
        Some(Name(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_names() {
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b"] {
            assert!(Name::from_bytes(bad).danger().is_some(), "{bad:?}");
        }
        for good in ["a", "a/b.c", "..a", "a b", "é", "-"] {
            assert!(Name::from_bytes(good).danger().is_none(), "{good:?}");
        }
    }

    #[test]
    fn escapes_round_trip() {
        for name in [&b"plain"[..], b"a\\b", b"new\nline", b"r\r\\n", b"\xff\xfe"] {
            let name = Name::from_bytes(name);
            let (marked, text) = name.escaped();
            assert_eq!(marked, text != name.as_bytes());
            assert_eq!(Name::unescape(&text).unwrap(), name);
        }
        assert!(Name::unescape(b"\\t").is_none());
        assert!(Name::unescape(b"\\").is_none());
    }
}
