//! Diagnostics in the one form that all programs share: `tool: input:line: error: node: text`.
//!
//! One line each, on stderr; a message about a column shows that line below it, with a caret. Colour never changes the words; `--quiet` silences notes, never warnings or errors.

use crate::escape::{escape, one_line};
use std::error::Error as StdError;
use std::fmt::{self, Display, Write as _};
use std::io::{IsTerminal, Write as _};

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The tool could not do what was asked, or the answer is no.
    Error,
    /// Done, but the reader should know.
    Warning,
    /// For information; silenced by `--quiet`.
    Note,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }

    fn paint(self) -> &'static str {
        match self {
            Severity::Error => "\x1b[1;31m",
            Severity::Warning => "\x1b[1;33m",
            Severity::Note => "\x1b[1;36m",
        }
    }
}

/// When to colour the severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Also into pipes and files
    Always,
    /// Not at all
    Never,
}

/// One diagnostic, not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    severity: Severity,
    input: Option<String>,
    line: Option<u64>,
    place: Option<Box<Place>>,
    node: Option<String>,
    text: String,
}

/// A column and the line of text that it is in, which is shown below the message with a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    column: u64,
    excerpt: String,
    caret: usize,
}

/// Most characters of a line that are shown around a column.
const EXCERPT_CHARS: usize = 100;

impl Place {
    fn new(column: u64, line: &str, at: usize) -> Self {
        let before = line.char_indices().take_while(|(offset, _)| *offset < at).count();
        let first = before.saturating_sub(EXCERPT_CHARS * 2 / 3);
        let shown = line.chars().skip(first).take(EXCERPT_CHARS);
        // One character for one, so that the caret stays where it belongs.
        let excerpt: String =
            shown.map(|c| if escape(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8() { c } else { ' ' }).collect();
        Place { column, excerpt, caret: before - first }
    }
}

impl Message {
    fn new(severity: Severity, text: impl Into<String>) -> Self {
        Message { severity, input: None, line: None, place: None, node: None, text: text.into() }
    }

    /// An error that says `text`.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(Severity::Error, text)
    }

    /// A warning that says `text`.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::new(Severity::Warning, text)
    }

    /// A note that says `text`.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(Severity::Note, text)
    }

    /// Names the input that the message is about: a path as given, or `<stdin>`.
    pub fn input(mut self, name: impl Into<String>) -> Self {
        self.input = Some(name.into());
        self
    }

    /// Names the line of the input, counted from 1.
    pub fn line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// Names the column, in bytes from 1, of the line that `line` numbers. `text` is that line or the part of it around the
    /// column, which is at byte `at` of it; it is shown with a caret.
    pub fn column(mut self, column: u64, text: &str, at: usize) -> Self {
        self.place = Some(Box::new(Place::new(column, text, at)));
        self
    }

    /// Names the node of the graph.
    pub fn node(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    fn render(&self, tool: &str, paint: bool) -> String {
        let mut out = format!("{tool}: ");
        // Writing into a String cannot fail.
        let _ = match (&self.input, self.line) {
            (Some(input), Some(line)) => match &self.place {
                Some(place) => write!(out, "{input}:{line}:{}: ", place.column),
                None => write!(out, "{input}:{line}: "),
            },
            (Some(input), None) => write!(out, "{input}: "),
            (None, Some(line)) => write!(out, "line {line}: "),
            (None, None) => Ok(()),
        };
        let (on, off) = if paint { (self.severity.paint(), "\x1b[0m") } else { ("", "") };
        let _ = write!(out, "{on}{}{off}: ", self.severity.word());
        if let Some(node) = &self.node {
            let _ = write!(out, "{node}: ");
        }
        out.push_str(&self.text);
        if let Some(place) = &self.place {
            let _ = write!(out, "\n    {}\n    {}{on}^{off}", place.excerpt, " ".repeat(place.caret));
        }
        out
    }

    fn map_texts(&self, change: impl Fn(&str) -> String) -> Message {
        Message {
            severity: self.severity,
            input: self.input.as_deref().map(&change),
            line: self.line,
            place: self.place.clone(),
            node: self.node.as_deref().map(&change),
            text: change(&self.text),
        }
    }
}

/// Where a program's messages go: stderr, in the common form.
#[derive(Clone, Debug)]
pub struct Messages {
    tool: String,
    quiet: bool,
    paint: bool,
    terminal: bool,
}

