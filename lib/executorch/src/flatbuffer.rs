//! Checked access to flatbuffers: every offset, length and vtable is compared with the end of the buffer before it is used.
//!
//! Values are read byte by byte, so a buffer may lie at any address; a vtable may lie before or after its table. Strings and
//! byte vectors are borrowed. Tables may nest [`MAX_DEPTH`] deep, and all that is read, counted as often as it is read, may
//! be [`WORK_FACTOR`] times the size of the buffer: a small hostile file in which many offsets share one table ends there.
//! What the tables mean is left to the caller, who names them and their fields so that an error can.

mod error;
mod scalar;
mod vector;
pub mod write;

use std::cell::Cell;

pub use error::{Cause, Error};
pub use scalar::Scalar;
pub use vector::{Scalars, Strings, Tables};

/// Most tables inside one another; the deepest format read here has eight.
pub const MAX_DEPTH: u8 = 32;

/// How often the bytes of a buffer may be read on average. Writers share equal strings, so it must be well above one.
pub const WORK_FACTOR: u64 = 32;

/// What may be read besides, so that a tiny buffer is not refused for a few shared strings.
const WORK_FREE: u64 = 1 << 20;

/// What opening a table counts as, in bytes: about what a caller keeps of one.
const TABLE_COST: u64 = 128;

/// A field of a table: its number in the schema and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field(pub u16, pub &'static str);

/// The bytes of a flatbuffer and how much more of them may be read.
#[derive(Debug)]
pub struct Buffer<'a> {
    bytes: &'a [u8],
    start: u64,
    work: Cell<u64>,
}

impl<'a> Buffer<'a> {
    /// A buffer whose first byte is byte `start` of its file.
    pub fn new(bytes: &'a [u8], start: u64) -> Self {
        let work = (bytes.len() as u64).saturating_mul(WORK_FACTOR).saturating_add(WORK_FREE);
        Buffer { bytes, start, work: Cell::new(work) }
    }

    /// A buffer that follows its own size in four bytes and reaches to the end of `bytes`, the whole of a file.
    ///
    /// # Errors
    /// [`Cause::SizePrefix`] when the size is another, [`Cause::Truncated`] when it is not there.
    pub fn size_prefixed(bytes: &'a [u8], table: &'static str) -> Result<Self, Error> {
        let Some((stated, rest)) = bytes.split_first_chunk::<4>() else {
            let cause = Cause::Truncated { need: 4, end: bytes.len() as u64 };
            return Err(Error { at: 0, table, field: "", cause });
        };
        let (stated, found) = (u64::from(u32::from_le_bytes(*stated)), rest.len() as u64);
        if stated != found {
            return Err(Error { at: 0, table, field: "", cause: Cause::SizePrefix { stated, found } });
        }
        Ok(Self::new(rest, 4))
    }

