//! Makes text from a model safe to show: names in a model file are chosen by whoever made the file.

use std::borrow::Cow;

/// Whether `c` can move the cursor, end the line, or reorder what a reader sees.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn escape_if(text: &str, test: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&test) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if test(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Replaces control characters and those that reorder text by their escapes (`\u{1b}`).
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_if(text, is_unsafe)
}

/// Replaces only what would break a diagnostic into several lines.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escape_if(text, |c| c == '\n' || c == '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_control_and_bidi() {
        assert_eq!(escape("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(escape("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(escape("weight.é"), "weight.é");
    }

    #[test]
    fn one_line_keeps_the_rest() {
        assert_eq!(one_line("a\nb\u{1b}"), "a\\nb\u{1b}");
    }
}
