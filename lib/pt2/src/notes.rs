//! What the capture has to say besides the records: everything that is skipped, kept opaque or suspicious.
//!
//! Equal findings are counted and told once, so that a thousand nodes with one strange field give one line.

use std::collections::BTreeMap;

use m2m_record::{Diagnostic, Severity};

use crate::schema::Text;

/// Collected findings.
#[derive(Debug, Default)]
pub struct Notes {
    told: Vec<Diagnostic>,
    unknown_fields: BTreeMap<String, usize>,
    skipped: BTreeMap<String, usize>,
    targets: BTreeMap<String, usize>,
}

impl Notes {
    /// Adds a finding.
    pub fn tell(&mut self, severity: Severity, code: &str, node: Option<&str>, message: impl Into<String>) {
        let node = node.map(str::to_owned);
        self.told.push(Diagnostic { severity, code: code.to_owned(), node, message: message.into(), hint: None });
    }

    /// Adds a finding with what to do about it.
    pub fn advise(&mut self, severity: Severity, code: &str, message: impl Into<String>, hint: &str) {
        self.tell(severity, code, None, message);
        if let Some(last) = self.told.last_mut() {
            last.hint = Some(hint.to_owned());
        }
    }

    /// Counts fields that carry data and are not known.
    pub fn unknown(&mut self, place: &str, fields: &[Text<'_>]) {
        for field in fields {
            *self.unknown_fields.entry(format!("{place}.{field}")).or_default() += 1;
        }
    }

    /// Counts something that records have no place for.
    pub fn skip(&mut self, what: impl AsRef<str>) {
        let what = what.as_ref();
        match self.skipped.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.skipped.insert(what.to_owned(), 1)),
        }
    }

    /// Counts a target of an unknown form.
    pub fn target(&mut self, target: &str) {
        *self.targets.entry(target.to_owned()).or_default() += 1;
    }

    /// All findings as diagnostics.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        let list = |counts: &BTreeMap<String, usize>| {
            counts.iter().map(|(what, n)| format!("{what} ({n})")).collect::<Vec<_>>().join(", ")
        };
        if !self.unknown_fields.is_empty() {
            let message =
                format!("fields that this reader does not know are not carried: {}", list(&self.unknown_fields));
            self.tell(Severity::Warning, "unknown-field", None, message);
        }
        if !self.targets.is_empty() {
            let message = format!("targets of an unknown form keep their spelling: {}", list(&self.targets));
            self.tell(Severity::Warning, "unknown-target", None, message);
        }
        if !self.skipped.is_empty() {
            let message = format!("not carried, since records have no place for it: {}", list(&self.skipped));
            self.tell(Severity::Note, "not-carried", None, message);
        }
        self.told
    }
}
