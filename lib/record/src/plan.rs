//! The records of a sparse model's runtime plan, field for field as the contract names them.

use crate::arg::Kwargs;
use crate::data::Data;
use crate::framing::body;
use crate::types::Type;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An argument of the plan's function, in call order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanArgument {
    /// Its label: `arg0`, `arg1`, …
    pub name: String,
    /// The name by which a caller binds it.
    pub abi_name: String,
    /// Its type, as MLIR prints it.
    #[serde(rename = "type")]
    pub ty: String,
    /// `tensor`, `sparse_coords`, `sparse_features`, `sparse_active`.
    pub role: String,
}

/// An operation of the plan, in execution order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanOp {
    /// With the namespace: `lattice.conv3d`.
    pub name: String,
    /// Labels of what it takes.
    pub operands: Vec<String>,
    /// Their types, as MLIR prints them.
    pub operand_types: Vec<String>,
    /// Labels of what it gives: numbering goes on after the arguments, `v3`, `v4`, …
    pub results: Vec<String>,
    /// Their types, as MLIR prints them.
    pub result_types: Vec<String>,
    /// Its attributes, sorted by key: keywords are strings, triples lists, a packing is a map.
    #[serde(deserialize_with = "crate::tagged::unique")]
    pub attrs: Kwargs,
    /// Of `lattice.weight`: the stored tensors that it binds; one, or the weight, scales and biases of a packed one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<PlanWeight>,
    /// Where the graph's text has it: `line:column`. Absent where it was read from bytecode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loc: Option<String>,
}

/// A stored tensor that a weight binds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanWeight {
    /// Its key in the weights file.
    pub name: String,
    /// Its type there.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Where its bytes are.
    pub data: Data,
}

/// A result of the plan's function, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanOutput {
    /// The label that is returned.
    pub name: String,
    /// The name by which a caller finds it.
    pub abi_name: String,
    /// Its type, as MLIR prints it.
    #[serde(rename = "type")]
    pub ty: String,
    /// `tensor`, `sparse_tensor`.
    pub role: String,
}

body!(PlanArgument = "plan_argument", PlanOp = "plan_op", PlanOutput = "plan_output");
