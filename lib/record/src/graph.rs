//! The records that tell what a program is: its source, its files, and each graph it has been.

use crate::arg::{Arg, Args, Kwargs};
use crate::data::Data;
use crate::framing::body;
use crate::types::Type;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What the artifact says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// `pt2`, `jax`, `stablehlo`.
    pub format: String,
    /// `torch`, `jax`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// The framework's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework_version: Option<String>,
    /// The artifact's schema version, as `8.20`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Operator set versions by namespace.
    #[serde(default, skip_serializing_if = "indexmap::IndexMap::is_empty", deserialize_with = "crate::tagged::unique")]
    pub opset: indexmap::IndexMap<String, i64>,
    /// The verifiers or dialects that it satisfies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verifiers: Vec<String>,
    /// The platforms that it was exported for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<String>,
    /// Which of several programs in one artifact this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// A file that holds tensors. A later one with the same id replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// `f0`, `f1`, …
    pub id: String,
    /// Its name without folders.
    pub name: String,
    /// As given, relative to the working directory or to `--root`. Outside every digest that a bundle states.
    pub path: String,
    /// `pt2`, `safetensors`, …
    pub format: String,
    /// Its size.
    pub bytes: u64,
}

/// A tree of the calling convention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Tree {
    /// A leaf: the value it stands for, or null where it is a constant.
    Leaf {
        /// The value's name.
        leaf: Option<String>,
    },
    /// A container.
    Node {
        /// `tuple`, `list`, `dict`, `namedtuple`, `ordered_dict`, or the registered class.
        tree: String,
        /// Keys or field names of a mapping, in the order of `children`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keys: Vec<Arg>,
        /// What a registered class keeps besides its children, as the artifact spells it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<String>,
        /// The members.
        children: Vec<Tree>,
    },
}

/// The calling convention: `inputs` is a tuple of (positional tuple, keyword dict).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pytree {
    /// How arguments are nested.
    pub inputs: Tree,
    /// How results are nested.
    pub outputs: Tree,
    /// Parameter names of `forward`, where the artifact tells them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A submodule whose signature was preserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleCall {
    /// Its qualified name.
    pub module: String,
    /// The flattened arguments.
    pub inputs: Vec<Arg>,
    /// The flattened results.
    pub outputs: Vec<Arg>,
    /// How the arguments are nested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tree: Option<Tree>,
    /// How the results are nested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tree: Option<Tree>,
    /// Parameter names of its `forward`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// A side file of the artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extra {
    /// Its name inside the artifact.
    pub name: String,
    /// Its bytes.
    pub data: Data,
}

/// Opens a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The stage for a root, `PARENT/NAME` for a nested one.
    pub graph: String,
    /// `original`, `precision`, `quantized`, `integer`, `prepared`; `quantized.2` when it comes again.
    pub stage: String,
    /// The function's name, of a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The graph that calls it, of a nested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A symbol of a graph's shapes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Symbol {
    /// Its graph.
    pub graph: String,
    /// `s0` (from an input's shape), `u1` (from data), `zuf0` (a float from data).
    pub name: String,
    /// Lower bound; null when unbounded.
    pub min: Option<i64>,
    /// Upper bound; null when unbounded.
    pub max: Option<i64>,
    /// The value it had at export.
    #[serde(default)]
    pub hint: Option<Arg>,
}

/// A condition on inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// Its graph.
    pub graph: String,
    /// The condition.
    pub expr: String,
    /// What to say when it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What an input is for, in the export schema's words; and the seed, which only modules take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the export schema's own words")]
pub enum InputRole {
    Parameter,
    Buffer,
    TensorConstant,
    UserInput,
    ConstantInput,
    CustomObj,
    Token,
    Seed,
}

/// An input of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its graph.
    pub graph: String,
    /// Its value name.
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
    /// Its value, for `constant_input`; may be null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::tagged::present")]
    pub literal: Option<Arg>,
    /// Whether a buffer is saved with the model; absent where the question does not arise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
    /// Inputs of the previous stage that it comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
}

