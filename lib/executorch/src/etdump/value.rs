//! Values that the runtime logged, as stored: the numbers themselves, and of tensors where their bytes lie in the buffer
//! beside the dump.

use m2m_record::DType;

use super::schema::{self, scalar, tensor, tensor_list, value as field};
use crate::flatbuffer::{Error, Field, Scalar, Table};

/// Names of value types, by number.
pub const VALUE_TYPES: [&str; 8] = ["Null", "Int", "Bool", "Float", "Double", "Tensor", "TensorList", "String"];

/// Scalar types of tensors: number, name, and dtype where it is one of ours.
pub const SCALAR_TYPES: [(i8, &str, Option<DType>); 23] = [
    (0, "BYTE", Some(DType::U8)),
    (1, "CHAR", Some(DType::I8)),
    (2, "SHORT", Some(DType::I16)),
    (3, "INT", Some(DType::I32)),
    (4, "LONG", Some(DType::I64)),
    (5, "HALF", Some(DType::F16)),
    (6, "FLOAT", Some(DType::F32)),
    (7, "DOUBLE", Some(DType::F64)),
    (11, "BOOL", Some(DType::Bool)),
    (12, "QINT8", Some(DType::I8)),
    (13, "QUINT8", Some(DType::U8)),
    (14, "QINT32", Some(DType::I32)),
    (15, "BFLOAT16", Some(DType::BF16)),
    (16, "QUINT4X2", None),
    (17, "QUINT2X4", None),
    // Raw bits have no arithmetic, so they are what is nearest: integers of that size.
    (22, "BITS16", Some(DType::U16)),
    (23, "FLOAT8E5M2", Some(DType::F8E5M2)),
    (24, "FLOAT8E4M3FN", Some(DType::F8E4M3FN)),
    (25, "FLOAT8E5M2FNUZ", Some(DType::F8E5M2FNUZ)),
    (26, "FLOAT8E4M3FNUZ", Some(DType::F8E4M3FNUZ)),
    (27, "UINT16", Some(DType::U16)),
    (28, "UINT32", Some(DType::U32)),
    (29, "UINT64", Some(DType::U64)),
];

/// The dtype of a scalar type.
pub fn scalar_type(number: i8) -> Option<DType> {
    SCALAR_TYPES.iter().find(|row| row.0 == number)?.2
}

/// The schema's name of a scalar type; the number where it has none.
pub fn scalar_type_name(number: i8) -> String {
    let row = SCALAR_TYPES.iter().find(|row| row.0 == number);
    row.map_or_else(|| number.to_string(), |row| row.1.to_owned())
}

/// A logged value: the fields that are stored, and which of them counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DebugEntry {
    /// The value's type, by number: see [`VALUE_TYPES`].
    pub kind: i8,
    /// For `Tensor`.
    pub tensor: Option<LoggedTensor>,
    /// For `TensorList`.
    pub tensor_list: Option<Vec<LoggedTensor>>,
    /// For `Int`.
    pub int: Option<i64>,
    /// For `Float`.
    pub float: Option<f32>,
    /// For `Double`.
    pub double: Option<f64>,
    /// For `Bool`.
    pub bool: Option<bool>,
    /// Whether it is an output of the program.
    pub output: Option<bool>,
}

/// A logged tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedTensor {
    /// Its scalar type, by number: see [`SCALAR_TYPES`].
    pub scalar_type: i8,
    /// Its shape.
    pub sizes: Vec<i64>,
    /// Strides that it had in the program's memory; its bytes in the buffer are contiguous.
    pub strides: Vec<i64>,
    /// Where its bytes begin in the buffer; -1 for an empty tensor.
    pub offset: i64,
}

impl DebugEntry {
    /// The name of its type; the number where the schema has none.
    pub fn kind_name(&self) -> String {
        let name = usize::try_from(self.kind).ok().and_then(|kind| VALUE_TYPES.get(kind));
        name.map_or_else(|| self.kind.to_string(), |name| (*name).to_owned())
    }

    /// Whether it is an output of the program.
    pub fn is_output(&self) -> bool {
        self.output == Some(true)
    }

    /// The tensors of a `Tensor` or a `TensorList`.
    pub fn tensors(&self) -> Option<&[LoggedTensor]> {
        match self.kind {
            5 => self.tensor.as_ref().map(std::slice::from_ref),
            6 => self.tensor_list.as_deref(),
            _ => None,
        }
    }

    pub(super) fn read(table: &Table<'_, '_>) -> Result<Self, Error> {
        let tensor = match table.table(field::TENSOR, schema::TENSOR)? {
            None => None,
            Some(found) => Some(LoggedTensor::read(&found)?),
        };
        let tensor_list = match table.table(field::TENSOR_LIST, schema::TENSOR_LIST)? {
            None => None,
            Some(list) => {
                let mut all = Vec::new();
                if let Some(found) = list.tables(tensor_list::TENSORS, schema::TENSOR)? {
                    for tensor in found.iter() {
                        all.push(LoggedTensor::read(&tensor?)?);
                    }
                }
                Some(all)
            }
        };
        Ok(DebugEntry {
            kind: table.scalar(field::VAL, 0)?,
            tensor,
            tensor_list,
            int: boxed(table, field::INT_VALUE, schema::INT, 0)?,
            float: boxed(table, field::FLOAT_VALUE, schema::FLOAT, 0.0)?,
            double: boxed(table, field::DOUBLE_VALUE, schema::DOUBLE, 0.0)?,
            bool: boxed(table, field::BOOL_VALUE, schema::BOOL, false)?,
            output: boxed(table, field::OUTPUT, schema::BOOL, false)?,
        })
    }
}

/// A number in a table of its own.
fn boxed<T: Scalar>(table: &Table<'_, '_>, at: Field, name: &'static str, default: T) -> Result<Option<T>, Error> {
    match table.table(at, name)? {
        None => Ok(None),
        Some(found) => found.scalar(scalar::VAL, default).map(Some),
    }
}

impl LoggedTensor {
    fn read(table: &Table<'_, '_>) -> Result<Self, Error> {
        let list = |at| Ok(table.scalars::<i64>(at)?.map(|found| found.iter().collect()).unwrap_or_default());
        Ok(LoggedTensor {
            scalar_type: table.scalar(tensor::SCALAR_TYPE, 0)?,
            sizes: list(tensor::SIZES)?,
            strides: list(tensor::STRIDES)?,
            offset: table.scalar(tensor::OFFSET, 0)?,
        })
    }
}
