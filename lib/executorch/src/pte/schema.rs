//! The tables of a program as they are stored, field for field: ExecuTorch's `program.fbs` and `scalar_type.fbs`.
//!
//! Field names, numbers and enum values are the schema's. Fields that are not stored are `None`, or zero for numbers, which
//! is every default of this schema. Serialised, a struct is an object with the schema's names, an enum value its name, a
//! union `{"val_type":…,"val":…}`, and bytes their place, size and digest.

use super::load::{Blob, Element, FromTable, Load, child, children, enums, exact, tables};
use crate::flatbuffer::{Error, Field, Table};
use m2m_record::{Float, Integer};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

enums! {
    /// Element types.
    ScalarType: i8 {
        0 BYTE, 1 CHAR, 2 SHORT, 3 INT, 4 LONG, 5 HALF, 6 FLOAT, 7 DOUBLE, 8 COMPLEX32, 9 COMPLEX64, 10 COMPLEX128, 11 BOOL,
        12 QINT8, 13 QUINT8, 14 QINT32, 15 BFLOAT16, 16 QUINT4X2, 17 QUINT2X4, 18 BITS1X8, 19 BITS2X4, 20 BITS4X2, 21 BITS8,
        22 BITS16, 23 FLOAT8E5M2, 24 FLOAT8E4M3FN, 25 FLOAT8E5M2FNUZ, 26 FLOAT8E4M3FNUZ, 27 UINT16, 28 UINT32, 29 UINT64,
    }
    /// Whether sizes can change at run time.
    TensorShapeDynamism: i8 { 0 STATIC, 1 DYNAMIC_BOUND, 2 DYNAMIC_UNBOUND }
    /// Where a tensor's data are.
    TensorDataLocation: i8 { 0 SEGMENT, 1 EXTERNAL }
    /// Kinds of device.
    DeviceType: i8 { 0 CPU, 1 CUDA }
    /// Where a delegate's payload is.
    DataLocation: i8 { 0 INLINE, 1 SEGMENT }
}