impl Input {
    /// An input of which nothing is known but its type: no state, no literal, no origins.
    pub fn new(graph: impl Into<String>, value: impl Into<String>, role: InputRole, ty: impl Into<Type>) -> Self {
        let (graph, value, ty) = (graph.into(), value.into(), ty.into());
        Input { graph, value, role, target: None, ty, data: None, literal: None, persistent: None, origins: Vec::new() }
    }
}

/// A value and its type; the value is null where an operator returned nothing for that result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypedValue {
    /// The name, unique in its graph.
    pub value: Option<String>,
    /// The type.
    #[serde(rename = "type")]
    pub ty: Type,
}

/// One return of the operator's schema: a single value, or a list of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// One value: `1`.
    One,
    /// A list: `["list",3]`.
    List(u32),
}

impl Return {
    /// How many of the flat results it takes.
    pub fn len(self) -> usize {
        match self {
            Return::One => 1,
            Return::List(n) => n as usize,
        }
    }

    /// True for a list of none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl Serialize for Return {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Return::One => serializer.serialize_u32(1),
            Return::List(n) => ("list", n).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Return {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Shape {
            One(u32),
            List(String, u32),
        }
        match Shape::deserialize(deserializer)? {
            Shape::One(1) => Ok(Return::One),
            Shape::List(word, n) if word == "list" => Ok(Return::List(n)),
            _ => Err(serde::de::Error::custom("expected 1 or [\"list\",N]")),
        }
    }
}

impl JsonSchema for Return {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Return".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [
            { "const": 1 },
            { "type": "array", "prefixItems": [{ "const": "list" }, { "type": "integer", "minimum": 0 }], "minItems": 2, "maxItems": 2 },
        ] })
    }
}

/// One call of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its graph.
    pub graph: String,
    /// Its stage.
    pub stage: String,
    /// `STAGE:N`, unique in the stream.
    pub node: String,
    /// The operator with its overload: `aten.conv2d.default`.
    pub op: String,
    /// Positional arguments.
    #[serde(default)]
    pub args: Args,
    /// Keyword arguments.
    #[serde(default, skip_serializing_if = "Kwargs::is_empty", deserialize_with = "crate::tagged::unique")]
    pub kwargs: Kwargs,
    /// All results, flat.
    #[serde(default)]
    pub results: Vec<TypedValue>,
    /// How `results` group into the schema's returns; absent when there is one result that is not a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Vec<Return>>,
    /// Nodes or inputs of the previous stage that it comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The rule that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The module path, in `original`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// `file.py:line`, in `original`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loc: Option<String>,
}

/// Where a node comes from: the part of a [`Node`] that tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlace {
    /// `STAGE:N`.
    pub node: String,
    /// Nodes or inputs of the previous stage.
    #[serde(default)]
    pub origins: Vec<String>,
    /// The module path.
    #[serde(default)]
    pub scope: Option<String>,
    /// `file.py:line`.
    #[serde(default)]
    pub loc: Option<String>,
}

/// What an output is for, in the export schema's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the export schema's own words")]
pub enum OutputRole {
    UserOutput,
    BufferMutation,
    ParameterMutation,
    UserInputMutation,
    GradientToParameter,
    GradientToUserInput,
    LossOutput,
    Token,
}

/// One output of a graph: a value, or a literal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputItem {
    /// The value's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The constant; may be null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::tagged::present")]
    pub literal: Option<Arg>,
    /// What it is for.
    pub role: OutputRole,
    /// The state or input that it updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The outputs of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Its graph.
    pub graph: String,
    /// In signature order.
    pub outputs: Vec<OutputItem>,
}

/// Closes a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Its graph.
    pub graph: String,
    /// How many nodes it has.
    pub nodes: u64,
    /// SHA-256 of its lines, from `graph` to the line before this one, newlines included.
    pub sha256: String,
}

body!(
    Source = "source",
    File = "file",
    Pytree = "pytree",
    ModuleCall = "module_call",
    Extra = "extra",
    Graph = "graph",
    Symbol = "symbol",
    Guard = "guard",
    Input = "input",
    Node = "node",
    NodePlace = "node",
    Output = "output",
    Seal = "seal",
);
