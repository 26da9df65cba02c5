//! The table of a profile: the columns of ExecuTorch's own inspector, one row an event.
//!
//! As there, `OPERATOR_CALL` is left out: it is a kernel's own event and the call around it, so that both would count twice.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::stats::Summary;
use crate::capture::{BlockEvent, Capture, FRAMEWORK_EVENTS, OPERATOR_CALL};
use crate::etrecord::GETITEM;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Tabs between columns.
    Tsv,
    /// Commas between columns.
    Csv,
    /// A table of Markdown, for people: five digits, and without the long lists of starts.
    Markdown,
}

/// A table that is being written.
#[derive(Debug)]
pub struct Table<'w, W: Write> {
    out: &'w mut W,
    form: Form,
    line: String,
}

impl<'w, W: Write> Table<'w, W> {
    /// Begins a table with the names of its columns; `numbers` says which hold numbers.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn begin(out: &'w mut W, form: Form, columns: &[(&str, bool)]) -> io::Result<Self> {
        let mut table = Table { out, form, line: String::new() };
        table.row(columns.iter().map(|(name, _)| (*name).to_owned()))?;
        if form == Form::Markdown {
            table.row(columns.iter().map(|(_, number)| if *number { "---:" } else { "---" }.to_owned()))?;
        }
        Ok(table)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) -> io::Result<()> {
        self.line.clear();
        for (number, cell) in cells.into_iter().enumerate() {
            match self.form {
                Form::Markdown => {
                    self.line.push_str(if number == 0 { "| " } else { " | " });
                    push_markdown(&mut self.line, &cell);
                }
                Form::Tsv => push_separated(&mut self.line, number, '\t', &cell),
                Form::Csv => push_separated(&mut self.line, number, ',', &cell),
            }
        }
        self.line.push_str(if self.form == Form::Markdown { " |\n" } else { "\n" });
        self.out.write_all(self.line.as_bytes())
    }

    /// A time as this table spells it.
    pub fn time(&self, x: Option<f64>) -> String {
        match (x, self.form) {
            (None, _) => String::new(),
            (Some(x), Form::Markdown) => rounded(x),
            (Some(x), _) => python_float(x),
        }
    }
}

/// Writes the table of all events.
///
/// # Errors
/// When the sink fails.
pub fn write<W: Write>(capture: &Capture<'_>, form: Form, out: &mut W) -> io::Result<()> {
    let unit = capture.options.target.name();
    let times = ["p10", "p50", "p90", "avg", "min", "max"].map(|name| format!("{name} ({unit})"));
    let mut columns = vec![("", true), ("event_block_name", false), ("event_name", false)];
    columns.extend(times.iter().map(|name| (name.as_str(), true)));
    columns.extend([("op_types", false), ("is_delegated_op", false), ("delegate_backend_name", false)]);
    if form != Form::Markdown {
        columns.push(("start_time", false));
    }
    let mut table = Table::begin(out, form, &columns)?;
    let mut number = 0;
    for block in &capture.blocks {
        for event in &block.events {
            let label = event.label();
            if label.contains(OPERATOR_CALL) {
                continue;
            }
            let mut row = vec![number.to_string(), block.name.to_owned(), label];
            let summary = Summary::of(&event.samples);
            let times = summary.map(|s| [s.p10, s.p50, s.p90, s.avg, s.min, s.max].map(Some)).unwrap_or_default();
            row.extend(times.map(|x| table.time(x)));
            let operators = operators(capture, event);
            row.push(if form == Form::Markdown { operators.join(" ") } else { python_list(&operators) });
            row.push(if event.is_delegated() { "True" } else { "False" }.to_owned());
            row.push(event.backend.clone().unwrap_or_default());
            if form != Form::Markdown {
                row.push(starts(capture, event));
            }
            table.row(row)?;
            number += 1;
        }
    }
    Ok(())
}

/// The operators of an event's nodes, by handle; those that only take a tuple apart are no operators.
pub fn operators(capture: &Capture<'_>, event: &BlockEvent<'_>) -> Vec<String> {
    if event.name.is_some_and(|name| FRAMEWORK_EVENTS.contains(&name)) {
        return Vec::new();
    }
    let nodes = event.nodes.iter().filter_map(|at| capture.source.nodes.get(*at));
    nodes.filter(|node| node.target != GETITEM).map(|node| node.target.clone()).collect()
}

