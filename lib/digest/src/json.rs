//! Canonical JSON: one text for one value, so that equal values have equal digests.
//!
//! RFC 8785 (JSON Canonicalization Scheme) with one difference: an integer without fraction and exponent that fits 64 bits
//! keeps its exact value instead of being rounded to a double. In short: UTF-8, no spaces; keys sorted by their UTF-16 code
//! units; strings escaped only where JSON demands it; other numbers in ECMAScript's shortest form (`1e+21`, `0.5`, `4`).
//! Repeated keys, lone surrogates, numbers beyond a double and longer integers that a double would change are errors.

use crate::Error;
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Deepest nesting of lists and objects that is read.
pub const MAX_DEPTH: usize = 128;

/// The canonical text of the JSON value in `text`, without a final newline.
pub fn canonical_json(text: &[u8]) -> Result<String, Error> {
    let text =
        std::str::from_utf8(text).map_err(|e| error_at(text, e.valid_up_to(), "the text is not UTF-8".into()))?;
    let mut parser = Parser { text, at: 0 };
    let mut out = String::with_capacity(text.len());
    let result = parser.value(&mut out, 0).and_then(|()| {
        parser.skip_spaces();
        if parser.peek().is_some() { Err("more text after the value".to_owned()) } else { Ok(out) }
    });
    result.map_err(|message| error_at(text.as_bytes(), parser.at, message))
}

fn error_at(text: &[u8], at: usize, message: String) -> Error {
    let before = text.get(..at).unwrap_or(text);
    let line = before.iter().filter(|b| **b == b'\n').count() as u64 + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() as u64 + 1;
    Error::Json { line, column, message }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// What stands here, for an error.
    fn found(&self) -> String {
        match self.rest().chars().next() {
            Some(c) => format!("found {c:?}"),
            None => "the text ends".to_owned(),
        }
    }

    /// Steps over `byte` or says what was found instead.
    fn expect(&mut self, byte: u8, what: &str) -> Result<(), String> {
        self.skip_spaces();
        if self.peek() != Some(byte) {
            return Err(format!("{}; expected {what}", self.found()));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, out: &mut String, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.skip_spaces();
        match self.peek() {
            Some(b'{') => self.object(out, depth),
            Some(b'[') => self.list(out, depth),
            Some(b'"') => {
                let string = self.string()?;
                write_string(&string, out);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => self.word(out),
        }
    }

    fn word(&mut self, out: &mut String) -> Result<(), String> {
        for word in ["null", "true", "false"] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                out.push_str(word);
                return Ok(());
            }
        }
        Err(format!("{}; expected a value", self.found()))
    }

    fn list(&mut self, out: &mut String, depth: usize) -> Result<(), String> {
        self.at += 1;
        out.push('[');
        self.skip_spaces();
        if self.peek() == Some(b']') {
            self.at += 1;
            out.push(']');
            return Ok(());
        }
        loop {
            self.value(out, depth + 1)?;
            self.skip_spaces();
            if self.peek() != Some(b',') {
                break;
            }
            self.at += 1;
            out.push(',');
        }
        self.expect(b']', "`,` or `]`")?;
        out.push(']');
        Ok(())
    }

    fn object(&mut self, out: &mut String, depth: usize) -> Result<(), String> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_spaces();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                members.push(self.member(depth)?);
                self.skip_spaces();
                if self.peek() != Some(b',') {
                    break;
                }
                self.at += 1;
            }
            self.expect(b'}', "`,` or `}`")?;
        }
        write_members(members, out)
    }

    fn member(&mut self, depth: usize) -> Result<(String, String), String> {
        self.skip_spaces();
        if self.peek() != Some(b'"') {
            return Err(format!("{}; expected a key in double quotes", self.found()));
        }
        let key = self.string()?;
        self.expect(b':', "`:`")?;
        let mut value = String::new();
        self.value(&mut value, depth + 1)?;
        Ok((key, value))
    }

    /// Reads a string; its escapes are those of JSON, checked and decoded by serde_json.
    fn string(&mut self) -> Result<String, String> {
        let bytes = self.rest().as_bytes();
        let mut length = 1;
        loop {
            match bytes.get(length) {
                None => return Err("the text ends inside a string".to_owned()),
                Some(b'"') => break,
                Some(b'\\') => length += 2,
                Some(_) => length += 1,
            }
        }
        let quoted = self.rest().get(..=length).ok_or("a string ends inside a character")?;
        let string = serde_json::from_str(quoted).map_err(|error| {
            let words = error.to_string();
            let words = words.split(" at line").next().unwrap_or_default();
            format!("in the string {}: {words}", shorten(quoted))
        })?;
        self.at += length + 1;
        Ok(string)
    }

    fn number(&mut self, out: &mut String) -> Result<(), String> {
        let length = number_length(self.rest().as_bytes());
        let text = self.rest().get(..length).unwrap_or("");
        out.push_str(&canonical_number(text)?);
        self.at += length;
        Ok(())
    }
}

fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN {
        text.to_owned()
    } else {
        format!("{}…", text.chars().take(SHOWN).collect::<String>())
    }
}

