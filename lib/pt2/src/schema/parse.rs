//! From the bytes of an entry to the structs.
//!
//! Up to torch 2.6 floats that JSON cannot write stand as the bare words NaN, Infinity and -Infinity. They are quoted
//! first, which is where torch 2.7 and later put them anyway.

use std::borrow::Cow;

use serde::Deserialize;
use thiserror::Error;

/// Why an entry is not the JSON it should be.
#[derive(Debug, Error)]
pub enum Error {
    /// Not UTF-8.
    #[error("not UTF-8 from byte {at}")]
    Encoding {
        /// Offset in the entry.
        at: usize,
    },
    /// Malformed, or of another shape than the schema's.
    #[error("byte {at}: {detail}")]
    Json {
        /// Offset in the entry.
        at: usize,
        /// What was found, and what would be right.
        detail: String,
    },
}

/// Parses one JSON document, whose strings the result borrows.
///
/// `buffer` holds the rewritten text where bare words had to be quoted.
///
/// # Errors
/// [`Error`], with the offset of the byte.
pub fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8], buffer: &'a mut String) -> Result<T, Error> {
    let text = std::str::from_utf8(bytes).map_err(|e| Error::Encoding { at: e.valid_up_to() })?;
    let text = match quote_bare_floats(text) {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => {
            *buffer = text;
            buffer.as_str()
        }
    };
    serde_json::from_str(text).map_err(|e| {
        let line_start = text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let full = e.to_string();
        let detail = full.rsplit_once(" at line ").map_or(full.as_str(), |(detail, _)| detail).to_owned();
        Error::Json { at: line_start + e.column().saturating_sub(1), detail }
    })
}

const BARE: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Puts quotes around bare floats. A text without any is returned as it is.
fn quote_bare_floats(text: &str) -> Cow<'_, str> {
    if !BARE.iter().any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut copied = 0;
    let mut pos = 0;
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(pos) {
        if byte == b'"' {
            pos = end_of_string(bytes, pos + 1);
        } else if let Some(word) = BARE.iter().find(|word| bytes[pos..].starts_with(word.as_bytes())) {
            out.push_str(&text[copied..pos]);
            out.push('"');
            out.push_str(word);
            out.push('"');
            pos += word.len();
            copied = pos;
        } else {
            pos += 1;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The position after the quote that closes a string whose first character is at `pos`.
fn end_of_string(bytes: &[u8], mut pos: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(pos..).unwrap_or_default()) {
        pos += found;
        if bytes[pos] == b'"' {
            return pos + 1;
        }
        pos += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_bare_words_outside_strings_only() {
        let text = r#"{"a":NaN,"NaN \" Infinity":[-Infinity,Infinity,"NaN"]}"#;
        let right = r#"{"a":"NaN","NaN \" Infinity":["-Infinity","Infinity","NaN"]}"#;
        assert_eq!(quote_bare_floats(text), right);
        assert!(matches!(quote_bare_floats(right), Cow::Borrowed(_)));
    }

    #[test]
    fn says_where_the_error_is() {
        let mut buffer = String::new();
        let error = parse::<Vec<bool>>(b"[true,\n 7]", &mut buffer).unwrap_err();
        assert_eq!(error.to_string(), "byte 8: invalid type: integer `7`, expected a boolean");
    }
}
