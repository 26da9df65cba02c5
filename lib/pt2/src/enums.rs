//! The export schema's enum numbers, which are its own and not those of PyTorch's C++.

use m2m_record::DType;

/// ScalarType.
pub fn scalar_type(number: i64) -> Option<DType> {
    Some(match number {
        1 => DType::U8,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::F16,
        7 => DType::F32,
        8 => DType::F64,
        9 => DType::C32,
        10 => DType::C64,
        11 => DType::C128,
        12 => DType::Bool,
        13 => DType::BF16,
        28 => DType::U16,
        29 => DType::F8E4M3FN,
        30 => DType::F8E5M2,
        31 => DType::F8E4M3FNUZ,
        32 => DType::F8E5M2FNUZ,
        33 => DType::F8E8M0FNU,
        34 => DType::U32,
        35 => DType::U64,
        _ => return None,
    })
}

/// Layout, by PyTorch's name.
pub fn layout(number: i64) -> Option<&'static str> {
    Some(match number {
        1 => "sparse_coo",
        2 => "sparse_csr",
        3 => "sparse_csc",
        4 => "sparse_bsr",
        5 => "sparse_bsc",
        6 => "mkldnn",
        7 => "strided",
        _ => return None,
    })
}

/// MemoryFormat, by PyTorch's name.
pub fn memory_format(number: i64) -> Option<&'static str> {
    Some(match number {
        1 => "contiguous",
        2 => "channels_last",
        3 => "channels_last_3d",
        4 => "preserve",
        _ => return None,
    })
}

/// ArgumentKind of a keyword argument.
pub const KEYWORD: i64 = 2;

/// ArgumentKind of a positional argument.
pub const POSITIONAL: i64 = 1;
