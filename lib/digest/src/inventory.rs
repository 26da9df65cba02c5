//! Lists of digests in the format of `sha256sum`: `DIGEST  NAME`, one line a file.
//!
//! A name with a backslash, a newline or a carriage return has them escaped and its line begins with a backslash, as
//! coreutils do it, so that `sha256sum --check` reads every list written here.

use crate::{Digest, Error, Name};
use std::collections::HashSet;
use std::io::{self, BufRead, Write};

/// Longest line that is read, a bound on memory: a path is at most 4096 bytes, doubled by escapes.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// One file of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, relative to the folder of the list.
    pub name: Name,
    /// Its size, where the list states it.
    pub bytes: Option<u64>,
    /// Its digest.
    pub digest: Digest,
}

/// Writes one line.
pub fn write_entry(out: &mut impl Write, name: &Name, digest: &Digest) -> io::Result<()> {
    let (marked, text) = name.escaped();
    out.write_all(if marked { b"\\" } else { b"" })?;
    write!(out, "{digest}  ")?;
    out.write_all(&text)?;
    out.write_all(b"\n")
}

/// Reads a list to its end. A malformed line, a repeated name and a last line without newline are errors.
pub fn read_list(mut input: impl BufRead) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    let mut seen = HashSet::new();
    let mut buffer = Vec::new();
    for line in 1.. {
        buffer.clear();
        if !read_line(&mut input, &mut buffer, line)? {
            break;
        }
        let entry = parse_line(&buffer).map_err(|message| Error::List { line, message })?;
        if !seen.insert(entry.name.clone()) {
            return Err(Error::List { line, message: format!("{} is listed twice", entry.name.shown()) });
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Reads a line without its newline; false at the end of input.
fn read_line(input: &mut impl BufRead, buffer: &mut Vec<u8>, line: u64) -> Result<bool, Error> {
    let limit = MAX_LINE_BYTES as u64 + 1;
    let count = io::Read::take(&mut *input, limit).read_until(b'\n', buffer)?;
    if count == 0 {
        return Ok(false);
    }
    if buffer.pop_if(|byte| *byte == b'\n').is_some() {
        return Ok(true);
    }
    let message = if count > MAX_LINE_BYTES {
        format!("not a list of digests: the line is longer than {MAX_LINE_BYTES} bytes")
    } else {
        "the list is cut: its last line has no newline".to_owned()
    };
    Err(Error::List { line, message })
}

fn parse_line(line: &[u8]) -> Result<Entry, String> {
    const SHAPE: &str = "expected 64 hexadecimal digits, two spaces and a name";
    let (marked, rest) = match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (digest, rest) = rest.split_at_checked(64).ok_or_else(|| format!("the line is too short; {SHAPE}"))?;
    let digest = std::str::from_utf8(digest).map_err(|_| format!("the line starts with no digest; {SHAPE}"))?;
    let digest = digest.parse::<Digest>()?;
    let text = match rest {
        [b' ', b' ' | b'*', name @ ..] => name,
        _ => return Err(format!("after the digest: {SHAPE}")),
    };
    let name = if marked {
        Name::unescape(text).ok_or("the name has an escape other than \\\\, \\n and \\r")?
    } else {
        Name::from_bytes(text)
    };
    // `find . -type f | xargs sha256sum` writes this harmless prefix.
    let name = match name.as_bytes().strip_prefix(b"./") {
        Some(rest) if !rest.is_empty() => Name::from_bytes(rest),
        _ => name,
    };
    Ok(Entry { name, bytes: None, digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(names: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        for name in names {
            write_entry(&mut out, &Name::from_bytes(*name), &Digest::of(name.as_bytes())).unwrap();
        }
        out
    }

    #[test]
    fn lists_round_trip() {
        let names = ["a", "b c", "d\ne", "f\\g", "é"];
        let entries = read_list(&listed(&names)[..]).unwrap();
        let found: Vec<_> = entries.iter().map(|entry| entry.name.as_bytes()).collect();
        assert_eq!(found, names.map(str::as_bytes));
        assert!(listed(&["d\ne"]).starts_with(b"\\"));
    }

    #[test]
    fn a_cut_list_is_refused() {
        let whole = listed(&["alpha"]);
        for cut in 1..whole.len() {
            assert!(read_list(&whole[..cut]).is_err(), "cut at {cut}");
        }
        assert_eq!(read_list(&b""[..]).unwrap(), []);
    }

    #[test]
    fn errors_name_the_line() {
        let mut text = listed(&["a"]);
        text.extend(b"hello\n");
        let error = read_list(&text[..]).unwrap_err();
        assert_eq!((error.line(), error.to_string().contains("too short")), (Some(2), true), "{error}");
        let twice = listed(&["a", "a"]);
        assert_eq!(read_list(&twice[..]).unwrap_err().to_string(), "a is listed twice");
    }
}
