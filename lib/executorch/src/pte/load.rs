//! From tables to structs: a struct is its list of fields with their numbers, and this reads them in order.

use crate::flatbuffer::{Error, Field, Scalar, Table};
use m2m_record::Integer;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// What a field of a table can hold.
pub(super) trait Load<'a>: Sized {
    fn load(table: &Table<'_, 'a>, field: Field) -> Result<Self, Error>;
}

/// A struct that is a table.
pub(super) trait FromTable<'a>: Sized {
    /// The table's name in the schema.
    const NAME: &'static str;

    fn from_table(table: &Table<'_, 'a>) -> Result<Self, Error>;
}

/// What a vector can hold.
pub(super) trait Element<'a>: Sized {
    fn load_all(table: &Table<'_, 'a>, field: Field) -> Result<Option<Vec<Self>>, Error>;
}

impl<'a, T: Element<'a>> Load<'a> for Option<Vec<T>> {
    fn load(table: &Table<'_, 'a>, field: Field) -> Result<Self, Error> {
        T::load_all(table, field)
    }
}

macro_rules! scalars {
    ($($number:ty),*) => {
        $(impl<'a> Load<'a> for $number {
            fn load(table: &Table<'_, 'a>, field: Field) -> Result<Self, Error> {
                table.scalar(field, Self::default())
            }
        }
        impl<'a> Element<'a> for $number {
            fn load_all(table: &Table<'_, 'a>, field: Field) -> Result<Option<Vec<Self>>, Error> {
                collect(table, field)
            }
        })*
    };
}

scalars!(bool, i8, u8, i32, u32, i64, u64, f64);

fn collect<T: Scalar>(table: &Table<'_, '_>, field: Field) -> Result<Option<Vec<T>>, Error> {
    Ok(table.scalars(field)?.map(|all| all.iter().collect()))
}

impl<'a> Load<'a> for Option<&'a str> {
    fn load(table: &Table<'_, 'a>, field: Field) -> Result<Self, Error> {
        table.string(field)
    }
}

/// Bytes of the file, with their place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Load<'a> for Option<Blob<'a>> {
    fn load(table: &Table<'_, 'a>, field: Field) -> Result<Self, Error> {
        Ok(table.bytes(field)?.map(|(offset, bytes)| Blob { offset, bytes }))
    }
}

impl Serialize for Blob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("bytes", &self.bytes.len())?;
        map.serialize_entry("sha256", &super::sha256(self.bytes))?;
        map.end()
    }
}

/// Reads a table in a field.
pub(super) fn child<'a, T: FromTable<'a>>(table: &Table<'_, 'a>, field: Field) -> Result<Option<T>, Error> {
    table.table(field, T::NAME)?.map(|table| T::from_table(&table)).transpose()
}

/// Reads a vector of tables in a field.
pub(super) fn children<'a, T: FromTable<'a>>(table: &Table<'_, 'a>, field: Field) -> Result<Option<Vec<T>>, Error> {
    let Some(tables) = table.tables(field, T::NAME)? else { return Ok(None) };
    tables.iter().map(|table| T::from_table(&table?)).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Writes 64-bit integers as records do: tagged where a double could not hold them.
pub(super) fn exact<S: Serializer, T: Exact>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.write(serializer)
}

/// What [`exact`] can write.
pub(super) trait Exact {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

impl Exact for u64 {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Integer::from(*self).serialize(serializer)
    }
}

impl<T: Copy + Into<i128>> Exact for Option<Vec<T>> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            None => serializer.serialize_none(),
            Some(all) => serializer.collect_seq(all.iter().map(|x| Integer::from(*x))),
        }
    }
}

/// Declares structs that are tables: `NUMBER name: type` a field.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$attr:meta])* $number:literal $field:ident: $ty:ty),* $(,)?
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize)]
            #[allow(missing_docs, reason = "the schema's own field names")]
            pub struct $name $(<$life>)? { $($(#[$attr])* pub $field: $ty),* }

            impl<'a> FromTable<'a> for $name $(<$life>)? {
                const NAME: &'static str = stringify!($name);

                fn from_table(table: &Table<'_, 'a>) -> Result<Self, crate::flatbuffer::Error> {
                    Ok($name { $($field: Load::load(table, Field($number, stringify!($field)))?),* })
                }
            }

            impl<'a> Load<'a> for Option<$name $(<$life>)?> {
                fn load(table: &Table<'_, 'a>, field: Field) -> Result<Self, crate::flatbuffer::Error> {
                    child(table, field)
                }
            }

            impl<'a> Element<'a> for $name $(<$life>)? {
                fn load_all(table: &Table<'_, 'a>, field: Field) -> Result<Option<Vec<Self>>, crate::flatbuffer::Error> {
                    children(table, field)
                }
            }
        )*
    };
}
pub(super) use tables;

/// Declares enums of the schema: `NUMBER NAME` a value, all others being kept as their number.
macro_rules! enums {
    ($($(#[$doc:meta])* $name:ident: $repr:ty { $($number:literal $word:ident),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct $name(pub $repr);

            #[allow(missing_docs, reason = "the schema's own names")]
            impl $name {
                $(pub const $word: Self = $name($number);)*

                /// The schema's name of it.
                pub fn name(self) -> Option<&'static str> {
                    match self { $(Self::$word => Some(stringify!($word)),)* _ => None }
                }
            }

            impl<'a> Load<'a> for $name {
                fn load(table: &Table<'_, 'a>, field: Field) -> Result<Self, crate::flatbuffer::Error> {
                    table.scalar(field, 0).map($name)
                }
            }

            impl Serialize for $name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    match self.name() {
                        Some(word) => serializer.serialize_str(word),
                        None => self.0.serialize(serializer),
                    }
                }
            }
        )*
    };
}
pub(super) use enums;
