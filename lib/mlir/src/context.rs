//! Contexts with the few dialects that lowered modules use, and the collector of what MLIR says.
//!
//! No thread pool: modules are small, and start-up time counts. TOSA and others register where they are needed, so that
//! a binary links only the dialects it names.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use melior::Context;
use melior::diagnostic::{Diagnostic, DiagnosticHandlerId};
use melior::dialect::DialectRegistry;
use mlir_sys::{
    mlirDialectHandleInsertDialect, mlirGetDialectHandle__arith__, mlirGetDialectHandle__cf__,
    mlirGetDialectHandle__func__, mlirGetDialectHandle__linalg__, mlirGetDialectHandle__math__,
    mlirGetDialectHandle__ml_program__, mlirGetDialectHandle__scf__, mlirGetDialectHandle__tensor__,
};

/// A context with `func arith linalg tensor math scf cf ml_program`, loaded, and nothing else.
pub fn context() -> Context {
    let registry = DialectRegistry::new();
    // SAFETY: the handles are static descriptors, and the registry is alive.
    unsafe {
        for handle in [
            mlirGetDialectHandle__func__(),
            mlirGetDialectHandle__arith__(),
            mlirGetDialectHandle__linalg__(),
            mlirGetDialectHandle__tensor__(),
            mlirGetDialectHandle__math__(),
            mlirGetDialectHandle__scf__(),
            mlirGetDialectHandle__cf__(),
            mlirGetDialectHandle__ml_program__(),
        ] {
            mlirDialectHandleInsertDialect(handle, registry.to_raw());
        }
    }
    let context = Context::new_with_registry(&registry, false);
    context.load_all_available_dialects();
    context
}

/// As `context`, but operations, types and attributes of unknown dialects are kept as opaque: for torch and StableHLO.
pub fn open_context() -> Context {
    let context = context();
    context.set_allow_unregistered_dialects(true);
    context
}

/// One thing MLIR said about a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where, as MLIR prints locations, without `loc(…)`.
    pub location: String,
    /// What, on one line; notes are appended in brackets.
    pub text: String,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.location == "unknown" { f.write_str(&self.text) } else { write!(f, "{}: {}", self.location, self.text) }
    }
}

/// Collects diagnostics of one context while it lives, instead of letting them reach stderr.
pub struct Diagnostics<'c> {
    context: &'c Context,
    id: Option<DiagnosticHandlerId>,
    messages: Rc<RefCell<Vec<Message>>>,
}

impl<'c> Diagnostics<'c> {
    /// Begins to collect.
    pub fn attach(context: &'c Context) -> Self {
        let messages = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&messages);
        let id = context.attach_diagnostic_handler(move |diagnostic| {
            sink.borrow_mut().push(message(&diagnostic));
            true
        });
        Self { context, id: Some(id), messages }
    }

    /// Takes what was said since the last call.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.messages.borrow_mut())
    }
}

impl Drop for Diagnostics<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.context.detach_diagnostic_handler(id);
        }
    }
}

/// Longest operation print that a note carries into a message; verifiers attach whole functions otherwise.
const NOTE_LIMIT: usize = 240;

fn message(diagnostic: &Diagnostic<'_>) -> Message {
    let location = diagnostic.location().to_string();
    let location =
        location.strip_prefix("loc(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(&location).to_owned();
    let mut text = one_line(&diagnostic.to_string());
    for index in 0..diagnostic.note_count() {
        if let Ok(note) = diagnostic.note(index) {
            let note = one_line(&note.to_string());
            let cut = note.char_indices().nth(NOTE_LIMIT).map_or(note.len(), |(at, _)| at);
            text.push_str(&format!(" [{}]", &note[..cut]));
        }
    }
    Message { location, text }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
