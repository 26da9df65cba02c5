//! Vectors whose extent has been checked; what their offsets lead to is checked when it is reached.

use super::{Buffer, Error, Place, Scalar, Table};
use std::marker::PhantomData;

/// A vector of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Scalars<'a, T> {
    bytes: &'a [u8],
    kind: PhantomData<T>,
}

impl<'a, T: Scalar> Scalars<'a, T> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Scalars { bytes, kind: PhantomData }
    }

    /// How many numbers.
    pub fn len(&self) -> usize {
        self.bytes.len() / T::SIZE
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number at `index`.
    pub fn get(&self, index: usize) -> Option<T> {
        let start = index.checked_mul(T::SIZE)?;
        self.bytes.get(start..start.checked_add(T::SIZE)?).map(T::from_slice)
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + use<'a, T> {
        self.bytes.chunks_exact(T::SIZE).map(T::from_slice)
    }
}

/// A vector of tables.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'b, 'a> {
    pub(super) buffer: &'b Buffer<'a>,
    pub(super) place: Place,
    pub(super) name: &'static str,
    pub(super) first: usize,
    pub(super) count: u32,
    pub(super) depth: u8,
}

impl<'b, 'a> Tables<'b, 'a> {
    /// How many tables.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The table at `index`; `None` behind the last.
    ///
    /// # Errors
    /// When it leaves the buffer or is too deep.
    pub fn get(&self, index: usize) -> Option<Result<Table<'b, 'a>, Error>> {
        (index < self.len()).then(|| self.at(index))
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<Table<'b, 'a>, Error>> + use<'b, 'a> {
        let all = *self;
        (0..self.len()).map(move |index| all.at(index))
    }

    fn at(&self, index: usize) -> Result<Table<'b, 'a>, Error> {
        let target = self.buffer.follow(self.first + index * 4, self.place)?;
        self.buffer.open(target, self.name, self.depth)
    }
}

/// A vector of strings.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'b, 'a> {
    pub(super) buffer: &'b Buffer<'a>,
    pub(super) place: Place,
    pub(super) first: usize,
    pub(super) count: u32,
}

impl<'b, 'a> Strings<'b, 'a> {
    /// How many strings.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<&'a str, Error>> + use<'b, 'a> {
        let all = *self;
        (0..self.len()).map(move |index| {
            let target = all.buffer.follow(all.first + index * 4, all.place)?;
            all.buffer.text(target, all.place)
        })
    }
}