fn starts(capture: &Capture<'_>, event: &BlockEvent<'_>) -> String {
    if event.places.is_empty() {
        return String::new();
    }
    let starts =
        event.places.iter().filter_map(|place| capture.profile_at(*place)).map(|found| found.start.to_string());
    format!("[{}]", starts.collect::<Vec<_>>().join(", "))
}

/// A list of strings as Python prints it.
fn python_list(items: &[String]) -> String {
    let quoted: Vec<String> =
        items.iter().map(|item| format!("'{}'", item.replace('\\', "\\\\").replace('\'', "\\'"))).collect();
    format!("[{}]", quoted.join(", "))
}

/// A float as Python prints it: the shortest digits, an exponent below 1e-4 and from 1e16 on.
pub fn python_float(x: f64) -> String {
    if x == 0.0 || (1e-4..1e16).contains(&x.abs()) {
        return format!("{x:?}");
    }
    let text = format!("{x:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, size) = match exponent.strip_prefix('-') {
        Some(size) => ('-', size),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{size:0>2}")
}

/// Five significant digits, without an exponent where none is needed.
pub fn rounded(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    // The exponent after rounding: 0.00009999999 has that of 0.0001.
    let exponent = format!("{x:.4e}").rsplit_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match usize::try_from(4 - exponent.unwrap_or(0)) {
        Ok(digits) if digits <= 12 => format!("{x:.digits$}"),
        Ok(_) => format!("{x:.4e}"),
        Err(_) => format!("{x:.0}"),
    }
}

/// A cell between separators, quoted where it must be.
fn push_separated(line: &mut String, number: usize, separator: char, cell: &str) {
    if number > 0 {
        line.push(separator);
    }
    if cell.contains([separator, '"', '\n', '\r']) {
        // Writing into a String cannot fail.
        let _ = write!(line, "\"{}\"", cell.replace('"', "\"\""));
    } else {
        line.push_str(cell);
    }
}

/// A cell of Markdown: nothing in it may end the cell or become markup. Underscores inside a word are none.
fn push_markdown(line: &mut String, cell: &str) {
    let mut before = ' ';
    let mut rest = cell.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            '<' => line.push_str("&lt;"),
            '>' => line.push_str("&gt;"),
            '&' => line.push_str("&amp;"),
            '_' if before.is_alphanumeric() && rest.peek().is_some_and(|c| c.is_alphanumeric() || *c == '_') => {
                line.push('_')
            }
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '~' => line.extend(['\\', c]),
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
        before = if c == '_' && line.ends_with("\\_") {
            ' '
        } else if c == '_' {
            'a'
        } else {
            c
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_python_prints_them() {
        for (x, text) in [
            (0.0, "0.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (2.5e-7, "2.5e-07"),
            (123456.0, "123456.0"),
            (1e16, "1e+16"),
            (1e-100, "1e-100"),
        ] {
            assert_eq!(python_float(x), text);
        }
    }

    #[test]
    fn people_get_five_digits() {
        let all = [0.0, 0.0063399999, 0.00009999999999, 1.0, 12.345678, 98765.43, 1234567.0].map(rounded);
        assert_eq!(all, ["0", "0.0063400", "0.00010000", "1.0000", "12.346", "98765", "1234567"]);
    }

    #[test]
    fn cells_stay_cells() {
        let rows = |form| {
            let mut out = Vec::new();
            let mut table = Table::begin(&mut out, form, &[("a", false), ("b", true)]).expect("memory");
            table.row(["x,\"y\"\t<b>|\n".to_owned(), "1".to_owned()]).expect("memory");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(rows(Form::Csv), "a,b\n\"x,\"\"y\"\"\t<b>|\n\",1\n");
        assert_eq!(rows(Form::Tsv), "a\tb\n\"x,\"\"y\"\"\t<b>|\n\"\t1\n");
        let mut cell = String::new();
        push_markdown(&mut cell, "native_call__softmax.out __main__ _x_");
        assert_eq!(cell, "native_call__softmax.out \\_\\_main_\\_ \\_x\\_");
        assert_eq!(rows(Form::Markdown), "| a | b |\n| --- | ---: |\n| x,\"y\" &lt;b&gt;\\|  | 1 |\n");
    }
}