tables! {
    /// The root of a program.
    Program<'a> {
        0 version: u32, 1 execution_plan: Option<Vec<ExecutionPlan<'a>>>, 2 constant_buffer: Option<Vec<Buffer<'a>>>,
        3 backend_delegate_data: Option<Vec<BackendDelegateInlineData<'a>>>, 4 segments: Option<Vec<DataSegment>>,
        5 constant_segment: Option<SubsegmentOffsets>, 6 mutable_data_segments: Option<Vec<SubsegmentOffsets>>,
        7 named_data: Option<Vec<NamedData<'a>>>,
    }
    /// A method.
    ExecutionPlan<'a> {
        0 name: Option<&'a str>, 1 container_meta_type: Option<ContainerMetadata<'a>>, 2 values: Option<Vec<EValue<'a>>>,
        3 inputs: Option<Vec<i32>>, 4 outputs: Option<Vec<i32>>, 5 chains: Option<Vec<Chain<'a>>>,
        6 operators: Option<Vec<Operator<'a>>>, 7 delegates: Option<Vec<BackendDelegate<'a>>>,
        #[serde(serialize_with = "exact")] 8 non_const_buffer_sizes: Option<Vec<i64>>, 9 non_const_buffer_device: Option<Vec<NonConstBufferDevice>>,
    }
    /// The trees of a method's calling convention, as JSON.
    ContainerMetadata<'a> { 0 encoded_inp_str: Option<&'a str>, 1 encoded_out_str: Option<&'a str> }
    /// A tensor.
    Tensor<'a> {
        0 scalar_type: ScalarType, 1 storage_offset: i32, 2 sizes: Option<Vec<i32>>, 3 dim_order: Option<Vec<u8>>,
        4 requires_grad: bool, 5 data_buffer_idx: u32, 6 allocation_info: Option<AllocationDetails>, 7 layout: i8,
        8 shape_dynamism: TensorShapeDynamism, 9 extra_tensor_info: Option<ExtraTensorInfo<'a>>,
    }
    /// Where in planned memory a tensor lies.
    AllocationDetails { 0 memory_id: u32, 1 memory_offset_low: u32, 2 memory_offset_high: u32 }
    /// What only some tensors have.
    ExtraTensorInfo<'a> {
        #[serde(serialize_with = "exact")] 0 mutable_data_segments_idx: u64, 1 fully_qualified_name: Option<&'a str>, 2 location: TensorDataLocation,
        3 device_type: DeviceType, 4 device_index: i8,
    }
    /// An operator by name.
    Operator<'a> { 0 name: Option<&'a str>, 1 overload: Option<&'a str> }
    /// A sequence of instructions.
    Chain<'a> {
        0 inputs: Option<Vec<i32>>, 1 outputs: Option<Vec<i32>>, 2 instructions: Option<Vec<Instruction>>,
        3 stacktrace: Option<Vec<FrameList<'a>>>,
    }
    /// Calls an operator.
    KernelCall { 0 op_index: i32, 1 args: Option<Vec<i32>> }
    /// Calls a delegate.
    DelegateCall { 0 delegate_index: i32, 1 args: Option<Vec<i32>> }
    /// Copies a value.
    MoveCall { 0 move_from: i32, 1 move_to: i32 }
    /// Jumps if a value is false.
    JumpFalseCall { 0 cond_value_index: i32, 1 destination_instruction: i32 }
    /// Frees a value.
    FreeCall { 0 value_index: i32 }
    /// The stack of an instruction.
    FrameList<'a> { 0 items: Option<Vec<Frame<'a>>> }
    /// A frame of a stack.
    Frame<'a> { 0 filename: Option<&'a str>, 1 lineno: i32, 2 name: Option<&'a str>, 3 context: Option<&'a str> }
    /// A delegate of a method.
    BackendDelegate<'a> {
        0 id: Option<&'a str>, 1 processed: Option<BackendDelegateDataReference>, 2 compile_specs: Option<Vec<CompileSpec<'a>>>,
    }
    /// Where a payload is.
    BackendDelegateDataReference { 0 location: DataLocation, 1 index: u32 }
    /// An option that a delegate was compiled with.
    CompileSpec<'a> { 0 key: Option<&'a str>, 1 value: Option<Blob<'a>> }
    /// A constant inside the flatbuffer.
    Buffer<'a> { 0 storage: Option<Blob<'a>> }
    /// A payload inside the flatbuffer.
    BackendDelegateInlineData<'a> { 0 data: Option<Blob<'a>> }
    /// A range behind the flatbuffer, from the segment base on.
    DataSegment { #[serde(serialize_with = "exact")] 0 offset: u64, #[serde(serialize_with = "exact")] 1 size: u64 }
    /// Ranges of a segment, by where they begin.
    SubsegmentOffsets { 0 segment_index: u32, #[serde(serialize_with = "exact")] 1 offsets: Option<Vec<u64>> }
    /// A segment by name.
    NamedData<'a> { 0 key: Option<&'a str>, 1 segment_index: u32 }
    /// The device of a planned buffer.
    NonConstBufferDevice { 0 buffer_idx: i32, 1 device_type: DeviceType, 2 device_index: i8 }
}

const VAL_TYPE: Field = Field(0, "val_type");
const VAL: Field = Field(1, "val");

