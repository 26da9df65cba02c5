//! Tokens of MLIR's text, as its own lexer cuts them.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    End,
    /// Bytes that are no token, with what is wrong about them.
    Wrong(&'static str),
    /// A keyword, a dotted name, `i32`.
    Word,
    /// `@name` or `@"name"`.
    Symbol,
    /// `#name`, dots included.
    Hash,
    /// `!name`, dots included.
    Bang,
    /// `%name`.
    Percent,
    /// `^name`.
    Caret,
    /// Decimal or `0x` digits, without a sign.
    Integer,
    /// Digits with a point, without a sign.
    Float,
    /// A string literal, quotes included.
    Str,
    /// `->`.
    Arrow,
    /// `::`.
    Colons,
    /// Any other character of punctuation.
    Mark(u8),
}

/// A token and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

fn is_id_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_id_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

/// The token at or after a position.
pub(super) fn lex(text: &[u8], at: usize) -> Token {
    let start = skip_blank(text, at);
    let Some(&first) = text.get(start) else {
        return Token { kind: Kind::End, start, end: start };
    };
    let next = text.get(start + 1).copied();
    let one = |kind| Token { kind, start, end: start + 1 };
    match first {
        b'"' => string(text, start, start),
        b'@' => match next {
            Some(b'"') => match string(text, start, start + 1) {
                Token { kind: Kind::Str, end, .. } => Token { kind: Kind::Symbol, start, end },
                wrong => wrong,
            },
            Some(byte) if is_id_start(byte) => {
                Token { kind: Kind::Symbol, start, end: run(text, start + 1, is_id_part) }
            }
            _ => one(Kind::Wrong("@ is followed by a letter, _ or a string")),
        },
        b'#' => suffixed(text, start, Kind::Hash),
        b'!' => suffixed(text, start, Kind::Bang),
        b'%' => suffixed(text, start, Kind::Percent),
        b'^' => suffixed(text, start, Kind::Caret),
        b'0'..=b'9' => number(text, start),
        b'-' if next == Some(b'>') => Token { kind: Kind::Arrow, start, end: start + 2 },
        b':' if next == Some(b':') => Token { kind: Kind::Colons, start, end: start + 2 },
        b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>' | b'=' | b',' | b':' | b'?' | b'*' | b'+' | b'-'
        | b'/' | b'|' | b'.' => one(Kind::Mark(first)),
        byte if is_id_start(byte) => Token { kind: Kind::Word, start, end: run(text, start, is_id_part) },
        _ => Token {
            kind: Kind::Wrong("this character is no part of MLIR"),
            start,
            end: run(text, start + 1, is_continuation),
        },
    }
}

/// The rest of a character of several bytes.
fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

fn run(text: &[u8], from: usize, belongs: fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| belongs(**byte)).count()
}

/// The position after blanks and comments.
pub(super) fn skip_blank(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            Some(b' ' | b'\t' | b'\n' | b'\r') => at += 1,
            Some(b'/') if text.get(at + 1) == Some(&b'/') => {
                at = run(text, at, |byte| byte != b'\n' && byte != b'\r');
            }
            _ => return at,
        }
    }
}

/// `#12`, `%a.b-c`: a sign, then digits alone, or a letter or `$._-` and more of them.
fn suffixed(text: &[u8], start: usize, kind: Kind) -> Token {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'$' | b'.' | b'_' | b'-');
    let end = match text.get(start + 1) {
        Some(byte) if byte.is_ascii_digit() => run(text, start + 1, |byte| byte.is_ascii_digit()),
        Some(byte) if is_part(*byte) => run(text, start + 1, is_part),
        _ => return Token { kind: Kind::Wrong("a name is missing after this sign"), start, end: start + 1 },
    };
    Token { kind, start, end }
}

fn number(text: &[u8], start: usize) -> Token {
    let is_hex = text.get(start) == Some(&b'0')
        && text.get(start + 1) == Some(&b'x')
        && text.get(start + 2).is_some_and(u8::is_ascii_hexdigit);
    if is_hex {
        return Token { kind: Kind::Integer, start, end: run(text, start + 2, |byte| byte.is_ascii_hexdigit()) };
    }
    let mut end = run(text, start, |byte| byte.is_ascii_digit());
    if text.get(end) != Some(&b'.') {
        return Token { kind: Kind::Integer, start, end };
    }
    end = run(text, end + 1, |byte| byte.is_ascii_digit());
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        if text.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = run(text, end + 1 + sign, |byte| byte.is_ascii_digit());
        }
    }
    Token { kind: Kind::Float, start, end }
}

/// A string literal whose opening quote is at `quote`, as a token from `start`.
fn string(text: &[u8], start: usize, quote: usize) -> Token {
    let mut at = quote + 1;
    let wrong = |what, end| Token { kind: Kind::Wrong(what), start, end };
    loop {
        match text.get(at) {
            Some(b'"') => return Token { kind: Kind::Str, start, end: at + 1 },
            None | Some(b'\n' | 0x0b | 0x0c) => return wrong("this string is not closed on its line", at),
            Some(b'\\') => match (text.get(at + 1), text.get(at + 2)) {
                (Some(b'"' | b'\\' | b'n' | b't'), _) => at += 2,
                (Some(a), Some(b)) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => at += 3,
                _ => {
                    return wrong(
                        "this string has an escape that is none of \\\\ \\\" \\n \\t and two hex digits",
                        at + 1,
                    );
                }
            },
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let mut found = Vec::new();
        let mut at = 0;
        loop {
            let token = lex(text.as_bytes(), at);
            if token.kind == Kind::End {
                return found;
            }
            found.push((token.kind, &text[token.start..token.end]));
            at = token.end;
        }
    }

    #[test]
    fn tokens_are_cut_as_mlir_cuts_them() {
        assert_eq!(kinds("%a.b-c$_1"), [(Kind::Percent, "%a.b-c$_1")]);
        assert_eq!(kinds("%0#1"), [(Kind::Percent, "%0"), (Kind::Hash, "#1")]);
        assert_eq!(kinds("1.e5"), [(Kind::Float, "1.e5")]);
        assert_eq!(kinds("1.5e"), [(Kind::Float, "1.5"), (Kind::Word, "e")]);
        assert_eq!(kinds("1e5"), [(Kind::Integer, "1"), (Kind::Word, "e5")]);
        assert_eq!(kinds("0x4xf32"), [(Kind::Integer, "0x4"), (Kind::Word, "xf32")]);
        assert_eq!(kinds("0xg"), [(Kind::Integer, "0"), (Kind::Word, "xg")]);
        assert_eq!(
            kinds("-> - // x\n@\"a b\""),
            [(Kind::Arrow, "->"), (Kind::Mark(b'-'), "-"), (Kind::Symbol, "@\"a b\"")]
        );
        assert_eq!(kinds(r#""\0Aé\"""#), [(Kind::Str, r#""\0Aé\"""#)]);
        assert!(matches!(lex(b"\"a\nb\"", 0).kind, Kind::Wrong(_)));
        assert!(matches!(lex(b"\"\\q\"", 0).kind, Kind::Wrong(_)));
        assert!(matches!(lex(b"@1", 0).kind, Kind::Wrong(_)));
        assert!(matches!(lex(b"\0", 0).kind, Kind::Wrong(_)));
    }
}