fn write_members(mut members: Vec<(String, String)>, out: &mut String) -> Result<(), String> {
    members.sort_by(|a, b| utf16_order(&a.0, &b.0));
    out.push('{');
    let mut last: Option<&str> = None;
    for (key, value) in &members {
        match last {
            Some(last) if last == key => return Err(format!("the key {} is repeated in this object", shorten(key))),
            Some(_) => out.push(','),
            None => {}
        }
        last = Some(key);
        write_string(key, out);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    Ok(())
}

fn utf16_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// RFC 8785 section 3.2.2.2.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                // Writing into a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// How many bytes could belong to a number.
fn number_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count()
}

fn canonical_number(text: &str) -> Result<String, String> {
    let is_integer = number_kind(text).ok_or_else(|| format!("{} is not a JSON number", shorten(text)))?;
    if is_integer {
        if let Ok(value) = text.parse::<i64>() {
            return Ok(value.to_string());
        }
        if let Ok(value) = text.parse::<u64>() {
            return Ok(value.to_string());
        }
    }
    let value: f64 = text.parse().map_err(|_| format!("{} is not a number", shorten(text)))?;
    if !value.is_finite() {
        return Err(format!("{} is beyond the range of a double", shorten(text)));
    }
    let shortest = shortest_form(value);
    if is_integer && shortest != text {
        let text = shorten(text);
        return Err(format!("the integer {text} is beyond 64 bits and a double would change it; write it as a string"));
    }
    Ok(shortest)
}

/// Checks the grammar of RFC 8259: true for an integer, false for another number, `None` for neither.
fn number_kind(text: &str) -> Option<bool> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_valid = digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    is_valid.then_some(fraction.is_none() && exponent.is_none())
}

/// `Number::toString` of ECMA-262: the shortest digits that read back as `value`, and where their point goes.
fn shortest_form(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    // The value is 0.DIGITS times ten to the power `point`.
    let point = exponent.parse::<i64>().unwrap_or(0) + 1;
    let count = digits.len() as i64;
    let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));
    let split = |n: i64| digits.split_at(usize::try_from(n).unwrap_or(0).min(digits.len()));
    let body = match point {
        1..=21 if count <= point => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, fraction) = split(point);
            format!("{whole}.{fraction}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = split(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{:+}", point - 1)
        }
    };
    format!("{sign}{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Result<String, String> {
        canonical_json(text.as_bytes()).map_err(|e| e.to_string())
    }

    /// RFC 8785 section 3.2.2 and 3.2.3.
    #[test]
    fn examples_of_the_rfc() {
        let text = r#"{
          "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
          "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
          "literals": [null, true, false] }"#;
        let want = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(canonical(text).unwrap(), want);
        let keys = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        let want = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}";
        assert_eq!(canonical(keys).unwrap(), want);
    }

    /// RFC 8785 appendix B: the double with these bits is written so.
    #[test]
    fn numbers_of_the_rfc() {
        let samples = [
            (0x0000000000000001, "5e-324"),
            (0x8000000000000001, "-5e-324"),
            (0x7fefffffffffffff, "1.7976931348623157e+308"),
            (0x4340000000000000, "9007199254740992"),
            (0xc340000000000000, "-9007199254740992"),
            (0x4430000000000000, "295147905179352830000"),
            (0x44b52d02c7e14af5, "9.999999999999997e+22"),
            (0x44b52d02c7e14af6, "1e+23"),
            (0x444b1ae4d6e2ef4e, "999999999999999700000"),
            (0x444b1ae4d6e2ef4f, "999999999999999900000"),
            (0x444b1ae4d6e2ef50, "1e+21"),
            (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
            (0x3eb0c6f7a0b5ed8d, "0.000001"),
            (0x41b3de4355555553, "333333333.3333332"),
            (0x41b3de4355555557, "333333333.33333343"),
            (0xbecbf647612f3696, "-0.0000033333333333333333"),
            (0x8000000000000000, "0"),
        ];
        for (bits, want) in samples {
            assert_eq!(shortest_form(f64::from_bits(bits)), want);
            assert_eq!(canonical(want).unwrap(), want, "canonical text stays as it is");
        }
    }

    #[test]
    fn integers_of_64_bits_are_exact() {
        for exact in ["9223372036854775807", "-9223372036854775808", "18446744073709551615", "9007199254740993", "0"] {
            assert_eq!(canonical(exact).unwrap(), exact);
        }
        assert_eq!(canonical("-0").unwrap(), "0");
        assert_eq!(canonical("1.0").unwrap(), "1");
        assert!(canonical("18446744073709551617").unwrap_err().contains("beyond 64 bits"));
        assert!(canonical("1e400").unwrap_err().contains("beyond the range"));
    }

    #[test]
    fn refusals_say_where() {
        let repeated = canonical_json(b"{\"a\":1,\n \"a\":2}").unwrap_err();
        assert!(repeated.to_string().contains("key a is repeated"), "{repeated}");
        assert_eq!(repeated.line(), Some(2));
        for bad in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "01",
            "1.",
            "+1",
            "nan",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"a",
            "1 2",
            "{a:1}",
            "-",
            "\"\\",
        ] {
            assert!(canonical(bad).is_err(), "{bad:?}");
        }
        assert!(canonical_json(b"\"\xff\"").unwrap_err().to_string().contains("UTF-8"));
        let deep = "[".repeat(100_000);
        assert!(canonical(&deep).unwrap_err().contains("deeper"));
    }
}
