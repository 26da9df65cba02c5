//! The globals that a pickle of tensors may name, and what each stands for.
//!
//! The lists are the whole of what the interpreter knows. They come from the pickles that torch 2.1 to 2.13 write.

use m2m_record::DType;

use super::Global;

/// What an allowed global does when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callable {
    /// `collections.OrderedDict()`.
    OrderedDict,
    /// `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)`.
    Tensor,
    /// `_rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype)`.
    TypedTensor,
    /// `_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)`.
    MetaTensor,
    /// `_rebuild_parameter(tensor, requires_grad, hooks)`.
    Parameter,
    /// `_rebuild_from_type_v2(function, class, arguments, state)`.
    FromType,
    /// `_get_layout("torch.strided")`.
    Layout,
    /// `torch.device("cuda", 0)`.
    Device,
    /// `torch.Size((2, 3))`.
    Size,
    /// `complex(re, im)`.
    Complex,
}

const CALLABLES: &[(&str, &str, Callable)] = &[
    ("collections", "OrderedDict", Callable::OrderedDict),
    ("torch._utils", "_rebuild_tensor_v2", Callable::Tensor),
    ("torch._utils", "_rebuild_tensor_v3", Callable::TypedTensor),
    ("torch._utils", "_rebuild_meta_tensor_no_storage", Callable::MetaTensor),
    ("torch._utils", "_rebuild_parameter", Callable::Parameter),
    ("torch._utils", "_rebuild_parameter_with_state", Callable::Parameter),
    ("torch._tensor", "_rebuild_from_type_v2", Callable::FromType),
    ("torch.serialization", "_get_layout", Callable::Layout),
    ("torch", "device", Callable::Device),
    ("torch", "Size", Callable::Size),
    ("builtins", "complex", Callable::Complex),
    ("__builtin__", "complex", Callable::Complex),
];

/// Typed storage classes; `UntypedStorage` is apart since it says nothing about elements.
const STORAGES: &[(&str, DType)] = &[
    ("BFloat16Storage", DType::BF16),
    ("BoolStorage", DType::Bool),
    ("ByteStorage", DType::U8),
    ("CharStorage", DType::I8),
    ("ComplexDoubleStorage", DType::C128),
    ("ComplexFloatStorage", DType::C64),
    ("DoubleStorage", DType::F64),
    ("FloatStorage", DType::F32),
    ("HalfStorage", DType::F16),
    ("IntStorage", DType::I32),
    ("LongStorage", DType::I64),
    ("ShortStorage", DType::I16),
];

const DTYPES: &[(&str, DType)] = &[
    ("bfloat16", DType::BF16),
    ("bool", DType::Bool),
    ("complex128", DType::C128),
    ("complex32", DType::C32),
    ("complex64", DType::C64),
    ("float16", DType::F16),
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("float8_e4m3fn", DType::F8E4M3FN),
    ("float8_e4m3fnuz", DType::F8E4M3FNUZ),
    ("float8_e5m2", DType::F8E5M2),
    ("float8_e5m2fnuz", DType::F8E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8E8M0FNU),
    ("int16", DType::I16),
    ("int2", DType::I2),
    ("int32", DType::I32),
    ("int4", DType::I4),
    ("int64", DType::I64),
    ("int8", DType::I8),
    ("uint16", DType::U16),
    ("uint2", DType::U2),
    ("uint32", DType::U32),
    ("uint4", DType::U4),
    ("uint64", DType::U64),
    ("uint8", DType::U8),
];

/// Classes that may be named but never called.
const NAMES: &[(&str, &str)] = &[
    ("torch", "Tensor"),
    ("torch.nn.parameter", "Parameter"),
    ("torch.nn.parameter", "Buffer"),
    ("torch", "UntypedStorage"),
    ("torch.storage", "UntypedStorage"),
    ("torch._utils", "_rebuild_wrapper_subclass"),
];

/// What calling this global means, if it may be called.
pub(super) fn callable(global: Global<'_>) -> Option<Callable> {
    CALLABLES.iter().find(|(m, n, _)| *m == global.module && *n == global.name).map(|(.., c)| *c)
}

/// The element type that a storage class stands for; `Some(None)` for untyped storage, `None` for no storage class.
pub fn storage_dtype(global: Global<'_>) -> Option<Option<DType>> {
    if global.name == "UntypedStorage" && matches!(global.module, "torch" | "torch.storage") {
        return Some(None);
    }
    if !matches!(global.module, "torch" | "torch.storage") {
        return None;
    }
    STORAGES.iter().find(|(name, _)| *name == global.name).map(|(_, dtype)| Some(*dtype))
}

/// The element type that `torch.NAME` stands for.
pub(super) fn dtype(global: Global<'_>) -> Option<DType> {
    if global.module != "torch" {
        return None;
    }
    DTYPES.iter().find(|(name, _)| *name == global.name).map(|(_, dtype)| *dtype)
}

/// Whether a plain pickle of tensors may name it.
pub(super) fn is_plain(global: Global<'_>) -> bool {
    callable(global).is_some()
        || storage_dtype(global).is_some()
        || dtype(global).is_some()
        || NAMES.contains(&(global.module, global.name))
}