/// A value of a method.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the schema's own names")]
pub enum EValue<'a> {
    None,
    Null,
    Int(i64),
    Bool(bool),
    Double(f64),
    Tensor(Box<Tensor<'a>>),
    String(Option<&'a str>),
    /// Indices of `Int` values.
    IntList(Option<Vec<i64>>),
    DoubleList(Option<Vec<f64>>),
    BoolList(Option<Vec<bool>>),
    /// Indices of `Tensor` values.
    TensorList(Option<Vec<i32>>),
    /// Indices of `Tensor` and `Null` values.
    OptionalTensorList(Option<Vec<i32>>),
    /// A type of a newer schema.
    Unknown(u8),
}

/// The names of the union's types, from type 1 on.
const VALUE_TYPES: [&str; 11] = [
    "Null",
    "Int",
    "Bool",
    "Double",
    "Tensor",
    "String",
    "IntList",
    "DoubleList",
    "BoolList",
    "TensorList",
    "OptionalTensorList",
];

const ITEMS: Field = Field(0, "items");

impl<'a> FromTable<'a> for EValue<'a> {
    const NAME: &'static str = "EValue";

    fn from_table(table: &Table<'_, 'a>) -> Result<Self, Error> {
        let Some((tag, value)) = table.union(VAL_TYPE, VAL, |tag| name_of(&VALUE_TYPES, tag))? else {
            return Ok(EValue::None);
        };
        let Some(value) = value else { return Ok(EValue::Unknown(tag)) };
        Ok(match tag {
            1 => EValue::Null,
            2 => EValue::Int(value.scalar(Field(0, "int_val"), 0)?),
            3 => EValue::Bool(value.scalar(Field(0, "bool_val"), false)?),
            4 => EValue::Double(value.scalar(Field(0, "double_val"), 0.0)?),
            5 => EValue::Tensor(Box::new(Tensor::from_table(&value)?)),
            6 => EValue::String(value.string(Field(0, "string_val"))?),
            7 => EValue::IntList(Load::load(&value, ITEMS)?),
            8 => EValue::DoubleList(Load::load(&value, ITEMS)?),
            9 => EValue::BoolList(Load::load(&value, ITEMS)?),
            10 => EValue::TensorList(Load::load(&value, ITEMS)?),
            11 => EValue::OptionalTensorList(Load::load(&value, ITEMS)?),
            _ => EValue::Unknown(tag),
        })
    }
}

impl<'a> Element<'a> for EValue<'a> {
    fn load_all(table: &Table<'_, 'a>, field: Field) -> Result<Option<Vec<Self>>, Error> {
        children(table, field)
    }
}

fn name_of(names: &[&'static str], tag: u8) -> Option<&'static str> {
    names.get(usize::from(tag).checked_sub(1)?).copied()
}

impl EValue<'_> {
    /// The schema's name of its type.
    pub fn type_name(&self) -> Option<&'static str> {
        let tag = match self {
            EValue::None => return Some("NONE"),
            EValue::Unknown(_) => return None,
            EValue::Null => 1,
            EValue::Int(_) => 2,
            EValue::Bool(_) => 3,
            EValue::Double(_) => 4,
            EValue::Tensor(_) => 5,
            EValue::String(_) => 6,
            EValue::IntList(_) => 7,
            EValue::DoubleList(_) => 8,
            EValue::BoolList(_) => 9,
            EValue::TensorList(_) => 10,
            EValue::OptionalTensorList(_) => 11,
        };
        name_of(&VALUE_TYPES, tag)
    }
}

/// An object of one member.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum One<T> {
    IntVal(T),
    BoolVal(T),
    DoubleVal(T),
    StringVal(T),
    Items(T),
}

#[derive(Serialize)]
struct Empty {}

impl Serialize for EValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self {
            EValue::Unknown(tag) => map.serialize_entry("val_type", tag)?,
            known => map.serialize_entry("val_type", &known.type_name())?,
        }
        map.serialize_key("val")?;
        match self {
            EValue::None | EValue::Unknown(_) => map.serialize_value(&())?,
            EValue::Null => map.serialize_value(&Empty {})?,
            EValue::Int(x) => map.serialize_value(&One::IntVal(Integer::from(*x)))?,
            EValue::Bool(x) => map.serialize_value(&One::BoolVal(x))?,
            EValue::Double(x) => map.serialize_value(&One::DoubleVal(Float(*x)))?,
            EValue::Tensor(tensor) => map.serialize_value(tensor)?,
            EValue::String(text) => map.serialize_value(&One::StringVal(text))?,
            EValue::IntList(items) => {
                let items = items.as_ref().map(|all| all.iter().map(|x| Integer::from(*x)).collect::<Vec<_>>());
                map.serialize_value(&One::Items(items))?;
            }
            EValue::DoubleList(items) => {
                let items = items.as_ref().map(|all| all.iter().map(|x| Float(*x)).collect::<Vec<_>>());
                map.serialize_value(&One::Items(items))?;
            }
            EValue::BoolList(items) => map.serialize_value(&One::Items(items))?,
            EValue::TensorList(items) | EValue::OptionalTensorList(items) => map.serialize_value(&One::Items(items))?,
        }
        map.end()
    }
}

