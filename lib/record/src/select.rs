//! `--where FILTER`: jq predicates over node records, through jaq.

use crate::fields::Fields;
use crate::graph::Node;
use crate::writer::render;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, unwrap_valr};
use jaq_json::Val;

type D = jaq_core::data::JustLut<Val>;

/// Why a predicate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not a jq filter.
    #[error("--where {filter:?} is not a jq filter: {message}")]
    Syntax {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        message: String,
    },
    /// It failed on a record.
    #[error("{node}: --where failed: {message}")]
    Run {
        /// The node.
        node: String,
        /// What jq would say.
        message: String,
    },
}

/// A compiled predicate.
pub struct Predicate {
    filter: jaq_core::Filter<D>,
    fields: Fields,
}

impl Predicate {
    /// Compiles a jq filter.
    pub fn new(filter: &str) -> Result<Self, Error> {
        let syntax = |message: String| Error::Syntax { filter: filter.to_owned(), message };
        let arena = Arena::default();
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let funs = jaq_core::funs::<D>().chain(jaq_std::funs()).chain(jaq_json::funs());
        let modules = Loader::new(defs)
            .load(&arena, File { code: filter, path: () })
            .map_err(|errors| syntax(load_message(filter, &errors)))?;
        let compiled = Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
            let undefined: Vec<&str> =
                errors.iter().flat_map(|(_, undefined)| undefined.iter().map(|(name, _)| *name)).collect();
            syntax(format!("undefined {}", undefined.join(", ")))
        })?;
        Ok(Predicate { filter: compiled, fields: Fields::of(filter) })
    }

    /// Whether a node is selected: the filter gives `true` for it. `scope` and `loc` must already be filled in from
    /// its origins.
    pub fn selects(&self, node: &Node) -> Result<bool, Error> {
        let fail = |message: String| Error::Run { node: node.node.clone(), message };
        let mut line = Vec::new();
        render(node, &mut line).map_err(|e| fail(e.to_string()))?;
        self.selects_line(&line).map_err(fail)
    }

    /// Whether a record line is selected.
    pub fn selects_line(&self, line: &[u8]) -> Result<bool, String> {
        let value = self.fields.read(line)?;
        let context = Ctx::<D>::new(&self.filter.lut, Vars::new([]));
        for result in self.filter.id.run((context, value)).map(unwrap_valr) {
            if matches!(result.map_err(|e| e.to_string())?, Val::Bool(true)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Says where a filter stops being jq.
fn load_message(code: &str, errors: &jaq_core::load::Errors<&str, ()>) -> String {
    use jaq_core::load::Error as Load;
    let place = |rest: &str| match rest {
        "" => "at its end".to_owned(),
        rest => format!("at byte {}, {:?}", rest.as_ptr() as usize - code.as_ptr() as usize, rest),
    };
    let parts = errors.iter().flat_map(|(_, error)| match error {
        Load::Io(errors) => errors.iter().map(|(path, e)| format!("{path}: {e}")).collect::<Vec<_>>(),
        Load::Lex(errors) => {
            errors.iter().map(|(expected, rest)| format!("expected {} {}", expected.as_str(), place(rest))).collect()
        }
        Load::Parse(errors) => {
            errors.iter().map(|(expected, found)| format!("expected {} {}", expected.as_str(), place(found))).collect()
        }
    });
    parts.collect::<Vec<_>>().join("; ")
}
