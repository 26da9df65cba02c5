//! The numbers that a flatbuffer holds, little-endian and at any address.

mod sealed {
    pub trait Sealed {}
}

/// A number of a fixed size, or a bool.
pub trait Scalar: Copy + sealed::Sealed {
    /// Bytes of one.
    const SIZE: usize;

    /// The value of the first [`Scalar::SIZE`] bytes; zero where there are fewer, which no caller here passes.
    fn from_slice(bytes: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl sealed::Sealed for $number {}
        impl Scalar for $number {
            const SIZE: usize = size_of::<$number>();

            fn from_slice(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(Self::default(), |bytes| Self::from_le_bytes(*bytes))
            }
        })*
    };
}

numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl sealed::Sealed for bool {}

impl Scalar for bool {
    const SIZE: usize = 1;

    fn from_slice(bytes: &[u8]) -> Self {
        bytes.first().is_some_and(|byte| *byte != 0)
    }
}
