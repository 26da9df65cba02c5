//! The records of ExecuTorch's program and data files: what is in them and where it lies.
//!
//! Indices are those of the file. Offsets are counted from its first byte. `sha256` is there only when digests were asked
//! for, because everything of that size stays unread otherwise.

use crate::arg::Arg;
use crate::framing::body;
use crate::number::Integer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program or data file as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The `file` record's id.
    pub file: String,
    /// `pte` or `ptd`.
    pub format: String,
    /// The flatbuffer's identifier.
    pub identifier: String,
    /// The schema's version.
    pub version: u32,
    /// Where the root table begins.
    pub root_offset: u32,
    /// The extended header; null for a file that is all flatbuffer.
    pub header: Option<Header>,
    /// How many methods.
    pub methods: u64,
    /// How many segments.
    pub segments: u64,
    /// How many constants, the placeholder at index 0 included.
    pub constants: u64,
    /// How many names.
    pub named_data: u64,
}

/// The extended header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Its own size.
    pub length: u32,
    /// Where the flatbuffer ends.
    pub program_size: u64,
    /// Where the first segment begins; 0 for none.
    pub segment_base_offset: u64,
    /// Bytes from there to the end of the last segment; 0 in files that do not say.
    pub segment_data_size: u64,
}

/// What a range of the file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Constants of all methods.
    Constants,
    /// First states of mutable tensors, by their index in `mutable_data_segments`.
    MutableData(u64),
    /// A delegate's payload, by method and index.
    Delegate(String, u64),
    /// Data by name.
    NamedData(String),
}

/// A range behind the flatbuffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Its index.
    pub segment: u64,
    /// Where it begins.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// Everything that refers to it.
    pub holds: Vec<Content>,
    /// SHA-256 of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Data by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedData {
    /// The name.
    pub key: String,
    /// The segment.
    pub segment: u64,
    /// Where it begins.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// How a tensor lies in it, where the file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<TensorLayout>,
    /// SHA-256 of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How a tensor lies in its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorLayout {
    /// A dtype of the stream, or the schema's scalar type in lower case.
    pub dtype: String,
    /// Sizes, in the order of the tensor's dimensions.
    pub shape: Vec<i64>,
    /// Dimensions from the outermost to the innermost.
    pub dim_order: Vec<u64>,
}

/// A constant that methods share, or the first state of mutable tensors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Its `data_buffer_idx`.
    pub constant: u64,
    /// The mutable data segment, for a first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutable_data: Option<u64>,
    /// The segment; null for one inside the flatbuffer.
    pub segment: Option<u64>,
    /// Where it begins.
    pub offset: u64,
    /// Its size, padding up to the next one included.
    pub bytes: u64,
    /// The values that it is the data of.
    pub values: Vec<ValueRef>,
    /// SHA-256 of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A value of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueRef {
    /// The method.
    pub method: String,
    /// The value's index.
    pub value: u64,
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// Its name.
    pub method: String,
    /// Its position in the file.
    pub plan: u64,
    /// What it takes.
    pub inputs: Vec<Port>,
    /// What it returns.
    pub outputs: Vec<Port>,
    /// Planned memory.
    pub memory: Vec<Memory>,
    /// Operators as `aten::add.out`; instructions name them.
    pub operators: Vec<String>,
    /// Instructions of all chains, in order.
    pub instructions: Vec<Step>,
    /// How many values.
    pub values: u64,
    /// How many delegates.
    pub delegates: u64,
    /// The tree of its inputs, as the file spells it.
    pub input_tree: Option<String>,
    /// The tree of its outputs, as the file spells it.
    pub output_tree: Option<String>,
}

/// An input or output of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Index of the value.
    pub value: u64,
    /// Its kind.
    pub kind: String,
    /// For tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<TensorLayout>,
    /// For tensors: `static`, `dynamic_bound`, where sizes are upper bounds, or `dynamic_unbound`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamism: Option<String>,
}

/// A buffer that the runtime must bring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its `memory_id`; 0 is reserved.
    pub memory: u64,
    /// Its size.
    pub bytes: Integer,
    /// `cpu`, `cuda:1`; absent where the file says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// One instruction of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The chain.
    pub chain: u64,
    /// Its position in the chain, which is the `instruction_id` of profiles.
    pub instruction: u64,
    /// What it does.
    pub call: Action,
    /// The stack of the source, innermost frame last as stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}

/// What an instruction does. Numbers are indices of values unless their name says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Action {
    Kernel { op: String, args: Vec<u64> },
    Delegate { delegate: u64, args: Vec<u64> },
    Move { from: u64, to: u64 },
    JumpFalse { condition: u64, destination: u64 },
    Free { value: u64 },
}

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The file.
    pub file: Option<String>,
    /// The line.
    pub line: i32,
    /// The function.
    pub name: Option<String>,
    /// The line's text.
    pub context: Option<String>,
}

/// A value of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// The method.
    pub method: String,
    /// Its index.
    pub value: u64,
    /// `none null int bool double tensor string int_list double_list bool_list tensor_list optional_tensor_list`.
    pub kind: String,
    /// For tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<TensorLayout>,
    /// For tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamism: Option<String>,
    /// For tensors: where the data are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Placement>,
    /// For tensors that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fully_qualified_name: Option<String>,
    /// For tensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_grad: Option<bool>,
    /// For tensors on another device than the CPU: `cuda:0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// For numbers, strings and lists of literals; may be null.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::tagged::present")]
    pub literal: Option<Arg>,
    /// For lists of values: their indices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<u64>>,
}

/// Where a tensor's data are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Placement {
    /// In a constant, by `data_buffer_idx`.
    Constant(u64),
    /// In planned memory.
    Planned {
        /// The buffer.
        memory: u64,
        /// Where in it.
        offset: Integer,
        /// The `data_buffer_idx` of its first state.
        initial: Option<u64>,
    },
    /// In a data file, under the tensor's qualified name.
    External,
    /// Brought by the caller or a delegate.
    Supplied,
}

/// A delegate of a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delegate {
    /// The method.
    pub method: String,
    /// Its index in the method.
    pub delegate: u64,
    /// The backend.
    pub id: String,
    /// `inline` or `segment`.
    pub location: String,
    /// Index among the inline payloads or the segments.
    pub index: u64,
    /// Where the payload begins.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// What the payload looks like: `tosa vgf xnnpack vela empty unknown`.
    pub format: String,
    /// What it was compiled with.
    pub compile_specs: Vec<CompileSpec>,
    /// The instructions that call it.
    pub calls: Vec<DelegateCall>,
    /// The name of the file that it was written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// SHA-256 of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// An option that a delegate was compiled with. The value is `text` where it is UTF-8 without control characters, else
/// `hex`; above 4096 bytes it is neither.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompileSpec {
    /// Its name.
    pub key: String,
    /// Size of the value.
    pub bytes: u64,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The value in lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
}

/// A call of a delegate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegateCall {
    /// The chain.
    pub chain: u64,
    /// The instruction.
    pub instruction: u64,
    /// Indices of values, inputs before outputs.
    pub args: Vec<u64>,
}

/// Something in which two programs differ. What only one of them has is null in the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// `program method input output memory operator instruction delegate constant mutable_data named_data`.
    pub what: String,
    /// The method, for what belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Which of its kind: an index, a name or a key.
    pub name: String,
    /// In the first file.
    pub a: Option<String>,
    /// In the second file.
    pub b: Option<String>,
}

body!(
    Program = "program",
    Segment = "segment",
    NamedData = "named_data",
    Constant = "constant",
    Method = "method",
    Value = "value",
    Delegate = "delegate",
    Difference = "difference",
);