    /// The root table, after comparing the file identifier in bytes 4 to 8.
    ///
    /// # Errors
    /// [`Cause::Identifier`], and whatever opening a table can meet.
    pub fn root<'b>(&'b self, table: &'static str, identifier: &[u8; 4]) -> Result<Table<'b, 'a>, Error> {
        let at = Place { table, field: "" };
        let found = self.array::<4>(4, at)?;
        if found != *identifier {
            let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            return Err(self.error(4, at, Cause::Identifier { found: words(&found), expected: words(identifier) }));
        }
        let target = self.follow(0, at)?;
        self.open(target, table, 0)
    }

    /// The position in the file of the buffer's byte `at`.
    fn position(&self, at: usize) -> u64 {
        self.start.saturating_add(at as u64)
    }

    fn end(&self) -> u64 {
        self.position(self.bytes.len())
    }

    fn error(&self, at: usize, place: Place, cause: Cause) -> Error {
        Error { at: self.position(at), table: place.table, field: place.field, cause }
    }

    /// `N` bytes at `at`.
    fn array<const N: usize>(&self, at: usize, place: Place) -> Result<[u8; N], Error> {
        match self.bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(found) => Ok(*found),
            None => Err(self.error(at, place, Cause::Truncated { need: N as u64, end: self.end() })),
        }
    }

    /// Where the offset at `at` leads: forward, to a byte of the buffer.
    fn follow(&self, at: usize, place: Place) -> Result<usize, Error> {
        let offset = u32::from_le_bytes(self.array(at, place)?);
        match at.checked_add(offset as usize) {
            Some(target) if offset > 0 && target < self.bytes.len() => Ok(target),
            _ => Err(self.error(at, place, Cause::Offset { offset: i64::from(offset), end: self.end() })),
        }
    }

    /// Takes `cost` bytes off what may still be read.
    fn spend(&self, at: usize, cost: u64, place: Place) -> Result<(), Error> {
        match self.work.get().checked_sub(cost) {
            Some(left) => {
                self.work.set(left);
                Ok(())
            }
            None => {
                let len = self.bytes.len() as u64;
                let limit = len.saturating_mul(WORK_FACTOR).saturating_add(WORK_FREE);
                Err(self.error(at, place, Cause::Work { limit, len }))
            }
        }
    }

    /// Opens the table at `at`: its vtable and its own extent are inside the buffer from here on.
    fn open<'b>(&'b self, at: usize, name: &'static str, depth: u8) -> Result<Table<'b, 'a>, Error> {
        let place = Place { table: name, field: "" };
        if depth > MAX_DEPTH {
            return Err(self.error(at, place, Cause::Depth { limit: MAX_DEPTH }));
        }
        self.spend(at, TABLE_COST, place)?;
        let back = i32::from_le_bytes(self.array(at, place)?);
        let vtable = i64::try_from(at).ok().and_then(|at| usize::try_from(at - i64::from(back)).ok());
        let Some(vtable) = vtable.filter(|vtable| *vtable < self.bytes.len()) else {
            return Err(self.error(at, place, Cause::Offset { offset: -i64::from(back), end: self.end() }));
        };
        let vtable_len = u16::from_le_bytes(self.array(vtable, place)?);
        if vtable_len < 4 || vtable_len % 2 != 0 {
            return Err(self.error(vtable, place, Cause::VtableSize { len: vtable_len }));
        }
        let Some(slots) = self.bytes.get(vtable..).and_then(|rest| rest.get(..usize::from(vtable_len))) else {
            let cause = Cause::Truncated { need: u64::from(vtable_len), end: self.end() };
            return Err(self.error(vtable, place, cause));
        };
        let len = slots.get(2..4).map_or(0, u16_of);
        if len < 4 {
            return Err(self.error(vtable, place, Cause::TableSize { len }));
        }
        if self.bytes.len() - at < usize::from(len) {
            return Err(self.error(at, place, Cause::Truncated { need: u64::from(len), end: self.end() }));
        }
        Ok(Table { buffer: self, name, at, len, slots: slots.get(4..).unwrap_or_default(), depth })
    }

    /// The vector at `at`: where its elements begin and how many there are, all inside the buffer.
    fn vector(&self, at: usize, size: usize, place: Place) -> Result<(usize, u32), Error> {
        let count = u32::from_le_bytes(self.array(at, place)?);
        let first = at + 4;
        let left = self.bytes.len() - first;
        match (count as usize).checked_mul(size) {
            Some(need) if need <= left => Ok((first, count)),
            _ => Err(self.error(at, place, Cause::Vector { count, size, left: left as u64 })),
        }
    }

    /// The string at `at`.
    fn text(&self, at: usize, place: Place) -> Result<&'a str, Error> {
        let (first, len) = self.vector(at, 1, place)?;
        self.spend(at, 4 + u64::from(len), place)?;
        let bytes = self.bytes.get(first..first + len as usize).unwrap_or_default();
        if self.bytes.get(first + len as usize) != Some(&0) {
            return Err(self.error(at, place, Cause::Unterminated { len }));
        }
        std::str::from_utf8(bytes).map_err(|e| self.error(at, place, Cause::Utf8 { len, valid: e.valid_up_to() }))
    }
}

fn u16_of(bytes: &[u8]) -> u16 {
    bytes.first_chunk().map_or(0, |pair| u16::from_le_bytes(*pair))
}

/// What is being read, for errors.
#[derive(Clone, Copy, Debug)]
struct Place {
    table: &'static str,
    field: &'static str,
}

/// A table whose extent has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Table<'b, 'a> {
    buffer: &'b Buffer<'a>,
    name: &'static str,
    at: usize,
    len: u16,
    slots: &'a [u8],
    depth: u8,
}

impl<'b, 'a> Table<'b, 'a> {
    /// Its position in the file.
    pub fn position(&self) -> u64 {
        self.buffer.position(self.at)
    }

    /// Whether the field is stored.
    pub fn is_set(&self, field: Field) -> bool {
        self.offset(field) != 0
    }

    /// An error at this table's `field`.
    pub fn error(&self, field: Field, cause: Cause) -> Error {
        self.buffer.error(self.at + usize::from(self.offset(field)), self.place(field), cause)
    }

    /// The scalar in `field`, or `default` where it is not stored.
    ///
    /// # Errors
    /// When it lies outside the table.
    pub fn scalar<T: Scalar>(&self, field: Field, default: T) -> Result<T, Error> {
        match self.slot(field, T::SIZE)? {
            Some(at) => Ok(T::from_slice(self.buffer.bytes.get(at..at + T::SIZE).unwrap_or_default())),
            None => Ok(default),
        }
    }

