//! Two macros that turn a list of fields into a struct, or of keys into an enum, with a tolerant `Deserialize`.
//!
//! serde's derive would drop unknown keys without a word, keep the last of two equal keys of a union, and tell missing
//! from null only with an attribute on each field.

/// A struct of the schema. `need` fields must be there; `may` fields take their default when missing or null.
/// `as` gives the key where it cannot be a field's name; `unknown` holds the names of other fields that carry data.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $mark:ident $field:ident $(as $key:literal)?: $ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<'a> {
            $($(#[$fdoc])* pub $field: $ty,)*
            /// Fields that carry data and that this reader does not know.
            pub unknown: Vec<$crate::schema::Text<'a>>,
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields<'a>(std::marker::PhantomData<&'a ()>);
                impl<'de: 'a, 'a> serde::de::Visitor<'de> for Fields<'a> {
                    type Value = $name<'a>;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object ", stringify!($name)))
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        $(let mut $field: Option<Option<$ty>> = None;)*
                        let mut unknown = Vec::new();
                        while let Some(key) = map.next_key::<$crate::schema::Text<'a>>()? {
                            match key.as_ref() {
                                $(object!(@key $field $($key)?) => {
                                    if $field.is_some() {
                                        return Err(serde::de::Error::duplicate_field(object!(@key $field $($key)?)));
                                    }
                                    $field = Some(map.next_value()?);
                                })*
                                _ => {
                                    if map.next_value::<$crate::schema::text::Carries>()?.0 {
                                        unknown.push(key);
                                    }
                                }
                            }
                        }
                        Ok($name { $($field: object!(@$mark $field),)* unknown })
                    }
                }
                deserializer.deserialize_map(Fields(std::marker::PhantomData))
            }
        }
    };
    (@key $field:ident $key:literal) => { $key };
    (@key $field:ident) => { stringify!($field) };
    (@need $field:ident) => {
        $field.flatten().ok_or_else(|| serde::de::Error::missing_field(stringify!($field)))?
    };
    (@may $field:ident) => { $field.flatten().unwrap_or_default() };
}

/// A union of the schema: an object with exactly one key, which says what its value is.
macro_rules! union {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($(#[$vdoc:meta])* $key:ident => $variant:ident($ty:ty)),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[allow(missing_docs, reason = "each variant is the key of that name")]
        pub enum $name $(<$life>)? {
            $($(#[$vdoc])* $variant($ty),)*
        }

        impl<'de: 'a, 'a> serde::Deserialize<'de> for $name $(<$life>)? {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Keys<'a>(std::marker::PhantomData<&'a ()>);
                impl<'de: 'a, 'a> serde::de::Visitor<'de> for Keys<'a> {
                    type Value = $name $(<$life>)?;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object with one key, ", stringify!($name)))
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let Some(key) = map.next_key::<$crate::schema::Text<'a>>()? else {
                            return Err(serde::de::Error::invalid_length(0, &self));
                        };
                        let value = match key.as_ref() {
                            $(stringify!($key) => $name::$variant(map.next_value()?),)*
                            other => return Err(serde::de::Error::unknown_variant(other, &[$(stringify!($key)),*])),
                        };
                        match map.next_key::<$crate::schema::Text<'a>>()? {
                            None => Ok(value),
                            Some(second) => Err(serde::de::Error::custom(format_args!(
                                "{} has two keys, {:?} and {:?}; one is right",
                                stringify!($name), key.as_ref(), second.as_ref()
                            ))),
                        }
                    }
                }
                deserializer.deserialize_map(Keys(std::marker::PhantomData))
            }
        }
    };
}