/// One instruction of a chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "instr_args_type", content = "instr_args")]
#[allow(missing_docs, reason = "the schema's own names")]
pub enum Instruction {
    #[serde(rename = "NONE")]
    None,
    KernelCall(KernelCall),
    DelegateCall(DelegateCall),
    MoveCall(MoveCall),
    JumpFalseCall(JumpFalseCall),
    FreeCall(FreeCall),
    /// A type of a newer schema.
    Unknown(u8),
}

/// The names of the union's types, from type 1 on.
const CALL_TYPES: [&str; 5] = ["KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"];

impl<'a> FromTable<'a> for Instruction {
    const NAME: &'static str = "Instruction";

    fn from_table(table: &Table<'_, 'a>) -> Result<Self, Error> {
        let (tag, value) = (Field(0, "instr_args_type"), Field(1, "instr_args"));
        let Some((tag, call)) = table.union(tag, value, |tag| name_of(&CALL_TYPES, tag))? else {
            return Ok(Instruction::None);
        };
        let Some(call) = call else { return Ok(Instruction::Unknown(tag)) };
        Ok(match tag {
            1 => Instruction::KernelCall(KernelCall::from_table(&call)?),
            2 => Instruction::DelegateCall(DelegateCall::from_table(&call)?),
            3 => Instruction::MoveCall(MoveCall::from_table(&call)?),
            4 => Instruction::JumpFalseCall(JumpFalseCall::from_table(&call)?),
            5 => Instruction::FreeCall(FreeCall::from_table(&call)?),
            _ => Instruction::Unknown(tag),
        })
    }
}

impl<'a> Element<'a> for Instruction {
    fn load_all(table: &Table<'_, 'a>, field: Field) -> Result<Option<Vec<Self>>, Error> {
        children(table, field)
    }
}

impl ScalarType {
    /// Bytes of one element; packed and unknown types have none.
    pub fn size_bytes(self) -> Option<u64> {
        Some(match self.0 {
            0 | 1 | 11..=13 | 21 | 23..=26 => 1,
            2 | 5 | 15 | 22 | 27 => 2,
            3 | 6 | 8 | 14 | 28 => 4,
            4 | 7 | 9 | 29 => 8,
            10 => 16,
            _ => return None,
        })
    }

    /// The spelling of records where they have one, else the schema's in lower case.
    pub fn dtype(self) -> String {
        let word = match self.0 {
            0 => "u8",
            1 => "i8",
            2 => "i16",
            3 => "i32",
            4 => "i64",
            5 => "f16",
            6 => "f32",
            7 => "f64",
            8 => "c32",
            9 => "c64",
            10 => "c128",
            11 => "bool",
            15 => "bf16",
            23 => "f8e5m2",
            24 => "f8e4m3fn",
            25 => "f8e5m2fnuz",
            26 => "f8e4m3fnuz",
            27 => "u16",
            28 => "u32",
            29 => "u64",
            _ => return self.name().map_or_else(|| format!("scalar_type_{}", self.0), str::to_lowercase),
        };
        word.to_owned()
    }
}

/// Bytes of a dense tensor; `None` for a negative size, a packed type, or beyond 64 bits.
pub fn tensor_bytes(scalar_type: ScalarType, sizes: &[i32]) -> Option<u64> {
    sizes.iter().try_fold(scalar_type.size_bytes()?, |total, size| total.checked_mul(u64::try_from(*size).ok()?))
}