    /// The string in `field`.
    ///
    /// # Errors
    /// When it leaves the buffer, lacks its zero byte, or is not UTF-8.
    pub fn string(&self, field: Field) -> Result<Option<&'a str>, Error> {
        let Some(target) = self.target(field)? else { return Ok(None) };
        self.buffer.text(target, self.place(field)).map(Some)
    }

    /// The table in `field`, which errors will call `name`.
    ///
    /// # Errors
    /// When it leaves the buffer or is too deep.
    pub fn table(&self, field: Field, name: &'static str) -> Result<Option<Table<'b, 'a>>, Error> {
        let Some(target) = self.target(field)? else { return Ok(None) };
        self.buffer.open(target, name, self.depth + 1).map(Some)
    }

    /// The type and the value of a union; `None` for type 0. `name` gives the value its name, and says `None` for types
    /// that the caller does not know, whose value is then not looked at.
    ///
    /// # Errors
    /// [`Cause::Union`] when one is there without the other.
    pub fn union(
        &self,
        tag: Field,
        value: Field,
        name: impl Fn(u8) -> Option<&'static str>,
    ) -> Result<Option<(u8, Option<Table<'b, 'a>>)>, Error> {
        let kind = self.scalar::<u8>(tag, 0)?;
        let is_set = self.is_set(value);
        if (kind != 0) != is_set {
            return Err(self.error(value, Cause::Union { tag: kind, is_set }));
        }
        match (kind, name(kind)) {
            (0, _) => Ok(None),
            (_, None) => Ok(Some((kind, None))),
            (_, Some(name)) => Ok(Some((kind, self.table(value, name)?))),
        }
    }

    /// The vector of scalars in `field`.
    ///
    /// # Errors
    /// When it leaves the buffer.
    pub fn scalars<T: Scalar>(&self, field: Field) -> Result<Option<Scalars<'a, T>>, Error> {
        let Some(target) = self.target(field)? else { return Ok(None) };
        let (first, count) = self.buffer.vector(target, T::SIZE, self.place(field))?;
        let size = count as usize * T::SIZE;
        self.buffer.spend(target, 4 + size as u64, self.place(field))?;
        Ok(Some(Scalars::new(self.buffer.bytes.get(first..first + size).unwrap_or_default())))
    }

    /// The bytes in `field` with their position in the file. They are not read, so they count as nothing.
    ///
    /// # Errors
    /// When they leave the buffer.
    pub fn bytes(&self, field: Field) -> Result<Option<(u64, &'a [u8])>, Error> {
        let Some(target) = self.target(field)? else { return Ok(None) };
        let (first, count) = self.buffer.vector(target, 1, self.place(field))?;
        let bytes = self.buffer.bytes.get(first..first + count as usize).unwrap_or_default();
        Ok(Some((self.buffer.position(first), bytes)))
    }

    /// The vector of tables in `field`, each of which errors will call `name`.
    ///
    /// # Errors
    /// When the vector leaves the buffer; its tables are checked as they are reached.
    pub fn tables(&self, field: Field, name: &'static str) -> Result<Option<Tables<'b, 'a>>, Error> {
        let Some((first, count)) = self.offsets(field)? else { return Ok(None) };
        Ok(Some(Tables { buffer: self.buffer, place: self.place(field), name, first, count, depth: self.depth + 1 }))
    }

    /// The vector of strings in `field`.
    ///
    /// # Errors
    /// When the vector leaves the buffer; its strings are checked as they are reached.
    pub fn strings(&self, field: Field) -> Result<Option<Strings<'b, 'a>>, Error> {
        let Some((first, count)) = self.offsets(field)? else { return Ok(None) };
        Ok(Some(Strings { buffer: self.buffer, place: self.place(field), first, count }))
    }

    fn offsets(&self, field: Field) -> Result<Option<(usize, u32)>, Error> {
        let Some(target) = self.target(field)? else { return Ok(None) };
        let (first, count) = self.buffer.vector(target, 4, self.place(field))?;
        self.buffer.spend(target, 4 + 4 * u64::from(count), self.place(field))?;
        Ok(Some((first, count)))
    }

    fn place(&self, field: Field) -> Place {
        Place { table: self.name, field: field.1 }
    }

    /// Where in the table the field is stored; 0 where it is not.
    fn offset(&self, field: Field) -> u16 {
        let entry = usize::from(field.0) * 2;
        self.slots.get(entry..entry + 2).map_or(0, u16_of)
    }

    /// The position in the buffer of a field of `size` bytes.
    fn slot(&self, field: Field, size: usize) -> Result<Option<usize>, Error> {
        let offset = self.offset(field);
        if offset == 0 {
            return Ok(None);
        }
        if offset < 4 || usize::from(offset) + size > usize::from(self.len) {
            let cause = Cause::Outside { offset, size, len: self.len };
            return Err(self.buffer.error(self.at, self.place(field), cause));
        }
        Ok(Some(self.at + usize::from(offset)))
    }

    /// Where the offset in `field` leads.
    fn target(&self, field: Field) -> Result<Option<usize>, Error> {
        match self.slot(field, 4)? {
            Some(at) => self.buffer.follow(at, self.place(field)).map(Some),
            None => Ok(None),
        }
    }
}
