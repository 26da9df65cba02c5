//! A small writer of flatbuffers: tables as trees, written front to back.
//!
//! Offsets in a flatbuffer lead forward, so a table is written before what it holds, and its offsets are filled in as that
//! follows. Every table has a vtable of its own, before or, as flatcc does, after it. Equal trees give equal bytes.

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number's little-endian bytes; their count is the alignment.
    Number(Vec<u8>),
    /// A string.
    Text(String),
    /// A vector of numbers: bytes of one, and the bytes of all.
    Numbers(usize, Vec<u8>),
    /// A vector of bytes that begins at a multiple of the alignment.
    Bytes(usize, Vec<u8>),
    /// A table.
    Table(Object),
    /// A vector of tables.
    Tables(Vec<Object>),
    /// A vector of strings.
    Texts(Vec<String>),
}

macro_rules! values {
    ($($number:ty),*) => {
        $(impl From<$number> for Value {
            fn from(x: $number) -> Value {
                Value::Number(x.to_le_bytes().to_vec())
            }
        }
        impl From<&[$number]> for Value {
            fn from(all: &[$number]) -> Value {
                Value::Numbers(size_of::<$number>(), all.iter().flat_map(|x| x.to_le_bytes()).collect())
            }
        }
        impl<const N: usize> From<[$number; N]> for Value {
            fn from(all: [$number; N]) -> Value {
                Value::from(all.as_slice())
            }
        })*
    };
}

values!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl From<bool> for Value {
    fn from(x: bool) -> Value {
        Value::from(u8::from(x))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<Object> for Value {
    fn from(table: Object) -> Value {
        Value::Table(table)
    }
}

impl From<Vec<Object>> for Value {
    fn from(tables: Vec<Object>) -> Value {
        Value::Tables(tables)
    }
}

/// A table: its stored fields by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    fields: Vec<(u16, Value)>,
}

impl Object {
    /// A table without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field, which must not be there yet.
    #[must_use]
    pub fn with(mut self, field: u16, value: impl Into<Value>) -> Self {
        self.fields.push((field, value.into()));
        self
    }
}

/// Where vtables go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vtables {
    /// Before their tables, as Google's writers do.
    #[default]
    Before,
    /// After them, as flatcc does.
    After,
}

/// The flatbuffer of `root` with a file identifier. `gap` bytes of zeros follow the identifier, where ExecuTorch puts its
/// header.
///
/// # Panics
/// When a table is beyond 64 KiB or the whole beyond 4 GiB, which the format cannot hold.
pub fn finish(root: &Object, identifier: &[u8; 4], gap: usize, vtables: Vtables) -> Vec<u8> {
    let mut writer = Writer { out: vec![0; 4], vtables };
    writer.out.extend_from_slice(identifier);
    writer.out.resize(8 + gap, 0);
    let at = writer.table(root);
    writer.patch(0, at);
    writer.out
}

struct Writer {
    out: Vec<u8>,
    vtables: Vtables,
}

impl Writer {
    /// Zeros up to the next multiple of `align`, counted `ahead` bytes from here.
    fn align(&mut self, align: usize, ahead: usize) {
        let len = (self.out.len() + ahead).next_multiple_of(align.max(1)) - ahead;
        self.out.resize(len, 0);
    }

    /// Stores at `slot` the distance from there to `target`.
    fn patch(&mut self, slot: usize, target: usize) {
        let distance = u32::try_from(target - slot).expect("a flatbuffer is smaller than 4 GiB");
        self.out[slot..slot + 4].copy_from_slice(&distance.to_le_bytes());
    }

    fn table(&mut self, object: &Object) -> usize {
        let mut order: Vec<&(u16, Value)> = object.fields.iter().collect();
        // Large fields first, so that no padding is needed between them.
        order.sort_by_key(|(id, value)| (std::cmp::Reverse(inline_size(value)), *id));
        let count = object.fields.iter().map(|(id, _)| usize::from(*id) + 1).max().unwrap_or(0);
        let mut vtable = vec![0u8; 4 + 2 * count];
        // The largest field begins at a multiple of its size; the table's head lies in the four bytes before.
        let align = order.first().map_or(4, |(_, value)| inline_size(value).max(4));
        let mut offset = 4usize;
        for (id, value) in &order {
            offset = offset.next_multiple_of(inline_size(value));
            let slot = 4 + 2 * usize::from(*id);
            vtable[slot..slot + 2].copy_from_slice(&short(offset));
            offset += inline_size(value);
        }
        let vtable_len = vtable.len();
        vtable[..2].copy_from_slice(&short(vtable_len));
        vtable[2..4].copy_from_slice(&short(offset));
        self.align(2, 0);
        if self.vtables == Vtables::Before {
            self.align(align, vtable_len);
            self.out.extend_from_slice(&vtable);
        } else {
            self.align(align, 0);
        }
        let at = self.out.len();
        let head =
            if self.vtables == Vtables::Before { vtable_len as i32 } else { -(offset.next_multiple_of(2) as i32) };
        self.out.extend_from_slice(&head.to_le_bytes());
        self.out.resize(at + offset, 0);
        if self.vtables == Vtables::After {
            self.align(2, 0);
            self.out.extend_from_slice(&vtable);
        }
        for (id, value) in &order {
            let slot = 4 + 2 * usize::from(*id);
            let place = at + usize::from(u16::from_le_bytes([vtable[slot], vtable[slot + 1]]));
            if let Value::Number(bytes) = value {
                self.out[place..place + bytes.len()].copy_from_slice(bytes);
            } else {
                let target = self.held(value);
                self.patch(place, target);
            }
        }
        at
    }

    /// Writes what a field points to; a number would be a vector of one.
    fn held(&mut self, value: &Value) -> usize {
        match value {
            Value::Number(bytes) => self.vector(bytes.len(), 1, bytes),
            Value::Numbers(size, bytes) => self.vector(*size, bytes.len() / size.max(&1), bytes),
            Value::Bytes(align, bytes) => self.vector(*align, bytes.len(), bytes),
            Value::Text(text) => self.text(text),
            Value::Table(object) => self.table(object),
            Value::Tables(objects) => self.offsets(objects, |writer, object| writer.table(object)),
            Value::Texts(texts) => self.offsets(texts, |writer, text| writer.text(text)),
        }
    }

    fn text(&mut self, text: &str) -> usize {
        let at = self.vector(1, text.len(), text.as_bytes());
        self.out.push(0);
        at
    }

    fn vector(&mut self, align: usize, count: usize, bytes: &[u8]) -> usize {
        self.align(align.max(4), 4);
        let at = self.out.len();
        self.out.extend_from_slice(&u32::try_from(count).expect("a flatbuffer is smaller than 4 GiB").to_le_bytes());
        self.out.extend_from_slice(bytes);
        at
    }

    fn offsets<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T) -> usize) -> usize {
        let at = self.vector(4, items.len(), &vec![0; items.len() * 4]);
        for (i, item) in items.iter().enumerate() {
            let target = write(self, item);
            self.patch(at + 4 + 4 * i, target);
        }
        at
    }
}

/// Bytes that the value takes in its table: its own, or those of an offset.
fn inline_size(value: &Value) -> usize {
    match value {
        Value::Number(bytes) => bytes.len(),
        _ => 4,
    }
}

fn short(x: usize) -> [u8; 2] {
    u16::try_from(x).expect("a table is smaller than 64 KiB").to_le_bytes()
}
