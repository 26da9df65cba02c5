//! The records that tools add besides graphs: what vanished, what was made, what came out.

use crate::arg::{Arg, Args, Kwargs};
use crate::data::Data;
use crate::framing::body;
use crate::graph::{InputRole, OutputRole};
use crate::number::Float;
use crate::types::Type;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node or input of the previous stage that has no successor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elimination {
    /// The node's id, or the input's value name.
    pub node: String,
    /// Why it is gone: `identity`, `unused`, `folded`, `functionalized`, …
    pub reason: String,
    /// The fact that makes it right.
    pub proof: String,
}

/// A tensor that a tool made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Where it is.
    pub data: Data,
    /// SHA-256 of its bytes, row-major and little-endian.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The value it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// One execution of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// `torch`, `mlir`, …
    pub engine: String,
    /// Tensor names.
    pub inputs: Vec<String>,
    /// Tensor names.
    pub outputs: Vec<String>,
    /// The seed of random inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Arg>,
}

/// What the elements of a float value were, over all sets of inputs.
///
/// NaN and infinities are counted in `nonfinite` and are part of nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The graph.
    pub graph: String,
    /// The value.
    pub value: String,
    /// How many sets of inputs computed it.
    pub sets: u64,
    /// How many finite elements there were.
    pub count: u64,
    /// How many others there were.
    #[serde(default, skip_serializing_if = "is_none")]
    pub nonfinite: u64,
    /// The least finite element; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Float>,
    /// The greatest finite element; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Float>,
    /// How often elements fell where, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The range without the tails, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Percentile>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Bin `k` of `counts` has the elements `x` with `(first + k) * width <= x < (first + k + 1) * width`.
///
/// The width is a power of two: the least one with which `bins` bins reach from the least to the greatest element, but no
/// less than 2^-23 times the greatest magnitude (rounded down to a power of two). It is 1 when all elements are zero. Which
/// bin an element is in depends on no other element but through the width, so neither the order of elements nor how they
/// were divided into sets changes a histogram.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// The most bins that there may be.
    pub bins: u64,
    /// Of every bin.
    pub width: Float,
    /// The number of the bin that has the least element.
    pub first: i64,
    /// Elements in each bin, up to the one with the greatest element.
    pub counts: Vec<u64>,
}

/// By nearest rank among `count` elements: `high` is the `ceil(percent / 100 * count)`-th least, `low` the greatest by the
/// same rank from above; each is known up to its bin of a histogram and stated as the outer edge of that bin, but never
/// beyond `min` or `max`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Percentile {
    /// How many percent of the elements are not above `high`, and how many not below `low`.
    pub percent: Float,
    /// The lower end.
    pub low: Float,
    /// The upper end.
    pub high: Float,
}

/// One argument of the module's entry function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// The graph value.
    pub value: String,
    /// What it is for.
    pub role: InputRole,
    /// The qualified name, for state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Where its bytes are, for state and constants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// The module global, in lattice the storage key, that holds it when it is not a function argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<String>,
}

/// One result of the module's entry function, or a literal output that needs none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleResult {
    /// The graph value that it returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The constant output that the function does not return; may be null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::tagged::present")]
    pub literal: Option<Arg>,
    /// What it is for.
    pub role: OutputRole,
    /// The state or input that it updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its type; absent for a literal.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub ty: Option<Type>,
}

/// A function that the module calls and only declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// Its name, without `@`.
    pub symbol: String,
    /// The operator that it stands for.
    pub op: String,
    /// The operator's positional arguments, values by their place among the function's parameters: `{"v":"0"}`.
    #[serde(default)]
    pub args: Args,
    /// Its keyword arguments, likewise.
    #[serde(default, skip_serializing_if = "Kwargs::is_empty", deserialize_with = "crate::tagged::unique")]
    pub kwargs: Kwargs,
    /// Types of the parameters; `?` is a size that is known when it runs.
    #[serde(default)]
    pub operands: Vec<Type>,
    /// Types of the results.
    #[serde(default)]
    pub results: Vec<Type>,
}

impl External {
    /// It as it stands in a module's record.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The MLIR module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// `linalg`, `tosa`, `torch`, `stablehlo`, `lattice`.
    pub dialect: String,
    /// `generic`, `pretty`, `bytecode`.
    pub form: String,
    /// The module, when it is text of at most 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The `file` record's id, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// The function to call, without `@`.
    pub entry: String,
    /// In the order of the function's arguments; those with a `global` are not arguments.
    pub arguments: Vec<Argument>,
    /// In the order of the function's results; literals are not results.
    pub results: Vec<ModuleResult>,
    /// Functions that are declared for operators without a rule, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub externals: Vec<External>,
}

/// What became of one prepared node in the module. Exactly one of `ops`, `alias`, `eliminated` is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lowered {
    /// The node of the current graph.
    pub node: String,
    /// Ordinals of its operations, counted in the order in which the module prints them, the module itself being 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<u64>>,
    /// The value that its result is another name of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Why it needs no operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eliminated: Option<String>,
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// Something that a tool has to say about the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code: `unsupported-operator`, `opaque-object`, …
    pub code: String,
    /// The node or input that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is wrong, with the actual values.
    pub message: String,
    /// What would be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

body!(
    Elimination = "elimination",
    Tensor = "tensor",
    Golden = "golden",
    Observation = "observation",
    Module = "module",
    Lowered = "lowered",
    Diagnostic = "diagnostic",
);
