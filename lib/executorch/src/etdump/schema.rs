//! Names and field numbers of the tables of an ETDump (`devtools/etdump/etdump_schema_flatcc.fbs` of ExecuTorch). Field
//! numbers are implicit there: the order in which fields are declared.

pub(super) const DUMP: &str = "ETDump";
pub(super) const RUN: &str = "RunData";
pub(super) const ALLOCATOR: &str = "Allocator";
pub(super) const EVENT: &str = "Event";
pub(super) const PROFILE: &str = "ProfileEvent";
pub(super) const ALLOCATION: &str = "AllocationEvent";
pub(super) const DEBUG: &str = "DebugEvent";
pub(super) const VALUE: &str = "Value";
pub(super) const TENSOR: &str = "Tensor";
pub(super) const TENSOR_LIST: &str = "TensorList";
pub(super) const INT: &str = "Int";
pub(super) const FLOAT: &str = "Float";
pub(super) const DOUBLE: &str = "Double";
pub(super) const BOOL: &str = "Bool";

macro_rules! fields {
    ($($table:ident { $($name:ident = $number:literal $text:literal),* $(,)? })*) => {
        $(pub(super) mod $table {
            use crate::flatbuffer::Field;
            $(pub(in crate::etdump) const $name: Field = Field($number, $text);)*
        })*
    };
}

fields! {
    dump { VERSION = 0 "version", RUN_DATA = 1 "run_data" }
    run { NAME = 0 "name", BUNDLED_INPUT_INDEX = 1 "bundled_input_index", ALLOCATORS = 2 "allocators", EVENTS = 3 "events" }
    allocator { NAME = 0 "name" }
    event { PROFILE = 0 "profile_event", ALLOCATION = 1 "allocation_event", DEBUG = 2 "debug_event" }
    profile {
        NAME = 0 "name",
        CHAIN_INDEX = 1 "chain_index",
        INSTRUCTION_ID = 2 "instruction_id",
        DELEGATE_DEBUG_ID_INT = 3 "delegate_debug_id_int",
        DELEGATE_DEBUG_ID_STR = 4 "delegate_debug_id_str",
        DELEGATE_DEBUG_METADATA = 5 "delegate_debug_metadata",
        START_TIME = 6 "start_time",
        END_TIME = 7 "end_time",
    }
    allocation { ALLOCATOR_ID = 0 "allocator_id", ALLOCATION_SIZE = 1 "allocation_size" }
    debug {
        CHAIN_INDEX = 0 "chain_index",
        INSTRUCTION_ID = 1 "instruction_id",
        DEBUG_ENTRY = 2 "debug_entry",
        DELEGATE_DEBUG_ID_INT = 3 "delegate_debug_id_int",
        DELEGATE_DEBUG_ID_STR = 4 "delegate_debug_id_str",
        NAME = 5 "name",
    }
    value {
        VAL = 0 "val",
        TENSOR = 1 "tensor",
        TENSOR_LIST = 2 "tensor_list",
        INT_VALUE = 3 "int_value",
        FLOAT_VALUE = 4 "float_value",
        DOUBLE_VALUE = 5 "double_value",
        BOOL_VALUE = 6 "bool_value",
        OUTPUT = 7 "output",
    }
    tensor { SCALAR_TYPE = 0 "scalar_type", SIZES = 1 "sizes", STRIDES = 2 "strides", OFFSET = 3 "offset" }
    tensor_list { TENSORS = 0 "tensors" }
    scalar { VAL = 0 "val" }
}