impl Messages {
    /// Messages of `tool`, as the common flags ask.
    pub fn new(tool: impl Into<String>, quiet: bool, colour: Colour) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let paint = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
                let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
                terminal && !set("NO_COLOR") && !dumb
            }
        };
        Messages { tool: tool.into(), quiet, paint, terminal }
    }

    /// Whether notes and progress are silenced.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The program's name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Writes one message. A closed stderr is nobody's loss, so its errors are ignored.
    pub fn send(&self, message: &Message) {
        if message.severity == Severity::Note && self.quiet {
            return;
        }
        let shown = if self.terminal {
            message.map_texts(|text| escape(text).into_owned())
        } else {
            message.map_texts(|text| one_line(text).into_owned())
        };
        let mut line = shown.render(&self.tool, self.paint);
        line.push('\n');
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Why a body stopped: one error message. Made from any error by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub Message);

impl Failure {
    /// A failure that says `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Failure(Message::error(text))
    }

    /// Names the input that it is about, which the text then need not begin with.
    pub fn input(self, name: impl Into<String>) -> Self {
        let (name, mut message) = (name.into(), self.0);
        if let Some(rest) = message.text.strip_prefix(&name).and_then(|rest| rest.strip_prefix(": ")) {
            message.text = rest.to_owned();
        }
        Failure(message.input(name))
    }

    /// Names the line of the input.
    pub fn line(self, line: u64) -> Self {
        Failure(self.0.line(line))
    }
}

impl<E: StdError + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let failure = Failure::new(chain(&error));
        match (&error as &dyn StdError).downcast_ref::<crate::Error>().and_then(crate::Error::path) {
            Some(path) => failure.input(path.display().to_string()),
            None => failure,
        }
    }
}

/// The error and its causes on one line; a cause that its parent already prints is not repeated.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}

/// Adds the name of the input to an error on its way out of a body.
pub trait AtInput<T> {
    /// Names the input that the error is about.
    fn at_input(self, name: impl Display) -> Result<T, Failure>;
}

impl<T, E: Into<Failure>> AtInput<T> for Result<T, E> {
    fn at_input(self, name: impl Display) -> Result<T, Failure> {
        self.map_err(|error| error.into().input(name.to_string()))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_shown_with_its_line() {
        let message = Message::error("found >").input("graph.mlir").line(3).column(9, "\ta = [1,>]", 8);
        assert_eq!(message.render("t", false), "t: graph.mlir:3:9: error: found >\n     a = [1,>]\n            ^");
        let long = format!("{}é>{}", "x".repeat(300), "y".repeat(300));
        let shown = Message::error("e").input("g").line(1).column(303, &long, 302).render("t", false);
        let lines: Vec<&str> = shown.lines().collect();
        let caret = lines[2].chars().count() - 1;
        assert_eq!((lines[1].chars().nth(caret), lines[1].chars().count()), (Some('>'), 104));
    }

    #[test]
    fn the_one_form() {
        let message =
            Message::error("groups=3 needs depthwise weights").input("graph.ndjson").line(12).node("conv2d_1");
        assert_eq!(
            message.render("m2m-lower", false),
            "m2m-lower: graph.ndjson:12: error: conv2d_1: groups=3 needs depthwise weights"
        );
        assert_eq!(Message::note("done").render("m2m-hash", false), "m2m-hash: note: done");
    }

    #[test]
    fn colour_keeps_the_words() {
        let message = Message::warning("newer minor").input("a.pt2");
        let painted = message.render("t", true);
        let plain: String = painted.replace("\x1b[1;33m", "").replace("\x1b[0m", "");
        assert_eq!(plain, message.render("t", false));
    }

    #[test]
    fn files_stand_in_front() {
        let error = crate::Error::IsFolder("some/where".into());
        assert_eq!(
            Failure::from(error).0.render("m2m-run", false),
            "m2m-run: some/where: error: is a folder; give a file"
        );
    }

    #[test]
    fn causes_are_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{path}: cannot read: {source}")]
        struct Told {
            path: &'static str,
            source: std::io::Error,
        }
        let error = Told { path: "x", source: std::io::Error::other("disk on fire") };
        assert_eq!(Failure::from(error).to_string(), "x: cannot read: disk on fire");
    }
}
